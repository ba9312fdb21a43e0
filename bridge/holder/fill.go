package holder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// Files of a state folder.
const (
	lockFile = "lock"
	noteFile = "holder.json"
	// unfinishedFile is there from the first to the last step of a restore.
	unfinishedFile = "RESTORING"
)

// ErrUnfinished comes for a state whose restore has not ended.
var ErrUnfinished = errors.New("a restore into it has not ended")

// Unfinished tells why a folder is no whole state: its restore was cut off.
func Unfinished(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, unfinishedFile)); err != nil {
		return nil
	}
	return fmt.Errorf("state folder %s: %w: run the restore again, or empty the folder", dir, ErrUnfinished)
}

// TakeNew takes a folder to fill it: a missing or empty one, or one left by a killed process that filled it. Then
// what is in it is removed. Until Filled nobody else takes it.
func TakeNew(ctx context.Context, dir, command string) (*Lock, error) {
	if err := Vacant(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, ownfile.FolderMode); err != nil {
		return nil, ownfile.Forbidden(fmt.Errorf("make the state folder: %w", err), os.Geteuid())
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, ownfile.FileMode)
	if err != nil {
		return nil, Fault(err)
	}
	if err = lock(ctx, f, dir, 0); err == nil {
		err = Vacant(dir) // again: now nobody else can fill it
	}
	if err == nil {
		err = empty(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return tell(f, dir, command)
}

// Vacant refuses a folder with anything of another.
func Vacant(dir string) error {
	if Unfinished(dir) != nil {
		return nil
	}
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		if !keptEmpty(f.Name()) {
			return fmt.Errorf("the state folder %s is not empty, it holds %s: restore into a new or empty folder", dir, f.Name())
		}
	}
	return err
}

// keptEmpty tells whether an empty folder may hold the file.
func keptEmpty(name string) bool { return name == lockFile || name == noteFile || name == "lost+found" }

// empty marks a folder as unfinished, and removes the rest.
func empty(dir string) error {
	at := filepath.Join(dir, unfinishedFile)
	err := ownfile.Replace(at, func(w io.Writer) error {
		_, err := io.WriteString(w, "The restore of this state has not ended. Run it again, or empty the folder.\n")
		return err
	})
	if err == nil {
		err = ownfile.Sync(dir)
	}
	files, rerr := os.ReadDir(dir)
	if err = errors.Join(err, rerr); err != nil {
		return err
	}
	for _, f := range files {
		if name := f.Name(); !keptEmpty(name) && name != unfinishedFile {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Undo empties the folder again.
func (h *Lock) Undo() error {
	if err := empty(h.dir); err != nil {
		return err
	}
	return h.Filled()
}

// Filled tells that the folder is whole now, and on disk.
func (h *Lock) Filled() error {
	if err := os.Remove(filepath.Join(h.dir, unfinishedFile)); err != nil {
		return err
	}
	return ownfile.Sync(h.dir)
}
