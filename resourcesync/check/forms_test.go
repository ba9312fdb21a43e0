package check

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/rsbridge/rsbridge/resourcesync"
)

func encoded(t *testing.T, e encoding.Encoding, s string) string {
	t.Helper()
	out, err := e.NewEncoder().String(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func gzipped(s string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// TestForms: what the Sitemap protocol allows beside XML in UTF-8, and the slips that
// crawlers forgive, say the same as the plain document, with a warning; strictly, and in
// the validator, each is a fault.
func TestForms(t *testing.T) {
	const (
		decl   = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
		body   = `<url><loc>http://src.example/a?x=1&amp;y=é</loc></url>` + "\n" + `<url><loc>http://src.example/b</loc></url></urlset>`
		list   = `<urlset xmlns="` + resourcesync.NamespaceSitemap + `">` + "\n" + body
		rs     = `<urlset xmlns="` + resourcesync.NamespaceSitemap + `" xmlns:rs="` + resourcesync.NamespaceRS + `"><rs:md capability="resourcelist" at="2024-05-01T00:00:00Z"/>` + "\n" + body
		text   = "http://src.example/a?x=1&y=é\nhttp://src.example/b\n"
		latin  = `<?xml version='1.0' encoding='ISO-8859-1'?>` + "\n" + list
		both   = "http://src.example/a?x=1&y=é http://src.example/b"
		wide   = `<?xml version="1.0" encoding="UTF-16"?>` + "\n" + list
		itemsA = `<entry><title>new</title><link rel="self" href="/x"/><link rel="alternate" href="http://src.example/b"/><updated>2024-05-02T00:00:00Z</updated></entry>` +
			`<entry><link href="/a?x=1&amp;y=é"/><published>2024-05-01T00:00:00Z</published></entry>`
		itemsR = `<item><link> http://src.example/b </link><pubDate>Thu, 02 May 2024 00:00:00 GMT</pubDate></item><item><guid>http://src.example/a?x=1&amp;y=é</guid><pubDate>Wed, 01 May 2024 02:00:00 +0200</pubDate></item>`
	)
	for name, c := range map[string]struct {
		doc    string
		warn   string // of the reader
		rule   string // of the validator
		served string // the content type
	}{
		"mark":                       {"\xef\xbb\xbf" + decl + rs, "", "", ""},
		"blank line before":          {"\n  \n" + decl + rs, "white space before", "E1", ""},
		"blank line and mark":        {"\xef\xbb\xbf\n" + decl + rs, "white space before", "E1", ""},
		"blank line, no declaration": {"\n\n" + rs, "", "", ""},
		"Latin-1":                    {encoded(t, charmap.ISO8859_1, latin), "iso-8859-1", "E2", ""},
		"Latin-1 after a blank line": {encoded(t, charmap.ISO8859_1, "\n"+latin), "iso-8859-1", "E1", ""},
		"UTF-16":                     {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), wide), "UTF-16", "E2", ""},
		"UTF-16, big":                {encoded(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), wide), "UTF-16", "E2", ""},
		"UTF-16 without mark":        {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), wide), "UTF-16", "E2", ""},
		"UTF-32":                     {encoded(t, utf32.UTF32(utf32.BigEndian, utf32.UseBOM), list), "UTF-32", "E2", ""},
		"said to be UTF-16":          {wide, "utf-16", "E2", ""},
		"no namespace":               {strings.ReplaceAll(list, ` xmlns="`+resourcesync.NamespaceSitemap+`"`, ""), "no namespace", "E3", ""},
		"https":                      {strings.Replace(rs, "http://www.sitemaps", "https://www.sitemaps", 1), "https://www.sitemaps", "E3", ""},
		"old namespace":              {strings.Replace(rs, resourcesync.NamespaceSitemap, "http://www.google.com/schemas/sitemap/0.84", 1), "0.84", "E3", ""},
		"slash":                      {strings.Replace(rs, "sitemap/0.9", "sitemap/0.9/", 1), "0.9/", "E3", ""},
		"prefix on the root alone":   {strings.Replace(strings.Replace(list, "<urlset xmlns=", "<sm:urlset xmlns:sm=", 1), "</urlset>", "</sm:urlset>", 1), "", "", ""},
		"rs with https":              {strings.Replace(rs, "http://www.openarchives", "https://www.openarchives", 1), "https://www.openarchives", "E8", ""},
		"rs without slash":           {strings.Replace(rs, "rs/terms/", "rs/terms", 1), "rs/terms", "E8", ""},
		"rs undeclared":              {strings.Replace(rs, ` xmlns:rs="`+resourcesync.NamespaceRS+`"`, "", 1), "not declared", "E1", ""},
		"text":                       {text, "plain text", "E3", ""},
		"text of Windows":            {"\xef\xbb\xbf# pages\r\n" + strings.ReplaceAll(text, "\n", "\r\n\r\n"), "plain text", "E3", ""},
		"text in UTF-16":             {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), text), "plain text", "E2", ""},
		"text without an end":        {strings.TrimSpace(text), "plain text", "E3", ""},
		"Atom":                       {`<feed xmlns="http://www.w3.org/2005/Atom">` + itemsA + `</feed>`, "Atom feed", "E3", ""},
		"RSS":                        {decl + `<rss version="2.0"><channel><title>a</title><link>http://src.example/</link>` + itemsR + `</channel></rss>`, "RSS feed", "E3", ""},
		"RSS in Latin-1":             {encoded(t, charmap.ISO8859_1, `<?xml version="1.0" encoding="ISO-8859-1"?><rss><channel>`+itemsR+`</channel></rss>`), "RSS feed", "E2", ""},
		"RSS 0.91": {decl + `<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://127.0.0.1:1/rss-0.91.dtd">` +
			`<rss version="0.91"><channel>` + itemsR + `</channel></rss>`, "RSS feed", "E3", ""},
		"RSS 1.0": {decl + `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns="http://purl.org/rss/1.0/">` +
			`<channel rdf:about="http://src.example/"><link>http://src.example/</link><items><rdf:Seq><rdf:li resource="/b"/></rdf:Seq></items></channel>` +
			`<item rdf:about="urn:x:1"><link>http://src.example/b</link><dc:date>2024-05-02</dc:date></item>` +
			`<item rdf:about="http://src.example/a?x=1&amp;y=é"><dc:date>2024-05-01T00:00:00Z</dc:date></item></rdf:RDF>`, "RSS feed", "E3", ""},
		"RSS with slips": {decl + `<rss><channel>` + strings.Replace(itemsR, "&amp;", "&", 1) + `<media:x/></channel></rss>`, "RSS feed", "E3", ""},
		"Atom 0.3": {`<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><link rel="alternate" href="/b"/><modified>2024-05-02T00:00:00Z</modified></entry>` +
			`<entry><link href="/a?x=1&amp;y=é"/><issued>2024-05-01T00:00:00Z</issued></entry></feed>`, "Atom feed", "E3", ""},
		"bare ampersand":                 {strings.Replace(rs, "&amp;", "&", 1), "&amp;", "E1", ""},
		"bare ampersand in href":         {strings.Replace(rs, "<rs:md", `<rs:ln rel="up" href="http://src.example/c?a&b"/><rs:md`, 1), "&amp;", "E1", ""},
		"DTD":                            {decl + "<!DOCTYPE urlset SYSTEM 'http://127.0.0.1:1/x.dtd'>" + rs, "DTD", "W2", ""},
		"DTD with declarations":          {`<!DOCTYPE urlset [<!ENTITY a "]>"><!-- ]> ' --><!ELEMENT urlset (url*)><?p ]>?>]>` + rs, "DTD", "W2", ""},
		"unknown namespace":              {strings.Replace(rs, resourcesync.NamespaceSitemap, "http://x.example/sitemap", 1), "unknown namespace", "E3", ""},
		"unknown namespace, extended":    {strings.Replace(strings.Replace(list, resourcesync.NamespaceSitemap, "http://x.example/sitemap", 1), "<url>", `<url><i:loc xmlns:i="urn:i">urn:no</i:loc>`, 1), "unknown namespace", "E3", ""},
		"undeclared prefix":              {strings.Replace(rs, "<url>", `<url><image:image/>`, 1), "prefix image is not declared", "E1", ""},
		"text behind":                    {rs + "\n0\n", "behind the root", "E1", ""},
		"-- in a comment":                {strings.Replace(rs, "<url>", "<!-- a -- b ---><url>", 1), "inside a comment", "E1", ""},
		"XML 1.1":                        {strings.Replace(decl, "1.0", "1.1", 1) + rs, "1.1", "W2", ""},
		"mark behind a blank line":       {"\n\xef\xbb\xbf" + decl + rs, "white space before", "E1", ""},
		"served as Latin-1":              {doc: encoded(t, charmap.ISO8859_1, list), served: "application/xml; charset=iso-8859-1", warn: `served as "iso-8859-1"`, rule: "E2"},
		"served as Latin-1, UTF-8":       {doc: decl + rs, served: "application/xml; charset=ISO-8859-1", warn: "its bytes tell", rule: "E2"},
		"served as UTF-8, Latin-1":       {doc: encoded(t, charmap.ISO8859_1, latin), served: "text/xml;charset=utf-8", warn: "its bytes tell", rule: "E2"},
		"served as UTF-8, said Latin-1":  {doc: latin, served: `text/xml; charset="UTF-8"`, warn: "its bytes tell", rule: "E2"},
		"served and said Latin-1":        {doc: encoded(t, charmap.ISO8859_1, latin), served: "application/xml; charset=latin1", warn: "declared to be in", rule: "E2"},
		"served as Latin-1, said KOI8-R": {doc: encoded(t, charmap.ISO8859_1, strings.Replace(latin, "ISO-8859-1", "KOI8-R", 1)), served: "text/xml; charset=iso-8859-1", warn: "the header counts", rule: "E2"},
		"text/xml":                       {doc: decl + rs, served: "text/xml"},
		"text/xml, no declaration":       {doc: rs, served: "text/xml"},
		"served as US-ASCII":             {doc: rs, served: "text/xml; charset=us-ascii"},
		"mark, served as Latin-1":        {doc: "\xef\xbb\xbf" + decl + rs, served: "text/xml; charset=iso-8859-1"},
		"UTF-16, served as UTF-8":        {doc: encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), wide), served: "text/xml; charset=utf-8", warn: "UTF-16", rule: "E2"},
		"UTF-16 without mark, served so": {doc: encoded(t, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), list), served: "text/xml; charset=utf-16be", warn: "UTF-16", rule: "E2"},
		"served as UTF-16":               {doc: rs, served: "text/xml; charset=utf-16", warn: "cannot be", rule: "E2"},
		"served as nothing known":        {doc: rs, served: "text/xml; charset=utf8mb4", warn: "cannot be", rule: "E2"},
		"text in Latin-1":                {doc: encoded(t, charmap.ISO8859_1, text), served: "text/plain; charset=iso-8859-1", warn: "plain text", rule: "E3"},
		"text, served as Latin-1":        {doc: text, served: "text/plain; charset=iso-8859-1", warn: "plain text", rule: "E2"},
		"RSS in Latin-1, served so":      {doc: encoded(t, charmap.ISO8859_1, `<rss><channel>`+itemsR+`</channel></rss>`), served: "application/rss+xml; charset=iso-8859-1", warn: "RSS feed", rule: "E3"},
		"Atom with bases": {doc: `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://src.example/deep/x/"><link rel="next" href="?page=2"/><entry xml:base="../../"><link href="b"/><updated>2024-05-02T00:00:00Z</updated></entry>` +
			`<entry><link xml:base="/" href="a?x=1&amp;y=é"/><updated>2024-05-01T00:00:00Z</updated></entry></feed>`, warn: "goes on at ?page=2", rule: "E3"},
		"Atom with links": {doc: `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="urn:m"><entry><link rel="enclosure" href="/no"/><m:link href="/no"/><link rel="http://www.iana.org/assignments/relation/alternate" m:href="/no" href="/b" type="text/html"/>` +
			`<link rel="alternate" href="/b.ttl" type="text/turtle"/><link rel="via" href="/no"/><m:updated>2001-01-01</m:updated><updated>2024-05-02T00:00:00Z</updated></entry>` +
			`<entry><source><link href="/no"/><updated>2001-01-01</updated></source><link href="/a?x=1&amp;y=é"/><updated>2024-05-01T00:00:00Z</updated></entry></feed>`, warn: "Atom feed", rule: "E3"},
		"RSS with modules": {doc: `<rss xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/"><channel><atom:link rel="self" href="/feed"/><image><link>/no</link></image>` +
			`<item><media:link>/no</media:link><media:group><media:content url="/no"/></media:group><atom:link rel="self" href="/no"/><link>http://src.example/b</link><link>http://src.example/no</link><pubDate>2 May 2024</pubDate></item>` +
			`<item><guid isPermaLink="True"><![CDATA[http://src.example/a?x=1&y=é]]></guid><pubDate>Wed, 1 May 24 01:00 CET</pubDate></item></channel></rss>`, warn: "more than one link", rule: "E3"},
		"RSS, guid is no link": {doc: `<rss><channel><item><guid isPermaLink="False">http://src.example/no</guid><link>http://src.example/b</link><pubDate>2024-05-02</pubDate></item>` +
			`<item><guid>urn:uuid:1</guid><link>http://src.example/a?x=1&amp;y=é</link><pubDate>Wednesday, 01-May-24 00:00:00 GMT</pubDate></item></channel></rss>`, warn: "RSS feed", rule: "E3"},
	} {
		for _, in := range []io.Reader{strings.NewReader(c.doc), iotest.OneByteReader(strings.NewReader(c.doc))} {
			r, err := resourcesync.NewReader(in, resourcesync.ReaderOptions{BaseURL: "http://src.example/list.xml", ContentType: c.served})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var locs []string
			for {
				e, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
				if feed := r.Head().Meta.Capability == resourcesync.ChangeList; feed && (e.Meta.Change != resourcesync.Updated || resourcesync.FormatTime(e.Meta.DateTime) != fmt.Sprintf("2024-05-0%dT00:00:00Z", len(locs)+1)) {
					t.Errorf("%s: %+v", name, e.Meta)
				}
				locs = append(locs, e.Loc)
			}
			got := strings.NewReplacer("%C3%A9", "é").Replace(strings.Join(locs, " "))
			if got != both {
				t.Errorf("%s: it lists %q", name, got)
			}
			if warnings := strings.Join(r.Head().Warnings, "\n"); !strings.Contains(warnings, c.warn) {
				t.Errorf("%s: warned of %q, want %q", name, warnings, c.warn)
			}
		}
		if _, _, err := readAll(c.doc, resourcesync.ReaderOptions{BaseURL: "http://src.example/list.xml", ContentType: c.served, Strict: true}); c.rule != "" && err == nil {
			t.Errorf("%s: read strictly without a fault", name)
		}
		_, findings, err := Validate(strings.NewReader(c.doc), ValidateOptions{Location: "http://src.example/list.xml", ContentType: c.served})
		if _, packed, err := Validate(strings.NewReader(gzipped(c.doc)), ValidateOptions{Location: "http://src.example/list.xml", ContentType: c.served}); err != nil || fmt.Sprint(packed) != fmt.Sprint(findings) {
			t.Errorf("%s: packed with gzip the validator finds %v, not %v (%v)", name, packed, findings, err)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found := fmt.Sprint(findings); c.rule != "" && !strings.Contains(found, c.rule+" ") && !strings.Contains(found, c.rule+":") {
			t.Errorf("%s: the validator finds %s, want %s", name, found, c.rule)
		}
	}
}

// TestFeedsWithout: what a feed does not tell is not made up.
func TestFeedsWithout(t *testing.T) {
	item := func(s string) string { return `<rss version="2.0"><channel><item>` + s + `</item></channel></rss>` }
	for doc, want := range map[string]string{ // loc and time of each entry
		`<feed xmlns="http://www.w3.org/2005/Atom"/>`:                                                                 "",
		`<rss version="2.0"><channel/></rss>`:                                                                         "",
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"/>`:         "",
		item(`<guid isPermaLink="false">http://src.example/no</guid>`):                                                " -",
		item(`<guid isPermaLink="no">http://src.example/no</guid>`):                                                   " -",
		item(`<link>http://src.example/a</link><pubDate>yesterday</pubDate>`):                                         "http://src.example/a -",
		item(`<link>a</link><pubDate>yesterday</pubDate><d:date xmlns:d="urn:no">2024-05-01</d:date>`):                "http://src.example/a -",
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://src.example/no</id></entry></feed>`:              " -",
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><link rel="self" href="http://x.example/"/></entry></feed>`: " -",
		`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/d/"><entry><link href="::"/></entry></feed>`:            ":: -",
	} {
		r, entries, err := readAll(doc, resourcesync.ReaderOptions{BaseURL: "http://src.example/feed", KeepFaulty: true})
		if err != nil || !r.Head().Feed || r.Head().Meta.Capability != resourcesync.ChangeList {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		var got []string
		for _, e := range entries {
			at := "-"
			if !e.Meta.DateTime.IsZero() {
				at = resourcesync.FormatTime(e.Meta.DateTime)
			}
			got = append(got, e.Loc+" "+at)
		}
		if got := strings.Join(got, "\n"); got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
	if _, _, err := readAll(`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://[x"><entry><link href="a"/></entry></feed>`, resourcesync.ReaderOptions{}); err == nil || !strings.Contains(err.Error(), `line 1: xml:base "http://[x" is no address`) {
		t.Error(err)
	}
}

// TestFeedTimes: the times of feeds, which are those of mail, and what is written for them.
func TestFeedTimes(t *testing.T) {
	for told, want := range map[string]string{
		"Thu, 02 May 2024 07:08:09 GMT": "2024-05-02T07:08:09Z", "Thu, 02 May 2024 07:08:09 +0530": "2024-05-02T01:38:09Z", "2 May 2024 07:08 -0000": "2024-05-02T07:08:00Z",
		"Thu, 02 May 2024 07:08:09 EST": "2024-05-02T12:08:09Z", "Thu, 02 May 2024 07:08:09 PDT": "2024-05-02T14:08:09Z", "Thu, 02 May 2024 07:08:09 Z": "2024-05-02T07:08:09Z",
		"Thu, 02 May 24 07:08:09 UT": "2024-05-02T07:08:09Z", "02 May 69 00:00:00 GMT": "1969-05-02T00:00:00Z", "Thursday, 02-May-24 07:08:09 GMT": "2024-05-02T07:08:09Z",
		"Thursday, May 2, 2024": "2024-05-02T00:00:00Z", "Thu May  2 07:08:09 2024": "2024-05-02T07:08:09Z", "Thu May  2 07:08:09 CEST 2024": "2024-05-02T05:08:09Z",
		"Thu, 02 Sept 2024 07:08:09 GMT+0200 (CEST)": "2024-09-02T05:08:09Z", "2024-05-02T07:08:09+02:00": "2024-05-02T05:08:09Z", "2024-05-02 07:08:09": "2024-05-02T07:08:09Z",
		"Thu, 02 May 2024 23:59:60 GMT": "2024-05-03T00:00:00Z",
		"Thu, 02 May 2024 07:08:09 XYZ": "", "Thu, 31 Apr 2024 07:08:09 GMT": "", "Thu, 02 May 2024 25:08:09 GMT": "", "02/05/2024": "", "Do, 02 Mai 2024 07:08:09 GMT": "", "1714633689": "", "2 May": "", "-": "", "May": "",
	} {
		r, entries, err := readAll(`<rss><channel><item><link>http://src.example/a</link><pubDate>`+told+`</pubDate></item></channel></rss>`, resourcesync.ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if at := entries[0].Meta.DateTime; !at.IsZero() {
			got = resourcesync.FormatTime(at)
		}
		if warned := strings.Contains(strings.Join(r.Head().Warnings, " "), "is no time"); got != want || warned != (want == "") {
			t.Errorf("%q is %q, want %q; %q", told, got, want, r.Head().Warnings)
		}
	}
}

// A list of lines keeps each line that is no address: an entry that cannot be used is
// a fault, and none is a deletion.
func TestTextListKeepsLines(t *testing.T) {
	head := strings.Repeat("http://src.example/a\n", 60)
	_, entries, err := readAll(head+"no address\n<html>\n\nhttp://src.example/b", resourcesync.ReaderOptions{BaseURL: "http://src.example/list.txt", KeepFaulty: true})
	if err != nil || len(entries) != 63 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	_, entries, err = readAll("http://src.example/a\nhttp://src.example/\xe9\n", resourcesync.ReaderOptions{BaseURL: "http://src.example/list.txt", KeepFaulty: true})
	if err != nil || len(entries) != 2 || !strings.HasPrefix(entries[1].Loc, "not in UTF-8: ") {
		t.Fatalf("%+v, %v", entries, err)
	}
	for s, want := range map[string]bool{
		"http://a.example/x": true, "http://a.example/\xe9": true, "https://a.example/\nhttp://b.example": true, "# a\n\nhttp://a.example/": true, "\xef\xbb\xbfhttp://a.example/": true,
		"": false, "# a": false, "hello": false, "http://a.example/x is down": false, "http://a.example/\nnot found\n": false,
		"ftp://a.example/": false, "<urlset/>": false, `{"a":1}`: false, "http:": false, "@prefix a: <http://b> .": false, "\x00\x00": false,
	} {
		if got := resourcesync.IsTextList([]byte(s)); got != want {
			t.Errorf("%q is a list: %v", s, got)
		}
	}
}
