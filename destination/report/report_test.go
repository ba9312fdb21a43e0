package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/position"
)

// source takes reports, if it says so.
type source struct {
	*testing.T
	*httptest.Server
	takes  atomic.Bool
	asked  atomic.Int64
	answer atomic.Int64
	got    chan position.Report
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.Error(err)
		}
		rep, _, err := position.Open(body)
		if err != nil {
			s.Error(err)
		}
		s.got <- rep
		http.Error(w, "no", int(s.answer.Load()))
		return
	}
	link := ""
	if s.asked.Add(1); s.takes.Load() {
		link = `<rs:ln rel="urn:rsbridge:terms#position" href="` + s.URL + `/position"/>`
	}
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">%s
<rs:md capability="capabilitylist"/><url><loc>%s/changelist.xml</loc><rs:md capability="changelist"/></url></urlset>`, link, s.URL)
}

// TestReporter: a report follows a move, and a pause follows a report. Without a move there is one at
// times. A source that takes none is not asked all the time; neither is one that refuses.
func TestReporter(t *testing.T) {
	s := &source{T: t, got: make(chan position.Report)}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	s.answer.Store(204)
	key, err := position.KeyOf(make([]byte, 32), "copy")
	if err != nil {
		t.Fatal(err)
	}
	at, known := uint64(0), false
	clock := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	r, err := Open(Options{Name: "copy", Source: s.URL + "/capabilitylist.xml", Key: key, TempDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&out, nil)), Now: func() time.Time { return clock },
		Position: func(_ context.Context, rep *position.Report) (bool, error) {
			rep.Sequence = at
			return known, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	// The loop runs in step with the test: each of its pauses is met by one line below.
	pauses, over := make(chan time.Duration), make(chan struct{})
	r.Sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case pauses <- d:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-over:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	beat := func() {
		t.Helper()
		if d := <-pauses; d < heartbeat/2 || d > 2*heartbeat {
			t.Fatalf("a heartbeat of %v", d)
		}
	}
	rests := func(want time.Duration) {
		t.Helper()
		d := <-pauses
		if d >= heartbeat/2 && want < heartbeat/2 { // a heartbeat that the move of the start cuts short
			d = <-pauses
		}
		if d != want {
			t.Fatalf("a pause of %v, want %v", d, want)
		}
		over <- struct{}{}
	}
	reports := func(sequence uint64) {
		t.Helper()
		rep := <-s.got
		if rep.Sequence != sequence || rep.Mirror != "copy" || rep.To != s.URL+"/position" || !rep.Time.Equal(clock) {
			t.Fatalf("%+v", rep)
		}
	}
	r.Start()
	defer r.End()
	rests(pause) // nothing is known of the mirror
	known = true
	beat()
	over <- struct{}{}
	rests(pause) // the source takes none
	beat()
	over <- struct{}{}
	rests(pause)
	if n := s.asked.Load(); n != 1 || strings.Count(out.String(), "takes no reports") != 1 {
		t.Errorf("asked %d times: %s", n, &out)
	}
	s.takes.Store(true)
	beat()
	clock, at = clock.Add(longest), 7
	over <- struct{}{}
	reports(7)
	rests(pause)
	beat()
	at = 8
	r.Moved(t.Context())
	reports(8)
	rests(pause)
	beat()
	s.answer.Store(403)
	at = 9
	r.Moved(t.Context())
	reports(9)
	rests(2 * pause)
	if !strings.Contains(out.String(), "403 Forbidden") {
		t.Errorf("the refusal is not told: %s", &out)
	}
	beat()
	s.answer.Store(204)
	r.Moved(t.Context())
	reports(9)
	rests(pause)
}
