package destination

import (
	"fmt"
	"testing"
	"time"
)

// A source without list and dump tells for a time of changes that are none. They fail, and are
// forgotten once the right Change List is there again.
func TestUntoldChanges(t *testing.T) {
	w := web{}
	w.resources(4)
	change := func(n int, day int, more string) string {
		return urlOf(fmt.Sprintf("/r/%d.nt", n), fmt.Sprintf(`<rs:md change="created" datetime="2025-02-%02dT00:00:00Z"%s/>`, day, more))
	}
	serve := func(more ...string) {
		w.list("/changes1", "urlset", "changelist", `from="2025-02-01T00:00:00Z" until="2025-02-04T00:00:00Z"`, append([]string{change(0, 2, ""), change(1, 2, "")}, more...)...)
	}
	w.list("/changes2", "urlset", "changelist", `from="2025-02-04T00:00:00Z"`, change(2, 4, ""))
	w.list("/cap.xml", "urlset", "capabilitylist", "", urlOf("/changes", `<rs:md capability="changelist"/>`))
	w.list("/changes", "sitemapindex", "changelist", `from="2025-02-01T00:00:00Z"`, sitemapOf("/changes1"), sitemapOf("/changes2"))
	b := webBench(t, w, "/cap.xml")
	sync := func() SyncReport {
		b.clock = b.clock.Add(2 * time.Hour)
		return b.sync()
	}
	serve(change(9, 3, ""), change(1, 3, ` hash="sha-256:`+fmt.Sprintf("%064x", 1)+`"`))
	for range 6 {
		if rep := sync(); rep.InSync || rep.Failed+rep.Pending != 2 {
			t.Fatalf("while they are told: %+v", rep)
		}
	}
	serve()
	var rep SyncReport
	for range 12 {
		if rep = sync(); rep.InSync {
			break
		}
	}
	if !rep.InSync || rep.Failed+rep.Pending != 0 {
		t.Errorf("they are told no more: %+v", rep)
	}
	if got := len(b.mir.lines(graphA)); got != 3 {
		t.Errorf("%d triples, want 3", got)
	}
}
