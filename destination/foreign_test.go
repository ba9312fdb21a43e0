package destination

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// A source made by the reference implementation over files, served by a plain
// file server, into a real store: baseline, changes and deletions, each equal by
// an independent tool and by the audit.
func TestResyncBuildIntoOxigraph(t *testing.T) {
	if testing.Short() {
		t.Skip("releases of schema.org into a real store, of which the race detector sees nothing else than in TestAnySource; it runs without -short")
	}
	python := teststores.Python(t)
	store := teststores.Oxigraph(t)
	load := func(version string) map[string][]byte {
		f, err := os.Open(teststores.Shared(t, "data/schemaorg/"+version+".nt.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string][]byte{}
		for line := range bytes.Lines(all) {
			if s, _, ok := bytes.Cut(line, []byte(" ")); ok && bytes.HasPrefix(s, []byte("<")) {
				by[string(s)] = append(by[string(s)], line...)
			}
		}
		return by
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "r"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Ext(r.URL.Path) == ".ttl" {
			w.Header().Set("Content-Type", "text/turtle")
		}
		files.ServeHTTP(w, r)
	}))
	defer srv.Close()
	client, err := sparql.New(sparql.Endpoint{Name: "oxigraph", Query: store.Query, Update: store.Update, GraphStore: store.GraphStore})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	records := newStore(t)
	cfg := keep.Config{Name: "foreign", Source: srv.URL + "/resourcelist.xml", GraphIRI: store.Graph, TempDir: t.TempDir()}
	defer store.Clear(t, store.Graph)
	names := map[string]string{}
	written := map[string][]byte{}
	for step, version := range []string{"12.0", "14.0", "14.0", "12.0"} {
		data := load(version)
		var keys []string
		for k := range data {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		keys = keys[:min(len(keys), 250)]
		now := map[string]bool{}
		var want []byte
		for _, k := range keys {
			if names[k] == "" {
				names[k] = fmt.Sprintf("r/%d.ttl", len(names))
			}
			now[names[k]] = true
			want = append(want, data[k]...)
			if !bytes.Equal(written[names[k]], data[k]) {
				written[names[k]] = data[k]
				if err := os.WriteFile(filepath.Join(dir, names[k]), data[k], 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name := range written {
			if !now[name] {
				delete(written, name)
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		cmd := exec.Command(filepath.Join(filepath.Dir(python), "resync-build"), "--write-resourcelist", "--hash=sha-256", "--outfile=resourcelist.xml", srv.URL+"/r/", filepath.Join(dir, "r"))
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("resync-build: %v: %s", err, out)
		}
		d, err := Open(context.Background(), records, sparqlsink.Of(client), cfg, keep.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := d.Sync(context.Background(), SyncOptions{})
		if err != nil || !rep.InSync {
			t.Fatalf("step %d: %+v %v", step, rep, err)
		}
		if step == 2 && rep.Created+rep.Updated+rep.Deleted != 0 {
			t.Fatalf("nothing changed and %+v", rep)
		}
		teststores.Equal(t, want, store.Get(t, ""))
		a, err := d.Audit(context.Background(), AuditOptions{})
		if err != nil || !a.Equal {
			t.Fatalf("step %d: %+v %v", step, a, err)
		}
		t.Logf("%s: %s created %d updated %d deleted %d, rewritten %d", version, rep.Mode, rep.Created, rep.Updated, rep.Deleted, a.Rewritten)
		d.Close()
	}
	// Damage is seen and repaired in a real store.
	store.Run(t, "DELETE WHERE { GRAPH <"+store.Graph+"> { <https://schema.org/Person> ?p ?o } } ; DELETE WHERE { GRAPH <"+store.Graph+"> { <http://schema.org/Action> ?p ?o } }")
	before := store.Get(t, "")
	d, err := Open(context.Background(), records, sparqlsink.Of(client), cfg, keep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	store.Run(t, "INSERT DATA { GRAPH <"+store.Graph+"> { <http://ex.org/x> <http://ex.org/p> 1 } }")
	if a, err := d.Audit(context.Background(), AuditOptions{}); err != nil || a.Equal {
		t.Fatalf("damage was not seen in %d bytes: %+v %v", len(before), a, err)
	}
	if a, err := d.Audit(context.Background(), AuditOptions{Repair: true}); err != nil || !a.Equal || a.Repaired == 0 {
		t.Fatalf("%+v %v", a, err)
	}
}
