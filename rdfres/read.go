package rdfres

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"
)

// ReadOptions bound and place a reading. Zero values mean sensible defaults.
type ReadOptions struct {
	Base    string // base IRI for relative references; "" refuses them
	Name    string // document name for error messages
	Charset string // of the text, as a Content-Type tells it; "": UTF-8, or what an XML document says

	// MaxBytes bounds the document, and what it expands to: its statements as N-Quads, and
	// the prefixes, bases, entities and contexts that they are made with. Exceeding it is
	// ErrTooLarge. 0 is no bound for the document; it may expand to 256 MiB, or to 64 times
	// its length where that is more.
	MaxBytes int64

	// Lax accepts in N-Triples and N-Quads what the grammar refuses but common
	// stores emit: raw spaces, braces and the like in IRIs; relative IRIs, which
	// stay as they are; language tags such as en_US; blank node labels such as
	// nodeID://b1; a character escaped as two surrogates; triple terms of RDF 1.2
	// (TripleTerm). CheckTerm finds those that nobody else takes. The terms are
	// canonical all the same, so nothing of it goes further except the odd tags
	// and relative IRIs themselves. Other formats are always read strictly.
	Lax bool

	// OneGraph makes Decode take a document whose statements all stand in one graph with
	// a name for that graph.
	OneGraph bool

	// CheckIRIs refuses IRIs with a character that no IRI may have (IRIError),
	// which the escapes of N-Triples, N-Quads and Turtle, and any text of RDF/XML
	// and JSON-LD, let through: for a store, which would have to give them back
	// in formats and queries that cannot write them.
	CheckIRIs bool

	// Context gives a JSON-LD context that is not in the document, and the address that
	// it is at after redirects; its errors tell the address. Without it, and where it
	// fails, the document is refused (ErrRemoteContext).
	Context func(address string) (doc []byte, at string, err error)

	// LinkedContext is the address of the context that a Link header tells for JSON
	// (JSON-LD 1.1, section 6.1).
	LinkedContext string
}

// Read streams the statements of a document. The sequence ends after the first
// error; what was yielded before it stands in the document. N-Triples and
// N-Quads run on a fast path over bytes, Turtle, TriG and RDF/XML stream too,
// JSON-LD is held in memory.
//
// Blank nodes keep their labels of the document; those that it leaves unnamed
// get labels that it does not use. Graph names are only yielded by N-Quads,
// TriG and JSON-LD.
func Read(r io.Reader, f Format, o ReadOptions) iter.Seq2[Quad, error] {
	return func(yield func(Quad, error) bool) {
		in := &countingReader{r: r}
		r, yield = in, withinBytes(f, o, in.count, yield)
		if f != RDFXML { // which tells its charset itself
			var err error
			if r, err = toUTF8(r, o.Charset); err != nil {
				yield(Quad{}, readError(f, o, 0, err))
				return
			}
		}
		switch f {
		case NTriples, NQuads:
			readLines(NewLines(r, f, o), yield)
		case Turtle, TriG:
			readTurtle(r, f, o, yield)
		case RDFXML:
			readRDFXML(r, o, yield)
		case JSONLD:
			readJSONLD(r, o, yield)
		default:
			yield(Quad{}, fmt.Errorf("rdfres: read %s: unknown format %q", o.Name, f))
		}
	}
}

// Decode reads a whole representation: its triples sorted and unique, in
// wire form when they were written so. For JSON-LD without a context our own
// reader does it, with a context after it was expanded; nothing is fetched but by
// ReadOptions.Context. A statement in a named graph is an
// error, but see OneGraph.
func Decode(f Format, data []byte, o ReadOptions) ([]Triple, error) {
	length := func() int64 { return int64(len(data)) }
	switch {
	case charsetName(o.Charset) != "" && f != RDFXML:
	case f == NTriples, f == NQuads:
		return collect(f, o, func(yield func(Quad, error) bool) {
			readLines(newLinesOf(data, f, o), withinBytes(f, o, length, yield))
		})
	case f == Turtle, f == TriG:
		if o.MaxBytes > 0 && int64(len(data)) > o.MaxBytes {
			return nil, tooLarge(f, o)
		}
		return collect(f, o, func(yield func(Quad, error) bool) {
			readTokens(newTTLLexerOf(data, f, o), withinBytes(f, o, length, yield))
		})
	case f == JSONLD:
		ts, named, err := decodeJSONLD(data, o)
		if err != nil {
			return nil, err
		}
		if len(named) == 0 {
			return SortUnique(ts), nil
		}
		return collect(f, o, func(yield func(Quad, error) bool) {
			for _, t := range ts {
				if !yield(Quad{Triple: t}, nil) {
					return
				}
			}
			for _, q := range named {
				if !yield(q, nil) {
					return
				}
			}
		})
	}
	return collect(f, o, Read(bytes.NewReader(data), f, o))
}

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

// expandsTo is how much a document of a length may expand to.
func (o *ReadOptions) expandsTo(length int64) int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return max(maxUnbounded, 64*length)
}

// maxUnbounded is what any document may expand to where no bound is given.
const maxUnbounded = 256 << 20

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

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) count() int64 { return c.n }

func expands(f Format, o ReadOptions, length int64) error {
	return fmt.Errorf("rdfres: read %s %s: it expands to more than %d bytes: %w", f, o.Name, o.expandsTo(length), ErrTooLarge)
}

func collect(f Format, o ReadOptions, qs iter.Seq2[Quad, error]) ([]Triple, error) {
	var ts []Triple
	var graph Term
	for q, err := range qs {
		if err != nil {
			return nil, err
		}
		if len(ts) == 0 && o.OneGraph {
			graph = q.G
		}
		if q.G != graph {
			return nil, oneGraph(f, o, cmp.Or(q.G, graph))
		}
		ts = appendTriple(ts, q.Triple)
	}
	return SortUnique(ts), nil
}

// appendTriple is append that does not double what is long already.
func appendTriple(ts []Triple, t Triple) []Triple {
	if len(ts) == cap(ts) && len(ts) > 1<<16 {
		grown := make([]Triple, len(ts), len(ts)+len(ts)/4)
		copy(grown, ts)
		ts = grown
	}
	return append(ts, t)
}

func oneGraph(f Format, o ReadOptions, g Term) error {
	return fmt.Errorf("rdfres: decode %s %s: a statement stands in the graph %s, where one graph without a name is asked for", f, o.Name, g)
}

func readJSONLD(r io.Reader, o ReadOptions, yield func(Quad, error) bool) {
	if o.MaxBytes > 0 {
		r = io.LimitReader(r, o.MaxBytes+1)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		yield(Quad{}, fmt.Errorf("rdfres: read jsonld %s: %w", o.Name, err))
		return
	}
	triples, named, err := decodeJSONLD(data, o)
	if err != nil {
		yield(Quad{}, err)
		return
	}
	all := func(yield func(Quad) bool) {
		for _, t := range triples {
			if !yield(Quad{Triple: t}) {
				return
			}
		}
		for _, q := range named {
			if !yield(q) {
				return
			}
		}
	}
	for q := range all {
		if o.CheckIRIs {
			if err := q.checkIRIs(); err != nil {
				yield(Quad{}, &SyntaxError{Name: o.Name, Format: JSONLD, Reason: err.Error()})
				return
			}
		}
		if !yield(q, nil) {
			return
		}
	}
}

func readLines(in *Lines, yield func(Quad, error) bool) {
	var known interner
	for in.Next() {
		if !yield(known.quad(&in.LineScanner), nil) {
			return
		}
	}
	if err := in.Err(); err != nil {
		yield(Quad{}, err)
	}
}

// ParseLine reads one N-Triples or N-Quads line (without the newline) into
// canonical terms. ok is false for blank and comment lines. It is strict and
// for single lines: Read shares what repeats, Lines and LineScanner make no
// terms at all.
func ParseLine(line []byte) (q Quad, ok bool, err error) {
	var sc LineScanner
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if ok, err = sc.Scan(line); err != nil || !ok {
		return Quad{}, false, err
	}
	return Quad{Triple: sc.Triple(), G: Term(sc.G)}, true, nil
}

// ParseTerm reads one term in N-Triples syntax, strictly, into its canonical
// form.
func ParseTerm(text []byte) (Term, error) {
	var sc LineScanner
	t, why := sc.single(text)
	if why != "" {
		return "", fmt.Errorf("rdfres: read the term %q: column %d: %s", cut(string(text)), column(text, sc.at), why)
	}
	return t, nil
}

// interner shares the strings of terms that come again: the subject of the
// line before, predicates, and short objects such as classes.
type interner struct {
	subject, graph Term
	slots          []Term // direct mapped by hash, made after a few lines
	lines          int
}

const (
	internAfter = 32
	internSlots = 1 << 10
	internLen   = 96 // longer objects are not looked up
)

func (in *interner) quad(sc *LineScanner) Quad {
	if in.lines++; in.lines == internAfter {
		in.slots = make([]Term, internSlots)
	}
	if string(sc.S) != string(in.subject) {
		in.subject = Term(sc.S)
	}
	if string(sc.G) != string(in.graph) {
		in.graph = Term(sc.G)
	}
	q := Quad{Triple: Triple{S: in.subject, P: in.share(sc.P)}, G: in.graph}
	if len(sc.O) <= internLen && sc.O[0] == '<' {
		q.O = in.share(sc.O)
	} else {
		q.O = Term(sc.O)
	}
	return q
}

func (in *interner) share(b []byte) Term {
	if in.slots == nil {
		return Term(b)
	}
	slot := &in.slots[hash(b)%internSlots]
	if string(b) != string(*slot) {
		*slot = Term(b)
	}
	return *slot
}

// hash is enough to spread IRIs, which differ near their end.
func hash(b []byte) uint32 {
	h := uint32(len(b))
	for i := max(0, len(b)-24); i < len(b); i++ {
		h = (h ^ uint32(b[i])) * 16777619
	}
	return h ^ h>>15
}
