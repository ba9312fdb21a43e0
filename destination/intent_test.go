package destination

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A long intent stands in a file of its own as long as its batch is under way, and what no
// batch refers to goes. Where it is not as it was written, the mirror is compared: what
// stands of the batch in it, which the source has no more, goes.
func TestIntentAside(t *testing.T) {
	for name, damage := range map[string]func(file string, whole []byte) error{
		"whole": func(file string, whole []byte) error {
			return os.WriteFile(file+"00", whole[1:], 0o600) // as a crash leaves it that is a little earlier
		},
		"another byte": func(file string, whole []byte) error {
			whole[len(whole)/2] ^= 1
			return os.WriteFile(file, whole, 0o600)
		},
		"cut":   func(file string, whole []byte) error { return os.WriteFile(file, whole[:len(whole)-1], 0o600) },
		"empty": func(file string, _ []byte) error { return os.WriteFile(file, nil, 0o600) },
		"gone":  func(file string, _ []byte) error { return os.Remove(file) },
	} {
		for _, folder := range []bool{false, true} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(fmt.Sprintf("%s, folder %t", name, folder), func(t *testing.T) {
				b := newBench(t)
				state := t.TempDir()
				store, err := pebblekv.Open(t.Context(), state, pebblekv.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { store.Close() })
				b.store = store
				b.cfg.MaxDeleteRatio = 1
				open, dir := b.open, t.TempDir()
				if folder {
					open = b.intoFolder(dir)
				}
				files := func() []string {
					t.Helper()
					names, err := filepath.Glob(filepath.Join(state, "aside", "*"))
					if err != nil {
						t.Fatal(err)
					}
					return names
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
				d.crash = cutAt("written")
				if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
					t.Fatal(err)
				}
				left := files()
				if len(left) != 1 {
					t.Fatalf("left: %v", left)
				}
				whole, err := os.ReadFile(left[0])
				if err == nil {
					err = damage(left[0], whole)
				}
				if err != nil {
					t.Fatal(err)
				}
				for i := range 20 {
					b.src.put(fmt.Sprintf("e%d.nt", i), fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/p> \"at last\" .\n", i))
				}
				b.src.remove("new.nt")
				b.clock = b.clock.Add(time.Hour)
				if rep, err := open().Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync {
					t.Fatalf("%+v %v", rep, err)
				}
				if left := files(); len(left) != 0 {
					t.Errorf("left: %v", left)
				}
				if !folder {
					b.equal()
					return
				}
				if rep, err := open().Audit(context.Background(), AuditOptions{Depth: "origin"}); err != nil || !rep.Equal {
					t.Errorf("%+v %v", rep, err)
				}
				if left, err := filepath.Glob(filepath.Join(dir, "set", "r", "new*")); err != nil || len(left) > 0 {
					t.Errorf("left: %v %v", left, err)
				}
			})
		}
	}
}
