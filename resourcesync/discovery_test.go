package resourcesync

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestHeaderLinks(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string // separated by spaces
	}{
		{nil, ""},
		{[]string{`<a>; rel="resourcesync"`}, "a"},
		{[]string{`<a>;rel=resourcesync`, `<b>; REL="next ResourceSync"`}, "a b"},
		{[]string{`<a>; rel="up", <b>; rel="resourcesync",<c>;rel=x`}, "b"},
		{[]string{`<http://a.example/x,y>; rel="resourcesync", <b>; rel="resourcesync"`}, "http://a.example/x,y b"},
		{[]string{`<a>; title="x, <y>; rel=resourcesync"; rel="up"`}, ""},
		{[]string{`<a>; title="q\"; rel=up"; rel="resourcesync"`}, "a"},
		{[]string{`<a>; rel="resourcesyncing"`, `<a`, `a>; rel="resourcesync"`, `<>`}, ""},
		{[]string{`<a>; rel="resourcesync"; rel="resourcesync"`}, "a"},
	} {
		if got := strings.Join(HeaderLinks(c.lines, RelResourceSync), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.lines, got, c.want)
		}
	}
	if got := HeaderLinks([]string{strings.Repeat(`<a>; rel="x", `, 1000)}, "x"); len(got) != maxLinks {
		t.Errorf("%d links", len(got))
	}
}

func TestPageAndRobotsLinks(t *testing.T) {
	base, err := url.Parse("http://a.example/b/c")
	if err != nil {
		t.Fatal(err)
	}
	page := `<html><head><link rel="stylesheet" href="x.css"><link rel="alternate resourcesync" href="one.xml">
<base href="/d/"><LINK REL=ResourceSync HREF=" two.xml "/><link rel="resourcesync"><link rel="resourcesync" href="http://[">
</head><body><link rel="resourcesync" href="three.xml"></body>`
	if got, want := PageLinks(strings.NewReader(page), base), []string{"http://a.example/b/one.xml", "http://a.example/d/two.xml"}; !slices.Equal(got, want) {
		t.Errorf("page: %q, want %q", got, want)
	}
	robots := "\ufeffSITEMAP : /s.xml\r\nUser-agent: *\nDisallow: /\nSitemap: http://b.example/t.xml # the data\n# Sitemap: d.xml\nSitemap: # none\nSitemap http://c.example/\nSitemap: http://["
	if got, want := RobotsLinks(robots, base), []string{"http://a.example/s.xml", "http://b.example/t.xml"}; !slices.Equal(got, want) {
		t.Errorf("robots.txt: %q, want %q", got, want)
	}
}

func FuzzDiscovery(f *testing.F) {
	f.Add(`<a>; rel="resourcesync", <b>; rel=x`, `<html><head><link rel="resourcesync" href="a"></head>`, "Sitemap: a")
	base, _ := url.Parse("http://a.example/b/")
	f.Fuzz(func(t *testing.T, header, page, robots string) {
		for _, l := range HeaderLinks([]string{header}, RelResourceSync) {
			if !strings.Contains(header, "<"+l+">") {
				t.Fatal(l)
			}
		}
		for _, l := range append(PageLinks(strings.NewReader(page), base), RobotsLinks(robots, base)...) {
			if _, err := url.Parse(l); err != nil {
				t.Fatal(l, err)
			}
		}
	})
}
