package sparql

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	xsd           = "http://www.w3.org/2001/XMLSchema#"
	rdfLangString = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
)

// parseTerm reads a term of a W3C TSV field: an IRI, a blank node, a literal in
// Turtle's syntax (numbers and booleans may be bare). "" is unbound.
func parseTerm(f []byte) (rdfres.Term, error) {
	if len(f) == 0 {
		return "", nil
	}
	switch c := f[0]; {
	case c == '<':
		if bytes.HasPrefix(f, []byte("<<")) {
			if !bytes.HasSuffix(f, []byte(">>")) || !utf8.Valid(f) {
				return "", fmt.Errorf("triple term without its end: %q", clip(f))
			}
			return rdfres.TripleTerm(string(f)), nil
		}
		if f[len(f)-1] != '>' {
			return "", fmt.Errorf("IRI without its end: %q", clip(f))
		}
		s, err := unescape(f[1 : len(f)-1])
		if err != nil {
			return rdfres.Unreadable(f, err.Error()), nil
		}
		return rdfres.NewIRI(s), nil
	case c == '_' && len(f) > 2 && f[1] == ':':
		return rdfres.NewBlank(string(f[2:])), nil
	case c == '"' || c == '\'':
		return parseLiteral(f)
	case string(f) == "true" || string(f) == "false":
		return rdfres.NewLiteral(string(f), "", xsd+"boolean"), nil
	case c == '+' || c == '-' || c == '.' || (c >= '0' && c <= '9'):
		return parseNumber(string(f))
	}
	return "", fmt.Errorf("not an RDF term: %q", clip(f))
}

func parseLiteral(f []byte) (rdfres.Term, error) {
	quote := f[:1]
	if len(f) >= 6 && f[1] == f[0] && f[2] == f[0] {
		quote = f[:3]
	}
	i := len(quote)
	for {
		if i >= len(f) {
			return "", fmt.Errorf("literal without its end: %q", clip(f))
		}
		if f[i] == '\\' {
			i += 2
			continue
		}
		if bytes.HasPrefix(f[i:], quote) {
			break
		}
		i++
	}
	rest := f[i+len(quote):]
	lexical, err := unescape(f[len(quote):i])
	if err != nil {
		return rdfres.Unreadable(f, err.Error()), nil
	}
	switch {
	case len(rest) == 0:
		return rdfres.NewLiteral(lexical, "", ""), nil
	case rest[0] == '@' && len(rest) > 1:
		return rdfres.NewLiteral(lexical, string(rest[1:]), ""), nil
	case len(rest) > 4 && rest[0] == '^' && rest[1] == '^' && rest[2] == '<' && rest[len(rest)-1] == '>':
		dt, err := unescape(rest[3 : len(rest)-1])
		if err != nil {
			return rdfres.Unreadable(f, err.Error()), nil
		}
		return rdfres.NewLiteral(lexical, "", dt), nil
	}
	return "", fmt.Errorf("literal with an unknown end: %q", clip(f))
}

func parseNumber(s string) (rdfres.Term, error) {
	digits, dot, exp := 0, false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case (c == '+' || c == '-') && (i == 0 || s[i-1] == 'e' || s[i-1] == 'E'):
		case c == '.' && !dot && !exp:
			dot = true
		case (c == 'e' || c == 'E') && !exp && digits > 0:
			exp = true
		default:
			return "", fmt.Errorf("not an RDF term: %q", clip([]byte(s)))
		}
	}
	dt := "integer"
	switch {
	case digits == 0:
		return "", fmt.Errorf("not an RDF term: %q", clip([]byte(s)))
	case exp:
		dt = "double"
	case dot:
		dt = "decimal"
	}
	return rdfres.NewLiteral(s, "", xsd+dt), nil
}

func unescape(b []byte) (string, error) {
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		if !utf8.Valid(b) {
			return "", fmt.Errorf("not UTF-8: %q", clip(b))
		}
		return string(b), nil
	}
	out := make([]byte, 0, len(b))
	for at >= 0 {
		out = append(out, b[:at]...)
		b = b[at+1:]
		if len(b) == 0 {
			return "", fmt.Errorf("escape without its end")
		}
		c := b[0]
		b = b[1:]
		switch c {
		case 't':
			out = append(out, '\t')
		case 'b':
			out = append(out, '\b')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 'f':
			out = append(out, '\f')
		case '"', '\'', '\\':
			out = append(out, c)
		case 'u', 'U':
			n := 4
			if c == 'U' {
				n = 8
			}
			if len(b) < n {
				return "", fmt.Errorf("escape without its end")
			}
			v, err := strconv.ParseUint(string(b[:n]), 16, 32)
			if err != nil || !utf8.ValidRune(rune(v)) || v > utf8.MaxRune {
				return "", fmt.Errorf("escape of no character: \\%c%s", c, b[:n])
			}
			out = utf8.AppendRune(out, rune(v))
			b = b[n:]
		default:
			return "", fmt.Errorf("unknown escape \\%c", c)
		}
		at = bytes.IndexByte(b, '\\')
	}
	out = append(out, b...)
	if !utf8.Valid(out) {
		return "", fmt.Errorf("not UTF-8: %q", clip(out))
	}
	return string(out), nil
}

func clip(b []byte) []byte {
	if len(b) > 80 {
		return b[:80]
	}
	return b
}

// EscapeIRI writes an IRI as <...> for a query. It fails for text not allowed there: SPARQL 1.1
// (section 19.8, IRIREF) allows no space, control character or any of <>"{}|^`\, and decodes \u
// escapes before parsing, so there is no safe way to write them.
func EscapeIRI(iri string) (string, error) {
	if !utf8.ValidString(iri) {
		return "", fmt.Errorf("sparql: IRI %q is not UTF-8", iri)
	}
	for i := 0; i < len(iri); i++ {
		if c := iri[i]; c <= ' ' || strings.IndexByte("<>\"{}|^`\\", c) >= 0 {
			return "", fmt.Errorf("sparql: IRI %q cannot be written in a query: it contains %q", iri, c)
		}
	}
	return "<" + iri + ">", nil
}

// NameIRI is EscapeIRI for searching an IRI. It also fails if a segment of the path is . or ..,
// because stores may resolve IRIs in a query (Jena does) and would search for another. A comparison
// of strings finds it.
func NameIRI(iri string) (string, error) {
	if strings.Contains(iri, "/.") {
		path := iri
		if i := strings.IndexAny(iri, "?#"); i >= 0 {
			path = iri[:i]
		}
		if path += "/"; strings.Contains(path, "/./") || strings.Contains(path, "/../") {
			return "", fmt.Errorf("sparql: IRI %q stands for another in a query: it has a segment of dots", iri)
		}
	}
	return EscapeIRI(iri)
}

// EscapeString writes a plain literal for a query.
func EscapeString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`).Replace(s) + `"`
}

// EscapeTerm writes a term for a query or update: IRIs and literals. A blank
// node is refused, because it would be a variable there.
func EscapeTerm(t rdfres.Term) (string, error) {
	switch t.Kind() {
	case rdfres.KindIRI:
		return EscapeIRI(t.IRI())
	case rdfres.KindLiteral:
		lexical, lang, datatype := t.Literal()
		out := EscapeString(lexical)
		if lang != "" {
			for i := 0; i < len(lang); i++ {
				c := lang[i]
				if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
					return "", fmt.Errorf("sparql: language tag %q cannot be written in a query", lang)
				}
			}
			return out + "@" + lang, nil
		}
		if datatype == "" || datatype == xsd+"string" || datatype == rdfLangString {
			return out, nil
		}
		dt, err := EscapeIRI(datatype)
		if err != nil {
			return "", err
		}
		return out + "^^" + dt, nil
	case rdfres.KindBlank:
		return "", fmt.Errorf("sparql: blank node %s cannot be named in a query", t)
	}
	return "", fmt.Errorf("sparql: %q is no RDF term", t)
}

// terms keeps the last or frequent terms of a column, so a stream of rows does not make the same
// string again and again.
type terms struct {
	last    []byte
	lastT   rdfres.Term
	seen    map[string]rdfres.Term
	learned int
}

func (c *terms) get(raw []byte, parse func([]byte) (rdfres.Term, error)) (rdfres.Term, error) {
	if c.lastT != "" && bytes.Equal(raw, c.last) {
		return c.lastT, nil
	}
	if t, ok := c.seen[string(raw)]; ok {
		return t, nil
	}
	t, err := parse(raw)
	if err != nil {
		return "", err
	}
	c.last, c.lastT = append(c.last[:0], raw...), t
	// Predicates, classes and the like are few and come often. A column of
	// many different terms stops learning soon.
	if len(raw) < 200 && len(c.seen) < 512 && c.learned < 4096 {
		if c.seen == nil {
			c.seen = make(map[string]rdfres.Term, 64)
		}
		c.seen[string(raw)] = t
		c.learned++
	}
	return t, nil
}
