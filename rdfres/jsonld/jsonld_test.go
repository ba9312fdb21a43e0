package jsonld_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

func TestJSONLDForm(t *testing.T) {
	const typ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
	for _, c := range []struct{ name, graph, want string }{
		{"empty", "", `[]`},
		{"values", `<s> <p> "a" .
<s> <p> "b"@en-GB .
<s> <p> "1"^^<d> .
<s> <p> <o> .
<s> <p> _:b .
<s> ` + typ + ` <C> .
<s> ` + typ + ` _:d .
<s> ` + typ + ` "lit" .`,
			`[{"@id":"http://e/s","@type":["http://e/C","_:d"],"http://e/p":[{"@type":"http://e/d","@value":"1"},{"@value":"a"},{"@language":"en-GB","@value":"b"},{"@id":"http://e/o"},{"@id":"_:b"}],` +
				`"http://www.w3.org/1999/02/22-rdf-syntax-ns#type":[{"@value":"lit"}]}]`},
		{"text", `<s> <p> "\"\\/\b\f\n\r\t\u0001\u001F\u007F&é🌃" .
<\u0022\u005C\u0020> <p> "" .`,
			`[{"@id":"http://e/s","http://e/p":[{"@value":"\"\\/\b\f\n\r\t\u0001\u001f` + "\x7f" + `&é🌃"}]},{"@id":"http://e/\"\\ ","http://e/p":[{"@value":""}]}]`},
		{"members in the order of their names", `<s> <p> "1" .
<s> <p#x> "2" .
<s> <pq> "3" .`, `[{"@id":"http://e/s","http://e/p":[{"@value":"1"}],"http://e/p#x":[{"@value":"2"}],"http://e/pq":[{"@value":"3"}]}]`},
		{"the entity first", `<a> <p> "1" .
<s> <p> "2" .`, `[{"@id":"http://e/s","http://e/p":[{"@value":"2"}]},{"@id":"http://e/a","http://e/p":[{"@value":"1"}]}]`},
		{"tree", `<s> <p> _:x .
_:x <p> _:y .
_:y <q> "1" .`, `[{"@id":"http://e/s","http://e/p":[{"@id":"_:x","http://e/p":[{"@id":"_:y","http://e/q":[{"@value":"1"}]}]}]}]`},
		{"shared", `<s> <p> _:x .
<s> <q> _:x .
_:x <q> "1" .`, `[{"@id":"http://e/s","http://e/p":[{"@id":"_:x"}],"http://e/q":[{"@id":"_:x"}]},{"@id":"_:x","http://e/q":[{"@value":"1"}]}]`},
		{"type is a string", `<s> ` + typ + ` _:x .
_:x <q> "1" .`, `[{"@id":"http://e/s","@type":["_:x"]},{"@id":"_:x","http://e/q":[{"@value":"1"}]}]`},
		{"cycle", `_:a <p> _:b .
_:b <p> _:a .
_:b <q> _:c .
_:c <q> "1" .`, `[{"@id":"_:a","http://e/p":[{"@id":"_:b","http://e/p":[{"@id":"_:a"}],"http://e/q":[{"@id":"_:c","http://e/q":[{"@value":"1"}]}]}]}]`},
		{"loop", `_:a <p> _:a .`, `[{"@id":"_:a","http://e/p":[{"@id":"_:a"}]}]`},
		{"entity led to", `<s> <p> <s> .
<s> <p> _:a .
_:a <p> <s> .`, `[{"@id":"http://e/s","http://e/p":[{"@id":"http://e/s"},{"@id":"_:a","http://e/p":[{"@id":"http://e/s"}]}]}]`},
	} {
		ts := rdftest.Parse(t, c.graph)
		got, err := codec.EncodeChecked(rdfres.JSONLD, "http://e/s", ts)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

func TestJSONLDNestingIsBounded(t *testing.T) {
	ts := []rdfres.Triple{{S: rdfres.NewIRI("http://e/s"), P: rdfres.NewIRI("http://e/p"), O: "_:n0"}}
	for i := range 20_000 {
		ts = append(ts, rdfres.Triple{S: rdfres.Term(fmt.Sprintf("_:n%d", i)), P: rdfres.NewIRI("http://e/p"), O: rdfres.Term(fmt.Sprintf("_:n%d", i+1))})
	}
	data, err := codec.EncodeChecked(rdfres.JSONLD, "http://e/s", ts)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err) // encoding/json ends at 10,000
	}
	depth, most := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth--
		}
	}
	if most > 2*64+3 {
		t.Errorf("nested %d deep", most)
	}
}

func TestJSONLDReader(t *testing.T) {
	const rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	for _, c := range []struct{ name, doc, want string }{
		{"object instead of an array", ` { "@id" : "http://e/s" , "http://e/p" : [ { "@value" : "a" } ] } `, `<s> <p> "a" .`},
		{"native values", `[{"@id":"http://e/s","http://e/p":["a",1,-0,1.0,1e3,1.5,-2.5e-7,true,false,null,{"@value":null},123456789012345678]}]`,
			`<s> <p> "a" .
<s> <p> "1"` + rdftest.XSDSuffix + `integer> .
<s> <p> "0"` + rdftest.XSDSuffix + `integer> .
<s> <p> "1000"` + rdftest.XSDSuffix + `integer> .
<s> <p> "1.5E0"` + rdftest.XSDSuffix + `double> .
<s> <p> "-2.5E-7"` + rdftest.XSDSuffix + `double> .
<s> <p> "true"` + rdftest.XSDSuffix + `boolean> .
<s> <p> "false"` + rdftest.XSDSuffix + `boolean> .
<s> <p> "123456789012345678"` + rdftest.XSDSuffix + `integer> .`},
		{"one value without an array", `{"@id":"http://e/s","http://e/p":"a","http://e/q":{"@id":"http://e/o"}}`, "<s> <p> \"a\" .\n<s> <q> <o> ."},
		{"typed numbers", `{"@id":"http://e/s","http://e/p":[{"@value":1,"@type":"` + chars.XSDDouble + `"},{"@type":"http://e/d","@value":5},{"@value":true,"@type":"http://e/d"}]}`,
			`<s> <p> "1.0E0"` + rdftest.XSDSuffix + "double> .\n<s> <p> \"5\"^^<d> .\n<s> <p> \"true\"^^<d> ."},
		{"members in any order", `{"http://e/p":[{"@language":"en","@value":"a"},{"http://e/q":"b","@type":"http://e/C","@id":"_:x"}],"@type":"http://e/D","@id":"http://e/s"}`,
			"<s> <p> \"a\"@en .\n<s> <p> _:x .\n_:x <q> \"b\" .\n_:x <" + rdf + "type> <C> .\n<s> <" + rdf + "type> <D> ."},
		{"nodes without a name", `[{"http://e/p":{"http://e/q":1}},{"http://e/p":{}}]`, "_:anon-1 <p> _:anon-2 .\n_:anon-2 <q> \"1\"" + rdftest.XSDSuffix + "integer> .\n_:anon-3 <p> _:anon-4 ."},
		{"lists", `{"@id":"http://e/s","http://e/p":{"@list":["a",{"@list":[]}]},"http://e/q":[{"@set":["b",{"@value":"c"}]}]}`,
			"<s> <p> _:anon-1 .\n_:anon-1 <" + rdf + "first> \"a\" .\n_:anon-1 <" + rdf + "rest> _:anon-2 .\n_:anon-2 <" + rdf + "first> <" + rdf + "nil> .\n_:anon-2 <" + rdf + "rest> <" + rdf + "nil> .\n<s> <q> \"b\" .\n<s> <q> \"c\" ."},
		{"graph at the top", `{"@graph":[{"@id":"http://e/s","http://e/p":"a"}]}`, `<s> <p> "a" .`},
		{"reverse and included", `{"@id":"http://e/s","@reverse":{"http://e/p":[{"@id":"http://e/o"}]},"@included":[{"@id":"http://e/x","http://e/p":"y"}],"@index":"i"}`, "<o> <p> <s> .\n<x> <p> \"y\" ."},
		{"escapes", `{"\u0040id":"http:\/\/e\/s\u0020","http://e/p\u0041":"\u00e9\ud83c\udf03\/\u007f\\\""}`, `<s\u0020> <pA> "é🌃/\u007F\\\"" .`},
		{"base", `{"@id":"#s","http://e/p":{"@id":"o"}}`, "<x#s> <p> <o> ."},
		{"names that come last", `{"http://e/p":{"http://e/q":{"http://e/r":1,"@id":"http://e/c"},"@id":"http://e/b"},"@type":"http://e/T","@id":"http://e/a"}`, "<a> <" + rdf + "type> <T> .\n<a> <p> <b> .\n<b> <q> <c> .\n<c> <r> \"1\"" + rdftest.XSDSuffix + "integer> ."},
		{"many types before the name", `{"@type":["http://e/1","http://e/2","http://e/3","http://e/4","http://e/5","http://e/6","http://e/7","http://e/8","http://e/9","http://e/10","http://e/11","http://e/12","http://e/13","http://e/14","http://e/15","http://e/16","http://e/17"],"@id":"http://e/a"}`, manyTypes("<a>", 17)},
		{"nothing said of it", `[{"@id":"http://e/s"}]`, ""},
		{"only a type", `[{"@id":"http://e/s","@type":["http://e/C"]}]`, "<s> <" + rdf + "type> <C> ."},
		{"blank that looks like ours", `[{"@id":"_:anon-1","http://e/p":{}},{"http://e/p":{"@id":"_:anon-2"}}]`, "_:anon-1 <p> _:anon-2 .\n_:anon-3 <p> _:anon-x-anon-2 ."},
		{"a language before an empty value", `[{"@id":"http://e/s","http://e/p":{"@value":"","@language":"en"}}]`, `<s> <p> ""@en .`},
		{"context", `{"@context":{"@base":"http://e/","name":"http://e/name","know":{"@id":"http://e/know","@type":"@id"},"@language":"en"},"@id":"s","name":"a","know":"o","dropped":1}`, "<s> <name> \"a\"@en .\n<s> <know> <o> ."},
		{"long numbers with a context", `{"@context":{"@version":1.1,"p":"http://e/p"},"@id":"http://e/s","p":[9007199254740993,12345678901234567890,{"@value":18446744073709551617},1.50]}`,
			"<s> <p> \"9007199254740993\"" + rdftest.XSDSuffix + "integer> .\n<s> <p> \"12345678901234567890\"" + rdftest.XSDSuffix + "integer> .\n<s> <p> \"18446744073709551617\"" + rdftest.XSDSuffix + "integer> .\n<s> <p> \"1.5E0\"" + rdftest.XSDSuffix + "double> ."},
		{"relative IRIs with a context", `{"@context":{"p":{"@id":"http://e/p","@type":"@id"}},"@id":"Zürich","@type":"a%2Fb/é","p":["a//b","#","c/../d","?q=ü",""]}`,
			"<Zürich> <" + rdf + "type> <a%2Fb/é> .\n<Zürich> <p> <a//b> .\n<Zürich> <p> <x#> .\n<Zürich> <p> <d> .\n<Zürich> <p> <x?q=ü> .\n<Zürich> <p> <x> ."},
		{"bases with a context", `{"@context":[{"@base":"é/x"},{"@base":"ü","p":{"@id":"http://e/p","@type":"@id"}}],"@id":"#s","p":"ö"}`, "<é/ü#s> <p> <é/ö> ."},
		{"a base below", `{"@context":{"p":{"@id":"http://e/p","@type":"@id"}},"@id":"ü","p":{"@context":{"@base":"http://e/b/"},"@id":"o","p":"q"}}`, "<ü> <p> <b/o> .\n<b/o> <p> <b/q> ."},
		{"a relative base below", `{"@context":{"p":{"@id":"http://e/p","@type":"@id"}},"@id":"s","p":{"@context":{"@base":"b/"},"@id":"o","p":"q"}}`, "<s> <p> <b/o> .\n<b/o> <p> <b/q> ."},
		{"a context that ends the base", `{"@context":{"@base":"http://e/b/","p":{"@id":"http://e/p","@type":"@id"}},"@id":"s","p":{"@context":[null,{"p":{"@id":"http://e/p","@type":"@id"}}],"@id":"o","p":"q"}}`, "<b/s> <p> <o> .\n<o> <p> <q> ."},
		{"the context last, and several", `[{"p":"a","@id":"ä","@context":{"p":"http://e/p"}},{"@id":"ü","p":"b","@context":{"@base":"c/","p":"http://e/q"}}]`, "<ä> <p> \"a\" .\n<c/ü> <q> \"b\" ."},
		{"a list that nothing leads to", `[{"@list":["a",{"@id":"http://e/x","http://e/p":"b"}]},{"@id":"http://e/s","http://e/p":"c"}]`, `<s> <p> "c" .`},
		{"a vocabulary that is relative", `{"@context":{"@vocab":"#"},"@id":"s","p":1}`, "<s> <x#p> \"1\"" + rdftest.XSDSuffix + "integer> ."},
		{"context below", `[{"@id":"http://e/s","http://e/p":{"@context":{"q":"http://e/q"},"q":5}}]`, "<s> <p> _:anon-1 .\n_:anon-1 <q> \"5\"" + rdftest.XSDSuffix + "integer> ."},
	} {
		got, err := codec.Decode(rdfres.JSONLD, []byte(c.doc), rdfres.ReadOptions{Base: "http://e/x"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if want := rdftest.Lines(rdftest.Parse(t, c.want)); rdftest.Lines(got) != want {
			t.Errorf("%s: got\n%swant\n%s", c.name, rdftest.Lines(got), want)
		}
	}
}

func manyTypes(of string, n int) string {
	const rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	out := ""
	for i := range n {
		out += fmt.Sprintf("%s <%stype> <%d> .\n", of, rdf, i+1)
	}
	return out
}

func TestJSONLDReaderRefuses(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{``, "the end of the document stands where a JSON-LD document"},
		{`"a"`, "JSON-LD document"},
		{`[`, "a node object is missing"},
		{`[{"@id":"http://e/s"}`, "the end of the document stands where ','"},
		{`[{"@id":"http://e/s"},]`, "a node object is missing"},
		{`[{"@id":"http://e/s",}]`, `'"' is missing`},
		{`[{"@id":"http://e/s"}] x`, "line 1, column 24: something stands after the document"},
		{"[\n {\"@id\":\"s\"}]", `line 2, column 9: the IRI "s" is relative and there is no base`},
		{`[{"name":"a"}]`, `the name "name" is no IRI and the document has no context`},
		{`{"error":"not found"}`, "no context"},
		{`[{"@id":5}]`, "@id is no string"},
		{`[{"@id":"http://e/a","@id":"http://e/b"}]`, "two @id"},
		{`[{"_:p":"a"}]`, "cannot be a predicate"},
		{`[{"http://e/p":[["a"]]}]`, "an array"},
		{`[{"http://e/p":[01]}]`, "no JSON value"},
		{`[{"http://e/p":[1.]}]`, "no JSON value"},
		{`[{"http://e/p":[tru]}]`, "no JSON value"},
		{"[{\"http://e/p\":\"a\nb\"}]", "control character"},
		{`[{"http://e/p":"a`, "closing quote"},
		{`[{"http://e/p":"\x"}]`, "bad escape"},
		{`[{"http://e/p":"\'"}]`, "bad escape"},
		{`[{"http://e/p":"\U00000041"}]`, "bad escape"},
		{`[{"http://e/p":"\ud800"}]`, "surrogate"},
		{`[{"http://e/p":"\udc00\ud800"}]`, "surrogate"},
		{"[{\"http://e/p\":\"\xff\"}]", "UTF-8"},
		{`[{"http://e/p":{"@value":"a","@language":"en","@type":"http://e/d"}}]`, "a type and a language"},
		{`[{"http://e/p":{"@value":"a","@type":["http://e/d","http://e/e"]}}]`, "more than one type"},
		{`[{"http://e/p":{"@value":"a","@id":"http://e/d"}}]`, "cannot have"},
		{`[{"http://e/p":{"@value":"a","http://e/q":"b"}}]`, "cannot have"},
		{`[{"http://e/p":{"@value":5,"@language":"en"}}]`, "no string"},
		{`[{"http://e/p":{"@value":"a","@language":"e n"}}]`, "language tag"},
		{`[{"http://e/p":{"@value":"a","@language":"en_US"}}]`, "\"en_US\" is no language tag"}, // no other format could carry it
		{`[{"@id":"http://e/s","http://e/p":[{"@language":"en_US","@value":"a"}]}]`, "language tag"},
		{`[{"http://e/p":{"@value":"a","@language":"en-"}}]`, "language tag"},
		{`{"@context":{"@language":"en_US"},"http://e/p":"a"}`, "language tag"},
		{`{"@context":{"p":{"@id":"http://e/p","@container":"@language"}},"p":{"en_US":"a"}}`, "language tag"},
		{`[{"http://e/p":{"@value":"a","@type":"d"}}]`, "no base"},
		{`[{"http://e/p":{"@value":{}}}]`, "no string, number or boolean"},
		{`[{"http://e/p":{"@value":[1e999],"@type":"@json"}}]`, "out of range"},
		{`[{"http://e/p":{"@value":{"a":1,"\u0061":2},"@type":"@json"}}]`, "stands twice"},
		{`[{"http://e/p":{"@list":["a"],"@id":"http://e/d"}}]`, "cannot have"},
		{`["a"]`, "a node object is missing"},
		{`[{"@nest":{}}]`, "@nest cannot stand"},
		{`[{"@id":"http://e/g","@graph":[{"@id":"http://e/s","http://e/p":"a"}]}]`, "stands in the graph <http://e/g>"},
		{`{"@context":5,"@id":"http://e/s"}`, "context"},
		{strings.Repeat("[", syntax.MaxNesting+2), "nested"},
		{strings.Repeat(`[{"http://e/p":`, syntax.MaxNesting), "nested"},
	} {
		got, err := codec.Decode(rdfres.JSONLD, []byte(c.doc), rdfres.ReadOptions{})
		switch {
		case strings.Contains(c.want, "no base") && !strings.Contains(c.doc, "\n"):
			if err == nil {
				t.Errorf("%s: accepted", chars.Cut(c.doc))
			}
		case err == nil:
			t.Errorf("%s: accepted as %s", chars.Cut(c.doc), rdftest.Lines(got))
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v; want %s", chars.Cut(c.doc), err, c.want)
		}
	}
	_, err := codec.Decode(rdfres.JSONLD, []byte(`{"@context":"http://example.org/context.jsonld","@id":"http://e/s","name":"a"}`), rdfres.ReadOptions{Name: "doc"})
	if !errors.Is(err, rdfres.ErrRemoteContext) || !strings.Contains(err.Error(), "http://example.org/context.jsonld") {
		t.Errorf("a remote context: %v", err)
	}
}

func TestJSONLDContexts(t *testing.T) {
	const doc = `{"@context":["a.jsonld",{"w":"v:w"}],"@id":"http://e/s","v:p":"1","w":"2","sub":{"@id":"http://e/t","q":"3"}}`
	const plain = "<http://e/s> <http://v/p> \"1\" .\n<http://e/s> <http://v/w> \"2\" .\n"
	for name, c := range map[string]struct{ a, b, want string }{
		"prefixes":           {`{"@context":{"v":"http://v/"}}`, ``, plain},
		"relative to itself": {`{"@context":["x/b.jsonld"]}`, `{"@context":{"v":"http://v/"}}`, plain},
		"imported":           {`{"@context":{"@version":1.1,"@import":"x/b.jsonld","w2":"v:w"}}`, `{"@context":{"v":"http://v/"}}`, plain},
		"of a member": {`{"@context":{"@version":1.1,"v":"http://v/","sub":{"@id":"v:sub","@context":"x/b.jsonld"}}}`, `{"@context":{"q":"http://q"}}`,
			"<http://e/s> <http://v/p> \"1\" .\n<http://e/s> <http://v/sub> <http://e/t> .\n<http://e/s> <http://v/w> \"2\" .\n<http://e/t> <http://q> \"3\" .\n"},
		"in a circle":      {`{"@context":"x/b.jsonld"}`, `{"@context":"../a.jsonld"}`, "leads to itself"},
		"no object":        {`[1]`, ``, "no JSON object"},
		"without one":      {`{"a":1}`, ``, "no JSON object with a @context"},
		"gone":             {``, ``, "the document needs a JSON-LD context from elsewhere: http://c/a.jsonld is gone"},
		"the next is gone": {`{"@context":"x/b.jsonld"}`, ``, "http://c/x/b.jsonld is gone"},
		"a relative vocabulary": {`{"@context":{"@vocab":"#"}}`, ``,
			"<http://e/s> <http://c/doc#sub> <http://e/t> .\n<http://e/s> <v:p> \"1\" .\n<http://e/s> <v:w> \"2\" .\n<http://e/t> <http://c/doc#q> \"3\" .\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ts, err := codec.Decode(rdfres.JSONLD, []byte(doc), rdfres.ReadOptions{Name: "doc", Base: "http://c/doc", Context: func(address string) ([]byte, string, error) {
				switch {
				case address == "http://c/a.jsonld" && c.a != "":
					return []byte(c.a), address, nil
				case address == "http://c/x/b.jsonld" && c.b != "":
					return []byte(c.b), address, nil
				}
				return nil, "", errors.New(address + " is gone")
			}})
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && rdftest.Lines(ts) != c.want {
				t.Errorf("%s%v", rdftest.Lines(ts), err)
			}
		})
	}
}

func TestJSONLDGraphs(t *testing.T) {
	const doc = `{"@id":"http://e/g","http://e/p":"a","@graph":[{"@id":"http://e/s","http://e/p":{"@id":"http://e/t","http://e/q":"b"}}]}`
	var got strings.Builder
	for q, err := range codec.Read(strings.NewReader(doc), rdfres.JSONLD, rdfres.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got.Write(q.AppendLine(nil))
	}
	const want = "<http://e/g> <http://e/p> \"a\" .\n<http://e/t> <http://e/q> \"b\" <http://e/g> .\n<http://e/s> <http://e/p> <http://e/t> <http://e/g> .\n"
	if got.String() != want {
		t.Errorf("got %s", got.String())
	}
}

// The form is what RFC 8785 writes of its own value.
func TestJSONLDFormIsCanonicalJSON(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		entity, ts := rdftest.NastyGraph(r, 20, true)
		data, err := codec.Encode(rdfres.JSONLD, entity, ts)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		var again strings.Builder
		enc := json.NewEncoder(&again)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(doc); err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(again.String(), "\n"))
		if string(data) != want {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, data, want)
		}
	}
}
