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
	"math/bits"
	"slices"
	"sort"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	// MostParts is the number of parts allowed in an index (ResourceSync 1.1, section 7).
	MostParts = 50000
	// Many parts are the usual ones. With more, each holds more (Size.Large).
	Many = 20000

	maxBits = 48 // of a part's name

	recordVersion = 1
)

// Large bounds a part among many. An even hash fills 32,768 such parts with 1,310 million
// entries.
var Large = Limit{Entries: 40000, Bytes: 48_000_000}

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

// Limit is a number of entries, and their bytes.
type Limit struct{ Entries, Bytes int64 }

// Size says how large parts are.
type Size struct {
	Usual Limit
	Many  int   // parts; with more, Large is the limit where it is wider
	Large Limit // the zero Limit: parts never grow
	Most  int   // parts of the list; 0: any number
}

// limit bounds each part of a list of so many parts. A part beyond it is cut in two.
func (z Size) limit(parts int) Limit {
	if parts > z.Many {
		return Limit{max(z.Usual.Entries, z.Large.Entries), max(z.Usual.Bytes, z.Large.Bytes)}
	}
	return z.Usual
}

// tooLarge tells whether a part, one of so many, is cut in two. A single entry cannot
// be.
func (z Size) tooLarge(p *Part, parts int) bool {
	l := z.limit(parts)
	return p.Count > l.Entries || p.Bytes > l.Bytes && p.Count > 1
}

// toMeasure tells whether it is time to measure: since the last time, bytes were only
// added.
func (z Size) toMeasure(p *Part, parts int) bool {
	most := z.limit(parts).Bytes
	return p.Bytes < 0 || p.Bytes > most+most/32
}

// FullError tells that a list has more parts than an index may name.
type FullError struct {
	Entries     int64
	Parts, Most int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%d entries make %d parts of the Resource List, and its index holds %d: divide the set into several", e.Entries, e.Parts, e.Most)
}

// check fails with a FullError if there are too many parts.
func (z Size) check(ps Parts) error {
	if z.Most == 0 || len(ps) <= z.Most {
		return nil
	}
	e := &FullError{Parts: len(ps), Most: z.Most}
	for _, p := range ps {
		e.Entries += p.Count
	}
	return e
}

// Filled tells how full an index is, from 0 to 1: the largest of its shares of parts, entries and bytes.
// Parts are cut in halves, so the shares of entries and bytes are of the last level that fits.
func (ps Parts) Filled(size Size) float64 {
	if size.Most == 0 {
		return 0
	}
	var all Limit
	for _, p := range ps {
		all.Entries += p.Count
		all.Bytes += max(0, p.Bytes)
	}
	level := float64(uint64(1) << (bits.Len(uint(size.Most)) - 1))
	most := size.limit(size.Most)
	return max(float64(len(ps))/float64(size.Most), float64(all.Entries)/(level*float64(most.Entries)), float64(all.Bytes)/(level*float64(most.Bytes)))
}

// Measure gives the key of each entry of a range, and its size.
type Measure func(lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error

// New cuts all entries. With too many parts for an index it fails with a FullError.
func New(each Measure, size Size, touched Part) (Parts, error) {
	sums := make([]Limit, 1<<16)
	err := each(rdfres.Digest{}, rdfres.Digest{}, func(k rdfres.Digest, bytes int64) {
		at := &sums[binary.BigEndian.Uint16(k[:])]
		at.Entries++
		at.Bytes += bytes
	})
	if err != nil {
		return nil, err
	}
	return cutAll(sums, size, touched)
}

// cutAll cuts the entries in so many equal ranges of keys, a power of two: no part is smaller than
// a range.
func cutAll(sums []Limit, size Size, touched Part) (Parts, error) {
	var ps Parts
	parts := 0 // as a guess
	var cut func(p Part, sums []Limit)
	cut = func(p Part, sums []Limit) {
		p.Count, p.Bytes = 0, 0
		for _, n := range sums {
			p.Count += n.Entries
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
	return ps, size.check(ps)
}

// Touch sums up the changes of a part.
type Touch struct {
	Count int64 // new entries, less the removed ones
	Bytes int64 // of new and changed entries
}

// Update notes the touched parts, by index, then cuts and joins parts. again tells of entries made otherwise
// than before: all parts are measured. touch has sequence, generation and time. Too many parts for an index are
// a FullError.
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
		case p.Count > size.limit(len(ps)).Entries || size.toMeasure(p, len(ps)):
			ps, err = ps.split(each, i, size, b)
		case p.Seq == touch.Seq:
			ps = ps.merge(i, size, b)
		}
		if err == nil {
			err = size.check(ps)
		}
		if err != nil {
			return nil, err
		}
	}
	return ps, nil
}

// split measures the part i if needed, and cuts it as long as it holds too much.
func (ps Parts) split(each Measure, i int, size Size, b kv.Batch) (Parts, error) {
	if p := &ps[i]; p.Bytes < 0 || p.Bytes > size.limit(len(ps)).Bytes {
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
		if j < 0 || j >= len(ps) || ps[j].Depth != p.Depth || ps[j].Count+p.Count > size.Usual.Entries/2 ||
			p.Bytes < 0 || ps[j].Bytes < 0 || ps[j].Bytes+p.Bytes > size.Usual.Bytes/2 {
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
