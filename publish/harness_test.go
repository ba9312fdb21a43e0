package publish

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/jsonpatch"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

const testBase = "http://source.example"

// clock is the time of a test; it moves when told.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// world is a log, what it should hold, and a publisher over it.
type world struct {
	t     testing.TB
	clock *clock
	store kv.Store
	track *changetrack.Tracker
	log   *changetrack.Log
	cfg   SetConfig
	o     Options
	pub   *Publisher
	model map[string][]byte // location: representation, as the log has it
	seen  map[string]int    // entity: value, in the log
	bytes map[string]string // immutable address: what it once answered

	applied map[string]int // patches that were read, by type
	tune    func(*set)     // limits, set after each start; may be nil
}

func newWorld(t testing.TB, cfg SetConfig) *world { return newWorldIn(t, teststores.Records(t), cfg) }

func newWorldIn(t testing.TB, store kv.Store, cfg SetConfig) *world {
	w := &world{t: t, clock: &clock{t: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}, store: store,
		model: map[string][]byte{}, seen: map[string]int{}, bytes: map[string]string{}, applied: map[string]int{}}
	var err error
	w.track, err = changetrack.Open(t.Context(), kv.Prefix(w.store, []byte("log/")), changetrack.Options{Dir: t.TempDir(), Now: w.clock.now})
	w.must(err)
	if cfg.Name == "" {
		cfg.Name = "data"
	}
	w.log, err = w.track.Log(t.Context(), cfg.Name)
	w.must(err)
	cfg.Log = w.log
	w.cfg = cfg
	w.o = Options{BaseURL: testBase, Dir: t.TempDir(), Now: w.clock.now}
	t.Cleanup(func() {
		if w.pub != nil {
			w.must(w.pub.Close())
		}
		w.must(w.track.Close())
	})
	w.reopen()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// reopen opens the publisher as after a restart.
func (w *world) reopen() {
	w.t.Helper()
	if w.pub != nil {
		w.must(w.pub.Close())
	}
	var err error
	w.pub, err = Open(context.Background(), kv.Prefix(w.store, []byte("pub/")), []SetConfig{w.cfg}, w.o)
	w.must(err)
	if w.tune != nil {
		w.tune(w.pub.lookup(w.cfg.Name))
	}
}

func (w *world) publish() Generation {
	w.t.Helper()
	g, err := w.pub.Publish(w.t.Context(), w.cfg.Name)
	w.must(err)
	return g
}

func triplesOf(entity string, value int) []rdfres.Triple {
	s := rdfres.NewIRI(entity)
	ts := []rdfres.Triple{
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral("label of "+entity, "en", "")},
		{S: s, P: rdfres.NewIRI("http://example.org/value"), O: rdfres.NewLiteral(strconv.Itoa(value), "", "")},
		{S: s, P: rdfres.NewIRI("http://example.org/next"), O: rdfres.NewIRI("http://example.org/e/" + strconv.Itoa(value%7))},
	}
	for i := range value % 5 {
		ts = append(ts, rdfres.Triple{S: s, P: rdfres.NewIRI("http://example.org/more"), O: rdfres.NewLiteral(fmt.Sprintf("a longer literal with the number %d", i*i), "", "")})
	}
	return rdfres.SortUnique(ts)
}

// rounds scans and publishes so many states of entities, with every document and package.
func (w *world) rounds(n, entities int) {
	w.t.Helper()
	for round := range n {
		values := map[string]int{}
		for i := range entities {
			values[fmt.Sprintf("http://example.org/e/%d", i)] = round*100 + i
		}
		w.clock.add(time.Minute)
		w.scan(values, round > 0, w.cfg.Format)
		w.publish()
		w.must(w.pub.Dump(w.t.Context(), "data"))
		w.must(w.pub.ListResources(w.t.Context(), "data"))
		w.must(w.pub.Archive(w.t.Context(), "data"))
	}
}

// scan brings the values into the log: all of them, or those of some entities (a
// value below 0 deletes).
func (w *world) scan(values map[string]int, partial bool, format rdfres.Format) {
	w.t.Helper()
	entities := slices.Collect(maps.Keys(values))
	slices.SortFunc(entities, func(a, b string) int {
		x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
		return bytes.Compare(x[:], y[:])
	})
	var found iter.Seq2[rdfres.Description, error] = func(yield func(rdfres.Description, error) bool) {
		for _, e := range entities {
			d := rdfres.Description{Entity: e}
			if values[e] >= 0 {
				d.Triples = triplesOf(e, values[e])
			}
			if !yield(d, nil) {
				return
			}
		}
	}
	before, _ := w.log.Head()
	res, err := w.log.Scan(w.t.Context(), found, changetrack.ScanOptions{Partial: partial, Format: format, MaxDeleteRatio: -1})
	w.must(err)
	if res.Held != nil || res.Failed > 0 {
		w.t.Fatalf("scan: held %v, failures %v", res.Held, res.Failures)
	}
	view := w.log.View(w.t.Context())
	defer view.Close()
	s := w.pub.lookup(w.cfg.Name)
	for c, err := range view.Changes(w.t.Context(), before) {
		w.must(err)
		if c.Before != nil {
			delete(w.model, s.at.address(c.Entity, c.Before.Format))
		}
		if c.After != nil {
			data, err := versionBytes(w.t.Context(), view, c.Entity, c.After.Sequence)
			w.must(err)
			w.model[s.at.address(c.Entity, c.After.Format)] = data
		}
	}
}

// get asks the handler; header is name, value, ...
func (w *world) get(address string, header ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest("GET", strings.TrimPrefix(address, w.o.BaseURL), nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.pub.Handler().ServeHTTP(rec, r)
	return rec
}

// body is what an address answers with, once as it is and once packed: both are
// the same. Immutable addresses always answer with the same.
func (w *world) body(address string) []byte {
	w.t.Helper()
	plain := w.get(address)
	if plain.Code != 200 {
		w.t.Fatalf("GET %s: %d %s", address, plain.Code, plain.Body)
	}
	if n := plain.Header().Get("Content-Length"); n != strconv.Itoa(plain.Body.Len()) {
		w.t.Fatalf("GET %s: Content-Length %s, %d bytes", address, n, plain.Body.Len())
	}
	data := plain.Body.Bytes()
	packed := w.get(address, "Accept-Encoding", "gzip")
	if packed.Header().Get("Content-Encoding") == "gzip" {
		if n := packed.Header().Get("Content-Length"); n != strconv.Itoa(packed.Body.Len()) {
			w.t.Fatalf("GET %s: Content-Length %s, %d bytes packed", address, n, packed.Body.Len())
		}
		zr, err := gzip.NewReader(packed.Body)
		w.must(err)
		unpacked, err := io.ReadAll(zr)
		w.must(err)
		if !bytes.Equal(unpacked, data) {
			w.t.Fatalf("GET %s: packed it is something else", address)
		}
	}
	if again := w.get(address, "If-None-Match", plain.Header().Get("Etag")); again.Code != 304 || again.Body.Len() > 0 {
		w.t.Fatalf("GET %s with its ETag: %d", address, again.Code)
	}
	if old, ok := w.bytes[address]; ok && old != string(data) {
		w.t.Fatalf("%s was immutable and has changed:\n%.1000s\n%.1000s", address, old, data)
	}
	if strings.Contains(plain.Header().Get("Cache-Control"), "immutable") {
		w.bytes[address] = string(data)
	}
	return data
}

// read fetches a document, checks it against the rules, and reads it.
func (w *world) read(address string) (resourcesync.Head, []*resourcesync.Entry) {
	w.t.Helper()
	data := w.body(address)
	_, findings, err := check.Validate(bytes.NewReader(data), check.ValidateOptions{Location: address})
	w.must(err)
	for _, f := range findings {
		if f.Severity != "I" {
			w.t.Fatalf("%s breaks a rule: %v\n%.2000s", address, f, data)
		}
	}
	r, err := resourcesync.NewReader(bytes.NewReader(data), resourcesync.ReaderOptions{BaseURL: address, Strict: true})
	w.must(err)
	var entries []*resourcesync.Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return *r.Head(), entries
		}
		w.must(err)
		entries = append(entries, e)
	}
}

// all reads a list, or every list of an index.
func (w *world) all(address string) (resourcesync.Head, []*resourcesync.Entry) {
	w.t.Helper()
	h, entries := w.read(address)
	if !h.Index {
		return h, entries
	}
	var union []*resourcesync.Entry
	for _, part := range entries {
		ph, more := w.read(part.Loc)
		if ph.Index || ph.IndexURL() != address || ph.Meta.Capability != h.Meta.Capability {
			w.t.Fatalf("%s is no part of %s: %+v", part.Loc, address, ph)
		}
		if !ph.Meta.Until.Equal(part.Meta.Until) || !part.Meta.From.Equal(ph.Meta.From) {
			w.t.Fatalf("%s has %v to %v, its index says %v to %v", part.Loc, ph.Meta.From, ph.Meta.Until, part.Meta.From, part.Meta.Until)
		}
		union = append(union, more...)
	}
	return h, union
}

func (w *world) url(path string) string { return testBase + "/" + w.cfg.Name + "/" + path }

// mirror is a naive reader: it knows a Resource List, Change Lists and HTTP.
type mirror struct {
	w      *world
	from   string // "later" asks for changes later than its time, "not earlier" for those at it too
	t      time.Time
	copies map[string][]byte
	start  bool
}

func (m *mirror) fetch(e *resourcesync.Entry) []byte {
	w := m.w
	w.t.Helper()
	memento := e.Link(resourcesync.RelMemento)
	if memento == nil {
		w.t.Fatalf("%s has no memento", e.Loc)
	}
	data := w.body(memento.Href)
	if f := rdfres.ComputeFixity(data, false, false); f.Length != e.Meta.Length || f.SHA256.String() != e.Meta.Hash.SHA256 {
		w.t.Fatalf("%s answers with %d bytes, sha-256 %s; promised %d, %s", memento.Href, f.Length, f.SHA256, e.Meta.Length, e.Meta.Hash.SHA256)
	}
	return data
}

// version fetches the version of a change. One that retention has dropped, while
// its Change List is kept, has a later change in the lists.
func (m *mirror) version(e *resourcesync.Entry) (data []byte, kept bool) {
	m.w.t.Helper()
	if res := m.w.get(e.Link(resourcesync.RelMemento).Href); res.Code == 404 && strings.Contains(res.Body.String(), "not kept") {
		return nil, false
	}
	return m.fetch(e), true
}

// baseline reads the Resource List.
func (m *mirror) baseline() {
	h, entries := m.w.all(m.w.url("resourcelist.xml"))
	m.copies, m.t, m.start = map[string][]byte{}, h.Meta.At, true
	for _, e := range entries {
		if m.copies[e.Loc] != nil {
			m.w.t.Fatalf("%s is listed twice", e.Loc)
		}
		m.copies[e.Loc] = m.fetch(e)
	}
}

// follow applies the changes since its time.
func (m *mirror) follow() {
	w := m.w
	w.t.Helper()
	h, entries := w.all(w.url("changelist.xml"))
	if h.Meta.From.After(m.t) {
		w.t.Fatalf("the Change Lists begin at %v, the mirror stands at %v", h.Meta.From, m.t)
	}
	var last time.Time
	for _, e := range entries {
		at := e.Meta.DateTime
		if !at.Equal(e.LastMod) || at.Before(last) {
			w.t.Fatalf("%s: datetime %v, lastmod %v, the entry before %v", e.Loc, at, e.LastMod, last)
		}
		last = at
		if at.Before(m.t) || m.from == "later" && at.Equal(m.t) {
			continue
		}
		switch changetrack.Kind(e.Meta.Change) {
		case changetrack.Deleted:
			delete(m.copies, e.Loc)
			continue
		case changetrack.Updated:
			for i := range e.Links {
				if p := &e.Links[i]; p.Rel == resourcesync.RelPatch {
					w.patches(m.copies[e.Loc], p, e)
				}
			}
		}
		if data, kept := m.version(e); kept {
			m.copies[e.Loc] = data
		}
	}
	if !last.IsZero() && last.After(m.t) {
		m.t = last
	}
}

// patches checks a patch against what it applies to and what it makes.
func (w *world) patches(before []byte, p *resourcesync.Link, e *resourcesync.Entry) {
	w.t.Helper()
	data := w.body(p.Href)
	f := rdfres.ComputeFixity(data, false, false)
	if p.Length != f.Length || p.Hash.SHA256 != f.SHA256.String() || f.Length >= e.Meta.Length {
		w.t.Fatalf("patch %s: %d bytes %s, promised %+v", p.Href, f.Length, f.SHA256, p)
	}
	w.applied[p.Type]++
	switch p.Type {
	case patch.JSON.MediaType:
		if p.Ext[resourcesync.ExtResult] != "sha-256:"+e.Meta.Hash.SHA256 {
			w.t.Fatalf("patch %s makes %s, want %s", p.Href, p.Ext[resourcesync.ExtResult], e.Meta.Hash.SHA256)
		}
		if digestToken(rdfres.ComputeFixity(before, false, false).SHA256) != p.Ext[resourcesync.ExtBase] {
			return // the mirror stands elsewhere: it asks for changes at its time again
		}
		after, err := jsonpatch.Apply(before, data)
		w.must(err)
		if got := digestToken(rdfres.ComputeFixity(after, false, false).SHA256); got != p.Ext[resourcesync.ExtResult] {
			w.t.Fatalf("patch %s makes other bytes than the representation has:\n%s\nof\n%s\nwith\n%s", p.Href, after, before, data)
		}
	case patch.RDF.MediaType:
		if p.Ext[resourcesync.ExtResult] != e.Meta.Ext[resourcesync.ExtGraph] {
			w.t.Fatalf("patch %s makes %s, want %s", p.Href, p.Ext[resourcesync.ExtResult], e.Meta.Ext[resourcesync.ExtGraph])
		}
		format, _ := rdfres.FormatByMediaType(e.Meta.Type)
		ts, err := codec.Decode(format, before, rdfres.ReadOptions{})
		if err != nil || digestToken(rdfres.GraphDigest(ts)) != p.Ext[resourcesync.ExtBase] {
			return
		}
		after, headers, err := rdfres.ApplyPatch(ts, data, rdfres.ReadOptions{Name: p.Href})
		w.must(err)
		if got := digestToken(rdfres.GraphDigest(after)); got != p.Ext[resourcesync.ExtResult] {
			w.t.Fatalf("patch %s makes another graph than it says:\n%s", p.Href, data)
		}
		if len(headers) != 2 || headers[0] != (rdfres.PatchHeader{Name: "id", Value: niName(rdfres.GraphDigest(after))}) || headers[1] != (rdfres.PatchHeader{Name: "prev", Value: niName(rdfres.GraphDigest(ts))}) {
			w.t.Fatalf("patch %s has the headers %v", p.Href, headers)
		}
	default:
		w.t.Fatalf("patch %s has the type %s", p.Href, p.Type)
	}
}

func (m *mirror) compare(what string) {
	m.w.t.Helper()
	m.w.compare(what, m.copies)
}

func (w *world) compare(what string, got map[string][]byte) {
	w.t.Helper()
	for loc, data := range w.model {
		if !bytes.Equal(got[loc], data) {
			w.t.Fatalf("%s: %s is %q, want %q", what, loc, got[loc], data)
		}
	}
	for loc := range got {
		if w.model[loc] == nil {
			w.t.Fatalf("%s: %s is there and should not be", what, loc)
		}
	}
}

// randomChanges brings n random changes into the log.
func (w *world) randomChanges(r *rand.Rand, n, entities int) {
	w.t.Helper()
	values := map[string]int{}
	for range n {
		e := fmt.Sprintf("http://example.org/e/%d", r.IntN(entities))
		switch r.IntN(12) {
		case 0:
			e = fmt.Sprintf("http://other.example/x y/%d.html", r.IntN(entities))
		case 1:
			e = fmt.Sprintf("urn:rsbridge:component:%064x-0", r.IntN(entities))
		case 2:
			e = fmt.Sprintf("http://example.org/é/%s%d", strings.Repeat("long", 300), r.IntN(4))
		}
		values[e] = r.IntN(1000)
		if r.IntN(3) == 0 {
			values[e] = -1
		}
	}
	format := w.cfg.Format
	if r.IntN(10) == 0 {
		format = rdfres.NTriples
	}
	w.scan(values, true, format)
	w.clock.add(time.Duration(r.IntN(3000)) * time.Millisecond)
}

// niName is the name of a graph by its digest (RFC 6920).
func niName(d rdfres.Digest) rdfres.Term {
	return rdfres.Term("<ni:///sha-256;" + base64.RawURLEncoding.EncodeToString(d[:]) + ">")
}
