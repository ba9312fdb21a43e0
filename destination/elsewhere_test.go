package destination

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// The Source Description of a source of changes alone names another set for once, of which nothing tells how
// it goes on from the mirror: that is a gap. It leaves no trace when the right one is back, whatever the
// others have told.
func TestAnotherSetForOnce(t *testing.T) {
	const head = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">`
	for name, deleted := range map[string]bool{"created": false, "deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.src
			s.list = false
			fill(s, 6)
			led := false
			s.hook = func(w http.ResponseWriter, r *http.Request) bool {
				var doc strings.Builder
				doc.WriteString(head)
				entry := func(path, md string) { fmt.Fprintf(&doc, "<url><loc>%s</loc><rs:md %s/></url>", s.url(path), md) }
				switch {
				case r.URL.Path == "/.well-known/resourcesync" && led:
					doc.WriteString(`<rs:md capability="description"/>`)
					entry("/other/capabilitylist.xml", `capability="capabilitylist"`)
				case r.URL.Path == "/other/capabilitylist.xml":
					doc.WriteString(`<rs:md capability="capabilitylist"/>`)
					entry("/other/changelist.xml", `capability="changelist"`)
				case r.URL.Path == "/other/changelist.xml":
					doc.WriteString(`<rs:md capability="changelist"/>`)
					for i := range 3 {
						entry(fmt.Sprintf("/other/%d.nt", i), fmt.Sprintf(`change="created" datetime="2020-01-0%dT00:00:00Z"`, i+1))
					}
					if deleted {
						entry("/r/e2.nt", `change="deleted" datetime="2020-01-04T00:00:00Z"`)
					}
				case strings.HasPrefix(r.URL.Path, "/other/"):
					fmt.Fprint(w, nt("of-another-set"+r.URL.Path[7:8], "1"))
					return true
				default:
					return false
				}
				fmt.Fprint(w, doc.String(), "</urlset>")
				return true
			}
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			for led = true; ; led = false {
				for range 2 {
					rep := b.sync()
					if led && (rep.InSync || !strings.Contains(rep.Held, "leads to another place")) {
						t.Errorf("led to another set: %+v", rep)
					}
					if !led && !rep.InSync {
						t.Logf("the right one is back: %+v", rep)
					}
				}
				if !led {
					break
				}
			}
			if rep := b.sync(); !rep.InSync {
				t.Errorf("the right one is back: %+v", rep)
			}
			b.equal()
		})
	}
}

// The changes of another place have the mirror's own one, or a later one of its resource. Without an older
// change, and where they cannot be had, they prove nothing against it.
func TestHasTheChangeOfThePlace(t *testing.T) {
	b := newQuietBench(t)
	s := b.src
	s.list = false
	fill(s, 3)
	b.sync()
	d := b.open()
	o, err := d.discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := d.mem.SnapshotMeta()
	at := m.At.Cursor()
	stands := at.Newest()
	entry := func(loc, change string, hours int) string {
		return fmt.Sprintf(`<url><loc>%s</loc><rs:md change="%s" datetime="%s"/></url>`, loc, change, feed.Stamp(stands.Time.Add(time.Duration(hours)*time.Hour)))
	}
	other := s.url("/r/other.nt")
	list := func(entries ...string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, urlset, `<rs:md capability="changelist"/>`, strings.Join(entries, ""), "</urlset>")
		}
	}
	status := func(code int) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
	}
	path := strings.TrimPrefix(o.ChangeList, s.url(""))
	has := func(name string, want bool) {
		t.Helper()
		if got, err := pastOf(&run{d: d}, o).has(t.Context(), at); err != nil || got != want {
			t.Errorf("%s: %t %v, want %t", name, got, err, want)
		}
	}
	has("as it was", true)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   bool
	}{
		"the change behind others":     {list(entry(other, "created", -1), entry(stands.Loc, stands.Change, 0), entry(other, "deleted", 1)), true},
		"a later one of its resource":  {list(entry(other, "created", -1), entry(stands.Loc, "deleted", 1)), true},
		"an older one of its resource": {list(entry(stands.Loc, "updated", -1), entry(other, "created", 1)), false},
		"others at its time":           {list(entry(other, "created", -1), entry(other, "updated", 0)), false},
		"later ones alone":             {list(entry(other, "created", 1)), true},
		"none":                         {list(), true},
		"not there":                    {status(404), true},
		"a source that fails":          {status(503), true},
		"no list":                      {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>under repair</html>") }, true},
		"a list that ends in the midst": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, urlset, `<rs:md capability="changelist"/>`, entry(other, "created", -1))
		}, true},
	} {
		before := s.hook
		answerAt(s, path, c.answer)
		has(name, c.want)
		s.hook = before
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pastOf(&run{d: d}, o).has(ctx, at); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that ends: %v", err)
	}
}
