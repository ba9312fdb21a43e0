package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// state is an open state of a test.
type state struct {
	dir     string
	records kv.Store
	store   *embedstore.Store
}

func openState(t *testing.T, dir string) *state {
	t.Helper()
	s := &state{dir: dir}
	var err error
	if s.records, err = openRecords(dir)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.store, err = embedstore.Open(filepath.Join(dir, "stores", "local"), embedstore.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func (s *state) close() { _, _ = s.records.Close(), s.store.Close() }

func openRecords(dir string) func(context.Context) (kv.Store, error) {
	return func(ctx context.Context) (kv.Store, error) {
		return pebblekv.Open(ctx, filepath.Join(dir, "kv"), pebblekv.Options{})
	}
}

// put writes one record, and commits it.
func (s *state) put(t *testing.T, key, value string) {
	t.Helper()
	b := s.records.Batch()
	defer b.Close()
	b.Set([]byte(key), []byte(value))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func (s *state) load(t *testing.T, text string) {
	t.Helper()
	if _, err := s.store.Load(t.Context(), "", rdfres.NTriples, strings.NewReader(text), embedstore.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
}

// content is everything in the state, by name.
func (s *state) content(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for p, err := range s.records.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		out["record "+string(p.Key)] = string(p.Value)
	}
	snap, err := s.store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for q, err := range snap.Match(embedstore.Pattern{AnyGraph: true}) {
		if err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("quad %v", q)] = ""
	}
	for name, data := range files(t, s.dir) {
		if !strings.HasPrefix(name, "kv/") && !strings.HasPrefix(name, "stores/") && name != "lock" && name != "holder.json" {
			out["file "+name] = data
		}
	}
	return out
}

// files are those below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func (s *state) source(t *testing.T) Source {
	return Source{Dir: s.dir, Records: s.records, Stores: map[string]*embedstore.Store{"stores/local": s.store}, Links: t.TempDir(), Program: "1.0.0", Now: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)}
}

// filled is a state with some of everything.
func filled(t *testing.T) *state {
	t.Helper()
	s := openState(t, t.TempDir())
	large := strings.Repeat("a long value, ", chunkBytes/10) // of more than a chunk
	for key, value := range map[string]string{"a": "1", "b": "", "c": large, "d": "4"} {
		s.put(t, key, value)
	}
	s.load(t, "<http://example.org/a> <http://example.org/p> _:b .\n_:b <http://example.org/p> \"x\"@en .\n")
	for name, data := range map[string]string{"hub.key": "secret", "published/books/resourcedump/1-a/1.zip": "package", "published/books/empty": "", "published/books/2.zip.tmp": "under way", "tmp/x": "of a run"} {
		at := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestRestored: a restored state is as it was at the moment of its backup, whatever was written since.
func TestRestored(t *testing.T) {
	s := filled(t)
	want := s.content(t)
	delete(want, "file tmp/x")
	delete(want, "file published/books/2.zip.tmp")
	var once bool
	var out bytes.Buffer
	src := s.source(t)
	// Everything changes with the first byte of the backup.
	err := Write(t.Context(), writing(func(p []byte) (int, error) {
		if !once {
			once = true
			s.put(t, "a", "2")
			s.put(t, "later", "")
			s.load(t, "<http://example.org/later> <http://example.org/p> \"1\" .\n")
			if err := os.RemoveAll(filepath.Join(s.dir, "published")); err != nil {
				t.Error(err)
			}
		}
		return out.Write(p)
	}), src)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(src.Links); err != nil || len(left) > 0 {
		t.Errorf("the backup left %v, %v", left, err)
	}
	dir := filepath.Join(t.TempDir(), "new", "state")
	rep, err := Restore(t.Context(), bytes.NewReader(out.Bytes()), dir, openRecords(dir))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Records != 4 || rep.Files != 3 || len(rep.Stores) != 1 || rep.Stores[0].Path != "stores/local" || rep.Stores[0].Records == 0 {
		t.Errorf("%+v", rep)
	}
	restored := openState(t, dir)
	if got := restored.content(t); !maps.Equal(got, want) {
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if v, ok := got[name]; !ok || v != want[name] {
				t.Errorf("%s is %.40q %t, want %.40q", name, v, ok, want[name])
			}
		}
		t.Errorf("restored: %v", slices.Sorted(maps.Keys(got)))
	}
	// The restored store takes new data behind the old.
	restored.load(t, "<http://example.org/new> <http://example.org/p> _:n .\n")
	if _, err := restored.store.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	// Into the same folder nothing is restored again.
	restored.close()
	before := files(t, dir)
	if _, err := Restore(t.Context(), bytes.NewReader(out.Bytes()), dir, openRecords(dir)); err == nil || !strings.Contains(err.Error(), "holds") {
		t.Errorf("a folder with a state: %v", err)
	}
	if !maps.Equal(files(t, dir), before) {
		t.Error("a refused folder was changed")
	}
}

type writing func([]byte) (int, error)

func (w writing) Write(p []byte) (int, error) { return w(p) }

// TestDamaged: a backup with any byte changed, or cut anywhere, is refused, and nothing is written.
func TestDamaged(t *testing.T) {
	s := openState(t, t.TempDir())
	s.put(t, "a", "1")
	s.load(t, "<http://example.org/a> <http://example.org/p> \"1\" .\n")
	if err := os.WriteFile(filepath.Join(s.dir, "hub.key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(t.Context(), &out, s.source(t)); err != nil {
		t.Fatal(err)
	}
	whole := out.Bytes()
	if _, err := Check(t.Context(), bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	refused := func(how string, data []byte) {
		t.Helper()
		_, err := Restore(t.Context(), bytes.NewReader(data), dir, openRecords(dir))
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", how, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: the folder was made", how)
		}
	}
	end := bytes.LastIndex(whole, []byte(sumsEntry)) + len(sumsEntry)
	for n := 0; n < end; n += 97 { // behind it are the sums, and zeros
		refused(fmt.Sprintf("cut at %d", n), whole[:n])
	}
	unused := 0
	for i := 0; i < end; i += 13 {
		if whole[i] == 0 || i%512 == 155 { // it may be behind the end of an entry, or of a checksum of tar
			unused++
			continue
		}
		flipped := bytes.Clone(whole)
		flipped[i] ^= 0x55
		refused(fmt.Sprintf("byte %d of %d", i, len(whole)), flipped)
	}
	if unused > end/13*9/10 {
		t.Errorf("only %d bytes were tried", end/13-unused)
	}
	refused("no backup", []byte("something else"))
	refused("empty", nil)
}

// TestNewer: a backup of a later form is refused.
func TestNewer(t *testing.T) {
	var out bytes.Buffer
	s := openState(t, t.TempDir())
	if err := Write(t.Context(), &out, s.source(t)); err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(out.Bytes(), []byte(`"form": 1`), []byte(`"form": 2`), 1)
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := Restore(t.Context(), bytes.NewReader(newer), dir, openRecords(dir)); !errors.Is(err, kv.ErrNewer) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder was made")
	}
}

// TestUnfinished: whoever meets a folder in the midst of a restore refuses it, a failed restore leaves it empty,
// and a restore after a kill begins anew.
func TestUnfinished(t *testing.T) {
	s := filled(t)
	var out bytes.Buffer
	if err := Write(t.Context(), &out, s.source(t)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	boom := errors.New("boom")
	_, err := Restore(t.Context(), bytes.NewReader(out.Bytes()), dir, func(ctx context.Context) (kv.Store, error) {
		if err := holder.Unfinished(dir); !errors.Is(err, holder.ErrUnfinished) {
			t.Errorf("it is not marked: %v", err)
		}
		return nil, boom
	})
	if !errors.Is(err, boom) || len(files(t, dir)) > 1 {
		t.Errorf("%v; left: %v", err, slices.Collect(maps.Keys(files(t, dir))))
	}
	// As a kill leaves it:
	lock, err := holder.TakeNew(t.Context(), dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "kv"), 0o700), os.WriteFile(filepath.Join(dir, "kv", "half"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Take(t.Context(), dir, "test", 0); !errors.Is(err, holder.ErrUnfinished) {
		t.Errorf("a daemon took half a state: %v", err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(out.Bytes()), dir, openRecords(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kv", "half")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the half state is still there")
	}
	if err := holder.Unfinished(dir); err != nil {
		t.Error(err)
	}
}

// TestTake: a failed backup leaves the one before.
func TestTake(t *testing.T) {
	s := filled(t)
	name := filepath.Join(t.TempDir(), "b.tar")
	take := func(write func(*os.File) error) error {
		_, _, err := Take(t.Context(), name, write)
		return err
	}
	whole := func(f *os.File) error { return Write(t.Context(), f, s.source(t)) }
	if err := take(whole); err != nil {
		t.Fatal(err)
	}
	before := files(t, filepath.Dir(name))
	for how, write := range map[string]func(*os.File) error{
		"an error": func(f *os.File) error { return errors.Join(whole(f), errors.New("boom")) },
		"half": func(f *os.File) error {
			err := whole(f)
			size, serr := f.Seek(0, io.SeekEnd)
			return errors.Join(err, serr, f.Truncate(size/2))
		},
	} {
		if err := take(write); err == nil {
			t.Errorf("%s is no error", how)
		}
		if after := files(t, filepath.Dir(name)); !maps.Equal(after, before) {
			t.Errorf("%s left %v", how, slices.Collect(maps.Keys(after)))
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestForeignPlaces: no entry is written outside of the folder, or in place of the records.
func TestForeignPlaces(t *testing.T) {
	for _, name := range []string{"../x", "/x", "a/../../x", "kv", "kv/x", "lock", "a//b", "", "."} {
		if at, err := localPath("/state", name); err == nil {
			t.Errorf("%q is written to %s", name, at)
		}
	}
	if at, err := localPath("/state", "published/a"); err != nil || at != filepath.FromSlash("/state/published/a") {
		t.Errorf("%s %v", at, err)
	}
}
