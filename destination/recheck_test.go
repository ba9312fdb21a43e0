package destination

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// confirmed passes over the comparison of a baseline with the next list.
func (b *bench) confirmed() {
	b.t.Helper()
	if err := b.open().mem.SaveMeta(b.t.Context(), func(m *keep.Meta) { m.Recheck = keep.Recheck{} }); err != nil {
		b.t.Fatal(err)
	}
}

// A wrong answer at any address of the way, for some runs, leaves no trace: when the right one
// is back, so is the mirror. It may come before anything was mirrored.
func TestWrongAnswerOnTheWay(t *testing.T) {
	wellKnown, caps := "/.well-known/resourcesync", "/set/capabilitylist.xml"
	page := func(link string) func(s *testSource) {
		return func(s *testSource) {
			answerAt(s, "/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html><head>"+link+"</head></html>") })
		}
	}
	starts := map[string]struct {
		at  string
		set func(s *testSource)
		way []string
	}{
		"site":        {"/", page(""), []string{"/", wellKnown, caps}},
		"page":        {"/", page(`<link rel="resourcesync" href="/set/capabilitylist.xml">`), []string{"/", caps}},
		"description": {wellKnown, nil, []string{wellKnown, caps}},
		"caps":        {caps, nil, []string{caps}},
		"list":        {"/set/resourcelist.xml", nil, []string{"/set/resourcelist.xml", caps}},
	}
	other := func(s *testSource, capability string) string {
		return urlset + `<rs:md capability="` + capability + `"/><url><loc>` + s.url("/other/list.xml") + `</loc><rs:md capability="resourcelist"/></url></urlset>`
	}
	wrong := map[string]func(s *testSource) string{
		"empty": func(s *testSource) string { return urlset + "</urlset>" },
		"sitemap": func(s *testSource) string {
			return urlset + "<url><loc>" + s.url("/set/r/about.nt") + "</loc></url></urlset>"
		},
		"another description": func(s *testSource) string {
			return urlset + `<rs:md capability="description"/><url><loc>` + s.url("/other/caps.xml") + `</loc><rs:md capability="capabilitylist"/></url></urlset>`
		},
		"another set":  func(s *testSource) string { return other(s, "capabilitylist") },
		"another list": func(s *testSource) string { return otherList(s) },
		"a page":       func(s *testSource) string { return `<html><link rel="resourcesync" href="/other/caps.xml"></html>` },
		"nothing":      func(s *testSource) string { return "" },
	}
	for start, c := range starts {
		for _, path := range c.way {
			for name, doc := range wrong {
				for first := range 2 {
					if teststores.Unraced(t, 13) {
						continue
					}
					t.Run(fmt.Sprint(start, path, " ", name, " ", first), func(t *testing.T) {
						t.Parallel()
						b := newBench(t)
						s := b.src
						fill(s, 12)
						s.put("about.nt", nt("about", "this site"))
						if c.set != nil {
							c.set(s)
						}
						xmlAt(s, "/other/caps.xml", other(s, "capabilitylist"))
						xmlAt(s, "/other/list.xml", otherList(s))
						b.cfg.Source, b.cfg.MaxDeleteRatio = s.url(c.at), 1
						well := s.hook
						s.put("e1.nt", nt("e1", "second"))
						sync := func() {
							b.open().Sync(context.Background(), SyncOptions{})
							b.clock = b.clock.Add(time.Minute)
						}
						for range 2 * first {
							sync()
						}
						body := doc(s)
						s.hook = func(w http.ResponseWriter, r *http.Request) bool {
							if r.URL.Path != path {
								return well != nil && well(w, r)
							}
							if body == "" {
								w.WriteHeader(http.StatusNotFound)
							}
							io.WriteString(w, body)
							return true
						}
						sync()
						s.put("e2.nt", nt("e2", "second"))
						sync()
						s.hook = well
						s.put("e3.nt", nt("e3", "second"))
						var rep SyncReport
						var err error
						for n := range 3 {
							if rep, err = b.open().Sync(context.Background(), SyncOptions{}); err == nil && rep.InSync {
								break
							}
							// What looks wrong beside what was confirmed may need a day.
							b.clock = b.clock.Add(time.Duration(n) * 24 * time.Hour)
						}
						if err != nil || !rep.InSync {
							t.Fatalf("%+v %v", rep, err)
						}
						b.equal()
					})
				}
			}
		}
	}
}

func otherList(s *testSource) string {
	return urlset + `<rs:md capability="resourcelist" at="` + feed.Stamp(s.now) + `"/><url><loc>` + s.url("/set/r/about.nt") + `</loc></url></urlset>`
}

// A list that lacks resources deletes them, where that is allowed; the next list brings them
// back, also of a source that is followed by its changes. So does one with more: they go.
func TestListWrongForATime(t *testing.T) {
	for _, kind := range []string{"part", "more", "no change list"} {
		for _, when := range []string{"first", "gap", "full"} {
			for _, ours := range []bool{false, true} {
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(kind, " ", when, " ", ours), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					s := b.src
					s.ours, b.cfg.MaxDeleteRatio = ours, 1
					fill(s, 20)
					s.put("stray.nt", nt("stray", "1"))
					s.remove("stray.nt")
					s.tick()
					if when != "first" {
						b.sync()
						b.sync()
					}
					right, want := maps.Clone(s.bodies), s.want()
					if kind == "more" {
						s.bodies["stray.nt"] = []byte(nt("stray", "1"))
					} else {
						maps.DeleteFunc(s.bodies, func(name string, _ []byte) bool { return name > "e10.nt" })
					}
					if when == "gap" {
						s.anew, s.drop = s.tick(), len(s.log)
					}
					s.changes = kind != "no change list"
					rep, err := b.open().Sync(context.Background(), SyncOptions{Full: when == "full"})
					if err != nil {
						t.Fatalf("%+v %v", rep, err)
					}
					if slices.Equal(b.mir.lines(graphA), want) {
						t.Fatalf("it was not wrong: %+v", rep)
					}
					s.bodies, s.changes = right, true
					s.put("e3.nt", nt("e3", "second"))
					if rep := b.sync(); !rep.InSync || rep.Mode != "baseline" && kind != "more" { // the changes tell of that too
						t.Fatalf("%+v", rep)
					}
					b.equal()
					if rep := b.sync(); !rep.InSync || rep.Mode != "none" {
						t.Fatalf("%+v", rep)
					}
					s.put("e4.nt", nt("e4", "second"))
					if rep := b.sync(); !rep.InSync || rep.Mode != "incremental" {
						t.Fatalf("%+v", rep)
					}
				})
			}
		}
	}
}

// After an audit that found differences no run says that the mirror is in sync before it has
// put them right: of the source's by the next one, of the store's by a repair.
func TestNotInSyncAfterAnAudit(t *testing.T) {
	for _, kind := range []string{"missing", "extra", "different", "store lacks", "store has more"} {
		for _, changes := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, changes), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.src
				s.changes = changes
				fill(s, 8)
				b.sync()
				b.sync()
				store := strings.HasPrefix(kind, "store")
				switch kind { // and the lists of changes never tell
				case "missing":
					s.bodies["new.nt"] = []byte(nt("new", "x"))
				case "extra":
					delete(s.bodies, "e1.nt")
				case "different":
					s.bodies["e1.nt"] = []byte(nt("e1", "second"))
				case "store lacks":
					b.mir.exec("DELETE DATA { GRAPH <" + graphA + "> {\n" + nt("e1", "a") + "} }")
				case "store has more":
					b.mir.exec("INSERT DATA { GRAPH <" + graphA + "> {\n" + nt("e1", "by hand") + "} }")
				}
				rep, err := b.open().Audit(context.Background(), AuditOptions{})
				if err != nil || rep.Equal || rep.Findings() != 1 {
					t.Fatalf("%+v %v", rep, err)
				}
				if st, err := b.open().Status(context.Background()); err != nil || st.InSync || st.Held == "" {
					t.Fatalf("%+v %v", st, err)
				}
				if rep := b.sync(); rep.InSync == store {
					t.Fatalf("%+v", rep)
				}
				if store {
					if rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !rep.Equal {
						t.Fatalf("%+v %v", rep, err)
					}
					if rep := b.sync(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
				}
				b.equal()
			})
		}
	}
}

// What rests on one list is confirmed by the inventory of a source that has one, and its list is
// read only where that is otherwise.
func TestConfirmedByInventory(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.ours, s.inventory = true, true
		fill(s, 20)
		right := maps.Clone(s.bodies)
		if wrong {
			delete(s.bodies, "e7.nt")
		}
		b.sync()
		s.bodies = right
		s.put("e3.nt", nt("e3", "second"))
		before := s.requests["/set/resourcelist.xml"]
		rep := b.sync()
		if due := b.open().mem.SnapshotMeta().Recheck; !rep.InSync || (due != keep.Recheck{}) != wrong { // what it changed rests on that list
			t.Errorf("wrong %t: %+v, and %+v is due", wrong, rep, due)
		}
		if read := s.requests["/set/resourcelist.xml"] > before; read != wrong {
			t.Errorf("wrong %t: the list was read: %t", wrong, read)
		}
		b.equal()
	}
}
