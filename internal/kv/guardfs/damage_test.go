package guardfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDamageIsNamed: whatever file is wrong, the error of opening or reading names it and the
// remedy.
func TestDamageIsNamed(t *testing.T) {
	var full atomic.Bool
	met := make(chan struct{}, 1)
	dir := t.TempDir()
	g := New("store", fills(vfs.Default, ".sst", &full, met), nil)
	options := func() *pebble.Options { return &pebble.Options{MemTableSize: 64 << 10} }
	db, err := g.Open(t.Context(), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	set := func(key int) {
		value := make([]byte, 10_000)
		for i := range value {
			value[i] = byte(r.Uint32())
		}
		if _, err := g.Do(func() error { return db.Set(fmt.Appendf(nil, "%04d", key), value, pebble.Sync) }); err != nil {
			t.Fatal(err)
		}
	}
	for key := range 4 {
		set(key)
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	for key := 4; key < 12; key++ { // more than a memtable: its log stays, and the next one begins
		set(key)
	}
	<-met
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	full.Store(false)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if logs, err := filepath.Glob(filepath.Join(killed, "*.log")); err != nil || len(logs) < 2 {
		t.Fatal(logs, err)
	}

	replace := func(old, now string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(now), 1) }
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 4; return b }
	for name, kind := range map[string]struct {
		file   string // the first of them
		change func([]byte) []byte
	}{
		"nothing":                {"*.log", func(b []byte) []byte { return b }},
		"a bit of a table":       {"*.sst", flip},
		"a table is cut":         {"*.sst", func(b []byte) []byte { return b[:len(b)/2] }},
		"a table is longer":      {"*.sst", func(b []byte) []byte { return append(b, 0) }},
		"a table is missing":     {"*.sst", nil},
		"a sign of the options":  {"OPTIONS-*", replace("comparer=", "comparer-")},
		"another order of keys":  {"OPTIONS-*", replace("leveldb.", "leveldc.")},
		"a bit of the manifest":  {"MANIFEST-*", flip},
		"the marker is missing":  {"marker.manifest.*", nil},
		"a bit of an older log":  {"*.log", flip},
		"a hole in an older log": {"*.log", func(b []byte) []byte { clear(b[8<<10 : 12<<10]); return b }},
	} {
		t.Run(name, func(t *testing.T) {
			where := t.TempDir()
			if err := os.CopyFS(where, os.DirFS(killed)); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(where, kind.file))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			named := filepath.Base(files[0])
			if kind.change == nil {
				err = os.Remove(files[0])
				if strings.HasPrefix(named, "marker") {
					named = kind.file
				}
			} else {
				var b []byte
				if b, err = os.ReadFile(files[0]); err == nil {
					err = os.WriteFile(files[0], kind.change(b), 0o600)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			n, err := readKeys(t, where, options())
			if name == "nothing" {
				if n != 12 || err != nil {
					t.Errorf("%d keys, %v", n, err)
				}
				return
			}
			remedy := "bring the folder back from a backup"
			switch kind.file {
			case "OPTIONS-*":
				remedy = "remove this file"
			case "marker.manifest.*":
				remedy = "make the empty file marker.manifest.000001.MANIFEST-000001 "
			}
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "file "+named) || !strings.Contains(err.Error(), remedy) {
				t.Errorf("%v", err)
			}
		})
	}
}

func readKeys(t *testing.T, dir string, o *pebble.Options) (n int, err error) {
	g := New("store", nil, nil)
	db, err := g.Open(t.Context(), dir, o)
	if err != nil {
		return 0, err
	}
	defer g.Close(db.Close)
	it, err := db.NewIter(nil)
	if err != nil {
		return 0, ReadError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, ReadError(it.Error())
}

// A folder in the place of a file is told with a remedy.
func TestNoFolders(t *testing.T) {
	for name, remedy := range map[string]string{
		"SYNCED": `write a file SYNCED with the line "anew"`, "RSBRIDGE": "from a backup", "000007.log": "from a backup", "000005.sst": "from a backup",
		"MANIFEST-000001": "from a backup", "LOCK": "(move the folder away)", "OPTIONS-000003": "(move the folder away)", "tmp": "", "marker.manifest.000001.MANIFEST-000001": "",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		err := NoFolders(vfs.Default, dir)
		if (err != nil) != (remedy != "") || err != nil && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "a folder is in the place of the file "+name) || !strings.Contains(err.Error(), remedy)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := NoFolders(vfs.Default, filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}

// TestDamageStopsWriting: after a wrong table was met, writing tells of it, and of its remedy.
func TestDamageStopsWriting(t *testing.T) {
	g := New("store", vfs.NewMem(), nil)
	g.listener().DataCorruption(pebble.DataCorruptionInfo{Path: "db/000012.sst", Details: errors.New("checksum mismatch")})
	if err := g.Err(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "000012.sst") || strings.Contains(err.Error(), "start again") {
		t.Error(err)
	}
}
