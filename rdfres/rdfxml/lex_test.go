package rdfxml_test

import (
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

// inXML is a document whose one literal is content, with a prolog.
func inXML(prolog, content string) string {
	return prolog + `<r:RDF xmlns:r="` + chars.RDF + `" xmlns:e="http://e/"><r:Description r:about="http://e/s"><e:p>` + content + `</e:p></r:Description></r:RDF>`
}

func inUTF16(text string, little, bom bool) string {
	var b strings.Builder
	if bom {
		text = "\ufeff" + text
	}
	for _, u := range utf16.Encode([]rune(text)) {
		hi, lo := byte(u>>8), byte(u)
		if little {
			hi, lo = lo, hi
		}
		b.WriteByte(hi)
		b.WriteByte(lo)
	}
	return b.String()
}

// TestXMLReads is what XML 1.0 asks a reader for.
func TestXMLReads(t *testing.T) {
	const want = "€ \U0001D538"
	for name, c := range map[string]struct{ doc, charset, want string }{
		"UTF-8 with a byte order mark":            {"\ufeff" + inXML(`<?xml version="1.0" encoding="utf-8"?>`, want), "", want},
		"UTF-16, little-endian":                   {inUTF16(inXML(`<?xml version="1.0" encoding="UTF-16"?>`, want), true, true), "", want},
		"UTF-16, big-endian":                      {inUTF16(inXML(`<?xml version="1.0"?>`, want), false, true), "", want},
		"UTF-16 without a mark":                   {inUTF16(inXML(`<?xml version="1.0" encoding="UTF-16LE"?>`, want), true, false), "", want},
		"UTF-16 without a mark, big-endian":       {inUTF16(inXML(`<?xml version="1.0" encoding="utf-16be"?>`, want), false, false), "", want},
		"UTF-16 without a declaration":            {inUTF16(inXML("", want), false, false), "", want},
		"a mark counts more than the header":      {inUTF16(inXML("", want), true, true), "iso-8859-1", want},
		"windows-1252":                            {inXML(`<?xml version="1.0" encoding="windows-1252"?>`, "\x80\xe9"), "", "€é"},
		"ISO-8859-15":                             {inXML(`<?xml version='1.0' encoding='ISO-8859-15' standalone='yes' ?>`, "\xa4"), "", "€"},
		"Shift_JIS":                               {inXML(`<?xml version="1.0" encoding="Shift_JIS"?>`, "\x93\xfa\x96\x7b"), "", "日本"},
		"US-ASCII":                                {inXML(`<?xml version="1.0" encoding="US-ASCII"?>`, "a&#233;"), "", "aé"},
		"the header counts, not the document":     {inXML(`<?xml version="1.0" encoding="utf-8"?>`, "\xe9"), "ISO-8859-1", "é"},
		"the header is all that tells":            {inXML("", "\xe9"), `"iso-8859-1"`, "é"},
		"version 1.1":                             {inXML(`<?xml version="1.1"?>`, "a"), "", "a"},
		"references":                              {inXML("", "&#x1D538;&#120120;&amp;lt;&quot;&apos;&gt;&#10;"), "", "\U0001D538\U0001D538&lt;\"'>\n"},
		"CDATA":                                   {inXML("", "a<![CDATA[]]]]><![CDATA[>&amp;<]]>b"), "", "a]]>&amp;<b"},
		"an entity with CDATA in it":              {inXML("<!DOCTYPE x [<!ENTITY a '&#60;![CDATA[<]]>&b;'><!ENTITY b '&#38;#60;'>]>", "&a;"), "", "<<"},
		"an entity that is declared later":        {inXML("<!DOCTYPE x [<!ENTITY a '[&b;]'><!ENTITY b 'B'><!ENTITY b 'not this'>]>", "&a;"), "", "[B]"},
		"a parameter entity":                      {inXML("<!DOCTYPE x [<!ENTITY % d \"<!ENTITY a 'A'>\"> %d; %far;]>", "&a;"), "", "A"},
		"an external subset is not read":          {inXML(`<!DOCTYPE x PUBLIC "-//x//y" "http://far/x.dtd" [<!NOTATION n SYSTEM "n"><!ENTITY f SYSTEM "f" NDATA n><!ELEMENT x (a|b)*><?p i?><!-- > ' -->]>`, "a"), "", "a"},
		"a long entity":                           {inXML("<!DOCTYPE x [<!ENTITY a '"+strings.Repeat("x", 10_000)+"'>]>", "&a;"), "", strings.Repeat("x", 10_000)},
		"]] and > apart":                          {inXML("", "]]&gt; ]] > ]>"), "", "]]> ]] > ]>"},
		"a processing instruction like the first": {inXML(`<?xml-stylesheet href="a"?>`, "a"), "", "a"},
	} {
		ts, err := codec.Decode(rdfres.RDFXML, []byte(c.doc), rdfres.ReadOptions{Charset: c.charset})
		if err != nil || len(ts) != 1 || ts[0].O != rdfres.NewLiteral(c.want, "", "") {
			t.Errorf("%s: %s%v", name, rdftest.Lines(ts), err)
		}
		for q, err := range codec.Read(iotest.OneByteReader(strings.NewReader(c.doc)), rdfres.RDFXML, rdfres.ReadOptions{Charset: c.charset}) {
			if err != nil || q.Triple != ts[0] {
				t.Errorf("%s, byte by byte: %v", name, err)
			}
		}
	}
	// Elements in an entity, attributes with defaults and types, one with more text than a piece.
	doc := `<!DOCTYPE x [<!ENTITY n "<e:q>2</e:q>"><!ATTLIST r:Description e:d CDATA " d  e" e:n NMTOKENS #IMPLIED xml:lang CDATA #FIXED 'en'><!ATTLIST e:q r:datatype CDATA "http://e/d">]>` +
		`<r:RDF xmlns:r="` + chars.RDF + `" xmlns:e="http://e/"><r:Description r:about="http://e/s" e:n="  a ` + "\n" + ` b "><e:p>` + strings.Repeat("x]]", (32<<10)/3+1) + `</e:p>&n;</r:Description></r:RDF>`
	ts, err := codec.Decode(rdfres.RDFXML, []byte(doc), rdfres.ReadOptions{})
	want2 := "<http://e/s> <http://e/d> \" d  e\"@en .\n<http://e/s> <http://e/n> \"a b\"@en .\n<http://e/s> <http://e/p> \"" + strings.Repeat("x]]", (32<<10)/3+1) + "\"@en .\n<http://e/s> <http://e/q> \"2\"^^<http://e/d> .\n"
	if err != nil || rdftest.Lines(ts) != want2 {
		t.Errorf("%.300s %v", rdftest.Lines(ts), err)
	}
}

// TestXMLRefuses is what XML 1.0 forbids; the error says what it is.
func TestXMLRefuses(t *testing.T) {
	entity := func(declared, content string) string { return inXML("<!DOCTYPE x ["+declared+"]>", content) }
	for _, c := range []struct{ doc, want string }{
		{inXML("", "&#xD835;&#xDD38;"), "&#xD835; refers to U+D835, a surrogate"},
		{inXML("", "&#55349;&#56320;"), "&#55349; refers to U+D835, a surrogate"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p e:x="&#xDC00;">`, 1), "a surrogate"},
		{entity("<!ENTITY a '&#xD800;'>", "a"), "a surrogate"},
		{entity("<!ENTITY a '&#38;#xD800;'>", "&a;"), "a surrogate"},
		{inXML("", "&#0;"), "U+0000"}, {inXML("", "&#x1F;"), "U+001F"}, {inXML("", "&#xFFFE;"), "U+FFFE"}, {inXML("", "&#xffff;"), "U+FFFF"}, {inXML("", "&#x110000;"), "U+110000"},
		{inXML("", "&#99999999999999999999999;"), "refers to"}, {inXML("", "&#;"), "no reference"}, {inXML("", "&#x;"), "no reference"}, {inXML("", "&#xG;"), "no reference"}, {inXML("", "&#X41;"), "no reference"}, {inXML("", "&#-1;"), "in a reference"},
		{inXML("", "\x00"), "U+0000 cannot stand in XML"}, {inXML("", "\x0b"), "U+000B"}, {inXML("", "\ufffe"), "U+FFFE"}, {inXML("", "\uffff"), "U+FFFF"},
		{inXML("<!-- \x02 -->", "a"), "U+0002"}, {inXML("<?p \x03?>", "a"), "U+0003"}, {inXML("", "<![CDATA[\x04]]>"), "U+0004"}, {strings.Replace(inXML("", "a"), "http://e/s", "http://e/\x05", 1), "U+0005"},
		{inXML("", "\xed\xa0\xb5"), "UTF-8"}, {inXML("", "\xc0\x80"), "UTF-8"}, {inXML("", "\xf8"), "UTF-8"}, {inXML("", "\xe9"), "UTF-8"},
		{inXML(`<?xml version="1.0" encoding="us-ascii"?>`, "é"), "no character of us-ascii"},
		{inXML(`<?xml version="1.0" encoding="windows-1252"?>`, "\x81"), "no character of windows-1252"},
		{inXML(`<?xml version="1.0" encoding="x-none"?>`, "a"), `"x-none" cannot be read`},
		{inXML(`<?xml version="1.0" encoding="UTF-16"?>`, "a"), "not in UTF-16"},
		{inUTF16(inXML(`<?xml version="1.0" encoding="utf-8"?>`, "a"), true, true), "the declaration says utf-8, and the text is in UTF-16"},
		{"\ufeff" + inXML(`<?xml version="1.0" encoding="ISO-8859-1"?>`, "a"), "the text is in UTF-8"},
		{strings.Replace(inUTF16(inXML("", "a@b"), false, true), "\x00@", "\xd8\x00", 1), "the surrogate U+D800 stands alone"},
		{inUTF16(inXML("", "a"), false, true) + "\x00", "ends within a character of UTF-16"},
		{" " + inXML(`<?xml version="1.0"?>`, "a"), "XML declaration stands behind"}, {inXML(`<?xml version="2.0"?>`, "a"), "no XML declaration"}, {inXML(`<?xml encoding="utf-8"?>`, "a"), "no XML declaration"},
		{inXML(`<?xml version="1.0" standalone="maybe"?>`, "a"), "no XML declaration"}, {inXML(`<?xml version="1.0"encoding="utf-8"?>`, "a"), "no XML declaration"}, {inXML("", "<?XML x?>"), "XML declaration stands behind"},
		{inXML("", "&a;"), "the entity &a; is not declared"}, {inXML("", "a & b"), "the name of an entity"}, {inXML("", "&amp"), "where ';' is missing"}, {inXML("", "a < b"), "the name of an element"},
		{inXML("", "]]>"), "']]>' cannot stand in text"}, {inXML("", "<!-- a -- b -->"), "'--' cannot stand in a comment"}, {inXML("", "<!-- a --->"), "'--' cannot stand"}, {inXML("", "<!-- a"), "the document ends in a comment"},
		{inXML("", "<![CDATA[a"), "ends in a CDATA section"}, {inXML("", "<![cdata[a]]>"), "CDATA"}, {inXML("", "<!ENTITY a 'b'>"), "DOCTYPE"}, {inXML("", "<!DOCTYPE a>"), "a DOCTYPE stands behind"},
		{inXML("<!DOCTYPE a><!DOCTYPE b>", "a"), "a DOCTYPE stands behind"}, {inXML("&#32;", "a"), "outside the root"}, {inXML("<![CDATA[ ]]>", "a"), "outside the root"}, {inXML("", "a") + "&#32;", "outside the root"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p e:x=a>`, 1), "in quotes"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p e:x>`, 1), "'=' is missing"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p e:x='<'>`, 1), "'<' cannot stand"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p e:x=''e:y=''>`, 1), "white space or '>' is missing"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p e:x='' e:x=''>`, 1), "stands twice"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p xmlns:f="http://e/" e:x='' f:x=''>`, 1), "of the namespace http://e/ stands twice"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p f:x=''>`, 1), "not declared"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<f:p>`, 1), "not declared"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p:q>`, 1), "no prefix, a colon and a name"}, {strings.Replace(inXML("", "a"), "<e:p>", `<:p>`, 1), "no prefix"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p xmlns:f="">`, 1), "cannot be declared so"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p xmlns:xmlns="http://x/">`, 1), "cannot be declared so"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p xmlns:xml="http://x/">`, 1), "cannot be declared so"}, {strings.Replace(inXML("", "a"), "<e:p>", `<e:p xmlns:f="http://www.w3.org/XML/1998/namespace">`, 1), "cannot be declared so"},
		{strings.Replace(inXML("", "a"), "<e:p>", `<e:p / >`, 1), "'>' is missing"}, {strings.Replace(inXML("", "a"), "</e:p>", `</e:p a="b">`, 1), "'>' is missing"}, {strings.Replace(inXML("", "a"), "</e:p>", `</ e:p>`, 1), "name of an element"},
		{strings.Replace(inXML("", "a"), "e:p", "e:1p", -1), "no prefix"}, {strings.Replace(inXML("", "a"), "e:p", "e:×", -1), "no prefix"},
		{entity("<!ENTITY a '&a;'>", "&a;"), "the entity a is in itself"}, {entity("<!ENTITY a '&b;'><!ENTITY b '[&a;]'>", "&a;"), "is in itself"}, {entity("<!ENTITY a '&b;'>", "&a;"), "&b; is not declared"},
		{entity("<!ENTITY a SYSTEM 'x'>", "&a;"), "another document"}, {entity("<!ENTITY a '<e:b>'>", "&a;"), "does not end in it"}, {entity("<!ENTITY a '</e:p>'>", "&a;"), "closes an element that begins outside"}, {entity("<!ENTITY a '<b'>", "&a;"), "the entity a ends"},
		{entity("<!ENTITY a '&#38;'>", "&a;"), "the entity a ends"}, {strings.Replace(entity("<!ENTITY a '&#60;'>", "a"), "<e:p>", `<e:p e:x="&a;">`, 1), "'<' cannot stand"}, {entity("<!ENTITY a 'b'", "a"), "stands"}, {entity("<!ENTITY % p 'x'><!ENTITY a '%p;'>", "a"), "parameter entity cannot stand"},
		{entity("<!ENTITY % p '%p;'>%p;", "a"), "parameter entity cannot stand"}, {entity("<!FOO a>", "a"), "no declaration"}, {entity("text", "a"), "where a declaration must"}, {entity("<!ATTLIST a b FOO #IMPLIED>", "a"), "no type of an attribute"},
	} {
		_, err := codec.Decode(rdfres.RDFXML, []byte(c.doc), rdfres.ReadOptions{})
		if err == nil {
			t.Errorf("%.200q: accepted", c.doc)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200q: %v; want %s", c.doc, err, c.want)
		}
	}
}
