package destination

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
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
			d, err := Open(context.Background(), b.store, sparqlsink.Of(c), b.cfg, keep.Options{})
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
			if len(asked.types) != 1 || !strings.HasPrefix(asked.types[0], "application/sparql-results+json") {
				t.Fatalf("asked for %q, want JSON once", asked.types)
			}
		})
	}
}

// breaking ends answers after some bytes: so many of them, -1 for all.
type breaking struct {
	http.RoundTripper
	after int64
	times int
	hits  int
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err != nil || b.times == b.hits {
		return res, err
	}
	head, err := io.ReadAll(io.LimitReader(res.Body, b.after))
	if err != nil {
		return nil, err
	}
	rest := res.Body
	if int64(len(head)) == b.after {
		b.hits++
		rest = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		_ = res.Body.Close()
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	return res, nil
}

// An audit reads again what broke off for a moment, and in parts what always does.
func TestAuditOfAnswersThatBreakOff(t *testing.T) {
	for _, graph := range []string{"single", "per-entity"} {
		for _, way := range []sparql.Reading{sparql.ReadGraphStore, sparql.ReadConstruct, sparql.ReadSelectTSV, sparql.ReadSelectJSON} {
			for _, times := range []int{0, 1, -1} {
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(graph, " ", way, " ", times), func(t *testing.T) {
					e, _ := embeddedMirror(t)
					b := newBench(t)
					if b.cfg.Graph = graph; graph == "per-entity" {
						b.cfg.GraphIRI = "http://mirror.example/{entity}"
					}
					b.caps.Readings = []sparql.Reading{way}
					b.remember(e)
					fill(b.src, 200)
					broken := &breaking{RoundTripper: e.Transport, after: 12_000}
					e.Transport = broken
					d, err := Open(context.Background(), b.store, sparqlsink.Of(clientOf(t, e)), b.cfg, keep.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
						t.Fatalf("%+v %v", rep, err)
					}
					broken.times = times
					a, err := d.Audit(context.Background(), AuditOptions{})
					if err != nil || !a.Equal || a.Resources != 200 {
						t.Fatalf("%+v %v", a, err)
					}
					if broken.hits < times || times < 0 && broken.hits < 2 {
						t.Fatalf("%d answers broke off", broken.hits)
					}
				})
			}
		}
	}
}

// limiting answers with no more rows than before where one more than a limit is asked for.
type limiting struct {
	http.RoundTripper
	limit  int
	raised bool
	looks  int
}

func (l *limiting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/query" && r.Body != nil {
		query, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if more := fmt.Appendf(nil, "LIMIT %d", l.limit+1); bytes.Contains(query, more) {
			if l.looks++; !l.raised {
				query = bytes.ReplaceAll(query, more, fmt.Appendf(nil, "LIMIT %d", l.limit))
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(query)), int64(len(query))
	}
	return l.RoundTripper.RoundTrip(r)
}

// A row limit that a probe found long ago holds until the store gives more.
func TestAuditAfterTheRowLimitWasRaised(t *testing.T) {
	for _, graph := range []string{"single", "per-entity"} {
		t.Run(graph, func(t *testing.T) {
			e, _ := embeddedMirror(t)
			limit := &limiting{RoundTripper: e.Transport, limit: 100}
			e.Transport = limit
			b := newBench(t)
			if b.cfg.Graph = graph; graph == "per-entity" {
				b.cfg.GraphIRI = "http://mirror.example/{entity}"
			}
			b.caps.RowLimit = 100
			b.remember(e)
			fill(b.src, 200)
			d, err := Open(context.Background(), b.store, sparqlsink.Of(clientOf(t, e)), b.cfg, keep.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			for _, want := range []int64{100, 0, 0} {
				limit.raised = want == 0
				if a, err := d.Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal || a.Resources != 200 {
					t.Fatalf("%+v %v", a, err)
				}
				if got := storeMirror(d).Caps.RowLimit; got != want {
					t.Fatalf("the limit is %d, want %d, after %d looks", got, want, limit.looks)
				}
			}
		})
	}
}
