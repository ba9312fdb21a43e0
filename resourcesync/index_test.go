package resourcesync

import (
	"io"
	"strings"
	"testing"
)

// TestIndexAsURLSet: a urlset is an index when its first two entries say so, and never where an
// index names it. No entry is lost by the look ahead.
func TestIndexAsURLSet(t *testing.T) {
	own, plain := `<rs:md capability="resourcelist"/>`, `<rs:md type="text/turtle" length="5"/>`
	for _, c := range []struct {
		name    string
		entries []string
		part    bool
		index   bool
	}{
		{"lists", []string{own, own}, false, true},
		{"one list", []string{own}, false, true},
		{"the first entry is wrong", []string{own, plain, plain}, false, false},
		{"the second entry is wrong", []string{plain, own, own}, false, false},
		{"the first entry of a part is wrong", []string{own, plain}, true, false},
		{"all entries of a part are wrong", []string{own, own}, true, false},
		{"no entries", nil, false, false},
	} {
		doc := `<urlset xmlns="` + NamespaceSitemap + `" xmlns:rs="` + NamespaceRS + `"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>`
		for i, e := range c.entries {
			doc += "<url><loc>http://e/" + string(rune('a'+i)) + "</loc>" + e + `<rs:ln rel="describes" href="http://e/x"/></url>`
		}
		r, err := NewReader(strings.NewReader(doc+"</urlset>"), ReaderOptions{BaseURL: "http://e/list.xml", Part: c.part})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		locs := ""
		var e Entry
		for err = r.NextInto(&e); err == nil; err = r.NextInto(&e) {
			locs += e.Loc[len("http://e/"):]
			if len(e.Links) != 1 {
				t.Errorf("%s: %s has the links %v", c.name, e.Loc, e.Links)
			}
		}
		if err != io.EOF || r.Head().Index != c.index || locs != "abc"[:len(c.entries)] || r.Count() != int64(len(c.entries)) {
			t.Errorf("%s: index %v, entries %q of %d, %v", c.name, r.Head().Index, locs, r.Count(), err)
		}
	}
}

// A fault of the second entry is told after the first was given.
func TestFaultAfterLookAhead(t *testing.T) {
	doc := `<urlset xmlns="` + NamespaceSitemap + `" xmlns:rs="` + NamespaceRS + `"><rs:md capability="resourcelist"/><url><loc>http://e/a</loc><rs:md capability="resourcelist"/></url><url></url></urlset>`
	r, err := NewReader(strings.NewReader(doc), ReaderOptions{BaseURL: "http://e/list.xml"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := r.Next(); err != nil || e.Loc != "http://e/a" {
		t.Errorf("%v %v", e, err)
	}
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "no loc") {
		t.Error(err)
	}
}
