package destination

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// keepFiles makes the bench keep a folder of files.
func (b *bench) keepFiles(dir string) {
	b.t.Helper()
	to, err := filesink.Open(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { to.Close() })
	b.cfg.Files, b.cfg.GraphIRI, b.sink = "", "", to
}

// mends audits at a depth, with repair.
func (b *bench) mends(depth string) keep.AuditReport {
	b.t.Helper()
	rep, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth, Repair: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return rep
}

// forms of sources that tell nothing of a wrong answer.
var formsOfSilence = map[string]func(s *testSource){
	"nothing told": func(s *testSource) { s.noHash, s.noLastmod = true, true },
	"no changes":   func(s *testSource) { s.noHash, s.noLastmod, s.changes = true, true, false },
	"no list":      func(s *testSource) { s.noHash, s.noLastmod, s.list = true, true, false },
	"lastmod":      func(s *testSource) { s.noHash = true },
	"lastmod only": func(s *testSource) { s.noHash, s.changes = true, false },
	"hashes":       func(s *testSource) {},
	"inventory":    func(s *testSource) { s.ours, s.inventory = true, true },
}

var wrongBodies = map[string]string{
	"no triples":       "# nothing\n",
	"nothing":          "",
	"an error in RDF":  errorInRDF,
	"another resource": nt("e5", "a"),
	"an old state":     nt("e1", "first of all"),
	"one more":         nt("e1", "a", "b"),
}

// An audit takes no answer of which the source told nothing in the run that meets it: it is
// pending, and told, until a later run has the same. A wrong answer of one moment never gets in.
func TestRepairTakesNothingUntold(t *testing.T) {
	for form, set := range formsOfSilence {
		for name, body := range wrongBodies {
			for _, layout := range []string{"single", "folder"} {
				if layout == "folder" && form != "nothing told" {
					continue
				}
				if teststores.Unraced(t, 7) {
					continue
				}
				t.Run(fmt.Sprint(form, " ", name, " ", layout), func(t *testing.T) {
					t.Parallel()
					b := newQuietBench(t)
					s := b.src
					set(s)
					lines := func() []string { return b.mir.lines(graphA) }
					if layout == "folder" {
						dir := t.TempDir()
						b.keepFiles(dir)
						lines = func() (out []string) {
							for name, raw := range filesIn(t, dir) {
								out = append(out, name+" "+raw)
							}
							slices.Sort(out)
							return out
						}
					}
					fill(s, 8)
					b.poll()
					b.poll()
					before := lines()
					rightly := wrongly(s, "application/n-triples", body, "e1.nt")
					rep := b.mends("origin")
					if got := lines(); !slices.Equal(got, before) {
						t.Fatalf("written by the audit that met it:\n got %q\nwant %q\n%+v", got, before, rep)
					}
					if rep.Verdict != "different" || rep.Different != 1 || rep.Repaired != 0 || form != "inventory" && !strings.Contains(rep.Named[0].Detail, "pending") {
						t.Fatalf("%+v", rep)
					}
					if st, err := b.d.Status(context.Background()); err != nil || st.InSync || form != "inventory" && st.Pending != 1 {
						t.Fatalf("%+v %v", st, err)
					}
					rightly()
					if rep := b.poll(); !rep.InSync {
						t.Fatalf("%+v", rep)
					}
					if got := lines(); !slices.Equal(got, before) {
						t.Fatalf("%q", got)
					}
					if rep := b.audited("origin"); !rep.Equal {
						t.Fatalf("%+v", rep)
					}
				})
			}
		}
	}
}

// Another answer that stays is taken by a later run, audit or sync, also where the second of
// several polls found it.
func TestRepairTakesASecondAnswer(t *testing.T) {
	for form, set := range formsOfSilence {
		for _, name := range []string{"nothing", "an error in RDF", "one more"} {
			for _, by := range []string{"audit", "sync", "audit without repair, sync"} {
				if form == "hashes" || form == "inventory" { // the source breaks its promise
					continue
				}
				if teststores.Unraced(t, 5) {
					continue
				}
				t.Run(fmt.Sprint(form, " ", name, " ", by), func(t *testing.T) {
					t.Parallel()
					b := newQuietBench(t)
					s := b.src
					set(s)
					fill(s, 8)
					b.poll()
					b.poll()
					s.bodies["e1.nt"] = []byte(wrongBodies[name])
					if by == "audit without repair, sync" {
						b.audited("origin")
					} else {
						b.mends("origin")
					}
					if by == "audit" {
						if rep := b.mends("origin"); !rep.Equal || rep.Repaired != 1 {
							t.Fatalf("%+v", rep)
						}
					} else if rep := b.poll(); !rep.InSync || rep.Updated != 1 {
						t.Fatalf("%+v", rep)
					}
					b.same(b.mir.lines(graphA), s.want())
				})
			}
		}
	}
}

// What is kept of a resource is lost, and the source errs at the moment of the repair. Without a
// promise only the recorded state is taken at once; another answer is pending, and told.
func TestRepairOfLostInAWrongMoment(t *testing.T) {
	for form, set := range formsOfSilence {
		for _, name := range []string{"nothing", "an error in RDF", "one more"} {
			for _, layout := range []string{"single", "folder"} {
				for _, end := range []string{"right at once", "right later", "stays"} {
					if name == "nothing" && layout == "folder" && end == "stays" {
						continue // an emptied file is taken with the next change
					}
					if teststores.Unraced(t, 7) {
						continue
					}
					t.Run(fmt.Sprint(form, " ", name, " ", layout, " ", end), func(t *testing.T) {
						t.Parallel()
						b := newQuietBench(t)
						s := b.src
						set(s)
						dir := t.TempDir()
						if layout == "folder" {
							b.keepFiles(dir)
						}
						fill(s, 8)
						b.poll()
						b.poll()
						if layout == "folder" {
							if err := os.WriteFile(filepath.Join(dir, "set/r/e3.nt"), []byte("damaged"), 0o666); err != nil {
								t.Fatal(err)
							}
						} else {
							b.forgetBody(s.url("/set/r/e3.nt"))
						}
						right, wrong := string(s.bodies["e3.nt"]), strings.ReplaceAll(wrongBodies[name], "e1", "e3")
						rightly := func() {}
						if end != "right at once" {
							rightly = wrongly(s, "application/n-triples", wrong, "e3.nt")
						}
						rep := b.mends("")
						if end == "right at once" {
							if rep.Findings() > 0 || rep.Repaired != 1 {
								t.Fatalf("%+v", rep)
							}
						} else if rep.Verdict != "different" || !strings.Contains(fmt.Sprint(rep.Named), "pending") && !strings.Contains(fmt.Sprint(rep.Named), "failed") {
							t.Fatalf("%+v", rep)
						}
						want := right
						if promised := form == "hashes" || form == "inventory"; end == "stays" && !promised {
							want = wrong
						} else {
							rightly()
						}
						b.clock = b.clock.Add(time.Hour)
						for again := 0; ; again++ {
							if rep = b.mends(""); rep.Findings() == 0 {
								break
							} else if again == 2 || end != "stays" {
								t.Fatalf("%+v", rep)
							}
							b.clock = b.clock.Add(time.Hour)
						}
						if layout == "folder" {
							if got := filesIn(t, dir)["set/r/e3.nt"]; got != want {
								t.Fatalf("got %q, want %q", got, want)
							}
							return
						}
						for _, l := range b.mir.lines(graphA) {
							if (strings.Contains(l, "/e3>") || strings.Contains(l, "errors")) && !strings.Contains(want, l) {
								t.Fatalf("%q is in the mirror, want %q", l, want)
							}
						}
						for l := range strings.Lines(want) {
							if !slices.Contains(b.mir.lines(graphA), l) {
								t.Fatalf("the mirror lacks %q", l)
							}
						}
					})
				}
			}
		}
	}
}
