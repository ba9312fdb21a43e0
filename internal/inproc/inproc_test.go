package inproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func client(h http.HandlerFunc) *http.Client {
	return &http.Client{Transport: Transport{Handler: h}}
}

func TestAnswer(t *testing.T) {
	c := client(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Length", "11")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s %s", r.Host, sent)
	})
	res, err := c.Post("http://in.process/x?y=z", "text/plain", strings.NewReader("."))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if err != nil || string(got) != "in.process ." || res.StatusCode != 201 || res.ContentLength != 11 {
		t.Errorf("%q, %v, %+v", got, err, res)
	}
	if res, err = c.Head("http://in.process/"); err != nil {
		t.Fatal(err)
	}
	if got, err = io.ReadAll(res.Body); err != nil || len(got) > 0 {
		t.Errorf("HEAD: %q, %v", got, err)
	}
	if res, err = client(func(http.ResponseWriter, *http.Request) {}).Get("http://in.process/"); err != nil || res.StatusCode != 200 {
		t.Errorf("a handler that says nothing: %v, %v", res, err)
	}
}

// Both bodies stream: each side waits for what the other has said last.
func TestStreams(t *testing.T) {
	c := client(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		b := make([]byte, 1)
		for {
			if _, err := io.ReadFull(r.Body, b); err != nil {
				return
			}
			b[0]++
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	})
	pr, pw := io.Pipe()
	res, err := c.Post("http://in.process/", "text/plain", pr)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{0}
	for range 100 {
		want := b[0] + 1
		if _, err := pw.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, b); err != nil || b[0] != want {
			t.Fatal(b[0], err)
		}
	}
	pw.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// An answer that breaks off never looks whole.
func TestAborted(t *testing.T) {
	for _, what := range []any{http.ErrAbortHandler, "boom"} {
		_, err := client(func(http.ResponseWriter, *http.Request) { panic(what) }).Get("http://in.process/")
		if !errors.Is(err, ErrAborted) {
			t.Errorf("before the answer: %v", err)
		}
		res, err := client(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half")
			panic(what)
		}).Get("http://in.process/")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); string(got) != "half" || !errors.Is(err, ErrAborted) {
			t.Errorf("in the answer: %q, %v", got, err)
		}
	}
}

// Whoever asks may go at any time, and the handler learns of it.
func TestGone(t *testing.T) {
	ended := make(chan error, 1)
	forever := client(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write([]byte("more")); err != nil {
				ended <- err
				return
			}
		}
	})
	res, err := forever.Get("http://in.process/")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	<-ended

	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://in.process/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err = forever.Do(req); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("reading after cancel: %v", err)
	}
	<-ended
	if _, err := forever.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that is cancelled already: %v", err)
	}

	ctx, cancel = context.WithCancel(context.Background())
	silent := client(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		ended <- nil
	})
	if req, err = http.NewRequestWithContext(ctx, "POST", "http://in.process/", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before the answer: %v", err)
	}
	<-ended
}

// A handler that stops because its request was given up has not answered: what it
// wrote until then is no whole body.
func TestGivenUp(t *testing.T) {
	c := client(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "a part")
		<-r.Context().Done()
	})
	enough := errors.New("enough")
	for range 1000 { // which of the two is told first of the end is not given
		ctx, giveUp := context.WithCancelCause(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://in.process/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		giveUp(enough)
		if rest, err := io.ReadAll(res.Body); !errors.Is(err, enough) {
			t.Fatalf("%q, %v", rest, err)
		}
		res.Body.Close()
	}
}

// Nor is what it says for an answer one, when it begins only then.
func TestGivenUpBefore(t *testing.T) {
	for range 20_000 {
		ctx, giveUp := context.WithCancel(t.Context())
		c := client(func(w http.ResponseWriter, r *http.Request) {
			giveUp()
			http.Error(w, "given up", http.StatusServiceUnavailable)
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://in.process/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := c.Do(req); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, %v", res, err)
		}
	}
}
