package chars

import "unicode/utf8"

// MaxLine bounds what one line, or one literal, may hold in memory.
const MaxLine = 256 << 20

// ScanLaxLang takes every tag of letters, digits, '-' and '_'.
func ScanLaxLang(s []byte) int {
	i := 0
	for i < len(s) && Class[s[i]]&LabelByte != 0 {
		i++
	}
	return i
}

func QuoteByte(c byte) string {
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

func InvalidAt(b []byte) int {
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

// Column counts characters, from 1.
func Column(line []byte, at int) int { return utf8.RuneCount(line[:min(at, len(line))]) + 1 }

// Cut shortens a quotation in an error message.
func Cut(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// CountDigits is how many digits s begins with.
func CountDigits(s []byte) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// NoTripleTerms is the fault of a document with triple terms.
const NoTripleTerms = "triple terms and reified triples (<< of RDF 1.2) cannot be read: have the source write RDF 1.1"
