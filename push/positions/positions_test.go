package positions

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/position"
)

const address = "http://source.example/data/notify/position"

type world struct {
	*testing.T
	store kv.Store
	now   time.Time
	out   bytes.Buffer
	book  *Book
	place Place
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: memkv.New(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), place: Place{Set: "data", Address: address}}
	w.open()
	return w
}

// open opens the book, as after a restart.
func (w *world) open() {
	w.book = New(Options{Store: w.store, Now: func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(&w.out, nil))})
}

func (w *world) key(mirror string) ed25519.PrivateKey {
	k, err := position.KeyOf(make([]byte, 32), mirror)
	if err != nil {
		w.Fatal(err)
	}
	return k
}

func (w *world) sealed(r position.Report) []byte {
	body, err := position.Seal(r, w.key(r.Mirror))
	if err != nil {
		w.Fatal(err)
	}
	return body
}

func (w *world) send(method, kind, client string, body []byte) int {
	req := httptest.NewRequestWithContext(w.Context(), method, address, bytes.NewReader(body))
	req.Header.Set("Content-Type", kind)
	req.RemoteAddr = client
	got := httptest.NewRecorder()
	w.book.Serve(w.place, got, req)
	return got.Code
}

func (w *world) report(mirror string, sequence uint64) int {
	w.now = w.now.Add(2 * time.Second)
	return w.send("POST", position.ContentType, "192.0.2.1:1000", w.sealed(position.Report{To: address, Mirror: mirror, Time: w.now, Sequence: sequence}))
}

func (w *world) list() string {
	list, err := w.book.List(w.Context(), "data")
	if err != nil {
		w.Fatal(err)
	}
	var parts []string
	for _, m := range list {
		parts = append(parts, fmt.Sprintf("%s at %d", m.Name, m.Sequence))
	}
	return strings.Join(parts, ", ")
}

// TestReports: positions are kept over a restart, and for a week.
func TestReports(t *testing.T) {
	w := newWorld(t)
	for i, r := range []struct {
		mirror   string
		sequence uint64
	}{{"b", 3}, {"a", 5}, {"b", 7}, {"b", 6}} {
		if code := w.report(r.mirror, r.sequence); code != http.StatusNoContent {
			t.Fatalf("%d: %d %s", i, code, &w.out)
		}
	}
	const want = "a at 5, b at 6"
	if got := w.list(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.open()
	if got := w.list(); got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
	w.now = w.now.Add(keptFor - time.Second)
	if got := w.list(); got != "b at 6" {
		t.Errorf("a week after the last report of a: %s", got)
	}
	if err := w.book.Forget(t.Context(), func(set string) bool { return set != "data" }); err != nil {
		t.Fatal(err)
	}
	if w.open(); w.list() != "" {
		t.Errorf("after the set was forgotten: %s", w.list())
	}
}

// TestRefused: a report that proves nothing changes nothing, and has its line in the log.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.report("a", 5)
	good := position.Report{To: address, Mirror: "a", Sequence: 9}
	for _, c := range []struct {
		what, kind, reason string
		change             func(*position.Report)
		body               func([]byte) []byte
		code               int
	}{
		{what: "forged", reason: "the signature is not of its key", code: 401, body: func(b []byte) []byte { return bytes.Replace(b, []byte(`:9,`), []byte(`:8,`), 1) }},
		{what: "without a signature", reason: "the signature is not of its key", code: 401, body: func(b []byte) []byte { return append(b[:bytes.Index(b, []byte(`,"signature"`))], '}') }},
		{what: "nothing", reason: "no report of a position", code: 400, body: func([]byte) []byte { return nil }},
		{what: "too long", reason: "at most 4096 bytes", code: 413, body: func(b []byte) []byte { return append(b, bytes.Repeat([]byte{' '}, position.MostBytes)...) }},
		{what: "a form", kind: "application/x-www-form-urlencoded", reason: "a report is application/json", code: 415},
		{what: "for another source", reason: "it was made for", code: 401, change: func(r *position.Report) { r.To = "http://other.example/data/notify/position" }},
		{what: "of yesterday", reason: "24h0m0s off", code: 401, change: func(r *position.Report) { r.Time = r.Time.Add(-24 * time.Hour) }},
		{what: "sent again", reason: "a later report", code: 409, change: func(r *position.Report) { r.Time = r.Time.Add(-time.Minute) }},
		{what: "a name with a line end", reason: "U+000A", code: 400, change: func(r *position.Report) { r.Mirror = "a\nlevel=ERROR" }},
	} {
		w.now = w.now.Add(5 * time.Second)
		w.out.Reset()
		r := good
		r.Time = w.now
		if c.change != nil {
			c.change(&r)
		}
		body := w.sealed(r)
		if c.body != nil {
			body = c.body(body)
		}
		if c.kind == "" {
			c.kind = position.ContentType
		}
		code := w.send("POST", c.kind, "192.0.2.1:1000", body)
		if line := w.out.String(); code != c.code || !strings.Contains(line, c.reason) || strings.Count(line, "\n") != 1 || !strings.Contains(line, "client=192.0.2.1:1000") {
			t.Errorf("%s: %d, want %d and %q: %s", c.what, code, c.code, c.reason, line)
		}
	}
	if code := w.send("GET", "", "192.0.2.1:1000", nil); code != 405 {
		t.Errorf("GET: %d", code)
	}
	w.report("a", 9)
	w.place.From = []position.Key{position.Name(w.key("b"))}
	w.out.Reset()
	if code := w.report("a", 11); code != 403 || !strings.Contains(w.out.String(), string(position.Name(w.key("a")))) {
		t.Errorf("of a key that is not permitted: %d %s", code, &w.out)
	}
	if code := w.report("b", 11); code != 204 {
		t.Errorf("of a permitted key: %d", code)
	}
	if got, want := w.list(), "a at 9, b at 11"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestManyMirrors: an address introduces some mirrors, and a set has some more. Those that are known
// go on.
func TestManyMirrors(t *testing.T) {
	w := newWorld(t)
	for i := range mostOfClient + 1 {
		if code, want := w.report(fmt.Sprint(i), 1), map[bool]int{true: 204, false: 503}[i < mostOfClient]; code != want {
			t.Errorf("mirror %d of an address: %d", i, code)
		}
	}
	for i := range MostMirrors + 1 {
		w.send("POST", position.ContentType, fmt.Sprintf("192.0.2.%d:1", 2+i), w.sealed(position.Report{To: address, Mirror: fmt.Sprint("x", i), Time: w.now, Sequence: 1}))
	}
	if n := strings.Count(w.list(), " at "); n != MostMirrors {
		t.Errorf("%d mirrors", n)
	}
	if code := w.report("0", 2); code != 204 {
		t.Errorf("a known mirror: %d", code)
	}
	if n := strings.Count(w.out.String(), "refused"); n > 25 {
		t.Errorf("%d lines", n)
	}
}

// TestFlood: a sender behind a proxy on this machine, where all look alike, takes no place for long,
// and none of a mirror with an hour of reports.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	report := func(name string) int {
		w.now = w.now.Add(time.Second)
		return w.send("POST", position.ContentType, "127.0.0.1:1", w.sealed(position.Report{To: address, Mirror: name, Time: w.now, Sequence: 1}))
	}
	has := func(name string) bool { return strings.Contains(", "+w.list(), ", "+name+" at ") }
	report("proven")
	w.now = w.now.Add(provenAfter)
	report("proven")
	w.now = w.now.Add(2 * silentAfter)
	for i := range 2 * MostMirrors {
		if code := report(fmt.Sprint("flood", i)); code != 204 {
			t.Fatalf("report %d: %d", i, code)
		}
	}
	if n := strings.Count(w.list(), " at "); n != MostMirrors || !has("proven") {
		t.Errorf("%d mirrors, the proven one is there: %t", n, has("proven"))
	}
	report("real")
	report("real")
	for i := range MostMirrors {
		report(fmt.Sprint("more", i))
	}
	if !has("real") || !has("proven") {
		t.Errorf("a reporting mirror is there: %t, the proven one: %t", has("real"), has("proven"))
	}
	for i := range MostMirrors - 2 { // each of the flood reports twice
		report(fmt.Sprint("more", i+2))
	}
	if code := report("another"); code != 503 {
		t.Errorf("with all places taken by reporting mirrors: %d", code)
	}
	if w.now = w.now.Add(silentAfter); report("another") != 204 || !has("proven") {
		t.Error("a silent flood keeps its places")
	}
}
