package fetch

import "time"

// Limits bound every request to a source. They are far above what an honest source
// sends, and each has its own message when it is met.
type Limits struct {
	Page      int64         // bytes of a page, robots.txt or other document read whole
	Redirects int           // in a row
	Idle      time.Duration // without a byte
	SlowAfter time.Duration // after this a body must have come at slowRate
	SlowRate  int64         // bytes a second
	Header    time.Duration // until the first byte of an answer
	Attempts  int           // of one request
	Pause     time.Duration // after the first failed attempt; doubles
	PauseMax  time.Duration // a longer Retry-After ends the attempts
	Dead      int           // failed requests in a row after which the source counts as gone
}

// DefaultLimits are the limits of a Client with none of its own.
func DefaultLimits() Limits {
	return Limits{Page: 4 << 20, Redirects: 5, Idle: 60 * time.Second, SlowAfter: 2 * time.Minute, SlowRate: 64, Header: 2 * time.Minute,
		Attempts: 5, Pause: 250 * time.Millisecond, PauseMax: 30 * time.Second, Dead: 40}
}
