package rdfres

import (
	"bytes"
	"slices"
	"strconv"
)

// issuer gives out the temporary identifiers b0, b1, ... of one hash n-degree
// computation. RDFC-1.0 copies it for each permutation; because it only grows,
// here a copy is its length, and going back is cutting it off.
type issuer struct {
	order  []int32 // nodes as issued
	number []int32 // by node: its number, -1: none
}

func (i *issuer) issue(n int32) {
	if i.number[n] < 0 {
		i.number[n] = int32(len(i.order))
		i.order = append(i.order, n)
	}
}

func (i *issuer) cut(length int) {
	for _, n := range i.order[length:] {
		i.number[n] = -1
	}
	i.order = i.order[:length]
}

// appendID appends the identifier of n: canonical, or temporary. false when it
// has neither.
func (c *canonizer) appendID(dst []byte, n int32) ([]byte, bool) {
	if k := c.canon[n]; k >= 0 {
		return strconv.AppendInt(append(dst, "_:"+canonPrefix...), int64(k), 10), true
	}
	if k := c.temp.number[n]; k >= 0 {
		return strconv.AppendInt(append(dst, "_:b"...), int64(k), 10), true
	}
	return dst, false
}

// hashRelated is RDFC-1.0, section 4.7.
func (c *canonizer) hashRelated(r related) []byte {
	b := append(c.buf[:0], r.pos)
	b = append(b, r.pred...) // with its angle brackets; none for 'g'
	b, ok := c.appendID(b, r.node)
	if !ok {
		b = append(b, c.first[r.node]...)
	}
	c.buf = b
	return c.sum(b)
}

// maxDepth bounds the recursion of bounded work. A longer ring of equal nodes costs more than the
// work limit anyway, but not before the stack has grown to hundreds of megabytes.
const maxDepth = 10_000

// hashNDegree is RDFC-1.0, section 4.8. c.temp is the issuer, before and after.
func (c *canonizer) hashNDegree(n int32) ([]byte, error) {
	if err := c.spend(1 + len(c.refs[n])); err != nil {
		return nil, err
	}
	if c.depth++; c.limit > 0 && c.depth > maxDepth {
		return nil, &WorkLimitError{Limit: c.limit, Nodes: c.tied, Near: c.near}
	}
	defer func() { c.depth-- }()
	type hashed struct {
		hash []byte
		node int32
	}
	list := make([]hashed, len(c.refs[n]))
	for i, r := range c.refs[n] {
		list[i] = hashed{c.hashRelated(r), r.node}
	}
	slices.SortFunc(list, func(a, b hashed) int {
		if d := bytes.Compare(a.hash, b.hash); d != 0 {
			return d
		}
		return int(a.node) - int(b.node)
	})
	var data []byte
	for len(list) > 0 {
		k := 1
		for k < len(list) && bytes.Equal(list[0].hash, list[k].hash) {
			k++
		}
		group := make([]int32, k)
		for i := range group {
			group[i] = list[i].node
		}
		path, err := c.choosePath(group)
		if err != nil {
			return nil, err
		}
		data = append(append(data, list[0].hash...), path...)
		list = list[k:]
	}
	return c.sum(data), nil
}

// choosePath tries the permutations of the nodes of one related hash and keeps the least path, with
// its issuer. (4.8.3, step 5) group is sorted: permutations that only swap mentions of one node are
// not repeated.
func (c *canonizer) choosePath(group []int32) ([]byte, error) {
	var chosen []byte
	var added []int32 // identifiers issued by the chosen permutation
	start := len(c.temp.order)
	for {
		path, err := c.walk(group, chosen)
		if err != nil {
			return nil, err
		}
		more := nextPermutation(group)
		if path != nil && (chosen == nil || bytes.Compare(path, chosen) < 0) {
			chosen = path
			if !more && added == nil { // the only one: nothing to go back to
				return chosen, nil
			}
			added = append(added[:0], c.temp.order[start:]...)
		}
		c.temp.cut(start)
		if !more {
			break
		}
	}
	for _, n := range added {
		c.temp.issue(n)
	}
	return chosen, nil
}

// walk is the path of one permutation; nil when it cannot become less than
// chosen.
func (c *canonizer) walk(permutation []int32, chosen []byte) ([]byte, error) {
	if err := c.spend(len(permutation)); err != nil {
		return nil, err
	}
	hopeless := func(path []byte) bool {
		return chosen != nil && len(path) >= len(chosen) && bytes.Compare(path, chosen) > 0
	}
	path := make([]byte, 0, 8*len(permutation))
	var recursion []int32
	for _, n := range permutation {
		if c.canon[n] < 0 && c.temp.number[n] < 0 {
			recursion = append(recursion, n)
			c.temp.issue(n)
		}
		path, _ = c.appendID(path, n)
		if hopeless(path) {
			return nil, nil
		}
	}
	for _, n := range recursion {
		hash, err := c.hashNDegree(n)
		if err != nil {
			return nil, err
		}
		path, _ = c.appendID(path, n)
		path = append(append(append(path, '<'), hash...), '>')
		if hopeless(path) {
			return nil, nil
		}
	}
	return path, nil
}

// nextPermutation makes s the next permutation in lexicographic order; false
// after the last.
func nextPermutation(s []int32) bool {
	i := len(s) - 2
	for i >= 0 && s[i] >= s[i+1] {
		i--
	}
	if i < 0 {
		return false
	}
	j := len(s) - 1
	for s[j] <= s[i] {
		j--
	}
	s[i], s[j] = s[j], s[i]
	slices.Reverse(s[i+1:])
	return true
}
