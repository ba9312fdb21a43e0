package extsort

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestImport: exported runs come back among the records of another sorter, small and large ones.
func TestImport(t *testing.T) {
	for _, n := range []int{0, 3, 5000} {
		dir := t.TempDir()
		whole, _ := New(dir, 0)
		defer whole.Close()
		var want []string
		for part := range 3 {
			s, _ := New(dir, 0)
			defer s.Close()
			to := whole
			if part > 0 {
				to = s
			}
			for i := range n {
				key, value := fmt.Appendf(nil, "%08d", i*7%5003), fmt.Sprintf("value %d of %d", i, part)
				if err := to.Add(key, []byte(value)); err != nil {
					t.Fatal(err)
				}
				want = append(want, string(key)+value)
			}
			if part == 0 {
				continue
			}
			path := filepath.Join(dir, fmt.Sprint("part", part))
			if err := s.Export(path); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := whole.Import(f, 8, int64(n)); err != nil {
				t.Fatal(err)
			}
			f.Close()
			if err := whole.Import(nil, 9, 1); err == nil {
				t.Error("other keys are imported")
			}
			if err := s.Export(path); err == nil {
				t.Error("a file is overwritten")
			}
		}
		slices.Sort(want)
		if got := collect(t, whole); !slices.Equal(got, want) || whole.Len() != int64(len(want)) {
			t.Errorf("%d records each: %d came back of %d", n, len(got), whole.Len())
		}
		if err := whole.Import(nil, 8, 1); err == nil {
			t.Error("a sorter that is read imports")
		}
	}
}
