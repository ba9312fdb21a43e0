package sparql

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Binary RDF goes to what is like an RDF4J, once where it is refused, and N-Triples to
// all others and for what was refused.
func TestPost(t *testing.T) {
	const binary, lines = "application/x-binary-rdf", "application/n-triples"
	for name, c := range map[string]struct {
		path   string
		status map[string]int // by type; 204
		want   []string       // types of two posts
		fails  bool
	}{
		"another store":    {"/ds", nil, []string{lines, lines}, false},
		"RDF4J":            {"/repositories/a", nil, []string{binary, binary}, false},
		"an older one":     {"/repositories/a", map[string]int{binary: 415}, []string{binary, lines, lines}, false},
		"version unknown":  {"/repositories/a", map[string]int{binary: 400}, []string{binary, lines, lines}, false},
		"a triple refused": {"/repositories/a", map[string]int{binary: 400, lines: 400}, []string{binary, lines, binary, lines}, true},
		"a proxy's":        {"/repositories/a", map[string]int{binary: 403}, []string{binary, lines, lines}, false},
		"cut off":          {"/repositories/a", map[string]int{binary: -1}, []string{binary, lines, lines}, false},
		"not allowed":      {"/repositories/a", map[string]int{binary: 401}, []string{binary, binary}, true},
		"busy":             {"/repositories/a", map[string]int{binary: 503}, []string{binary, binary}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex // a connection that is broken off says nothing of who wrote before
			var got, bodies []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || int64(len(body)) != r.ContentLength || r.URL.Query().Get("graph") != "http://e/g" {
					t.Errorf("%s: %d bytes of %d: %v", r.URL, len(body), r.ContentLength, err)
				}
				kind := r.Header.Get("Content-Type")
				mu.Lock()
				got, bodies = append(got, kind), append(bodies, string(body))
				mu.Unlock()
				switch s := c.status[kind]; {
				case s < 0:
					panic(http.ErrAbortHandler)
				case s != 0:
					http.Error(w, "no", s)
				}
			}))
			defer srv.Close()
			cl, err := New(Endpoint{Query: srv.URL + c.path, GraphStore: srv.URL + c.path + "/service", Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			ts := []rdfres.Triple{
				{S: rdfres.NewIRI("http://e/s"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewLiteral("a\n\"ä", "", "")},
				{S: rdfres.NewIRI("http://e/s"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewLiteral("b", "en", "")},
				{S: rdfres.NewIRI("http://e/s"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewLiteral("1", "", "urn:d")},
				{S: rdfres.NewIRI("http://e/t"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewIRI("http://e/s")},
				{S: rdfres.NewIRI("http://e/t"), P: rdfres.NewIRI("http://e/p"), O: rdfres.NewIRI("http://e/u")},
			}
			text := map[string]string{
				lines: "<http://e/s> <http://e/p> \"a\\n\\\"ä\" .\n<http://e/s> <http://e/p> \"b\"@en .\n<http://e/s> <http://e/p> \"1\"^^<urn:d> .\n" +
					"<http://e/t> <http://e/p> <http://e/s> .\n<http://e/t> <http://e/p> <http://e/u> .\n",
				binary: "BRDF\x00\x00\x00\x02\x05UTF-8" +
					"\x03\x00\x01\x0ahttp://e/s" + "\x03\x01\x01\x0ahttp://e/p" +
					"\x01\x06\x00\x06\x01\x03\x05a\n\"ä\x00" +
					"\x01\x06\x00\x06\x01\x04\x01b\x02en\x00" +
					"\x01\x06\x00\x06\x01\x05\x011\x05urn:d\x00" +
					"\x03\x02\x01\x0ahttp://e/t" + "\x01\x06\x02\x06\x01\x06\x00\x00" +
					"\x01\x06\x02\x06\x01\x01\x0ahttp://e/u\x00" + "\x7f",
			}
			for range 2 {
				if err := cl.Post(t.Context(), cl.NewUpload("http://e/g", slices.Values(ts))); (err != nil) != c.fails {
					t.Errorf("%v", err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, c.want) {
				t.Errorf("sent %v, want %v", got, c.want)
			}
			for i, body := range bodies {
				if body != text[got[i]] {
					t.Errorf("%s: %q", got[i], body)
				}
			}
		})
	}
}
