package codec

import (
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/jsonld"
	"github.com/rsbridge/rsbridge/rdfres/rdfxml"
)

// Encode writes the deterministic representation of a description: the same
// graph gives the same bytes. ts is in wire form; Encode sorts a copy unless it
// is sorted. entity only decides which subject comes first. ErrCannotCarry when
// f cannot hold ts; nothing else is verified here (see EncodeChecked).
//
// JSONLD is an array of node objects in expanded form without a context, on one
// line, spelled as RFC 8785 does with members sorted by name (bytewise):
//
//	[{"@id":"http://e/s","@type":["http://e/C"],"http://e/p":[{"@language":"en","@value":"a"},{"@id":"_:rsb..."}]}]
//
// The entity comes first, other nodes and all values in the order of their
// terms. A blank node that exactly one triple leads to stands nested in it, at
// most 64 deep, unless the way there is a cycle or rdf:type. All nodes have @id.
//
// NTriples (and NQuads) are the sorted canonical lines. Turtle (and TriG) has
// one block for each subject, the prefixes it needs, and labels for all blank
// nodes. RDFXML has one rdf:Description for each subject.
func Encode(f rdfres.Format, entity string, ts []rdfres.Triple) ([]byte, error) {
	ts = sortedCopy(ts)
	switch f {
	case rdfres.NTriples, rdfres.NQuads:
		return encodeLines(ts), nil
	case rdfres.JSONLD:
		return jsonld.Encode(entity, ts), nil
	case rdfres.Turtle, rdfres.TriG:
		return encodeTurtle(entity, ts)
	case rdfres.RDFXML:
		return rdfxml.Encode(entity, ts)
	}
	return nil, fmt.Errorf("rdfres: encode %s: no writer for the format %q", entity, f)
}

// sortedCopy is ts itself when it is sorted and unique already.
func sortedCopy(ts []rdfres.Triple) []rdfres.Triple {
	for i := 1; i < len(ts); i++ {
		if ts[i-1].Compare(ts[i]) >= 0 {
			return rdfres.SortUnique(slices.Clone(ts))
		}
	}
	return ts
}

func encodeLines(ts []rdfres.Triple) []byte {
	n := 0
	for _, t := range ts {
		n += len(t.S) + len(t.P) + len(t.O) + 5
	}
	out := make([]byte, 0, n)
	for _, t := range ts {
		out = t.AppendLine(out)
	}
	return out
}

// EncodeChecked is Encode with proof: what it wrote is decoded and compared
// with ts, and ErrCannotCarry, with the first triple that differs, says when
// the format did not give back the very graph. (JSON-LD in the usual form is compared
// while it is read, without making a graph of it.)
func EncodeChecked(f rdfres.Format, entity string, ts []rdfres.Triple) ([]byte, error) {
	ts = sortedCopy(ts)
	data, err := Encode(f, entity, ts)
	if err != nil {
		return nil, err
	}
	for i := range ts { // our own reader of JSON-LD is laxer than others
		if err := rdfres.CheckLanguage(ts[i].O); err != nil {
			return nil, fmt.Errorf("rdfres: encode %s as %s: %w: %w", entity, f, rdfres.ErrCannotCarry, err)
		}
	}
	if f == rdfres.JSONLD && jsonld.Matches(data, ts) {
		return data, nil
	}
	back, err := Decode(f, data, rdfres.ReadOptions{Name: entity})
	if err != nil {
		return nil, fmt.Errorf("rdfres: encode %s as %s: %w: what was written cannot be read: %w", entity, f, rdfres.ErrCannotCarry, err)
	}
	for i := range ts {
		if i >= len(back) || ts[i] != back[i] {
			return nil, fmt.Errorf("rdfres: encode %s as %s: %w: this triple comes back otherwise: %s", entity, f, rdfres.ErrCannotCarry, chars.Cut(string(ts[i].AppendLine(nil))))
		}
	}
	if len(back) != len(ts) {
		return nil, fmt.Errorf("rdfres: encode %s as %s: %w: a triple too many comes back: %s", entity, f, rdfres.ErrCannotCarry, chars.Cut(string(back[len(ts)].AppendLine(nil))))
	}
	return data, nil
}
