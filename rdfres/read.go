package rdfres

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"iter"
)

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
		in := newCountingReader(r)
		r, yield = in, withinBytes(f, o, in.count, yield)
		if f != RDFXML { // which tells its charset itself
			var err error
			if r, err = toUTF8(r, o.Charset); err != nil {
				yield(Quad{}, o.readError(f, 0, err))
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
			return nil, o.tooLarge(f)
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

func oneGraph(f Format, o ReadOptions, g Term) error {
	return fmt.Errorf("rdfres: decode %s %s: a statement stands in the graph %s, where one graph without a name is asked for", f, o.Name, g)
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
