package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// note is a Change Notification at a position of the log.
func note(sequence int) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/" xmlns:rsb="urn:rsbridge:terms">
<rs:md capability="change-notification" from="2026-01-01T00:00:00Z" until="2026-01-01T00:00:01Z" rsb:sequence="%d"/>
<url><loc>http://source.example/a</loc><rs:md change="updated" datetime="2026-01-01T00:00:01Z"/></url>
</urlset>`, sequence)
}

// source is a server of channels: each connection sends what send gives, and ends.
type source struct {
	*testing.T
	*httptest.Server
	send chan string // what an open channel tells; "" ends it

	mu      sync.Mutex
	refuse  map[string]bool // ways
	opened  []string
	channel []feed.Channel

	callback string
}

func newSource(t *testing.T) *source {
	s := &source{T: t, send: make(chan string), refuse: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	s.channel = []feed.Channel{{Loc: s.URL + "/topic", Hubs: []string{s.URL + "/hub"}, Events: s.URL + "/topic"}, {Loc: "ws" + s.URL[4:] + "/topic", Events: s.URL + "/topic"}}
	return s
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	way := Events
	if r.Header.Get("Upgrade") != "" {
		way = WebSocket
	}
	s.mu.Lock()
	refused := s.refuse[way]
	if s.opened = append(s.opened, way); refused {
		s.opened[len(s.opened)-1] += " refused"
	}
	s.mu.Unlock()
	if refused {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	say := func(text string) error {
		_, err := io.WriteString(w, text)
		return errors.Join(err, http.NewResponseController(w).Flush())
	}
	if way == WebSocket {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			s.Error(err)
			return
		}
		defer c.CloseNow()
		ctx := c.CloseRead(r.Context())
		say = func(text string) error { return c.Write(ctx, websocket.MessageText, []byte(text)) }
	} else {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		say(": here\n\n")
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case text := <-s.send:
			if text == "" {
				return
			}
			if way == Events && !strings.HasPrefix(text, "event:") {
				text = "event: change\ndata: " + strings.ReplaceAll(text, "\n", "\ndata: ") + "\n\n"
			}
			say(text)
		}
	}
}

// hearer runs a subscriber; its pauses are as long as the test wants.
type hearer struct {
	*Subscriber
	woken  chan struct{}
	pauses chan time.Duration // a pause begins
	wait   chan struct{}      // closed or sent to: a pause ends
	log    *lines
}

type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.String(), text)
}

func (s *source) hear(mode string, offer func(context.Context) (*feed.Offer, error)) *hearer {
	h := &hearer{woken: make(chan struct{}), pauses: make(chan time.Duration), wait: make(chan struct{}), log: &lines{}}
	x, err := Open(Options{Config: Config{Mode: mode, Callback: s.callback}, Name: "copy", Source: s.URL, Logger: slog.New(slog.NewTextHandler(h.log, nil)), Sync: func(ctx context.Context, _ bool) bool {
		select {
		case h.woken <- struct{}{}:
		case <-ctx.Done():
		}
		return true
	}})
	if err != nil {
		s.Fatal(err)
	}
	h.Subscriber = x
	if x.offer = offer; offer == nil {
		x.offer = func(context.Context) (*feed.Offer, error) { return &feed.Offer{Channels: s.channel}, nil }
	}
	h.Sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case h.pauses <- d:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-h.wait:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	h.Rest = func(context.Context, time.Duration) error { return nil }
	s.Cleanup(h.End)
	h.Start()
	return h
}

// TestFlood: hints during a sync, and during the rest after it, are one; a rest is as long as its sync was.
func TestFlood(t *testing.T) {
	s := newSource(t)
	h := &hearer{}
	rests, syncs := make(chan time.Duration), 0
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	took := []time.Duration{0, leastRest / 2, 3 * leastRest, mostRest, time.Hour, 0, 0, 0}
	x, err := Open(Options{Config: Config{Mode: Events}, Source: s.URL, Now: func() time.Time { return now }, Sync: func(context.Context, bool) bool {
		now = now.Add(took[syncs])
		for range 100 {
			h.hint()
		}
		syncs++
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.Subscriber = x
	x.Rest = func(ctx context.Context, d time.Duration) error {
		select {
		case rests <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); x.follow(ctx) }()
	h.hint()
	for _, want := range []time.Duration{leastRest, leastRest, 3 * leastRest, mostRest, mostRest} { // syncs take ever longer
		if d := <-rests; d != want {
			t.Errorf("a rest of %v, want %v", d, want)
		}
	}
	stop()
	<-done
	if syncs > 8 {
		t.Errorf("%d syncs", syncs)
	}
}

// TestWays: the first way that is offered and opens is taken; each opening and each notification
// wakes; another channel follows after a pause.
func TestWays(t *testing.T) {
	for _, c := range []struct{ mode, refused, want, opened string }{
		{Auto, "", WebSocket, "websocket"},
		{Auto, WebSocket, Events, "websocket refused, events"},
		{WebSocket, "", WebSocket, "websocket"},
		{Events, "", Events, "events"},
	} {
		s := newSource(t)
		s.refuse[c.refused] = true
		h := s.hear(c.mode, nil)
		for round := range 2 {
			<-h.woken
			if got := h.Way(); got != c.want {
				t.Errorf("%+v: heard by %s", c, got)
			}
			s.send <- note(7)
			<-h.woken
			if got := h.Announced().Position; got != 7 {
				t.Errorf("%+v: announced %d", c, got)
			}
			if h.Read(feed.Heard{Position: 6}, true); h.Announced().Position != 7 {
				t.Errorf("%+v: a list read before it has what is announced now", c)
			}
			if h.Read(h.Announced(), true); h.Announced().Position != 0 {
				t.Errorf("%+v: what is read is announced still", c)
			}
			if round == 0 {
				s.send <- ""
				<-h.pauses
				if got := h.Way(); got != Polling {
					t.Errorf("%+v: no channel is open, and it is heard by %s", c, got)
				}
				<-h.woken // the loss of a channel begins a sync
				h.wait <- struct{}{}
			}
		}
		s.mu.Lock()
		if got := strings.Join(s.opened, ", "); got != c.opened+", "+c.opened {
			t.Errorf("%+v: opened %s", c, got)
		}
		s.mu.Unlock()
	}
}

// TestPauses: pauses grow while no channel opens, up to a limit; a sync ends one; a source without
// channels is asked seldom.
func TestPauses(t *testing.T) {
	s := newSource(t)
	s.refuse[WebSocket], s.refuse[Events] = true, true
	h := s.hear(Auto, nil)
	<-h.woken // the source may be away: a sync tells
	about := func(want time.Duration) {
		t.Helper()
		if d := <-h.pauses; d < want*3/4 || d > want*5/4 {
			t.Errorf("a pause of %v, want about %v", d, want)
		}
	}
	for want := shortest; want < longest; want *= 2 {
		about(want)
		h.wait <- struct{}{}
	}
	for range 3 {
		about(longest)
		h.wait <- struct{}{}
	}
	about(longest)
	h.Read(feed.Heard{}, false)
	about(shortest)
	if n := h.log.count("no channel of notifications can be opened"); n != 1 || h.log.count("cause=\"websocket at ") != 1 || h.log.count("; events at ")+h.log.count("\\nevents at ") != 1 {
		t.Errorf("told %d times: %s", n, h.log)
	}
	s.mu.Lock()
	clear(s.refuse)
	s.mu.Unlock()
	h.wait <- struct{}{}
	<-h.woken
	if n := h.log.count("notifications are heard again"); n != 1 {
		t.Errorf("told %d times: %s", n, h.log)
	}
	h = s.hear(Auto, func(context.Context) (*feed.Offer, error) { return &feed.Offer{}, nil })
	about(seldom)
	if h.log.count("level") != 0 {
		t.Errorf("a source that offers no channels is no fault: %s", h.log)
	}
	if h = s.hear(Auto, func(context.Context) (*feed.Offer, error) { return nil, errors.New("gone") }); true {
		about(shortest)
	}
}

// TestClosedAtOnce: a channel that opens and ends has growing pauses too.
func TestClosedAtOnce(t *testing.T) {
	s := newSource(t)
	h := s.hear(Events, nil)
	var pauses []time.Duration
	for range 6 {
		<-h.woken
		s.send <- ""
		pauses = append(pauses, <-h.pauses)
		h.wait <- struct{}{}
	}
	if !slices.IsSorted([]time.Duration{pauses[0], pauses[2], pauses[4]}) || pauses[5] < 16*time.Second {
		t.Errorf("pauses %v", pauses)
	}
}

// TestBadNotifications: whatever comes is a hint, and is told in the log; a notification beyond the
// bound ends the channel.
func TestBadNotifications(t *testing.T) {
	for _, mode := range []string{WebSocket, Events} {
		s := newSource(t)
		h := s.hear(mode, nil)
		<-h.woken
		for i, text := range []string{"<", "no XML", "<html/>", strings.Repeat("<a>", 1000), note(3)[:300], strings.Repeat("x", mostBytes/2)} {
			s.send <- text
			<-h.woken
			if n := h.log.count("a notification cannot be read"); n != i+1 {
				t.Errorf("%s: after %.20q told %d times", mode, text, n)
			}
		}
		if h.Announced().Position != 0 {
			t.Errorf("%s: announced %d", mode, h.Announced().Position)
		}
		for range 100 {
			s.send <- "again"
			<-h.woken
		}
		if n := h.log.count("a notification cannot be read"); n > 25 {
			t.Errorf("%s: told %d times", mode, n)
		}
		s.send <- strings.Repeat("x", mostBytes+1)
		<-h.pauses
		if h.log.count(errTooLarge.Error()) != 1 {
			t.Errorf("%s: a notification without bound: %s", mode, h.log)
		}
	}
}

// TestGap: a source that has lost its reader tells so; the next opening wakes.
func TestGap(t *testing.T) {
	s := newSource(t)
	h := s.hear(Events, nil)
	<-h.woken
	s.send <- "event: gap\ndata: catch up\n\n"
	<-h.pauses
	h.wait <- struct{}{}
	<-h.woken
}

// TestForeignChannel: a channel at a host that is not permitted is not asked, nor one that
// redirects there.
func TestForeignChannel(t *testing.T) {
	asked := make(chan string, 10)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer foreign.Close()
	at := "http://localhost" + foreign.URL[strings.LastIndexByte(foreign.URL, ':'):]
	redirecting := httptest.NewServer(http.RedirectHandler(at+"/redirected", http.StatusTemporaryRedirect))
	defer redirecting.Close()
	for _, channel := range []feed.Channel{{Loc: "ws" + at[4:] + "/socket"}, {Loc: at, Events: at + "/events"}, {Loc: "ws" + redirecting.URL[4:]}, {Loc: at, Events: redirecting.URL}} {
		x, err := Open(Options{Source: redirecting.URL, Sync: func(context.Context, bool) bool { t.Error("woken"); return true }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		x.offer = func(context.Context) (*feed.Offer, error) { return &feed.Offer{Channels: []feed.Channel{channel}}, nil }
		x.Sleep = func(context.Context, time.Duration) error { stop(); return nil }
		x.run(ctx)
	}
	if len(asked) > 0 {
		t.Errorf("asked for %s", <-asked)
	}
}

// TestEvents: streams by the rules of HTML.
func TestEvents(t *testing.T) {
	for in, want := range map[string]string{
		"data: a\n\n": "[:a\n]",
		"event: change\nid: 4\ndata:a\ndata: b\n\n": "[change:a\nb\n]",
		"event: change\r\ndata: a\r\n\r\n":          "[change:a\n]",
		": beat\n\nevent: x\n\ndata\n\n":            "[:\n]",
		"\xef\xbb\xbfdata: a\n\ndata: cut":          "[:a\n]",
		"retry: 5\nunknown: x\n\n":                  "[]",
		strings.Repeat(": beat\n\n", mostBytes/4):   "[]",
		strings.Repeat("data: x\n", mostBytes/4):    "[]" + errTooLarge.Error(),
		strings.Repeat("x", mostBytes+1):            "[]" + errTooLarge.Error(),
	} {
		var got []string
		err := eachEvent(strings.NewReader(in), func(kind string, data []byte) error {
			got = append(got, kind+":"+string(data))
			return nil
		})
		text := fmt.Sprint(got)
		if err != nil {
			text += err.Error()
		}
		if text != want {
			t.Errorf("%.40q: got %.200q, want %q", in, text, want)
		}
	}
}
