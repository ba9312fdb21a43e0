package publish

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestVerify damages each published file, one at a time, and Verify notices it: what is
// offered then is right, and a second Verify finds nothing. A file of another size is
// noticed when the publisher opens.
func TestVerify(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PackageBytes: 4000, RotateEntries: 5, Archives: true, ScheduledList: true,
		Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	w.rounds(4, 40)
	dir := filepath.Join(w.o.Dir, "data")
	kinds := map[string]string{} // one file of each kind
	files := 0
	w.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files++
			rel, _ := filepath.Rel(dir, path)
			kinds[strings.SplitN(rel, "/", 2)[0]+path[strings.LastIndexAny(path, "-."):]] = rel
		}
		return err
	}))
	if n, faults, err := w.pub.Verify(t.Context(), "data"); err != nil || len(faults) > 0 || n != files {
		t.Fatalf("Verify = %d of %d files, %v, %v", n, files, faults, err)
	}
	if len(kinds) < 5 {
		t.Fatalf("files of %v only", kinds)
	}
	dumps := func() int {
		w.checkDump()
		return w.checkChangeDump()
	}
	want := dumps()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, way := range []string{"flip", "cut", "gone"} {
			var victim string // as it is called now
			w.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				rel, _ := filepath.Rel(dir, path)
				if err == nil && !e.IsDir() && strings.SplitN(rel, "/", 2)[0]+path[strings.LastIndexAny(path, "-."):] == kind {
					victim = rel
				}
				return err
			}))
			if victim == "" {
				if strings.HasPrefix(kind, "archives") { // forgotten
					continue
				}
				t.Fatalf("no file of the kind %s is left", kind)
			}
			path := filepath.Join(dir, victim)
			data, err := os.ReadFile(path)
			w.must(err)
			switch way {
			case "flip":
				data[len(data)/2] ^= 4
				w.must(os.WriteFile(path, data, 0o600))
			case "cut":
				w.must(os.WriteFile(path, data[:len(data)-1], 0o600))
				if strings.HasSuffix(victim, ".zip") {
					if res := w.get(w.url(victim)); res.Code != 404 {
						t.Errorf("%s was cut, and is served: %d", victim, res.Code)
					}
				}
			case "gone":
				w.must(os.Remove(path))
			}
			if way == "cut" { // as at a start
				w.reopen()
				if !w.pub.Lost("data") && !strings.HasPrefix(kind, "archives") {
					t.Errorf("%s was cut, and nothing is said of it", victim)
				}
				w.must(w.pub.Dump(t.Context(), "data"))
				w.must(w.pub.ListResources(t.Context(), "data"))
			} else {
				_, faults, err := w.pub.Verify(t.Context(), "data")
				w.must(err)
				if !slices.ContainsFunc(faults, func(f FileFault) bool { return f.File == victim }) {
					t.Errorf("%s of %s is not noticed: %v", way, victim, faults)
				}
			}
			if _, faults, err := w.pub.Verify(t.Context(), "data"); err != nil || len(faults) > 0 {
				t.Errorf("after %s of %s: %v, %v", way, victim, faults, err)
			}
			w.bytes = map[string]string{}
			if got := dumps(); got != want {
				t.Errorf("after %s of %s: the Change Dump has %d changes, want %d", way, victim, got, want)
			}
			if !w.pub.HasResourceList("data") {
				t.Errorf("after %s of %s: no Resource List", way, victim)
			}
		}
	}
	w.archives(resourcesync.ResourceDump)
}
