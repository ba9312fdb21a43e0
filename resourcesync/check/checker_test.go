package check

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// site is a source held in memory.
type site struct {
	pages   map[string]string // by path
	answers map[string]Fetched
	fetched []string
}

const siteHost = "http://src.example/"

func (s *site) fetch(ctx context.Context, url string) (*Fetched, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.fetched = append(s.fetched, url)
	path, ok := strings.CutPrefix(url, siteHost)
	if !ok {
		return nil, errors.New("host unknown")
	}
	body, ok := s.pages[path]
	out := s.answers[path]
	out.ContentLength = int64(len(body))
	if out.Status == 0 {
		out.Status = 200
		if !ok {
			out.Status = 404
		}
	}
	out.Body = io.NopCloser(strings.NewReader(body))
	return &out, nil
}

func sum(s string) string {
	h := md5.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}

// goodSite is a source without fault: two sets would be more of the same.
func goodSite(t testing.TB) *site {
	t.Helper()
	up := func(s string) string { return `<rs:ln rel="up" href="` + siteHost + s + `"/>` }
	index := func(s string) string { return `<rs:ln rel="index" href="` + siteHost + s + `"/>` }
	md := func(s string) string { return `<rs:md ` + s + `/>` }
	about := `<rs:ln rel="describedby" href="` + siteHost + `about"/>`
	const ada, bob, eve = "ada is a person\n", "bob\n", "eve\n"
	meta := func(body string) string {
		return fmt.Sprintf(`hash="md5:%s" length="%d" type="text/plain"`, sum(body), len(body))
	}

	var pkg bytes.Buffer
	p, err := resourcesync.NewPackageWriter(&pkg, resourcesync.Head{
		Meta:  resourcesync.Meta{Capability: resourcesync.ResourceDumpManifest, At: at("2024-05-01T00:00:00Z")},
		Links: []resourcesync.Link{{Rel: resourcesync.RelUp, Href: siteHost + "set/capabilitylist.xml"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"ada": ada, "bob": bob} {
		e := &resourcesync.Entry{Loc: siteHost + name, LastMod: at("2024-04-01T00:00:00Z"), HasMeta: true, Meta: resourcesync.Meta{Type: "text/plain", Length: int64(len(body)), Hash: resourcesync.Hashes{MD5: sum(body)}}}
		if err := p.Add("/r/"+name, []byte(body), e); err != nil {
			t.Fatal(err)
		}
	}
	manifest, err := p.Close()
	if err != nil {
		t.Fatal(err)
	}

	lastMod := `<lastmod>2024-04-01T00:00:00Z</lastmod>`
	return &site{
		pages: map[string]string{
			".well-known/resourcesync": docOf("urlset", about+md(`capability="description"`), u("set/capabilitylist.xml", md(`capability="capabilitylist"`)+about)),
			"set/capabilitylist.xml": docOf("urlset", up(".well-known/resourcesync")+about+md(`capability="capabilitylist"`),
				u("set/resourcelist.xml", md(`capability="resourcelist"`)), u("set/changelist.xml", md(`capability="changelist"`)),
				u("set/resourcedump.xml", md(`capability="resourcedump"`)), u("set/archive.xml", md(`capability="changelist-archive"`)),
				u("set/topic", md(`capability="change-notification"`)+`<rs:ln rel="hub" href="http://hub.example/"/>`)),
			"set/resourcelist.xml": docOf("sitemapindex", up("set/capabilitylist.xml")+md(`capability="resourcelist" `+at0),
				sm("set/rl-1.xml", md(at0)), sm("set/rl-2.xml", md(at0))),
			"set/rl-1.xml": docOf("urlset", up("set/capabilitylist.xml")+index("set/resourcelist.xml")+md(`capability="resourcelist" `+at0), u("ada", lastMod+md(meta(ada)))),
			"set/rl-2.xml": docOf("urlset", up("set/capabilitylist.xml")+index("set/resourcelist.xml")+md(`capability="resourcelist" `+at0), u("bob", lastMod+md(meta(bob)))),
			"set/changelist.xml": docOf("sitemapindex", up("set/capabilitylist.xml")+md(`capability="changelist" `+from0),
				sm("set/cl-1.xml", md(day2)), sm("set/cl-2.xml", md(`from="2024-05-02T00:00:00Z"`))),
			"set/cl-1.xml": docOf("urlset", up("set/capabilitylist.xml")+index("set/changelist.xml")+md(`capability="changelist" `+day2), u("eve", md(`change="created" datetime="2024-05-01T10:00:00Z" `+meta(eve)))),
			"set/cl-2.xml": docOf("urlset", up("set/capabilitylist.xml")+index("set/changelist.xml")+md(`capability="changelist" from="2024-05-02T00:00:00Z"`), u("gone", md(`change="deleted" datetime="2024-05-02T10:00:00Z"`))),
			"set/resourcedump.xml": docOf("urlset", up("set/capabilitylist.xml")+md(`capability="resourcedump" `+at0),
				u("set/dump.zip", md(fmt.Sprintf(`type="application/zip" length="%d" hash="md5:%s"`, pkg.Len(), sum(pkg.String())))+`<rs:ln rel="contents" href="`+siteHost+`set/manifest.xml" type="application/xml"/>`)),
			"set/dump.zip": pkg.String(), "set/manifest.xml": string(manifest),
			"set/archive.xml": docOf("urlset", up("set/capabilitylist.xml")+md(`capability="changelist-archive"`), u("set/old.xml", md(`from="2024-04-01T00:00:00Z" until="2024-05-01T00:00:00Z"`))),
			"set/old.xml":     docOf("urlset", up("set/capabilitylist.xml")+md(`capability="changelist" from="2024-04-01T00:00:00Z" until="2024-05-01T00:00:00Z"`), u("bob", md(`change="updated" datetime="2024-04-01T10:00:00Z"`))),
			"set/topic":       "", "ada": ada, "bob": bob, "eve": eve,
		},
		answers: map[string]Fetched{
			"set/topic": {ContentType: "application/xml", Links: []string{`<` + siteHost + `set/topic>; rel="self", <http://hub.example/>; rel="hub"`}},
			"ada":       {ContentType: "text/plain; charset=utf-8", LastModified: "Mon, 01 Apr 2024 00:00:00 GMT", Links: []string{`<` + siteHost + `set/capabilitylist.xml>; rel="resourcesync"`}},
		},
	}
}

func check(t *testing.T, c *Checker, start string) map[string][]Finding {
	t.Helper()
	reports, err := c.Check(t.Context(), siteHost+start)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]Finding{}
	for _, r := range reports {
		out[strings.TrimPrefix(r.Location, siteHost)] = r.Findings
	}
	return out
}

func newSiteChecker(t *testing.T, s *site) *Checker {
	allowed := func(u *url.URL) error {
		if u.Host != "src.example" {
			return errors.New("host is not allowed")
		}
		return nil
	}
	return NewChecker(CheckerOptions{Fetch: s.fetch, Allowed: allowed, Sample: 100, TempDir: t.TempDir(), Now: at("2024-06-01T00:00:00Z")})
}

func TestCheckerFindsNothingInAGoodSource(t *testing.T) {
	s := goodSite(t)
	c := newSiteChecker(t, s)
	c.o.TempDir = t.TempDir()
	for range 2 { // the second time it is compared with the first
		found := check(t, c, ".well-known/resourcesync")
		for doc, findings := range found {
			for _, f := range findings {
				if f.Severity != SeverityInfo {
					t.Errorf("%s: %s", doc, f)
				}
			}
		}
		want := []string{".well-known/resourcesync", "set/archive.xml", "set/capabilitylist.xml", "set/changelist.xml", "set/cl-1.xml", "set/cl-2.xml",
			"set/dump.zip!/manifest.xml", "set/old.xml", "set/resourcedump.xml", "set/resourcelist.xml", "set/rl-1.xml", "set/rl-2.xml"}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("documents %q, want %q", got, want)
		}
	}
	if left, _ := os.ReadDir(c.o.TempDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, once := range []string{"set/rl-1.xml", "set/capabilitylist.xml", ".well-known/resourcesync"} {
		n := 0
		for _, f := range s.fetched {
			if f == siteHost+once {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s was fetched %d times in two checks", once, n)
		}
	}
}

// Each context rule: what is changed in the good source, and what is found then.
func TestCheckerRules(t *testing.T) {
	swap := func(doc, old, new string) func(*site) {
		return func(s *site) {
			if !strings.Contains(s.pages[doc], old) {
				panic(doc + " has no " + old)
			}
			s.pages[doc] = strings.ReplaceAll(s.pages[doc], old, new)
		}
	}
	gone := func(doc string) func(*site) { return func(s *site) { delete(s.pages, doc) } }
	answer := func(doc string, a Fetched) func(*site) { return func(s *site) { s.answers[doc] = a } }
	const cap, rl1, cl1, index = "set/capabilitylist.xml", "set/rl-1.xml", "set/cl-1.xml", "set/changelist.xml"
	repackage := func(members ...member) func(*site) {
		return func(s *site) {
			old := s.pages["set/dump.zip"]
			s.pages["set/dump.zip"] = string(makeZip(t, members...))
			s.pages["set/resourcedump.xml"] = strings.NewReplacer(sum(old), sum(s.pages["set/dump.zip"]), fmt.Sprintf(`length="%d"`, len(old)), fmt.Sprintf(`length="%d"`, len(s.pages["set/dump.zip"]))).Replace(s.pages["set/resourcedump.xml"])
		}
	}
	manifestOf := func(s *site) string { return s.pages["set/manifest.xml"] }
	for _, c := range []struct {
		name, in, want string // the finding wanted in a document
		change         func(*site)
	}{
		{"part without index", rl1, "W32", swap(rl1, `<rs:ln rel="index" href="http://src.example/set/resourcelist.xml"/>`, "")},
		{"part names another index", rl1, "E32", swap(rl1, `set/resourcelist.xml`, "set/changelist.xml")},
		{"up leads nowhere", rl1, "E35", swap(rl1, `set/capabilitylist.xml`, "set/none.xml")},
		{"up leads to another kind", rl1, "E35", swap(rl1, `set/capabilitylist.xml`, "set/changelist.xml")},
		{"parent does not list", cl1, "W36", func(s *site) {
			s.pages["other.xml"] = strings.ReplaceAll(s.pages[cap], "set/changelist.xml", "set/another.xml")
			swap(cl1, "set/capabilitylist.xml", "other.xml")(s)
		}},
		{"index leads nowhere", rl1, "E37", swap(rl1, `set/resourcelist.xml`, "set/none.xml")},
		{"index is no index", rl1, "E37", swap(rl1, `set/resourcelist.xml`, "set/rl-2.xml")},
		{"index of another kind", rl1, "E37", swap(rl1, `set/resourcelist.xml`, "set/changelist.xml")},
		{"announced as another kind", cap, "E63", swap("set/resourcelist.xml", `capability="resourcelist"`, `capability="resourcedump"`)},
		{"announced and not there", cap, "E63", gone("set/resourcedump.xml")},
		{"announced and no XML", cap, "E63", func(s *site) { s.pages["set/resourcedump.xml"] = "<html/>" }},
		{"list and dump differ", cap, "E64", swap("set/rl-2.xml", "<loc>http://src.example/bob", "<loc>http://src.example/bobby")},
		{"changed, not listed", cap, "E64", swap(cl1, "2024-05-01T10:00:00Z", "2024-04-01T10:00:00Z")},
		{"resourcesync link to another kind", cap, "E67", answer("ada", Fetched{Links: []string{`<set/rl-1.xml>; rel="resourcesync"`}})},
		{"in two parts", "set/resourcelist.xml", "W68", swap("set/rl-2.xml", "<loc>http://src.example/bob", "<loc>http://src.example/ada")},
		{"part of another kind", "set/resourcelist.xml", "E70", swap("set/rl-2.xml", `capability="resourcelist"`, `capability="resourcedump"`)},
		{"part not there", index, "E70", gone("set/cl-2.xml")},
		{"index in an index", "set/resourcelist.xml", "I70", func(s *site) {
			s.pages["set/rl-2.xml"] = strings.NewReplacer("urlset", "sitemapindex", "<url>", "<sitemap>", "</url>", "</sitemap>").Replace(s.pages["set/rl-2.xml"])
		}},
		{"list in the place of a resource", cap, "E70", swap("ada", "ada is a person\n", tinyList)},
		{"packed list in the place of a resource", cap, "E70", swap("ada", "ada is a person\n", gzipped(tinyList))},
		{"Sitemap in the place of a change", cap, "E70", swap("eve", "eve\n", docOf("urlset", ""))},
		{"list as text in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", "http://src.example/bob\nhttp://src.example/eve\n")},
		{"list as JSON in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", `["http://src.example/bob", "http://src.example/eve"]`)},
		{"list as JSON-LD in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", `{"@graph": [{"@id": "http://src.example/bob"}, {"@id": "http://src.example/eve"}]}`)},
		{"Atom in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="bob"/></entry></feed>`)},
		{"RSS in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", `<rss version="2.0"><channel><item><link>http://src.example/bob</link></item></channel></rss>`)},
		{"RSS 1.0 in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><item rdf:about="http://src.example/bob"/></rdf:RDF>`)},
		{"page of links in the place of a resource", cap, "W70", swap("ada", "ada is a person\n", `<html><title>all</title><ul><li><a href="bob">Bob</a> 2 kB<li><a href='/eve'>Eve</a></ul></html>`)},
		{"RDF without a byte", cap, "W128", func(s *site) {
			s.pages[rl1] = strings.NewReplacer("text/plain", "text/turtle", fmt.Sprintf(` length="%d"`, len(s.pages["ada"])), "", ` hash="md5:`+sum(s.pages["ada"])+`"`, "").Replace(s.pages[rl1])
			s.pages["ada"] = ""
		}},
		{"number missing between parts", index, "W126", numberedParts("3", "5")},
		{"number of before in the next part", index, "W126", numberedParts("3", "2")},
		{"same number in the next part", index, "W126", numberedParts("3", "3")},
		{"other host", rl1, "W129", swap(rl1, "</urlset>", `<url><loc>http://far.example/x</loc></url></urlset>`)},
		{"list in a package", "set/dump.zip!/manifest.xml", "E70", repackage(member{name: "manifest.xml", data: tinyManifest}, member{name: "a", data: tinyList})},
		{"no RDF as promised", cap, "W124", func(s *site) {
			s.pages[rl1] = strings.ReplaceAll(s.pages[rl1], "text/plain", "text/turtle")
		}},
		{"no RDF by its answer", cap, "W124", func(s *site) {
			s.pages[rl1] = strings.ReplaceAll(s.pages[rl1], ` type="text/plain"`, "")
			s.answers["ada"] = Fetched{ContentType: "application/ld+json; charset=utf-8"}
		}},
		{"no RDF behind a link", cap, "W124", swap(rl1, "/></url>", `/><rs:ln rel="alternate" href="http://src.example/eve" type="application/rdf+xml"/></url>`)},
		{"a context elsewhere", cap, "I124", func(s *site) {
			s.pages[rl1] = strings.ReplaceAll(s.pages[rl1], "text/plain", "application/ld+json")
			s.pages["ada"] = `{"@context": "http://far.example/c", "name": "x"}`
		}},
		{"no RDF in a package", "set/dump.zip!/manifest.xml", "W124", repackage(member{name: "manifest.xml", data: strings.ReplaceAll(tinyManifest, `path="/a"`, `path="/a" type="application/n-triples"`)}, member{name: "a", data: "x"})},
		{"contents not there", "set/resourcedump.xml", "E73", gone("set/manifest.xml")},
		{"contents differ", "set/resourcedump.xml", "E73", swap("set/manifest.xml", "/r/ada", "/r/eve")},
		{"contents of another root", "set/resourcedump.xml", "E73", swap("set/manifest.xml", "2024-05-01", "2024-05-02")},
		{"contents shorter", "set/resourcedump.xml", "E73", func(s *site) {
			m := manifestOf(s)
			s.pages["set/manifest.xml"] = m[:strings.Index(m, "  <url>")] + "</urlset>"
		}},
		{"package not there", "set/resourcedump.xml", "E74", gone("set/dump.zip")},
		{"no package", "set/resourcedump.xml", "E74", func(s *site) { s.pages["set/dump.zip"] = "PK" }},
		{"package without manifest", "set/resourcedump.xml", "E74", repackage(member{name: "a"})},
		{"manifest of another kind", "set/dump.zip!/manifest.xml", "E75", func(s *site) {
			repackage(member{name: "manifest.xml", data: strings.ReplaceAll(tinyManifest, "resourcedump-manifest", "resourcelist")}, member{name: "a", data: "x"})(s)
		}},
		{"path not in the package", "set/dump.zip!/manifest.xml", "E78", repackage(member{name: "manifest.xml", data: tinyManifest})},
		{"other length", "set/dump.zip!/manifest.xml", "E78", repackage(member{name: "manifest.xml", data: strings.ReplaceAll(tinyManifest, `path="/a"`, `path="/a" length="9"`)}, member{name: "a", data: "x"})},
		{"other hash", "set/dump.zip!/manifest.xml", "E78", repackage(member{name: "manifest.xml", data: strings.ReplaceAll(tinyManifest, `path="/a"`, `path="/a" hash="md5:00000000000000000000000000000000"`)}, member{name: "a", data: "x"})},
		{"more in the package", "set/dump.zip!/manifest.xml", "W79", repackage(member{name: "manifest.xml", data: tinyManifest}, member{name: "a", data: "x"}, member{name: "b", data: "x"})},
		{"package of another length", "set/resourcedump.xml", "W81", swap("set/resourcedump.xml", `length="`, `length="1`)},
		{"index says open", index, "E88", swap(index, ` until="2024-05-02T00:00:00Z"`, "")},
		{"index says closed", index, "E88", swap(index, `<rs:md from="2024-05-02T00:00:00Z"/>`, `<rs:md from="2024-05-02T00:00:00Z" until="2024-05-03T00:00:00Z"/>`)},
		{"index says another end", index, "E88", swap(cl1, `until="2024-05-02T00:00:00Z"`, `until="2024-05-02T01:00:00Z"`)},
		{"index says another begin", index, "E88", swap(cl1, `from="2024-05-01T00:00:00Z"`, `from="2024-05-01T01:00:00Z"`)},
		{"parts with a gap", index, "W90", func(s *site) {
			swap(index, `<rs:md from="2024-05-02T00:00:00Z"/>`, "")(s)
			swap("set/cl-2.xml", `from="2024-05-02T00:00:00Z"`, `from="2024-05-02T01:00:00Z"`)(s)
		}},
		{"part named instead of index", cap, "W97", swap(cap, "set/changelist.xml", cl1)},
		{"linked resource differs", cap, "W106", swap(rl1, "/></url>", `/><rs:ln rel="alternate" href="http://src.example/eve" type="text/plain" length="99"/></url>`)},
		{"linked resource not there", cap, "W106", swap(rl1, "/></url>", `/><rs:ln rel="alternate" href="http://src.example/none" type="text/plain"/></url>`)},
		{"duplicate not there", cap, "W106", swap(rl1, "/></url>", `/><rs:ln rel="duplicate" href="http://src.example/none"/></url>`)},
		{"duplicate differs", cap, "W106", swap(rl1, "/></url>", `/><rs:ln rel="duplicate" href="http://src.example/eve"/></url>`)},
		{"other length of a resource", cap, "W107", swap(rl1, `length="`, `length="1`)},
		{"resource not there", cap, "W107", gone("ada")},
		{"coded resource", cap, "W108", answer("ada", Fetched{ContentEncoding: "gzip"})},
		{"other type of a resource", cap, "W109", answer("ada", Fetched{ContentType: "text/turtle"})},
		{"other hash of a resource", cap, "W110", swap(rl1, `md5:`+sum("ada is a person\n"), "md5:"+sum(""))},
		{"other time of a resource", cap, "W111", answer("ada", Fetched{LastModified: "Mon, 01 Apr 2024 00:00:01 GMT"})},
		{"deleted and there", cap, "I112", func(s *site) { s.pages["gone"] = "still" }},
		{"archived document not there", "set/archive.xml", "E117", gone("set/old.xml")},
		{"archived document of another kind", "set/archive.xml", "E117", swap("set/old.xml", `capability="changelist"`, `capability="changedump"`)},
		{"archived document open", "set/archive.xml", "I117", swap("set/old.xml", ` until="2024-05-01T00:00:00Z"`, "")},
		{"topic of before", cap, "I123", answer("set/topic", Fetched{Status: 204, Links: []string{`<a>; rel=self`, `<b>;rel="x hub"`}})},
		{"topic of another type", cap, "E123", answer("set/topic", Fetched{ContentType: "text/html", Links: []string{`<a>; rel=self`, `<b>; rel=hub`}})},
		{"topic without hub", cap, "E123", answer("set/topic", Fetched{ContentType: "application/xml", Links: []string{`<a>; rel="self"`}})},
		{"topic not there", cap, "E123", answer("set/topic", Fetched{Status: 404})},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := goodSite(t)
			c.change(s)
			found := check(t, newSiteChecker(t, s), ".well-known/resourcesync")
			for _, f := range found[c.in] {
				if fmt.Sprintf("%s%d", f.Severity, f.Rule) == c.want {
					return
				}
			}
			t.Errorf("%s was not found in %s, but %v", c.want, c.in, found)
		})
	}
}

// numberedParts gives the changes of both Change Lists their numbers.
func numberedParts(first, second string) func(*site) {
	return func(s *site) {
		for doc, n := range map[string]string{"set/cl-1.xml": first, "set/cl-2.xml": second} {
			s.pages[doc] = strings.Replace(s.pages[doc], ` datetime="`, ` xmlns:rsb="urn:rsbridge:terms" rsb:sequence="`+n+`" datetime="`, 1)
		}
	}
}

// Numbers that follow each other, and a length of 0, are no findings; nor is a resource told twice that
// stands in the list and among the changes.
func TestCheckerOnce(t *testing.T) {
	s := goodSite(t)
	numberedParts("3", "4")(s)
	s.pages["gone"] = "still"
	s.pages["set/rl-2.xml"] = strings.Replace(s.pages["set/rl-2.xml"], "</urlset>", u("gone", "")+u("none", `<rs:md type="text/turtle" length="0"/>`)+u("nothing", `<rs:md type="text/turtle" hash="md5:`+sum("")+`"/>`)+u("table", `<rs:md type="text/csv"/>`)+"</urlset>", 1)
	s.pages["none"], s.pages["nothing"], s.pages["table"] = "", "", "http://src.example/a,1\nhttp://src.example/b,2\n"
	told := 0
	for _, found := range check(t, newSiteChecker(t, s), ".well-known/resourcesync") {
		for _, f := range found {
			switch f.Rule {
			case 112:
				told++
			case 70, 126, 128, 129:
				t.Error(f)
			}
		}
	}
	if told != 1 {
		t.Errorf("%d findings of rule 112, want 1", told)
	}
}

// Bodies of nothing but addresses are lists, and others are none.
func TestFormsOfBodies(t *testing.T) {
	for body, want := range map[string][2]bool{ // JSON, page
		`["http://a.example/1", "http://a.example/2"`:                                          {true, false},
		`{"items": [{"url": "http://a.example/1"}, {"url": "https://b/2"}]}`:                   {true, false},
		`["http://a.example/1"]`:                                                               {},
		`["http://a.example/1", "x"]`:                                                          {},
		`["http://a.example/1", 2]`:                                                            {},
		`[{"@id": "http://a.example/1"}, {"@id": "http://a.example/2"}]`:                       {true, false},
		`{"@graph": [{"@id": "http://a.example/1"}, {"@id": "http://a.example/2"}]}`:           {true, false},
		`[{"@id": "http://a.example/1", "http://a.example/p": {"@id": "http://a.example/2"}}]`: {},
		`[{"@id": "http://a.example/1", "@type": "http://a.example/2"}]`:                       {},
		`{"@id": "http://a.example/1", "http://a.example/p": [{"@id": "http://a.example/2"}]}`: {},
		`{"a": ["http://a.example/1"], "b": ["http://a.example/2"]}`:                           {},
		`"http://a.example/1"`:                                                                 {},
		``:                                                                                     {},
		`<!DOCTYPE html><h1>Index of /r, with all the files that there are</h1><pre><a href="1">1</a> 2024-01-01 1K` + "\n" + `<a href="2">2</a> 2024-01-01 1K</pre>`: {false, true},
		`<html><a href="#x">x</a><a href="1">1</a></html>`:                                                      {},
		`<html><p>` + strings.Repeat("A page of its own. ", 20) + `<a href="1">1</a><a href="2">2</a></html>`:   {},
		`<html><script>` + strings.Repeat("x();", 90) + `</script><a href="1">1</a><a href="2">2</a>`:           {false, true},
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><a href="1"/><a href="2"/></rdf:RDF>`: {},
	} {
		if got := [2]bool{isArrayOfAddresses([]byte(body)), isPageOfLinks([]byte(body))}; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

// Documents are compared with what they were before.
func TestCheckerRemembers(t *testing.T) {
	s := goodSite(t)
	c := newSiteChecker(t, s)
	check(t, c, ".well-known/resourcesync")
	const open, closed = "set/cl-2.xml", "set/cl-1.xml"
	before := maps.Clone(s.pages)
	has := func(doc, want string) bool {
		for _, f := range check(t, c, ".well-known/resourcesync")[doc] {
			if fmt.Sprintf("%s%d", f.Severity, f.Rule) == want {
				return true
			}
		}
		return false
	}
	s.pages[open] = strings.Replace(before[open], "</urlset>", u("more", upd2)+"</urlset>", 1)
	if has(open, "E96") || has(open, "I96") {
		t.Error("a list that grew is reported")
	}
	s.pages[open] = before[open]
	if !has(open, "E96") {
		t.Error("an open list that lost an entry is not reported")
	}
	s.pages[open] = strings.Replace(strings.Replace(before[open], "gone", "other", 1), `from="2024-05-02T00`, `from="2024-05-02T09`, 1)
	if !has(open, "I96") {
		t.Error("a list whose beginning was dropped is not reported as that")
	}
	s.pages[closed] = strings.Replace(before[closed], "eve", "eva", 1)
	if !has(closed, "E95") {
		t.Error("a closed list that changed is not reported")
	}
}

const upd2 = `<rs:md change="updated" datetime="2024-05-02T11:00:00Z"/>`

// A list below no Capability List is told, and its resources are looked at all the same.
func TestCheckerListAlone(t *testing.T) {
	for _, up := range []bool{true, false} {
		s := goodSite(t)
		delete(s.pages, "ada")
		if !up {
			s.pages["set/rl-1.xml"] = strings.Replace(s.pages["set/rl-1.xml"], `<rs:ln rel="up" href="http://src.example/set/capabilitylist.xml"/>`, "", 1)
		}
		told := map[string]bool{}
		for _, f := range check(t, newSiteChecker(t, s), "set/rl-1.xml")["set/rl-1.xml"] {
			told[fmt.Sprintf("%s%d", f.Severity, f.Rule)] = true
		}
		if !told["W107"] || told["I36"] == up {
			t.Errorf("up %t: %v", up, told)
		}
	}
}

func TestCheckerFromAnyDocument(t *testing.T) {
	s := goodSite(t)
	found := check(t, newSiteChecker(t, s), "set/rl-1.xml")
	want := []string{"set/capabilitylist.xml", "set/resourcelist.xml", "set/rl-1.xml"}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("documents %q, want %q", got, want)
	}
	// A Source Description elsewhere: the well-known address is looked at.
	s.pages["description.xml"] = s.pages[".well-known/resourcesync"]
	delete(s.pages, ".well-known/resourcesync")
	found = check(t, newSiteChecker(t, s), "description.xml")
	if f := found["description.xml"]; len(f) == 0 || f[0].Rule != 66 {
		t.Errorf("findings %v, want rule 66", f)
	}
	// A framework notification.
	s.pages["note.xml"] = of("framework-notification", "", u("set/rl-1.xml", `<rs:md change="created" capability="resourcelist"/>`), u("set/resourcelist.xml", `<rs:md change="created" capability="resourcelist"/>`))
	rules := []int{}
	for _, f := range check(t, newSiteChecker(t, s), "note.xml")["note.xml"] {
		rules = append(rules, f.Rule)
	}
	if !slices.Equal(rules, []int{121, 121}) {
		t.Errorf("rules %v, want 121 for the index and for the missing link", rules)
	}
}

// TestCheckerFromFormerAddress: a document that an old address leads to is the one of its own
// address, for those that list it.
func TestCheckerFromFormerAddress(t *testing.T) {
	for _, doc := range []string{"capabilitylist.xml", "resourcelist.xml", "rl-1.xml", "changelist.xml", "cl-2.xml"} {
		s := goodSite(t)
		c := newSiteChecker(t, s)
		c.o.Fetch = func(ctx context.Context, address string) (*Fetched, error) {
			now := strings.Replace(address, "/old/", "/set/", 1)
			got, err := s.fetch(ctx, now)
			if err == nil {
				got.URL = now
			}
			return got, err
		}
		for at, findings := range check(t, c, "old/"+doc) {
			for _, f := range findings {
				if f.Severity != SeverityInfo {
					t.Errorf("from old/%s: %s: %s", doc, at, f)
				}
			}
		}
	}
}

// TestCheckerFromPage: the address of a site leads to its source, as it does for
// Explore: by the well-known address, else by links of the page.
func TestCheckerFromPage(t *testing.T) {
	for _, c := range []struct{ name, address, page, header string }{
		{"well-known address", "", "<!DOCTYPE html><title>Data</title>", ""},
		{"root without a page", "", "", ""},
		{"link of the page", "about.html", `<!DOCTYPE html><html><head><link rel="resourcesync" href="/set/capabilitylist.xml"></head></html>`, ""},
		{"link of an XHTML page", "about.html", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><link rel="resourcesync" href="/set/capabilitylist.xml"/></head></html>`, ""},
		{"Link header", "about.html", "<html></html>", "</set/capabilitylist.xml>; rel=\"resourcesync\""},
	} {
		s := goodSite(t)
		if c.page != "" {
			s.pages[c.address] = c.page
		}
		s.answers[c.address] = Fetched{ContentType: map[bool]string{true: "application/xhtml+xml", false: "text/html"}[strings.HasPrefix(c.page, "<?xml")]}
		if c.header != "" {
			s.answers[c.address] = Fetched{ContentType: "text/html; charset=utf-8", Links: []string{c.header}}
		}
		want := check(t, newSiteChecker(t, s), ".well-known/resourcesync")
		reports, err := newSiteChecker(t, s).Check(t.Context(), siteHost+c.address)
		if err != nil || len(reports) != len(want) {
			t.Errorf("%s: %d documents, want %d (%v)", c.name, len(reports), len(want), err)
			continue
		}
		for _, r := range reports {
			if len(r.Findings) > 0 {
				t.Errorf("%s: %s: %v", c.name, r.Location, r.Findings)
			}
		}
	}
	s := &site{pages: map[string]string{"": "<html></html>"}, answers: map[string]Fetched{}}
	if _, err := newSiteChecker(t, s).Check(t.Context(), siteHost); err == nil || !strings.Contains(err.Error(), "Source Description") {
		t.Errorf("a page that leads nowhere: %v", err)
	}
	delete(s.pages, "")
	if _, err := newSiteChecker(t, s).Check(t.Context(), siteHost); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("nothing at all: %v", err)
	}
}

func TestCheckerEnds(t *testing.T) {
	s := goodSite(t)
	if _, err := newSiteChecker(t, s).Check(t.Context(), siteHost+"none.xml"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v, want one that says 404", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := newSiteChecker(t, s)
	c.o.Progress = func(location string) {
		if strings.HasSuffix(location, "rl-2.xml") {
			cancel()
		}
	}
	if reports, err := c.Check(ctx, siteHost+".well-known/resourcesync"); !errors.Is(err, context.Canceled) || len(reports) == 0 {
		t.Errorf("%d reports, %v", len(reports), err)
	}
	c = newSiteChecker(t, s)
	c.o.MaxDocuments = 3
	c.o.SkipPackages = true
	if found := check(t, c, ".well-known/resourcesync"); len(found) != 3 {
		t.Errorf("%d documents were read, want 3", len(found))
	}
}

// Findings beyond the bound are counted, by rule and severity: one stands for them.
func TestCheckerCountsTheRest(t *testing.T) {
	s := goodSite(t)
	var parts, entries []string
	for i := range 150 {
		parts = append(parts, sm(fmt.Sprintf("set/none-%d.xml", i), ""))
		entries = append(entries, u(fmt.Sprintf("r%d", i), ""))
	}
	parts = append(parts, sm("set/rl-1.xml", ""), sm("set/rl-2.xml", ""))
	s.pages["set/resourcelist.xml"] = docOf("sitemapindex", `<rs:md capability="resourcelist" `+at0+`/>`, parts...)
	for _, part := range []string{"set/rl-1.xml", "set/rl-2.xml"} {
		s.pages[part] = docOf("urlset", `<rs:md capability="resourcelist" `+at0+`/>`, entries...)
	}
	c := newSiteChecker(t, s)
	c.o.Sample = 0
	for range 2 { // each check counts anew
		in, full := map[string]int{}, 0
		for _, f := range check(t, c, "set/resourcelist.xml")["set/resourcelist.xml"] {
			in[fmt.Sprintf("%s%d", f.Severity, f.Rule)] += f.Count()
			full++
		}
		if in["E70"] != 150 || in["W68"] != 150 || full > 210 {
			t.Errorf("%v in %d findings, want 150 of E70 and W68", in, full)
		}
	}
}
