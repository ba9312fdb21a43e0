package destination

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/dumpsink"
	"github.com/rsbridge/rsbridge/destination/sink/filesink"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

func (b *bench) openSink(s sink.Sink) *Destination {
	b.t.Helper()
	d, err := Open(context.Background(), b.store, s, b.cfg, keep.Options{Now: b.now})
	if err != nil {
		b.t.Fatal(err)
	}
	d.reads.Client.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	d.lim.Attempts, d.lim.Dead = 2, 1000
	return d
}

// intoFolder makes it a mirror in a folder, and gives how to open that.
func (b *bench) intoFolder(dir string) func() *Destination {
	b.t.Helper()
	b.cfg.Files, b.cfg.GraphIRI = "", ""
	sink, err := filesink.Open(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { sink.Close() })
	return func() *Destination { return b.openSink(sink) }
}

func readDump(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for l := range strings.Lines(string(raw)) {
		out = append(out, l)
	}
	if !slices.IsSorted(out) {
		t.Error("the dump is not sorted")
	}
	return out
}

func TestDump(t *testing.T) {
	for _, name := range []string{"all.nt", "all.nt.gz", "all.nq", "all.nq.gz"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			file := filepath.Join(t.TempDir(), "new", "folder", name)
			quads := strings.Contains(name, ".nq")
			check := func() {
				t.Helper()
				want := s.want()
				if quads {
					for i, l := range want {
						want[i] = strings.TrimSuffix(l, ".\n") + "<" + graphA + "> .\n"
					}
					slices.Sort(want)
				}
				b.same(readDump(t, file), want)
			}
			sink, err := dumpsink.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			fill(s, 20)
			s.put("blank.ttl", `<http://ex.org/blank> <http://ex.org/p> [ <http://ex.org/q> "x" ] .`)
			sync := func() SyncReport {
				t.Helper()
				rep, err := b.openSink(sink).Sync(context.Background(), SyncOptions{})
				if err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				return rep
			}
			audit := func(repair bool) keep.AuditReport {
				t.Helper()
				rep, err := b.openSink(sink).Audit(context.Background(), AuditOptions{Repair: repair})
				if err != nil {
					t.Fatal(err)
				}
				return rep
			}
			sync()
			check()
			if rep := audit(false); !rep.Equal || rep.Resources != 21 {
				t.Fatalf("%+v", rep)
			}
			before, _ := os.Stat(file)
			sync()
			if after, _ := os.Stat(file); !os.SameFile(before, after) {
				t.Error("the dump was replaced, and nothing had changed")
			}
			s.remove("e3.nt")
			s.put("e4.nt", nt("e4", "changed"))
			s.put("blank.ttl", `<http://ex.org/blank> <http://ex.org/p> [ <http://ex.org/q> "y" ] .`)
			sync()
			check()
			// damage
			if err := os.WriteFile(file, []byte("garbage\n"+nt("e4", "stranger")), 0o600); err != nil {
				t.Fatal(err)
			}
			if rep := audit(false); rep.Equal || rep.Missing == 0 && rep.Different == 0 {
				t.Fatalf("%+v", rep)
			}
			if rep := audit(true); !rep.Equal || rep.Repaired == 0 {
				t.Fatalf("%+v", rep)
			}
			check()
			// gone, with its checkpoint
			os.Remove(file)
			os.Remove(file + ".rsbridge")
			sync()
			check()
			if rep := audit(false); !rep.Equal {
				t.Fatalf("%+v", rep)
			}
			rest, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".rsbridge-*"))
			if len(rest) > 0 {
				t.Error("left behind:", rest)
			}
		})
	}
}

// A dump that somebody has replaced beside its FILE.rsbridge is never written over by a sync, also one
// without the state: it is told until it is moved away, or a repair writes over it. Another time of
// the same bytes is nothing.
func TestDumpReplaced(t *testing.T) {
	for _, end := range []string{"moved away", "repair", "repair of the same triples", "state lost"} {
		b := newBench(t)
		fill(b.src, 3)
		file := filepath.Join(t.TempDir(), "mirror.nt")
		dump, err := dumpsink.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		sync := func() error {
			_, err := b.openSink(dump).Sync(t.Context(), SyncOptions{})
			return err
		}
		if err := sync(); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := sync(); err != nil {
			t.Fatalf("%s: another time: %v", end, err)
		}
		precious := bytes.Repeat([]byte("#"), len(raw)) // of the same length
		if end == "repair of the same triples" {
			precious = append([]byte("# precious\n"), raw...)
		}
		if err := os.WriteFile(file, precious, 0o600); err != nil {
			t.Fatal(err)
		}
		b.src.put("e9.nt", nt("e9", "new"))
		if end == "state lost" {
			b.store = teststores.Records(t)
		}
		const want = "is not as rsbridge wrote it: somebody has changed or replaced it; nothing was changed: move it away"
		for range 2 {
			if err := b.openSink(dump).CheckPlace(t.Context(), false); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the check says %v", end, err)
			}
			if err := sync(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", end, err)
			}
			if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, precious) {
				t.Fatalf("%s: it was written over: %v", end, err)
			}
		}
		switch end {
		case "moved away", "state lost":
			err = os.Remove(file)
		default:
			_, err = b.openSink(dump).Audit(t.Context(), AuditOptions{Repair: true})
		}
		if err == nil {
			err = sync()
		}
		if err != nil {
			t.Fatalf("%s: %v", end, err)
		}
		if a, err := b.openSink(dump).Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal || a.Resources != 4 {
			t.Errorf("%s: %+v %v", end, a, err)
		}
	}
}

func TestSinkRefusals(t *testing.T) {
	b := newBench(t)
	fill(b.src, 3)
	file := filepath.Join(t.TempDir(), "mine.nt")
	os.WriteFile(file, []byte("precious\n"), 0o600)
	dump, err := dumpsink.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.openSink(dump).Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "adopt") {
		t.Error(err)
	}
	if raw, _ := os.ReadFile(file); string(raw) != "precious\n" {
		t.Error("it was overwritten")
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600)
	folder, err := filesink.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Name = "other"
	if _, err := b.openSink(folder).Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "adopt") {
		t.Error(err)
	}
	for _, name := range []string{"x.ttl", "x.ttl.gz", "x.nt.zst", "x.NQ.bz2", "x.zip"} {
		if _, err := dumpsink.Open(name); err == nil {
			t.Error(name, "is written as plain N-Triples")
		}
	}
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", ""
	if _, err := Open(context.Background(), b.store, folder, b.cfg, keep.Options{}); err == nil || !strings.Contains(err.Error(), "per-entity") {
		t.Error(err)
	}
}

// Two sources in one dump: each adds what it owns, blank nodes are blank nodes of two
// sources whatever they look like, and a state that is lost is told by name. A folder is
// for one.
func TestUnionDump(t *testing.T) {
	for _, name := range []string{"union.nt", "union.nq.gz"} {
		file := filepath.Join(t.TempDir(), name)
		dump, err := dumpsink.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer dump.Close()
		b := newBench(t)
		c := &bench{t: t, src: newTestSource(t), mir: b.mir, store: b.store, cfg: b.cfg, clock: b.clock, caps: b.caps}
		c.cfg.Name, c.cfg.Source = "second", c.src.url("/.well-known/resourcesync")
		b.cfg.Names, c.cfg.Names = []string{"copy", "second"}, []string{"copy", "second"}
		fill(b.src, 3)
		const shape = `<http://ex.org/%s> <http://ex.org/p> [ <http://ex.org/q> "y" ] .`
		b.src.put("one.ttl", fmt.Sprintf(shape, "one"))
		c.src.put("two.ttl", fmt.Sprintf(shape, "two"))
		c.src.put("same.nt", string(b.src.bodies["e0.nt"])) // a triple of both
		lines := func() (n, blanks int) {
			t.Helper()
			seen := map[string]bool{}
			for _, line := range dumpLines(t, dump) {
				n++
				q, _, err := rdfres.ParseLine([]byte(strings.TrimSpace(line)))
				if err != nil {
					t.Fatal(err)
				}
				for _, term := range []rdfres.Term{q.S, q.O} {
					if term.Kind() == rdfres.KindBlank {
						seen[term.Label()] = true
					}
					if strings.Contains(string(term), "genid") {
						t.Errorf("%s: %s", name, line)
					}
				}
			}
			return n, len(seen)
		}
		equal := func() {
			t.Helper()
			for _, x := range []*bench{b, c} {
				if rep, err := x.openSink(dump).Audit(t.Context(), AuditOptions{}); err != nil || !rep.Equal {
					t.Fatalf("%s of %s: %+v %v", x.cfg.Name, name, rep, err)
				}
			}
		}
		for _, x := range []*bench{b, c, b} {
			if rep, err := x.openSink(dump).Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%s: %+v %v", name, rep, err)
			}
		}
		all, blanks := lines()
		if blanks != 2 {
			t.Errorf("%s: %d blank nodes, want one of each source", name, blanks)
		}
		equal()
		// One ends: what is of both stays.
		c.src.remove("same.nt")
		c.src.remove("two.ttl")
		c.cfg.MaxDeleteRatio = 1
		if rep, err := c.openSink(dump).Sync(t.Context(), SyncOptions{}); err != nil || rep.Deleted != 2 {
			t.Fatalf("%s: %+v %v", name, rep, err)
		}
		if n, blanks := lines(); n != all-2 || blanks != 1 {
			t.Errorf("%s: %d lines of %d, %d blank nodes", name, n, all, blanks)
		}
		equal()
		// The file beside it is lost, which knew whose the blank nodes are.
		if err := os.Remove(file + ".rsbridge"); err != nil {
			t.Fatal(err)
		}
		for _, x := range []*bench{b, c} {
			if rep, err := x.openSink(dump).Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%s: %+v %v", name, rep, err)
			}
		}
		if n, blanks := lines(); n != all-2 || blanks != 1 {
			t.Errorf("%s without its state: %d lines of %d, %d blank nodes", name, n, all, blanks)
		}
		equal()
		// A dump has one graph.
		third := &bench{t: t, src: b.src, mir: b.mir, store: b.store, cfg: b.cfg, clock: b.clock, caps: b.caps}
		third.cfg.Name, third.cfg.GraphIRI, third.cfg.Adopt = "third", "http://mirror.example/third", true
		if _, err := third.openSink(dump).Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "a dump has one graph") {
			t.Errorf("%s: another graph: %v", name, err)
		}
		// Another state knows nothing of either, nor does one of the two without its records.
		lost := newBench(t)
		lost.cfg = b.cfg
		if _, err := lost.openSink(dump).Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), `is the mirror of "second"`) {
			t.Errorf("%s: a state that is lost: %v", name, err)
		}
		if n, _ := lines(); n != all-2 {
			t.Errorf("%s: %d lines are left of %d", name, n, all-2)
		}
	}
	b := newBench(t)
	fill(b.src, 3)
	folder, err := filesink.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := b.openSink(folder).Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	b.cfg.Name = "second"
	if _, err := b.openSink(folder).Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "a folder is for one") {
		t.Error(err)
	}
}

// A dump whose records are lost is taken over by the destination that wrote it, and
// compared.
func TestDumpTakenOver(t *testing.T) {
	dump, err := dumpsink.Open(filepath.Join(t.TempDir(), "a.nt"))
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	b := newBench(t)
	fill(b.src, 3)
	if _, err := b.openSink(dump).Sync(t.Context(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	b.src.remove("e1.nt")
	lost := benchOf(t, b.src, b.mir, teststores.Records(t))
	rep, err := lost.openSink(dump).Sync(t.Context(), SyncOptions{})
	if err != nil || !rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	if a, err := lost.openSink(dump).Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal || a.Resources != 2 {
		t.Fatalf("%+v %v", a, err)
	}
	if lines := strings.Join(dumpLines(t, dump), ""); strings.Contains(lines, "/e1>") {
		t.Errorf("what is gone is still there:\n%s", lines)
	}
}

// TestSinkOfNothing: a dump of an empty source is an empty file.
func TestSinkOfNothing(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "made", "mirror.nt")
	dump, err := dumpsink.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	d := b.openSink(dump)
	plan, err := d.Sync(t.Context(), SyncOptions{DryRun: true})
	if _, serr := os.Stat(file); err != nil || serr == nil {
		t.Fatalf("dry run: %+v %v, the file: %v", plan, err, serr)
	}
	rep, err := d.Sync(t.Context(), SyncOptions{})
	raw, ferr := os.ReadFile(file)
	if err != nil || !rep.InSync || ferr != nil || len(raw) > 0 {
		t.Fatalf("%+v %v: %q %v", rep, err, raw, ferr)
	}
	if rep, err := d.Audit(t.Context(), AuditOptions{}); err != nil || !rep.Equal {
		t.Errorf("%+v %v", rep, err)
	}
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == filesink.StateFile {
			return err
		}
		raw, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Random histories, with crashes: the folder has every representation at the path
// of its address, RDF or not, byte for byte, and nothing else.
func TestFolder(t *testing.T) {
	for seed := range uint64(4) {
		if teststores.Unraced(t, 3) {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours = seed%2 == 0
			s.dump = seed == 3
			dir := t.TempDir()
			sink, err := filesink.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			rnd := rand.New(rand.NewPCG(seed, 1))
			names := []string{"a.nt", "b.ttl", "img.png", "dir/c.nt", "dir/d/e.jsonld", "broken.pdf"}
			want := func() map[string]string {
				out := map[string]string{}
				for k, v := range s.bodies {
					out["set/r/"+k] = string(v)
				}
				return out
			}
			for step := range 12 {
				for range 1 + rnd.IntN(4) {
					k := names[rnd.IntN(len(names))]
					switch {
					case rnd.IntN(4) == 0:
						s.remove(k)
					case strings.HasSuffix(k, ".nt"):
						s.put(k, nt("x", fmt.Sprint(step, k)))
					case strings.HasSuffix(k, ".ttl"):
						s.put(k, fmt.Sprintf("<http://ex.org/t> <http://ex.org/p> [ <http://ex.org/q> %d ] .", step))
					case strings.HasSuffix(k, ".jsonld"):
						s.put(k, fmt.Sprintf(`[{"@id":"http://ex.org/j","http://ex.org/p":[{"@value":"%d"}]}]`, step))
					default:
						s.put(k, fmt.Sprintf("\x00binary %d %s", step, k))
					}
				}
				d := b.openSink(sink)
				if rnd.IntN(3) == 0 {
					d.mem.Crash = cutAfter(rnd.IntN(6))
					d.Sync(context.Background(), SyncOptions{})
					d = b.openSink(sink)
				}
				rep, err := d.Sync(context.Background(), SyncOptions{})
				if err != nil || !rep.InSync && rep.Held == "" {
					t.Fatalf("%+v %v", rep, err)
				}
				if rep.Held != "" { // all of a few are gone: told
					d.cfg.MaxDeleteRatio = 1
					if _, err := d.Sync(context.Background(), SyncOptions{Full: true}); err != nil {
						t.Fatal(err)
					}
				}
				got := filesIn(t, dir)
				if w := want(); fmt.Sprint(got) != fmt.Sprint(w) {
					t.Fatalf("step %d: the folder has %q, want %q (%+v)", step, got, w, rep)
				}
				for _, depth := range []string{"store", "origin"} {
					a, err := b.openSink(sink).Audit(context.Background(), AuditOptions{Depth: depth})
					if err != nil || !a.Equal || a.Resources != int64(len(s.bodies)) {
						t.Fatalf("%+v %v, %d resources", a, err, len(s.bodies))
					}
				}
			}
			// damage of every kind, and repair
			s.put("a.nt", nt("a", "1"))
			s.put("b.ttl", "<http://ex.org/t> <http://ex.org/p> 1 .")
			if _, err := b.openSink(sink).Sync(context.Background(), SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(dir, "set/r/a.nt"))
			os.WriteFile(filepath.Join(dir, "set/r/b.ttl"), []byte("changed"), 0o600)
			os.WriteFile(filepath.Join(dir, "set/stranger"), []byte("x"), 0o600)
			a, err := b.openSink(sink).Audit(context.Background(), AuditOptions{})
			if err != nil || a.Missing != 1 || a.Different != 1 || a.Extra != 1 {
				t.Fatalf("%+v %v", a, err)
			}
			if a, err = b.openSink(sink).Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Repaired != 3 {
				t.Fatalf("%+v %v", a, err)
			}
			if got, w := filesIn(t, dir), want(); fmt.Sprint(got) != fmt.Sprint(w) {
				t.Fatalf("the folder has %q, want %q", got, w)
			}
		})
	}
}

// A kept file of what the source has no more cannot be fetched again: its damage is
// told until the file is put back, or the source has it again.
// A file that a run has removed before it was interrupted is there again when its
// resource is, whatever stands in its place meanwhile.
func TestFolderReturnsAfterCrash(t *testing.T) {
	for _, kind := range []string{"same", "other", "in the way", "gone"} {
		b := newBench(t)
		s := b.src
		s.ours = true
		b.cfg.GraphIRI = ""
		dir := t.TempDir()
		sink, err := filesink.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Close()
		fill(s, 2)
		s.put("dir/x.nt", nt("x", "first"))
		if _, err := b.openSink(sink).Sync(context.Background(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		s.remove("dir/x.nt")
		d := b.openSink(sink)
		d.mem.Crash = cutAt("written")
		if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		if kind == "in the way" || kind == "gone" {
			s.put("dir", "no folder any more")
		}
		switch kind {
		case "same":
			s.put("dir/x.nt", nt("x", "first"))
		case "other", "in the way":
			s.put("dir/x.nt", nt("x", "second"))
		}
		rep, err := b.openSink(sink).Sync(context.Background(), SyncOptions{})
		if err != nil || !rep.InSync {
			t.Fatalf("%s: %+v %v", kind, rep, err)
		}
		a, err := b.openSink(sink).Audit(context.Background(), AuditOptions{})
		if err != nil || !a.Equal || a.Resources != int64(len(s.bodies)) {
			t.Fatalf("%s: %+v %v", kind, a, err)
		}
	}
}

func TestFolderKeepsDeleted(t *testing.T) {
	b := newBench(t)
	b.cfg.Keep = "deleted"
	dir := t.TempDir()
	sink, err := filesink.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	sync := func() {
		t.Helper()
		if rep, err := b.openSink(sink).Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
	}
	damaged := func(want int64) {
		t.Helper()
		for _, repair := range []bool{false, true} {
			if rep, err := b.openSink(sink).Audit(context.Background(), AuditOptions{Repair: repair}); err != nil || rep.Different != want {
				t.Fatalf("%+v %v", rep, err)
			}
		}
	}
	fill(b.src, 4)
	sync()
	b.src.remove("e1.nt")
	sync()
	file := filepath.Join(dir, "set/r/e1.nt")
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(file, []byte("changed"), 0o600)
	damaged(1)
	os.WriteFile(file, body, 0o600)
	damaged(0)
	os.WriteFile(file, []byte("changed"), 0o600)
	b.src.put("e1.nt", string(body))
	sync()
	if got := filesIn(t, dir); got["set/r/e1.nt"] != string(body) {
		t.Fatalf("%q", got)
	}
	damaged(0)
}

// A folder whose source has another host now keeps no file of the one before.
func TestFolderOfAnotherHost(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	dir := t.TempDir()
	open := b.intoFolder(dir)
	b.cfg.MaxDeleteRatio = 1
	fill(s, 3)
	s.put("img.png", "\x00")
	sync := func(o SyncOptions) {
		t.Helper()
		b.cfg.Source = s.url("/.well-known/resourcesync")
		rep, err := open().Sync(t.Context(), o)
		if err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		var got, want []string
		for _, body := range filesIn(t, dir) {
			got = append(got, body)
		}
		for _, body := range s.bodies {
			want = append(want, string(body))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the folder has %q, want %q", got, want)
		}
		a, err := open().Audit(t.Context(), AuditOptions{})
		if err != nil || !a.Equal || a.Resources != int64(len(want)) {
			t.Errorf("%+v %v", a, err)
		}
	}
	sync(SyncOptions{})
	one, other := s.srv, httptest.NewServer(s)
	defer other.Close()
	s.srv = other
	sync(SyncOptions{})
	s.put("e1.nt", nt("e1", "new"))
	s.remove("e2.nt")
	sync(SyncOptions{})
	s.srv = one
	sync(SyncOptions{})
	s.put("e2.nt", nt("e2", "again"))
	s.remove("img.png")
	sync(SyncOptions{})
}

// dumpLines are those of the file.
func dumpLines(t *testing.T, s sink.Sink) []string {
	t.Helper()
	file := strings.TrimPrefix(s.Name(), "dump:")
	raw, err := os.ReadFile(file)
	if err == nil && strings.HasSuffix(file, ".gz") {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(raw)); err == nil {
			raw, err = io.ReadAll(z)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(raw)))
}

// A file has the bytes of its own address: RDF linked from a page never stands for it.
func TestFolderTakesNoAlternate(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.changes = false
	dir := t.TempDir()
	open := b.intoFolder(dir)
	s.types["a.html"] = "text/html"
	badBody(s, "a.html", http.NotFound)
	answerAt(s, "/set/r/a.ttl", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/turtle")
		w.Write([]byte(`<http://ex.org/a> <http://ex.org/v> "1" .`))
	})
	s.damage = func(doc string) string {
		return strings.Replace(doc, "</url>", `<rs:ln rel="alternate" href="`+s.url(s.folder+"a.ttl")+`" type="text/turtle"/></url>`, 1)
	}
	rep, err := open().Sync(t.Context(), SyncOptions{})
	if err != nil || rep.Pending != 1 {
		t.Errorf("%+v %v", rep, err)
	}
	if got := filesIn(t, dir); len(got) > 0 {
		t.Errorf("the folder has %q", got)
	}
}
