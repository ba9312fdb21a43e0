package rdftest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// NastyGraph makes a description with whatever is hard to write: nested,
// shared and cyclic blank nodes, literals of controls and quotes, IRIs with
// characters that IRIREF does not allow, one IRI beginning another.
func NastyGraph(r *rand.Rand, size int, nasty bool) (entity string, ts []rdfres.Triple) {
	entity = "http://e/entity"
	blanks := make([]rdfres.Term, 1+r.IntN(size))
	for i := range blanks {
		blanks[i] = rdfres.NewBlank(fmt.Sprintf("rsb%040xn%d", r.IntN(3), i))
		if r.IntN(8) == 0 {
			blanks[i] = rdfres.NewBlank(fmt.Sprintf("anon-%d", i))
		}
	}
	for range 1 + r.IntN(size) {
		s := rdfres.NewIRI(entity)
		switch r.IntN(5) {
		case 0, 1:
			s = blanks[r.IntN(len(blanks))]
		case 2:
			s = rdfres.NewIRI(NastyIRI(r, nasty))
		}
		p := rdfres.NewIRI(NastyIRI(r, nasty))
		if r.IntN(6) == 0 {
			p = syntax.Type
		}
		var o rdfres.Term
		switch r.IntN(4) {
		case 0:
			o = rdfres.NewIRI(NastyIRI(r, nasty))
		case 1, 2:
			o = blanks[r.IntN(len(blanks))]
		case 3:
			o = nastyLiteral(r, nasty)
		}
		ts = append(ts, rdfres.Triple{S: s, P: p, O: o})
		if r.IntN(10) == 0 {
			ts = append(ts, ts[r.IntN(len(ts))])
		}
	}
	return entity, ts
}

func NastyIRI(r *rand.Rand, nasty bool) string {
	list := []string{"http://e/p", "http://e/pq", "http://e/p#x", "http://e/p!", "http://e/p/q", "http://e/p.", "http://e/é", "http://e/1a", "urn:a:b", "urn:x", "http://e/-a", "http://e/%41", "http://e/a'(b)*,;=~", "http://e/?q=1&r=2", "http://e/a:b",
		"http://schema.org/name", "http://www.w3.org/2000/01/rdf-schema#label", chars.RDF + "first", chars.RDF + "rest", chars.RDF + "nil", chars.RDF + "_1", chars.RDF + "li", chars.RDF + "Description", "HTTP://E/Z", "http://e/\U0001F303", "http://e/\uE000"}
	if nasty {
		list = append(list, `http://e/a b`, `http://e/{x}`, `http://e/"q"`, `http://e/<a>`, `http://e/a\b`, "http://e/\x01", "http://e/\x7f", "http://e/^`|", "http://e/p\\u0041", "http://e/\uFFFE")
	}
	return list[r.IntN(len(list))]
}

func nastyLiteral(r *rand.Rand, nasty bool) rdfres.Term {
	parts := []string{"", "a", "b c", `"`, `\`, `'`, `"""`, "'''", "\n", "\r", "\t", "\r\n", "é", "🌃", "<b>&amp;</b>", "]]>", "\\u0041", " ", "\u2028", "\u0085", "\\\"", "@en", "^^", "\uFFFD", "\u00a0"}
	if nasty {
		parts = append(parts, "\x00", "\x01", "\b", "\f", "\x1f", "\x7f", "\uFFFE", "\uFFFF", "\v")
	}
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	switch r.IntN(4) {
	case 0:
		return rdfres.NewLiteral(b.String(), []string{"en", "EN-us", "zh-Hant-TW", "x-1-a"}[r.IntN(4)], "")
	case 1:
		return rdfres.NewLiteral(b.String(), "", NastyIRI(r, nasty))
	case 2:
		dt := []string{chars.XSDInteger, chars.XSDDecimal, chars.XSDDouble, chars.XSDBoolean, chars.XSD + "date", chars.RDFLangString, chars.RDF + "XMLLiteral", chars.RDF + "JSON"}[r.IntN(8)]
		lex := []string{"1", "01", "+1", "1.5", "1.50", ".5", "1e6", "1.", "true", "false", "1", "-0", "INF", "", "a"}[r.IntN(15)]
		return rdfres.NewLiteral(lex, "", dt)
	}
	return rdfres.NewLiteral(b.String(), "", "")
}

func InAnyOrder(r *rand.Rand, ts []rdfres.Triple) []rdfres.Triple {
	out := append([]rdfres.Triple{}, ts...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
