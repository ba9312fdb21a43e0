package destination

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// An entity of very many triples is mirrored, changed by one triple, and removed as any
// other. RSBRIDGE_BIG (triples) makes it larger.
func TestBigEntity(t *testing.T) {
	triples := 30_000
	if testing.Short() { // the race detector sees no more in more
		triples = 3_000
	}
	if s := os.Getenv("RSBRIDGE_BIG"); s != "" {
		var err error
		if triples, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	big := func(from int) string {
		var s strings.Builder
		for i := range triples {
			s.WriteString("<http://ex.org/big> <http://ex.org/v> \"")
			s.WriteString(strconv.Itoa(from + i))
			s.WriteString("\" .\n")
		}
		return s.String()
	}
	mirrors := maps.Clone(realMirrors)
	mirrors["virtuoso"] = func(t *testing.T) (sparql.Endpoint, string) {
		s := teststores.Virtuoso(t)
		return sparql.Endpoint{Name: "virtuoso", Query: s.Query, Update: s.Update, GraphStore: s.GraphStore, Username: s.Username, Password: s.Password}, s.Graph
	}
	for name, get := range mirrors {
		for _, layout := range []string{"single", "per-entity"} {
			t.Run(name+"-"+layout, func(t *testing.T) {
				t.Parallel()
				e, graph := get(t)
				c := clientOf(t, e)
				b := newBench(t)
				b.src.ours = true
				cfg := b.cfg
				cfg.MemoryBytes = 0
				cfg.GraphIRI = graph + "/big/" + layout
				if cfg.Graph = layout; layout == "per-entity" {
					cfg.GraphIRI += "/{entity}"
				}
				count := func() int64 {
					t.Helper()
					n, err := c.Count(t.Context(), "SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { <http://ex.org/big> ?p ?o } FILTER(STRSTARTS(STR(?g), \""+graph+"/big/"+layout+"\")) }")
					if err != nil {
						t.Fatal(err)
					}
					return n
				}
				step := func(what string, want int) {
					t.Helper()
					start := time.Now()
					d, err := Open(context.Background(), b.store, sparqlsink.Of(c), cfg, keep.Options{})
					if err != nil {
						t.Fatal(err)
					}
					rep, err := d.Sync(context.Background(), SyncOptions{})
					if err != nil || !rep.InSync {
						t.Fatalf("%s: %v %+v", what, err, rep)
					}
					synced := time.Since(start)
					if n := count(); n != int64(want) {
						t.Fatalf("%s: %d triples, want %d", what, n, want)
					}
					a, err := d.Audit(context.Background(), AuditOptions{})
					if err != nil || !a.Equal {
						t.Fatalf("%s: %v %+v", what, err, a)
					}
					t.Logf("%s: sync %v, audit %v", what, synced, time.Since(start)-synced)
				}
				fill(b.src, 5)
				b.src.put("big.nt", big(0))
				step("baseline", triples)
				b.src.put("big.nt", big(1))
				step("one triple changed", triples)
				b.src.remove("big.nt")
				step("removed", 0)
			})
		}
	}
}

// What one entity has goes into the mirror in requests that a store can answer in
// time; RDF4J takes smaller ones better.
func TestBigEntityIsPostedInParts(t *testing.T) {
	teststores.Sequential(t)
	for under, batch := range map[string]int{"": 50_000, "/repositories/one": 25_000} {
		b := newBench(t)
		b.cfg.MemoryBytes = 0
		b.mir.under = under
		var most, posts int
		b.mir.hook = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/data" && r.Method == http.MethodPost {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.HasPrefix(body, []byte("BRDF")) {
					return false // which this mirror does not take
				}
				most, posts = max(most, bytes.Count(body, []byte("\n"))), posts+1
			}
			return false
		}
		want := 2 * batch
		var text strings.Builder
		for i := range want + 10 {
			text.WriteString("<http://ex.org/big> <http://ex.org/v> \"" + strconv.Itoa(i) + "\" .\n")
		}
		b.src.put("big.nt", text.String())
		if rep := b.sync(); !rep.InSync || rep.Created != 1 {
			t.Fatalf("%+v", rep)
		}
		if posts != 2 || most > want || len(b.mir.lines(graphA)) != want+10 {
			t.Fatalf("%d requests of at most %d triples, want 2 of %d", posts, most, want)
		}
	}
}
