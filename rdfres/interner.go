package rdfres

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

// newInterner shares from the first term on.
func newInterner() *interner { return newInterner() }

// shares tells whether an object of a length is looked up.
func (in *interner) shares(length int) bool { return in.slots != nil && length <= internLen }

// quad makes the terms of a line.
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

// share makes a term, or gives the same one that was made before.
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

// appendTriple is append that does not double what is long already.
func appendTriple(ts []Triple, t Triple) []Triple {
	if len(ts) == cap(ts) && len(ts) > 1<<16 {
		grown := make([]Triple, len(ts), len(ts)+len(ts)/4)
		copy(grown, ts)
		ts = grown
	}
	return append(ts, t)
}
