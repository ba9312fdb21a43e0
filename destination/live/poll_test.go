package live

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/internal/configfile"
)

// TestPollBehind: behind a channel the source is polled ever more seldom, also without a schedule. A
// change that the channel does not tell of brings the first pause back; twice in a row, and the
// channel is opened anew.
func TestPollBehind(t *testing.T) {
	s := newSource(t)
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var passed atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	type call struct{ poll bool }
	syncs, waits, wait := make(chan call), make(chan time.Duration), make(chan struct{})
	log := &lines{}
	x, err := Open(Options{Config: Config{Mode: WebSocket, Poll: configfile.Duration(5 * time.Minute)}, Source: s.URL, Now: now, Logger: slog.New(slog.NewTextHandler(log, nil)), Sync: func(ctx context.Context, poll bool) bool {
		select {
		case syncs <- call{poll}:
		case <-ctx.Done():
		}
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	x.offer = func(context.Context) (*feed.Offer, error) { return &feed.Offer{Channels: s.channel}, nil }
	x.Rest = func(context.Context, time.Duration) error { return nil }
	x.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	x.Wait = func(ctx context.Context, d time.Duration) error {
		select {
		case waits <- d:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-wait:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if x.Rests() || !x.NextPoll().IsZero() {
		t.Error("a schedule rests without a channel")
	}
	x.Start()
	defer x.End()
	<-waits
	if first := <-syncs; first.poll {
		t.Error("the opening of a channel begins a poll")
	}
	x.Read(feed.Heard{}, true) // what was before the channel
	// polled lets the next pause pass, and ends the poll after it.
	polled := func(pause time.Duration, found bool) {
		t.Helper()
		if got := x.NextPoll().Sub(now()); got != pause || !x.Rests() {
			t.Errorf("a pause of %v, want %v; the schedule rests: %t", got, pause, x.Rests())
		}
		passed.Add(int64(pause))
		if x.Rests() {
			t.Error("the schedule rests when a poll is due")
		}
		wait <- struct{}{}
		<-waits // before the next one
		if run := <-syncs; !run.poll {
			t.Error("a poll is taken for a notification")
		}
		x.Read(feed.Heard{}, found)
	}
	polled(time.Minute, false)
	polled(2*time.Minute, false)
	polled(4*time.Minute, false)
	polled(5*time.Minute, false)
	polled(5*time.Minute, true) // unheard
	polled(time.Minute, false)
	s.send <- note(7)
	if run := <-syncs; run.poll {
		t.Error("a notification is taken for a poll")
	}
	x.Read(feed.Heard{Position: 7}, true)
	x.Read(feed.Heard{}, false) // somebody asked for a sync
	polled(2*time.Minute, true) // unheard, but the channel has told of something in between
	polled(time.Minute, true)   // unheard again
	<-syncs                     // the end of the channel, and its opening
	for x.Way() != WebSocket || log.count("does not tell of") == 0 {
		select {
		case <-syncs:
		case <-time.After(10 * time.Second):
			t.Fatalf("no other channel is opened: %s", log)
		}
	}
	if s.mu.Lock(); len(s.opened) != 2 {
		t.Errorf("opened %v", s.opened)
	}
	s.mu.Unlock()
}

// TestPollSetting: a pause below a second is refused.
func TestPollSetting(t *testing.T) {
	for d, ok := range map[time.Duration]bool{0: true, time.Second: true, time.Hour: true, time.Millisecond: false, -time.Hour: false} {
		if err := (&Config{Poll: configfile.Duration(d)}).Check(); (err == nil) != ok {
			t.Errorf("%v: %v", d, errors.Unwrap(err))
		}
	}
}

// TestNextAfterFailure: a failed sync tells when it is tried again, until then.
func TestNextAfterFailure(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var x *Subscriber
	tries := make(chan time.Time)
	x, err := Open(Options{Config: Config{Mode: Events}, Source: newSource(t).URL, Now: func() time.Time { return now }, Sync: func(context.Context, bool) bool {
		tries <- x.Next()
		return false
	}})
	if err != nil {
		t.Fatal(err)
	}
	slept := make(chan time.Time)
	x.Sleep = func(ctx context.Context, _ time.Duration) error { slept <- x.Next(); return nil }
	x.Rest = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); x.follow(ctx) }()
	x.hint()
	for _, pause := range []time.Duration{shortest, 2 * shortest, 4 * shortest} {
		if next := <-tries; !next.IsZero() {
			t.Errorf("while it is tried, the next one is told for %v", next)
		}
		if next := <-slept; !next.Equal(now.Add(pause)) {
			t.Errorf("the next one is told for %v, want %v", next, now.Add(pause))
		}
	}
	stop()
	select {
	case <-tries: // it had begun
	case <-ended:
	}
	<-ended
}
