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
	at    atomic.Pointer[os.Root]
	marks marks.File
}

// Open keeps a mirror as files in a folder, and makes it if need be.
func Open(dir string) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	if err := os.MkdirAll(abs, 0o777); err != nil {
		return nil, fmt.Errorf("folder of a mirror: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("folder of a mirror: %w", err)
	}
	s := &Folder{path: abs, marks: marks.File(filepath.Join(abs, StateFile))}
	s.at.Store(root)
	return s, nil
}

func (s *Folder) root() *os.Root { return s.at.Load() }

// Again opens the folder that is there now: after it was removed or replaced, an open one still
// means that of before. A removed one is made again, if the folder above is there: without that
// its place is another's, as of a disk that is not mounted.
func (s *mirror) Again() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(s.path, 0o777); err != nil {
			return fmt.Errorf("folder of a mirror, which was removed: %w", err)
		}
		if s.Log != nil {
			s.Log.Warn("the folder of the files was removed, and is made again: its files are fetched again", "folder", s.path)
		}
	} else if err != nil {
		return fmt.Errorf("folder of a mirror: %w", err)
	} else if was, err := s.root().Stat("."); err == nil && os.SameFile(was, is) {
		return nil
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return fmt.Errorf("folder of a mirror: %w", err)
	}
	return s.at.Swap(root).Close()
}

// Name has the path.
func (s *Folder) Name() string { return "files:" + s.path }

// Address has it too.
func (s *Folder) Address() string {
	return (&url.URL{Scheme: "http", Host: "files.invalid", Path: filepath.ToSlash(s.path)}).String()
}

// Close closes the folder.
func (s *Folder) Close() error { return s.root().Close() }

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
