package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

const (
	topicAddress = "http://source.example/data/notify/change"
	hubAddress   = "http://source.example/hub"
	links        = `<` + topicAddress + `>; rel="self", <` + hubAddress + `>; rel="hub"`
)

// words is a topic of words: a payload has all words after a position.
type words struct {
	mu   sync.Mutex
	all  []string
	next chan struct{}
	most int // words in a payload; 0: any
}

func newWords() *words { return &words{next: make(chan struct{})} }

func (w *words) say(word string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, word)
	close(w.next)
	w.next = make(chan struct{})
}

func (w *words) Head(context.Context) (Position, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := uint64(len(w.all))
	return Position{n, n}, nil
}

func (w *words) Next(_ context.Context, at Position) (Payload, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := uint64(len(w.all))
	if w.most > 0 {
		end = min(end, at.Told+uint64(w.most))
	}
	if at.Told >= end {
		return Payload{At: at}, nil
	}
	return Payload{Body: []byte(strings.Join(w.all[at.Told:end], " ")), Type: "application/xml; charset=x", Links: links, At: Position{end, end}}, nil
}

func (w *words) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

// network connects clients and servers of a test by the names of hosts, without sockets: so time
// can be virtual.
type network struct {
	mu    sync.Mutex
	hosts map[string]chan net.Conn
}

type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	conns := n.hosts[address]
	n.mu.Unlock()
	if conns == nil {
		return nil, fmt.Errorf("connect to %s: %w", address, errors.New("refused"))
	}
	ours, theirs := net.Pipe()
	select {
	case conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// world is a hub with one topic, and hosts of subscribers.
type world struct {
	*testing.T
	o     Options
	topic *words
	net   *network
	hub   *Hub
	logs  *strings.Builder
}

func newWorld(t *testing.T, tune func(*Options)) *world {
	w := &world{T: t, topic: newWords(), net: &network{hosts: map[string]chan net.Conn{}}, logs: &strings.Builder{}}
	w.o = Options{Store: memkv.New(), Find: func(address string) (Topic, error) {
		if address != topicAddress {
			return nil, errors.New("no such topic")
		}
		return w.topic, nil
	}, Transport: &http.Transport{DialContext: w.net.dial}, Logger: logger(w.logs)}
	if tune != nil {
		tune(&w.o)
	}
	w.open()
	t.Cleanup(func() {
		w.hub.Close()
		w.o.Transport.(*http.Transport).CloseIdleConnections()
	})
	return w
}

// open opens the hub, as after a restart.
func (w *world) open() {
	w.Helper()
	if w.hub != nil {
		w.hub.Close()
	}
	var err error
	w.hub, err = New(w.o)
	w.must(err)
	w.must(w.hub.Start(w.Context()))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// subscriber is a server of callbacks.
type subscriber struct {
	w    *world
	host string

	mu       sync.Mutex
	got      []*request
	echo     func(*request) (int, string) // answers to GET; nil: the challenge
	take     func(*request) int           // answers to POST; nil: 200
	inFlight int
	most     int // requests in flight at once
}

// request is one to a callback.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         string
	at           time.Time
}

func (w *world) subscriber(host string) *subscriber {
	s := &subscriber{w: w, host: host}
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	w.net.mu.Lock()
	w.net.hosts[host+":80"] = l.conns
	w.net.mu.Unlock()
	srv := &http.Server{Handler: s}
	var ended sync.WaitGroup
	ended.Go(func() { _ = srv.Serve(l) })
	w.Cleanup(func() { srv.Close(); ended.Wait() })
	return s
}

func (s *subscriber) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	q := &request{r.Method, r.URL.Path, r.URL.Query(), r.Header, string(body), time.Now()}
	s.mu.Lock()
	s.got = append(s.got, q)
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	echo, take := s.echo, s.take
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.inFlight--; s.mu.Unlock() }()
	status, text := http.StatusOK, q.query.Get("hub.challenge")
	if r.Method == http.MethodGet && echo != nil {
		status, text = echo(q)
	}
	if r.Method == http.MethodPost && take != nil {
		status = take(q)
	}
	if status/100 == 3 {
		rw.Header().Set("Location", "http://"+s.host+"/elsewhere?"+q.query.Encode())
	}
	rw.WriteHeader(status)
	io.WriteString(rw, text)
}

// requests are those of a method so far.
func (s *subscriber) requests(method string) (out []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.got {
		if r.method == method {
			out = append(out, r)
		}
	}
	return out
}

// bodies are the bodies of the deliveries so far.
func (s *subscriber) bodies() string {
	var out []string
	for _, r := range s.requests(http.MethodPost) {
		out = append(out, r.body)
	}
	return strings.Join(out, "|")
}

func (s *subscriber) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *subscriber) callback() string { return "http://" + s.host + "/callback" }

// ask sends a form to the hub.
func (w *world) ask(from string, pairs ...string) *httptest.ResponseRecorder {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, hubAddress, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.RemoteAddr = from + ":1234"
	rec := httptest.NewRecorder()
	w.hub.ServeHTTP(rec, r)
	return rec
}

func (w *world) subscribe(callback string, more ...string) *httptest.ResponseRecorder {
	return w.ask("127.0.0.1", append([]string{"hub.mode", "subscribe", "hub.topic", topicAddress, "hub.callback", callback}, more...)...)
}

// kept is all text in the records.
func kept(t *testing.T, store kv.Store) (out string) {
	for p, err := range store.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		out += string(p.Key) + string(p.Value)
	}
	return out
}
