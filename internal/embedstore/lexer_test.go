package embedstore

import (
	"strings"
	"testing"
)

// TestLexerBorders holds that a token that lies across the border of what is at
// hand is read whole, wherever the border is.
func TestLexerBorders(t *testing.T) {
	const tail = ` <http://example.org/a/rather/long/iri> "a string that goes on" 12.5e10 ?variable _:label @en-GB-oed <= < prefix:local `
	want := tokens(t, tail)
	for shift := range len(tail) + 1 {
		src := strings.Repeat(" ", lexerChunk-shift) + tail
		if got := tokens(t, src); got != want {
			t.Fatalf("with the border %d bytes into it: %s, want %s", shift, got, want)
		}
	}
}

func tokens(t *testing.T, src string) string {
	t.Helper()
	l := newLexer(strings.NewReader(src))
	var out strings.Builder
	for {
		tok, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if tok.kind == tokEOF {
			return out.String()
		}
		out.WriteString(tok.String() + " ")
	}
}
