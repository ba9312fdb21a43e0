package destination

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	s, err := DumpSink(file)
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
	if err := s.replace("a:g", func(put putPart) error { return put("", lines) }); err != nil {
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
