package codec

import (
	"io"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// ttlParser is a streaming parser of Turtle 1.1 and TriG 1.1, written after
// their grammars (the names of the productions are theirs).
type ttlParser struct {
	*ttlLexer
	yield func(rdfres.Quad, error) bool
	graph rdfres.Term
	depth int
}

func readTurtle(r io.Reader, f rdfres.Format, o rdfres.ReadOptions, yield func(rdfres.Quad, error) bool) {
	readTokens(newTTLLexer(r, f, o), yield)
}

func readTokens(l *ttlLexer, yield func(rdfres.Quad, error) bool) {
	p := &ttlParser{ttlLexer: l, yield: yield}
	if err := p.document(); err != nil && err != syntax.ErrStopped {
		yield(rdfres.Quad{}, err)
	}
}

func (p *ttlParser) emit(s, pr, o rdfres.Term) error {
	if !p.yield(rdfres.Quad{Triple: rdfres.Triple{S: s, P: pr, O: o}, G: p.graph}, nil) {
		return syntax.ErrStopped
	}
	return nil
}

func (p *ttlParser) document() error {
	for i, want := range []byte("\xef\xbb\xbf") {
		if c, ok, err := p.at(i); err != nil {
			return err
		} else if !ok || c != want {
			break
		}
		if i == 2 {
			p.pos += 3
		}
	}
	for {
		c, ok, err := p.skip()
		if err != nil || !ok {
			return err
		}
		if err := p.statement(c); err != nil {
			return err
		}
	}
}

func (p *ttlParser) statement(c byte) error {
	switch c {
	case '@':
		return p.atDirective()
	case 'p', 'P', 'b', 'B', 'g', 'G', 'v', 'V':
		done, err := p.sparqlDirective()
		if done || err != nil {
			return err
		}
	case '{':
		if p.format == rdfres.TriG {
			return p.wrappedGraph("")
		}
	}
	return p.triplesOrGraph(c)
}

// atDirective is @prefix, @base or @version, which are spelled in lower case and
// end in a dot.
func (p *ttlParser) atDirective() error {
	for _, d := range []struct {
		word string
		read func() error
	}{{"@prefix", p.prefixID}, {"@base", p.baseIRI}, {"@version", p.version}} {
		if is, err := p.keyword(d.word, false); err != nil {
			return err
		} else if is {
			p.advance(len(d.word))
			if err := d.read(); err != nil {
				return err
			}
			return p.expect('.', "at the end of "+d.word)
		}
	}
	return p.errorAt(0, "an '@' at the begin of a statement is @prefix, @base or @version")
}

// sparqlDirective is PREFIX, BASE, VERSION or TriG's GRAPH in any case; done is false
// when the word is something else, as the begin of a prefixed name.
func (p *ttlParser) sparqlDirective() (done bool, err error) {
	for _, d := range []struct {
		word string
		read func() error
	}{{"PREFIX", p.prefixID}, {"BASE", p.baseIRI}, {"VERSION", p.version}, {"GRAPH", p.graphBlock}} {
		if d.word == "GRAPH" && p.format != rdfres.TriG {
			continue
		}
		if is, err := p.keyword(d.word, true); err != nil {
			return false, err
		} else if is {
			p.advance(len(d.word))
			return true, d.read()
		}
	}
	return false, nil
}

func (p *ttlParser) prefixID() error {
	name, err := p.prefixName()
	if err != nil {
		return err
	}
	iri, err := p.directiveIRI("of the prefix")
	if err != nil {
		return err
	}
	before := len(p.prefixes)
	p.prefixes[name] = iri
	return p.hold(len(iri) + 64*(len(p.prefixes)-before)) // what one takes beside its text
}

func (p *ttlParser) baseIRI() error {
	iri, err := p.directiveIRI("of the base")
	if err != nil {
		return err
	}
	p.base = iri
	return p.hold(len(iri))
}

// version passes over the version of RDF that a document tells: what it writes tells
// whether it can be read.
func (p *ttlParser) version() error {
	c, ok, err := p.skip()
	if err != nil {
		return err
	}
	if !ok || c != '"' && c != '\'' {
		return p.errorAt(0, "the version is missing: it is a string")
	}
	_, err = p.quoted()
	return err
}

func (p *ttlParser) directiveIRI(what string) (string, error) {
	c, ok, err := p.skip()
	if err != nil {
		return "", err
	}
	if !ok || c != '<' {
		return "", p.errorAt(0, "the IRI %s is missing", what)
	}
	t, err := p.iriRef()
	return t.IRI(), err
}

func (p *ttlParser) graphBlock() error {
	c, ok, err := p.skip()
	if err != nil {
		return err
	}
	var name rdfres.Term
	switch {
	case !ok:
		return p.unexpected()
	case c == '[':
		var anon bool
		if anon, err = p.openBracket(); err == nil && !anon {
			return p.errorAt(0, "a graph is named by an IRI, a blank node label or []")
		}
		name = p.labels.Fresh()
	default:
		name, err = p.iriOrLabel(c)
	}
	if err != nil {
		return err
	}
	return p.wrappedGraph(name)
}

// wrappedGraph reads '{' triples '}'.
func (p *ttlParser) wrappedGraph(name rdfres.Term) error {
	if err := p.expect('{', "at the begin of a graph"); err != nil {
		return err
	}
	p.graph = name
	for {
		c, ok, err := p.skip()
		switch {
		case err != nil:
			return err
		case !ok:
			return p.errorAt(0, "the document ends inside a graph: '}' is missing")
		case c == '}':
			p.advance(1)
			p.graph = ""
			return nil
		}
		if err := p.triples(c); err != nil {
			return err
		}
		if c, ok, err = p.skip(); err != nil {
			return err
		} else if ok && c == '}' {
			continue
		}
		if err := p.expect('.', "after a statement"); err != nil {
			return err
		}
	}
}

// triplesOrGraph reads a statement of the default graph, or a graph with its
// name before it.
func (p *ttlParser) triplesOrGraph(c byte) error {
	if p.format != rdfres.TriG || c == '(' {
		if err := p.triples(c); err != nil {
			return err
		}
		return p.expect('.', "after a statement")
	}
	s, bare, err := p.subject(c)
	if err != nil {
		return err
	}
	c, ok, err := p.skip()
	if err != nil {
		return err
	}
	if ok && c == '{' && bare != bareList {
		return p.wrappedGraph(s)
	}
	if bare != bareList || !ok || c != '.' {
		if err := p.predicateObjectList(s); err != nil {
			return err
		}
	}
	return p.expect('.', "after a statement")
}

func (p *ttlParser) triples(c byte) error {
	s, bare, err := p.subject(c)
	if err != nil {
		return err
	}
	if bare == bareList {
		// blankNodePropertyList predicateObjectList?
		if c, ok, err := p.skip(); err != nil || ok && (c == '.' || c == '}' && p.format == rdfres.TriG) {
			return err
		}
	}
	return p.predicateObjectList(s)
}

// What a subject was, as far as the grammar cares.
const (
	bareName = iota // an IRI, a label, [] or a collection: predicates must follow
	bareList        // [ with content ]: predicates may follow
)

func (p *ttlParser) subject(c byte) (s rdfres.Term, bare int, err error) {
	switch c {
	case '[':
		anon, err := p.openBracket()
		if err != nil {
			return "", 0, err
		}
		s := p.labels.Fresh()
		if anon {
			return s, bareName, nil
		}
		return s, bareList, p.propertyList(s)
	case '(':
		s, err = p.collection()
		return s, bareName, err
	}
	s, err = p.iriOrLabel(c)
	return s, bareName, err
}

func (p *ttlParser) iriOrLabel(c byte) (rdfres.Term, error) {
	switch c {
	case '<':
		return p.iriRef()
	case '_':
		return p.blankLabel()
	case '"', '\'':
		return "", p.errorAt(0, "a literal cannot stand here")
	}
	return p.prefixed()
}

func (p *ttlParser) predicateObjectList(s rdfres.Term) error {
	for {
		verb, err := p.verb()
		if err != nil {
			return err
		}
		if err := p.objectList(s, verb); err != nil {
			return err
		}
		semicolon := false
		for {
			c, ok, err := p.skip()
			if err != nil {
				return err
			}
			if ok && c == ';' {
				semicolon = true
				p.advance(1)
				continue
			}
			if !semicolon || !ok || c == '.' || c == ']' || c == '}' {
				return nil
			}
			break
		}
	}
}

func (p *ttlParser) verb() (rdfres.Term, error) {
	c, ok, err := p.skip()
	if err != nil {
		return "", err
	}
	switch {
	case !ok:
		return "", p.unexpected()
	case c == '<':
		return p.iriRef()
	case c == '_', c == '[', c == '"', c == '\'', c == '(':
		return "", p.errorAt(0, "%s: the predicate is an IRI, a prefixed name or a", chars.QuoteByte(c))
	case c == 'a':
		if is, err := p.keyword("a", false); err != nil {
			return "", err
		} else if is {
			p.advance(1)
			return syntax.Type, nil
		}
	}
	return p.prefixed()
}

func (p *ttlParser) objectList(s, verb rdfres.Term) error {
	for {
		if err := p.object(s, verb); err != nil {
			return err
		}
		c, ok, err := p.skip()
		if err != nil || !ok || c != ',' {
			return err
		}
		p.advance(1)
	}
}

func (p *ttlParser) object(s, verb rdfres.Term) error {
	c, ok, err := p.skip()
	if err != nil {
		return err
	}
	if !ok {
		return p.unexpected()
	}
	if c == '[' {
		anon, err := p.openBracket()
		if err != nil {
			return err
		}
		o := p.labels.Fresh()
		if err := p.emit(s, verb, o); err != nil || anon {
			return err
		}
		return p.propertyList(o)
	}
	o, err := p.objectTerm(c)
	if err != nil {
		return err
	}
	return p.emit(s, verb, o)
}

func (p *ttlParser) objectTerm(c byte) (rdfres.Term, error) {
	switch {
	case c == '(':
		return p.collection()
	case c == '"' || c == '\'':
		return p.rdfLiteral()
	case c == '+' || c == '-' || c == '.' || chars.Class[c]&chars.DigitByte != 0:
		return p.number()
	case c == 't' || c == 'f':
		for _, word := range []string{"true", "false"} {
			if is, err := p.keyword(word, false); err != nil {
				return "", err
			} else if is {
				p.advance(len(word))
				return rdfres.NewLiteral(word, "", chars.XSDBoolean), nil
			}
		}
	}
	return p.iriOrLabel(c)
}

func (p *ttlParser) rdfLiteral() (rdfres.Term, error) {
	lexical, err := p.quoted()
	if err != nil {
		return "", err
	}
	c, ok, err := p.skip()
	if err != nil {
		return "", err
	}
	switch {
	case ok && c == '@':
		lang, err := p.langTag()
		if err != nil {
			return "", err
		}
		return rdfres.NewLiteral(lexical, lang, ""), nil
	case ok && c == '^':
		if c, ok, err := p.at(1); err != nil {
			return "", err
		} else if !ok || c != '^' {
			return "", p.errorAt(0, "a datatype is written ^^IRI")
		}
		p.advance(2)
		c, ok, err := p.skip()
		if err != nil {
			return "", err
		}
		var dt rdfres.Term
		switch {
		case !ok:
			return "", p.unexpected()
		case c == '<':
			dt, err = p.iriRef()
		default:
			dt, err = p.prefixed()
		}
		if err != nil {
			return "", err
		}
		return rdfres.NewLiteral(lexical, "", dt.IRI()), nil
	}
	return rdfres.NewLiteral(lexical, "", ""), nil
}

// openBracket reads '[' and, when nothing but white space is in it, ']'.
func (p *ttlParser) openBracket() (anon bool, err error) {
	p.advance(1)
	c, ok, err := p.skip()
	if err != nil {
		return false, err
	}
	if ok && c == ']' {
		p.advance(1)
		return true, nil
	}
	return false, nil
}

// propertyList reads predicateObjectList ']', after the '['.
func (p *ttlParser) propertyList(s rdfres.Term) error {
	if err := p.deeper(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if err := p.predicateObjectList(s); err != nil {
		return err
	}
	return p.expect(']', "at the end of a blank node")
}

func (p *ttlParser) deeper() error {
	if p.depth++; p.depth > syntax.MaxNesting {
		return p.errorAt(0, "blank nodes and collections are nested more than %d deep", syntax.MaxNesting)
	}
	return nil
}

// collection reads '(' object* ')'.
func (p *ttlParser) collection() (head rdfres.Term, err error) {
	if err := p.deeper(); err != nil {
		return "", err
	}
	defer func() { p.depth-- }()
	p.advance(1)
	var node rdfres.Term
	for {
		c, ok, err := p.skip()
		if err != nil {
			return "", err
		}
		if !ok {
			return "", p.errorAt(0, "the document ends inside a collection: ')' is missing")
		}
		if c == ')' {
			p.advance(1)
			if node == "" {
				return syntax.Nil, nil
			}
			return head, p.emit(node, syntax.Rest, syntax.Nil)
		}
		next := p.labels.Fresh()
		if node == "" {
			head = next
		} else if err := p.emit(node, syntax.Rest, next); err != nil {
			return "", err
		}
		node = next
		if err := p.object(node, syntax.First); err != nil {
			return "", err
		}
	}
}
