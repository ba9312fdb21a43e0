package main

import (
	"crypto/sha256"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsInDocuments: no command prints a secret that a document or a header of a
// source has in an address, be it the command's own or somebody else's.
func TestSecretsInDocuments(t *testing.T) {
	t.Parallel() // it waits for requests that are made again
	own := "api_key=" + secret
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.RawQuery, own) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "%s is missing", own)
			return
		}
		head := `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"`
		at := "http://" + r.Host
		switch path := r.URL.Path; path {
		case "/a.ttl", "/list.xml":
			for i, a := range secretAddresses {
				w.Header().Add("Link", fmt.Sprintf(`<%s>; rel="%s"`, a, []string{"describedby", "alternate", "duplicate", "resourcesync"}[i%4]))
			}
			w.Header().Add("Link", fmt.Sprintf(`<%s/about?%s>; rel="describedby"`, at, own))
			if path == "/a.ttl" {
				w.Header().Set("Content-Type", "text/turtle")
				fmt.Fprint(w, "<http://e.example/a> <http://e.example/p> 1 .")
				return
			}
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w, `<urlset %s><rs:ln rel="up" href="%s/capabilitylist.xml?%s"/><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>`, head, at, own)
			for i, a := range secretAddresses {
				if strings.Contains(a, "?key=") {
					continue // it names things, too: in documents it stays
				}
				a = html.EscapeString(a)
				fmt.Fprintf(w, `<url><loc>%s</loc><rs:md length="1"/><rs:ln rel="describedby" href="%[1]s"/><rs:ln rel="duplicate" href="%[1]s"/></url>`, a)
				fmt.Fprintf(w, `<url><loc>%s/a.ttl?of=%d&amp;%s</loc><rs:ln rel="describedby" href="%[1]s/gone?%[3]s"/></url>`, at, i, own)
			}
			fmt.Fprintf(w, `<url><loc>%s/gone?%s</loc></url></urlset>`, at, own)
		case "/capabilitylist.xml":
			fmt.Fprintf(w, `<urlset %s><rs:md capability="capabilitylist"/>`, head)
			for _, a := range secretAddresses {
				if strings.Contains(a, "?key=") {
					continue // it names things, too: in documents it stays
				}
				fmt.Fprintf(w, `<url><loc>%s</loc><rs:md capability="changelist"/></url><rs:ln rel="describedby" href="%[1]s"/>`, html.EscapeString(a))
			}
			fmt.Fprintf(w, `<url><loc>%s/list.xml?%s</loc><rs:md capability="resourcelist"/></url></urlset>`, at, own)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, "there is no %s?%s", r.URL.Path, r.URL.RawQuery)
		}
	}))
	defer source.Close()
	dir := t.TempDir()
	for i, path := range []string{"/list.xml", "/capabilitylist.xml", "/gone"} {
		a := source.URL + path + "?" + own
		state := filepath.Join(dir, fmt.Sprint(i))
		for _, args := range [][]string{
			{"explore", a, "--depth", "9"}, {"validate", a, "--follow"}, {"init", "--source", a, "-o", "-"},
			{"mirror", a, "--into", "dump:" + state + ".nt", "--once", "--state", state + "dump"}, {"mirror", a, "--into", "embedded:" + state, "--once", "--state", state + "em", "--log-level", "debug"},
		} {
			for _, more := range []string{"--log-format=text", "--json"} {
				var said strings.Builder
				run(t.Context(), append(args, more), strings.NewReader(""), &said, &said)
				for line := range strings.Lines(said.String()) {
					if args[0] == "init" && strings.Contains(line, "source:") {
						continue // the file that is asked for
					}
					if strings.Contains(line, secret) {
						t.Errorf("%q says %.400s", args[:2], line)
					}
				}
			}
		}
		var said strings.Builder
		run(t.Context(), []string{"store", "query", state, "SELECT * { GRAPH ?g { ?s ?p ?o } }"}, strings.NewReader(""), &said, &said)
		if strings.Contains(said.String(), secret) || i == 0 && !strings.Contains(said.String(), "urn:rsbridge:state") {
			t.Errorf("the store says %.2000s", said.String())
		}
	}
}

// TestHiddenFields: a field whose value is hidden tells one source from another, is not in
// what is published, and its hiding changes no length and no digest.
func TestHiddenFields(t *testing.T) {
	t.Parallel()
	rdf := func(r *http.Request) string {
		return fmt.Sprintf(`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.example/"><rdf:Description rdf:about="http://e.example/%s"><e:p>http://h.example/?key=%[1]s&amp;x=1</e:p></rdf:Description></rdf:RDF>`, r.URL.Query().Get("key"))
	}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("key") == "" {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/a.rdf" {
			w.Header().Set("Content-Type", "application/rdf+xml")
			fmt.Fprint(w, rdf(r))
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("ETag", `"the same"`)
		fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/><url><loc>http://%s/a.rdf?%s</loc><lastmod>2025-01-01T00:00:00Z</lastmod><rs:md hash="sha-256:%x" length="%d" type="application/rdf+xml"/></url></urlset>`,
			r.Host, r.URL.RawQuery, sha256.Sum256([]byte(rdf(r))), len(rdf(r)))
	}))
	defer source.Close()
	dir := t.TempDir()
	say := func(want int, args ...string) string {
		t.Helper()
		var said strings.Builder
		if code := run(t.Context(), args, strings.NewReader(""), &said, &said); code != want {
			t.Fatalf("%q ends with %d: %s", args, code, &said)
		}
		return said.String()
	}
	if said := say(exitPart, "validate", "--follow", source.URL+"/list.xml?key=one"); strings.Contains(said, "length") || strings.Contains(said, "hash") || strings.Contains(said, "a.rdf") {
		t.Error(said)
	}
	conf := filepath.Join(dir, "rsbridge.yaml")
	for _, key := range []string{"one", "two", "two"} {
		text := fmt.Sprintf("state: ./state\npublic: {listen: %q}\nstores: {o: {embedded: ./o}}\nsets: {s: {store: o}}\ndestinations: {d: {store: o, source: %q, max_delete_ratio: 1}}\n", freeAddr(t), source.URL+"/list.xml?key="+key)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		say(exitDone, "sync", "-c", conf)
		if held := say(exitDone, "store", "query", filepath.Join(dir, "o"), "SELECT ?s { ?s ?p ?o }"); !strings.Contains(held, "http://e.example/"+key) || strings.Count(held, "e.example") != 1 {
			t.Errorf("of %s the mirror holds %s", key, held)
		}
	}
	say(exitDone, "scan", "-c", conf)
	say(exitDone, "export", "s", filepath.Join(dir, "site"), "-c", conf)
	var via int
	if err := filepath.WalkDir(filepath.Join(dir, "site"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "key=xxxxx") {
			t.Errorf("%s: %.500s", path, raw)
		}
		via += strings.Count(string(raw), `rel="via"`)
		return err
	}); err != nil || via == 0 {
		t.Errorf("%d links to where it is from: %v", via, err)
	}
}
