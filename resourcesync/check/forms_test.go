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
		doc  string
		warn string // of the reader
		rule string // of the validator
	}{
		"mark":                       {"\xef\xbb\xbf" + decl + rs, "", ""},
		"blank line before":          {"\n  \n" + decl + rs, "white space before", "E1"},
		"blank line and mark":        {"\xef\xbb\xbf\n" + decl + rs, "white space before", "E1"},
		"blank line, no declaration": {"\n\n" + rs, "", ""},
		"Latin-1":                    {encoded(t, charmap.ISO8859_1, latin), "iso-8859-1", "E2"},
		"Latin-1 after a blank line": {encoded(t, charmap.ISO8859_1, "\n"+latin), "iso-8859-1", "E1"},
		"UTF-16":                     {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), wide), "UTF-16", "E2"},
		"UTF-16, big":                {encoded(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), wide), "UTF-16", "E2"},
		"UTF-16 without mark":        {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), wide), "UTF-16", "E2"},
		"UTF-32":                     {encoded(t, utf32.UTF32(utf32.BigEndian, utf32.UseBOM), list), "UTF-32", "E2"},
		"said to be UTF-16":          {wide, "utf-16", "E2"},
		"no namespace":               {strings.ReplaceAll(list, ` xmlns="`+resourcesync.NamespaceSitemap+`"`, ""), "no namespace", "E3"},
		"https":                      {strings.Replace(rs, "http://www.sitemaps", "https://www.sitemaps", 1), "https://www.sitemaps", "E3"},
		"old namespace":              {strings.Replace(rs, resourcesync.NamespaceSitemap, "http://www.google.com/schemas/sitemap/0.84", 1), "0.84", "E3"},
		"slash":                      {strings.Replace(rs, "sitemap/0.9", "sitemap/0.9/", 1), "0.9/", "E3"},
		"prefix on the root alone":   {strings.Replace(strings.Replace(list, "<urlset xmlns=", "<sm:urlset xmlns:sm=", 1), "</urlset>", "</sm:urlset>", 1), "", ""},
		"rs with https":              {strings.Replace(rs, "http://www.openarchives", "https://www.openarchives", 1), "https://www.openarchives", "E8"},
		"rs without slash":           {strings.Replace(rs, "rs/terms/", "rs/terms", 1), "rs/terms", "E8"},
		"rs undeclared":              {strings.Replace(rs, ` xmlns:rs="`+resourcesync.NamespaceRS+`"`, "", 1), "not declared", "E1"},
		"text":                       {text, "plain text", "E3"},
		"text of Windows":            {"\xef\xbb\xbf# pages\r\n" + strings.ReplaceAll(text, "\n", "\r\n\r\n"), "plain text", "E3"},
		"text in UTF-16":             {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), text), "plain text", "E2"},
		"text without an end":        {strings.TrimSpace(text), "plain text", "E3"},
		"Atom":                       {`<feed xmlns="http://www.w3.org/2005/Atom">` + itemsA + `</feed>`, "Atom feed", "E3"},
		"RSS":                        {decl + `<rss version="2.0"><channel><title>a</title><link>http://src.example/</link>` + itemsR + `</channel></rss>`, "RSS feed", "E3"},
		"RSS in Latin-1":             {encoded(t, charmap.ISO8859_1, `<?xml version="1.0" encoding="ISO-8859-1"?><rss><channel>`+itemsR+`</channel></rss>`), "RSS feed", "E2"},
		"RSS 0.91": {decl + `<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://127.0.0.1:1/rss-0.91.dtd">` +
			`<rss version="0.91"><channel>` + itemsR + `</channel></rss>`, "RSS feed", "E3"},
		"RSS 1.0": {decl + `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns="http://purl.org/rss/1.0/">` +
			`<channel rdf:about="http://src.example/"><link>http://src.example/</link><items><rdf:Seq><rdf:li resource="/b"/></rdf:Seq></items></channel>` +
			`<item rdf:about="urn:x:1"><link>http://src.example/b</link><dc:date>2024-05-02</dc:date></item>` +
			`<item rdf:about="http://src.example/a?x=1&amp;y=é"><dc:date>2024-05-01T00:00:00Z</dc:date></item></rdf:RDF>`, "RSS feed", "E3"},
		"RSS with slips": {decl + `<rss><channel>` + strings.Replace(itemsR, "&amp;", "&", 1) + `<media:x/></channel></rss>`, "RSS feed", "E3"},
		"Atom 0.3": {`<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><link rel="alternate" href="/b"/><modified>2024-05-02T00:00:00Z</modified></entry>` +
			`<entry><link href="/a?x=1&amp;y=é"/><issued>2024-05-01T00:00:00Z</issued></entry></feed>`, "Atom feed", "E3"},
		"bare ampersand":              {strings.Replace(rs, "&amp;", "&", 1), "&amp;", "E1"},
		"bare ampersand in href":      {strings.Replace(rs, "<rs:md", `<rs:ln rel="up" href="http://src.example/c?a&b"/><rs:md`, 1), "&amp;", "E1"},
		"DTD":                         {decl + "<!DOCTYPE urlset SYSTEM 'http://127.0.0.1:1/x.dtd'>" + rs, "DTD", "W2"},
		"DTD with declarations":       {`<!DOCTYPE urlset [<!ENTITY a "]>"><!-- ]> ' --><!ELEMENT urlset (url*)><?p ]>?>]>` + rs, "DTD", "W2"},
		"unknown namespace":           {strings.Replace(rs, resourcesync.NamespaceSitemap, "http://x.example/sitemap", 1), "unknown namespace", "E3"},
		"unknown namespace, extended": {strings.Replace(strings.Replace(list, resourcesync.NamespaceSitemap, "http://x.example/sitemap", 1), "<url>", `<url><i:loc xmlns:i="urn:i">urn:no</i:loc>`, 1), "unknown namespace", "E3"},
		"undeclared prefix":           {strings.Replace(rs, "<url>", `<url><image:image/>`, 1), "prefix image is not declared", "E1"},
		"text behind":                 {rs + "\n0\n", "behind the root", "E1"},
		"-- in a comment":             {strings.Replace(rs, "<url>", "<!-- a -- b ---><url>", 1), "inside a comment", "E1"},
		"XML 1.1":                     {strings.Replace(decl, "1.0", "1.1", 1) + rs, "1.1", "W2"},
		"mark behind a blank line":    {"\n\xef\xbb\xbf" + decl + rs, "white space before", "E1"},
	} {
		for _, in := range []io.Reader{strings.NewReader(c.doc), iotest.OneByteReader(strings.NewReader(c.doc))} {
			r, err := resourcesync.NewReader(in, resourcesync.ReaderOptions{BaseURL: "http://src.example/list.xml"})
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
		if _, _, err := readAll(c.doc, resourcesync.ReaderOptions{BaseURL: "http://src.example/list.xml", Strict: true}); c.rule != "" && err == nil {
			t.Errorf("%s: read strictly without a fault", name)
		}
		_, findings, err := Validate(strings.NewReader(c.doc), ValidateOptions{Location: "http://src.example/list.xml"})
		if _, packed, err := Validate(strings.NewReader(gzipped(c.doc)), ValidateOptions{Location: "http://src.example/list.xml"}); err != nil || fmt.Sprint(packed) != fmt.Sprint(findings) {
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

// A list of lines keeps each line that is no address: an entry that cannot be used is
// a fault, and none is a deletion.
func TestTextListKeepsLines(t *testing.T) {
	head := strings.Repeat("http://src.example/a\n", 60)
	_, entries, err := readAll(head+"no address\n<html>\n\nhttp://src.example/b", resourcesync.ReaderOptions{BaseURL: "http://src.example/list.txt", KeepFaulty: true})
	if err != nil || len(entries) != 63 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for s, want := range map[string]bool{
		"http://a.example/x": true, "https://a.example/\nhttp://b.example": true, "# a\n\nhttp://a.example/": true, "\xef\xbb\xbfhttp://a.example/": true,
		"": false, "# a": false, "hello": false, "http://a.example/x is down": false, "http://a.example/\nnot found\n": false,
		"ftp://a.example/": false, "<urlset/>": false, `{"a":1}`: false, "http:": false, "@prefix a: <http://b> .": false, "\x00\x00": false,
	} {
		if got := resourcesync.IsTextList([]byte(s)); got != want {
			t.Errorf("%q is a list: %v", s, got)
		}
	}
}
