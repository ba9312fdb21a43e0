// Package partition cuts the entities of a set into parts: ranges of keys by their leading
// bits, none with more entries or bytes than a document may have.
//
// The parts are records below the key "p", by their bits: version byte, then uvarints:
// entries, sequence and generation of the last touch, its time in µs, 1 more than the
// bytes of its entries.
package partition

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// An index may have 50,000 parts. Long before, parts grow instead.
const (
	Many    = 20000 // beyond these
	Largest = 25000 // entries of a part among many
	maxBits = 48    // of a part's name

	recordVersion = 1
)

// Part is a range of the Resource List: the entities whose keys begin with the
// same depth bits.
type Part struct {
	Lo    uint64 // the bits, at the top
	Depth uint8
	Count int64
	Seq   uint64    // sequence of its last touch
	Gen   uint64    // its generation
	At    time.Time // its time
	// Bytes bounds the size of its entries: as they were measured, and the new and changed
	// ones since. Below 0 it is not known.
	Bytes int64
}

// Bits names the part: its leading bits as 0 and 1.
func (p Part) Bits() string {
	b := make([]byte, p.Depth)
	for i := range b {
		b[i] = '0' + byte(p.Lo>>(63-i)&1)
	}
	return string(b)
}

// ParseBits is the inverse of Bits, with nothing else known of the part.
func ParseBits(s string) (p Part, ok bool) {
	if len(s) > maxBits {
		return p, false
	}
	for i := range len(s) {
		switch s[i] {
		case '1':
			p.Lo |= 1 << (63 - i)
		case '0':
		default:
			return p, false
		}
	}
	p.Depth = uint8(len(s))
	return p, true
}

// End is the first key beyond the part, 0 when there is none.
func (p Part) End() uint64 {
	if p.Depth == 0 {
		return 0
	}
	return p.Lo + 1<<(64-p.Depth)
}

// Bounds are the first key of the part, and the first one beyond it.
func (p Part) Bounds() (lo, hi rdfres.Digest) {
	binary.BigEndian.PutUint64(lo[:], p.Lo)
	binary.BigEndian.PutUint64(hi[:], p.End())
	return lo, hi
}

func (p Part) halves() (a, b Part) {
	a, b = p, p
	a.Depth++
	b.Depth++
	b.Lo |= 1 << (64 - b.Depth)
	return a, b
}

// Append appends the record of the part.
func (p Part) Append(dst []byte) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(p.Count))
	dst = binary.AppendUvarint(dst, p.Seq)
	dst = binary.AppendUvarint(dst, p.Gen)
	dst = binary.AppendUvarint(dst, uint64(p.At.UnixMicro()))
	return binary.AppendUvarint(dst, uint64(p.Bytes+1))
}

func readPart(bits, data []byte) (Part, error) {
	p, ok := ParseBits(string(bits))
	if !ok || len(data) == 0 || data[0] != recordVersion {
		return p, fmt.Errorf("record of the Resource List part %q is not one of this version", bits)
	}
	data = data[1:]
	var v [5]uint64
	for i := range v {
		n, w := binary.Uvarint(data)
		if w <= 0 {
			return p, fmt.Errorf("record of the Resource List part %q ends too early", bits)
		}
		v[i], data = n, data[w:]
	}
	p.Count, p.Seq, p.Gen, p.At = int64(v[0]), v[1], v[2], time.UnixMicro(int64(v[3])).UTC()
	p.Bytes = int64(v[4]) - 1
	return p, nil
}

// Parts are the parts of a Resource List, in key order. Together they hold
// every key once.
type Parts []Part

// Load reads the records.
func Load(ctx context.Context, r kv.Reader) (Parts, error) {
	var ps Parts
	for pair, err := range r.Scan(ctx, []byte("p"), []byte("q")) {
		if err != nil {
			return nil, err
		}
		p, err := readPart(pair.Key[1:], pair.Value)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	slices.SortFunc(ps, func(a, b Part) int {
		if a.Lo < b.Lo {
			return -1
		}
		return 1
	})
	var at uint64
	for i, p := range ps {
		if p.Lo != at || p.End() == 0 && i != len(ps)-1 {
			return nil, errors.New("records of the Resource List parts leave a gap or overlap")
		}
		at = p.End()
	}
	if len(ps) > 0 && at != 0 {
		return nil, errors.New("records of the Resource List parts do not reach the end")
	}
	return ps, nil
}

// Find is the index of the part of a key.
func (ps Parts) Find(key rdfres.Digest) int {
	k := binary.BigEndian.Uint64(key[:])
	return sort.Search(len(ps), func(i int) bool { return ps[i].Lo > k }) - 1
}

// Size says how large parts are.
type Size struct {
	Entries int   // usually
	Many    int   // parts; with more, each holds up to Largest entries
	Bytes   int64 // of the entries, in any case
}

// limit is the most entries of one of so many parts. With more it is cut in two.
func (z Size) limit(parts int) int64 {
	if parts > z.Many {
		return max(int64(z.Entries), Largest)
	}
	return int64(z.Entries)
}

// tooLarge tells whether a part, one of so many, is cut in two. A single entry cannot
// be.
func (z Size) tooLarge(p *Part, parts int) bool {
	return p.Count > z.limit(parts) || p.Bytes > z.Bytes && p.Count > 1
}

// toMeasure tells whether it is time to measure: since the last time, bytes were only
// added.
func (z Size) toMeasure(p *Part) bool { return p.Bytes < 0 || p.Bytes > z.Bytes+z.Bytes/4 }

// Measure gives the key of each entry of a range, and its size.
type Measure func(lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error

// New cuts all entries.
func New(each Measure, size Size, touched Part) (Parts, error) {
	const depth = 16
	type sum struct{ Count, Bytes int64 }
	sums := make([]sum, 1<<depth)
	err := each(rdfres.Digest{}, rdfres.Digest{}, func(k rdfres.Digest, bytes int64) {
		at := &sums[binary.BigEndian.Uint16(k[:])]
		at.Count++
		at.Bytes += bytes
	})
	if err != nil {
		return nil, err
	}
	var ps Parts
	parts := 0 // as a guess
	var cut func(p Part, sums []sum)
	cut = func(p Part, sums []sum) {
		p.Count, p.Bytes = 0, 0
		for _, n := range sums {
			p.Count += n.Count
			p.Bytes += n.Bytes
		}
		if !size.tooLarge(&p, parts) || len(sums) == 1 {
			ps = append(ps, p)
			return
		}
		a, b := p.halves()
		cut(a, sums[:len(sums)/2])
		cut(b, sums[len(sums)/2:])
	}
	touched.Lo, touched.Depth = 0, 0
	cut(touched, sums)
	if len(ps) > size.Many {
		ps, parts = nil, len(ps)
		cut(touched, sums)
	}
	return ps, nil
}

// Touch sums up the changes of a part.
type Touch struct {
	Count int64 // new entries, less the removed ones
	Bytes int64 // of new and changed entries
}

// Update notes the touched parts, by index, then cuts and joins. With again, entries are
// made otherwise than before, and all parts are measured. touch has the sequence,
// generation and time.
func (ps Parts) Update(touched map[int]Touch, touch Part, again bool, each Measure, size Size, b kv.Batch) (Parts, error) {
	var keys []uint64
	if again {
		for i := range ps {
			p := &ps[i]
			p.Bytes = -1
			if _, touched := touched[i]; !touched {
				keys = append(keys, p.Lo)
			}
		}
	}
	for i, t := range touched {
		p := &ps[i]
		p.Count += t.Count
		switch {
		case p.Count == 0:
			p.Bytes = 0
		case p.Bytes >= 0:
			p.Bytes += t.Bytes
		}
		p.Seq, p.Gen, p.At = touch.Seq, touch.Gen, touch.At
		b.Set([]byte("p"+p.Bits()), p.Append(nil))
		keys = append(keys, p.Lo)
	}
	slices.Sort(keys)
	for _, lo := range keys {
		var key rdfres.Digest
		binary.BigEndian.PutUint64(key[:], lo)
		i := ps.Find(key)
		var err error
		switch p := &ps[i]; {
		case p.Count > size.limit(len(ps)) || size.toMeasure(p):
			ps, err = ps.split(each, i, size, b)
		case p.Seq == touch.Seq:
			ps = ps.merge(i, size, b)
		}
		if err != nil {
			return nil, err
		}
	}
	return ps, nil
}

// split measures the part i if needed, and cuts it as long as it holds too much.
func (ps Parts) split(each Measure, i int, size Size, b kv.Batch) (Parts, error) {
	if p := &ps[i]; p.Bytes < 0 || p.Bytes > size.Bytes {
		p.Bytes = 0
		lo, hi := p.Bounds()
		if err := each(lo, hi, func(_ rdfres.Digest, bytes int64) { p.Bytes += bytes }); err != nil {
			return nil, err
		}
		b.Set([]byte("p"+p.Bits()), p.Append(nil))
	}
	for size.tooLarge(&ps[i], len(ps)) && ps[i].Depth < maxBits {
		lower, upper := ps[i].halves()
		lower.Count, lower.Bytes = 0, 0
		lo, hi := lower.Bounds()
		if err := each(lo, hi, func(_ rdfres.Digest, bytes int64) {
			lower.Count++
			lower.Bytes += bytes
		}); err != nil {
			return nil, err
		}
		upper.Count -= lower.Count
		upper.Bytes -= lower.Bytes
		b.Delete([]byte("p" + ps[i].Bits()))
		ps[i] = lower
		ps = slices.Insert(ps, i+1, upper)
		for _, p := range ps[i : i+2] {
			b.Set([]byte("p"+p.Bits()), p.Append(nil))
		}
		if size.tooLarge(&ps[i+1], len(ps)) {
			var err error
			if ps, err = ps.split(each, i+1, size, b); err != nil {
				return nil, err
			}
		}
	}
	return ps, nil
}

// merge joins the part i with its sibling as long as both together hold little.
func (ps Parts) merge(i int, size Size, b kv.Batch) Parts {
	for ps[i].Depth > 0 {
		p := ps[i]
		j := i + 1
		if p.Lo>>(64-p.Depth)&1 == 1 {
			j = i - 1
		}
		if j < 0 || j >= len(ps) || ps[j].Depth != p.Depth || ps[j].Count+p.Count > int64(size.Entries)/2 ||
			p.Bytes < 0 || ps[j].Bytes < 0 || ps[j].Bytes+p.Bytes > size.Bytes/2 {
			return ps
		}
		i = min(i, j)
		b.Delete([]byte("p" + ps[i].Bits()))
		b.Delete([]byte("p" + ps[i+1].Bits()))
		p.Lo, p.Depth, p.Count, p.Bytes = ps[i].Lo, p.Depth-1, ps[i].Count+ps[i+1].Count, ps[i].Bytes+ps[i+1].Bytes
		ps[i] = p
		ps = slices.Delete(ps, i+1, i+2)
		b.Set([]byte("p"+p.Bits()), p.Append(nil))
	}
	return ps
}
