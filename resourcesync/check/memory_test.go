package check

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestMemoryDoesNotGrow: a list is validated in memory that does
// not depend on its length, but for what the validator remembers of the first
// million entries. RSBRIDGE_ENTRIES says how many there are.
func TestMemoryDoesNotGrow(t *testing.T) {
	entries := 120_000
	if s := os.Getenv("RSBRIDGE_ENTRIES"); s != "" {
		var err error
		if entries, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, way := range []struct {
		name  string
		bound int // of the heap's growth, bytes
		read  func(r io.Reader, each func()) error
	}{
		{"validator", 8<<20 + 100*min(entries, 1_000_000), func(in io.Reader, each func()) error {
			_, _, err := Validate(in, ValidateOptions{Entry: func(*resourcesync.Head, *resourcesync.Entry) error { each(); return nil }})
			return err
		}},
	} {
		pr, pw := io.Pipe()
		go func() {
			w, err := resourcesync.NewWriter(pw, resourcesync.Head{Meta: resourcesync.Meta{Capability: resourcesync.ResourceList, At: time.Unix(1e9, 0)}})
			for i := 0; i < entries && err == nil; i++ {
				err = w.Write(sampleEntry(i))
			}
			if err == nil {
				err = w.Close()
			}
			pw.CloseWithError(err)
		}()
		heap := func() int {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		n, before, most := 0, heap(), 0
		err := way.read(pr, func() {
			if n%max(30_000, entries/20) == 0 {
				most = max(most, heap())
			}
			n++
		})
		if err != nil || n != entries {
			t.Errorf("%s: %d entries of %d (%v)", way.name, n, entries, err)
		}
		if t.Logf("%s: %d entries, the heap grew by %d kB at most", way.name, n, (most-before)>>10); most > before+way.bound {
			t.Errorf("%s: the heap grew from %d to %d bytes", way.name, before, most)
		}
	}
}
