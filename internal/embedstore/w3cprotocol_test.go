package embedstore

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	pathpkg "path"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const w3cBase = "https://w3c.github.io/rdf-tests/"

// w3cFiles are the files of the W3C suites for SPARQL, by their names below w3cBase.
func w3cFiles(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open(teststores.Shared(t, "fixtures/w3c/rdf-tests-sparql.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[pathpkg.Clean(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// manifest is a graph of tests.
type manifest map[rdfres.Term]map[string][]rdfres.Term

func readManifest(t *testing.T, files map[string][]byte, name string) manifest {
	t.Helper()
	return indexTriples(w3cTriples(t, files, name))
}

// w3cTriples are those of a document of the suite.
func w3cTriples(t *testing.T, files map[string][]byte, name string) []rdfres.Triple {
	t.Helper()
	if files[name] == nil {
		t.Fatalf("the suite has no %s", name)
	}
	format := map[string]rdfres.Format{".rdf": rdfres.RDFXML, ".nt": rdfres.NTriples}[pathpkg.Ext(name)]
	if format == "" {
		format = rdfres.Turtle
	}
	ts, err := codec.Decode(format, files[name], rdfres.ReadOptions{Base: w3cBase + name})
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// indexTriples finds properties by their local names.
func indexTriples(ts []rdfres.Triple) manifest {
	m := manifest{}
	for _, x := range ts {
		if m[x.S] == nil {
			m[x.S] = map[string][]rdfres.Term{}
		}
		p := x.P.IRI()
		p = p[strings.LastIndexAny(p, "#/")+1:]
		m[x.S][p] = append(m[x.S][p], x.O)
	}
	return m
}

// one is the value of a property, "" without one.
func (m manifest) one(s rdfres.Term, p string) rdfres.Term {
	if o := m[s][p]; len(o) > 0 {
		return o[0]
	}
	return ""
}

func (m manifest) text(s rdfres.Term, p string) string {
	o := m.one(s, p)
	if o == "" || kindOf(string(o)) != idLiteral {
		return o.IRI()
	}
	lex, _, _ := o.Literal()
	return lex
}

func (m manifest) list(head rdfres.Term) (out []rdfres.Term) {
	for ; head != "" && head != rdfNil; head = m.one(head, "rest") {
		out = append(out, m.one(head, "first"))
	}
	return out
}

// tests are those of a manifest, in their order.
func (m manifest) tests() (out []rdfres.Term) {
	for s := range m {
		out = append(out, m.list(m.one(s, "entries"))...)
	}
	return out
}

// The W3C suites for the SPARQL Protocol and the Graph Store Protocol, with graphs named
// by a parameter and by their own addresses.
func TestW3CProtocols(t *testing.T) {
	files := w3cFiles(t)
	run := 0
	for _, name := range []string{"protocol/manifest.ttl", "graph-store-protocol/manifest-indirect.ttl", "graph-store-protocol/manifest-direct.ttl"} {
		name = "sparql/sparql11/" + name
		m := readManifest(t, files, name)
		for _, test := range m.tests() {
			run++
			t.Run(pathpkg.Base(pathpkg.Dir(name))+"/"+test.IRI()[strings.LastIndexByte(test.IRI(), '#')+1:], func(t *testing.T) {
				s := openTest(t, t.TempDir())
				for _, g := range m[test]["graphData"] {
					file := files[strings.TrimPrefix(m.one(g, "graph").IRI(), w3cBase)]
					if _, err := s.Load(t.Context(), m.text(g, "label"), rdfres.NTriples, strings.NewReader(string(file)), LoadOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				location := ""
				for _, action := range m[test]["action"] {
					for _, req := range m.list(m.one(action, "requests")) {
						location = w3cRequest(t, s, m, test, req, location)
					}
				}
			})
		}
	}
	if run != 34+9+4 {
		t.Errorf("%d tests", run)
	}
}

// w3cRequest sends a request of a test and gives the Location of its answer.
func w3cRequest(t *testing.T, s *Store, m manifest, test, req rdfres.Term, location string) string {
	t.Helper()
	here := strings.NewReplacer("/gsp", "/data", "%2Fgsp", "%2Fdata", "%252Fgsp", "%252Fdata").Replace
	body, target, ctype := here(m.text(m.one(req, "body"), "chars")), here(m.text(req, "absolutePath")), ""
	for _, h := range m.list(m.one(req, "headers")) {
		if strings.EqualFold(m.text(h, "fieldName"), "content-type") {
			ctype = m.text(h, "fieldValue")
		}
	}
	if at, ok := strings.CutPrefix(target, "/sparql/"); ok {
		at = strings.TrimPrefix(at, "?")
		target = "/query"
		if strings.Contains(test.IRI(), "update") && !strings.Contains(ctype, "sparql-query") && !strings.Contains(body+at, "query=") {
			target = "/update"
		}
		if at != "" {
			target += "?" + at
		}
	}
	target = strings.ReplaceAll(target, "$LOCATION$", location)
	if !strings.HasPrefix(target, "http") {
		target = "http://www.example" + target
	}
	if enc := m.text(m.one(req, "body"), "characterEncoding"); strings.HasPrefix(enc, "UTF-16") {
		var wide strings.Builder
		for _, c := range utf16.Encode([]rune("\ufeff" + body)) {
			wide.WriteString(string([]byte{byte(c >> 8), byte(c)}))
		}
		body = wide.String()
	}
	r := httptest.NewRequest(m.text(req, "methodName"), target, strings.NewReader(body))
	for _, h := range m.list(m.one(req, "headers")) {
		r.Header.Set(m.text(h, "fieldName"), m.text(h, "fieldValue"))
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	resp := m.one(req, "resp")
	statuses := map[string]string{"Created": "201", "OK": "200", "NoContent": "204", "NotFound": "404"}
	ok := slices.ContainsFunc(m[resp]["expectedStatus"], func(o rdfres.Term) bool {
		code := o.IRI()[strings.LastIndexByte(o.IRI(), '#')+1:]
		if c := statuses[code]; c != "" {
			return fmt.Sprint(w.Code) == c
		}
		return strings.TrimSuffix(strings.TrimPrefix(code, "StatusCode"), "xx") == fmt.Sprint(w.Code/100)
	})
	if !ok {
		t.Errorf("%s %s: %d %s, not %v", r.Method, target, w.Code, w.Body, m[resp]["expectedStatus"])
	}
	if want := m.text(resp, "expectedBoolean"); want != "" {
		var got struct{ Boolean bool }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || fmt.Sprint(got.Boolean) != want {
			t.Errorf("%s %s: %s, not %s", r.Method, target, w.Body, want)
		}
	}
	isRows := strings.Contains(w.Header().Get("Content-Type"), "sparql-results")
	if want := m.text(resp, "expectedFormat"); want != "" && isRows == (want == "RDF") {
		t.Errorf("%s %s: %s, not %s", r.Method, target, w.Header(), want)
	}
	if want := m.text(m.one(resp, "body"), "chars"); want != "" {
		got, err := codec.Decode(rdfres.Turtle, w.Body.Bytes(), rdfres.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ts, err := codec.Decode(rdfres.Turtle, []byte(here(want)), rdfres.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if graph(t, got) != graph(t, ts) {
			t.Errorf("%s %s: %s, not %s", r.Method, target, w.Body, want)
		}
	}
	if at := w.Header().Get("Location"); at != "" {
		return at
	}
	return location
}
