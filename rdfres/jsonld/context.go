package jsonld

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// ldContext is an active context (JSON-LD 1.1 API, section 4.1). It is never changed once
// it is in use: the next one stands on it and adds its terms.
type ldContext struct {
	up    *ldContext
	terms map[string]*ldTerm
	depth int // of contexts below this one

	base     string // "" is none
	noBase   bool   // @base is null
	vocab    string
	hasVocab bool
	lang     string
	previous *ldContext

	level  int // of the innermost embedded context
	scoped map[scopedKey]*ldContext
}

// scopedKey names the source of a context, on the context with the cache.
type scopedKey struct {
	node      jsonNode
	address   string
	propagate bool
	override  bool
}

// ldTerm is a term definition.
type ldTerm struct {
	iri       string // "" is null
	prefix    bool
	protected bool
	reverse   bool
	container ldContainer
	typ       string
	lang      string
	hasLang   bool
	dir       string
	hasDir    bool
	index     string
	nest      string
	context   jsonNode // scoped, if there
	from      string   // the address of the definition
}

// ldContainer is a set of containers.
type ldContainer uint8

const (
	inList ldContainer = 1 << iota
	inSet
	inIndex
	inLang
	inID
	inClass
	inGraph
)

var ldContainers = map[string]ldContainer{"@list": inList, "@set": inSet, "@index": inIndex, "@language": inLang, "@id": inID, "@type": inClass, "@graph": inGraph}

// valid tells whether containers can stand together.
func (c ldContainer) valid() bool {
	switch rest := c &^ inSet; rest {
	case 0, inIndex, inLang, inID, inClass, inGraph, inGraph | inIndex, inGraph | inID:
		return true
	default:
		return c == inList
	}
}

func isKeyword(s string) bool {
	if len(s) < 3 || s[0] != '@' {
		return false
	}
	switch s {
	case "@base", "@container", "@context", "@direction", "@graph", "@id", "@import", "@included", "@index", "@json", "@language", "@list", "@nest", "@none",
		"@prefix", "@propagate", "@protected", "@reverse", "@set", "@type", "@value", "@version", "@vocab":
		return true
	}
	return false
}

// looksLikeKeyword tells of @ and letters, reserved for keywords to come.
func looksLikeKeyword(s string) bool {
	if len(s) < 2 || s[0] != '@' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if chars.Class[s[i]]&chars.AlphaByte == 0 {
			return false
		}
	}
	return true
}

func (c *ldContext) term(name string) *ldTerm {
	for ; c != nil; c = c.up {
		if t, ok := c.terms[name]; ok {
			return t
		}
	}
	return nil
}

const (
	contextDepth = 16      // of contexts on each other, before they are merged
	contextWork  = 1 << 26 // terms merged in this way, for a document
)

// on makes a context on top of c.
func (x *ldExpander) on(c *ldContext) *ldContext {
	n := *c
	n.up, n.terms, n.scoped, n.depth, n.level = c, nil, nil, c.depth+1, x.level
	if n.depth < contextDepth {
		return &n
	}
	n.up, n.depth, n.terms = nil, 0, map[string]*ldTerm{}
	for ; c != nil; c = c.up {
		for name, t := range c.terms {
			if _, ok := n.terms[name]; !ok {
				n.terms[name] = t
			}
			x.work++
		}
	}
	return &n
}

// hold counts the memory of contexts, and fails beyond the bound of the document.
func (x *ldExpander) hold(n int) error {
	for len(x.held) <= x.level {
		x.held = append(x.held, 0)
	}
	x.held[x.level] += int64(n)
	if x.total += int64(n); x.total > x.most || x.work > contextWork {
		return fmt.Errorf("rdfres: read %s %s: its contexts expand to more than %d bytes: %w", rdfres.JSONLD, x.opts.Name, x.most, rdfres.ErrTooLarge)
	}
	return nil
}

// leave forgets the memory of the contexts of a level, and of all on top of them.
func (x *ldExpander) leave(level int) {
	for len(x.held) > level {
		x.total -= x.held[len(x.held)-1]
		x.held = x.held[:len(x.held)-1]
	}
	x.level = level - 1
}

// contextRun is the processing of one local context.
type contextRun struct {
	from      string   // the address of the document with the context
	remote    []string // the addresses on the way to it
	override  bool     // of protected terms
	propagate bool
	checked   bool // scoped contexts are checked already
}

// scopedContext is process for a context of a term definition. The result is kept on
// active, which outlives it.
func (x *ldExpander) scopedContext(active *ldContext, t *ldTerm, override, propagate bool) (*ldContext, error) {
	key := scopedKey{node: t.context, propagate: propagate, override: override}
	if c, ok := active.scoped[key]; ok {
		return c, nil
	}
	level := x.level
	x.level = active.level
	c, err := x.process(active, t.context, contextRun{from: t.from, override: override, propagate: propagate, checked: true})
	x.level = level
	if err == nil {
		active.keep(key, c)
	}
	return c, err
}

func (c *ldContext) keep(key scopedKey, made *ldContext) {
	if c.scoped == nil {
		c.scoped = map[scopedKey]*ldContext{}
	}
	c.scoped[key] = made
}

// process is the context processing algorithm (section 4.1.2).
func (x *ldExpander) process(active *ldContext, local jsonNode, run contextRun) (*ldContext, error) {
	if p := local.get("@propagate"); p.there() {
		if p.kind() != 't' && p.kind() != 'f' {
			return nil, x.errorAt(p, "@propagate is neither true nor false")
		}
		run.propagate = p.kind() == 't'
	}
	result := active
	if !run.propagate && result.previous == nil {
		result = x.on(active)
		result.previous = active
	}
	err := local.elements(func(c jsonNode) (err error) {
		switch c.kind() {
		case 'n':
			result, err = x.nullContext(result, c, run)
		case '"':
			result, err = x.namedContext(result, c, run)
		case '{':
			result, err = x.contextObject(result, c, run)
		default:
			err = x.errorAt(c, "a context is an object, an address or null")
		}
		return err
	})
	return result, err
}

// nullContext goes back to the first one.
func (x *ldExpander) nullContext(active *ldContext, at jsonNode, run contextRun) (*ldContext, error) {
	if !run.override {
		for c := active; c != nil; c = c.up {
			for name, t := range c.terms {
				if t != nil && t.protected && active.term(name) == t {
					return nil, x.errorAt(at, "the context null would take away the protected term "+quoteCut(name))
				}
			}
		}
	}
	result := *x.first
	result.terms, result.scoped, result.level = nil, nil, x.level
	if !run.propagate {
		result.previous = active
	}
	return &result, nil
}

// namedContext reads a context from elsewhere.
func (x *ldExpander) namedContext(active *ldContext, at jsonNode, run contextRun) (*ldContext, error) {
	address, ok := rdfres.ResolveIRI(run.from, at.text())
	if !ok {
		return nil, x.errorAt(at, "the address of the context "+quoteCut(at.text())+" is relative and there is no base")
	}
	if slices.Contains(run.remote, address) {
		if run.checked {
			return active, nil
		}
		return nil, x.errorAt(at, "the context "+quoteCut(address)+" leads to itself")
	}
	return x.linked(active, address, run)
}

func (x *ldExpander) linked(active *ldContext, address string, run contextRun) (*ldContext, error) {
	key := scopedKey{address: address, propagate: run.propagate, override: run.override}
	keeps := active == x.first && len(run.remote) == 0 // most documents begin here
	if c, ok := active.scoped[key]; ok && keeps {
		return c, nil
	}
	if len(run.remote) >= maxContexts {
		return nil, fmt.Errorf("rdfres: read %s %s: more than %d contexts lead to %s", rdfres.JSONLD, x.opts.Name, maxContexts, address)
	}
	doc, at, err := x.load(address)
	if err != nil {
		return nil, err
	}
	level := x.level
	if keeps {
		x.level = active.level
	}
	c, err := x.process(active, doc, contextRun{from: at, remote: append(slices.Clip(run.remote), address), propagate: true, checked: run.checked})
	x.level = level
	if err == nil && keeps {
		active.keep(key, c)
	}
	return c, err
}

// load gives the context of a document from elsewhere, and its address after redirects.
func (x *ldExpander) load(address string) (c jsonNode, at string, err error) {
	fail := func(err error) error {
		return fmt.Errorf("rdfres: read %s %s: %w: %w", rdfres.JSONLD, x.opts.Name, rdfres.ErrRemoteContext, err)
	}
	doc, ok := x.loaded[address]
	if !ok {
		if x.opts.Context == nil {
			return c, "", fail(fmt.Errorf("%s is not fetched; ask its source for JSON-LD without a context, or for another format", address))
		}
		if len(x.loaded) >= maxContexts {
			return c, "", fail(fmt.Errorf("%s: more than %d contexts", address, maxContexts))
		}
		data, at, err := x.opts.Context(address)
		if err != nil {
			return c, "", fail(err)
		}
		if err := x.hold(len(data)); err != nil {
			return c, "", err
		}
		tape, err := readTape(cmp.Or(at, address), bytes.Clone(data), x.most)
		if err != nil {
			return c, "", fail(err)
		}
		if doc = (loadedContext{tape.root(0).get("@context"), cmp.Or(at, address)}); !doc.context.there() {
			return c, "", fail(fmt.Errorf("%s is no JSON object with a @context", address))
		}
		x.loaded[address] = doc
	}
	return doc.context, doc.at, nil
}

// loadedContext is a context from elsewhere and its address after redirects.
type loadedContext struct {
	context jsonNode
	at      string
}

// maxContexts is how many contexts from elsewhere a document may name, and how many may
// lead from one to another.
const maxContexts = 256

// localContext is a context object and its import.
type localContext struct{ own, imported jsonNode }

func (l localContext) get(name string) jsonNode {
	if v := l.own.get(name); v.there() || !l.imported.there() {
		return v
	}
	return l.imported.get(name)
}

func (x *ldExpander) contextObject(active *ldContext, c jsonNode, run contextRun) (*ldContext, error) {
	local := localContext{own: c}
	if v := c.get("@version"); v.there() && (v.kind() != 0 || string(v.raw()) != "1.1") {
		return nil, x.errorAt(v, "@version is not 1.1")
	}
	if v := c.get("@import"); v.there() {
		if v.kind() != '"' {
			return nil, x.errorAt(v, "@import is no string")
		}
		address, ok := rdfres.ResolveIRI(run.from, v.text())
		if !ok {
			return nil, x.errorAt(v, "@import "+quoteCut(v.text())+" is relative and there is no base")
		}
		imported, _, err := x.load(address)
		if err != nil {
			return nil, err
		}
		if imported.kind() != '{' || imported.get("@import").there() {
			return nil, x.errorAt(v, "the context that is imported is no object, or imports another")
		}
		local.imported = imported
	}
	result := x.on(active)
	if err := x.contextKeywords(result, local, run); err != nil {
		return nil, err
	}
	d := definer{x: x, result: result, local: local, run: run, names: map[string]jsonNode{}, state: map[string]bool{}}
	if v := local.get("@protected"); v.there() {
		if v.kind() != 't' && v.kind() != 'f' {
			return nil, x.errorAt(v, "@protected is neither true nor false")
		}
		d.protected = v.kind() == 't'
	}
	return result, d.all()
}

// contextKeywords takes @base, @vocab, @language and @direction.
func (x *ldExpander) contextKeywords(result *ldContext, local localContext, run contextRun) error {
	if v := local.own.get("@base"); v.there() && len(run.remote) == 0 {
		switch v.kind() {
		case 'n':
			result.base, result.noBase = "", true
		case '"':
			base, ok := rdfres.ResolveIRI(result.base, v.text())
			if !ok {
				return x.errorAt(v, "@base "+quoteCut(v.text())+" is relative and there is no base")
			}
			if err := x.hold(len(base)); err != nil {
				return err
			}
			result.base, result.noBase = base, false
		default:
			return x.errorAt(v, "@base is neither a string nor null")
		}
	}
	if v := local.get("@vocab"); v.there() {
		switch v.kind() {
		case 'n':
			result.vocab, result.hasVocab = "", false
		case '"':
			vocab, err := x.expandIRI(result, v.text(), true, true, nil)
			if err != nil {
				return err
			}
			if vocab == "" && v.text() != "" || !strings.Contains(vocab, ":") {
				return x.errorAt(v, "@vocab "+quoteCut(v.text())+" is no IRI, and relative without a base")
			}
			if err := x.hold(len(vocab)); err != nil {
				return err
			}
			result.vocab, result.hasVocab = vocab, true
		default:
			return x.errorAt(v, "@vocab is neither a string nor null")
		}
	}
	if v := local.get("@language"); v.there() {
		switch v.kind() {
		case 'n':
			result.lang = ""
		case '"':
			result.lang = v.text()
		default:
			return x.errorAt(v, "@language is neither a string nor null")
		}
	}
	if v := local.get("@direction"); v.there() {
		if _, err := x.direction(v); err != nil {
			return err
		}
	}
	return nil
}

// direction checks the value of a @direction. RDF 1.1 has no place for it.
func (x *ldExpander) direction(v jsonNode) (string, error) {
	if v.kind() == 'n' {
		return "", nil
	}
	if v.kind() == '"' {
		if dir := v.text(); dir == "ltr" || dir == "rtl" {
			return dir, nil
		}
	}
	return "", x.errorAt(v, "@direction is neither ltr, rtl nor null")
}

// expandIRI is the IRI expansion algorithm (section 5.2). "" is null. d defines the terms
// that are needed, while a context is processed.
func (x *ldExpander) expandIRI(c *ldContext, value string, documentRelative, vocab bool, d *definer) (string, error) {
	if isKeyword(value) {
		return value, nil
	}
	if looksLikeKeyword(value) {
		return "", nil
	}
	if d != nil {
		if err := d.need(value); err != nil {
			return "", err
		}
	}
	t := c.term(value)
	if t != nil && isKeyword(t.iri) {
		return t.iri, nil
	}
	if vocab && t != nil {
		return t.iri, nil
	}
	if i := strings.IndexByte(value, ':'); i > 0 {
		prefix, suffix := value[:i], value[i+1:]
		if prefix == "_" || strings.HasPrefix(suffix, "//") {
			return value, nil
		}
		if d != nil {
			if err := d.need(prefix); err != nil {
				return "", err
			}
		}
		if t := c.term(prefix); t != nil && t.iri != "" && t.prefix {
			return t.iri + suffix, nil
		}
		if chars.HasScheme(value) {
			return value, nil
		}
	}
	if vocab && c.hasVocab {
		return c.vocab + value, nil
	}
	if documentRelative {
		if iri, ok := rdfres.ResolveIRI(c.base, value); ok {
			return iri, nil
		}
	}
	return value, nil
}
