package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// listWith is a Resource List of all that a source has, of a time, with further entries.
func listWith(s *testSource, at time.Time, entries string) string {
	var b strings.Builder
	b.WriteString(urlset + `<rs:md capability="resourcelist" at="` + feed.Stamp(at) + `"/>`)
	for name := range s.bodies {
		fmt.Fprintf(&b, `<url><loc>%s</loc></url>`, s.url("/set/r/"+name))
	}
	return b.String() + entries + "</urlset>"
}

// served gives one document at an address until back is called.
func served(s *testSource, path, body string) (back func()) {
	before := s.hook
	xmlAt(s, path, body)
	return func() { s.hook = before }
}

// dated is a bench whose source and mirror have the same clock, and tell it.
func dated(t *testing.T, set func(*testSource)) *bench {
	b := newBench(t)
	s := b.src
	s.now, s.date = b.clock, b.clock
	s.changesFrom = s.now
	set(s)
	fill(s, 12)
	s.listAt = s.now
	b.later()
	return b
}

// full compares with the whole source, whatever comes of it.
func (b *bench) full() {
	b.t.Helper()
	b.open().Sync(context.Background(), SyncOptions{Full: true})
}

func (b *bench) status() Status {
	b.t.Helper()
	st, err := b.open().Status(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

// later lets a minute go by, and syncs.
func (b *bench) later() SyncReport {
	b.t.Helper()
	b.clock = b.clock.Add(time.Minute)
	b.src.date = b.clock
	return b.sync()
}

// A list of a time to come, served once, makes no list after it older.
func TestListOfATimeToCome(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 20 * time.Hour, 10 * 365 * 24 * time.Hour} {
		for _, changes := range []bool{true, false} {
			for _, what := range []string{"the same", "lacks some", "has more"} {
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(ahead, changes, what), func(t *testing.T) {
					t.Parallel()
					b := dated(t, func(s *testSource) { s.changes = changes })
					s := b.src
					b.cfg.MaxDeleteRatio = 1
					b.later()
					right := s.bodies
					if what == "lacks some" {
						s.bodies = map[string][]byte{"e1.nt": right["e1.nt"], "e2.nt": right["e2.nt"]}
					}
					more := ""
					if what == "has more" {
						more = "<url><loc>" + s.url("/set/r/more.nt") + "</loc></url>"
					}
					doc := listWith(s, b.clock.Add(ahead), more)
					s.bodies = right
					back := served(s, listXML, doc)
					b.clock = b.clock.Add(time.Minute)
					s.date = b.clock
					b.full()
					back()
					for range 2 {
						b.later()
					}
					if rep := b.later(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.equal()
					s.put("e3.nt", nt("e3", "later"))
					s.listAt = b.clock
					if rep := b.later(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					b.equal()
				})
			}
		}
	}
}

// Entries of one wrong list that cannot be had are forgotten as soon as the right list is back,
// also where that is the document of before.
func TestEntriesOfAWrongList(t *testing.T) {
	for _, changes := range []string{"changes", "none", "none of before"} {
		for _, newer := range []time.Duration{0, time.Second, time.Hour} {
			for name, entry := range map[string]string{
				"absent": "<url><loc>BASE/set/r/absent.nt</loc></url>", "foreign": "<url><loc>http://foreign.example/x</loc></url>", "broken": "<url><loc>BASE/set/broken.ttl</loc></url>",
			} {
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(changes, newer, name), func(t *testing.T) {
					t.Parallel()
					b := dated(t, func(s *testSource) { s.changes = changes != "none" })
					s := b.src
					answerAt(s, "/set/broken.ttl", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<a> <b>") })
					b.later()
					if changes == "none of before" { // they do not reach back to the list
						s.put("e1.nt", nt("e1", "later"))
						b.later()
						s.damage = func(doc string) string { return doc }
						s.drop = len(s.log)
						s.changesFrom = s.now
						b.later()
					}
					back := served(s, listXML, listWith(s, s.listAt.Add(newer), strings.ReplaceAll(entry, "BASE", s.srv.URL)))
					b.full()
					var rep SyncReport
					for range 2 {
						rep = b.later()
					}
					if rep.InSync {
						t.Fatalf("%+v", rep)
					}
					back()
					for range 2 {
						rep = b.later()
					}
					if rep.Pending+rep.Failed > 0 || changes != "none of before" && !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					if b.same(b.mir.lines(graphA), s.want()); changes != "none of before" {
						b.equal()
					}
				})
			}
		}
	}
}

const emptyFeed = `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>http://news.example/</link><description>none</description></channel></rss>`

// A gap that a wrong Change List makes is closed when the right one is back.
func TestGapOfAWrongChangeList(t *testing.T) {
	const changesXML = "/set/changelist.xml"
	for name, doc := range map[string]string{
		"an empty feed":   emptyFeed,
		"another history": urlset + `<rs:md capability="changelist" from="2030-01-01T00:00:00Z"/><url><loc>BASE/set/r/absent.nt</loc><rs:md change="created" datetime="2030-01-01T00:00:03Z"/></url></urlset>`,
	} {
		for _, list := range []bool{true, false} {
			for _, ours := range []bool{false, true} {
				for _, polls := range []int{1, 3} {
					if teststores.Unraced(t, 5) {
						continue
					}
					t.Run(fmt.Sprint(name, list, ours, polls), func(t *testing.T) {
						t.Parallel()
						b := dated(t, func(s *testSource) { s.ours, s.list = ours, list })
						s := b.src
						b.later()
						s.put("e1.nt", nt("e1", "later"))
						b.later()
						back := served(s, changesXML, strings.ReplaceAll(doc, "BASE", s.srv.URL))
						for range polls {
							b.clock = b.clock.Add(time.Minute)
							s.date = b.clock
							b.open().Sync(context.Background(), SyncOptions{})
						}
						back()
						s.put("e2.nt", nt("e2", "later"))
						s.remove("e4.nt")
						var rep SyncReport
						for range 2 {
							rep = b.later()
						}
						b.equal()
						if st := b.status(); !st.InSync || st.Held != "" {
							t.Fatalf("%+v %+v", rep, st)
						}
					})
				}
			}
		}
	}
}

// A Capability List as lines of text is taken for a list of resources. Once it is right again, and offers a
// dump, what only the wrong one named is forgotten.
func TestListNotOfferedAnyMore(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.list, s.dump, s.changeDump = false, true, true
	fill(s, 5)
	b.cfg.Source = s.url("/set/capabilitylist.xml")
	back := served(s, "/set/capabilitylist.xml", s.url("/set/resourcedump.xml")+"\n"+s.url("/set/changelist.xml")+"\n")
	if rep := b.sync(); rep.InSync || rep.Failed != 2 {
		t.Fatalf("%+v", rep)
	}
	back()
	for range 2 {
		b.later()
		b.sync()
	}
	if rep := b.sync(); !rep.InSync || rep.Failed > 0 {
		t.Errorf("%+v", rep)
	}
	b.equal()
}

// Entries of a wrong Change List of before the cursor do not move it. What they did is taken back, and so
// is what looked like new changes, once the right list is there again: without a list of resources too.
func TestWrongChangesAreTakenBack(t *testing.T) {
	const changesXML = "/set/changelist.xml"
	deleted := func(s *testSource, name, at string) string {
		return fmt.Sprintf(`<url><loc>%s</loc><rs:md change="deleted" datetime="%s"/></url>`, s.url("/set/r/"+name), at)
	}
	entries := func(doc string, change func(all []string) []string) string {
		all := entryOf.FindAllString(doc, -1)
		head, _, _ := strings.Cut(doc, all[0])
		return head + strings.Join(change(all), "\n") + "</urlset>"
	}
	for name, wrong := range map[string]func(s *testSource, doc string) string{
		"a foreign deletion": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string {
				return slices.Insert(all, len(all)-2, deleted(s, "e9.nt", feed.Stamp(s.now.Add(-3*time.Minute))))
			})
		},
		"another change": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string {
				at := len(all) - 3
				all[at] = regexp.MustCompile(`change="[a-z]*"`).ReplaceAllString(all[at], `change="deleted"`)
				return all
			})
		},
		"another last change": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string {
				last := &all[len(all)-1]
				*last = regexp.MustCompile(`change="[a-z]*"`).ReplaceAllString(*last, `change="deleted"`)
				return all
			})
		},
		"short": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string { return all[:len(all)-2] })
		},
		"a hole": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string { return slices.Delete(all, len(all)-3, len(all)-1) })
		},
		"reversed": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string { slices.Reverse(all); return all })
		},
		"empty": func(s *testSource, doc string) string {
			return entries(doc, func(all []string) []string { return nil })
		},
		"an index of a missing list": func(s *testSource, doc string) string {
			return `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="changelist"/><sitemap><loc>` + s.url("/set/none.xml") + `</loc></sitemap></sitemapindex>`
		},
	} {
		for _, ours := range []bool{false, true} {
			for _, news := range []bool{false, true} {
				for _, listed := range []bool{false, true} {
					if teststores.Unraced(t, 5) {
						continue
					}
					t.Run(fmt.Sprint(name, " numbers ", ours, " with news ", news, " was listed ", listed), func(t *testing.T) {
						t.Parallel()
						b := dated(t, func(s *testSource) { s.ours, s.list = ours, listed })
						s := b.src
						b.cfg.MaxDeleteRatio = 1
						change := func(i int) {
							s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), fmt.Sprint("later ", len(s.log))))
						}
						for i := range 4 {
							change(i)
							b.later()
						}
						s.list = false
						b.later()
						if news {
							change(4)
							change(5)
						}
						res, err := http.Get(s.url(changesXML))
						if err != nil {
							t.Fatal(err)
						}
						right, err := io.ReadAll(res.Body)
						res.Body.Close()
						if err != nil {
							t.Fatal(err)
						}
						back := served(s, changesXML, wrong(s, string(right)))
						for range 2 {
							b.later()
						}
						back()
						if news {
							change(6)
						}
						for range 3 {
							if rep := b.later(); rep.InSync {
								b.equal()
							}
						}
						if st := b.status(); !st.InSync || st.Held != "" {
							t.Fatalf("%+v", st)
						}
					})
				}
			}
		}
	}
}

// What a source without list and dump has lost stays told until a person goes on without it.
func TestAcceptedGap(t *testing.T) {
	for name, lose := range map[string]func(s *testSource) (back func()){
		"changes": func(s *testSource) func() { s.drop = len(s.log) - 1; s.changesFrom = s.now; return func() {} },
		"a list": func(s *testSource) func() {
			s.drop, s.changesFrom = len(s.log)-1, s.now
			return served(s, "/set/changelist.xml", `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="changelist"/><sitemap><loc>`+s.url("/set/none.xml")+`</loc></sitemap><sitemap><loc>`+s.url("/set/further.xml")+`</loc></sitemap></sitemapindex>`)
		},
	} {
		for _, onGap := range []string{"baseline", "stop"} {
			t.Run(name+" "+onGap, func(t *testing.T) {
				b := dated(t, func(s *testSource) { s.list = false })
				s := b.src
				b.cfg.OnGap = onGap
				xmlAt(s, "/set/further.xml", urlset+`<rs:md capability="changelist"/></urlset>`)
				s.put("e1.nt", nt("e1", "lost"))
				s.put("e2.nt", nt("e2", "after"))
				back := lose(s)
				for range 2 {
					b.later()
					b.full()
				}
				st := b.status()
				if st.InSync || !strings.HasPrefix(st.Held, "gap: ") || !strings.Contains(st.Held, "rsbridge accept copy --destination goes on") {
					t.Fatalf("%+v", st)
				}
				h, err := b.open().Held(t.Context(), "", 10)
				if err != nil || h == nil || h.Reason != st.Held || len(h.Items) > 0 {
					t.Fatalf("%+v %v", h, err)
				}
				if _, err := b.open().Sync(t.Context(), SyncOptions{Accept: "another"}); !errors.Is(err, ErrNotHeld) {
					t.Fatal(err)
				}
				if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: h.ID}); err != nil || !rep.InSync || rep.Held != "" {
					t.Fatalf("%+v %v", rep, err)
				}
				if h, err := b.open().Held(t.Context(), "", 10); err != nil || h != nil {
					t.Fatalf("%+v %v", h, err)
				}
				if rep := b.later(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				if a, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || a.ProvenSince == nil || !a.Equal && name == "changes" {
					t.Errorf("%+v %v", a, err)
				}
				if st := b.status(); st.ProvenSince == nil || !st.ProvenSince.Equal(*st.LastAudit.ProvenSince) {
					t.Errorf("%+v", st)
				}
				back()
				s.put("e3.nt", nt("e3", "later"))
				if rep := b.later(); name == "changes" && (!rep.InSync || rep.Updated != 1) {
					t.Fatalf("%+v", rep)
				}
				b.freezeList()
				s.list = true
				b.full()
				if a, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || a.ProvenSince != nil || !a.Equal {
					t.Errorf("with a list: %+v %v", a, err)
				}
				if st := b.status(); st.ProvenSince != nil {
					t.Errorf("with a list: %+v", st)
				}
			})
		}
	}
}

// A Resource Dump lacks some resources for once, beside an empty Change List. Both are right again: the
// changes tell of the lacking ones with times before the wrong dump, and the newer dump is compared. It is
// not, if the changes agree with the mirror.
func TestWrongDumpBesideEmptyChanges(t *testing.T) {
	for name, wrong := range map[string]bool{"wrong": true, "right": false} {
		t.Run(name, func(t *testing.T) {
			b := newQuietBench(t)
			s := b.src
			s.list, s.dump = false, true
			s.date, s.now = b.clock, b.clock
			fill(s, 6)
			step := func() SyncReport {
				b.clock = b.clock.Add(time.Minute)
				s.date, s.now = b.clock, b.clock
				return b.sync()
			}
			step()
			for i := range 3 {
				s.put(fmt.Sprintf("late%d.nt", i), nt(fmt.Sprintf("late%d", i), "1"))
			}
			s.date, s.now = b.clock, b.clock
			right, hook := s.bodies, s.hook
			if s.bodies = maps.Clone(right); wrong {
				delete(s.bodies, "late1.nt")
			}
			s.freezeDump()
			s.bodies = right
			xmlAt(s, "/set/changelist.xml", urlset+`<rs:md capability="changelist"/></urlset>`)
			step()
			s.dumped, s.hook = nil, hook
			b.dumps()
			var rep SyncReport
			for range 2 {
				rep = step()
			}
			if !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), s.want())
			if n := b.dumps(); (n > 0) != wrong {
				t.Errorf("%d dumps were read", n)
			}
		})
	}
}
