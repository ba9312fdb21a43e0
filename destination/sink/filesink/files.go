package filesink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/marks"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Find gives the path of a recorded address, "" for none.
func (m *mirror) Find(ctx context.Context, names sink.Names, loc string) (string, error) {
	for _, name := range pathsOf(m.Source, loc) {
		if own, _, err := names.Owner(ctx, name, loc); err != nil || own {
			return name, err
		}
	}
	return "", nil
}

// InTheWay looks at the path of an address without a recorded one.
func (m *mirror) InTheWay(ctx context.Context, names sink.Names, loc string, body []byte) error {
	for _, name := range pathsOf(m.Source, loc)[:2] {
		st, err := m.lstat(name)
		if err == nil && st.IsDir() || errors.Is(err, syscall.ENOTDIR) {
			continue // Put goes on to the hashed path
		}
		if err != nil { // the usual case, at the cost of one look
			return nil
		}
		if own, err := m.Find(ctx, names, loc); err != nil || own != "" {
			return err
		}
		if _, taken, err := names.Owner(ctx, name, loc); err != nil {
			return err
		} else if taken {
			continue
		}
		if body != nil && st.Mode().IsRegular() && st.Size() == int64(len(body)) { // else opening it may wait
			if sum, err := m.Digest(name); err == nil && sum == rdfres.Digest(sha256.Sum256(body)) {
				return nil
			}
		}
		return &sink.ForeignFileError{Folder: m.path, Path: name}
	}
	return nil
}

// Digest is the SHA-256 of a file.
func (m *mirror) Digest(name string) (sum rdfres.Digest, err error) {
	root, err := m.root()
	if err != nil {
		return sum, err
	}
	f, err := root.Open(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// Remove removes a file, and folders without any.
func (m *mirror) Remove(name string) error {
	root, err := m.root()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !ownfile.IsAbsent(err) {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := root.Lstat(dir); err == nil && !st.IsDir() { // a file has taken its place
			break
		}
		if root.Remove(dir) != nil {
			break
		}
	}
	return nil
}

// All gives the paths of all files, without the bookkeeping.
func (m *mirror) All(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		root, err := m.root()
		if errors.Is(err, fs.ErrNotExist) {
			return
		} else if err != nil {
			yield("", err)
			return
		}
		err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case e.IsDir(), name == StateFile, marks.Unfinished(name):
				return nil
			case !yield(name, nil):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield("", err)
		}
	}
}

// Displaced tells of a hashed path.
func (m *mirror) Displaced(name string) bool { return strings.HasPrefix(name, hashedFolder) }

// blocked tells of a path unfit for a file here: it is a folder, or a part of it is a file.
func (m *mirror) blocked(name string) bool {
	if st, err := m.lstat(name); err == nil {
		return st.IsDir()
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := m.lstat(dir); err == nil {
			return !st.IsDir()
		}
	}
	return false
}

// manyFiles are durable sooner all at once than one by one.
const manyFiles = 64

// Begin starts a write of n representations.
func (m *mirror) Begin(names sink.Names, n int) sink.FileBatch {
	return &batch{mirror: m, names: names, later: flushesAll && n >= manyFiles}
}

// batch keeps the folder of its last file open, since most files have neighbours.
type batch struct {
	*mirror
	names   sink.Names
	later   bool // new files are made durable at the end, all at once
	written bool

	dir string
	at  *os.Root // dir, nil: none is open
}

// Put writes to the recorded path of an address, else to its own path, else to the hashed
// one. A file at its hashed path goes back to its own as soon as nothing is in the way there.
func (b *batch) Put(ctx context.Context, loc string, body []byte, fresh bool) error {
	paths := pathsOf(b.Source, loc)
	for i, name := range paths {
		if fresh {
			break
		}
		own, _, err := b.names.Owner(ctx, name, loc)
		if err != nil {
			return err
		}
		if !own {
			continue
		}
		if i == 1 {
			if home, err := b.home(ctx, paths, loc, body); home || err != nil {
				return err
			}
		}
		err = b.put(name, body, false)
		if err != nil && i != 1 && !errors.Is(err, fs.ErrPermission) && b.blocked(name) { // its file is gone, and another is in the way
			b.names.Free(name)
			continue
		}
		return err
	}
	for i, name := range paths[:2] {
		if _, taken, err := b.names.Owner(ctx, name, loc); err != nil {
			return err
		} else if taken {
			continue
		}
		err := b.put(name, body, true)
		if err != nil && i == 0 && !errors.Is(err, fs.ErrPermission) && b.blocked(name) {
			continue
		}
		if err == nil {
			b.names.Take(name, loc)
		}
		if err == nil && i == 0 && name != paths[1] {
			err = b.leave(ctx, paths[1], loc)
		}
		return err
	}
	return fmt.Errorf("no path is free for %s", clip.Middle(loc))
}

// home writes the file of a hashed path to the address's own path, if nothing is in the way there.
func (b *batch) home(ctx context.Context, paths []string, loc string, body []byte) (bool, error) {
	own := paths[0]
	if _, taken, err := b.names.Owner(ctx, own, loc); err != nil || taken || b.blocked(own) {
		return false, err
	}
	if _, err := b.lstat(own); err == nil { // an interrupted batch may have left it
		if sum, err := b.Digest(own); err != nil || sum != rdfres.Digest(sha256.Sum256(body)) {
			return false, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := b.put(own, body, true); err != nil {
		return false, err
	}
	b.names.Take(own, loc)
	b.names.Free(paths[1])
	return true, b.mirror.Remove(paths[1])
}

// leave removes the file that an address had at its hashed path, and that the records do not know
// any more: of a folder that was kept before.
func (b *batch) leave(ctx context.Context, hashed, loc string) error {
	if st, err := b.lstat(hashed); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if _, taken, err := b.names.Owner(ctx, hashed, loc); err != nil || taken {
		return err
	}
	return b.mirror.Remove(hashed)
}

// Home is for a repair: it moves a file from its hashed path to its own.
func (b *batch) Home(ctx context.Context, loc string) error {
	paths := pathsOf(b.Source, loc)
	own, _, err := b.names.Owner(ctx, paths[1], loc)
	if err != nil || !own || paths[0] == paths[1] {
		return err
	}
	root, err := b.root()
	if err != nil {
		return err
	}
	body, err := root.ReadFile(paths[1])
	if errors.Is(err, fs.ErrNotExist) { // told apart
		return nil
	}
	if err == nil {
		_, err = b.home(ctx, paths, loc, body)
	}
	return err
}

// Remove removes the file of an address, if it has one.
func (b *batch) Remove(ctx context.Context, loc string) (bool, error) {
	name, err := b.Find(ctx, b.names, loc)
	if err != nil || name == "" {
		return false, err
	}
	b.Close() // the folder may go too
	if err := b.mirror.Remove(name); err != nil {
		return false, err
	}
	b.names.Free(name)
	return true, nil
}

// Clear is Remove, also of a file without a recorded path.
func (b *batch) Clear(ctx context.Context, loc string) error {
	if done, err := b.Remove(ctx, loc); done || err != nil {
		return err
	}
	for _, name := range pathsOf(b.Source, loc)[:2] {
		if _, taken, err := b.names.Owner(ctx, name, loc); err != nil {
			return err
		} else if taken {
			continue
		}
		if st, err := b.lstat(name); err == nil && st.Mode().IsRegular() {
			if err := b.mirror.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// folder opens the folder of a file, and makes it if need be.
func (b *batch) folder(dir string) (*os.Root, error) {
	if b.at != nil && b.dir == dir {
		return b.at, nil
	}
	b.Close()
	root, err := b.root()
	if err == nil {
		err = root.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return nil, err
	}
	at, err := root.OpenRoot(dir)
	if err == nil {
		b.at, b.dir = at, dir
	}
	return at, err
}

// Close closes the open folder.
func (b *batch) Close() {
	if b.at != nil {
		b.at.Close()
		b.at = nil
	}
}

// put replaces a file by renaming: a reader sees one body or the other.
func (b *batch) put(name string, body []byte, fresh bool) error {
	at, err := b.folder(path.Dir(name))
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	of := sha256.Sum256([]byte(name))
	base, part := path.Base(name), ".rsbridge-"+hex.EncodeToString(of[:16])+".part"
	f, err := at.Create(part)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(body)
	if err == nil && !(b.later && fresh) {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = at.Rename(part, base)
	}
	if err != nil {
		at.Remove(part)
		return fmt.Errorf("write %s: %w", name, err)
	}
	b.written = true
	return nil
}

// Flush makes the written files durable.
func (b *batch) Flush() error {
	b.Close()
	if !b.later || !b.written {
		return nil
	}
	root, err := b.root()
	if err != nil {
		return err
	}
	return flushAll(root)
}
