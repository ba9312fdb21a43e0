package jsonld

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// maxJSONNesting is how deep the writer nests blank nodes. A deeper node
// (the tail of a long rdf:List, say) becomes a node of the top level, so that
// readers with bounded stacks, Python's for one, can read every document.
const maxJSONNesting = 64

// Encode writes the deterministic form of JSON-LD: the expanded form
// (JSON-LD 1.1 API, section 5.1) without a context, serialized as RFC 8785
// does, on one line:
//
//	[{"@id":"http://e/s","@type":["http://e/C"],"http://e/p":[{"@language":"en","@value":"a"},{"@id":"_:rsb..."}]}]
//
// The nodes of the top level stand in the order of their terms, the entity
// first. Members are sorted by name, bytewise, and values by the order of their
// terms. A blank node with one triple leading to it stands inside it, unless the way
// there is a cycle, deeper than maxJSONNesting, or rdf:type, whose objects are
// strings. Every node has its @id, also a blank one: it is its wire name.
func Encode(entity string, ts []rdfres.Triple) []byte {
	size := 0
	for _, t := range ts {
		size += len(t.P) + len(t.O) + 24
	}
	w := jsonldWriter{ts: ts, out: make([]byte, 0, size+len(entity)+32)}
	w.group()
	w.nest()
	w.out = append(w.out, '[')
	first := rdfres.NewIRI(entity)
	for i := range w.nodes {
		if w.nodes[i].subject == first {
			w.top(i)
		}
	}
	for i := range w.nodes {
		if n := &w.nodes[i]; n.subject != first && !n.nested {
			w.top(i)
		}
	}
	return append(w.out, ']')
}

type jsonldWriter struct {
	ts     []rdfres.Triple
	nodes  []jsonldNode // in the order of their subjects
	blanks map[rdfres.Term]*blankUse
	order  []int32 // of the predicates of a node, when they need sorting
	out    []byte
}

type jsonldNode struct {
	subject  rdfres.Term
	from, to int // in ts
	nested   bool
}

// blankUse decides about the place of a blank node.
type blankUse struct {
	node int  // in nodes, -1 when it is no subject
	refs int  // triples leading to it
	typ  bool // one of them is rdf:type
	seen bool
}

func (w *jsonldWriter) group() {
	for i := 0; i < len(w.ts); {
		j := i + 1
		for j < len(w.ts) && w.ts[j].S == w.ts[i].S {
			j++
		}
		w.nodes = append(w.nodes, jsonldNode{subject: w.ts[i].S, from: i, to: j})
		i = j
	}
	for i := range w.ts {
		if o := w.ts[i].O; o[0] == '_' {
			u := w.use(o)
			u.refs++
			u.typ = u.typ || w.ts[i].P == syntax.Type
		}
	}
	if w.blanks == nil {
		return
	}
	for i := range w.nodes {
		if u := w.blanks[w.nodes[i].subject]; u != nil {
			u.node = i
		}
	}
}

func (w *jsonldWriter) use(o rdfres.Term) *blankUse {
	if w.blanks == nil {
		w.blanks = map[rdfres.Term]*blankUse{}
	}
	u := w.blanks[o]
	if u == nil {
		u = &blankUse{node: -1}
		w.blanks[o] = u
	}
	return u
}

// nest marks the nodes inside another one.
func (w *jsonldWriter) nest() {
	if w.blanks == nil {
		return
	}
	for i := range w.nodes {
		if u := w.blanks[w.nodes[i].subject]; u == nil || u.refs != 1 || u.typ {
			w.nestBelow(i)
		}
	}
	for i := range w.nodes { // reached by a cycle only
		if u := w.blanks[w.nodes[i].subject]; u != nil && !u.seen && u.refs == 1 && !u.typ {
			u.seen = true
			w.nestBelow(i)
		}
	}
}

func (w *jsonldWriter) nestBelow(root int) {
	type place struct{ node, depth int }
	todo := []place{{root, 1}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := w.nodes[at.node]
		for _, t := range w.ts[n.from:n.to] {
			if t.O[0] != '_' {
				continue
			}
			u := w.blanks[t.O]
			if u.node < 0 || u.refs != 1 || u.typ || u.seen {
				continue
			}
			u.seen = true
			if at.depth < maxJSONNesting {
				w.nodes[u.node].nested = true
				todo = append(todo, place{u.node, at.depth + 1})
			} else {
				todo = append(todo, place{u.node, 1})
			}
		}
	}
}

func (w *jsonldWriter) top(i int) {
	if len(w.out) > 1 {
		w.out = append(w.out, ',')
	}
	w.node(i)
}

func (w *jsonldWriter) node(i int) {
	n := w.nodes[i]
	w.out = append(w.out, `{"@id":"`...)
	w.out = appendID(w.out, n.subject)
	w.out = append(w.out, '"')
	ts := w.ts[n.from:n.to]
	w.types(ts)
	starts := w.predicates(ts, n.from)
	for _, from := range starts {
		w.property(int(from), n.to)
	}
	w.order = w.order[:len(w.order)-len(starts)]
	w.out = append(w.out, '}')
}

// types writes @type: the objects of rdf:type, literals apart.
func (w *jsonldWriter) types(ts []rdfres.Triple) {
	first := true
	for i := range ts {
		if ts[i].P != syntax.Type || ts[i].O[0] == '"' {
			continue
		}
		if first {
			w.out = append(w.out, `,"@type":["`...)
		} else {
			w.out = append(w.out, `,"`...)
		}
		first = false
		w.out = appendID(w.out, ts[i].O)
		w.out = append(w.out, '"')
	}
	if !first {
		w.out = append(w.out, ']')
	}
}

// predicates gives the places in ts where the predicates begin, in the order
// of their IRIs. That of the terms differs from it when one IRI begins another.
func (w *jsonldWriter) predicates(ts []rdfres.Triple, offset int) []int32 {
	begin := len(w.order)
	sorted := true
	for i := range ts {
		if i > 0 && ts[i].P == ts[i-1].P || ts[i].P == syntax.Type && ts[i].O[0] != '"' && !hasLiteral(ts[i:]) {
			continue
		}
		if len(w.order) > begin && compareIRI(w.ts[w.order[len(w.order)-1]].P, ts[i].P) > 0 {
			sorted = false
		}
		w.order = append(w.order, int32(offset+i))
	}
	if starts := w.order[begin:]; !sorted {
		slices.SortFunc(starts, func(a, b int32) int { return compareIRI(w.ts[a].P, w.ts[b].P) })
	}
	return w.order[begin:]
}

// hasLiteral tells whether the predicate that ts begins with has an object
// that is a literal.
func hasLiteral(ts []rdfres.Triple) bool {
	for i := 0; i < len(ts) && ts[i].P == ts[0].P; i++ {
		if ts[i].O[0] == '"' {
			return true
		}
	}
	return false
}

// compareIRI compares two IRI terms as strings of JSON.
func compareIRI(a, b rdfres.Term) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	if strings.IndexByte(string(a), '\\') >= 0 || strings.IndexByte(string(b), '\\') >= 0 {
		return strings.Compare(chars.Unescape(string(a)), chars.Unescape(string(b)))
	}
	return strings.Compare(string(a), string(b))
}

// property writes the values of the predicate at from.
func (w *jsonldWriter) property(from, to int) {
	p := w.ts[from].P
	w.out = append(w.out, `,"`...)
	w.out = appendID(w.out, p)
	w.out = append(w.out, `":[`...)
	first := true
	for i := from; i < to && w.ts[i].P == p; i++ {
		o := w.ts[i].O
		if p == syntax.Type && o[0] != '"' {
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.value(o)
	}
	w.out = append(w.out, ']')
}

func (w *jsonldWriter) value(o rdfres.Term) {
	switch o[0] {
	case '"':
		lexical, lang, datatype := o.EscapedLiteral()
		w.out = append(w.out, '{')
		if lang != "" {
			w.out = append(append(append(w.out, `"@language":"`...), lang...), `",`...)
		} else if datatype != "" {
			w.out = append(w.out, `"@type":"`...)
			w.out = appendJSONText(w.out, datatype)
			w.out = append(w.out, `",`...)
		}
		w.out = append(w.out, `"@value":"`...)
		w.out = appendJSONText(w.out, lexical)
		w.out = append(w.out, `"}`...)
		return
	case '_':
		if u := w.blanks[o]; u.node >= 0 && w.nodes[u.node].nested {
			w.node(u.node)
			return
		}
	}
	w.out = append(w.out, `{"@id":"`...)
	w.out = appendID(w.out, o)
	w.out = append(w.out, `"}`...)
}

// appendID appends the value of @id for an IRI or a blank node.
func appendID(dst []byte, t rdfres.Term) []byte {
	if t[0] == '_' {
		return append(dst, t...)
	}
	return appendJSONText(dst, string(t[1:len(t)-1]))
}

// appendJSONText turns the inside of an IRI or literal term into that of a
// JSON string with the fewest escapes. The short escapes are the same in both.
func appendJSONText(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		if s[i+1] != 'u' {
			dst = append(dst, s[i:i+2]...)
			s = s[i+2:]
			continue
		}
		r, n, _ := chars.ReadEscape(s[i:], true, false)
		switch {
		case n == 0:
			dst, n = append(dst, '\\', '\\'), 1
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = appendJSONControl(dst, byte(r))
		default:
			dst = append(dst, string(r)...)
		}
		s = s[i+n:]
	}
}

func appendJSONControl(dst []byte, c byte) []byte {
	switch c {
	case '\b', '\t', '\n', '\f', '\r':
		return chars.AppendEscape(dst, c)
	}
	const lowerHex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
}
