package destination

import (
	"context"
	"fmt"
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
		if st, err := b.d.Status(context.Background()); err != nil || st.Pending != n || len(st.Problems) != 5 {
			t.Fatalf("%+v, %v", st, err)
		}
		b.same(b.mir.lines(graphA), s.want())
	}
	s.hook = nil
	if rep := b.sync(); !rep.InSync || rep.Pending+rep.Failed != 0 {
		t.Fatalf("%+v", rep)
	}
	for pair, err := range b.store.Scan([]byte{ledger.KindFault}, kv.PrefixEnd([]byte{ledger.KindFault})) {
		t.Errorf("%q is left (%v)", pair.Value, err)
	}
	b.equal()
}
