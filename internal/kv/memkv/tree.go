package memkv

import (
	"bytes"
	"hash/maphash"
)

// node is one of a treap and never changes after it was made: every write
// makes new nodes on the path to the root, so that an old root is a snapshot.
// The priority is a hash of the key, so that the shape depends on the keys only.
type node struct {
	key, value  []byte
	prio        uint64
	left, right *node
}

var seed = maphash.MakeSeed()

func (n *node) get(key []byte) ([]byte, bool) {
	for n != nil {
		switch c := bytes.Compare(key, n.key); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.value, true
		}
	}
	return nil, false
}

// split gives the keys < key, and those >= key.
func split(n *node, key []byte) (l, r *node) {
	if n == nil {
		return nil, nil
	}
	m := *n
	if bytes.Compare(n.key, key) < 0 {
		m.right, r = split(n.right, key)
		return &m, r
	}
	l, m.left = split(n.left, key)
	return l, &m
}

// merge joins two trees; all keys of l are less than those of r.
func merge(l, r *node) *node {
	switch {
	case l == nil:
		return r
	case r == nil:
		return l
	case l.prio >= r.prio:
		m := *l
		m.right = merge(l.right, r)
		return &m
	}
	m := *r
	m.left = merge(l, r.left)
	return &m
}

func (n *node) deleteRange(lo, hi []byte) *node {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return n
	}
	l, rest := split(n, lo)
	if hi == nil {
		return l
	}
	_, r := split(rest, hi)
	return merge(l, r)
}

func (n *node) set(key, value []byte) *node {
	l, rest := split(n, key)
	_, r := split(rest, append(bytes.Clone(key), 0)) // the smallest key after key
	mid := &node{key: key, value: value, prio: maphash.Bytes(seed, key)}
	return merge(merge(l, mid), r)
}

// ascend visits lo <= key < hi in order until visit says false.
func (n *node) ascend(lo, hi []byte, visit func(*node) bool) bool {
	if n == nil {
		return true
	}
	aboveLo := bytes.Compare(n.key, lo) >= 0
	belowHi := hi == nil || bytes.Compare(n.key, hi) < 0
	if aboveLo && !n.left.ascend(lo, hi, visit) {
		return false
	}
	if aboveLo && belowHi && !visit(n) {
		return false
	}
	return !belowHi || n.right.ascend(lo, hi, visit)
}

// descend is ascend from the other end.
func (n *node) descend(lo, hi []byte, visit func(*node) bool) bool {
	if n == nil {
		return true
	}
	aboveLo := bytes.Compare(n.key, lo) >= 0
	belowHi := hi == nil || bytes.Compare(n.key, hi) < 0
	if belowHi && !n.right.descend(lo, hi, visit) {
		return false
	}
	if aboveLo && belowHi && !visit(n) {
		return false
	}
	return !aboveLo || n.left.descend(lo, hi, visit)
}
