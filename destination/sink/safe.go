package sink

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// CheckTriples refuses terms whose text could end early inside of an update. RDF's own
// syntax forbids them too, so nothing honest is lost.
func CheckTriples(ts []rdfres.Triple) error {
	for i, t := range ts {
		if t.P.Kind() != rdfres.KindIRI || t.S.Kind() == rdfres.KindLiteral || t.S.Kind() == rdfres.KindNone || t.O.Kind() == rdfres.KindNone {
			return fmt.Errorf("not a triple: %s", clip.Middle(string(t.AppendLine(nil))))
		}
		terms := [...]rdfres.Term{t.S, t.P, t.O}
		unseen := terms[:]
		if i > 0 && t.S == ts[i-1].S {
			unseen = terms[1:]
		}
		for _, x := range unseen {
			if err := CheckTerm(string(x)); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckTerm is CheckTriples of one term in canonical form.
func CheckTerm(s string) error {
	switch {
	case !utf8.ValidString(s):
		return fmt.Errorf("not UTF-8: %q", clip.Middle(s))
	case strings.HasPrefix(s, "<"):
		return CheckIRI(s)
	case strings.HasPrefix(s, `"`):
		end := strings.LastIndexByte(s, '"')
		for i := 1; i < end; i++ {
			switch c := s[i]; {
			case c == '\\':
				i++
				if i >= end {
					return fmt.Errorf("literal ends in an escape: %s", clip.Middle(s))
				}
			case c == '"' || c == '\n' || c == '\r':
				return fmt.Errorf("literal with a bare quote or line end: %s", clip.Middle(s))
			}
		}
		if end < 1 {
			return fmt.Errorf("literal without an end: %s", clip.Middle(s))
		}
		switch rest := s[end+1:]; {
		case rest == "":
		case strings.HasPrefix(rest, "@"):
			if !languageTag(rest[1:]) {
				return fmt.Errorf("language tag %q", clip.Middle(rest))
			}
		case strings.HasPrefix(rest, "^^<"):
			return CheckIRI(rest[2:])
		default:
			return fmt.Errorf("literal with %q after its end", clip.Middle(rest))
		}
		return nil
	case strings.HasPrefix(s, "_:"):
		return nil // becomes a skolem IRI, checked later
	}
	return fmt.Errorf("not a term: %s", clip.Middle(s))
}

// CheckIRI is CheckTerm of an absolute IRI between < and >.
func CheckIRI(s string) error {
	if len(s) < 3 || s[len(s)-1] != '>' {
		return fmt.Errorf("IRI without an end: %q", clip.Middle(s))
	}
	if !hasScheme(s[1:]) {
		return fmt.Errorf("IRI %q is relative", clip.Middle(s))
	}
	for i := 1; i < len(s)-1; i++ {
		if c := s[i]; outsideIRI[c] {
			if err := rdfres.CheckIRI(s); err != nil { // reads escapes
				return err
			}
			return fmt.Errorf("IRI %q has the character %q, which no IRI may have", clip.Middle(s), rune(c))
		}
	}
	return nil
}

// outsideIRI has the bytes forbidden in IRIs.
var outsideIRI = func() (t [256]bool) {
	for c := range 0x21 {
		t[c] = true
	}
	for _, c := range []byte("<>\"{}|^`\\") {
		t[c] = true
	}
	return t
}()

// languageTag is the grammar of N-Triples: letters, then parts of letters and digits.
func languageTag(s string) bool {
	for i, part := range strings.Split(s, "-") {
		if part == "" {
			return false
		}
		for _, c := range []byte(part) {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
				return false
			}
		}
	}
	return true
}

// hasScheme tells an absolute IRI.
func hasScheme(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 0 && c == ':'
		}
	}
	return false
}
