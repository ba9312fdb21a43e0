package rdfres

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// IRIError is an IRI with a forbidden character: a control, a space, or one of <>"{}|^`\ (RFC 3987;
// IRIREF of SPARQL and Turtle). Escapes of N-Triples and Turtle let it in, and no SPARQL query can
// name it.
type IRIError struct {
	IRI  string
	Char rune // the first of them
}

func (e *IRIError) Error() string {
	if why, is := strings.CutPrefix(e.IRI, unreadable); is {
		return "a term of the answer cannot be read: " + why
	}
	if strings.HasPrefix(e.IRI, "<<") {
		return fmt.Sprintf("the triple term %s stands for an IRI or a literal: RDF 1.2 has such terms, RDF 1.1 has not, and no other store could take it over: have the source write RDF 1.1", chars.Cut(e.IRI))
	}
	name := fmt.Sprintf("%q (U+%04X)", e.Char, e.Char)
	if e.Char == ' ' {
		name = "a space (U+0020)"
	}
	return fmt.Sprintf("the IRI %q holds %s, which no IRI may have", chars.Cut(e.IRI), name)
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
			r, _, why := chars.ReadEscape(string(t[i:]), false, false)
			if why != "" {
				r = '\\'
			}
			return &IRIError{IRI: chars.Unescape(string(t[from:end])), Char: r}
		}
	}
	return nil
}

// CheckTerm is CheckIRI, and looks at the language tag of a literal too: readers may refuse one not
// allowed in N-Triples 1.1 (en_US, en--ltr). Lax readers, and stores, let such tags in.
func CheckTerm[T ~string | ~[]byte](t T) error {
	if len(t) > 2 && t[0] == '"' && t[len(t)-1] != '"' && t[len(t)-1] != '>' {
		return CheckLanguage(t)
	}
	return CheckIRI(t)
}

// CheckLanguage looks at the language tag of a literal; other terms are passed over.
func CheckLanguage[T ~string | ~[]byte](t T) error {
	if len(t) < 3 || t[0] != '"' || t[len(t)-1] == '"' || t[len(t)-1] == '>' {
		return nil
	}
	at := len(t) - 1
	for t[at] != '"' {
		at--
	}
	tag := string(t[min(at+2, len(t)):])
	if tag != "" && chars.ScanLang(tag) == len(tag) {
		return nil
	}
	more := ""
	if strings.Contains(tag, "--") {
		more = " (a direction, as RDF 1.2 writes it, is beyond RDF 1.1)"
	}
	return fmt.Errorf("the literal %s has the language tag %q, which is none%s", chars.Cut(string(t)), chars.Cut(tag), more)
}

// TripleTerm stands for a triple term or quoted triple (RDF 1.2, RDF-star) in a place without a way
// to handle it: an IRI of its text. It begins with << and so is no valid IRI (CheckIRI). So its
// statement is refused, not the whole answer or file.
func TripleTerm(text string) Term { return NewIRI(text) }

// unreadable begins the IRI of Unreadable.
const unreadable = "<!"

// Unreadable stands for a term with a known end and broken text: an escape of no character, bytes
// outside UTF-8. Like TripleTerm it is no IRI, so it costs one entity and not the whole answer.
// Different texts give different terms.
func Unreadable[B []byte | string](text B, why string) Term {
	sum := sha256.Sum256([]byte(text))
	return NewIRI(fmt.Sprintf("%s%s: %q (sha-256 %x)", unreadable, why, chars.Cut(string(text)), sum[:8]))
}

// scanTripleTerm returns the length of the triple term at the beginning of s, 0 if it has no end.
func scanTripleTerm(s []byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '<' && i+1 < len(s) && s[i+1] == '<':
			depth++
			i++
		case c == '>' && i+1 < len(s) && s[i+1] == '>':
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		case c == '<': // an IRI
			n := bytes.IndexByte(s[i:], '>')
			if n < 0 {
				return 0
			}
			i += n
		case c == '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}

// CheckRawIRI is CheckIRI for an unescaped IRI.
func CheckRawIRI(iri string) error {
	if i := strings.IndexFunc(iri, func(r rune) bool { return r < utf8.RuneSelf && chars.Class[byte(r)]&chars.BadIRI != 0 }); i >= 0 {
		return &IRIError{IRI: iri, Char: rune(iri[i])}
	}
	return nil
}

// CheckIRIs is CheckIRI for all terms of a statement.
func (q *Quad) CheckIRIs() error {
	for _, t := range [...]Term{q.S, q.P, q.O, q.G} {
		if err := CheckIRI(t); err != nil {
			return err
		}
	}
	return nil
}
