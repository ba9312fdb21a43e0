package bridge

import (
	"path/filepath"
	"strings"
	"testing"
)

// A folder of files is one destination's, and needs a store that has none.
func TestFoldersOfFiles(t *testing.T) {
	dir := t.TempDir()
	cfg := small(t.TempDir())
	folder := NewStore()
	folder.Files = filepath.Join(dir, "all")
	cfg.Stores["folder"] = folder
	for name, d := range map[string]Destination{
		"a": {Store: "data", Files: filepath.Join(dir, "x")},
		"b": {Store: "data", Files: filepath.Join(dir, "y", "..", "x")},
		"c": {Store: "folder", Files: filepath.Join(dir, "z")},
		"d": {Store: "data", Files: filepath.Join(dir, "all")},
	} {
		d.Source = "http://example.org/"
		cfg.Destinations[name] = d
	}
	for n := range cfg.Stores {
		for name, d := range cfg.Destinations {
			if d.Store == "data" && n != "folder" {
				d.Store = n
				cfg.Destinations[name] = d
			}
		}
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{"destinations.b.files", "destinations.c.files", "destinations.d.files"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "destinations.a.files") {
		t.Error(err)
	}
}
