package partition

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// entries are a set as keys and sizes.
type entries map[rdfres.Digest]int64

func (es entries) measure(lo, hi rdfres.Digest, f func(rdfres.Digest, int64)) error {
	for k, n := range es {
		if slices.Compare(k[:], lo[:]) >= 0 && (hi.IsZero() || slices.Compare(k[:], hi[:]) < 0) {
			f(k, n)
		}
	}
	return nil
}

// Random histories: the parts hold every entry once, none is too large, those without a
// change keep their sequence, and the records say the same.
func TestHistories(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		store, es := teststores.Records(t), entries{}
		size := Size{Usual: Limit{1 + r.Int64N(8), 200}, Many: 20, Large: Limit{40000, 400}} // with many parts they grow
		most := size.Large.Bytes
		if seed%2 == 0 {
			size.Many, most = 1000, size.Usual.Bytes
		}
		add := func() rdfres.Digest {
			k := rdfres.EntityKey(strings.Repeat("x", r.IntN(400)))
			es[k] = int64(1 + r.IntN(60))
			return k
		}
		for range r.IntN(100) {
			add()
		}
		b := store.Batch()
		ps, err := New(es.measure, size, Part{Seq: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			b.Set([]byte("p"+p.Bits()), p.Append(nil))
		}
		for step := range uint64(40) {
			touched, changed := map[int]Touch{}, []rdfres.Digest{}
			for range r.IntN(12) {
				before := len(es)
				var k rdfres.Digest
				if r.IntN(3) > 0 {
					k = add()
				} else {
					for k = range es {
						break
					}
					delete(es, k)
				}
				i := ps.Find(k)
				touch := touched[i]
				touched[i] = Touch{touch.Count + int64(len(es)-before), touch.Bytes + es[k]}
				changed = append(changed, k)
			}
			before := slices.Clone(ps)
			if ps, err = ps.Update(touched, Part{Seq: step + 2, At: time.Unix(int64(step), 0).UTC()}, r.IntN(10) == 0, es.measure, size, b); err != nil {
				t.Fatal(err)
			}
			if err := b.Commit(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			read, err := Load(t.Context(), store)
			if err != nil || !slices.Equal(read, ps) {
				t.Fatalf("seed %d, step %d: the records say %v (%v), not %v", seed, step, read, err, ps)
			}
			for _, p := range ps {
				count, bytes := int64(0), int64(0)
				lo, hi := p.Bounds()
				es.measure(lo, hi, func(_ rdfres.Digest, n int64) { count, bytes = count+1, bytes+n })
				if p.Count != count || p.Bytes < bytes || count > 1 && bytes > most*33/32 || size.Many == 1000 && count > size.Usual.Entries {
					t.Fatalf("seed %d, step %d: part %q %+v has %d entries of %d bytes", seed, step, p.Bits(), p, count, bytes)
				}
				if q, ok := ParseBits(p.Bits()); !ok || q.Lo != p.Lo || q.Depth != p.Depth {
					t.Fatalf("%q is read as %+v", p.Bits(), q)
				}
			}
			for _, p := range before {
				lo, hi := p.Bounds()
				still := !slices.ContainsFunc(changed, func(k rdfres.Digest) bool {
					return slices.Compare(k[:], lo[:]) >= 0 && (hi.IsZero() || slices.Compare(k[:], hi[:]) < 0)
				})
				if now := ps[ps.Find(lo)]; still && now.Depth == p.Depth && now.Seq != p.Seq {
					t.Fatalf("seed %d, step %d: the untouched part %q has another sequence", seed, step, p.Bits())
				}
			}
		}
	}
}

// usual are the sizes of a set without settings of its own.
var usual = Size{Usual: Limit{10000, 32 << 20}, Many: Many, Large: Large, Most: MostParts}

// entryBytes is a constant body: the largest with which so many entries fit into a list.
const entryBytes = 1200

// drawn is a set of n entries by an even hash, as numbers: how many fall into each of 2^16 ranges.
func drawn(n float64, r *rand.Rand) []Limit {
	sums := make([]Limit, 1<<16)
	for i := range sums {
		mean := n / float64(len(sums))
		count := int64(math.Round(mean + math.Sqrt(mean)*r.NormFloat64()))
		sums[i] = Limit{count, count * entryBytes}
	}
	return sums
}

// TestThousandMillions: an index holds 1,300 million entries, warns before, and beyond that
// there is an error with the numbers.
func TestThousandMillions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		millions      float64
		least, most   int // parts
		filled, above float64
	}{
		{100, 16384, 16384, 0.3, 0.4},
		{820, 32768, 32768, 0.6, 0.7},
		{1060, 32768, 32768, 0.8, 0.9},
		{1300, 32768, 38000, 0.9, 1},
	} {
		ps, err := cutAll(drawn(tt.millions*1e6, r), usual, Part{})
		if err != nil {
			t.Fatalf("%v million: %v", tt.millions, err)
		}
		if f := ps.Filled(usual); len(ps) < tt.least || len(ps) > tt.most || f < tt.filled || f > tt.above {
			t.Errorf("%v million: %d parts fill %.2f of an index", tt.millions, len(ps), f)
		}
		for _, p := range ps {
			if p.Count > Large.Entries || p.Bytes > Large.Bytes {
				t.Fatalf("%v million: the part %q has %d entries, %d bytes", tt.millions, p.Bits(), p.Count, p.Bytes)
			}
		}
	}
	_, err := cutAll(drawn(1330e6, r), usual, Part{})
	var full *FullError
	if !errors.As(err, &full) || full.Entries < 1320e6 || full.Parts <= MostParts {
		t.Errorf("1,330 million: %v", err)
	}
}

// TestGrowsToThousandMillions: parts touched by changes are cut on the way to 1,300 million
// entries, and beyond that the update fails.
func TestGrowsToThousandMillions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sums := drawn(1280e6, r)
	ps, err := cutAll(sums, usual, Part{Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	each := func(lo, hi rdfres.Digest, f func(rdfres.Digest, int64)) error {
		first, end := int(binary.BigEndian.Uint16(lo[:])), int(binary.BigEndian.Uint16(hi[:]))
		if hi.IsZero() {
			end = len(sums)
		}
		for i := first; i < end; i++ {
			var key rdfres.Digest
			binary.BigEndian.PutUint16(key[:], uint16(i))
			for range sums[i].Entries {
				f(key, entryBytes)
			}
		}
		return nil
	}
	size := usual
	grow := func(share float64) error {
		touched := map[int]Touch{}
		for i := range sums {
			more := int64(share * float64(sums[i].Entries))
			sums[i] = Limit{sums[i].Entries + more, sums[i].Bytes + more*entryBytes}
			p := ps.Find(rdfres.Digest{byte(i >> 8), byte(i)})
			touched[p] = Touch{touched[p].Count + more, touched[p].Bytes + more*entryBytes}
		}
		b := memkv.New().Batch()
		defer b.Close()
		next, err := slices.Clone(ps).Update(touched, Part{Seq: 2}, false, each, size, b)
		if err == nil {
			ps = next
		}
		return err
	}
	if err := grow(0.0157); err != nil || len(ps) <= 1<<15 || len(ps) > MostParts {
		t.Fatalf("1,300 million: %d parts (%v)", len(ps), err)
	}
	size.Most = len(ps) + 100
	var full *FullError
	if err := grow(0.005); !errors.As(err, &full) || full.Entries < 1300e6 {
		t.Errorf("with more parts than an index may have: %v", err)
	}
}

// BenchmarkThousandMillions cuts 1,300 million entries one by one: the keys are made, the bodies
// constant.
func BenchmarkThousandMillions(b *testing.B) {
	each := func(_, _ rdfres.Digest, f func(rdfres.Digest, int64)) error {
		var key rdfres.Digest
		for i := range uint64(1300e6) { // SplitMix64: every number once, evenly spread
			z := (i + 1) * 0x9e3779b97f4a7c15
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			binary.BigEndian.PutUint64(key[:], z^z>>31)
			f(key, entryBytes)
		}
		return nil
	}
	for b.Loop() {
		ps, err := New(each, usual, Part{})
		if err != nil {
			b.Fatal(err)
		}
		most := int64(0)
		for _, p := range ps {
			most = max(most, p.Count)
		}
		b.ReportMetric(float64(len(ps)), "parts")
		b.ReportMetric(float64(most), "entries/part")
	}
}
