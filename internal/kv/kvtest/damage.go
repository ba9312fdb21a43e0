package kvtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// The remedies of damage.
const (
	backup  = "bring the folder back from a backup"
	discard = "remove this file"
	again   = "make the empty file marker."
	line    = "write the line "
	nothing = "" // all is there without a word
)

// damages are the kinds of files of a database, and the remedy of each kind of damage to them. With
// may, no word is right too while all is there: the file may be obsolete, or a bit without meaning.
var damages = []struct {
	file                           string // the beginning or the end of its name
	removed, emptied, cut, flipped string
	may                            bool
}{
	{file: "marker.manifest.", removed: again},
	{file: "marker.format-version.", removed: again, may: true},
	{file: "MANIFEST-", removed: backup, emptied: backup, cut: backup, flipped: backup, may: true},
	{file: ".log", removed: backup, emptied: backup, cut: backup, flipped: backup, may: true},
	{file: ".sst", removed: backup, emptied: backup, cut: backup, flipped: backup, may: true},
	{file: "OPTIONS-", emptied: nothing, cut: discard, flipped: discard, may: true},
	{file: guardfs.SyncedFile, emptied: discard, cut: discard, flipped: discard},
	{file: "RSBRIDGE", removed: line, emptied: line, cut: line, flipped: line},
	{file: "LOCK"},
	{file: "HOLDER"},
	{file: "holder.json"},
}

// Damage removes, empties, cuts and flips each file of the folder that a killed process left. read
// opens a folder and counts all in it: it gives want, or an error with the name of the file and the
// remedy; want again once the remedy was followed. must are names, or parts, of files whose removal, emptying and cutting has to be told.
func Damage(t *testing.T, killed string, want int64, read func(dir string) (int64, error), must ...string) {
	entries, err := os.ReadDir(killed)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(11, 12))
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		name := e.Name()
		whole, err := os.ReadFile(filepath.Join(killed, name))
		if err != nil {
			t.Fatal(err)
		}
		known := false
		for _, kind := range damages {
			if !strings.HasPrefix(name, kind.file) && filepath.Ext(name) != kind.file {
				continue
			}
			known = true
			needed := slices.ContainsFunc(must, func(part string) bool { return strings.Contains(name, part) })
			for _, damage := range [][2]string{{"removed", kind.removed}, {"emptied", kind.emptied}, {"cut", kind.cut}, {"flipped", kind.flipped}, {"flipped", kind.flipped}, {"flipped", kind.flipped}} {
				how, remedy := damage[0], damage[1]
				may := kind.may && (!needed || how == "flipped")
				bad := bytes.Clone(whole)
				switch {
				case how == "removed":
				case len(whole) == 0: // its name is its content
					continue
				case how == "emptied":
					bad = nil
				case how == "cut":
					bad = bad[:len(bad)/2]
				default:
					bad[r.IntN(len(bad)-1)] ^= 4 // the last byte of a line may be any
				}
				where := t.TempDir()
				err := os.CopyFS(where, os.DirFS(killed))
				if err == nil && how == "removed" {
					err = os.Remove(filepath.Join(where, name))
				} else if err == nil {
					err = os.WriteFile(filepath.Join(where, name), bad, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				named, _, _ := strings.Cut(name, ".0")
				if !strings.HasPrefix(name, "marker.") {
					named = name
				}
				n, err := read(where)
				switch {
				case err == nil && n != want:
					t.Errorf("%s %s: %d of %d, and no error", name, how, n, want)
				case err == nil && remedy != nothing && !may:
					t.Errorf("%s %s: not told", name, how)
				case err != nil && remedy == nothing:
					t.Errorf("%s %s: %v", name, how, err)
				case err != nil && (!strings.Contains(err.Error(), named) || !strings.Contains(err.Error(), remedy)):
					t.Errorf("%s %s: the error names not the file, or not the remedy %q: %v", name, how, remedy, err)
				case err != nil && how != "removed" && !errors.Is(err, guardfs.ErrDamaged) && !errors.Is(err, kv.ErrNewer):
					t.Errorf("%s %s: %v is not the error of damage", name, how, err)
				case err != nil && remedy != backup:
					if err := follow(where, name, remedy, err.Error()); err != nil {
						t.Fatal(err)
					}
					if n, err := read(where); err != nil || n != want {
						t.Errorf("%s %s: with the remedy %q there are %d of %d: %v", name, how, remedy, n, want, err)
					}
				}
			}
		}
		if !known {
			t.Errorf("%s: no word about damage to this file", name)
		}
	}
}

var empty = regexp.MustCompile("make the empty file ([^ ]+) in")

// follow does what the remedy tells.
func follow(dir, name, remedy, told string) error {
	switch remedy {
	case discard:
		return os.Remove(filepath.Join(dir, name))
	case line:
		return os.WriteFile(filepath.Join(dir, name), []byte("rsbridge state 1\n"), 0o600)
	default:
		return os.WriteFile(filepath.Join(dir, empty.FindStringSubmatch(told)[1]), nil, 0o600)
	}
}
