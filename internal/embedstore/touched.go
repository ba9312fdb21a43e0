package embedstore

import (
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Touched is what an update may change, as far as its text says.
type Touched struct {
	Subjects []string // IRIs in the places of subjects
	Graphs   []string // IRIs of graphs; "" is the default graph
	// Unknown: the text does not say all.
	Unknown bool
	// Blank: blank nodes are touched too. The subjects are those that lead to them now.
	Blank bool
	// Bindings tells the rest, asked before the update; nil: there is none.
	Bindings *Bindings
}

// IsEmpty tells that nothing was touched.
func (t *Touched) IsEmpty() bool {
	return len(t.Subjects)+len(t.Graphs) == 0 && !t.Unknown && !t.Blank && t.Bindings == nil
}

// Bindings is the pattern of the one operation with variables: the first one, which sees the store
// as it is before the update.
type Bindings struct {
	Subjects []string // variables in the places of subjects
	Others   []string // in the places of objects
	Leading  []string // in triples that lead to fresh blank nodes: unless all are IRIs, such a triple falls away
	AnyGraph bool     // a variable names graphs
	Prologue string
	Dataset  string // FROM clauses
	Pattern  string // a group with its braces
}

// ReadTouched reads what an update may change. A text that this store does not understand, or that
// gives another result each time, is unknown.
func ReadTouched(text string) (out Touched) {
	if strings.Contains(text, "<_:") || strings.Contains(text, "<nodeID:") { // some stores take them for blank nodes
		return Touched{Unknown: true}
	}
	p := newParser(strings.NewReader(text), "")
	p.lasting, p.simple = true, true
	ops := updateParser{p}
	err := p.in.guarded(func() {
		p.in.advance()
		for n := 0; ; n++ {
			p.prologue()
			prologue := text[:p.in.tok.off]
			op := ops.operation()
			if op == nil {
				return
			}
			one := ops.touched(op, text)
			if one.Bindings != nil {
				one.Bindings.Prologue = prologue
				one.Unknown = one.Unknown || n > 0 // its pattern sees what the operations before it did
			}
			out.add(one)
			ops.separator()
		}
	})
	out.Unknown = out.Unknown || err != nil
	return out
}

func (t *Touched) add(o Touched) {
	t.Subjects, t.Graphs, t.Unknown = append(t.Subjects, o.Subjects...), append(t.Graphs, o.Graphs...), t.Unknown || o.Unknown
	if o.Bindings != nil {
		t.Bindings = o.Bindings
	}
}

// touched reads what an operation may change.
func (u *updateParser) touched(op *operation, text string) (t Touched) {
	var quads []quadPattern
	blanks := op.blanks
	switch op.kind {
	case opInsertData:
		u.dataQuads(true, func(q quadPattern) { quads = append(quads, q) })
		t.take(quads, "", func(int) bool { return true }, nil)
		return t
	case opDeleteData:
		u.dataQuads(false, func(q quadPattern) { quads = append(quads, q) })
		t.take(quads, "", nil, nil)
		return t
	case opModify:
	case opCreate:
		return t
	case opClear, opDrop:
		if op.a.kind != 'g' {
			t.Unknown = true
			return t
		}
		t.Graphs = []string{iriOf(op.a.term)}
		t.Bindings = &Bindings{Subjects: []string{"s"}, Others: []string{"o"}, Pattern: "{ GRAPH " + op.a.term + " { ?s ?p ?o } }"}
		return t
	case opAdd, opMove, opCopy:
		if op.a.kind != 'g' || op.b.kind != 'g' { // the default graph may be shown as a union
			t.Unknown = true
			return t
		}
		all := "{ GRAPH " + op.a.term + " { ?s ?p ?o } }"
		if t.Graphs = []string{iriOf(op.b.term)}; op.kind != opAdd {
			all = "{ " + all + " UNION { GRAPH " + op.b.term + " { ?s ?p ?o } } }"
		}
		if op.kind == opMove {
			t.Graphs = append(t.Graphs, iriOf(op.a.term))
		}
		t.Bindings = &Bindings{Subjects: []string{"s"}, Others: []string{"o"}, Pattern: all}
		return t
	default:
		t.Unknown = true
		return t
	}
	names := map[int]string{}
	for name, slot := range u.p.scope.names {
		names[slot] = name
	}
	t.take(op.del, op.with, nil, names)
	t.take(op.ins, op.with, func(slot int) bool { return slices.Contains(blanks, slot) }, names)
	if b := t.Bindings; b != nil {
		b.Pattern = text[op.from:op.to]
		if op.using.given {
			for _, g := range op.using.graphs {
				b.Dataset += " FROM " + g
			}
			for _, g := range op.using.named {
				b.Dataset += " FROM NAMED " + g
			}
		} else if op.with != "" {
			b.Pattern = "{ GRAPH " + op.with + " " + b.Pattern + "\n}"
		}
	}
	return t
}

// take adds the quads of data, or of a template. blank tells a fresh blank node from a variable;
// names are those of the variables. A fresh blank node belongs to what leads to it in the same
// graph; of one that nothing leads to, the text says no entity. A triple with a variable leads
// if its bindings make it one: others are not inserted, and the rest of the template is.
func (t *Touched) take(quads []quadPattern, with string, blank func(slot int) bool, names map[int]string) {
	isBlank := func(x pterm) bool { return x.isVar() && blank != nil && blank(x.slot) }
	owned, graphs := map[int]bool{}, map[pterm]bool{}
	fresh := false
	for _, q := range quads {
		g := q.g
		if g == (pterm{slot: -1}) {
			g.term = with
		}
		graphs[g] = true
		fresh = fresh || isBlank(q.s) || isBlank(q.o)
		switch {
		case g.isVar():
			t.bindings().AnyGraph = true
		default:
			t.Graphs = append(t.Graphs, iriOf(g.term))
		}
		switch {
		case isBlank(q.s):
		case q.s.isVar():
			t.variable(&t.bindings().Subjects, names[q.s.slot])
		case strings.HasPrefix(q.s.term, "<"):
			t.Subjects = append(t.Subjects, iriOf(q.s.term))
		default:
			t.Unknown = true
		}
		if q.o.isVar() && !isBlank(q.o) {
			t.variable(&t.bindings().Others, names[q.o.slot])
		}
	}
	if !fresh {
		return
	}
	t.Unknown = t.Unknown || len(graphs) > 1
	for _, sure := range []bool{true, false} {
		for more := true; more; {
			more = false
			for _, q := range quads {
				if !isBlank(q.o) || owned[q.o.slot] || isBlank(q.s) && !owned[q.s.slot] {
					continue
				}
				var leading []int
				for _, x := range []pterm{q.s, q.p} {
					if x.isVar() && !isBlank(x) {
						leading = append(leading, x.slot)
					}
				}
				if sure && len(leading) > 0 {
					continue
				}
				owned[q.o.slot], more = true, true
				for _, slot := range leading {
					t.variable(&t.bindings().Leading, names[slot])
				}
			}
		}
	}
	for _, q := range quads {
		t.Unknown = t.Unknown || isBlank(q.s) && !owned[q.s.slot]
	}
}

func (t *Touched) bindings() *Bindings {
	if t.Bindings == nil {
		t.Bindings = &Bindings{}
	}
	return t.Bindings
}

func (t *Touched) variable(list *[]string, name string) {
	if name == "" { // a blank node of the pattern
		t.Unknown = true
	} else if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

func iriOf(term string) string {
	if term == "" {
		return ""
	}
	return rdfres.Term(term).IRI()
}

// TouchedBy reads what the statements of a document change when they are added to a graph ("": the
// default graph).
func TouchedBy(quads iter.Seq2[rdfres.Quad, error], graph string) (t Touched) {
	slots, list := map[rdfres.Term]int{}, []quadPattern(nil)
	place := func(x rdfres.Term) pterm {
		if x.Kind() != rdfres.KindBlank {
			return pterm{-1, string(x)}
		}
		n, ok := slots[x]
		if !ok {
			n = len(slots)
			slots[x] = n
		}
		return pterm{slot: n}
	}
	with := ""
	if graph != "" {
		with = iriTerm(graph)
	}
	for q, err := range quads {
		if err != nil {
			return Touched{Unknown: true}
		}
		if q.G.Kind() == rdfres.KindBlank {
			return Touched{Unknown: true}
		}
		list = append(list, quadPattern{tripleNode{place(q.S), place(q.P), place(q.O)}, pterm{-1, string(q.G)}})
	}
	t.take(list, with, func(int) bool { return true }, nil)
	return t
}
