package rdfxml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// Encode writes RDF/XML: one rdf:Description for each subject, the entity
// first, one element for each triple, in the order of the triples. What the
// format has no words for is ErrCannotCarry: predicates that end in no XML
// name, characters beyond XML 1.0, blank node labels that are no XML names.
func Encode(entity string, ts []rdfres.Triple) ([]byte, error) {
	w := rdfxmlWriter{prefixes: map[string]string{chars.RDF: "rdf"}}
	if err := w.namespaces(ts); err != nil {
		return nil, fmt.Errorf("rdfres: encode %s as rdfxml: %w", entity, err)
	}
	syntax.EachBlock(entity, ts, w.description)
	w.text("</rdf:RDF>\n")
	if w.err != nil {
		return nil, fmt.Errorf("rdfres: encode %s as rdfxml: %w", entity, w.err)
	}
	return w.out, nil
}

type rdfxmlWriter struct {
	out      []byte
	prefixes map[string]string // by namespace
	err      error
}

// namespaces finds the prefixes of all predicates and writes the root element.
func (w *rdfxmlWriter) namespaces(ts []rdfres.Triple) error {
	var others []string
	for i, t := range ts {
		if i > 0 && t.P == ts[i-1].P {
			continue
		}
		if !isElement(t.P.IRI()) {
			return fmt.Errorf("%w: RDF/XML cannot write the predicate %s as an element", rdfres.ErrCannotCarry, t.P)
		}
		space, _ := splitQName(t.P.IRI())
		if _, ok := w.prefixes[space]; ok {
			continue
		}
		w.prefixes[space] = syntax.CommonPrefixes[space]
		if w.prefixes[space] == "" {
			others = append(others, space)
		}
	}
	slices.Sort(others)
	for i, space := range others {
		w.prefixes[space] = "ns" + strconv.Itoa(i+1)
	}
	spaces := make([]string, 0, len(w.prefixes))
	for space := range w.prefixes {
		spaces = append(spaces, space)
	}
	slices.Sort(spaces)
	w.text(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<rdf:RDF")
	for _, space := range spaces {
		w.text("\n    xmlns:" + w.prefixes[space])
		w.attribute("", space)
	}
	w.text(">\n")
	return nil
}

// Carries tells whether RDF/XML can write a description, without writing it: each
// predicate ends in an XML name, all characters are in XML 1.0, and labels of
// blank nodes are XML names.
func Carries(ts []rdfres.Triple) bool {
	w := rdfxmlWriter{}
	for i, t := range ts {
		if (i == 0 || t.P != ts[i-1].P) && !isElement(t.P.IRI()) {
			return false
		}
		for _, x := range [...]rdfres.Term{t.S, t.O} {
			switch {
			case x[0] == '_' && !isNCName(x.Label()):
				return false
			case strings.Contains(string(x), `\`), strings.Contains(string(x), "\xef\xbf"): // escapes, and U+FFFE or U+FFFF
				w.check(chars.Unescape(string(x)))
			}
		}
	}
	return w.err == nil
}

// isElement tells whether a predicate can be the name of an element.
func isElement(predicate string) bool {
	space, local := splitQName(predicate)
	return local != "" && chars.HasScheme(space) && space != xmlNS && space != "http://www.w3.org/2000/xmlns/" && (space != chars.RDF || isPropertyName(local))
}

// isPropertyName tells whether a name of the rdf namespace can be a property
// element and means itself.
func isPropertyName(local string) bool {
	switch local {
	case "RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype", "aboutEach", "aboutEachPrefix", "bagID", "Description", "li":
		return false
	}
	return true
}

// splitQName cuts an IRI before the longest XML name that ends it. local is ""
// when there is none.
func splitQName(iri string) (space, local string) {
	at := len(iri)
	for i, r := range iri {
		switch {
		case isSafeNameStart(r):
			if at == len(iri) {
				at = i
			}
		case at < len(iri) && (r == '-' || r == '.' || r >= '0' && r <= '9'):
		default:
			at = len(iri)
		}
	}
	return iri[:at], iri[at:]
}

// isSafeNameStart tells the characters at the start of a name in every edition of
// XML 1.0: the fifth has many more, but not every parser has heard of it.
func isSafeNameStart(r rune) bool {
	switch {
	case r < 0x80:
		return r == '_' || chars.Class[byte(r)]&chars.AlphaByte != 0
	case r >= 0xc0 && r <= 0xff:
		return r != 0xd7 && r != 0xf7
	}
	return r >= 0x3a3 && r <= 0x3ce || r >= 0x410 && r <= 0x44f || r >= 0x3041 && r <= 0x3094 || r >= 0x30a1 && r <= 0x30fa || r >= 0x4e00 && r <= 0x9fa5 || r >= 0xac00 && r <= 0xd7a3
}

func (w *rdfxmlWriter) description(ts []rdfres.Triple) {
	w.text("  <rdf:Description")
	w.node("rdf:about", ts[0].S)
	w.text(">\n")
	for _, t := range ts {
		space, local := splitQName(t.P.IRI())
		name := w.prefixes[space] + ":" + local
		w.text("    <" + name)
		if t.O[0] != '"' {
			w.node("rdf:resource", t.O)
			w.text("/>\n")
			continue
		}
		lexical, lang, datatype := t.O.EscapedLiteral()
		switch {
		case lang != "":
			w.attribute(" xml:lang", lang)
		case datatype != "":
			w.attribute(" rdf:datatype", chars.Unescape(datatype))
		}
		w.text(">")
		w.chars(lexical)
		w.text("</" + name + ">\n")
	}
	w.text("  </rdf:Description>\n")
}

// node writes the attribute with an IRI or the name of a blank node.
func (w *rdfxmlWriter) node(attribute string, t rdfres.Term) {
	if t[0] == '_' {
		if label := t.Label(); !isNCName(label) && w.err == nil {
			w.err = fmt.Errorf("%w: the blank node label %s is no XML name, which RDF/XML asks for", rdfres.ErrCannotCarry, t)
		}
		w.attribute(" rdf:nodeID", t.Label())
		return
	}
	w.attribute(" "+attribute, t.IRI())
}

func (w *rdfxmlWriter) text(s string) { w.out = append(w.out, s...) }

func (w *rdfxmlWriter) attribute(name, value string) {
	w.check(value)
	w.text(name + `="`)
	w.text(xmlAttributeEscapes.Replace(value))
	w.text(`"`)
}

func (w *rdfxmlWriter) chars(escaped string) {
	s := chars.Unescape(escaped)
	w.check(s)
	w.text(xmlTextEscapes.Replace(s))
}

// check notes characters outside XML 1.0.
func (w *rdfxmlWriter) check(s string) {
	if w.err != nil {
		return
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !isXMLChar(r) }); i >= 0 {
		w.err = fmt.Errorf("%w: XML 1.0 has no character %+q, in %q", rdfres.ErrCannotCarry, []rune(s[i:])[0], chars.Cut(s))
	}
}
