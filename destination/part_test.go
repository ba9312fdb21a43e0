package destination

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

func person(name string) string {
	return fmt.Sprintf("<http://ex.org/%s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Person> .\n", name)
}

// in is what of the source is in the mirror, by name.
func (b *bench) in() (names []string) {
	for _, l := range b.mir.lines(graphA) {
		s, _, _ := strings.Cut(strings.TrimPrefix(l, "<http://ex.org/"), ">")
		if !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// fetched is what was asked for since the last call, by name.
func (b *bench) fetched() (names []string) {
	b.src.mu.Lock()
	defer b.src.mu.Unlock()
	for path := range b.src.requests {
		if name, ok := strings.CutPrefix(path, b.src.folder); ok {
			names = append(names, strings.TrimSuffix(name, ".nt"))
		}
	}
	clear(b.src.requests)
	slices.Sort(names)
	return names
}

// A part of a source, by class or prefix: what is outside of it is not stored, and
// comes and goes as its description does. Another part is taken by fetching only
// what that may concern.
func TestSelect(t *testing.T) {
	for _, ours := range []bool{true, false} {
		t.Run(fmt.Sprint(ours), func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours = ours
			b.cfg.MaxDeleteRatio = 1
			fill(s, 4)
			s.put("p.nt", person("p"))
			s.put("q.nt", person("q"))
			step := func(what string, in, fetched string) {
				t.Helper()
				b.fetched()
				before := int64(len(b.in()))
				dry := b.dry(SyncOptions{})
				if n := len(b.fetched()); n != 0 {
					t.Fatalf("%s: the dry run fetched %d", what, n)
				}
				rep := b.sync()
				more := dry.Updated + dry.Created + dry.Deleted - rep.Updated - rep.Created - rep.Deleted
				known := ours && len(b.cfg.Select.Classes) == 0 // else only what is fetched tells whether it is in the part
				if !rep.InSync || more < 0 || known && more > 0 {
					t.Fatalf("%s: %+v, foretold %+v", what, rep, dry)
				}
				if n := int64(len(b.in())); before+rep.Created-rep.Deleted != n {
					t.Fatalf("%s: %d were mirrored, and %d are: %+v", what, before, n, rep)
				}
				if got := strings.Join(b.in(), " "); got != in {
					t.Fatalf("%s: %q is mirrored, want %q (%s)", what, got, in, rep.Why)
				}
				if got := strings.Join(b.fetched(), " "); got != fetched {
					t.Fatalf("%s: %q was fetched, want %q (%s)", what, got, fetched, rep.Why)
				}
				if rep = b.sync(); rep.Mode != "none" || len(b.fetched()) > 0 {
					t.Fatalf("%s, again: %+v", what, rep)
				}
				for _, depth := range []string{"store", "origin"} {
					a, err := b.open().Audit(context.Background(), AuditOptions{Depth: depth})
					if err != nil || !a.Equal || a.Resources != int64(len(b.in())) {
						t.Fatalf("%s: %+v %v", what, a, err)
					}
				}
			}
			all := "e0 e1 e2 e3 p q"
			b.cfg.Select.Classes = []string{"http://ex.org/Person"}
			b.cfg.Select.Prefixes = []string{"http://ex.org/e1"}
			step("class or prefix", "e1 p q", all)
			s.put("p.nt", nt("p", "no person any more"))
			s.put("e2.nt", person("e2"))
			step("changes", "e1 e2 q", "e2 p")
			b.cfg.Select.Classes = []string{"http://ex.org/Person", "http://ex.org/Place"}
			step("one class more", "e1 e2 q", "e0 e3 p")
			b.cfg.Select.Classes = nil
			unread := "e2 q" // where the entity is told, what is outside is not fetched
			if ours {
				unread = ""
			}
			step("prefix only", "e1", unread)
			s.put("e3.nt", nt("e3", "changed"))
			if unread = "e3"; ours {
				unread = ""
			}
			step("outside", "e1", unread)
			b.cfg.Select.Prefixes = []string{"http://ex.org/e1", "http://ex.org/e3"}
			step("one prefix more", "e1 e3", "e3")
			b.cfg.Select.Prefixes = []string{"http://ex.org/e3"}
			if unread = "e1"; ours {
				unread = ""
			}
			step("one prefix less", "e3", unread)
			b.cfg.Select.Prefixes = nil
			step("everything", all, "e0 e1 e2 p q")
			b.equal()
		})
	}
}

// What leaves the classes is not deleted at the source, and is no part of the mirror any
// more, whatever is kept of deleted ones; its versions are kept where they all are.
func TestLeavingTheClassIsNoDeletion(t *testing.T) {
	for _, keep := range []string{"deleted", "versions"} {
		b := newBench(t)
		b.cfg.Keep, b.cfg.Select.Classes = keep, []string{"http://ex.org/Person"}
		for _, name := range []string{"stays", "leaves", "goes"} {
			b.src.put(name+".nt", person(name))
		}
		b.sync()
		b.src.put("leaves.nt", nt("leaves", "no person"))
		b.src.remove("goes.nt")
		b.sync()
		want := []string{"stays"}
		if keep == "deleted" {
			want = []string{"goes", "stays"}
		}
		if got := b.in(); !slices.Equal(got, want) {
			t.Errorf("%s: in the mirror are %q", keep, got)
		}
		if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal {
			t.Errorf("%s: %+v %v", keep, a, err)
		}
		past := 0
		for v, err := range b.open().Versions(context.Background(), "http://ex.org/leaves") {
			if err != nil || v.Deleted {
				t.Errorf("%s: %+v %v", keep, v, err)
			}
			past++
		}
		if (past == 1) != (keep == "versions") {
			t.Errorf("%s: %d versions of what has left", keep, past)
		}
	}
}

// What was kept goes when nothing is kept any more, as far as max_delete_ratio lets it.
func TestNothingIsKeptAnyMore(t *testing.T) {
	for _, ratio := range []float64{0.2, 1} {
		b := newBench(t)
		s := b.src
		s.dump = true
		b.cfg.Keep, b.cfg.MaxDeleteRatio = "deleted", ratio
		fill(s, 20)
		b.sync()
		for i := range 14 {
			s.remove(fmt.Sprintf("e%d.nt", i))
		}
		b.sync()
		if n := len(b.in()); n != 20 {
			t.Fatalf("%d are kept", n)
		}
		b.cfg.Keep = "current"
		dry := b.dry(SyncOptions{})
		rep := b.sync()
		if held := ratio < 1; (rep.Held != "") != held || rep.InSync == held || dry.Deleted != rep.Deleted || (rep.Deleted == 14) == held {
			t.Fatalf("%+v, foretold %+v", rep, dry)
		}
		if b.cfg.MaxDeleteRatio = 1; ratio < 1 {
			b.sync()
		}
		b.equal()
	}
}

// A folder has the files of the part, of RDF or not, and no others.
func TestSelectIntoFolder(t *testing.T) {
	b := newBench(t)
	s := b.src
	dir := t.TempDir()
	sink, err := filesink.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	fill(s, 3)
	s.put("p.nt", person("p"))
	s.types["pic.png"] = "image/png"
	s.put("pic.png", "\x89PNG")
	step := func(want ...string) {
		t.Helper()
		rep, err := b.openSink(sink).Sync(context.Background(), SyncOptions{})
		if err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		got := filesIn(t, dir)
		for _, w := range want {
			if got["set/r/"+w] != string(s.bodies[w]) {
				t.Fatalf("%s: %q", w, got)
			}
		}
		a, err := b.openSink(sink).Audit(context.Background(), AuditOptions{})
		if err != nil || !a.Equal || len(got) != len(want) || a.Resources != int64(len(want)) {
			t.Fatalf("%d files, want %v: %+v %v", len(got), want, a, err)
		}
	}
	b.cfg.Select.Classes = []string{"http://ex.org/Person"}
	step("p.nt")
	s.put("p.nt", nt("p", "no person any more"))
	s.put("e1.nt", person("e1"))
	step("e1.nt")
	b.cfg.Select.Classes, b.cfg.Select.Prefixes = nil, []string{s.url("/set/r/pic"), "http://ex.org/e"}
	step("e0.nt", "e1.nt", "e2.nt", "pic.png")
	b.cfg.Select.Prefixes = nil
	step("e0.nt", "e1.nt", "e2.nt", "p.nt", "pic.png")
}
