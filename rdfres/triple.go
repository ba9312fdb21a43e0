package rdfres

import (
	"slices"
	"strings"
)

// Triple is one statement. The zero value is no triple.
type Triple struct{ S, P, O Term }

// Quad is a triple and the graph it stands in; G is "" for the default graph.
type Quad struct {
	Triple
	G Term
}

// AppendLine appends the canonical N-Triples line, "S P O .\n".
func (t Triple) AppendLine(dst []byte) []byte {
	dst = append(dst, t.S...)
	dst = append(dst, ' ')
	dst = append(dst, t.P...)
	dst = append(dst, ' ')
	dst = append(dst, t.O...)
	return append(dst, " .\n"...)
}

// AppendLine appends the canonical N-Quads line, "S P O G .\n", without G for
// the default graph.
func (q Quad) AppendLine(dst []byte) []byte {
	if q.G == "" {
		return q.Triple.AppendLine(dst)
	}
	dst = q.Triple.AppendLine(dst)
	dst = append(dst[:len(dst)-2], q.G...)
	return append(dst, " .\n"...)
}

// Compare orders triples as their lines are ordered bytewise.
func (t Triple) Compare(u Triple) int {
	// If one of two terms begins with the other, the shorter line goes on with a space, below every
	// byte of a term: comparing term by term is comparing the lines.
	if c := strings.Compare(string(t.S), string(u.S)); c != 0 {
		return c
	}
	if c := strings.Compare(string(t.P), string(u.P)); c != 0 {
		return c
	}
	return strings.Compare(string(t.O), string(u.O))
}

// SortUnique sorts ts in place by Compare and drops doubles. The result shares
// the array of ts.
func SortUnique(ts []Triple) []Triple {
	sorted := true
	for i := 1; i < len(ts); i++ {
		if ts[i-1].Compare(ts[i]) >= 0 {
			sorted = false
			break
		}
	}
	if sorted {
		return ts
	}
	slices.SortFunc(ts, Triple.Compare)
	return slices.Compact(ts)
}

// Description is the unit of synchronization: an entity and the triples about
// it, in wire form, sorted and without doubles (SortUnique).
type Description struct {
	Entity  string // IRI
	Triples []Triple
}
