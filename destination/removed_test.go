package destination

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

// TestFolderIsRemoved: the folder of a mirror, or of the files beside a store, is removed or
// replaced while the destination runs. It is made again, and the next run fills it.
func TestFolderIsRemoved(t *testing.T) {
	for _, beside := range []bool{false, true} {
		b := newBench(t)
		fill(b.src, 2)
		b.src.types["x.png"] = "image/png"
		b.src.put("x.png", "png")
		dir := filepath.Join(t.TempDir(), "files")
		var d *Destination
		if beside {
			b.cfg.Files = dir
			d = b.open()
		} else {
			b.cfg.GraphIRI = ""
			folder, err := filesink.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			d = b.openSink(folder)
		}
		sync := func(what string) SyncReport {
			rep, err := d.Sync(t.Context(), SyncOptions{})
			if err != nil || !rep.InSync {
				t.Fatalf("beside %v, %s: %+v %v", beside, what, rep, err)
			}
			return rep
		}
		sync("at first")
		want := fmt.Sprint(filesIn(t, dir))
		if !strings.Contains(want, "x.png") {
			t.Fatal(want)
		}
		for _, what := range []string{"removed", "replaced", "removed before an audit"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			switch what {
			case "replaced":
				if err := os.Mkdir(dir, 0o777); err != nil {
					t.Fatal(err)
				}
			case "removed before an audit":
				if a, err := d.Audit(context.Background(), AuditOptions{}); err != nil || a.Equal || a.Missing == 0 {
					t.Errorf("beside %v: %+v %v", beside, a, err)
				}
			}
			sync(what)
			if got := fmt.Sprint(filesIn(t, dir)); got != want {
				t.Errorf("beside %v, %s: %s, want %s", beside, what, got, want)
			}
			if a, err := d.Audit(context.Background(), AuditOptions{}); err != nil || !a.Equal {
				t.Errorf("beside %v, %s: %+v %v", beside, what, a, err)
			}
		}
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), " of the mirror is gone, and so is ") {
			t.Errorf("beside %v: the folder above is not there, and the run says %v", beside, err)
		}
	}
}
