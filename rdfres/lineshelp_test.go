package rdfres

import (
	"strings"
	"testing"
)

// lines is a graph in N-Triples, in its order.
func lines(ts []Triple) string {
	var b []byte
	for _, t := range ts {
		b = t.AppendLine(b)
	}
	return string(b)
}

// nt is a graph in N-Triples, abbreviated: <a> means <http://e/a>.
func nt(tb testing.TB, text string) []Triple {
	tb.Helper()
	var ts []Triple
	for _, line := range strings.Split(text, "\n") {
		q, ok, err := ParseLine([]byte(expandIRIs(line)))
		if err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		if ok {
			ts = append(ts, q.Triple)
		}
	}
	return SortUnique(ts)
}

// expandIRIs writes the abbreviated IRIs of a line in full.
func expandIRIs(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		b.WriteByte(line[i])
		if line[i] == '<' && !hasScheme(line[i+1:strings.IndexByte(line[i:], '>')+i]) {
			b.WriteString("http://e/")
		}
	}
	return b.String()
}

// xsdSuffix begins the datatype of a literal of XML Schema.
const xsdSuffix = "^^<http://www.w3.org/2001/XMLSchema#"
