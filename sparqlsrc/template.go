package sparqlsrc

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// templateParser reads the triples of a CONSTRUCT template (SPARQL 1.1, section
// 19.8, ConstructTriples): the Turtle part of the language, with variables.
type templateParser struct {
	q     *query
	c     *construct
	toks  []token
	at    int
	made  int // blank nodes without a label
	depth int
}

const rdfNS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

func (p *templateParser) peek() token {
	if p.at < len(p.toks) {
		return p.toks[p.at]
	}
	return token{}
}

func (p *templateParser) is(punct string) bool {
	t := p.peek()
	return t.kind == tokPunct && t.text == punct
}

func (p *templateParser) take(punct string) bool {
	if p.is(punct) {
		p.at++
		return true
	}
	return false
}

func (p *templateParser) unexpected() error {
	if p.at >= len(p.toks) {
		return fmt.Errorf("it ends in the middle of a triple")
	}
	t := p.peek()
	return fmt.Errorf("at byte %d: unexpected %q", t.at, t.text)
}

func (p *templateParser) triples() error {
	for p.at < len(p.toks) {
		compound := p.is("[") || p.is("(")
		s, err := p.node()
		if err != nil {
			return err
		}
		if s.term.Kind() == rdfres.KindLiteral {
			return fmt.Errorf("a literal cannot be a subject: %s", s.term)
		}
		if !(compound && (p.is(".") || p.at >= len(p.toks))) {
			if err := p.properties(s); err != nil {
				return err
			}
		}
		if p.at < len(p.toks) && !p.take(".") {
			return p.unexpected()
		}
	}
	return nil
}

// properties reads a property list of s.
func (p *templateParser) properties(s node) error {
	for {
		pred, err := p.verb()
		if err != nil {
			return err
		}
		for {
			o, err := p.node()
			if err != nil {
				return err
			}
			p.c.template = append(p.c.template, templateTriple{s, pred, o})
			if !p.take(",") {
				break
			}
		}
		if !p.take(";") {
			return nil
		}
		for p.take(";") {
		}
		if p.is(".") || p.is("]") || p.at >= len(p.toks) {
			return nil
		}
	}
}

func (p *templateParser) verb() (node, error) {
	t := p.peek()
	switch {
	case t.kind == tokWord && t.text == "a":
		p.at++
		return constant(rdfres.NewIRI(rdfNS + "type")), nil
	case t.kind == tokVar, t.kind == tokIRI, t.kind == tokName:
		return p.node()
	}
	return node{}, p.unexpected()
}

func constant(t rdfres.Term) node { return node{term: t, v: -1} }

func (p *templateParser) fresh() node {
	p.made++
	return node{v: -1, blank: fmt.Sprintf("m%d", p.made)}
}

func (p *templateParser) node() (node, error) {
	if p.at >= len(p.toks) {
		return node{}, p.unexpected()
	}
	if p.depth++; p.depth > 200 {
		return node{}, fmt.Errorf("brackets nested deeper than 200")
	}
	defer func() { p.depth-- }()
	t := p.peek()
	p.at++
	switch t.kind {
	case tokVar:
		i := slices.Index(p.c.vars, t.text)
		if i < 0 {
			i = len(p.c.vars)
			p.c.vars = append(p.c.vars, t.text)
		}
		return node{v: i}, nil
	case tokIRI, tokName:
		iri, err := p.iri(t)
		return constant(rdfres.NewIRI(iri)), err
	case tokBlank:
		return node{v: -1, blank: "l" + t.text}, nil
	case tokString:
		lang, dt := "", ""
		switch {
		case p.peek().kind == tokLang:
			lang = p.peek().text
			p.at++
		case p.take("^^"):
			d := p.peek()
			p.at++
			var err error
			if dt, err = p.iri(d); err != nil {
				return node{}, err
			}
		}
		return constant(rdfres.NewLiteral(t.text, lang, dt)), nil
	case tokNumber:
		return number(t.text), nil
	case tokWord:
		if t.text == "true" || t.text == "false" {
			return constant(rdfres.NewLiteral(t.text, "", "http://www.w3.org/2001/XMLSchema#boolean")), nil
		}
	case tokPunct:
		switch t.text {
		case "+", "-":
			if n := p.peek(); n.kind == tokNumber {
				p.at++
				return number(t.text + n.text), nil
			}
		case "[":
			b := p.fresh()
			if p.take("]") {
				return b, nil
			}
			if err := p.properties(b); err != nil {
				return node{}, err
			}
			if !p.take("]") {
				return node{}, p.unexpected()
			}
			return b, nil
		case "(":
			return p.collection()
		}
	}
	p.at--
	return node{}, p.unexpected()
}

func (p *templateParser) collection() (node, error) {
	end := constant(rdfres.NewIRI(rdfNS + "nil"))
	if p.take(")") {
		return end, nil
	}
	first := p.fresh()
	for at := first; ; {
		o, err := p.node()
		if err != nil {
			return node{}, err
		}
		p.c.template = append(p.c.template, templateTriple{at, constant(rdfres.NewIRI(rdfNS + "first")), o})
		next, last := end, p.take(")")
		if !last {
			next = p.fresh()
		}
		p.c.template = append(p.c.template, templateTriple{at, constant(rdfres.NewIRI(rdfNS + "rest")), next})
		if last {
			return first, nil
		}
		at = next
	}
}

func number(text string) node {
	dt := "integer"
	switch {
	case strings.ContainsAny(text, "eE"):
		dt = "double"
	case strings.Contains(text, "."):
		dt = "decimal"
	}
	return constant(rdfres.NewLiteral(text, "", "http://www.w3.org/2001/XMLSchema#"+dt))
}

// iri resolves an IRI or a prefixed name.
func (p *templateParser) iri(t token) (string, error) {
	switch t.kind {
	case tokIRI:
		u, err := url.Parse(t.text)
		if err != nil || u.IsAbs() {
			return t.text, nil
		}
		base, err := url.Parse(p.q.base)
		if err != nil || !base.IsAbs() {
			return "", fmt.Errorf("at byte %d: relative IRI <%s> without an absolute BASE", t.at, t.text)
		}
		return base.ResolveReference(u).String(), nil
	case tokName:
		prefix, local, _ := strings.Cut(t.text, ":")
		ns, ok := p.q.prefixes[prefix+":"]
		if !ok {
			return "", fmt.Errorf("at byte %d: prefix %q is not declared", t.at, prefix+":")
		}
		var b strings.Builder
		for i := 0; i < len(local); i++ {
			if local[i] == '\\' && i+1 < len(local) {
				i++
			}
			b.WriteByte(local[i])
		}
		return ns + b.String(), nil
	}
	return "", fmt.Errorf("at byte %d: %q is no IRI", t.at, t.text)
}
