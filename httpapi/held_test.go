package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
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
