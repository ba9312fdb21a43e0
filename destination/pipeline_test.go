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

// The mirror is written while changes are still being fetched: here the third
// change cannot be had before the first stands in the mirror. The last of them is
// written with the sequence that the mirror is at.
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
	put(2, 0)
	b.sync()
	put(0, 1)
	put(1, 1)
	put(2, 1)
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
		if strings.HasSuffix(r.URL.Path, "/e2.nt") {
			select {
			case <-written:
			case <-time.After(30 * time.Second):
				t.Error("the mirror waits for the last change to be fetched")
			}
		}
		return false
	}
	if rep := b.sync(); !rep.InSync || rep.Updated != 3 {
		t.Fatalf("%+v", rep)
	}
	b.src.hook, b.mir.hook = nil, nil
	b.equal()
}

// What the mirror says of itself is as far as it is, also when the last change of a
// sync makes a batch of its own.
func TestSequenceOfLargeChange(t *testing.T) {
	b := newBench(t)
	b.caps.UpdateTriples = 100 * earlyTriples
	b.src.ours = true
	for round := range 3 {
		var values []string
		for i := range earlyTriples + 1 {
			values = append(values, fmt.Sprintf("%d of round %d", i, round))
		}
		b.src.put("e.nt", nt("e", values...))
		b.sync()
	}
	st, err := b.open().Status(t.Context())
	if err != nil || st.Sequence == nil {
		t.Fatalf("%+v %v", st, err)
	}
	said := strings.Join(b.mir.lines("urn:rsbridge:state"), "\n")
	if want := fmt.Sprintf("#sequence> \"%d\"", *st.Sequence); !strings.Contains(said, want) {
		t.Errorf("the mirror does not say %s:\n%s", want, said)
	}
}
