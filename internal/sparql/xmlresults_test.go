package sparql

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// collect clones the rows of a reader.
func collect(r rowReader) (rows []Row, err error) {
	for {
		row, err := r.next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, slices.Clone(row))
	}
}

func readXML(doc string) ([]Row, error) {
	r, _, isAsk, _, err := newXML(strings.NewReader(doc))
	if err != nil || isAsk {
		return nil, err
	}
	return collect(r)
}

const xmlHead = `<?xml version="1.0"?><!-- x --><sparql xmlns="http://www.w3.org/2005/sparql-results#" xmlns:x="urn:x"><head><variable name="s"/><variable name="o"/><link href="m"/></head>`

func TestXMLResults(t *testing.T) {
	bind := func(s, o string) string {
		return "<result><binding name='s'>" + s + "</binding><binding name='o'>" + o + "</binding></result>"
	}
	doc := xmlHead + `<x:y><result/></x:y><results ordered="false">` +
		bind("<uri>http://e/a?x=1&amp;y</uri>", "<literal xml:lang='en'> a &lt;b&gt; &#x1F303;\n</literal>") +
		bind("<bnode>b1</bnode>", "<literal datatype='"+xsd+"integer'>01</literal>") +
		"<result><binding name='o'><literal></literal></binding></result><result/>" +
		bind("<uri>http://e/<![CDATA[&#xD800;]]></uri>", "<literal><![CDATA[a]]]]><![CDATA[>&#0;]]></literal>") +
		bind("<uri>http://e/d</uri>", "<triple><subject><uri>u:s</uri></subject><predicate><uri>u:p</uri></predicate><object><literal>o</literal></object></triple>") +
		"</results></sparql>\n"
	rows, err := readXML(doc)
	want := []Row{
		{"<http://e/a?x=1&y>", "\" a <b> 🌃\\n\"@en"},
		{"_:b1", `"01"^^<` + xsd + `integer>`},
		{"", `""`}, {"", ""},
		{"<http://e/&#xD800;>", `"a]]>&#0;"`},
		{"<http://e/d>", rdfres.TripleTerm("<<( <u:s> <u:p> \"o\" )>>")},
	}
	if err != nil || fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("%v\n got %s\nwant %s", err, rows, want)
	}
	for _, answer := range []bool{true, false} {
		_, _, isAsk, a, err := newXML(strings.NewReader(strings.Split(xmlHead, "<head>")[0] + fmt.Sprintf("<head/><boolean> %v </boolean></sparql>", answer)))
		if err != nil || !isAsk || a != answer {
			t.Error(isAsk, a, err)
		}
	}
	// A document that was cut anywhere is no answer.
	for i := range len(doc) - 1 { // its last byte is a newline
		if rows, err := readXML(doc[:i]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut after %q: %d rows, %v", doc[:i], len(rows), err)
		}
	}
	for _, bad := range []string{
		"<html><body>no</body></html>", xmlHead + "</sparql>", xmlHead + "<results>text</results></sparql>", xmlHead + "<results><row/></results></sparql>",
		xmlHead + "<results><result><binding name='p'><uri>u:x</uri></binding></result></results></sparql>",
		xmlHead + "<results><result><binding name='s'></binding></result></results></sparql>",
		xmlHead + "<results><result><binding name='s'><uri>u:x</uri><uri>u:y</uri></binding></result></results></sparql>",
		xmlHead + "<results/></sparql><sparql/>", xmlHead + "<boolean>maybe</boolean></sparql>",
	} {
		if rows, err := readXML(bad); err == nil {
			t.Errorf("%s: %v", bad, rows)
		}
	}
}

// TestBrokenTerms: text that a format does not have costs the term that has it, and the
// rows beside it are read.
func TestBrokenTerms(t *testing.T) {
	broken := map[string][]string{
		"xml":  {"a&#x0;b", "a&#xD800;", "a&#55296;", "a&#xFFFE;", "a\x01b", "a\xffb", "&#99999999;"},
		"json": {`a\ud800`, `a\udc00\ud800`, `\u12`, `a\x`, "a\xffb", `\U00110000`},
		"tsv":  {`a\ud800`, `a\x`, "a\xffb"},
	}
	good := map[string][2]string{"json": {`\U0001B000` + "\x01\t", "\U0001B000\x01\t"}, "tsv": {`\U0001B000`, "\U0001B000"}, "xml": {"&#x1B000;", "\U0001B000"}}
	read := func(format, text string) ([]Row, error) {
		switch format {
		case "xml":
			row := "<result><binding name='s'><uri>u:s</uri></binding><binding name='o'><literal>%s</literal></binding></result>"
			return readXML(xmlHead + "<results>" + fmt.Sprintf(row+row, text, "b") + "</results></sparql>")
		case "json":
			row := `{"s":{"type":"uri","value":"u:s"},"o":{"type":"literal","value":"%s"}}`
			r, _, _, _, err := newJSON(strings.NewReader(`{"head":{"vars":["s","o"]},"results":{"bindings":[` + fmt.Sprintf(row+","+row, text, "b") + "]}}"))
			if err != nil {
				return nil, err
			}
			return collect(r)
		}
		r, _, err := newTSV(strings.NewReader("?s\t?o\n<u:s>\t\"" + text + "\"\n<u:s>\t\"b\"\n"))
		if err != nil {
			return nil, err
		}
		return collect(r)
	}
	for format, texts := range broken {
		for _, text := range texts {
			rows, err := read(format, text)
			if err != nil || len(rows) != 2 || rows[0][0] != "<u:s>" || rdfres.CheckTerm(rows[0][1]) == nil || rows[1][1] != `"b"` {
				t.Errorf("%s, %q: %v, %q", format, text, err, rows)
			}
		}
		if rows, err := read(format, good[format][0]); err != nil || rows[0][1] != rdfres.NewLiteral(good[format][1], "", "") {
			t.Errorf("%s: %v, %q", format, err, rows)
		}
	}
}

// TestXMLOfStore: what a real store answers in XML is what it answers in JSON, also to a
// client that finds out by itself.
func TestXMLOfStore(t *testing.T) {
	store := teststores.Oxigraph(t)
	g := "urn:test:xml"
	t.Cleanup(func() { store.Clear(t, g) })
	store.Run(t, `INSERT DATA { GRAPH <`+g+`> { <u:s> <u:p> "a"@en, "1"^^<`+xsd+`integer>, " <&> ", _:b . _:b <u:q> "\u0085\r\n" } }`)
	query := "SELECT ?s ?p ?o { GRAPH <" + g + "> { ?s ?p ?o } } ORDER BY ?p ?o"
	only := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req, _ := http.NewRequestWithContext(r.Context(), http.MethodPost, store.Query, bytes.NewReader(body))
		req.Header.Set("Content-Type", r.Header.Get("Content-Type"))
		req.Header.Set("Accept", xmlType)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	}))
	defer only.Close()
	var got []string
	for _, address := range []string{store.Query, only.URL} {
		c, err := New(Endpoint{Query: address})
		if err != nil {
			t.Fatal(err)
		}
		sol, err := c.Select(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		var rows []Row
		for row, err := range sol.Rows {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, slices.Clone(row))
		}
		if yes, err := c.Ask(t.Context(), "ASK { GRAPH <"+g+"> { <u:s> ?p ?o } }"); err != nil || !yes || len(rows) != 5 {
			t.Error(yes, err, rows)
		}
		if n, err := c.Count(t.Context(), "SELECT (COUNT(*) AS ?n) { GRAPH <"+g+"> { ?s ?p ?o } }"); err != nil || n != 5 {
			t.Error(n, err)
		}
		got = append(got, fmt.Sprintf("%q", rows))
		_ = c.Close()
	}
	if got[0] != got[1] {
		t.Errorf("JSON %s\nXML  %s", got[0], got[1])
	}
}

// FuzzXMLResults reads anything without a panic; rows have their columns.
func FuzzXMLResults(f *testing.F) {
	f.Add([]byte(xmlHead + "<results><result><binding name='s'><uri>u:x</uri></binding></result></results></sparql>"))
	f.Add([]byte(xmlHead + "<boolean>true</boolean></sparql>"))
	f.Add([]byte("<sparql><head/><results><result/>&#xD800;]]>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, vars, isAsk, _, err := newXML(bytes.NewReader(data))
		if err != nil || isAsk {
			return
		}
		rows, _ := collect(r)
		for _, row := range rows {
			if len(row) != len(vars) {
				t.Fatalf("%d columns of %d", len(row), len(vars))
			}
		}
	})
}
