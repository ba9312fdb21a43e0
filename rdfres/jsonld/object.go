package jsonld

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// ldObject is an object while it is expanded.
type ldObject struct {
	c       *ldContext
	typed   *ldContext // the context for types, before those of its types
	p       position
	jsonLit bool // its @type is @json
	seen    []string
}

// object writes the expansion of an object: a node, a value, a list, or the items of a set.
func (x *ldExpander) object(c *ldContext, p position, v jsonNode) (err error) {
	if c.previous != nil && !p.fromMap && x.goesBack(c, v) {
		c = c.previous
	}
	if p.def != nil && p.def.context.there() {
		if c, err = x.scopedContext(c, p.def, true, true); err != nil {
			return err
		}
	}
	if local := v.get("@context"); local.there() {
		x.level++
		defer x.leave(x.level)
		if c, err = x.process(c, local, contextRun{from: x.opts.Base, propagate: true}); err != nil {
			return err
		}
	}
	o := &ldObject{c: c, typed: c, p: p}
	if err := x.typeScoped(o, v); err != nil {
		return err
	}
	var has struct{ value, list, set, id bool }
	_ = v.members(func(name string, _ jsonNode) error { // gives no error
		switch x.keyword(o.c, name) {
		case "@value":
			has.value = true
		case "@list":
			has.list = true
		case "@set":
			has.set = true
		case "@id":
			has.id = true
		}
		return nil
	})
	switch {
	case has.value:
		return x.valueObject(o, v)
	case has.list && has.set:
		return x.errorAt(v, "an object has both @list and @set")
	case has.list, has.set:
		return x.collection(o, v, has.list)
	case p.term == "" && v.tape == x.doc && v.at == 0 && x.onlyGraph(o.c, v):
		return v.members(func(name string, v jsonNode) error {
			if x.keyword(o.c, name) != "@graph" {
				return nil
			}
			return x.elements(o.c, position{term: "@graph", inGraph: true}, v)
		})
	}
	if left, err := x.leftOut(o.c, v); left || err != nil {
		return err
	}
	x.comma()
	x.write(`{`)
	if p.extra != nil && !p.extra.graph || p.extra != nil && p.container()&inGraph != 0 {
		more := *p.extra
		if has.id {
			more.id = ""
		}
		if err := x.writeExtra(&more); err != nil {
			return err
		}
	}
	if err := x.members(o, v); err != nil {
		return err
	}
	x.write(`}`)
	return x.bound()
}

// leftOut tells whether an object stands for nothing: it has only a language, or the @id
// of a node is no name (a keyword to come, or relative where @base is null). Nodes in such
// a one would be lost, so it is refused.
func (x *ldExpander) leftOut(c *ldContext, v jsonNode) (left bool, err error) {
	members, lang := 0, false
	var id jsonNode
	_ = v.members(func(name string, v jsonNode) error { // gives no error
		if name == "@context" {
			return nil
		}
		members++
		switch x.keyword(c, name) {
		case "@language":
			lang = v.kind() == '"'
		case "@id":
			id = v
		}
		return nil
	})
	if !id.there() || id.kind() != '"' {
		return lang && members == 1, nil
	}
	iri, err := x.expandIRI(c, id.text(), true, false, nil)
	if err != nil || iri != "" && (!c.noBase || chars.HasScheme(iri) || strings.HasPrefix(iri, "_:")) {
		return false, err
	}
	err = v.members(func(name string, v jsonNode) error {
		if name == "@context" {
			return nil
		}
		return v.elements(func(v jsonNode) error {
			if v.kind() == '{' || v.kind() == '[' {
				return x.errorAt(id, "the @id "+quoteCut(id.text())+" is no IRI, and there are nodes in the object")
			}
			return nil
		})
	})
	return true, err
}

// goesBack tells whether the context before that of a type is in force again: in each
// node with more than a name.
func (x *ldExpander) goesBack(c *ldContext, v jsonNode) bool {
	members, back, id := 0, true, false
	_ = v.members(func(name string, _ jsonNode) error { // gives no error
		members++
		switch x.keyword(c, name) {
		case "@value":
			back = false
		case "@id":
			id = true
		}
		return nil
	})
	return back && !(members == 1 && id)
}

// typeScoped processes the contexts of the types of an object.
func (x *ldExpander) typeScoped(o *ldObject, v jsonNode) error {
	type entry struct {
		name string
		v    jsonNode
	}
	var entries []entry
	_ = v.members(func(name string, v jsonNode) error { // gives no error
		if x.keyword(o.typed, name) == "@type" {
			entries = append(entries, entry{name, v})
		}
		return nil
	})
	if len(entries) == 0 {
		return nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range entries {
		var types []string
		_ = e.v.elements(func(v jsonNode) error { // gives no error
			if v.kind() != '"' {
				return nil
			}
			name := v.text()
			if t := o.typed.term(name); t == nil || !t.context.there() {
				return nil
			}
			if i, known := slices.BinarySearch(types, name); !known {
				types = slices.Insert(types, i, name)
			}
			return nil
		})
		for _, name := range types {
			c, err := x.scopedContext(o.c, o.typed.term(name), false, false)
			if err != nil {
				return err
			}
			o.c = c
		}
	}
	var last jsonNode
	_ = entries[0].v.elements(func(v jsonNode) error { last = v; return nil }) // gives no error
	if last.there() && last.kind() == '"' {
		iri, err := x.expandIRI(o.c, last.text(), false, true, nil)
		if err != nil {
			return err
		}
		o.jsonLit = iri == "@json"
	}
	return nil
}

// eachMember calls f for each member but @context, with its name and the IRI or keyword behind it.
func (x *ldExpander) eachMember(c *ldContext, v jsonNode, f func(name, iri string, v jsonNode) error) error {
	return v.members(func(name string, v jsonNode) error {
		if name == "@context" {
			return nil
		}
		iri, err := x.expandIRI(c, name, false, true, nil)
		if err != nil {
			return err
		}
		return f(name, iri, v)
	})
}

// onlyGraph tells whether nothing but @graph is left of an object.
func (x *ldExpander) onlyGraph(c *ldContext, v jsonNode) bool {
	graph := false
	err := x.eachMember(c, v, func(name, iri string, v jsonNode) error {
		switch {
		case iri == "@graph":
			graph = true
		case isKeyword(iri) && iri != "@index", strings.Contains(iri, ":") && v.kind() != 'n':
			return syntax.ErrStopped
		case iri == "@index":
			return syntax.ErrStopped
		}
		return nil
	})
	return graph && err == nil
}

// once refuses a keyword in two members of an object.
func (o *ldObject) once(x *ldExpander, keyword string, v jsonNode) error {
	if keyword == "@included" || keyword == "@type" {
		return nil
	}
	if slices.Contains(o.seen, keyword) {
		return x.errorAt(v, "two members of an object stand for "+keyword)
	}
	o.seen = append(o.seen, keyword)
	return nil
}

// isPredicate tells whether a name leads to an IRI. One that leads to none has no meaning
// as RDF, and where there is a context it is passed over, as an unmapped one is.
func isPredicate(iri string) bool {
	return chars.HasScheme(iri) && rdfres.CheckRawIRI(iri) == nil && strings.Count(iri, "#") < 2
}

// members writes the members of a node.
func (x *ldExpander) members(o *ldObject, v jsonNode) error {
	type nest struct {
		name string
		v    jsonNode
	}
	var nests []nest
	err := x.eachMember(o.c, v, func(name, iri string, v jsonNode) error {
		switch {
		case iri == "@nest":
			nests = append(nests, nest{name, v})
			return nil
		case isKeyword(iri):
			if err := o.once(x, iri, v); err != nil {
				return err
			}
			return x.keywordMember(o, iri, v)
		case !isPredicate(iri):
			return nil
		}
		return x.property(o.c, name, iri, v, false)
	})
	for _, n := range nests {
		if err != nil {
			return err
		}
		inner := *o
		if t := o.c.term(n.name); t != nil && t.context.there() {
			if inner.c, err = x.scopedContext(o.c, t, true, true); err != nil {
				return err
			}
		}
		err = n.v.elements(func(v jsonNode) error {
			if v.kind() != '{' {
				return x.errorAt(v, "the value of @nest is no object")
			}
			return x.members(&inner, v)
		})
		o.seen = inner.seen
	}
	return err
}

func (x *ldExpander) keywordMember(o *ldObject, keyword string, v jsonNode) error {
	switch keyword {
	case "@id":
		if v.kind() != '"' {
			return x.errorAt(v, "@id is no string")
		}
		iri, err := x.expandIRI(o.c, v.text(), true, false, nil)
		if err != nil || iri == "" {
			return err
		}
		return x.id(o.c, v, iri)
	case "@type":
		return x.types(o, v)
	case "@graph":
		if err := x.member("@graph"); err != nil {
			return err
		}
		x.write(`[`)
		if err := x.elements(o.c, position{term: "@graph", inGraph: true}, v); err != nil {
			return err
		}
		x.write(`]`)
		return nil
	case "@included":
		return x.included(o, v)
	case "@index":
		if v.kind() != '"' {
			return x.errorAt(v, "@index is no string")
		}
		return nil
	case "@reverse":
		if v.kind() != '{' {
			return x.errorAt(v, "@reverse is no object")
		}
		return x.reverseMap(o.c, v)
	case "@language", "@direction":
		return x.errorAt(v, keyword+" stands without @value")
	case "@value": // in @nest
		return x.errorAt(v, "@value stands in @nest")
	}
	return x.errorAt(v, keyword+" cannot be a member of a node")
}

func (x *ldExpander) types(o *ldObject, v jsonNode) error {
	if err := x.member("@type"); err != nil {
		return err
	}
	x.write(`[`)
	err := v.elements(func(v jsonNode) error {
		if v.kind() != '"' {
			return x.errorAt(v, "@type is neither a string nor an array of strings")
		}
		iri, err := x.expandIRI(o.typed, v.text(), true, true, nil)
		switch {
		case err != nil || iri == "":
			return err
		case !strings.HasPrefix(iri, "_:") && !chars.HasScheme(iri):
			return x.errorAt(v, "the type "+quoteCut(iri)+" is no IRI, and relative without a base")
		}
		x.comma()
		return x.quoted(iri)
	})
	x.write(`]`)
	return err
}

func (x *ldExpander) included(o *ldObject, v jsonNode) error {
	if err := x.member("@included"); err != nil {
		return err
	}
	x.write(`[`)
	err := v.elements(func(v jsonNode) error {
		node := v.kind() == '{'
		if node {
			_ = v.members(func(name string, _ jsonNode) error { // gives no error
				switch x.keyword(o.c, name) {
				case "@value", "@list", "@set":
					node = false
				}
				return nil
			})
		}
		if !node {
			return x.errorAt(v, "@included holds what is no node")
		}
		return x.element(o.c, position{}, v)
	})
	x.write(`]`)
	return err
}

func (x *ldExpander) reverseMap(c *ldContext, v jsonNode) (err error) {
	if local := v.get("@context"); local.there() {
		x.level++
		defer x.leave(x.level)
		if c, err = x.process(c, local, contextRun{from: x.opts.Base, propagate: true}); err != nil {
			return err
		}
	}
	return x.eachMember(c, v, func(name, iri string, v jsonNode) error {
		switch {
		case isKeyword(iri):
			return x.errorAt(v, iri+" stands in @reverse")
		case !isPredicate(iri):
			return nil
		}
		return x.property(c, name, iri, v, true)
	})
}

// property writes a property and the expansion of its value.
func (x *ldExpander) property(c *ldContext, name, iri string, v jsonNode, inReverse bool) error {
	p := position{term: name, def: c.term(name)}
	p.reverse = (p.def != nil && p.def.reverse) != inReverse
	isJSON := p.def != nil && p.def.typ == "@json"
	if v.kind() == 'n' && !isJSON {
		return nil
	}
	if p.reverse {
		if err := x.member("@reverse"); err != nil {
			return err
		}
		x.write(`{`)
	}
	if err := x.member(iri); err != nil {
		return err
	}
	x.write(`[`)
	var err error
	switch container := p.container(); {
	case isJSON:
		x.write(`{"@type":"@json","@value":`)
		x.copy(v)
		x.write(`}`)
	case container&inLang != 0 && v.kind() == '{':
		err = x.languageMap(c, v)
	case container&(inIndex|inClass|inID) != 0 && v.kind() == '{':
		err = x.indexMap(c, p, v)
	case container&inList != 0 && !x.isList(c, v):
		if p.reverse {
			return x.errorAt(v, "a list stands in @reverse")
		}
		x.write(`{"@list":[`)
		err = x.elements(c, p, v)
		x.write(`]}`)
	default:
		if container&inGraph != 0 {
			p.extra = &extra{graph: true}
		}
		err = x.elements(c, p, v)
	}
	if err != nil {
		return err
	}
	x.write(`]`)
	if p.reverse {
		x.write(`}`)
	}
	return x.bound()
}

// isList tells whether a value is a list object, or an array of one.
func (x *ldExpander) isList(c *ldContext, v jsonNode) bool {
	if v.kind() != '{' {
		return false
	}
	return v.members(func(name string, _ jsonNode) error {
		if x.keyword(c, name) == "@list" {
			return syntax.ErrStopped
		}
		return nil
	}) != nil
}

func (x *ldExpander) languageMap(c *ldContext, v jsonNode) error {
	return v.members(func(lang string, v jsonNode) error {
		if expanded, err := x.expandIRI(c, lang, false, true, nil); err != nil {
			return err
		} else if expanded == "@none" {
			lang = ""
		}
		return v.elements(func(v jsonNode) error {
			switch v.kind() {
			case 'n':
				return nil
			case '"':
			default:
				return x.errorAt(v, "the value of a language is no string")
			}
			x.comma()
			if lang == "" {
				x.copy(v)
				return x.bound()
			}
			x.write(`{"@language":`)
			if err := x.quoted(lang); err != nil {
				return err
			}
			x.write(`,"@value":`)
			x.copy(v)
			x.write(`}`)
			return x.bound()
		})
	})
}

// indexMap writes the values of a map by indexes, names or types of nodes.
func (x *ldExpander) indexMap(c *ldContext, p position, v jsonNode) error {
	container := p.container()
	property, def := "", (*ldTerm)(nil)
	if container&inIndex != 0 && p.def.index != "" {
		iri, err := x.expandIRI(c, p.def.index, false, true, nil)
		if err != nil {
			return err
		}
		property, def = iri, c.term(p.def.index)
	}
	return v.members(func(key string, v jsonNode) (err error) {
		inner := c
		if container&inClass != 0 {
			if c.previous != nil {
				inner = c.previous
			}
			if t := inner.term(key); t != nil && t.context.there() {
				if inner, err = x.scopedContext(inner, t, false, false); err != nil {
					return err
				}
			}
		}
		expanded, err := x.expandIRI(c, key, false, true, nil)
		if err != nil {
			return err
		}
		q := p
		q.fromMap, q.extra = true, &extra{graph: container&inGraph != 0}
		switch {
		case expanded == "@none":
		case property != "":
			q.extra.property = property
			if q.extra.raw, err = x.indexValue(c, position{term: p.def.index, def: def}, key); err != nil {
				return err
			}
		case container&inID != 0:
			if q.extra.id, err = x.expandIRI(c, key, true, false, nil); err != nil {
				return err
			}
		case container&inClass != 0:
			if q.extra.class = expanded; !strings.HasPrefix(expanded, "_:") && !chars.HasScheme(expanded) {
				return x.errorAt(v, "the type "+quoteCut(key)+" is no IRI")
			}
		}
		return x.elements(inner, q, v)
	})
}

// indexValue expands the key of a map as the value of a property.
func (x *ldExpander) indexValue(c *ldContext, p position, key string) (raw string, err error) {
	tape, err := readTape(x.opts.Name, appendJSONString(nil, key), 0)
	if err != nil {
		return "", err
	}
	out := x.out
	x.out = []byte{'['}
	err = x.scalar(c, p, tape.root(0))
	raw = string(x.out[1:])
	x.out = out
	return raw, err
}

// collection writes a list object, or the items of a set.
func (x *ldExpander) collection(o *ldObject, v jsonNode, list bool) error {
	p := o.p
	var items jsonNode
	err := x.eachMember(o.c, v, func(name, iri string, v jsonNode) error {
		switch {
		case iri == "@list" || iri == "@set":
			items = v
			return o.once(x, iri, v)
		case iri == "@index":
			if v.kind() != '"' {
				return x.errorAt(v, "@index is no string")
			}
			return o.once(x, iri, v)
		case isKeyword(iri), strings.Contains(iri, ":"):
			return x.errorAt(v, "a list or set object has the member "+quoteCut(name))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !list:
		return x.elements(o.c, p, items)
	case p.top():
		return nil
	case p.reverse:
		return x.errorAt(v, "a list stands in @reverse")
	}
	p.extra, p.fromMap = nil, false
	x.comma()
	x.write(`{"@list":[`)
	if err := x.elements(o.c, p, items); err != nil {
		return err
	}
	x.write(`]}`)
	return x.bound()
}

// valueObject writes a value object.
func (x *ldExpander) valueObject(o *ldObject, v jsonNode) error {
	var value, typ, lang jsonNode
	hasDir := false
	err := x.eachMember(o.c, v, func(name, iri string, v jsonNode) error {
		if isKeyword(iri) {
			if err := o.once(x, iri, v); err != nil {
				return err
			}
		}
		switch {
		case iri == "@value":
			value = v
		case iri == "@type":
			if typ.there() || v.kind() != '"' {
				return x.errorAt(v, "the @type of a value is no string")
			}
			typ = v
		case iri == "@language":
			if lang = v; v.kind() != '"' {
				return x.errorAt(v, "@language is no string")
			}
		case iri == "@direction":
			_, err := x.direction(v)
			hasDir = v.kind() != 'n'
			return err
		case iri == "@index":
			if v.kind() != '"' {
				return x.errorAt(v, "@index is no string")
			}
		case isKeyword(iri), strings.Contains(iri, ":"):
			return x.errorAt(v, "a value object has the member "+quoteCut(name))
		}
		return nil
	})
	if err != nil {
		return err
	}
	datatype := ""
	if typ.there() {
		if lang.there() || hasDir {
			return x.errorAt(v, "a value has both a type and a language or direction")
		}
		if datatype, err = x.expandIRI(o.typed, typ.text(), true, true, nil); err != nil {
			return err
		}
	}
	switch {
	case datatype == "@json":
	case !value.isScalar() && value.kind() != 'n':
		return x.errorAt(value, "@value is no string, number or boolean, and its type is not @json")
	case value.kind() == 'n':
		return nil
	case lang.there() && value.kind() != '"':
		return x.errorAt(value, "a value with a language is no string")
	case typ.there() && (!chars.HasScheme(datatype) || rdfres.CheckRawIRI(datatype) != nil):
		return x.errorAt(typ, "the datatype "+quoteCut(datatype)+" is no absolute IRI")
	}
	switch e := o.p.extra; {
	case o.p.top():
		return nil
	case o.p.reverse:
		return x.errorAt(v, "a literal stands in @reverse")
	case e != nil && (e.id != "" || e.class != "" || e.property != ""):
		return x.errorAt(v, "a value stands in a map of nodes")
	}
	x.comma()
	x.write(`{`)
	if datatype != "" {
		if err := x.member("@type"); err != nil {
			return err
		}
		if err := x.quoted(datatype); err != nil {
			return err
		}
	}
	if lang.there() {
		if err := x.member("@language"); err != nil {
			return err
		}
		if err := x.quoted(lang.text()); err != nil {
			return err
		}
	}
	if err := x.member("@value"); err != nil {
		return err
	}
	x.copy(value)
	x.write(`}`)
	return x.bound()
}
