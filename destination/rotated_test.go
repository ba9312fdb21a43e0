package destination

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/feed"
)

const changeListXML = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="changelist" %s/>%s</urlset>`

// A Capability List may name the newest Change List alone, each at its own address: what came
// in the last one since it was read is nowhere else. One of before 0.9, which does not tell
// where it begins, proves nothing.
func TestAnotherChangeList(t *testing.T) {
	for name, tells := range map[string]bool{"begins": true, "no begin": false} {
		for _, empty := range []bool{false, true} {
			t.Run(fmt.Sprint(name, empty), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.src
				s.caps = "/set/caps"
				list, lists := "/set/c0.xml", map[string]string{}
				s.hook = func(w http.ResponseWriter, r *http.Request) bool {
					doc, ok := lists[r.URL.Path]
					if r.URL.Path == s.caps {
						doc, ok = fmt.Sprintf(strings.Replace(changeListXML, "changelist", "capabilitylist", 1), "", `<url><loc>/set/resourcelist.xml</loc><rs:md capability="resourcelist"/></url><url><loc>`+list+`</loc><rs:md capability="changelist"/></url>`), true
					}
					if ok {
						io.WriteString(w, doc)
					}
					return ok
				}
				write := func(address string, first, last int, closed bool) {
					root := fmt.Sprintf(`modified="%s"`, feed.Stamp(s.now))
					if tells {
						root = fmt.Sprintf(`from="%s"`, feed.Stamp(s.changesFrom))
						if first > 0 {
							root = fmt.Sprintf(`from="%s"`, feed.Stamp(s.log[first-1].at))
						}
						if closed {
							root += fmt.Sprintf(` until="%s"`, feed.Stamp(s.log[last-1].at))
						}
					}
					entries := ""
					for _, l := range s.log[first:last] {
						entries += fmt.Sprintf(`<url><loc>%s</loc><lastmod>%s</lastmod><rs:md change="%s"/></url>`, s.url(l.folder+l.name), feed.Stamp(l.at), l.kind)
					}
					list, lists[address] = address, fmt.Sprintf(changeListXML, root, entries)
				}
				fill(s, 3)
				first := 3
				if empty {
					write("/set/c0.xml", 0, 3, true)
				} else {
					first = 0
				}
				write("/set/c1.xml", first, 3, false)
				b.sync()
				b.equal()
				s.put("e1.nt", nt("e1", "in the last one"))
				write("/set/c1.xml", first, 4, true)
				s.put("e2.nt", nt("e2", "in the next one"))
				write("/set/c2.xml", 4, 5, false)
				rep := b.sync()
				if !rep.InSync || strings.Contains(rep.Why, "gap: ") == tells {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				// And once more: the next one has nothing yet.
				s.put("e1.nt", nt("e1", "again"))
				write("/set/c2.xml", 4, 6, true)
				write("/set/c3.xml", 6, 6, false)
				if rep = b.sync(); !rep.InSync || strings.Contains(rep.Why, "gap: ") == tells {
					t.Fatalf("%+v", rep)
				}
				b.equal()
			})
		}
	}
}
