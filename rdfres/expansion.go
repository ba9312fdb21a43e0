package rdfres

import (
	"fmt"
	"io"
)

// expansion counts what the statements of a document take.
type expansion struct {
	lines      int64 // as N-Quads
	statements int64
}

// add counts a statement, and tells whether there are more than may be: a short one takes
// some 64 bytes in memory, for which small documents have room.
func (e *expansion) add(q *Quad, f Format, most int64) (within bool) {
	e.lines += int64(len(q.S) + len(q.P) + len(q.O) + len(q.G) + len("   .\n"))
	e.statements++
	return e.lines <= most && (f == NTriples || f == NQuads || (e.statements-1<<14)*64 <= most)
}

// withinBytes ends a reading whose statements take more than the document, of which length
// tells what was read, may expand to.
func withinBytes(f Format, o ReadOptions, length func() int64, yield func(Quad, error) bool) func(Quad, error) bool {
	if f == JSONLD { // which counts as it is read
		return yield
	}
	var e expansion
	return func(q Quad, err error) bool {
		if err == nil && !e.add(&q, f, o.expandsTo(length())) {
			yield(Quad{}, expands(f, o, length()))
			return false
		}
		return yield(q, err)
	}
}

// countingReader counts the bytes of a document.
type countingReader struct {
	r io.Reader
	n int64
}

func newCountingReader(r io.Reader) *countingReader { return &countingReader{r: r} }

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) count() int64 { return c.n }

func expands(f Format, o ReadOptions, length int64) error {
	return fmt.Errorf("rdfres: read %s %s: it expands to more than %d bytes: %w", f, o.Name, o.expandsTo(length), ErrTooLarge)
}
