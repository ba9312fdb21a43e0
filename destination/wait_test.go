package destination

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// Wait ends by a poll that finds more, or by a wake from outside, and by nothing else.
func TestWait(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"changes", "list", "dump"} {
		b := newBench(t)
		fill(b.src, 3)
		b.src.changes, b.src.list, b.src.dump = kind == "changes", kind != "dump", kind == "dump"
		b.sync()
		ctx, cancel := context.WithCancel(t.Context())
		var asked atomic.Int64
		d := b.open()
		d.reads.Pause = time.Nanosecond
		d.src = sourceOf(d)
		b.src.hook = func(http.ResponseWriter, *http.Request) bool {
			if asked.Add(1) == 20 {
				cancel()
			}
			return false
		}
		if err := d.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: nothing is new, and Wait gives %v after %d requests", kind, err, asked.Load())
		}
		b.src.hook = nil
		b.src.put("new.nt", nt("new", "a", "1"))
		if err := d.Wait(t.Context()); err != nil {
			t.Errorf("%s: a poll: %v", kind, err)
		}
		b.sync()
		wake := make(chan struct{}, 1)
		d = b.open()
		d.reads.Pause, d.opt.Wake = 24*time.Hour, wake
		d.src = sourceOf(d)
		wake <- struct{}{}
		if err := d.Wait(t.Context()); err != nil {
			t.Errorf("%s: a wake: %v", kind, err)
		}
	}
}
