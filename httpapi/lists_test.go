package httpapi_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
)

var nextLink = regexp.MustCompile(`^<([^>]+)>; rel="next"$`)

// follow gives an address and those linked with it as next pages.
func (w *world) follow(path string) (pages []answer) {
	w.t.Helper()
	for path != "" {
		a := w.get(path, nil)
		pages = append(pages, a)
		link := a.Header.Get("Link")
		m := nextLink.FindStringSubmatch(link)
		if link != "" && m == nil {
			w.t.Fatalf("%s: Link %s", path, link)
		}
		if path = ""; m != nil {
			at, err := a.Request.URL.Parse(m[1])
			if err != nil {
				w.t.Fatal(err)
			}
			path = at.RequestURI()
		}
	}
	return pages
}

// TestLists: lists have what their filters say, and each page is linked with the next one.
func TestLists(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.load(5)
	for range 3 {
		w.start("/api/v1/sets/data/scan", "")
	}
	w.start("/api/v1/destinations/copy/sync", "")
	w.is(w.do("POST", "/api/v1/destinations/copy/pause", ""), 200)
	w.is(w.do("POST", "/api/v1/sets/data/pause", ""), 200)
	var sets []bridge.SetStatus
	names := func(path string) string {
		t.Helper()
		sets = nil
		w.get(path, &sets)
		var out []string
		for _, s := range sets {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	for path, want := range map[string]string{"/api/v1/sets": "data slow", "/api/v1/sets?state=paused": "data", "/api/v1/sets?state=never": "slow", "/api/v1/sets?state=held": "",
		"/api/v1/destinations?state=paused": "copy", "/api/v1/destinations?state=ok": ""} {
		if got := names(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	w.problem(w.do("GET", "/api/v1/sets?state=fine", ""), 400, "never, running, ok, held")
	w.is(w.do("POST", "/api/v1/sets/data/resume", ""), 200)
	if got := names("/api/v1/sets?state=ok"); got != "data" {
		t.Errorf("resumed: %q", got)
	}
	w.problem(w.do("POST", "/api/v1/sets/none/pause", ""), 404, "there is no set none")

	w.problem(w.do("GET", "/api/v1/runs?state=late", ""), 400, "queued, running, done")
	for _, q := range []string{"", "?job=scan:data", "?state=done", "?state=failed", "?job=scan:data&state=done"} {
		var all httpapi.Runs
		w.get("/api/v1/runs"+q, &all)
		if all.Next != 0 || (len(all.Runs) == 0) != strings.Contains(q, "failed") {
			t.Errorf("%s: %d runs, next %d", q, len(all.Runs), all.Next)
		}
		var ids, paged []uint64
		for _, r := range all.Runs {
			ids = append(ids, r.ID)
			if strings.Contains(q, "job") && r.Job != "scan:data" || strings.Contains(q, "done") && r.State != "done" {
				t.Errorf("%s: run %+v", q, r)
			}
		}
		for _, page := range w.follow("/api/v1/runs" + strings.TrimSuffix("?limit=2&"+strings.TrimPrefix(q, "?"), "&")) {
			var runs httpapi.Runs
			w.decode(page, &runs)
			if len(runs.Runs) > 2 {
				t.Errorf("%s: a page of %d", q, len(runs.Runs))
			}
			for _, r := range runs.Runs {
				paged = append(paged, r.ID)
			}
		}
		if !slices.Equal(ids, paged) {
			t.Errorf("%s: %v, in pages %v", q, ids, paged)
		}
	}
	for path, want := range map[string]int{"/api/v1/sets/data/resources?limit=2": 3, "/api/v1/sets/data/changes?limit=2": 3, "/api/v1/sets/data/changes?limit=5": 1, "/api/v1/destinations/copy/differences?limit=2": 1} {
		if got := len(w.follow(path)); got != want {
			t.Errorf("%s: %d pages, want %d", path, got, want)
		}
	}
}

// TestResults: the result of a run of each kind is what the description says.
func TestResults(t *testing.T) {
	w := newWorld(t, httpapi.Options{})
	w.load(5)
	var doc struct {
		Info       struct{ Description string }
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Required   []string
			}
		}
	}
	w.get("/openapi.json", &doc)
	_, list, _ := strings.Cut(doc.Info.Description, "follows from its job: ")
	list, _, _ = strings.Cut(list, ".")
	types := map[string]string{}
	for part := range strings.SplitSeq(list, ", ") {
		kind, name, _ := strings.Cut(part, ": ")
		types[kind] = name
	}
	seen := map[string]bool{}
	for _, c := range []struct{ path, body string }{
		{"sets/data/scan", ""}, {"sets/data/scan", `{"entities": ["http://example.org/e1"]}`}, {"sets/data/rebase", ""}, {"sets/data/forget", `{"dry_run": true}`},
		{"destinations/copy/sync", ""}, {"destinations/copy/audit", ""}, {"destinations/copy/repair", ""}, {"destinations/copy/forget", `{"dry_run": true}`}, {"destinations/copy/move", `{"to": "mirror"}`}, {"verify", `{"read_data": true}`},
	} {
		run := w.start("/api/v1/"+c.path, c.body)
		kind, _, _ := strings.Cut(run.Job, ":")
		seen[kind] = true
		schema, known := doc.Components.Schemas[types[kind]]
		var got map[string]any
		if err := json.Unmarshal(run.Result, &got); err != nil || !known {
			t.Errorf("%s: %s has the result %s of type %q: %s %v", c.path, run.Job, run.Result, types[kind], run.Error, err)
			continue
		}
		for name := range got {
			if _, is := schema.Properties[name]; !is {
				t.Errorf("%s: %s is no property of %s", c.path, name, types[kind])
			}
		}
		for _, name := range schema.Required {
			if _, is := got[name]; !is {
				t.Errorf("%s: %s is missing, and required of %s", c.path, name, types[kind])
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		if !seen[kind] && kind != "retain" && kind != "move-set" {
			t.Errorf("no run of %s was looked at", kind)
		}
	}
}
