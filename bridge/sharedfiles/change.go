package sharedfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// ElsewhereError is about a change of files that the process with the state has to make.
type ElsewhereError struct{ Leader string }

func (e *ElsewhereError) Error() string {
	return "the files of the state are those of the leader, " + e.Leader
}

// Hint tells where the change can be made.
func (e *ElsewhereError) Hint() string { return "run the command on the machine of the leader" }

// recordWait is how long a leader has to record a change.
const recordWait = 15 * time.Second

// Change lets a command change files of the folder of a state. It returns after the change is recorded for other
// processes. While another folder's process leads, it gives an *ElsewhereError and changes nothing.
func Change(ctx context.Context, at records.Place, change func() error) (err error) {
	if at.Database == "" {
		return change()
	}
	lock, err := holder.Take(ctx, at.Folder, "rsbridge command", 0)
	var held *holder.HeldError
	if errors.As(err, &held) {
		return beside(ctx, at, held.PID, change)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	store, err := at.Open(ctx, kv.OpenOptions{})
	if errors.Is(err, kv.ErrLocked) {
		return elsewhere(ctx, at, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	own := kv.Prefix(store, spaces.Bridge)
	if _, err := Fetch(ctx, own, at.Folder); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return NewKeeper(own, at.Folder).Keep(ctx)
}

// elsewhere names the leader.
func elsewhere(ctx context.Context, at records.Place, locked error) error {
	w, err := at.Watch(ctx, kv.OpenOptions{})
	if err != nil {
		return errors.Join(locked, err)
	}
	defer w.Close()
	l, err := w.Leader(ctx)
	if err != nil {
		return errors.Join(locked, err)
	}
	return &ElsewhereError{l.Name}
}

// beside changes files of a process that leads, and waits until it has recorded them.
func beside(ctx context.Context, at records.Place, pid int, change func() error) error {
	w, err := at.Watch(ctx, kv.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return change() // it is opening the state for the first time
	}
	if err != nil {
		return err
	}
	defer w.Close()
	l, err := w.Leader(ctx)
	if err != nil {
		return err
	}
	if l.Name != records.ProcessName(pid) {
		return &ElsewhereError{l.Name}
	}
	if err := change(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recordWait)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if all, err := recorded(ctx, w, at.Folder); all || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("record the change for other processes: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// recorded tells whether all files are recorded as they are.
func recorded(ctx context.Context, w *records.Watch, dir string) (all bool, err error) {
	now, err := w.Now(ctx)
	if err != nil {
		return false, err
	}
	defer now.Close()
	own := kv.Prefix(now, spaces.Bridge)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		value, err := own.Get(ctx, []byte(prefix+name))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return false, err
		}
		if !bytes.Equal(value, append([]byte{version}, data...)) {
			return false, nil
		}
	}
	return true, nil
}
