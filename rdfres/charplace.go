package rdfres

import "unicode/utf8"

// maxLine bounds what one line, or one literal, may hold in memory.
const maxLine = 256 << 20

// scanLaxLang takes every tag of letters, digits, '-' and '_'.
func scanLaxLang(s []byte) int {
	i := 0
	for i < len(s) && class[s[i]]&labelByte != 0 {
		i++
	}
	return i
}

func quoteByte(c byte) string {
	switch {
	case c == ' ':
		return "a space"
	case c == '\t':
		return "a tab"
	case c >= utf8.RuneSelf:
		return "a character beyond ASCII"
	}
	return "'" + printable(c) + "'"
}

func invalidAt(b []byte) int {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return i
}

// column counts characters, from 1.
func column(line []byte, at int) int { return utf8.RuneCount(line[:min(at, len(line))]) + 1 }

// cut shortens what an error message quotes.
func cut(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// countDigits is how many digits s begins with.
func countDigits(s []byte) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// noTripleTerms is said of a document that has some, with where.
const noTripleTerms = "triple terms and reified triples (<< of RDF 1.2) cannot be read: have the source write RDF 1.1"
