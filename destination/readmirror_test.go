package destination

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// accepting notes in which types all triples are asked for.
type accepting struct {
	http.RoundTripper
	types []string
}

func (a *accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/query" {
		query, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(query))
		if strings.Contains(string(query), "?s ?p ?o WHERE { GRAPH ") {
			a.types = append(a.types, r.Header.Get("Accept"))
		}
	}
	return a.RoundTripper.RoundTrip(r)
}

// An audit reads a mirror in the format that the probe found fastest, in both
// layouts.
func TestAuditReadsAsProbed(t *testing.T) {
	for _, graph := range []string{"single", "per-entity"} {
		t.Run(graph, func(t *testing.T) {
			e, _ := embeddedMirror(t)
			asked := &accepting{RoundTripper: e.Transport}
			e.Transport = asked
			c := clientOf(t, e)
			b := newBench(t)
			if b.cfg.Graph = graph; graph == "per-entity" {
				b.cfg.GraphIRI = "http://mirror.example/{entity}"
			}
			b.caps.Readings = []sparql.Reading{sparql.ReadSelectJSON, sparql.ReadGraphStore, sparql.ReadSelectTSV}
			b.remember(e)
			fill(b.src, 3)
			d, err := Open(context.Background(), b.store, c, b.cfg, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			asked.types = nil
			if a, err := d.Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Resources != 3 {
				t.Fatalf("%+v %v", a, err)
			}
			if want := []string{"application/sparql-results+json, application/json;q=0.5"}; !slices.Equal(asked.types, want) {
				t.Fatalf("asked for %q, want %q", asked.types, want)
			}
		})
	}
}
