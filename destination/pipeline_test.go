package destination

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// The mirror is written while changes are still being fetched: here the second
// change cannot be had before the first stands in the mirror.
func TestWrittenBesideFetching(t *testing.T) {
	b := newBench(t)
	b.caps.UpdateTriples = 100 * earlyTriples
	b.src.ours = true
	put := func(e, round int) {
		var values []string
		for i := range earlyTriples {
			values = append(values, fmt.Sprintf("%d of round %d", i, round))
		}
		b.src.put(fmt.Sprintf("e%d.nt", e), nt(fmt.Sprintf("e%d", e), values...))
	}
	put(0, 0)
	put(1, 0)
	b.sync()
	put(0, 1)
	put(1, 1)
	written := make(chan struct{})
	var once sync.Once
	b.mir.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), "of round 1") {
			once.Do(func() { close(written) })
		}
		return false
	}
	b.src.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/e1.nt") {
			select {
			case <-written:
			case <-time.After(30 * time.Second):
				t.Error("the mirror waits for the last change to be fetched")
			}
		}
		return false
	}
	if rep := b.sync(); !rep.InSync || rep.Updated != 2 {
		t.Fatalf("%+v", rep)
	}
	b.src.hook, b.mir.hook = nil, nil
	b.equal()
}
