package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// fate is what becomes of a notification.
type fate int

const (
	delivered fate = iota
	lost
	doubled
	late   // behind the next one
	forged // another one before it
	broken // half of it
	hungUp // the connection ends
	fates
)

// storm is a source and a mirror with their stores, each behind a network of its own.
type storm struct {
	*testing.T
	way      string
	ahead    atomic.Int64 // of the clock, in seconds
	turned   chan struct{}
	ends     [2]*end
	gateway  string // of the source's store
	public   *badNetwork
	calls    *badNetwork // to the mirror
	values   map[string]int
	changes  int
	weathers map[string]int

	mu   sync.Mutex // guards the two below, and turned
	r    *rand.Rand
	well bool
}

// end is a bridge over a store with its own server.
type end struct {
	cfg    *Config
	store  *embedstore.Store
	away   atomic.Int32 // 1: the store refuses; 2: it works, and its answer is lost
	bridge atomic.Pointer[Bridge]
}

// chance tells whether one case of so many is there, in bad weather.
func (s *storm) chance(of int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.well && s.r.IntN(of) == 0
}

func (s *storm) intN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

func (s *storm) fate() fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.well {
		return delivered
	}
	return fate(s.r.IntN(int(fates)))
}

func (s *storm) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load()) * time.Second) }

// turn turns the clock of both beyond all leases, and wakes whoever waits for half of one.
func (s *storm) turn() {
	s.ahead.Add(11 * 86400)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.turned)
	s.turned = make(chan struct{})
}

// badNetwork carries requests to a handler. Each message of a channel has a fate, and each call of
// a hub; other requests sometimes find no answer.
type badNetwork struct {
	s       *storm
	handler func() http.Handler // nil for a process that is gone
	direct  string              // address of the same without a bad network
	cut     atomic.Bool

	mu   sync.Mutex
	kept []byte // of a late call
}

// fated gives what arrives instead of a message, and the message that is late.
func (n *badNetwork) fated(message, fake, kept []byte) (out [][]byte, late_ []byte, hang bool) {
	switch n.s.fate() {
	case delivered:
		out = [][]byte{message}
	case doubled:
		out = [][]byte{message, message}
	case late:
		late_ = bytes.Clone(message)
	case forged:
		out = [][]byte{fake, message}
	case broken:
		out = [][]byte{message[:len(message)/2]}
	case hungUp:
		return nil, nil, true
	}
	if kept != nil {
		out = append(out, kept)
	}
	return out, late_, false
}

const fakeNote = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="change-notification" from="2026-01-01T00:00:00Z" until="2036-01-01T00:00:00Z"/><url><loc>http://source.invalid/data/r/a</loc><rs:md change="deleted" datetime="2036-01-01T00:00:00Z"/></url></urlset>`

func (n *badNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := n.handler()
	if h == nil || n.cut.Load() {
		panic(http.ErrAbortHandler)
	}
	switch {
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/callback/"):
		n.call(h, w, r)
	case r.Header.Get("Upgrade") != "":
		n.socket(w, r)
	case r.Header.Get("Accept") == "text/event-stream":
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		h.ServeHTTP(&badStream{ResponseWriter: w, n: n, stop: stop}, r.WithContext(ctx))
	case n.s.chance(100):
		panic(http.ErrAbortHandler)
	case n.s.chance(100): // done, and nobody hears of it
		h.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		h.ServeHTTP(w, r)
	}
}

// call carries a call of a hub. Of most the hub hears that all is well.
func (n *badNetwork) call(h http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n.mu.Lock()
	out, kept, _ := n.fated(body, bytes.ReplaceAll(body, []byte("updated"), []byte("deleted")), n.kept)
	n.kept = kept
	n.mu.Unlock()
	answer := http.StatusAccepted
	for _, body := range out {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, again)
		if rec.Code == http.StatusGone {
			answer = rec.Code
		}
	}
	if n.s.chance(200) {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(answer)
}

// socket carries the messages of a WebSocket.
func (n *badNetwork) socket(w http.ResponseWriter, r *http.Request) {
	to, _, err := websocket.Dial(r.Context(), n.direct+r.URL.RequestURI(), nil)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer to.CloseNow()
	from, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer from.CloseNow()
	to.SetReadLimit(1 << 24)
	ctx := from.CloseRead(r.Context())
	var kept []byte
	for {
		_, message, err := to.Read(ctx)
		if err != nil {
			return
		}
		var out [][]byte
		var hang bool
		out, kept, hang = n.fated(message, []byte(fakeNote), kept)
		for _, m := range out {
			if err := from.Write(ctx, websocket.MessageText, m); err != nil {
				return
			}
		}
		if hang {
			return
		}
	}
}

type badStream struct {
	http.ResponseWriter
	n    *badNetwork
	stop func()
	kept []byte
	mu   sync.Mutex
}

func (s *badStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *badStream) Write(event []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, kept, hang := s.n.fated(event, []byte("event: change\nid: 999999999\ndata: "+fakeNote+"\n\n"), s.kept)
	s.kept = kept
	if hang {
		s.stop()
		return 0, io.ErrClosedPipe
	}
	for _, e := range out {
		if _, err := s.ResponseWriter.Write(append(bytes.TrimRight(e, "\n"), "\n\n"...)); err != nil {
			return 0, err
		}
	}
	return len(event), nil
}

// TestNetwork: notifications that are lost, doubled, reordered, late, forged or broken, connections
// and answers that are lost, hubs, mirrors and stores that go and come back, and leases that end,
// never make the mirror wrong. Once all is well, it has everything by notifications alone.
// RSBRIDGE_HISTORIES is the number of storms, RSBRIDGE_CHANGES of the changes in each, for campaigns.
func TestNetwork(t *testing.T) {
	changes, err := strconv.Atoi(os.Getenv("RSBRIDGE_CHANGES"))
	if err != nil {
		changes = 200
	}
	for seed := range teststores.Histories(1, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newStorm(t, uint64(seed)).play(changes)
		})
	}
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{T: t, way: []string{"websub", "websocket", "events"}[seed%3], r: rand.New(rand.NewPCG(seed, 5)), turned: make(chan struct{}), values: map[string]int{}, weathers: map[string]int{}}
	serve := func(h http.Handler) string {
		server := httptest.NewServer(h)
		server.Config.ErrorLog = nil
		t.Cleanup(server.Close)
		return server.URL
	}
	for i := range s.ends {
		e := &end{cfg: small(t.TempDir())}
		s.ends[i] = e
		var err error
		if e.store, err = embedstore.Open(t.TempDir(), embedstore.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.store.Close() })
		at := serve(e)
		for _, name := range []string{"source", "mirror"} {
			st := NewStore()
			st.Query, st.Update, st.GraphStore, st.Gateway = at+"/query", at+"/update", at+"/data", i == 0
			e.cfg.Stores[name] = st
		}
		delete(e.cfg.Stores, []string{"mirror", "source"}[i])
	}
	source, mirror := s.ends[0], s.ends[1]
	s.public = &badNetwork{s: s, handler: source.public, direct: serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := source.public(); h != nil {
			h.ServeHTTP(w, r)
		}
	}))}
	s.calls = &badNetwork{s: s, handler: mirror.public}
	source.cfg.Public.BaseURL, source.cfg.Public.Hub.Callbacks = serve(s.public), []string{"127.0.0.1"}
	clear(source.cfg.Destinations)
	set := source.cfg.Sets["data"]
	set.Schedule, set.MaxDeleteRatio, set.ChangeList.Entries = "", 1, 300
	source.cfg.Sets["data"] = set
	clear(mirror.cfg.Sets)
	d := mirror.cfg.Destinations["copy"]
	d.Source, d.Schedule, d.Audit.Schedule, d.Live.Mode, d.MaxDeleteRatio = source.cfg.Public.BaseURL, "", "", s.way, 1
	if s.way == "websub" {
		d.Live.Callback = serve(s.calls)
	}
	mirror.cfg.Destinations["copy"] = d
	s.gateway = serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source.bridge.Load().StoreHandler("source").ServeHTTP(w, r)
	}))
	s.open(source)
	s.change(20)
	do[ScanReport](t, source.bridge.Load(), "scan", "data")
	s.open(mirror)
	t.Cleanup(func() { s.close(mirror); s.close(source) })
	return s
}

func (e *end) public() http.Handler {
	if b := e.bridge.Load(); b != nil {
		return b.PublicHandler()
	}
	return nil
}

// ServeHTTP is the store.
func (e *end) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch e.away.Load() {
	case 1:
		panic(http.ErrAbortHandler)
	case 2:
		e.store.Handler().ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	e.store.Handler().ServeHTTP(w, r)
}

func (s *storm) open(e *end) {
	b, err := Open(context.WithoutCancel(s.Context()), e.cfg, Options{Now: s.now})
	if err != nil {
		s.Fatal(err)
	}
	if m := b.dests["copy"]; m != nil {
		m.live.Sleep = func(ctx context.Context, d time.Duration) error {
			s.mu.Lock()
			turned := s.turned
			s.mu.Unlock()
			if d <= time.Hour { // time passes a thousand times as fast
				passed := make(chan struct{})
				time.AfterFunc(d/1000, func() { close(passed) })
				turned = passed
			}
			select {
			case <-ctx.Done():
			case <-turned:
			}
			return ctx.Err()
		}
	}
	e.bridge.Store(b)
	b.Start(context.WithoutCancel(s.Context()))
}

func (s *storm) close(e *end) {
	if b := e.bridge.Swap(nil); b != nil {
		if err := b.Close(); err != nil {
			s.Error(err)
		}
	}
}

// change makes about so many changes by one request to the gateway, again until it is answered.
func (s *storm) change(n int) {
	s.Helper()
	var b strings.Builder
	for range n {
		e := fmt.Sprintf("http://e.example/%d", s.intN(200))
		if v := s.values[e]; v > 0 {
			fmt.Fprintf(&b, "DELETE DATA { <%s> <http://e.example/p> %d } ;\n", e, v)
		}
		if s.values[e] = s.intN(6); s.values[e] > 0 {
			fmt.Fprintf(&b, "INSERT DATA { <%s> <http://e.example/p> %d } ;\n", e, s.values[e])
		} else {
			delete(s.values, e)
		}
	}
	s.changes += n
	for code := 0; code/100 != 2; {
		res, err := http.Post(s.gateway+"/update", "application/sparql-update", strings.NewReader(b.String()))
		if err != nil {
			s.Fatal(err)
		}
		res.Body.Close()
		if code = res.StatusCode; code/100 != 2 {
			s.ends[0].away.Store(0)
		}
	}
}

// weather is something bad, for some changes.
func (s *storm) weather() {
	source, mirror := s.ends[0], s.ends[1]
	some := func() {
		for range 1 + s.intN(5) {
			s.change(1 + s.intN(10))
		}
	}
	what := []string{"the source is cut off", "the source comes back", "the mirror comes back", "the mirror is killed", "the source's store is away", "the mirror's store is away", "all leases end"}[s.intN(7)]
	s.weathers[what]++
	switch what {
	case "the source is cut off":
		s.public.cut.Store(true)
		some()
		s.public.cut.Store(false)
	case "the source comes back":
		s.close(source)
		s.open(source)
	case "the mirror comes back":
		s.close(mirror)
		some()
		s.open(mirror)
	case "the mirror is killed": // its subscription stays
		s.public.cut.Store(true)
		s.close(mirror)
		s.public.cut.Store(false)
		some()
		s.open(mirror)
	case "the source's store is away":
		source.away.Store(int32(1 + s.intN(2)))
		some()
		source.away.Store(0)
	case "the mirror's store is away":
		mirror.away.Store(int32(1 + s.intN(2)))
		some()
		mirror.away.Store(0)
	case "all leases end":
		s.turn()
	}
}

func (s *storm) play(changes int) {
	last := 0
	for s.changes < changes {
		s.change(1 + s.intN(20))
		if every := max(changes/20, 20); s.changes-last > every {
			last = s.changes
			s.weather()
		}
	}
	s.mu.Lock()
	s.well = true
	s.mu.Unlock()
	s.turn() // a subscription that the hub lost is made again
	source, mirror := s.ends[0].bridge.Load(), s.ends[1].bridge.Load()
	runs := mirror.Runner().Watch(s.Context())
	s.change(1)
	at := do[ScanReport](s.T, source, "scan", "data").Sequence
	patience, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	for {
		st, err := mirror.DestinationStatus(s.Context(), "copy")
		if err != nil {
			s.Fatal(err)
		}
		if st.InSync && st.Sequence != nil && *st.Sequence >= at {
			break
		}
		select {
		case run := <-runs:
			if run.Cause != byNotification {
				s.Fatalf("a run by %s", run.Cause)
			}
		case <-patience.Done():
			s.Fatalf("heard by %s, the mirror is not at %d: %+v", s.way, at, st)
		}
	}
	s.equal()
	if rep := do[AuditReport](s.T, mirror, "audit", "copy"); !rep.Equal {
		s.Errorf("audit: %+v", rep)
	}
	s.Logf("by %s, %d changes, %v", s.way, s.changes, s.weathers)
}

// equal holds both stores against what they should have, by their dumps and by SPARQL.
func (s *storm) equal() {
	s.Helper()
	var want []string
	for e, v := range s.values {
		want = append(want, fmt.Sprintf("<%s> <http://e.example/p> \"%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .", e, v))
	}
	slices.Sort(want)
	for i, e := range s.ends {
		var out bytes.Buffer
		if err := e.store.Dump(s.Context(), &out, rdfres.NTriples, embedstore.DumpOptions{}); err != nil {
			s.Fatal(err)
		}
		has := strings.Split(strings.TrimSpace(out.String()), "\n")
		slices.Sort(has)
		if !slices.Equal(has, want) {
			s.Fatalf("store %d has\n%s\nand should have\n%s", i, strings.Join(has, "\n"), strings.Join(want, "\n"))
		}
		q := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(s.Context(), http.MethodGet, "/query?query="+url.QueryEscape("SELECT ?s ?o WHERE { ?s <http://e.example/p> ?o }"), nil)
		req.Header.Set("Accept", "application/sparql-results+json")
		e.store.Handler().ServeHTTP(q, req)
		var rows struct {
			Results struct {
				Bindings []map[string]struct{ Value string }
			}
		}
		if err := json.Unmarshal(q.Body.Bytes(), &rows); err != nil {
			s.Fatal(err)
		}
		values := map[string]int{}
		for _, b := range rows.Results.Bindings {
			values[b["s"].Value], _ = strconv.Atoi(b["o"].Value)
		}
		if !maps.Equal(values, s.values) {
			s.Fatalf("store %d answers %v, want %v", i, values, s.values)
		}
	}
}
