// Package filesink keeps a mirror of representations, as they are, in a folder.
package filesink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/marks"
)

// StateFile is beside the representations.
const StateFile = ".rsbridge.json"

// Folder is the sink. It is for one mirror, since each resource has one file. Each file has
// the verified bytes of its representation.
type Folder struct {
	mu    sync.Mutex // of marks
	path  string
	at    atomic.Pointer[os.Root] // nil: not opened yet
	marks marks.File
}

// Open keeps a mirror as files in a folder. Nothing is asked and nothing made before the first run.
func Open(dir string) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	return &Folder{path: abs, marks: marks.File(filepath.Join(abs, StateFile))}, nil
}

// root is the folder, opened at its first use. A reader never makes it.
func (s *Folder) root() (*os.Root, error) {
	if at := s.at.Load(); at != nil {
		return at, nil
	}
	at, err := os.OpenRoot(s.path)
	if err == nil && !s.at.CompareAndSwap(nil, at) {
		return s.at.Load(), at.Close()
	}
	return at, err
}

// lstat is Lstat of a file, fs.ErrNotExist also without the folder.
func (s *Folder) lstat(name string) (fs.FileInfo, error) {
	root, err := s.root()
	if err != nil {
		return nil, err
	}
	return root.Lstat(name)
}

// Again opens the folder that is there now: after it was removed or replaced, an open one still
// means that of before.
func (s *mirror) Again(first, dry bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, err := os.Stat(s.path)
	was := s.at.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.make(first, dry); err != nil {
			return err
		}
		if dry { // the open one has gone elsewhere
			if was = s.at.Swap(nil); was != nil {
				return was.Close()
			}
			return nil
		}
	case err != nil:
		return fmt.Errorf("folder of a mirror: %w", err)
	case !is.IsDir():
		return &sink.NotFileError{Path: s.path, Wanted: true}
	case was != nil:
		if open, err := was.Stat("."); err == nil && os.SameFile(open, is) {
			return nil
		}
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return fmt.Errorf("folder of a mirror: %w", err)
	}
	if was = s.at.Swap(root); was != nil {
		return was.Close()
	}
	return nil
}

// make makes the folder. One of before had a folder above it: without that its place is another's,
// as of a disk that is not mounted.
func (s *mirror) make(first, dry bool) error {
	above := filepath.Dir(s.path)
	if _, err := os.Stat(above); !first && errors.Is(err, fs.ErrNotExist) {
		return &sink.NoPlaceError{Folder: s.path, Above: above}
	}
	if dry {
		return nil
	}
	if err := os.MkdirAll(s.path, 0o777); err != nil {
		return fmt.Errorf("folder of a mirror: %w", err)
	}
	if !first && s.Log != nil {
		s.Log.Warn("the folder of the files was removed, and is made again: its files are fetched again", "folder", s.path)
	}
	return nil
}

// Name has the path.
func (s *Folder) Name() string { return "files:" + s.path }

// Address has it too.
func (s *Folder) Address() string {
	return (&url.URL{Scheme: "http", Host: "files.invalid", Path: filepath.ToSlash(s.path)}).String()
}

// Close closes the folder.
func (s *Folder) Close() error {
	if at := s.at.Load(); at != nil {
		return at.Close()
	}
	return nil
}

// Open gives the mirror.
func (s *Folder) Open(p *sink.Place) (sink.Mirror, error) {
	if p.Layout.PerEntity {
		return nil, errors.New("graph: per-entity is for stores; a mirror in files has no graphs")
	}
	return &mirror{s, p}, nil
}

type mirror struct {
	*Folder
	*sink.Place
}

var _ interface {
	sink.Mirror
	sink.Marked
	sink.Files
} = (*mirror)(nil)

// Apply keeps the checkpoint: the representations are written before.
func (m *mirror) Apply(_ context.Context, _ *sink.Batch, cp *sink.Checkpoint) error {
	if cp == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	st, err := m.marks.Read()
	if err != nil {
		return err
	}
	st.Set(m.Mark, cp)
	return m.marks.Write(st)
}

func (m *mirror) Checkpoint(context.Context) (*sink.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st, err := m.marks.Read()
	if err != nil {
		return nil, err
	}
	return st.Of(m.Mark)
}

func (m *mirror) Others(context.Context, string) (map[string]*sink.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	st, err := m.marks.Read()
	if err != nil {
		return nil, err
	}
	all, err := st.All()
	delete(all, m.Mark)
	return all, err
}

func (m *mirror) IsEmpty(context.Context, iter.Seq[string]) (bool, error) {
	list, err := os.ReadDir(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	for _, e := range list {
		if e.Name() != StateFile && !marks.Unfinished(e.Name()) {
			return false, err
		}
	}
	return true, err
}

func (m *mirror) Lines(ctx context.Context) (int64, error) {
	cp, err := m.Checkpoint(ctx)
	if cp == nil {
		return 0, err
	}
	return int64(len(cp.Triples(m.Mark))), err
}

// Forget removes the state file with the last checkpoint.
func (m *mirror) Forget(context.Context, bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	st, err := m.marks.Read()
	if err != nil {
		return err
	}
	if st.Drop(m.Mark); len(st.Graphs) > 0 {
		return m.marks.Write(st)
	}
	return m.marks.Remove()
}
