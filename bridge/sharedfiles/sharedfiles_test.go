package sharedfiles

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFiles: what a leader has in its folder, the next one has in its own, and files of before are overruled.
func TestFiles(t *testing.T) {
	records, one, two := memkv.New(), t.TempDir(), t.TempDir()
	fetch := func(dir string, want ...string) {
		t.Helper()
		if got, err := Fetch(t.Context(), records, dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("fetched %q, %v; want %q", got, err, want)
		}
	}
	k := NewKeeper(records, one)
	keep := func() {
		t.Helper()
		if err := k.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fetch(one)
	write(t, one, "hub.key", "key")
	write(t, one, "access/tokens.json", "{}")
	write(t, one, "tmp/other", "not shared")
	keep()
	write(t, two, "hub.key", "made here before")
	fetch(two, "access/tokens.json", "hub.key")
	fetch(two)
	for name, want := range map[string]string{"hub.key": "key", "access/tokens.json": "{}"} {
		at := filepath.Join(two, filepath.FromSlash(name))
		if got, err := os.ReadFile(at); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
		if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	unsynced := records.Unsynced()
	keep() // nothing has changed
	write(t, one, Declared, "{}")
	keep()
	fetch(two, Declared)
	if n := records.Unsynced(); n != unsynced {
		t.Errorf("%d commits would be lost in a crash", n)
	}
	if err := os.Remove(filepath.Join(one, "hub.key")); err != nil {
		t.Fatal(err)
	}
	keep()
	fetch(one, "hub.key")
	if err := Drop(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	fetch(t.TempDir())
}
