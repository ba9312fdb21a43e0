package embedstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// clients are the two ways to the handler: a port, and the transport.
func clients(t *testing.T, s *Store) map[string]struct {
	c    *http.Client
	base string
} {
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return map[string]struct {
		c    *http.Client
		base string
	}{
		"port":      {srv.Client(), srv.URL},
		"transport": {&http.Client{Transport: s.Transport()}, "http://embedded/stores/local"},
	}
}

func TestProtocol(t *testing.T) {
	s := openTest(t, t.TempDir())
	gz := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.String()
	}
	q := func(text string) string { return "/query?query=" + url.QueryEscape(text) }
	all := "SELECT ?s ?o { ?s <http://x/p> ?o }"
	steps := []struct {
		name, method, path, ctype, body, accept string
		status                                  int
		want                                    string // in the body, or in the header after "H:"
	}{
		{"put", "PUT", "/data?graph=http://x/g", "text/turtle", "<http://x/a> <http://x/p> \"o\\t1\"@en, <b> .", "", 201, ""},
		{"put again", "PUT", "/data?graph=http://x/g", "text/turtle", "<http://x/a> <http://x/p> \"o\\t1\"@en, <b> .", "", 204, ""},
		{"get", "GET", "/data?graph=http://x/g", "", "", "application/n-triples", 200, `<http://x/a> <http://x/p> "o\t1"@en .` + "\n" + `<http://x/a> <http://x/p> <http://x/b> .`},
		{"get turtle", "GET", "/data?graph=http://x/g", "", "", "text/turtle;q=0.9, application/rdf+xml;q=0.1", 200, `"o\t1"@en , <http://x/b> .`},
		{"get xml", "GET", "/data?graph=http://x/g", "", "", "application/rdf+xml", 200, `<p:p xmlns:p="http://x/" xml:lang="en">o&#x9;1</p:p>`},
		{"get json", "GET", "/data?graph=http://x/g", "", "", "application/ld+json", 200, `{"@id":"http://x/a","http://x/p":[{"@value":"o\t1","@language":"en"},{"@id":"http://x/b"}]}`},
		{"head", "HEAD", "/data?graph=http://x/g", "", "", "", 200, "H:X-Triples: 2"},
		{"get missing", "GET", "/data?graph=http://x/none", "", "", "", 404, "no graph <http://x/none>"},
		{"get default", "GET", "/data?default", "", "", "", 200, ""},
		{"get all", "GET", "/data", "", "", "", 200, `<http://x/a> <http://x/p> <http://x/b> <http://x/g> .`},
		{"get all trig", "GET", "/data", "", "", "application/trig", 200, "<http://x/g> {"},
		{"get all turtle", "GET", "/data", "", "", "text/turtle", 406, "application/n-quads"},
		{"post gzip", "POST", "/data?default", "application/n-triples;gzip", gz("<http://x/c> <http://x/p> 1 .\n"), "", 400, "line 1"},
		{"post gzip", "POST", "/data?default", "application/n-triples;gzip", gz("<http://x/c> <http://x/p> \"1\" .\n"), "", 204, ""},
		{"post quads to one graph", "POST", "/data?default", "application/n-quads", "<http://x/c> <http://x/p> \"1\" <http://x/g> .\n", "", 400, "without naming a graph"},
		{"post type", "POST", "/data?default", "text/html", "x", "", 415, "application/n-triples"},
		{"two graphs", "GET", "/data?default&graph=http://x/g", "", "", "", 400, "more than one graph"},
		{"relative graph", "GET", "/data?graph=g", "", "", "", 400, "absolute"},
		{"patch", "PATCH", "/data", "", "", "", 405, "H:Allow: GET, HEAD, PUT, POST, DELETE"},
		{"query json", "GET", q(all), "", "", "", 200, `{"s":{"type":"uri","value":"http://x/c"},"o":{"type":"literal","value":"1"}}`},
		{"query tsv", "GET", q(all), "", "", "text/tab-separated-values", 200, "?s\t?o\n<http://x/c>\t\"1\"\n"},
		{"query csv", "GET", q(all), "", "", "text/csv", 200, "s,o\r\nhttp://x/c,1\r\n"},
		{"query xml", "GET", q(all), "", "", "application/sparql-results+xml", 200, `<result><binding name="s"><uri>http://x/c</uri></binding><binding name="o"><literal>1</literal></binding></result>`},
		{"query html", "GET", q(all), "", "", "text/html", 406, "application/sparql-results+json"},
		{"query any", "GET", q(all), "", "", "text/html, */*;q=0.1", 200, `"vars":["s","o"]`},
		{"query named", "GET", q(all) + "&default-graph-uri=http://x/g", "", "", "text/csv", 200, "http://x/a,o\t1\r\n"},
		{"query direct", "POST", "/query", "application/sparql-query", "ASK { ?s ?p ?o }", "", 200, `"boolean":true`},
		{"query form", "POST", "/query", "application/x-www-form-urlencoded", "query=" + url.QueryEscape("CONSTRUCT { ?o ?p ?s } { ?s ?p ?o }"), "", 200, ""},
		{"query wrong", "GET", q("SELECT * { ?s ?p }"), "", "", "", 400, "line 1, column 18"},
		{"query twice", "GET", q(all) + "&query=x", "", "", "", 400, "2 parameters named query"},
		{"using beside USING", "POST", "/update?using-graph-uri=http://x/g", "application/sparql-update", "INSERT { ?s <http://x/r> 1 } USING <http://x/g> WHERE { ?s ?p ?o }", "", 400, "USING or WITH"},
		{"using beside WITH", "POST", "/update?using-named-graph-uri=http://x/g", "application/sparql-update", "WITH <http://x/g> INSERT { ?s <http://x/r> 1 } WHERE { ?s ?p ?o }", "", 400, "USING or WITH"},
		{"form of what is no RDF", "POST", "/data?default", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ntext\r\n--b--\r\n", "", 415, "part 1"},
		{"form cut short", "POST", "/data?default", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: text/turtle\r\n\r\n<http://x/cut> a <http://x/C> .", "", 400, "form"},
		{"form without documents", "POST", "/data?default", "multipart/form-data; boundary=b", "--b--\r\n", "", 400, "form"},
		{"form for everything", "PUT", "/data", "multipart/form-data; boundary=b", "--b--\r\n", "", 400, "default"},
		{"query none", "GET", "/query", "", "", "", 200, "sparql-service-description#Service"},
		{"query service", "GET", q("SELECT * { SERVICE <http://x/> { ?s ?p ?o } }"), "", "", "", 501, "SERVICE"},
		{"query put", "PUT", "/query", "", "", "", 405, "H:Allow: GET, HEAD, POST"},
		{"update get", "GET", "/update?update=x", "", "", "", 405, "POST"},
		{"update direct", "POST", "/update", "application/sparql-update", "INSERT DATA { <http://x/d> <http://x/p> 2 }", "", 204, ""},
		{"update form", "POST", "/update", "application/x-www-form-urlencoded", "update=" + url.QueryEscape("DELETE WHERE { <http://x/c> ?p ?o }"), "", 204, ""},
		{"update using", "POST", "/update?using-graph-uri=http://x/g", "application/sparql-update", "INSERT { ?s <http://x/used> ?o } WHERE { ?s ?p ?o }", "", 204, ""},
		{"update wrong", "POST", "/update", "application/sparql-update", "INSERT DATA { <http://x/d> <http://x/p> 3 } ;\n INSERT DATA { ?x <http://x/p> 3 }", "", 400, "line 2"},
		{"delete", "DELETE", "/data?graph=http://x/g", "", "", "", 204, ""},
		{"delete missing", "DELETE", "/data?graph=http://x/g", "", "", "", 404, ""},
		{"rest", "GET", "/data?default", "", "", "", 200, `<http://x/d> <http://x/p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .`},
		{"delete all", "DELETE", "/data", "", "", "", 204, ""},
	}
	for name, c := range clients(t, s) {
		for _, st := range steps {
			req, err := http.NewRequest(st.method, c.base+st.path, strings.NewReader(st.body))
			if err != nil {
				t.Fatal(err)
			}
			if ct, z := strings.CutSuffix(st.ctype, ";gzip"); ct != "" {
				req.Header.Set("Content-Type", ct)
				if z {
					req.Header.Set("Content-Encoding", "gzip")
				}
			}
			if st.accept != "" {
				req.Header.Set("Accept", st.accept)
			}
			resp, err := c.c.Do(req)
			if err != nil {
				t.Fatalf("%s %s: %v", name, st.name, err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatalf("%s %s: %v", name, st.name, err)
			}
			got := string(body)
			want := st.want
			if h, ok := strings.CutPrefix(want, "H:"); ok {
				k, v, _ := strings.Cut(h, ": ")
				got, want = resp.Header.Get(k), v
			}
			if resp.StatusCode != st.status || !strings.Contains(got, want) {
				t.Errorf("%s %s: %d %q, want %d with %q", name, st.name, resp.StatusCode, got, st.status, want)
			}
		}
	}
}

// TestPublicText: what anybody may send is held in memory, so it is short, also
// once it is unpacked.
func TestPublicText(t *testing.T) {
	s := openTest(t, t.TempDir())
	ask := "ASK { }" + strings.Repeat(" ", publicText)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, ask)
	z.Close()
	for name, c := range map[string]struct{ ctype, coding, body string }{
		"direct": {"application/sparql-query", "", ask},
		"form":   {"application/x-www-form-urlencoded", "", "query=" + url.QueryEscape(ask)},
		"gzip":   {"application/sparql-query", "gzip", packed.String()},
	} {
		req := httptest.NewRequest("POST", "/query", strings.NewReader(c.body))
		req.Header.Set("Content-Type", c.ctype)
		req.Header.Set("Content-Encoding", c.coding)
		w := httptest.NewRecorder()
		s.QueryHandler("http://data.example/query").ServeHTTP(w, req)
		if w.Code != 413 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestBrokenAnswer sees that an answer that fails in the middle is an error to
// its reader, by port and by transport.
func TestBrokenAnswer(t *testing.T) {
	s := openTest(t, t.TempDir())
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "<http://x/s%d> <http://x/p> \"%d\" .\n", i, i)
	}
	loadText(t, s, "", b.String())
	s.SetBudget(Budget{Rows: 20_000})
	query := "/query?query=" + url.QueryEscape("SELECT DISTINCT ?s ?p ?o { ?s ?p ?o }")
	for name, c := range clients(t, s) {
		req, _ := http.NewRequest("GET", c.base+query, nil)
		req.Header.Set("Accept", "text/tab-separated-values")
		resp, err := c.c.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Errorf("%s: %d bytes and a clean end", name, n)
		}
		// Before the first byte it is an answer with a reason.
		resp, err = c.c.Get(c.base + "/query?query=" + url.QueryEscape("SELECT ?s { ?s ?p ?o } ORDER BY ?o"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 422 || !strings.Contains(string(body), "query_rows of the store (") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

// TestCancel sees that a reader who goes away ends the query, and that a sender
// who goes away leaves nothing.
func TestCancel(t *testing.T) {
	s := openTest(t, t.TempDir())
	var b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&b, "<http://x/s%d> <http://x/p> \"%d\" .\n", i, i)
	}
	loadText(t, s, "", b.String())
	c := &http.Client{Transport: s.Transport()}
	ctx, cancel := context.WithCancelCause(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://e/data?default", nil)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	cancel(gone)
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("a cancelled answer ends cleanly")
	}
	resp.Body.Close()

	// A closed body ends the handler too: Close of the store would wait for it.
	resp, err = c.Get("http://e/data?default")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	ctx, cancel = context.WithCancelCause(context.Background())
	pr, pw := io.Pipe()
	go func() {
		io.WriteString(pw, "<http://x/new> <http://x/p> \"1\" .\n")
		cancel(gone)
		pw.Close()
	}()
	req, _ = http.NewRequestWithContext(ctx, "POST", "http://e/data?default", pr)
	req.Header.Set("Content-Type", "application/n-triples")
	if _, err := c.Do(req); err == nil {
		t.Error("a cancelled request succeeded")
	}
	// The upload is over when the next write is done.
	if err := s.Update(context.Background(), "INSERT DATA { <http://x/last> <http://x/p> 1 }"); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "ASK { <http://x/new> ?p ?o }"); got[0] != "false" {
		t.Error("a cancelled request left something")
	}
}

// TestConcurrent reads and writes at once: every reader sees whole requests.
func TestConcurrent(t *testing.T) {
	s := openTest(t, t.TempDir())
	ctx := context.Background()
	const per = 50
	write := func(n int) error {
		var b strings.Builder
		for i := range per {
			fmt.Fprintf(&b, "<http://x/s%d> <http://x/p> \"%d\" .\n", i, n)
		}
		_, err := s.Load(ctx, "http://x/g", rdfres.NTriples, strings.NewReader(b.String()), LoadOptions{Replace: true})
		return err
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			for i := range 30 {
				if err := write(w*1000 + i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := ask(t, s, "SELECT ?o (COUNT(?s) AS ?n) { GRAPH <http://x/g> { ?s ?p ?o } } GROUP BY ?o")
				if len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf(`|"%d"`, per)) {
					t.Errorf("a reader saw %q", got)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	checkStore(t, s)
}

// TestSlowSender sees that a document that comes slowly holds up no other writer.
func TestSlowSender(t *testing.T) {
	s := openTest(t, t.TempDir())
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := s.Load(context.Background(), "", rdfres.NTriples, pr, LoadOptions{})
		done <- err
	}()
	io.WriteString(pw, "<http://x/slow> <http://x/p> \"1\" .\n")
	if err := s.Update(context.Background(), "INSERT DATA { <http://x/fast> <http://x/p> 1 }"); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "SELECT ?s { ?s ?p ?o }"); !slices.Equal(got, []string{"<http://x/fast>"}) {
		t.Errorf("meanwhile: %q", got)
	}
	pw.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "SELECT ?s { ?s ?p ?o }"); len(got) != 2 {
		t.Errorf("afterwards: %q", got)
	}
}

// A form adds all its documents or none; labels of blank nodes end with each. A new graph
// is found where Location says.
func TestFormsAndNewGraphs(t *testing.T) {
	s := openTest(t, t.TempDir())
	for name, c := range clients(t, s) {
		send := func(method, at, ctype, body string) *http.Response {
			req, _ := http.NewRequest(method, at, strings.NewReader(body))
			req.Header.Set("Content-Type", ctype)
			resp, err := c.c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Body = io.NopCloser(bytes.NewReader(text))
			return resp
		}
		form := "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.ttl\"\r\n\r\n_:x <http://x/p> 1 .\r\n--b\r\nContent-Disposition: form-data; name=\"b\"\r\nContent-Type: application/n-triples\r\n\r\n_:x <http://x/p> \"2\" .\r\n"
		if resp := send("POST", c.base+"/data?graph=http://x/form", "multipart/form-data; boundary=b", form+"--b\r\nContent-Type: text/turtle\r\n\r\nbroken\r\n--b--\r\n"); resp.StatusCode != 400 {
			t.Errorf("%s: a broken document: %s", name, resp.Status)
		}
		if got := ask(t, s, "SELECT ?s { GRAPH <http://x/form> { ?s ?p ?o } }"); len(got) != 0 {
			t.Errorf("%s: the store holds %v", name, got)
		}
		if resp := send("POST", c.base+"/data?graph=http://x/form", "multipart/form-data; boundary=b", form+"--b--\r\n"); resp.StatusCode != 201 {
			t.Errorf("%s: a form: %s", name, resp.Status)
		}
		if got := ask(t, s, "SELECT DISTINCT ?s { GRAPH <http://x/form> { ?s ?p ?o } }"); len(got) != 2 {
			t.Errorf("%s: the store holds %v", name, got)
		}
		resp := send("POST", c.base+"/data", "text/turtle", "<#a> <http://x/p> <> .")
		at := resp.Header.Get("Location")
		if resp.StatusCode != 201 || !strings.HasPrefix(at, c.base+"/data/") {
			t.Fatalf("%s: a new graph: %s at %q", name, resp.Status, at)
		}
		if resp := send("GET", at+"?default", "", ""); name == "port" && resp.StatusCode != 400 {
			t.Errorf("%s: two names of a graph: %s", name, resp.Status)
		}
		for _, get := range []string{at, c.base + "/data?graph=" + url.QueryEscape(at)} {
			if name != "port" && get == at {
				continue // in this process only the three addresses are answered
			}
			resp := send("GET", get, "", "")
			text, _ := io.ReadAll(resp.Body)
			if want := "<" + at + "#a> <http://x/p> <" + at + "> .\n"; string(text) != want {
				t.Errorf("%s: GET %s: %s %q", name, get, resp.Status, text)
			}
		}
		if resp := send("DELETE", c.base+"/data?graph="+url.QueryEscape(at), "", ""); resp.StatusCode != 204 {
			t.Errorf("%s: %s", name, resp.Status)
		}
		if resp := send("POST", c.base+"/data", "application/n-quads", "<http://x/a> <http://x/p> <http://x/b> <http://x/quads> .\n"); resp.StatusCode != 204 || resp.Header.Get("Location") != "" {
			t.Errorf("%s: quads: %s", name, resp.Status)
		}
		if err := s.Update(t.Context(), "CLEAR ALL"); err != nil {
			t.Fatal(err)
		}
	}
}

// The public endpoint may be used by pages of any origin, and says what it is.
func TestPublicEndpoint(t *testing.T) {
	s := openTest(t, t.TempDir())
	loadText(t, s, "http://x/g", "<http://x/a> <http://x/p> <http://x/b> .\n")
	h := s.QueryHandler("http://data.example/query")
	for _, c := range []struct {
		method, query, accept string
		status                int
		ctype, want           string
	}{
		{"OPTIONS", "", "", 204, "", ""},
		{"GET", "", "", 200, "text/turtle; charset=utf-8", "<http://data.example/query>"},
		{"HEAD", "", "text/turtle", 200, "text/turtle; charset=utf-8", ""},
		{"GET", "", "application/rdf+xml", 200, "application/rdf+xml", "rdf:RDF"},
		{"GET", "", "application/ld+json", 200, "application/ld+json", "http://x/g"},
		{"GET", "", "image/png", 406, "text/plain; charset=utf-8", "text/turtle"},
		{"GET", "?query=ASK{}", "", 200, "application/sparql-results+json", "true"},
		{"GET", "?query=" + url.QueryEscape("CONSTRUCT { <b> <p> <c> } {}"), "", 200, "application/n-triples", "<http://data.example/b>"},
		{"GET", "?default-graph-uri=http://x/g", "", 400, "text/plain; charset=utf-8", "query"},
		{"PUT", "", "", 405, "text/plain; charset=utf-8", ""},
	} {
		r := httptest.NewRequest(c.method, "http://inside/stores/a/query"+c.query, nil)
		r.Header.Set("Origin", "http://page.example")
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.ctype || !strings.Contains(w.Body.String(), c.want) || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s %s: %d %v %s", c.method, c.query, w.Code, w.Header(), w.Body)
		}
		if c.method == "OPTIONS" && !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Content-Type") {
			t.Errorf("OPTIONS: %v", w.Header())
		}
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/query?query=ASK{}", nil))
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("the administration can be used by any page")
	}
}
