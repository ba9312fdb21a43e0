package xmlscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kinds of errors, for Options.Fail.
var (
	ErrSyntax = errors.New("not well-formed")
	// ErrNotRead is an ErrSyntax: the document may be well-formed, and this reader
	// does not take its encoding or its declarations.
	ErrNotRead = fmt.Errorf("%w for this reader", ErrSyntax)
	ErrElement = errors.New("element in a text")
	ErrLimit   = errors.New("limit exceeded")
)

// Space is a namespace by number, for quick comparisons.
type Space uint8

// The namespaces of XML itself. A caller numbers its own from First on.
const (
	None Space = iota
	XML
	XMLNS
	Other // none of the numbered ones; see Name.URI
	First
)

// The namespaces of XML itself.
const (
	NamespaceXML   = "http://www.w3.org/XML/1998/namespace"
	NamespaceXMLNS = "http://www.w3.org/2000/xmlns/"
)

// Options of New.
type Options struct {
	MaxBytes int64 // of the document; 0: any number
	MaxValue int   // bytes of one attribute or text

	// Spaces gives the number of a namespace, or Other.
	Spaces func(uri string) Space
	// Slip is told of slips without a loss, and they are forgiven: a bare &, a DTD, a
	// prefix without declaration, text behind the root, -- in a comment. kind is ErrSyntax,
	// or ErrNotRead if the document is well-formed. nil: each is an error.
	Slip func(kind error, message string)
	// Undeclared gives the namespace of a name with an undeclared prefix, "" for an error
	// all the same. It is asked only beside Slip.
	Undeclared func(n *Name) string
	// Fail makes an error. Its kind is one of the Err values above, or the error of the
	// underlying reader; line is 0 if unknown.
	Fail func(line int, kind error, message string) error
}

// Name is a name in a tag; its slices are good until the next token.
type Name struct {
	Prefix, Local []byte
	Space         Space
	URI           string
}

// Raw is the name as written.
func (n *Name) Raw() string {
	if len(n.Prefix) == 0 {
		return string(n.Local)
	}
	return string(n.Prefix) + ":" + string(n.Local)
}

// Attr is an attribute; its slices are good until the next token.
type Attr struct {
	Name
	Value  []byte // decoded and normalized
	decode bool   // Value is still to be decoded
}

type binding struct {
	prefix, uri string
	space       Space
	depth       int // of its element
}

// Token is a result of Next.
type Token uint8

// The tokens.
const (
	EOF Token = iota
	Start
	End
)

// Fixed bounds.
const (
	maxDepth = 64
	maxAttrs = 256
)

// Scanner is the tokenizer.
type Scanner struct {
	input
	Name  Name   // of the start tag
	Attrs []Attr // of the start tag
	Stray bool   // there was text between elements; the caller resets it

	// Pass is the begin of tags: empty elements with such a tag are passed over unread.
	// Empty: all are read.
	Pass []byte

	text text
	els  elements
	doc  progress
}

// text is the text before the next tag.
type text struct {
	kept  bool // it is collected
	bytes []byte
}

// elements are the open ones.
type elements struct {
	names    []byte // one after the other
	ends     []int  // of names
	bindings []binding
	empty    bool // the start tag was an empty element: its end comes next
}

// progress is what was read of the document.
type progress struct {
	rooted bool // the root element has begun
	typed  bool // a DTD was passed over
}

// New makes a Scanner.
func New(r io.Reader, o Options) *Scanner {
	return &Scanner{
		input: input{src: r, o: o, line: 1, buf: make([]byte, 4096)},
		els: elements{bindings: []binding{
			{prefix: "xml", uri: NamespaceXML, space: XML},
			{prefix: "", uri: "", space: None},
		}},
	}
}

// depth is the number of open elements.
func (s *Scanner) depth() int { return len(s.els.ends) }

// Next gives the next start or end tag. Text before it is collected (keep) or
// only checked.
func (s *Scanner) Next() (Token, error) {
	if s.els.empty {
		s.els.empty = false
		s.pop()
		return End, nil
	}
	if s.base == 0 && s.pos == 0 && s.end == 0 {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	for {
		if err := s.skipText(); err != nil {
			if err == io.EOF && s.doc.rooted && s.depth() == 0 {
				s.tok = s.pos
				return EOF, nil
			}
			return 0, s.inputError(err, s.where())
		}
		s.tok = s.pos
		if err := s.need(2); err != nil {
			return 0, s.inputError(err, "a tag")
		}
		switch s.buf[s.pos+1] {
		case '/':
			return End, s.endTag()
		case '?':
			if err := s.instruction(); err != nil {
				return 0, err
			}
		case '!':
			if err := s.declaration(); err != nil {
				return 0, err
			}
		default:
			if len(s.Pass) == 0 || !s.passed() {
				return Start, s.startTag()
			}
		}
	}
}

// passed passes over an empty element of Pass, if its end is seen at once: no single quotes, and no < or > in a value.
func (s *Scanner) passed() bool {
	w := s.buf[s.pos:s.end]
	if !bytes.HasPrefix(w, s.Pass) {
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

// where names the place of the document's end.
func (s *Scanner) where() string {
	if s.depth() == 0 {
		return "the document before its root element"
	}
	return "<" + string(s.top()) + ">"
}

// Skip passes over the element of the start tag just read.
func (s *Scanner) Skip() error {
	keep, stray := s.text.kept, s.Stray
	s.text.kept = false
	for depth := s.depth(); s.depth() >= depth; {
		if _, err := s.Next(); err != nil {
			return err
		}
	}
	s.text.kept, s.Stray = keep, stray
	return nil
}

// Leaf gives the text of the element of the start tag just read. An element
// inside is an error, since part of the value might be lost.
func (s *Scanner) Leaf() ([]byte, error) {
	s.text.kept = true
	s.text.bytes = s.text.bytes[:0]
	tok, err := s.Next()
	s.text.kept = false
	if err != nil {
		return nil, err
	}
	if tok == Start {
		return nil, s.Failf(ErrElement, "<%s> stands inside <%s>, which holds text only", s.Name.Raw(), s.Parent())
	}
	return s.text.bytes, nil
}

func (s *Scanner) endTag() error {
	for {
		w := s.buf[s.pos:s.end]
		if i := bytes.IndexByte(w, '>'); i >= 0 {
			name := bytes.TrimRight(w[2:i], " \t\r\n")
			if s.depth() == 0 {
				return s.Failf(ErrSyntax, "</%s> ends nothing", Clip(string(name)))
			}
			if !bytes.Equal(name, s.top()) {
				return s.Failf(ErrSyntax, "</%s> where </%s> was expected", Clip(string(name)), Clip(string(s.top())))
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

func (s *Scanner) top() []byte { return s.nth(len(s.els.ends) - 1) }

// Parent is the name of the element around the one just opened.
func (s *Scanner) Parent() string {
	if i := len(s.els.ends) - 2; i >= 0 {
		return string(s.nth(i))
	}
	return ""
}

func (s *Scanner) nth(i int) []byte {
	start := 0
	if i > 0 {
		start = s.els.ends[i-1]
	}
	return s.els.names[start:s.els.ends[i]]
}

func (s *Scanner) pop() {
	depth := len(s.els.ends)
	s.els.names = s.els.names[:len(s.els.names)-len(s.top())]
	s.els.ends = s.els.ends[:depth-1]
	n := len(s.els.bindings)
	for s.els.bindings[n-1].depth == depth {
		n--
	}
	if n < len(s.els.bindings) {
		s.els.bindings = slices.Delete(s.els.bindings, n, len(s.els.bindings))
	}
}
