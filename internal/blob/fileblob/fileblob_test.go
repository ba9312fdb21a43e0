package fileblob

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/blobtest"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t testing.TB) blob.Store { return New(filepath.Join(t.TempDir(), "published")) })
}

// TestFolder: what a crash left is not listed, and a folder without objects is removed.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	s := New(dir)
	if err := s.Create(t.Context(), "a/b/c", strings.NewReader("x"), 1, blob.Meta{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", ".tmp-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil || info.Name != "a/b/c" || info.Size != 1 {
			t.Error(info, err)
		}
	}
	if err := s.Delete(t.Context(), "a/b/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "b")); !os.IsNotExist(err) {
		t.Errorf("the empty folder is there: %v", err)
	}
}
