package faces

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The shape of the search tree. It is part of the addresses and of the bytes of
// pages, so it is the same for every set and never changes.
const (
	pageSpan = 250 // sequences of a page
	fanout   = 100 // nodes below a node
	baseBits = 6   // bits of the key by which a node of the base is divided
	mostBits = 24  // bits of a page of the base
)

// span is the number of sequences below a node of a level; pages are level 0.
func span(level int) uint64 {
	n := uint64(pageSpan)
	for range level {
		hi, lo := bits.Mul64(n, fanout)
		if hi != 0 {
			return 1 << 63
		}
		n = lo
	}
	return n
}

// node is a closed range of the log: a page, or an inner node above others. It ends at the end of a
// block of its level. It begins with that block, or after the sequence begin of the stream.
type node struct {
	first, last uint64
	level       int
}

func (n node) name() string {
	return strconv.FormatUint(n.first, 10) + "-" + strconv.FormatUint(n.last, 10)
}

// nodeOf is the node of a range: the smallest block around it. ok is false if the range belongs to
// no node.
func nodeOf(first, last uint64) (n node, ok bool) {
	if first == 0 || last < first || last > 1<<62 {
		return node{}, false
	}
	for level := 0; ; level++ {
		if s := span(level); (first-1)/s == (last-1)/s {
			return node{first, last, level}, last%s == 0
		}
	}
}

// parseNode reads name; it accepts exactly the results of name.
func parseNode(s string) (node, bool) {
	a, b, _ := strings.Cut(s, "-")
	first, err1 := strconv.ParseUint(a, 10, 64)
	last, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil {
		return node{}, false
	}
	n, ok := nodeOf(first, last)
	return n, ok && n.name() == s
}

// aligned tells whether the node begins with its block.
func (n node) aligned() bool { return (n.first-1)%span(n.level) == 0 }

// below are the nodes one level down.
func (n node) below() (out []node) {
	s := span(n.level - 1)
	for first := n.first; first <= n.last; {
		last := ((first-1)/s + 1) * s
		c, _ := nodeOf(first, last)
		out = append(out, c)
		first = last + 1
	}
	return out
}

// top are the nodes linked from the view: the largest closed blocks after begin. The rest, up to
// the head, stands in the view itself.
func top(begin, head uint64) (out []node, after uint64) {
	pos := begin
	for (pos/pageSpan+1)*pageSpan <= head {
		level := 0
		for s := span(level + 1); (pos/s+1)*s <= head; s = span(level + 1) {
			level++
		}
		s := span(level)
		n, _ := nodeOf(pos+1, (pos/s+1)*s)
		out = append(out, n)
		pos = n.last
	}
	return out, pos
}

// roundest is the number from lo to hi with the most zero bits at its end. A moving window changes
// it only when a rounder one enters or it leaves.
func roundest(lo, hi uint64) uint64 {
	if lo == 0 {
		return 0
	}
	for k := 62; k > 0; k-- {
		m := uint64(1) << k
		if c := (lo + m - 1) / m * m; c <= hi {
			return c
		}
	}
	return lo
}

// basePage is a range of entity keys in the state of the log at a sequence: the keys beginning with
// the bits of prefix. The leaves have depth bits.
type basePage struct {
	at     uint64
	depth  int
	prefix string
}

func (b basePage) name() string {
	s := fmt.Sprintf("%d/%d", b.at, b.depth)
	if b.prefix != "" {
		s += "/" + b.prefix
	}
	return s
}

// parseBase reads name; it accepts exactly the results of name.
func parseBase(s string) (basePage, bool) {
	at, rest, _ := strings.Cut(s, "/")
	depth, prefix, _ := strings.Cut(rest, "/")
	n, err1 := strconv.ParseUint(at, 10, 64)
	d, err2 := strconv.Atoi(depth)
	b := basePage{n, d, prefix}
	ok := err1 == nil && err2 == nil && d >= 0 && d <= mostBits && len(prefix) <= d &&
		(len(prefix) == d || len(prefix)%baseBits == 0) && strings.Trim(prefix, "01") == ""
	return b, ok && b.name() == s
}

// depthFor is the number of bits of the leaves for so many entities.
func depthFor(entities int64) (d int) {
	for d < mostBits && entities>>d > pageSpan {
		d++
	}
	return d
}

func (b basePage) leaf() bool { return len(b.prefix) == b.depth }

func (b basePage) below() (out []basePage) {
	n := min(baseBits, b.depth-len(b.prefix))
	for i := range 1 << n {
		out = append(out, basePage{b.at, b.depth, b.prefix + fmt.Sprintf("%0*b", n, i)})
	}
	return out
}

// keys are the bounds of the entity keys: from lo to below hi; hi zero is no bound.
func (b basePage) keys() (lo, hi rdfres.Digest) {
	if b.prefix == "" {
		return lo, hi
	}
	var n uint32
	for i := range b.prefix {
		n = n<<1 | uint32(b.prefix[i]-'0')
	}
	put := func(d *rdfres.Digest, n uint64) {
		n <<= 32 - len(b.prefix)
		d[0], d[1], d[2], d[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	}
	put(&lo, uint64(n))
	put(&hi, uint64(n)+1) // all ones: the bit beyond is cut off and hi is zero
	return lo, hi
}
