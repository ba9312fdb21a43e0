package embedstore

import (
	"bytes"
	"strings"
)

// Language tags are equal in any case (RDF 1.2). The store and its queries know each in one case
// only, so equal terms are equal strings. A tag gets this case on entry: in a document, triples in
// memory, a query, STRLANG, and a Pattern.

// inOneCase is a canonical term with its language tag in one case.
func inOneCase(term string) string {
	if n := len(term) - 1; n < 0 || term[0] != '"' || term[n] == '"' || term[n] == '>' {
		return term
	}
	at := strings.LastIndexByte(term, '"') + len(`"@`)
	if tag := tagCase(term[at:]); tag != term[at:] {
		return term[:at] + tag
	}
	return term
}

// tagCase is a language tag in the case of RFC 5646, section 2.1.1: en-Latn-GB-x-own.
// Data is mostly written so already.
func tagCase(tag string) string {
	out := []byte(tag)
	cased := true // until a part of one letter
	for from := 0; from < len(out); {
		part, _, _ := bytes.Cut(out[from:], []byte("-"))
		cased = cased && len(part) > 1
		for i, c := range part {
			upper := cased && from > 0 && (len(part) == 2 || len(part) == 4 && i == 0)
			switch {
			case upper && 'a' <= c && c <= 'z':
				part[i] = c - 'a' + 'A'
			case !upper && 'A' <= c && c <= 'Z':
				part[i] = c - 'A' + 'a'
			}
		}
		from += len(part) + 1
	}
	if string(out) == tag {
		return tag
	}
	return string(out)
}
