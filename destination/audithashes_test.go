package destination

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Whatever is missing in a mirror and whatever is too much, of few subjects or of
// all, an audit tells it as a plain comparison of sets does, and a repair mends it.
func TestAuditAgainstSets(t *testing.T) {
	for seed := range uint64(12) {
		if teststores.Unraced(t, 7) {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			b := newBench(t)
			if seed%2 == 0 {
				b.cfg.MemoryBytes = 1 // sorts on disk
			}
			triples := map[ledger.Hash]map[rdfres.Triple]bool{} // by resource
			owners := map[rdfres.Term][]ledger.Hash{}           // by subject
			for i := range 40 {
				var body strings.Builder
				for range 1 + rng.IntN(8) {
					fmt.Fprintf(&body, "<http://ex.org/e%d> <http://ex.org/v> \"%d\" .\n", i, rng.IntN(50))
				}
				if i == 7 {
					for n := range 3 * 256 {
						fmt.Fprintf(&body, "<http://ex.org/e%d> <http://ex.org/long> \"%d\" .\n", i, n)
					}
				}
				for range rng.IntN(4) { // others have it too
					fmt.Fprintf(&body, "<http://ex.org/shared%d> <http://ex.org/v> \"%d\" .\n", rng.IntN(5), rng.IntN(6))
				}
				name := fmt.Sprintf("e%d.nt", i)
				b.src.put(name, body.String())
				loc := ledger.HashOf(b.src.url("/set/r/" + name))
				triples[loc] = map[rdfres.Triple]bool{}
				for q, err := range codec.Read(strings.NewReader(body.String()), rdfres.NTriples, rdfres.ReadOptions{}) {
					if err != nil {
						t.Fatal(err)
					}
					triples[loc][q.Triple] = true
					if !slices.Contains(owners[q.S], loc) {
						owners[q.S] = append(owners[q.S], loc)
					}
				}
			}
			order := ledger.Hash.Compare
			for _, locs := range owners {
				slices.SortFunc(locs, order)
			}
			b.sync()
			b.equal()
			for _, changes := range []int{1, 3, 40, 700} {
				whole := maps.Clone(b.mir.graphs[graphA])
				held := b.mir.graphs[graphA]
				for range changes {
					switch all := slices.Collect(maps.Keys(held)); rng.IntN(6) {
					case 0, 1:
						if len(all) > 1 {
							delete(held, all[rng.IntN(len(all))])
						}
					case 2:
						subject := all[rng.IntN(len(all))].S
						maps.DeleteFunc(held, func(t rdfres.Triple, _ bool) bool { return t.S == subject && len(held) > 1 })
					case 3:
						held[rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://ex.org/stranger%d", rng.IntN(9))), P: rdfres.NewIRI("http://ex.org/v"), O: rdfres.NewIRI(fmt.Sprintf("http://ex.org/o%d", rng.IntN(9)))}] = true
					default:
						held[rdfres.Triple{S: all[rng.IntN(len(all))].S, P: rdfres.NewIRI("http://ex.org/hand"), O: rdfres.NewIRI(fmt.Sprintf("http://ex.org/o%d", rng.IntN(9)))}] = true
					}
				}
				lacks, excess, strangers := map[ledger.Hash]int{}, map[ledger.Hash]bool{}, map[rdfres.Term]bool{}
				for tr := range whole {
					if !held[tr] {
						i := slices.IndexFunc(owners[tr.S], func(loc ledger.Hash) bool { return triples[loc][tr] })
						lacks[owners[tr.S][i]]++
					}
				}
				for tr := range held {
					if locs := owners[tr.S]; whole[tr] {
						continue
					} else if len(locs) > 0 {
						excess[locs[0]] = true
					} else {
						strangers[tr.S] = true
					}
				}
				var missing, different, extra int64
				for loc, n := range lacks {
					if n == len(triples[loc]) {
						missing++
						delete(excess, loc)
					} else {
						excess[loc] = true
					}
				}
				different, extra = int64(len(excess)), int64(len(strangers))
				for _, most := range []int{defaultLimits().diffCap, 3} { // triples of a subject that are held in memory
					d := b.open()
					d.lim.diffCap = most
					rep, err := d.Audit(context.Background(), AuditOptions{})
					if err != nil || rep.Missing != missing || rep.Different != different || rep.Extra != extra || rep.Equal != (missing+different+extra == 0) {
						t.Fatalf("after %d changes, with %d: %d missing, %d different, %d extra: %+v %v", changes, most, missing, different, extra, rep, err)
					}
				}
				if rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
					t.Fatalf("%+v %v", rep, err)
				}
				b.equal()
			}
		})
	}
}

// Blank nodes that somebody else wrote are told, whatever the store calls them in each
// of its answers.
func TestAuditSeesRelabelledBlanks(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	b.sync()
	b.equal()
	held, p := b.mir.graphs[graphA], rdfres.NewIRI("http://ex.org/hand")
	var e rdfres.Term
	for tr := range held {
		e = tr.S
	}
	n := 0
	relabel := func() {
		maps.DeleteFunc(held, func(t rdfres.Triple, _ bool) bool { return t.P == p })
		n++
		for _, name := range []string{"x", "y"} {
			blank := rdfres.NewBlank(fmt.Sprint(name, n))
			held[rdfres.Triple{S: blank, P: p, O: rdfres.NewLiteral(name, "", "")}] = true
			held[rdfres.Triple{S: blank, P: p, O: rdfres.NewLiteral("1", "", "")}] = true
			held[rdfres.Triple{S: e, P: p, O: blank}] = true
		}
	}
	relabel()
	b.mir.hook = func(http.ResponseWriter, *http.Request) bool {
		b.mir.mu.Lock()
		defer b.mir.mu.Unlock()
		relabel()
		return false
	}
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || rep.Missing != 0 || rep.Different != 1 || rep.Extra != 2 || rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
}

// What is published and not applied is found before the next run applies it, whatever the list
// and the changes tell of it; and a mirror to which nothing was published is equal.
func TestAuditSeesWhatIsPublished(t *testing.T) {
	for _, list := range []bool{true, false} {
		for _, bare := range []int{0, 1, 2} {
			for _, untimed := range []bool{true, false} {
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(list, bare, untimed), func(t *testing.T) {
					b, _ := missingSource(t, bare)
					s := b.src
					s.list, s.noTimes, s.noHash = list, untimed, true
					fill(s, 5)
					b.freezeList()
					b.syncNow()
					audit := func(o AuditOptions) keep.AuditReport {
						t.Helper()
						s.now = s.now.Add(time.Minute)
						s.date, b.clock = s.now, s.now
						rep, err := b.open().Audit(context.Background(), o)
						if err != nil {
							t.Fatal(err)
						}
						return rep
					}
					for n := range 3 {
						b.equal()
						s.put("e0.nt", nt("e0", fmt.Sprint("later", n)))
						s.put(fmt.Sprintf("new%d.nt", n), nt("new", fmt.Sprint(n)))
						s.remove(fmt.Sprintf("e%d.nt", n+1))
						if rep := audit(AuditOptions{}); rep.Equal || rep.Different == 0 || rep.Missing != 1 || rep.Extra != 1 {
							t.Fatalf("%+v", rep)
						}
						if n == 1 {
							if rep := audit(AuditOptions{Repair: true}); !rep.Equal || rep.Repaired < 3 {
								t.Fatalf("%+v", rep)
							}
							b.same(b.mir.lines(graphA), s.want())
						}
						if rep := b.syncNow(); !rep.InSync {
							t.Fatalf("%+v", rep)
						}
					}
					b.equal()
				})
			}
		}
	}
}

// Of a subject with more foreign triples than are held in memory, the number is a lower bound.
func TestAuditCountsAtLeast(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	b.sync()
	for i := range 5 {
		b.mir.graphs[graphA][rdfres.Triple{S: rdfres.NewIRI("http://ex.org/hand"), P: rdfres.NewIRI("http://ex.org/p"), O: rdfres.NewLiteral(fmt.Sprint(i), "", "")}] = true
	}
	for most, want := range map[int]string{3: "has at least 3 triples", 5: "has 5 triples", 1: "has at least 1 triples"} {
		d := b.open()
		d.lim.diffCap = most
		rep, err := d.Audit(context.Background(), AuditOptions{})
		if err != nil || rep.Extra != 1 || len(rep.Named) != 1 || !strings.Contains(rep.Named[0].Detail, want) {
			t.Errorf("%d: %+v %v", most, rep, err)
		}
	}
}
