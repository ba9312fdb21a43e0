package publish

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestEntryLinks: every link leads somewhere, in the Resource List, the Change
// List and the dump alike; configured ones are there, and change the ETag.
func TestEntryLinks(t *testing.T) {
	t.Run("few", func(t *testing.T) { testEntryLinks(t, nil) })
	t.Run("all", func(t *testing.T) { testEntryLinks(t, HeaderRelations) })
}

// testEntryLinks has relations of the Link header in entries.
func testEntryLinks(t *testing.T, relations []string) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/", Links: Links{
		Collections: []string{"http://example.org/next"}, Collection: "http://example.org/all",
		Locations: []string{"https://cdn.example/books/", "https://mirror.example/{name}{suffix}?a=b&c={sequence}"},
		Relations: relations,
		Templates: []LinkTemplate{{Rel: "related", Href: "https://search.example/?q={entity_escaped}", Type: "text/html"}, {Rel: "http://example.org/rel#same", Href: "{entity}"}},
	}})
	w.scan(map[string]int{"http://example.org/a b/é.x": 3, "http://example.org/e/1": 4}, false, w.cfg.Format)
	w.publish()
	w.must(w.pub.Dump(t.Context(), "data"))
	w.checkDump()
	w.scan(map[string]int{"http://example.org/e/1": 5, "http://example.org/e/2": 1}, true, w.cfg.Format)
	w.scan(map[string]int{"http://example.org/e/3": 2}, true, w.cfg.Format)
	w.scan(map[string]int{"http://example.org/e/3": -1}, true, w.cfg.Format)
	w.publish()
	_, list := w.read(w.url("resourcelist.xml"))
	_, changes := w.read(w.url("changelist.xml"))
	if len(list) != 3 || len(changes) != 4 {
		t.Fatalf("%d entries, %d changes", len(list), len(changes))
	}
	deletions := 0
	for _, e := range append(list, changes...) {
		var rels []string
		for _, l := range e.Links {
			rel := l.Rel
			if l.Pri > 0 {
				rel += fmt.Sprint(l.Pri)
			}
			rels = append(rels, rel)
			if !strings.HasPrefix(l.Href, testBase) {
				continue
			}
			res := w.get(l.Href)
			if strings.HasSuffix(e.Loc, "/e/3.jsonld") && res.Code == 410 && (l.Rel == resourcesync.RelCanonical || l.Rel == resourcesync.RelAlternate) {
				continue // it was created, and is deleted since
			}
			if res.Code != 200 && !(l.Rel == resourcesync.RelTimeGate && res.Code == 302) {
				t.Errorf("%s: %s %s: %d", e.Loc, l.Rel, l.Href, res.Code)
			}
			if got, _, _ := strings.Cut(res.Header().Get("Content-Type"), ";"); l.Type != "" && got != l.Type {
				t.Errorf("%s: %s is %s, not %s", e.Loc, l.Href, got, l.Type)
			}
		}
		want := "memento collection collection duplicate1 duplicate2 related"
		switch {
		case relations != nil:
			want = strings.Replace(want, "memento", "memento describedby timegate canonical alternate alternate alternate", 1)
		case e.Meta.Change != "":
			want = strings.Replace(want, "memento", "memento timegate", 1)
		}
		if e.Link(resourcesync.RelDescribes) != nil {
			want = "describes " + want + " http://example.org/rel#same"
		}
		if e.Meta.Change == resourcesync.Deleted {
			deletions++
			want = "describes describedby timegate collection collection"
			gate := w.get(e.Link(resourcesync.RelTimeGate).Href).Header().Get("Location")
			if res := w.get(gate); res.Code != 200 || !strings.Contains(res.Body.String(), "label of http://example.org/e/3") {
				t.Errorf("the TimeGate of a deleted resource leads to %s: %d", gate, res.Code)
			}
			if got := strings.Join(rels, " "); got != want {
				t.Errorf("the deletion of %s has the links %s, want %s", e.Loc, got, want)
			}
			continue
		}
		if got := strings.Join(rels, " "); got != want && got != want+" "+resourcesync.RelPatch && got != want+" "+resourcesync.RelPatch+" "+resourcesync.RelPatch {
			t.Errorf("%s has the links %s, want %s", e.Loc, got, want)
		}
		name := strings.TrimPrefix(e.Loc, w.url("r/"))
		if l := e.Link(resourcesync.RelDuplicate); l == nil || l.Href != "https://cdn.example/books/r/"+name {
			t.Errorf("%s: duplicate %+v", e.Loc, l)
		}
	}
	if deletions != 1 {
		t.Errorf("%d deletions", deletions)
	}
	tag := w.get(w.url("resourcelist.xml")).Header().Get("Etag")
	w.cfg.Links = Links{}
	w.reopen()
	if again := w.get(w.url("resourcelist.xml")).Header().Get("Etag"); again == tag {
		t.Error("other links, the same ETag")
	}
	origin := "https://origin.example/"
	w.cfg.Origin = func(_ context.Context, entity string) string {
		if entity == "http://example.org/e/1" {
			return origin + "1.ttl"
		}
		return ""
	}
	w.reopen()
	tag = w.get(w.url("resourcelist.xml")).Header().Get("Etag")
	if body := w.get(w.url("resourcelist.xml")).Body.String(); strings.Count(body, `rel="via"`) != 1 || !strings.Contains(body, `<rs:ln rel="via" href="https://origin.example/1.ttl"/>`) {
		t.Errorf("via is missing: %s", body)
	}
	origin = "https://elsewhere.example/"
	w.reopen()
	if again := w.get(w.url("resourcelist.xml")).Header().Get("Etag"); again == tag {
		t.Error("another origin, the same ETag")
	}
	for _, bad := range []Links{
		{Locations: []string{"not absolute/{name}"}}, {Locations: []string{"https://h.example/{what}"}}, {Collection: "no iri"}, {Relations: []string{"patch"}},
		{Templates: []LinkTemplate{{Rel: "up", Href: "https://h.example/"}}}, {Templates: []LinkTemplate{{Href: "https://h.example/"}}},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if l, err := ParseLink("related https://h.example/{name} text/html"); err != nil || l != (LinkTemplate{"related", "https://h.example/{name}", "text/html"}) {
		t.Errorf("%+v %v", l, err)
	}
	if _, err := ParseLink("related"); err == nil {
		t.Error("a link without an address")
	}
}
