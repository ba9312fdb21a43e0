package resourcesync

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// This file, xmlinput.go, xmltag.go, xmltext.go and xmlname.go are a small, strict,
// streaming tokenizer for XML 1.0 with namespaces, in UTF-8, without DTDs. It
// exists because lists have millions of entries and encoding/xml is many times
// slower. What it accepts, encoding/xml accepts and reads the same (a fuzz test
// holds them against each other); what it refuses beyond that is: DTDs,
// encodings other than UTF-8, undeclared prefixes, doubled attributes, more than
// one root, and what passes its bounds.

// nsID is a namespace that matters here.
type nsID uint8

const (
	nsNone nsID = iota
	nsSitemap
	nsRS
	nsDLib // the rs namespace of the D-Lib form
	nsBridge
	nsXML
	nsXMLNS
	nsOther
)

func namespaceID(uri string) nsID {
	switch uri {
	case "":
		return nsNone
	case NamespaceSitemap:
		return nsSitemap
	case NamespaceRS:
		return nsRS
	case namespaceDLib:
		return nsDLib
	case NamespaceBridge:
		return nsBridge
	case namespaceXML:
		return nsXML
	case namespaceXMLNS:
		return nsXMLNS
	}
	return misspeltNamespace(uri)
}

// misspeltNamespace knows what people write for a namespace: https, no www, a slash too
// few or too many, the one of before 2006.
func misspeltNamespace(uri string) nsID {
	s := strings.TrimSuffix(strings.ToLower(uri), "/")
	for _, before := range [...]string{"http://", "https://", "www."} {
		s = strings.TrimPrefix(s, before)
	}
	switch s {
	case "sitemaps.org/schemas/sitemap/0.9", "google.com/schemas/sitemap/0.84", "google.com/schemas/sitemap/0.9", "sitemaps.org/schemas/sitemap":
		return nsSitemap
	case "openarchives.org/rs/terms":
		return nsRS
	}
	return nsOther
}

// qname is a name in a tag; its slices are good until the next token.
type qname struct {
	prefix, local []byte
	ns            nsID
	uri           string
}

// raw is the name as written.
func (n *qname) raw() string {
	if len(n.prefix) == 0 {
		return string(n.local)
	}
	return string(n.prefix) + ":" + string(n.local)
}

// attr is an attribute; its slices are good until the next token.
type attr struct {
	qname
	value  []byte // decoded and normalized
	decode bool   // value is still to be decoded
}

type binding struct {
	prefix, uri string
	ns          nsID
	depth       int // of the element that made it
}

type token uint8

const (
	tokenEOF token = iota
	tokenStart
	tokenEnd
)

// Bounds that are not options.
const (
	maxDepth = 64
	maxAttrs = 256
)

// scanner is the tokenizer.
type scanner struct {
	input
	name  qname  // of the start tag
	attrs []attr // of the start tag

	keep                bool   // text is collected
	text                []byte // collected text
	stray               bool   // there was text where text is not collected; the caller resets it
	forgive, undeclared bool   // the prefix rs need not be declared; it was not

	pass []byte // empty elements whose tags begin so are passed over; none: all are read

	open     []byte // names of open elements, one after the other
	openEnds []int
	bindings []binding
	selfEnd  bool // the start tag was an empty element: its end comes next
	rooted   bool // the root element has begun
}

func newScanner(r io.Reader, location string, maxBytes int64, maxValue int) *scanner {
	return &scanner{
		input: input{src: r, location: location, maxBytes: maxBytes, maxValue: maxValue, line: 1, buf: make([]byte, 4096)},
		bindings: []binding{
			{prefix: "xml", uri: namespaceXML, ns: nsXML},
			{prefix: "", uri: "", ns: nsNone},
		},
	}
}

// depth is the number of open elements.
func (s *scanner) depth() int { return len(s.openEnds) }

// next gives the next start or end tag. Text before it is collected (keep) or
// only checked.
func (s *scanner) next() (token, error) {
	if s.selfEnd {
		s.selfEnd = false
		s.pop()
		return tokenEnd, nil
	}
	if s.base == 0 && s.pos == 0 && s.end == 0 {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	for {
		if err := s.skipText(); err != nil {
			if err == io.EOF && s.rooted && s.depth() == 0 {
				s.tok = s.pos
				return tokenEOF, nil
			}
			return 0, s.inputError(err, s.where())
		}
		s.tok = s.pos
		if err := s.need(2); err != nil {
			return 0, s.inputError(err, "a tag")
		}
		switch s.buf[s.pos+1] {
		case '/':
			return tokenEnd, s.endTag()
		case '?':
			if err := s.instruction(); err != nil {
				return 0, err
			}
		case '!':
			if err := s.declaration(); err != nil {
				return 0, err
			}
		default:
			if len(s.pass) == 0 || !s.passed() {
				return tokenStart, s.startTag()
			}
		}
	}
}

// passed passes over an empty element that need not be read, where its end is seen at
// once: no single quotes, and no < or > in a value.
func (s *scanner) passed() bool {
	w := s.buf[s.pos:s.end]
	if !bytes.HasPrefix(w, s.pass) {
		return false
	}
	n := bytes.IndexByte(w, '>')
	if n < 0 {
		return false
	}
	tag := w[1:n]
	if tag[len(tag)-1] != '/' || bytes.IndexByte(tag, '<') >= 0 || bytes.IndexByte(tag, '\'') >= 0 || bytes.Count(tag, doubleQuote)%2 != 0 {
		return false
	}
	s.pos += n + 1
	return true
}

var doubleQuote = []byte{'"'}

// where names what the document ended in.
func (s *scanner) where() string {
	if s.depth() == 0 {
		return "the document before its root element"
	}
	return "<" + string(s.top()) + ">"
}

// skip passes over the element whose start tag was just read.
func (s *scanner) skip() error {
	keep, stray := s.keep, s.stray
	s.keep = false
	for depth := s.depth(); s.depth() >= depth; {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	s.keep, s.stray = keep, stray
	return nil
}

// leaf gives the text of the element whose start tag was just read. An element
// inside is an error, since part of the value might be lost.
func (s *scanner) leaf() ([]byte, error) {
	s.keep = true
	s.text = s.text[:0]
	tok, err := s.next()
	s.keep = false
	if err != nil {
		return nil, err
	}
	if tok == tokenStart {
		return nil, s.failf(ErrInvalid, "<%s> stands inside <%s>, which holds text only", s.name.raw(), s.parent())
	}
	return s.text, nil
}

func (s *scanner) endTag() error {
	for {
		w := s.buf[s.pos:s.end]
		if i := bytes.IndexByte(w, '>'); i >= 0 {
			name := bytes.TrimRight(w[2:i], " \t\r\n")
			if s.depth() == 0 {
				return s.failf(ErrSyntax, "</%s> ends nothing", clip(string(name)))
			}
			if !bytes.Equal(name, s.top()) {
				return s.failf(ErrSyntax, "</%s> where </%s> was expected", clip(string(name)), clip(string(s.top())))
			}
			s.pos += i + 1
			s.pop()
			return nil
		}
		if err := s.more(); err != nil {
			return s.inputError(err, "an end tag")
		}
	}
}

func (s *scanner) top() []byte { return s.nth(len(s.openEnds) - 1) }

// parent is the name of the element around the one just opened.
func (s *scanner) parent() string {
	if i := len(s.openEnds) - 2; i >= 0 {
		return string(s.nth(i))
	}
	return ""
}

func (s *scanner) nth(i int) []byte {
	start := 0
	if i > 0 {
		start = s.openEnds[i-1]
	}
	return s.open[start:s.openEnds[i]]
}

func (s *scanner) pop() {
	depth := len(s.openEnds)
	s.open = s.open[:len(s.open)-len(s.top())]
	s.openEnds = s.openEnds[:depth-1]
	n := len(s.bindings)
	for s.bindings[n-1].depth == depth {
		n--
	}
	if n < len(s.bindings) {
		s.bindings = slices.Delete(s.bindings, n, len(s.bindings))
	}
}
