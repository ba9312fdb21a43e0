package destination

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// The mirror is written while changes are still being fetched: here the third
// change cannot be had before the first stands in the mirror. The last of them is
// written with the sequence that the mirror is at.
func TestWrittenBesideFetching(t *testing.T) {
	b := newBench(t)
	b.caps.UpdateTriples = 100 * 400
	b.src.ours = true
	put := func(e, round int) {
		var values []string
		for i := range 400 {
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
	b.caps.UpdateTriples = 100 * 400
	b.src.ours = true
	for round := range 3 {
		var values []string
		for i := range 400 + 1 {
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

// How large an update may be is learned from what is written: each is twice as large
// as the one before while the store takes them quickly, until one is refused.
func TestUpdatesGrow(t *testing.T) {
	for status, most := range map[int]int{0: 0, http.StatusRequestEntityTooLarge: 12_000, http.StatusGatewayTimeout: 12_000, http.StatusServiceUnavailable: 3000} {
		if teststores.Unraced(t, 4) {
			continue
		}
		b := newBench(t)
		b.caps.UpdateTriples = 0
		b.mir.noGSP = true
		var sizes []int
		b.mir.refuse = func(text string) int {
			n := strings.Count(text, "/v> ")
			if most > 0 && n > most {
				return status
			}
			if n > 0 {
				sizes = append(sizes, n)
			}
			return 0
		}
		var values []string
		for i := range 100_000 {
			values = append(values, fmt.Sprint(i))
		}
		b.src.put("big.nt", nt("big", values...))
		d := b.open()
		storeMirror(d).Quick = time.Hour
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync || rep.Created != 1 {
			t.Fatalf("%+v %v", rep, err)
		}
		want := []int{5000, 10_000, 20_000, 20_000, 20_000, 20_000, 5000}
		switch most {
		case 3000:
			want = slices.Repeat([]int{2500}, 40)
		case 12_000:
			want = []int{5000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 5000}
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("at most %d: updates of %v triples", most, sizes)
		}
	}
}
