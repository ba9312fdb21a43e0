package chars

import (
	"unicode/utf8"
	"unsafe"
)

// Classes of bytes, one table for all scanners of this package.
const (
	BadIRI     = 1 << iota // may not stand raw in an IRIREF: controls, space and <>"{}|^`\
	EscLiteral             // is or may be written as an escape in a canonical literal
	LabelByte              // ASCII of PN_CHARS, without '.'
	AlphaByte
	DigitByte
	HexByte
)

var Class = func() (t [256]byte) {
	for c := 0; c <= 0x20; c++ {
		t[c] |= BadIRI
	}
	for _, c := range []byte("<>\"{}|^`\\") {
		t[c] |= BadIRI
	}
	for c := 0; c < 0x20; c++ {
		t[c] |= EscLiteral
	}
	t['"'] |= EscLiteral
	t['\\'] |= EscLiteral
	t[0x7f] |= EscLiteral
	t[0xef] |= EscLiteral // may begin U+FFFE or U+FFFF
	for c := '0'; c <= '9'; c++ {
		t[c] |= DigitByte | LabelByte | HexByte
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= AlphaByte | LabelByte
		t[c-'a'+'A'] |= AlphaByte | LabelByte
	}
	for c := 'a'; c <= 'f'; c++ {
		t[c] |= HexByte
		t[c-'a'+'A'] |= HexByte
	}
	t['_'] |= LabelByte
	t['-'] |= LabelByte
	return t
}()

const UpperHex = "0123456789ABCDEF"

// AppendIRI appends iri as the inside of an IRIREF: raw, with the characters forbidden by the
// grammar as \uXXXX.
func AppendIRI[B []byte | string](dst []byte, iri B) []byte {
	from := 0
	for i := 0; i < len(iri); i++ {
		if c := iri[i]; Class[c]&BadIRI != 0 {
			dst = append(dst, iri[from:i]...)
			dst = append(dst, '\\', 'u', '0', '0', UpperHex[c>>4], UpperHex[c&15])
			from = i + 1
		}
	}
	return append(dst, iri[from:]...)
}

// AppendLiteral appends lexical as the inside of a canonical
// STRING_LITERAL_QUOTE (RDFC-1.0, section 5: canonical N-Quads): the short
// escapes for \b \t \n \f \r \" \\, \u00XX for other controls and DEL, \uFFFE
// and \uFFFF, everything else raw.
func AppendLiteral[B []byte | string](dst []byte, lexical B) []byte {
	from := 0
	for i := 0; i < len(lexical); i++ {
		c := lexical[i]
		if Class[c]&EscLiteral == 0 {
			continue
		}
		if c == 0xef {
			if i+2 < len(lexical) && lexical[i+1] == 0xbf && lexical[i+2] >= 0xbe {
				dst = append(dst, lexical[from:i]...)
				dst = append(dst, `\uFFF`...)
				dst = append(dst, 'E'+lexical[i+2]-0xbe)
				i += 2
				from = i + 1
			}
			continue
		}
		dst = append(dst, lexical[from:i]...)
		dst = AppendEscape(dst, c)
		from = i + 1
	}
	return append(dst, lexical[from:]...)
}

// Escapes is how many bytes AppendLiteral needs at most beside those of a long text, so
// no copy is needed to make room.
func Escapes[B []byte | string](lexical B) (n int) {
	if len(lexical) < LongText {
		return 0
	}
	for i := 0; i < len(lexical); i++ {
		if c := lexical[i]; Class[c]&EscLiteral != 0 {
			switch c {
			case '"', '\\', '\b', '\t', '\n', '\f', '\r':
				n++
			case 0xef:
				n += 3
			default:
				n += 5
			}
		}
	}
	return n
}

// LongText is the length from which a copy costs more than care.
const LongText = 64 << 10

// OwnString is the string of bytes without another owner. A long one is not copied.
func OwnString(b []byte) string {
	if len(b) < LongText {
		return string(b)
	}
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func AppendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	case '"':
		return append(dst, '\\', '"')
	case '\\':
		return append(dst, '\\', '\\')
	}
	return append(dst, '\\', 'u', '0', '0', UpperHex[c>>4], UpperHex[c&15])
}

// Unescape undoes ECHAR and UCHAR. s is from a Term, hence well-formed; a
// backslash without an escape is kept.
func Unescape(s string) string {
	i := 0
	for i < len(s) && s[i] != '\\' {
		i++
	}
	if i == len(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	from := 0
	for i < len(s) {
		if s[i] != '\\' {
			i++
			continue
		}
		out = append(out, s[from:i]...)
		r, n, why := ReadEscape(s[i:], true, false)
		if why != "" {
			out = append(out, '\\')
			n = 1
		} else {
			out = utf8.AppendRune(out, r)
		}
		i += n
		from = i
	}
	return string(append(out, s[from:]...))
}

// ReadEscape reads the escape at the start of s. echar allows the short ones.
// lax joins two escaped surrogates, as Java writes them. why is the fault,
// or "".
func ReadEscape[B []byte | string](s B, echar, lax bool) (r rune, n int, why string) {
	if len(s) < 2 {
		return 0, 0, "a backslash stands at the end"
	}
	digits := 4
	switch s[1] {
	case 'u':
	case 'U':
		digits = 8
	default:
		if echar {
			switch s[1] {
			case 't':
				return '\t', 2, ""
			case 'b':
				return '\b', 2, ""
			case 'n':
				return '\n', 2, ""
			case 'r':
				return '\r', 2, ""
			case 'f':
				return '\f', 2, ""
			case '"', '\'', '\\':
				return rune(s[1]), 2, ""
			}
		}
		return 0, 0, "unknown escape \\" + printable(s[1])
	}
	v, ok := readHex(s, 2, digits)
	if !ok {
		return 0, 0, "a \\" + string(s[1]) + " escape needs hexadecimal digits"
	}
	n = 2 + digits
	if v >= 0xd800 && v < 0xe000 {
		if lax && v < 0xdc00 && len(s) >= n+6 && s[n] == '\\' && s[n+1] == 'u' {
			if low, ok := readHex(s, n+2, 4); ok && low >= 0xdc00 && low < 0xe000 {
				return rune(0x10000 + (v-0xd800)<<10 + (low - 0xdc00)), n + 6, ""
			}
		}
		return 0, 0, "an escaped surrogate is no character"
	}
	if v > utf8.MaxRune {
		return 0, 0, "an escape beyond U+10FFFF"
	}
	return rune(v), n, ""
}

func readHex[B []byte | string](s B, at, digits int) (v uint32, ok bool) {
	if len(s) < at+digits {
		return 0, false
	}
	for i := at; i < at+digits; i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	return v, true
}

// IsPNCharsBase is PN_CHARS_BASE of N-Triples, Turtle and SPARQL beyond ASCII.
func IsPNCharsBase(r rune) bool {
	switch {
	case r < 0xc0:
		return false
	case r <= 0x2ff:
		return r != 0xd7 && r != 0xf7
	case r <= 0x1fff:
		return r >= 0x370 && r != 0x37e
	case r <= 0x200d:
		return r >= 0x200c
	case r <= 0x218f:
		return r >= 0x2070
	case r <= 0x2fef:
		return r >= 0x2c00
	case r <= 0xd7ff:
		return r >= 0x3001
	case r <= 0xfdcf:
		return r >= 0xf900
	case r <= 0xfffd:
		return r >= 0xfdf0
	}
	return r >= 0x10000 && r <= 0xeffff
}

// IsPNCharsExtra is PN_CHARS without PN_CHARS_U, beyond ASCII.
func IsPNCharsExtra(r rune) bool {
	return r == 0xb7 || r >= 0x300 && r <= 0x36f || r == 0x203f || r == 0x2040
}

// ScanLabel returns the length of the blank node label at the start of s
// (after "_:"), 0 when it begins with none. A dot at the end is not part of it.
// colon tells whether ':' may stand in it, as in N-Triples 1.1.
func ScanLabel[B []byte | string](s B, colon bool) int {
	i, end := 0, 0
	for i < len(s) {
		c := s[i]
		switch {
		case Class[c]&LabelByte != 0 && (i > 0 || c != '-'), c == ':' && colon:
			i++
			end = i
		case c == '.' && i > 0:
			i++
		case c >= utf8.RuneSelf:
			r, n := decodeRune(s[i:])
			if !IsPNCharsBase(r) && (i == 0 || !IsPNCharsExtra(r)) || r == utf8.RuneError && n == 1 {
				return end
			}
			i += n
			end = i
		default:
			return end
		}
	}
	return end
}

func decodeRune[B []byte | string](s B) (rune, int) {
	var buf [utf8.UTFMax]byte
	return utf8.DecodeRune(buf[:copy(buf[:], s)])
}

// ScanLang returns the length of the language tag at the start of s (after
// "@"): [a-zA-Z]+ ('-' [a-zA-Z0-9]+)*, 0 when there is none.
func ScanLang[B []byte | string](s B) int {
	i := 0
	for i < len(s) && Class[s[i]]&AlphaByte != 0 {
		i++
	}
	for i > 0 && i < len(s) && s[i] == '-' {
		j := i + 1
		for j < len(s) && Class[s[j]]&(AlphaByte|DigitByte) != 0 {
			j++
		}
		if j == i+1 {
			break
		}
		i = j
	}
	return i
}

// HasScheme tells whether an IRI is absolute: begins with a scheme and a colon.
func HasScheme[B []byte | string](iri B) bool {
	if len(iri) > 5 && string(iri[:5]) == "http:" {
		return true
	}
	if len(iri) == 0 || Class[iri[0]]&AlphaByte == 0 {
		return false
	}
	for i := 1; i < len(iri); i++ {
		c := iri[i]
		if c == ':' {
			return true
		}
		if Class[c]&(AlphaByte|DigitByte) == 0 && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return false
}

func printable(c byte) string {
	if c < 0x20 || c >= 0x7f {
		return "0x" + string(UpperHex[c>>4]) + string(UpperHex[c&15])
	}
	return string(rune(c))
}
