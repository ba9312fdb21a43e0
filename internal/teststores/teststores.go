// Package teststores gives tests the real stores and clients that `make test`
// fetched and started: each server runs once, each test works in a graph of its
// own.
//
// The command in withstores starts them, tells their addresses by environment
// variables, and runs `go test`. A test that asks for something not
// there is passed over, and `make test` names the missing things at its end;
// there, with CI=true, it is a failure. Only tests import this package.
package teststores

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The environment variables set by withstores.
const (
	EnvOxigraph = "RSBRIDGE_TEST_OXIGRAPH" // base address
	EnvFuseki   = "RSBRIDGE_TEST_FUSEKI"   // dataset address
	EnvJena     = "RSBRIDGE_TEST_JENA"     // jar with the classes of Apache Jena
	EnvRDF4J    = "RSBRIDGE_TEST_RDF4J"    // repository address
	EnvVirtuoso = "RSBRIDGE_TEST_VIRTUOSO" // base address; user and password are dba
	EnvPython   = "RSBRIDGE_TEST_PYTHON"   // interpreter with pyoxigraph, resync, lxml and others
	EnvBrowser  = "RSBRIDGE_TEST_BROWSER"  // program of a Chromium
	EnvVersions = "RSBRIDGE_TEST_VERSIONS" // of the stores and clients, in words
	EnvMissing  = "RSBRIDGE_TEST_MISSING"  // file for the names of missing things
	EnvShared   = "RSBRIDGE_SHARED"        // folder of the shared fixtures
)

// A server that never answers fails a test in its place, long before the time of the package is up.
func init() { http.DefaultClient.Timeout = 3 * time.Minute }

// Server is the addresses of a store with the user and password for rsbridge
// there, and a graph of the test's own.
type Server struct {
	Query, Update, GraphStore string
	Username, Password        string
	Graph                     string

	open *Server // the addresses for the test itself, when others
}

// Oxigraph is the running Oxigraph server.
func Oxigraph(t testing.TB) Server {
	base := need(t, EnvOxigraph, "Oxigraph")
	return own(t, Server{Query: base + "/query", Update: base + "/update", GraphStore: base + "/store"})
}

// Fuseki is the running Apache Jena Fuseki server.
func Fuseki(t testing.TB) Server {
	base := need(t, EnvFuseki, "Fuseki")
	return own(t, Server{Query: base + "/query", Update: base + "/update", GraphStore: base + "/data"})
}

// Jena is a jar with the classes of Apache Jena, for a program that Java runs.
func Jena(t testing.TB) string { return need(t, EnvJena, "the jar of Jena") }

// RDF4J is the running Eclipse RDF4J server.
func RDF4J(t testing.TB) Server {
	base := need(t, EnvRDF4J, "RDF4J")
	return own(t, Server{Query: base, Update: base + "/statements", GraphStore: base + "/rdf-graphs/service"})
}

// Virtuoso is the running Virtuoso server, whose answers end at 10,000 rows
// without a word.
func Virtuoso(t testing.TB) Server {
	base := need(t, EnvVirtuoso, "Virtuoso")
	return own(t, Server{
		Query: base + "/sparql-auth", Update: base + "/sparql-auth", GraphStore: base + "/sparql-graph-crud-auth", Username: "dba", Password: "dba",
		open: &Server{Query: base + "/sparql", Update: base + "/sparql", GraphStore: base + "/sparql-graph-crud"},
	})
}

// Python is an interpreter with pyoxigraph, resync, jsonpatch and lxml.
func Python(t testing.TB) string { return need(t, EnvPython, "Python with pyoxigraph and resync") }

// Browser is the program of a Chromium.
func Browser(t testing.TB) string { return need(t, EnvBrowser, "Chromium") }

// need is the value of env. With -short, for the race detector, Oxigraph stands for all
// servers: it sees nothing in another process, and of our side no more with each of them.
func need(t testing.TB, env, what string) string {
	t.Helper()
	switch env {
	case EnvFuseki, EnvRDF4J, EnvVirtuoso, EnvJena:
		Sequential(t)
	}
	if v := os.Getenv(env); v != "" {
		return v
	}
	Lack(t, what+", which `make test` fetches and starts ("+env+")")
	return ""
}

// Lack passes over a test for want of something; the end of `make test`
// tells it.
func Lack(t testing.TB, what string) {
	t.Helper()
	if file := os.Getenv(EnvMissing); file != "" {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%s needs %s\n", t.Name(), what); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip("needs " + what)
}

// own gives the test a graph, dropped when it ends.
func own(t testing.TB, s Server) Server {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	s.Graph = "http://test.example/" + hex.EncodeToString(b[:])
	t.Cleanup(func() { s.Clear(t, s.Graph) })
	return s
}

// Put replaces a graph ("" is the test's own).
func (s Server) Put(t testing.TB, graph, contentType string, body io.Reader) {
	t.Helper()
	s.do(t, http.MethodPut, s.graphURL(graph), contentType, body)
}

// Get reads a graph ("" is the test's own) as N-Triples.
func (s Server) Get(t testing.TB, graph string) []byte {
	t.Helper()
	if s.open != nil {
		if graph == "" {
			graph = s.Graph
		}
		return s.byPredicate(t, "GRAPH <"+graph+"> { ?s ?p ?o } ")
	}
	return s.do(t, http.MethodGet, s.graphURL(graph), "", nil)
}

// GetBelow reads all graphs with names that begin with prefix, as
// N-Triples, and has them dropped when the test ends.
func (s Server) GetBelow(t testing.TB, prefix string) []byte {
	t.Helper()
	below := "GRAPH ?g { ?s ?p ?o } FILTER(STRSTARTS(STR(?g), \"" + prefix + "\")) "
	t.Cleanup(func() { s.Run(t, "DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { "+below+"}") })
	if s.open != nil {
		return s.byPredicate(t, below)
	}
	return s.do(t, http.MethodGet, s.Query+"?query="+url.QueryEscape("CONSTRUCT { ?s ?p ?o } WHERE { "+below+"}"), "", nil)
}

// Run runs a SPARQL update.
func (s Server) Run(t testing.TB, update string) {
	t.Helper()
	s.do(t, http.MethodPost, s.own().Update, "application/sparql-update; charset=utf-8", strings.NewReader(update))
}

// Clear drops a graph; a missing one is fine.
func (s Server) Clear(t testing.TB, graph string) {
	t.Helper()
	s.Run(t, "DROP SILENT GRAPH <"+graph+">")
}

// own are the addresses for the test itself.
func (s Server) own() Server {
	if s.open != nil {
		return *s.open
	}
	return s
}

func (s Server) graphURL(graph string) string {
	if graph == "" {
		graph = s.Graph
	}
	return s.own().GraphStore + "?graph=" + url.QueryEscape(graph)
}

// do asks a store. One that gave no answer in time is asked again: each request here may be done twice.
func (s Server) do(t testing.TB, method, addr, contentType string, body io.Reader) []byte {
	t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = io.ReadAll(body); err != nil {
			t.Fatal(err)
		}
	}
	for try := 1; ; try++ {
		status, raw, err := s.ask(t, method, addr, contentType, sent)
		switch late := (interface{ Timeout() bool })(nil); {
		case errors.As(err, &late) && late.Timeout() && try < 3:
			t.Logf("%s %s: %v; once more", method, addr, err)
		case err != nil:
			t.Fatal(err)
		case status == http.StatusNotFound && method == http.MethodGet:
			return nil
		case status >= 300:
			t.Fatalf("%s %s: %d: %.300s", method, addr, status, raw)
		default:
			return raw
		}
	}
}

func (s Server) ask(t testing.TB, method, addr, contentType string, body []byte) (status int, answer []byte, err error) {
	ctx := t.Context()
	if ctx.Err() != nil { // in a cleanup
		ctx = context.WithoutCancel(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, method, addr, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	switch question, _, _ := strings.Cut(addr, "?query="); {
	case method != http.MethodGet: // Virtuoso answers 406 to a write that accepts N-Triples
	case question == s.own().Query && s.open != nil:
		req.Header.Set("Accept", "application/sparql-results+json")
	default:
		req.Header.Set("Accept", "application/n-triples")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// Shared is a file of the shared fixtures; a checkout without them passes over
// the test.
func Shared(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(EnvShared)
	if dir == "" {
		dir = filepath.Join(Root(t), "..", "shared")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		Lack(t, "the shared fixtures, beside this checkout or in "+EnvShared+": "+err.Error())
	}
	return path
}

// ReadShared is the content of a shared fixture, unpacked when it is a .gz.
func ReadShared(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(Shared(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	if filepath.Ext(name) != ".gz" {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	data, err = io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Root is the folder of go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// compare tells with pyoxigraph whether two N-Triples texts hold the same graph,
// skolem IRIs turned back into blank nodes and decimals written by value, since
// stores write them each in a way of their own.
const compare = `
import re, sys, pyoxigraph as ox
S = re.compile(rb"<[^<>\s]*/\.well-known/genid/([^<>\s]*)>")
D = re.compile(rb'"([+-]?[0-9]+)\.0+"\^\^<http://www.w3.org/2001/XMLSchema#decimal>')
def canon(path):
    nt = S.sub(lambda m: b"_:s" + re.sub(rb"[^A-Za-z0-9]", lambda c: b"x%02x" % c.group()[0], m.group(1)), open(path, "rb").read())
    nt = D.sub(lambda m: b'"%s"^^<http://www.w3.org/2001/XMLSchema#decimal>' % m.group(1), nt)
    d = ox.Dataset(ox.parse(nt, format=ox.RdfFormat.N_TRIPLES))
    d.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return {str(q) for q in d}
def literals(path):
    return {str(q.object) for q in ox.parse(path=path, format=ox.RdfFormat.N_TRIPLES) if isinstance(q.object, ox.Literal)}
a, b = canon(sys.argv[1]), canon(sys.argv[2])
if a == b and a:
    x, y = literals(sys.argv[1]), literals(sys.argv[2])
    print(len(a), "triples are equal;", len(x - y), "literals are written otherwise", *sorted(x - y)[:5], "as" if x - y else "", *sorted(y - x)[:5]); sys.exit(0)
print(f"{len(a)} and {len(b)} triples, {len(a-b)} missing, {len(b-a)} extra", sorted(a-b)[:5], sorted(b-a)[:5]); sys.exit(1)
`

// Equal fails the test unless an independent tool (pyoxigraph) finds the same
// non-empty graph in both N-Triples texts, skolem IRIs undone.
func Equal(t testing.TB, source, mirror []byte) {
	t.Helper()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "source.nt"), filepath.Join(dir, "mirror.nt")
	for file, data := range map[string][]byte{a: source, b: mirror} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(Python(t), "-c", compare, a, b).CombinedOutput()
	if err != nil {
		t.Fatalf("source and mirror differ: %s", out)
	}
	t.Logf("%s", out)
}
