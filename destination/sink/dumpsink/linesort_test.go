package dumpsink

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/rsbridge/rsbridge/destination/sink"
)

// Lines come out sorted and once, however they came: in blocks, across blocks,
// of one subject in several descriptions, and with more of one than is held.
func TestLineSorter(t *testing.T) {
	cases := map[string]func(*rand.Rand) []string{
		"none": func(*rand.Rand) []string { return nil },
		"shared subjects": func(r *rand.Rand) (lines []string) {
			for range 3000 {
				s := fmt.Sprintf("<http://ex.org/%d>", r.IntN(200))
				var of []string
				for range r.IntN(6) {
					of = append(of, fmt.Sprintf("%s <http://ex.org/p%d> \"%d\" .\n", s, r.IntN(3), r.IntN(9)))
				}
				slices.Sort(of)
				lines = append(lines, of...)
			}
			return lines
		},
		"subjects that begin alike": func(r *rand.Rand) (lines []string) {
			for range 2000 {
				for _, s := range []string{"<a:b>", "<a:b!>", "<a:b#>", "<a:bb>", "_:b1", "_:b10"} {
					lines = append(lines, fmt.Sprintf("%s <a:p> <a:%d> .\n", s, r.IntN(50)))
				}
			}
			return lines
		},
		"one large": func(r *rand.Rand) (lines []string) {
			for range 120_000 { // 10 MB of one subject
				lines = append(lines, fmt.Sprintf("<http://ex.org/large> <http://ex.org/property> <http://example.org/value/%08d> .\n", r.IntN(100_000)))
			}
			return append(append(lines, "<http://ex.org/a> <a:p> <a:o> .\n"), lines[:5]...)
		},
	}
	for name, of := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lines := of(rand.New(rand.NewPCG(1, 2)))
			s, err := newLineSorter(dir, 256<<10)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if err := s.add([]byte(l)); err != nil {
					t.Fatal(err)
				}
			}
			var got bytes.Buffer
			n, err := s.write(&got)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(lines)
			lines = slices.Compact(lines)
			if int(n) != len(lines) || got.String() != strings.Join(lines, "") {
				t.Fatalf("%d lines, not the %d that are to come", n, len(lines))
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Fatal(left, err)
			}
		})
	}
}

// The number of triples of a dump is that of the file that stands there, also when
// somebody else wrote it since.
func TestDumpCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.nt")
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	count := func(want int64) {
		t.Helper()
		if n, err := s.count("a:g"); err != nil || n != want {
			t.Fatalf("%d, not %d: %v", n, want, err)
		}
	}
	count(0)
	lines := []byte("<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:q> .\n<a:s> <a:p> <a:o> .\n")
	if err := s.replace("a:g", nil, func(put sink.PutPart) error { return put("", lines) }); err != nil {
		t.Fatal(err)
	}
	count(2)
	if err := os.WriteFile(file, lines[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	count(1)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	count(0)
}

// The blank nodes of the sources of a dump are blank nodes in it, told apart by a prefix;
// skolem IRIs of others stay, and text that looks like one is text. Read back, all are
// skolem IRIs.
func TestDumpBlankNodes(t *testing.T) {
	name := func(n int) string { return "rsb" + strings.Repeat("0", 40) + "n" + strconv.Itoa(n) }
	skolem := func(authority string, n int) string { return "<" + authority + "/.well-known/genid/" + name(n) + ">" }
	const text = `<a:s> <a:p> "_:x <http://a.example/.well-known/genid/y> _:z" .` + "\n"
	parts := [][2]string{
		{"http://b.example", text}, // decides nothing
		{"http://a.example/", "<a:s> <a:p> _:" + name(1) + " .\n_:" + name(1) + " <a:p> \"1\" .\n"},
		{"http://b.example", "<a:s> <a:p> _:" + name(2) + " .\n_:" + name(2) + " <a:p> \"2\" .\n"},
		{"http://b.example", "<a:s> <a:q> " + skolem("http://a.example", 3) + " .\n<a:s> <a:q> " + skolem("http://c.example", 4) + " .\n<a:s> <a:r> _:" + name(5) + " .\n"},
		{"http://a.example/", text + "_:" + name(1) + " <a:p> \"1\" .\n"}, // doubles
	}
	a, b := "http://a.example", "http://b.example"
	want := []string{
		text,
		"<a:s> <a:p> _:" + name(1) + " .\n", "_:" + name(1) + " <a:p> \"1\" .\n",
		"<a:s> <a:p> _:s1-" + name(2) + " .\n", "_:s1-" + name(2) + " <a:p> \"2\" .\n",
		"<a:s> <a:q> _:" + name(3) + " .\n", "<a:s> <a:q> " + skolem("http://c.example", 4) + " .\n",
		"<a:s> <a:r> _:s1-" + name(5) + " .\n",
	}
	for _, file := range []string{"a.nt", "a.nq.gz"} {
		s, err := Open(filepath.Join(t.TempDir(), file))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.replace("a:g", []string{a + "/", b}, func(put sink.PutPart) error {
			for _, p := range parts {
				if err := put(p[0], []byte(p[1])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := dumpLines(t, s); !slices.Equal(got, sorted(want, s.quad)) {
			t.Errorf("%s:\n%s", file, strings.Join(got, ""))
		}
		var read, all []string
		if err := s.each("a:g", func(line []byte) error { read = append(read, string(line)); return nil }); err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			for n := range 6 {
				line = strings.ReplaceAll(line, "_:s1-"+name(n), skolem(b, n))
				line = strings.ReplaceAll(line, "_:"+name(n), skolem(a, n))
			}
			all = append(all, line)
		}
		if slices.Sort(read); !slices.Equal(read, sorted(all, false)) {
			t.Errorf("%s, read back:\n%s", file, strings.Join(read, ""))
		}
	}
}

func sorted(lines []string, quads bool) []string {
	lines = slices.Clone(lines)
	for i := range lines {
		if quads {
			lines[i] = strings.TrimSuffix(lines[i], ".\n") + "<a:g> .\n"
		}
	}
	slices.Sort(lines)
	return lines
}

// dumpLines are those of the file.
func dumpLines(t *testing.T, s *Dump) []string {
	t.Helper()
	raw, err := os.ReadFile(s.file)
	if err == nil && s.gz {
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
