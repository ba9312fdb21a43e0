package embedstore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unsafe"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// segment is a part of a document during a load: its distinct terms in the order of their
// appearance, and its quads by the numbers of those terms. It is filled without the right to write,
// so a slow sender holds up nobody.
type segment struct {
	terms  []string // number n is terms[n-1]
	hashes []hash16 // of the same terms; zero for blank nodes
	index  map[string]uint32
	quads  [][4]uint32
	bytes  int
	arena  []byte
}

// How much one segment holds before the next one begins.
const (
	segmentQuads = 1 << 19
	segmentBytes = 24 << 20
)

func newSegment() *segment { return &segment{index: map[string]uint32{}} }

func (g *segment) full() bool { return len(g.quads) >= segmentQuads || g.bytes >= segmentBytes }

// number is the number of a term; 0 for "".
func (g *segment) number(term string) uint32 {
	if term == "" {
		return 0
	}
	term = inOneCase(term)
	if n, ok := g.index[term]; ok {
		return n
	}
	// The reader's string may lie in a buffer much larger than itself.
	if cap(g.arena)-len(g.arena) < len(term) {
		g.arena = make([]byte, 0, max(64<<10, len(term)))
	}
	from := len(g.arena)
	g.arena = append(g.arena, term...)
	own := unsafe.String(&g.arena[from], len(term))
	g.terms = append(g.terms, own)
	n := uint32(len(g.terms))
	g.index[own] = n
	g.bytes += len(term) + 64
	var h hash16
	if kindOf(own) != idBlank {
		h = hashTerm(own)
	}
	g.hashes = append(g.hashes, h)
	return n
}

func (g *segment) reset() {
	clear(g.index)
	g.terms, g.hashes, g.quads = g.terms[:0], g.hashes[:0], g.quads[:0]
	g.arena, g.bytes = nil, 0
}

// segmentFile keeps full segments until the right to write is there.
type segmentFile struct {
	f *os.File
	w *bufio.Writer
	n int
}

func newSegmentFile(path string) (*segmentFile, error) {
	f, err := ownfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("keep what was read: %w", err)
	}
	return &segmentFile{f: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

func (s *segmentFile) write(g *segment) error {
	var buf [16]byte
	put := func(n int) {
		s.w.Write(binary.AppendUvarint(buf[:0], uint64(n)))
	}
	put(len(g.terms))
	for i, t := range g.terms {
		put(len(t))
		s.w.WriteString(t)
		s.w.Write(g.hashes[i][:])
	}
	put(len(g.quads))
	for i := range g.quads {
		for k, n := range g.quads[i] {
			binary.LittleEndian.PutUint32(buf[4*k:], n)
		}
		if _, err := s.w.Write(buf[:16]); err != nil {
			return fmt.Errorf("keep what was read: %w", err)
		}
	}
	s.n++
	return nil
}

// each reads the segments back, in order; fn may not keep them.
func (s *segmentFile) each(fn func(g *segment) error) error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("keep what was read: %w", err)
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s.f, 256<<10)
	g := &segment{}
	for range s.n {
		g.terms, g.hashes, g.quads = g.terms[:0], g.hashes[:0], g.quads[:0]
		if err := g.read(r); err != nil {
			return fmt.Errorf("read back what was kept: %w", err)
		}
		if err := fn(g); err != nil {
			return err
		}
	}
	return nil
}

func (g *segment) read(r *bufio.Reader) error {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	var h hash16
	for range n {
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		var b strings.Builder
		b.Grow(int(size))
		if _, err := io.CopyN(&b, r, int64(size)); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return err
		}
		g.terms = append(g.terms, b.String())
		g.hashes = append(g.hashes, h)
	}
	if n, err = binary.ReadUvarint(r); err != nil {
		return err
	}
	var buf [16]byte
	for range n {
		if _, err := io.ReadFull(r, buf[:]); err != nil {
			return err
		}
		var q [4]uint32
		for k := range q {
			q[k] = binary.LittleEndian.Uint32(buf[4*k:])
		}
		g.quads = append(g.quads, q)
	}
	return nil
}

func (s *segmentFile) discard() error {
	return errors.Join(s.f.Close(), os.Remove(s.f.Name()))
}
