package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/resourcesync/check"
)

// inProcess runs rsbridge in this process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// TestExploreSpecification explores the examples of the specification, of both
// versions, from a file server.
func TestExploreSpecification(t *testing.T) {
	dir := teststores.Shared(t, "fixtures")
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer srv.Close()
	n := 0
	for _, version := range []string{"spec-1.1", "spec-0.9"} {
		files, err := filepath.Glob(filepath.Join(dir, version, "*.xml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(raw, []byte("<html")) {
				continue // a page that links to elsewhere
			}
			n++
			code, out, errs := inProcess(t, "explore", "--depth", "0", "--json", srv.URL+"/"+version+"/"+filepath.Base(file))
			var tree check.Node
			if err := json.Unmarshal([]byte(out), &tree); err != nil || code != exitDone || tree.Kind == "" || tree.Dialect == "" {
				t.Errorf("%s: %v, exit code %d, %s%s", file, err, code, out, errs)
			}
			if want := int64(bytes.Count(raw, []byte("<loc>"))); tree.Entries != want {
				t.Errorf("%s: %d entries, want %d", file, tree.Entries, want)
			}
			if code, out, errs := inProcess(t, "explore", "--depth", "0", srv.URL+"/"+version+"/"+filepath.Base(file)); code != exitDone || !strings.Contains(out, "document of ") {
				t.Errorf("%s: exit code %d, %s%s", file, code, out, errs)
			}
		}
	}
	if n < 60 {
		t.Errorf("%d examples, want 65", n)
	}
}

// TestExplorePassword explores a source that lets in only who it knows: the password of
// the address goes with every request to its host, and with none to another.
func TestExplorePassword(t *testing.T) {
	var srv, other *httptest.Server
	list := func(loc string) string {
		return `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="capabilitylist"/>` +
			`<url><loc>` + loc + `</loc><rs:md capability="resourcelist"/></url></urlset>`
	}
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/c.xml":
			w.Write([]byte(list(srv.URL + "/l.xml")))
		case "/l.xml":
			http.Redirect(w, r, other.URL+"/l.xml", http.StatusFound)
		}
	}))
	defer srv.Close()
	asked := 0
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "" {
			t.Error("the password went to another host")
		}
		w.Write([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/></urlset>`))
	}))
	defer other.Close()
	address := strings.Replace(srv.URL, "://", "://me:hush@", 1) + "/c.xml"
	// Another host is asked only if the command line names it.
	for _, command := range []string{"explore", "validate"} {
		args := []string{command, address}
		if command == "validate" {
			args = append(args, "--follow")
		}
		code, out, errs := inProcess(t, args...)
		if code != exitPart || asked != 0 || !strings.Contains(out, "--allow "+strings.TrimPrefix(other.URL, "http://")) {
			t.Errorf("%s: exit code %d, %d requests, %s%s", command, code, asked, out, errs)
		}
		code, out, errs = inProcess(t, append(args, "--allow", other.URL)...)
		if command == "explore" && code != exitDone || asked == 0 {
			t.Errorf("%s --allow: exit code %d, %d requests, %s%s", command, code, asked, out, errs)
		}
		asked = 0
	}
}

// TestExploreFiles: a document of the web leads to no file of this machine.
func TestExploreFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.xml")
	if err := os.WriteFile(secret, []byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://e.example/hush</loc></url></urlset>`), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>` + secret + `</loc></sitemap><sitemap><loc>file://` + secret + `</loc></sitemap></sitemapindex>`))
	}))
	defer srv.Close()
	for _, args := range [][]string{{"explore"}, {"validate", "--follow", "--json"}} {
		if _, out, errs := inProcess(t, append(args, srv.URL+"/i.xml")...); strings.Contains(out+errs, "hush") {
			t.Errorf("%s: %s%s", args, out, errs)
		}
	}
}

// TestExploreResources: explore says that it fetches no resource, and which it could not.
func TestExploreResources(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/list.xml" {
			t.Errorf("%s was fetched", r.URL)
		}
		w.Write([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://` + r.Host + `/1.ttl</loc></url><url><loc>ftp://e.example/2.ttl</loc></url><url><loc>http://e.example/3.ttl</loc></url></urlset>`))
	}))
	defer srv.Close()
	const no, elsewhere, ftp = "resources were not fetched: rsbridge validate --follow reads a sample", "1 on the host e.example, which is not asked without --allow", "1 at ftp: addresses, which are never fetched"
	_, out, errs := inProcess(t, "explore", srv.URL+"/list.xml")
	for _, want := range []string{no, elsewhere, ftp} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s%s", want, out, errs)
		}
	}
	if _, out, _ = inProcess(t, "explore", "--allow", "e.example", srv.URL+"/list.xml"); strings.Contains(out, elsewhere) || !strings.Contains(out, ftp) {
		t.Error(out)
	}
}
