package destination

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// refusing answers updates with a status, with 1 as where nobody listens.
type refusing struct {
	http.RoundTripper
	status int
	tries  int
}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.status == 0 || !strings.HasSuffix(r.URL.Path, "/update") {
		return f.RoundTripper.RoundTrip(r)
	}
	f.tries++
	if r.Body != nil {
		r.Body.Close()
	}
	if f.status == 1 {
		return nil, syscall.ECONNREFUSED
	}
	return &http.Response{StatusCode: f.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("what the store says")), Request: r}, nil
}

// The first run against a mirror that takes no writes tells what it answered,
// whether that may pass, and the next run is as the first.
func TestFirstWriteIsRefused(t *testing.T) {
	for status, c := range map[int]struct {
		want   []string
		passes bool
	}{
		1:   {[]string{"connection refused", "is the store running"}, true},
		401: {[]string{"401 Unauthorized", "what the store says", "give username and password_file"}, false},
		403: {[]string{"403 Forbidden", "what the store says", "does the user have this right"}, false},
		405: {[]string{"405 Method Not Allowed", "are the addresses for queries, updates and the Graph Store mixed up"}, false},
		429: {[]string{"429 Too Many Requests", "what the store says"}, true},
		500: {[]string{"500 Internal Server Error", "what the store says"}, true},
		503: {[]string{"503 Service Unavailable", "what the store says"}, true},
		507: {[]string{"507 Insufficient Storage", "what the store says", "the disk of the store is full"}, true},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel() // the removal of the scratch graph is tried again for seconds
			b := newBench(t)
			fill(b.src, 3)
			store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			f := &refusing{RoundTripper: store.Transport(), status: status}
			client, err := sparql.New(sparql.Endpoint{Name: "mirror", Query: "http://mirror.example/query", Update: "http://mirror.example/update", Transport: f, Retries: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			d, err := Open(context.Background(), b.store, sparqlsink.Of(client), b.cfg, keep.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			_, err = d.Sync(context.Background(), SyncOptions{})
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
			if passes := strings.Contains(err.Error(), "at present") && strings.Contains(err.Error(), "the next run tries again"); passes != c.passes {
				t.Errorf("told as temporary: %v", passes)
			}
			if f.tries > 6 {
				t.Errorf("%d requests", f.tries)
			}
			f.status = 0
			if rep, err := d.Sync(context.Background(), SyncOptions{}); err != nil || !rep.InSync || rep.Created != 3 {
				t.Fatalf("%+v %v", rep, err)
			}
		})
	}
}

// poisoned answers all that has a word in it with 500, as Virtuoso 7 does where a
// literal is none of its datatype: updates and questions alike.
type poisoned struct{ http.RoundTripper }

func (f poisoned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("poison")) {
			return &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("no such literal")), Request: r}, nil
		}
	}
	return f.RoundTripper.RoundTrip(r)
}

// A literal that a store can neither be given nor asked for fails its resource alone.
func TestRefusedAndNotAskedFor(t *testing.T) {
	for _, graph := range []string{"single", "per-entity"} {
		t.Run(graph, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			fill(b.src, 5)
			b.src.put("bad.nt", nt("bad", "before"))
			store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			client, err := sparql.New(sparql.Endpoint{Name: "mirror", Query: "http://mirror.example/query", Update: "http://mirror.example/update", Transport: poisoned{store.Transport()}, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			cfg := b.cfg
			if cfg.Graph = graph; graph == "per-entity" {
				cfg.GraphIRI = "http://g.example/{entity}"
			}
			d, err := Open(t.Context(), b.store, sparqlsink.Of(client), cfg, keep.Options{Now: func() time.Time { return b.clock }})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			b.src.put("new.nt", nt("new", "also", "poison"))
			rep, err := d.Sync(t.Context(), SyncOptions{})
			if err != nil || rep.Created != 6 || rep.Failed != 1 {
				t.Fatalf("%+v %v", rep, err)
			}
			b.src.put("bad.nt", nt("bad", "after", "poison"))
			b.src.put("e1.nt", nt("e1", "x"))
			if rep, err = d.Sync(t.Context(), SyncOptions{}); err != nil || rep.Updated != 1 || rep.Failed != 2 {
				t.Fatalf("%+v %v", rep, err)
			}
			a, err := d.Audit(t.Context(), AuditOptions{Repair: true})
			if err != nil || a.Missing != 1 || a.Different != 1 || a.Extra != 0 {
				t.Fatalf("%+v %v", a, err)
			}
			b.src.put("bad.nt", nt("bad", "last"))
			b.src.put("new.nt", nt("new", "last"))
			if rep, err = d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
				t.Fatalf("%+v %v", rep, err)
			}
			if a, err := d.Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal || a.Resources != 7 {
				t.Fatalf("%+v %v", a, err)
			}
		})
	}
}
