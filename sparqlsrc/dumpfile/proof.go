package dumpfile

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A dump cut between two lines, or between two members of its packing, looks whole. A
// proof finds the cut: a checksum or a count beside the dump, always used if there, or one
// asked for by name.

// Proofs that [Open] takes by name. A text with # at its start is the last line of a dump.
const (
	ProofChecksum = "checksum" // FILE.sha256 and the like, or SHA256SUMS and the like
	ProofCount    = "count"    // FILE.count holds the number of statements
)

// CheckProof tells whether a proof is one.
func CheckProof(proof string) error {
	switch {
	case proof == "", proof == ProofChecksum, proof == ProofCount:
	case strings.HasPrefix(proof, "#") && !strings.ContainsAny(proof, "\r\n"):
	default:
		return errors.New("it is checksum, count, or the last line of each dump, which begins with #")
	}
	return nil
}

// checksums are the kinds of checksum files, the strongest first.
var checksums = []struct {
	name string // in the suffix of a file, and in the name of a list of a folder
	new  func() hash.Hash
}{
	{"sha512", sha512.New}, {"sha256", sha256.New}, {"sha1", sha1.New}, {"md5", md5.New},
}

// IsProof tells whether a path is called like a proof: it is no dump then.
func IsProof(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	if strings.HasSuffix(name, ".count") {
		return true
	}
	for _, c := range checksums {
		if strings.HasSuffix(name, "."+c.name) || strings.HasSuffix(name, "."+c.name+"sum") || strings.TrimSuffix(name, ".txt") == c.name+"sums" {
			return true
		}
	}
	return false
}

// proof holds the expected checksum, count and last line of a dump.
type proof struct {
	sums string // the name of the file with the checksum; "": no checksum
	hash hash.Hash
	want []byte

	counts string // the name of the file with the count; "": no count
	count  int64  // of statements

	end string // the last line; "": any
}

// from names what there is, for people; "": nothing.
func (p *proof) from() string {
	var from []string
	if p.sums != "" {
		from = append(from, "the checksum in "+p.sums)
	}
	if p.counts != "" {
		from = append(from, "the count in "+p.counts)
	}
	if p.end != "" {
		from = append(from, "its last line")
	}
	return strings.Join(from, " and ")
}

// proofOf finds the proof of a file.
func proofOf(path, named string) (*proof, error) {
	p := &proof{}
	if err := errors.Join(p.findChecksum(path), p.findCount(path)); err != nil {
		return nil, err
	}
	switch {
	case named == ProofChecksum && p.sums == "":
		return nil, &CutError{"no checksum file beside it names it"}
	case named == ProofCount && p.counts == "":
		return nil, &CutError{filepath.Base(path) + ".count is not there"}
	case strings.HasPrefix(named, "#"):
		p.end = named
	}
	return p, nil
}

// findCount looks for the number of statements of a file in FILE.count.
func (p *proof) findCount(path string) error {
	raw, err := readSmall(path + ".count")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.counts = filepath.Base(path) + ".count"
	p.count, err = strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil || p.count < 0 {
		return &CutError{p.counts + " holds no number"}
	}
	return nil
}

// findChecksum looks for a checksum of a file in FILE.sha256 and in SHA256SUMS, and so on.
func (p *proof) findChecksum(path string) error {
	dir, base := filepath.Split(path)
	for _, c := range checksums {
		lists := []string{base + "." + c.name, base + "." + c.name + "sum"}
		own := len(lists) // these are of the one file
		upper := strings.ToUpper(c.name) + "SUMS"
		lists = append(lists, upper, upper+".txt", strings.ToLower(upper), strings.ToLower(upper)+".txt")
		for i, list := range lists {
			raw, err := readSmall(dir + list)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if p.want = checksumFor(raw, base, i < own, c.new().Size()); p.want != nil {
				p.sums, p.hash = list, c.new()
				return nil
			}
			if i < own {
				return &CutError{list + " holds no checksum of it"}
			}
		}
	}
	return nil
}

// checksumLine is a line of sha256sum, or of its form --tag.
var checksumLine = regexp.MustCompile(`^\\?([0-9A-Fa-f]{32,128})(?:[ \t]+\*?(.+))?$|^[A-Z0-9-]+ ?\((.+)\) ?= ?([0-9A-Fa-f]{32,128})$`)

// checksumFor is the checksum of a file in a list; alone: the list may hold one without a
// name.
func checksumFor(list []byte, base string, alone bool, size int) []byte {
	var found []byte
	for line := range bytes.Lines(list) {
		m := checksumLine.FindSubmatch(bytes.TrimSpace(line))
		if m == nil {
			continue
		}
		digits, name := m[1], string(m[2])
		if digits == nil {
			digits, name = m[4], string(m[3])
		}
		if name = name[strings.LastIndexAny(name, `/\`)+1:]; name != base && (name != "" || !alone) {
			continue
		}
		if sum, err := hex.DecodeString(string(digits)); err == nil && len(sum) == size {
			found = sum // the last one, as lists are added to
		}
	}
	return found
}

// readSmall reads a file about another file.
func readSmall(path string) ([]byte, error) {
	const most = 16 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(raw) > most {
		err = fmt.Errorf("%s is longer than %d bytes", path, most)
	}
	return raw, err
}

// reader is r with its bytes going into the checksum too.
func (p *proof) reader(r io.Reader) io.Reader {
	if p.hash == nil {
		return r
	}
	return io.TeeReader(r, p.hash)
}

// holds compares a dump, read to its end, with its proof. left is the rest of its file: a
// packing passes over bytes behind its end.
func (p *proof) holds(left *bufio.Reader, statements int64, last string) error {
	if p.hash != nil {
		if _, err := io.Copy(io.Discard, left); err != nil {
			return err
		}
		if got := p.hash.Sum(nil); !bytes.Equal(got, p.want) {
			return &CutError{fmt.Sprintf("the checksum in %s is %x, and that of the file %x: it is cut or damaged, or another file", p.sums, p.want, got)}
		}
	}
	if p.counts != "" && statements != p.count {
		return &CutError{fmt.Sprintf("it holds %d statements, and the count in %s is %d", statements, p.counts, p.count)}
	}
	if p.end != "" && last != p.end {
		return &CutError{fmt.Sprintf("its last line is not %q", p.end)}
	}
	return nil
}

// lastLine keeps the last line with text of all bytes written to it.
type lastLine struct {
	line []byte
	done bool // the next byte begins another one
}

const lastLineMost = 4 << 10

func (l *lastLine) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		if len(part) > 0 {
			if l.done {
				l.line, l.done = l.line[:0], false
			}
			l.line = append(l.line, part[:min(len(part), max(0, lastLineMost-len(l.line)))]...)
		}
		if i < 0 {
			break
		}
		l.done, b = true, b[i+1:]
	}
	return n, nil
}

func (l *lastLine) String() string { return strings.TrimRight(string(l.line), " \t\r") }
