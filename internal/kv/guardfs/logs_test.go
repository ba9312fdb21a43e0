package guardfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// image is a database as a process leaves it that is killed.
type image struct {
	files map[string][]byte
	keys  int // acknowledged: 0 to keys

	half   int    // of the keys
	synced []byte // the file of lengths at that time
}

// older is the image with lengths that a person has thrown away.
func (im *image) older() *image {
	out := im.copy()
	out.files[SyncedFile] = []byte(anew + "\n")
	return out
}

func (im *image) copy() *image {
	out := *im
	out.files = maps.Clone(im.files)
	return &out
}

func value(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d ", i), 1+i%17*i%400) }

// makeImage writes keys, among them some that fill several blocks of a log and some
// that were flushed.
func makeImage(t *testing.T, keys int, format pebble.FormatMajorVersion) *image {
	t.Helper()
	fs := vfs.NewMem()
	db, err := New("store", fs, nil).Open(t.Context(), "db", &pebble.Options{FormatMajorVersion: format, MemTableSize: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	half := keys/2 + 1
	var synced []byte
	for i := range keys {
		if err := db.Set(fmt.Appendf(nil, "%05d", i), value(i), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if i == keys/3 {
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if i+1 == half {
			synced = imageOf(t, fs, 0).files[SyncedFile]
		}
	}
	im := imageOf(t, fs, keys)
	im.half, im.synced = half, synced
	return im
}

func imageOf(t *testing.T, fs vfs.FS, keys int) *image {
	im := &image{files: map[string][]byte{}, keys: keys}
	names, err := fs.List("db")
	for _, name := range names {
		f, ferr := fs.Open("db/" + name)
		if errors.Is(ferr, os.ErrNotExist) { // removed meanwhile, as obsolete
			continue
		}
		if ferr == nil {
			im.files[name], ferr = io.ReadAll(f)
			f.Close()
		}
		err = errors.Join(err, ferr)
	}
	if err != nil {
		t.Error(err)
	}
	return im
}

// open gives what is acknowledged and there: how many keys from 0 on without a gap, and
// why it is not all of them.
func (im *image) open(t *testing.T, changed string, data []byte) (keys int, err error) {
	t.Helper()
	return im.openOn(t, im.restore(t, changed, data), changed)
}

// restore puts the files in place, one of them changed.
func (im *image) restore(t *testing.T, changed string, data []byte) vfs.FS {
	fs := vfs.NewMem()
	put := func(name string, data []byte) {
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(bytes.Clone(data)) // with -race MemFS changes what it was given
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fs.MkdirAll("db", 0o700)
	for name, b := range im.files {
		if name == changed {
			b = data
		}
		put("db/"+name, b)
	}
	return fs
}

func (im *image) openOn(t *testing.T, fs vfs.FS, changed string) (keys int, err error) {
	t.Helper()
	g := New("store", fs, nil)
	db, err := g.Open(t.Context(), "db", &pebble.Options{FormatMajorVersion: pebble.FormatNewest, MemTableSize: 256 << 10})
	if err != nil {
		return 0, err
	}
	defer g.Close(db.Close)
	for ; keys < im.keys; keys++ {
		v, closer, err := db.Get(fmt.Appendf(nil, "%05d", keys))
		if errors.Is(err, pebble.ErrNotFound) {
			break
		}
		if err != nil {
			return keys, err
		}
		if !bytes.Equal(v, value(keys)) {
			t.Errorf("%s: key %d has another value", changed, keys)
		}
		closer.Close()
	}
	for i := keys; i < im.keys; i++ { // nothing behind the first that is not there
		if _, closer, err := db.Get(fmt.Appendf(nil, "%05d", i)); err == nil {
			closer.Close()
			t.Errorf("%s: key %d is there, and %d is not", changed, i, keys)
		}
	}
	return keys, nil
}

func (im *image) newest(suffix string) string {
	var logs []string
	for name := range im.files {
		if path.Ext(name) == suffix || strings.HasPrefix(name, suffix) {
			logs = append(logs, name)
		}
	}
	return slices.Max(logs)
}

// TestFlippedBits flips bits in every file of a database: what was acknowledged is
// there, or what is wrong is told.
func TestFlippedBits(t *testing.T) {
	teststores.Sequential(t)
	for name, im := range map[string]*image{"few": makeImage(t, 3, pebble.FormatNewest), "many": makeImage(t, 400, pebble.FormatTableFormatV6)} {
		r := rand.New(rand.NewPCG(1, 2))
		for file, data := range im.files {
			bits := make([]int, 0, 200)
			for i := range min(len(data)*8, 60) { // the last bytes are the hardest
				bits = append(bits, len(data)*8-1-i)
			}
			for range 60 {
				if len(data) > 0 {
					bits = append(bits, r.IntN(len(data)*8))
				}
			}
			told := 0
			for _, bit := range bits {
				bad := bytes.Clone(data)
				bad[bit/8] ^= 1 << (bit % 8)
				keys, err := im.open(t, file, bad)
				if err == nil && keys < im.keys {
					t.Errorf("%s: bit %d of %d in %s: %d keys of %d, and no error", name, bit, len(data)*8, file, keys, im.keys)
				}
				if err != nil {
					told++
				}
			}
			t.Logf("%s: %s: %d of %d told", name, file, told, len(bits))
		}
	}
}

// TestTornTail cuts the newest log where a killed process may leave it, and as a
// machine may that lost its power: it opens, and has what was written before.
func TestTornTail(t *testing.T) {
	teststores.Sequential(t)
	for _, keys := range []int{1, 400} {
		im := makeImage(t, keys, pebble.FormatNewest).older()
		file := im.newest(".log")
		data := im.files[file]
		r := rand.New(rand.NewPCG(3, uint64(keys)))
		for i := range 100 {
			cut := r.IntN(len(data) + 1)
			switch {
			case i < 40:
				cut = max(0, len(data)-i)
			case i < 60:
				cut = min(i-40, len(data))
			}
			for _, zeros := range []int{0, []int{minZeros, 700, 40 << 10}[i%3]} {
				torn := append(bytes.Clone(data[:cut]), make([]byte, zeros)...)
				if _, err := im.open(t, file, torn); err != nil {
					t.Errorf("%d keys, cut at %d of %d, %d zeros after it: %v", keys, cut, len(data), zeros, err)
				}
			}
		}
	}
}

// TestBehindTheEnd: bytes behind a log are refused, unless they may be the beginning of a record.
func TestBehindTheEnd(t *testing.T) {
	teststores.Sequential(t)
	im := makeImage(t, 3, pebble.FormatNewest)
	for _, file := range []string{im.newest(".log"), im.newest("MANIFEST")} {
		data := im.files[file]
		head := plainHeader // of a record of a manifest
		if strings.HasSuffix(file, ".log") {
			head = syncHeader
		}
		for n := 1; n <= 40; n++ {
			other := append(bytes.Clone(data), bytes.Repeat([]byte{0xa5}, n)...)
			if _, err := im.open(t, file, other); (err == nil) != (n < plainHeader) || err != nil && !strings.Contains(err.Error(), "behind its end") {
				t.Errorf("%d bytes behind %s: %v", n, file, err)
			}
			if n < head {
				cut := append(bytes.Clone(data), data[:n]...)
				if keys, err := im.open(t, file, cut); err != nil || keys != im.keys {
					t.Errorf("%d bytes of a header behind %s: %d keys, %v", n, file, keys, err)
				}
			}
		}
	}
}

// TestShortened cuts and removes the newest log and the manifest of a database: what was acknowledged
// by the last word on disk is there, or the file is named. That word is old after a loss of power.
func TestShortened(t *testing.T) {
	teststores.Sequential(t)
	made := makeImage(t, 400, pebble.FormatNewest)
	_, number, _ := logOrManifest(made.newest(".log"))
	for name, old := range map[string]bool{"killed": false, "without power": true} {
		im, acked := made.copy(), made.keys
		if old {
			im.files[SyncedFile], acked = im.synced, im.half
		}
		lengths, err := readSynced(im.restore(t, "", nil), "db")
		if err != nil {
			t.Fatal(err)
		}
		need := int(lengths.of(true, number))
		if whole := len(im.files[im.newest(".log")]); need == 0 || old == (need == whole) {
			t.Fatalf("%s: %d of %d bytes are acknowledged", name, need, whole)
		}
		for _, prefix := range []string{".log", "MANIFEST"} {
			file := im.newest(prefix)
			data := im.files[file]
			r := rand.New(rand.NewPCG(7, 8))
			for i := range 100 {
				cut := r.IntN(len(data) + 1)
				switch {
				case i < 10:
					cut = i
				case i < 20:
					cut = len(data) + 10 - i
				case i < 30 && prefix == ".log":
					cut = min(need+i-25, len(data))
				}
				keys, err := im.open(t, file, data[:cut])
				if err == nil && keys < acked {
					t.Errorf("%s: %s cut at %d of %d: %d keys of %d, and no error", name, file, cut, len(data), keys, acked)
				}
				if err != nil && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "file "+file+" ends at byte ") || prefix == ".log" && cut >= need) {
					t.Errorf("%s: %s cut at %d of %d: %v", name, file, cut, len(data), err)
				}
			}
			gone := im.copy()
			delete(gone.files, file)
			if _, err := gone.open(t, "", nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "file "+file+" is missing") {
				t.Errorf("%s: %s removed: %v", name, file, err)
			}
		}
	}
}

// TestPowerLoss lets the power go again and again while a database is written, at any write: what is
// left is never taken for damage, and all that was acknowledged is there.
func TestPowerLoss(t *testing.T) {
	for seed := range uint64(teststores.Histories(3, 20)) {
		r := rand.New(rand.NewPCG(seed, 9))
		disk, acked := vfs.NewCrashableMem(), 0
		for range 10 {
			var left, keys atomic.Int64
			left.Store(int64(r.IntN(200)))
			keys.Store(int64(acked))
			percent := r.IntN(101)
			var once sync.Once
			var after *vfs.MemFS
			g := New("store", errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && left.Add(-1) < 0 {
					once.Do(func() {
						acked = int(keys.Load())
						after = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r})
					})
				}
				return nil
			})), nil)
			db, err := g.Open(t.Context(), "db", &pebble.Options{FormatMajorVersion: pebble.FormatNewest, MemTableSize: 64 << 10})
			if err != nil {
				t.Fatalf("seed %d, %d keys: %v", seed, acked, err)
			}
			for i := range int(keys.Load()) {
				if _, closer, err := db.Get(fmt.Appendf(nil, "%05d", i)); err != nil {
					t.Fatalf("seed %d: key %d of %d: %v", seed, i, keys.Load(), err)
				} else {
					closer.Close()
				}
			}
			for left.Load() >= 0 {
				if err := db.Set(fmt.Appendf(nil, "%05d", keys.Load()), value(int(keys.Load())), pebble.Sync); err != nil {
					t.Fatal(err)
				}
				keys.Add(1)
			}
			if _, err := g.Close(db.Close); err != nil {
				t.Fatal(err)
			}
			disk = after
		}
	}
}

// TestGarbage writes over a part of the newest log.
func TestGarbage(t *testing.T) {
	teststores.Sequential(t)
	im := makeImage(t, 400, pebble.FormatNewest)
	r := rand.New(rand.NewPCG(5, 6))
	for _, prefix := range []string{".log", "MANIFEST"} {
		file := im.newest(prefix)
		for range 100 {
			bad := bytes.Clone(im.files[file])
			at := r.IntN(len(bad))
			part := bad[at:min(len(bad), at+1+r.IntN(5000))]
			for i := range part {
				part[i] = byte(r.Uint32())
			}
			keys, err := im.open(t, file, bad)
			if err == nil && keys < im.keys {
				t.Errorf("%d bytes of garbage at %d of %d in %s: %d keys of %d, and no error", len(part), at, len(bad), file, keys, im.keys)
			}
		}
		// A hole in the middle: later records say that it was synced.
		for range 100 {
			bad := bytes.Clone(im.files[file])
			at := r.IntN(len(bad)/2) / sectorSize * sectorSize
			clear(bad[at:min(len(bad), at+sectorSize)])
			keys, err := im.open(t, file, bad)
			if err == nil && keys < im.keys {
				t.Errorf("a hole at %d of %d in %s: %d keys of %d, and no error", at, len(bad), file, keys, im.keys)
			}
		}
	}
}

// TestKilledWhileOpening: a process that opens what a killed one left is killed too,
// at each of its writes; the next one has all that the first would have had.
func TestKilledWhileOpening(t *testing.T) {
	for _, keys := range []int{1, 300} {
		im := makeImage(t, keys, pebble.FormatNewest).older()
		file := im.newest(".log")
		for _, cut := range []int{0, 1, 15, 30, len(im.files[file]) / 2, len(im.files[file]) - 20} {
			if teststores.Unraced(t, 5) {
				continue
			}
			torn := im.files[file][:max(0, min(cut, len(im.files[file])))]
			want, err := im.open(t, file, torn)
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for done := false; !done; at++ {
				fs := im.restore(t, file, torn)
				var left atomic.Int64
				left.Store(int64(at))
				var killed *image
				var once sync.Once
				_, _ = im.openOn(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && left.Add(-1) < 0 {
						once.Do(func() { killed = imageOf(t, fs, keys) })
					}
					return nil
				})), file)
				if killed == nil {
					done = true
					break
				}
				if got, err := killed.open(t, "", nil); err != nil || got != want {
					t.Errorf("log of %d keys cut at %d, killed at write %d: %d keys, want %d; %v", keys, cut, at, got, want, err)
				}
			}
			t.Logf("%d keys, cut at %d: killed at %d writes", keys, cut, at)
		}
	}
}

// TestOlderManifest: a marker of an older manifest, which is there, hides newer tables. It is told,
// and so is the remedy.
func TestOlderManifest(t *testing.T) {
	fs, before := vfs.NewMem(), &image{}
	for round := range 2 {
		db, err := New("store", fs, nil).Open(t.Context(), "db", &pebble.Options{FormatMajorVersion: pebble.FormatNewest})
		if err != nil {
			t.Fatal(err)
		}
		if round == 1 { // the older one is kept
			before = imageOf(t, fs, 0)
		}
		for i := range 10 {
			if err := db.Set(fmt.Appendf(nil, "%05d", round*10+i), value(round*10+i), pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(db.Flush(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	im := imageOf(t, fs, 20)
	marker, newest, oldest := im.newest("marker.manifest."), im.newest("MANIFEST-"), ""
	for name := range before.files {
		if strings.HasPrefix(name, "MANIFEST-") && name != newest {
			oldest = name
		}
	}
	im.files[oldest] = before.files[oldest]
	delete(im.files, marker)
	wrong := strings.TrimSuffix(marker, newest) + oldest
	im.files[wrong] = nil
	if _, err := im.open(t, "", nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "file "+wrong+" names") || !strings.Contains(err.Error(), "rename it to "+marker+",") {
		t.Errorf("%s: %v", wrong, err)
	}
	delete(im.files, wrong)
	im.files[marker] = nil
	if keys, err := im.open(t, "", nil); err != nil || keys != 20 {
		t.Errorf("%d keys, %v", keys, err)
	}
}

// TestKilledAtFirst: a process is killed at each write of the first start. The next one begins anew.
func TestKilledAtFirst(t *testing.T) {
	for at, done := 0, false; !done; at++ {
		im := &image{}
		fs := im.restore(t, "", nil)
		var left atomic.Int64
		left.Store(int64(at))
		var killed *image
		var once sync.Once
		_, _ = im.openOn(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && left.Add(-1) < 0 {
				once.Do(func() { killed = imageOf(t, fs, 0) })
			}
			return nil
		})), "")
		if done = killed == nil; done {
			t.Logf("%d writes", at)
			break
		}
		if _, err := killed.open(t, "", nil); err != nil {
			t.Errorf("killed at write %d: %v", at, err)
		}
	}
}
