package bridge

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestPatches: for every update from schema.org 12.0 to 15.0 other tools apply the
// patches to the representation before, and get the published one, hash for hash:
// jsonpatch (Python) the JSON Patch, and a small reader of RDF Patch that is not ours
// the other.
func TestPatches(t *testing.T) {
	python := teststores.Python(t)
	releases := []string{"12.0", "13.0", "14.0", "15.0"}
	if testing.Short() {
		releases = releases[2:]
	}
	b := mustOpen(t, small(t.TempDir()))
	defer b.Close()
	get := func(url string) string {
		t.Helper()
		rec := httptest.NewRecorder()
		b.PublicHandler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, url, nil))
		if rec.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", url, rec.Code, rec.Body)
		}
		return rec.Body.String()
	}
	for _, version := range releases {
		packed, err := os.ReadFile(teststores.Shared(t, "data/schemaorg/"+version+".nt.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		triples, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, b, "source", string(triples))
		do[ScanReport](t, b, "scan", "data")
	}
	type patch struct{ Patch, Base, Result string }
	type update struct {
		Loc, Hash, Graph                       string
		Before, After, BeforeGraph, AfterGraph string // as JSON-LD, JSON-LD, N-Triples, N-Triples
		JSON, RDF                              *patch
	}
	last := map[string]string{} // by loc: address of the last version
	each := func(path string, f func(e *resourcesync.Entry)) {
		t.Helper()
		r, err := resourcesync.NewReader(strings.NewReader(get(path)), resourcesync.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f(e)
		}
	}
	changes, err := b.Changes(t.Context(), "data", "0", 100000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes.Changes { // the baseline is in no Change List
		if c.Change == "created" {
			if loc := c.Location; last[loc] == "" {
				last[loc] = loc + "?version=" + strconv.FormatUint(c.Sequence, 10)
			}
		}
	}
	var updates bytes.Buffer
	out := json.NewEncoder(&updates)
	n := map[string]int{}
	each("/data/changelist.xml", func(e *resourcesync.Entry) {
		before, memento := last[e.Loc], e.Link(resourcesync.RelMemento)
		if memento != nil {
			last[e.Loc] = memento.Href
		}
		if e.Meta.Change != resourcesync.Updated {
			return
		}
		n["updates"]++
		u := update{Loc: e.Loc, Hash: "sha-256:" + e.Meta.Hash.SHA256, Graph: e.Meta.Ext[resourcesync.ExtGraph], Before: get(before), After: get(memento.Href),
			BeforeGraph: get(strings.Replace(before, ".jsonld?", ".nt?", 1)), AfterGraph: get(strings.Replace(memento.Href, ".jsonld?", ".nt?", 1))}
		for _, l := range e.Links {
			if l.Rel != resourcesync.RelPatch {
				continue
			}
			p := &patch{get(l.Href), l.Ext[resourcesync.ExtBase], l.Ext[resourcesync.ExtResult]}
			switch n[l.Type]++; l.Type {
			case "application/json-patch+json":
				u.JSON = p
			case "application/rdf-patch":
				u.RDF = p
			}
		}
		if err := out.Encode(u); err != nil {
			t.Fatal(err)
		}
	})
	file := filepath.Join(t.TempDir(), "updates.jsonl")
	if err := os.WriteFile(file, updates.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), python, "testdata/patches.py", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.4000s", err, said)
	}
	var read map[string]int
	if err := json.Unmarshal(said, &read); err != nil || len(read) != 3 || n["updates"] < 200 {
		t.Fatalf("%s %v, of %v", said, err, n)
	}
	for what, count := range n {
		if read[what] != count || count < 50 {
			t.Errorf("%s: %d applied of %d", what, read[what], count)
		}
	}
	t.Logf("%v", n)
}
