package destination

import (
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
)

// A Link header names the context of JSON, under the rules for other contexts, and a
// charset in the Content-Type counts.
func TestWhatHeadersTellOfABody(t *testing.T) {
	const link = `; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"`
	docs := map[string]struct{ contentType, link, body, want string }{
		"a":     {"application/json", `</ctx>` + link, `{"id": "http://ex.org/a", "n": "A"}`, "<http://ex.org/a> <http://p/n> \"A\" .\n"},
		"b":     {"application/vnd.x+json; charset=utf-8", `<ctx>` + link, `{"@id": "http://ex.org/b", "n": "B"}`, "<http://ex.org/b> <http://p/n> \"B\" .\n"},
		"own":   {"application/json", `</ctx>` + link, `{"@context": {"n": "http://p/own"}, "id": "http://ex.org/own", "n": "C"}`, "<http://ex.org/own> <http://p/own> \"C\" .\n"},
		"ld":    {"application/ld+json", `</gone>` + link, `{"@id": "http://ex.org/ld", "http://p/n": "D"}`, "<http://ex.org/ld> <http://p/n> \"D\" .\n"},
		"two":   {"application/json", `</ctx>` + link + `, </ctx2>` + link, `{"@id": "http://ex.org/two", "n": "E"}`, "name 2 JSON-LD contexts"},
		"far":   {"application/json", `<http://far.example/ctx>` + link, `{"@id": "http://ex.org/far", "n": "F"}`, "needs a JSON-LD context from elsewhere: GET http://far.example/ctx"},
		"ttl":   {"text/turtle; charset=ISO-8859-1", "", "<http://ex.org/ttl> <http://p/n> \"caf\xe9\" .", "<http://ex.org/ttl> <http://p/n> \"café\" .\n"},
		"nt":    {"application/n-triples; charset=\"windows-1252\"", "", "<http://ex.org/nt> <http://p/n> \"\x80\" .", "<http://ex.org/nt> <http://p/n> \"€\" .\n"},
		"none":  {"text/turtle; charset=x-unknown", "", "<http://ex.org/none> <http://p/n> \"x\" .", `the charset "x-unknown" cannot be read`},
		"wrong": {"text/turtle; charset=us-ascii", "", "<http://ex.org/wrong> <http://p/n> \"caf\xe9\" .", "no character of us-ascii"},
	}
	b := newBench(t)
	s := b.src
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		name := path.Base(r.URL.Path)
		if name == "ctx" {
			io.WriteString(w, `{"@context": {"id": "@id", "n": "http://p/n"}}`)
			return true
		}
		doc, ok := docs[name]
		if !ok {
			return false
		}
		w.Header().Set("Content-Type", doc.contentType)
		if doc.link != "" {
			w.Header().Set("Link", doc.link)
		}
		io.WriteString(w, doc.body)
		return true
	}
	var want []string
	for name, doc := range docs {
		s.types[name] = ""
		s.put(name, doc.body)
		if strings.HasPrefix(doc.want, "<") {
			want = append(want, doc.want)
		}
	}
	rep := b.sync()
	for _, p := range rep.Problems {
		name := path.Base(p.Location)
		if doc := docs[name]; strings.HasPrefix(doc.want, "<") || !strings.Contains(p.Reason, doc.want) {
			t.Errorf("%s: %s", name, p.Reason)
		}
	}
	if len(rep.Problems) != len(docs)-len(want) {
		t.Errorf("%d problems, want %d", len(rep.Problems), len(docs)-len(want))
	}
	slices.Sort(want)
	b.same(b.mir.lines(graphA), want)
}
