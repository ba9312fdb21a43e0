package rdftest

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// Lines is a graph in N-Triples, in its order.
func Lines(ts []rdfres.Triple) string {
	var b []byte
	for _, t := range ts {
		b = t.AppendLine(b)
	}
	return string(b)
}

// Parse is a graph in N-Triples, abbreviated: <a> means <http://e/a>.
func Parse(tb testing.TB, text string) []rdfres.Triple {
	tb.Helper()
	var ts []rdfres.Triple
	for _, line := range strings.Split(text, "\n") {
		q, ok, err := rdfres.ParseLine([]byte(expandIRIs(line)))
		if err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		if ok {
			ts = append(ts, q.Triple)
		}
	}
	return rdfres.SortUnique(ts)
}

// expandIRIs writes the abbreviated IRIs of a line in full.
func expandIRIs(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		b.WriteByte(line[i])
		if line[i] == '<' && !chars.HasScheme(line[i+1:strings.IndexByte(line[i:], '>')+i]) {
			b.WriteString("http://e/")
		}
	}
	return b.String()
}

// XSDSuffix begins the datatype of a literal of XML Schema.
const XSDSuffix = "^^<http://www.w3.org/2001/XMLSchema#"
