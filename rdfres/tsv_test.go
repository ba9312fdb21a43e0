package rdfres

import "testing"

func FuzzTSVTerm(f *testing.F) {
	for _, s := range []string{"42", "'a'", `"""a"""@en`, "<http://e/{}>", "_:nodeID://b1", "-.5e3", `"a"^^<http://e/d>`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, field []byte) {
		term, err := ParseTSVTerm(field)
		if err != nil || term == "" {
			return
		}
		again, err := ParseTSVTerm([]byte(term))
		if err != nil || again != term {
			t.Fatalf("%q: %s is read again as %s: %v", field, term, again, err)
		}
	})
}
