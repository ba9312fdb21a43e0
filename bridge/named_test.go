package bridge

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// feed is a set whose store fails when told, and which only a feed outside tells what
// changed.
type feed struct {
	t     *testing.T
	cfg   *Config
	store *sparqltest.Store
	down  atomic.Bool
	b     *Bridge
}

func newFeed(t *testing.T) *feed {
	f := &feed{t: t, store: sparqltest.New()}
	for _, name := range []string{"a", "b", "c"} {
		f.store.Add("", valueOf(name, "1"))
	}
	f.store.Fault = func(op, body string) *sparqltest.Fault {
		if f.down.Load() {
			return &sparqltest.Fault{Status: http.StatusForbidden}
		}
		return nil
	}
	server := httptest.NewServer(f.store)
	t.Cleanup(server.Close)
	f.cfg = small(t.TempDir())
	f.cfg.Stores["source"] = Store{Query: server.URL + "/query", Concurrency: 2}
	set := f.cfg.Sets["data"]
	set.Schedule = ""
	f.cfg.Sets["data"] = set
	clear(f.cfg.Destinations)
	f.open()
	t.Cleanup(func() {
		if err := f.b.Close(); err != nil {
			t.Error(err)
		}
	})
	if rep := do[ScanReport](t, f.b, "scan", "data"); rep.Created != 3 {
		t.Fatalf("%+v", rep)
	}
	return f
}

// holds has the store wait with its answers until release is closed; asked tells of a request.
func (f *feed) holds() (asked, release chan struct{}) {
	asked, release = make(chan struct{}, 1), make(chan struct{})
	f.store.Fault = func(op, body string) *sparqltest.Fault {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
		return nil
	}
	return asked, release
}

func (f *feed) open() {
	f.b = mustOpen(f.t, f.cfg)
	f.b.Start(f.t.Context())
}

func valueOf(name, value string) rdfres.Triple {
	return rdfres.Triple{S: rdfres.NewIRI("http://e.example/" + name), P: "<http://e.example/value>", O: rdfres.NewLiteral(value, "", "")}
}

// name is what the admin API does with a request, and the end of its run.
func (f *feed) name(names ...string) jobs.Run {
	f.t.Helper()
	args := ScanArgs{}
	for _, n := range names {
		args.Entities = append(args.Entities, "http://e.example/"+n)
	}
	run, _, err := f.b.Begin(f.t.Context(), "scan", "data", "api", args)
	if err == nil {
		run, err = f.b.runner.Wait(f.t.Context(), run.ID)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return run
}

// settle waits until no run is under way.
func (f *feed) settle() {
	f.t.Helper()
	for busy := true; busy; {
		var run jobs.Run
		if run, busy = f.b.runner.Busy("hint:data"); busy {
			if _, err := f.b.runner.Wait(f.t.Context(), run.ID); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

// value is what the log says of an entity.
func (f *feed) value(name string) string {
	f.t.Helper()
	view := f.b.Log("data").View(f.t.Context())
	defer view.Close()
	st, err := view.Entity(f.t.Context(), "http://e.example/"+name)
	if err != nil || st.Current == nil {
		return ""
	}
	for _, v := range []string{"1", "2", "3"} {
		if st.Current.Graph == rdfres.GraphDigest([]rdfres.Triple{valueOf(name, v)}) {
			return v
		}
	}
	return "?"
}

func (f *feed) change(name, from, to string) {
	f.store.Remove("", valueOf(name, from))
	f.store.Add("", valueOf(name, to))
}

// TestNamedStay: what a feed has named is looked at in the end, whatever became of the
// run that its request was: the store failed, or the process has ended.
func TestNamedStay(t *testing.T) {
	f := newFeed(t)
	f.change("a", "1", "2")
	f.change("b", "1", "2")
	f.down.Store(true)
	if run := f.name("a"); run.State != jobs.Failed {
		t.Fatalf("%+v", run)
	}
	f.down.Store(false)
	if run := f.name("b"); run.State != jobs.Done {
		t.Fatalf("%+v", run)
	}
	f.settle()
	if a, b := f.value("a"), f.value("b"); a != "2" || b != "2" {
		t.Errorf("after the store was back: a is %s, b is %s", a, b)
	}

	// The hourly retention begins a failed look again, of a set without a schedule too.
	f.change("b", "2", "3")
	f.down.Store(true)
	f.name("b")
	f.down.Store(false)
	look(t, f.b, "retain:data", nil)
	f.settle()
	if b := f.value("b"); b != "3" {
		t.Errorf("after the retention: b is %s", b)
	}

	f.change("a", "2", "3")
	f.down.Store(true)
	f.name("a")
	if err := f.b.Close(); err != nil {
		t.Fatal(err)
	}
	f.down.Store(false)
	f.open()
	f.settle()
	if a := f.value("a"); a != "3" {
		t.Errorf("after a restart: a is %s", a)
	}
	if due, err := f.b.sets["data"].due.Due(t.Context()); err != nil || len(due) > 0 {
		t.Errorf("still due: %v %v", due, err)
	}
}

// TestNamedStayWhenCancelled: a run that was cancelled before it began has not looked.
func TestNamedStayWhenCancelled(t *testing.T) {
	f := newFeed(t)
	asked, release := f.holds()
	f.change("a", "1", "2")
	first, _, err := f.b.Begin(t.Context(), "scan", "data", "api", ScanArgs{Entities: []string{"http://e.example/b"}})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	second, _, err := f.b.Begin(t.Context(), "scan", "data", "api", ScanArgs{Entities: []string{"http://e.example/a"}})
	if err == nil {
		err = f.b.runner.Cancel(second.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if run, err := f.b.runner.Wait(t.Context(), second.ID); err != nil || run.State != jobs.Cancelled {
		t.Fatalf("%+v %v", run, err)
	}
	close(release)
	if run, err := f.b.runner.Wait(t.Context(), first.ID); err != nil || run.State != jobs.Done {
		t.Fatalf("%+v %v", run, err)
	}
	f.settle()
	if a := f.value("a"); a != "2" {
		t.Errorf("a is %s", a)
	}
}

// TestNamedAreBounded: what cannot be kept is refused, not forgotten, also after a restart.
func TestNamedAreBounded(t *testing.T) {
	teststores.Sequential(t)
	f := newFeed(t)
	f.down.Store(true)
	args := ScanArgs{}
	for i := range MaxNamed {
		args.Entities = append(args.Entities, fmt.Sprintf("http://e.example/%d/%s", i, strings.Repeat("x", 1000)))
	}
	most := 0
	for ; ; most++ {
		if _, _, err := f.b.Begin(t.Context(), "scan", "data", "api", args); errors.Is(err, named.ErrMany) {
			break
		} else if err != nil || most > 7 {
			t.Fatal(most, err)
		}
	}
	if err := f.b.Close(); err != nil {
		t.Fatal(err)
	}
	f.open()
	if _, _, err := f.b.Begin(t.Context(), "scan", "data", "api", args); most < 5 || !errors.Is(err, named.ErrMany) {
		t.Fatal(most, err)
	}
	f.down.Store(false)
	do[ScanReport](t, f.b, "scan", "data")
	if run := f.name("a"); run.State != jobs.Done {
		t.Fatalf("%+v", run)
	}
	if n := f.b.sets["data"].due.Bytes(); n != 0 {
		t.Fatal(n, "bytes are still counted")
	}
}

// TestNamedTogether: what is named while a run looks is looked at by one run after it.
func TestNamedTogether(t *testing.T) {
	f := newFeed(t)
	asked, release := f.holds()
	for _, name := range []string{"a", "b", "c"} {
		f.change(name, "1", "2")
	}
	var ids []uint64
	for i, name := range []string{"a", "b", "c", "b"} {
		run, joined, err := f.b.Begin(t.Context(), "scan", "data", "api", ScanArgs{Entities: []string{"http://e.example/" + name}})
		if err != nil || joined != (i > 1) {
			t.Fatal(name, joined, err)
		}
		ids = append(ids, run.ID)
		if i == 0 {
			<-asked
		}
	}
	close(release)
	for _, id := range ids {
		if run, err := f.b.runner.Wait(t.Context(), id); err != nil || run.State != jobs.Done {
			t.Fatalf("%+v %v", run, err)
		}
	}
	if a, b, c := f.value("a"), f.value("b"), f.value("c"); a != "2" || b != "2" || c != "2" {
		t.Error(a, b, c)
	}
	if due, err := f.b.sets["data"].due.Due(t.Context()); err != nil || len(due) > 0 {
		t.Errorf("still due: %v %v", due, err)
	}
}

// TestNamedPassNoHold: while a scan is held, what is named is published, and the hold stays. Of unknown
// changes the set is read whole, and held too.
func TestNamedPassNoHold(t *testing.T) {
	f := newFeed(t)
	names := []string{"a", "b", "c"}
	for n := range 30 {
		names = append(names, fmt.Sprint("n", n))
		f.store.Add("", valueOf(names[n+3], "1"))
	}
	do[ScanReport](t, f.b, "scan", "data")
	for _, name := range names {
		f.store.Remove("", valueOf(name, "1"))
	}
	if rep := do[ScanReport](t, f.b, "scan", "data"); rep.Held == nil {
		t.Fatalf("%+v", rep)
	}
	held := func(what string) {
		t.Helper()
		f.settle()
		st, err := f.b.SetStatus(t.Context(), "data")
		if err != nil || st.State != StateHeld || f.value("a") != "1" || f.value("b") != "1" {
			t.Errorf("%s: %s %v, a is %q", what, st.State, err, f.value("a"))
		}
	}
	f.store.Add("", valueOf("d", "1"))
	if run := f.name("d"); run.State != jobs.Done || f.value("d") != "1" {
		t.Errorf("named: %+v", run)
	}
	held("named")
	set := f.b.sets["data"]
	f.change("d", "1", "2")
	err := set.due.Keep(t.Context(), named.Told{Unknown: true})
	if err == nil {
		err = toldOf(set, "test").Begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	held("unknown")
	do[ScanReport](t, f.b, "accept", "data")
	if f.value("a") != "" || f.value("d") != "2" {
		t.Errorf("accepted: a is %q, d is %q", f.value("a"), f.value("d"))
	}
	if due, err := set.due.Due(t.Context()); err != nil || len(due) > 0 {
		t.Errorf("still due: %v %v", due, err)
	}
}

// TestCounted: a status tells the position of the scan with the count of triples.
func TestCounted(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Destinations = nil
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	is := func(when string, sequence, counted uint64, triples int64) {
		t.Helper()
		st, err := b.SetStatus(t.Context(), "data")
		if err != nil || st.Sequence != sequence || st.Counted != counted || st.Triples != triples {
			t.Errorf("%s: %d triples counted at %d of %d, want %d, %d of %d: %v", when, st.Triples, st.Counted, st.Sequence, triples, counted, sequence, err)
		}
	}
	fill(t, b, "source", sayings("a", "b"))
	do[ScanReport](t, b, "scan", "data")
	is("after a scan", 2, 2, 2)
	fill(t, b, "source", sayings("a", "b", "c"))
	if err := b.Do(t.Context(), "scan", "data", ScanArgs{Entities: []string{"http://e.example/c"}}, new(ScanReport)); err != nil {
		t.Fatal(err)
	}
	is("after a look at an entity", 3, 2, 2)
	do[ScanReport](t, b, "scan", "data")
	is("after another scan", 3, 3, 3)
}
