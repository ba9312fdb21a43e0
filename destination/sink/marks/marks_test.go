package marks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/sink"
)

// A damaged file is no file, and is replaced by the next write; one of a newer version is kept.
func TestDamaged(t *testing.T) {
	f := File(filepath.Join(t.TempDir(), "state.json"))
	cp := &sink.Checkpoint{Generation: "7", Writer: "w"}
	const mark = sink.MarkPrefix + "a"
	write := func() {
		t.Helper()
		st, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		if st.Set(mark, cp); f.Write(st) != nil {
			t.Fatal(err)
		}
		if st, err = f.Read(); err != nil {
			t.Fatal(err)
		}
		if got, err := st.Of(mark); err != nil || got == nil || *got != *cp {
			t.Fatalf("%+v %v", got, err)
		}
	}
	write()
	whole, err := os.ReadFile(string(f))
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", string(whole[:len(whole)/2]), strings.Repeat("\x00", len(whole)), "{}", "[]",
		strings.Replace(string(whole), `\"7\" .`, `\"7 .`, 1), `{"version":1,"graphs":{"g":"no triple"}}`} {
		if err := os.WriteFile(string(f), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if st, err := f.Read(); err != nil || st.Version != 1 || len(st.Graphs) != 0 || st.Authority != "" {
			t.Errorf("%.40q: %+v %v", damaged, st, err)
		}
		write()
	}
	if err := os.WriteFile(string(f), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), string(f)+": version 2") {
		t.Error(err)
	}
}
