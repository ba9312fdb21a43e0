package chars

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/transform"
)

// Error is a fault in the characters of a text, independent of its format.
type Error string

func (e Error) Error() string { return string(e) }

// ToUTF8 reads text in a charset (a name of IANA's) as UTF-8. Text outside the
// charset is an error, never U+FFFD. "" is UTF-8, which the readers check themselves.
func ToUTF8(r io.Reader, charset string) (io.Reader, error) {
	name := CharsetName(charset)
	switch name {
	case "":
		return r, nil
	case "utf-16":
		return &utf16Reader{in: bufio.NewReader(r), bom: true}, nil
	case "utf-16be":
		return &utf16Reader{in: bufio.NewReader(r), order: binary.BigEndian}, nil
	case "utf-16le":
		return &utf16Reader{in: bufio.NewReader(r), order: binary.LittleEndian}, nil
	}
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return nil, Error(fmt.Sprintf("the charset %q cannot be read", Cut(charset)))
	}
	return &tableReader{r: transform.NewReader(r, enc.NewDecoder()), charset: name}, nil
}

// CharsetName is the name in lower case, "" for UTF-8.
func CharsetName(charset string) string {
	switch name := strings.ToLower(strings.Trim(charset, ` "'`)); name {
	case "utf-8", "utf8":
		return ""
	case "ascii":
		return "us-ascii"
	default:
		return name
	}
}

// tableReader refuses bytes without a character in the charset: its decoder gives U+FFFD,
// a character in none of the charsets with a table.
type tableReader struct {
	r       io.Reader
	charset string
	seen    int // bytes of U+FFFD at the end so far
}

func (t *tableReader) Read(p []byte) (int, error) {
	const bad = "\uFFFD"
	n, err := t.r.Read(p)
	for _, c := range p[:n] {
		switch {
		case c == bad[t.seen]:
			t.seen++
		case c == bad[0]:
			t.seen = 1
		default:
			t.seen = 0
		}
		if t.seen == len(bad) {
			return 0, Error(fmt.Sprintf("a byte is no character of %s", t.charset))
		}
	}
	return n, err
}

// utf16Reader decodes UTF-16. The byte order is told by a byte order mark, or is given;
// without either it is big-endian (RFC 2781).
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	bom   bool
	rest  []byte
	buf   [utf8.UTFMax]byte
}

func (u *utf16Reader) Read(p []byte) (n int, err error) {
	if u.bom {
		u.bom, u.order = false, binary.BigEndian
		head, _ := u.in.Peek(2) // a shorter text is an error below
		switch string(head) {
		case "\xff\xfe":
			u.order = binary.LittleEndian
			fallthrough
		case "\xfe\xff":
			_, _ = u.in.Discard(2) // both are there
		}
	}
	for n < len(p) {
		if len(u.rest) == 0 {
			if n > 0 && u.in.Buffered() < 4 {
				return n, nil
			}
			r, err := u.rune()
			if err != nil {
				if n > 0 && err == io.EOF {
					return n, nil
				}
				return n, err
			}
			u.rest = u.buf[:utf8.EncodeRune(u.buf[:], r)]
		}
		k := copy(p[n:], u.rest)
		n, u.rest = n+k, u.rest[k:]
	}
	return n, nil
}

func (u *utf16Reader) rune() (rune, error) {
	first, err := u.unit()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	second, err := u.unit()
	if err != nil && err != io.EOF {
		return 0, err
	}
	r := utf16.DecodeRune(first, second)
	if err == io.EOF || r == utf8.RuneError {
		return 0, Error(fmt.Sprintf("the surrogate U+%04X stands alone, which is no UTF-16", first))
	}
	return r, nil
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	_, err := io.ReadFull(u.in, b[:])
	if err == io.ErrUnexpectedEOF {
		return 0, Error("the text ends within a character of UTF-16")
	}
	return rune(u.order.Uint16(b[:])), err
}
