package syntax

import "github.com/rsbridge/rsbridge/rdfres"

// Interner shares the strings of repeated terms: the subject of the
// line before, predicates, and short objects such as classes.
type Interner struct {
	subject, graph rdfres.Term
	slots          []rdfres.Term // direct mapped by hash, made after a few lines
	lines          int
}

const (
	internAfter = 32
	internSlots = 1 << 10
	internLen   = 96 // longer objects are not looked up
)

// NewInterner shares from the first term on.
func NewInterner() *Interner { return &Interner{slots: make([]rdfres.Term, internSlots)} }

// Shares tells whether an object of a length is looked up.
func (in *Interner) Shares(length int) bool { return in.slots != nil && length <= internLen }

// Quad makes the terms of a line.
func (in *Interner) Quad(sc *rdfres.LineScanner) rdfres.Quad {
	if in.lines++; in.lines == internAfter {
		in.slots = make([]rdfres.Term, internSlots)
	}
	if string(sc.S) != string(in.subject) {
		in.subject = rdfres.Term(sc.S)
	}
	if string(sc.G) != string(in.graph) {
		in.graph = rdfres.Term(sc.G)
	}
	q := rdfres.Quad{Triple: rdfres.Triple{S: in.subject, P: in.Share(sc.P)}, G: in.graph}
	if len(sc.O) <= internLen && sc.O[0] == '<' {
		q.O = in.Share(sc.O)
	} else {
		q.O = rdfres.Term(sc.O)
	}
	return q
}

// Share makes a term, or gives the same term from before.
func (in *Interner) Share(b []byte) rdfres.Term {
	if in.slots == nil {
		return rdfres.Term(b)
	}
	slot := &in.slots[hash(b)%internSlots]
	if string(b) != string(*slot) {
		*slot = rdfres.Term(b)
	}
	return *slot
}

// hash is enough to spread IRIs: they differ near their end.
func hash(b []byte) uint32 {
	h := uint32(len(b))
	for i := max(0, len(b)-24); i < len(b); i++ {
		h = (h ^ uint32(b[i])) * 16777619
	}
	return h ^ h>>15
}

// AppendTriple is append with smaller steps for a long list.
func AppendTriple(ts []rdfres.Triple, t rdfres.Triple) []rdfres.Triple {
	if len(ts) == cap(ts) && len(ts) > 1<<16 {
		grown := make([]rdfres.Triple, len(ts), len(ts)+len(ts)/4)
		copy(grown, ts)
		ts = grown
	}
	return append(ts, t)
}
