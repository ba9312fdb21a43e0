package rdfres

import (
	"slices"
	"strings"
)

// labelProperties give a name for people, the best first.
var labelProperties = []string{
	"http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#prefLabel", "http://schema.org/name", "https://schema.org/name",
	"http://purl.org/dc/terms/title", "http://purl.org/dc/elements/1.1/title", "http://xmlns.com/foaf/0.1/name",
}

// Label is a name of an entity for people, "" if its description has none: by the best property,
// English or without a language before others.
func Label(entity Term, ts []Triple) string {
	best, rank := "", 1000
	for _, t := range ts {
		i := slices.Index(labelProperties, t.P.IRI())
		if i < 0 || t.S != entity || t.O.Kind() != KindLiteral {
			continue
		}
		text, lang, _ := t.O.Literal()
		r := i * 4
		switch {
		case strings.EqualFold(lang, "en"):
		case lang == "":
			r++
		case strings.HasPrefix(strings.ToLower(lang), "en-"):
			r += 2
		default:
			r += 3
		}
		if r < rank && strings.TrimSpace(text) != "" {
			best, rank = text, r
		}
	}
	return best
}

// Labels are all names of an entity in its description, in all languages.
func Labels(entity Term, ts []Triple) (labels []string) {
	for _, t := range ts {
		if t.S == entity && t.O.Kind() == KindLiteral && slices.Contains(labelProperties, t.P.IRI()) {
			text, _, _ := t.O.Literal()
			labels = append(labels, text)
		}
	}
	return labels
}
