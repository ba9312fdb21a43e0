package fetch

import (
	"net/url"
	"testing"
)

func TestSpelling(t *testing.T) {
	base := &url.URL{Scheme: "http", Host: "localhost:81", Path: "/a/b"}
	for want, spelled := range map[string][]string{
		"h.example/a b?x=1":   {"http://h.example/a%20b?x=1#y", "https://www.H.example.:443/c/../a b?%78=1", "//h.example:80/%61%20b?x=1"},
		"localhost:81/a/c?":   {"c", "./c?", "/%61/c", "http://127.0.0.1:81/a/c", "https://[::1]:81/a/c", "http://127.1.2.3:81/a/c", "http://u:p@LOCALHOST:81/a/c"},
		"h.example/?":         {"http://h.example", "http://h.example/"},
		"xn--bcher-kva.de/ü?": {"http://bücher.de/ü", "http://xn--bcher-kva.de/%C3%BC"},
		"http://h/100%":       {"http://h/100%"},
		"":                    {"mailto:a@h.example", "urn:x", "100%", "http://"},
	} {
		for _, s := range spelled {
			if got := Spelling(base, s); got != want {
				t.Errorf("%s: %q, want %q", s, got, want)
			}
		}
	}
}
