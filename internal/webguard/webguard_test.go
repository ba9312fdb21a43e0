package webguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

func TestAllowed(t *testing.T) {
	var rules Rules
	for _, s := range []string{"files.example", "127.0.0.1:8000", "https://repo.example/bitstreams/", "http://plain.example"} {
		r, err := ParsePrefix(s)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	for address, want := range map[string]error{
		"http://files.example/a.pdf":                     nil,
		"https://FILES.example:8443/a.pdf":               nil,
		"http://127.0.0.1:8000/":                         nil,
		"http://127.0.0.1:8001/":                         ErrNotAllowed,
		"http://127.0.0.1/":                              ErrNotAllowed,
		"https://repo.example/bitstreams/1/a.pdf":        nil,
		"https://repo.example/bitstreams/..%2fadmin":     ErrNotAllowed,
		"https://repo.example/bitstreams/%252e%252e/x":   ErrNotAllowed,
		"https://repo.example/bitstreams/../admin":       ErrNotAllowed,
		"https://repo.example/admin":                     ErrNotAllowed,
		"http://repo.example/bitstreams/1":               ErrNotAllowed, // another scheme
		"https://repo.example:444/bitstreams/1":          ErrNotAllowed,
		"https://repo.example.evil.example/bitstreams/1": ErrNotAllowed,
		"https://repo.example@evil.example/bitstreams/1": ErrNotAllowed,
		"http://plain.example/x":                         nil,
		"http://plain.example":                           nil,
		"http://169.254.169.254/latest/meta-data/":       ErrNotAllowed,
		"file:///etc/passwd":                             ErrScheme,
		"ftp://files.example/":                           ErrScheme,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := rules.Allowed(u); !errors.Is(err, want) || err != nil && want == nil {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	for _, s := range []string{"", "a b", "https://", "https://u:p@h.example/", "https://h.example/?q", "ftp://h.example/"} {
		if r, err := ParsePrefix(s); err == nil {
			t.Errorf("%q is taken: %v", s, r)
		}
	}
}

func TestPublic(t *testing.T) {
	for _, s := range []string{"127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.1.1", "172.31.0.1", "100.64.0.1", "0.0.0.0", "::1", "::", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "224.0.0.1", "255.255.255.255"} {
		if Public(netip.MustParseAddr(s)) {
			t.Errorf("%s is taken for public", s)
		}
	}
	for _, s := range []string{"93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "1.1.1.1", "172.32.0.1"} {
		if !Public(netip.MustParseAddr(s)) {
			t.Errorf("%s is not taken for public", s)
		}
	}
}

// A name that leads to the machine itself is refused, its address written out is not.
func TestDialer(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	d := &Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(context.Background(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	d.Resolver = teststores.Names(t, netip.MustParseAddr("127.0.0.1"))
	inner := net.JoinHostPort("files.example", port)
	if _, err := d.DialContext(context.Background(), "tcp", inner); !errors.Is(err, ErrPrivate) {
		t.Errorf("a name that leads to the machine itself: %v", err)
	}
	d.Private = true
	conn, err = d.DialContext(context.Background(), "tcp", inner)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestMasked(t *testing.T) {
	for address, want := range map[string]string{
		"http://me:hush@h.example/a": "http://...@h.example/a", "http://me:hu/sh%zz@h.example": "http://...@h.example", "ht tp://me:hush@h": "ht tp://...@h",
		"http://h.example/a": "http://h.example/a", "a@b": "a@b", "": "",
	} {
		if got := Masked(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// TestNoAnswer: which errors of real requests say that nobody answered.
func TestNoAnswer(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	dropped := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer dropped.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	late, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, tc := range []struct {
		ctx  context.Context
		url  string
		want bool
	}{
		{t.Context(), closed.URL, true}, {t.Context(), dropped.URL, true}, {late, slow.URL, true},
		{t.Context(), "http://no-such-host.invalid/", true}, {stopped, slow.URL, false}, {t.Context(), "ftp://127.0.0.1/", false},
	} {
		req, err := http.NewRequestWithContext(tc.ctx, http.MethodGet, tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
		}
		if err == nil || NoAnswer(fmt.Errorf("read it: %w", err)) != tc.want {
			t.Errorf("%s: %v: no answer is %t", tc.url, err, !tc.want)
		}
	}
	for status, want := range map[int]bool{200: false, 404: false, 500: false, 502: true, 503: true, 504: true} {
		if GatewayStatus(status) != want {
			t.Errorf("status %d: %t", status, !want)
		}
	}
}

// TestStrict: of a stranger's addresses only public ones are called, however they are written.
func TestStrict(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost"} {
		address := net.JoinHostPort(host, port)
		if c, err := (&Dialer{}).DialContext(t.Context(), "tcp", address); err != nil {
			t.Errorf("%s: %v", host, err)
		} else {
			c.Close()
		}
		if _, err := (&Dialer{Strict: true}).DialContext(t.Context(), "tcp", address); !errors.Is(err, ErrPrivate) {
			t.Errorf("%s for a stranger: %v", host, err)
		}
	}
}
