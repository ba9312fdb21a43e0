package destination

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of somebody else stays where a resource of the source comes to its path: the resource is
// refused by name until the file is gone. One with the same bytes is taken over.
func TestFileInTheWay(t *testing.T) {
	for _, kind := range []string{"folder", "beside"} {
		for _, end := range []string{"moved away", "moved away after an audit", "repair", "adopted before"} {
			t.Run(kind+" "+end, func(t *testing.T) {
				b := newBench(t)
				s, dir := b.src, t.TempDir()
				open := b.open
				if kind == "folder" {
					open = b.intoFolder(dir)
				} else {
					b.cfg.Files = dir
				}
				fill(s, 2)
				for _, name := range []string{"a.png", "new.png", "same.png", "other.png"} {
					s.types[name] = "image/png"
				}
				s.put("a.png", "a")
				sync := func() SyncReport {
					t.Helper()
					rep, err := open().Sync(t.Context(), SyncOptions{})
					if err != nil {
						t.Fatal(err)
					}
					return rep
				}
				b.cfg.Adopt = end == "adopted before" // what is there before the first run
				sync()
				at := filepath.Join(dir, "set/r/new.png")
				write(t, at, "precious")
				write(t, filepath.Join(dir, "set/r/same.png"), "same")
				s.put("new.png", "new")
				s.put("same.png", "same")
				s.put("other.png", "other")
				d := open()
				d.mem.Crash = cutAt(map[string]string{"folder": "written", "beside": "file"}[kind])
				if _, err := d.Sync(t.Context(), SyncOptions{}); !errors.Is(err, errInjected) {
					t.Fatal(err)
				}
				for range 2 {
					rep := sync()
					if got := filesIn(t, dir); rep.InSync || rep.Failed != 1 || got["set/r/new.png"] != "precious" || got["set/r/same.png"] != "same" || got["set/r/other.png"] != "other" {
						t.Fatalf("%+v %q", rep, got)
					}
					if len(rep.Problems) != 1 || !strings.HasSuffix(rep.Problems[0].Location, "/new.png") || !strings.Contains(rep.Problems[0].Reason, "set/r/new.png is not written: folder "+dir+" has another file there") {
						t.Fatalf("%+v", rep.Problems)
					}
				}
				switch end {
				case "moved away after an audit":
					if a, err := open().Audit(t.Context(), AuditOptions{}); err != nil || a.Equal {
						t.Fatalf("%+v %v", a, err)
					}
					os.Remove(at)
				case "moved away", "adopted before":
					os.Remove(at)
				case "repair":
					if a, err := open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !a.Equal {
						t.Fatalf("%+v %v", a, err)
					}
				}
				d = open()
				rep, err := d.Sync(t.Context(), SyncOptions{})
				if st, serr := d.Status(t.Context()); err != nil || serr != nil || !rep.InSync || !st.InSync || st.Held != "" || filesIn(t, dir)["set/r/new.png"] != "new" {
					t.Fatalf("%+v %+v %v %q", rep, st, err, filesIn(t, dir))
				}
				if a, err := open().Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal {
					t.Fatalf("%+v %v", a, err)
				}
			})
		}
	}
}

// A setting of files that goes elsewhere and back needs no repair: files with the source's bytes are
// taken over. One with older bytes may be anybody's by then: it is named, until it is moved away.
func TestFilesElsewhereAndBack(t *testing.T) {
	b := newBench(t)
	s, a, other := b.src, t.TempDir(), t.TempDir()
	fill(s, 2)
	for _, name := range []string{"same.png", "newer.png"} {
		s.types[name] = "image/png"
		s.put(name, "first")
	}
	in := func(dir string) SyncReport {
		t.Helper()
		b.cfg.Files = dir
		rep, err := b.open().Sync(t.Context(), SyncOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	if rep := in(a); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	for _, dir := range []string{other, a} {
		if rep := in(dir); !rep.InSync || len(filesIn(t, dir)) != 2 {
			t.Fatalf("%+v %q", rep, filesIn(t, dir))
		}
	}
	in(other)
	s.put("newer.png", "second")
	if rep := in(other); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	rep := in(a)
	if rep.InSync || rep.Failed != 1 || !strings.Contains(rep.Problems[0].Reason, "set/r/newer.png is not written") || filesIn(t, a)["set/r/newer.png"] != "first" {
		t.Fatalf("%+v %q", rep, filesIn(t, a))
	}
	if err := os.Remove(filepath.Join(a, "set/r/newer.png")); err != nil {
		t.Fatal(err)
	}
	if rep := in(a); !rep.InSync || filesIn(t, a)["set/r/newer.png"] != "second" {
		t.Fatalf("%+v %q", rep, filesIn(t, a))
	}
	if rep, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || !rep.Equal {
		t.Fatalf("%+v %v", rep, err)
	}
}

// A resource whose own path is blocked by a folder or a file of somebody else is at a hashed path, and
// comes home: with the next version once the obstacle is gone, and by the repair that removes it. After
// a setting of files that went elsewhere and back no file is left at the hashed path.
func TestFilesComeHome(t *testing.T) {
	for _, beside := range []bool{false, true} {
		for _, obstacle := range []string{"folder", "file above"} {
			for _, end := range []string{"changed", "repair", "elsewhere and back"} {
				if end == "elsewhere and back" && !beside {
					continue // another folder is another mirror
				}
				what := fmt.Sprintf("beside %t, %s, %s", beside, obstacle, end)
				b := newBench(t)
				s, dir := b.src, t.TempDir()
				open := b.intoFolder(dir)
				if beside {
					open, b.cfg.Files = b.open, dir
				}
				fill(s, 2)
				s.types["d/x.png"] = "image/png"
				sync := func() {
					t.Helper()
					if rep, err := open().Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
						t.Fatalf("%s: %+v %v", what, rep, err)
					}
				}
				sync()
				foreign := map[string]string{"folder": "set/r/d/x.png/precious", "file above": "set/r/d"}[obstacle]
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(foreign)), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, foreign), "precious")
				s.put("d/x.png", "first")
				sync()
				if got := filesIn(t, dir); got["set/r/d/x.png"] != "" || got[foreign] != "precious" {
					t.Fatalf("%s: %q", what, got)
				}
				gone := func() {
					if err := os.RemoveAll(filepath.Join(dir, strings.TrimSuffix(foreign, "/precious"))); err != nil {
						t.Fatal(err)
					}
				}
				want := "first"
				switch end {
				case "changed":
					gone()
					want = "second"
					s.put("d/x.png", want)
				case "repair":
					if a, err := open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || !a.Equal {
						t.Fatalf("%s: %+v %v", what, a, err)
					}
				case "elsewhere and back":
					b.cfg.Files = t.TempDir()
					sync()
					gone()
					b.cfg.Files = dir
				}
				sync()
				got := filesIn(t, dir)
				hashed := 0
				for name := range got {
					if strings.HasPrefix(name, "%/") {
						hashed++
					}
				}
				if got["set/r/d/x.png"] != want || hashed > 0 {
					t.Errorf("%s: %q", what, got)
				}
				if a, err := open().Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal {
					t.Errorf("%s: %+v %v", what, a, err)
				}
			}
		}
	}
}
