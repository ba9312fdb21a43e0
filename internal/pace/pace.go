// Package pace holds requests to one server back, so that asking it much does not
// take it from others.
package pace

import (
	"context"
	"sync"
	"time"
)

// mostPause is how long a slow answer makes the next request wait at most.
const mostPause = time.Minute

// Pacer holds requests back: so many a second at most, and after an answer that was
// slow to come for as long as it took. A store that is busy with others has at
// least half of its time for them, however much there is to ask.
type Pacer struct {
	Rate float64       // requests a second; 0: any number
	Slow time.Duration // an answer is slow when it takes longer to begin; 0: none is

	mu    sync.Mutex
	next  time.Time // the first free turn
	pause time.Time // its end: no request before it
}

// Wait waits until a request may be sent.
func (p *Pacer) Wait(ctx context.Context) error {
	for turn := (time.Time{}); ; { // when it is this request's turn, zero while it has none
		p.mu.Lock()
		now := time.Now()
		at := p.pause
		switch {
		case at.After(now): // an answer may have been slow while this request waited; its turn has passed then
			turn = time.Time{}
		case turn.IsZero():
			turn = now
			if p.next.After(now) {
				turn = p.next
			}
			if p.Rate > 0 {
				p.next = turn.Add(time.Duration(float64(time.Second) / p.Rate))
			}
			at = turn
		}
		p.mu.Unlock()
		if !at.After(now) {
			return nil
		}
		timer := time.NewTimer(at.Sub(now))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// Took notes how long an answer took to begin, and tells for how long requests
// pause because of it.
func (p *Pacer) Took(d time.Duration) (pause time.Duration) {
	if p.Slow <= 0 || d <= p.Slow {
		return 0
	}
	pause = min(d, mostPause)
	p.mu.Lock()
	defer p.mu.Unlock()
	if end := time.Now().Add(pause); end.After(p.pause) {
		p.pause = end
	}
	return pause
}
