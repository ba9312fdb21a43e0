package destination

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// others lists what is no RDF by its path.
func (b *bench) others() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for o, err := range b.d.Others(context.Background(), "") {
		if err != nil {
			b.t.Fatal(err)
		}
		out[strings.TrimPrefix(o.Location, b.src.srv.URL+"/")] = o.File
	}
	return out
}

// Random histories, with crashes, of a source with files among its RDF: the store
// has the RDF, the folder every other representation byte for byte and nothing
// else, and both are counted.
func TestFilesBesideAStore(t *testing.T) {
	for seed := range uint64(4) {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.cfg.Files = filepath.Join(t.TempDir(), "files")
			b.cfg.MaxDeleteRatio = 1
			s := b.src
			s.ours, s.dump = seed%2 == 0, seed == 3
			fill(s, 3)
			rnd := rand.New(rand.NewPCG(seed, 5))
			names := []string{"a.nt", "img.png", "dir/c.nt", "dir/doc.pdf", "dir", "page.html"}
			s.types["page.html"], s.types["img.png"], s.types["dir/doc.pdf"] = "text/html", "image/png", "application/pdf"
			want := func() map[string]string {
				out := map[string]string{}
				for k, v := range s.bodies {
					if !strings.HasSuffix(k, ".nt") {
						out["set/r/"+k] = string(v)
					}
				}
				return out
			}
			for step := range 10 {
				for range 1 + rnd.IntN(4) {
					switch k := names[rnd.IntN(len(names))]; {
					case rnd.IntN(4) == 0:
						s.remove(k)
					case strings.HasSuffix(k, ".nt"):
						s.put(k, nt("x", fmt.Sprint(step, k)))
					default:
						s.put(k, fmt.Sprintf("\x00binary %d %s", step, k))
					}
				}
				d := b.open()
				if rnd.IntN(2) == 0 {
					d.mem.Crash = cutAfter(rnd.IntN(8))
					d.Sync(context.Background(), SyncOptions{})
				}
				if rep := b.sync(); !rep.InSync {
					t.Fatalf("step %d: %+v", step, rep)
				}
				b.equal()
				got := filesIn(t, b.cfg.Files)
				for path, name := range b.others() { // /dir and /dir/doc.pdf cannot both be files
					if name != path {
						got[path] = got[name]
						delete(got, name)
					}
				}
				if w := want(); fmt.Sprint(got) != fmt.Sprint(w) {
					t.Fatalf("step %d: the folder has %q, want %q", step, got, w)
				}
				st, err := b.d.Status(context.Background())
				if err != nil || st.NotRDF != int64(len(want())) || st.Resources != int64(len(s.bodies)) || st.Pending != 0 {
					t.Fatalf("%+v %v, want %d", st, err, len(want()))
				}
			}
			// Damage of every kind, and repair.
			s.put("one.png", "one")
			s.put("two.png", "two")
			b.sync()
			os.Remove(filepath.Join(b.cfg.Files, "set/r/one.png"))
			os.WriteFile(filepath.Join(b.cfg.Files, "set/r/two.png"), []byte("changed"), 0o600)
			os.WriteFile(filepath.Join(b.cfg.Files, "stranger"), []byte("x"), 0o600)
			a, err := b.open().Audit(context.Background(), AuditOptions{})
			if err != nil || a.Missing != 1 || a.Different != 1 || a.Extra != 1 {
				t.Fatalf("%+v %v", a, err)
			}
			// An audit by inventory reads no mirror: it says nothing against what was found there.
			if a = b.inventoryAudit(false); a.Verdict != "not proven" {
				t.Fatalf("%+v", a)
			}
			if rep := b.sync(); rep.InSync || !strings.Contains(rep.Held, "audit --repair restores it") {
				t.Fatalf("%+v", rep)
			}
			if a, err = b.open().Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Repaired != 3 {
				t.Fatalf("%+v %v", a, err)
			}
			if got := filesIn(t, b.cfg.Files); got["set/r/one.png"] != "one" || got["set/r/two.png"] != "two" || got["stranger"] != "" {
				t.Fatalf("%q", got)
			}
			if a, err = b.open().Audit(context.Background(), AuditOptions{Depth: "origin"}); err != nil || !a.Equal {
				t.Fatalf("%+v %v", a, err)
			}
		})
	}
}

// What a crash has left of a resource that was never recorded goes with it. Beside a
// store it is found where nothing tells that it went.
func TestFileOfACrash(t *testing.T) {
	for _, told := range []bool{true, false} {
		for _, folder := range []bool{true, false} {
			b := newBench(t)
			s := b.src
			s.ours = true
			dir := t.TempDir()
			open := b.open
			if b.cfg.Files = dir; folder {
				open = b.intoFolder(dir)
			}
			run := func(d *Destination) error {
				_, err := d.Sync(context.Background(), SyncOptions{})
				return err
			}
			fill(s, 2)
			s.put("a.pdf", "%PDF a")
			if err := run(open()); err != nil {
				t.Fatal(err)
			}
			s.put("b.pdf", "%PDF b")
			d := open()
			d.mem.Crash = func(point string) error {
				if point == "file" || folder && point == "written" {
					return errInjected
				}
				return nil
			}
			if err := run(d); !errors.Is(err, errInjected) {
				t.Fatal(err)
			}
			if s.remove("b.pdf"); !told {
				s.mu.Lock()
				s.log = s.log[:3]
				s.mu.Unlock()
			}
			if err := run(open()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "set/r/b.pdf")); !os.IsNotExist(err) {
				t.Fatalf("told %v, folder %v: %v", told, folder, err)
			}
			rep, err := open().Audit(context.Background(), AuditOptions{})
			if err != nil || !rep.Equal {
				t.Fatalf("told %v, folder %v: %+v %v", told, folder, rep, err)
			}
		}
	}
}

// What is no RDF is counted and listed without files as well, never makes a run
// that is not in sync, and is fetched when files are asked for later.
func TestFilesAskedForLater(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 2)
	s.types["x.png"] = "image/png"
	s.put("x.png", "png")
	rep := b.sync()
	if !rep.InSync || rep.NotRDF != 1 {
		t.Fatalf("%+v", rep)
	}
	s.put("x.png", "another")
	if rep := b.sync(); !rep.InSync || rep.Updated != 1 {
		t.Fatalf("another version of a file is an update: %+v", rep)
	}
	if o := b.others(); len(o) != 1 || o["set/r/x.png"] != "" {
		t.Fatalf("%v", o)
	}
	b.equal()
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	os.WriteFile(mine, []byte("precious"), 0o600)
	b.cfg.Files = dir
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "adopt: true") {
		t.Fatal("a folder with somebody's files was taken:", err)
	}
	os.Remove(mine)
	if rep := b.sync(); !rep.InSync || !strings.Contains(rep.Why, "fetched for it") {
		t.Fatalf("%+v", rep)
	}
	if got := filesIn(t, dir); got["set/r/x.png"] != "another" || len(got) != 1 {
		t.Fatalf("%q", got)
	}
	b.equal()
	b.cfg.Name, b.cfg.GraphIRI = "other", graphA+"/2"
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "kept by the destination") {
		t.Fatal("two destinations in one folder:", err)
	}
}

// A process that was killed while it made a folder its own has left a file of no name
// there: that is nobody's.
func TestFolderOfACrash(t *testing.T) {
	for _, folder := range []bool{true, false} {
		b := newBench(t)
		dir := t.TempDir()
		open := b.open
		if folder {
			open = b.intoFolder(dir)
		} else {
			b.cfg.Files = dir
		}
		fill(b.src, 2)
		if err := os.WriteFile(filepath.Join(dir, ".rsbridge-123.part"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if rep, err := open().Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
			t.Errorf("folder %v: %v %+v", folder, err, rep)
		}
	}
}
