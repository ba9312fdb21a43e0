package rdfres

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// Term is an RDF term in canonical N-Triples syntax: <iri>, _:label, "lexical", "lexical"@lang,
// "lexical"^^<datatype> (xsd:string left out). Two terms are the same RDF term exactly when the
// strings are equal. Lexical forms and language tags keep their case and spelling.
//
// IRIs stand raw, with characters the grammar does not allow raw (controls, space, <>"{}|^`\) as
// \u00XX. Literals are escaped as in canonical N-Quads of RDFC-1.0. "" is no term.
type Term string

// TermKind tells the three kinds of term apart.
type TermKind byte

const (
	KindNone TermKind = iota
	KindIRI
	KindBlank
	KindLiteral
)

// NewIRI makes the term of an IRI. The IRI is taken as it is: neither resolved
// nor normalized, and not checked (see Check).
func NewIRI(iri string) Term {
	for i := 0; i < len(iri); i++ {
		if chars.Class[iri[i]]&chars.BadIRI != 0 {
			return Term(append(chars.AppendIRI(append(make([]byte, 0, len(iri)+16), '<'), iri), '>'))
		}
	}
	return Term("<" + iri + ">")
}

// NewBlank makes the term of a blank node. A label outside the grammar of N-Triples (Virtuoso's
// nodeID://b1 for example) becomes "x--" and its hexadecimal bytes, so different labels stay
// different.
func NewBlank(label string) Term {
	if chars.ScanLabel(label, true) != len(label) || label == "" {
		label = "x--" + hex.EncodeToString([]byte(label))
	}
	return Term("_:" + label)
}

// NewLiteral makes the term of a literal. With a language tag the datatype is
// not looked at; datatype "" means xsd:string. Nothing is checked (see Check).
func NewLiteral(lexical, lang, datatype string) Term {
	b := make([]byte, 0, len(lexical)+chars.Escapes(lexical)+len(lang)+len(datatype)+8)
	b = chars.AppendLiteral(append(b, '"'), lexical)
	return Term(chars.OwnString(chars.AppendSuffix(append(b, '"'), lang, datatype)))
}

// AppendIRI appends the term of NewIRI.
func AppendIRI(dst, iri []byte) []byte { return append(chars.AppendIRI(append(dst, '<'), iri), '>') }

// AppendLiteral appends the term of NewLiteral.
func AppendLiteral(dst, lexical, lang, datatype []byte) []byte {
	dst = chars.AppendLiteral(append(dst, '"'), lexical)
	return chars.AppendSuffix(append(dst, '"'), lang, datatype)
}

// Kind looks at the first byte only.
func (t Term) Kind() TermKind {
	if len(t) > 2 || len(t) == 2 && t[0] != '_' {
		switch t[0] {
		case '<':
			return KindIRI
		case '_':
			return KindBlank
		case '"':
			return KindLiteral
		}
	}
	return KindNone
}

// IRI is the IRI, unescaped; "" when t is no IRI.
func (t Term) IRI() string {
	if len(t) < 2 || t[0] != '<' {
		return ""
	}
	return chars.Unescape(string(t[1 : len(t)-1]))
}

// Label is the label of a blank node without "_:"; "" when t is no blank node.
func (t Term) Label() string {
	if len(t) < 3 || t[0] != '_' {
		return ""
	}
	return string(t[2:])
}

// Literal takes a literal apart. The datatype is always told, also xsd:string
// and rdf:langString. Three empty strings when t is no literal.
func (t Term) Literal() (lexical, lang, datatype string) {
	lex, lang, dt := t.EscapedLiteral()
	if lang == "" && dt == "" && lex == "" && t.Kind() != KindLiteral {
		return "", "", ""
	}
	switch {
	case lang != "":
		datatype = chars.RDFLangString
	case dt == "":
		datatype = chars.XSDString
	default:
		datatype = chars.Unescape(dt)
	}
	return chars.Unescape(lex), lang, datatype
}

// EscapedLiteral are the parts as they are written: escaped, xsd:string as "".
func (t Term) EscapedLiteral() (lexical, lang, datatype string) {
	if len(t) < 2 || t[0] != '"' {
		return "", "", ""
	}
	s := string(t)
	// No language tag and no canonical IRI holds a quote, so the last one closes.
	end := strings.LastIndexByte(s, '"')
	lexical = s[1:end]
	switch rest := s[end+1:]; {
	case len(rest) > 1 && rest[0] == '@':
		lang = rest[1:]
	case len(rest) > 4 && rest[0] == '^':
		datatype = rest[3 : len(rest)-1]
	}
	return lexical, lang, datatype
}

// Check tells whether t is a term in canonical form. It checks the parts trusted by the
// constructors: a language tag, a scheme, valid UTF-8.
func (t Term) Check() error {
	got, err := ParseTerm([]byte(t))
	if err != nil {
		return err
	}
	if got != t {
		return fmt.Errorf("rdfres: %s is not in canonical form, which would be %s", t, got)
	}
	return nil
}
