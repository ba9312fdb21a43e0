package sparql_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/sparql/sparqltest"
	"github.com/rsbridge/rsbridge/rdfres"
)

func connect(t *testing.T, h http.Handler, change func(*sparql.Endpoint)) *sparql.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	e := sparql.Endpoint{Name: "test", Query: srv.URL + "/query", Update: srv.URL + "/update", GraphStore: srv.URL + "/data", RetryPause: time.Millisecond}
	if change != nil {
		change(&e)
	}
	c, err := sparql.New(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func answer(mediaType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		io.WriteString(w, body)
	})
}

func rowsOf(t *testing.T, c *sparql.Client) ([][]rdfres.Term, error) {
	t.Helper()
	sol, err := c.Select(context.Background(), "SELECT ?s ?o WHERE { ?s ?p ?o }")
	if err != nil {
		return nil, err
	}
	var out [][]rdfres.Term
	for row, err := range sol.Rows {
		if err != nil {
			return out, err
		}
		out = append(out, append([]rdfres.Term{}, row...))
	}
	return out, nil
}

const xsd = "http://www.w3.org/2001/XMLSchema#"

func TestSelectFormats(t *testing.T) {
	want := [][]rdfres.Term{
		{"<http://example.org/a>", rdfres.NewLiteral("tab\t \"quote\" \\ line\n ümlaut 😀", "", "")},
		{"_:b1", rdfres.NewLiteral("x", "de-AT", "")},
		{"<http://example.org/a>", rdfres.NewLiteral("01", "", xsd+"integer")},
		{"<http://example.org/a>", rdfres.NewLiteral("-1.50", "", xsd+"decimal")},
		{"<http://example.org/a>", rdfres.NewLiteral("1e6", "", xsd+"double")},
		{"<http://example.org/a>", rdfres.NewLiteral("true", "", xsd+"boolean")},
		{"<http://example.org/a>", ""},
		{"", rdfres.NewLiteral("", "", "")},
	}
	tsv := "?s\t?o\n" +
		`<http://example.org/a>` + "\t" + `"tab\t \"quote\" \\ line\n \u00FCmlaut \U0001F600"` + "\n" +
		"_:b1\t\"x\"@de-AT\r\n" +
		"<http://example.org/a>\t01\n<http://example.org/a>\t-1.50\n<http://example.org/a>\t1e6\n<http://example.org/a>\ttrue\n<http://example.org/a>\t\n\t''\n"
	json := `{ "head": {"link": [], "vars": ["s","o"]}, "more": [1,{"x":null}], "results": {"distinct": false, "bindings": [
		{"s":{"type":"uri","value":"http://example.org/a"},"o":{"type":"literal","value":"tab\t \"quote\" \\ line\n \u00fcmlaut \ud83d\ude00"}},
		{"o":{"xml:lang":"de-AT","value":"x","type":"literal"},"s":{"type":"bnode","value":"b1"}},
		{"s":{"type":"uri","value":"http://example.org/a"},"o":{"type":"typed-literal","datatype":"` + xsd + `integer","value":"01"}},
		{"s":{"type":"uri","value":"http://example.org/a"},"o":{"type":"literal","datatype":"` + xsd + `decimal","value":"-1.50"}},
		{"s":{"type":"uri","value":"http://example.org/a"},"o":{"type":"literal","datatype":"` + xsd + `double","value":"1e6"}},
		{"s":{"type":"uri","value":"http://example.org/a"},"o":{"type":"literal","datatype":"` + xsd + `boolean","value":"true"}},
		{"s":{"type":"uri","value":"http://example.org/a"}},
		{"o":{"type":"literal","value":""}} ] } , "after": "x" }` + "\n"
	for mediaType, body := range map[string]string{"text/tab-separated-values; charset=utf-8": tsv, "application/sparql-results+json": json} {
		got, err := rowsOf(t, connect(t, answer(mediaType, body), nil))
		if err != nil {
			t.Fatalf("%s: %v", mediaType, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n got %q\nwant %q", mediaType, got, want)
		}
		// However it is cut, it is an error; never fewer rows.
		for n := 0; n < len(body)-2; n += 1 + n/40 {
			if mediaType[0] == 't' && n > 0 && body[n-1] == '\n' {
				continue // whole lines: only the HTTP framing, or a count, can tell
			}
			_, err := rowsOf(t, connect(t, answer(mediaType, body[:n]), func(e *sparql.Endpoint) { e.Retries = -1 }))
			if err == nil {
				t.Fatalf("%s cut after %d bytes was accepted: %q", mediaType, n, body[:n])
			}
			if mediaType[0] == 'a' && !errors.Is(err, sparql.ErrTruncated) {
				t.Fatalf("%s cut after %d bytes: %v", mediaType, n, err)
			}
		}
	}
}

func TestVirtuosoTSV(t *testing.T) {
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/a>", P: "<http://example.org/p>", O: `"1"`})
	st.VirtuosoTSV = true
	c := connect(t, st, nil)
	for range 2 {
		if got, err := rowsOf(t, c); err != nil || len(got) != 1 || got[0][1] != `"1"` {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if n := len(st.Queries()); n != 3 {
		t.Errorf("%d requests, want one that asks for TSV, then JSON at once", n)
	}
	if _, err := c.SelectAs(context.Background(), "SELECT ?s WHERE { ?s ?p ?o }", sparql.ReadSelectTSV); err == nil || !strings.Contains(err.Error(), "W3C") {
		t.Errorf("TSV insisted on: %v", err)
	}
}

func TestBrokenBodies(t *testing.T) {
	nt := strings.Repeat("<http://example.org/a> <http://example.org/p> \"some value\" .\n", 5000)
	for name, h := range map[string]http.HandlerFunc{
		"shorter than its Content-Length": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/n-triples")
			w.Header().Set("Content-Length", fmt.Sprint(len(nt)+10))
			io.WriteString(w, nt)
		},
		"chunks without an end": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/n-triples")
			io.WriteString(w, nt)
			panic(http.ErrAbortHandler)
		},
		"gzip without an end": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/n-triples")
			w.Header().Set("Content-Encoding", "gzip")
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			io.WriteString(z, nt)
			z.Close()
			w.Write(b.Bytes()[:b.Len()-9])
		},
		"a line without its end": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/n-triples")
			io.WriteString(w, nt[:len(nt)-10])
		},
	} {
		n, last := 0, error(nil)
		for _, err := range connect(t, h, nil).Construct(context.Background(), "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }") {
			if last = err; err == nil {
				n++
			}
		}
		if !errors.Is(last, sparql.ErrTruncated) || n == 0 {
			t.Errorf("%s: %d triples, then %v", name, n, last)
		}
	}
	c := connect(t, answer("text/html", "<html>a web page</html>"), nil)
	for _, err := range c.Construct(context.Background(), "CONSTRUCT {} WHERE {}") {
		if err == nil || !strings.Contains(err.Error(), "text/html") || !strings.Contains(err.Error(), "a web page") {
			t.Errorf("wrong type: %v", err)
		}
	}
}

func TestGzip(t *testing.T) {
	c := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/sparql-results+json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, `{"head":{},"boolean":true}`)
		z.Close()
	}), nil)
	if yes, err := c.Ask(context.Background(), "ASK {}"); !yes || err != nil {
		t.Errorf("%v, %v", yes, err)
	}
}

// The sum at the end of a packed answer is held against what came, in each form of rows.
func TestGzipSum(t *testing.T) {
	w := sparqltest.NewTable("s")
	w.Row("<http://example.org/a>")
	for as, body := range map[sparql.Reading]string{
		sparql.ReadSelectBinary: string(w.End()),
		sparql.ReadSelectJSON:   `{"head":{"vars":["s"]},"results":{"bindings":[{"s":{"type":"uri","value":"http://example.org/a"}}]}}`,
	} {
		for _, wrong := range []bool{false, true} {
			c := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", map[bool]string{true: sparqltest.TableType, false: "application/sparql-results+json"}[as == sparql.ReadSelectBinary])
				w.Header().Set("Content-Encoding", "gzip")
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				io.WriteString(z, body)
				z.Close()
				if wrong {
					b.Bytes()[b.Len()-8] ^= 1
				}
				w.Write(b.Bytes())
			}), nil)
			sol, err := c.SelectAs(t.Context(), "SELECT ?s WHERE { ?s ?p ?o }", as)
			if err == nil {
				for _, rowErr := range sol.Rows {
					err = errors.Join(err, rowErr)
				}
			}
			if (err != nil) != wrong {
				t.Errorf("%s, wrong sum %t: %v", as, wrong, err)
			}
		}
	}
}

func TestRetries(t *testing.T) {
	var n atomic.Int32
	status, good := 503, int32(3)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) < good {
			w.Header().Set("Retry-After", "0")
			http.Error(w, "not now", status)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	c := connect(t, h, nil)
	if err := c.Update(context.Background(), "INSERT DATA {}"); err != nil || n.Load() != 3 {
		t.Errorf("after 2 refusals: %v, %d requests", err, n.Load())
	}
	for _, bad := range []struct{ status, requests int }{{400, 1}, {401, 1}, {404, 1}, {413, 1}, {500, 2}, {429, 5}, {503, 5}} {
		n.Store(0)
		status, good = bad.status, 1000
		err := c.Update(context.Background(), "INSERT DATA {}")
		var e *sparql.Error
		if !errors.As(err, &e) || e.Status != bad.status || e.Hint == "" || !strings.Contains(e.Body, "not now") {
			t.Errorf("%d: %v", bad.status, err)
		}
		if int(n.Load()) != bad.requests {
			t.Errorf("%d: %d requests, want %d", bad.status, n.Load(), bad.requests)
		}
	}
	dead, err := sparql.New(sparql.Endpoint{Query: "http://127.0.0.1:9/query", RetryPause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dead.Ask(context.Background(), "ASK {}"); err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("nobody there: %v", err)
	}
}

// Who gives the logger names the store, once.
func TestLogNamesStoreOnce(t *testing.T) {
	st := sparqltest.New()
	n := 0
	st.Fault = func(string, string) *sparqltest.Fault {
		if n++; n == 1 {
			return &sparqltest.Fault{Status: 503, Body: "later"}
		}
		return nil
	}
	var log bytes.Buffer
	c := connect(t, st, func(e *sparql.Endpoint) {
		e.Logger = slog.New(slog.NewTextHandler(&log, nil)).With("store", "mine")
	})
	if _, err := c.Ask(context.Background(), "ASK { ?s ?p ?o }"); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "store=") != 1 {
		t.Errorf("logged %q", got)
	}
}

// Virtuoso never answers a query that is the body of its request. It is asked
// by forms from the first query on, and one that does not give its name once
// it has kept us waiting.
func TestQueriesByForm(t *testing.T) {
	ctx := context.Background()
	const ask = "ASK { ?s ?p ?o }"
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/s>", P: "<http://example.org/p>", O: `"1"`})
	st.NoDirect, st.Server = true, "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu"
	c := connect(t, st, nil)
	for range 3 {
		if ok, err := c.Ask(ctx, ask); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	long := "ASK { ?s ?p ?o } #" + strings.Repeat("x", 50_000)
	if ok, err := c.Ask(ctx, long); err != nil || !ok {
		t.Error(ok, err)
	}
	if n := len(st.Queries()); n != 4 {
		t.Errorf("%d requests for 4 queries", n)
	}
	st.Server = ""
	synctest.Test(t, func(t *testing.T) { // waited for once, in virtual time
		c, err := sparql.New(sparql.Endpoint{Query: "http://store.example/query", Transport: inproc.Transport{Handler: st}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		if ok, err := c.Ask(t.Context(), long); err != nil || !ok || time.Since(began) < time.Minute {
			t.Error(ok, err, time.Since(began))
		}
	})
	// Other stores get the first query as a form and the others as they are; one
	// that takes no forms gets all as they are.
	for _, forms := range []bool{true, false} {
		var types []string
		c = connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			types = append(types, r.Header.Get("Content-Type"))
			if r.Header.Get("Content-Type") != "application/sparql-query; charset=utf-8" && !forms {
				http.Error(w, "what?", http.StatusUnsupportedMediaType)
				return
			}
			answer("application/sparql-results+json", `{"head":{},"boolean":true}`).ServeHTTP(w, r)
		}), nil)
		for range 2 {
			if ok, err := c.Ask(ctx, ask); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		want := "[application/x-www-form-urlencoded application/sparql-query; charset=utf-8]"
		if !forms {
			want = "[application/x-www-form-urlencoded application/sparql-query; charset=utf-8 application/sparql-query; charset=utf-8]"
		}
		if fmt.Sprint(types) != want {
			t.Errorf("sent %v, want %s", types, want)
		}
	}
}

// What a store does not take is not sent to it again: bodies that are a query, forms,
// or any POST. An error of the query itself stays what it is.
func TestOtherManners(t *testing.T) {
	const direct, form, get = "application/sparql-query", "application/x-www-form-urlencoded", ""
	for _, c := range []struct {
		takes  string
		status int // of what it does not take
		sent   []string
	}{
		{form, http.StatusUnsupportedMediaType, []string{form, direct, form, form}},
		{form, http.StatusBadRequest, []string{form, direct, form, form}},
		{form, http.StatusForbidden, []string{form, direct, form, form}},
		{form, http.StatusInternalServerError, []string{form, direct, form, form}},
		{direct, http.StatusUnsupportedMediaType, []string{form, direct, direct, direct}},
		{get, http.StatusMethodNotAllowed, []string{form, direct, get, get, get}},
		{get, http.StatusForbidden, []string{form, direct, get, get, get}},
	} {
		t.Run(fmt.Sprintf("%q only, else %d", c.takes, c.status), func(t *testing.T) {
			var sent []string
			client := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
				sent = append(sent, kind)
				body, _ := io.ReadAll(r.Body)
				query, _ := url.ParseQuery(string(body) + "&" + r.URL.RawQuery)
				switch {
				case kind != c.takes:
					http.Error(w, "not so", c.status)
				case kind != direct && query.Get("query") == "bad" || string(body) == "bad":
					http.Error(w, "what does this mean?", http.StatusBadRequest)
				default:
					answer("application/sparql-results+json", `{"head":{},"boolean":true}`).ServeHTTP(w, r)
				}
			}), nil)
			for range 3 {
				if ok, err := client.Ask(t.Context(), "ASK { ?s ?p ?o }"); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			if !slices.Equal(sent, c.sent) {
				t.Errorf("sent %q, want %q", sent, c.sent)
			}
			if _, err := client.Ask(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "what does this mean?") {
				t.Error(err)
			}
		})
	}
	// Nor are updates.
	var sent []string
	client := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, strings.SplitN(r.Header.Get("Content-Type"), ";", 2)[0])
		if r.FormValue("update") == "" {
			http.Error(w, "not so", http.StatusUnsupportedMediaType)
		}
	}), func(e *sparql.Endpoint) { e.Update = e.Query })
	for range 2 {
		if err := client.Update(t.Context(), "CLEAR ALL"); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(sent, []string{"application/sparql-update", form, form}) {
		t.Errorf("sent %q", sent)
	}
}

// A certificate that nobody here trusts, and https where none is spoken, are explained.
func TestHTTPSFaults(t *testing.T) {
	h := answer("application/sparql-results+json", `{"head":{},"boolean":true}`)
	secure, plain := httptest.NewTLSServer(h), httptest.NewServer(h)
	defer secure.Close()
	defer plain.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for address, want := range map[string]string{secure.URL: "SSL_CERT_FILE", strings.Replace(plain.URL, "http:", "https:", 1): "use http:// instead"} {
		c, err := sparql.New(sparql.Endpoint{Query: address, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Ask(t.Context(), "ASK {}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Who asks for what is not known here is named.
func TestForeignAuthentication(t *testing.T) {
	for challenge, want := range map[string]string{
		`Bearer realm="x"`: "asks for Bearer authentication", `Digest realm="r", nonce="n", algorithm=MD5-sess`: "asks for Digest MD5-sess authentication",
		`Basic realm="x"`: "give username and password_file", `Negotiate, Basic realm="x"`: "give username and password_file",
	} {
		client := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		}), nil)
		if _, err := client.Ask(t.Context(), "ASK {}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", challenge, err, want)
		}
	}
}

func TestStalled(t *testing.T) {
	st := sparqltest.New()
	st.Fault = func(string, string) *sparqltest.Fault { return &sparqltest.Fault{Hang: true} }
	c := connect(t, st, func(e *sparql.Endpoint) { e.Timeout, e.Retries = 30*time.Millisecond, -1 })
	if _, err := c.Ask(context.Background(), "ASK {}"); err == nil || !strings.Contains(err.Error(), "progress") {
		t.Errorf("a stalled answer: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	st.Fault = func(string, string) *sparqltest.Fault { cancel(); return &sparqltest.Fault{Hang: true} }
	if _, err := c.Ask(ctx, "ASK {}"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
}

func TestBasicStaysWithItsHost(t *testing.T) {
	var leaked, seen atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
		w.Header().Set("Content-Type", "application/sparql-results+json")
		io.WriteString(w, `{"head":{},"boolean":true}`)
	}))
	defer other.Close()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u == "me" && p == "secret" {
			seen.Add(1)
		}
		http.Redirect(w, r, other.URL+"/query", http.StatusTemporaryRedirect)
	})
	c := connect(t, h, func(e *sparql.Endpoint) { e.Username, e.Password = "me", "secret" })
	if yes, err := c.Ask(context.Background(), "ASK {}"); err != nil || !yes {
		t.Errorf("a redirected query: %v", err)
	}
	if seen.Load() == 0 || leaked.Load() != 0 {
		t.Errorf("credentials: %d times at home, %d times elsewhere", seen.Load(), leaked.Load())
	}
	if err := c.Update(context.Background(), "INSERT DATA {}"); err == nil {
		t.Error("a write followed a redirect to another host")
	}
	if c.Endpoint().Password != "" {
		t.Error("Endpoint gives the password away")
	}
}

func TestDigest(t *testing.T) {
	md := func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }
	field := func(h, name string) string {
		m := regexp.MustCompile(name + `="?([^",]*)"?`).FindStringSubmatch(h)
		if m == nil {
			return ""
		}
		return m[1]
	}
	var requests atomic.Int32
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		a := r.Header.Get("Authorization")
		want := md(md("me:SPARQL:secret") + ":n0nce:" + field(a, "nc") + ":" + field(a, "cnonce") + ":auth:" + md(r.Method+":"+r.URL.RequestURI()))
		body, _ := io.ReadAll(r.Body)
		if !strings.HasPrefix(a, "Digest ") || field(a, "response") != want || string(body) != "INSERT DATA {}" {
			w.Header().Set("WWW-Authenticate", `Digest realm="SPARQL", domain="/", nonce="n0nce", opaque="x", stale="false", qop="auth", algorithm="MD5"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	c := connect(t, h, func(e *sparql.Endpoint) { e.Username, e.Password = "me", "secret" })
	for range 3 {
		if err := c.Update(context.Background(), "INSERT DATA {}"); err != nil {
			t.Fatal(err)
		}
	}
	if requests.Load() != 4 {
		t.Errorf("%d requests for 3 updates, want 4: the challenge is kept", requests.Load())
	}
	// Virtuoso tells its challenge only to who comes without credentials
	mute := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Authorization"), "Basic ") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
	requests.Store(0)
	c = connect(t, mute, func(e *sparql.Endpoint) { e.Username, e.Password = "me", "secret" })
	for range 3 {
		if err := c.Update(context.Background(), "INSERT DATA {}"); err != nil {
			t.Fatal(err)
		}
	}
	if requests.Load() != 4 {
		t.Errorf("%d requests for 3 updates past the refused one, want 4", requests.Load())
	}
	wrong := connect(t, mute, func(e *sparql.Endpoint) { e.Username, e.Password = "me", "wrong" })
	var e *sparql.Error
	if err := wrong.Update(context.Background(), "INSERT DATA {}"); !errors.As(err, &e) || e.Status != 401 || !strings.Contains(e.Hint, "refused") {
		t.Errorf("wrong password: %v", err)
	}
}

func TestGraphStore(t *testing.T) {
	st := sparqltest.New()
	c := connect(t, st, nil)
	ctx := context.Background()
	body := func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("<http://example.org/a> <http://example.org/p> \"1\" .\n")), nil
	}
	g := "http://example.org/g?x=1&y=2#z"
	count := func() (n int) {
		for _, err := range c.GetGraph(ctx, g) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("a graph that is not there has %d triples", n)
	}
	if err := errors.Join(c.PutGraph(ctx, g, rdfres.NTriples, body), c.PostGraph(ctx, g, rdfres.NTriples, body), c.PutGraph(ctx, "", rdfres.NTriples, body)); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("%d triples, want 1", n)
	}
	if n, err := c.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } }"); n != 1 || err != nil {
		t.Errorf("count: %d, %v", n, err)
	}
	if err := errors.Join(c.DeleteGraph(ctx, g), c.DeleteGraph(ctx, g)); err != nil {
		t.Error(err)
	}
	if n := count(); n != 0 {
		t.Errorf("a deleted graph has %d triples", n)
	}
	readOnly := connect(t, st, func(e *sparql.Endpoint) { e.Update, e.GraphStore = "", "" })
	if err := readOnly.Update(ctx, "x"); !errors.Is(err, sparql.ErrReadOnly) {
		t.Error(err)
	}
	if err := readOnly.DeleteGraph(ctx, g); !errors.Is(err, sparql.ErrNoGraphStore) {
		t.Error(err)
	}
}

// TestBriefProbe: of an RDF4J with a large graph only the binary results are tried,
// and the others where these do not agree with the count, or for people.
func TestBriefProbe(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 10_010 {
		ts = append(ts, rdfres.Triple{S: "<http://example.org/s>", P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint(i), "", "")})
	}
	for _, c := range []struct {
		name  string
		brief bool
		rows  func(n int) int // of the n-th table; nil: all
		tried int
		first bool // are the binary results
	}{
		{"brief", true, nil, 1, true},
		{"for people", false, nil, 4, false},
		{"rows are left out", true, func(n int) int { return 9000 + n }, 3, false},
		{"rows are cut", true, func(int) int { return 9000 }, 4, false},
	} {
		st := sparqltest.New(ts...)
		st.Table = true
		tables := 0
		st.Rewrite = func(op, query string, content []byte) []byte {
			if c.rows == nil || !bytes.HasPrefix(content, []byte("BRTR")) {
				return content
			}
			tables++
			w := sparqltest.NewTable("s", "p", "o")
			for _, x := range ts[:c.rows(tables)] {
				w.Row(x.S, x.P, x.O)
			}
			return w.End()
		}
		client := connect(t, st, func(e *sparql.Endpoint) {
			e.Query = strings.TrimSuffix(e.Query, "/query") + "/repositories/one/query"
		})
		caps, err := client.Probe(t.Context(), sparql.ProbeOptions{Brief: c.brief})
		if err != nil {
			t.Fatal(err)
		}
		if last := len(caps.Readings) - 1; len(caps.Speed) != c.tried || last < 3 || caps.Readings[last] != sparql.ReadGraphStore {
			t.Errorf("%s: the speed of %v is known, of the ways %v", c.name, caps.Speed, caps.Readings)
		}
		if c.first && caps.Readings[0] != sparql.ReadSelectBinary || c.rows == nil != (caps.RowLimit == 0 && caps.Speed[sparql.ReadSelectBinary] > 0) {
			t.Errorf("%s: %+v", c.name, caps)
		}
	}
}

func TestProbe(t *testing.T) {
	var ts []rdfres.Triple
	for i := range 3000 {
		ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://example.org/e%d", i)), P: "<http://example.org/p>", O: `"1"`})
	}
	for i := range 10 {
		ts = append(ts, rdfres.Triple{S: rdfres.NewBlank(fmt.Sprintf("b%d", i)), P: "<http://example.org/p>", O: rdfres.NewLiteral(fmt.Sprint("v", i), "", "")})
	}
	ctx := context.Background()
	st := sparqltest.New(ts...)
	st.Add("http://example.org/g", ts[:100]...)
	st.Add("http://example.org/h", rdfres.Triple{S: "<http://example.org/only>", P: "<http://example.org/p>", O: `"h"`})
	st.Server = "Oxigraph/0.5.13"
	caps, err := connect(t, st, nil).Probe(ctx, sparql.ProbeOptions{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if caps.Product != "Oxigraph" || caps.Version != "0.5.13" || len(caps.Readings) != 4 || caps.RowLimit != 0 || caps.UnionDefault ||
		!caps.StableLabels || !caps.Transactional || !caps.Writable || caps.ValuesLimit != 5000 || caps.UpdateTriples < 5000 || len(caps.NormalForm.Rules) != 0 || len(caps.Unexplained) != 0 {
		t.Errorf("%+v", caps)
	}
	if g := st.Graphs(); len(g) != 3 {
		t.Errorf("the probe left %v", g)
	}

	st.Relabel, st.UnionDefault, st.RowLimit, st.TellLimit, st.TooMany, st.NotAtomic, st.VirtuosoTSV, st.NoConstruct = true, true, 1000, true, 200, true, true, true
	st.Server = "Virtuoso/07.20.3217 (Linux)"
	caps, err = connect(t, st, nil).Probe(ctx, sparql.ProbeOptions{Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if caps.Product != "Virtuoso" || fmt.Sprint(caps.Readings) != "[select-json]" || caps.RowLimit != 1000 || !caps.UnionDefault ||
		caps.StableLabels || caps.Transactional || caps.ValuesLimit != 200 {
		t.Errorf("%+v", caps)
	}
	if g := st.Graphs(); len(g) != 3 {
		t.Errorf("the probe left %v", g)
	}
	before := len(st.Queries())
	if caps, err = connect(t, st, nil).Probe(ctx, sparql.ProbeOptions{Write: true, Brief: true}); err != nil || !caps.Writable || caps.UpdateTriples != 0 {
		t.Errorf("%+v, %v", caps, err)
	}
	for _, q := range st.Queries() {
		if strings.Contains(q, "INSERT") && strings.Count(q, "\n") > 500 {
			t.Errorf("a brief probe wrote %d lines", strings.Count(q, "\n"))
		}
	}
	if caps, err = connect(t, st, nil).Probe(ctx, sparql.ProbeOptions{}); err != nil || caps.Writable {
		t.Errorf("%+v, %v", caps, err)
	}
	for _, q := range st.Queries()[min(before, 0):] {
		if strings.Contains(q, "INSERT") || strings.Contains(q, "DROP") {
			t.Errorf("a probe that must not write sent %s", q)
		}
	}
	st.Fault = func(string, string) *sparqltest.Fault { return &sparqltest.Fault{Status: 404, Body: "no"} }
	if _, err := connect(t, st, nil).Probe(ctx, sparql.ProbeOptions{}); err == nil {
		t.Error("a probe of nothing succeeded")
	}
}

// A triple of two graphs is one where CONSTRUCT is asked of a default graph that shows
// both, and two rows of SELECT: nothing was cut.
func TestProbeOfDoubles(t *testing.T) {
	st := sparqltest.New()
	st.UnionDefault = true
	for i := range 100 {
		tr := rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://e.example/e%d", i)), P: "<http://e.example/p>", O: `"1"`}
		st.Add("http://e.example/a", tr)
		st.Add("http://e.example/b", tr)
	}
	for _, graphs := range [][]string{nil, {"http://e.example/a"}} {
		caps, err := connect(t, st, nil).Probe(t.Context(), sparql.ProbeOptions{Graphs: graphs})
		if err != nil || caps.RowLimit != 0 || slices.Contains(caps.Readings, sparql.ReadConstruct) != (graphs != nil) || !slices.Contains(caps.Readings, sparql.ReadSelectTSV) {
			t.Errorf("%v: %+v, %v", graphs, caps, err)
		}
	}
}

// A store that is known to take the longest VALUES is asked for that first.
// That the default graph shows the named graphs is seen also where the first triples of
// those cannot be written in a query: Oxigraph gives blank nodes first.
func TestUnionBehindBlankNodes(t *testing.T) {
	st := sparqltest.New()
	st.UnionDefault = true
	for i := range 250 {
		st.Add("http://e.example/a", rdfres.Triple{S: rdfres.NewBlank(fmt.Sprint("b", i)), P: "<http://e.example/p>", O: "<http://e.example/o>"})
	}
	if union, err := connect(t, st, nil).ShowsUnion(t.Context(), ""); err != nil || !union {
		t.Error("nothing but blank nodes:", union, err)
	}
	st.Add("http://e.example/b", rdfres.Triple{S: "<http://e.example/s>", P: "<http://e.example/p>", O: "<http://e.example/o>"})
	if union, err := connect(t, st, nil).ShowsUnion(t.Context(), ""); err != nil || !union {
		t.Error(union, err)
	}
}

func TestProbeValues(t *testing.T) {
	st := sparqltest.New(rdfres.Triple{S: "<http://example.org/e>", P: "<http://example.org/p>", O: `"1"`})
	st.Server = "Oxigraph/0.5.13"
	for refuses, asked := range map[int]int{0: 1, 1000: 4} { // more than that, as a proxy before it may
		st.TooMany = refuses
		st.Queries()
		if caps, err := connect(t, st, nil).Probe(context.Background(), sparql.ProbeOptions{Brief: true}); err != nil || caps.ValuesLimit != cmp.Or(refuses, 5000) {
			t.Errorf("%+v, %v", caps, err)
		}
		sizes := 0
		for _, q := range st.Queries() {
			if strings.Contains(q, "urn:rsbridge:probe:value:") {
				sizes++
			}
		}
		if sizes != asked {
			t.Errorf("%d sizes of VALUES were tried, not %d", sizes, asked)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, e := range []sparql.Endpoint{{}, {Query: "ftp://x/y"}, {Query: "http:///x"}, {Query: "://"}, {Query: "http://x/", Update: "relative"}} {
		if _, err := sparql.New(e); err == nil {
			t.Errorf("%+v was accepted", e)
		}
	}
	c, err := sparql.New(sparql.Endpoint{Query: "http://u:p@example.org/q"})
	if err != nil || c.Endpoint().Username != "u" || strings.Contains(c.Endpoint().Query, "p@") {
		t.Errorf("credentials in the address: %+v, %v", c.Endpoint(), err)
	}
}

// Virtuoso 7 answers 201 to an upload in chunks and has read nothing of it.
func TestUploadsTellTheirLength(t *testing.T) {
	long := strings.Repeat("<http://e/s> <http://e/p> \"a long line that is sent many times\" .\n", 100_000)
	var got int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got = int(n)
		if r.ContentLength != n || len(r.TransferEncoding) > 0 {
			t.Errorf("%d bytes came, announced were %d, %v", n, r.ContentLength, r.TransferEncoding)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer srv.Close()
	c, err := sparql.New(sparql.Endpoint{Query: srv.URL, GraphStore: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, text := range []string{"", "<http://e/s> <http://e/p> 1 .\n", long} {
		for _, body := range []func() (io.ReadCloser, error){
			sparql.Body([]byte(text)),
			func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		} {
			if err := c.PostGraph(t.Context(), "http://e/g", rdfres.NTriples, body); err != nil || got != len(text) {
				t.Fatalf("%d of %d bytes came: %v", got, len(text), err)
			}
		}
	}
}

// RDF4J (Jetty) reads Latin-1 where the charset is not told: every letter beyond
// ASCII of an update would become another one.
func TestTextsTellTheirCharset(t *testing.T) {
	var types []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		types = append(types, r.Header.Get("Content-Type"))
		w.Header().Set("Content-Type", "application/sparql-results+json")
		io.WriteString(w, `{"head":{},"boolean":true}`)
	}))
	defer srv.Close()
	c, err := sparql.New(sparql.Endpoint{Query: srv.URL, Update: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Ask(t.Context(), "ASK {}"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Update(t.Context(), "CLEAR ALL"); err != nil {
		t.Fatal(err)
	}
	want := []string{"application/x-www-form-urlencoded", "application/sparql-query; charset=utf-8", "application/sparql-update; charset=utf-8"}
	if !slices.Equal(types, want) {
		t.Fatalf("%q", types)
	}
}

// Virtuoso tells true as 1 in JSON and as true in N-Triples: two ways of reading
// must not make two literals of one.
func TestVirtuosoBooleans(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu")
		w.Header().Set("Content-Type", "application/sparql-results+json")
		io.WriteString(w, `{"head":{"vars":["o"]},"results":{"bindings":[
			{"o":{"type":"typed-literal","datatype":"http://www.w3.org/2001/XMLSchema#boolean","value":"1"}},
			{"o":{"type":"typed-literal","datatype":"http://www.w3.org/2001/XMLSchema#boolean","value":"0"}},
			{"o":{"type":"typed-literal","datatype":"http://www.w3.org/2001/XMLSchema#integer","value":"1"}}]}}`)
	}))
	defer srv.Close()
	c, err := sparql.New(sparql.Endpoint{Query: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.SelectAs(t.Context(), "SELECT ?o {}", sparql.ReadSelectJSON)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for row, err := range s.Rows {
		if err != nil {
			t.Fatal(err)
		}
		lexical, _, datatype := row[0].Literal()
		got += lexical + " " + strings.TrimPrefix(datatype, "http://www.w3.org/2001/XMLSchema#") + " "
	}
	if got != "true boolean false boolean 1 integer " {
		t.Fatal(got)
	}
}

// TestPartialAnswers: what a store says is only a part of an answer is none, and half
// as much may be asked for.
func TestPartialAnswers(t *testing.T) {
	const rows = `{"head":{"vars":["s"]},"results":{"bindings":[{"s":{"type":"uri","value":"http://example.org/a"}}]}}`
	for name, tell := range map[string]func(w http.ResponseWriter){
		"by its status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusPartialContent) },
		"by a header":   func(w http.ResponseWriter) { w.Header().Set("X-SQL-State", "S1TAT") },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.Header.Get("Accept"), "json") {
					w.Header().Set("Content-Type", "application/sparql-results+json")
					tell(w)
					io.WriteString(w, rows)
					return
				}
				w.Header().Set("Content-Type", "application/n-triples")
				tell(w)
				io.WriteString(w, "<http://example.org/a> <http://example.org/p> \"1\" .\n")
			}), nil)
			_, err := c.SelectAs(t.Context(), "SELECT ?s WHERE { ?s ?p ?o }", sparql.ReadSelectJSON)
			if !errors.Is(err, sparql.ErrTruncated) || !sparql.IsTooLarge(err) {
				t.Errorf("SELECT: %v", err)
			}
			if err := c.StreamGraph(t.Context(), "", func(_, _, _ []byte) error { return nil }); !errors.Is(err, sparql.ErrTruncated) {
				t.Errorf("graph: %v", err)
			}
		})
	}
}

// TestClosedConnections: a store closes a kept connection as the next query comes. The query is sent
// again on a new one: that is no finding, and no failure.
func TestClosedConnections(t *testing.T) {
	type key struct{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Context().Value(key{}).(*atomic.Int64).Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		answer("application/sparql-results+json", `{"head":{},"boolean":true}`).ServeHTTP(w, r)
	}))
	srv.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, key{}, new(atomic.Int64))
	}
	srv.Start()
	defer srv.Close()
	c, err := sparql.New(sparql.Endpoint{Query: srv.URL, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if yes, err := c.Ask(t.Context(), "ASK { ?s ?p ?o }"); err != nil || !yes {
			t.Fatal(yes, err)
		}
	}
	if l := c.Limits(t.Context(), nil, sparql.Manners{Form: "ok", Direct: "ok"}); l.FormBody < 4_000_000 || l.DirectBody < 4_000_000-100 {
		t.Errorf("%d bytes as a form, %d bytes as they are", l.FormBody, l.DirectBody)
	}
}
