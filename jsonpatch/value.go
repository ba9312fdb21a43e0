package jsonpatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"unicode/utf8"
)

// maxDepth bounds the nesting of documents, also of those a patch makes.
const maxDepth = 5000

// ErrNotJSON says that a document is not JSON text in UTF-8 (RFC 8259), names a
// member twice, or nests deeper than 5,000 levels.
var ErrNotJSON = errors.New("not usable as JSON")

type kind byte

const (
	scalar kind = iota // null, true, false, number: raw
	text               // string: raw (with quotes) and str
	array
	object
)

// node is a JSON value. Scalars and strings keep their spelling.
type node struct {
	kind kind
	raw  []byte // scalar, text
	str  string // text: decoded
	arr  []*node
	keys []key // object; parallel to arr
	sum  [sha256.Size]byte
	done bool // sum is computed
}

type key struct {
	raw []byte // with quotes
	str string
}

// parse reads one JSON value.
func parse(data []byte) (*node, error) {
	if !json.Valid(data) {
		var v any
		err := json.Unmarshal(data, &v)
		return nil, fmt.Errorf("%w: %v", ErrNotJSON, err)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrNotJSON)
	}
	p := parser{data: data}
	return p.value(0)
}

// parser walks text that json.Valid has accepted, so it need not look for
// syntax errors.
type parser struct {
	data []byte
	pos  int
}

func (p *parser) blank() byte {
	for {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r', ',', ':':
			p.pos++
		default:
			return p.data[p.pos]
		}
	}
}

func (p *parser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrNotJSON, maxDepth)
	}
	switch p.blank() {
	case '{':
		p.pos++
		n := &node{kind: object}
		var seen map[string]bool
		for p.blank() != '}' {
			k := p.str()
			if seen == nil {
				seen = make(map[string]bool)
			}
			if seen[k.str] {
				return nil, fmt.Errorf("%w: member %s is there twice", ErrNotJSON, k.raw)
			}
			seen[k.str] = true
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.keys, n.arr = append(n.keys, k), append(n.arr, v)
		}
		p.pos++
		return n, nil
	case '[':
		p.pos++
		n := &node{kind: array}
		for p.blank() != ']' {
			v, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.arr = append(n.arr, v)
		}
		p.pos++
		return n, nil
	case '"':
		k := p.str()
		return &node{kind: text, raw: k.raw, str: k.str}, nil
	}
	start := p.pos
	for p.pos < len(p.data) && !bytes.ContainsRune([]byte(" \t\n\r,:]}"), rune(p.data[p.pos])) {
		p.pos++
	}
	return &node{kind: scalar, raw: p.data[start:p.pos]}, nil
}

func (p *parser) str() key {
	start := p.pos
	p.pos++
	plain := true
	for p.data[p.pos] != '"' {
		if p.data[p.pos] == '\\' {
			plain = false
			p.pos++
		}
		p.pos++
	}
	p.pos++
	raw := p.data[start:p.pos]
	if plain {
		return key{raw, string(raw[1 : len(raw)-1])}
	}
	return key{raw, unquote(raw)}
}

// find returns the place of a member, or -1.
func (n *node) find(name string) int {
	for i := range n.keys {
		if n.keys[i].str == name {
			return i
		}
	}
	return -1
}

// put sets a member: in its place if it is there, otherwise before the first
// member with a greater name.
func (n *node) put(name string, v *node) {
	if i := n.find(name); i >= 0 {
		n.arr[i] = v
		return
	}
	at := len(n.keys)
	for i := range n.keys {
		if n.keys[i].str > name {
			at = i
			break
		}
	}
	k := key{AppendString(nil, name), name}
	n.keys = append(n.keys, key{})
	copy(n.keys[at+1:], n.keys[at:])
	n.keys[at] = k
	n.insert(at, v)
}

func (n *node) insert(at int, v *node) {
	n.arr = append(n.arr, nil)
	copy(n.arr[at+1:], n.arr[at:])
	n.arr[at] = v
}

func (n *node) cut(at int) {
	n.arr = append(n.arr[:at], n.arr[at+1:]...)
	if n.kind == object {
		n.keys = append(n.keys[:at], n.keys[at+1:]...)
	}
}

// nodeBytes is about what a node takes beside its text.
const nodeBytes = 240

// clone copies a value; left counts down the memory it may still take.
func (n *node) clone(left *int64) (*node, error) {
	if *left -= int64(len(n.raw)) + nodeBytes; *left < 0 {
		return nil, errTooLarge
	}
	c := &node{kind: n.kind, raw: n.raw, str: n.str}
	c.keys = append(c.keys, n.keys...)
	for i := range n.keys {
		*left -= int64(len(n.keys[i].raw))
	}
	for _, v := range n.arr {
		w, err := v.clone(left)
		if err != nil {
			return nil, err
		}
		c.arr = append(c.arr, w)
	}
	return c, nil
}

// height is the number of levels below and with n.
func (n *node) height() int {
	h := 0
	for _, v := range n.arr {
		h = max(h, v.height())
	}
	return h + 1
}

// append writes n as compact JSON.
func (n *node) append(dst []byte) []byte {
	switch n.kind {
	case object:
		dst = append(dst, '{')
		for i, v := range n.arr {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, n.keys[i].raw...)
			dst = append(dst, ':')
			dst = v.append(dst)
		}
		return append(dst, '}')
	case array:
		dst = append(dst, '[')
		for i, v := range n.arr {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

// digest is a hash of the value: members in any order, strings by content,
// numbers by spelling.
func (n *node) digest() [sha256.Size]byte {
	if n.done {
		return n.sum
	}
	h := sha256.New()
	h.Write([]byte{byte(n.kind)})
	switch n.kind {
	case scalar:
		h.Write(n.raw)
	case text:
		h.Write([]byte(n.str))
	case array:
		for _, v := range n.arr {
			s := v.digest()
			h.Write(s[:])
		}
	case object:
		for _, i := range n.order() {
			k := sha256.Sum256([]byte(n.keys[i].str))
			s := n.arr[i].digest()
			h.Write(k[:])
			h.Write(s[:])
		}
	}
	h.Sum(n.sum[:0])
	n.done = true
	return n.sum
}

// order gives the places of the members sorted by name.
func (n *node) order() []int {
	o := make([]int, len(n.keys))
	for i := range o {
		o[i] = i
	}
	sort.Slice(o, func(a, b int) bool { return n.keys[o[a]].str < n.keys[o[b]].str })
	return o
}
