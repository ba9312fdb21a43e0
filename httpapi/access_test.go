package httpapi_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/access"
)

// token makes a token in the state of the world, as a command does beside the daemon.
func (w *world) token(t access.Token) string {
	w.t.Helper()
	secret, err := access.Open(access.Folder(w.cfg.State), "").Create(t)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// TestRoles: each role goes as far as it should beside the API too, the log tells who did what, and a
// revoked token ends at once. TestRolesOfRoutes has all of the API.
func TestRoles(t *testing.T) {
	t.Parallel() // a wrong token is answered late
	w := newWorld(t, httpapi.Options{})
	w.is(w.do("GET", "/api/v1/status", ""), 200)
	secrets := map[access.Role]string{}
	for _, r := range access.Roles() {
		secrets[r] = w.token(access.Token{Name: "my-" + string(r), Role: r})
	}
	reader := w.token(access.Token{Name: "library", Role: access.Reader, Sets: []string{"data"}})
	w.problem(w.do("GET", "/api/v1/status", ""), 401, "rsbridge token create")
	w.problem(w.do("GET", "/api/v1/status", "", "Authorization", "Bearer "+reader), 401)
	for _, c := range []struct {
		method, path, body string
		from               access.Role
		status             int
	}{
		{"GET", "/api/v1/status", "", access.Read, 200},
		{"GET", "/metrics", "", access.Read, 200},
		{"GET", "/api/v1/actions", "", access.Admin, 200},
		{"POST", "/stores/local/query", "ASK {}", access.Read, 200},
		{"POST", "/stores/local/update", "INSERT DATA { <http://e.example/a> <http://e.example/b> 1 }", access.Operate, 204},
		{"PUT", "/stores/local/data?graph=http://e.example/g", "", access.Operate, 201},
		{"POST", "/api/v1/sets/data/touch", `{"entities": ["http://e.example/a"]}`, access.Operate, 202},
		{"POST", "/api/v1/destinations/copy/pause", "", access.Operate, 200},
		{"POST", "/api/v1/backup", "", access.Admin, 200},
		{"POST", "/api/v1/sets/data/forget", `{"dry_run": true}`, access.Admin, 202},
		{"POST", "/api/v1/sets/data/rebase?queue=true", "", access.Admin, 202},
		{"POST", "/api/v1/destinations/copy/move?queue=true", `{"to": "mirror"}`, access.Admin, 202},
	} {
		types := map[string]string{"query": "application/sparql-query", "update": "application/sparql-update", "data?graph=http://e.example/g": "text/turtle"}
		for _, r := range access.Roles() {
			a := w.do(c.method, c.path, c.body, "Authorization", "Bearer "+secrets[r], "Content-Type", types[c.path[strings.LastIndexByte(c.path[:min(len(c.path), 18)], '/')+1:]])
			if !r.Has(c.from) {
				w.problem(a, 403, "the token my-"+string(r)+" has the role "+string(r)+"; this needs "+string(c.from))
			} else if a.StatusCode != c.status && !(c.status == 201 && a.StatusCode == 204) && a.StatusCode != 409 {
				t.Errorf("%s %s as %s: %d %s", c.method, c.path, r, a.StatusCode, a.body)
			}
		}
	}
	var me struct {
		Name, Role string
		Login      bool
	}
	w.decode(w.do("GET", "/api/v1/me", "", "Authorization", "Bearer "+secrets[access.Operate]), &me)
	if me.Name != "my-operate" || me.Role != "operate" || !me.Login {
		t.Errorf("%+v", me)
	}

	var log httpapi.Actions
	w.decode(w.do("GET", "/api/v1/actions?limit=1000", "", "Authorization", "Bearer "+secrets[access.Admin]), &log)
	var told []string
	for _, a := range slices.Backward(log.Actions) {
		if a.Action == "POST /api/v1/sets/data/forget" {
			told = append(told, a.Who+" "+http.StatusText(a.Status))
			if a.From != "127.0.0.1" || (a.Run > 0) != (a.Status == 202) || time.Since(a.Time) > time.Hour {
				t.Errorf("%+v", a)
			}
		}
		if a.Status != 403 && (strings.Contains(a.Action, "GET") || strings.Contains(a.Action, "touch") || strings.Contains(a.Action, "stores")) {
			t.Errorf("%+v is in the log", a)
		}
	}
	if got := strings.Join(told, ", "); got != "my-read Forbidden, my-operate Forbidden, my-admin Accepted" {
		t.Error(got)
	}
	var page httpapi.Actions
	a := w.do("GET", "/api/v1/actions?limit=2", "", "Authorization", "Bearer "+secrets[access.Admin])
	w.decode(a, &page)
	if len(page.Actions) != 2 || page.Next != page.Actions[1].ID || a.Header.Get("Link") == "" {
		t.Errorf("%+v %s", page, a.Header.Get("Link"))
	}

	if err := access.Open(access.Folder(w.cfg.State), "").Revoke("my-admin"); err != nil {
		t.Fatal(err)
	}
	w.problem(w.do("GET", "/api/v1/status", "", "Authorization", "Bearer "+secrets[access.Admin]), 401)
}

// TestLogin: a browser without a session is led to the login and back to its page. The session has
// the role of its token, is hidden from scripts, and cannot be used by other origins.
func TestLogin(t *testing.T) {
	t.Parallel() // a wrong token is answered late
	w := newWorld(t, httpapi.Options{Token: "the-admin"})
	read := w.token(access.Token{Name: "ann", Role: access.Read})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	do := func(method, path string, form url.Values, header ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, w.srv.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html,*/*;q=0.8")
		if method == "POST" {
			req.Header.Set("Origin", w.srv.URL)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(raw)
	}
	leads := func(res *http.Response, to string) {
		t.Helper()
		if res.StatusCode != 303 || res.Header.Get("Location") != to {
			t.Fatalf("%s: %d to %q, want %q", res.Request.URL, res.StatusCode, res.Header.Get("Location"), to)
		}
	}
	res, _ := do("GET", "/?x=1", nil)
	leads(res, "./login?next=%2F%3Fx%3D1")
	res, _ = do("GET", "/stores/local/query", nil)
	leads(res, "../../login?next=%2Fstores%2Flocal%2Fquery")
	res, _ = do("GET", "/api/v1/status", nil)
	if res.StatusCode != 401 {
		t.Errorf("a program is answered with %d", res.StatusCode)
	}
	res, page := do("GET", "/login?next=%2F%3Fx%3D%22%3E", nil)
	if res.StatusCode != 200 || !strings.Contains(page, `name="next" value="/?x=&#34;&gt;"`) || !strings.Contains(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	res, page = do("POST", "/login", url.Values{"token": {"wrong"}})
	if res.StatusCode != 401 || !strings.Contains(page, "not known here") || len(res.Cookies()) > 0 {
		t.Errorf("a wrong token: %d %s", res.StatusCode, page)
	}
	if res, _ = do("POST", "/login", url.Values{"token": {read}}, "Origin", "http://elsewhere.example"); res.StatusCode != 403 {
		t.Errorf("a login from elsewhere: %d", res.StatusCode)
	}
	for next, to := range map[string]string{"/?x=1": "./?x=1", "": "./", "//elsewhere.example/": "./", "http://elsewhere.example": "./", `/\elsewhere.example`: "./", "/api/v1/status": "./api/v1/status"} {
		res, _ = do("POST", "/login", url.Values{"token": {read}, "next": {next}})
		leads(res, to)
	}
	c := res.Cookies()
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode || c[0].Secure || strings.Contains(c[0].Value, read) {
		t.Fatalf("%+v", c)
	}
	res, _ = do("POST", "/login", url.Values{"token": {read}}, "X-Forwarded-Proto", "https")
	if !res.Cookies()[0].Secure {
		t.Error("the cookie of HTTPS is for HTTP too")
	}
	res, _ = do("POST", "/login", url.Values{"token": {read}})
	leads(res, "./")

	if res, page = do("GET", "/", nil); res.StatusCode != 200 || !strings.Contains(page, "<title>") {
		t.Errorf("the dashboard: %d", res.StatusCode)
	}
	if res, page = do("POST", "/api/v1/sets/data/scan", nil); res.StatusCode != 403 || !strings.Contains(page, "this needs operate") {
		t.Errorf("a reader scans: %d %s", res.StatusCode, page)
	}
	res, _ = do("POST", "/login", url.Values{"token": {"the-admin"}})
	leads(res, "./")
	scan := func(status int, header ...string) {
		t.Helper()
		if res, page := do("POST", "/api/v1/sets/data/scan?queue=true", nil, header...); res.StatusCode != status {
			t.Errorf("%v: %d %s", header, res.StatusCode, page)
		}
	}
	scan(202)
	scan(403, "Origin", "http://elsewhere.example")
	scan(403, "Origin", "null")
	scan(202, "Origin", "null", "Sec-Fetch-Site", "same-origin") // a page without referrers
	scan(403, "Origin", "", "Sec-Fetch-Site", "cross-site")
	scan(403, "Origin", "", "Sec-Fetch-Site", "same-site")
	old := jar.Cookies(res.Request.URL)[0]
	if res, _ = do("POST", "/logout", nil, "Origin", "http://elsewhere.example"); res.StatusCode != 403 {
		t.Errorf("a logout from elsewhere: %d", res.StatusCode)
	}
	res, _ = do("POST", "/logout", nil)
	leads(res, "login")
	scan(401)
	jar.SetCookies(res.Request.URL, []*http.Cookie{{Name: old.Name, Value: old.Value, Path: "/"}})
	scan(401)
}
