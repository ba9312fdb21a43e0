package publish

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TestMissingFiles: a request that meets a missing or cut file tells it once, and the next run of
// any job that makes files makes it again.
func TestMissingFiles(t *testing.T) {
	var told []string
	w := newWorld(t, SetConfig{Format: rdfres.NTriples, PackageBytes: 4000, RotateEntries: 5, Archives: true, ScheduledList: true,
		Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"}})
	w.o.Missing = func(set string) { told = append(told, set) }
	w.reopen()
	w.rounds(3, 20)
	get := func(path string) int {
		rec := httptest.NewRecorder()
		w.pub.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/data/"+path, nil))
		return rec.Code
	}
	jobs := map[string]func() error{
		"Dump":          func() error { return w.pub.Dump(t.Context(), "data") },
		"DumpChanges":   func() error { return w.pub.DumpChanges(t.Context(), "data") },
		"ListResources": func() error { return w.pub.ListResources(t.Context(), "data") },
		"Archive":       func() error { return w.pub.Archive(t.Context(), "data") },
	}
	for name, make := range jobs {
		for _, way := range []string{"a package", "the list", "all", "cut", "a file"} {
			told = nil
			s := w.pub.lookup("data")
			asked := s.dump.Load().Packages[0].File
			switch way {
			case "a package":
				w.must(os.Remove(filepath.Join(w.o.Dir, "data", asked)))
			case "the list":
				doc := s.scheduled.Load().Documents[0]
				asked = doc.Name + ".xml"
				w.must(os.Remove(filepath.Join(w.o.Dir, "data", doc.Path())))
			case "all":
				w.must(os.RemoveAll(w.o.Dir))
			case "cut":
				w.must(os.Truncate(filepath.Join(w.o.Dir, "data", asked), 10))
			case "a file":
				w.must(os.RemoveAll(w.o.Dir))
				w.must(os.WriteFile(w.o.Dir, []byte("in the place of the folder"), 0o600))
			}
			for range 2 {
				if code := get(asked); code != http.StatusNotFound {
					t.Errorf("%s, %s: a missing file answers %d", name, way, code)
				}
			}
			if len(told) != 1 || told[0] != "data" || w.pub.Missing("data") == "" {
				t.Errorf("%s, %s: told %v, missing %q", name, way, told, w.pub.Missing("data"))
			}
			if way == "a file" {
				if err := make(); err == nil || !strings.Contains(err.Error(), "mkdir "+w.o.Dir+":") || !strings.Contains(err.Error(), "move it away") {
					t.Errorf("%s, %s: %v", name, way, err)
				}
				if w.pub.Missing("data") == "" {
					t.Errorf("%s, %s: nothing is missing after a run that failed", name, way)
				}
				w.must(os.Remove(w.o.Dir))
				for _, job := range jobs { // each was begun, and failed
					w.must(job())
				}
			}
			w.must(make())
			if file := w.pub.Missing("data"); file != "" {
				t.Errorf("%s, %s: %s is still missing", name, way, file)
			}
			w.checkDump()
			w.checkChangeDump()
			if code := get(w.pub.lookup("data").scheduled.Load().Documents[0].Name + ".xml"); code != http.StatusOK {
				t.Errorf("%s, %s: the Resource List answers %d", name, way, code)
			}
		}
	}
	told = nil
	if code := get("resourcedump/1/1.zip"); code != http.StatusGone && code != http.StatusNotFound || len(told) > 0 {
		t.Errorf("an address of no package: %d, told %v", code, told)
	}
}
