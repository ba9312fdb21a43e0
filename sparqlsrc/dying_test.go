package sparqlsrc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
)

// TestStoreDies: a store that dies at any request of its first scan is told as one that
// does not answer, never as one that cannot be read.
func TestStoreDies(t *testing.T) {
	st := sparqltest.New(nameTriples(50)...)
	for requests := range int64(14) {
		var n atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) > requests {
				panic(http.ErrAbortHandler)
			}
			st.ServeHTTP(w, r)
		}))
		c, err := sparql.New(sparql.Endpoint{Query: srv.URL + "/query", Retries: 1, RetryPause: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(c, Config{TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Scan(context.Background())
		srv.Close()
		_ = c.Close()
		if n.Load() <= requests {
			return // it got all that it needs
		}
		if err == nil || strings.Contains(err.Error(), "no way of reading") || !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "connection") {
			t.Errorf("after %d requests: %v", requests, err)
		}
	}
}
