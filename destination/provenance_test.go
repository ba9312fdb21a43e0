package destination

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Names of the provenance in a mirror, as readers of the store know them.
const (
	descriptionPrefix = "urn:rsbridge:description:"

	predDigest  = sink.PropPrefix + "digest"
	predTopic   = "http://xmlns.com/foaf/0.1/primaryTopic"
	predDerived = "http://www.w3.org/ns/prov#wasDerivedFrom"
	predSource  = "http://purl.org/dc/terms/source"
	predWhen    = "http://purl.org/dc/terms/modified"
)

// told is what the mirror says of the descriptions, by location: predicates and
// objects.
func (b *bench) told() map[string]map[string]string {
	by := map[string]map[string]string{}
	b.mir.mu.Lock()
	defer b.mir.mu.Unlock()
	for t := range b.mir.graphs[sink.StateGraph] {
		if s := t.S.IRI(); strings.HasPrefix(s, descriptionPrefix) {
			if by[s] == nil {
				by[s] = map[string]string{}
			}
			if by[s][t.P.IRI()] != "" {
				b.t.Errorf("%s has two of %s", s, t.P)
			}
			by[s][t.P.IRI()] = strings.Trim(string(t.O), "<>")
		}
	}
	out := map[string]map[string]string{}
	for s, p := range by {
		if out[p[predDerived]] != nil || p[predDerived] == "" {
			b.t.Errorf("%s: %v", s, p)
		}
		out[p[predDerived]] = p
	}
	return out
}

func (b *bench) toldRight() {
	b.t.Helper()
	got, s := b.told(), b.src
	if len(got) != len(s.bodies) {
		b.t.Errorf("provenance of %d descriptions, there are %d", len(got), len(s.bodies))
	}
	for name, body := range s.bodies {
		p := got[s.url(s.folder+name)]
		ts, err := codec.Decode(rdfres.NTriples, body, rdfres.ReadOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		_, at := s.lastOf(name, len(s.log))
		digest := "sha-256:" + rdfres.GraphDigest(rdfres.SortUnique(ts)).String()
		if p[predDigest] != `"`+digest+`"` || p[predSource] != b.cfg.Source || p[predTopic] == "" || !strings.HasPrefix(p[predWhen], `"`+at.UTC().Format("2006-01-02T15:04:05")) {
			b.t.Errorf("%s: %v, want digest %s and time %s", name, p, digest, at)
		}
	}
	if b.t.Failed() {
		b.t.FailNow()
	}
}

// Random histories, with crashes and refusals: the mirror says of each description
// where it is from and of when, and of no other; damage is seen and repaired.
func TestProvenance(t *testing.T) {
	for seed := range uint64(6) {
		if teststores.Unraced(t, 5) {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			b.cfg.Provenance, b.cfg.MaxDeleteRatio = true, 1
			s.ours = seed%2 == 0
			b.caps.Transactional = seed%3 != 0
			rnd := rand.New(rand.NewPCG(seed, 9))
			fill(s, 4)
			lines := func() []string { return b.mir.lines(graphA) }
			for step := range 10 {
				for range 1 + rnd.IntN(4) {
					if k := fmt.Sprintf("e%d.nt", rnd.IntN(8)); rnd.IntN(3) == 0 {
						s.remove(k)
					} else {
						s.put(k, nt(strings.TrimSuffix(k, ".nt"), fmt.Sprint(step), "same"))
					}
				}
				if rnd.IntN(2) == 0 {
					d := b.open()
					d.mem.Crash = cutAfter(rnd.IntN(6))
					d.Sync(context.Background(), SyncOptions{})
				}
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("step %d: %+v", step, rep)
				}
				b.same(lines(), s.want())
				b.toldRight()
				b.equal()
			}
			// Damage: one is lost, one is another, one is of nothing.
			s.put("e1.nt", nt("e1", "x"))
			s.put("e2.nt", nt("e2", "x"))
			b.sync()
			mark := b.d.mirror.Mark
			sub1, sub2 := b.d.stand.DescriptionOf(ledger.HashOf(s.url("/set/r/e1.nt"))), b.d.stand.DescriptionOf(ledger.HashOf(s.url("/set/r/e2.nt")))
			b.mir.exec("DELETE WHERE { GRAPH <" + sink.StateGraph + "> { <" + sub1 + "> ?p ?o } } ;\nINSERT DATA { GRAPH <" + sink.StateGraph + "> {\n<" + sub2 + "> <" + predDigest + "> \"sha-256:00\" .\n<" + descriptionPrefix + "nobody> <" + sink.PropPrefix + "keptBy> <" + mark + "> .\n} }")
			a, err := b.open().Audit(context.Background(), AuditOptions{})
			if err != nil || a.Different != 2 || a.Extra != 1 {
				t.Fatalf("%+v %v", a, err)
			}
			if a, err = b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Repaired != 3 {
				t.Fatalf("%+v %v", a, err)
			}
			b.toldRight()
			// Off, and on again.
			b.cfg.Provenance = false
			b.sync()
			if got := b.told(); len(got) != 0 {
				t.Fatalf("switched off, and there is %v", got)
			}
			b.equal()
			b.cfg.Provenance = true
			b.sync()
			b.toldRight()
			b.equal()
		})
	}
}

// What is fetched again because what was kept of it is lost leaves no provenance
// of before; a large baseline goes by upload.
func TestProvenanceOfForgotten(t *testing.T) {
	b := newBench(t)
	s := b.src
	b.cfg.Provenance = true
	s.dump = true
	fill(s, 300)
	if rep := b.sync(); !rep.InSync || b.mir.posts == 0 {
		t.Fatalf("%+v, %d uploads", rep, b.mir.posts)
	}
	b.toldRight()
	b.equal()
	b.forgetBody(s.url("/set/r/e3.nt"))
	s.put("e3.nt", nt("e3", "new"))
	if _, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil {
		t.Fatal(err)
	}
	b.sync()
	b.toldRight()
	b.equal()
}
