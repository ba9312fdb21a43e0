package jsonld

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// definer makes the term definitions of one context object (section 4.2).
type definer struct {
	x         *ldExpander
	result    *ldContext
	local     localContext
	run       contextRun
	protected bool
	names     map[string]jsonNode
	order     []string
	state     map[string]bool // false while a term is being defined
	scopes    []*ldTerm       // with a context to check
}

// need defines a term for the definition of another.
func (d *definer) need(name string) error {
	if done, ok := d.state[name]; ok && done {
		return nil
	}
	if v, ok := d.names[name]; ok {
		return d.define(name, v)
	}
	return nil
}

// all defines the terms of the context object.
func (d *definer) all() error {
	each := func(name string, v jsonNode) error {
		switch name {
		case "@base", "@direction", "@import", "@language", "@propagate", "@protected", "@version", "@vocab":
			return nil
		}
		if _, ok := d.names[name]; ok {
			return nil
		}
		d.names[name] = v
		d.order = append(d.order, name)
		return d.x.hold(len(name) + 256)
	}
	if err := d.local.own.members(each); err != nil {
		return err
	}
	if d.local.imported.there() {
		if err := d.local.imported.members(each); err != nil {
			return err
		}
	}
	for _, name := range d.order {
		if d.state[name] {
			continue
		}
		if err := d.define(name, d.names[name]); err != nil {
			return err
		}
	}
	return d.check()
}

func (d *definer) define(name string, v jsonNode) error {
	if done, ok := d.state[name]; ok {
		if done {
			return nil
		}
		return d.x.errorAt(v, "the term "+quoteCut(name)+" is defined with itself")
	}
	if name == "" {
		return d.x.errorAt(v, "a term has no name")
	}
	d.state[name] = false
	switch {
	case name == "@type":
		if !d.isTypeTerm(v) {
			return d.x.errorAt(v, "the keyword @type can have the container @set and be protected, no more")
		}
	case isKeyword(name):
		return d.x.errorAt(v, "the keyword "+name+" cannot be defined anew")
	case looksLikeKeyword(name):
		d.state[name] = true
		return nil // as the specification has it: it is kept for keywords to come
	}
	t, err := d.term(name, v)
	if err != nil {
		return err
	}
	before := d.result.term(name)
	if t != nil && before != nil && before.protected && !d.run.override {
		if !before.same(t) {
			return d.x.errorAt(v, "the term "+quoteCut(name)+" is protected")
		}
		t = before
	}
	if d.result.terms == nil {
		d.result.terms = map[string]*ldTerm{}
	}
	if t == nil { // passed over
		if before != nil {
			d.result.terms[name] = nil
		}
		d.state[name] = true
		return nil
	}
	d.result.terms[name] = t
	d.state[name] = true
	if t.context.there() && t != before {
		d.scopes = append(d.scopes, t)
	}
	return d.x.hold(len(t.iri) + len(t.typ) + len(t.index))
}

func (d *definer) isTypeTerm(v jsonNode) bool {
	if v.kind() != '{' {
		return false
	}
	some := false
	err := v.members(func(name string, v jsonNode) error {
		some = true
		switch name {
		case "@protected":
			return nil
		case "@container":
			if v.kind() == '"' && v.text() == "@set" || v.kind() == '[' && v.tape.nodes[v.at].next == v.at+2 && (jsonNode{v.tape, v.at + 1}).isText("@set") {
				return nil
			}
		}
		return syntax.ErrStopped
	})
	return some && err == nil
}

func (n jsonNode) isText(text string) bool { return n.kind() == '"' && n.text() == text }

// same compares definitions, but for whether they are protected.
func (t *ldTerm) same(u *ldTerm) bool {
	a, b := *t, *u
	a.protected, b.protected = false, false
	if a.context.there() && b.context.there() && string(a.context.raw()) == string(b.context.raw()) {
		a.context, b.context = jsonNode{}, jsonNode{}
	}
	if !a.context.there() && !b.context.there() {
		a.from, b.from = "", ""
	}
	return a == b
}

// term reads a definition; nil is one without effect.
func (d *definer) term(name string, v jsonNode) (*ldTerm, error) {
	x := d.x
	t := &ldTerm{protected: d.protected, from: d.run.from}
	var def jsonNode
	id := jsonNode{}
	simple := false
	switch v.kind() {
	case 'n':
		return t, nil
	case '"':
		id, simple = v, true
	case '{':
		def, id = v, v.get("@id")
		if id.there() && id.kind() == 'n' {
			return d.details(name, t, def)
		}
	default:
		return nil, x.errorAt(v, "the definition of the term "+quoteCut(name)+" is no object, string or null")
	}
	if p := d.member(def, "@protected"); p.there() {
		if p.kind() != 't' && p.kind() != 'f' {
			return nil, x.errorAt(p, "@protected is neither true nor false")
		}
		t.protected = p.kind() == 't'
	}
	if ty := d.member(def, "@type"); ty.there() {
		if ty.kind() != '"' {
			return nil, x.errorAt(ty, "the @type of a term is no string")
		}
		typ, err := x.expandIRI(d.result, ty.text(), false, true, d)
		if err != nil {
			return nil, err
		}
		switch {
		case typ == "@id" || typ == "@json" || typ == "@none" || typ == "@vocab":
		case !chars.HasScheme(typ):
			return nil, x.errorAt(ty, "the @type "+quoteCut(ty.text())+" of a term is no IRI")
		}
		t.typ = typ
	}
	if r := d.member(def, "@reverse"); r.there() {
		return d.reverse(t, def, r)
	}
	if passed, err := d.mapping(name, t, id, simple); err != nil || passed {
		return nil, err
	}
	return d.details(name, t, def)
}

func (d *definer) member(def jsonNode, name string) (v jsonNode) {
	if !def.there() {
		return v
	}
	return def.get(name)
}

func (d *definer) reverse(t *ldTerm, def, r jsonNode) (*ldTerm, error) {
	x := d.x
	if def.get("@id").there() || def.get("@nest").there() {
		return nil, x.errorAt(r, "a term with @reverse has @id or @nest as well")
	}
	if r.kind() != '"' {
		return nil, x.errorAt(r, "the @reverse of a term is no string")
	}
	if looksLikeKeyword(r.text()) && !isKeyword(r.text()) {
		return nil, nil
	}
	iri, err := x.expandIRI(d.result, r.text(), false, true, d)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(iri, ":") {
		return nil, x.errorAt(r, "the @reverse "+quoteCut(r.text())+" of a term is no IRI")
	}
	t.iri, t.reverse = iri, true
	if c := def.get("@container"); c.there() && c.kind() != 'n' {
		if !c.isText("@set") && !c.isText("@index") {
			return nil, x.errorAt(c, "a term with @reverse can have the container @set or @index")
		}
		t.container = ldContainers[c.text()]
	}
	return t, d.others(def)
}

// mapping finds the IRI of a term. passed is a definition without effect.
func (d *definer) mapping(name string, t *ldTerm, id jsonNode, simple bool) (passed bool, err error) {
	x := d.x
	if id.there() && !id.isText(name) {
		if id.kind() != '"' {
			return false, x.errorAt(id, "the @id of the term "+quoteCut(name)+" is no string")
		}
		text := id.text()
		if looksLikeKeyword(text) && !isKeyword(text) {
			return true, nil
		}
		if t.iri, err = x.expandIRI(d.result, text, false, true, d); err != nil {
			return false, err
		}
		switch {
		case t.iri == "@context":
			return false, x.errorAt(id, "@context has no other name")
		case !isKeyword(t.iri) && !strings.Contains(t.iri, ":"):
			return false, x.errorAt(id, "the term "+quoteCut(name)+" leads to "+quoteCut(text)+", which is no IRI")
		}
		if i := strings.IndexByte(name, ':'); i > 0 && i < len(name)-1 || strings.Contains(name, "/") {
			d.state[name] = true
			own, err := x.expandIRI(d.result, name, false, true, d)
			d.state[name] = false
			if err != nil {
				return false, err
			}
			if own != t.iri {
				return false, x.errorAt(id, "the term "+quoteCut(name)+" is an IRI itself and leads to another one")
			}
		} else if simple && !strings.Contains(name, ":") {
			t.prefix = endsPrefix(t.iri)
		}
		return false, nil
	}
	switch i := strings.IndexByte(name, ':'); {
	case i > 0:
		if err := d.need(name[:i]); err != nil {
			return false, err
		}
		if p := d.result.term(name[:i]); p != nil && p.iri != "" {
			t.iri = p.iri + name[i+1:]
		} else {
			t.iri = name
		}
	case strings.Contains(name, "/"):
		if t.iri, err = x.expandIRI(d.result, name, false, true, nil); err != nil {
			return false, err
		}
		if !chars.HasScheme(t.iri) {
			return false, x.errorAt(d.names[name], "the term "+quoteCut(name)+" leads to no IRI")
		}
	case name == "@type":
		t.iri = "@type"
	case d.result.hasVocab:
		t.iri = d.result.vocab + name
	default:
		return false, x.errorAt(d.names[name], "the term "+quoteCut(name)+" leads to no IRI, and there is no @vocab")
	}
	return false, nil
}

// endsPrefix tells whether an IRI may be a prefix of itself: it ends in a delimiter.
func endsPrefix(iri string) bool {
	return iri != "" && (strings.IndexByte(":/?#[]@", iri[len(iri)-1]) >= 0 || strings.HasPrefix(iri, "_:"))
}

// details reads the members of a definition beside its IRI and type.
func (d *definer) details(name string, t *ldTerm, def jsonNode) (*ldTerm, error) {
	if !def.there() {
		return t, nil
	}
	x := d.x
	if p := def.get("@protected"); p.there() && p.kind() != 'n' {
		t.protected = p.kind() == 't'
	}
	if c := def.get("@container"); c.there() {
		err := c.elements(func(c jsonNode) error {
			bit := ldContainer(0)
			if c.kind() == '"' {
				bit = ldContainers[c.text()]
			}
			if bit == 0 || t.container&bit != 0 {
				return x.errorAt(c, "the term "+quoteCut(name)+" has a container that there is not")
			}
			t.container |= bit
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !t.container.valid() {
			return nil, x.errorAt(c, "the containers of the term "+quoteCut(name)+" do not go together")
		}
		if t.container&inClass != 0 {
			if t.typ == "" {
				t.typ = "@id"
			}
			if t.typ != "@id" && t.typ != "@vocab" {
				return nil, x.errorAt(c, "a term with the container @type has the type @id or @vocab")
			}
		}
	}
	if i := def.get("@index"); i.there() {
		if t.container&inIndex == 0 || i.kind() != '"' {
			return nil, x.errorAt(i, "the @index of a term is no string, or there is no container @index")
		}
		iri, err := x.expandIRI(d.result, i.text(), false, true, d)
		if err != nil {
			return nil, err
		}
		if !chars.HasScheme(iri) {
			return nil, x.errorAt(i, "the @index "+quoteCut(i.text())+" of a term is no IRI")
		}
		t.index = i.text()
	}
	t.context = def.get("@context")
	if l := def.get("@language"); l.there() && t.typ == "" {
		if l.kind() != '"' && l.kind() != 'n' {
			return nil, x.errorAt(l, "the @language of a term is neither a string nor null")
		}
		if t.hasLang = true; l.kind() == '"' {
			t.lang = l.text()
		}
	}
	if v := def.get("@direction"); v.there() && t.typ == "" {
		dir, err := x.direction(v)
		if err != nil {
			return nil, err
		}
		t.dir, t.hasDir = dir, true
	}
	if n := def.get("@nest"); n.there() {
		if n.kind() != '"' || isKeyword(n.text()) && n.text() != "@nest" {
			return nil, x.errorAt(n, "the @nest of a term is no string, or a keyword")
		}
		t.nest = n.text()
	}
	if p := def.get("@prefix"); p.there() {
		if strings.ContainsAny(name, ":/") || p.kind() != 't' && p.kind() != 'f' {
			return nil, x.errorAt(p, "@prefix is neither true nor false, or the term "+quoteCut(name)+" can be no prefix")
		}
		if t.prefix = p.kind() == 't'; t.prefix && isKeyword(t.iri) {
			return nil, x.errorAt(p, "a keyword can be no prefix")
		}
	}
	return t, d.others(def)
}

var termMembers = []string{"@id", "@reverse", "@container", "@context", "@direction", "@index", "@language", "@nest", "@prefix", "@protected", "@type"}

// others refuses unknown members.
func (d *definer) others(def jsonNode) error {
	return def.members(func(name string, v jsonNode) error {
		if !slices.Contains(termMembers, name) {
			return d.x.errorAt(v, "a term has no member "+quoteCut(name))
		}
		return nil
	})
}

// check processes the contexts of the terms, once all terms are there. What comes of it is
// forgotten.
func (d *definer) check() error {
	x := d.x
	for _, t := range d.scopes {
		if err := x.hold(0); err != nil {
			return err
		}
		held, total := x.held[x.level], x.total
		if _, err := x.process(d.result, t.context, contextRun{from: t.from, remote: d.run.remote, override: true, propagate: true, checked: true}); err != nil {
			return err
		}
		x.held[x.level], x.total = held, total
	}
	return nil
}
