package jsonld

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// jsonTape is a JSON text in memory with the place of each value and member name in it,
// in the order of the text: a tree at eight bytes a value.
type jsonTape struct {
	name  string // of the document, for errors
	data  []byte
	nodes []tapeNode
}

type tapeNode struct {
	pos  uint32 // the start of the value in the text
	next uint32 // the node after the value and its content
}

// readTape checks a JSON text (RFC 8259) and finds its values. It refuses a name if it
// stands twice in an object: the standard does not say which one counts.
func readTape(name string, data []byte, most int64) (*jsonTape, error) {
	s := jsonScanner{data: data}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		s.pos = 3
	}
	fail := func(why string) error {
		line := 1 + bytes.Count(data[:s.errPos], []byte{'\n'})
		from := bytes.LastIndexByte(data[:s.errPos], '\n') + 1
		return &rdfres.SyntaxError{Name: name, Format: rdfres.JSONLD, Line: line, Column: chars.Column(data[from:], s.errPos-from), Reason: why}
	}
	if len(data) > math.MaxUint32 {
		return nil, fmt.Errorf("rdfres: read %s %s: more than 4 GiB: %w", rdfres.JSONLD, name, rdfres.ErrTooLarge)
	}
	if !utf8.Valid(data) {
		s.errPos = chars.InvalidAt(data)
		return nil, fail("the text is not valid UTF-8")
	}
	// Twice, so that the nodes are allocated once and no larger than they must be.
	count := tapeCounter{jsonScanner: s}
	if why := count.value(0); why != "" {
		s.errPos = count.errPos
		return nil, fail(why)
	}
	if count.peek(); count.pos < len(data) {
		s.errPos = count.pos
		return nil, fail("something stands after the document")
	}
	if most > 0 && count.nodes > most/4 {
		return nil, fmt.Errorf("rdfres: read %s %s: %d values and names in %d bytes: %w", rdfres.JSONLD, name, count.nodes, len(data), rdfres.ErrTooLarge)
	}
	t := &jsonTape{name: name, data: data, nodes: make([]tapeNode, 0, count.nodes)}
	if why := t.fill(&s); why != "" {
		return nil, fail(why)
	}
	return t, nil
}

type tapeCounter struct {
	jsonScanner
	nodes int64
}

func (c *tapeCounter) value(depth int) (why string) {
	c.nodes++
	if k := c.peek(); k != '{' && k != '[' {
		return c.skipValue(depth)
	}
	if depth >= syntax.MaxNesting {
		return c.fail(c.pos, fmt.Sprintf("nested more than %d deep", syntax.MaxNesting))
	}
	return c.each(func(name []byte, escaped bool) string {
		if name != nil {
			c.nodes++
			if escaped {
				if _, why := c.text(name, escaped); why != "" {
					return why
				}
			}
		}
		return c.value(depth + 1)
	})
}

func (t *jsonTape) fill(s *jsonScanner) (why string) {
	c := s.peek()
	at := len(t.nodes)
	t.nodes = append(t.nodes, tapeNode{pos: uint32(s.pos)})
	if c != '{' && c != '[' {
		why = s.skipValue(0)
	} else {
		why = s.each(func(name []byte, _ bool) string {
			if name != nil {
				start := cap(t.data) - cap(name) - 1 // the quote before the name
				t.nodes = append(t.nodes, tapeNode{uint32(start), uint32(len(t.nodes) + 1)})
			}
			return t.fill(s)
		})
	}
	t.nodes[at].next = uint32(len(t.nodes))
	if why == "" && c == '{' {
		if twice, ok := t.root(at).twice(); ok {
			return s.fail(twice.pos(), "the name "+quoteCut(twice.text())+" stands twice in an object")
		}
	}
	return why
}

func (t *jsonTape) root(at int) jsonNode { return jsonNode{t, uint32(at)} }

// jsonNode is a value on a tape; the zero value is none.
type jsonNode struct {
	tape *jsonTape
	at   uint32
}

func (n jsonNode) there() bool { return n.tape != nil }
func (n jsonNode) pos() int    { return int(n.tape.nodes[n.at].pos) }

// kind is the first byte of the value: { [ " t f n, 0 for a number.
func (n jsonNode) kind() byte {
	switch c := n.tape.data[n.pos()]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	}
	return 0
}

func (n jsonNode) isScalar() bool { c := n.kind(); return c != '{' && c != '[' && c != 'n' }

// str gives the text between the quotes of a string.
func (n jsonNode) str() (raw []byte, escaped bool) {
	s := jsonScanner{data: n.tape.data, pos: n.pos()}
	raw, escaped, _ = s.str()
	return raw, escaped
}

// text is a string decoded.
func (n jsonNode) text() string {
	s := jsonScanner{data: n.tape.data, pos: n.pos()}
	raw, escaped, _ := s.str()
	text, _ := s.text(raw, escaped)
	return text
}

// raw is the value as it is written.
func (n jsonNode) raw() []byte {
	s := jsonScanner{data: n.tape.data, pos: n.pos()}
	_ = s.skipValue(0) // the text of the tape was checked
	return n.tape.data[n.pos():s.pos]
}

// elements calls visit for each element of an array, and for the value itself where it is
// none, until it gives an error.
func (n jsonNode) elements(visit func(jsonNode) error) error {
	if n.kind() != '[' {
		return visit(n)
	}
	end := n.tape.nodes[n.at].next
	for at := n.at + 1; at < end; at = n.tape.nodes[at].next {
		if err := visit(jsonNode{n.tape, at}); err != nil {
			return err
		}
	}
	return nil
}

// members calls visit for each member of an object, until it gives an error.
func (n jsonNode) members(visit func(name string, v jsonNode) error) error {
	end := n.tape.nodes[n.at].next
	for at := n.at + 1; at < end; at = n.tape.nodes[at+1].next {
		if err := visit(jsonNode{n.tape, at}.text(), jsonNode{n.tape, at + 1}); err != nil {
			return err
		}
	}
	return nil
}

// get is a member of an object by its name.
func (n jsonNode) get(name string) (v jsonNode) {
	if n.kind() != '{' {
		return v
	}
	end := n.tape.nodes[n.at].next
	for at := n.at + 1; at < end; at = n.tape.nodes[at+1].next {
		key := jsonNode{n.tape, at}
		if raw, escaped := key.str(); !escaped && string(raw) == name || escaped && key.text() == name {
			return jsonNode{n.tape, at + 1}
		}
	}
	return v
}

// twice finds a repeated name in an object.
func (n jsonNode) twice() (name jsonNode, ok bool) {
	end := n.tape.nodes[n.at].next
	var few [16]uint32
	names := few[:0]
	escapes := false
	for at := n.at + 1; at < end; at = n.tape.nodes[at+1].next {
		_, escaped := jsonNode{n.tape, at}.str()
		escapes = escapes || escaped
		names = append(names, at)
	}
	key := func(at uint32) []byte {
		raw, escaped := jsonNode{n.tape, at}.str()
		if escaped {
			return []byte(jsonNode{n.tape, at}.text())
		}
		return raw
	}
	slices.SortFunc(names, func(a, b uint32) int { return bytes.Compare(key(a), key(b)) })
	for i := 1; i < len(names); i++ {
		if bytes.Equal(key(names[i-1]), key(names[i])) {
			return jsonNode{n.tape, max(names[i-1], names[i])}, true
		}
	}
	return name, false
}
