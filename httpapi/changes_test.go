package httpapi

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestChangeWaits: a change in effect within ten seconds is told to be, a later one is not.
func TestChangeWaits(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: true, changeWait - 1: true, changeWait + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{ctx: t.Context()}
			changes := s.Changes()
			var taken sync.WaitGroup
			taken.Go(func() {
				c := <-changes
				c.Begun(nil)
				time.Sleep(after)
				c.Ended(nil)
			})
			if inEffect, err := s.changer()(t.Context(), nil); inEffect != want || err != nil {
				t.Errorf("after %v: %t %v", after, inEffect, err)
			}
			taken.Wait()
		})
	}
}
