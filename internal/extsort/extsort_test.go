package extsort

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func collect(t *testing.T, s *Sorter) []string {
	t.Helper()
	var got []string
	for r, err := range s.Sort() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(r.Key)+string(r.Value))
	}
	return got
}

// Any records come back as a plain sort in memory has them, whatever the
// memory: all in memory, a few runs, and so many that runs are merged in
// several rounds.
func TestSortAgainstMemory(t *testing.T) {
	for _, memory := range []int64{0, 64 << 10, 1 << 20, 64 << 20} {
		for _, keySize := range []int{0, 3, 16, 32} {
			t.Run(fmt.Sprintf("%d/%d", memory, keySize), func(t *testing.T) {
				dir := t.TempDir()
				rng := rand.New(rand.NewPCG(7, uint64(memory)+uint64(keySize)))
				s, err := New(filepath.Join(dir, "spill"), memory)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for i := range 30_000 {
					if i == 20_000 {
						if err := s.Spill(); err != nil {
							t.Fatal(err)
						}
					}
					key := make([]byte, keySize)
					for i := range key {
						key[i] = byte(rng.IntN(4)) // many equal and half-equal keys
					}
					n := rng.IntN(40)
					if rng.IntN(5000) == 0 {
						n = 30_000 // longer than a block and a chunk
					}
					value := bytes.Repeat([]byte{'a' + byte(rng.IntN(3))}, n)
					if err := s.Add(key, value); err != nil {
						t.Fatal(err)
					}
					want = append(want, string(key)+string(value))
				}
				slices.Sort(want)
				for range 2 { // it can be read twice
					if got := collect(t, s); !slices.Equal(got, want) {
						t.Fatalf("%d records came back, %d were added, or the order is wrong", len(got), len(want))
					}
				}
				for range s.Sort() { // left in the middle
					break
				}
				if memory == 64<<20 && s.Spilled() != 0 {
					t.Error("spilled although everything fits into memory")
				}
				if memory == 0 && s.Spilled() == 0 {
					t.Error("did not spill although it could not fit")
				}
				if s.Len() != 30_000 {
					t.Errorf("Len is %d", s.Len())
				}
				if err := s.Add(make([]byte, keySize), nil); err == nil {
					t.Error("Add after Sort was accepted")
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				left, _ := filepath.Glob(filepath.Join(dir, "spill", "*"))
				if len(left) != 0 {
					t.Errorf("Close left %v", left)
				}
			})
		}
	}
}

func TestEmptyAndMisuse(t *testing.T) {
	s, err := New(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s); len(got) != 0 {
		t.Errorf("an empty sorter yields %d records", len(got))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	for _, err := range s.Sort() {
		if err == nil {
			t.Error("a closed sorter yields records")
		}
	}
	s, _ = New(t.TempDir(), 0)
	defer s.Close()
	if err := s.Add([]byte("ab"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Add([]byte("abc"), nil); err == nil {
		t.Error("a key of another length was accepted")
	}
}

// What was spilled and then damaged or cut ends in an error, not in fewer records.
func TestDamagedRun(t *testing.T) {
	for _, cut := range []bool{true, false} {
		dir := t.TempDir()
		s, _ := New(dir, 0)
		defer s.Close()
		for i := range 5000 {
			if err := s.Add(fmt.Appendf(nil, "%08d", i), []byte("some value that takes room")); err != nil {
				t.Fatal(err)
			}
		}
		for range s.Sort() {
			break
		}
		runs, _ := filepath.Glob(filepath.Join(dir, "*", "run-*"))
		if len(runs) == 0 {
			t.Fatal("nothing was spilled")
		}
		data, err := os.ReadFile(runs[0])
		if err != nil {
			t.Fatal(err)
		}
		if cut {
			data = data[:len(data)-3]
		} else {
			data[0] ^= 0x55
		}
		if err := os.WriteFile(runs[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		var failed error
		for _, err := range s.Sort() {
			failed = err
		}
		if failed == nil {
			t.Errorf("cut=%v: a damaged run was read without an error", cut)
		}
	}
}

func TestDiskRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := New(filepath.Join(file, "below"), 0)
	defer s.Close()
	var failed error
	for i := 0; i < 10_000 && failed == nil; i++ {
		failed = s.Add(fmt.Appendf(nil, "%08d", i), []byte("value"))
	}
	if failed == nil {
		t.Error("spilling below a file was accepted")
	}
}

// A run that could not be written ends in an error, not in fewer records, whenever it
// is found out.
func TestWritingFails(t *testing.T) {
	full := errors.New("no space left")
	for _, more := range []int{0, 10, 5000} {
		s, _ := New(t.TempDir(), 0)
		defer s.Close()
		var failed error
		add := func(n int) {
			for i := 0; i < n && failed == nil; i++ {
				failed = s.Add(fmt.Appendf(nil, "%08d", i), []byte("value"))
			}
		}
		add(1000)
		if s.writing == nil || failed != nil {
			t.Fatalf("nothing is being written: %v", failed)
		}
		if w := <-s.writing; w.err != nil {
			t.Fatal(w.err)
		}
		s.writing <- written{err: full}
		add(more)
		if more == 5000 && !errors.Is(failed, full) {
			t.Errorf("adding went on: %v", failed)
		}
		for range 2 {
			failed = nil
			for _, err := range s.Sort() {
				failed = err
			}
			if !errors.Is(failed, full) {
				t.Errorf("it was read: %v", failed)
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	value := []byte(`<http://example.org/resource/thing> <http://example.org/ontology/property> "some value of usual length"@en`)
	for _, memory := range []int64{512 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dMiB", memory>>20), func(b *testing.B) {
			for b.Loop() {
				s, _ := New(b.TempDir(), memory)
				for i := range 500_000 {
					key := sha256.Sum256(fmt.Appendf(nil, "%d", i/10))
					if err := s.Add(key[:], value); err != nil {
						b.Fatal(err)
					}
				}
				for _, err := range s.Sort() {
					if err != nil {
						b.Fatal(err)
					}
				}
				s.Close()
			}
			b.ReportMetric(500_000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
