package embedstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// A folder that goes away under an open store is told by everything that uses it,
// and is not made again.
func TestFolderRemoved(t *testing.T) {
	for _, how := range []string{"removed", "replaced", "moved"} {
		t.Run(how, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := context.Background()
			const insert = `INSERT DATA { <http://example.org/a> <http://example.org/p> 1 }`
			if err := errors.Join(s.Update(ctx, insert), s.Check()); err != nil {
				t.Fatal(err)
			}
			if how == "removed" {
				err = os.RemoveAll(dir)
			} else {
				err = os.Rename(dir, dir+".away")
			}
			if err != nil {
				t.Fatal(err)
			}
			if how == "replaced" {
				err := os.Mkdir(dir, 0o755)
				if err == nil { // as another process would
					err = os.WriteFile(filepath.Join(dir, lockFile), nil, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			_, lerr := s.Load(ctx, "", rdfres.NTriples, strings.NewReader("<http://example.org/b> <http://example.org/p> \"b\" .\n"), LoadOptions{})
			_, serr := s.Stats()
			for what, err := range map[string]error{"update": s.Update(ctx, insert), "load": lerr, "stats": serr, "check": s.Check()} {
				if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), dir) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := os.Stat(dir); how != "replaced" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder is there again: %v", err)
			}
			if how == "moved" { // and back
				if err := os.Rename(dir+".away", dir); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(s.Update(ctx, insert), s.Check()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
