package syntax

import (
	"fmt"
	"io"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Expansion counts the size of a document's statements.
type Expansion struct {
	lines      int64 // as N-Quads
	statements int64
}

// Add counts a statement, and tells whether there are more than may be: a short one takes
// some 64 bytes in memory, and small documents have room for them.
func (e *Expansion) Add(q *rdfres.Quad, f rdfres.Format, most int64) (within bool) {
	e.lines += int64(len(q.S) + len(q.P) + len(q.O) + len(q.G) + len("   .\n"))
	e.statements++
	return e.lines <= most && (f == rdfres.NTriples || f == rdfres.NQuads || (e.statements-1<<14)*64 <= most)
}

// Grow counts bytes by which counted statements become longer.
func (e *Expansion) Grow(n, most int64) (within bool) {
	e.lines += n
	return e.lines <= most
}

// WithinBytes ends a reading with an ErrTooLarge, once its statements take more than the
// document may expand to. length gives the bytes read so far.
func WithinBytes(f rdfres.Format, o rdfres.ReadOptions, length func() int64, yield func(rdfres.Quad, error) bool) func(rdfres.Quad, error) bool {
	if f == rdfres.JSONLD { // its reader counts itself
		return yield
	}
	var e Expansion
	return func(q rdfres.Quad, err error) bool {
		if err == nil && !e.Add(&q, f, o.ExpandsTo(length())) {
			yield(rdfres.Quad{}, ExpandsTooFar(f, o, length()))
			return false
		}
		return yield(q, err)
	}
}

// CountingReader counts the bytes of a document.
type CountingReader struct {
	r io.Reader
	n int64
}

// NewCountingReader counts from here on.
func NewCountingReader(r io.Reader) *CountingReader { return &CountingReader{r: r} }

func (c *CountingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Count is how many bytes were read.
func (c *CountingReader) Count() int64 { return c.n }

// ExpandsTooFar is the error of a document of a length with too many statements.
func ExpandsTooFar(f rdfres.Format, o rdfres.ReadOptions, length int64) error {
	return fmt.Errorf("rdfres: read %s %s: it expands to more than %d bytes: %w", f, o.Name, o.ExpandsTo(length), rdfres.ErrTooLarge)
}
