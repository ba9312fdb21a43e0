package sparql

import (
	"context"
	"sync"
	"time"
)

// mostPause is how long a slow answer makes the next request wait at most.
const mostPause = time.Minute

// pacer holds requests back: so many a second at most, and after an answer that was
// slow to come for as long as that took. A store that is busy with others has at
// least half of its time for them, however much there is to ask.
type pacer struct {
	rate float64       // requests a second; 0: any number
	slow time.Duration // 0: no answer is slow

	mu   sync.Mutex
	next time.Time // no request before it
}

// wait waits until a request may be sent.
func (p *pacer) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	if p.rate > 0 {
		p.next = at.Add(time.Duration(float64(time.Second) / p.rate))
	}
	p.mu.Unlock()
	if !at.After(now) {
		return nil
	}
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// took notes how long an answer took to begin, and tells for how long requests
// pause because of it.
func (p *pacer) took(d time.Duration) (pause time.Duration) {
	if p.slow <= 0 || d <= p.slow {
		return 0
	}
	pause = min(d, mostPause)
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := time.Now().Add(pause); at.After(p.next) {
		p.next = at
	}
	return pause
}
