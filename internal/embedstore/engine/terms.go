package engine

import (
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/tggo/goRDFlib/term"
)

const (
	xsdNS   = "http://www.w3.org/2001/XMLSchema#"
	rdfType = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
)

// terms turns terms into those of goRDFlib and back. goRDFlib writes language
// tags in lower case, drops those that it finds too long, and takes a few
// ill-typed decimals for doubles: such literals go as literals of a private
// datatype and are kept aside. IRIs go in their canonical spelling.
type terms struct {
	aside   map[rdfres.Term]term.Literal
	byLabel []rdfres.Term
}

const asideType = "urn:rsbridge:engine:aside"

func (c *terms) to(t rdfres.Term) term.Term {
	switch t.Kind() {
	case rdfres.KindIRI:
		return term.NewURIRefUnsafe(string(t[1 : len(t)-1]))
	case rdfres.KindBlank:
		return term.NewBNode(t.Label())
	case rdfres.KindLiteral:
	default:
		return nil
	}
	lexical, lang, datatype := t.Literal()
	if lang != "" {
		l := term.NewLiteral(lexical, term.WithLang(lang))
		if l.Language() != lang {
			return c.keep(t)
		}
		return l
	}
	if datatype == xsdNS+"decimal" && strings.ContainsAny(lexical, "eEnN") || datatype == asideType {
		return c.keep(t)
	}
	return term.NewLiteral(lexical, term.WithDatatype(term.NewURIRefUnsafe(datatype)))
}

func (c *terms) keep(t rdfres.Term) term.Literal {
	if l, ok := c.aside[t]; ok {
		return l
	}
	if c.aside == nil {
		c.aside = map[rdfres.Term]term.Literal{}
	}
	l := term.NewLiteral(strconv.Itoa(len(c.byLabel)), term.WithDatatype(term.NewURIRefUnsafe(asideType)))
	c.aside[t] = l
	c.byLabel = append(c.byLabel, t)
	return l
}

// from gives "" for what is no RDF term.
func (c *terms) from(t term.Term) rdfres.Term {
	switch t := t.(type) {
	case term.URIRef:
		if strings.HasPrefix(t.Value(), "_:") { // the name of a graph
			return rdfres.Term(t.Value())
		}
		return rdfres.Term("<" + t.Value() + ">")
	case term.BNode:
		return rdfres.NewBlank(t.Value())
	case term.Literal:
		if t.Datatype().Value() == asideType {
			if n, err := strconv.Atoi(t.Lexical()); err == nil && n < len(c.byLabel) {
				return c.byLabel[n]
			}
		}
		return rdfres.NewLiteral(t.Lexical(), t.Language(), t.Datatype().Value())
	}
	return ""
}
