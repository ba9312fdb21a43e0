package destination

import (
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"

	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// swallow makes the mirror confirm requests and not do them.
func (b *bench) swallow(which func(path, body string) bool) {
	b.mir.hook = func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Method == http.MethodGet || r.Method == http.MethodDelete || r.URL.Path == "/query" || !which(r.URL.Path, string(body)) {
			return false
		}
		w.WriteHeader(http.StatusCreated)
		return true
	}
}

// A store that confirms uploads and has not read them (Virtuoso 7, of a body in
// chunks): the baseline is found short, and written again by updates.
func TestUploadsSwallowed(t *testing.T) {
	b := newBench(t)
	fill(b.src, 300)
	swallowed := 0
	b.swallow(func(path, body string) bool {
		if path == "/data" && strings.Contains(body, "http://ex.org/") {
			swallowed++
			return true
		}
		return false
	})
	rep := b.sync()
	if swallowed == 0 || !rep.InSync || !strings.Contains(rep.Why, "less than it confirmed") {
		t.Fatalf("%d uploads swallowed: %+v", swallowed, rep)
	}
	b.equal()
}

// One that swallows everything is never in sync.
func TestEverythingSwallowed(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		b := newBench(t)
		b.caps.Transactional = atomic
		fill(b.src, 300)
		b.swallow(func(_, body string) bool { return strings.Contains(body, "<http://ex.org/") })
		d := b.open()
		rep, err := d.Sync(t.Context(), SyncOptions{})
		if err == nil || rep.InSync || !strings.Contains(err.Error(), "confirmed a write that it has not done") {
			t.Fatalf("%+v %v", rep, err)
		}
		b.mir.hook = nil
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.equal()
	}
}

// A store whose requests are not atomic is asked after each batch.
func TestUpdateSwallowed(t *testing.T) {
	for _, layout := range []string{"", "per-entity"} {
		b := newBench(t)
		b.caps.Transactional = false
		b.cfg.Graph = layout
		if layout != "" {
			b.cfg.GraphIRI = "http://g.example/{entity}"
		}
		fill(b.src, 5)
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		b.src.put("e1.nt", `<http://ex.org/e1> <http://ex.org/v> "new" .`+"\n")
		b.swallow(func(_, body string) bool { return strings.Contains(body, "<http://ex.org/e1>") })
		d := b.open()
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err == nil || rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		b.mir.hook = nil
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
		if rep, err := b.open().Audit(t.Context(), AuditOptions{}); err != nil || !rep.Equal {
			t.Fatalf("%+v %v", rep, err)
		}
	}
}

// A probe finds out that uploads are swallowed.
func TestDeadUploads(t *testing.T) {
	m := newTestMirror(t)
	b := &bench{mir: m}
	b.swallow(func(path, _ string) bool { return path == "/data" })
	d := sparqlsink.New(m.client(), &sink.Place{Log: slog.New(slog.DiscardHandler)})
	found, err := d.ProbeIRIs(t.Context())
	if err != nil || !found.Dead || len(found.GSP) > 0 {
		t.Fatalf("%+v %v", found, err)
	}
	d.IRIs = found
	if d.CanBulk() {
		t.Fatal("uploads are used")
	}
}

// A graph_store address that takes no POST is left alone where updates can be sent, and
// the probe leaves nothing behind.
func TestGraphStoreTakesNoPost(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		m := newTestMirror(t)
		m.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/data" || r.Method == http.MethodGet {
				return false
			}
			w.WriteHeader(status)
			return true
		}
		d := sparqlsink.New(m.client(), &sink.Place{Log: slog.New(slog.DiscardHandler)})
		found, err := d.ProbeIRIs(t.Context())
		if err != nil || !found.Dead {
			t.Errorf("%d: %+v %v", status, found, err)
		}
		if left, err := m.client().Ask(t.Context(), "ASK { GRAPH ?g { ?s ?p ?o } }"); err != nil || left {
			t.Errorf("%d: the probe left something: %v", status, err)
		}
	}
}

// NaN destroys a Virtuoso: what has it is held back and named.
func TestNaNHeldBack(t *testing.T) {
	b := newBench(t)
	b.caps.Product = "Virtuoso"
	fill(b.src, 3)
	b.src.put("nan.nt", `<http://ex.org/nan> <http://ex.org/v> "NaN"^^<http://www.w3.org/2001/XMLSchema#double> .`+"\n")
	rep := b.sync()
	if rep.Failed+rep.Pending != 1 || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].Reason, "NaN") || !strings.Contains(rep.Problems[0].Reason, "entity http://ex.org/nan") {
		t.Fatalf("%+v", rep)
	}
	for _, l := range b.mir.lines(graphA) {
		if strings.Contains(l, "NaN") {
			t.Fatal(l)
		}
	}
}

// Entities may be named as rsbridge names things, but for the graphs of its
// bookkeeping.
func TestEntitiesNamedLikeOurs(t *testing.T) {
	b := newBench(t)
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", ""
	for name, iri := range map[string]string{"x": "urn:rsbridge:x", "state": "urn:rsbridge:state", "component": "urn:rsbridge:component:1"} {
		b.src.put(name+".nt", "<"+iri+"> <http://ex.org/v> \"1\" .\n")
	}
	rep := b.sync()
	if rep.Created != 2 || rep.Failed+rep.Pending != 1 || !strings.Contains(rep.Problems[0].Reason, "urn:rsbridge:state") {
		t.Fatalf("%+v", rep)
	}
	if len(b.mir.lines("urn:rsbridge:x")) != 1 {
		t.Fatal("urn:rsbridge:x is not mirrored")
	}
	for graph, ok := range map[string]bool{"urn:rsbridge:x": true, "urn:rsbridge:state": false, "urn:rsbridge:probe:1": false} {
		c := b.cfg
		c.Graph, c.GraphIRI = "", graph
		if err := c.Complete(); (err == nil) != ok {
			t.Errorf("graph_iri %s: %v", graph, err)
		}
	}
}

// A store that makes of a literal the very form that is to be removed has done
// what it was told: an audit says that it is rewritten, and a sync goes on.
func TestRewrittenIntoWhatGoes(t *testing.T) {
	b := newBench(t)
	b.caps.Transactional = false
	year := func(lexical string) string { return `"` + lexical + `"^^<http://www.w3.org/2001/XMLSchema#gYear>` }
	b.mir.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), year("20"), year("0020"))))
		return false
	}
	b.src.put("e1.nt", "<http://ex.org/e1> <http://ex.org/v> "+year("20")+" .\n")
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	for i, repair := range []bool{false, true, false} {
		rep, err := b.open().Audit(t.Context(), AuditOptions{Repair: repair})
		if err != nil || rep.Equal != (i > 0) || i > 0 && rep.Rewritten != 1 {
			t.Fatalf("audit %d: %+v %v", i, rep, err)
		}
	}
	b.src.put("e1.nt", "<http://ex.org/e1> <http://ex.org/v> "+year("0020")+" .\n")
	b.sync()
	b.src.put("e1.nt", "<http://ex.org/e1> <http://ex.org/v> "+year("20")+" .\n")
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	if got := b.mir.lines(graphA); len(got) != 1 || !strings.Contains(got[0], year("0020")) {
		t.Fatal(got)
	}
}
