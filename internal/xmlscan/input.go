package xmlscan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// input is the tokenizer's window on the document: buf[pos:end] is read,
// checked to be characters of XML, and not consumed.
type input struct {
	src io.Reader
	o   Options

	buf      []byte
	tok      int // begin of the current token
	pos, end int
	tail     int   // buf[end:tail] is read but not checked, or is bad
	base     int64 // bytes before buf[0]
	read     int64
	bad      error // waits at end: io.EOF, a read error, a bad character

	line    int // line of buf[counted]
	counted int
}

const fullBuffer = 64 << 10

// more enlarges the window; the bytes before pos are let go. It gives io.EOF, or
// a DocumentError, when there is nothing more.
func (in *input) more() error {
	if in.bad != nil {
		return in.bad
	}
	in.lineAt(in.pos)
	if in.pos > 0 {
		copy(in.buf, in.buf[in.pos:in.tail])
		in.base += int64(in.pos)
		in.end -= in.pos
		in.tail -= in.pos
		in.counted -= in.pos
		in.pos, in.tok = 0, 0
	}
	want := max(512, in.end) // at least double: a token is looked at a few times only
	if in.end > 4*in.o.MaxValue {
		return in.Fail(ErrLimit, fmt.Sprintf("a tag is longer than %d bytes", 4*in.o.MaxValue))
	}
	if size := max(in.tail+want, min(2*len(in.buf), fullBuffer)); size > len(in.buf) && in.base+int64(in.end) > 0 {
		in.buf = append(make([]byte, 0, size), in.buf[:in.tail]...)[:size]
	}
	before := in.end
	in.fill(want)
	in.check()
	if in.end == before {
		return in.bad
	}
	return nil
}

// fill reads at least want bytes, or up to the end of the input.
func (in *input) fill(want int) {
	for got, idle := 0, 0; got < want && in.bad == nil; {
		n, err := in.src.Read(in.buf[in.tail:])
		got += n
		in.tail += n
		in.read += int64(n)
		switch {
		case err == io.EOF:
			in.bad = io.EOF
		case err != nil:
			in.bad = in.o.Fail(0, err, fmt.Sprintf("reading failed after %d bytes: %s", in.read, err))
		case in.o.MaxBytes > 0 && in.read > in.o.MaxBytes:
			in.bad = in.Fail(ErrLimit, fmt.Sprintf("the document is longer than %d bytes", in.o.MaxBytes))
		case n > 0:
			idle = 0
		default:
			if idle++; idle == 100 {
				in.bad = in.o.Fail(0, io.ErrNoProgress, "reading gives neither bytes nor an error")
			}
		}
		if in.tail == len(in.buf) {
			return
		}
	}
}

// check moves end over the characters of XML.
func (in *input) check() {
	n, ok := validXML(in.buf[in.end:in.tail])
	in.end += n
	if ok && (in.end == in.tail || in.bad == nil) {
		return
	}
	if rest := in.buf[in.end:in.tail]; !ok || in.bad == io.EOF {
		r, size := utf8.DecodeRune(rest)
		kind, what := ErrSyntax, fmt.Sprintf("the character %U is not allowed in XML", r)
		if r == utf8.RuneError && size <= 1 {
			kind, what = ErrNotRead, fmt.Sprintf("byte %#02x is not UTF-8", rest[0])
		}
		in.bad = in.o.Fail(in.lineHere(in.end), kind, what)
	}
}

// validXML gives the number of bytes with whole characters of XML. It stops, and is still
// ok, at an incomplete character.
func validXML(b []byte) (n int, ok bool) {
	const high, low = 0x8080808080808080, 0x2020202020202020
	for n < len(b) {
		if n+8 <= len(b) {
			if x := binary.LittleEndian.Uint64(b[n:]); (x|((x-low)&^x))&high == 0 {
				n += 8
				continue
			}
		}
		c := b[n]
		switch {
		case c >= 0x20 && c < utf8.RuneSelf, c == '\n', c == '\t', c == '\r':
			n++
		case c < 0x20:
			return n, false
		default:
			r, size := utf8.DecodeRune(b[n:])
			if r == utf8.RuneError && size == 1 {
				return n, !utf8.FullRune(b[n:])
			}
			if r == 0xFFFE || r == 0xFFFF {
				return n, false
			}
			n += size
		}
	}
	return n, true
}

// BytesRead is the number of bytes taken from the reader.
func (in *input) BytesRead() int64 { return in.read }

// need brings n bytes into the window.
func (in *input) need(n int) error {
	for in.end-in.pos < n {
		if err := in.more(); err != nil {
			return err
		}
	}
	return nil
}

// lineAt gives the line of buf[i] and remembers it; i must not go back.
func (in *input) lineAt(i int) int {
	if i > in.counted {
		in.line += bytes.Count(in.buf[in.counted:i], newline)
		in.counted = i
	}
	return in.line
}

// lineHere gives the line of buf[i] for any i from counted on.
func (in *input) lineHere(i int) int {
	return in.line + bytes.Count(in.buf[min(in.counted, i):i], newline)
}

var newline = []byte{'\n'}

const space = " \t\r\n"

// Line is the first line of the current token.
func (in *input) Line() int { return in.lineAt(in.tok) }

func (in *input) Fail(kind error, message string) error {
	return in.o.Fail(in.Line(), kind, message)
}

func (in *input) Failf(kind error, format string, args ...any) error {
	return in.Fail(kind, fmt.Sprintf(format, args...))
}

// slip forgives something, if the caller does.
func (in *input) slip(kind error, message string) error {
	if in.o.Slip == nil {
		return in.Fail(kind, message)
	}
	in.o.Slip(kind, message)
	return nil
}

// inputError makes an error of the result of more: the end of the input means a
// document cut short.
func (in *input) inputError(err error, inside string) error {
	if err != io.EOF {
		return err
	}
	if in.read == 0 {
		return in.o.Fail(0, ErrSyntax, "the document is empty")
	}
	return in.o.Fail(in.lineHere(in.end), ErrSyntax, fmt.Sprintf("the document ends inside %s after %d bytes: it was cut short", inside, in.read))
}

// begin looks at the first bytes: byte order marks, the XML declaration.
func (in *input) begin() error {
	in.fill(4)
	in.check()
	if in.end >= 3 && string(in.buf[:3]) == "\xef\xbb\xbf" {
		in.pos = 3
	}
	for in.end-in.pos < 6 {
		if err := in.more(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	w := in.buf[in.pos:in.end]
	if string(w[:5]) != "<?xml" || !IsSpace(w[5]) {
		return nil
	}
	for {
		w = in.buf[in.pos:in.end]
		if i := bytes.Index(w, []byte("?>")); i >= 0 {
			err := in.xmlDeclaration(string(w[5:i]))
			in.pos += i + 2
			return err
		}
		if len(w) > 1024 {
			return in.Fail(ErrSyntax, "the XML declaration does not end")
		}
		if err := in.more(); err != nil {
			return in.inputError(err, "the XML declaration")
		}
	}
}

func (in *input) xmlDeclaration(s string) error {
	values := map[string]string{}
	order := ""
	for {
		s = strings.TrimLeft(s, space)
		if s == "" {
			break
		}
		name, rest, ok := strings.Cut(s, "=")
		name, rest = strings.Trim(name, space), strings.TrimLeft(rest, space)
		if !ok || rest == "" || rest[0] != '"' && rest[0] != '\'' {
			return in.Fail(ErrSyntax, "the XML declaration is broken")
		}
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return in.Fail(ErrSyntax, "the XML declaration is broken")
		}
		values[name] = rest[1 : 1+end]
		order += name + " "
		s = rest[2+end:]
		if s != "" && !IsSpace(s[0]) {
			return in.Fail(ErrSyntax, "the XML declaration is broken")
		}
	}
	switch order {
	case "version ", "version encoding ", "version standalone ", "version encoding standalone ":
	default:
		return in.Fail(ErrSyntax, "the XML declaration is broken: want version, encoding, standalone in this order")
	}
	switch v := values["version"]; {
	case v == "1.0":
	case v == "1.1" && in.o.Slip != nil:
		in.o.Slip(ErrNotRead, "XML version 1.1 is read as 1.0")
	default:
		return in.Failf(ErrSyntax, "XML version %q; only 1.0 is read", Clip(v))
	}
	if e, ok := values["encoding"]; ok {
		switch strings.ToLower(e) {
		case "utf-8", "utf8", "us-ascii", "ascii":
		default:
			return in.Failf(ErrNotRead, "the document is declared to be in %q; want UTF-8", Clip(e))
		}
	}
	return nil
}
