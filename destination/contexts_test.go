package destination

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A JSON-LD context that is not in the document is fetched from hosts that may be fetched
// from, once a run, and from no other; without it the resource fails, and is no other file.
func TestContexts(t *testing.T) {
	var requests atomic.Int64
	vocabulary := "http://ex.org/"
	abroad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch {
		case vocabulary == "":
			http.NotFound(w, r)
		case r.URL.Path == "/":
			w.Header().Set("Link", `</c.jsonld>; rel="alternate"; type="application/ld+json"`)
			io.WriteString(w, "<html>for people</html>")
		default:
			io.WriteString(w, `{"@context": {"@vocab": "`+vocabulary+`"}}`)
		}
	}))
	defer abroad.Close()
	doc := func(context, v string) string {
		return `{"@context": "` + context + `", "@id": "http://ex.org/a", "v": "` + v + `"}`
	}
	b := newBench(t)
	s := b.src
	s.types["own"], s.types["a"], s.types["b.jsonld"] = "", "application/json", "application/ld+json"
	own := false
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/own.jsonld" && own {
			io.WriteString(w, `{"@context": {"v": "http://ex.org/own"}}`)
			return true
		}
		return false
	}
	s.put("a", doc(abroad.URL, "1"))
	s.put("b.jsonld", doc(abroad.URL+"/c.jsonld", "2"))
	s.put("own", doc("/own.jsonld", "3"))
	rep := b.sync()
	if rep.InSync || rep.NotRDF != 0 || len(rep.Problems) != 3 || requests.Load() != 0 {
		t.Fatalf("%d requests, %+v", requests.Load(), rep)
	}
	for _, p := range rep.Problems {
		if !strings.Contains(p.Reason, "needs a JSON-LD context from elsewhere: GET "+map[bool]string{true: s.url("/own.jsonld"), false: abroad.URL}[strings.HasSuffix(p.Location, "own")]) {
			t.Errorf("%+v", p)
		}
	}
	own, b.cfg.Allow = true, []string{strings.TrimPrefix(abroad.URL, "http://")}
	rep = b.sync()
	if !rep.InSync || requests.Load() != 3 {
		t.Fatalf("%d requests, %+v", requests.Load(), rep)
	}
	line := func(p, v string) string { return "<http://ex.org/a> <http://ex.org/" + p + "> \"" + v + "\" .\n" }
	b.same(b.mir.lines(graphA), []string{line("own", "3"), line("v", "1"), line("v", "2")})
	vocabulary = "http://ex.org/new" // and the next run asks again
	s.put("b.jsonld", doc(abroad.URL+"/c.jsonld", "4"))
	rep, err := b.d.Sync(t.Context(), SyncOptions{})
	if err != nil || !rep.InSync {
		t.Fatalf("%+v %v", rep, err)
	}
	b.same(b.mir.lines(graphA), []string{line("newv", "4"), line("own", "3"), line("v", "1")})
	vocabulary = "" // what was mirrored stays, and is told
	s.put("a", doc(abroad.URL, "5"))
	if rep = b.sync(); rep.InSync || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].Reason, "404") {
		t.Fatalf("%+v", rep)
	}
	if got := b.mir.lines(graphA); !slices.Contains(got, line("v", "1")) {
		t.Errorf("%q", got)
	}
}
