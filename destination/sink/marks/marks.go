// Package marks keeps the checkpoints of mirrors in a file beside their data.
package marks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/rdfres"
)

// State is the content of the file.
type State struct {
	Version   int               `json:"version"`
	Authority string            `json:"authority,omitempty"` // of the skolem IRIs behind blank nodes of a dump
	Others    []string          `json:"others,omitempty"`    // those of further sources: their blank nodes are s1-…, s2-… and so on
	Graphs    map[string]string `json:"graphs"`              // checkpoints, N-Triples
	Wrote     []Written         `json:"wrote,omitempty"`     // the dump, as it was written; two while it is replaced
}

// Written tells the bytes of a file.
type Written struct {
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256"`
	Time   time.Time `json:"time,omitzero"` // of modification: with it and the size the bytes need not be read
}

// File is the path of one. Its users lock it.
type File string

// Read gives an empty state for no file. A damaged one counts as none: a mirror without its
// checkpoint is compared with the records, and the next write replaces the file.
func (f File) Read() (st State, err error) {
	if at, err := os.Stat(string(f)); err == nil && !at.Mode().IsRegular() {
		return st, &sink.NotFileError{Path: string(f), Folder: at.IsDir()}
	}
	raw, err := os.ReadFile(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return st, err
	}
	if err == nil {
		if err = json.Unmarshal(raw, &st); err == nil && st.Version > 1 {
			return st, fmt.Errorf("%s: version %d was written by a newer rsbridge", string(f), st.Version)
		}
		if err == nil {
			_, err = st.All()
		}
	}
	if err != nil || st.Version < 1 {
		st = State{Version: 1}
	}
	if st.Graphs == nil {
		st.Graphs = map[string]string{}
	}
	return st, nil
}

// Write replaces the file.
func (f File) Write(st State) error {
	raw, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	return Replace(string(f), func(w io.Writer) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	}, nil)
}

// Remove removes the file, if there is one.
func (f File) Remove() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func graphOf(mark string) string {
	return sink.StateGraph + ":" + strings.TrimPrefix(mark, sink.MarkPrefix)
}

// Set keeps a checkpoint.
func (st *State) Set(mark string, cp *sink.Checkpoint) {
	var text []byte
	for _, t := range cp.Triples(mark) {
		text = t.AppendLine(text)
	}
	st.Graphs[graphOf(mark)] = string(text)
}

// Drop forgets a checkpoint.
func (st *State) Drop(mark string) { delete(st.Graphs, graphOf(mark)) }

// Of is the checkpoint of a mark, nil for none.
func (st *State) Of(mark string) (*sink.Checkpoint, error) {
	all, err := st.All()
	return all[mark], err
}

// All are the checkpoints by mark.
func (st *State) All() (map[string]*sink.Checkpoint, error) {
	all := map[string]*sink.Checkpoint{}
	for graph, text := range st.Graphs {
		for line := range strings.Lines(text) {
			q, ok, err := rdfres.ParseLine([]byte(strings.TrimSpace(line)))
			if err != nil {
				return nil, fmt.Errorf("checkpoint %s: %w", graph, err)
			}
			name, known := strings.CutPrefix(q.P.IRI(), sink.PropPrefix)
			if !ok || !known || q.O.Kind() != rdfres.KindLiteral {
				continue
			}
			cp := all[q.S.IRI()]
			if cp == nil {
				cp = &sink.Checkpoint{}
				all[q.S.IRI()] = cp
			}
			lexical, _, _ := q.O.Literal()
			cp.Set(name, lexical)
		}
	}
	return all, nil
}

// Unfinished tells of a file under way, or left by a crash.
func Unfinished(name string) bool { return strings.HasPrefix(path.Base(name), ".rsbridge-") }

// Replace writes a file beside and puts it in place, durably. before is called with the finished file
// before it gets its name; it may be nil.
func Replace(name string, write func(io.Writer) error, before func(fs.FileInfo) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".rsbridge-*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if st, err := os.Stat(name); err == nil {
		mode = st.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if before != nil {
		st, err := os.Stat(f.Name())
		if err == nil {
			err = before(st)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return ownfile.Sync(filepath.Dir(name))
}
