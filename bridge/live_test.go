package bridge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// pushing is a source with a server of its own, and a mirror of it in another bridge. Neither has a
// schedule.
type pushing struct {
	*testing.T
	source, mirror *Bridge
	net            *badNetwork
	base           string // address of the source
}

func newPushing(t *testing.T, mode string, fate func() fate, hubs ...string) *pushing {
	p := &pushing{T: t, net: &badNetwork{fate: fate}}
	server := httptest.NewServer(p.net)
	t.Cleanup(server.Close)
	p.base = server.URL
	cfg := small(t.TempDir())
	cfg.Public.BaseURL = server.URL
	cfg.Destinations = nil
	s := cfg.Sets["data"]
	cfg.Public.Hub.Callbacks = []string{"127.0.0.1"}
	s.Notify.Hubs = hubs
	s.Schedule, s.Notify.WebSub, s.Notify.Events, s.Notify.WebSocket, s.MaxDeleteRatio = "", true, true, true, 1
	cfg.Sets["data"] = s
	p.source = mustOpen(t, cfg)
	p.net.Handler = p.source.PublicHandler()
	own := small(t.TempDir())
	own.Sets = nil
	d := own.Destinations["copy"]
	d.Source, d.Schedule, d.Audit.Schedule, d.Live.Mode, d.MaxDeleteRatio = server.URL, "", "", mode, 1
	for _, hub := range hubs {
		if u, err := url.Parse(strings.Fields(hub)[0]); err == nil {
			d.Allow = append(d.Allow, u.Host)
		}
	}
	callbacks := httptest.NewServer(&badNetwork{fate: fate, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.mirror.PublicHandler().ServeHTTP(w, r) })})
	t.Cleanup(callbacks.Close)
	if mode == "websub" {
		d.Live.Callback = callbacks.URL + "/at/"
	}
	own.Destinations["copy"] = d
	p.mirror = mustOpen(t, own)
	p.mirror.dests["copy"].live.Sleep = func(ctx context.Context, d time.Duration) error {
		if d > time.Hour { // the half of a lease
			<-ctx.Done()
		}
		return ctx.Err()
	}
	p.source.Start(t.Context())
	t.Cleanup(func() {
		for _, b := range []*Bridge{p.mirror, p.source} {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// publish makes the source have these triples, and one more, and gives its position.
func (p *pushing) publish(triples string) uint64 {
	p.Helper()
	fill(p.T, p.source, "source", "<http://e.example/a> <http://e.example/p> \"0\" .\n"+triples)
	rep := do[ScanReport](p.T, p.source, "scan", "data")
	if rep.Held != nil {
		p.Fatalf("the scan is held: %+v", rep.Held)
	}
	return rep.Sequence
}

// follow waits for a run of the mirror by a notification that has everything up to a position.
func (p *pushing) follow(runs <-chan jobs.Run, sequence uint64) {
	p.Helper()
	for {
		st, err := p.mirror.DestinationStatus(p.Context(), "copy")
		if err != nil {
			p.Fatal(err)
		}
		if st.InSync && st.Sequence != nil && *st.Sequence >= sequence {
			return
		}
		if run := <-runs; run.Cause != byNotification {
			p.Fatalf("a run by %s", run.Cause)
		}
	}
}

func (p *pushing) equal() {
	p.Helper()
	if want, got := p.dump(p.source, "source"), p.dump(p.mirror, "mirror"); want != got {
		p.Fatalf("the mirror has\n%s, and the source\n%s", got, want)
	}
}

// TestLive: a mirror without a schedule follows by notifications alone, and tells how.
func TestLive(t *testing.T) {
	for _, mode := range []string{"auto", "websub", "websocket", "events"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newPushing(t, mode, nil)
			at := p.publish("")
			st, err := p.mirror.DestinationStatus(t.Context(), "copy")
			if err != nil || st.Live != "polling" || st.BehindChanges != nil {
				t.Errorf("before the first sync: %s, behind %v, %v", st.Live, st.BehindChanges, err)
			}
			runs := p.mirror.Runner().Watch(t.Context())
			p.mirror.Start(t.Context())
			p.follow(runs, at)
			for i := range 5 {
				at = p.publish(fmt.Sprintf("<http://e.example/%d> <http://e.example/p> \"1\" .\n", i))
				p.follow(runs, at)
			}
			p.equal()
			want := mode
			if want == "auto" {
				want = "websocket"
			}
			st, err = p.mirror.DestinationStatus(t.Context(), "copy")
			if err != nil || st.Live != want || st.BehindChanges == nil {
				t.Errorf("heard by %s, behind %v, %v", st.Live, st.BehindChanges, err)
			}
		})
	}
}

// TestLivePaused: what a person paused is not begun by a notification; a requested run ends it.
func TestLivePaused(t *testing.T) {
	p := newPushing(t, "events", nil)
	p.publish("")
	if err := p.mirror.Pause(t.Context(), "copy", true); err != nil {
		t.Fatal(err)
	}
	runs := p.mirror.Runner().Watch(t.Context())
	p.mirror.Start(t.Context())
	for run := range runs {
		if run.Over() {
			if string(run.Result) != `{"paused":true}` {
				t.Errorf("%s: %s", run.State, run.Result)
			}
			break
		}
	}
}

// TestLiveOff: a destination can do without.
func TestLiveOff(t *testing.T) {
	cfg := small(t.TempDir())
	d := cfg.Destinations["copy"]
	d.Live.Mode = "off"
	cfg.Destinations["copy"] = d
	b := mustOpen(t, cfg)
	defer b.Close()
	if b.dests["copy"].live != nil {
		t.Error("it hears all the same")
	}
}

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

// badNetwork carries requests to a handler. Each event of a stream has a fate, and each call of a
// hub.
type badNetwork struct {
	http.Handler
	fate func() fate

	mu   sync.Mutex
	kept func() // a late call
}

// call carries a call of a hub. The hub hears that all is well.
func (n *badNetwork) call(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	send := func(body []byte) {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		n.Handler.ServeHTTP(httptest.NewRecorder(), again)
	}
	n.mu.Lock()
	before := n.kept
	n.kept = nil
	switch n.fate() {
	case delivered:
		send(body)
	case doubled:
		send(body)
		send(body)
	case late:
		n.kept = func() { send(body) }
	case forged:
		send(bytes.ReplaceAll(body, []byte("updated"), []byte("deleted")))
		send(body)
	case broken:
		send(body[:len(body)/2])
	}
	if before != nil {
		before()
	}
	n.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

func (n *badNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n.fate != nil && r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/callback/") {
		n.call(w, r)
		return
	}
	if n.fate == nil || r.Header.Get("Accept") != "text/event-stream" {
		n.Handler.ServeHTTP(w, r)
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	n.Handler.ServeHTTP(&badStream{ResponseWriter: w, n: n, stop: stop}, r.WithContext(ctx))
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
	before := s.kept
	s.kept = nil
	var out []byte
	switch s.n.fate() {
	case delivered:
		out = event
	case doubled:
		out = append(bytes.Clone(event), event...)
	case late:
		s.kept = bytes.Clone(event)
	case forged:
		out = append([]byte("event: change\nid: 999999999\ndata: <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md capability=\"change-notification\" from=\"2026-01-01T00:00:00Z\" until=\"2036-01-01T00:00:00Z\"/><url><loc>http://source.invalid/data/r/a</loc><rs:md change=\"deleted\" datetime=\"2036-01-01T00:00:00Z\"/></url></urlset>\n\n"), event...)
	case broken:
		out = append(bytes.Clone(event[:len(event)/2]), "\n\n"...)
	case hungUp:
		s.stop()
		return 0, io.ErrClosedPipe
	}
	_, err := s.ResponseWriter.Write(append(out, before...))
	return len(event), err
}

// TestLiveHistories: notifications that are lost, doubled, reordered, late, forged or broken, and
// connections that end, never make the mirror wrong: once the network is well, it has everything.
// RSBRIDGE_HISTORIES is the number of histories, for campaigns.
func TestLiveHistories(t *testing.T) {
	for seed := range teststores.Histories(2, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playLive(t, uint64(seed))
		})
	}
}

func playLive(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	well := false
	p := newPushing(t, []string{"events", "websub"}[seed%2], func() fate {
		mu.Lock()
		defer mu.Unlock()
		if well {
			return delivered
		}
		return fate(r.IntN(int(fates)))
	})
	values := map[string]int{}
	change := func() uint64 {
		mu.Lock()
		for range 1 + r.IntN(5) {
			e := fmt.Sprintf("http://e.example/%d", r.IntN(20))
			if values[e] = r.IntN(6); values[e] == 0 {
				delete(values, e)
			}
		}
		mu.Unlock()
		var b strings.Builder
		for e, v := range values {
			fmt.Fprintf(&b, "<%s> <http://e.example/p> \"%d\" .\n", e, v)
		}
		return p.publish(b.String())
	}
	change()
	runs := p.mirror.Runner().Watch(t.Context())
	p.mirror.Start(t.Context())
	for range 25 {
		change()
	}
	mu.Lock()
	well = true
	mu.Unlock()
	p.follow(runs, change())
	p.equal()
	if way := p.mirror.dests["copy"].live.Way(); seed%2 == 1 && way != "websub" {
		t.Errorf("heard by %s", way)
	}
	if rep := do[AuditReport](t, p.mirror, "audit", "copy"); !rep.Equal {
		t.Errorf("audit: %+v", rep)
	}
}

// dump is what a store has: sorted lines, without blank nodes.
func (p *pushing) dump(b *Bridge, store string) string {
	p.Helper()
	req := httptest.NewRequestWithContext(p.Context(), http.MethodGet, "/data?default", nil)
	req.Header.Set("Accept", "application/n-triples")
	out := httptest.NewRecorder()
	b.StoreHandler(store).ServeHTTP(out, req)
	if out.Code != http.StatusOK {
		p.Fatalf("%d %s", out.Code, out.Body)
	}
	lines := strings.Split(out.Body.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestLiveOwn: a mirror of a set of the same bridge hears without a listener.
func TestLiveOwn(t *testing.T) {
	cfg := small(t.TempDir())
	s, d := cfg.Sets["data"], cfg.Destinations["copy"]
	s.Schedule, s.Notify.Events, s.Notify.WebSocket, d.Schedule, d.Audit.Schedule = "", true, true, "", ""
	cfg.Sets["data"], cfg.Destinations["copy"] = s, d
	p := &pushing{T: t, source: mustOpen(t, cfg)}
	p.mirror = p.source
	defer func() {
		if err := p.source.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	runs := make(chan jobs.Run)
	go func() { // ends with ctx
		for run := range p.source.Runner().Watch(ctx) {
			if run.Job == "sync:copy" {
				select {
				case runs <- run:
				case <-ctx.Done():
				}
			}
		}
	}()
	at := p.publish("")
	p.source.Start(t.Context())
	p.follow(runs, at)
	p.follow(runs, p.publish("<http://e.example/b> <http://e.example/p> \"0\" .\n"))
	st, err := p.source.DestinationStatus(t.Context(), "copy")
	if err != nil || st.Live != "events" {
		t.Errorf("heard by %s, %v", st.Live, err)
	}
	p.equal()
}

// TestLiveFaults: wrong settings are told with their keys.
func TestLiveFaults(t *testing.T) {
	for callback, want := range map[string]string{"": "needs a callback", "ftp://m.example": "http or https", "https://me@m.example": "without user", "https://m.example/?a=b": "without user"} {
		cfg := small(t.TempDir())
		d := cfg.Destinations["copy"]
		d.Live.Mode, d.Live.Callback = "websub", callback
		cfg.Destinations["copy"] = d
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "destinations.copy.live: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", callback, err, want)
		}
	}
}
