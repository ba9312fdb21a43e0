// Package holder locks a state folder for one process, and tells others about its holder.
package holder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/flock"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// HeldError names the holder of a state folder.
type HeldError struct {
	Dir     string    `json:"dir"`
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Admin   string    `json:"admin"`            // its admin address, "" if it serves none
	Public  string    `json:"public,omitempty"` // address of its documents, told with Admin
	Since   time.Time `json:"since"`
}

func (e *HeldError) Error() string {
	who := fmt.Sprintf("process %d (%s, since %s)", e.PID, e.Command, e.Since.Local().Format(time.DateTime))
	if e.PID == 0 {
		who = "another process"
	}
	if e.Admin != "" {
		who += ", administered at " + e.Admin
		if !strings.Contains(e.Admin, "://") {
			who = strings.TrimSuffix(who, e.Admin) + "http://" + e.Admin
		}
	}
	return fmt.Sprintf("the state in %s is held by %s; use its API, stop it, or choose another state folder", e.Dir, who)
}

// Lock is the lock of a state folder: an flock, released by the kernel at any end of the
// process, and a note about the process.
type Lock struct {
	file *os.File
	dir  string
	note string
}

// Take takes a folder, made if it is missing, and writes a note about this process. It waits so long
// for another process; a holder with an admin address, a daemon, is not waited for. The error of a
// held folder is a *HeldError.
func Take(ctx context.Context, dir, command string, wait time.Duration) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, ownfile.Forbidden(fmt.Errorf("make the state folder: %w", err), os.Geteuid())
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Fault(err)
	}
	if err := lock(ctx, f, dir, wait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := Unfinished(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return tell(f, dir, command)
}

// tell notes this process. The note of a killed holder is stale.
func tell(f *os.File, dir, command string) (*Lock, error) {
	h := &Lock{file: f, dir: dir, note: filepath.Join(dir, noteFile)}
	return h, h.Tell(HeldError{PID: os.Getpid(), Command: command, Since: time.Now().UTC()})
}

// Look is Take for a reader: it makes nothing, and tells nobody. A folder without a lock gives
// fs.ErrNotExist.
func Look(ctx context.Context, dir string, wait time.Duration) (release func() error, err error) {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, Fault(err)
	}
	if err := lock(ctx, f, dir, wait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// lock takes the lock of a folder.
func lock(ctx context.Context, f *os.File, dir string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		taken, err := flock.Try(f)
		if taken {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock the state folder %s: %w", dir, err)
		}
		held := Read(dir)
		if held.Admin != "" {
			return held // a daemon: no use waiting
		}
		select {
		case <-ctx.Done():
			return held
		case <-tick.C:
		}
	}
}

// Read reads the note in a state folder.
func Read(dir string) *HeldError {
	held := new(HeldError)
	if raw, err := os.ReadFile(filepath.Join(dir, noteFile)); err == nil {
		_ = json.Unmarshal(raw, held) // a half-written note only makes the message shorter
	}
	held.Dir = dir
	return held
}

// Tell writes the note for others.
func (h *Lock) Tell(e HeldError) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	tmp := h.note + ".tmp"
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return ownfile.Forbidden(fmt.Errorf("write who holds the state: %w", err), os.Geteuid())
	}
	return os.Rename(tmp, h.note)
}

// Release ends the lock.
func (h *Lock) Release() error {
	_ = os.Remove(h.note) // others would only read a stale name
	return h.file.Close()
}

// Fault is why the lock of a state could not be opened.
func Fault(err error) error {
	return ownfile.Forbidden(fmt.Errorf("open the lock of the state folder: %w", err), os.Geteuid())
}
