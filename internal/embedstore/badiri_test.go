package embedstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// An IRI that no query could name is refused by every way in, with the place,
// the IRI and the character; nothing is stored.
func TestBadIRIs(t *testing.T) {
	s := openTest(t, t.TempDir())
	ctx := context.Background()
	esc := func(c rune) string { return fmt.Sprintf(`http://x/a\u%04Xb`, c) }
	for _, c := range "\x01\n <>\"{}|^`\\" {
		bad := "<" + esc(c) + ">"
		char := fmt.Sprintf("(U+%04X)", c)
		for _, k := range []struct {
			f    rdfres.Format
			text string
		}{
			{rdfres.NTriples, "<http://x/s> <http://x/p> <http://x/o> .\n" + bad + " <http://x/p> \"v\" .\n"},
			{rdfres.NTriples, "# first\n<http://x/s> <http://x/p> " + bad + " .\n"},
			{rdfres.NQuads, "\n<http://x/s> <http://x/p> \"v\" " + bad + " .\n"},
			{rdfres.NQuads, "\n<http://x/s> <http://x/p> \"v\"^^" + bad + " .\n"},
			{rdfres.Turtle, "<http://x/s> <http://x/p> 1 .\n<http://x/s> " + bad + " 1 .\n"},
			{rdfres.Turtle, "\n@prefix x: " + bad + " . x:a x:b 1 .\n"},
			{rdfres.TriG, "\n" + bad + " { <http://x/s> <http://x/p> 1 }\n"},
		} {
			_, err := s.Load(ctx, "", k.f, strings.NewReader(k.text), LoadOptions{})
			if !errors.As(err, new(*InputError)) || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), char) || !strings.Contains(err.Error(), "http://x/a") {
				t.Errorf("load %s %q: %v", k.f, k.text, err)
			}
		}
		for _, u := range []string{
			"INSERT DATA { " + bad + " <http://x/p> 1 }",
			"INSERT DATA { GRAPH " + bad + " { <http://x/s> <http://x/p> 1 } }",
			"PREFIX x: " + bad + " INSERT DATA { x:s <http://x/p> 1 }",
		} {
			if err := s.Update(ctx, u); err == nil || !strings.Contains(err.Error(), char) {
				t.Errorf("%s: %v", u, err)
			}
		}
		if err := s.Update(ctx, "INSERT { ?i <http://x/p> 1 } WHERE { BIND(IRI(\"http://x/a"+fmt.Sprintf(`\u%04X`, c)+"\") AS ?i) }"); err != nil && !strings.ContainsAny(string(c), "\"\\\n") {
			t.Errorf("%q made by a query: %v", c, err)
		}
	}
	for f, text := range map[rdfres.Format]string{
		rdfres.RDFXML: `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="http://x/"><rdf:Description rdf:about="http://x/a b" p:p="v"/></rdf:RDF>`,
		rdfres.JSONLD: `[{"@id":"http://x/a b","http://x/p":[{"@value":"v"}]}]`,
	} {
		if _, err := s.Load(ctx, "", f, strings.NewReader(text), LoadOptions{}); !errors.As(err, new(*InputError)) || !strings.Contains(err.Error(), `"http://x/a b" holds a space (U+0020)`) {
			t.Errorf("load %s: %v", f, err)
		}
	}
	if _, err := s.Load(ctx, "http://x/a b", rdfres.NTriples, strings.NewReader("<http://x/s> <http://x/p> 1 .\n"), LoadOptions{}); !errors.As(err, new(*InputError)) {
		t.Errorf("load into a graph with a space: %v", err)
	}
	if got := content(t, s); len(got) > 0 {
		t.Errorf("stored: %q", got)
	}
}
