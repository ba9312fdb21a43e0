package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/browsertest"
)

// TestLogin: somebody without a session is led to the login, with a wrong token stays there, and with
// a right one comes to the wanted page. Its buttons work as far as the role of the token goes, its
// stream of events does, and after the end of the token the next page is the login.
func TestLogin(t *testing.T) {
	t.Parallel() // a wrong token is answered late
	b := browsertest.Open(t)
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

	b.Do(chromedp.Navigate(w.srv.URL+"/sets/books"), browsertest.Shown(`//h1[contains(., "rsbridge")]`))
	if at := js(b, "document.activeElement.id + ' ' + location.pathname"); at != "token /login" {
		t.Errorf("the login begins at %s", at)
	}
	look(t, b, "login")
	b.Do(browsertest.Type("#token", "wrong\r"), browsertest.Shown(`//p[@role="alert"][contains(., "not known here")]`))
	look(t, b, "login-wrong")
	b.Do(browsertest.Type("#token", operate+"\r"), browsertest.Shown(`//h2[contains(., "Changes")]`))
	if at := js(b, "location.pathname"); at != "/sets/books" {
		t.Errorf("the login leads to %s", at)
	}
	if cookie := js(b, "document.cookie"); strings.Contains(cookie, "rsbridge") {
		t.Errorf("a script sees the session: %s", cookie)
	}
	b.Do(chromedp.Navigate(w.srv.URL), browsertest.Click(`//section[contains(., "First steps")]//button[contains(., "Scan now")]`), browsertest.Shown(`//tr[contains(., "books") and contains(., "in sync")]`))
	b.Do(chromedp.Navigate(w.srv.URL+"/search"), browsertest.Shown(`//nav[@aria-label="Letters"]//a[.="B"]`))
	look(t, b, "browse")
	b.Do(chromedp.Navigate(w.srv.URL+"/sets/books/entity?iri=http://example.org/book2"), browsertest.Shown(`//h2[.="History"]`))
	look(t, b, "entity")
	b.Do(browsertest.Click(`//button[contains(., "Log out")]`), browsertest.Shown(`//label[contains(., "Token")]`))

	b.Do(browsertest.Type("#token", read+"\r"), browsertest.Shown(`//tr[contains(., "books")]`))
	for _, page := range []string{"/", "/sets/books", "/destinations/copy"} {
		b.Do(chromedp.Navigate(w.srv.URL+page), browsertest.Shown(`//h2[contains(., "uns")]`))
		if forms := js(b, `[...document.querySelectorAll("form[method=post]")].map(f => f.innerText.trim())`); forms != "bob Log out" {
			t.Errorf("%s has for a reader the forms %s", page, forms)
		}
	}
	if status := js(b, `(() => { const r = new XMLHttpRequest(); r.open("POST", "api/v1/sets/books/scan", false); r.send(); return r.status })()`); status != "403" {
		t.Errorf("a reader scans: %s", status)
	}
	if err := users.Revoke("bob"); err != nil {
		t.Fatal(err)
	}
	b.Do(chromedp.Navigate(w.srv.URL+"/runs"), browsertest.Shown(`//label[contains(., "Token")]`))
}
