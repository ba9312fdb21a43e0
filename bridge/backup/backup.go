// Package backup writes the state of a bridge into one file, and restores it.
//
// A backup is a tar file of one moment: the records, the embedded stores inside of the state folder, and the
// other files of that folder. Records are read through their checksums and written as keys and values, so a
// backup is independent of the engine below, and a damaged block ends it with an error.
//
// Its last entry has the SHA-256 of all others. A restore checks them before it writes anything.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Form is the version of the form of a backup. It is raised with each step of the records in it.
const Form = 1

// ErrDamaged comes from a file that is no whole backup.
var ErrDamaged = errors.New("the backup is damaged")

// Entries of the tar file, in this order: the header, chunks of records, chunks of each store, files, the
// report, the sums.
const (
	headerEntry = "rsbridge-backup.json"
	recordsDir  = "records/"
	storesDir   = "stores/"
	filesDir    = "files/"
	reportEntry = "report.json"
	sumsEntry   = "SHA256SUMS"
)

// header is the first entry.
type header struct {
	Form    int       `json:"form"`
	Program string    `json:"program"`
	At      time.Time `json:"at"`
	Stores  []string  `json:"stores"` // their folders below the state, by number
}

// Report tells what a backup has.
type Report struct {
	At      time.Time     `json:"at"`
	Program string        `json:"program"`
	Records int64         `json:"records"`
	Stores  []StoreReport `json:"stores"`
	Files   int64         `json:"files"`
	LeftOut []string      `json:"left_out"` // what the state needs and the backup has not
}

// StoreReport is an embedded store in a backup.
type StoreReport struct {
	Path    string `json:"path"` // below the state folder
	Records int64  `json:"records"`
}

// Source is a state to back up.
type Source struct {
	Dir     string // of the state
	Records kv.Store
	Stores  map[string]*embedstore.Store // by their folders below Dir, with slashes; nil: left out
	// Links is a folder on the disk of Dir, for links to files that others may remove meanwhile. With "" nobody
	// writes the state, and its files are read in place.
	Links   string
	LeftOut []string
	Program string
	Now     time.Time
}

// storeDir is the folder of entries of a store.
func storeDir(number int) string { return storesDir + strconv.Itoa(number) + "/" }

// chunkName is the name of a chunk of records.
func chunkName(dir string, number int) string { return fmt.Sprintf("%s%08d.zst", dir, number) }

// ofOthers are the names in a state folder that a backup has in another form, or not at all.
var ofOthers = map[string]bool{"kv": true, "tmp": true, "lock": true, "holder.json": true, "newest.json": true}

// localPath is the place of an entry below a folder.
func localPath(dir, name string) (string, error) {
	local := filepath.FromSlash(name)
	if name == "." || !filepath.IsLocal(local) || path.Clean(name) != name || ofOthers[name] || strings.HasPrefix(name, "kv/") {
		return "", fmt.Errorf("%w: it names the file %q", ErrDamaged, name)
	}
	return filepath.Join(dir, local), nil
}

// Take writes a backup into a file, checks what was written, and puts it in place of name. write makes the
// backup. An error leaves name as it was.
func Take(ctx context.Context, name string, write func(*os.File) error) (rep Report, size int64, err error) {
	f, err := os.OpenFile(name+partial, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return rep, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return rep, 0, err
	}
	if rep, err = Check(ctx, f); err != nil {
		return rep, 0, fmt.Errorf("read the backup again: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return rep, 0, err
	}
	return rep, info.Size(), errors.Join(f.Close(), syncFolder(filepath.Dir(name)))
}

// partial ends the name of a backup under way.
const partial = ".partial"

func asJSON(v any) []byte {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // of types of this package
	}
	return append(raw, '\n')
}
