package changetrack

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/rdfres"
)

func TestKnown(t *testing.T) {
	l, clk := newTestLog(t)
	s := many(40, 1)
	mustScan(t, l, s, plain)
	gone := map[string]bool{}
	for e := range s {
		if len(gone) < 5 {
			gone[e] = true
			delete(s, e)
		}
	}
	o := plain
	o.MaxDeleteRatio = -1
	clk.t = clk.t.Add(time.Hour)
	mustScan(t, l, s, o)
	known := func(lo, hi rdfres.Digest) (current, deleted int) {
		v := l.View(t.Context())
		defer v.Close()
		var last rdfres.Digest
		for st, err := range v.Known(t.Context(), lo, hi) {
			if err != nil {
				t.Fatal(err)
			}
			k := rdfres.EntityKey(st.Entity)
			if string(k[:]) <= string(last[:]) {
				t.Fatalf("%s is out of order", st.Entity)
			}
			last = k
			one, err := v.Entity(t.Context(), st.Entity)
			if err != nil || (one.Current == nil) != (st.Current == nil) || gone[st.Entity] != (st.Current == nil) {
				t.Fatalf("%s: %+v, Entity gives %+v, %v", st.Entity, st, one, err)
			}
			if st.Current != nil {
				current++
			} else if st.Deleted != nil && st.Deleted.Kind == Deleted {
				deleted++
			}
		}
		return current, deleted
	}
	half := rdfres.Digest{0x80}
	if c, d := known(rdfres.Digest{}, rdfres.Digest{}); c != 35 || d != 5 {
		t.Errorf("%d current, %d deleted", c, d)
	}
	c1, d1 := known(rdfres.Digest{}, half)
	c2, d2 := known(half, rdfres.Digest{})
	if c1+c2 != 35 || d1+d2 != 5 || c1 == 0 || c2 == 0 {
		t.Errorf("halves: %d and %d current, %d and %d deleted", c1, c2, d1, d2)
	}
	clk.t = clk.t.Add(time.Hour)
	if _, err := l.Retain(t.Context(), clk.now(), clk.now()); err != nil {
		t.Fatal(err)
	}
	if c, d := known(rdfres.Digest{}, rdfres.Digest{}); c != 35 || d != 0 {
		t.Errorf("after retention: %d current, %d deleted", c, d)
	}
}

// TestKeysAlike: an entity whose key begins like that of another one is refused, and never mixed
// with it.
func TestKeysAlike(t *testing.T) {
	s := memkv.New()
	_, l := mustOpen(t, s, testOptions(t.TempDir(), newClock()))
	src := many(5, 1)
	mustScan(t, l, src, plain)
	const other = "http://example.org/other"
	for e := range src {
		ours := kv.Prefix(s, setPrefix(l.id))
		state, err := ours.Get(t.Context(), stateKey(rdfres.EntityKey(e)))
		if err != nil {
			t.Fatal(err)
		}
		b := ours.Batch()
		b.Set(stateKey(rdfres.EntityKey(other)), state)
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		break
	}
	src[other] = []int{1}
	for _, names := range [][]string{nil, {other}} {
		o, seq := plain, src.all()
		if names != nil {
			o.Partial, seq = true, src.some(names)
		}
		if _, err := l.Scan(t.Context(), seq, o); err == nil || !strings.Contains(err.Error(), "same first 16 bytes") {
			t.Errorf("Scan of %v = %v", names, err)
		}
	}
	v := l.View(t.Context())
	defer v.Close()
	if st, err := v.Entity(t.Context(), other); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Entity = %+v, %v", st, err)
	}
	if err := l.Check(t.Context()); err == nil {
		t.Error("Check finds nothing")
	}
}

// counted counts the pairs read by scans of its snapshots.
type counted struct {
	kv.Store
	pairs *int
}

func (c counted) Snapshot(ctx context.Context) kv.Snapshot {
	return countedSnapshot{c.Store.Snapshot(ctx), c.pairs}
}

type countedSnapshot struct {
	kv.Snapshot
	pairs *int
}

func (c countedSnapshot) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for p, err := range c.Snapshot.Scan(ctx, lo, hi) {
			if *c.pairs++; !yield(p, err) {
				return
			}
		}
	}
}

// TestDeletedAreNotRead: readings of current entities meet no deleted ones, also after they were there again.
func TestDeletedAreNotRead(t *testing.T) {
	pairs := 0
	clk := newClock()
	tr, l := mustOpen(t, counted{memkv.New(), &pairs}, testOptions(t.TempDir(), clk))
	defer tr.Close()
	few, all := many(5, 1), many(500, 1)
	o := plain
	o.MaxDeleteRatio = -1
	for _, s := range []source{all, few, all, few} {
		clk.t = clk.t.Add(time.Hour)
		mustScan(t, l, s, o)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := l.View(t.Context())
	defer v.Close()
	head, _ := v.Head()
	read := func(name string, want int, f func() int) {
		pairs = 0
		if n := f(); n != want || pairs > 2*want {
			t.Errorf("%s: %d of %d entities, by %d pairs", name, n, want, pairs)
		}
		t.Logf("%s: %d pairs", name, pairs)
	}
	zero := rdfres.Digest{}
	read("current", 5, func() int { return len(collect(t, v.Current(t.Context(), zero, zero))) })
	read("graphs at the head", 5, func() int { return len(collect(t, v.Graphs(t.Context(), zero, zero, head))) })
	read("graphs of before", 500, func() int { return len(collect(t, v.Graphs(t.Context(), zero, zero, 500))) })
	read("known", 500, func() int { return len(collect(t, v.Known(t.Context(), zero, zero))) })
}

// TestRangesOfKeys: a range ends at the whole key, although a record has the beginning of it.
func TestRangesOfKeys(t *testing.T) {
	l, _ := newTestLog(t)
	mustScan(t, l, many(9, 1), plain)
	v := l.View(t.Context())
	defer v.Close()
	all := collect(t, v.Current(t.Context(), rdfres.Digest{}, rdfres.Digest{}))
	at := rdfres.EntityKey(all[4].Entity)
	behind := at
	behind[31]++
	for _, c := range []struct {
		lo, hi     rdfres.Digest
		begin, end int
	}{{at, rdfres.Digest{}, 4, 9}, {behind, rdfres.Digest{}, 5, 9}, {rdfres.Digest{}, at, 0, 4}, {rdfres.Digest{}, behind, 0, 5}} {
		var got, want []rdfres.Digest
		for _, st := range collect(t, v.Current(t.Context(), c.lo, c.hi)) {
			got = append(got, rdfres.EntityKey(st.Entity))
		}
		for _, st := range all[c.begin:c.end] {
			want = append(want, rdfres.EntityKey(st.Entity))
		}
		var graphs []rdfres.Digest
		for _, e := range collect(t, v.Graphs(t.Context(), c.lo, c.hi, 9)) {
			graphs = append(graphs, e.Key)
		}
		if !slices.Equal(got, want) || !slices.Equal(graphs, want) {
			t.Errorf("from %s to %s: %v and %v, want %v", c.lo, c.hi, got, graphs, want)
		}
	}
}

// TestShortKeysAlike: entities with the same short key have records beside one another, and each its own.
func TestShortKeysAlike(t *testing.T) {
	defer func(n int) { shortKey = n }(shortKey)
	shortKey = 1
	s, clk := memkv.New(), newClock()
	tr, l := mustOpen(t, s, testOptions(t.TempDir(), clk))
	defer tr.Close()
	o := plain
	o.MaxDeleteRatio = -1
	for _, src := range []source{many(600, 1), many(300, 2), many(600, 3)} {
		clk.t = clk.t.Add(time.Hour)
		mustScan(t, l, src, o)
	}
	mustCheck(t, l)
	if _, err := l.Retain(t.Context(), clk.now().Add(-90*time.Minute), clk.now().Add(-30*time.Minute)); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, l)
	ours := kv.Prefix(s, setPrefix(l.id))
	for _, kind := range []byte{kindHistory, kindBlob} { // of no entity
		b := ours.Batch()
		for p, err := range ours.Scan(t.Context(), []byte{kind}, []byte{kind + 1}) {
			if err != nil {
				t.Fatal(err)
			}
			extra := bytes.Clone(p.Key)
			extra[len(extra)-1]++
			if there, err := exists(t.Context(), ours, extra); err != nil || there {
				continue
			}
			b.Set(extra, p.Value)
			if err := b.Commit(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			if err := l.Check(t.Context()); err == nil {
				t.Errorf("Check finds no foreign record of kind %c", kind)
			}
			b.Delete(extra)
			break
		}
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstIsChecked: a state tells the first change of its entity as the log does.
func TestFirstIsChecked(t *testing.T) {
	s, clk := memkv.New(), newClock()
	tr, l := mustOpen(t, s, testOptions(t.TempDir(), clk))
	defer tr.Close()
	mustScan(t, l, many(3, 1), plain)
	clk.t = clk.t.Add(time.Hour)
	mustScan(t, l, many(3, 2), plain)
	ours := kv.Prefix(s, setPrefix(l.id))
	key := stateKey(rdfres.EntityKey("http://example.org/m1"))
	was, err := ours.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		t.Helper()
		batch := ours.Batch()
		batch.Set(key, b)
		if err := batch.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []func(*stateRecord){
		func(s *stateRecord) { s.first = s.first.Add(time.Second) },
		func(s *stateRecord) { s.first = s.first.Add(-time.Second) },
		func(s *stateRecord) { s.firstSeq++ },
		func(s *stateRecord) { s.firstSeq = 0 },
		func(s *stateRecord) { s.firstSeq = s.current.Sequence },
	} {
		st, err := readState(was)
		if err != nil {
			t.Fatal(err)
		}
		change(st)
		put(putState(nil, st))
		if err := l.Check(t.Context()); err == nil {
			t.Errorf("Check finds nothing: first %d at %s", st.firstSeq, st.first)
		}
	}
	put(was)
	mustCheck(t, l)
}
