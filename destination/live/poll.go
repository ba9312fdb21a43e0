package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

const (
	seldomPoll = time.Hour   // default of Config.Poll
	oftenPoll  = time.Minute // the first pause between polls behind a channel, and after an unheard change
	mostMissed = 2           // polls with unheard changes, one after the other: the channel is opened anew
)

// errUnheard ends a silent channel. A hub may have lost a subscription.
var errUnheard = errors.New("polls found changes that the channel does not tell of")

// polling is the pace of the polls behind an open channel. A poll is each sync that has read
// everything, whatever began it.
type polling struct {
	last   time.Time     // poll; zero: none yet
	retry  time.Time     // of a sync that failed, about; zero: none waits
	pause  time.Duration // until the next one
	heard  int           // notifications since the last poll
	fresh  bool          // the channel was opened since the last poll: changes before it are told nowhere
	missed int           // polls with unheard changes since the last notification
	drop   context.CancelCauseFunc
}

// opened begins the pace of a channel.
func (p *polling) opened(drop context.CancelCauseFunc, longest time.Duration) {
	*p = polling{last: p.last, retry: p.retry, pause: min(oftenPoll, longest), fresh: true, drop: drop}
}

// told notes a notification.
func (p *polling) told() { p.heard, p.missed = p.heard+1, 0 }

// read notes a poll that found changes or not: the pause doubles, up to the longest, with each due poll
// that finds nothing.
func (p *polling) read(now time.Time, found bool, longest time.Duration) {
	due := now.Sub(p.last) >= p.pause
	p.last = now
	switch {
	case p.fresh:
	case found && p.heard == 0:
		p.pause = min(oftenPoll, longest)
		if p.missed++; p.missed >= mostMissed {
			p.drop(errUnheard)
		}
	case due && p.heard == 0:
		p.pause = min(2*p.pause, longest)
	}
	p.heard, p.fresh = 0, false
}

// longestPause is the pause of Config.Poll.
func (s *Subscriber) longestPause() time.Duration {
	return cmp.Or(time.Duration(s.o.Poll), seldomPoll)
}

// NextPoll is when the source is polled behind an open channel, zero without one: then the schedule
// counts.
func (s *Subscriber) NextPoll() time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.way == Polling || s.polls.last.IsZero() {
		return time.Time{}
	}
	return s.polls.last.Add(s.polls.pause)
}

// Next is when a sync begins without a notification: again after a failed one, else with NextPoll. Zero: the
// schedule counts.
func (s *Subscriber) Next() time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	retry := s.polls.retry
	s.mu.Unlock()
	if !retry.IsZero() {
		return retry
	}
	return s.NextPoll()
}

// retries notes when a failed sync is tried again, zero for never.
func (s *Subscriber) retries(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls.retry = at
}

// Rests tells whether a scheduled sync may be left out: a channel is open, and the next poll behind it
// is not due.
func (s *Subscriber) Rests() bool {
	next := s.NextPoll()
	return !next.IsZero() && s.o.Now().Before(next)
}

// pollBehind asks for a sync when one is due, until ctx ends.
func (s *Subscriber) pollBehind(ctx context.Context) {
	for {
		wait := oftenPoll
		if next := s.NextPoll(); !next.IsZero() {
			if wait = next.Sub(s.o.Now()); wait <= 0 {
				s.due.Store(true)
				s.hint()
				wait = oftenPoll // it may fail
			}
		}
		if s.Wait(ctx, min(wait, s.longestPause())) != nil {
			return
		}
	}
}

// Read notes that all was read after an announcement, and whether there were changes; a forged
// announcement is forgotten by it. A pause after a channel that could not be opened ends: the source
// answers.
func (s *Subscriber) Read(announced feed.Heard, found bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announced == announced {
		s.announced = feed.Heard{}
	} else {
		s.announced.Since = s.last
	}
	if s.way != Polling {
		s.polls.read(s.o.Now(), found, s.longestPause())
	}
	select {
	case s.again <- struct{}{}:
	default:
	}
}
