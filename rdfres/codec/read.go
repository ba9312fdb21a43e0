package codec

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
	"github.com/rsbridge/rsbridge/rdfres/jsonld"
	"github.com/rsbridge/rsbridge/rdfres/rdfxml"
)

// Read streams the statements of a document. The sequence ends after the first
// error; what was yielded before it stands in the document. N-Triples and
// N-Quads run on a fast path over bytes, Turtle, TriG and RDF/XML stream too,
// JSON-LD is held in memory.
//
// Blank nodes keep their labels of the document; those that it leaves unnamed
// get labels that it does not use. Graph names are only yielded by N-Quads,
// TriG and JSON-LD.
func Read(r io.Reader, f rdfres.Format, o rdfres.ReadOptions) iter.Seq2[rdfres.Quad, error] {
	return func(yield func(rdfres.Quad, error) bool) {
		in := syntax.NewCountingReader(r)
		r, yield = in, syntax.WithinBytes(f, o, in.Count, yield)
		if f != rdfres.RDFXML { // which tells its charset itself
			var err error
			if r, err = chars.ToUTF8(r, o.Charset); err != nil {
				yield(rdfres.Quad{}, o.ReadError(f, 0, err))
				return
			}
		}
		switch f {
		case rdfres.NTriples, rdfres.NQuads:
			readLines(rdfres.NewLines(r, f, o), yield)
		case rdfres.Turtle, rdfres.TriG:
			readTurtle(r, f, o, yield)
		case rdfres.RDFXML:
			rdfxml.Read(r, o, yield)
		case rdfres.JSONLD:
			jsonld.Read(r, o, yield)
		default:
			yield(rdfres.Quad{}, fmt.Errorf("rdfres: read %s: unknown format %q", o.Name, f))
		}
	}
}

// Decode reads a whole representation: its triples sorted and unique, in
// wire form when they were written so. For JSON-LD without a context our own
// reader does it, with a context after it was expanded; nothing is fetched but by
// ReadOptions.Context. A statement in a named graph is an
// error, but see OneGraph.
func Decode(f rdfres.Format, data []byte, o rdfres.ReadOptions) ([]rdfres.Triple, error) {
	length := func() int64 { return int64(len(data)) }
	switch {
	case chars.CharsetName(o.Charset) != "" && f != rdfres.RDFXML:
	case f == rdfres.NTriples, f == rdfres.NQuads:
		lines := min(max(bytes.Count(data, []byte{'\n'}), bytes.Count(data, []byte{'\r'}))+1, len(data)/shortestLine)
		return collect(f, o, make([]rdfres.Triple, 0, lines), func(yield func(rdfres.Quad, error) bool) {
			readLines(rdfres.LinesOf(data, f, o), syntax.WithinBytes(f, o, length, yield))
		})
	case f == rdfres.Turtle, f == rdfres.TriG:
		if o.MaxBytes > 0 && int64(len(data)) > o.MaxBytes {
			return nil, o.TooLarge(f)
		}
		return collect(f, o, nil, func(yield func(rdfres.Quad, error) bool) {
			readTokens(newTTLLexerOf(data, f, o), syntax.WithinBytes(f, o, length, yield))
		})
	case f == rdfres.JSONLD:
		ts, named, err := jsonld.Decode(data, o)
		if err != nil {
			return nil, err
		}
		if len(named) == 0 {
			return rdfres.SortUnique(ts), nil
		}
		return collect(f, o, nil, func(yield func(rdfres.Quad, error) bool) {
			for _, t := range ts {
				if !yield(rdfres.Quad{Triple: t}, nil) {
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
	return collect(f, o, nil, Read(bytes.NewReader(data), f, o))
}

// shortestLine is as long as "_:a<b:>_:c.".
const shortestLine = 11

// collect appends to ts: a list with the right room needs no second one.
func collect(f rdfres.Format, o rdfres.ReadOptions, ts []rdfres.Triple, qs iter.Seq2[rdfres.Quad, error]) ([]rdfres.Triple, error) {
	var graph rdfres.Term
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
		ts = syntax.AppendTriple(ts, q.Triple)
	}
	return rdfres.SortUnique(ts), nil
}

func oneGraph(f rdfres.Format, o rdfres.ReadOptions, g rdfres.Term) error {
	return fmt.Errorf("rdfres: decode %s %s: a statement stands in the graph %s, where one graph without a name is asked for", f, o.Name, g)
}

func readLines(in *rdfres.Lines, yield func(rdfres.Quad, error) bool) {
	var known syntax.Interner
	for in.Next() {
		if !yield(known.Quad(&in.LineScanner), nil) {
			return
		}
	}
	if err := in.Err(); err != nil {
		yield(rdfres.Quad{}, err)
	}
}
