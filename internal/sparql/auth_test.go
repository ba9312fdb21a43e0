package sparql_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A store that refuses a large body before it was read may end the connection:
// the body is sent only after the head was accepted.
func TestLargeBodyIsSentAfterTheHead(t *testing.T) {
	var got []int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Digest ") {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			conn.Close() // with a body on the way this is a reset
			return
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, len(raw))
		w.WriteHeader(http.StatusCreated)
	}))
	defer srv.Close()
	for range 20 {
		c, err := sparql.New(sparql.Endpoint{Query: srv.URL, GraphStore: srv.URL, Username: "u", Password: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.PutGraph(t.Context(), "http://e/g", rdfres.NTriples, sparql.Body(bytes.Repeat([]byte("<http://e/s> <http://e/p> <http://e/o> .\n"), 200_000))); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if len(got) != 20 || got[0] != 200_000*41 {
		t.Errorf("the store got %v", got)
	}
}

// A store that took so long with the head that the body came, and whose refusal was lost
// with the connection, is asked without a body how it wants the credentials.
func TestLostRefusalOfALargeBody(t *testing.T) {
	for _, wants := range []string{"Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5", "Basic realm=\"r\""} {
		var asked []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method)
			switch scheme, _, _ := strings.Cut(wants, " "); {
			case r.Method == http.MethodPut && !strings.HasPrefix(r.Header.Get("Authorization"), scheme+" ") || r.Method == http.MethodPut && len(asked) == 1:
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				conn.Close()
			case r.Header.Get("Authorization") == "":
				w.Header().Set("WWW-Authenticate", wants)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusCreated)
			}
		}))
		defer srv.Close()
		c, err := sparql.New(sparql.Endpoint{Query: srv.URL, GraphStore: srv.URL, Username: "u", Password: "p", Retries: 1, RetryPause: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.PutGraph(t.Context(), "http://e/g", rdfres.NTriples, sparql.Body(bytes.Repeat([]byte("<http://e/s> <http://e/p> <http://e/o> .\n"), 20_000))); err != nil {
			t.Errorf("%s: %v", wants, err)
		}
		if got := strings.Join(asked, " "); got != "PUT HEAD PUT" {
			t.Errorf("%s: the store was asked %s", wants, got)
		}
		c.Close()
	}
}

// What an address names its secrets is in no message, like QLever's access-token.
func TestSecretsOfAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://u:hush@e.example/q?a=b":                          "http://u:xxxxx@e.example/q?a=b",
		"http://e.example?access-token=hush":                     "http://e.example?access-token=xxxxx",
		"http://e.example/?default-graph-uri=g&apiKey=hush&x=%2": "http://e.example/?default-graph-uri=g&apiKey=xxxxx&x=%2",
		"http://e.example/sparql?graph=http%3A%2F%2Fg%2F":        "http://e.example/sparql?graph=http%3A%2F%2Fg%2F",
	} {
		if got := sparql.Redact(address); got != want {
			t.Errorf("Redact(%s) = %s, want %s", address, got, want)
		}
	}
	// What may name something stays in what tells stores apart.
	for address, want := range map[string]string{
		"http://e.example/q?access-token=hush&a=b":          "http://e.example/q?access-token=xxxxx&a=b",
		"http://e.example/q?API_KEY=hush":                   "http://e.example/q?API_KEY=xxxxx",
		"http://e.example/q?keyspace=a&author=b&passage=%2": "http://e.example/q?keyspace=a&author=b&passage=%2",
		"http://e.example/q":                                "http://e.example/q",
	} {
		if got := sparql.WithoutToken(address); got != want {
			t.Errorf("WithoutToken(%s) = %s, want %s", address, got, want)
		}
	}
	c := connect(t, http.NotFoundHandler(), func(e *sparql.Endpoint) {
		e.Query, e.Update, e.GraphStore = e.Query+"?token=hush", e.Update+"?token=hush", e.GraphStore+"?token=hush"
	})
	_, err1 := c.Ask(t.Context(), "ASK {}")
	err2 := c.Update(t.Context(), "CLEAR ALL")
	_, err3 := c.Count(t.Context(), "SELECT (1 AS ?n) {}")
	x, _ := c.Examine(t.Context(), sparql.ProbeOptions{})
	if text := fmt.Sprint(err1, err2, err3, x.Addresses); strings.Contains(text, "hush") || strings.Count(text, "token=xxxxx") < 6 {
		t.Error(text)
	}
}

// A store that repeats the request in its answer tells no secret.
func TestSecretsInAnswers(t *testing.T) {
	repeats := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Query().Has("refuse") {
			w.WriteHeader(http.StatusBadRequest)
		}
		user, password, _ := r.BasicAuth()
		fmt.Fprint(w, r.URL, " ", r.Header.Get("Authorization"), " ", user, " ", password)
	})
	for _, more := range []string{"", "&refuse=yes"} {
		c := connect(t, repeats, func(e *sparql.Endpoint) {
			e.Query += "?access-token=hush%2Fhush" + more
			e.Username, e.Password = "me", "open/sesame"
		})
		_, err := c.Ask(t.Context(), "ASK {}")
		text := fmt.Sprint(err)
		for _, secret := range []string{"hush", "sesame", base64.StdEncoding.EncodeToString([]byte("me:open/sesame"))} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
		if strings.Count(text, "xxxxx") < 4 || !strings.Contains(text, "me") {
			t.Error(text)
		}
	}
}
