package destination

import (
	"strings"
	"testing"
)

// TestPartNamesItsCapability: the first entry of a list, or all entries of a part of an index, look
// like lists. An entry that names a capability fails by name, and the others are taken.
func TestPartNamesItsCapability(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, rest string
		part        bool
		failed      int64
	}{
		{"the first entry of a part", `<rs:md capability="resourcelist"/>`, "", true, 1},
		{"all entries of a part", `<rs:md capability="resourcelist"/>`, `<rs:md capability="resourcelist"/>`, true, 3},
		{"the first entry of a list", `<rs:md capability="resourcelist"/>`, "", false, 1},
		{"the first entry of a part, by its time", `<rs:md at="2026-01-01T00:00:00Z"/>`, "", true, 0},
	} {
		b := newBench(t)
		s := b.src
		fill(s, 3)
		root := `<rs:ln rel="up" href="` + s.url(s.caps) + `"/><rs:md capability="resourcelist" at="2026-02-01T00:00:00Z"/>`
		entries := ""
		for i, md := range []string{c.first, c.rest, c.rest} {
			entries += "<url><loc>" + s.url("/set/r/e"+string(rune('0'+i))+".nt") + "</loc>" + md + "</url>"
		}
		list := urlset + root + entries + "</urlset>"
		if c.part {
			xmlAt(s, "/set/part.xml", list)
			list = strings.Replace(urlset, "urlset", "sitemapindex", 1) + root + "<sitemap><loc>" + s.url("/set/part.xml") + "</loc></sitemap></sitemapindex>"
		}
		xmlAt(s, listXML, list)
		if rep := b.sync(); rep.Created != 3-c.failed || rep.Failed != c.failed || c.failed > 0 && !strings.Contains(rep.Problems[0].Reason, "to no resource") {
			t.Errorf("%s: %+v", c.name, rep)
		}
	}
}
