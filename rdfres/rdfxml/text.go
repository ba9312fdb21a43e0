package rdfxml

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// xmlText reads the characters of an XML document: its encoding is found as XML 1.0
// (appendix F) and RFC 7303 have it, forbidden characters are refused, and line ends are \n.
type xmlText struct {
	in        *bufio.Reader
	line, col int // of the character read last
	cr        bool
	is        string // UTF-8 or UTF-16, if the first bytes tell it
}

var xmlEncoding = regexp.MustCompile(`^<\?xml[ \t\r\n][^>]*?[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z][A-Za-z0-9._-]*)["']`)

func newXMLText(r io.Reader, charset string) (*xmlText, error) {
	in := bufio.NewReader(r)
	head, _ := in.Peek(1 << 10) // a short document has less
	var err error
	x := &xmlText{line: 1}
	given := chars.CharsetName(charset)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = in.Discard(3) // they are there
		given, x.is = "", "UTF-8"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		given, x.is = "utf-16", "UTF-16"
	case bytes.HasPrefix(head, []byte("<\x00")):
		given, x.is = "utf-16le", "UTF-16"
	case bytes.HasPrefix(head, []byte("\x00<")):
		given, x.is = "utf-16be", "UTF-16"
	case charset == "":
		if m := xmlEncoding.FindSubmatch(head); m != nil {
			if given = string(m[1]); strings.HasPrefix(chars.CharsetName(given), "utf-16") {
				return nil, chars.Error(fmt.Sprintf("the declaration says %s, and the text is not in UTF-16", m[1]))
			}
		}
	}
	if r, err = chars.ToUTF8(in, given); err != nil {
		return nil, err
	}
	x.in = in
	if r != io.Reader(in) {
		x.in = bufio.NewReader(r)
	}
	return x, nil
}

// read gives the next character, or io.EOF.
func (x *xmlText) read() (rune, error) {
	r, n, err := x.in.ReadRune()
	if err != nil {
		return 0, err
	}
	if x.cr {
		if x.cr = false; r == '\n' { // the second half of one line end
			if r, n, err = x.in.ReadRune(); err != nil {
				return 0, err
			}
		}
	}
	if r == '\r' {
		x.cr, r = true, '\n'
	}
	if r == '\n' {
		x.line, x.col = x.line+1, 0
	} else {
		x.col++
	}
	switch {
	case r == utf8.RuneError && n == 1:
		return 0, errNoUTF8
	case !isXMLChar(r):
		return 0, chars.Error(fmt.Sprintf("the character U+%04X cannot stand in XML", r))
	}
	return r, nil
}

// appendPlain appends buffered text without a look: ASCII without markup, line
// ends and the signs of "]]>".
func (x *xmlText) appendPlain(dst []byte) []byte {
	if x.cr {
		return dst
	}
	b, _ := x.in.Peek(x.in.Buffered()) // it is there
	n := 0
	for n < len(b) && b[n] >= ' ' && b[n] < 0x7f && b[n] != '<' && b[n] != '&' && b[n] != ']' && b[n] != '>' {
		n++
	}
	dst = append(dst, b[:n]...)
	_, _ = x.in.Discard(n)
	x.col += n
	return dst
}

const errNoUTF8 = chars.Error("the text is not valid UTF-8, and tells no other encoding")
