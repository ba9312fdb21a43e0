package destination

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
)

// A long intent stands in a file of its own as long as its batch is under way. One that
// is not as it was written is told, and what no batch refers to goes.
func TestIntentAside(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	store, err := pebblekv.Open(dir, pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	b.store = store
	files := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "aside", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	fill(b.src, 20)
	d := b.open()
	d.crash = func(point string) error {
		if point == "intent" {
			return errInjected
		}
		return nil
	}
	if _, err := d.Sync(context.Background(), SyncOptions{}); !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	left := files()
	if len(left) != 1 {
		t.Fatalf("left: %v", left)
	}
	whole, err := os.ReadFile(left[0])
	if err != nil {
		t.Fatal(err)
	}
	damage := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(left[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := append([]byte{}, whole...)
	broken[len(broken)/2] ^= 1
	for _, content := range [][]byte{broken, whole[:len(whole)-1], nil} {
		damage(content)
		if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("%d of %d bytes: %v", len(content), len(whole), err)
		}
	}
	if err := os.Remove(left[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "intended batch") {
		t.Fatalf("without its file: %v", err)
	}
	damage(whole)
	if err := os.WriteFile(left[0]+"00", broken, 0o600); err != nil { // as a crash leaves it that is a little earlier
		t.Fatal(err)
	}
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	if left := files(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
