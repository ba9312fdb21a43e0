package webguard

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSecrets: the host of an address gets the secrets of its query, and nobody else.
func TestSecrets(t *testing.T) {
	for _, field := range []string{"api_key", "apikey", "token", "access_token", "key", "sig", "password", "X-Amz-Signature", "mytoken", "accessKeyId", "sort_key", "auth.code"} {
		shown, user, s := Hide("http://us:pw@h.example/list?a=b&" + field + "=hush&c=d")
		want := "http://h.example/list?a=b&" + field + "=xxxxx&c=d"
		if shown != want || user == nil {
			t.Fatalf("%s, want %s", shown, want)
		}
		var asked string
		client := &http.Client{Transport: s.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.String()
			res := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
			if r.URL.Path == "/list" {
				res.StatusCode = 302
				res.Header.Set("Location", "https://h.example/to?"+field+"=hush")
			}
			return res, nil
		}))}
		res, err := client.Get(shown)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Request.URL.String(); asked != "https://h.example/to?"+field+"=hush" || got != "https://h.example/to?"+field+"=xxxxx" {
			t.Errorf("%s was asked, %s is told", asked, got)
		}
		if res, err = client.Get(strings.Replace(shown, "h.example/list", "other.example/", 1)); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if strings.Contains(asked, "hush") {
			t.Error(asked)
		}
		for _, elsewhere := range []string{"http://h.example:81/to?", "http://other.example/?"} {
			if res, err = client.Get(elsewhere + field + "=xxxxx"); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if strings.Contains(asked, "hush") {
				t.Error(asked)
			}
		}
		// A longer value, and another name, are no secrets: they may be names of entities.
		doc := strings.Repeat("<loc>http://h/?"+field+"=hush&amp;x=1</loc><loc>http://h/?"+field+"=hushed</loc><loc>http://h/?my"+field+"=hush</loc>", 1000)
		for _, r := range []io.Reader{strings.NewReader(doc), iotest.OneByteReader(strings.NewReader(doc)), iotest.DataErrReader(strings.NewReader(doc))} {
			raw, err := io.ReadAll(s.Reader(r))
			if err != nil || string(raw) != strings.ReplaceAll(doc, "?"+field+"=hush&", "?"+field+"=xxxxx&") {
				t.Errorf("%v: %.200s", err, raw)
			}
		}
		for _, address := range []string{"htp://h/q?" + field + "=hush", "h/q?" + field + "=hush#x", "http://h:p/?a=b&" + field + "=hush"} {
			if got := Masked(address); strings.Contains(got, "hush") {
				t.Error(got)
			}
		}
	}
	for address, want := range map[string]string{
		"http://h.example/a?api_key=xxxxx": "http://h.example/a", "http://h.example/a?b=c&key=xxxxx&d=e#f": "http://h.example/a?b=c&d=e#f",
		"http://h.example/a?b=xxxxx": "http://h.example/a?b=xxxxx", "http://h.example/a": "http://h.example/a",
	} {
		if got := WithoutHidden(address); got != want {
			t.Errorf("%s becomes %s", address, got)
		}
	}
	_, _, one := Hide("http://h.example/?key=one")
	_, _, two := Hide("http://h.example/?key=two")
	if _, _, again := Hide("http://h.example/?key=one"); one.Digest("a") == two.Digest("a") || one.Digest("a") == one.Digest("b") || one.Digest("a") != again.Digest("a") {
		t.Error("digests do not tell secrets apart")
	}
	for _, address := range []string{"http://h.example/?page=2&design=x", "http://h.example/?author=a&keyword=b&authority=c&monkeys=d&signal=e", "http://h.example/", "mailto:x"} {
		if shown, _, s := Hide(address); shown != address || s != nil || Masked(address) != address {
			t.Error(shown)
		}
	}
}
