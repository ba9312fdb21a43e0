package rdfres

import (
	"bytes"
	"fmt"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// ParseTSVTerm reads one field of SPARQL 1.1 TSV results (section 4) into a canonical term. Beyond
// N-Triples this syntax has bare numbers and booleans with their lexical form (42 is
// "42"^^xsd:integer, -1.50 an xsd:decimal, 1e6 an xsd:double), and Turtle's other quotes. An empty
// field is an unbound variable: "" without an error.
//
// IRIs, blank node labels and language tags are taken laxly (ReadOptions.Lax): a brace in an IRI
// should not cost a store's data. White space around the field is not part of it.
func ParseTSVTerm(field []byte) (Term, error) {
	field = bytes.Trim(field, " \r\n")
	if len(field) == 0 {
		return "", nil
	}
	switch c := field[0]; {
	case c == '<', c == '_', c == '"' && !bytes.HasPrefix(field, []byte(`"""`)):
		sc := LineScanner{Lax: true}
		t, why := sc.single(field)
		if why != "" {
			return "", fmt.Errorf("rdfres: read the TSV field %q: column %d: %s", chars.Cut(string(field)), chars.Column(field, sc.at), why)
		}
		return t, nil
	case c == '"', c == '\'':
		return parseQuoted(field)
	}
	if dt := ShorthandType(field); dt != "" {
		return NewLiteral(string(field), "", dt), nil
	}
	return "", fmt.Errorf("rdfres: the TSV field %q is no RDF term: neither <IRI>, _:label, \"literal\", number, true nor false", chars.Cut(string(field)))
}

// ShorthandType is the datatype of a bare number or boolean in Turtle and SPARQL, "" when s is
// neither.
func ShorthandType(s []byte) string {
	if string(s) == "true" || string(s) == "false" {
		return chars.XSDBoolean
	}
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	before := chars.CountDigits(s[i:])
	i += before
	after, point := 0, false
	if i < len(s) && s[i] == '.' {
		point = true
		after = chars.CountDigits(s[i+1:])
		i += 1 + after
	}
	if before+after == 0 {
		return ""
	}
	switch {
	case i == len(s) && !point:
		return chars.XSDInteger
	case i == len(s) && after > 0:
		return chars.XSDDecimal
	case i < len(s) && (s[i] == 'e' || s[i] == 'E'):
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if n := chars.CountDigits(s[i:]); n > 0 && i+n == len(s) {
			return chars.XSDDouble
		}
	}
	return ""
}

// parseQuoted reads a literal in any of Turtle's four quotes.
func parseQuoted(field []byte) (Term, error) {
	q := string(field[:1])
	if long := q + q + q; bytes.HasPrefix(field, []byte(long)) {
		q = long
	}
	i := len(q)
	var lexical []byte
	for {
		if i >= len(field) {
			return "", fmt.Errorf("rdfres: the TSV field %q has no closing quote", chars.Cut(string(field)))
		}
		if bytes.HasPrefix(field[i:], []byte(q)) {
			break
		}
		if field[i] != '\\' {
			lexical = append(lexical, field[i])
			i++
			continue
		}
		r, n, why := chars.ReadEscape(field[i:], true, true)
		if why != "" {
			return "", fmt.Errorf("rdfres: read the TSV field %q: %s", chars.Cut(string(field)), why)
		}
		lexical = append(lexical, string(r)...)
		i += n
	}
	again := append(chars.AppendLiteral([]byte{'"'}, lexical), '"')
	return ParseTSVTerm(append(again, field[i+len(q):]...))
}
