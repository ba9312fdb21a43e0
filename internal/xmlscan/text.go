package xmlscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// skipText consumes text up to the next <. It gives io.EOF at the end of input.
func (s *Scanner) skipText() error {
	for {
		w := s.buf[s.pos:s.end]
		i := 0
		if !s.text.kept {
			for i < len(w) && IsSpace(w[i]) {
				i++
			}
			s.pos += i
			w = w[i:]
		}
		if len(w) > 0 && w[0] == '<' {
			return nil
		}
		if len(w) > 0 {
			end := bytes.IndexByte(w, '<')
			final := end >= 0
			if final {
				w = w[:end]
			}
			n, err := s.takeText(w, final)
			if err != nil {
				s.tok = s.pos
				return s.Failf(ErrSyntax, "%s", err)
			}
			if n > 0 && s.depth() == 0 {
				if err := s.outside(w[:n]); err != nil {
					return err
				}
			}
			s.pos += n
			if err := s.textBound(); err != nil || final {
				return err
			}
		}
		if err := s.more(); err == io.EOF && s.pos < s.end && s.depth() == 0 {
			if err := s.outside(s.buf[s.pos:s.end]); err != nil {
				return err
			}
			return io.EOF
		} else if err != nil {
			return err
		}
	}
}

// outside looks at text outside of the root element. Behind it, it is forgiven.
func (s *Scanner) outside(text []byte) error {
	s.tok = s.pos
	if !s.doc.rooted || s.o.Slip == nil {
		return s.Failf(ErrSyntax, "text %q outside of the root element", Clip(string(text)))
	}
	return s.slip(ErrSyntax, "there is text behind the root element; it is left out")
}

// textBound ends a text too long to collect.
func (s *Scanner) textBound() error {
	if !s.text.kept || len(s.text.bytes) <= s.o.MaxValue {
		return nil
	}
	s.tok = s.pos
	return s.Failf(ErrLimit, "the text of <%s> is longer than %d bytes", Clip(string(s.top())), s.o.MaxValue)
}

// takeText checks text and collects it; it gives how many bytes it took. Unless
// the text is whole (final), it leaves bytes at the end that may belong to a longer token.
func (s *Scanner) takeText(w []byte, final bool) (int, error) {
	s.Stray = s.Stray || !s.text.kept
	start := 0
	for i := 0; i < len(w); {
		switch c := w[i]; c {
		default:
			i++
			continue
		case '&':
			r, n, err := reference(w[i:])
			if err != nil {
				if !final && len(w)-i < maxReference {
					s.collect(w[start:i])
					return i, nil
				}
				if s.o.Slip == nil || !bare(w[i:]) {
					return 0, err
				}
				s.tok = s.pos
				s.o.Slip(ErrSyntax, bareAmpersand)
				i++
				continue
			}
			s.collect(w[start:i])
			s.collect(utf8.AppendRune(nil, r))
			i += n
		case ']':
			if bytes.HasPrefix(w[i:], cdataEnd) {
				return 0, errors.New("]]> in text; > is written &gt; there")
			}
			if !final && len(w)-i < len(cdataEnd) {
				s.collect(w[start:i])
				return i, nil
			}
			i++
			continue
		case '\r':
			if !final && i+1 == len(w) {
				s.collect(w[start:i])
				return i, nil
			}
			s.collect(w[start:i])
			s.collect(newline)
			if i++; i < len(w) && w[i] == '\n' {
				i++
			}
		}
		start = i
	}
	s.collect(w[start:])
	return len(w), nil
}

func (s *Scanner) collect(b []byte) {
	if s.text.kept {
		s.text.bytes = append(s.text.bytes, b...)
	}
}

const maxReference = 64

// reference decodes the entity or character reference at the start of w.
func reference(w []byte) (r rune, n int, err error) {
	end := bytes.IndexByte(w[:min(len(w), maxReference)], ';')
	if end < 0 {
		return 0, 0, fmt.Errorf("%q is no reference; & is written &amp;", Clip(string(w[:min(len(w), 16)])))
	}
	name := string(w[1:end])
	switch name {
	case "amp":
		return '&', 5, nil
	case "lt":
		return '<', 4, nil
	case "gt":
		return '>', 4, nil
	case "quot":
		return '"', 6, nil
	case "apos":
		return '\'', 6, nil
	}
	if len(name) < 2 || name[0] != '#' {
		return 0, 0, fmt.Errorf("the entity &%s; is not known: only amp, lt, gt, quot, apos and characters by number are read", Clip(name))
	}
	digits, base := name[1:], 10
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	code, err := strconv.ParseUint(digits, base, 32)
	if err != nil || !xmlChar(rune(code)) {
		return 0, 0, fmt.Errorf("&%s; is no character that XML allows", Clip(name))
	}
	return rune(code), end + 1, nil
}

const bareAmpersand = "an & that begins no reference is read as it is; & is written &amp;"

// bare tells an & at the start of w that begins no reference: no name or number with a
// semicolon follows.
func bare(w []byte) bool {
	i := 1
	if i < len(w) && w[i] == '#' {
		i++
	}
	start := i
	for i < len(w) && (nameByte[w[i]] != 0 || w[i] >= utf8.RuneSelf) {
		i++
	}
	return i == start || i == len(w) || w[i] != ';'
}

func xmlChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF
}

// decodeValue replaces references and normalizes white space in an attribute.
func (s *Scanner) decodeValue(v []byte) ([]byte, error) {
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		switch c := v[i]; c {
		case '&':
			r, n, err := reference(v[i:])
			switch {
			case err == nil:
			case s.o.Slip == nil || !bare(v[i:]):
				return nil, err
			default:
				s.o.Slip(ErrSyntax, bareAmpersand)
				r, n = '&', 1
			}
			out = utf8.AppendRune(out, r)
			i += n
		case '\r':
			out = append(out, ' ')
			if i++; i < len(v) && v[i] == '\n' {
				i++
			}
		case '\n', '\t':
			out = append(out, ' ')
			i++
		default:
			out = append(out, c)
			i++
		}
	}
	return out, nil
}

var (
	cdataStart = []byte("<![CDATA[")
	cdataEnd   = []byte("]]>")

	doctypeStart = []byte("<!DOCTYPE")
)

// declaration reads from <! on: a comment, CDATA, a DTD.
func (s *Scanner) declaration() error {
	if err := s.need(4); err != nil {
		return s.inputError(err, "a comment")
	}
	if string(s.buf[s.pos:s.pos+4]) == "<!--" {
		s.pos += 4
		return s.comment()
	}
	if err := s.need(len(cdataStart)); err != nil {
		return s.inputError(err, "a declaration")
	}
	switch w := s.buf[s.pos:s.end]; {
	case bytes.HasPrefix(w, cdataStart):
		if s.depth() == 0 {
			return s.Failf(ErrSyntax, "CDATA outside of the root element")
		}
		s.pos += len(cdataStart)
		return s.cdata()
	case bytes.HasPrefix(w, doctypeStart):
		return s.doctype()
	}
	if w := s.buf[s.pos:s.end]; len(w) >= len(doctypeStart) && bytes.EqualFold(w[:len(doctypeStart)], doctypeStart) {
		return s.Failf(ErrSyntax, "this is a web page (HTML), and no XML")
	}
	return s.Failf(ErrSyntax, "a declaration that is neither a comment nor CDATA")
}

// doctype passes over a DTD before the root element. Its declarations stay unknown: a
// reference to an entity of it is an error.
func (s *Scanner) doctype() error {
	const refused = "the document has a DTD (<!DOCTYPE); DTDs and entities are refused"
	if s.doc.rooted || s.doc.typed || s.o.Slip == nil {
		return s.Fail(ErrNotRead, refused)
	}
	s.o.Slip(ErrNotRead, "the document has a DTD (<!DOCTYPE); it is passed over, and its entities are not known")
	s.doc.typed = true
	s.pos += len(doctypeStart)
	inside := false // of [ ]
	for quote := byte(0); ; {
		if err := s.need(1); err != nil {
			return s.inputError(err, "a DTD")
		}
		c := s.buf[s.pos]
		s.pos++
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"', c == '\'':
			quote = c
		case c == '[':
			inside = true
		case c == ']':
			inside = false
		case c == '>' && !inside:
			return nil
		case c == '<':
			if err := s.declared(); err != nil {
				return err
			}
		}
	}
}

// declared passes over a comment or an instruction in a DTD, behind its <. It refuses
// declarations of attributes: elements could have other ones than they show.
func (s *Scanner) declared() error {
	const attributes = "!ATTLIST"
	if err := s.need(len(attributes)); err != nil {
		return s.inputError(err, "a DTD")
	}
	switch w := s.buf[s.pos:s.end]; {
	case bytes.HasPrefix(w, []byte("!--")):
		s.pos += len("!--")
		return s.comment()
	case w[0] == '?':
		return s.until([]byte("?>"), "a processing instruction", ignore)
	case bytes.HasPrefix(w, []byte(attributes)):
		return s.Failf(ErrNotRead, "the DTD of the document declares attributes (<!ATTLIST); their defaults are not read")
	}
	return nil
}

// until consumes up to and with mark, and hands on the bytes before it.
func (s *Scanner) until(mark []byte, inside string, take func([]byte, bool) int) error {
	for {
		w := s.buf[s.pos:s.end]
		if i := bytes.Index(w, mark); i >= 0 {
			take(w[:i], true)
			s.pos += i + len(mark)
			return s.textBound()
		}
		if keep := len(mark) - 1; len(w) > keep {
			s.pos += take(w[:len(w)-keep], false)
		}
		if err := s.textBound(); err != nil {
			return err
		}
		if err := s.more(); err != nil {
			return s.inputError(err, inside)
		}
	}
}

func ignore(b []byte, _ bool) int { return len(b) }

func (s *Scanner) comment() error {
	if err := s.until([]byte("--"), "a comment", ignore); err != nil {
		return err
	}
	if err := s.need(1); err != nil {
		return s.inputError(err, "a comment")
	}
	if s.buf[s.pos] == '>' {
		s.pos++
		return nil
	}
	if err := s.slip(ErrSyntax, "-- inside a comment"); err != nil {
		return err
	}
	return s.until([]byte("-->"), "a comment", ignore)
}

func (s *Scanner) cdata() error {
	return s.until(cdataEnd, "CDATA", func(b []byte, final bool) int {
		if !s.text.kept {
			s.Stray = s.Stray || len(bytes.TrimSpace(b)) > 0
			return len(b)
		}
		for i := 0; i < len(b); i++ {
			if b[i] != '\r' {
				s.text.bytes = append(s.text.bytes, b[i])
				continue
			}
			if i+1 == len(b) && !final {
				return i
			}
			s.text.bytes = append(s.text.bytes, '\n')
			if i+1 < len(b) && b[i+1] == '\n' {
				i++
			}
		}
		return len(b)
	})
}

// instruction passes over a processing instruction.
func (s *Scanner) instruction() error {
	var target Name
	for {
		w := s.buf[s.pos:s.end]
		i, err := scanName(w, 2, &target)
		if err == nil && len(w) < i+2 {
			err = errMore
		}
		if err == errMore {
			if err := s.more(); err != nil {
				return s.inputError(err, "a processing instruction")
			}
			continue
		}
		if err != nil {
			return s.Failf(ErrSyntax, "processing instruction: %s", err)
		}
		if len(target.Prefix) > 0 || bytes.EqualFold(target.Local, []byte("xml")) {
			return s.Failf(ErrSyntax, "a processing instruction cannot be called %s here", Clip(target.Raw()))
		}
		if !IsSpace(w[i]) && string(w[i:i+2]) != "?>" {
			return s.Failf(ErrSyntax, "no blank after the name of the processing instruction %s", Clip(target.Raw()))
		}
		s.pos += i
		return s.until([]byte("?>"), "a processing instruction", ignore)
	}
}

// IsSpace tells white space of XML.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// Clip shortens quotations in messages, at a border of characters.
func Clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "..."
}
