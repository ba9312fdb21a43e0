package bridge

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// pushing is a source with a server of its own, and a mirror of it in another bridge. Neither has a
// schedule.
type pushing struct {
	*testing.T
	source, mirror *Bridge
	base           string // address of the source
}

func newPushing(t *testing.T, mode string, hubs ...string) *pushing {
	p := &pushing{T: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.source.PublicHandler().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p.base = server.URL
	cfg := small(t.TempDir())
	cfg.Public.BaseURL = server.URL
	cfg.Destinations = nil
	s := cfg.Sets["data"]
	cfg.Public.Hub.Callbacks = []string{"127.0.0.1"}
	s.Notify.Hubs = hubs
	s.Schedule, s.Notify.WebSub, s.Notify.Events, s.Notify.WebSocket, s.Notify.Positions, s.MaxDeleteRatio = "", true, true, true, true, 1
	cfg.Sets["data"] = s
	p.source = mustOpen(t, cfg)
	own := small(t.TempDir())
	own.Sets = nil
	d := own.Destinations["copy"]
	d.Source, d.Schedule, d.Audit.Schedule, d.Live.Mode, d.MaxDeleteRatio = server.URL, "", "", mode, 1
	for _, hub := range hubs {
		if u, err := url.Parse(strings.Fields(hub)[0]); err == nil {
			d.Allow = append(d.Allow, u.Host)
		}
	}
	callbacks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.mirror.PublicHandler().ServeHTTP(w, r) }))
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
			p := newPushing(t, mode)
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
	p := newPushing(t, "events")
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

// TestScheduleRests: while a channel is open and the mirror in sync, the schedule rests, and the status
// tells the next poll. A mirror that is not in sync is synced by its schedule.
func TestScheduleRests(t *testing.T) {
	p := newPushing(t, "websocket")
	at := p.publish("")
	m := p.mirror.dests["copy"]
	if m.leaves() {
		t.Error("the schedule rests without a channel")
	}
	runs := p.mirror.Runner().Watch(t.Context())
	p.mirror.Start(t.Context())
	p.follow(runs, at)
	for m.live.NextPoll().IsZero() { // the end of the run is noted after the records
		<-runs
	}
	st, err := p.mirror.DestinationStatus(t.Context(), "copy")
	if err != nil || !m.leaves() || st.NextSync == nil || !st.NextSync.Equal(m.live.NextPoll()) {
		t.Errorf("leaves a run out: %t; next %v, %v", m.leaves(), st.NextSync, err)
	}
	fill(t, p.mirror, "mirror", "") // somebody empties the mirror
	if rep := do[AuditReport](t, p.mirror, "audit", "copy"); rep.Equal || m.leaves() {
		t.Errorf("equal: %t; a damaged mirror waits for a notification: %t", rep.Equal, m.leaves())
	}
}

// TestFollowsUntilClose: changes of a store are found at once also after the end of the context of
// Start, as of a reload.
func TestFollowsUntilClose(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Destinations = nil
	s := cfg.Sets["data"]
	s.Schedule = ""
	cfg.Sets["data"] = s
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	fill(t, b, "source", sayings("a"))
	do[ScanReport](t, b, "scan", "data")
	ctx, stop := context.WithCancel(t.Context())
	b.Start(ctx)
	stop()
	runs := b.Runner().Watch(t.Context())
	fill(t, b, "source", sayings("a", "b"))
	for run := range runs {
		if run.Over() && (run.Job == "hint:data" || run.Job == "scan:data") {
			break
		}
	}
	if st, err := b.SetStatus(t.Context(), "data"); err != nil || st.Resources != 2 {
		t.Errorf("%d resources, %v", st.Resources, err)
	}
}
