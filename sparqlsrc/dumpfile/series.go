// Package dumpfile reads the files of a source without a store. A [Series] names
// them and knows the newest. [Open] reads one: N-Triples, N-Quads or Turtle, plain or packed.
// Its proof, a checksum for instance, finds a cut between two lines.
package dumpfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file of a series: N-Triples, N-Quads or Turtle, plain or packed
// with gzip, zstd or bzip2.
type File struct {
	Path     string    `json:"file"`
	Bytes    int64     `json:"bytes"` // as it lies there
	Modified time.Time `json:"modified"`
}

// Same compares path, size and time of change.
func (f File) Same(o File) bool {
	return f.Path == o.Path && f.Bytes == o.Bytes && f.Modified.Equal(o.Modified)
}

// Incomplete is a newer file, passed over, with the reason.
type Incomplete struct {
	File
	Why string `json:"why"`
}

// CutError is a file with an early end, or still being written.
type CutError struct{ Why string }

func (e *CutError) Error() string { return e.Why }

// Series names files and their order.
type Series struct {
	Patterns []string // absolute paths, as path/filepath.Match has them; a file of exactly such a name is meant itself
	// ByTime: the newest is the file changed last. Otherwise it is the
	// last by its name, runs of digits compared as numbers, suffixes left out. Each
	// decides the ties of the other.
	ByTime bool
}

// CheckPattern tells whether a pattern of paths is one.
func CheckPattern(pattern string) error {
	_, err := filepath.Match(literally(pattern), "")
	return err
}

// literally escapes the signs of patterns in the leading part of a pattern if that part is
// the name of a folder or file: users have not chosen all of those names, such as the
// folder of the configuration.
func literally(pattern string) string {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern
	}
	there := 0 // so much of it is the name of something
	for end := 1; end <= len(pattern); end++ {
		if end < len(pattern) && !os.IsPathSeparator(pattern[end]) {
			continue
		}
		if _, err := os.Lstat(pattern[:end]); err != nil {
			break
		}
		there = end
	}
	return quoteSigns.Replace(pattern[:there]) + pattern[there:]
}

// quoteSigns has path/filepath.Match take signs for themselves.
var quoteSigns = func() *strings.Replacer {
	signs := []string{"*", "[*]", "?", "[?]", "[", "[[]"}
	if filepath.Separator != '\\' {
		signs = append(signs, `\`, `[\\]`)
	}
	return strings.NewReplacer(signs...)
}()

// Files gives the files named by the patterns, the newest first.
func (s Series) Files() ([]File, error) {
	var out []File
	seen := map[string]bool{}
	for _, pattern := range s.Patterns {
		paths, err := filepath.Glob(literally(pattern))
		if err != nil {
			return nil, fmt.Errorf("dumps %s: %w", pattern, err)
		}
		for _, path := range paths {
			if seen[path] || IsProof(path) {
				continue
			}
			seen[path] = true
			f, err := Stat(path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
				continue // it has just gone, or is a folder
			}
			if err != nil {
				return nil, fmt.Errorf("dumps: %w", err)
			}
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("dumps: no file is named by %s", strings.Join(s.Patterns, " or "))
	}
	slices.SortFunc(out, func(a, b File) int { return s.Newer(a, b) })
	return out, nil
}

// Names tells whether the patterns name a path, be it there or not.
func (s Series) Names(path string) bool {
	return slices.ContainsFunc(s.Patterns, func(p string) bool {
		ok, _ := filepath.Match(literally(p), path) // see CheckPattern
		return ok
	})
}

// Newer sorts the newer file first.
func (s Series) Newer(a, b File) int {
	byName, byTime := compareNames(dumpName(b.Path), dumpName(a.Path)), b.Modified.Compare(a.Modified)
	last := strings.Compare(b.Path, a.Path)
	if s.ByTime {
		return cmp.Or(byTime, byName, last)
	}
	return cmp.Or(byName, byTime, last)
}

var errNoFile = errors.New("it is no file")

// Stat looks at a file.
func Stat(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s: %w", path, errNoFile)
	}
	return File{Path: path, Bytes: info.Size(), Modified: info.ModTime().UTC()}, nil
}

// dumpName is a path without the suffixes of packing and format.
func dumpName(path string) string {
	for _, suffixes := range [][]string{{".gz", ".zst", ".zstd", ".bz2"}, {".nt", ".nq", ".ttl"}} {
		for _, s := range suffixes {
			if n := len(path) - len(s); n >= 0 && strings.EqualFold(path[n:], s) {
				path = path[:n]
				break
			}
		}
	}
	return path
}

// compareNames compares runs of digits as numbers, the rest as text.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		if digit(a[0]) && digit(b[0]) {
			x, y := digits(a), digits(b)
			a, b = a[len(x):], b[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) string {
	for i := range len(s) {
		if !digit(s[i]) {
			return s[:i]
		}
	}
	return s
}

// Settled waits until a file has been left alone for a while, and gives it as it is then.
func Settled(ctx context.Context, f File, alone time.Duration) (File, error) {
	for began := time.Now(); ; {
		rest := alone - time.Since(f.Modified)
		if rest <= 0 || rest > alone { // of the future: its clock is another
			return f, nil
		}
		if time.Since(began) > 3*alone {
			return f, &CutError{"it is still growing"}
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return f, context.Cause(ctx)
		case <-timer.C:
		}
		now, err := Stat(f.Path)
		if err != nil {
			return f, &CutError{"it has gone"}
		}
		f = now
	}
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
