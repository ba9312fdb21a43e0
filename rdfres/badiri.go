package rdfres

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// IRIError is an IRI with a character that no IRI may have: a control, a space,
// or one of <>"{}|^`\ (RFC 3987; IRIREF of SPARQL and Turtle). The escapes of
// N-Triples and Turtle let it in, and no SPARQL query can name it.
type IRIError struct {
	IRI  string
	Char rune // the first of them
}

func (e *IRIError) Error() string {
	name := fmt.Sprintf("%q (U+%04X)", e.Char, e.Char)
	if e.Char == ' ' {
		name = "a space (U+0020)"
	}
	return fmt.Sprintf("the IRI %q holds %s, which no IRI may have", cut(e.IRI), name)
}

// CheckIRI looks at the IRI of a term in canonical form, or at the datatype of a
// literal; the error is an *IRIError. Blank nodes and "" have none. It does not
// look for a scheme.
func CheckIRI[T ~string | ~[]byte](t T) error {
	if len(t) < 2 {
		return nil
	}
	end, from := len(t)-1, 1
	switch t[0] {
	case '<':
	case '"':
		if t[end] != '>' {
			return nil
		}
		for from = end; t[from] != '"'; from-- { // no IRI in canonical form holds a quote
		}
		from += 4 // "^^<
	default:
		return nil
	}
	for i := from; i < end; i++ {
		if t[i] == '\\' { // canonical IRIs escape these characters and no others
			r, _, why := readEscape(string(t[i:]), false, false)
			if why != "" {
				r = '\\'
			}
			return &IRIError{IRI: unescape(string(t[from:end])), Char: r}
		}
	}
	return nil
}

// checkIRIText is CheckIRI for an IRI that is not escaped.
func checkIRIText(iri string) error {
	if i := strings.IndexFunc(iri, func(r rune) bool { return r < utf8.RuneSelf && class[byte(r)]&badIRI != 0 }); i >= 0 {
		return &IRIError{IRI: iri, Char: rune(iri[i])}
	}
	return nil
}

// checkIRIs is CheckIRI for all terms of a statement.
func (q *Quad) checkIRIs() error {
	for _, t := range [...]Term{q.S, q.P, q.O, q.G} {
		if err := CheckIRI(t); err != nil {
			return err
		}
	}
	return nil
}
