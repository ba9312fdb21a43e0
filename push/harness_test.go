package push

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

const (
	base    = "http://source.example/at"
	someHub = "http://source.example/at/hub"
	person  = "http://example.org/Person"
	things  = "http://example.org/"
)

// world is a source with one set, data, and its topics.
type world struct {
	*testing.T
	store kv.Store
	log   *changetrack.Log
	pub   *publish.Publisher
	push  *Push
}

func newWorld(t *testing.T, c Config, tune func(*publish.SetConfig)) *world {
	w := &world{T: t, store: memkv.New()}
	track, err := changetrack.Open(t.Context(), kv.Prefix(w.store, []byte("log/")), changetrack.Options{Dir: t.TempDir()})
	w.must(err)
	w.log, err = track.Log(t.Context(), "data")
	w.must(err)
	cfg := publish.SetConfig{Name: "data", Log: w.log, Format: rdfres.JSONLD, Channels: c.Entries(someHub)}
	if tune != nil {
		tune(&cfg)
	}
	w.pub, err = publish.Open(t.Context(), kv.Prefix(w.store, []byte("pub/")), []publish.SetConfig{cfg}, publish.Options{
		BaseURL: base, Dir: t.TempDir(), Changed: func(name string) {
			if w.push != nil {
				w.push.Changed(name)
			}
		}})
	w.must(err)
	w.push = w.open(c)
	t.Cleanup(func() {
		w.push.Close()
		w.must(w.pub.Close())
		w.must(track.Close())
	})
	return w
}

func (w *world) open(c Config) *Push {
	w.Helper()
	p, err := New([]SetConfig{{Name: "data", Config: c, Address: func() string { return base + "/data" }, Read: func(ctx context.Context) State {
		if st := w.pub.Read(ctx, "data"); st != nil {
			return st
		}
		return nil
	}}}, Options{Store: kv.Prefix(w.store, []byte("push/")), Source: base + "/.well-known/resourcesync", Documents: w.pub.Handler(), Address: someHub})
	w.must(err)
	return p
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// change brings descriptions into the log and publishes them: a value below 0 deletes one. The
// first change is the complete scan.
func (w *world) change(values map[string]int) {
	w.Helper()
	entities := slices.SortedFunc(mapsKeys(values), func(a, b string) int {
		x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
		return bytes.Compare(x[:], y[:])
	})
	found := func(yield func(rdfres.Description, error) bool) {
		for _, e := range entities {
			d := rdfres.Description{Entity: e}
			if v := values[e]; v >= 0 {
				s := rdfres.NewIRI(e)
				d.Triples = []rdfres.Triple{{S: s, P: rdfres.NewIRI(things + "value"), O: rdfres.NewLiteral(strconv.Itoa(v), "", "")}}
				if v%2 == 1 {
					d.Triples = append(d.Triples, rdfres.Triple{S: s, P: rdfres.NewIRI(rdfType), O: rdfres.NewIRI(person)})
				}
				d.Triples = rdfres.SortUnique(d.Triples)
			}
			if !yield(d, nil) {
				return
			}
		}
	}
	head, _ := w.log.Head()
	_, err := w.log.Scan(w.Context(), found, changetrack.ScanOptions{Partial: head > 0, Format: rdfres.JSONLD, MaxDeleteRatio: -1})
	w.must(err)
	_, err = w.pub.Publish(w.Context(), "data")
	w.must(err)
}

func mapsKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// topic finds a topic by the rest of its address behind the set.
func (w *world) topic(rest string) *topic {
	w.Helper()
	t, err := w.push.Topic(base + "/data/notify/" + rest)
	w.must(err)
	return t
}

func (w *world) after(t *topic, told uint64) *notification {
	w.Helper()
	n, err := t.after(w.Context(), positionIn(told), "")
	w.must(err)
	return n
}

// read reads a notification, after a check against the rules of its document.
func (w *world) read(body []byte) (resourcesync.Head, []*resourcesync.Entry) {
	w.Helper()
	_, findings, err := check.Validate(bytes.NewReader(body), check.ValidateOptions{Location: base + "/data/notify/change"})
	w.must(err)
	for _, f := range findings {
		if f.Severity != "I" {
			w.Fatalf("rule broken: %v\n%.2000s", f, body)
		}
	}
	r, err := resourcesync.NewReader(bytes.NewReader(body), resourcesync.ReaderOptions{BaseURL: base, Strict: true})
	w.must(err)
	return *r.Head(), w.entries(r)
}

func (w *world) entries(r *resourcesync.Reader) (out []*resourcesync.Entry) {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		w.must(err)
		out = append(out, e)
	}
}

// get asks the handler; header is name, value, ...
func (w *world) get(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.push.Handler(http.NotFoundHandler()).ServeHTTP(rec, r)
	return rec
}

// names are the changes of entries, like "created e1".
func names(entries []*resourcesync.Entry) string {
	var out []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Loc[strings.LastIndexByte(e.Loc, '/')+1:], ".jsonld")
		out = append(out, cmp.Or(e.Meta.Change, "?")+" "+name)
	}
	return strings.Join(out, ", ")
}

func entity(n int) string { return things + "e" + strconv.Itoa(n) }

func rising(t *testing.T, from time.Time, entries []*resourcesync.Entry, until time.Time) {
	t.Helper()
	for _, e := range entries {
		if !e.Meta.DateTime.After(from) || e.Meta.DateTime.After(until) {
			t.Fatalf("%s changed at %v, want after %v and up to %v", e.Loc, e.Meta.DateTime, from, until)
		}
		from = e.Meta.DateTime
	}
	if !from.Equal(until) {
		t.Fatalf("the last change is of %v, until is %v", from, until)
	}
}

// document is a document of the source.
func (w *world) document(path string) io.Reader {
	w.Helper()
	rec := httptest.NewRecorder()
	w.pub.Handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	if rec.Code != 200 {
		w.Fatalf("GET %s: %d %s", path, rec.Code, rec.Body)
	}
	return rec.Body
}
