package pebblekv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/kvtest"
)

func open(t testing.TB, dir string, o Options) kv.Store {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	kvtest.Run(t, func(t testing.TB) kv.Store { return open(t, t.TempDir(), Options{}) })
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	b := s.Batch()
	b.Set([]byte("a"), []byte("1"))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
	if _, err := s.Get(t.Context(), []byte("a")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Get after Close = %v, want ErrClosed", err)
	}
	s = open(t, dir, Options{})
	defer s.Close()
	if v, err := s.Get(t.Context(), []byte("a")); err != nil || string(v) != "1" {
		t.Errorf("Get after opening again = %q, %v", v, err)
	}
}

// TestMain plays the other process of TestLocked and TestKilled.
func TestMain(m *testing.M) {
	switch os.Getenv("PEBBLEKV_CHILD") {
	case "hold":
		s, err := Open(context.Background(), os.Args[1], Options{Holder: "admin at http://127.0.0.1:8081"})
		fmt.Println("open", err)
		if err == nil {
			os.Stdin.Read(make([]byte, 1)) // until the parent closes it
			s.Close()
		}
	case "write":
		s, err := Open(context.Background(), os.Args[1], Options{})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		b := s.Batch()
		for i := 0; ; i++ {
			b.Set(fmt.Appendf(nil, "%08d", i), bytes.Repeat([]byte{byte(i)}, 1000))
			b.Set([]byte("last"), fmt.Appendf(nil, "%08d", i))
			if err := b.Commit(context.Background(), true); err != nil {
				os.Exit(1)
			}
			fmt.Printf("%08d\n", i)
		}
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, dir)
	cmd.Env = append(os.Environ(), "PEBBLEKV_CHILD="+what)
	return cmd
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold", dir)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 64)
	n, _ := out.Read(said)
	if string(said[:n]) != "open <nil>\n" {
		t.Fatalf("the other process said %q", said[:n])
	}
	_, err := Open(t.Context(), dir, Options{})
	if !errors.Is(err, ErrLocked) {
		t.Errorf("Open = %v, want ErrLocked", err)
	}
	for _, want := range []string{dir, fmt.Sprint(cmd.Process.Pid), "http://127.0.0.1:8081"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("Open = %v, does not name %s", err, want)
		}
	}
	in.Close()
	cmd.Wait()
	s := open(t, dir, Options{})
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "this process") {
		t.Errorf("second Open in one process = %v", err)
	}
	s.Close()
}

// TestKilled: what a commit with sync has confirmed is there after kill -9.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		cmd := child(t, "write", dir)
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 9)
		var confirmed string
		for range 20 + rand.IntN(50) {
			if _, err := out.Read(line); err != nil {
				t.Fatal(err)
			}
			confirmed = string(line[:8])
		}
		cmd.Process.Kill()
		cmd.Wait()
		s := open(t, dir, Options{})
		last, err := s.Get(t.Context(), []byte("last"))
		if err != nil || string(last) < confirmed {
			t.Errorf("last = %s, %v; %s was confirmed", last, err, confirmed)
		}
		if v, err := s.Get(t.Context(), last); err != nil || len(v) != 1000 {
			t.Errorf("half a batch: %s is not there: %v", last, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewer(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"our form": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, formFile), []byte("rsbridge state 2\n"), 0o644)
		},
		"Pebble's": func(dir string) error {
			old, _ := filepath.Glob(filepath.Join(dir, "marker.format-version.*"))
			slices.Sort(old)
			return os.Rename(old[len(old)-1], filepath.Join(dir, "marker.format-version.000900.999"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir, Options{}).Close()
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			_, err := Open(t.Context(), dir, Options{})
			if !errors.Is(err, ErrNewer) {
				t.Fatalf("Open = %v, want ErrNewer", err)
			}
			if after := listing(t, dir); name == "our form" && !slices.Equal(before, after) {
				t.Errorf("the folder was touched: %q, then %q", before, after)
			}
		})
	}
}

func TestForeignDatabase(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, Options{}).Close()
	os.Remove(filepath.Join(dir, formFile))
	if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "not a state of rsbridge") {
		t.Errorf("Open = %v", err)
	}
}

func listing(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(e.Name(), info.Size(), info.ModTime()))
	}
	return out
}

// TestDiskFull lets the disk fail at some moment for ever. Commits end with the
// error and never hang, nothing that was confirmed is lost, and the process
// lives.
func TestDiskFull(t *testing.T) {
	for _, kind := range []string{"log", "tables", "manifest", "all"} {
		for _, after := range []int64{0, 3, 30} {
			t.Run(fmt.Sprint(kind, " after ", after), func(t *testing.T) {
				t.Parallel()
				testDiskFull(t, kind, after)
			})
		}
	}
}

func testDiskFull(t *testing.T, kind string, after int64) {
	dir := t.TempDir()
	var armed, frozen atomic.Bool
	var left atomic.Int64
	left.Store(after)
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if frozen.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.EROFS}
		}
		if !armed.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || op.Kind == errorfs.OpFilePreallocate || op.Kind == errorfs.OpRemove {
			return nil
		}
		base := filepath.Base(op.Path)
		hit := kind == "all" ||
			kind == "log" && strings.HasSuffix(base, ".log") ||
			kind == "tables" && strings.HasSuffix(base, ".sst") ||
			kind == "manifest" && strings.HasPrefix(base, "MANIFEST")
		if hit && left.Add(-1) < 0 {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	s := open(t, dir, Options{fs: fs, memTable: 256 << 10})
	b := s.Batch()
	armed.Store(true)
	confirmed, failed := -1, error(nil)
	value := make([]byte, 32<<10)
	for i := range 200 {
		for j := 0; j < len(value); j += 8 {
			binary.LittleEndian.PutUint64(value[j:], rand.Uint64())
		}
		b.Set(fmt.Appendf(nil, "%04d", i), value)
		if failed = b.Commit(t.Context(), i%3 == 0); failed != nil {
			break
		}
		if i%3 == 0 {
			confirmed = i
		}
	}
	if failed == nil {
		t.Fatal("6 MB were written to a disk that fails")
	}
	if !errors.Is(failed, syscall.ENOSPC) && !strings.Contains(failed.Error(), "no space left") {
		t.Errorf("Commit = %v, does not tell the cause", failed)
	}
	b.Set([]byte("late"), nil)
	if err := b.Commit(t.Context(), true); err == nil {
		t.Error("a commit after the failure succeeded")
	}
	s.Batch().Close()
	s.Get(t.Context(), []byte("0000")) // may fail, must not hang
	if err := s.Close(); err != nil {
		t.Logf("Close = %v", err)
	}
	// What the next process would find: a copy, since this one may hold the lock.
	// Pebble may still be at work on tables in the background: it is stopped, and
	// the one operation that was under way then may spoil one copy.
	frozen.Store(true)
	var again kv.Store
	var err error
	for range 3 {
		where := t.TempDir()
		if err = os.CopyFS(where, os.DirFS(dir)); err != nil {
			continue
		}
		if again, err = Open(t.Context(), where, Options{}); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s = again
	defer s.Close()
	for i := 0; i <= confirmed; i++ {
		if _, err := s.Get(t.Context(), fmt.Appendf(nil, "%04d", i)); err != nil {
			t.Fatalf("%04d of %04d confirmed: %v", i, confirmed, err)
		}
	}
}

// TestReadOnly: a store that is opened for reading has everything, also what was
// only in the log, and leaves the folder as it is.
func TestReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	if _, err := Open(t.Context(), dir, Options{ReadOnly: true}); err == nil {
		t.Fatal("a store that is not there was opened for reading")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("opening for reading left something: %v", err)
	}
	s := open(t, dir, Options{})
	b := s.Batch()
	defer b.Close()
	b.Set([]byte("a"), []byte("1"))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list := func() (out []string) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			st, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(f.Name(), " ", st.Size()))
		}
		return out
	}
	before := list()
	r := open(t, dir, Options{ReadOnly: true})
	if v, err := r.Get(t.Context(), []byte("a")); err != nil || string(v) != "1" {
		t.Errorf("Get = %q, %v", v, err)
	}
	if _, err := Open(t.Context(), dir, Options{ReadOnly: true}); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	w := r.Batch()
	defer w.Close()
	w.Set([]byte("b"), nil)
	if err := w.Commit(t.Context(), true); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Commit = %v, want ErrReadOnly", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if after := list(); !slices.Equal(before, after) {
		t.Errorf("the folder changed:\n%q\n%q", before, after)
	}
}

// TestLoadOnFullDisk: a load that meets a full disk is an error that leaves
// nothing behind; where only its own tables met it, the store goes on.
func TestLoadOnFullDisk(t *testing.T) {
	for _, kind := range []string{"tables", "manifest"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var armed atomic.Bool
			fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
				base := filepath.Base(op.Path)
				hit := armed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && op.Kind != errorfs.OpRemove &&
					(kind == "tables" && strings.HasSuffix(base, ".sst") || kind == "manifest" && strings.HasPrefix(base, "MANIFEST"))
				if hit {
					return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
				return nil
			}))
			s := open(t, dir, Options{fs: fs})
			b := s.Batch()
			b.Set([]byte("b"), []byte("before"))
			if err := b.Commit(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			l := s.(kv.Loader).Load()
			r := l.Run()
			var err error
			for i := 0; i < 100 && err == nil; i++ {
				err = r.Set(fmt.Appendf(nil, "a%03d", i), make([]byte, 10_000))
			}
			if err == nil {
				err = l.Commit(t.Context())
			} else if again := l.Commit(t.Context()); again == nil {
				t.Error("what could not be written was committed")
			}
			if err == nil || !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "no space left") {
				t.Errorf("a load on a full disk = %v", err)
			}
			if err := l.Close(); err != nil {
				t.Logf("Close of the load = %v", err)
			}
			armed.Store(false)
			if kind == "tables" {
				b.Set([]byte("c"), nil)
				if err := b.Commit(t.Context(), true); err != nil {
					t.Errorf("a commit after it = %v", err)
				}
			}
			if err := s.Close(); err != nil {
				t.Logf("Close = %v", err)
			}
			where := t.TempDir() // this process may still hold the lock
			if err := os.CopyFS(where, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			s = open(t, where, Options{})
			defer s.Close()
			n := 0
			for _, err := range s.Scan(t.Context(), []byte("a"), []byte("b")) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 0 && (kind == "tables" || n != 100) {
				t.Errorf("%d of 100 pairs are there", n)
			}
			if v, err := s.Get(t.Context(), []byte("b")); err != nil || string(v) != "before" {
				t.Errorf("what was there = %q, %v", v, err)
			}
			if left, _ := filepath.Glob(filepath.Join(where, loadFolder, "*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestSmallLoad: a small load needs little room.
func TestSmallLoad(t *testing.T) {
	fs := &roomFS{FS: vfs.Default}
	fs.free.Store(1 << 40)
	s := open(t, t.TempDir(), Options{fs: fs})
	defer s.Close()
	for _, c := range []struct {
		free uint64
		fits bool
	}{{16 << 20, true}, {2 << 20, false}} {
		fs.free.Store(c.free)
		l := s.(kv.Loader).Load()
		r := l.Run()
		err := r.Set(fmt.Appendf(nil, "a%d", c.free), make([]byte, 10_000))
		if err == nil {
			err = l.Commit(t.Context())
		}
		if c.fits != (err == nil) || err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a load of 10,000 bytes where %d are free: %v", c.free, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// roomFS says how much room there is.
type roomFS struct {
	vfs.FS
	free atomic.Uint64
}

func (f *roomFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load()}, nil
}
