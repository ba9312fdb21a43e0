package embedstore

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
)

// SyntaxError is a query or update outside the grammar of SPARQL 1.1.
type SyntaxError struct {
	Line, Column int // from 1; column in bytes
	Message      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

type tokenKind byte

const (
	tokEOF     tokenKind = iota
	tokIRI               // text is the IRI, escapes resolved
	tokPName             // text is prefix:local as written
	tokBlank             // text is the label
	tokVar               // text is the name
	tokString            // text is the value
	tokLang              // text is the tag
	tokInteger           // numbers as written
	tokDecimal
	tokDouble
	tokWord  // keyword or a; text as written
	tokPunct // text is the sign
	tokNil   // ( )
	tokAnon  // [ ]
)

type token struct {
	kind tokenKind
	text string
	off  int64 // offset from the beginning, for messages
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end"
	case tokIRI:
		return "<" + t.text + ">"
	case tokVar:
		return "?" + t.text
	case tokString:
		return fmt.Sprintf("%q", t.text)
	case tokNil:
		return "()"
	case tokAnon:
		return "[]"
	case tokBlank:
		return "_:" + t.text
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer cuts SPARQL into tokens. It reads on demand, so an update may be larger than memory.
type lexer struct {
	r    io.Reader
	src  string // the text read so far
	pos  int
	eof  bool
	rerr error
	cut  bool // src ended within the token

	gone  int64 // bytes before src
	lines int   // line breaks before src
	last  int64 // offset of the last line break before src, -1: none
}

func newLexer(r io.Reader) *lexer { return &lexer{r: r, last: -1} }

const lexerChunk = 64 << 10

// fill drops the text before keep and reads on.
func (l *lexer) fill(keep int) {
	if keep > 0 {
		head := l.src[:keep]
		if n := strings.Count(head, "\n"); n > 0 {
			l.lines += n
			l.last = l.gone + int64(strings.LastIndexByte(head, '\n'))
		}
		l.gone += int64(keep)
	}
	rest := l.src[keep:]
	buf := make([]byte, len(rest)+max(lexerChunk, len(rest)))
	n := copy(buf, rest)
	m, err := io.ReadFull(l.r, buf[n:])
	if err != nil {
		l.eof = true
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			l.rerr = err
		}
	}
	l.src = string(buf[:n+m])
	l.pos -= keep
}

func (l *lexer) errorAt(off int64, format string, args ...any) error {
	if l.rerr != nil {
		return l.rerr
	}
	line, last := l.lines, l.last
	if n := off - l.gone; n > 0 && n <= int64(len(l.src)) {
		head := l.src[:n]
		if c := strings.Count(head, "\n"); c > 0 {
			line += c
			last = l.gone + int64(strings.LastIndexByte(head, '\n'))
		}
	}
	return &SyntaxError{Line: line + 1, Column: int(off - last), Message: fmt.Sprintf(format, args...)}
}

// next is the next token. A token near the end of src is scanned again with more text.
func (l *lexer) next() (token, error) {
	for {
		start := l.pos
		l.cut = false
		t, err := l.scan()
		if l.eof || l.pos+16 < len(l.src) && err == nil {
			if l.rerr != nil {
				return token{}, l.rerr
			}
			return t, err
		}
		if err != nil && !l.cut && len(l.src)-l.pos > lexerChunk/2 {
			return t, err // more would not mend it
		}
		l.pos = start
		l.fill(start)
	}
}

func (l *lexer) skip() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; c {
		case ' ', '\t', '\r', '\n':
			l.pos++
		case '#':
			n := strings.IndexAny(l.src[l.pos:], "\r\n")
			if n < 0 {
				l.pos = len(l.src)
				return
			}
			l.pos += n
		default:
			return
		}
	}
}

func (l *lexer) peekByte(n int) byte {
	if l.pos+n < len(l.src) {
		return l.src[l.pos+n]
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (l *lexer) scan() (token, error) {
	l.skip()
	off := l.gone + int64(l.pos)
	tok := func(k tokenKind, text string) (token, error) { return token{k, text, off}, nil }
	if l.pos >= len(l.src) {
		return tok(tokEOF, "")
	}
	c := l.src[l.pos]
	switch {
	case c == '<':
		if iri, n := scanIRI(l.src[l.pos:]); n > 0 {
			l.pos += n
			if strings.IndexByte(iri, '\\') >= 0 {
				u, ok := unescapeIRI(iri)
				if !ok {
					return token{}, l.errorAt(off, "wrong escape in the IRI <%s>", iri)
				}
				if err := rdfres.CheckIRI(iriTerm(u)); err != nil {
					return token{}, l.errorAt(off, "%s", err)
				}
				iri = u
			}
			return tok(tokIRI, iri)
		} else if n < 0 && !l.eof { // it may go on beyond src
			l.pos = len(l.src)
			return token{}, nil
		}
		if l.peekByte(1) == '=' {
			l.pos += 2
			return tok(tokPunct, "<=")
		}
		l.pos++
		return tok(tokPunct, "<")
	case c == '?' || c == '$':
		n := scanVarName(l.src[l.pos+1:])
		if n == 0 {
			if c == '?' {
				l.pos++
				return tok(tokPunct, "?")
			}
			return token{}, l.errorAt(off, "a variable needs a name after %q", c)
		}
		name := l.src[l.pos+1 : l.pos+1+n]
		l.pos += 1 + n
		return tok(tokVar, name)
	case c == '"' || c == '\'':
		return l.scanString(off)
	case c == '@':
		n := 1
		for isAlpha(l.peekByte(n)) {
			n++
		}
		if n == 1 {
			return token{}, l.errorAt(off, "a language tag needs letters after @")
		}
		for l.peekByte(n) == '-' && (isAlpha(l.peekByte(n+1)) || isDigit(l.peekByte(n+1))) {
			n++
			for isAlpha(l.peekByte(n)) || isDigit(l.peekByte(n)) {
				n++
			}
		}
		text := l.src[l.pos+1 : l.pos+n]
		l.pos += n
		return tok(tokLang, text)
	case isDigit(c) || c == '.' && isDigit(l.peekByte(1)):
		return l.scanNumber(off)
	case c == '_' && l.peekByte(1) == ':':
		n := scanLabel(l.src[l.pos+2:])
		if n == 0 {
			return token{}, l.errorAt(off, "a blank node needs a label after _:")
		}
		text := l.src[l.pos+2 : l.pos+2+n]
		l.pos += 2 + n
		return tok(tokBlank, text)
	case c == '(' || c == '[':
		end := byte(')')
		kind := tokNil
		if c == '[' {
			end, kind = ']', tokAnon
		}
		save := l.pos
		l.pos++
		l.skip()
		if l.pos < len(l.src) && l.src[l.pos] == end {
			l.pos++
			return tok(kind, "")
		}
		if l.pos < len(l.src) || l.eof {
			l.pos = save + 1
		}
		return tok(tokPunct, string(c))
	}
	if two := l.src[l.pos:min(l.pos+2, len(l.src))]; two == "^^" || two == "&&" || two == "||" || two == "!=" || two == ">=" {
		l.pos += 2
		return tok(tokPunct, two)
	}
	if strings.IndexByte("{})].,;=>!+-*/|^", c) >= 0 {
		l.pos++
		return tok(tokPunct, l.src[l.pos-1:l.pos])
	}
	return l.scanName(off)
}

// scanIRI reads <...> at the start of s: the text between, and the length of the whole; 0 for no
// IRI, -1 when s ends too early to decide.
func scanIRI(s string) (string, int) {
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c == '>' {
			return s[1:i], i + 1
		}
		if c <= ' ' || strings.IndexByte("<\"{}|^`", c) >= 0 {
			return "", 0
		}
	}
	return "", -1
}

func unescapeIRI(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		r, n := unicodeEscape(s[i:])
		if n == 0 {
			return "", false
		}
		b.WriteRune(r)
		i += n
	}
	return b.String(), true
}

// unicodeEscape is a \uXXXX or \UXXXXXXXX at the start of s; 0 when it is none.
func unicodeEscape(s string) (rune, int) {
	n := 0
	if len(s) > 1 {
		switch s[1] {
		case 'u':
			n = 6
		case 'U':
			n = 10
		}
	}
	if n == 0 || len(s) < n {
		return 0, 0
	}
	var r rune
	for _, c := range []byte(s[2:n]) {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, 0
		}
	}
	if !utf8.ValidRune(r) {
		return 0, 0
	}
	return r, n
}

// isPNBase is PN_CHARS_BASE of the grammar.
func isPNBase(r rune) bool {
	switch {
	case r < 0x80:
		return isAlpha(byte(r))
	case r < 0xC0, r == 0xD7, r == 0xF7, r >= 0x300 && r <= 0x36F, r == 0x37E:
		return false
	case r <= 0x1FFF, r == 0x200C, r == 0x200D, r >= 0x2070 && r <= 0x218F, r >= 0x2C00 && r <= 0x2FEF,
		r >= 0x3001 && r <= 0xD7FF, r >= 0xF900 && r <= 0xFDCF, r >= 0xFDF0 && r <= 0xFFFD && r != utf8.RuneError,
		r >= 0x10000 && r <= 0xEFFFF:
		return true
	}
	return false
}

func isPNU(r rune) bool { return r == '_' || isPNBase(r) }

// isPN is PN_CHARS.
func isPN(r rune) bool {
	return isPNU(r) || r == '-' || r < 0x80 && isDigit(byte(r)) || r == 0xB7 || r >= 0x300 && r <= 0x36F || r == 0x203F || r == 0x2040
}

func isVarChar(r rune) bool {
	return isPNU(r) || r < 0x80 && isDigit(byte(r)) || r == 0xB7 || r >= 0x300 && r <= 0x36F || r == 0x203F || r == 0x2040
}

func scanVarName(s string) int {
	n := 0
	for n < len(s) {
		r, w := utf8.DecodeRuneInString(s[n:])
		if !isVarChar(r) || n == 0 && !isPNU(r) && !isDigit(s[0]) {
			break
		}
		n += w
	}
	return n
}

func scanLabel(s string) int {
	n, end := 0, 0
	for n < len(s) {
		r, w := utf8.DecodeRuneInString(s[n:])
		if r == '.' && n > 0 {
			n += w
			continue
		}
		if !isPN(r) || n == 0 && !isPNU(r) && !isDigit(s[0]) {
			break
		}
		n += w
		end = n
	}
	return end
}

func (l *lexer) scanNumber(off int64) (token, error) {
	s := l.src[l.pos:]
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	kind := tokInteger
	if n < len(s) && s[n] == '.' {
		m := n + 1
		for m < len(s) && isDigit(s[m]) {
			m++
		}
		// "1." is an integer and a full stop, unless an exponent follows.
		if m > n+1 {
			kind, n = tokDecimal, m
		} else if exponent(s[m:]) > 0 && n > 0 {
			n = m
		}
	}
	if e := exponent(s[n:]); e > 0 {
		kind = tokDouble
		n += e
	}
	l.pos += n
	return token{kind, s[:n], off}, nil
}

func exponent(s string) int {
	if len(s) < 2 || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	n := 1
	if s[n] == '+' || s[n] == '-' {
		n++
	}
	d := n
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == d {
		return 0
	}
	return n
}

func (l *lexer) scanString(off int64) (token, error) {
	s := l.src[l.pos:]
	q := s[0]
	long := len(s) >= 3 && s[1] == q && s[2] == q
	i := 1
	if long {
		i = 3
	}
	start := i
	plain := true
	var b strings.Builder
	for i < len(s) {
		c := s[i]
		switch {
		case c == q && !long:
			l.pos += i + 1
			return token{tokString, pick(plain, s[start:i], &b), off}, nil
		case c == q && strings.HasPrefix(s[i:], s[:3]):
			l.pos += i + 3
			return token{tokString, pick(plain, s[start:i], &b), off}, nil
		case c == '\\':
			if plain {
				plain = false
				b.WriteString(s[start:i])
			}
			if r, n := unicodeEscape(s[i:]); n > 0 {
				b.WriteRune(r)
				i += n
				continue
			}
			if i+10 >= len(s) {
				l.cut = true
			}
			if i+1 >= len(s) {
				return token{}, l.errorAt(off, "the string does not end")
			}
			k := strings.IndexByte("tbnrf\"'\\", s[i+1])
			if k < 0 {
				return token{}, l.errorAt(off+int64(i), "wrong escape \\%c in a string", s[i+1])
			}
			b.WriteByte("\t\b\n\r\f\"'\\"[k])
			i += 2
			continue
		case !long && (c == '\n' || c == '\r'):
			return token{}, l.errorAt(off, "the string does not end on its line")
		}
		if !plain {
			b.WriteByte(c)
		}
		i++
	}
	l.cut = true
	return token{}, l.errorAt(off, "the string does not end")
}

func pick(plain bool, s string, b *strings.Builder) string {
	if plain {
		return s
	}
	return b.String()
}

// scanName is a keyword or a prefixed name.
func (l *lexer) scanName(off int64) (token, error) {
	s := l.src[l.pos:]
	n := 0
	for n < len(s) {
		r, w := utf8.DecodeRuneInString(s[n:])
		if !(isPN(r) || r == '.') || n == 0 && !isPNBase(r) {
			break
		}
		n += w
	}
	if n < len(s) && s[n] == ':' {
		if n > 0 && s[n-1] == '.' {
			return token{}, l.errorAt(off, "a prefix may not end in a full stop")
		}
		m := n + 1 + scanLocal(s[n+1:])
		l.pos += m
		return token{tokPName, s[:m], off}, nil
	}
	for n > 0 && (s[n-1] == '.' || s[n-1] == '-') {
		n--
	}
	// Keywords are letters, digits and underlines only.
	for i := 0; i < n; i++ {
		if c := s[i]; !isAlpha(c) && !isDigit(c) && c != '_' {
			n = i
			break
		}
	}
	if n == 0 {
		r, _ := utf8.DecodeRuneInString(s)
		return token{}, l.errorAt(off, "unexpected character %q", r)
	}
	l.pos += n
	return token{tokWord, s[:n], off}, nil
}

// scanLocal is the length of the local part of a prefixed name.
func scanLocal(s string) int {
	n, end := 0, 0
	for n < len(s) {
		c := s[n]
		switch {
		case c == '.' && n > 0:
			n++
			continue
		case c == ':':
			n++
		case c == '%' && n+2 < len(s) && isHex(s[n+1]) && isHex(s[n+2]):
			n += 3
		case c == '\\' && n+1 < len(s) && strings.IndexByte("_~.-!$&'()*+,;=/?#@%", s[n+1]) >= 0:
			n += 2
		default:
			r, w := utf8.DecodeRuneInString(s[n:])
			if !isPN(r) || n == 0 && !isPNU(r) && !isDigit(c) {
				return end
			}
			n += w
		}
		end = n
	}
	return end
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
