// Package sharedfiles keeps the small files of a state folder as records too, for processes with folders of their own:
// keys, tokens, declarations, the note about the last backup.
//
// The records decide. A process writes them into its folder before it uses the files. The leader writes back what has
// changed in its folder. The log of actions and temporary files stay with each process.
package sharedfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Declared is the file with the declarations of the API.
const Declared = "declared.json"

// names are the files, below the folder.
var names = []string{Declared, "hub.key", "mirror.key", "backup.json", "access/key", "access/tokens.json", "access/left.json"}

// A record has the version of its form, and the bytes of the file.
const (
	prefix  = "file/"
	version = 1
)

// mostBytes is the longest file.
const mostBytes = 8 << 20

// Fetch writes the recorded files into a folder, and returns the names of those with other bytes before.
func Fetch(ctx context.Context, records kv.Reader, dir string) (changed []string, err error) {
	for pair, err := range records.Scan(ctx, []byte(prefix), kv.PrefixEnd([]byte(prefix))) {
		if err != nil {
			return changed, fmt.Errorf("read the shared files: %w", err)
		}
		name := strings.TrimPrefix(string(pair.Key), prefix)
		if !filepath.IsLocal(name) || len(pair.Value) == 0 || pair.Value[0] != version {
			return changed, fmt.Errorf("read the shared file %q: %w", name, kv.ErrNewer)
		}
		at, data := filepath.Join(dir, filepath.FromSlash(name)), pair.Value[1:]
		if now, err := os.ReadFile(at); err == nil && bytes.Equal(now, data) {
			continue
		}
		err = ownfile.MkdirAll(filepath.Dir(at))
		if err == nil {
			err = ownfile.Replace(at, func(w io.Writer) error { _, err := w.Write(data); return err })
		}
		if err == nil {
			err = ownfile.Sync(filepath.Dir(at))
		}
		if err != nil {
			return changed, fmt.Errorf("write the shared file %s: %w", at, err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// Keeper records the files of a leader's folder. Safe for concurrent use.
type Keeper struct {
	records kv.Store
	dir     string

	mu   sync.Mutex
	last map[string][]byte // as recorded
}

// NewKeeper is for a folder that has fetched the files.
func NewKeeper(records kv.Store, dir string) *Keeper {
	return &Keeper{records: records, dir: dir, last: map[string][]byte{}}
}

// Keep records the changed files, durably. A missing file stays recorded.
func (k *Keeper) Keep(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var faults []error
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(k.dir, filepath.FromSlash(name)))
		if ownfile.IsAbsent(err) || err == nil && bytes.Equal(data, k.last[name]) {
			continue
		}
		if err == nil {
			err = k.keep(ctx, name, data)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("record the shared file %s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

func (k *Keeper) keep(ctx context.Context, name string, data []byte) error {
	if len(data) > mostBytes {
		return fmt.Errorf("it has %d bytes, and %d may be recorded", len(data), mostBytes)
	}
	key, value := []byte(prefix+name), append([]byte{version}, data...)
	was, err := k.records.Get(ctx, key)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if !bytes.Equal(was, value) {
		b := k.records.Batch()
		defer b.Close()
		b.Set(key, value)
		if err := b.Commit(ctx, true); err != nil {
			return err
		}
	}
	k.last[name] = data
	return nil
}

// Drop removes the records of a state of one process: its folder decides.
func Drop(ctx context.Context, records kv.Store) error {
	for _, err := range records.Scan(ctx, []byte(prefix), kv.PrefixEnd([]byte(prefix))) {
		if err != nil {
			return err
		}
		b := records.Batch()
		defer b.Close()
		b.DeleteRange([]byte(prefix), kv.PrefixEnd([]byte(prefix)))
		return b.Commit(ctx, true)
	}
	return nil
}
