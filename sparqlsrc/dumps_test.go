package sparqlsrc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

func pack(t testing.TB, how string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch how {
	case "gzip":
		w := gzip.NewWriter(&b)
		_, err = w.Write(data)
		err = errors.Join(err, w.Close())
	case "skipped": // as pzstd writes it: a frame that says something of its own comes first
		return append([]byte("\x5f\x2a\x4d\x18\x04\x00\x00\x00size"), pack(t, "zstd", data)...)
	case "zstd":
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(&b); err == nil {
			_, err = w.Write(data)
			err = errors.Join(err, w.Close())
		}
	default:
		return data
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// put writes a file that was changed so many minutes ago.
func put(t testing.TB, path string, data []byte, minutes int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Duration(minutes) * time.Minute)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func dumps(t testing.TB, cfg Config, o DumpOptions) *Dumps {
	t.Helper()
	if cfg.TempDir == "" {
		cfg.TempDir = t.TempDir()
	}
	d, err := NewDumps(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readScan(t testing.TB, sc *Scan) map[string][]rdfres.Triple {
	t.Helper()
	got, _ := read(t, sc)
	return got
}

// TestDumpIsAScan: whatever the packing and the syntax, a file gives what a
// store with its triples would give.
func TestDumpIsAScan(t *testing.T) {
	ts := randomGraph(rand.New(rand.NewPCG(1, 2)), 400)
	want := expected(t, ts, false)
	nt, err := codec.Encode(rdfres.NTriples, "", ts)
	if err != nil {
		t.Fatal(err)
	}
	nq := strings.ReplaceAll(string(nt), " .\n", " <http://g.example/1> .\n") + "<http://other.example/s> <http://p.example/> <http://o.example/> <http://g.example/2> .\n<http://d.example/> <http://p.example/> \"default\" .\n"
	for _, tc := range []struct {
		name, packing string
		data          string
		graphs        []string
	}{
		{"a.nt", "", string(nt), nil},
		{"a.nt", "", strings.TrimSuffix(string(nt), "\n"), nil},
		{"a.nt.gz", "gzip", string(nt), nil},
		{"a.nt", "gzip", string(nt), nil}, // by its first bytes
		{"a.nt.zst", "zstd", string(nt), nil},
		{"a.ttl", "", string(nt), nil},
		{"a.ttl.gz", "gzip", string(nt), nil},
		{"a.nq.gz", "gzip", nq, []string{"http://g.example/1"}},
		{"a.dump", "zstd", nq, []string{"http://g.example/1"}},
		{"a.nt.zst", "skipped", string(nt), nil},
		{"a.nt", "skipped", string(nt), nil},
	} {
		path := filepath.Join(t.TempDir(), tc.name)
		put(t, path, pack(t, tc.packing, []byte(tc.data)), 10)
		d := dumps(t, Config{Graphs: tc.graphs}, DumpOptions{Series: dumpfile.Series{Patterns: []string{filepath.Dir(path) + "/*"}}})
		got, err := d.Scan(t.Context(), dumpfile.File{}, false)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if got.File.Path != path {
			t.Errorf("read %s", got.File.Path)
		}
		diff(t, tc.name+" "+tc.packing, readScan(t, got.Scan), want)
		if st := got.Stats(); st.Triples != int64(len(ts)) || st.Covered != st.Triples || st.Way != "dump" {
			t.Errorf("%s: %+v", tc.name, st)
		}
	}
}

const (
	oneTriple = "<http://e.example/s> <http://e.example/p> \"1\" .\n"
	twoTriple = oneTriple + "<http://e.example/t> <http://e.example/p> \"2\" .\n"
)

// TestDumpNewest goes through the life of a series.
func TestDumpNewest(t *testing.T) {
	dir := t.TempDir()
	d := dumps(t, Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*.nt", dir + "/*.nt.gz"}}})
	scan := func(last dumpfile.File) DumpScan {
		t.Helper()
		got, err := d.Scan(t.Context(), last, false)
		if err != nil {
			t.Fatal(err)
		}
		if got.Scan != nil {
			t.Cleanup(func() { got.Scan.Close() })
		}
		return got
	}
	if _, err := d.Scan(t.Context(), dumpfile.File{}, false); err == nil || !strings.Contains(err.Error(), "no file is named by") {
		t.Errorf("no file: %v", err)
	}
	put(t, dir+"/day-9.nt", []byte(oneTriple), 30)
	put(t, dir+"/day-10.nt", []byte(twoTriple), 60) // changed before, but later by name
	first := scan(dumpfile.File{})
	if first.Scan == nil || filepath.Base(first.File.Path) != "day-10.nt" {
		t.Fatalf("first: %+v", first.File)
	}
	if n := len(readScan(t, first.Scan)); n != 2 {
		t.Errorf("%d entities", n)
	}
	if again := scan(first.File); again.Scan != nil || again.File != first.File {
		t.Errorf("unchanged: %+v", again)
	}
	// A newer one comes slowly.
	whole := pack(t, "gzip", []byte(strings.Repeat(twoTriple, 100)))
	put(t, dir+"/day-11.nt.gz", whole[:len(whole)-9], 5)
	part := scan(first.File)
	if part.Scan != nil || part.File != first.File || len(part.Incomplete) != 1 || !strings.Contains(part.Incomplete[0].Why, "gzip ends too early") {
		t.Errorf("incomplete: %+v", part)
	}
	// On a first scan an older one is the newest complete one.
	if older := scan(dumpfile.File{}); older.Scan == nil || older.File.Path != first.File.Path || len(older.Incomplete) != 1 {
		t.Errorf("first with an incomplete one: %+v", older)
	}
	put(t, dir+"/day-11.nt.gz", whole, 4)
	if next := scan(first.File); next.Scan == nil || filepath.Base(next.File.Path) != "day-11.nt.gz" {
		t.Errorf("complete: %+v", next)
	} else {
		first = next
	}
	// It is taken away: what it said stays.
	if err := os.Remove(dir + "/day-11.nt.gz"); err != nil {
		t.Fatal(err)
	}
	if gone := scan(first.File); gone.Scan != nil || gone.File != first.File {
		t.Errorf("gone: %+v", gone)
	}
	// The same name with another content.
	put(t, dir+"/day-11.nt.gz", pack(t, "gzip", []byte(oneTriple)), 3)
	if other := scan(first.File); other.Scan == nil {
		t.Errorf("changed: %+v", other)
	}
	// By time another one is the newest.
	put(t, dir+"/day-1.nt", []byte(oneTriple), 1)
	d.o.ByTime = true
	if byTime := scan(dumpfile.File{}); filepath.Base(byTime.File.Path) != "day-1.nt" {
		t.Errorf("by time: %+v", byTime.File)
	}
	// Of one name, the one that was changed last counts, however they are packed.
	put(t, dir+"/day-12.nt.gz", pack(t, "gzip", []byte(oneTriple)), 9)
	d.o.ByTime = false
	state := scan(first.File)
	if err := os.Remove(dir + "/day-12.nt.gz"); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/day-12.nt", []byte(twoTriple), 8)
	if unpacked := scan(state.File); unpacked.Scan == nil || filepath.Base(unpacked.File.Path) != "day-12.nt" {
		t.Errorf("after %s: %+v", state.File.Path, unpacked)
	}
	// Patterns that no longer name the last one begin anew.
	d.o.ByTime, d.o.Patterns = false, []string{dir + "/day-9*"}
	if anew := scan(first.File); anew.Scan == nil || filepath.Base(anew.File.Path) != "day-9.nt" {
		t.Errorf("other patterns: %+v", anew)
	}
}

// TestDumpAgain: where the state is to be read again, nothing older is taken for it.
func TestDumpAgain(t *testing.T) {
	dir := t.TempDir()
	d := dumps(t, Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*.nt"}}})
	put(t, dir+"/day-8.nt", []byte(oneTriple), 30)
	put(t, dir+"/day-9.nt", []byte(twoTriple), 20)
	scan := func(last dumpfile.File, want string) dumpfile.File {
		t.Helper()
		got, err := d.Scan(t.Context(), last, true)
		if err != nil || got.Scan == nil || filepath.Base(got.File.Path) != want {
			t.Fatalf("want %s: %+v %v", want, got, err)
		}
		if err := got.Scan.Close(); err != nil {
			t.Error(err)
		}
		return got.File
	}
	state := scan(dumpfile.File{}, "day-9.nt")
	scan(state, "day-9.nt")
	put(t, dir+"/day-10.nt", []byte(oneTriple), 10)
	scan(state, "day-10.nt")
	for _, name := range []string{"/day-10.nt", "/day-9.nt"} {
		if err := os.Remove(dir + name); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := d.Scan(t.Context(), state, true); err == nil || got.Scan != nil || !strings.Contains(err.Error(), "day-9.nt, which is the state, cannot be read again") {
		t.Errorf("gone: %+v %v", got, err)
	}
}

// wrong is a gzip file whose checksum is.
func wrong(packed []byte) string {
	packed[len(packed)-8] ^= 1
	return string(packed)
}

// TestDumpFaults: what is told of files that are not as they should be.
func TestDumpFaults(t *testing.T) {
	for _, tc := range []struct{ name, data, err, cut string }{
		{"empty.nt", "", "", "it is empty"},
		{"empty.nt.gz", "", "", "it is empty"},
		{"nothing.nt.gz", string(pack(t, "gzip", nil)), "", "it is empty"}, // as of a pipe whose first program failed
		{"nothing.nq.zst", string(pack(t, "zstd", nil)), "", "it is empty"},
		{"half.nt", oneTriple + "<http://e.example/t> <http://e.exa", "", "its last line, 2, is not whole"},
		{"last.nt", oneTriple + "nonsense\n", "last.nt: line 2", ""},
		{"last.nt.gz", string(pack(t, "gzip", []byte(oneTriple+"nonsense\n"))), "last.nt.gz: line 2", ""},
		{"begun.nt.gz", "\x1f", "", "its gzip ends too early"},
		{"begun.nt.zst", "\x28\xb5\x2f", "", "its zstd ends too early"},
		{"begun.nt.bz2", "BZ", "", "its bzip2 ends too early"},
		{"bad.nt", oneTriple + "nonsense\n" + oneTriple, "bad.nt: line 2", ""},
		{"quads.nt", "<http://e.example/t> <http://e.example/p> \"1\" <http://g.example/> .\n" + oneTriple, "a fourth term: this is N-Quads", ""},
		{"plain.nt.gz", oneTriple, "is called gzip by its name", ""},
		{"one.rdf", "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>", "is called rdfxml by its name; dumps are N-Triples", ""},
		{"one.trig.gz", string(pack(t, "gzip", []byte("{}"))), "is called trig by its name", ""},
		{"one.jsonld", "[]", "is called jsonld by its name", ""},
		{"half.ttl", "@prefix e: <http://e.example/> .\ne:a e:p 1 .\ne:b e:p \"", "", "is not whole"},
		{"number.ttl", "<http://e.example/a> <http://e.example/p> 2.", "", "within a number or a name perhaps"}, // of 2.5
		{"name.nt", "<http://e.example/a> <http://e.example/p> _:a.", "", "within a number or a name perhaps"},
		{"lastbutone.ttl", "@prefix e: <http://e.example/> .\ne:a x:p 1 .\ne:b e:p 2 .", "lastbutone.ttl: line 2", ""},
		{"bad.ttl", "@prefix e: <http://e.example/> .\ne:a x:p 1 .\ne:b e:p 2 .\ne:c e:p 3 .\n", "bad.ttl: line 2", ""},
		{"named.nq", "<http://e.example/t> <http://e.example/p> \"1\" <http://g.example/> .\n", "none of its 1 statements is in the graphs of the set (the first is in <http://g.example/>)", ""},
		{"broken.nt.gz", wrong(pack(t, "gzip", []byte(twoTriple))), "broken.nt.gz: unpack gzip", ""},
		{"half.nt.zst", string(pack(t, "zstd", []byte(strings.Repeat(twoTriple, 50)))[:30]), "", "its zstd ends too early"},
		{"wide.nt.zst", "\x28\xb5\x2f\xfd\x00\xa0\x00\x00\x00\x00", "windows of up to 512 MB are read", ""}, // 1 GB
		{"half.nt.bz2", "BZh91AY&SY&\xe2*1\x00\x00\x09Y\x80\x00\x10P\x01\x80\x15\x22F\xcc@ ", "", "its bzip2 ends too early"},
	} {
		dir := t.TempDir()
		put(t, dir+"/"+tc.name, []byte(tc.data), 5)
		_, err := dumps(t, Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*"}}}).Scan(t.Context(), dumpfile.File{}, false)
		want := tc.err + tc.cut
		if err == nil || !strings.Contains(err.Error(), want) || (tc.cut != "") != strings.Contains(err.Error(), "none of the 1 files is complete") {
			t.Errorf("%s: %v, want %s", tc.name, err, want)
		}
	}
}

// TestDumpSettles: a file is not read while it grows, and is when it has been left
// alone. Time is virtual, that of the file too.
func TestDumpSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/a.nt"
		put(t, path, []byte(oneTriple), 0)
		d := dumps(t, Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{path}}, Settle: 2 * time.Second})
		began := time.Now()
		got, err := d.Scan(t.Context(), dumpfile.File{}, false)
		if err != nil || got.Scan == nil || time.Since(began) != 2*time.Second {
			t.Fatalf("after %s: %+v %v", time.Since(began), got, err)
		}
		got.Scan.Close()
		last := got.File
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { // a line more, and never when the other looks: that is every two seconds after a line
			var err error
			for i := 1; err == nil && ctx.Err() == nil; i++ {
				data := strings.Repeat(oneTriple, 1+i)
				err = errors.Join(os.WriteFile(path, []byte(data), 0o600), os.Chtimes(path, time.Time{}, time.Now()))
				time.Sleep(1500 * time.Millisecond)
			}
			done <- err
		}()
		synctest.Wait() // the first line is there
		got, err = d.Scan(t.Context(), last, false)
		if err != nil || got.Scan != nil || len(got.Incomplete) != 1 || got.Incomplete[0].Why != "it is still growing" {
			t.Errorf("%+v %v", got, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got, err = d.Scan(t.Context(), last, false); err != nil || got.Scan == nil {
			t.Fatalf("%+v %v", got, err)
		}
		got.Scan.Close()
	})
}

// TestDumpGraphs: graphs are chosen as of a store, and those of rsbridge left out.
func TestDumpGraphs(t *testing.T) {
	const nq = `<http://e.example/d> <http://e.example/p> "default" .
<http://e.example/1> <http://e.example/p> "one" <http://g.example/1> .
<http://e.example/2> <http://e.example/p> "two" <http://g.example/2> .
<http://e.example/1> <http://e.example/p> "one" <http://g.example/2> .
<http://e.example/x> <http://e.example/p> "state" <urn:rsbridge:state> .
`
	dir := t.TempDir()
	put(t, dir+"/a.nq", []byte(nq), 5)
	for _, tc := range []struct {
		graphs   []string
		entities int
		own      int64
	}{{nil, 1, 0}, {[]string{"http://g.example/2"}, 2, 0}, {[]string{"http://g.example/1", "http://g.example/2"}, 2, 0}, {[]string{"*"}, 3, 1}} {
		got, err := dumps(t, Config{Graphs: tc.graphs}, DumpOptions{Series: dumpfile.Series{Patterns: []string{dir + "/*"}}}).Scan(t.Context(), dumpfile.File{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(readScan(t, got.Scan)); n != tc.entities || got.Stats().Own != tc.own {
			t.Errorf("%q: %d entities, %+v", tc.graphs, n, got.Stats())
		}
	}
}

func TestNewDumpsRefuses(t *testing.T) {
	for want, tc := range map[string]struct {
		cfg Config
		o   DumpOptions
	}{
		"no files are named": {},
		"is no pattern":      {Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{"[x"}}}},
		"by a CONSTRUCT":     {Config{Describe: "CONSTRUCT { ?entity ?p ?o } WHERE { ?entity ?p ?o }"}, DumpOptions{Series: dumpfile.Series{Patterns: []string{"x"}}}},
		"a select query":     {Config{Select: Select{Query: "SELECT ?entity { ?entity ?p ?o }"}}, DumpOptions{Series: dumpfile.Series{Patterns: []string{"x"}}}},
	} {
		if _, err := NewDumps(tc.cfg, tc.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Folders and files whose names hold the signs of patterns are meant themselves where
// they are there; what is not there is a pattern.
func TestDumpsInNamesWithSigns(t *testing.T) {
	for _, folder := range []string{"[x]", "[x", "a*b", "a?b", `back\slash`, "[^x]*"} {
		dir := filepath.Join(t.TempDir(), folder)
		put(t, filepath.Join(dir, "day-1.nt"), []byte(oneTriple), 5)
		put(t, filepath.Join(dir, "day-[2].nt"), []byte(oneTriple), 4)
		put(t, filepath.Join(dir, "sub", "[y]", "day-3.nt"), []byte(oneTriple), 3)
		put(t, filepath.Join(filepath.Dir(dir), "x", "day-9.nt"), []byte(oneTriple), 3) // which [x] would name
		for pattern, want := range map[string]string{
			"day-1.nt":       "day-1.nt",
			"day-[1].nt":     "day-1.nt",
			"day-[2].nt":     "day-[2].nt",
			"day-?.nt":       "day-1.nt",
			"s*/[[]y]/*.nt":  "sub/[y]/day-3.nt",
			"sub/[y]/day*nt": "sub/[y]/day-3.nt",
		} {
			d := dumps(t, Config{}, DumpOptions{Series: dumpfile.Series{Patterns: []string{filepath.Join(dir, pattern)}}})
			files, err := d.Files()
			if err != nil || len(files) != 1 || files[0].Path != filepath.Join(dir, want) {
				t.Errorf("%s in %s: %v, %v", pattern, folder, files, err)
				continue
			}
			first, err := d.Scan(t.Context(), dumpfile.File{}, false)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := d.Scan(t.Context(), first.File, false); err != nil || again.Scan != nil {
				t.Errorf("%s in %s is not the state that was read: %v", pattern, folder, err)
			}
			if err := first.Scan.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := NewDumps(Config{TempDir: t.TempDir()}, DumpOptions{Series: dumpfile.Series{Patterns: []string{t.TempDir() + "/[x"}}}); err == nil || !strings.Contains(err.Error(), "is no pattern") {
		t.Errorf("a pattern that is none: %v", err)
	}
}

// Zeros behind the end of a gzip file are ignored, and told; anything else behind one of
// its members may be what is left of another.
func TestGzipPadding(t *testing.T) {
	one, two := string(pack(t, "gzip", []byte(oneTriple))), string(pack(t, "gzip", []byte(twoTriple)))
	for _, c := range []struct {
		name, data string
		triples    int64
		wrong      string
		told       bool
	}{
		{"whole", one, 1, "", false},
		{"members", one + two, 3, "", false},
		{"zeros", one + strings.Repeat("\x00", 100_000), 1, "", true},
		{"members and zeros", one + two + "\x00", 3, "", true},
		{"something else", one + "x", 0, "what follows its end is no gzip", false},
		{"zeros and something else", one + "\x00\x00" + two, 0, "zeros follow its end, and then something else", false},
		{"a cut member", one + two[:len(two)-3], 0, "gzip ends too early", false},
		{"a cut header", one + two[:5], 0, "gzip ends too early", false},
		{"its first byte", one + two[:1], 0, "gzip ends too early", false},
	} {
		path := filepath.Join(t.TempDir(), "a.nt.gz")
		put(t, path, []byte(c.data), 5)
		var log bytes.Buffer
		d := dumps(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, DumpOptions{Series: dumpfile.Series{Patterns: []string{path}}})
		sc, err := d.Scan(t.Context(), dumpfile.File{}, false)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if n := sc.Stats().Triples; n != c.triples || strings.Contains(log.String(), "zeros behind the end") != c.told {
			t.Errorf("%s: %d triples; the log says %s", c.name, n, &log)
		}
		if err := sc.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
