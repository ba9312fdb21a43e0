package pebblekv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

const (
	formFile   = "RSBRIDGE"
	holderFile = "HOLDER"

	// form is the version of the folder's form, as written by this package.
	form = 1

	formRemedy = "write the line \"rsbridge state 1\" into the file " + formFile
)

// checkForm reads the version and changes nothing.
func checkForm(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, formFile))
	if errors.Is(err, fs.ErrNotExist) {
		entries, _ := os.ReadDir(dir) // of a missing or unreadable folder: told when it is opened
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "MANIFEST-") {
				return fmt.Errorf("there is a database without the file %s: not a state of rsbridge; choose another folder (if it is one, %s)", formFile, formRemedy)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "rsbridge state ")
	v, err := strconv.ParseUint(number, 10, 32)
	if !ok || err != nil || v == 0 {
		return guardfs.Mendable(fmt.Errorf("file %s holds %.40q", formFile, data), formRemedy)
	}
	if v > form {
		return fmt.Errorf("%w: file %s is of form %d, this program knows %d; update rsbridge, or, if no newer one was here, %s", ErrNewer, formFile, v, form, formRemedy)
	}
	return nil
}

func writeForm(dir string) error {
	name := filepath.Join(dir, formFile)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	return writeFile(name, fmt.Appendf(nil, "rsbridge state %d\n", form))
}

// writeFile replaces a file whole or not at all, durably.
func writeFile(name string, data []byte) error {
	err := ownfile.Replace(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return ownfile.Sync(filepath.Dir(name))
}

// holder is the content of the file HOLDER.
type holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	About string    `json:"about,omitempty"`
}

func writeHolder(dir, about string) error {
	data, err := json.Marshal(holder{os.Getpid(), time.Now().UTC().Truncate(time.Second), about})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, holderFile), append(data, '\n'), ownfile.FileMode)
}

// lockPoll is how often a locked folder is tried again.
const lockPoll = 50 * time.Millisecond

// acquire takes Pebble's own lock, waiting as long as the options say.
func acquire(ctx context.Context, dir string, o Options) (*pebble.Lock, error) {
	deadline := time.Now().Add(o.LockWait)
	for {
		lock, err := pebble.LockDirectory(dir, o.fs)
		if err == nil && !o.ReadOnly {
			err = os.Chmod(filepath.Join(dir, "LOCK"), ownfile.FileMode)
			if err != nil {
				return nil, errors.Join(err, lock.Close())
			}
		}
		if err == nil {
			return lock, nil
		}
		if !isLocked(err) {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if !time.Now().Before(deadline) {
			return nil, lockedError(dir)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), lockedError(dir))
		case <-time.After(min(lockPoll, time.Until(deadline))):
		}
	}
}

// isLocked tells a held lock from one that cannot be made. The system
// call's own error comes bare, an error of making the file with the path.
func isLocked(err error) bool {
	var path *fs.PathError
	if errors.As(err, &path) {
		return false
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "lock held by current process")
}

func lockedError(dir string) error {
	var h holder
	data, err := os.ReadFile(filepath.Join(dir, holderFile))
	if err != nil || json.Unmarshal(data, &h) != nil {
		return fmt.Errorf("%w, which is not known by name; stop it, or use another folder", ErrLocked)
	}
	who := fmt.Sprintf("process %d since %s", h.PID, h.Since.Format(time.RFC3339))
	if h.About != "" {
		who += ", " + h.About
	}
	if h.PID == os.Getpid() {
		who += " (this process)"
	}
	return fmt.Errorf("%w: %s; stop it, or use another folder", ErrLocked, who)
}
