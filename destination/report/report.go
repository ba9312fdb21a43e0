// Package report tells a source the position of its mirror, if the source takes such reports.
//
// A report follows each sync, and goes out every few minutes without one. It is for the operators of
// the source: nothing depends on its arrival.
package report

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/position"
	"github.com/rsbridge/rsbridge/internal/repeats"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

const (
	pause     = 5 * time.Second // between two reports, however often the mirror moves
	heartbeat = 5 * time.Minute // a mirror at rest reports too
	longest   = time.Hour       // pause after failures; so often the source is asked for its address
	within    = 30 * time.Second
)

// Options of Open.
type Options struct {
	Name        string // of the destination
	Source, Set string // as configured
	Allow       []string
	Timeout     time.Duration // of the beginning of an answer
	UserAgent   string
	Settings    settings.Names
	TempDir     string
	Transport   http.RoundTripper
	Key         ed25519.PrivateKey
	// Position fills in the mirror's position; false: it is not known.
	Position func(context.Context, *position.Report) (bool, error)
	Now      func() time.Time
	Logger   *slog.Logger
}

// Reporter reports the position of one mirror; nil reports nothing.
type Reporter struct {
	// Sleep is a pause. A test may replace it before Start.
	Sleep func(context.Context, time.Duration) error

	o       Options
	log     *slog.Logger
	repeats *repeats.Lines
	client  *fetch.Client
	source  *feed.Source
	moved   chan struct{}
	started atomic.Bool
	stop    context.CancelFunc
	running sync.WaitGroup

	to   string    // the address of reports; "" while it is not known
	asks time.Time // when the source is asked for it again
}

// Open makes a reporter; nothing runs yet.
func Open(o Options) (*Reporter, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Reporter{Sleep: fetch.Sleep, o: o, repeats: &repeats.Lines{}, moved: make(chan struct{}, 1)}
	r.log = slog.New(r.repeats.Handler(o.Logger.Handler()))
	limits := feed.DefaultLimits()
	limits.Header = cmp.Or(o.Timeout, limits.Header)
	var err error
	if r.client, err = fetch.NewClient(o.Source, fetch.Options{Names: o.Settings, Allow: o.Allow, Agent: o.UserAgent, Transport: o.Transport, Limits: &limits.Limits, Now: o.Now, Log: r.log}); err != nil {
		return nil, fmt.Errorf("report the position: %w", err)
	}
	r.source = feed.New(feed.Options{Source: r.client.Source(), Set: o.Set, Client: r.client, Limits: &limits, Settings: o.Settings, TempDir: o.TempDir, Now: o.Now, Log: r.log})
	return r, nil
}

// Key is the public part of the mirror's key, "" of a nil reporter.
func (r *Reporter) Key() position.Key {
	if r == nil {
		return ""
	}
	return position.Name(r.o.Key)
}

// Moved asks for a report. Before Start it is sent at once.
func (r *Reporter) Moved(ctx context.Context) {
	switch {
	case r == nil:
	case r.started.Load():
		select {
		case r.moved <- struct{}{}:
		default:
		}
	default:
		if err := r.report(ctx); err != nil {
			r.warn(err)
		}
	}
}

func (r *Reporter) warn(err error) {
	r.log.Warn("the position of the mirror is not reported for now", "error", webguard.MaskedText(clip.Middle(err.Error())))
}

// Start reports until End.
func (r *Reporter) Start() {
	if r == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background()) // ended by End
	r.stop = stop
	r.started.Store(true)
	r.Moved(ctx)
	r.running.Go(func() { r.run(ctx) })
}

// End ends the work of Start. It may be called twice.
func (r *Reporter) End() {
	if r != nil && r.stop != nil {
		r.stop()
		r.running.Wait()
		r.repeats.Settle(r.o.Logger)
	}
}

// wait returns after a move, or a heartbeat.
func (r *Reporter) wait(ctx context.Context) error {
	beat, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { // ends with beat
		defer close(over)
		_ = r.Sleep(beat, heartbeat*3/4+rand.N(heartbeat/2))
	}()
	select {
	case <-over:
	case <-r.moved:
	}
	stop()
	<-over
	return context.Cause(ctx)
}

func (r *Reporter) run(ctx context.Context) {
	next := pause
	for r.wait(ctx) == nil {
		if err := r.report(ctx); err == nil {
			next = pause
		} else if ctx.Err() == nil {
			r.to, next = "", min(2*next, longest)
			r.warn(err)
		}
		if r.Sleep(ctx, next) != nil {
			return
		}
	}
}

// report sends one report, if the position is known and the source takes it.
func (r *Reporter) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rep := position.Report{Mirror: r.o.Name}
	if known, err := r.o.Position(ctx, &rep); err != nil || !known {
		return err
	}
	if now := r.o.Now(); r.to == "" && !now.Before(r.asks) {
		r.client.Begin()
		offer, err := r.source.Discover(ctx)
		if err != nil {
			return err
		}
		if r.to = offer.Reports; r.to == "" {
			r.asks = now.Add(longest)
			r.log.Info("the source takes no reports of positions")
		}
	}
	if r.to == "" {
		return nil
	}
	rep.To, rep.Time = r.to, r.o.Now().UTC()
	body, err := position.Seal(rep, r.o.Key)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", position.ContentType)
	res, err := r.client.Plain().Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 || res.Request.Method != http.MethodPost {
		reason, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return fmt.Errorf("report to %s: %s: %.300q", clip.Middle(r.to), res.Status, bytes.TrimSpace(reason))
	}
	return nil
}
