package pace

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Who waits already waits longer when another answer was slow meanwhile, and those who
// have waited for a pause together are sent one after the other, as the rate says.
func TestSlowWhileOthersWait(t *testing.T) {
	at := func(seconds ...float64) (out []time.Duration) {
		for _, s := range seconds {
			out = append(out, time.Duration(s*float64(time.Second)))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		rate  float64
		takes []time.Duration // the answers to the first requests, sent at once, or as the rate says
		want  []time.Duration // when the next ones are sent: one for each answer that came
	}{
		{"one", 0, at(2), at(4)},
		{"the other is slower", 0, at(2, 3), at(6, 6)},
		{"much slower", 0, at(2, 30), at(4, 60)},
		{"three, with a rate", 1, at(5, 5, 4), at(11, 12, 13)}, // they end after 5, 6 and 6
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Pacer{Rate: c.rate, Slow: time.Second}
				began := time.Now()
				var mu sync.Mutex
				var sent []time.Duration
				var all sync.WaitGroup
				answers := make(chan time.Duration, len(c.takes)) // in the order of their requests
				for _, takes := range c.takes {
					answers <- takes
				}
				for range c.takes {
					all.Go(func() {
						if err := p.Wait(t.Context()); err != nil {
							t.Error(err)
						}
						takes := <-answers
						time.Sleep(takes) // of the bubble: no time passes outside
						p.Took(takes)
						if err := p.Wait(t.Context()); err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						sent = append(sent, time.Since(began))
					})
				}
				all.Wait()
				slices.Sort(sent)
				if !slices.Equal(sent, c.want) {
					t.Errorf("sent at %v, want %v", sent, c.want)
				}
			})
		})
	}
}
