// Package kvtest is the suite that every kv.Store passes.
package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Run tests the stores made by open; each is empty and is closed by the suite.
func Run(t *testing.T, open func(testing.TB) kv.Store) {
	with := func(name string, f func(*testing.T, kv.Store)) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			f(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
	with("empty", testEmpty)
	with("batch", testBatch)
	with("ranges", testRanges)
	with("snapshot", testSnapshot)
	with("copies", testCopies)
	with("many", testMany)
	with("prefix", testPrefix)
	with("join", testJoin)
	with("concurrent", testConcurrent)
	with("ended context", testEnded)
	with("context that ends", testEnding)
	with("load", testLoad)
	with("random", func(t *testing.T, s kv.Store) { testRandom(t, s) })
	with("random below a prefix", func(t *testing.T, s kv.Store) {
		put(t, s, "o", "outside")
		put(t, s, "q", "outside")
		testRandom(t, kv.Prefix(kv.Prefix(s, []byte("p")), []byte{0xff}))
		if got := get(t, s, "o") + get(t, s, "q"); got != "outsideoutside" {
			t.Errorf("keys outside the prefix were changed: %q", got)
		}
	})
}

func testEmpty(t *testing.T, s kv.Store) {
	if _, err := s.Get(t.Context(), []byte("a")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Get = %v, want ErrNotFound", err)
	}
	if got := keys(t, s.Scan(t.Context(), nil, nil)); len(got) != 0 {
		t.Errorf("Scan = %q, want nothing", got)
	}
	b := s.Batch()
	if err := b.Commit(t.Context(), true); err != nil {
		t.Errorf("Commit of an empty batch = %v", err)
	}
	b.Close()
}

func testBatch(t *testing.T, s kv.Store) {
	b := s.Batch()
	defer b.Close()
	b.Set([]byte("a"), []byte("1"))
	b.Set([]byte("b"), nil)
	b.Set([]byte("c"), []byte("3"))
	b.Delete([]byte("c"))
	if b.Size() == 0 {
		t.Error("Size = 0 with writes")
	}
	if got := keys(t, s.Scan(t.Context(), nil, nil)); len(got) != 0 {
		t.Errorf("before Commit: %q, want nothing", got)
	}
	commit(t, b)
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after Commit: %q", got)
	}
	if v, err := s.Get(t.Context(), []byte("b")); err != nil || len(v) != 0 {
		t.Errorf("Get of an empty value = %q, %v", v, err)
	}
	commit(t, b) // empty now: writes nothing again
	b.DeleteRange([]byte("a"), []byte("b"))
	b.Set([]byte("a"), []byte("later wins"))
	commit(t, b)
	if got := get(t, s, "a"); got != "later wins" {
		t.Errorf("a = %q after DeleteRange and Set in one batch", got)
	}
	b.Set([]byte("x"), nil)
	b.DeleteRange([]byte("b"), nil)
	commit(t, b)
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after DeleteRange without upper bound: %q", got)
	}
	b.Set([]byte("dropped"), nil)
	b.Close()
	b = s.Batch()
	commit(t, b)
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after Close of a batch: %q", got)
	}
}

func testRanges(t *testing.T, s kv.Store) {
	all := []string{"\x00", "a", "a\x00", "ab", "b", "\xff", "\xff\xff"}
	for _, k := range all {
		put(t, s, k, "v"+k)
	}
	bound := func(x string) []byte {
		if x == "nil" {
			return nil
		}
		return []byte(x)
	}
	for _, lo := range append(all, "nil", "aa") {
		for _, hi := range append(all, "nil", "aa") {
			var want []string
			for _, k := range all {
				if bytes.Compare([]byte(k), bound(lo)) >= 0 && (hi == "nil" || k < hi) {
					want = append(want, k)
				}
			}
			if got := keys(t, s.Scan(t.Context(), bound(lo), bound(hi))); !slices.Equal(got, want) {
				t.Errorf("Scan(%q, %q) = %q, want %q", lo, hi, got, want)
			}
			slices.Reverse(want)
			if got := keys(t, s.ScanReverse(t.Context(), bound(lo), bound(hi))); !slices.Equal(got, want) {
				t.Errorf("ScanReverse(%q, %q) = %q, want %q", lo, hi, got, want)
			}
		}
	}
	for p, err := range s.Scan(t.Context(), nil, nil) { // stopped by the reader
		if err != nil || string(p.Value) != "v\x00" {
			t.Errorf("first pair = %q, %v", p, err)
		}
		break
	}
}

func testSnapshot(t *testing.T, s kv.Store) {
	put(t, s, "a", "1")
	snap := s.Snapshot(t.Context())
	seen := 0
	for p, err := range s.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			put(t, s, "b", "2") // after the first step: not seen
		}
		if string(p.Key) != "a" {
			t.Errorf("a running scan sees %q", p.Key)
		}
	}
	put(t, s, "a", "3")
	if v, err := snap.Get(t.Context(), []byte("a")); err != nil || string(v) != "1" {
		t.Errorf("snapshot a = %q, %v, want 1", v, err)
	}
	if _, err := snap.Get(t.Context(), []byte("b")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("snapshot b = %v, want ErrNotFound", err)
	}
	if got := keys(t, snap.ScanReverse(t.Context(), nil, nil)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("snapshot holds %q", got)
	}
	if err := snap.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("store holds %q", got)
	}
}

// testMany: many questions at once have the answers of each alone, in the present and in a snapshot (kv.Many).
func testMany(t *testing.T, s kv.Store) {
	below := kv.Prefix(s, []byte("p"))
	b := below.Batch()
	defer b.Close()
	for _, group := range []string{"\x00", "b", "bb", "c\xff"} {
		for i := range 40 {
			b.Set(fmt.Appendf(nil, "%s/%02d", group, i), fmt.Append(nil, i))
		}
	}
	b.Set([]byte("empty"), nil)
	commit(t, b)
	snap := below.Snapshot(t.Context())
	defer snap.Close()
	b.DeleteRange([]byte("b/10"), []byte("b/30"))
	b.Set([]byte("b/05"), []byte("new"))
	b.Set([]byte("c\xff/99"), []byte("new"))
	commit(t, b)
	var asked [][]byte
	for _, k := range []string{"z", "c\xff/99", "b/05", "b/20", "empty", "b/05", "\x00/39", ""} {
		asked = append(asked, []byte(k))
	}
	var ranges []kv.Range
	for _, group := range []string{"\x00/", "a/", "b/", "b/30", "bb/", "c\xff/"} {
		ranges = append(ranges, kv.Range{Lo: []byte(group), Hi: kv.PrefixEnd([]byte(group))})
	}
	ranges[2].Hi = []byte("b/3")
	for name, r := range map[string]kv.Reader{"store": below, "snapshot": snap, "forgetful": kv.Forget(below)} {
		values, err := kv.GetMany(t.Context(), r, asked)
		if err != nil || len(values) != len(asked) {
			t.Fatalf("%s: %d values, %v", name, len(values), err)
		}
		for i, k := range asked {
			want, err := r.Get(t.Context(), k)
			if there := err == nil; there != (values[i] != nil) || !bytes.Equal(values[i], want) {
				t.Errorf("%s: %q is %q, alone %q, %v", name, k, values[i], want, err)
			}
		}
		var want, got []string
		for _, in := range ranges {
			for p, err := range r.Scan(t.Context(), in.Lo, in.Hi) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, string(p.Key)+"="+string(p.Value))
			}
		}
		for p, err := range kv.ScanMany(t.Context(), r, ranges) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(p.Key)+"="+string(p.Value))
		}
		if !slices.Equal(got, want) || len(got) < 120 {
			t.Errorf("%s: %d pairs %q, want %d", name, len(got), got, len(want))
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errOver)
	for name, r := range map[string]kv.Reader{"store": below, "snapshot": snap} {
		values, err := kv.GetMany(t.Context(), r, asked)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			copy(v, "XXX")
		}
		if v, err := r.Get(t.Context(), []byte("\x00/39")); err != nil || string(v) != "39" {
			t.Errorf("%s: the last of a group = %q, %v: GetMany gave its own slices", name, v, err)
		}
		for _, none := range [][][]byte{nil, asked} {
			if _, err := kv.GetMany(ended, r, none); !errors.Is(err, errOver) {
				t.Errorf("%s: GetMany of %d under an ended context = %v", name, len(none), err)
			}
		}
		if got, err := until(kv.ScanMany(ended, r, ranges)); !errors.Is(err, errOver) || len(got) > 0 {
			t.Errorf("%s: ScanMany under an ended context = %q, %v", name, got, err)
		}
		testEndingMany(t, name, r, ranges)
		of := func(los ...string) (in []kv.Range) {
			for i := 0; i < len(los); i += 2 {
				in = append(in, kv.Range{Lo: []byte(los[i]), Hi: []byte(los[i+1])})
			}
			return in
		}
		if got, err := until(kv.ScanMany(t.Context(), r, of("b/00", "b/02", "b/02", "b/02", "b/02", "b/03", "y", "z"))); err != nil || !slices.Equal(got, []string{"b/00", "b/01", "b/02"}) {
			t.Errorf("%s: ranges that touch: %q, %v", name, got, err)
		}
		for _, in := range [][]kv.Range{of("b/", "b0", "a", "b"), of("a", "c", "b", "d"), of("b", "a"), {{Lo: []byte("a")}}} {
			if got, err := until(kv.ScanMany(t.Context(), r, in)); !errors.Is(err, kv.ErrRanges) || len(got) > 0 {
				t.Errorf("%s: ScanMany of %q = %q, %v", name, in, got, err)
			}
		}
	}
}

// testEndingMany: a context that ends between two pairs, near ones and far ones, is told at the next step.
func testEndingMany(t *testing.T, name string, r kv.Reader, ranges []kv.Range) {
	for _, at := range []int{1, 20, 41} {
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		steps := 0
		for _, err := range kv.ScanMany(ctx, r, ranges) {
			if steps++; steps == at {
				end(errOver)
			}
			if (err != nil) != (steps > at) || err != nil && !errors.Is(err, errOver) {
				t.Errorf("%s: step %d of a context that ended at %d: %v", name, steps, at, err)
			}
		}
		if steps != at+1 {
			t.Errorf("%s: ScanMany ended without a word, after %d steps", name, steps)
		}
	}
}

func testCopies(t *testing.T, s kv.Store) {
	key, value := []byte("key"), []byte("value")
	b := s.Batch()
	b.Set(key, value)
	copy(key, "XXX")
	copy(value, "XXXXX")
	commit(t, b)
	b.Close()
	got, err := s.Get(t.Context(), []byte("key"))
	if err != nil || string(got) != "value" {
		t.Fatalf("Get = %q, %v: the batch kept the caller's slices", got, err)
	}
	copy(got, "XXXXX")
	if got := get(t, s, "key"); got != "value" {
		t.Errorf("Get = %q: the store gave its own slice", got)
	}
}

func testPrefix(t *testing.T, s kv.Store) {
	p, q := kv.Prefix(s, []byte("p/")), kv.Prefix(s, []byte{0xff})
	put(t, p, "a", "1")
	put(t, p, "b", "2")
	put(t, q, "\xff", "3")
	put(t, kv.Prefix(p, []byte("b")), "c", "4")
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"p/a", "p/b", "p/bc", "\xff\xff"}) {
		t.Errorf("underlying keys = %q", got)
	}
	if got := keys(t, p.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a", "b", "bc"}) {
		t.Errorf("keys of p = %q", got)
	}
	if got := keys(t, q.ScanReverse(t.Context(), nil, nil)); !slices.Equal(got, []string{"\xff"}) {
		t.Errorf("keys of q = %q", got)
	}
	if got := keys(t, kv.Prefix(p, []byte("b")).Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"", "c"}) {
		t.Errorf("keys under p/b = %q", got)
	}
	snap := p.Snapshot(t.Context())
	defer snap.Close()
	b := p.Batch()
	b.DeleteRange(nil, nil)
	commit(t, b)
	b.Close()
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"\xff\xff"}) {
		t.Errorf("after DeleteRange of all in p: %q", got)
	}
	if got := keys(t, snap.Scan(t.Context(), []byte("b"), nil)); !slices.Equal(got, []string{"b", "bc"}) {
		t.Errorf("snapshot of p = %q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	put(t, s, "still open", "")
}

func testJoin(t *testing.T, s kv.Store) {
	p, q := kv.Prefix(s, []byte("p")), kv.Prefix(s, []byte("q"))
	b := p.Batch()
	defer b.Close()
	b.Set([]byte("1"), []byte("one"))
	j := kv.Join(q, b)
	j.Set([]byte("2"), []byte("two"))
	kv.Join(s, b).Set([]byte("r"), []byte("root"))
	j.Close()
	if got := keys(t, s.Scan(t.Context(), nil, nil)); len(got) != 0 {
		t.Errorf("before Commit: %q", got)
	}
	commit(t, b)
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"p1", "q2", "r"}) {
		t.Errorf("after Commit: %q", got)
	}
}

var errOver = errors.New("over")

// testEnded: nothing is read or written under an ended context, and each
// error tells its cause.
func testEnded(t *testing.T, s kv.Store) {
	put(t, s, "a", "1")
	snap := s.Snapshot(t.Context())
	defer snap.Close()
	ctx, end := context.WithCancelCause(t.Context())
	end(errOver)
	late := s.Snapshot(ctx)
	defer late.Close()
	for name, r := range map[string]kv.Reader{"store": s, "snapshot": snap, "prefix": kv.Prefix(s, []byte("a")), "late snapshot": late} {
		if _, err := r.Get(ctx, []byte("a")); !errors.Is(err, errOver) {
			t.Errorf("%s: Get = %v", name, err)
		}
		for kind, seq := range map[string]iter.Seq2[kv.Pair, error]{"Scan": r.Scan(ctx, nil, nil), "ScanReverse": r.ScanReverse(ctx, nil, nil)} {
			if got, err := until(seq); len(got) > 0 || !errors.Is(err, errOver) {
				t.Errorf("%s: %s = %q, %v", name, kind, got, err)
			}
		}
	}
	b := s.Batch()
	defer b.Close()
	b.Set([]byte("b"), []byte("2"))
	if err := b.Commit(ctx, true); !errors.Is(err, kv.ErrNotBegun) || !errors.Is(err, errOver) {
		t.Errorf("Commit = %v", err)
	}
	commit(t, b) // empty again
	if l, ok := kv.BeginLoad(s); ok {
		if err := errors.Join(l.Run().Set([]byte("c"), nil), l.Commit(ctx)); !errors.Is(err, kv.ErrNotBegun) || !errors.Is(err, errOver) {
			t.Errorf("Commit of a load = %v", err)
		}
		l.Close()
	}
	if got := keys(t, s.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("keys = %q", got)
	}
}

// testEnding: a scan ends at the step after the end of its context; a commit
// meanwhile has written all or nothing, and its answer tells the truth.
func testEnding(t *testing.T, s kv.Store) {
	for _, k := range []string{"a", "b", "c"} {
		put(t, s, k, "")
	}
	for kind, scan := range map[string]func(context.Context, []byte, []byte) iter.Seq2[kv.Pair, error]{"Scan": s.Scan, "ScanReverse": s.ScanReverse} {
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		steps := 0
		for _, err := range scan(ctx, nil, nil) {
			if steps++; steps == 1 && err == nil {
				end(errOver)
			} else if !errors.Is(err, errOver) || steps > 2 {
				t.Errorf("%s: step %d after the end of the context: %v", kind, steps, err)
			}
		}
		if steps != 2 {
			t.Errorf("%s ended without a word, after %d steps", kind, steps)
		}
	}
	for i := range 100 {
		ctx, end := context.WithCancelCause(t.Context())
		b := s.Batch()
		one, two := fmt.Appendf(nil, "x%d", i), fmt.Appendf(nil, "y%d", i)
		b.Set(one, nil)
		b.Set(two, nil)
		done := make(chan struct{})
		go func() {
			end(errOver)
			close(done)
		}()
		err := b.Commit(ctx, i%2 == 0)
		<-done
		b.Close()
		_, err1 := s.Get(t.Context(), one)
		_, err2 := s.Get(t.Context(), two)
		there := err1 == nil && err2 == nil
		gone := errors.Is(err1, kv.ErrNotFound) && errors.Is(err2, kv.ErrNotFound)
		if err == nil && !there || err != nil && (!gone || !errors.Is(err, kv.ErrNotBegun)) {
			t.Fatalf("Commit = %v; then Get = %v and %v", err, err1, err2)
		}
	}
}

// until reads to the first error.
func until(seq iter.Seq2[kv.Pair, error]) (out []string, err error) {
	for p, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, string(p.Key))
	}
	return out, nil
}

// testConcurrent: two counters that are always written together are always read
// equal.
func testConcurrent(t *testing.T, s kv.Store) {
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			b := s.Batch()
			defer b.Close()
			for i := range 200 {
				v := fmt.Appendf(nil, "%d.%d", w, i)
				b.Set([]byte("a"), v)
				b.Set([]byte("b"), v)
				if err := b.Commit(t.Context(), false); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				var got []string
				for p, err := range s.Scan(t.Context(), nil, nil) {
					if err != nil {
						t.Error(err)
						return
					}
					got = append(got, string(p.Value))
				}
				if len(got) != 0 && (len(got) != 2 || got[0] != got[1]) {
					t.Errorf("half a batch was seen: %q", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// testRandom compares a random history with a map.
func testRandom(t *testing.T, s kv.Store) {
	rnd := rand.New(rand.NewPCG(1, 2))
	model := map[string]string{}
	type moment struct {
		snap  kv.Snapshot
		model map[string]string
	}
	var moments []moment
	key := func() string {
		k := make([]byte, 1+rnd.IntN(3))
		for i := range k {
			k[i] = []byte{0, 1, 'a', 'b', 0xfe, 0xff}[rnd.IntN(6)]
		}
		return string(k)
	}
	b := s.Batch()
	defer b.Close()
	for step := range 1500 {
		next := maps.Clone(model)
		for range rnd.IntN(6) {
			switch rnd.IntN(8) {
			case 0:
				k := key()
				b.Delete([]byte(k))
				delete(next, k)
			case 1:
				lo, hi := key(), key()
				b.DeleteRange([]byte(lo), []byte(hi))
				maps.DeleteFunc(next, func(k, _ string) bool { return k >= lo && k < hi })
			default:
				k, v := key(), fmt.Sprint(step, rnd.Uint32())
				b.Set([]byte(k), []byte(v))
				next[k] = v
			}
		}
		commit(t, b)
		model = next
		k := key()
		if v, err := s.Get(t.Context(), []byte(k)); err == nil && model[k] != string(v) || err != nil && model[k] != "" {
			t.Fatalf("step %d: Get(%q) = %q, %v, want %q", step, k, v, err, model[k])
		}
		if rnd.IntN(20) == 0 {
			compare(t, s, model)
			moments = append(moments, moment{s.Snapshot(t.Context()), maps.Clone(model)})
		}
		if len(moments) > 0 && rnd.IntN(25) == 0 {
			i := rnd.IntN(len(moments))
			compare(t, moments[i].snap, moments[i].model)
			moments[i].snap.Close()
			moments = slices.Delete(moments, i, i+1)
		}
	}
	for _, m := range moments {
		compare(t, m.snap, m.model)
		m.snap.Close()
	}
}

func compare(t *testing.T, r kv.Reader, model map[string]string) {
	t.Helper()
	want := slices.Sorted(maps.Keys(model))
	var got []string
	for p, err := range r.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if model[string(p.Key)] != string(p.Value) {
			t.Fatalf("%q = %q, want %q", p.Key, p.Value, model[string(p.Key)])
		}
		got = append(got, string(p.Key))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("keys = %q, want %q", got, want)
	}
}

func keys(t *testing.T, seq iter.Seq2[kv.Pair, error]) (out []string) {
	t.Helper()
	for p, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(p.Key))
	}
	return out
}

func put(t *testing.T, s kv.Store, key, value string) {
	t.Helper()
	b := s.Batch()
	defer b.Close()
	b.Set([]byte(key), []byte(value))
	commit(t, b)
}

func get(t *testing.T, s kv.Store, key string) string {
	t.Helper()
	v, err := s.Get(t.Context(), []byte(key))
	if err != nil {
		t.Fatalf("Get(%q) = %v", key, err)
	}
	return string(v)
}

func commit(t *testing.T, b kv.Batch) {
	t.Helper()
	if err := b.Commit(t.Context(), false); err != nil {
		t.Fatalf("Commit = %v", err)
	}
}

// testLoad is for stores with a Loader.
func testLoad(t *testing.T, s kv.Store) {
	below := kv.Prefix(s, []byte("p"))
	begin := func() kv.Load {
		l, ok := kv.BeginLoad(below)
		if !ok {
			t.Skip("this store cannot load")
		}
		return l
	}
	put(t, below, "a7", "old")
	put(t, below, "z", "stays")
	fill := func(l kv.Load, n int) (want []string) {
		runs := []kv.Run{l.Run(), l.Run(), l.Run()}
		var wg sync.WaitGroup
		for r, run := range runs {
			kind := string(rune('a' + r))
			for i := range n {
				want = append(want, kind+fmt.Sprint(1000 + i)[1:])
			}
			wg.Go(func() {
				key := make([]byte, 0, 4)
				for i := range n {
					key = append(append(key[:0], kind...), fmt.Sprint(1000 + i)[1:]...) // it may be used again
					if err := run.Set(key, append([]byte("new "), key...)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return want
	}
	dropped := begin()
	fill(dropped, 10)
	if err := dropped.Close(); err != nil {
		t.Error(err)
	}
	if got := keys(t, below.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a7", "z"}) {
		t.Fatalf("after a load that was dropped: %q", got)
	}
	unordered := begin()
	run := unordered.Run()
	err := errors.Join(run.Set([]byte("b"), nil), run.Set([]byte("a"), nil))
	if err == nil || unordered.Commit(t.Context()) == nil {
		t.Errorf("a run that is not in order was taken (%v)", err)
	}
	unordered.Close()

	l := begin()
	want := fill(l, 500)
	before := below.Snapshot(t.Context())
	defer before.Close()
	if got := keys(t, below.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a7", "z"}) {
		t.Fatalf("before the commit of a load: %q", got)
	}
	if err := l.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if got := keys(t, before.Scan(t.Context(), nil, nil)); !slices.Equal(got, []string{"a7", "z"}) {
		t.Errorf("in a snapshot from before the load: %q", got)
	}
	want = append(want, "a7", "z")
	slices.Sort(want)
	if got := keys(t, below.Scan(t.Context(), nil, nil)); !slices.Equal(got, want) {
		t.Errorf("after a load there are %d keys, want %d: %q", len(got), len(want), got)
	}
	if got := get(t, below, "b499"); got != "new b499" {
		t.Errorf("b499 = %q", got)
	}
	again := begin() // earlier values are replaced
	run = again.Run()
	if err := errors.Join(run.Set([]byte("a7"), []byte("newer")), again.Commit(t.Context()), again.Close()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, below, "a7"); got != "newer" {
		t.Errorf("a7 = %q after a second load", got)
	}
	empty := begin()
	if err := errors.Join(empty.Commit(t.Context()), empty.Close()); err != nil {
		t.Errorf("a load of nothing: %v", err)
	}
}
