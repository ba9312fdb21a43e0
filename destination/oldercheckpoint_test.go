package destination

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

// After the state or the checkpoint of a folder was restored, no run of Sync removes a file that the
// records do not know: not that of somebody else, and not one of a later write, since nothing tells
// them apart. An audit names them, and its repair removes them.
func TestOlderCheckpointOfFiles(t *testing.T) {
	for _, kind := range []string{"folder", "beside"} {
		for _, restored := range []string{"state", "checkpoint"} {
			t.Run(kind+" "+restored, func(t *testing.T) {
				b := newBench(t)
				s, dir := b.src, t.TempDir()
				mark, mine, later := filepath.Join(dir, filesink.StateFile), "mine/x.txt", "set/r/later.png"
				open := b.open
				if kind == "folder" {
					open = b.intoFolder(dir)
				} else {
					b.cfg.Files = dir
				}
				fill(s, 3)
				s.types["a.png"], s.types["later.png"] = "image/png", "image/png"
				s.put("a.png", "a")
				sync := func() SyncReport { t.Helper(); return inSync(t, open()) }
				sync()
				if err := os.Mkdir(filepath.Join(dir, "mine"), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, mine), "precious")
				state := b.backup()
				old, err := os.ReadFile(mark)
				if err != nil {
					t.Fatal(err)
				}
				s.put("later.png", "later")
				s.put("e1.nt", nt("e1", "later"))
				sync()
				s.remove("later.png")
				strays := 2
				if restored == "state" {
					b.restore(state)
				} else {
					strays = 1
					write(t, mark, string(old))
				}
				rep := sync()
				got := filesIn(t, dir)
				if _, stays := got[later]; got[mine] != "precious" || got["set/r/a.png"] != "a" || stays != (restored == "state") {
					t.Fatalf("%+v %q", rep, got)
				}
				if kind == "folder" || restored == "state" { // beside a store, the store's checkpoint tells
					if !strings.Contains(rep.Why, "restored from a backup") || !strings.Contains(rep.Why, "files without a resource stay") {
						t.Errorf("%s", rep.Why)
					}
				}
				a, err := open().Audit(t.Context(), AuditOptions{})
				if err != nil || a.Equal || a.Extra != int64(strays) || a.Missing+a.Different != 0 {
					t.Fatalf("%+v %v", a, err)
				}
				if rep, err := open().Sync(t.Context(), SyncOptions{}); err != nil || filesIn(t, dir)[mine] != "precious" {
					t.Fatalf("%+v %v", rep, err)
				}
				a, err = open().Audit(t.Context(), AuditOptions{Repair: true})
				if err != nil || !a.Equal || a.Repaired != int64(strays) {
					t.Fatalf("%+v %v", a, err)
				}
				if got := filesIn(t, dir); got[mine] != "" || got[later] != "" || got["set/r/a.png"] != "a" {
					t.Fatalf("%q", got)
				}
				if rep := sync(); strings.Contains(rep.Why, "compared") {
					t.Errorf("%s", rep.Why)
				}
			})
		}
	}
}
