package destination

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The case of a language tag says nothing: stores keep it, lower it or write it as RFC 5646 does.
// No audit calls that rewritten. Of what is rewritten it tells what the store shows, and not the
// form for comparing.
func TestRewrittenIsNotTheCaseOfTags(t *testing.T) {
	for name, write := range map[string]func(string) string{
		"keeps":  func(s string) string { return s },
		"lowers": strings.ToLower,
		"5646":   func(s string) string { return strings.Replace(strings.ToLower(s), "-gb", "-GB", 1) },
	} {
		for _, few := range []int{1, 1000} { // both ways of a baseline
			b := newBench(t)
			b.few = few
			if name != "keeps" {
				b.caps.NormalForm.Rules = []string{"integer", "language-case"}
			} else {
				b.caps.NormalForm.Rules = []string{"integer"}
			}
			b.mir.rewrite = func(tr rdfres.Triple) rdfres.Triple {
				lex, lang, datatype := tr.O.Literal()
				switch {
				case lang != "":
					tr.O = rdfres.NewLiteral(lex, write(lang), "")
				case strings.HasSuffix(datatype, "#integer") && tr.O.Kind() == rdfres.KindLiteral:
					tr.O = rdfres.NewLiteral("+"+strings.TrimLeft(lex, "0"), "", datatype)
				}
				return tr
			}
			s := b.src
			s.put("tags.nt", `<http://ex.org/tags> <http://ex.org/v> "colour"@EN-gb .`+"\n")
			s.put("both.nt", `<http://ex.org/both> <http://ex.org/v> "a"@EN .`+"\n"+`<http://ex.org/both> <http://ex.org/v> "a"@en .`+"\n")
			s.put("number.nt", `<http://ex.org/number> <http://ex.org/v> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .`+"\n"+`<http://ex.org/number> <http://ex.org/v> "a"@EN .`+"\n")
			b.sync()
			const want = `the store keeps literals of it in its own form, as "+1"^^<http://www.w3.org/2001/XMLSchema#integer> for "01"^^<http://www.w3.org/2001/XMLSchema#integer> (<http://ex.org/v>)`
			if a := b.audited("store"); !a.Equal || a.Rewritten != 1 || len(a.Named) != 1 || a.Named[0].Detail != want {
				t.Errorf("%s, %d: %+v", name, few, a)
			}
			if a := b.audited("inventory"); !a.Equal || a.Rewritten != 1 || len(a.Named) != 1 || a.Named[0].Detail != "the store keeps literals of it in its own form" {
				t.Errorf("%s, %d: %+v", name, few, a)
			}
		}
	}
}
