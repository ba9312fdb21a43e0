package guardfs

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// ErrDamaged is the error of a database with a damaged or missing file. It names the file and the
// remedy.
var ErrDamaged = errors.New("damaged")

// Damage is the ErrDamaged of a cause.
func Damage(cause error) error {
	return Mendable(cause, "bring the folder back from a backup, or move it away and begin with an empty one")
}

// Remake is the ErrDamaged of a missing empty file: its name is its content.
func Remake(cause error, name string) error {
	return Mendable(cause, "make the empty file "+name+" in the folder, and start again")
}

// Mendable is the ErrDamaged of a cause with another remedy.
func Mendable(cause error, remedy string) error {
	return fmt.Errorf("%w: %w (%s)", ErrDamaged, cause, remedy)
}

func damagedFile(path string, cause error) error {
	return Damage(fmt.Errorf("file %s: %w", path, cause))
}

// ReadError makes an ErrDamaged of an error about a wrong file, met while reading an open database.
// Any other error stays.
func ReadError(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) || !pebble.IsCorruptionError(err) {
		return err
	}
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return damagedFile(filepath.Base(info.Path), info.Details)
	}
	return Damage(err)
}

// renamed is the remedy of a marker with a wrong value.
func renamed(marker, value string) string {
	name := strings.Split(marker, ".")
	return "rename it to " + strings.Join(append(name[:min(3, len(name))], value), ".") + ", and start again"
}

// openError tells why Pebble did not open the database in dir. Pebble marks only a part of the errors
// about wrong files. So one is damage unless the disk has failed, or the folder is of another program.
func (g *Guard) openError(err error, dir string, format pebble.FormatMajorVersion) error {
	var errno syscall.Errno
	value := fmt.Sprintf("%03d", uint64(format))
	switch {
	case err == nil || g.scratch || errors.Is(err, ErrDamaged) || errors.Is(err, pebble.ErrDBDoesNotExist):
		return err
	case errors.Is(err, pebble.ErrDBNotPristine): // Pebble takes it for one that was never opened
		return Remake(errors.New("file marker.format-version.* is missing"), "marker.format-version.000001."+value)
	case strings.Contains(err.Error(), "unknown format major version"):
		marker := g.formatMarker(dir)
		return fmt.Errorf("%w: file %s; update rsbridge, or, if no newer one was here, %s", kv.ErrNewer, marker, renamed(marker, value))
	case strings.Contains(err.Error(), "format major version"):
		marker := g.formatMarker(dir)
		return Mendable(fmt.Errorf("file %s names no version", marker), renamed(marker, value))
	case pebble.IsCorruptionError(err): // whatever the disk did
	case g.ioFailed.Load() || IsFull(err) || errors.As(err, &errno) && errno != syscall.ENOENT:
		return err
	}
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return damagedFile(filepath.Base(info.Path), info.Details)
	}
	if table := inconsistentTable.FindStringSubmatch(err.Error()); table != nil {
		return damagedFile(table[1]+".sst", err)
	}
	last, ok := g.lastRead.Load().(string)
	if !ok {
		return Damage(err)
	}
	name := filepath.Base(last)
	if strings.HasPrefix(name, "OPTIONS-") { // a record of the settings, for other programs
		return Mendable(fmt.Errorf("file %s: %w", name, err), "remove this file, and start again: another is made")
	}
	return damagedFile(name, err)
}

// formatMarker is the marker of the version of the database in dir: the one of the highest iteration.
func (g *Guard) formatMarker(dir string) (marker string) {
	names, _ := g.fs.List(dir) // it was read before
	for _, name := range names {
		if strings.HasPrefix(name, "marker.format-version.") {
			marker = max(marker, name)
		}
	}
	return marker
}

// inconsistentTable finds the number of a missing or wrong table in Pebble's error.
var inconsistentTable = regexp.MustCompile(`\bL[0-9]+: ([0-9]{6,}): `)

// NoFolders refuses a database with a folder in the place of one of its files.
func NoFolders(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if err != nil {
		return nil // a new one; or opening it tells
	}
	for _, name := range names {
		ext := filepath.Ext(name)
		options := strings.HasPrefix(name, "OPTIONS-")
		if ext != ".log" && ext != ".sst" && !strings.HasPrefix(name, "MANIFEST-") && !options && !slices.Contains([]string{SyncedFile, "LOCK", "RSBRIDGE"}, name) {
			continue
		}
		if info, err := files.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			continue
		}
		remedy := "move the folder away, and bring the file back from a backup"
		switch {
		case options || name == "LOCK":
			remedy = "move the folder away"
		case name == SyncedFile:
			remedy += "; or, if the logs are known to be whole, write a file " + SyncedFile + " with the line \"" + anew + "\""
		}
		return Mendable(fmt.Errorf("a folder is in the place of the file %s", name), remedy)
	}
	return nil
}
