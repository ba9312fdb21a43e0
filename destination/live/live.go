// Package live hears of the changes of a source as they come.
//
// A notification is a hint. Whatever it says, it only begins a sync, by the Change List: a lost one
// costs time, and a forged one a request. Each opening of a channel begins a sync too: the list has
// the changes between two channels. Syncs do not pile up: during one, one more may wait.
//
// The Capability List offers the ways (Change Notification 1.0.1, 5; notification 0.8, 3). Auto takes
// the first one that can be opened:
//
//	websub      a callback of ours at the source's hub (W3C WebSub); needs Config.Callback
//	websocket   a WebSocket (notification 0.8)
//	events      an event stream, an extension of rsbridge
//	polling     none: the schedule alone
//
// A channel without a sign of life for two minutes is lost. It is opened again after a second, then
// after growing pauses of up to five minutes. Without any channel the source is asked again each hour.
// Nothing of this is an error of a sync: it is logged, and [Subscriber.Way] tells it.
//
// A channel may also die without a sign, as a subscription at a hub. So the source is polled behind it:
// a minute after the last sync, then after growing pauses of up to Config.Poll. A change that nobody told of brings
// the minute back, and twice in a row the channel is opened anew. Meanwhile a schedule rests
// ([Subscriber.Rests]).
//
// [Subscriber.ServeHTTP] answers a hub. Its question is answered with the challenge if it is about our
// own request, else with 404 (WebSub, 5.3.1). A notification of up to 4 MiB is answered 202, a larger
// one 413. Without the signature of its subscription it is left out, and answered alike (WebSub,
// 7.1.2). At a callback of no subscription the answer is 410: the hub ends it.
package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/configfile"
	"github.com/rsbridge/rsbridge/internal/repeats"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// The modes of a subscriber, and the ways in which it hears.
const (
	Auto      = "auto"
	WebSub    = "websub"
	WebSocket = "websocket"
	Events    = "events"
	Off       = "off"
	Polling   = "polling" // a way alone: it hears nothing
)

const (
	mostBytes  = 4 << 20          // of one notification; a source of our kind sends up to 1 MiB
	quiet      = 2 * time.Minute  // without a sign of life a channel is lost
	openWithin = 30 * time.Second // of a channel
	shortest   = time.Second      // pause before a channel is opened again
	longest    = 5 * time.Minute
	leastRest  = 50 * time.Millisecond // after a sync, for more hints
	mostRest   = 250 * time.Millisecond
	seldom     = time.Hour // a source without channels is asked again after it
)

// Config is how a destination hears of changes, as a part of a configuration file. There the mode
// may stand for it.
type Config struct {
	Mode     string `yaml:"mode" short:"true" doc:"auto: the first way offered by the source, of websub (with a callback), websocket and events; off: the schedule alone. Each opening of a channel and each notification begins a sync" allowed:"auto|websub|websocket|events|off" default:"auto"`
	Callback string `yaml:"callback" doc:"for websub: the address of the public listener, as the hub sees it; the hub calls /callback/NAME below it"`

	Poll configfile.Duration `yaml:"poll" doc:"the longest pause between two polls behind an open channel, with or without a schedule; it begins with a minute, and grows as long as the channel tells of all changes" default:"1h"`
}

// Check finds the first error of the configuration.
func (c *Config) Check() error {
	if poll := time.Duration(c.Poll); poll != 0 && poll < time.Second {
		return fmt.Errorf("poll %v: want a second at least", poll)
	}
	if c.Callback == "" {
		if c.Mode == WebSub {
			return errors.New("mode websub needs a callback: the address of the public listener, as the hub sees it")
		}
		return nil
	}
	u, err := url.Parse(c.Callback)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("callback %q: want an http or https address without user and query", webguard.Masked(c.Callback))
	}
	return nil
}

// CallbackPath is the place of the callbacks of destinations, below the root or the path of the
// callback address.
const CallbackPath = "/callback/"

// Calls tells whether a request is for a callback of the destination with this name.
func (c *Config) Calls(path, name string) bool {
	if c.Callback == "" {
		return false
	}
	u, err := url.Parse(c.Callback)
	if err != nil {
		return false
	}
	below := CallbackPath + name + "/"
	return strings.HasPrefix(path, below) || strings.HasPrefix(path, strings.TrimSuffix(u.EscapedPath(), "/")+below)
}

func (o *Options) callback() string {
	return strings.TrimSuffix(o.Callback, "/") + CallbackPath + o.Name + "/"
}

// Options of Open.
type Options struct {
	Config
	Name        string            // of the destination, in callbacks
	Source, Set string            // as configured
	Allow       []string          // hosts beside the source's own
	Timeout     time.Duration     // of the beginning of an answer; 0: that of feed
	UserAgent   string            // in requests
	Settings    settings.Names    // of the settings in errors
	TempDir     string            // for documents too large for memory
	Transport   http.RoundTripper // nil: the network
	// Sync reads the list, poll: without any hint. It tells whether nothing is left to try again. One
	// call runs at a time.
	Sync   func(ctx context.Context, poll bool) bool
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: silent
}

// Subscriber follows the channels of one source. One that is nil hears nothing.
type Subscriber struct {
	// Sleep is the pause before another attempt, Rest the one after a sync, Wait the one before a poll
	// behind a channel. A test may replace them before Start.
	Sleep, Rest, Wait func(context.Context, time.Duration) error

	o       Options
	log     *slog.Logger
	repeats *repeats.Lines
	client  *fetch.Client
	offer   func(context.Context) (*feed.Offer, error)
	hints   chan struct{} // one is enough: the next sync reads everything
	again   chan struct{}
	due     atomic.Bool // a poll is
	stop    context.CancelFunc
	running sync.WaitGroup

	mu            sync.Mutex
	way           string
	lost          lost
	polls         polling
	announced     feed.Heard
	last          time.Time                // of the first change of the last notification
	subscriptions map[string]*subscription // by token
}

// Open makes a subscriber, nil with the mode Off; nothing runs yet. The error is of the source's
// address.
func Open(o Options) (*Subscriber, error) {
	if o.Mode = cmp.Or(o.Mode, Auto); o.Mode == Off {
		return nil, nil
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Subscriber{Sleep: fetch.Sleep, Rest: fetch.Sleep, Wait: fetch.Sleep, o: o, repeats: &repeats.Lines{}, hints: make(chan struct{}, 1), again: make(chan struct{}, 1), way: Polling, subscriptions: map[string]*subscription{}}
	s.log = slog.New(s.repeats.Handler(o.Logger.Handler()))
	limits := feed.DefaultLimits()
	limits.Header = cmp.Or(o.Timeout, limits.Header)
	var err error
	if s.client, err = fetch.NewClient(o.Source, fetch.Options{Names: o.Settings, Allow: o.Allow, Agent: o.UserAgent, Transport: o.Transport, Limits: &limits.Limits, Now: o.Now, Log: s.log}); err != nil {
		return nil, fmt.Errorf("hear of changes: %w", err)
	}
	src := feed.New(feed.Options{Source: s.client.Source(), Set: o.Set, Client: s.client, Limits: &limits, Settings: o.Settings, TempDir: o.TempDir, Now: o.Now, Log: s.log})
	s.offer = func(ctx context.Context) (*feed.Offer, error) {
		s.client.Begin()
		return src.Discover(ctx)
	}
	return s, nil
}

// Start hears until End. It returns at once.
func (s *Subscriber) Start() {
	if s == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background()) // ended by End
	s.stop = stop
	s.running.Go(func() { s.run(ctx) })
	s.running.Go(func() { s.follow(ctx) })
	s.running.Go(func() { s.pollBehind(ctx) })
}

// End ends the work of Start. It may be called twice.
func (s *Subscriber) End() {
	if s != nil && s.stop != nil {
		s.stop()
		s.running.Wait()
	}
}

// hint asks for a sync.
func (s *Subscriber) hint() {
	select {
	case s.hints <- struct{}{}:
	default:
	}
}

// follow syncs at each hint. Those that come during a sync, and for a while after it, are followed by
// one more: the while is as long as the sync took, so that short syncs take half of the time at most.
// A change waits for it, so it is bounded. After a failure it tries again: without a schedule nobody
// else does.
func (s *Subscriber) follow(ctx context.Context) {
	pause := shortest
	for again := false; ; {
		if again {
			s.retries(s.o.Now().Add(pause))
			_ = s.pause(ctx, pause, s.hints)
			s.retries(time.Time{})
			pause = min(2*pause, longest)
		} else {
			select {
			case <-ctx.Done():
			case <-s.hints:
			}
			pause = shortest
		}
		if ctx.Err() != nil {
			return
		}
		began := s.o.Now()
		again = !s.o.Sync(ctx, s.due.Swap(false))
		if s.Rest(ctx, min(max(s.o.Now().Sub(began), leastRest), mostRest)) != nil {
			return
		}
	}
}

// Way tells how changes are heard at present.
func (s *Subscriber) Way() string {
	if s == nil {
		return Polling
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.way
}

// Announced is what was heard of and not read yet.
func (s *Subscriber) Announced() feed.Heard {
	if s == nil {
		return feed.Heard{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.announced
}

// run hears until ctx ends.
func (s *Subscriber) run(ctx context.Context) {
	defer s.repeats.Settle(s.o.Logger)
	pause, away := shortest, false
	for ctx.Err() == nil {
		begun := s.o.Now()
		end := s.hear(ctx)
		s.mu.Lock()
		s.way = Polling
		s.mu.Unlock()
		if ctx.Err() == nil && !errors.Is(end.err, errNone) && (end.opened || !away) {
			s.hint() // the list is read at once, and tells whether the source answers
		}
		away = !end.opened
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(end.err, errNone):
			s.log.Debug("the source offers no notifications; it is polled", "mode", s.o.Mode)
			_ = s.pause(ctx, seldom, nil)
			continue
		case !end.opened:
			s.mu.Lock()
			level, times := s.lost.note(told(end.err))
			s.mu.Unlock()
			s.log.Log(ctx, level, "no channel of notifications can be opened: the source is polled until one can", "cause", told(end.err), "attempts", times)
			select {
			case <-s.again: // of before
			default:
			}
			if s.pause(ctx, pause, s.again) {
				pause = shortest
				continue
			}
		default:
			s.log.Info("a channel of notifications ended; it is opened again", "reason", told(plain(end.err)))
			if end.heard || s.o.Now().Sub(begun) > pause {
				pause = shortest
			}
			_ = s.pause(ctx, pause, nil)
		}
		pause = min(2*pause, longest)
	}
}

// lost counts failed attempts to open a channel, one after the other.
type lost struct {
	times int
	why   string // without numbers: ports of connections differ
}

var number = regexp.MustCompile(`\d+`)

// note counts an attempt, and tells its level: the first one is written, and one with another cause.
func (l *lost) note(why string) (level slog.Level, times int) {
	level, last := slog.LevelDebug, l.why
	if l.why = number.ReplaceAllString(why, ""); l.why != last {
		level = slog.LevelWarn
	}
	l.times++
	return level, l.times
}

// end forgets the attempts, and tells how many there were.
func (l *lost) end() (times int) {
	times, *l = l.times, lost{}
	return times
}

func told(err error) string { return webguard.MaskedText(clip.Middle(err.Error())) }

// pause waits about so long. It tells whether it was cut short.
func (s *Subscriber) pause(ctx context.Context, d time.Duration, cut chan struct{}) (short bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slept := make(chan struct{})
	go func() { // ends with ctx
		defer close(slept)
		// The mirrors of a source that comes back do not all come at once.
		_ = s.Sleep(ctx, d*3/4+rand.N(d/2))
	}()
	select {
	case <-slept:
		return false
	case <-cut:
		cancel()
		<-slept
		return true
	}
}

// plain is the cause of a failed channel in words: libraries tell of their own calls.
func plain(err error) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no answer in time")
	case errors.As(err, &dns):
		return fmt.Errorf("the name of the host %s is unknown", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was cut")
	}
	return err
}

// errNone comes from a source without a channel of the mode.
var errNone = errors.New("no channel is offered")

// ended is how a channel was.
type ended struct {
	opened, heard bool
	err           error
}

// channel is an open or failed one: run calls opened once, then hear for each notification.
type channel struct {
	way, address string
	run          func(context.Context, *hearing) error
}

// hearing is what a channel tells.
type hearing struct {
	s         *Subscriber
	c         *channel
	drop      context.CancelCauseFunc // ends it
	framework bool                    // it tells of documents, not of changes
	end       ended
	heard     atomic.Bool
}

// hear opens the first possible channel, and hears until it ends.
func (s *Subscriber) hear(ctx context.Context) ended {
	o, err := s.offer(ctx)
	if err != nil {
		return ended{err: err}
	}
	ctx, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	list := s.channels(o.Channels)
	if len(list) == 0 {
		return ended{err: errNone}
	}
	if frames := s.channels(o.Framework); len(frames) > 0 {
		beside, stop := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() { // ends with beside
			defer close(over)
			s.framework(beside, frames)
		}()
		defer func() { stop(); <-over }()
	}
	var errs []error
	for _, c := range list {
		h := &hearing{s: s, c: &c, drop: drop}
		if h.end.err = c.run(ctx, h); h.end.err == nil {
			h.end.err = io.EOF
		}
		h.end.heard = h.heard.Load()
		if h.end.opened || ctx.Err() != nil {
			return h.end
		}
		s.log.Debug("a channel cannot be opened", "channel", c.address, "way", c.way, "error", h.end.err)
		errs = append(errs, fmt.Errorf("%s at %s: %w", c.way, webguard.Masked(c.address), plain(h.end.err)))
	}
	return ended{err: errors.Join(errs...)}
}

// framework hears of the source's documents, over the first possible channel, until ctx ends.
func (s *Subscriber) framework(ctx context.Context, list []channel) {
	for pause := shortest; ctx.Err() == nil; pause = min(2*pause, longest) {
		for _, c := range list {
			h := &hearing{s: s, c: &c, framework: true}
			err := c.run(ctx, h)
			if ctx.Err() != nil {
				return
			}
			s.log.Debug("a channel of framework notifications ended", "channel", c.address, "way", c.way, "error", err)
			if h.end.opened {
				break
			}
		}
		_ = s.pause(ctx, pause, nil)
	}
}

// channels are those of the mode, the best first.
func (s *Subscriber) channels(offered []feed.Channel) (out []channel) {
	for _, way := range []string{WebSub, WebSocket, Events} {
		if s.o.Mode != Auto && s.o.Mode != way {
			continue
		}
		for _, c := range offered {
			socket := strings.HasPrefix(c.Loc, "ws:") || strings.HasPrefix(c.Loc, "wss:")
			switch {
			case way == WebSub && s.o.Callback != "" && !socket && len(c.Hubs) > 0:
				out = append(out, channel{way, c.Loc, func(ctx context.Context, h *hearing) error { return s.webSub(ctx, c, h) }})
			case way == WebSocket && socket:
				out = append(out, channel{way, c.Loc, func(ctx context.Context, h *hearing) error { return s.socket(ctx, c.Loc, h) }})
			case way == Events && c.Events != "":
				out = append(out, channel{way, c.Events, func(ctx context.Context, h *hearing) error { return s.events(ctx, c.Events, h) }})
				return out // the same stream stands at each entry
			}
		}
	}
	return out
}

// opened tells that a channel is open. What was before it is in the list.
func (h *hearing) opened() {
	h.end.opened = true
	failed := 0
	if !h.framework {
		h.s.mu.Lock()
		h.s.way = h.c.way
		failed = h.s.lost.end()
		h.s.polls.opened(h.drop, h.s.longestPause())
		h.s.mu.Unlock()
	}
	h.s.log.Debug("notifications are heard", "channel", h.c.address, "way", h.c.way)
	if failed > 0 {
		h.s.log.Info("notifications are heard again", "channel", webguard.Masked(h.c.address), "way", h.c.way, "attempts", failed)
	}
	h.s.hint()
}

// take takes a notification.
func (h *hearing) take(body []byte) {
	if h.framework {
		h.takeFramework(body)
		return
	}
	at, err := read(body, h.c.address)
	if err != nil {
		h.s.log.Warn("a notification cannot be read; it counts as a hint alone", "channel", h.c.address, "bytes", len(body), "error", told(err))
	} else {
		h.heard.Store(true)
		h.s.announce(at)
	}
	h.s.told()
	h.s.hint()
}

// takeFramework begins a sync for new, moved and ended sets, lists and dumps. The growth of a Change
// List is told on the other channel.
func (h *hearing) takeFramework(body []byte) {
	r, err := resourcesync.NewReader(bytes.NewReader(body), resourcesync.ReaderOptions{BaseURL: h.c.address, MaxBytes: mostBytes, Expect: resourcesync.FrameworkNotification})
	grown := err == nil
	for err == nil {
		var e *resourcesync.Entry
		if e, err = r.Next(); err == nil {
			grown = grown && e.Meta.Capability == resourcesync.ChangeList && e.Meta.Change == resourcesync.Updated
		}
	}
	if err != io.EOF {
		h.s.log.Warn("a framework notification cannot be read; it counts as a hint alone", "channel", h.c.address, "bytes", len(body), "error", told(err))
	}
	if !grown || err != io.EOF {
		h.s.told()
		h.s.hint()
	}
}

// told notes a notification: what the next poll finds was heard of.
func (s *Subscriber) told() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls.told()
}

// announce notes a position told by a notification, and the time of its first change.
func (s *Subscriber) announce(at feed.Heard) {
	if at.Since.IsZero() {
		at.Since = s.o.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = at.Since
	if s.announced.Position == 0 {
		s.announced.Since = at.Since
	}
	s.announced.Position = max(s.announced.Position, at.Position)
}

// read gives the position told by a notification, and the time of its first change; zero for none.
// All dialects are taken; one of 0.8 has no capability.
func read(body []byte, address string) (at feed.Heard, err error) {
	r, err := resourcesync.NewReader(bytes.NewReader(body), resourcesync.ReaderOptions{BaseURL: address, MaxBytes: mostBytes, Expect: resourcesync.ChangeNotification})
	if err != nil {
		return at, err
	}
	at.Position, _ = r.Head().Meta.Sequence()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		if at.Since.IsZero() {
			at.Since = e.Meta.DateTime
		}
		if n, ok := e.Meta.Sequence(); ok {
			at.Position = max(at.Position, n)
		}
	}
}
