package check

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rsbridge/rsbridge/resourcesync"
)

const nsAttrs = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"`

const (
	linkUp    = `<rs:ln rel="up" href="http://src.example/capabilitylist.xml"/>`
	linkAbout = `<rs:ln rel="describedby" href="http://src.example/about"/>`
)

// docOf makes a document: root is urlset or sitemapindex with its rs elements.
func docOf(root, rs string, entries ...string) string {
	return fmt.Sprintf("<%s %s>\n%s\n%s\n</%s>", root, nsAttrs, rs, strings.Join(entries, "\n"), root)
}

func rl(md string, entries ...string) string {
	return docOf("urlset", linkUp+`<rs:md capability="resourcelist" at="2024-05-01T00:00:00Z" `+md+`/>`, entries...)
}

func cl(md string, entries ...string) string {
	return docOf("urlset", linkUp+`<rs:md capability="changelist" from="2024-05-01T00:00:00Z" `+md+`/>`, entries...)
}

func of(capability, attrs string, entries ...string) string {
	return docOf("urlset", linkUp+linkAbout+`<rs:md capability="`+capability+`" `+attrs+`/>`, entries...)
}

func indexOf(capability, attrs string, entries ...string) string {
	return docOf("sitemapindex", linkUp+`<rs:md capability="`+capability+`" `+attrs+`/>`, entries...)
}

// u makes an entry.
func u(loc, inside string) string {
	return `<url><loc>http://src.example/` + loc + `</loc>` + inside + `</url>`
}

func sm(loc, inside string) string {
	return `<sitemap><loc>http://src.example/` + loc + `</loc>` + inside + `</sitemap>`
}

const (
	at0   = `at="2024-05-01T00:00:00Z"`
	from0 = `from="2024-05-01T00:00:00Z"`
	day2  = `from="2024-05-01T00:00:00Z" until="2024-05-02T00:00:00Z"`
	day3  = `from="2024-05-02T00:00:00Z" until="2024-05-03T00:00:00Z"`
	day4  = `from="2024-05-03T00:00:00Z" until="2024-05-04T00:00:00Z"`
	zipMD = `type="application/zip" length="3"`
	upd   = `<rs:md change="updated" datetime="2024-05-01T10:00:00Z"/>`
	sha   = `sha-256:01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b`
	patch = `<rs:ln rel="http://www.openarchives.org/rs/terms/patch" href="http://src.example/p" type="application/json-patch+json"/>`
)

// Each offline rule: a document that breaks it, and what is found; findings of
// severity I beside it are passed over.
func TestRules(t *testing.T) {
	offline := offlineRules(t)
	for _, c := range []struct {
		want string // findings of severity E and W, and of I where its rule is named
		doc  string
	}{
		{"E1", `<urlset`}, {"E1", rl("", u("a", "")) + "x"}, {"E1", docOf("urlset", `<a xmlns="urn:x">`)},
		{"W2", "<!DOCTYPE urlset>" + rl("")}, {"E2 W2", "<!DOCTYPE urlset [<!ATTLIST url a CDATA #IMPLIED>]>" + rl("")}, {"E2 E3 E5", `<?xml version="1.0" encoding="ISO-8859-1"?><urlset/>`}, {"E2 E3", "<urlset>\xff</urlset>"},
		{"E3", `<html/>`}, {"E3", `<feed xmlns="http://www.w3.org/2005/Atom"/>`}, {"E3 E5", `<urlset xmlns="https://www.sitemaps.org/schemas/sitemap/0.9"/>`},
		{"E4", rl("", u("a", ""), sm("b", ""))}, {"E4", indexOf("resourcelist", at0, sm("a", ""), u("b", ""))}, {"E4", rl("", `<loc>http://src.example/a</loc>`)},
		{"E5", docOf("urlset", "", u("a", ""))}, {"E5", docOf("urlset", linkUp+`<rs:md capability="resourcelist" `+at0+`/><rs:md capability="resourcelist"/>`, u("a", ""))},
		{"E6", docOf("urlset", `<rs:md at="2024-05-01T00:00:00Z"/>`, u("a", ""))},
		{"I7", docOf("urlset", `<rs:md capability="ressourcelist"/>`, u("a", ""))},
		{"E8 I11", strings.ReplaceAll(docOf("urlset", linkUp+`<rs:md capability="resourcelist" `+at0+` modified="2024-05-01T00:00:00Z"/>`, u("a", "")), "/rs/terms/", "/rs/")}, {"E8", rl("", u("a", `<rs:link rel="up" href="http://src.example/"/>`))},
		{"E9", rl("", u("a", `<rs:md rs:type="text/turtle"/>`))}, {"E9", strings.Replace(rl("", u("a", "")), "<urlset", `<urlset rs:x="1"`, 1)},
		{"E10", rl("", u("a", `<rs:md etag="1"/>`))}, {"E10", rl("", u("a", `<rs:ln rel="duplicate" href="http://src.example/b" title="x"/>`))}, {"", rl("", u("a", `<rs:md xmlns:x="urn:x" x:etag="1"/>`))},
		{"I10", rl(`length="5"`, u("a", ""))},
		{"I11", rl("", u("a", `<rs:md modified="2024-05-01T00:00:00Z"/>`))}, {"I11", docOf("urlset", linkAbout+`<rs:md capability="resourcesync"/>`, u("a", linkAbout))}, {"I11", docOf("urlset", linkUp+`<rs:ln rel="resourcesync" href="http://src.example/c"/><rs:md capability="resourcelist" `+at0+`/>`, u("a", ""))},
		{"E19 E21 I11", of("resourcelist", from0, u("a", ""))},
		{"I14", rl("", u("a", `<rs:md type="text/turtle"/><lastmod>2024-04-01T00:00:00Z</lastmod>`))}, {"I14", docOf("urlset", `<rs:md capability="resourcelist" `+at0+`/>`, u("a", ""), linkUp)},
		{"I15", rl("", u("a", `<lastmod>2024-04</lastmod>`))}, {"I15", rl("", u("a", `<rs:md type="application/vnd.x"/>`))}, {"", rl("", u("a", `<rs:md type="application/ld+json"/>`))}, {"I15", rl("")}, {"I15", rl("", u(strings.Repeat("a", 3000), ""))}, {"I15", rl("", "text", u("a", ""))}, {"I15", rl("", u("a", "<title>x</title>"))},
		{"E16", indexOf("resourcedump-manifest", at0, sm("a", ""))}, {"E16", indexOf("framework-notification", "", sm("a", ""))},
		{"W17", indexOf("capabilitylist", "", sm("a", ""))},
		{"E18", docOf("sitemapindex", `<rs:md capability="description"/>`, sm("a", `<rs:md capability="capabilitylist"/>`))}, {"", docOf("sitemapindex", `<rs:md capability="description"/>`, sm("a", `<rs:md capability="description"/>`))},
		{"E19", of("resourcelist", "", u("a", ""))}, {"E19", indexOf("resourcedump", "", sm("a", ""))}, {"E20", of("changelist", "", u("a", upd))}, {"E20", of("changedump-manifest", "")},
		{"E21", cl(at0, u("a", upd))}, {"E21", rl(`until="2024-05-01T00:00:00Z"`, u("a", ""))},
		{"I22", of("resourcelist-archive", at0, u("a", ""))}, {"I22", of("capabilitylist", from0, u("a", `<rs:md capability="resourcelist"/>`))},
		{"E19 E23", of("resourcelist", `at=""`, u("a", ""))}, {"E23", of("resourcelist", `at="2024-05-01 00:00:00Z"`, u("a", ""))}, {"E23", of("resourcelist", `at="2024-05-01T00:00:00"`, u("a", ""))}, {"E23", of("changelist", `from="2024-02-30"`, u("a", upd))},
		{"W24 I15", of("resourcelist", `at="2024-05-01"`, u("a", ""))}, {"W24", of("resourcelist", `at="2024-05-01T00:00:00+00:00"`, u("a", ""))},
		{"E25", rl(`completed="2024-04-30T00:00:00Z"`, u("a", ""))}, {"E26 E83", cl(`until="2024-04-30T00:00:00Z"`, u("a", upd))},
		{"I27", of("resourcelist", `at="2030-05-01T00:00:00Z"`, u("a", ""))},
		{"E28", rl("", u("a", `<rs:ln rel="duplicate"/>`))}, {"E28", rl("", u("a", `<rs:ln href="http://src.example/b"/>`))},
		{"E29", rl("", u("a", `<rs:ln rel="duplicate" href="b"/>`))}, {"E29", rl("", u("a", `<rs:ln rel="duplicate" href="http://src.example/a b"/>`))}, {"E29", rl("", u("a", `<rs:ln rel="duplicate" href="http:///b"/>`))},
		{"E30", docOf("urlset", `<rs:md capability="resourcelist" `+at0+`/>`, u("a", ""))},
		{"W31", docOf("urlset", linkUp+linkUp+`<rs:md capability="resourcelist" `+at0+`/>`, u("a", ""))},
		{"W33", docOf("urlset", linkUp+`<rs:md capability="capabilitylist"/>`, u("a", `<rs:md capability="resourcelist"/>`))},
		{"E34", of("description", "", u("a", linkAbout))},
		{"E38", rl("", u("a", `<rs:ln rel="my-own" href="http://src.example/b"/>`))}, {"E38", rl("", u("a", `<rs:ln rel="up index" href="http://src.example/b"/>`))}, {"", rl("", u("a", `<rs:ln rel="urn:x:own" href="http://src.example/b"/>`))},
		{"I39", docOf("urlset", linkUp+`<rs:ln rel="describedby" href="http://src.example/b" type="text/turtle"/><rs:md capability="resourcelist" `+at0+`/>`, u("a", ""))},
		{"E40", rl("", `<url/>`)}, {"E40", rl("", `<url><loc></loc></url>`)}, {"E40", rl("", `<url><loc>a/b</loc></url>`)}, {"E40", rl("", u("a{b}", ""))}, {"E40", rl("", u("a%zz", ""))}, {"E40", rl("", u("a", "<loc>http://src.example/b</loc>"))},
		{"W40", rl("", `<url><loc>mailto:ada@src.example</loc></url>`)}, {"W40", rl("", `<url><loc>ftp://src.example/a</loc></url>`)}, {"W40", rl("", u("a#b", ""))},
		{"W15", rl("", u("a", `<priority>7</priority>`))}, {"W15", rl("", u("a", `<priority>high</priority>`))}, {"", rl("", u("a", `<priority>0.5</priority>`))},
		{"E41", rl("", u("a", `<rs:md/><rs:md/>`))},
		{"E42", rl("", u("a", `<lastmod>soon</lastmod>`))}, {"E42", rl("", u("a", `<lastmod>2024-04-01</lastmod><lastmod>2024-04-01</lastmod>`))}, {"", rl("", u("a", "<lastmod>\n2024-04-01</lastmod>"))},
		{"E43", rl("", u("a", `<changefreq>sometimes</changefreq>`))}, {"E44", rl("", `<url id="1"><loc>http://src.example/a</loc></url>`)},
		{"E45", cl("", u("a", `<rs:md change="Updated" datetime="2024-05-01T10:00:00Z"/>`))}, {"E46", rl("", u("a", `<rs:md length="-1"/>`))}, {"E46", rl("", u("a", `<rs:md length="1e3"/>`))},
		{"E47", rl("", u("a", `<rs:md hash="md5:12"/>`))}, {"E47", rl("", u("a", `<rs:md hash="`+sha+" "+sha+`"/>`))}, {"E47", rl("", u("a", `<rs:md hash=""/>`))}, {"I47", rl("", u("a", `<rs:md hash="md5:Yx8m6CqWBJjKT5VBggoWeQ=="/>`))}, {"W127", rl("", u("a", `<rs:md hash="crc32:12"/>`))}, {"I127", rl("", u("a", `<rs:md hash="crc32:12 `+sha+`"/>`))},
		{"E48", rl("", u("a", `<rs:md type="turtle"/>`))}, {"I48", rl("", u("a", `<rs:md type="text/turtle; charset=utf-8"/>`))},
		{"E49", rl("", u("a", `<rs:md pri="1"/>`))}, {"E49", rl("", u("a", `<rs:ln rel="duplicate" href="http://src.example/b" pri="0"/>`))},
		{"E50", rl("", u("a", `<rs:md path="/a"/>`))}, {"E50", of("resourcedump-manifest", at0, u("a", `<rs:md type="a/b" path="a"/>`))}, {"E50", of("resourcedump-manifest", at0, u("a", `<rs:md type="a/b" path="/../a"/>`))}, {"E50", of("resourcedump-manifest", at0, u("a", `<rs:md type="a/b" path="/a"/><rs:ln rel="duplicate" href="http://src.example/b" path="/b"/>`))},
		{"E51", rl("", u("a", `<rs:md change="updated"/>`))}, {"E51", rl("", u("a", `<rs:md datetime="2024-05-01T10:00:00Z"/>`))}, {"E51", cl(`change="updated"`, u("a", upd))},
		{"E52", rl("", u("a", `<rs:md `+at0+`/>`))}, {"E53", rl("", u("a", `<rs:md `+from0+`/>`))}, {"", indexOf("resourcelist", at0, sm("a", `<rs:md `+at0+`/>`))},
		{"E54", indexOf("resourcelist", at0, sm("a", `<rs:md at="then"/>`))}, {"E54", indexOf("resourcelist", at0, sm("a", `<rs:md at="2024-05-02T00:00:00Z" completed="2024-05-01T00:00:00Z"/>`))},
		{"W55", indexOf("resourcelist", at0, sm("a", `<rs:md at="2024-04-30T00:00:00Z"/>`))}, {"W55", of("changedump", day2, u("a", `<rs:md `+zipMD+` from="2024-05-01T00:00:00Z" until="2024-05-03T00:00:00Z"/>`))},
		{"E56", rl("", u("a", `<rs:ln rel="memento" href="http://src.example/b" modified="then"/>`))},
		{"E57", docOf("urlset", linkAbout+`<rs:md capability="description"/>`, u("a", `<rs:md capability="resourcelist"/>`+linkAbout))}, {"W58 I58", docOf("urlset", linkAbout+`<rs:md capability="description"/>`, u("a", ""))},
		{"W59", of("capabilitylist", "", u("a", `<lastmod>2024-04-01</lastmod><rs:md capability="resourcelist"/>`))}, {"E60", of("capabilitylist", "", u("a", ""))},
		{"E61", of("capabilitylist", "", u("a", `<rs:md capability="resourcelist"/>`), u("b", `<rs:md capability="resourcelist"/>`))}, {"E62", of("capabilitylist", "", u("a", `<rs:md capability="capabilitylist"/>`))},
		{"E65", of("capabilitylist", "", u("a", `<rs:md capability="change-notification"/>`))},
		{"", of("capabilitylist", "", u("a", `<rs:md capability="change-notification"/><rs:ln rel="hub" href="http://hub.example/"/>`), `<url><loc>wss://src.example/socket</loc><rs:md capability="change-notification"/></url>`)},
		{"W68", rl("", u("a", ""), u("a", ""))}, {"W69", rl("", u("a", `<lastmod>2024-05-02T00:00:00Z</lastmod>`))}, {"", rl(`completed="2024-05-03T00:00:00Z"`, u("a", `<lastmod>2024-05-02T00:00:00Z</lastmod>`))},
		{"E70", indexOf("resourcelist", at0, sm("a", `<rs:md capability="changelist"/>`))}, {"W71", of("resourcedump", at0, u("a", `<rs:md type="application/zip"/>`))},
		{"W72", of("resourcedump", at0, u("a", `<rs:md `+zipMD+`/>`), u("b", `<rs:md type="application/x-tar" length="3"/>`))}, {"I72", of("resourcedump", at0, u("b", `<rs:md type="application/x-tar" length="3"/>`))},
		{"E76", of("resourcedump-manifest", at0, u("a", `<rs:md type="a/b"/>`))}, {"I77", of("resourcedump-manifest", at0, u("a", `<rs:md path="/a"/>`))}, {"W77", of("changedump-manifest", from0, u("a", `<rs:md change="updated" datetime="2024-05-01T10:00:00Z" path="/a"/>`))},
		{"I80", of("resourcedump-manifest", at0, u("a", `<rs:md type="a/b" path="/a"/>`), u("b", `<rs:md type="a/b" path="/a"/>`))},
		{"E82", cl("", u("a", `<rs:md datetime="2024-05-01T10:00:00Z"/>`))}, {"E83", cl("", u("a", `<rs:md change="updated" datetime="2024-04-01T10:00:00Z"/>`))}, {"E83", cl(`until="2024-05-01T09:00:00Z"`, u("a", upd))},
		{"E84", cl("", u("a", `<rs:md change="updated" datetime="2024-05-01T11:00:00Z"/>`), u("b", upd))}, {"", cl("", u("a", upd), u("b", upd))},
		{"W85", of("changedump", from0, u("b", `<rs:md `+zipMD+` `+day3+`/>`), u("a", `<rs:md `+zipMD+` `+day2+`/>`))},
		{"E86 W90", indexOf("changelist", from0, sm("b", `<rs:md `+day3+`/>`), sm("a", `<rs:md `+day2+`/>`))}, {"W87", indexOf("changelist", from0, sm("a", ""))},
		{"I89", indexOf("changelist", from0, sm("a", `<rs:md `+from0+`/>`), sm("b", `<rs:md `+day3+`/>`))}, {"W90", indexOf("changelist", from0, sm("a", `<rs:md `+day2+`/>`), sm("b", `<rs:md `+day4+`/>`))}, {"", indexOf("changelist", from0, sm("a", `<rs:md `+day2+`/>`), sm("b", `<rs:md `+day3+`/>`))},
		{"I91", cl("", u("a", `<rs:md change="updated"/>`))}, {"E92", of("changedump-manifest", from0, u("a", `<rs:md change="updated" type="a/b" datetime="2024-05-01T10:00:00Z"/>`))},
		{"W93", cl("", u("a", `<rs:md change="deleted" datetime="2024-05-01T10:00:00Z" length="3"/>`))}, {"I94", cl("", u("a", `<rs:md change="deleted" datetime="2024-05-01T10:00:00Z"/>`), u("a", upd))}, {"I94", cl("", u("a", upd), u("a", `<rs:md change="created" datetime="2024-05-01T10:00:00Z"/>`))},
		{"W125", cl("", u("a", `<rs:md change="updated" datetime="2024-06-01T00:06:00Z"/>`))}, {"", cl("", u("a", `<rs:md change="updated" datetime="2024-06-01T00:04:00Z"/>`))},
		{"W126", numbered("3", "5")}, {"W126", numbered("3", "2")}, {"W126", numbered("3", "x")}, {"W126", numbered("3", "3", "4")}, {"", numbered("3", "4", "5")}, {"", strings.Replace(strings.Replace(numbered("3", "3", "4"), "updated", "deleted", 1), "updated", "created", 1)}, {"W126", numbered("3", "2", "4", "6")},
		{"W40", rl("", `<url><loc>ws://src.example/a</loc></url>`)},
		{"E98", rl("", u("a", patch))}, {"I98", cl("", u("a", `<rs:md change="deleted" datetime="2024-05-01T10:00:00Z"/>`+patch))}, {"E99", cl("", u("a", upd+`<rs:ln rel="http://www.openarchives.org/rs/terms/patch" href="http://src.example/p"/>`))},
		{"E99", of("changedump-manifest", from0, u("a", `<rs:md change="updated" type="a/b" path="/a" datetime="2024-05-01T10:00:00Z"/>`+patch))},
		{"W100", rl("", u("a", `<rs:ln rel="timegate" href="http://src.example/t" type="a/b"/>`))}, {"W101", rl("", u("a", `<rs:ln rel="duplicate" href="http://src.example/t" type="a/b"/>`))}, {"W102", rl("", u("a", `<rs:ln rel="alternate" href="http://src.example/t"/>`))},
		{"I103", rl("", u("a", `<rs:ln rel="via" href="http://src.example/t"/><rs:ln rel="via" href="http://src.example/v"/>`))},
		{"I104", rl("", u("a", `<rs:ln rel="describedby" href="http://src.example/b"/>`), u("b", ""))}, {"", rl("", u("a", `<rs:ln rel="describedby" href="http://src.example/b"/>`), u("b", `<rs:ln rel="describes" href="http://src.example/a"/>`))},
		{"E105", rl("", u("a", `<rs:ln rel="contents" href="http://src.example/m"/>`))},
		{"E113", of("changelist-archive", "", u("b", `<rs:md `+day3+`/>`), u("a", `<rs:md `+day2+`/>`))}, {"W115", of("changelist-archive", "", u("b", `<rs:md `+day2+`/>`), u("a", `<rs:md `+day4+`/>`))}, {"W116", indexOf("changelist-archive", "", sm("b", `<lastmod>2024-05-01</lastmod>`))},
		{"E118", of("change-notification", from0, u("a", upd))}, {"I118", of("changelist-notification", day2, u("a", upd))},
		{"E120", of("framework-notification", "", u("a", `<rs:md change="updated" capability="resourcedump-manifest"/>`))}, {"E120", of("framework-notification", "", u("a", `<rs:md change="updated" capability="change-notification"/>`))},
		{"W120", of("framework-notification", "", u("a", `<rs:md change="updated" capability="resourcelists"/>`))}, {"", of("framework-notification", "", u("a", `<rs:md change="updated" capability="resourcelist-archive"/>`), u("b", `<rs:md change="created" capability="http://src.example/own"/>`))},
		{"E120", of("framework-notification", "", u("a", `<rs:md change="updated"/>`))}, {"E120", of("framework-notification", "", u("a", `<rs:md change="deleted" capability="resourcelist"/>`))}, {"", of("framework-notification", "", u("a", `<rs:md change="deleted" capability="capabilitylist"/>`))},
	} {
		_, findings, err := Validate(strings.NewReader(c.doc), ValidateOptions{Now: at("2024-06-01T00:00:00Z")})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, f := range findings {
			key := fmt.Sprintf("%s%d", f.Severity, f.Rule)
			seen[key] = true
			if f.Severity != SeverityInfo && !strings.Contains(" "+c.want+" ", " "+key+" ") {
				t.Errorf("want %q, found %s\n%s", c.want, f, c.doc)
			}
			if f.Message == "" || len(f.Message) > 600 {
				t.Errorf("%s has a message of %d bytes", key, len(f.Message))
			}
			if !offline[strconv.Itoa(f.Rule)] {
				t.Errorf("%s is no offline rule", key)
			}
		}
		for want := range strings.FieldsSeq(c.want) {
			if !seen[want] {
				t.Errorf("%s was not found, but %v\n%s", want, findings, c.doc)
			}
		}
	}
}

// numbered is a Change List of changes with these numbers.
func numbered(numbers ...string) string {
	var entries []string
	for i, n := range numbers {
		entries = append(entries, u(fmt.Sprint("n", i), `<rs:md change="updated" datetime="2024-05-01T10:00:00Z" xmlns:rsb="urn:rsbridge:terms" rsb:sequence="`+n+`"/>`))
	}
	return cl("", entries...)
}

// offlineRules are those that docs/reference/rules.md marks as such, and 70, whose other half needs
// more than one document.
func offlineRules(t testing.TB) map[string]bool {
	t.Helper()
	out := map[string]bool{"70": true}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| [EWI] \| .+ \|$`).FindAllStringSubmatch(string(read(t, "../../docs/reference/rules.md")), -1) {
		out[row[1]] = true
	}
	if len(out) < 80 {
		t.Fatalf("%d offline rules in docs/reference/rules.md", len(out))
	}
	return out
}

// Large documents: rules 12 and 13, the count of what is left out, strictness.
func TestValidateLargeAndStrict(t *testing.T) {
	var b bytes.Buffer
	w, err := resourcesync.NewWriter(&b, resourcesync.Head{Meta: resourcesync.Meta{Capability: resourcesync.ResourceList, At: at("2024-05-01T00:00:00Z")}, Links: []resourcesync.Link{{Rel: resourcesync.RelUp, Href: "http://src.example/c"}}})
	if err != nil {
		t.Fatal(err)
	}
	e := sampleEntry(1)
	e.LastMod = at("2024-04-01T00:00:00Z")
	e.Meta.Ext = map[string]string{"filler": strings.Repeat("x", 600)}
	for range 50_001 {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, findings, err := Validate(bytes.NewReader(b.Bytes()), ValidateOptions{MaxPerRule: 3})
	if err != nil || h.Meta.Capability != resourcesync.ResourceList || h.Dialect != resourcesync.Dialect11 {
		t.Fatalf("%+v, %v", h, err)
	}
	counts := map[int]int{}
	for _, f := range findings {
		counts[f.Rule]++
		if f.Severity != SeverityWarning {
			t.Error(f)
		}
	}
	if counts[12] != 1 || counts[13] != 1 || counts[68] != 4 || len(counts) != 3 {
		t.Errorf("findings by rule: %v", counts)
	}
	if last := findings[len(findings)-1]; last.Rule != 68 || !strings.Contains(last.Message, "49997 more") {
		t.Errorf("last finding %s", last)
	}
	_, findings, err = Validate(strings.NewReader(rl("", u("a", ""), u("a", ""), u("a", ""))), ValidateOptions{Strict: true, MaxPerRule: 1})
	if err != nil || len(findings) != 2 || findings[0].Severity != SeverityError || findings[1].Severity != SeverityError {
		t.Errorf("strict: %v, %v", findings, err)
	}
	// What is left out is as severe as what it is, and no more.
	_, findings, err = Validate(strings.NewReader(rl("", u("a", `<rs:md type="text/x.y"/>`), u("b", `<rs:md type="text/x.y"/>`))), ValidateOptions{MaxPerRule: 1})
	if err != nil || len(findings) != 2 || findings[1].Severity != SeverityInfo || !strings.Contains(findings[1].Message, "1 more") {
		t.Errorf("left out: %v, %v", findings, err)
	}
	_, findings, err = Validate(strings.NewReader(cl("", u("a", `<rs:md change="updated"/>`), u("b", `<rs:md change="updated"/>`))), ValidateOptions{MaxPerRule: 1})
	if err != nil || len(findings) != 1 || findings[0].Rule != 91 || findings[0].Severity != SeverityInfo {
		t.Errorf("without datetime: %v, %v", findings, err)
	}
}

func TestValidateGivesEntriesAndErrors(t *testing.T) {
	doc := rl("", u("a", `<rs:md length="3"/>`), u("b", ""))
	var locs []string
	h, _, err := Validate(strings.NewReader(doc), ValidateOptions{Entry: func(h *resourcesync.Head, e *resourcesync.Entry) error {
		if h.Meta.Capability != resourcesync.ResourceList || h.Link(resourcesync.RelUp) == "" {
			t.Errorf("head %+v", h)
		}
		locs = append(locs, e.Loc)
		return nil
	}})
	if err != nil || strings.Join(locs, " ") != "http://src.example/a http://src.example/b" || h.Parent() == "" {
		t.Errorf("%v, %v", locs, err)
	}
	stop := errors.New("stop")
	if _, _, err := Validate(strings.NewReader(doc), ValidateOptions{Entry: func(*resourcesync.Head, *resourcesync.Entry) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("error %v, want that of Entry", err)
	}
	broken := errors.New("broken")
	if _, _, err := Validate(iotest.ErrReader(broken), ValidateOptions{}); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the reader", err)
	}
	// A relative loc is no address; a relative href is advice where the document's address is known.
	_, findings, err := Validate(strings.NewReader(rl("", `<url><loc>r/a</loc><rs:ln rel="duplicate" href="b"/></url>`)), ValidateOptions{Location: "http://src.example/x/list.xml"})
	if err != nil || len(findings) != 2 || findings[0].Severity != SeverityError || !strings.Contains(findings[0].Message, "http://src.example/x/r/a") || findings[1].Severity != SeverityInfo {
		t.Errorf("%v, %v", findings, err)
	}
}

// What the Writer writes keeps the rules.
func TestWrittenDocuments(t *testing.T) {
	files, err := filepath.Glob("../testdata/written/*.xml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, path := range files {
		_, findings, err := Validate(bytes.NewReader(read(t, path)), ValidateOptions{Now: at("2024-06-01T00:00:00Z")})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			bad := filepath.Base(path) == "resourcelist.xml" && f.Rule == 40 // the address with < > and "
			if f.Severity != SeverityInfo && !bad {
				t.Errorf("%s: %s", path, f)
			}
		}
	}
}
