package jsonld

import (
	"bytes"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// jsonScanner goes over a JSON text (RFC 8259) in memory, strictly. Strings are
// given as they are written; why is the fault, or "".
type jsonScanner struct {
	data []byte
	pos  int
	// errPos is the place of the fault.
	errPos int
}

func (s *jsonScanner) fail(pos int, why string) string {
	s.errPos = pos
	return why
}

// peek is the next byte after white space, 0 at the end.
func (s *jsonScanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// expect passes over one byte, after white space.
func (s *jsonScanner) expect(c byte) (why string) {
	if got := s.peek(); got != c {
		return s.fail(s.pos, s.instead(got)+" stands where '"+string(rune(c))+"' is missing")
	}
	s.pos++
	return ""
}

func (s *jsonScanner) instead(c byte) string {
	if s.pos >= len(s.data) {
		return "the end of the document"
	}
	return chars.QuoteByte(c)
}

// str reads a string and gives the text between its quotes.
func (s *jsonScanner) str() (raw []byte, escaped bool, why string) {
	if why := s.expect('"'); why != "" {
		return nil, false, why
	}
	start := s.pos
	for i := start; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case chars.Class[c]&chars.EscLiteral == 0 || c == 0x7f || c == 0xef:
		case c == '"':
			s.pos = i + 1
			return s.data[start:i], escaped, ""
		case c == '\\':
			escaped = true
			i++
		default:
			return nil, false, s.fail(i, "a control character stands raw in a string")
		}
	}
	return nil, false, s.fail(start-1, "the string has no closing quote")
}

// text decodes the result of str.
func (s *jsonScanner) text(raw []byte, escaped bool) (string, string) {
	if !escaped {
		return string(raw), ""
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			n := bytes.IndexByte(raw[i:], '\\')
			if n < 0 {
				n = len(raw) - i
			}
			out = append(out, raw[i:i+n]...)
			i += n
			continue
		}
		if raw[i+1] == '/' {
			out = append(out, '/')
			i += 2
			continue
		}
		r, n, why := chars.ReadEscape(raw[i:], raw[i+1] != '\'', true)
		if why != "" || raw[i+1] == 'U' {
			return "", s.fail(s.pos-1, "bad escape in a string: "+why)
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	return chars.OwnString(out), ""
}

// number reads a number and gives it as it is written.
func (s *jsonScanner) number() (raw []byte, why string) {
	start, i := s.pos, s.pos
	if i < len(s.data) && s.data[i] == '-' {
		i++
	}
	n := chars.CountDigits(s.data[i:])
	ok := n == 1 || n > 1 && s.data[i] != '0'
	if i += n; i < len(s.data) && s.data[i] == '.' {
		n = chars.CountDigits(s.data[i+1:])
		ok = ok && n > 0
		i += 1 + n
	}
	if i < len(s.data) && (s.data[i] == 'e' || s.data[i] == 'E') {
		if i++; i < len(s.data) && (s.data[i] == '+' || s.data[i] == '-') {
			i++
		}
		n = chars.CountDigits(s.data[i:])
		ok = ok && n > 0
		i += n
	}
	if !ok {
		return nil, s.fail(start, "no JSON value begins here")
	}
	s.pos = i
	return s.data[start:i], ""
}

// word reads true, false or null.
func (s *jsonScanner) word() (string, string) {
	for _, w := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
			s.pos += len(w)
			return w, ""
		}
	}
	return "", s.fail(s.pos, "no JSON value begins here")
}

// skipValue passes over one value of any kind, checking its syntax.
func (s *jsonScanner) skipValue(depth int) (why string) {
	if depth > syntax.MaxNesting {
		return s.fail(s.pos, "nested too deep")
	}
	switch c := s.peek(); c {
	case '"':
		raw, escaped, why := s.str()
		if why == "" && escaped {
			_, why = s.text(raw, escaped)
		}
		return why
	case '{', '[':
		return s.each(func(raw []byte, escaped bool) string {
			if escaped {
				if _, why := s.text(raw, escaped); why != "" {
					return why
				}
			}
			return s.skipValue(depth + 1)
		})
	case 't', 'f', 'n':
		_, why := s.word()
		return why
	}
	_, why = s.number()
	return why
}

// each goes over the members of an object (with their names) or the elements
// of an array; visit reads the value.
func (s *jsonScanner) each(visit func(name []byte, escaped bool) (why string)) (why string) {
	end, more := s.enter()
	for more && why == "" {
		var name []byte
		var escaped bool
		if end == '}' {
			if name, escaped, why = s.name(); why != "" {
				return why
			}
		}
		s.peek()
		if why = visit(name, escaped); why == "" {
			more, why = s.more(end)
		}
	}
	return why
}

// enter begins an object or array: end is what closes it, more tells whether
// there is something in it.
func (s *jsonScanner) enter() (end byte, more bool) {
	end = s.data[s.pos] + 2 // ']' follows '[' by two, and '}' follows '{'
	s.pos++
	if s.peek() == end {
		s.pos++
		return end, false
	}
	return end, true
}

// name reads the name of a member and its colon.
func (s *jsonScanner) name() (raw []byte, escaped bool, why string) {
	if raw, escaped, why = s.str(); why == "" {
		why = s.expect(':')
	}
	return raw, escaped, why
}

// more reads the sign after a member or an element: a comma or the end.
func (s *jsonScanner) more(end byte) (more bool, why string) {
	switch c := s.peek(); c {
	case ',':
		s.pos++
		return true, ""
	case end:
		s.pos++
		return false, ""
	default:
		return false, s.fail(s.pos, s.instead(c)+" stands where ',' or '"+string(rune(end))+"' is missing")
	}
}

// appendLexical appends the result of str as the inside of a canonical literal.
func (s *jsonScanner) appendLexical(dst, raw []byte, escaped bool) ([]byte, string) {
	for escaped {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			break
		}
		dst = chars.AppendLiteral(dst, raw[:n])
		raw = raw[n:]
		switch raw[1] {
		case '"', '\\', 'b', 'f', 'n', 'r', 't': // written the same
			dst = append(dst, raw[:2]...)
			raw = raw[2:]
			continue
		case '/':
			dst = append(dst, '/')
			raw = raw[2:]
			continue
		}
		r, n, why := chars.ReadEscape(raw, false, true)
		if why != "" || raw[1] == 'U' {
			return dst, s.fail(s.pos-1, "bad escape in a string: "+why)
		}
		var buf [utf8.UTFMax]byte
		dst = chars.AppendLiteral(dst, buf[:utf8.EncodeRune(buf[:], r)])
		raw = raw[n:]
	}
	return chars.AppendLiteral(dst, raw), ""
}
