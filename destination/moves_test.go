package destination

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// all is what the mirror holds in all graphs of data.
func (b *bench) all() []string {
	b.mir.mu.Lock()
	defer b.mir.mu.Unlock()
	set := map[string]bool{}
	for g, ts := range b.mir.graphs {
		if strings.HasPrefix(g, "urn:rsbridge:") {
			continue
		}
		for t := range ts {
			set[string(rdfres.Triple{S: rdfres.Unskolemize(t.S), P: t.P, O: rdfres.Unskolemize(t.O)}.AppendLine(nil))] = true
		}
	}
	return sortedKeys(set)
}

func (b *bench) perEntity() {
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", ""
}

// equalAll is equal in either layout.
func (b *bench) equalAll() {
	b.t.Helper()
	b.same(b.all(), b.src.want())
	rep, err := b.open().Audit(context.Background(), AuditOptions{})
	if err != nil || !rep.Equal {
		b.t.Fatalf("%+v %v", rep, err)
	}
}

// All entities get other addresses: it is a move, nothing is held, nothing stays
// behind, and nothing is lost while some of the new addresses cannot be had.
func TestEntitiesMove(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		for _, kind := range []string{"anew", "pairs", "list-only", "dump-only", "pairs-small-windows"} {
			for _, keep := range []string{"current", "deleted"} {
				if keep == "deleted" && kind != "pairs" {
					continue
				}
				for _, failing := range []bool{false, true} {
					if teststores.Unraced(t, 7) {
						continue
					}
					t.Run(fmt.Sprint(layout, " ", kind, " ", keep, " ", failing), func(t *testing.T) {
						b := newBench(t)
						s := b.src
						s.ours = true
						if layout == "per-entity" {
							b.perEntity()
						}
						b.cfg.Keep = keep
						switch kind {
						case "list-only":
							s.changes = false
						case "dump-only":
							s.changes, s.list, s.dump = false, false, true
						}
						fill(s, 30)
						b.sync()
						b.equalAll()
						if failing {
							if kind == "dump-only" {
								s.lie["e7.nt"] = true
							}
							s.hook = func(w http.ResponseWriter, r *http.Request) bool {
								if strings.Contains(r.URL.Path, "/moved/e7.nt") {
									http.Error(w, "not yet", http.StatusNotFound)
									return true
								}
								return false
							}
						}
						s.moveAll("/set/moved/", strings.HasPrefix(kind, "pairs"))
						s.put("e3.nt", nt("e3", "with another value"))
						run := func() SyncReport {
							d := b.open()
							if kind == "pairs-small-windows" {
								d.lim.window = 4
								d.mirror.Loader = ofFive{d.mirror.Loader}
							}
							rep, err := d.Sync(context.Background(), SyncOptions{})
							if err != nil {
								t.Fatal(err)
							}
							return rep
						}
						rep := run()
						if rep.Held != "" || rep.Deleted > 0 || rep.Created > 0 && kind != "dump-only" { // a dump tells at its end what is gone
							t.Fatalf("%+v", rep)
						}
						b.same(b.all(), s.want())
						if failing {
							if rep.Moved != 29 || rep.InSync || rep.Pending+rep.Failed != 1 {
								t.Fatalf("%+v", rep)
							}
							s.hook = nil
							clear(s.lie)
							for range 2 {
								b.clock = b.clock.Add(3e12)
								rep = run()
							}
							if !rep.InSync {
								t.Fatalf("%+v", rep)
							}
						} else if rep.Moved != 30 || !rep.InSync {
							t.Fatalf("%+v", rep)
						}
						b.equalAll()
						st, err := b.d.Status(context.Background())
						if err != nil || st.Resources != 30 {
							t.Fatalf("%+v %v", st, err)
						}
						if kind == "dump-only" || kind == "list-only" {
							return
						}
						s.remove("e5.nt")
						if rep := run(); !rep.InSync || rep.Mode != "incremental" {
							t.Fatalf("%+v", rep)
						}
						if keep == "current" {
							b.equalAll()
						}
					})
				}
			}
		}
	}
}

// A crash at any point of a move is made good by the next run.
func TestMoveCrashes(t *testing.T) {
	for _, layout := range []string{"single", "per-entity"} {
		for after := range 8 {
			if teststores.Unraced(t, 5) {
				continue
			}
			b := newBench(t)
			s := b.src
			s.ours = true
			if layout == "per-entity" {
				b.perEntity()
			}
			b.caps.UpdateTriples, b.caps.Transactional = 7, after%2 == 0
			fill(s, 12)
			b.sync()
			s.moveAll("/set/moved/", true)
			s.put("e3.nt", nt("e3", "with another value"))
			d := b.open()
			d.mem.Crash = cutAfter(after)
			d.Sync(context.Background(), SyncOptions{})
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equalAll()
		}
	}
}

// An entity that is gone from its new location, before it could be had there, is gone:
// a mirror that never removes keeps what it has, and any other has neither.
func TestGoneBeforeItsMoveWasDone(t *testing.T) {
	for _, kind := range []string{"", "deleted", "folder"} {
		b := newBench(t)
		s := b.src
		s.ours = true
		dir := t.TempDir()
		if b.cfg.Keep = kind; kind == "folder" {
			b.cfg.Keep, b.cfg.GraphIRI = "", ""
		}
		run := func() SyncReport {
			t.Helper()
			if kind != "folder" {
				return b.sync()
			}
			sink, err := filesink.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			rep, err := b.openSink(sink).Sync(context.Background(), SyncOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return rep
		}
		fill(s, 4)
		run()
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/set/moved/e1.nt" {
				http.NotFound(w, r)
				return true
			}
			return false
		}
		s.moveAll("/set/moved/", true)
		if rep := run(); rep.Pending != 1 {
			t.Fatalf("%s: %+v", kind, rep)
		}
		s.remove("e1.nt")
		if rep := run(); !rep.InSync || rep.Deleted != 1 {
			t.Fatalf("%s: %+v", kind, rep)
		}
		there := strings.Contains(strings.Join(b.mir.lines(graphA), ""), "/e1>")
		if kind == "folder" {
			_, err := os.Stat(filepath.Join(dir, "set/r/e1.nt"))
			there = err == nil
		}
		if there != (kind == "deleted") {
			t.Errorf("%s: e1 is in the mirror: %v", kind, there)
		}
	}
}

// A location that is in the source again stays, though a pending one of the same
// entity was to replace it.
func TestReturnedToWhatItLeft(t *testing.T) {
	for _, full := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.ours = true
		fill(s, 4)
		b.sync()
		s.remove("e1.nt")
		s.put("e1.ttl", nt("e1", "turtle"))
		s.lie["e1.ttl"] = true
		if rep := b.sync(); rep.Pending != 1 {
			t.Fatalf("%+v", rep)
		}
		s.put("e1.nt", nt("e1", "a", "1"))
		if !full {
			b.sync()
		}
		s.lie["e1.ttl"] = false
		rep, err := b.open().Sync(context.Background(), SyncOptions{Full: full, Retry: true})
		if err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		b.equal()
	}
}

// Stale locations of a state of before moves were known go without being held,
// and deletions that are held go when max_delete_ratio allows them.
func TestHeldHintWorks(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	fill(s, 40)
	b.sync()
	s.mu.Lock()
	for i := range 30 {
		delete(s.bodies, fmt.Sprintf("e%d.nt", i))
	}
	s.anew, s.drop = s.tick(), len(s.log)
	s.mu.Unlock()
	rep := b.sync()
	if !strings.HasSuffix(rep.Held, "rsbridge accept copy --destination") || rep.InSync {
		t.Fatalf("%+v", rep)
	}
	if rep = b.sync(); rep.InSync || rep.Held == "" || rep.Mode != "none" {
		t.Fatalf("%+v", rep)
	}
	b.cfg.MaxDeleteRatio = 1
	if rep = b.sync(); rep.Deleted != 30 || rep.Held != "" || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	b.cfg.MaxDeleteRatio = 0.2
	if rep = b.sync(); rep.Held != "" || !rep.InSync || rep.Mode != "none" {
		t.Fatalf("%+v", rep)
	}
	// A list that gets its entries back is taken as it is.
	s.mu.Lock()
	kept := map[string][]byte{}
	for k, v := range s.bodies {
		kept[k] = v
		delete(s.bodies, k)
	}
	s.anew = s.tick()
	s.mu.Unlock()
	if rep = b.sync(); rep.Held == "" {
		t.Fatalf("%+v", rep)
	}
	s.mu.Lock()
	s.bodies = kept
	s.mu.Unlock()
	if rep = b.sync(); rep.Held != "" || !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// An entity that was deleted, is kept, and is there again at another address has its graph
// again: what was kept of it goes.
func TestKeptEntityReturnsElsewhere(t *testing.T) {
	for _, crash := range []string{"", "intent", "written"} {
		b := newBench(t)
		b.perEntity()
		b.cfg.Keep = "deleted"
		s := b.src
		s.ours = true
		fill(s, 3)
		b.sync()
		s.remove("e1.nt")
		b.sync()
		s.put("e1.ttl", nt("e1", "again"))
		if crash != "" {
			d := b.open()
			d.mem.Crash = cutAt(crash)
			if rep, err := d.Sync(t.Context(), SyncOptions{}); err == nil {
				t.Fatalf("%s: %+v", crash, rep)
			}
		}
		if rep := b.sync(); !rep.InSync || rep.Created+rep.Updated+rep.Failed > 0 {
			t.Fatalf("%s: %+v", crash, rep)
		}
		b.equalAll()
	}
}

// What moves while its last change could not be had is moved all the same.
func TestPendingEntityMoves(t *testing.T) {
	for _, kind := range []string{"list-only", "folder", "pairs"} {
		b := newBench(t)
		s := b.src
		s.ours, s.changes = true, kind == "pairs"
		open := b.open
		if kind == "folder" {
			sink, err := filesink.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			open = func() *Destination { return b.openSink(sink) }
		}
		sync := func() SyncReport {
			t.Helper()
			rep, err := open().Sync(t.Context(), SyncOptions{})
			if err != nil {
				t.Fatal(kind, err)
			}
			return rep
		}
		fill(s, 3)
		sync()
		s.put("e1.nt", nt("e1", "second"))
		s.lie["e1.nt"] = true
		if rep := sync(); rep.Pending != 1 {
			t.Fatalf("%s: %+v", kind, rep)
		}
		s.remove("e1.nt")
		s.put("e1.ttl", nt("e1", "third"))
		if rep := sync(); !rep.InSync || rep.Moved != 1 {
			t.Fatalf("%s: %+v", kind, rep)
		}
		if kind != "folder" {
			b.equal()
		}
		if a, err := open().Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal {
			t.Fatalf("%s: %+v %v", kind, a, err)
		}
	}
}

// ofFive is a mirror for batches of five statements.
type ofFive struct{ sink.Loader }

func (ofFive) Limit() int { return 5 }

// A source that names no entities may give one another address within a window of its changes. Its
// graph goes over at once.
func TestEntityMovesInOneWindow(t *testing.T) {
	for _, keep := range []string{"current", "deleted", "versions"} {
		b := newBench(t)
		b.perEntity()
		b.cfg.Keep = keep
		fill(b.src, 3)
		b.sync()
		b.src.remove("e1.nt")
		b.src.put("e1.ttl", nt("e1", "elsewhere"))
		if rep := b.sync(); !rep.InSync || rep.Failed > 0 {
			t.Errorf("keep %s: %+v", keep, rep)
		}
		b.equalAll()
	}
}
