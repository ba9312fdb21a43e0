package publish

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// An index may have 50,000 parts. Long before that, parts grow instead.
const (
	manyParts   = 20000 // beyond these
	largestPart = 25000 // entries, where there are many parts: 50 MB at most with all their links
	maxBits     = 48    // of a part's name
)

// part is a range of the Resource List: the entities whose keys begin with the
// same depth bits.
type part struct {
	lo    uint64 // the bits, at the top
	depth uint8
	count int64
	seq   uint64    // sequence at which it was touched last
	gen   uint64    // generation of that
	at    time.Time // time of that
}

func (p part) bits() string {
	b := make([]byte, p.depth)
	for i := range b {
		b[i] = '0' + byte(p.lo>>(63-i)&1)
	}
	return string(b)
}

func parseBits(s string) (p part, ok bool) {
	if len(s) > maxBits {
		return p, false
	}
	for i := range len(s) {
		switch s[i] {
		case '1':
			p.lo |= 1 << (63 - i)
		case '0':
		default:
			return p, false
		}
	}
	p.depth = uint8(len(s))
	return p, true
}

// end is the first key beyond the part, 0 when there is none.
func (p part) end() uint64 {
	if p.depth == 0 {
		return 0
	}
	return p.lo + 1<<(64-p.depth)
}

func (p part) bounds() (lo, hi rdfres.Digest) {
	binary.BigEndian.PutUint64(lo[:], p.lo)
	binary.BigEndian.PutUint64(hi[:], p.end())
	return lo, hi
}

func (p part) halves() (a, b part) {
	a, b = p, p
	a.depth++
	b.depth++
	b.lo |= 1 << (64 - b.depth)
	return a, b
}

func (p part) append(dst []byte) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(p.count))
	dst = binary.AppendUvarint(dst, p.seq)
	dst = binary.AppendUvarint(dst, p.gen)
	return binary.AppendUvarint(dst, uint64(p.at.UnixMicro()))
}

func readPart(bits, data []byte) (part, error) {
	p, ok := parseBits(string(bits))
	if !ok || len(data) == 0 || data[0] != recordVersion {
		return p, fmt.Errorf("record of the Resource List part %q is not one of this version", bits)
	}
	data = data[1:]
	var v [4]uint64
	for i := range v {
		n, w := binary.Uvarint(data)
		if w <= 0 {
			return p, fmt.Errorf("record of the Resource List part %q ends too early", bits)
		}
		v[i], data = n, data[w:]
	}
	p.count, p.seq, p.gen, p.at = int64(v[0]), v[1], v[2], time.UnixMicro(int64(v[3])).UTC()
	return p, nil
}

// partition is the parts of a Resource List, in key order. Together they hold
// every key once.
type partition []part

func loadPartition(r kv.Reader) (partition, error) {
	var ps partition
	for pair, err := range r.Scan([]byte("p"), []byte("q")) {
		if err != nil {
			return nil, err
		}
		p, err := readPart(pair.Key[1:], pair.Value)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	slices.SortFunc(ps, func(a, b part) int {
		if a.lo < b.lo {
			return -1
		}
		return 1
	})
	var at uint64
	for i, p := range ps {
		if p.lo != at || p.end() == 0 && i != len(ps)-1 {
			return nil, errors.New("records of the Resource List parts leave a gap or overlap")
		}
		at = p.end()
	}
	if len(ps) > 0 && at != 0 {
		return nil, errors.New("records of the Resource List parts do not reach the end")
	}
	return ps, nil
}

// find is the index of the part that holds a key.
func (ps partition) find(key rdfres.Digest) int {
	k := binary.BigEndian.Uint64(key[:])
	return sort.Search(len(ps), func(i int) bool { return ps[i].lo > k }) - 1
}

// partSize says how large parts are.
type partSize struct {
	entries int // usually
	many    int // parts, beyond which they hold largestPart entries
}

// limit is the number of entries above which one of so many parts is cut in two.
func (z partSize) limit(parts int) int64 {
	if parts > z.many {
		return max(int64(z.entries), largestPart)
	}
	return int64(z.entries)
}

// eachKey gives the keys of all that a range of a Resource List holds.
func eachKey(v *changetrack.View, lo, hi rdfres.Digest, f func(key rdfres.Digest)) error {
	for s, err := range v.Current(lo, hi) {
		if err != nil {
			return err
		}
		f(rdfres.EntityKey(s.Entity))
	}
	for s, err := range v.CurrentFiles(lo, hi) {
		if err != nil {
			return err
		}
		f(changetrack.FileKey(s.URL))
	}
	return nil
}

// newPartition cuts what a view holds.
func newPartition(v *changetrack.View, size partSize, touched part) (partition, error) {
	const depth = 16
	counts := make([]int64, 1<<depth)
	err := eachKey(v, rdfres.Digest{}, rdfres.Digest{}, func(k rdfres.Digest) { counts[binary.BigEndian.Uint16(k[:])]++ })
	if err != nil {
		return nil, err
	}
	var ps partition
	most := size.limit(0)
	var cut func(p part, counts []int64)
	cut = func(p part, counts []int64) {
		p.count = 0
		for _, n := range counts {
			p.count += n
		}
		if p.count <= most || len(counts) == 1 {
			ps = append(ps, p)
			return
		}
		a, b := p.halves()
		cut(a, counts[:len(counts)/2])
		cut(b, counts[len(counts)/2:])
	}
	touched.lo, touched.depth = 0, 0
	cut(touched, counts)
	if len(ps) > size.many {
		ps, most = nil, size.limit(len(ps))
		cut(touched, counts)
	}
	return ps, nil
}

// split cuts the part i as long as it holds too much.
func (ps partition) split(v *changetrack.View, i int, size partSize, b kv.Batch) (partition, error) {
	for ps[i].count > size.limit(len(ps)) && ps[i].depth < maxBits {
		lower, upper := ps[i].halves()
		lower.count = 0
		lo, hi := lower.bounds()
		if err := eachKey(v, lo, hi, func(rdfres.Digest) { lower.count++ }); err != nil {
			return nil, err
		}
		upper.count -= lower.count
		b.Delete([]byte("p" + ps[i].bits()))
		ps[i] = lower
		ps = slices.Insert(ps, i+1, upper)
		for _, p := range ps[i : i+2] {
			b.Set([]byte("p"+p.bits()), p.append(nil))
		}
		if upper.count > size.limit(len(ps)) {
			var err error
			if ps, err = ps.split(v, i+1, size, b); err != nil {
				return nil, err
			}
		}
	}
	return ps, nil
}

// merge joins the part i with its sibling as long as both together hold little.
func (ps partition) merge(i int, size partSize, b kv.Batch) partition {
	for ps[i].depth > 0 {
		p := ps[i]
		j := i + 1
		if p.lo>>(64-p.depth)&1 == 1 {
			j = i - 1
		}
		if j < 0 || j >= len(ps) || ps[j].depth != p.depth || ps[j].count+p.count > int64(size.entries)/2 {
			return ps
		}
		i = min(i, j)
		b.Delete([]byte("p" + ps[i].bits()))
		b.Delete([]byte("p" + ps[i+1].bits()))
		p.lo, p.depth, p.count = ps[i].lo, p.depth-1, ps[i].count+ps[i+1].count
		ps[i] = p
		ps = slices.Delete(ps, i+1, i+2)
		b.Set([]byte("p"+p.bits()), p.append(nil))
	}
	return ps
}
