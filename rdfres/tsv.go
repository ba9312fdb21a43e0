package rdfres

import (
	"bytes"
	"fmt"
)

// ParseTSVTerm reads one field of SPARQL 1.1 TSV results (section 4) into a
// canonical term. Beyond N-Triples that syntax has bare numbers and booleans,
// whose lexical form is kept (42 is "42"^^xsd:integer, -1.50 an xsd:decimal,
// 1e6 an xsd:double), and Turtle's other quotes. An empty field is an unbound
// variable: "" without an error.
//
// IRIs, blank node labels and language tags are taken laxly (ReadOptions.Lax):
// what a store holds should not be lost because of a brace in an IRI. White
// space around the field is not part of it.
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
			return "", fmt.Errorf("rdfres: read the TSV field %q: column %d: %s", cut(string(field)), column(field, sc.at), why)
		}
		return t, nil
	case c == '"', c == '\'':
		return parseQuoted(field)
	}
	if dt := shorthandType(field); dt != "" {
		return NewLiteral(string(field), "", dt), nil
	}
	return "", fmt.Errorf("rdfres: the TSV field %q is no RDF term: neither <IRI>, _:label, \"literal\", number, true nor false", cut(string(field)))
}

// shorthandType is the datatype that Turtle and SPARQL give to a bare number
// or boolean, "" when s is neither.
func shorthandType(s []byte) string {
	if string(s) == "true" || string(s) == "false" {
		return xsdBoolean
	}
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	before := countDigits(s[i:])
	i += before
	after, point := 0, false
	if i < len(s) && s[i] == '.' {
		point = true
		after = countDigits(s[i+1:])
		i += 1 + after
	}
	if before+after == 0 {
		return ""
	}
	switch {
	case i == len(s) && !point:
		return xsdInteger
	case i == len(s) && after > 0:
		return xsdDecimal
	case i < len(s) && (s[i] == 'e' || s[i] == 'E'):
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if n := countDigits(s[i:]); n > 0 && i+n == len(s) {
			return xsdDouble
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
			return "", fmt.Errorf("rdfres: the TSV field %q has no closing quote", cut(string(field)))
		}
		if bytes.HasPrefix(field[i:], []byte(q)) {
			break
		}
		if field[i] != '\\' {
			lexical = append(lexical, field[i])
			i++
			continue
		}
		r, n, why := readEscape(field[i:], true, true)
		if why != "" {
			return "", fmt.Errorf("rdfres: read the TSV field %q: %s", cut(string(field)), why)
		}
		lexical = append(lexical, string(r)...)
		i += n
	}
	again := append(appendLiteral([]byte{'"'}, lexical), '"')
	return ParseTSVTerm(append(again, field[i+len(q):]...))
}
