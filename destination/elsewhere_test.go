package destination

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
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
