// Package push tells subscribers of the changes of a source, as they are published.
//
// Each set has two topics: Change Notifications tell of its resources, Framework Notifications of
// its capability documents (ResourceSync Notification 1.0.1). [Push.Handler] serves them: a request
// for a topic gives the last changes. Subscribers of the hub (package hub) are sent each
// notification; WebSockets (notification 0.8) and server-sent events stay open.
//
// A notification is made from the published state of the set. So its documents can be fetched
// before anybody hears of them. Each subscriber has a position in the log, and its next
// notification is everything after it: nothing is queued, and a slow subscriber costs a number.
//
// # Records
//
//	f SET  the capability documents last told, and the last framework notifications, JSON
//	h ...  of the hub
package push

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/lru"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// State is the published state of a set. Positions are sequences of the log.
type State interface {
	View() *changetrack.View
	// Start is the position before the first change in Change Lists.
	Start() (uint64, time.Time)
	// End is the position of the last published change.
	End() (uint64, time.Time)
	// Rendered yields the Change List entries of the changes after a sequence, and possibly some
	// before, in pieces.
	Rendered(ctx context.Context, after uint64) iter.Seq2[[]byte, error]
	// Documents are the capability documents below the Capability List, with the times of their content.
	Documents() []resourcesync.Entry
	Close()
}

// SetConfig configures the notifications of a set.
type SetConfig struct {
	Name    string
	Address func() string // of the set, without trailing slash
	// Read opens the published state; nil before the first publication.
	Read func(context.Context) State
	Channels
}

// Options of New.
type Options struct {
	Store     kv.Store
	Source    string       // address of the Source Description
	Documents http.Handler // of the source
	Hub       string       // address of the built-in hub
	Now       func() time.Time
	Logger    *slog.Logger
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

	stop    context.CancelFunc
	stopped <-chan struct{}
	running sync.WaitGroup
}

// New makes the topics; nothing runs yet.
func New(sets []SetConfig, o Options) (*Push, error) {
	p := &Push{o: o, log: o.Logger, sets: map[string]*set{}, client: &http.Client{Transport: inproc.Transport{Handler: o.Documents}},
		bodies: lru.New(cacheBytes, func(_ string, n *notification) int64 { return int64(len(n.body)) + 512 })}
	for _, c := range sets {
		if !c.Any() {
			continue
		}
		if p.sets[c.Name] != nil {
			return nil, fmt.Errorf("push: two sets are named %s", c.Name)
		}
		p.sets[c.Name] = &set{SetConfig: c, p: p, changes: newNews(), framework: newNews(), records: kv.Prefix(o.Store, append([]byte{'f'}, c.Name...))}
	}
	ctx, stop := context.WithCancel(context.Background()) // ended by Close
	p.stop, p.stopped = stop, ctx.Done()
	return p, nil
}

// Start begins to look for new documents.
func (p *Push) Start() {
	for _, s := range p.sets {
		p.running.Go(func() { s.watch(p.stopped) })
	}
}

// Close ends the work of Start, and every channel. It may be called twice.
func (p *Push) Close() {
	p.stop()
	p.running.Wait()
}

// Changed tells of new documents of a set. It returns at once.
func (p *Push) Changed(name string) {
	if s := p.sets[name]; s != nil {
		s.changes.tell()
	}
}

// set is one set with topics.
type set struct {
	SetConfig
	p       *Push
	records kv.Store

	changes, framework *news
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

// find gives the topic of a path below the base URL of its set, or below the root: a proxy may
// take the base away.
func (p *Push) find(path string) *topic {
	place, name, ok := strings.Cut(path, notify)
	kind := kinds[name]
	if !ok || kind == "" {
		return nil
	}
	s := p.sets[place[strings.LastIndexByte(place, '/')+1:]]
	if s == nil {
		return nil
	}
	if at, err := url.Parse(s.Address()); place != "/"+s.Name && (err != nil || place != at.EscapedPath()) {
		return nil
	}
	return &topic{s: s, kind: kind}
}

// Topic finds a topic by its whole address.
func (p *Push) Topic(address string) (*topic, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errNoTopic
	}
	t := p.find(u.EscapedPath())
	if t == nil {
		return nil, errNoTopic
	}
	if t.filter, err = parseFilter(u.Query()); err != nil {
		return nil, err
	}
	if t.address() != address {
		return nil, errNoTopic
	}
	return t, nil
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
