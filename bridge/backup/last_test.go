package backup

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLast: a state knows when it was last backed up; a damaged record is an error, not a backup.
func TestLast(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if l, err := LastOf(dir); l != nil || err != nil {
		t.Errorf("without a backup: %v, %v", l, err)
	}
	if err := Note(Source{Dir: dir, Program: "rsbridge", Now: at}); err != nil {
		t.Fatal(err)
	}
	if l, err := LastOf(dir); err != nil || !l.At.Equal(at) || l.Program != "rsbridge" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, text := range []string{"{", `{"version":2}`} {
		if err := os.WriteFile(filepath.Join(dir, "backup.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := LastOf(dir); l != nil || err == nil {
			t.Errorf("%s: %+v, %v", text, l, err)
		}
	}
}
