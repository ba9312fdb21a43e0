package rdfxml

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

const xmlNS = "http://www.w3.org/XML/1998/namespace"

// xmlReader gives the elements of an XML document with their namespaces, base
// and language in scope: matching tags, one root, declared prefixes.
type xmlReader struct {
	lex   *xmlLexer
	opts  rdfres.ReadOptions
	scope []xmlScope             // one for each open element
	space map[string][]xmlSpaces // by prefix, the one in force last
	named int                    // namespaces in space
	held  int64                  // bytes of bases
	done  bool                   // the root was closed
}

// xmlSpaces is a namespace, and the number of open elements at its declaration.
type xmlSpaces struct {
	uri   string
	depth int
}

// xmlScope has the settings of an open element, its own or inherited.
type xmlScope struct {
	raw        xml.Name // prefix and local name, as written
	name       xml.Name // namespace and local name
	base, lang string
	declares   []string // prefixes
	line       int
}

// element is a start tag as RDF/XML sees it.
type element struct {
	name  xml.Name
	attrs []xml.Attr // without xmlns and xml:*
}

func newXMLReader(r io.Reader, o rdfres.ReadOptions) (*xmlReader, error) {
	if o.MaxBytes > 0 {
		r = &boundedReader{r: r, left: o.MaxBytes, err: o.TooLarge(rdfres.RDFXML)}
	}
	lex, err := newXMLLexer(r, o)
	return &xmlReader{lex: lex, opts: o, space: map[string][]xmlSpaces{}}, err
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

func (x *xmlReader) errorf(format string, args ...any) error { return x.lex.errorf(format, args...) }

// token is the next token: a StartElement with its scope pushed, an EndElement
// whose scope is still there until pop, CharData, Comment or ProcInst. io.EOF
// after the end of the root.
func (x *xmlReader) token() (xml.Token, error) {
	t, err := x.lex.token()
	if err == io.EOF {
		return nil, x.ended()
	}
	if err != nil {
		return nil, err
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
		if top := x.top(); top.raw != t.Name {
			return nil, x.errorf("</%s> stands where <%s> of line %d must be closed", rawName(t.Name), rawName(top.raw), top.line)
		}
	case xml.CharData:
		if len(x.scope) == 0 && !isXMLSpace(t) {
			return nil, x.errorf("text stands outside the root element")
		}
	}
	return t, nil
}

func (x *xmlReader) ended() error {
	switch {
	case len(x.scope) > 0:
		return x.errorf("the document ends inside <%s> of line %d", rawName(x.top().raw), x.top().line)
	case !x.done:
		return x.errorf("the document has no root element")
	}
	return io.EOF
}

func rawName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// push opens an element: its namespaces, base and language.
func (x *xmlReader) push(t xml.StartElement) error {
	if len(x.scope) >= syntax.MaxNesting {
		return x.errorf("elements are nested more than %d deep", syntax.MaxNesting)
	}
	s := xmlScope{raw: t.Name, base: x.opts.Base, line: x.lex.text.line}
	if len(x.scope) > 0 {
		s.base, s.lang = x.top().base, x.top().lang
	}
	x.scope = append(x.scope, s)
	top := x.top()
	if twice, ok := twiceNamed(t.Attr); ok {
		return x.errorf("the attribute %s stands twice", rawName(twice))
	}
	for _, a := range t.Attr {
		switch {
		case a.Name.Space == "xmlns":
			if a.Value == "" {
				return x.errorf("the prefix %q cannot be declared so", a.Name.Local)
			}
			if err := x.declare(top, a.Name.Local, a.Value); err != nil {
				return err
			}
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			if err := x.declare(top, "", a.Value); err != nil {
				return err
			}
		case a.Name.Space == "xml" && a.Name.Local == "base":
			base, ok := rdfres.ResolveIRI(top.base, a.Value)
			if !ok {
				return x.errorf("xml:base %q is relative and there is no base", chars.Cut(a.Value))
			}
			top.base = base
			if err := x.hold(len(base)); err != nil {
				return err
			}
		case a.Name.Space == "xml" && a.Name.Local == "lang":
			if a.Value != "" && chars.ScanLang(a.Value) != len(a.Value) {
				return x.errorf("xml:lang %q is no language tag", chars.Cut(a.Value))
			}
			top.lang = a.Value
		}
	}
	name, ok := x.resolve(t.Name, true)
	if !ok {
		return x.errorf("the prefix of <%s> is not declared", rawName(t.Name))
	}
	top.name = name
	return nil
}

const xmlnsNS = "http://www.w3.org/2000/xmlns/"

func (x *xmlReader) declare(s *xmlScope, prefix, uri string) error {
	if prefix == "xmlns" || uri == xmlnsNS || (prefix == "xml") != (uri == xmlNS) {
		return x.errorf("the prefix %q cannot be declared so", prefix)
	}
	x.space[prefix] = append(x.space[prefix], xmlSpaces{uri, len(x.scope)})
	s.declares = append(s.declares, prefix)
	x.named++
	return x.lex.fits(x.named)
}

// hold counts the bytes of bases and names that are kept: relative to a long base a short
// one keeps much.
func (x *xmlReader) hold(n int) error {
	most := x.opts.ExpandsTo(x.lex.length())
	if x.held += int64(n); x.held > most {
		return fmt.Errorf("rdfres: read %s %s: its bases and names expand to more than %d bytes at line %d: %w", rdfres.RDFXML, x.opts.Name, most, x.lex.text.line, rdfres.ErrTooLarge)
	}
	return nil
}

// twiceNamed finds a name of two attributes.
func twiceNamed(attrs []xml.Attr) (twice xml.Name, ok bool) {
	if len(attrs) > 16 {
		order := make([]uint32, len(attrs))
		for i := range order {
			order[i] = uint32(i)
		}
		compare := func(i, j uint32) int {
			a, b := &attrs[i].Name, &attrs[j].Name
			return cmp.Or(strings.Compare(a.Local, b.Local), strings.Compare(a.Space, b.Space))
		}
		slices.SortFunc(order, compare)
		for n := 1; n < len(order); n++ {
			if compare(order[n-1], order[n]) == 0 {
				return attrs[order[n]].Name, true
			}
		}
		return twice, false
	}
	for i, a := range attrs {
		for _, b := range attrs[:i] {
			if a.Name == b.Name {
				return a.Name, true
			}
		}
	}
	return twice, false
}

// resolve puts the namespace in the place of the prefix. An attribute without
// a prefix has no namespace.
func (x *xmlReader) resolve(n xml.Name, element bool) (xml.Name, bool) {
	if n.Space == "xml" {
		return xml.Name{Space: xmlNS, Local: n.Local}, true
	}
	if n.Space == "" && !element {
		return n, true
	}
	if in := x.space[n.Space]; len(in) > 0 {
		return xml.Name{Space: in[len(in)-1].uri, Local: n.Local}, true
	}
	return n, n.Space == ""
}

func (x *xmlReader) top() *xmlScope { return &x.scope[len(x.scope)-1] }

func (x *xmlReader) pop() {
	for _, prefix := range x.top().declares {
		if before := x.space[prefix][:len(x.space[prefix])-1]; len(before) > 0 {
			x.space[prefix] = before
		} else {
			delete(x.space, prefix)
		}
	}
	x.named -= len(x.top().declares)
	x.scope = x.scope[:len(x.scope)-1]
	x.done = len(x.scope) == 0
}

// element gives the start tag of the last token, its names resolved. It takes the room of the tag's
// attributes.
func (x *xmlReader) element(t xml.StartElement) (element, error) {
	e := element{name: x.top().name, attrs: t.Attr[:0]}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" || a.Name.Space == "xml" {
			continue
		}
		name, ok := x.resolve(a.Name, false)
		if !ok {
			return e, x.errorf("the prefix of the attribute %s is not declared", rawName(a.Name))
		}
		if name.Space == "" {
			if len(name.Local) >= 3 && strings.EqualFold(name.Local[:3], "xml") {
				continue // reserved
			}
			switch name.Local {
			case "about", "ID", "resource", "parseType", "type": // as before namespaces
				name.Space = chars.RDF
			default:
				return e, x.errorf("the attribute %s has no namespace", name.Local)
			}
		}
		e.attrs = append(e.attrs, xml.Attr{Name: name, Value: a.Value})
	}
	if twice, ok := twiceNamed(e.attrs); ok {
		return e, x.errorf("the attribute %s of the namespace %s stands twice", twice.Local, chars.Cut(twice.Space))
	}
	return e, nil
}

// isXMLChar is Char of XML 1.0.
func isXMLChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}

// isNCName tells whether s is a name without a colon (Namespaces in XML 1.0).
func isNCName(s string) bool {
	for i, r := range s {
		if i == 0 && !isNCNameStart(r) || !isNCNameRune(r) {
			return false
		}
	}
	return s != ""
}

// isNCNameStart is NameStartChar of XML 1.0 without the colon.
func isNCNameStart(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || chars.IsPNCharsBase(r)
}
