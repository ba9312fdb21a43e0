package staticsite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// create makes a file and its folder.
func create(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return os.Create(name)
}

// place moves a finished file to its place: whole or not at all.
func place(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// digest gives the sha-256 and length of a file.
func digest(name string) (sum string, n int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if n, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// sparesOthers refuses a folder with files of somebody else: they would be replaced, or removed by
// sweep. A finished export left a Capability List, an unfinished one its stage.
func (s *site) sparesOthers() error {
	for _, ours := range []string{s.stage, filepath.Join(s.o.Dir, s.o.Set, capabilityList)} {
		if _, err := os.Lstat(ours); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	left, err := os.ReadDir(filepath.Join(s.o.Dir, s.o.Set))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("folder %s has files that no export wrote, as %s; nothing was changed: move them away, or choose another folder", filepath.Join(s.o.Dir, s.o.Set), left[0].Name())
	}
	if sets, err := fs.Glob(os.DirFS(s.o.Dir), "*/"+capabilityList); err != nil || len(sets) > 0 {
		return err // they share the files of all sets
	}
	for _, name := range append([]string{filepath.Join(".well-known", "resourcesync")}, sharedFiles...) {
		if _, err := os.Lstat(filepath.Join(s.o.Dir, name)); err == nil {
			return fmt.Errorf("no export wrote %s in %s; nothing was changed: move it away, or choose another folder", name, s.o.Dir)
		}
	}
	return nil
}

func (s *site) emptyStage() error {
	if err := os.RemoveAll(s.stage); err != nil {
		return err
	}
	return os.MkdirAll(s.stage, 0o755)
}

// sweep removes the set's files unknown to the source by now, and empty folders. It counts the
// others. Documents of this run stay; for other files it asks the source.
func (s *site) sweep(ctx context.Context) error {
	root := filepath.Join(s.o.Dir, s.o.Set)
	var folders []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			folders = append(folders, p)
			return ctx.Err()
		}
		rel, err := filepath.Rel(s.o.Dir, p)
		if err != nil {
			return err
		}
		address := s.base.JoinPath(strings.Split(filepath.ToSlash(rel), "/")...).String()
		if s.read[address] {
			return nil
		}
		res, err := s.ask(ctx, http.MethodHead, address)
		if err != nil {
			return err
		}
		if res != nil {
			s.rep.Resources++
			if filepath.Ext(p) == ".zip" {
				s.rep.Packages++
			}
			return res.Body.Close()
		}
		s.rep.Removed++
		return os.Remove(p)
	})
	if err != nil {
		return fmt.Errorf("remove what is no longer there: %w", err)
	}
	for i := len(folders) - 1; i >= 0; i-- {
		if err := os.Remove(folders[i]); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}
