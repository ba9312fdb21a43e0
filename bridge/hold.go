package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

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
		who += ", administered at http://" + e.Admin
	}
	return fmt.Sprintf("the state in %s is held by %s; use its API, stop it, or choose another state folder", e.Dir, who)
}

// holder is the lock of a state folder: an flock, released by the kernel at any end of the
// process, and a note about the process.
type holder struct {
	file *os.File
	note string
}

func hold(ctx context.Context, dir string, o Options) (*holder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, ownfile.Forbidden(fmt.Errorf("make the state folder: %w", err), os.Geteuid())
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, lockFault(err)
	}
	wait := o.Wait
	if wait == 0 {
		wait = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	note := filepath.Join(dir, "holder.json")
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock the state folder %s: %w", dir, err)
		}
		held := readHolder(dir)
		if held.Admin != "" {
			f.Close()
			return nil, held // a daemon: no use waiting
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, held
		case <-tick.C:
		}
	}
	// The note of a killed holder is stale now.
	h := &holder{file: f, note: note}
	return h, h.tell(HeldError{PID: os.Getpid(), Command: o.Command, Since: time.Now().UTC()})
}

// readHolder reads the note in a state folder.
func readHolder(dir string) *HeldError {
	held := new(HeldError)
	if raw, err := os.ReadFile(filepath.Join(dir, "holder.json")); err == nil {
		_ = json.Unmarshal(raw, held) // a half-written note only makes the message shorter
	}
	held.Dir = dir
	return held
}

// tell writes the note for others.
func (h *holder) tell(e HeldError) error {
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

func (h *holder) release() error {
	_ = os.Remove(h.note) // others would only read a stale name
	return h.file.Close()
}

// TellAdmin notes the address of the admin API, for commands on the held state. Call it once
// the listener is open.
func (b *Bridge) TellAdmin(addr, command string) error {
	h := HeldError{PID: os.Getpid(), Command: command, Admin: addr, Since: time.Now().UTC()}
	if addr != "" {
		h.Public = b.cfg.Public.Listen
	}
	return b.holder.tell(h)
}

// lockFault is why the lock of a state could not be opened.
func lockFault(err error) error {
	return ownfile.Forbidden(fmt.Errorf("open the lock of the state folder: %w", err), os.Geteuid())
}
