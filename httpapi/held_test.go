package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/rdfres"
)

// What is held of a set is shown page by page, with labels, as many as are told to go, and
// anew when it grows; where nothing is held there is nothing.
func TestHeldPages(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	client := httpapi.NewClient(strings.TrimPrefix(w.srv.URL, "http://"), "")
	load := func(from int) {
		t.Helper()
		text := ""
		for i := from; i < 40; i++ {
			text += fmt.Sprintf("<http://e.example/%d> <http://www.w3.org/2000/01/rdf-schema#label> \"number %d\" .\n", i, i)
		}
		if _, err := w.b.LoadStore(t.Context(), "local", "", rdfres.NTriples, strings.NewReader(text), true); err != nil {
			t.Fatal(err)
		}
		var rep bridge.ScanReport
		if err := w.b.Do(t.Context(), "scan", "data", nil, &rep); err != nil {
			t.Fatal(err)
		}
	}
	load(0)
	for _, path := range []string{"/sets/data/held", "/destinations/copy/held", "/sets/none/held"} {
		res, err := http.Get(w.srv.URL + "/api/v1" + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	ids := map[string]bool{}
	for _, gone := range []int{15, 23} {
		load(gone)
		seen, after := map[string]bool{}, ""
		for {
			h, err := client.SetHeld(t.Context(), "data", after, 4)
			if err != nil {
				t.Fatal(err)
			}
			ids[h.ID] = true
			for _, it := range h.Items {
				n, _ := strings.CutPrefix(it.Entity, "http://e.example/")
				if it.Label != "number "+n || !strings.HasPrefix(it.Location, "http://bridge.example/data/r/") || seen[it.Entity] {
					t.Errorf("%+v", it)
				}
				seen[it.Entity] = true
			}
			if h.Deletions != int64(gone) || h.Of != 40 || len(h.Items) > 4 || len(h.Items) == 0 {
				t.Errorf("%+v", h)
			}
			if after = h.Next; after == "" {
				break
			}
		}
		if len(seen) != gone {
			t.Errorf("%d items of %d deletions", len(seen), gone)
		}
	}
	if len(ids) != 2 {
		t.Errorf("a hold that grew is another one: %v", ids)
	}
}

// What is held of a mirror is paged, with labels, as many items as deletions.
func TestHeldPagesOfMirror(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	client := httpapi.NewClient(strings.TrimPrefix(w.srv.URL, "http://"), "")
	load := func(from int) {
		t.Helper()
		text := ""
		for i := from; i < 40; i++ {
			text += fmt.Sprintf("<http://e.example/%d> <http://www.w3.org/2000/01/rdf-schema#label> \"number %d\" .\n", i, i)
		}
		if _, err := w.b.LoadStore(t.Context(), "local", "", rdfres.NTriples, strings.NewReader(text), true); err != nil {
			t.Fatal(err)
		}
		var rep bridge.ScanReport
		if err := w.b.Do(t.Context(), "scan", "data", nil, &rep); err != nil {
			t.Fatal(err)
		}
		if rep.Held != nil {
			if err := w.b.Do(t.Context(), "accept", "data", nil, &rep); err != nil {
				t.Fatal(err)
			}
		}
		var synced bridge.SyncReport
		if err := w.b.Do(t.Context(), "sync", "copy", nil, &synced); err != nil {
			t.Fatal(err)
		}
	}
	load(0)
	for _, gone := range []int{15, 23} {
		load(gone)
		seen, after := map[string]bool{}, ""
		for {
			h, err := client.DestinationHeld(t.Context(), "copy", after, 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range h.Items {
				if n, _ := strings.CutPrefix(it.Entity, "http://e.example/"); it.Label != "number "+n || it.Location == "" || seen[it.Entity] {
					t.Errorf("%+v", it)
				}
				seen[it.Entity] = true
			}
			if h.Deletions != int64(gone) || h.Of != 40 || len(h.Items) > 4 || len(h.Items) == 0 || !strings.Contains(h.Reason, fmt.Sprint(gone)) {
				t.Errorf("%+v", h)
			}
			if after = h.Next; after == "" {
				break
			}
		}
		if len(seen) != gone {
			t.Errorf("%d items of %d deletions", len(seen), gone)
		}
	}
}

// Held files are shown after the held entities, each with an entity that leads to it, as
// many as are told to go.
func TestHeldFiles(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	var gone atomic.Bool
	files := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			rw.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(files.Close)
	w.close()
	set := w.cfg.Sets["data"]
	set.Content.Properties, set.Content.Allow, set.Content.Every, set.Content.Rate = []string{"http://e.example/file"}, []string{files.URL}, 1, 1e6
	w.cfg.Sets["data"] = set
	w.open(httpapi.Options{})
	client := httpapi.NewClient(strings.TrimPrefix(w.srv.URL, "http://"), "")
	for _, step := range []struct {
		from            int
		gone            bool
		entities, files int
	}{{0, false, 0, 0}, {0, true, 0, 40}, {15, true, 15, 40}} {
		text := ""
		for i := step.from; i < 40; i++ {
			text += fmt.Sprintf("<http://e.example/%d> <http://e.example/file> <%s/%d> .\n", i, files.URL, i)
		}
		gone.Store(step.gone)
		if _, err := w.b.LoadStore(t.Context(), "local", "", rdfres.NTriples, strings.NewReader(text), true); err != nil {
			t.Fatal(err)
		}
		var rep bridge.ScanReport
		if err := w.b.Do(t.Context(), "scan", "data", nil, &rep); err != nil {
			t.Fatal(err)
		}
		seen, entities, after := map[string]bool{}, 0, ""
		for step.gone {
			h, err := client.SetHeld(t.Context(), "data", after, 5)
			if err != nil {
				t.Fatal(err)
			}
			if h.Deletions != int64(step.entities+step.files) || h.Deletions > h.Of {
				t.Fatalf("%+v", h)
			}
			for _, it := range h.Items {
				n, _ := strings.CutPrefix(it.Entity, "http://e.example/")
				if seen[it.Location] || it.File != (it.Location == files.URL+"/"+n) {
					t.Errorf("%+v", it)
				}
				if seen[it.Location] = true; !it.File {
					entities++
				}
			}
			if after = h.Next; after == "" {
				break
			}
		}
		if entities != step.entities || len(seen) != step.entities+step.files {
			t.Errorf("%+v: %d items, %d of them entities", step, len(seen), entities)
		}
	}
	run, err := client.Do(t.Context(), "accept", "data", nil, nil)
	if err != nil || run.Error != "" {
		t.Fatalf("%+v %v", run, err)
	}
	if _, err := client.SetHeld(t.Context(), "data", "", 5); err == nil {
		t.Error("what was accepted is still held")
	}
}
