// Package fileblob keeps objects as files of a folder.
package fileblob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/flock"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Store is a folder. Objects of at most 1 MiB have tags, the digests of their bytes: Swap takes no larger ones.
type Store struct{ dir string }

// New gives the store of a folder, made when something is written. The folder above it must be there.
func New(dir string) *Store { return &Store{dir} }

const (
	lockFile  = ".tmp-lock"
	unplaced  = ".tmp-*"
	taggedMax = 1 << 20 // bytes of an object with a tag
)

func (s *Store) path(name string) (string, error) {
	return filepath.Join(s.dir, filepath.FromSlash(name)), blob.Check(name)
}

// Create takes the file of an *os.File itself where the file system has hard links: nothing is copied.
func (s *Store) Create(ctx context.Context, name string, r io.ReadSeeker, size int64, _ blob.Meta) (err error) {
	path, err := s.path(name)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.make(path)
	}
	if err == nil {
		if f, ok := r.(*os.File); ok && s.adopt(f, path, size) {
			return s.sync(path)
		}
		_, err = r.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = s.place(ctx, path, r, size, func(temp string) error {
			err := os.Link(temp, path)
			switch {
			case errors.Is(err, fs.ErrExist):
				return blob.ErrExists
			case err == nil:
				return nil
			}
			return s.locked(func() error { // the file system has no hard links
				_, err := os.Lstat(path)
				switch {
				case err == nil:
					return blob.ErrExists
				case !ownfile.IsAbsent(err):
					return err
				}
				return os.Rename(temp, path)
			})
		})
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}

// adopt links a file into its place; false: copy it.
func (s *Store) adopt(f *os.File, path string, size int64) bool {
	info, err := f.Stat()
	return err == nil && info.Size() == size && f.Sync() == nil && os.Link(f.Name(), path) == nil
}

// Swap is guarded by a lock of the folder.
func (s *Store) Swap(ctx context.Context, name string, data []byte, old blob.Tag, _ blob.Meta) (blob.Tag, error) {
	path, err := s.path(name)
	if err == nil && len(data) > taggedMax {
		err = fmt.Errorf("%d bytes are too many for a pointer, at most %d", len(data), taggedMax)
	}
	if err == nil {
		err = s.make(path)
	}
	if err == nil {
		err = s.place(ctx, path, bytes.NewReader(data), int64(len(data)), func(temp string) error {
			return s.locked(func() error {
				now, err := tagOf(path)
				if err == nil && now != old {
					err = blob.ErrChanged
				}
				if err == nil {
					err = os.Rename(temp, path)
				}
				return err
			})
		})
	}
	if err != nil {
		return "", fmt.Errorf("replace %s: %w", path, err)
	}
	return tag(data), nil
}

func tag(data []byte) blob.Tag {
	sum := sha256.Sum256(data)
	return blob.Tag(hex.EncodeToString(sum[:16]))
}

// tagOf is the tag of a file: "" for none.
func tagOf(path string) (blob.Tag, error) {
	data, err := os.ReadFile(path)
	if ownfile.IsAbsent(err) {
		return "", nil
	}
	return tag(data), err
}

// make makes the folder of a file.
func (s *Store) make(path string) error {
	return ownfile.MkdirAll(filepath.Dir(path))
}

// place writes a file beside path, and lets put bring it there.
func (s *Store) place(ctx context.Context, path string, r io.Reader, size int64, put func(temp string) error) (err error) {
	f, err := ownfile.CreateTemp(filepath.Dir(path), unplaced)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if gone := os.Remove(f.Name()); err == nil && gone != nil && !ownfile.IsAbsent(gone) {
			err = gone
		}
	}()
	n, err := io.Copy(f, r)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes came, want %d", n, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), ctx.Err()); err != nil {
		return err
	}
	if err := put(f.Name()); err != nil {
		return err
	}
	return s.sync(path)
}

// locked calls f while no other process is in it.
func (s *Store) locked(f func() error) error {
	lock, err := ownfile.Create(filepath.Join(s.dir, lockFile))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := flock.Lock(lock); err != nil {
		return err
	}
	return f()
}

// sync makes the names from the folder down to a file durable.
func (s *Store) sync(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if err := ownfile.Sync(dir); err != nil {
			return err
		}
		if len(dir) <= len(s.dir) {
			return nil
		}
	}
}

// File opens a whole object.
func (s *Store) File(name string) (*os.File, blob.Info, error) {
	info := blob.Info{Name: name}
	path, err := s.path(name)
	if err != nil {
		return nil, info, err
	}
	f, err := os.Open(path)
	if ownfile.IsAbsent(err) {
		return nil, info, fmt.Errorf("open %s: %w", path, blob.ErrNotFound)
	}
	if err != nil {
		return nil, info, err
	}
	at, err := f.Stat()
	if err == nil && at.IsDir() {
		err = fmt.Errorf("open %s: %w", path, blob.ErrNotFound)
	}
	if err != nil {
		return nil, info, errors.Join(err, f.Close())
	}
	info.Size, info.Modified = at.Size(), at.ModTime()
	return f, info, nil
}

// Open gives the tag of a small object.
func (s *Store) Open(_ context.Context, name string, off, n int64) (io.ReadCloser, blob.Info, error) {
	f, info, err := s.File(name)
	if err != nil {
		return nil, info, err
	}
	if info.Size <= taggedMax {
		data := make([]byte, info.Size)
		if _, err = f.ReadAt(data, 0); err == nil || errors.Is(err, io.EOF) {
			info.Tag, err = tag(data), nil
		}
	}
	if err == nil && off > 0 {
		_, err = f.Seek(off, io.SeekStart)
	}
	if err != nil {
		return nil, info, errors.Join(err, f.Close())
	}
	if n < 0 {
		return f, info, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, n), f}, info, nil
}

// Delete removes the folders that it empties.
func (s *Store) Delete(_ context.Context, names ...string) error {
	var all error
	for _, name := range names {
		path, err := s.path(name)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !ownfile.IsAbsent(err) {
			all = errors.Join(all, err)
			continue
		}
		for dir := filepath.Dir(path); len(dir) > len(s.dir) && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
	}
	return all
}

// List gives no files that are being written.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) { s.list(ctx, "", prefix, after, yield) }
}

// list gives the files below a folder in the order of their whole names: "a/b" comes after "a-b".
func (s *Store) list(ctx context.Context, folder, prefix, after string, yield func(blob.Info, error) bool) bool {
	entries, err := os.ReadDir(filepath.Join(s.dir, filepath.FromSlash(folder)))
	if ownfile.IsAbsent(err) {
		return true
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		yield(blob.Info{}, err)
		return false
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := folder + e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		below := strings.HasSuffix(name, "/")
		switch {
		case strings.HasPrefix(strings.TrimPrefix(name, folder), ".tmp-"):
		case below:
			may := strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name)
			if may && (name > after || strings.HasPrefix(after, name)) && !s.list(ctx, name, prefix, after, yield) {
				return false
			}
		case strings.HasPrefix(name, prefix) && name > after:
			at, err := os.Stat(filepath.Join(s.dir, filepath.FromSlash(name)))
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				yield(blob.Info{}, err)
				return false
			}
			if !yield(blob.Info{Name: name, Size: at.Size(), Modified: at.ModTime()}, nil) {
				return false
			}
		}
	}
	return true
}

// Clean removes what a crash left of files that were being written to a folder. Nobody writes to it
// meanwhile.
func Clean(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ownfile.IsAbsent(err) {
			return nil
		}
		if err == nil && strings.HasPrefix(d.Name(), ".tmp-") && path != dir {
			err = os.Remove(path)
		}
		return err
	})
}
