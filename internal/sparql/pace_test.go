package sparql

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// paced answers ASK after as long as its turn says, and notes when it was asked.
type paced struct {
	takes []time.Duration
	asked []time.Time
}

func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	n := len(p.asked)
	p.asked = append(p.asked, time.Now())
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	if n < len(p.takes) {
		select {
		case <-time.After(p.takes[n]): // of the bubble: no time passes outside
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/sparql-results+json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"head":{},"boolean":true}`)), ContentLength: -1}, nil
}

// No more requests a second than are allowed, also by several at once; after an
// answer that was slow to come, requests pause for as long as it took, at most a
// minute, and updates that take long make nothing wait.
func TestPace(t *testing.T) {
	at := func(seconds ...float64) (out []time.Duration) {
		for _, s := range seconds {
			out = append(out, time.Duration(s*float64(time.Second)))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		e     Endpoint
		takes []time.Duration
		write bool
		want  []time.Duration // when each was asked
	}{
		{"as they come", Endpoint{}, nil, false, at(0, 0, 0)},
		{"two a second", Endpoint{Rate: 2}, nil, false, at(0, 0.5, 1, 1.5)},
		{"slow once", Endpoint{Slow: 10 * time.Second, Timeout: time.Hour}, at(30), false, at(0, 60, 60)},
		{"quick enough", Endpoint{Slow: 10 * time.Second, Timeout: time.Hour}, at(9), false, at(0, 9, 9)},
		{"very slow", Endpoint{Slow: 10 * time.Second, Timeout: time.Hour}, at(600), false, at(0, 660)},
		{"a long write", Endpoint{Slow: 10 * time.Second, Timeout: time.Hour}, at(30), true, at(0, 30, 30)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &paced{takes: c.takes}
				c.e.Query, c.e.Update, c.e.Transport, c.e.Retries = "http://store.example/query", "http://store.example/update", p, -1
				client, err := New(c.e)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				began := time.Now()
				for range c.want {
					if c.write {
						err = client.Update(t.Context(), "INSERT DATA { <a:b> <a:b> <a:b> }")
					} else {
						_, err = client.Ask(t.Context(), "ASK {}")
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				for i, want := range c.want {
					if got := p.asked[i].Sub(began); got != want {
						t.Errorf("request %d was sent after %v, want %v", i, got, want)
					}
				}
			})
		})
	}
}

// Who gives up does not wait for the pause to end, and takes no slot with him.
func TestPaceGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paced{}
		client, err := New(Endpoint{Query: "http://store.example/query", Transport: p, Rate: 0.001, Concurrency: 1, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.Ask(t.Context(), "ASK {}"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := client.Ask(ctx, "ASK {}"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("given up after %v: %v", time.Since(began), err)
		}
		if _, err := client.Ask(t.Context(), "ASK {}"); err != nil {
			t.Errorf("the slot was not given back: %v", err)
		}
	})
}

// A store that has taken a large upload is given the time to work on it.
func TestUploadIsWorkedOn(t *testing.T) {
	for _, c := range []struct {
		bytes int
		takes time.Duration
		fails bool
	}{{1000, 59 * time.Second, false}, {1000, 61 * time.Second, true}, {100_000_000, 150 * time.Second, false}, {100_000_000, 170 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			client, err := New(Endpoint{Query: "http://store.example/query", GraphStore: "http://store.example/data", Transport: &paced{takes: []time.Duration{c.takes}}, Timeout: time.Minute, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = client.PostGraph(t.Context(), "http://g.example/", "ntriples", Body(make([]byte, c.bytes)))
			if errors.Is(err, errStalled) != c.fails || !c.fails && err != nil {
				t.Errorf("%d bytes, an answer after %v: %v", c.bytes, c.takes, err)
			}
		})
	}
}

// Each attempt that waits for long says so, once, with the store's name and the time of its end.
func TestWaitingIsTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		takes   time.Duration
		timeout time.Duration
		lines   int
		until   string // of the first
	}{
		{"no answer", time.Hour, time.Minute, 2, "2000-01-01T00:01:00Z"},
		{"little time", time.Hour, 30 * time.Second, 0, ""},
		{"a quick answer", 29 * time.Second, time.Hour, 0, ""},
		{"a slow answer", 40 * time.Second, time.Hour, 1, "2000-01-01T01:00:00Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			client, err := New(Endpoint{Query: "http://user:word@store.example/query", Transport: &paced{takes: []time.Duration{c.takes, c.takes}}, Timeout: c.timeout, Retries: 1,
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err = client.Ask(t.Context(), "ASK {}"); errors.Is(err, errStalled) != (c.takes == time.Hour) {
				t.Errorf("%s: %v", c.name, err)
			}
			synctest.Wait() // the timer's own goroutine has written
			said := log.String()
			if n := strings.Count(said, "waiting"); n != c.lines || !strings.Contains(said, c.until) || strings.Contains(said, "word") || n > 0 && !strings.Contains(said, "http://store.example/query") {
				t.Errorf("%s: %d lines, want %d until %s: %s", c.name, n, c.lines, c.until, said)
			}
		})
	}
}
