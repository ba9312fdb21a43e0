package sparql_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
