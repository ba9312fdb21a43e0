package rdfxml_test

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

const rdfxmlHead = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/" xml:base="http://e/x/y#z">`

var rdfxmlGood = []struct{ name, doc, want string }{
	{"empty", rdfxmlHead + `</rdf:RDF>`, ""},
	{"no rdf:RDF", `<?xml version="1.0"?><e:C xmlns:e="http://e/" xmlns:r="` + chars.RDF + `" r:about="http://e/s"/>`, "<s> <rdf:type> <C> ."},
	{"version", `<r:RDF xmlns:r="` + chars.RDF + `" xmlns:e="http://e/" r:version="1.2"><e:C r:about="http://e/s"/></r:RDF>`, "<s> <rdf:type> <C> ."},
	{"literals", rdfxmlHead + `<rdf:Description rdf:about="http://e/s"><e:p>a &lt;&amp;&#233;<!-- c --><![CDATA[<b>]]></e:p><e:p xml:lang="en-GB">b</e:p><e:p rdf:datatype="http://e/d">c</e:p><e:p/><e:q rdf:datatype="#d"/><e:p> </e:p></rdf:Description></rdf:RDF>`,
		`<s> <p> "a &LT;&é&LT;b>" .
<s> <p> "b"@en-GB .
<s> <p> "c"^^<d> .
<s> <p> "" .
<s> <q> ""^^<x/y#d> .
<s> <p> " " .`},
	{"base", rdfxmlHead + `<rdf:Description rdf:about="../s"><e:p rdf:resource="#o"/><e:p rdf:resource=""/><e:q xml:base="/c/" rdf:resource="z"/><e:q rdf:resource="?a b"/></rdf:Description></rdf:RDF>`,
		"<s> <p> <x/y#o> .\n<s> <p> <x/y> .\n<s> <q> <c/z> .\n<s> <q> <x/y?a\\u0020b> ."},
	{"typed and nested", rdfxmlHead + `<e:C rdf:about="/s" e:t="x"><e:p><e:D rdf:about="/o"><e:q><e:E/></e:q></e:D></e:p></e:C></rdf:RDF>`,
		"<s> <rdf:type> <C> .\n<s> <t> \"x\" .\n<s> <p> <o> .\n<o> <rdf:type> <D> .\n<o> <q> _:anon-1 .\n_:anon-1 <rdf:type> <E> ."},
	{"ID and reification", rdfxmlHead + `<rdf:Description rdf:ID="s"><e:p rdf:ID="st">x</e:p></rdf:Description></rdf:RDF>`,
		"<x/y#s> <p> \"x\" .\n<x/y#st> <rdf:type> <rdf:Statement> .\n<x/y#st> <rdf:subject> <x/y#s> .\n<x/y#st> <rdf:predicate> <p> .\n<x/y#st> <rdf:object> \"x\" ."},
	{"nodeID", rdfxmlHead + `<rdf:Description rdf:nodeID="a"><e:p rdf:nodeID="anon-1"/><e:q rdf:parseType="Resource"/></rdf:Description></rdf:RDF>`, "_:a <p> _:anon-1 .\n_:a <q> _:anon-2 ."},
	{"property attributes", rdfxmlHead + `<rdf:Description rdf:about="/s" xml:lang="de" e:a="1" rdf:type="/C"><e:p e:b="2" rdf:type="/D"/><e:p rdf:resource="/o" e:c="3" xml:lang=""/></rdf:Description></rdf:RDF>`,
		"<s> <a> \"1\"@de .\n<s> <rdf:type> <C> .\n<s> <p> _:anon-1 .\n_:anon-1 <b> \"2\"@de .\n_:anon-1 <rdf:type> <D> .\n<s> <p> <o> .\n<o> <c> \"3\" ."},
	{"language ends", rdfxmlHead + `<rdf:Description rdf:about="/s" xml:lang="en"><e:p>a</e:p><e:p xml:lang="">b</e:p><e:p rdf:datatype="/d">c</e:p></rdf:Description></rdf:RDF>`, "<s> <p> \"a\"@en .\n<s> <p> \"b\" .\n<s> <p> \"c\"^^<d> ."},
	{"li", rdfxmlHead + `<rdf:Seq rdf:about="/s"><rdf:li>a</rdf:li><rdf:_7>b</rdf:_7><rdf:li rdf:resource="/o"/></rdf:Seq></rdf:RDF>`, "<s> <rdf:type> <rdf:Seq> .\n<s> <rdf:_1> \"a\" .\n<s> <rdf:_7> \"b\" .\n<s> <rdf:_2> <o> ."},
	{"parseType Resource", rdfxmlHead + `<rdf:Description rdf:about="/s"><e:p rdf:parseType="Resource"><e:q>a</e:q><e:r rdf:parseType="Resource"><e:q>b</e:q></e:r></e:p></rdf:Description></rdf:RDF>`, "<s> <p> _:anon-1 .\n_:anon-1 <q> \"a\" .\n_:anon-1 <r> _:anon-2 .\n_:anon-2 <q> \"b\" ."},
	{"parseType Collection", rdfxmlHead + `<rdf:Description rdf:about="/s"><e:p rdf:parseType="Collection"> <e:C rdf:about="/a"/> <rdf:Description rdf:about="/b"/> </e:p><e:q rdf:parseType="Collection"/></rdf:Description></rdf:RDF>`,
		"<s> <p> _:anon-1 .\n_:anon-1 <rdf:first> <a> .\n<a> <rdf:type> <C> .\n_:anon-1 <rdf:rest> _:anon-2 .\n_:anon-2 <rdf:first> <b> .\n_:anon-2 <rdf:rest> <rdf:nil> .\n<s> <q> <rdf:nil> ."},
	{"parseType Literal", rdfxmlHead + `<rdf:Description rdf:about="/s"><e:p rdf:parseType="Literal">a &lt; <b xmlns="http://x/" z='"' xmlns:n="http://n/" n:y="&lt;" a="2"><i/><n:j/></b><!--c--><?p i?></e:p></rdf:Description></rdf:RDF>`,
		`<s> <p> "a &amp;lt; &LT;b xmlns=\"http://x/\" xmlns:n=\"http://n/\" a=\"2\" z=\"&amp;quot;\" n:y=\"&amp;lt;\">&LT;i>&LT;/i>&LT;n:j>&LT;/n:j>&LT;/b>&LT;!--c-->&LT;?p i?>"^^<rdf:XMLLiteral> .`},
	{"parseType unknown", rdfxmlHead + `<rdf:Description rdf:about="/s"><e:p rdf:parseType="x"><e:a/></e:p></rdf:Description></rdf:RDF>`, `<s> <p> "&LT;e:a xmlns:e=\"http://e/\">&LT;/e:a>"^^<rdf:XMLLiteral> .`},
	{"entities", `<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [ <!-- c --> <!ENTITY ex "http://e/" > <!ENTITY two '&ex;t&#x77;o'> <!ENTITY far SYSTEM "http://far/"> ]>
` + rdfxmlHead + `<rdf:Description rdf:about="&ex;s"><e:p rdf:resource="&two;"/><e:p>&two;</e:p></rdf:Description></rdf:RDF>`, "<s> <p> <two> .\n<s> <p> \"http://e/two\" ."},
	{"names without a prefix", `<RDF xmlns="` + chars.RDF + `"><Description about="http://e/s"><p xmlns="http://e/" r:resource="http://e/o" xmlns:r="` + chars.RDF + `"/></Description></RDF>`, "<s> <p> <o> ."},
	{"white space and processing instructions", "\ufeff<?xml version='1.0' encoding='UTF-8'?><?x y?>\n<!-- c -->" + rdfxmlHead + "\n <!-- c --> <?x?> </rdf:RDF>\n<!-- d -->\n", ""},
	{"ISO-8859-1", "<?xml version='1.0' encoding='ISO-8859-1'?>" + rdfxmlHead + "<rdf:Description rdf:about='/s'><e:p>\xe9</e:p></rdf:Description></rdf:RDF>", `<s> <p> "é" .`},
	{"white space in attributes", "<?xml version='1.0'?><?x '\n?>\n<!-- don't\n<a b=' -->\n<!DOCTYPE rdf:RDF [ <!-- it's > --> <!ENTITY e 'a\nb'> ]>\n" + rdfxmlHead + "<rdf:Description\n rdf:about='/s'\te:p='a\nb\tc\r\nd\re&#10;&#9;f'><e:q>'\n<![CDATA['<a b='\n]]>\"\n</e:q><e:q rdf:resource=\"/a\nb\"/></rdf:Description></rdf:RDF>",
		`<s> <p> "a b c d e\n\tf" .
<s> <q> "'\n'&LT;a b='\n\"\n" .
<s> <q> <a\u0020b> .`},
	{"line ends", rdfxmlHead + "<rdf:Description rdf:about='/s'><e:p>a\r\nb&#13;\rc</e:p></rdf:Description></rdf:RDF>", `<s> <p> "a\nb\r\nc" .`},
}

func TestRDFXML(t *testing.T) {
	for _, c := range rdfxmlGood {
		want := strings.NewReplacer("<rdf:", "<"+chars.RDF, "&LT;", "\x01", "&amp;", "&").Replace(c.want)
		text := strings.ReplaceAll(rdftest.Lines(rdftest.Parse(t, strings.ReplaceAll(want, "\x01", "\\u0001"))), "\\u0001", "<")
		got, err := codec.Decode(rdfres.RDFXML, []byte(c.doc), rdfres.ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if rdftest.Lines(got) != text {
			t.Errorf("%s: got\n%swant\n%s", c.name, rdftest.Lines(got), text)
		}
		var slow []rdfres.Triple
		for q, err := range codec.Read(iotest.OneByteReader(strings.NewReader(c.doc)), rdfres.RDFXML, rdfres.ReadOptions{MaxBytes: 8 * int64(len(c.doc))}) {
			if err != nil {
				t.Errorf("%s, byte by byte: %v", c.name, err)
			}
			slow = append(slow, q.Triple)
		}
		if rdftest.Lines(rdfres.SortUnique(slow)) != text {
			t.Errorf("%s, byte by byte: got\n%swant\n%s", c.name, rdftest.Lines(slow), text)
		}
	}
}

func TestRDFXMLRefuses(t *testing.T) {
	in := func(s string) string {
		return rdfxmlHead + "\n<rdf:Description rdf:about='/s'>" + s + "</rdf:Description></rdf:RDF>"
	}
	for _, c := range []struct{ doc, want string }{
		{"", "no root element"},
		{"a", "outside the root"},
		{"<html><p>x", "has no namespace"},
		{rdfxmlHead, "ends inside <rdf:RDF> of line 1"},
		{rdfxmlHead + "</rdf:RDF><a/>", "second root"},
		{rdfxmlHead + "</rdf:RDF>a", "outside the root"},
		{rdfxmlHead + "a</rdf:RDF>", "where only elements can"},
		{rdfxmlHead + "<e:a></e:b></rdf:RDF>", "</e:b> stands where <e:a> of line 1 must be closed"},
		{rdfxmlHead + "<f:a/></rdf:RDF>", "prefix of <f:a> is not declared"},
		{rdfxmlHead + "<e:a f:b='c'/></rdf:RDF>", "prefix of the attribute f:b"},
		{rdfxmlHead + "<e:a b='c'/></rdf:RDF>", "has no namespace"},
		{rdfxmlHead + "<e:a e:b='c' e:b='d'/></rdf:RDF>", "stands twice"},
		{rdfxmlHead + "<e:a xmlns:f='http://e/' e:b='c' f:b='d'/></rdf:RDF>", "stands twice"},
		{rdfxmlHead + "<rdf:li/></rdf:RDF>", "rdf:li cannot be a node element"},
		{rdfxmlHead + "<rdf:RDF/></rdf:RDF>", "rdf:RDF cannot be a node element"},
		{rdfxmlHead + "<e:a rdf:about='/a' rdf:nodeID='b'/></rdf:RDF>", "more than one of"},
		{rdfxmlHead + "<e:a rdf:nodeID='1'/></rdf:RDF>", "no XML name"},
		{rdfxmlHead + "<e:a rdf:ID='a:b'/></rdf:RDF>", "no XML name"},
		{rdfxmlHead + "<e:a rdf:ID='a'/><e:a rdf:ID='a'/></rdf:RDF>", "stands twice"},
		{rdfxmlHead + "<e:a rdf:aboutEach='a'/></rdf:RDF>", "aboutEach cannot"},
		{rdfxmlHead + "<e:a rdf:resource='a'/></rdf:RDF>", "resource cannot"},
		{rdfxmlHead + "<e:a rdf:li='a'/></rdf:RDF>", "li cannot"},
		{in("<rdf:Description/>"), "cannot be a property element"},
		{in("<e:p rdf:about='a'/>"), "about cannot be an attribute of a property"},
		{in("<e:p rdf:parseType='Literal' rdf:resource='a'/>"), "exclude each other"},
		{in("<e:p rdf:resource='a' rdf:nodeID='b'/>"), "both rdf:resource and rdf:nodeID"},
		{in("<e:p rdf:resource='a'>x</e:p>"), "where only elements can"},
		{in("<e:p rdf:resource='a'><e:a/></e:p>"), "must be empty"},
		{in("<e:p rdf:datatype='a'><e:a/></e:p>"), "has an element in it"},
		{in("<e:p>x<e:a/></e:p>"), "beside the node"},
		{in("<e:p><e:a/>x</e:p>"), "beside the node"},
		{in("<e:p><e:a/><e:b/></e:p>"), "more than one node"},
		{in("<e:p>&unknown;</e:p>"), "line 2, column"},
		{in("<e:p xml:lang='e n'/>"), "no language tag"},
		{in("<e:p>\x01</e:p>"), "U+0001 cannot stand in XML"},
		{in("<e:p>\xff</e:p>"), "UTF-8"},
		{"<rdf:RDF xmlns:rdf='" + chars.RDF + "'><rdf:Description rdf:about='s'/></rdf:RDF>", "relative and there is no base"},
		{"<?xml version='1.0' encoding='EBCDIC'?><a/>", "EBCDIC"},
		{rdfxmlHead + strings.Repeat("<e:a><e:p>", syntax.MaxNesting), "nested more than"},
	} {
		_, err := codec.Decode(rdfres.RDFXML, []byte(c.doc), rdfres.ReadOptions{})
		if err == nil {
			t.Errorf("%s: accepted", chars.Cut(c.doc))
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", chars.Cut(c.doc), err, c.want)
		}
	}
	if _, err := codec.Decode(rdfres.RDFXML, []byte(in("")), rdfres.ReadOptions{MaxBytes: 20}); err == nil || !strings.Contains(err.Error(), "more than 20 bytes") {
		t.Errorf("a bound: %v", err)
	}
}
