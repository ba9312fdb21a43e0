package destination

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

// A mirror in files without its checkpoint, or with a damaged one, is compared with the records
// and goes on. What nobody owns there stays until an audit is to repair.
func TestLostCheckpointOfFiles(t *testing.T) {
	for _, kind := range []string{"folder", "beside", "dump"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			s, dir := b.src, t.TempDir()
			state, mine := filepath.Join(dir, filesink.StateFile), filepath.Join(dir, "mine.txt")
			open := b.open
			switch kind {
			case "folder":
				open = b.intoFolder(dir)
			case "beside":
				b.cfg.Files = dir
			case "dump":
				file := filepath.Join(dir, "a.nt")
				dump, err := dumpsink.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				state, mine = file+".rsbridge", file
				open = func() *Destination { return b.openSink(dump) }
			}
			fill(s, 3)
			s.put("blank.nt", "<http://ex.org/b> <http://ex.org/p> _:x .\n_:x <http://ex.org/q> \"1\" .\n")
			s.types["a.png"], s.types["b.png"] = "image/png", "image/png"
			s.put("a.png", "a")
			s.put("b.png", "b")
			sync := func() SyncReport { t.Helper(); return inSync(t, open()) }
			audit := func(o AuditOptions) keep.AuditReport {
				t.Helper()
				rep, err := open().Audit(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return rep
			}
			sync()
			whole, err := os.ReadFile(state)
			if err != nil {
				t.Fatal(err)
			}
			for _, damaged := range []string{"lost", "", string(whole[:len(whole)/3])} {
				if err := os.WriteFile(state, []byte(damaged), 0o600); err != nil {
					t.Fatal(err)
				}
				if damaged == "lost" {
					os.Remove(state)
				}
				if kind != "dump" {
					write(t, mine, "precious")
					write(t, filepath.Join(dir, "set/r/b.png"), "damaged")
				}
				rep := sync()
				if !strings.Contains(rep.Why, "has lost its checkpoint: everything in the mirror is compared") {
					t.Fatalf("%.10q: %s", damaged, rep.Why)
				}
				if kind != "dump" {
					if got := filesIn(t, dir); rep.Updated != 1 || !strings.Contains(rep.Why, "files without a resource stay, 1: audit names them") || got["mine.txt"] != "precious" || got["set/r/a.png"] != "a" || got["set/r/b.png"] != "b" {
						t.Fatalf("%.10q: %+v %q", damaged, rep, got)
					}
					if a := audit(AuditOptions{}); a.Equal || a.Extra != 1 || a.Missing+a.Different != 0 {
						t.Fatalf("%.10q: %+v", damaged, a)
					}
					if a := audit(AuditOptions{Repair: true}); !a.Equal || a.Repaired != 1 {
						t.Fatalf("%.10q: %+v", damaged, a)
					}
				}
				if rep := sync(); strings.Contains(rep.Why, "checkpoint") {
					t.Fatalf("%.10q: %s", damaged, rep.Why)
				}
				if a := audit(AuditOptions{}); !a.Equal {
					t.Fatalf("%.10q: %+v", damaged, a)
				}
			}

			// Without the checkpoint and the data it is another place: neither run touches it.
			if kind == "dump" {
				os.Remove(state)
			} else if err := os.RemoveAll(filepath.Join(dir, "set")); err != nil || os.Remove(state) != nil {
				t.Fatal(err)
			}
			write(t, mine, "<http://ex.org/mine> <http://ex.org/p> \"precious\" .\n")
			for range 2 {
				_, err := open().Sync(t.Context(), SyncOptions{})
				_, aerr := open().Audit(t.Context(), AuditOptions{Repair: true})
				for _, err := range []error{err, aerr} {
					if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "already holds something that rsbridge did not write") || !strings.Contains(err.Error(), "adopt: true") {
						t.Fatal(err)
					}
				}
			}
			if raw, err := os.ReadFile(mine); err != nil || !strings.Contains(string(raw), "precious") {
				t.Fatalf("%q %v", raw, err)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inSync is a sync that ends so.
func inSync(t *testing.T, d *Destination) SyncReport {
	t.Helper()
	rep, err := d.Sync(t.Context(), SyncOptions{})
	if err != nil || !rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	return rep
}
