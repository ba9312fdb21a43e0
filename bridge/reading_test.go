package bridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/publish/inventory"
	"github.com/rsbridge/rsbridge/rdfres"
)

// small is a configuration with a set and a mirror of it, in dir.
func small(dir string) *Config {
	cfg := NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public.BaseURL = "http://source.invalid"
	for _, name := range []string{"source", "mirror"} {
		s := NewStore()
		s.Embedded = filepath.Join(dir, name)
		cfg.Stores[name] = s
	}
	set := NewSet()
	set.Store = "source"
	cfg.Sets["data"] = set
	d := NewDestination()
	d.Source, d.Store = cfg.Public.BaseURL, "mirror"
	cfg.Destinations["copy"] = d
	return cfg
}

func mustOpen(t *testing.T, cfg *Config) *Bridge {
	t.Helper()
	b, err := Open(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fill(t *testing.T, b *Bridge, store, triples string) {
	t.Helper()
	if _, err := b.LoadStore(t.Context(), store, "", rdfres.NTriples, strings.NewReader(triples), true); err != nil {
		t.Fatal(err)
	}
}

func do[R any](t *testing.T, b *Bridge, action, name string) (rep R) {
	t.Helper()
	if err := b.Do(t.Context(), action, name, nil, &rep); err != nil {
		t.Fatalf("%s %s: %v", action, name, err)
	}
	return rep
}

// readStatus is the status of a state that is only read.
func readStatus(t *testing.T, cfg *Config, o Options) (Status, error) {
	t.Helper()
	o.Wait = time.Millisecond
	b, err := OpenReading(t.Context(), cfg, o)
	if err != nil {
		return Status{}, err
	}
	st, err := b.Status(t.Context())
	return st, errors.Join(err, b.Close())
}

// TestReadStatus: what is read from a state that is not opened is what an open
// bridge says, and nothing in the folder changes.
func TestReadStatus(t *testing.T) {
	cfg := small(t.TempDir())
	if st, err := readStatus(t, cfg, Options{}); err != nil || st.Sets[0].State != StateNever || st.Destinations[0].State != StateNever || len(folder(t, filepath.Dir(cfg.State))) != 0 {
		t.Fatalf("of a state that is not there: %+v %v", st, err)
	}
	now := time.Now()
	b := mustOpen(t, cfg)
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n")
	do[ScanReport](t, b, "scan", "data")
	do[SyncReport](t, b, "sync", "copy")
	b.now = func() time.Time { return now }
	want, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := readStatus(t, cfg, Options{}); !errors.As(err, &held) {
		t.Errorf("of a state that is held: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	before := folder(t, cfg.State)
	got, err := readStatus(t, cfg, Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	want.Sets[0].Generation = 0
	if got.Disk.Records == 0 || got.Disk.Stores["mirror"] == 0 {
		t.Errorf("disk: %+v", got.Disk)
	}
	want.Disk, got.Disk = Disk{}, Disk{} // closing writes
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(SetStatus{})); d != "" {
		t.Errorf("status (-open +read):\n%s", d)
	}
	if d := cmp.Diff(before, folder(t, cfg.State)); d != "" {
		t.Errorf("the folder changed:\n%s", d)
	}
}

// folder lists the files of a folder with what they hold.
func folder(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		out = append(out, fmt.Sprintf("%s %d %x", strings.TrimPrefix(path, dir), len(raw), sha256.Sum256(raw)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// TestFullDisk: a state on a disk without any room cannot be opened, and is read.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=256m"); err != nil {
		teststores.Lack(t, "the right to mount a small file system: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	cfg := small(dir)
	b := mustOpen(t, cfg)
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n")
	do[ScanReport](t, b, "scan", "data")
	do[SyncReport](t, b, "sync", "copy")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := bytes.Repeat([]byte{1}, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if b, err := Open(t.Context(), cfg, Options{}); !errors.Is(err, syscall.ENOSPC) {
		if err == nil {
			b.Close()
		}
		t.Fatalf("Open on a full disk: %v", err)
	}
	st, err := readStatus(t, cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if st.Sets[0].Resources != 1 || !st.Destinations[0].InSync {
		t.Errorf("status = %+v", st)
	}
}

// wrongInventory writes an inventory of other entities.
func wrongInventory(t *testing.T, b *Bridge) {
	t.Helper()
	g, _ := b.pub.Generation("data")
	records := kv.Prefix(kv.Prefix(b.kv, spaces.Publish), []byte("sdata\x00"))
	batch := records.Batch()
	_, _, err := inventory.New(records).Write(t.Context(), batch, inventory.Entities{Count: 1, Between: func(context.Context, rdfres.Digest, rdfres.Digest) iter.Seq2[rdfres.InventoryEntry, error] {
		return func(yield func(rdfres.InventoryEntry, error) bool) {
			yield(rdfres.InventoryEntry{Key: rdfres.EntityKey("x")}, nil)
		}
	}}, 0, g.Sequence, nil)
	if err = errors.Join(err, batch.Commit(t.Context(), true), batch.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCheckRecords: what was lost from the state is found by reading it all.
func TestCheckRecords(t *testing.T) {
	cfg := small(t.TempDir())
	if found, err := CheckRecords(t.Context(), cfg, nil); err != nil || len(found) != 0 {
		t.Fatalf("before the first run %v, %v", found, err)
	}
	b := mustOpen(t, cfg)
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n<http://e.example/b> <http://e.example/p> \"2\" .\n")
	do[ScanReport](t, b, "scan", "data")
	wrongInventory(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := CheckRecords(t.Context(), cfg, nil); err != nil || len(found) != 1 || !errors.Is(found["set data"], inventory.ErrDamaged) {
		t.Fatalf("with a wrong inventory: %v, %v", found, err)
	}
	b = mustOpen(t, cfg)
	for _, again := range []int{1, 0} {
		var rep VerifyReport
		if err := b.Do(t.Context(), "verify", "", VerifyArgs{ReadData: true}, &rep); err != nil || len(rep.Faults) != again || again == 1 && !rep.Faults[0].Again {
			t.Errorf("verify: %+v, %v", rep, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := CheckRecords(t.Context(), cfg, nil); err != nil || len(found) != 0 {
		t.Fatalf("%v, %v", found, err)
	}
	store, err := pebblekv.Open(t.Context(), filepath.Join(cfg.State, "kv"), pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch, records := store.Batch(), 0
	for p, err := range kv.Prefix(store, spaces.Track).Scan(t.Context(), []byte("s"), []byte("t")) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Key[5] == 'r' && records == 0 { // a representation
			batch.Delete(append(slices.Clone([]byte(spaces.Track)), p.Key...))
			records++
		}
	}
	if err := errors.Join(batch.Commit(t.Context(), true), batch.Close(), store.Close()); err != nil || records != 1 {
		t.Fatal(records, err)
	}
	found, err := CheckRecords(t.Context(), cfg, nil)
	if err != nil || len(found) != 1 || !strings.Contains(found["set data"].Error(), "representation") {
		t.Fatalf("%v, %v", found, err)
	}
}

// TestBrokenDestination: one that cannot be opened says why, in the status, by
// its runs and to CheckState; the others work.
func TestBrokenDestination(t *testing.T) {
	dir := t.TempDir()
	cfg := small(dir)
	if found, err := CheckState(t.Context(), cfg, nil); err != nil || len(found) != 0 {
		t.Fatalf("CheckState before the first run = %v, %v", found, err)
	}
	b := mustOpen(t, cfg)
	fill(t, b, "source", "<http://e.example/a> <http://e.example/p> \"1\" .\n")
	do[ScanReport](t, b, "scan", "data")
	do[SyncReport](t, b, "sync", "copy")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := CheckState(t.Context(), cfg, nil); err != nil || len(found) != 0 {
		t.Fatalf("CheckState = %v, %v", found, err)
	}
	good := cfg.Destinations["copy"]
	bad := good
	bad.GraphIRI = "http://e.example/elsewhere"
	cfg.Destinations["copy"], cfg.Destinations["next"] = bad, NewDestination()
	next := good
	next.GraphIRI = "http://e.example/next"
	cfg.Destinations["next"] = next
	found, err := CheckState(t.Context(), cfg, nil)
	if err != nil || len(found) != 1 || !strings.Contains(found["destination copy"].Error(), "has kept its mirror") {
		t.Fatalf("CheckState = %v, %v", found, err)
	}
	b = mustOpen(t, cfg)
	defer b.Close()
	if rep := do[SyncReport](t, b, "sync", "next"); rep.Created != 1 {
		t.Errorf("the other destination: %+v", rep)
	}
	for _, action := range []string{"sync", "audit", "repair"} {
		if err := b.Do(context.Background(), action, "copy", nil, nil); err == nil || !strings.Contains(err.Error(), "has kept its mirror") {
			t.Errorf("%s = %v", action, err)
		}
	}
	st, err := b.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := st.Destinations[0]; !strings.Contains(d.Fault, "has kept its mirror") || d.InSync || st.Destinations[1].Fault != "" {
		t.Errorf("status = %+v", st.Destinations)
	}
	if _, err := b.Destination("copy"); err == nil {
		t.Error("a broken destination is given out")
	}
	if _, err := b.Destination("none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("one that is not there: %v", err)
	}
	if len(b.Faults()) != 1 {
		t.Errorf("Faults = %v", b.Faults())
	}
}

// TestTwoEmbeddedMirrors: a triple that two mirrors hold in two embedded stores,
// both in the default graph, goes from the one whose source drops it.
func TestTwoEmbeddedMirrors(t *testing.T) {
	dir := t.TempDir()
	cfg := small(dir)
	for _, name := range []string{"source2", "mirror2"} {
		s := NewStore()
		s.Embedded = filepath.Join(dir, name)
		cfg.Stores[name] = s
	}
	set := cfg.Sets["data"]
	set.Store = "source2"
	cfg.Sets["data2"] = set
	d := cfg.Destinations["copy"]
	d.Set = "data"
	cfg.Destinations["copy"] = d
	d.Store, d.Set = "mirror2", "data2"
	cfg.Destinations["copy2"] = d
	b := mustOpen(t, cfg)
	defer b.Close()
	const both, more = "<http://e.example/a> <http://e.example/p> \"1\" .\n", "<http://e.example/b> <http://e.example/p> \"2\" .\n"
	fill(t, b, "source", both+more)
	fill(t, b, "source2", both+more)
	for _, n := range []string{"", "2"} {
		do[ScanReport](t, b, "scan", "data"+n)
		do[SyncReport](t, b, "sync", "copy"+n)
	}
	fill(t, b, "source", more)
	do[ScanReport](t, b, "scan", "data")
	do[SyncReport](t, b, "sync", "copy")
	count := func(store string) (n int64) {
		n, err := b.stores[store].client.Count(t.Context(), "SELECT (COUNT(*) AS ?n) WHERE { <http://e.example/a> ?p ?o }")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := count("mirror"); got != 0 {
		t.Errorf("the mirror keeps %d triples that its source dropped", got)
	}
	if got := count("mirror2"); got != 1 {
		t.Errorf("the other mirror has %d triples, want 1", got)
	}
	if rep := do[AuditReport](t, b, "audit", "copy"); !rep.Equal {
		t.Errorf("audit = %+v", rep)
	}
}

// TestForbidden: why a state may not be used is told, and what may be done.
func TestForbidden(t *testing.T) {
	dir := t.TempDir()
	open := func(errno syscall.Errno) error {
		return &fs.PathError{Op: "open", Path: dir + "/lock", Err: errno}
	}
	me := os.Geteuid()
	for _, c := range []struct {
		name string
		mode fs.FileMode
		uid  int
		err  error
		want string
	}{
		{"another user's", 0o700, me + 1, open(syscall.EACCES), fmt.Sprintf("%s is another user's, number %d: run this as that user", dir, me)},
		{"read-only", 0o500, me, open(syscall.EACCES), "chmod u+w " + dir},
		{"neither", 0o700, me, open(syscall.EACCES), "a rule of the system"},
		{"file system", 0o700, me, open(syscall.EROFS), "mounted read-only"},
		{"the disk", 0o500, me, open(syscall.EIO), ""},
	} {
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		err := ownfile.Forbidden(fmt.Errorf("open the lock: %w", c.err), c.uid)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) || c.want == "" && err.Error() != "open the lock: "+c.err.Error() {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
