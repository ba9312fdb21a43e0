package jsonpatch

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"strconv"
)

// Diff returns the RFC 6902 patch that makes to out of from, as compact JSON:
// an array of add, remove and replace operations, [] when both are the same
// value. Numbers of different spelling are different here (1 and 1.0). Errors
// wrap ErrNotJSON.
//
// Time is O(n log n) in the size of the documents, times their depth.
func Diff(from, to []byte) ([]byte, error) {
	a, err := parse(from)
	if err != nil {
		return nil, fmt.Errorf("diff, first document: %w", err)
	}
	b, err := parse(to)
	if err != nil {
		return nil, fmt.Errorf("diff, second document: %w", err)
	}
	d := differ{out: []byte{'['}}
	d.value("", a, b)
	return append(d.out, ']'), nil
}

type differ struct{ out []byte }

func (d *differ) op(op, path string, v *node) {
	if len(d.out) > 1 {
		d.out = append(d.out, ',')
	}
	d.out = append(d.out, `{"op":"`...)
	d.out = append(d.out, op...)
	d.out = append(d.out, `","path":`...)
	d.out = AppendString(d.out, path)
	if v != nil {
		d.out = append(d.out, `,"value":`...)
		d.out = v.append(d.out)
	}
	d.out = append(d.out, '}')
}

// value writes the operations for one place: inside it where both are of one
// kind and the result is shorter, otherwise a replacement.
func (d *differ) value(path string, a, b *node) {
	if a.digest() == b.digest() {
		return
	}
	start := len(d.out)
	d.op("replace", path, b)
	if a.kind != b.kind || a.kind != object && a.kind != array {
		return
	}
	whole := append([]byte(nil), d.out[start:]...)
	d.out = d.out[:start]
	if a.kind == object {
		d.object(path, a, b)
	} else {
		d.array(path, a, b)
	}
	if len(d.out)-start >= len(whole) {
		d.out = append(d.out[:start], whole...)
	}
}

func (d *differ) object(path string, a, b *node) {
	ao, bo := a.order(), b.order()
	for len(ao) > 0 || len(bo) > 0 {
		switch {
		case len(bo) == 0 || len(ao) > 0 && a.keys[ao[0]].str < b.keys[bo[0]].str:
			d.op("remove", path+"/"+escapeToken(a.keys[ao[0]].str), nil)
			ao = ao[1:]
		case len(ao) == 0 || b.keys[bo[0]].str < a.keys[ao[0]].str:
			d.op("add", path+"/"+escapeToken(b.keys[bo[0]].str), b.arr[bo[0]])
			bo = bo[1:]
		default:
			d.value(path+"/"+escapeToken(a.keys[ao[0]].str), a.arr[ao[0]], b.arr[bo[0]])
			ao, bo = ao[1:], bo[1:]
		}
	}
}

// array keeps the elements common to both in the same order, and between two of
// those changes what stands at the same place, then removes or adds the rest.
func (d *differ) array(path string, a, b *node) {
	i, j, at := 0, 0, 0
	gap := func(iEnd, jEnd int) {
		for i < iEnd || j < jEnd {
			switch {
			case i < iEnd && j < jEnd:
				d.value(path+"/"+strconv.Itoa(at), a.arr[i], b.arr[j])
				i, j, at = i+1, j+1, at+1
			case i < iEnd:
				d.op("remove", path+"/"+strconv.Itoa(at), nil)
				i++
			default:
				d.op("add", path+"/"+strconv.Itoa(at), b.arr[j])
				j, at = j+1, at+1
			}
		}
	}
	for _, m := range common(a.arr, b.arr) {
		gap(m[0], m[1])
		i, j, at = i+1, j+1, at+1
	}
	gap(len(a.arr), len(b.arr))
}

// common pairs equal elements, the n-th of a kind with the n-th, and returns a
// longest run of pairs that rises on both sides. For sorted sets these are all
// common elements.
func common(a, b []*node) [][2]int {
	places := make(map[[sha256.Size]byte][]int, len(b))
	for j, n := range b {
		s := n.digest()
		places[s] = append(places[s], j)
	}
	var pairs [][2]int
	for i, n := range a {
		s := n.digest()
		if p := places[s]; len(p) > 0 {
			pairs = append(pairs, [2]int{i, p[0]})
			places[s] = p[1:]
		}
	}
	// longest increasing subsequence of the second places
	var tails []int // tails[k]: index into pairs that ends a run of length k+1
	prev := make([]int, len(pairs))
	for n, p := range pairs {
		k := sort.Search(len(tails), func(k int) bool { return pairs[tails[k]][1] >= p[1] })
		prev[n] = -1
		if k > 0 {
			prev[n] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, n)
		} else {
			tails[k] = n
		}
	}
	run := make([][2]int, len(tails))
	if len(tails) > 0 {
		for n, k := tails[len(tails)-1], len(tails)-1; k >= 0; k-- {
			run[k] = pairs[n]
			n = prev[n]
		}
	}
	return run
}
