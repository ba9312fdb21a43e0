package destination

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Where the intent of a batch under way is not as it was written, the mirror is compared: what
// stands of the batch in it, which the source has no more, goes; a file at an audit that repairs.
func TestDamagedIntent(t *testing.T) {
	for name, damage := range map[string]func(in []byte) []byte{
		"whole":        func(in []byte) []byte { return in },
		"another byte": func(in []byte) []byte { in[40]++; return in },
		"cut":          func(in []byte) []byte { return in[:len(in)-1] },
		"empty":        func(in []byte) []byte { return in[:0] },
		"of no kind":   func(in []byte) []byte { in[0] = 0; return in },
	} {
		for _, folder := range []bool{false, true} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprintf("%s, folder %t", name, folder), func(t *testing.T) {
				b := newBench(t)
				b.cfg.MaxDeleteRatio = 1
				open, dir := b.open, t.TempDir()
				if folder {
					open = b.intoFolder(dir)
				}
				fill(b.src, 20)
				if rep, err := open().Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				for i := range 20 { // and what the source has no more when the next run comes
					b.src.put(fmt.Sprintf("e%d.nt", i), fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/p> \"for a while\" .\n", i))
				}
				b.src.put("new.nt", "<http://ex.org/new> <http://ex.org/p> \"for a while\" .\n")
				d := open()
				d.mem.Crash = cutAt("written")
				if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
					t.Fatal(err)
				}
				left := 0
				batch := b.store.Batch()
				defer batch.Close()
				for p, err := range b.store.Scan(t.Context(), []byte{ledger.KindIntent}, []byte{ledger.KindIntent + 1}) {
					if err != nil {
						t.Fatal(err)
					}
					left++
					batch.Set(p.Key, damage(append([]byte(nil), p.Value...)))
				}
				if err := batch.Commit(t.Context(), true); err != nil || left != 1 {
					t.Fatalf("%d intents are left: %v", left, err)
				}
				for i := range 20 {
					b.src.put(fmt.Sprintf("e%d.nt", i), fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/p> \"at last\" .\n", i))
				}
				b.src.remove("new.nt")
				b.clock = b.clock.Add(time.Hour)
				last := open()
				if rep, err := last.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				for slot := range byte(ledger.Slots) {
					if _, err := last.mem.Ledger.Intent(t.Context(), slot); !errors.Is(err, kv.ErrNotFound) {
						t.Errorf("an intent is left: %v", err)
					}
				}
				if !folder {
					b.equal()
					return
				}
				stays := map[string]int64{"cut": 1, "empty": 1, "of no kind": 1} // without an intent it may be anybody's
				if rep, err := open().Audit(context.Background(), AuditOptions{}); err != nil || rep.Extra != stays[name] && name != "another byte" || rep.Missing+rep.Different != 0 {
					t.Errorf("%+v %v", rep, err)
				}
				if rep, err := open().Audit(context.Background(), AuditOptions{Depth: "origin", Repair: true}); err != nil || !rep.Equal {
					t.Errorf("%+v %v", rep, err)
				}
				if left, err := filepath.Glob(filepath.Join(dir, "set", "r", "new*")); err != nil || len(left) > 0 {
					t.Errorf("left: %v %v", left, err)
				}
			})
		}
	}
}
