package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/resourcesync"
)

const next = `<rs:ln rel="next" href="%s"/>`

// paged is a Resource List in three pages, the third of which a header names.
func paged() web {
	page := func(link string, n ...int) string {
		var b strings.Builder
		for _, i := range n {
			b.WriteString(entry(fmt.Sprintf("%s/%d", source, i), ""))
		}
		return strings.Replace(doc("urlset", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, b.String()), "<rs:md", link+"<rs:md", 1)
	}
	return web{
		source + "/l":      page(fmt.Sprintf(next, "l?p=2"), 1, 2),
		source + "/l?p=2":  "Link: </l?p=3>; rel=next\n\n" + page("", 3, 4),
		source + "/l?p=3":  strings.Replace(page("", 5), "</urlset>", `<rs:ln rel="prev" href="/l?p=2"/></urlset>`, 1),
		source + "/cl.xml": doc("urlset", `capability="capabilitylist"`, entry(source+"/l", `<rs:md capability="resourcelist"/>`)),
	}
}

// readPages reads a document of the web with all its pages.
func readPages(w web, address string) (locs []string, err error) {
	open := func(address string) (*resourcesync.Page, error) {
		got, err := w.fetch(context.Background(), address)
		if err == nil && got.Status != 200 {
			err = fmt.Errorf("status %d", got.Status)
		}
		return &resourcesync.Page{URL: address, Next: resourcesync.HeaderNext(got.Links, address), Body: got.Body}, err
	}
	p, err := open(address)
	if err != nil {
		return nil, err
	}
	r, err := resourcesync.NewReader(p.Body, resourcesync.ReaderOptions{BaseURL: address, Page: open, Next: p.Next, MaxEntries: 100})
	if err != nil {
		return nil, err
	}
	for {
		e, err := r.Next()
		if err == io.EOF {
			return locs, nil
		}
		if err != nil {
			return locs, err
		}
		locs = append(locs, strings.TrimPrefix(e.Loc, source+"/"))
	}
}

func TestPages(t *testing.T) {
	with := func(address, text string) web {
		w := paged()
		if w[source+address] = text; text == "" {
			delete(w, source+address)
		}
		return w
	}
	feed := with("/l", strings.Replace(doc("urlset", `capability="changelist" from="2020-01-01T00:00:00Z"`, entry(source+"/1", `<rs:md change="created" datetime="2020-01-02T00:00:00Z"/>`)), "<rs:md", fmt.Sprintf(next, "l?p=2")+"<rs:md", 1))
	feed[source+"/l?p=2"] = `<rss version="2.0"><channel></channel></rss>`
	for _, c := range []struct {
		what string
		w    web
		want string // of the entries, and the error
	}{
		{"a feed", feed, "1 another kind of document"},
		{"all", paged(), "1 2 3 4 5"},
		{"behind the entries", with("/l?p=3", strings.Replace(paged()[source+"/l?p=3"], "</urlset>", fmt.Sprintf(next, "/l4")+"</urlset>", 1)), "1 2 3 4 5 status 404"},
		{"missing", with("/l?p=3", ""), "1 2 3 4 status 404"},
		{"a circle", with("/l?p=3", strings.Replace(paged()[source+"/l?p=3"], "<rs:md", fmt.Sprintf(next, "/l")+"<rs:md", 1)), "1 2 3 4 5 turn in circles"},
		{"itself", with("/l", strings.Replace(paged()[source+"/l"], "l?p=2", "l", 1)), "1 2 turn in circles"},
		{"another kind", with("/l?p=2", doc("urlset", `capability="changelist" from="2020-01-01T00:00:00Z"`, entry("/1", ""))), "1 2 another kind of document"},
		{"an index", with("/l?p=2", doc("sitemapindex", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, "")), "1 2 another kind of document"},
		{"a page for people", with("/l?p=2", "<html/>"), "1 2 this is a web page (HTML)"},
		{"too many", with("/l?p=3", doc("urlset", `capability="resourcelist"`, strings.Repeat(entry("/9", ""), 100))), "more than 100 entries"},
	} {
		locs, err := readPages(c.w, source+"/l")
		got := strings.Join(locs, " ")
		if err != nil {
			got += " " + err.Error()
		}
		if want := strings.Fields(c.want); !strings.HasPrefix(got, want[0]) && c.what != "too many" || !strings.HasSuffix(got, c.want) && !strings.Contains(got, strings.TrimLeft(c.want, "0123456789 ")) || err == nil && got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestExplorePages(t *testing.T) {
	n, err := Explore(t.Context(), source+"/l", ExploreOptions{Fetch: paged().fetch})
	if err != nil || n.Entries != 5 || n.Pages != 3 || len(n.Faults) > 0 || !strings.Contains(strings.Join(n.Warnings, "\n"), "3 pages") {
		t.Errorf("%+v %v", n, err)
	}
	w := paged()
	delete(w, source+"/l?p=3")
	if n, _ := Explore(t.Context(), source+"/l", ExploreOptions{Fetch: w.fetch}); len(n.Faults) != 1 {
		t.Errorf("%+v", n)
	}
	if n, _ := Explore(t.Context(), source+"/l", ExploreOptions{Fetch: paged().fetch, MaxDocuments: 2}); len(n.Faults) != 1 {
		t.Errorf("%+v", n)
	}
}

func TestCheckPages(t *testing.T) {
	w := paged()
	w[source+"/l?p=2"] = strings.Replace(doc("urlset", `capability="resourcelist" at="2020-01-01T00:00:00Z"`, entry("/3", "")), "<rs:md", fmt.Sprintf(next, "/l?p=3")+"<rs:md", 1)
	count := func(w web, severity string) (documents, found int) {
		reports, err := NewChecker(CheckerOptions{Fetch: w.fetch}).Check(t.Context(), source+"/cl.xml")
		if err != nil {
			t.Error(err)
		}
		for _, r := range reports {
			for _, f := range r.Findings {
				if f.Rule == 97 && f.Severity == severity {
					found++
				}
			}
		}
		return len(reports), found
	}
	if documents, found := count(w, SeverityWarning); documents != 4 || found != 2 { // the Capability List and the pages
		t.Errorf("%d documents, %d warnings", documents, found)
	}
	w[source+"/l?p=3"] = strings.Replace(w[source+"/l?p=3"], `rel="prev"`, `rel="next"`, 1)
	if _, found := count(w, SeverityError); found != 1 {
		t.Errorf("a circle: %d errors", found)
	}
	delete(w, source+"/l?p=3")
	if _, found := count(w, SeverityError); found != 1 {
		t.Errorf("a missing page: %d errors", found)
	}
}

// An index may be written as urlset; a list of resources is none, whatever its entries tell.
func TestIndexAsURLSet(t *testing.T) {
	for _, c := range []struct {
		meta, entry string
		index       bool
	}{
		{`capability="resourcelist" at="2020-01-01T00:00:00Z"`, `<rs:md at="2020-01-01T00:00:00Z"/>`, true},
		{`capability="resourcelist" at="2020-01-01T00:00:00Z"`, `<rs:md capability="resourcelist"/>`, true},
		{`capability="resourcelist" at="2020-01-01T00:00:00Z"`, ``, false},
		{`capability="resourcelist" at="2020-01-01T00:00:00Z"`, `<rs:md at="2020-01-01T00:00:00Z" length="3"/>`, false},
		{`capability="resourcelist" at="2020-01-01T00:00:00Z"`, `<rs:md capability="changelist"/>`, false},
		{`capability="resourcelist" at="2020-01-01T00:00:00Z"`, `<rs:md hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6" length="10" type="text/turtle"/>`, false},
		{`capability="changelist" from="2020-01-01T00:00:00Z"`, `<rs:md from="2020-01-01T00:00:00Z"/>`, true},
		{`capability="changelist" from="2020-01-01T00:00:00Z"`, `<rs:md capability="changelist" from="2020-01-01T00:00:00Z"/>`, true},
		{`capability="changelist" from="2020-01-01T00:00:00Z"`, `<rs:md change="updated" from="2020-01-01T00:00:00Z"/>`, false},
		{`capability="changelist" from="2020-01-01T00:00:00Z"`, `<rs:md type="application/zip" length="9" from="2020-01-01T00:00:00Z" until="2020-01-02T00:00:00Z"/>`, false},
		{`capability="resourcedump" at="2020-01-01T00:00:00Z"`, `<rs:md capability="resourcedump"/>`, true},
		{`capability="resourcedump" at="2020-01-01T00:00:00Z"`, `<rs:md at="2020-01-01T00:00:00Z"/>`, false},
		{`capability="capabilitylist"`, `<rs:md capability="capabilitylist"/>`, true},
		{`capability="capabilitylist"`, `<rs:md capability="resourcelist"/>`, false},
		{`capability="description"`, `<rs:md capability="description"/>`, true},
	} {
		text := doc("urlset", c.meta, entry("/1", c.entry)+entry("/2", c.entry))
		r, err := resourcesync.NewReader(strings.NewReader(text), resourcesync.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Head().Index != c.index || (len(r.Head().Warnings) > 0) != c.index {
			t.Errorf("%s %s: index %t, %q", c.meta, c.entry, r.Head().Index, r.Head().Warnings)
		}
		for _, want := range []string{"/1", "/2"} {
			if e, err := r.Next(); err != nil || e.Loc != want {
				t.Errorf("%s: %+v %v", c.entry, e, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
		_, findings, err := Validate(strings.NewReader(text), ValidateOptions{})
		told := false
		for _, f := range findings {
			told = told || slices.Contains([]int{52, 53, 57, 62, 70}, f.Rule)
		}
		if err != nil || c.index && !told {
			t.Errorf("%s %s: %v %v", c.meta, c.entry, findings, err)
		}
	}
	r, err := resourcesync.NewReader(strings.NewReader(doc("urlset", `capability="resourcelist"`, "<url></url>")), resourcesync.ReaderOptions{})
	if err != nil || r.Head().Meta.Capability != resourcesync.ResourceList { // the root can be told
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, resourcesync.ErrInvalid) {
		t.Error(err)
	}
}
