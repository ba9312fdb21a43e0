package codec

import (
	"bytes"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// SniffFormat guesses the format of a body by its first bytes (a few hundred
// are enough), for answers without a usable type. It never takes HTML for RDF.
// N-Triples and N-Quads are told from Turtle by their first statement line.
func SniffFormat(head []byte) (rdfres.Format, bool) {
	rest := skipBlank(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	if len(rest) == 0 {
		return "", false
	}
	switch {
	case rest[0] == '{':
		if trigBlock(rest) {
			return rdfres.TriG, true
		}
		return rdfres.JSONLD, true
	case rest[0] == '[':
		next := bytes.TrimLeft(rest[1:], " \t\r\n")
		if len(next) == 0 || next[0] == '{' || next[0] == ']' && len(bytes.TrimSpace(next)) == 1 {
			return rdfres.JSONLD, true
		}
		return rdfres.Turtle, true
	case bytes.HasPrefix(rest, []byte("<?xml")), bytes.HasPrefix(rest, []byte("<!")):
		return sniffXML(rest)
	}
	if f, ok := sniffLines(rest); ok {
		return f, true
	}
	if rest[0] == '<' {
		if i := bytes.IndexByte(rest, '>'); i > 0 && bytes.ContainsAny(rest[:i], " \t\r\n") || bytes.HasPrefix(rest, []byte("<rdf:RDF")) || bytes.HasPrefix(bytes.ToLower(rest), []byte("<html")) {
			return sniffXML(rest)
		}
		return rdfres.Turtle, true
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	lower := bytes.ToLower(line)
	for _, word := range []string{"@prefix", "@base", "@version", "prefix", "base", "version \"", "version '", "_:", "graph"} {
		if bytes.HasPrefix(lower, []byte(word)) {
			if word == "graph" {
				return rdfres.TriG, true
			}
			return rdfres.Turtle, true
		}
	}
	if i := bytes.IndexByte(line, ':'); i >= 0 && !bytes.ContainsAny(line[:i], " \t<>\"") && i+1 < len(line) && line[i+1] > ' ' {
		return rdfres.Turtle, true
	}
	return "", false
}

// sniffLines tells N-Triples and N-Quads: every line of the head is a statement,
// but for the last, which may be cut.
func sniffLines(head []byte) (rdfres.Format, bool) {
	f := rdfres.NTriples
	found := false
	var sc rdfres.LineScanner
	for len(head) > 0 {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		ok, err := sc.Scan(bytes.TrimSuffix(line, []byte("\r")))
		if err != nil {
			iri, _, _ := bytes.Cut(line, []byte(">"))
			if whole || !found && (line[0] != '<' || !chars.HasScheme(line[1:]) || bytes.ContainsAny(iri, " \t")) { // <rdf:RDF xmlns...
				return "", false
			}
			return f, true
		}
		if found = found || ok; len(sc.G) > 0 {
			f = rdfres.NQuads
		}
		head = rest
	}
	return f, found
}

// skipBlank drops white space and lines that are comments of Turtle's kind.
func skipBlank(b []byte) []byte {
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		if len(b) == 0 || b[0] != '#' {
			return b
		}
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
}

// trigBlock tells a default graph block of TriG from a JSON object.
func trigBlock(b []byte) bool {
	next := bytes.TrimLeft(b[1:], " \t\r\n")
	return len(next) > 0 && next[0] != '"' && next[0] != '}'
}

func sniffXML(b []byte) (rdfres.Format, bool) {
	lower := bytes.ToLower(b)
	if bytes.Contains(lower, []byte("<html")) || bytes.Contains(lower, []byte("<!doctype html")) {
		return "", false
	}
	if bytes.Contains(b, []byte("http://www.w3.org/1999/02/22-rdf-syntax-ns#")) || bytes.Contains(b, []byte("rdf:RDF")) {
		return rdfres.RDFXML, true
	}
	return "", false
}
