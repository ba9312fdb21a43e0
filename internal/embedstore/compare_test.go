package embedstore

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSpeedAgainstOxigraph loads and streams the same data over HTTP from this
// store and from Oxigraph, and tells the ratios. RSBRIDGE_OXIGRAPH names its
// server binary; RSBRIDGE_BENCH_ENTITIES the size (100,000 are 980,000 triples).
func TestSpeedAgainstOxigraph(t *testing.T) {
	binary := os.Getenv("RSBRIDGE_OXIGRAPH")
	if binary == "" {
		t.Skip("RSBRIDGE_OXIGRAPH is not set to the oxigraph binary (pip install oxigraph)")
	}
	entities := 10_000
	if n, err := strconv.Atoi(os.Getenv("RSBRIDGE_BENCH_ENTITIES")); err == nil {
		entities = n
	}
	data := benchData(entities)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := osexec.Command(binary, "serve", "--location", t.TempDir(), "--bind", addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for range 1000 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()

	graph := "?graph=" + url.QueryEscape("http://x/g")
	do := func(method, u, ctype, accept string, body io.Reader) (lines int64, took time.Duration) {
		req, err := http.NewRequest(method, u, body)
		if err != nil {
			t.Fatal(err)
		}
		if ctype != "" {
			req.Header.Set("Content-Type", ctype)
		}
		req.Header.Set("Accept", accept)
		start := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var n lineCount
		if _, err := io.Copy(&n, resp.Body); err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %s %v", method, u, resp.Status, err)
		}
		return n.lines, time.Since(start)
	}
	query := func(base, q, accept string) (int64, time.Duration) {
		return do("POST", base+"/query", "application/sparql-query", accept, strings.NewReader(q))
	}
	const tsv, nt = "text/tab-separated-values", "application/n-triples"
	for _, c := range []struct {
		name string
		run  func(base, store string) (int64, time.Duration)
	}{
		{"load by Graph Store POST", func(base, store string) (int64, time.Duration) {
			_, took := do("POST", base+store+graph, nt, "*/*", bytes.NewReader(data))
			return int64(bytes.Count(data, []byte{'\n'})), took
		}},
		{"whole graph, Graph Store GET", func(base, store string) (int64, time.Duration) { return do("GET", base+store+graph, "", nt, nil) }},
		{"whole graph, SELECT as TSV", func(base, _ string) (int64, time.Duration) {
			return query(base, "SELECT ?s ?p ?o FROM <http://x/g> { ?s ?p ?o }", tsv)
		}},
		{"whole graph, CONSTRUCT", func(base, _ string) (int64, time.Duration) {
			return query(base, "CONSTRUCT { ?s ?p ?o } FROM <http://x/g> { ?s ?p ?o }", nt)
		}},
		{"closure of 200 entities", func(base, _ string) (int64, time.Duration) { return query(base, cbdQuery(200, entities), nt) }},
		{"VALUES of 200 entities", func(base, _ string) (int64, time.Duration) {
			var v strings.Builder
			for i := range 200 {
				fmt.Fprintf(&v, " <http://dbpedia.org/resource/Entity_%d>", i*(entities/200))
			}
			return query(base, "CONSTRUCT { ?s ?p ?o } FROM <http://x/g> { VALUES ?s {"+v.String()+" } ?s ?p ?o }", nt)
		}},
		{"SELECT DISTINCT ?s", func(base, _ string) (int64, time.Duration) {
			return query(base, "SELECT DISTINCT ?s FROM <http://x/g> { ?s ?p ?o }", tsv)
		}},
		{"COUNT by class", func(base, _ string) (int64, time.Duration) {
			return query(base, "SELECT ?c (COUNT(?s) AS ?n) FROM <http://x/g> { ?s a ?c } GROUP BY ?c", tsv)
		}},
	} {
		on, otime := c.run("http://"+addr, "/store")
		mn, mtime := c.run(srv.URL, "/data")
		if on != mn {
			t.Errorf("%s: %d lines here, %d from Oxigraph", c.name, mn, on)
		}
		t.Logf("%-30s %8d lines  here %8.0f/s  Oxigraph %8.0f/s  ratio %.2f", c.name, mn, float64(mn)/mtime.Seconds(), float64(on)/otime.Seconds(), otime.Seconds()/mtime.Seconds())
	}
	t.Log(rss())
}
