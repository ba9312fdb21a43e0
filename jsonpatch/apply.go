package jsonpatch

import (
	"errors"
	"fmt"
)

// maxCopied bounds the memory, in bytes, that the operations of one patch may
// take for copies: a short patch can double a document with each operation.
const maxCopied = 256 << 20

var (
	// ErrTest comes from Apply when a test operation found another value.
	ErrTest = errors.New("the value is another one")

	errTooLarge = errors.New("takes more than 256 MiB for copies")
	errTooDeep  = errors.New("makes a document nested deeper than 5,000 levels")
	errMissing  = errors.New("there is no such place in the document")
)

// OpError says which operation of a patch could not be applied, and why.
type OpError struct {
	Index    int    // of the operation in the patch, from 0
	Op, Path string // as written; "" if absent
	Err      error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("patch operation %d (%s %q): %v", e.Index, e.Op, e.Path, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }

// Apply returns the document that patch makes of doc, or an error and nothing.
// Errors wrap ErrNotJSON or are an *OpError; errors.Is(err, ErrTest) when a
// test operation failed. Members of an operation unknown to RFC 6902
// are ignored, array indexes are digits without leading zero, numbers are equal
// when their values are.
func Apply(doc, patch []byte) ([]byte, error) {
	root, err := parse(doc)
	if err != nil {
		return nil, fmt.Errorf("apply patch, document: %w", err)
	}
	ops, err := parse(patch)
	if err != nil {
		return nil, fmt.Errorf("apply patch, patch: %w", err)
	}
	if ops.kind != array {
		return nil, fmt.Errorf("apply patch: %w: a patch is an array of operations", ErrNotJSON)
	}
	p := patcher{root: root, left: maxCopied}
	for i, op := range ops.arr {
		if err := p.apply(op); err != nil {
			e := &OpError{Index: i, Err: err}
			e.Op, _ = member(op, "op")
			e.Path, _ = member(op, "path")
			return nil, e
		}
	}
	return p.root.append(nil), nil
}

// Equal tells whether two documents are the same JSON value: members in any
// order, numbers by value.
func Equal(a, b []byte) (bool, error) {
	x, err := parse(a)
	if err != nil {
		return false, err
	}
	y, err := parse(b)
	if err != nil {
		return false, err
	}
	return equal(x, y), nil
}

type patcher struct {
	root *node
	left int64
}

func member(op *node, name string) (string, bool) {
	if op.kind != object {
		return "", false
	}
	if i := op.find(name); i >= 0 && op.arr[i].kind == text {
		return op.arr[i].str, true
	}
	return "", false
}

func place(op *node, name string) ([]string, error) {
	s, ok := member(op, name)
	if !ok {
		return nil, fmt.Errorf("member %q is missing or no string", name)
	}
	tokens, ok := pointer(s)
	if !ok {
		return nil, fmt.Errorf("member %q is no JSON Pointer: %q", name, s)
	}
	if len(tokens) > maxDepth {
		return nil, errTooDeep
	}
	return tokens, nil
}

func (p *patcher) apply(op *node) error {
	name, ok := member(op, "op")
	if !ok {
		return errors.New(`member "op" is missing or no string`)
	}
	path, err := place(op, "path")
	if err != nil {
		return err
	}
	switch name {
	case "add", "replace", "test":
		i := op.find("value")
		if i < 0 {
			return errors.New(`member "value" is missing`)
		}
		v := op.arr[i]
		if name == "test" {
			found, err := p.get(path)
			if err != nil {
				return err
			}
			if !equal(found, v) {
				return ErrTest
			}
			return nil
		}
		if v, err = v.clone(&p.left); err != nil {
			return err
		}
		if name == "add" {
			return p.add(path, v)
		}
		return p.replace(path, v)
	case "remove":
		_, err := p.remove(path)
		return err
	case "copy":
		from, err := place(op, "from")
		if err != nil {
			return err
		}
		found, err := p.get(from)
		if err != nil {
			return err
		}
		v, err := found.clone(&p.left)
		if err != nil {
			return err
		}
		return p.add(path, v)
	case "move":
		from, err := place(op, "from")
		if err != nil {
			return err
		}
		if within(from, path) {
			if len(from) == len(path) {
				_, err := p.get(from)
				return err
			}
			return errors.New("a value cannot be moved into itself")
		}
		v, err := p.remove(from)
		if err != nil {
			return err
		}
		return p.add(path, v)
	}
	return fmt.Errorf("unknown operation %q", name)
}

func within(outer, inner []string) bool {
	if len(outer) > len(inner) {
		return false
	}
	for i := range outer {
		if outer[i] != inner[i] {
			return false
		}
	}
	return true
}

func (p *patcher) get(path []string) (*node, error) {
	n := p.root
	for _, t := range path {
		i, err := n.child(t)
		if err != nil {
			return nil, err
		}
		n = n.arr[i]
	}
	return n, nil
}

// child is the place of an existing member or element.
func (n *node) child(t string) (int, error) {
	switch n.kind {
	case object:
		if i := n.find(t); i >= 0 {
			return i, nil
		}
	case array:
		i, ok := index(t)
		if !ok {
			return 0, fmt.Errorf("%q is no array index", t)
		}
		if i < len(n.arr) {
			return i, nil
		}
	}
	return 0, errMissing
}

func (p *patcher) add(path []string, v *node) error {
	if v.kind == array || v.kind == object {
		if len(path)+v.height() > maxDepth {
			return errTooDeep
		}
	}
	if len(path) == 0 {
		p.root = v
		return nil
	}
	parent, err := p.get(path[:len(path)-1])
	if err != nil {
		return err
	}
	last := path[len(path)-1]
	switch parent.kind {
	case object:
		parent.put(last, v)
		return nil
	case array:
		i, ok := len(parent.arr), true
		if last != "-" {
			i, ok = index(last)
		}
		if !ok {
			return fmt.Errorf("%q is no array index", last)
		}
		if i > len(parent.arr) {
			return fmt.Errorf("index %d is beyond the %d elements of the array", i, len(parent.arr))
		}
		parent.insert(i, v)
		return nil
	}
	return errMissing
}

func (p *patcher) replace(path []string, v *node) error {
	if len(path) == 0 {
		p.root = v
		return nil
	}
	parent, err := p.get(path[:len(path)-1])
	if err != nil {
		return err
	}
	i, err := parent.child(path[len(path)-1])
	if err != nil {
		return err
	}
	if len(path)+v.height() > maxDepth {
		return errTooDeep
	}
	parent.arr[i] = v
	return nil
}

func (p *patcher) remove(path []string) (*node, error) {
	if len(path) == 0 {
		return nil, errors.New("the whole document cannot be removed")
	}
	parent, err := p.get(path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	i, err := parent.child(path[len(path)-1])
	if err != nil {
		return nil, err
	}
	v := parent.arr[i]
	parent.cut(i)
	return v, nil
}

func equal(a, b *node) bool {
	if a.kind != b.kind || len(a.arr) != len(b.arr) {
		return false
	}
	switch a.kind {
	case text:
		return a.str == b.str
	case scalar:
		return sameNumber(a.raw, b.raw)
	case array:
		for i := range a.arr {
			if !equal(a.arr[i], b.arr[i]) {
				return false
			}
		}
		return true
	}
	ao, bo := a.order(), b.order()
	for k := range ao {
		if a.keys[ao[k]].str != b.keys[bo[k]].str || !equal(a.arr[ao[k]], b.arr[bo[k]]) {
			return false
		}
	}
	return true
}
