package login_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/internal/login"
)

// heard are the credentials that a server was sent, by path.
type heard struct {
	mu   sync.Mutex
	sent []string
}

func (h *heard) add(r *http.Request) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := r.Header.Get("Authorization")
	h.sent = append(h.sent, r.URL.Path+" "+what)
	return what
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.sent, ", ")
}

// client is one with a login for a source.
func client(t *testing.T, c login.Config, source string) *http.Client {
	t.Helper()
	transport, err := c.Transport(source, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, address string) int {
	t.Helper()
	res, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// TestElsewhere: credentials go to the configured origin alone: no other port, host or scheme gets
// them, also not by a redirect.
func TestElsewhere(t *testing.T) {
	var home, other heard
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { other.add(r) }))
	defer elsewhere.Close()
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		home.add(r)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere.URL+"/caught", http.StatusTemporaryRedirect)
		}
	}))
	defer source.Close()
	port := source.URL[strings.LastIndexByte(source.URL, ':'):]
	for _, c := range []login.Config{{Username: "me", Password: "hidden"}, {Token: "hidden"}} {
		web := client(t, c, source.URL+"/.well-known/resourcesync")
		for _, at := range []string{source.URL + "/list", source.URL + "/away", elsewhere.URL + "/straight", "http://localhost" + port + "/name"} {
			get(t, web, at)
		}
	}
	if got, want := home.all(), "/list Basic bWU6aGlkZGVu, /away Basic bWU6aGlkZGVu, /name , /list Bearer hidden, /away Bearer hidden, /name "; got != want {
		t.Errorf("the source got %s, want %s", got, want)
	}
	if got, want := other.all(), "/caught , /straight , /caught , /straight "; got != want {
		t.Errorf("others got %s, want %s", got, want)
	}
}

// TestOAuth: one token serves many requests. One that is refused before its time is fetched anew,
// once, also for a request with a body. The secret of the client follows no redirect, and is in no
// error.
func TestOAuth(t *testing.T) {
	var mu sync.Mutex
	asked, good := 0, ""
	var forms []url.Values
	mode := ""
	var caught heard
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		r.URL.Path += string(raw)
		caught.add(r)
	}))
	defer elsewhere.Close()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch mode {
		case "away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		case "no":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error": "invalid_client", "error_description": "s3cret is wrong"}`)
			return
		}
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		id, secret, _ := r.BasicAuth()
		if id != "mirror" || secret != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		asked++
		forms = append(forms, r.PostForm)
		good = fmt.Sprint("t", asked)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": good, "token_type": "Bearer", "expires_in": 3600})
	}))
	defer tokens.Close()
	var bodies []string
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		raw, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(raw))
	}))
	defer source.Close()
	c := login.Config{TokenURL: tokens.URL, ClientID: "mirror", ClientSecret: "s3cret", Scopes: []string{"read", "list"}, Audience: "books"}
	web := client(t, c, source.URL)
	is := func(want int) {
		t.Helper()
		for range 3 {
			if status := get(t, web, source.URL); status != 200 {
				t.Errorf("status %d", status)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if asked != want {
			t.Errorf("%d tokens were fetched, want %d", asked, want)
		}
	}
	is(1)
	mu.Lock()
	good = "revoked"
	mu.Unlock()
	res, err := web.Post(source.URL, "text/plain", strings.NewReader("position"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || !slices.Contains(bodies, "position") {
		t.Errorf("a request with a body after a refused token: %d, %q", res.StatusCode, bodies)
	}
	is(2)
	if f := forms[0]; f.Get("scope") != "read list" || f.Get("audience") != "books" || f.Get("grant_type") != "client_credentials" {
		t.Errorf("%v", f)
	}
	for _, how := range []string{"away", "no"} {
		mu.Lock()
		mode = how
		mu.Unlock()
		_, err := client(t, c, source.URL).Get(source.URL)
		if err == nil || !strings.Contains(err.Error(), "no token from "+tokens.URL) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", how, err)
		}
	}
	if got := caught.all(); got != "" {
		t.Errorf("elsewhere was asked: %s", got)
	}
}

// TestCertificate: the configured origin is shown the client's certificate, and another server that
// asks for one is not.
func TestCertificate(t *testing.T) {
	var names []string
	server := func() *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			names = append(names, fmt.Sprint(len(r.TLS.PeerCertificates), " ", r.URL.Path))
			if target := r.URL.Query().Get("to"); target != "" {
				http.Redirect(w, r, target, http.StatusFound)
			}
		}))
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	source, other := server(), server()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own := source.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c := login.Config{CertFile: write("cert.pem", "CERTIFICATE", own.Certificate[0]), KeyFile: write("key.pem", "PRIVATE KEY", key), CAFile: write("ca.pem", "CERTIFICATE", own.Certificate[0]), Token: "hidden"}
	next := http.DefaultTransport.(*http.Transport).Clone()
	next.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	transport, err := c.Transport(source.URL, next)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Client{Transport: transport}
	get(t, web, source.URL+"/home")
	get(t, web, source.URL+"/away?to="+url.QueryEscape(other.URL+"/caught"))
	if got := strings.Join(names, ", "); got != "1 /home, 1 /away, 0 /caught" {
		t.Error(got)
	}
}

// TestCheck tells each fault by its key.
func TestCheck(t *testing.T) {
	for _, x := range []struct {
		c       login.Config
		address string
		want    string
	}{
		{login.Config{}, "http://h.example", ""},
		{login.Config{Username: "u", Password: "p"}, "http://h.example", ""},
		{login.Config{Username: "u"}, "http://h.example", "username"},
		{login.Config{Password: "p"}, "http://h.example", "username"},
		{login.Config{PasswordFile: "f"}, "http://h.example", "username"}, // it is empty, or cannot be read
		{login.Config{Username: "u", PasswordFile: "f"}, "http://h.example", ""},
		{login.Config{Username: "u", Password: "p", Token: "t"}, "http://h.example", "all"},
		{login.Config{Token: "t"}, "http://me:pw@h.example", "all"},
		{login.Config{Token: "two words"}, "http://h.example", "token"},
		{login.Config{TokenURL: "http://h.example/token"}, "http://h.example", "token_url"},
		{login.Config{TokenURL: "ftp://h.example/token", ClientID: "i", ClientSecret: "s"}, "http://h.example", "token_url"},
		{login.Config{TokenURL: "http://h.example/token", ClientID: "i", ClientSecret: "s"}, "http://h.example", ""},
		{login.Config{CertFile: "/none.pem", KeyFile: "/none.key"}, "https://h.example", "cert_file"},
		{login.Config{CAFile: "/none.pem"}, "http://h.example", "cert_file,cert_file"},
	} {
		var keys []string
		x.c.Check(x.address, func(key, _, _ string, _ ...any) {
			if key == "" {
				key = "all"
			}
			keys = append(keys, key)
		})
		if got := strings.Join(keys, ","); got != x.want {
			t.Errorf("%+v: %s, want %s", x.c, got, x.want)
		}
	}
}
