// Package hub distributes topics to their subscribers (W3C WebSub, Recommendation of 2018-01-23).
//
// A subscription is one callback at one topic. It begins after the hub has verified the subscriber's
// intent (5.3): with news from that moment on. It ends by its lease (300 seconds to 31 days, 10 days by
// default), by a denial (5.2), by the subscriber, or by its answer 410 (7). A request for a kept one
// changes it only after its verification.
//
// Each subscriber has a position in its topic and one request in flight at most. So payloads arrive in
// order, nothing is queued, and after a failure the next payload has everything since. Failures are
// answers other than 2xx, redirects, and none within 20 seconds. The pauses after them grow from five
// seconds to an hour. With a secret each payload is signed: X-Hub-Signature, an HMAC of its bytes (7.1).
//
// Strangers name the callbacks. The hub calls public addresses only, unless Options.Allow names the
// host; it follows no redirects, and reads 4 KiB of an answer. Subscriptions are limited ([Limits]).
//
// A request is answered before it is verified (5.1.2):
//
//	202  it will be verified
//	204  hub.mode=publish for a topic of ours: nothing is to be done
//	400  the form is broken or too long
//	403  the callback is no public address, or somebody wants to publish
//	404  the topic is unknown; Options.Find says why
//	405, 415  another method, another form
//	503  a limit is reached, or the hub is not running; Retry-After tells when to come again
//
// # Records
//
//	s KEY  a subscription, JSON (record); KEY is the SHA-256 of topic, zero byte, callback
//	p KEY  its position: uvarint. It is written a second late: a payload may come twice after a crash
//	x KEY  the position of an external hub; KEY is the SHA-256 of topic, zero byte, hub
//
// Secrets in records are sealed with the key in Options.KeyFile, outside of the records.
package hub

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/repeats"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Position is the place of a subscriber in a topic, by numbers of the topic's own that only grow: its
// last payload ended at Told, and nothing between Told and Seen was for it.
type Position struct{ Told, Seen uint64 }

// Payload is a message for a subscriber (WebSub, 7). With an empty body nothing is sent, and the
// position moves on.
type Payload struct {
	Body  []byte   // sent and signed as it is
	Type  string   // media type
	Links string   // Link header: self, hub
	At    Position // of the subscriber after it was taken
}

// Topic is an ordered stream of payloads. It may be asked for many subscribers at once.
//
// An implementer guarantees: Next of the same position, after a failure or a restart, has everything of
// the first time and what came since, as far as it is kept. A position behind the end, as of a restored
// state, is taken for the end.
type Topic interface {
	// Head is the position of the end: a new subscriber begins there.
	Head(ctx context.Context) (Position, error)
	// Next is everything after a position, or the first part of it. An error is logged, and Next is
	// called again after a pause.
	Next(ctx context.Context, at Position) (Payload, error)
	// Changed is closed at the next news. It is asked before Next, so none is missed.
	Changed() <-chan struct{}
}

// Moved is the error for the former address of a topic. Kept subscriptions go on, and their payloads
// tell the new address (6.1). A new one is for that.
type Moved struct {
	Topic Topic
	To    string
}

func (m *Moved) Error() string { return "this topic is at " + m.To + " now" }

// kept finds the topic of a kept subscription, and its present address.
func (h *Hub) kept(address string) (topic Topic, at string, err error) {
	topic, err = h.o.Find(address)
	var moved *Moved
	if errors.As(err, &moved) {
		return moved.Topic, moved.To, nil
	}
	return topic, address, err
}

// Options of New.
type Options struct {
	Store kv.Store // for the records below, its alone
	// Find gives the topic of an address. The subscriber is answered 404 with its error; of a topic
	// with another address now it is Moved.
	Find      func(address string) (Topic, error)
	External  []External     // hubs of others
	KeyFile   string         // seals secrets; made if it is not there. Empty: a key for this process alone
	Allow     webguard.Rules // callbacks at other than public addresses
	Method    string         // of signatures: sha1, sha256 (default), sha384, sha512
	Limits    Limits
	UserAgent string            // in requests to callbacks and hubs
	Now       func() time.Time  // nil: time.Now
	Transport http.RoundTripper // for tests; nil: guarded by Allow
	Logger    *slog.Logger
}

// Limits of a hub; 0 is the default.
type Limits struct {
	All     int // subscriptions; default 10,000
	Host    int // of one callback host; default 1,000
	Client  int // requested by one address (of IPv6 one /64), except loopback; default 1,000
	Waiting int // verifications not yet done, of one callback host; default 100
}

// How subscriptions last, and how the hub waits.
const (
	defaultLease = 10 * 24 * time.Hour
	leastLease   = 300 * time.Second
	longestLease = 2_678_400 * time.Second

	answerTime   = 20 * time.Second // for one request
	betweenPosts = 100 * time.Millisecond
	firstPause   = 5 * time.Second
	longestPause = time.Hour
	savePause    = time.Second

	mostChecks  = 64   // verifications at once
	mostWaiting = 1024 // verifications waiting
	mostPosts   = 256  // deliveries at once, half of them to failing subscribers
)

// Hub distributes topics. Safe for concurrent use.
type Hub struct {
	o       Options
	log     *slog.Logger
	lines   *repeats.Lines
	store   kv.Store
	client  *http.Client
	seal    cipher.AEAD
	stop    context.CancelFunc
	ctx     context.Context // of the background work
	started atomic.Bool
	running sync.WaitGroup

	checks, posts, retries chan struct{} // slots

	mu      sync.Mutex // guards all below
	subs    map[key]*subscription
	hosts   map[string]int // subscriptions by callback host
	clients map[string]int // subscriptions by requesting address
	intents map[key]*intent
	waiting map[string]int    // intents by callback host
	moved   map[string]uint64 // positions to be written, by key of the record
}

// key of a subscription.
type key [sha256.Size]byte

func keyOf(topic, callback string) key { return sha256.Sum256([]byte(topic + "\x00" + callback)) }

func recordKey(kind byte, k key) []byte { return append([]byte{kind}, k[:]...) }

// record is a verified subscription.
type record struct {
	Version  int       `json:"v"`
	Topic    string    `json:"topic"`
	Callback string    `json:"callback"`
	Client   string    `json:"client"`
	Secret   []byte    `json:"secret,omitempty"` // sealed
	Since    time.Time `json:"since"`
	Expires  time.Time `json:"expires"`
}

const recordVersion = 1

// subscription is a record in use.
type subscription struct {
	record
	key    key
	host   string
	at     string // present address of the topic
	secret string
	cancel context.CancelFunc
	wake   chan struct{} // the lease was renewed
}

// New makes a hub; it takes requests after Start.
func New(o Options) (*Hub, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Method == "" {
		o.Method = "sha256"
	}
	if methods[o.Method] == nil {
		return nil, fmt.Errorf("hub: signature method %q: want sha1, sha256, sha384 or sha512", o.Method)
	}
	for _, l := range []struct {
		limit *int
		usual int
	}{{&o.Limits.All, 10_000}, {&o.Limits.Host, 1000}, {&o.Limits.Client, 1000}, {&o.Limits.Waiting, 100}} {
		if *l.limit == 0 {
			*l.limit = l.usual
		}
	}
	seal, err := openKey(o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("hub: open the key of secrets: %w", err)
	}
	h := &Hub{o: o, lines: &repeats.Lines{}, store: o.Store, client: newClient(o), seal: seal,
		checks: make(chan struct{}, mostChecks), posts: make(chan struct{}, mostPosts), retries: make(chan struct{}, mostPosts/2),
		subs: map[key]*subscription{}, hosts: map[string]int{}, clients: map[string]int{}, intents: map[key]*intent{}, waiting: map[string]int{}, moved: map[string]uint64{}}
	h.log = slog.New(h.lines.Handler(o.Logger.Handler()))
	h.ctx, h.stop = context.WithCancel(context.Background()) // ended by Close
	return h, nil
}

// Start takes up the kept subscriptions, and begins to take requests.
func (h *Hub) Start(ctx context.Context) error {
	kept, err := h.load(ctx)
	if err != nil {
		return fmt.Errorf("hub: read subscriptions: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil
	}
	for _, s := range kept {
		topic, at, err := h.kept(s.Topic)
		if err != nil {
			h.running.Go(func() { h.denied(s, err.Error()) })
			continue
		}
		s.at = at
		h.take(s, topic, h.position(ctx, recordKey('p', s.key)))
	}
	for _, e := range h.o.External {
		h.running.Go(func() { h.tell(e) })
	}
	h.running.Go(h.save)
	h.started.Store(true)
	return nil
}

// Close ends all work. Subscriptions stay. It may be called twice.
func (h *Hub) Close() {
	h.started.Store(false)
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.running.Wait()
	h.client.CloseIdleConnections()
	h.lines.Settle(h.o.Logger)
}

// Count is the number of subscriptions.
func (h *Hub) Count() int { return h.CountOf("") }

// CountOf counts those of topics whose address begins so.
func (h *Hub) CountOf(prefix string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subs {
		if strings.HasPrefix(s.at, prefix) {
			n++
		}
	}
	return n
}

// load reads the subscriptions. Those past their lease are removed.
func (h *Hub) load(ctx context.Context) (out []*subscription, err error) {
	b := h.store.Batch()
	defer b.Close()
	for pair, err := range h.store.Scan(ctx, []byte("s"), []byte("t")) {
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(pair.Value, &r); err != nil || r.Version != recordVersion {
			return nil, fmt.Errorf("subscription %x of version %d, this program knows %d: %w", pair.Key[1:], r.Version, recordVersion, errors.Join(err, errRecord))
		}
		s, err := h.subscription(r)
		if err == nil && s.Expires.After(h.o.Now()) {
			out = append(out, s)
			continue
		}
		if err != nil {
			h.log.Warn("a subscription is ended: its secret cannot be read", "host", s.host, "topic", r.Topic, "error", err)
		}
		b.Delete(recordKey('s', s.key))
		b.Delete(recordKey('p', s.key))
	}
	return out, b.Commit(ctx, true)
}

var errRecord = errors.New("the record was written by another version of this program")

// position of a record; zero if there is none.
func (h *Hub) position(ctx context.Context, at []byte) Position {
	raw, err := h.store.Get(ctx, at)
	n, width := binary.Uvarint(raw)
	if err != nil || width <= 0 {
		return Position{}
	}
	return Position{Told: n, Seen: n}
}

// moveTo notes a position, to be written soon.
func (h *Hub) moveTo(at []byte, p Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved[string(at)] = p.Told
}

// save writes positions every moment, until the end.
func (h *Hub) save() {
	tick := time.NewTicker(savePause)
	defer tick.Stop()
	settle := time.NewTicker(time.Hour)
	defer settle.Stop()
	for {
		select {
		case <-h.ctx.Done():
			h.write()
			return
		case <-settle.C:
			h.lines.Settle(h.o.Logger)
		case <-tick.C:
			h.write()
		}
	}
}

func (h *Hub) write() {
	h.mu.Lock()
	moved := h.moved
	h.moved = map[string]uint64{}
	h.mu.Unlock()
	if len(moved) == 0 {
		return
	}
	b := h.store.Batch()
	defer b.Close()
	for at, told := range moved {
		b.Set([]byte(at), binary.AppendUvarint(nil, told))
	}
	if err := b.Commit(context.WithoutCancel(h.ctx), false); err != nil {
		h.log.Error("positions of subscribers are not kept", "error", err)
	}
}
