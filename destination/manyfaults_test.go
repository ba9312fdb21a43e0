package destination

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// A list with hundreds of entries that cannot be used, of many kinds in turn: the good ones are
// mirrored, each bad one is counted once and tried once in a run, and with the right list nothing
// of them is left.
func TestManyFaults(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.changes = false
	fill(s, 5)
	var asked atomic.Int64
	answerAt(s, "/none", func(w http.ResponseWriter, r *http.Request) { asked.Add(1); http.NotFound(w, r) })
	kinds := []string{
		`<url><loc>BASE/none?%d</loc></url>`, `<url><loc>http://10.0.0.1/%d</loc></url>`, `<url><loc>::%d</loc></url>`, `<url><rs:md length="%d"/></url>`,
		`<url><loc>BASE/none?h%d</loc><rs:md hash="sha-256:zz"/></url>`, `<url><loc>BASE/none?c%d</loc><rs:md capability="resourcelist"/></url>`, `<url><loc>http://10.0.0.1/c%d&#10;ERROR</loc></url>`,
	}
	var bad strings.Builder
	const n = 350
	for i := range n {
		fmt.Fprintf(&bad, kinds[i%len(kinds)], i)
	}
	withEntry(b, s, bad.String())
	for run := range 2 {
		asked.Store(0)
		rep, err := b.open().Sync(context.Background(), SyncOptions{Full: run > 0})
		if err != nil || rep.InSync || rep.Pending+rep.Failed != n || asked.Load() != int64(n/len(kinds)) {
			t.Fatalf("run %d: %d pending, %d failed, %d asked, %v", run, rep.Pending, rep.Failed, asked.Load(), err)
		}
		read := &readCounter{Store: b.store}
		b.store = read
		st, err := b.open().Status(context.Background())
		if b.store = read.Store; err != nil || st.Pending != n || len(st.Problems) != 5 {
			t.Fatalf("%+v, %v", st, err)
		}
		if read.n > 50 {
			t.Errorf("a status reads %d records of %d faults", read.n, n)
		}
		b.same(b.mir.lines(graphA), s.want())
	}
	s.hook = nil
	if rep := b.sync(); !rep.InSync || rep.Pending+rep.Failed != 0 {
		t.Fatalf("%+v", rep)
	}
	for pair, err := range b.store.Scan(t.Context(), []byte{ledger.KindFault}, kv.PrefixEnd([]byte{ledger.KindFault})) {
		t.Errorf("%q is left (%v)", pair.Value, err)
	}
	b.equal()
}

// readCounter counts the records that are read in sequence.
type readCounter struct {
	kv.Store
	n int
}

func (c *readCounter) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return c.count(c.Store.Scan(ctx, lo, hi))
}

func (c *readCounter) Snapshot(ctx context.Context) kv.Snapshot {
	return &countedSnapshot{c.Store.Snapshot(ctx), c}
}

func (c *readCounter) count(pairs iter.Seq2[kv.Pair, error]) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for p, err := range pairs {
			if c.n++; !yield(p, err) {
				return
			}
		}
	}
}

type countedSnapshot struct {
	kv.Snapshot
	c *readCounter
}

func (s *countedSnapshot) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.c.count(s.Snapshot.Scan(ctx, lo, hi))
}
