package resourcesync

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

// This file reads the Sitemap protocol's alternatives to XML in UTF-8, and slips before the root
// element forgiven by crawlers: lists of addresses as plain text, feeds, other encodings, white
// space before the XML declaration. Each is turned into an equal XML document, so the rest of the
// package knows one form.

// Slip is a form outside ResourceSync.
type Slip struct {
	Rule int // broken rule, see package check
	Text string
	Feed bool // it is a feed
}

var byteOrderMark = []byte("\xef\xbb\xbf")

var newline = []byte{'\n'}

// firstBytes are looked at to find the form of a document.
const firstBytes = 1024

var declaration = regexp.MustCompile(`^<\?xml[ \t\r\n][^>]*\?>`)
var declaredEncoding = regexp.MustCompile(`[ \t\r\n]encoding[ \t\r\n]*=[ \t\r\n]*["']([^"']*)["']`)

// inXML gives a document as XML in UTF-8, and names its original form. Line numbers stay the same,
// except for a feed.
func inXML(r io.Reader, location, contentType string, maxBytes int64) (_ io.Reader, slips []Slip, err error) {
	head, r := peek(r)
	e, name := wideEncoding(head)
	if e != nil {
		slips = append(slips, Slip{Rule: 2, Text: "the document is in " + name + "; it is read, and the Sitemap protocol wants UTF-8"})
		head, r = peek(decoded(r, e))
	}
	if what := foreign(head); what != "" {
		return nil, nil, &DocumentError{Location: location, Line: 1, Kind: xmlscan.ErrNotRead, Message: what}
	}
	start := bytes.TrimPrefix(head, byteOrderMark)
	mark := len(head) - len(start)
	for blank := true; blank; { // a mark behind white space is no mark, and nothing else either
		trimmed := bytes.TrimPrefix(bytes.TrimLeft(start, " \t\r\n"), byteOrderMark)
		blank = len(trimmed) < len(start)
		start = trimmed
	}
	blank := len(head) - mark - len(start)
	declared := ""
	if d := declaration.Find(start); d != nil {
		if m := declaredEncoding.FindSubmatch(d); m != nil {
			declared = charsetName(string(m[1]))
		}
		if blank > 0 {
			slips = append(slips, Slip{Rule: 1, Text: "there is white space before the XML declaration; it is left out"})
		}
		if declared != "" {
			slips = append(slips, Slip{Rule: 2, Text: "the document is declared to be in \"" + clip(declared) + "\"; it is read, and the Sitemap protocol wants UTF-8"})
		}
		if blank > 0 || declared != "" {
			r = withoutPrefix(r, mark+blank+len(d), bytes.Count(head[:mark+blank+len(d)], newline))
		}
		start = bytes.TrimLeft(start[len(d):], " \t\r\n")
	}
	if e == nil && mark == 0 { // else its bytes tell
		var slip *Slip
		if r, slip = inCharset(r, declared, contentType); slip != nil {
			slips = append(slips, *slip)
		}
	}
	switch kind := feedKind(start); {
	case kind != "":
		list, more := feedAsList(r, location, maxBytes)
		slips = append(slips, more...)
		slips = append(slips, Slip{Rule: 3, Text: "this is " + kind + " feed; it is read as a Change List, since feeds tell what is new and not what there is", Feed: true})
		return list, slips, nil
	case IsTextList(head):
		slips = append(slips, Slip{Rule: 3, Text: "this is a list of addresses as plain text; it is read as a Sitemap that tells nothing else"})
		return &textList{lines: lineReader{r: r}}, slips, nil
	}
	return r, slips, nil
}

// charsetName is the lower-case name of a known encoding, "" for UTF-8 and its subsets.
func charsetName(label string) string {
	label = strings.ToLower(strings.TrimSpace(label))
	e, name := charset.Lookup(label)
	if e == nil || e == encoding.Nop || name == "utf-8" || label == "us-ascii" || label == "ascii" {
		return ""
	}
	return label
}

// encodingOf is the encoding of a name. A document declared as UTF-16 but beginning in ASCII is
// UTF-8: nil.
func encodingOf(name string) encoding.Encoding {
	if name == "" || strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "utf-32") {
		return nil
	}
	e, _ := charset.Lookup(name)
	return e
}

// inCharset decodes a document of bytes by its declaration and its header. Servers tell one
// charset for all their files: if one of the two is UTF-8, the bytes decide. Otherwise the
// header counts (RFC 7303).
func inCharset(r io.Reader, declared, contentType string) (io.Reader, *Slip) {
	_, params, _ := mime.ParseMediaType(contentType)
	label := params["charset"]
	_, name := charset.Lookup(label)
	served, inside := encodingOf(charsetName(label)), encodingOf(declared)
	ascii := strings.HasSuffix(strings.ToLower(label), "ascii") // the former default of text/xml
	var slip *Slip
	if served == nil && label != "" && name != "utf-8" && !ascii {
		slip = &Slip{Rule: 2, Text: fmt.Sprintf("the document is served as %q, which cannot be; it is left out", clip(label))}
	}
	switch {
	case served == inside, served == nil && name != "utf-8":
		if inside != nil {
			r = decoded(r, inside)
		}
		return r, slip
	case served != nil && inside != nil:
		return decoded(r, served), &Slip{Rule: 2, Text: fmt.Sprintf("the document is served as %q and declared to be in %q; the header counts", clip(label), clip(declared))}
	case served != nil:
		return &eitherReader{r: bufio.NewReader(r), other: served}, &Slip{Rule: 2, Text: fmt.Sprintf("the document is served as %q, and declares nothing but UTF-8; its bytes tell which of the two it is", clip(label))}
	}
	return &eitherReader{r: bufio.NewReader(r), other: inside}, &Slip{Rule: 2, Text: fmt.Sprintf("the document is served as %q and declared to be in %q; its bytes tell which of the two it is", clip(label), clip(declared))}
}

// eitherReader reads UTF-8 or another encoding of bytes as UTF-8: the first character outside
// of ASCII tells.
type eitherReader struct {
	r     *bufio.Reader
	other encoding.Encoding
	out   io.Reader // as soon as it is known
}

func (e *eitherReader) Read(b []byte) (int, error) {
	for e.out == nil {
		if _, err := e.r.Peek(1); err != nil {
			return 0, err
		}
		next, err := e.r.Peek(e.r.Buffered())
		if err != nil {
			return 0, err
		}
		if i := bytes.IndexFunc(next, func(c rune) bool { return c >= utf8.RuneSelf }); i != 0 {
			if i < 0 {
				i = len(next)
			}
			return e.r.Read(b[:min(i, len(b))])
		}
		if next, err = e.r.Peek(utf8.UTFMax); err != nil && err != io.EOF {
			return 0, err
		}
		e.out = e.r
		if c, _ := utf8.DecodeRune(next); c == utf8.RuneError {
			e.out = decoded(e.r, e.other)
		}
	}
	return e.out.Read(b)
}

// foreign names a usual mistake instead of an XML document, "" for none.
func foreign(head []byte) string {
	starts := func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }
	switch {
	case starts("\x1f\x8b"):
		return "the document is packed with gzip; it must be unpacked before it is read"
	case starts("PK\x03\x04"):
		return "this is a ZIP file; packages are listed in a dump and opened with their manifest"
	case starts("{"), starts("["):
		return "this looks like JSON, not XML"
	}
	return ""
}

// peek reads the first bytes, and gives a reader from the beginning.
func peek(r io.Reader) ([]byte, io.Reader) {
	head := make([]byte, firstBytes)
	n := 0
	for idle := 0; n < len(head) && idle < 100; idle++ {
		m, err := r.Read(head[n:])
		if n += m; err != nil {
			return head[:n], io.MultiReader(bytes.NewReader(head[:n]), failedReader{err})
		}
		if m > 0 {
			idle = 0
		}
	}
	return head[:n], io.MultiReader(bytes.NewReader(head[:n]), r)
}

type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// withoutPrefix leaves out the first bytes, but not their line ends.
func withoutPrefix(r io.Reader, n, lines int) io.Reader {
	_, err := io.CopyN(io.Discard, r, int64(n))
	if err != nil {
		return failedReader{err}
	}
	return io.MultiReader(strings.NewReader(strings.Repeat("\n", lines)), r)
}

// wideEncoding tells UTF-16 and UTF-32 by their marks, or by how "<" looks in them.
func wideEncoding(head []byte) (encoding.Encoding, string) {
	starts := func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }
	switch {
	case starts("\xff\xfe\x00\x00"), starts("<\x00\x00\x00"):
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "UTF-32"
	case starts("\x00\x00\xfe\xff"), starts("\x00\x00\x00<"):
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "UTF-32"
	case starts("\xff\xfe"), starts("<\x00"), starts("h\x00t\x00"):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "UTF-16"
	case starts("\xfe\xff"), starts("\x00<"), starts("\x00h\x00t"):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "UTF-16"
	}
	return nil, ""
}

var errEncoding = errors.New("its bytes are not of its encoding")

// decoded gives a document in UTF-8. Bytes outside its encoding are an error; the decoder alone
// would put U+FFFD.
func decoded(r io.Reader, e encoding.Encoding) io.Reader {
	return &wholeDecoded{r: e.NewDecoder().Reader(r)}
}

type wholeDecoded struct {
	r    io.Reader
	last [2]byte
}

func (d *wholeDecoded) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	const replaced = "\ufffd"
	joined := string(d.last[:]) + string(b[:min(n, 2)])
	if strings.Contains(joined, replaced) || bytes.Contains(b[:n], []byte(replaced)) {
		return 0, errEncoding
	}
	if n > 1 {
		copy(d.last[:], b[n-2:n])
	} else if n == 1 {
		d.last = [2]byte{d.last[1], b[0]}
	}
	return n, err
}

// RootName gives the local name of the first element in the beginning of a document, or
// "html" behind the declaration of HTML.
func RootName(b []byte) string {
	b = bytes.TrimPrefix(b, byteOrderMark)
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(b, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(b, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(b, []byte("<!")):
			const html = "<!doctype html"
			if len(b) >= len(html) && bytes.EqualFold(b[:len(html)], []byte(html)) {
				return "html"
			}
			end = ">"
			if begin, _, _ := bytes.Cut(b, []byte(end)); bytes.IndexByte(begin, '[') >= 0 { // declarations of its own
				_, b, _ = bytes.Cut(b, []byte("]"))
			}
		case bytes.HasPrefix(b, []byte("<")):
			name := b[1:]
			if i := bytes.IndexAny(name, " \t\r\n/>"); i >= 0 {
				name = name[:i]
			}
			return string(name[bytes.LastIndexByte(name, ':')+1:])
		default:
			return ""
		}
		_, rest, ok := bytes.Cut(b, []byte(end))
		if !ok {
			return ""
		}
		b = rest
	}
}

// DocumentKind names the kind of ResourceSync document, or Sitemap, of which first is the
// beginning, "" for any other body.
func DocumentKind(first []byte) string {
	wide := bytes.HasPrefix(first, []byte{0xfe, 0xff}) || bytes.HasPrefix(first, []byte{0xff, 0xfe})
	if name := RootName(first); name != "urlset" && name != "sitemapindex" && !wide {
		return ""
	}
	h, err := ReadHead(bytes.NewReader(first), ReaderOptions{})
	switch c := h.Meta.Capability; {
	case wide && err != nil:
		return ""
	case c == "":
		return "list or Sitemap"
	default:
		return fmt.Sprintf("document of capability %q", clip(string(c)))
	}
}

// IsFeed tells whether a body begins as a feed of Atom or RSS.
func IsFeed(first []byte) bool { return feedKind(first) != "" }

// feedKind is "an Atom" or "an RSS", "" for neither.
func feedKind(first []byte) string {
	has := func(s string) bool { return bytes.Contains(first, []byte(s)) }
	switch name := RootName(first); {
	case name == "rss", name == "RDF" && (has("purl.org/rss/1.0/") || has("my.netscape.com/rdf/simple/0.9/")):
		return "an RSS"
	case name == "feed" && !has("openarchives.org/rs"):
		return "an Atom"
	}
	return ""
}

// IsTextList tells whether head begins a Sitemap as plain text: every whole line of it is an http
// or https address, empty, or a comment.
func IsTextList(head []byte) bool {
	if e, _ := wideEncoding(head); e != nil {
		head, _ = peek(decoded(bytes.NewReader(head), e))
	}
	head = bytes.TrimPrefix(head[:min(len(head), firstBytes)], byteOrderMark)
	some := false
	for len(head) > 0 {
		line, rest, whole := bytes.Cut(head, newline)
		head = rest
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		if !whole && some { // it may be cut
			break
		}
		u, err := url.Parse(string(line))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || bytes.ContainsAny(line, " \t<>\"") {
			return false
		}
		some = true
	}
	return some
}

// textList gives a list of lines as a Sitemap. Each line but for comments is an entry, so none is
// lost: the reader of the entry finds wrong addresses.
type textList struct {
	lines lineReader
	out   []byte
	begun bool
	err   error
}

func (t *textList) Read(b []byte) (int, error) {
	for len(t.out) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		if !t.begun {
			t.begun = true
			t.out = append(t.out, `<urlset xmlns="`+NamespaceSitemap+`">`...)
		}
		line, err := t.lines.next()
		line = bytes.TrimSpace(bytes.TrimPrefix(line, byteOrderMark))
		if len(line) > 0 && line[0] != '#' {
			t.out = append(t.out, "<url><loc>"...)
			if !utf8.Valid(line) { // no address: do not ask for another one
				line = fmt.Appendf(nil, "not in UTF-8: %q", line)
			}
			t.out = escapeText(t.out, line)
			t.out = append(t.out, "</loc></url>"...)
		}
		if t.err = err; err == io.EOF {
			t.out = append(t.out, "</urlset>"...)
		}
		t.out = append(t.out, '\n')
	}
	n := copy(b, t.out)
	if t.out = t.out[n:]; len(t.out) == 0 {
		t.out = nil
	}
	return n, nil
}

// escapeText escapes characters special to XML. The tokenizer refuses illegal ones.
func escapeText(b, text []byte) []byte {
	for _, c := range text {
		switch c {
		case '&':
			b = append(b, "&amp;"...)
		case '<':
			b = append(b, "&lt;"...)
		case '>':
			b = append(b, "&gt;"...)
		case '"':
			b = append(b, "&quot;"...)
		default:
			b = append(b, c)
		}
	}
	return b
}

// maxLine bounds a line of a list as plain text.
const maxLine = 64 << 10

var errLine = errors.New("a line is longer than 65536 bytes")

// lineReader reads lines with LF, CR or both at their end.
type lineReader struct {
	r     io.Reader
	buf   []byte
	start int
	err   error
}

func (l *lineReader) next() ([]byte, error) {
	for from := l.start; ; {
		if i := bytes.IndexAny(l.buf[from:], "\r\n"); i >= 0 {
			line := l.buf[l.start : from+i]
			l.start = from + i + 1
			return line, nil
		}
		if l.err != nil {
			line := l.buf[l.start:]
			l.start = len(l.buf)
			return line, l.err
		}
		if len(l.buf)-l.start > maxLine {
			return nil, errLine
		}
		l.buf = append(l.buf[:0], l.buf[l.start:]...)
		l.start, from = 0, len(l.buf)
		room := make([]byte, 16<<10)
		n, err := l.r.Read(room)
		l.buf, l.err = append(l.buf, room[:n]...), err
	}
}
