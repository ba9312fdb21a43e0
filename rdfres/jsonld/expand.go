package jsonld

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// ldExpander expands a JSON-LD document (JSON-LD 1.1 API, section 5.1): it writes the same
// document without contexts, for jsonldReader. The parts without a meaning as RDF,
// dropped by the algorithm, are left out. One member may be written twice where the algorithm
// would join two.
type ldExpander struct {
	opts   rdfres.ReadOptions
	doc    *jsonTape
	first  *ldContext
	loaded map[string]loadedContext
	out    []byte
	most   int64 // bytes for contexts, and for the output

	level int     // of embedded contexts in force
	held  []int64 // memory of contexts, by level
	total int64
	work  int
}

// expandJSONLD gives the expanded form of a document. Contexts from elsewhere come from
// o.Context.
func expandJSONLD(data []byte, o rdfres.ReadOptions) ([]byte, error) {
	x := &ldExpander{opts: o, loaded: map[string]loadedContext{}, most: o.ExpandsTo(int64(len(data)))}
	tape, err := readTape(o.Name, data, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	x.doc = tape
	x.first = &ldContext{base: o.Base}
	c := x.first
	if o.LinkedContext != "" {
		if c, err = x.linked(c, o.LinkedContext, contextRun{from: o.Base, propagate: true}); err != nil {
			return nil, err
		}
	}
	x.out = append(make([]byte, 0, len(data)), '[')
	err = x.elements(c, position{}, tape.root(0))
	return append(x.out, ']'), err
}

func (x *ldExpander) errorAt(n jsonNode, why string) error {
	e := &rdfres.SyntaxError{Name: x.opts.Name, Format: rdfres.JSONLD, Reason: why}
	if n.there() {
		at := n.pos()
		from := bytes.LastIndexByte(n.tape.data[:at], '\n') + 1
		e.Name, e.Line, e.Column = n.tape.name, 1+bytes.Count(n.tape.data[:at], []byte{'\n'}), chars.Column(n.tape.data[from:], at-from)
		if n.tape != x.doc {
			return fmt.Errorf("rdfres: read %s %s: %w: %w", rdfres.JSONLD, x.opts.Name, rdfres.ErrRemoteContext, e)
		}
	}
	return e
}

func quoteCut(s string) string { return strconv.Quote(chars.Cut(s)) }

// write appends text; the bound is looked at when something was written.
func (x *ldExpander) write(parts ...string) {
	for _, p := range parts {
		x.grow(len(p))
		x.out = append(x.out, p...)
	}
}

// grow makes room without doubling a long output.
func (x *ldExpander) grow(n int) {
	if len(x.out)+n > cap(x.out) && len(x.out) > 1<<20 {
		x.out = slices.Grow(x.out, max(n, len(x.out)/4))
	}
}

// copy writes a value as it stands.
func (x *ldExpander) copy(v jsonNode) {
	raw := v.raw()
	x.grow(len(raw))
	x.out = append(x.out, raw...)
}

// bound fails when more was written than may be.
func (x *ldExpander) bound() error {
	if int64(len(x.out)) > x.most {
		return fmt.Errorf("rdfres: read %s %s: it expands to more than %d bytes: %w", rdfres.JSONLD, x.opts.Name, x.most, rdfres.ErrTooLarge)
	}
	return nil
}

// comma separates an element or member from the one before.
func (x *ldExpander) comma() {
	switch x.out[len(x.out)-1] {
	case '[', '{', ':':
	default:
		x.out = append(x.out, ',')
	}
}

// quoted writes a string.
func (x *ldExpander) quoted(s string) error {
	if int64(len(x.out)+len(s)) > x.most {
		return fmt.Errorf("rdfres: read %s %s: it expands to more than %d bytes: %w", rdfres.JSONLD, x.opts.Name, x.most, rdfres.ErrTooLarge)
	}
	x.grow(len(s) + len(s)/8 + 2)
	x.out = appendJSONString(x.out, s)
	return nil
}

// member begins a member.
func (x *ldExpander) member(name string) error {
	x.comma()
	if err := x.quoted(name); err != nil {
		return err
	}
	x.out = append(x.out, ':')
	return nil
}

// position is the place of an element.
type position struct {
	term    string // the active property; "" at the top
	def     *ldTerm
	inGraph bool // the value of @graph: as at the top
	reverse bool // its values lead to the node
	fromMap bool // a value of a map: a context before is not gone back to
	extra   *extra
}

// top tells of a position for node objects only.
func (p position) top() bool { return p.term == "" || p.inGraph }

// extra is the part of each value of a map, from its key.
type extra struct {
	id, class string // "" is nothing
	property  string // an IRI, with the value in raw
	raw       string
	graph     bool // values become graphs
}

func (p position) container() ldContainer {
	if p.def == nil {
		return 0
	}
	return p.def.container
}

// elements writes the expansion of a value at a position: any number of items.
func (x *ldExpander) elements(c *ldContext, p position, v jsonNode) error {
	if v.kind() != '[' {
		return x.element(c, p, v)
	}
	return v.elements(func(v jsonNode) error {
		if v.kind() != '[' {
			return x.element(c, p, v)
		}
		if p.container()&inList == 0 { // arrays of arrays are one
			return x.elements(c, p, v)
		}
		x.comma()
		x.write(`{"@list":[`)
		if err := x.elements(c, p, v); err != nil {
			return err
		}
		x.write(`]}`)
		return x.bound()
	})
}

// element writes a value, arrays apart.
func (x *ldExpander) element(c *ldContext, p position, v jsonNode) error {
	switch v.kind() {
	case 'n':
		return nil
	case '{':
		if x.extraGraph(c, p, v) {
			x.comma()
			x.write(`{`)
			if err := x.writeExtra(p.extra); err != nil {
				return err
			}
			if err := x.member("@graph"); err != nil {
				return err
			}
			x.write(`[`)
			p.extra = nil
			if err := x.object(c, p, v); err != nil {
				return err
			}
			x.write(`]}`)
			return x.bound()
		}
		return x.object(c, p, v)
	}
	if p.top() {
		return nil
	}
	return x.scalar(c, p, v)
}

// extraGraph tells whether a value becomes a graph of its own.
func (x *ldExpander) extraGraph(c *ldContext, p position, v jsonNode) bool {
	if p.extra == nil || !p.extra.graph {
		return false
	}
	if p.container()&(inID|inIndex) == 0 {
		return true
	}
	is := false
	err := v.members(func(name string, _ jsonNode) error {
		switch x.keyword(c, name) {
		case "@graph":
			is = true
		case "@id", "@index", "@context":
		default:
			return syntax.ErrStopped
		}
		return nil
	})
	return !is || err != nil
}

// keyword is the keyword behind a name, or "".
func (x *ldExpander) keyword(c *ldContext, name string) string {
	if isKeyword(name) {
		return name
	}
	if t := c.term(name); t != nil && isKeyword(t.iri) {
		return t.iri
	}
	return ""
}

// scalar is the value expansion algorithm (section 5.3).
func (x *ldExpander) scalar(c *ldContext, p position, v jsonNode) (err error) {
	if p.def != nil && p.def.context.there() {
		if c, err = x.scopedContext(c, p.def, true, true); err != nil {
			return err
		}
	}
	typ := ""
	if p.def != nil {
		typ = p.def.typ
	}
	if (typ == "@id" || typ == "@vocab") && v.kind() == '"' {
		iri, err := x.expandIRI(c, v.text(), true, typ == "@vocab", nil)
		if err != nil {
			return err
		}
		return x.reference(c, p, v, iri)
	}
	x.comma()
	if p.extra != nil && (p.extra.id != "" || p.extra.class != "" || p.extra.property != "") {
		return x.errorAt(v, "a value stands in a map of nodes")
	}
	if p.reverse {
		return x.errorAt(v, "a literal stands in @reverse")
	}
	lang := ""
	if v.kind() == '"' {
		if lang = c.lang; p.def != nil && p.def.hasLang {
			lang = p.def.lang
		}
	}
	switch {
	case typ != "" && typ != "@id" && typ != "@vocab" && typ != "@none":
		x.write(`{"@type":`)
		if err := x.quoted(typ); err != nil {
			return err
		}
		x.write(`,"@value":`)
		x.copy(v)
		x.write(`}`)
	case lang != "":
		x.write(`{"@language":`)
		if err := x.quoted(lang); err != nil {
			return err
		}
		x.write(`,"@value":`)
		x.copy(v)
		x.write(`}`)
	default:
		x.copy(v)
	}
	return x.bound()
}

// reference writes a node, named by a string.
func (x *ldExpander) reference(c *ldContext, p position, v jsonNode, iri string) error {
	if iri == "" || c.noBase && !chars.HasScheme(iri) && !strings.HasPrefix(iri, "_:") && p.container()&inList == 0 {
		return nil
	}
	graph := p.extra != nil && p.extra.graph
	x.comma()
	x.write(`{`)
	if graph {
		if err := x.writeExtra(p.extra); err != nil {
			return err
		}
		if err := x.member("@graph"); err != nil {
			return err
		}
		x.write(`[{`)
	}
	if err := x.id(c, v, iri); err != nil {
		return err
	}
	if graph {
		x.write(`}]`)
	} else if e := p.extra; e != nil {
		more := *e
		more.id = "" // it has one
		if err := x.writeExtra(&more); err != nil {
			return err
		}
	}
	x.write(`}`)
	return x.bound()
}

// id writes @id, which must lead somewhere.
func (x *ldExpander) id(c *ldContext, v jsonNode, iri string) error {
	if !strings.HasPrefix(iri, "_:") && !chars.HasScheme(iri) {
		return x.errorAt(v, "the IRI "+quoteCut(iri)+" is relative and there is no base")
	}
	if err := x.member("@id"); err != nil {
		return err
	}
	return x.quoted(iri)
}

func (x *ldExpander) writeExtra(e *extra) error {
	if e == nil {
		return nil
	}
	if e.id != "" {
		if err := x.member("@id"); err != nil {
			return err
		}
		if err := x.quoted(e.id); err != nil {
			return err
		}
	}
	if e.class != "" {
		if err := x.member("@type"); err != nil {
			return err
		}
		x.write(`[`)
		if err := x.quoted(e.class); err != nil {
			return err
		}
		x.write(`]`)
	}
	if e.property != "" {
		if err := x.member(e.property); err != nil {
			return err
		}
		x.write(`[`, e.raw, `]`)
	}
	return x.bound()
}
