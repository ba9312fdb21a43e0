package fetch

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stalledBody gives a byte, then nothing.
type stalledBody struct {
	r    *http.Request
	some io.Reader
}

func (b *stalledBody) Read(p []byte) (int, error) {
	if n, err := b.some.Read(p); err == nil {
		return n, nil
	}
	<-b.r.Context().Done()
	return 0, b.r.Context().Err()
}
func (b *stalledBody) Close() error { return nil }

// TestWaitingIsTold: each attempt that waits for long says so, once, with the time of its
// end; one that is quick, or has little time, says nothing.
func TestWaitingIsTold(t *testing.T) {
	hangs := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	answers := func(body func(*http.Request) io.ReadCloser) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Second) // in virtual time: less than the 30 s after which a line is due
			return &http.Response{StatusCode: 200, Status: "200 OK", Body: body(r), Request: r, ContentLength: -1, Header: http.Header{}}, nil
		}
	}
	for _, tc := range []struct {
		name   string
		source roundTrip
		limit  time.Duration
		lines  int
		until  string // of the first
	}{
		{"no answer", hangs, 2 * time.Minute, 2, "2000-01-01T00:02:00Z"},
		{"little time", hangs, 20 * time.Second, 0, ""},
		{"a stalled body", answers(func(r *http.Request) io.ReadCloser { return &stalledBody{r, strings.NewReader("<")} }), 2 * time.Minute, 2, "2000-01-01T00:01:20Z"},
		{"a slow answer", answers(func(*http.Request) io.ReadCloser { return io.NopCloser(strings.NewReader("<a/>")) }), 2 * time.Minute, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			lim := DefaultLimits()
			lim.Header, lim.Attempts = tc.limit, 3
			f, err := NewClient("http://user:word@source.example", Options{Limits: &lim, Transport: tc.source, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Get(t.Context(), Request{URL: "http://user:word@source.example/list.xml", MaxBytes: 1 << 20})
			if ended := tc.name == "a slow answer"; (err == nil) != ended || err != nil && !errors.Is(err, ErrStalled) {
				t.Errorf("%s: %v", tc.name, err)
			}
			synctest.Wait() // a line may still be written
			said := log.String()
			if n := strings.Count(said, "waiting"); n != tc.lines || !strings.Contains(said, tc.until) || strings.Contains(said, "word") || n > 0 && !strings.Contains(said, "source.example/list.xml") {
				t.Errorf("%s: %d lines, want %d until %s: %s", tc.name, n, tc.lines, tc.until, said)
			}
		})
	}
}
