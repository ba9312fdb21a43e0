package destination

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A Sitemap index that names feeds beside lists: what both have is mirrored. A feed tells what
// is new, so that nothing goes for leaving it, and no audit proves that it is gone. A feed in
// the place of the Resource List itself is none.
func TestFeedsBesideLists(t *testing.T) {
	b := newBench(t)
	s := b.src
	fill(s, 4)
	s.changes = false
	feed := "e2 e3"
	xmlAt(s, listXML, mapidx+`<sitemap><loc>`+s.url("/list.xml")+`</loc></sitemap><sitemap><loc>`+s.url("/feed")+`</loc></sitemap></sitemapindex>`)
	xmlAt(s, "/list.xml", urlset+`<url><loc>`+s.url("/set/r/e0.nt")+`</loc></url><url><loc>`+s.url("/set/r/e1.nt")+`</loc></url></urlset>`)
	answerAt(s, "/feed", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/atom+xml; charset=iso-8859-1")
		fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="%s">`, s.url("/set/r/"))
		for _, name := range strings.Fields(feed) {
			fmt.Fprintf(w, `<entry><link href="%s.nt"/><updated>2026-01-01T00:00:00Z</updated></entry>`, name)
		}
		io.WriteString(w, `</feed>`)
	})
	if rep := b.sync(); !rep.InSync || rep.Created != 4 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	audit := func(verdict, why string) {
		t.Helper()
		a, err := b.open().Audit(context.Background(), AuditOptions{})
		if err != nil || a.Verdict != verdict || !strings.Contains(a.SourceError, why) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	audit("not proven", "of 2 resources its list tells neither") // of those of the feed it tells lastmod

	feed = "e3"
	if rep := b.sync(); !rep.InSync || rep.Deleted != 0 || !strings.Contains(rep.Why, "1 of the lists are feeds") {
		t.Fatalf("%+v", rep)
	}
	b.same(b.mir.lines(graphA), s.want())
	audit("not proven", "are feeds")

	xmlAt(s, listXML, `<rss version="2.0"><channel><item><link>`+s.url("/set/r/e0.nt")+`</link></item></channel></rss>`)
	if rep, err := b.open().Sync(context.Background(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), "announced as resourcelist") {
		t.Fatalf("%+v, %v", rep, err)
	}
	b.same(b.mir.lines(graphA), s.want())
}
