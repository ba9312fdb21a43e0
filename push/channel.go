package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/push/hub"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Channels that stay open.
const (
	mostChannels = 2000
	mostOfClient = 200              // channels of one address, except loopback
	mostBehind   = 10_000           // changes; then the Change List is the shorter way
	mostInput    = 4 << 10          // of one message of a client
	beat         = 25 * time.Second // between two signs of life; proxies end silent connections
	patience     = 20 * time.Second // for a client to take what it is sent
	leastGap     = 20 * time.Millisecond
	longestGap   = time.Minute
)

const behindReason = "too far behind: catch up by the Change List"

// errBehind ends the channel of a slow client.
var errBehind = errors.New(behindReason)

// errClosing ends a channel together with its source.
var errClosing = errors.New("the source is being closed")

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// channel is one open connection.
type channel struct {
	t       *topic
	at      hub.Position
	gap     time.Duration // least time between two notifications
	dialect string
	send    func(context.Context, *notification) error
	beat    func(context.Context) error
}

// opens serves a request for a channel; false if it is for none.
func (t *topic) opens(w http.ResponseWriter, r *http.Request) bool {
	socket := strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && t.s.WebSocket
	_, named := accept.Weight(r.Header["Accept"], eventStream)
	if !socket && !(named && t.s.Events && r.Method == http.MethodGet) {
		return false
	}
	c, err := t.channel(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return true
	}
	p := t.s.p
	way := &t.s.streams
	if socket {
		way = &t.s.sockets
	}
	client := hub.Client(r.RemoteAddr)
	defer p.channels.leave(client)
	if !p.channels.enter(client) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "As many channels are open as there may be.", http.StatusServiceUnavailable)
		return true
	}
	way.Add(1)
	defer way.Add(-1)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(errClosing) })()
	if socket {
		err = c.socket(ctx, w, r, cancel)
	} else {
		err = c.events(ctx, w)
	}
	p.log.Debug("a channel ends", "topic", t.address(), "client", r.RemoteAddr, "reason", err)
	return true
}

// channels counts the open ones.
type channels struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by client
}

// enter counts one more, and tells whether it may be opened; leave it in any case.
func (c *channels) enter(client string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all++; client == "" {
		return c.all <= mostChannels
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[client]++
	return c.all <= mostChannels && c.of[client] <= mostOfClient
}

func (c *channels) leave(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if client == "" {
		return
	}
	if c.of[client]--; c.of[client] <= 0 {
		delete(c.of, client)
	}
}

// channel reads the beginning of a channel from a request: now, or where the client left off.
func (t *topic) channel(r *http.Request) (*channel, error) {
	c := &channel{t: t, gap: leastGap}
	q := r.URL.Query()
	if err := unknownKey(q, "since", "batch", "lastEventId"); err != nil {
		return nil, err
	}
	if text := q.Get("batch"); text != "" {
		gap, err := settings.ParseDuration(text)
		if err != nil || gap < 0 || gap > longestGap {
			return nil, fmt.Errorf("batch %.100q: want a time up to %v, like 5s", text, longestGap)
		}
		c.gap = max(gap, leastGap)
	}
	var err error
	if c.at, err = t.Head(r.Context()); err != nil {
		return nil, err
	}
	if c.dialect = resourcesync.DialectSocket; q.Has("since") {
		c.dialect = ""
	}
	for _, since := range []string{r.Header.Get("Last-Event-ID"), q.Get("lastEventId"), q.Get("since")} { // the first ones are of a client that comes again
		if since == "" {
			continue
		}
		n, err := strconv.ParseUint(since, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("since %.100q: want the sequence of a change", since)
		}
		if newest := max(c.at.Told, c.at.Seen); n > newest {
			return nil, fmt.Errorf("since %d: the newest change is %d", n, newest)
		}
		c.at = hub.Position{Told: n, Seen: n}
		break
	}
	return c, nil
}

// run sends each notification, until the client is gone or too slow.
func (c *channel) run(ctx context.Context) error {
	pulse := time.NewTicker(beat)
	defer pulse.Stop()
	for {
		changed := c.t.Changed()
		head, err := c.t.Head(ctx)
		if err != nil {
			return err
		}
		if head.Told > max(c.at.Told, c.at.Seen)+mostBehind {
			c.at = head
			return errBehind
		}
		n, err := c.t.after(ctx, c.at, c.dialect)
		if err != nil {
			return err
		}
		c.at = n.at
		var pause <-chan time.Time
		if n.body != nil {
			if err := c.within(ctx, func(ctx context.Context) error { return c.send(ctx, n) }); err != nil {
				return err
			}
			pause, changed = time.After(c.gap), nil
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-pause:
				waiting = false
			case <-changed:
				waiting = false
			case <-pulse.C:
				if err := c.within(ctx, c.beat); err != nil {
					return err
				}
			}
		}
	}
}

// within bounds the time for the client to take something.
func (c *channel) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return f(ctx)
}

// socket serves a channel of notification 0.8: each text message is a document. The client's
// messages mean nothing.
func (c *channel) socket(ctx context.Context, w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc) error {
	// Anybody may read: there are no cookies to be abused by a foreign page.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(mostInput)
	reading := make(chan struct{})
	alive := context.WithoutCancel(ctx) // a reader whose context ends cuts the connection, without a reason
	go func() {                         // ends with the connection
		defer close(reading)
		for {
			_, message, err := conn.Reader(alive)
			if err == nil {
				_, err = io.Copy(io.Discard, message)
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	c.send = func(ctx context.Context, n *notification) error {
		return conn.Write(ctx, websocket.MessageText, n.body)
	}
	c.beat = conn.Ping
	err = c.run(ctx)
	switch {
	case errors.Is(err, errBehind):
		conn.Close(websocket.StatusTryAgainLater, behindReason)
	case errors.Is(err, errClosing):
		conn.Close(websocket.StatusGoingAway, errClosing.Error())
	}
	conn.CloseNow()
	<-reading
	return err
}

// events serves server-sent events: the data of each is a document, its id the position afterwards.
func (c *channel) events(ctx context.Context, w http.ResponseWriter) error {
	c.dialect = ""
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // of nginx
	out := http.NewResponseController(w)
	write := func(text []byte) error {
		if err := out.SetWriteDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return out.Flush()
	}
	event := func(kind string, data []byte) error {
		b := fmt.Appendf(nil, "event: %s\nid: %d\n", kind, c.at.Told)
		for line := range bytes.Lines(data) {
			b = append(append(append(b, "data: "...), bytes.TrimRight(line, "\r\n")...), '\n')
		}
		return write(append(b, '\n'))
	}
	c.send = func(_ context.Context, n *notification) error { return event(segment(c.t.kind), n.body) }
	c.beat = func(context.Context) error { return write([]byte(": still here\n\n")) }
	if err := c.beat(ctx); err != nil {
		return err
	}
	err := c.run(ctx)
	if errors.Is(err, errBehind) { // a client that comes again begins behind the gap
		return errors.Join(err, event("gap", []byte(behindReason)))
	}
	return err
}
