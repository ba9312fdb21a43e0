package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/internal/access"
)

// TestLogin: somebody without a session is led to the login, with a wrong token stays there, and with
// a right one comes to the wanted page. Its buttons work as far as the role of the token goes, its
// stream of events does, and after the end of the token the next page is the login.
func TestLogin(t *testing.T) {
	t.Parallel() // a wrong token is answered late
	b := newTab(t)
	w := newWorld(t, nil)
	users := access.Open(access.Folder(w.cfg.State), "")
	token := func(name string, role access.Role) string {
		t.Helper()
		secret, err := users.Create(access.Token{Name: name, Role: role})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	operate, read := token("ann", access.Operate), token("bob", access.Read)
	w.update("local", books(0, 3, "Book"))

	b.do(chromedp.Navigate(w.srv.URL+"/sets/books"), shown(`//h1[contains(., "rsbridge")]`))
	if at := b.js("document.activeElement.id + ' ' + location.pathname"); at != "token /login" {
		t.Errorf("the login begins at %s", at)
	}
	b.look("login")
	b.do(typed("#token", "wrong\r"), shown(`//p[@role="alert"][contains(., "not known here")]`))
	b.look("login-wrong")
	b.do(typed("#token", operate+"\r"), shown(`//h2[contains(., "Changes")]`))
	if at := b.js("location.pathname"); at != "/sets/books" {
		t.Errorf("the login leads to %s", at)
	}
	if cookie := b.js("document.cookie"); strings.Contains(cookie, "rsbridge") {
		t.Errorf("a script sees the session: %s", cookie)
	}
	b.do(chromedp.Navigate(w.srv.URL), click(`//section[contains(., "First steps")]//button[contains(., "Scan now")]`), shown(`//tr[contains(., "books") and contains(., "in sync")]`))
	b.do(click(`//button[contains(., "Log out")]`), shown(`//label[contains(., "Token")]`))

	b.do(typed("#token", read+"\r"), shown(`//tr[contains(., "books")]`))
	if status := b.js(`(() => { const r = new XMLHttpRequest(); r.open("POST", "api/v1/sets/books/scan", false); r.send(); return r.status })()`); status != "403" {
		t.Errorf("a reader scans: %s", status)
	}
	if err := users.Revoke("bob"); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(w.srv.URL+"/runs"), shown(`//label[contains(., "Token")]`))
}
