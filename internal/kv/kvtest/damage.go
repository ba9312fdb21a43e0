package kvtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	rename  = "rename it to marker."
	nothing = "" // all is there without a word
)

// damages are the kinds of files of a database, and the remedy of each kind of damage to them. With
// may, no word is right too while all is there: the file may be obsolete, or a bit without meaning.
var damages = []struct {
	file                           string // the beginning or the end of its name
	removed, emptied, cut, flipped string
	zeros, garbage                 string // behind its end
	renamed                        string // to another number
	may                            bool
}{
	{file: "marker.manifest.", removed: again, renamed: rename},
	{file: "marker.format-version.", removed: again, renamed: rename, may: true},
	{file: "MANIFEST-", removed: backup, emptied: backup, cut: backup, flipped: backup, garbage: backup, may: true},
	{file: ".log", removed: backup, emptied: backup, cut: backup, flipped: backup, garbage: backup, may: true},
	{file: ".sst", removed: backup, emptied: backup, cut: backup, flipped: backup, zeros: backup, garbage: backup, may: true},
	{file: "OPTIONS-", emptied: nothing, cut: discard, flipped: discard, zeros: discard, garbage: discard, may: true},
	{file: guardfs.SyncedFile, removed: line, emptied: line, cut: line, flipped: line, zeros: line, garbage: line},
	{file: "RSBRIDGE", removed: line, emptied: line, cut: line, flipped: line, zeros: line, garbage: line},
	{file: "LOCK"},
	{file: "HOLDER"},
	{file: "holder.json"},
}

// flips is how often a bit of each file is flipped; RSBRIDGE_DAMAGE makes it a campaign.
func flips() int {
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_DAMAGE")); err == nil {
		return n
	}
	return 3
}

// Damage does each kind of damage to each file of the folder that a killed process left. read opens
// a folder and counts all in it: it gives want, or an error with the name of the file and the remedy;
// want again once the remedy was followed. must are names, or parts, of files whose removal, emptying
// and cutting has to be told.
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
		known := false
		for _, kind := range damages {
			if !strings.HasPrefix(name, kind.file) && filepath.Ext(name) != kind.file {
				continue
			}
			known = true
			needed := slices.ContainsFunc(must, func(part string) bool { return strings.Contains(name, part) })
			try := func(how, remedy string) {
				where := t.TempDir()
				err := os.CopyFS(where, os.DirFS(killed))
				now := name
				if err == nil {
					now, err = harm(where, name, how, r)
				}
				if err != nil {
					t.Fatal(err)
				}
				if now == "" {
					return
				}
				may := kind.may && (!needed || !slices.Contains([]string{"removed", "emptied", "cut"}, how))
				n, err := read(where)
				switch {
				case err == nil && n != want:
					t.Errorf("%s %s: %d of %d, and no error", name, how, n, want)
				case err == nil && remedy != nothing && !may:
					t.Errorf("%s %s: not told", name, how)
				case err != nil && remedy == nothing:
					t.Errorf("%s %s: %v", name, how, err)
				case err != nil && (!strings.Contains(err.Error(), now) || !strings.Contains(err.Error(), remedy)):
					t.Errorf("%s %s: the error names not the file, or not the remedy %q: %v", name, how, remedy, err)
				case err != nil && how != "removed" && !errors.Is(err, guardfs.ErrDamaged) && !errors.Is(err, kv.ErrNewer):
					t.Errorf("%s %s: %v is not the error of damage", name, how, err)
				case err != nil:
					followed, ferr := follow(where, now, remedy, err.Error())
					if ferr != nil {
						t.Fatal(ferr)
					}
					if n, err := read(where); followed && (err != nil || n != want) {
						t.Errorf("%s %s: with the remedy %q there are %d of %d: %v", name, how, remedy, n, want, err)
					}
				}
			}
			try("removed", kind.removed)
			try("emptied", kind.emptied)
			try("cut", kind.cut)
			for range flips() {
				try("flipped", kind.flipped)
				try("zeros", kind.zeros)
				try("garbage", kind.garbage)
			}
			try("renamed down", kind.renamed)
			try("renamed up", kind.renamed)
		}
		if !known {
			t.Errorf("%s: no word about damage to this file", name)
		}
	}
}

// harm damages a file, and gives the name of the error then; "": it cannot be damaged so.
func harm(dir, name, how string, r *rand.Rand) (now string, err error) {
	path := filepath.Join(dir, name)
	isMarker := strings.HasPrefix(name, "marker.")
	if number, ok := map[string]int{"renamed down": 0, "renamed up": 99}[how]; ok {
		if !isMarker {
			return "", nil
		}
		digits := len(name) - strings.LastIndexAny(name, ".-") - 1
		now = fmt.Sprintf("%s%0*d", name[:len(name)-digits], digits, number)
		return now, os.Rename(path, filepath.Join(dir, now))
	}
	if how == "removed" {
		if now, _, _ = strings.Cut(name, ".0"); !isMarker {
			now = name
		}
		return now, os.Remove(path)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 { // its name is its content
		return "", err
	}
	switch how {
	case "emptied":
		data = nil
	case "cut":
		data = data[:len(data)/2]
	case "zeros":
		data = append(data, make([]byte, 1+r.IntN(1<<r.IntN(17)))...)
	case "garbage":
		for range 1 + r.IntN(1<<r.IntN(12)) {
			data = append(data, byte(1+r.IntN(255)))
		}
	default:
		data[r.IntN(len(data)-1)] ^= 1 << r.IntN(8) // the last byte of a line may be any
	}
	return name, os.WriteFile(path, data, 0o600)
}

var (
	empty   = regexp.MustCompile("make the empty file ([^ ]+) in")
	written = regexp.MustCompile(`write the line "([^"]+)" into the file ([A-Z]+)`)
	value   = regexp.MustCompile("rename it to (marker[^ ,]+), and start")
	shorter = regexp.MustCompile("truncate -s ([0-9]+) ")
)

// follow does what the remedy tells, unless it is to bring a backup.
func follow(dir, name, remedy, told string) (followed bool, err error) {
	path := filepath.Join(dir, name)
	switch remedy {
	case discard:
		return true, os.Remove(path)
	case line:
		w := written.FindStringSubmatch(told)
		return true, os.WriteFile(filepath.Join(dir, w[2]), []byte(w[1]+"\n"), 0o600)
	case rename:
		return true, os.Rename(path, filepath.Join(dir, value.FindStringSubmatch(told)[1]))
	case again:
		return true, os.WriteFile(filepath.Join(dir, empty.FindStringSubmatch(told)[1]), nil, 0o600)
	}
	cut := shorter.FindStringSubmatch(told)
	if cut == nil {
		return false, nil
	}
	size, err := strconv.ParseInt(cut[1], 10, 64)
	return true, errors.Join(err, os.Truncate(path, size))
}
