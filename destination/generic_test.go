package destination

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// An address of which nothing is promised, or no type, may be a generic one: a page to who
// asks for nothing, and data to who asks for them, or at the addresses that alternates name.
// An audit of the depth origin asks where the source has it, as for what has a duplicate.
func TestGenericAddress(t *testing.T) {
	for name, entry := range map[string]string{
		"negotiated": `<url><loc>/id/1</loc></url>`,
		"alternate":  `<url><loc>/page/1</loc><rs:ln rel="alternate" href="/page/1.html" type="text/html"/><rs:ln rel="alternate" href="/data/1" type="text/turtle"/></url>`,
		"a page":     `<url><loc>/page/1</loc><rs:md type="text/html"/><rs:ln rel="alternate" href="/data/1" type="text/turtle"/></url>`,
		"duplicate":  `<url><loc>/gone/1</loc><rs:ln rel="duplicate" href="/data/1"/></url>`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.changes = false
			value := "1"
			s.hook = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "text/html")
				switch {
				case r.URL.Path == "/set/resourcelist.xml":
					w.Header().Set("Content-Type", "application/xml")
					io.WriteString(w, fmt.Sprintf(strings.Replace(changeListXML, "changelist", "resourcelist", 1), `at="`+feed.Stamp(s.now)+`"`, entry))
				case r.URL.Path == "/data/1", r.URL.Path == "/id/1" && strings.Contains(r.Header.Get("Accept"), "text/turtle"):
					w.Header().Set("Content-Type", "text/turtle")
					io.WriteString(w, nt("e1", value))
				case r.URL.Path == "/id/1", r.URL.Path == "/page/1":
					io.WriteString(w, "<!doctype html><p>"+value)
				default:
					w.Header().Del("Content-Type")
					return false
				}
				return true
			}
			for range 2 {
				if rep := b.sync(); !rep.InSync || rep.NotRDF > 0 {
					t.Fatalf("%+v", rep)
				}
				b.same(b.mir.lines(graphA), []string{nt("e1", value)})
				if audit, err := b.open().Audit(context.Background(), AuditOptions{Depth: "origin"}); err != nil || !audit.Equal {
					t.Fatalf("%+v %v", audit, err)
				}
				value = "2"
				s.tick()
			}
		})
	}
}
