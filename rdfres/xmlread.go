package rdfres

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	xmlNS       = "http://www.w3.org/XML/1998/namespace"
	maxEntity   = 4 << 10 // bytes that an entity may stand for
	maxEntities = 1000
)

// xmlReader gives the elements of an XML document with their namespaces, base
// and language in scope. It stands on the raw tokens of encoding/xml and adds
// what those leave open: matching tags, one root, declared prefixes, and the
// general entities of the internal subset (OWL files are full of them).
type xmlReader struct {
	dec   *xml.Decoder
	opts  ReadOptions
	scope []xmlScope // one for each open element
	done  bool       // the root was closed
}

// xmlScope is what an open element has, by itself or from around it.
type xmlScope struct {
	raw        xml.Name // prefix and local name, as written
	name       xml.Name // namespace and local name
	base, lang string
	space      []xmlPrefix // declared so far; the last one counts
	line, col  int
}

type xmlPrefix struct{ prefix, uri string }

// element is a start tag as RDF/XML sees it.
type element struct {
	name  xml.Name
	attrs []xml.Attr // without xmlns and xml:*
	raw   []xml.Attr // as written
}

func newXMLReader(r io.Reader, o ReadOptions) *xmlReader {
	if o.MaxBytes > 0 {
		r = &boundedReader{r: r, left: o.MaxBytes, err: tooLarge(RDFXML, o)}
	}
	b := bufio.NewReader(&valueSpaces{r: r})
	if head, _ := b.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		b.Discard(3)
	}
	x := &xmlReader{dec: xml.NewDecoder(b), opts: o}
	x.dec.CharsetReader = charset
	x.dec.Entity = map[string]string{}
	return x
}

// boundedReader gives err instead of the byte after the last allowed one.
type boundedReader struct {
	r    io.Reader
	left int64
	err  error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.err
	}
	return n, err
}

// charset reads the encodings that every processor of ours has without a table.
func charset(name string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(name) {
	case "utf-8", "utf8", "us-ascii", "ascii":
		return in, nil
	case "iso-8859-1", "latin1":
		return &latin1Reader{in: bufio.NewReader(in)}, nil
	}
	return nil, fmt.Errorf("the encoding %q cannot be read; UTF-8 and ISO-8859-1 can", name)
}

type latin1Reader struct{ in *bufio.Reader }

func (l *latin1Reader) Read(p []byte) (int, error) {
	n := 0
	for n+2 <= len(p) {
		c, err := l.in.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		n += copy(p[n:], string(rune(c)))
		if l.in.Buffered() == 0 {
			break
		}
	}
	return n, nil
}

func (x *xmlReader) errorf(format string, args ...any) error {
	line, col := x.dec.InputPos()
	return &SyntaxError{Name: x.opts.Name, Format: RDFXML, Line: line, Column: col, Reason: fmt.Sprintf(format, args...)}
}

// token is the next token: a StartElement with its scope pushed, an EndElement
// whose scope is still there until pop, CharData, Comment or ProcInst. io.EOF
// after the end of the root.
func (x *xmlReader) token() (xml.Token, error) {
	for {
		t, err := x.dec.RawToken()
		if err != nil {
			return nil, x.failed(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if x.done {
				return nil, x.errorf("the document has a second root element <%s>", rawName(t.Name))
			}
			return t, x.push(t)
		case xml.EndElement:
			if len(x.scope) == 0 {
				return nil, x.errorf("</%s> closes nothing", rawName(t.Name))
			}
			if top := &x.scope[len(x.scope)-1]; top.raw != t.Name {
				return nil, x.errorf("</%s> stands where <%s> of line %d must be closed", rawName(t.Name), rawName(top.raw), top.line)
			}
			return t, nil
		case xml.CharData:
			if len(x.scope) == 0 && len(bytes.TrimSpace(t)) > 0 {
				return nil, x.errorf("text stands outside the root element")
			}
			return t, nil
		case xml.Directive:
			if len(x.scope) > 0 || x.done {
				return nil, x.errorf("a declaration stands inside the document")
			}
			if err := x.doctype(t); err != nil {
				return nil, err
			}
		case xml.ProcInst:
			if t.Target != "xml" {
				return t, nil
			}
		default:
			return t, nil
		}
	}
}

func (x *xmlReader) failed(err error) error {
	var bad *xml.SyntaxError
	switch {
	case err == io.EOF && len(x.scope) > 0:
		return x.errorf("the document ends inside <%s> of line %d", rawName(x.scope[len(x.scope)-1].raw), x.scope[len(x.scope)-1].line)
	case err == io.EOF && !x.done:
		return x.errorf("the document has no root element")
	case err == io.EOF:
		return io.EOF
	case errors.As(err, &bad):
		return x.errorf("%s", bad.Msg)
	case errors.Is(err, ErrTooLarge):
		return err
	}
	line, _ := x.dec.InputPos()
	if strings.HasPrefix(err.Error(), "xml: ") {
		return x.errorf("%s", strings.TrimPrefix(err.Error(), "xml: "))
	}
	return readError(RDFXML, x.opts, line, err)
}

func rawName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// push opens an element: its namespaces, base and language.
func (x *xmlReader) push(t xml.StartElement) error {
	if len(x.scope) >= maxNesting {
		return x.errorf("elements are nested more than %d deep", maxNesting)
	}
	s := xmlScope{raw: t.Name, base: x.opts.Base}
	if n := len(x.scope); n > 0 {
		up := &x.scope[n-1]
		s.base, s.lang, s.space = up.base, up.lang, up.space[:len(up.space):len(up.space)]
	}
	s.line, s.col = x.dec.InputPos()
	for i, a := range t.Attr {
		for _, b := range t.Attr[:i] {
			if a.Name == b.Name {
				return x.errorf("the attribute %s stands twice", rawName(a.Name))
			}
		}
		switch {
		case a.Name.Space == "xmlns":
			if a.Value == "" || a.Name.Local == "xmlns" || a.Name.Local == "xml" && a.Value != xmlNS {
				return x.errorf("the prefix %q cannot be declared so", a.Name.Local)
			}
			s.space = append(s.space, xmlPrefix{a.Name.Local, a.Value})
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			s.space = append(s.space, xmlPrefix{"", a.Value})
		case a.Name.Space == "xml" && a.Name.Local == "base":
			base, ok := ResolveIRI(s.base, a.Value)
			if !ok {
				return x.errorf("xml:base %q is relative and there is no base", cut(a.Value))
			}
			s.base = base
		case a.Name.Space == "xml" && a.Name.Local == "lang":
			if a.Value != "" && scanLang(a.Value) != len(a.Value) {
				return x.errorf("xml:lang %q is no language tag", cut(a.Value))
			}
			s.lang = a.Value
		}
	}
	name, ok := s.resolve(t.Name, true)
	if !ok {
		return x.errorf("the prefix of <%s> is not declared", rawName(t.Name))
	}
	s.name = name
	x.scope = append(x.scope, s)
	return nil
}

// resolve puts the namespace in the place of the prefix. An attribute without
// a prefix has no namespace.
func (s *xmlScope) resolve(n xml.Name, element bool) (xml.Name, bool) {
	if n.Space == "xml" {
		return xml.Name{Space: xmlNS, Local: n.Local}, true
	}
	if n.Space == "" && !element {
		return n, true
	}
	for i := len(s.space) - 1; i >= 0; i-- {
		if s.space[i].prefix == n.Space {
			return xml.Name{Space: s.space[i].uri, Local: n.Local}, true
		}
	}
	return n, n.Space == ""
}

func (x *xmlReader) top() *xmlScope { return &x.scope[len(x.scope)-1] }

func (x *xmlReader) pop() {
	x.scope = x.scope[:len(x.scope)-1]
	x.done = len(x.scope) == 0
}

// element gives the start tag that token has just given, its names resolved.
func (x *xmlReader) element(t xml.StartElement) (element, error) {
	e := element{name: x.top().name, raw: t.Attr}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" || a.Name.Space == "xml" {
			continue
		}
		name, ok := x.top().resolve(a.Name, false)
		if !ok {
			return e, x.errorf("the prefix of the attribute %s is not declared", rawName(a.Name))
		}
		if name.Space == "" {
			if len(name.Local) >= 3 && strings.EqualFold(name.Local[:3], "xml") {
				continue // reserved
			}
			switch name.Local {
			case "about", "ID", "resource", "parseType", "type": // as before namespaces
				name.Space = rdfNS
			default:
				return e, x.errorf("the attribute %s has no namespace", name.Local)
			}
		}
		for _, b := range e.attrs {
			if b.Name == name {
				return e, x.errorf("the attribute %s stands twice", rawName(a.Name))
			}
		}
		e.attrs = append(e.attrs, xml.Attr{Name: name, Value: a.Value})
	}
	return e, nil
}

// doctype takes the general entities from <!DOCTYPE name [ ... ]>. External
// ones are left out: a reference to them is an error.
func (x *xmlReader) doctype(d xml.Directive) error {
	text := string(d)
	for {
		i := strings.Index(text, "<!ENTITY")
		if i < 0 {
			return nil
		}
		text = text[i+len("<!ENTITY"):]
		rest := strings.TrimLeft(text, " \t\r\n")
		if rest == text || strings.HasPrefix(rest, "%") {
			continue
		}
		end := strings.IndexAny(rest, " \t\r\n")
		if end <= 0 {
			return x.errorf("an entity declaration is cut short")
		}
		name := rest[:end]
		rest = strings.TrimLeft(rest[end:], " \t\r\n")
		if rest == "" || rest[0] != '"' && rest[0] != '\'' {
			continue // SYSTEM or PUBLIC
		}
		end = strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return x.errorf("the entity %s has no closing quote", name)
		}
		text = rest[end+2:]
		if _, ok := x.dec.Entity[name]; ok {
			continue // the first declaration counts
		}
		value, err := x.entityValue(name, rest[1:end+1])
		if err != nil {
			return err
		}
		if len(x.dec.Entity) >= maxEntities {
			return x.errorf("more than %d entities", maxEntities)
		}
		x.dec.Entity[name] = value
	}
}

// entityValue expands what an entity's value refers to.
func (x *xmlReader) entityValue(name, text string) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '&')
		if i < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		end := strings.IndexByte(text[i:], ';')
		if end < 0 {
			return "", x.errorf("the entity %s has an & without ;", name)
		}
		ref := text[i+1 : i+end]
		text = text[i+end+1:]
		value, ok := x.reference(ref)
		if !ok {
			return "", x.errorf("the entity %s refers to &%s;, which is not declared before it", name, cut(ref))
		}
		b.WriteString(value)
		if b.Len() > maxEntity {
			break
		}
	}
	if b.Len() > maxEntity {
		return "", x.errorf("the entity %s stands for more than %d bytes", name, maxEntity)
	}
	if strings.Contains(b.String(), "<") {
		return "", x.errorf("the entity %s holds markup, which cannot be read", name)
	}
	return b.String(), nil
}

func (x *xmlReader) reference(ref string) (string, bool) {
	if strings.HasPrefix(ref, "#") {
		base, digits := 10, ref[1:]
		if strings.HasPrefix(digits, "x") {
			base, digits = 16, digits[1:]
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if err != nil || n > 0x10ffff || !isXMLChar(rune(n)) {
			return "", false
		}
		return string(rune(n)), true
	}
	switch ref {
	case "amp":
		return "&", true
	case "gt":
		return ">", true
	case "quot":
		return `"`, true
	case "apos":
		return "'", true
	}
	value, ok := x.dec.Entity[ref]
	return value, ok
}

// isXMLChar is Char of XML 1.0.
func isXMLChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}

// isNCName tells whether s is a name without a colon (Namespaces in XML 1.0).
func isNCName(s string) bool {
	for i, r := range s {
		if i == 0 && !isNCNameStart(r) || !isNCNameStart(r) && !(r == '-' || r == '.' || r >= '0' && r <= '9' || r == 0xb7 || r >= 0x300 && r <= 0x36f || r == 0x203f || r == 0x2040) {
			return false
		}
	}
	return s != ""
}

// isNCNameStart is NameStartChar of XML 1.0 without the colon.
func isNCNameStart(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || isPNCharsBase(r)
}
