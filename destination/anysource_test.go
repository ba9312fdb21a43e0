package destination

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/teststores"
	rs "github.com/rsbridge/rsbridge/resourcesync"
)

// Sources that offer only a part of the framework: baseline, changes, deletions,
// damage and repair, each ending equal.
func TestAnySource(t *testing.T) {
	for name, set := range map[string]func(s *testSource){
		"Resource List":            func(s *testSource) { s.changes = false },
		"Change List":              func(s *testSource) { s.list = false },
		"Resource Dump":            func(s *testSource) { s.list, s.changes, s.dump = false, false, true },
		"Resource Dump, alone":     func(s *testSource) { s.list, s.changes, s.dump, s.alone = false, false, true, true },
		"Resource Dump, manifests": func(s *testSource) { s.list, s.changes, s.dump, s.contents = false, false, true, true },
		"Resource Dump, no ZIP":    func(s *testSource) { s.list, s.changes, s.dump, s.contents, s.tar = false, false, true, true, true },
		"Change Dump":              func(s *testSource) { s.list, s.changes, s.changeDump, s.alone = false, false, true, true },
		"Change Dump, packages":    func(s *testSource) { s.list, s.changes, s.changeDump, s.alone, s.packed = false, false, true, true, 3 },
		"dumps":                    func(s *testSource) { s.list, s.changes, s.changeDump, s.dump, s.alone = false, false, true, true, true },
		"dumps, packages": func(s *testSource) {
			s.list, s.changes, s.changeDump, s.dump, s.alone, s.packed = false, false, true, true, true, 3
		},
		"dumps, packages, manifests": func(s *testSource) {
			s.list, s.changes, s.changeDump, s.dump, s.contents, s.packed = false, false, true, true, true, 3
		},
		"dumps, packages, no hashes": func(s *testSource) {
			s.list, s.changes, s.changeDump, s.dump, s.noHash, s.packed = false, false, true, true, true, 3
		},
		"Change Dump, no ZIP": func(s *testSource) {
			s.list, s.changes, s.changeDump, s.contents, s.tar, s.packed = false, false, true, true, true, 3
		},
		"Resource List and Change Dump":         func(s *testSource) { s.changes, s.changeDump, s.packed = false, true, 3 },
		"Resource Dump and Change List":         func(s *testSource) { s.list, s.dump = false, true },
		"Resource Dump and Change List, alone":  func(s *testSource) { s.list, s.dump, s.changeDump = false, true, true },
		"Resource List, no lastmod and no hash": func(s *testSource) { s.changes, s.noHash = false, true },
	} {
		for _, ours := range []bool{false, true} {
			if teststores.Unraced(t, 7) {
				continue
			}
			t.Run(fmt.Sprintf("%s, ours %v", name, ours), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.src
				s.ours = ours
				set(s)
				fill(s, 12)
				if rep := b.sync(); !rep.InSync || rep.Created != 12 {
					t.Fatalf("baseline: %+v", rep)
				}
				b.equal()
				for step := range 3 {
					s.put("e1.nt", nt("e1", fmt.Sprint("step", step)))
					s.put(fmt.Sprintf("new%d.nt", step), nt("new", "x"))
					s.remove(fmt.Sprintf("e%d.nt", 5+step))
					if s.changes || s.changeDump {
						clear(s.requests)
						plan, err := b.open().Sync(context.Background(), SyncOptions{DryRun: true})
						if err != nil || plan.Created != 1 || plan.Updated != 1 || plan.Deleted != 1 {
							t.Fatalf("plan of step %d: %+v %v", step, plan, err)
						}
						if s.contents && s.requests["/set/changes0.zip"] > 0 {
							t.Errorf("a plan downloads packages: %v", s.requests)
						}
					}
					if rep := b.sync(); !rep.InSync || rep.Created != 1 || rep.Updated != 1 || rep.Deleted != 1 {
						t.Fatalf("step %d: %+v", step, rep)
					}
					b.equal()
				}
				clear(s.requests)
				if rep := b.sync(); !rep.InSync || rep.Created+rep.Updated+rep.Deleted != 0 {
					t.Fatalf("nothing changed: %+v", rep)
				}
				for path, n := range s.requests {
					if strings.Contains(path, ".zip") || strings.HasPrefix(path, s.folder) {
						t.Errorf("nothing changed, and %s was asked for %d times", path, n)
					}
				}
				// Damage of the mirror is repaired from what is kept, and damage of what is
				// kept from the source.
				b.mir.exec(`DELETE DATA { GRAPH <` + graphA + `> { <http://ex.org/e1> <http://ex.org/v> "step2" .
} }`)
				rep, err := b.open().Audit(context.Background(), AuditOptions{Repair: true})
				if err != nil || !rep.Equal || rep.Repaired != 1 {
					t.Fatalf("repair: %+v %v", rep, err)
				}
				b.equal()
				if s.list || s.dump {
					b.forgetBody(s.url(s.folder + "e3.nt"))
					if rep, err = b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil {
						t.Fatal(err)
					}
					b.equal()
				}
			})
		}
	}
}

// forgetBody loses what is kept of a resource and its triples in the mirror.
func (b *bench) forgetBody(loc string) {
	b.t.Helper()
	d := b.open()
	batch := b.store.Batch()
	defer batch.Close()
	batch.Set(ledger.Key(ledger.KindBody, d.mem.Dest, ledger.HashOf(loc)), ledger.Pack([]byte("damaged")))
	if err := batch.Commit(b.t.Context(), true); err != nil {
		b.t.Fatal(err)
	}
	b.mir.exec(`DELETE DATA { GRAPH <` + graphA + `> { <http://ex.org/e3> <http://ex.org/v> "3" .
} }`)
}

// A Change Dump that does not reach back to the cursor is a gap, which is told and
// closed from the Resource Dump, or from the archive of Change Dumps.
func TestChangeDumpGap(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.ours, s.list, s.changes, s.dump, s.changeDump, s.alone, s.packed = ours, false, false, true, true, true, 3
		fill(s, 6)
		b.sync()
		for i := range 6 {
			s.put(fmt.Sprintf("e%d.nt", i), nt("e", fmt.Sprint(i)))
		}
		s.drop = 9
		rep := b.sync()
		if !rep.InSync || !strings.Contains(rep.Why, "gap: ") || !strings.Contains(rep.Why, "taken again from the Resource Dump") {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// A gap of the Change Lists is closed from a Change Dump that reaches back further.
func TestGapIsClosedFromTheChangeDump(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.ours, s.changeDump, s.packed = ours, true, 3
		fill(s, 6)
		b.sync()
		b.confirmed()
		for i := range 6 {
			s.put(fmt.Sprintf("e%d.nt", i), nt("e", fmt.Sprint(i)))
		}
		lost := 0
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/set/changelist.xml" {
				return false
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			lost++
			s.serveXML(w, r, s.document(s.head(rs.ChangeList, rs.Meta{From: s.log[8].at}), s.changeEntries(9, len(s.log))))
			return true
		}
		clear(s.requests)
		rep := b.sync()
		if !rep.InSync || !strings.Contains(rep.Why, "closed from the Change Dump") || s.requests["/set/resourcelist.xml"] > 0 || rep.Updated != 6 {
			t.Fatalf("%d %+v %v", lost, rep, s.requests)
		}
		b.equal()
		// One that begins behind the cursor is not downloaded.
		for i := range 6 {
			s.put(fmt.Sprintf("e%d.nt", i), nt("e", fmt.Sprint(i, "again")))
		}
		s.drop = 15
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/set/changelist.xml" {
				return false
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.serveXML(w, r, s.document(s.head(rs.ChangeList, rs.Meta{From: s.log[14].at}), s.changeEntries(15, len(s.log))))
			return true
		}
		clear(s.requests)
		rep = b.sync()
		if !rep.InSync || !strings.Contains(rep.Why, "compared with the Resource List") || s.requests["/set/changes0.zip"] > 0 {
			t.Fatalf("%+v %v", rep, s.requests)
		}
		b.equal()
	}
}

// A plain Sitemap, without anything of ResourceSync, and a list whose links lead
// nowhere: both are followed, and what is no RDF is counted and no fault.
func TestPlainSitemap(t *testing.T) {
	const sitemap = `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	for name, links := range map[string]string{
		"no links":      "",
		"dead links":    `<rs:ln xmlns:rs="http://www.openarchives.org/rs/terms/" rel="up" href="/gone.xml"/>`,
		"a link to us":  `<rs:ln xmlns:rs="http://www.openarchives.org/rs/terms/" rel="up" href="/sitemap.xml"/>`,
		"a link abroad": `<rs:ln xmlns:rs="http://www.openarchives.org/rs/terms/" rel="up" href="http://10.1.2.3/caps.xml"/>`,
	} {
		for _, index := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, index %v", name, index), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.src
				fill(s, 5)
				s.types["page.html"] = "text/html"
				s.put("page.html", "<!doctype html><p>for people")
				b.cfg.Source = s.url("/sitemap.xml")
				s.hook = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/sitemap.xml" && r.URL.Path != "/part.xml" {
						return false
					}
					if index && r.URL.Path == "/sitemap.xml" {
						io.WriteString(w, strings.Replace(sitemap, "urlset", "sitemapindex", 1)+links+`<sitemap><loc>`+s.url("/part.xml")+`</loc></sitemap></sitemapindex>`)
						return true
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					io.WriteString(w, sitemap+links)
					for k := range s.bodies {
						_, at := s.lastOf(k, len(s.log))
						fmt.Fprintf(w, `<url><loc>%s</loc><lastmod>%s</lastmod></url>`, s.url(s.folder+k), at.Format("2006-01-02T15:04:05Z"))
					}
					io.WriteString(w, "</urlset>")
					return true
				}
				if rep := b.sync(); !rep.InSync || rep.Created != 6 || rep.NotRDF != 1 {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				s.put("e1.nt", nt("e1", "changed"))
				s.remove("e2.nt")
				if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Deleted != 1 {
					t.Fatalf("%+v", rep)
				}
				b.equal()
			})
		}
	}
}

// TestPackedResources: a resource that is a gzip file is read as what it holds, from a list
// and from a package, whatever its type says; one that is damaged is told, and one that
// holds no RDF is counted.
func TestPackedResources(t *testing.T) {
	for _, dump := range []bool{false, true} {
		for _, typ := range []string{"", "application/gzip", "application/x-gzip", "application/octet-stream", "application/n-triples"} {
			t.Run(fmt.Sprintf("%s, dump %v", typ, dump), func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.list, s.changes, s.dump = !dump, !dump, dump
				pack := func(text string) string { return string(gz([]byte(text))) }
				put := func(name, body string) {
					if typ != "" {
						s.types[name] = typ
					}
					s.put(name, body)
				}
				put("e1.nt.gz", pack(nt("e1", "1")))
				put("e2.nt.gz", pack(nt("e2", "2"))[:30])
				s.types["pages.gz"] = "application/gzip"
				s.put("pages.gz", pack("<html>no RDF</html>"))
				if rep := b.sync(); rep.Failed != 1 || rep.NotRDF != 1 {
					t.Fatalf("%+v", rep)
				}
				for diff := range b.open().Differences(context.Background(), "") {
					if !strings.Contains(diff.Detail, "unpack gzip: unexpected EOF") {
						t.Errorf("%+v", diff)
					}
				}
				put("e1.nt.gz", pack(nt("e1", "changed")))
				put("e2.nt.gz", pack(nt("e2", "2")))
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), []string{nt("e1", "changed"), nt("e2", "2")})
				if rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: "origin"}); err != nil || !rep.Equal {
					t.Fatalf("%+v %v", rep, err)
				}
			})
		}
	}
}

// A hole between two Change Lists, which they tell and their index does not, is a gap once:
// then it lies before the Resource List that closed it.
func TestHoleBetweenLists(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 6)
	lost := 7 // of the log
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case len(s.log) <= lost:
			return false
		case r.URL.Path == "/set/changelist.xml":
			io.WriteString(w, mapidx+`<rs:md capability="changelist"/><sitemap><loc>`+s.url("/c0.xml")+`</loc></sitemap><sitemap><loc>`+s.url("/c1.xml")+`</loc></sitemap></sitemapindex>`)
		case r.URL.Path == "/c0.xml":
			s.serveXML(w, r, s.document(s.head(rs.ChangeList, rs.Meta{From: s.log[0].at, Until: s.log[lost-1].at}), s.changeEntries(0, lost)))
		case r.URL.Path == "/c1.xml":
			s.serveXML(w, r, s.document(s.head(rs.ChangeList, rs.Meta{From: s.log[lost+1].at}), s.changeEntries(lost+1, len(s.log))))
		default:
			return false
		}
		return true
	}
	b.sync()
	for i := range 3 {
		s.put(fmt.Sprintf("e%d.nt", i), nt("e", fmt.Sprint("new", i)))
	}
	rep := b.sync()
	if !rep.InSync || rep.Updated != 3 || strings.Count(rep.Why, "changes are missing") != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	s.put("e5.nt", nt("e", "newer"))
	if rep = b.sync(); !rep.InSync || rep.Mode != "incremental" || rep.Updated != 1 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}
