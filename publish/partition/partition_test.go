package partition

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/memkv"
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
		store, es := memkv.New(), entries{}
		size := Size{Entries: 1 + r.IntN(8), Many: 20, Bytes: 200} // with many parts they grow
		if seed%2 == 0 {
			size.Many = 1000
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
				if p.Count != count || p.Bytes < bytes || count > 1 && bytes > size.Bytes+size.Bytes/4 || size.Many == 1000 && count > int64(size.Entries) {
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
