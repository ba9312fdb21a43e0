package faces

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

type iiifDoc struct {
	ID, Type     string
	First, Last  *link
	Prev, Next   *link
	PartOf       *link
	OrderedItems []activity
	Context      string `json:"@context"`
}

func (w *world) activities(address string) (d iiifDoc) {
	w.t.Helper()
	a := w.get(path(address))
	if err := json.Unmarshal([]byte(a.body), &d); err != nil {
		w.t.Fatalf("%s: %v", address, err)
	}
	if d.ID != address || d.Context != iiifContext {
		w.t.Fatalf("%s: %s", address, a.body)
	}
	return d
}

// crawler does what the specification says in section 3.5: from the last page
// backwards, until what it has processed.
type crawler struct {
	w         *world
	have      map[string]bool
	processed string // endTime of the last activity of the last crawl
}

func (c *crawler) crawl() (pages int) {
	c.w.t.Helper()
	top := c.w.activities(testBase + "/data/activity")
	newest, next := "", (*link)(nil)
	done := map[string]bool{}
	refreshed := false
	onlyDeletes := false
	for at := top.Last; at != nil; pages++ {
		d := c.w.activities(at.ID)
		if d.Type != "OrderedCollectionPage" || d.PartOf == nil || d.PartOf.ID != top.ID || len(d.OrderedItems) == 0 {
			c.w.t.Fatalf("%s: %+v", at.ID, d)
		}
		if (d.Next == nil) != (next == nil) || next != nil && *d.Next != *next {
			c.w.t.Fatalf("%s: next is %v, want %v", at.ID, d.Next, next)
		}
		if d.Prev == nil && *top.First != *at {
			c.w.t.Fatalf("%s has no prev, first is %v", at.ID, top.First)
		}
		for i := len(d.OrderedItems) - 1; i >= 0; i-- {
			a := d.OrderedItems[i]
			if newest == "" {
				newest = a.EndTime
			}
			if i > 0 && a.EndTime != "" && d.OrderedItems[i-1].EndTime > a.EndTime {
				c.w.t.Fatalf("%s: %v before %v", at.ID, d.OrderedItems[i-1], a)
			}
			if a.Type == "Refresh" {
				refreshed = true
				if c.processed == "" {
					goto end
				}
				onlyDeletes = true
				continue
			}
			if a.EndTime < c.processed {
				goto end
			}
			if done[a.Object.ID] || onlyDeletes && a.Type != "Delete" {
				continue
			}
			done[a.Object.ID] = true
			if a.Type == "Delete" {
				delete(c.have, a.Object.ID)
			} else {
				c.have[a.Object.ID] = true
			}
		}
		next = at
		at = d.Prev
	}
end:
	if refreshed { // everything was said again
		for e := range c.have {
			if !done[e] {
				delete(c.have, e)
			}
		}
	}
	c.processed = newest
	return pages
}

func (c *crawler) check() {
	c.w.t.Helper()
	if len(c.have) != len(c.w.model) {
		c.w.t.Fatalf("the crawler has %d resources, want %d", len(c.have), len(c.w.model))
	}
	for e := range c.w.model {
		if !c.have[e] {
			c.w.t.Fatalf("%s is missing", e)
		}
	}
}

func TestIIIF(t *testing.T) {
	for _, kept := range []time.Duration{0, 10 * time.Hour} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			w := newWorld(t, SetConfig{Changes: kept, Versions: kept})
			if a := w.do(http.MethodGet, "/data/activity"); a.code != 404 {
				t.Errorf("before the first scan: %d", a.code)
			}
			r := rand.New(rand.NewPCG(15, 16))
			w.grow(600)
			c := &crawler{w: w, have: map[string]bool{}}
			seldom := &crawler{w: w, have: map[string]bool{}}
			for i := range 40 {
				if n := c.crawl(); kept == 0 && i > 0 && n > 2 {
					t.Errorf("%d pages for a few changes", n)
				}
				c.check()
				if i%13 == 12 {
					seldom.crawl()
					seldom.check()
				}
				w.clock.add(time.Hour)
				w.change(r, 700, 1+r.IntN(30))
				if kept > 0 {
					w.retain(kept, kept)
				}
			}
		})
	}
}

func TestIIIFObjects(t *testing.T) {
	w := newWorld(t, SetConfig{Location: func(_ context.Context, e string) (string, error) {
		return testBase + "/data/r/" + strings.ReplaceAll(e, "/", "_") + ".jsonld", nil
	}})
	for _, e := range []string{"http://example.org/manifest", "urn:x:thing", "http://example.org/book"} {
		class := "http://iiif.io/api/presentation/3#Manifest"
		if e == "http://example.org/book" {
			class = "http://schema.org/Book"
		}
		w.model[e] = []rdfres.Triple{{S: rdfres.NewIRI(e), P: rdfType, O: rdfres.NewIRI(class)}}
	}
	w.scan()
	_, err := w.log.Rebase(t.Context(), "moved")
	w.must(err)
	w.clock.add(time.Second)
	delete(w.model, "http://example.org/manifest")
	w.scan()
	got := map[string]bool{}
	for _, a := range w.activities(testBase + "/data/activity/page/0").OrderedItems {
		o := a.Object
		s := fmt.Sprint(a.Type, " ", o.ID, " ", o.Type, " ", o.Canonical, " ", o.SeeAlso, " ", a.EndTime > "2026-05-01T12:00:00")
		got[s] = true
	}
	for _, want := range []string{
		"Create http://example.org/manifest Manifest  [{{" + testBase + "/data/r/http:__example.org_manifest.jsonld Dataset} application/ld+json}] true",
		"Create " + testBase + "/data/r/urn:x:thing.jsonld Manifest urn:x:thing [{{" + testBase + "/data/r/urn:x:thing.jsonld Dataset} application/ld+json}] true",
		"Create http://example.org/book Document  [{{" + testBase + "/data/r/http:__example.org_book.jsonld Dataset} application/ld+json}] true",
		"Delete http://example.org/manifest Manifest  [] true",
	} {
		if !got[want] {
			t.Errorf("no %s in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%v", got)
	}
	a := w.get("/data/activity", "Accept", "application/json")
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Etag") == "" {
		t.Errorf("%v", a.header)
	}
	for _, p := range []string{"/data/activity/page/1", "/data/activity/base/0/0", "/data/activity/page/00", "/data/activity/base/1/0", "/data/activity/x"} {
		if a := w.do(http.MethodGet, p); a.code != 404 && a.code != 410 {
			t.Errorf("%s: %d", p, a.code)
		}
	}
}
