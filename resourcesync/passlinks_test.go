package resourcesync

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// Links that are passed over leave everything else as it is, however they are written;
// those that are written in another way than usual are read.
func TestPassLinks(t *testing.T) {
	const root = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/" xmlns:o="http://example.org/">` +
		`<rs:ln rel="up" href="http://example.org/up"/><rs:md capability="changelist"/>`
	entry := func(n, links string) string {
		return `<url><loc>http://example.org/` + n + `</loc><rs:md change="updated" length="` + n + `"/>` + links + `<lastmod>2026-01-01T00:00:00Z</lastmod></url>`
	}
	usual := `<rs:ln rel="describes" href="http://example.org/e"/>`
	for _, c := range []struct {
		name, links string
		left        int
		fails       bool
	}{
		{"usual", usual + "\n  " + usual, 0, false},
		{"blank before the end", `<rs:ln rel="describes" href="http://example.org/e" />`, 0, false},
		{"the end of an entry in a value", `<rs:ln rel="describes" href="http://example.org/e?</url>"/>`, 0, true},
		{"> in a value", `<rs:ln rel="describes" href="http://example.org/?a=>"/>`, 1, false},
		{"/> in a value", `<rs:ln rel="describes" href="http://example.org/?a=/>"/>`, 1, false},
		{"/> and quotes in a value", `<rs:ln rel="describes" href='http://example.org/?"a"/>'/>`, 1, false},
		{"an end tag", `<rs:ln rel="describes" href="http://example.org/e"></rs:ln>`, 1, false},
		{"another name", `<rs:lnx/><o:ln rel="a"/>` + usual, 0, false},
		{"in a comment", `<!-- <rs:ln --><rs:ln rel="describes" href="http://example.org/e"/>`, 0, false},
		{"without an end", `<rs:ln rel="describes" href="http://example.org/e">`, 0, true},
	} {
		doc := root + entry("0", usual) + entry("1", c.links) + entry("2", usual) + entry("3", usual) + `<rs:ln rel="describedby" href="http://example.org/d"/></urlset>`
		for _, slow := range []bool{false, true} {
			in := io.Reader(strings.NewReader(doc))
			if slow {
				in = iotest.OneByteReader(in)
			}
			r, err := NewReader(in, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r.PassLinks(func(m *Meta) bool { return m.Length != 2 })
			var got []*Entry
			for err == nil {
				var e *Entry
				if e, err = r.Next(); err == nil {
					got = append(got, e)
				}
			}
			if c.fails {
				if err == io.EOF {
					t.Errorf("%s: no error", c.name)
				}
				continue
			}
			if err != io.EOF || len(got) != 4 {
				t.Fatalf("%s: %d entries, %v", c.name, len(got), err)
			}
			whole, err := NewReader(strings.NewReader(doc), ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range got {
				want, err := whole.Next()
				if err != nil {
					t.Fatal(err)
				}
				left := []int{1, c.left, 1, 0}[i] // the first entry is read with the root
				// A link of which the input ends too early is read.
				if len(e.Links) != left && (!slow || len(e.Links) > len(want.Links)) {
					t.Errorf("%s: entry %d has %d links, want %d", c.name, i, len(e.Links), left)
				}
				e.Links, want.Links = nil, nil
				if !reflect.DeepEqual(e, want) {
					t.Errorf("%s: entry %+v, want %+v", c.name, e, want)
				}
			}
			if h := r.Head(); len(h.Links) != 2 {
				t.Errorf("%s: the root has %d links", c.name, len(h.Links))
			}
		}
	}
}
