package webclient

import (
	"sync"
	"sync/atomic"
	"time"
)

// TellsAfter is the time of waiting in silence.
const TellsAfter = 30 * time.Second

// Patience ends a request without progress. Before, it tells once of waiting.
type Patience struct {
	end, tells *time.Timer
	limit      atomic.Int64
}

// NewPatience waits for limit, then calls end. With more than TellsAfter to wait it calls tell
// after that time, with the rest.
func NewPatience(limit time.Duration, end func(), tell func(rest time.Duration)) *Patience {
	p := &Patience{end: time.AfterFunc(limit, end)}
	p.limit.Store(int64(limit))
	var once sync.Once
	p.tells = time.AfterFunc(TellsAfter, func() {
		if rest := time.Duration(p.limit.Load()) - TellsAfter; rest > 0 {
			once.Do(func() { tell(rest) })
		}
	})
	return p
}

// Reset begins to wait anew.
func (p *Patience) Reset(limit time.Duration) {
	p.limit.Store(int64(limit))
	p.end.Reset(limit)
	p.tells.Reset(TellsAfter)
}

// Stop ends waiting.
func (p *Patience) Stop() {
	p.end.Stop()
	p.tells.Stop()
}
