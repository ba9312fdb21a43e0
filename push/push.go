// Package push tells subscribers of the changes of a source, as they are published.
//
// # Topics
//
// Each set has two topics. [Push.Handler] serves them:
//
//	/SET/notify/change     created, updated and deleted resources (Change Notification 1.0.1)
//	/SET/notify/framework  new and changed lists and dumps (Framework Notification 1.0.1)
//
// A query makes a part of a topic: class=IRI, prefix=IRI, change=KIND. A topic is read in four ways:
//
//	GET           the last changes: up to 1,000, within 1 MiB; without any an empty body
//	POST /hub     a subscription, and then each notification (package hub)
//	WebSocket     each notification as a text frame, in the form of 0.8, or of 1.0.1 with since=SEQUENCE
//	event stream  each notification as an event; its id is its last sequence
//
// # Notifications
//
// A notification is a urlset of at most 50,000 entries and 1 MiB (Change Notification, 3). Its entries
// are in the order of the log. Of one subscriber consecutive notifications adjoin: from is the until of
// the one before. It is made from the published state of the set, so its documents can be fetched
// before anybody hears of them. Framework Notifications come at most every five seconds.
//
// Each subscriber has a position in the log, and its next notification is everything after it. Nothing
// is queued: a slow subscriber costs a number. A channel that is more than 10,000 changes behind, or
// takes nothing for 20 seconds, is closed; its client reads the Change List.
//
// # Errors
//
// A topic answers 400 for a filter that cannot be read, 405 for another method, 503 for a channel too
// many. A notification that cannot be made is logged and tried again, and no position moves.
//
// # Records
//
//	f SET  the capability documents last told, and the last framework notifications, JSON
//	h...   of the hub
//	m...   of the positions of mirrors
package push

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/lru"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/push/hub"
	"github.com/rsbridge/rsbridge/push/positions"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// State is the published state of a set: one consistent view until Close. Positions are sequences of
// the log, with the times of the changes there.
type State interface {
	// View is the log behind it, for filters by class.
	View() *changetrack.View
	// Start is the position before the first change in Change Lists.
	Start() (uint64, time.Time)
	// End is the position of the last published change.
	End() (uint64, time.Time)
	// Rendered yields the Change List entries of the changes after a sequence, and possibly some
	// before: whole url elements, in the order of the log.
	Rendered(ctx context.Context, after uint64) iter.Seq2[[]byte, error]
	// Documents are the capability documents below the Capability List, with the times of their content.
	Documents() []resourcesync.Entry
	// Close releases the view. It is called once.
	Close()
}

// SetConfig configures the notifications of a set.
type SetConfig struct {
	Name string
	// Address is the set's, without trailing slash. It is asked each time: it may change.
	Address func() string
	// Read opens the published state; nil before the first publication.
	Read func(context.Context) State
	Config
}

// Options of New.
type Options struct {
	Store     kv.Store     // for the records below, its alone
	Source    string       // address of the Source Description
	Documents http.Handler // of the source: its documents are read without a socket
	// Former gives the present name of a renamed set, "" for none. Nil: no set was renamed.
	Former    func(name string) string
	Address   string // of the built-in hub
	Hub       HubConfig
	KeyFile   string           // seals the secrets of subscribers
	UserAgent string           // in requests to subscribers and hubs
	Limits    hub.Limits       // of the built-in hub
	Now       func() time.Time // nil: time.Now
	Logger    *slog.Logger     // nil: silent
}

// Limits of a notification (Flask-WebSub refuses larger bodies), and of the window at a topic.
const (
	mostBytes     = 1 << 20
	mostEntries   = 50_000
	windowChanges = 1000
	cacheBytes    = 16 << 20
)

// Push serves the topics of all sets. Safe for concurrent use.
type Push struct {
	o    Options
	log  *slog.Logger
	sets map[string]*set

	bodies *lru.Cache[*notification]
	client *http.Client // of the source's own documents
	hub    *hub.Hub

	positions *positions.Book // of mirrors
	stop      context.CancelFunc
	life      context.Context // until Close
	running   sync.WaitGroup
	channels  channels
}

// New makes the topics; nothing runs yet. The error is of the settings, or of the key file.
func New(sets []SetConfig, o Options) (*Push, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Push{o: o, log: o.Logger, sets: map[string]*set{}, client: &http.Client{Transport: inproc.Transport{Handler: o.Documents}},
		bodies: lru.New(cacheBytes, func(_ string, n *notification) int64 { return int64(len(n.body)) + 512 })}
	for _, c := range sets {
		if !c.Any() {
			continue
		}
		if p.sets[c.Name] != nil {
			return nil, fmt.Errorf("push: two sets are named %s", c.Name)
		}
		p.sets[c.Name] = &set{SetConfig: c, p: p, changes: newNews(), framework: newNews(), record: []byte("f" + c.Name)}
	}
	p.life, p.stop = context.WithCancel(context.Background()) // ended by Close
	allow, err := o.Hub.allow()
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if _, err := os.Stat(o.KeyFile); ownfile.IsAbsent(err) && !p.opensHub() {
		o.KeyFile = "" // there is no secret to seal, and none was
	}
	h := hub.Options{Store: kv.Prefix(o.Store, []byte{'h'}), KeyFile: o.KeyFile, Allow: allow, Method: o.Hub.Signature, Limits: o.Limits, UserAgent: o.UserAgent, Now: o.Now, Logger: o.Logger}
	if h.External, err = p.external(); err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	h.Find = func(address string) (hub.Topic, error) {
		t, err := p.Topic(address)
		if errors.Is(err, errNoTopic) {
			t = p.movedTo(address)
		}
		switch {
		case t == nil, !t.s.WebSub, len(t.s.Hubs) > 0:
			return nil, cmp.Or(err, errNoTopic)
		case err != nil:
			return nil, &hub.Moved{Topic: t, To: t.address()}
		}
		return t, nil
	}
	p.positions = positions.New(positions.Options{Store: kv.Prefix(o.Store, []byte{'m'}), Now: p.now, Logger: o.Logger})
	if p.hub, err = hub.New(h); err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	return p, nil
}

// external are the hubs of others with their topics.
func (p *Push) external() (out []hub.External, err error) {
	for _, s := range p.sets {
		hubs, err := s.hubs()
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", s.Name, err)
		}
		for _, kind := range kinds {
			for _, h := range hubs {
				t := &topic{s: s, kind: kind}
				h.Topic, h.Address = t, t.address()
				out = append(out, h)
			}
		}
	}
	return out, nil
}

// Start begins to deliver, and to look for new documents. Records of sets without notifications
// are removed.
func (p *Push) Start(ctx context.Context) error {
	if err := p.clean(ctx); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if err := p.hub.Start(ctx); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	for _, s := range p.sets {
		if s.tells() {
			p.running.Go(func() { s.watch(p.life) })
		}
	}
	return nil
}

func (p *Push) clean(ctx context.Context) error {
	b := p.o.Store.Batch()
	defer b.Close()
	if err := p.positions.Forget(ctx, func(set string) bool { return p.sets[set] != nil && p.sets[set].Positions }); err != nil {
		return err
	}
	for pair, err := range p.o.Store.Scan(ctx, []byte("f"), []byte("g")) {
		if err != nil {
			return err
		}
		if s := p.sets[string(pair.Key[1:])]; s == nil || !s.tells() {
			b.Delete(bytes.Clone(pair.Key))
		}
	}
	return b.Commit(ctx, false)
}

// Close ends the work of Start, and every channel. It may be called twice.
func (p *Push) Close() {
	p.stop()
	p.hub.Close()
	p.running.Wait()
	p.positions.Close()
}

// Changed tells of new documents of a set: call it after each publication. It returns at once, and an
// unknown set is passed over.
func (p *Push) Changed(name string) {
	if s := p.sets[name]; s != nil {
		s.changes.tell()
	}
}

// set is one set with topics.
type set struct {
	SetConfig
	p      *Push
	record []byte // key of its framework notifications

	changes, framework *news
	sockets, streams   atomic.Int64 // open ones
}

// Listeners is how many hear of a set's changes.
type Listeners struct {
	WebSub    int64 `json:"websub"`    // subscriptions at the built-in hub
	WebSocket int64 `json:"websocket"` // open sockets
	Events    int64 `json:"events"`    // open streams of server-sent events
}

// Listeners counts those of a set.
func (p *Push) Listeners(name string) Listeners {
	s := p.sets[name]
	if s == nil {
		return Listeners{}
	}
	return Listeners{WebSub: int64(p.hub.CountOf(s.Address() + notify)), WebSocket: s.sockets.Load(), Events: s.streams.Load()}
}

// topic is one of the two topics of a set, perhaps of a part of it.
type topic struct {
	s      *set
	kind   resourcesync.Capability
	filter filter
}

// The last segments of topics.
var kinds = map[string]resourcesync.Capability{"change": resourcesync.ChangeNotification, "framework": resourcesync.FrameworkNotification}

const notify = "/notify/"

func segment(kind resourcesync.Capability) string {
	return strings.TrimSuffix(string(kind), "-notification")
}

func (t *topic) address() string {
	address := t.s.Address() + notify + segment(t.kind)
	if q := t.filter.query(); q != "" {
		address += "?" + q
	}
	return address
}

var errNoTopic = errors.New("there is no topic of this source at that address")

// find gives the topic of a path, nil for none.
func (p *Push) find(path string) *topic {
	s, name := p.place(path)
	kind := kinds[name]
	if s == nil || kind == "" || !s.tells() {
		return nil
	}
	return &topic{s: s, kind: kind}
}

// place gives the set of a path below the base URL of its set, or below the root: a proxy may take
// the base away.
func (p *Push) place(path string) (s *set, name string) {
	place, name, ok := strings.Cut(path, notify)
	if !ok {
		return nil, ""
	}
	s = p.sets[place[strings.LastIndexByte(place, '/')+1:]]
	if s == nil {
		return nil, ""
	}
	if at, err := url.Parse(s.Address()); place != "/"+s.Name && (err != nil || place != at.EscapedPath()) {
		return nil, ""
	}
	return s, name
}

// Topic finds a topic by its whole address, with the query of its part in any spelling. The error is
// for the subscriber.
func (p *Push) Topic(address string) (*topic, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errNoTopic
	}
	t := p.find(u.EscapedPath())
	if t == nil {
		return nil, errNoTopic
	}
	own, err := url.Parse(t.s.Address())
	if err != nil || u.Scheme != own.Scheme || u.Host != own.Host || u.User != nil || u.Fragment != "" || u.EscapedPath() != own.EscapedPath()+notify+segment(t.kind) {
		return nil, errNoTopic
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errNoTopic
	}
	if t.filter, err = parseFilter(q); err != nil {
		return nil, err
	}
	if err := unknownKey(q); err != nil {
		return nil, err
	}
	return t, nil
}

// movedTo finds a topic by a former address: of a set with another base URL or another name then.
func (p *Push) movedTo(address string) *topic {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	place, name, _ := strings.Cut(u.EscapedPath(), notify)
	set := place[strings.LastIndexByte(place, '/')+1:]
	s, kind := p.sets[set], kinds[name]
	if s == nil && p.o.Former != nil {
		s = p.sets[p.o.Former(set)]
	}
	if s == nil || kind == "" || !s.tells() || s.Address() == strings.TrimSuffix(u.Scheme+"://"+u.Host+place, "/") {
		return nil
	}
	t := &topic{s: s, kind: kind}
	if t.filter, err = parseFilter(u.Query()); err != nil {
		return nil
	}
	return t
}

// news wakes whoever waits for something new.
type news struct {
	mu   sync.Mutex
	next chan struct{}
}

func newNews() *news { return &news{next: make(chan struct{})} }

// wait gives a channel closed at the next tell.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.next)
	n.next = make(chan struct{})
}
