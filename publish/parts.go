package publish

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// An index may have 50,000 parts. Long before that, parts grow instead.
const (
	manyParts   = 20000 // beyond these
	largestPart = 25000 // entries, where there are many parts
	maxBits     = 48    // of a part's name
	// partBytes is what the entries of a part may take, of the 50 MB of a document.
	partBytes = 32 << 20
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
	// bytes is what its entries take at most: their size when they were measured, and
	// that of those which came or changed since. Below 0 it is not known.
	bytes int64
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
	dst = binary.AppendUvarint(dst, uint64(p.at.UnixMicro()))
	return binary.AppendUvarint(dst, uint64(p.bytes+1))
}

func readPart(bits, data []byte) (part, error) {
	p, ok := parseBits(string(bits))
	if !ok || len(data) == 0 || data[0] != recordVersion {
		return p, fmt.Errorf("record of the Resource List part %q is not one of this version", bits)
	}
	data = data[1:]
	var v [5]uint64 // older records have no bytes
	for i := range v {
		if i == 4 && len(data) == 0 {
			break
		}
		n, w := binary.Uvarint(data)
		if w <= 0 {
			return p, fmt.Errorf("record of the Resource List part %q ends too early", bits)
		}
		v[i], data = n, data[w:]
	}
	p.count, p.seq, p.gen, p.at = int64(v[0]), v[1], v[2], time.UnixMicro(int64(v[3])).UTC()
	p.bytes = int64(v[4]) - 1
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
	entries int   // usually
	many    int   // parts, beyond which they hold largestPart entries
	bytes   int64 // of the entries, in any case
}

// limit is the number of entries above which one of so many parts is cut in two.
func (z partSize) limit(parts int) int64 {
	if parts > z.many {
		return max(int64(z.entries), largestPart)
	}
	return int64(z.entries)
}

// tooLarge tells whether a part, one of so many, is cut in two. A single entry cannot
// be.
func (z partSize) tooLarge(p *part, parts int) bool {
	return p.count > z.limit(parts) || p.bytes > z.bytes && p.count > 1
}

// toMeasure tells whether it is time to look: what came since a part was measured is
// added to its bytes, and nothing taken away.
func (z partSize) toMeasure(p *part) bool { return p.bytes < 0 || p.bytes > z.bytes+z.bytes/4 }

// measure gives the key of each entry of a range of a Resource List, and the bytes
// that it takes.
type measure func(lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error

// measure renders the entries, as assembling the parts does.
func (s *set) measure(view *source) measure {
	type sized struct {
		key   rdfres.Digest
		bytes int64
	}
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return func(lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error {
		entities := ordered(view.Current(lo, hi), func(st changetrack.State) (sized, error) {
			buf := buffers.Get().(*[]byte)
			defer buffers.Put(buf)
			var err error
			*buf, err = s.appendResource((*buf)[:0], view, &st)
			return sized{rdfres.EntityKey(st.Entity), int64(len(*buf))}, err
		})
		for e, err := range entities {
			if err != nil {
				return err
			}
			f(e.key, e.bytes)
		}
		return s.measureFiles(view, lo, hi, f)
	}
}

// measureFiles is measure for the entries of files alone.
func (s *set) measureFiles(view *source, lo, hi rdfres.Digest, f func(key rdfres.Digest, bytes int64)) error {
	var buf []byte
	for st, err := range view.CurrentFiles(lo, hi) {
		var e resourcesync.Entry
		if err == nil {
			e, err = s.fileEntry(view, &st)
		}
		if err == nil {
			buf, err = resourcesync.AppendEntry(buf[:0], &e)
		}
		if err != nil {
			return err
		}
		f(changetrack.FileKey(st.URL), int64(len(buf)))
	}
	return nil
}

// newPartition cuts what there is.
func newPartition(each measure, size partSize, touched part) (partition, error) {
	const depth = 16
	type sum struct{ count, bytes int64 }
	sums := make([]sum, 1<<depth)
	err := each(rdfres.Digest{}, rdfres.Digest{}, func(k rdfres.Digest, bytes int64) {
		at := &sums[binary.BigEndian.Uint16(k[:])]
		at.count++
		at.bytes += bytes
	})
	if err != nil {
		return nil, err
	}
	var ps partition
	parts := 0 // that there are taken to be
	var cut func(p part, sums []sum)
	cut = func(p part, sums []sum) {
		p.count, p.bytes = 0, 0
		for _, n := range sums {
			p.count += n.count
			p.bytes += n.bytes
		}
		if !size.tooLarge(&p, parts) || len(sums) == 1 {
			ps = append(ps, p)
			return
		}
		a, b := p.halves()
		cut(a, sums[:len(sums)/2])
		cut(b, sums[len(sums)/2:])
	}
	touched.lo, touched.depth = 0, 0
	cut(touched, sums)
	if len(ps) > size.many {
		ps, parts = nil, len(ps)
		cut(touched, sums)
	}
	return ps, nil
}

// split measures the part i where that is needed, and cuts it as long as it holds too
// much.
func (ps partition) split(each measure, i int, size partSize, b kv.Batch) (partition, error) {
	if p := &ps[i]; p.bytes < 0 || p.bytes > size.bytes {
		p.bytes = 0
		lo, hi := p.bounds()
		if err := each(lo, hi, func(_ rdfres.Digest, bytes int64) { p.bytes += bytes }); err != nil {
			return nil, err
		}
		b.Set([]byte("p"+p.bits()), p.append(nil))
	}
	for size.tooLarge(&ps[i], len(ps)) && ps[i].depth < maxBits {
		lower, upper := ps[i].halves()
		lower.count, lower.bytes = 0, 0
		lo, hi := lower.bounds()
		if err := each(lo, hi, func(_ rdfres.Digest, bytes int64) {
			lower.count++
			lower.bytes += bytes
		}); err != nil {
			return nil, err
		}
		upper.count -= lower.count
		upper.bytes -= lower.bytes
		b.Delete([]byte("p" + ps[i].bits()))
		ps[i] = lower
		ps = slices.Insert(ps, i+1, upper)
		for _, p := range ps[i : i+2] {
			b.Set([]byte("p"+p.bits()), p.append(nil))
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
func (ps partition) merge(i int, size partSize, b kv.Batch) partition {
	for ps[i].depth > 0 {
		p := ps[i]
		j := i + 1
		if p.lo>>(64-p.depth)&1 == 1 {
			j = i - 1
		}
		if j < 0 || j >= len(ps) || ps[j].depth != p.depth || ps[j].count+p.count > int64(size.entries)/2 ||
			p.bytes < 0 || ps[j].bytes < 0 || ps[j].bytes+p.bytes > size.bytes/2 {
			return ps
		}
		i = min(i, j)
		b.Delete([]byte("p" + ps[i].bits()))
		b.Delete([]byte("p" + ps[i+1].bits()))
		p.lo, p.depth, p.count, p.bytes = ps[i].lo, p.depth-1, ps[i].count+ps[i+1].count, ps[i].bytes+ps[i+1].bytes
		ps[i] = p
		ps = slices.Delete(ps, i+1, i+2)
		b.Set([]byte("p"+p.bits()), p.append(nil))
	}
	return ps
}

// after is the key behind a key.
func after(key rdfres.Digest) rdfres.Digest {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			break
		}
	}
	return key
}
