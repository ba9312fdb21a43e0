package codec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

var turtleGood = []struct{ name, doc, want string }{
	{"empty", "", ""},
	{"comments", "# a\n#b\r\n  # c", ""},
	{"triple", `<http://e/s> <http://e/p> <http://e/o> .`, `<s> <p> <o> .`},
	{"base", "@base <http://e/x/y> .\n<s> <#p> </o> .\n@base <../z/> . <a> <> <?q>.", "<x/s> <x/y#p> <o> .\n<z/a> <z/> <z/?q> ."},
	{"SPARQL base and prefix", "bAsE <http://e/>\nPrefix p: <p#>\n<s> p: p:o.", "<s> <p#> <p#o> ."},
	{"prefixes", "@prefix : <http://e/>.@prefix a.b: <http://e/ab/> .:s a.b:p.q :o .:s :p a.b:.", "<s> <ab/p.q> <o> .\n<s> <p> <ab/> ."},
	{"prefix redefined", "@prefix : <http://e/> . :a :b :c . @prefix : <http://e/2/> . :a :b :c .", "<a> <b> <c> .\n<2/a> <2/b> <2/c> ."},
	{"version", "@version \"1.2\" .\nVERSION '1.2-basic' # c\n@prefix version: <http://e/> . version \"x\"\nversion:s version:p version:o .", "<s> <p> <o> ."},
	{"prefix begins with a keyword", "@prefix a: <http://e/a/> . @prefix prefix: <http://e/p/> . @prefix base: <http://e/b/>. prefix:x a:y base:z. a:true a a:false .",
		"<p/x> <a/y> <b/z> .\n<a/true> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <a/false> ."},
	{"local names", `@prefix : <http://e/> . :1 :\-\-\. :a:b . :%41%2f :\~\!\$ :a·b . :é.é :_ :a\,b .`,
		"<1> <--.> <http://e/a:b> .\n<%41%2f> <~!$> <a·b> .\n<é.é> <_> <a,b> .\n"},
	{"a", "<http://e/s>a<http://e/o>.", "<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <o> ."},
	{"lists", "@prefix : <http://e/> . :s :p :a, :b , :c ;; :q :d ; .", "<s> <p> <a> .\n<s> <p> <b> .\n<s> <p> <c> .\n<s> <q> <d> ."},
	{"numbers", "@prefix : <http://e/> . :s :p 1, -01, +1.50, .5, 1e6, 1.E+3, -.5e-2, 1.0e0 .:s :q 2.:s :r 2.5.",
		`<s> <p> "1"` + rdftest.XSDSuffix + "integer> .\n" + `<s> <p> "-01"` + rdftest.XSDSuffix + "integer> .\n" + `<s> <p> "+1.50"` + rdftest.XSDSuffix + "decimal> .\n" + `<s> <p> ".5"` + rdftest.XSDSuffix + "decimal> .\n" +
			`<s> <p> "1e6"` + rdftest.XSDSuffix + "double> .\n" + `<s> <p> "1.E+3"` + rdftest.XSDSuffix + "double> .\n" + `<s> <p> "-.5e-2"` + rdftest.XSDSuffix + "double> .\n" + `<s> <p> "1.0e0"` + rdftest.XSDSuffix + "double> .\n" +
			`<s> <q> "2"` + rdftest.XSDSuffix + "integer> .\n" + `<s> <r> "2.5"` + rdftest.XSDSuffix + "decimal> ."},
	{"booleans", "@prefix : <http://e/> . @prefix true: <http://e/t/>. :s :p true, false, true:x.", `<s> <p> "true"` + rdftest.XSDSuffix + "boolean> .\n" + `<s> <p> "false"` + rdftest.XSDSuffix + "boolean> .\n<s> <p> <t/x> ."},
	{"quotes", `@prefix : <http://e/> . :s :p "a'b", 'a"b', """a"b""c
d""", '''e''f''', "", '', """""" .`, `<s> <p> "a'b" .
<s> <p> "a\"b" .
<s> <p> "a\"b\"\"c\nd" .
<s> <p> "e''f" .
<s> <p> "" .`},
	{"string escapes", `@prefix : <http://e/> . :s :p "\t\b\n\r\f\"\'\\\u00e9\U0001F303", """\"\u0041\\""" .`, `<s> <p> "\t\b\n\r\f\"'\\é🌃" .` + "\n" + `<s> <p> "\"A\\" .`},
	{"languages and types", `@prefix : <http://e/> . :s :p "a"@en-GB , "b"^^:d, "c"^^<http://e/d>, "d" ^^ :d, "e" @de .`, `<s> <p> "a"@en-GB .
<s> <p> "b"^^<d> .
<s> <p> "c"^^<d> .
<s> <p> "d"^^<d> .
<s> <p> "e"@de .`},
	{"IRI escapes", `<http://e/\u00e9> <http://e/\U0001F303> <http://e/\u0020> .`, `<é> <🌃> <\u0020> .`},
	{"labels", `_:a.b <http://e/p> _:1 . _:anon-1 <http://e/p> [] . [] <http://e/q> _:anon-3, _:anon-1, [], _:anon-2 .`, "_:a.b <p> _:1 .\n_:anon-1 <p> _:anon-2 .\n_:anon-3 <q> _:anon-x-anon-3 .\n_:anon-3 <q> _:anon-1 .\n_:anon-3 <q> _:anon-4 .\n_:anon-3 <q> _:anon-x-anon-2 ."},
	{"nested", "@prefix : <http://e/> . :s :p [ :q [ :r 'x' ] ; :t [] ] .", "<s> <p> _:anon-1 .\n_:anon-1 <q> _:anon-2 .\n_:anon-2 <r> \"x\" .\n_:anon-1 <t> _:anon-3 ."},
	{"subjects without a name", "@prefix : <http://e/> . [ :p :a ] . [ :p :b ] :q :c . [] :p :d .", "_:anon-1 <p> <a> .\n_:anon-2 <p> <b> .\n_:anon-2 <q> <c> .\n_:anon-3 <p> <d> ."},
	{"collections", "@prefix : <http://e/> . :s :p ( :a ( ) [ :q :b ] ) . ( 'x' ) :p () .", `<s> <p> _:anon-1 .
_:anon-1 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> <a> .
_:anon-1 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:anon-2 .
_:anon-2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> .
_:anon-2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:anon-3 .
_:anon-3 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> _:anon-4 .
_:anon-4 <q> <b> .
_:anon-3 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> .
_:anon-5 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> "x" .
_:anon-5 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> .
_:anon-5 <p> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil> .`},
	{"a comment ends nothing", "<http://e/s> # .\n <http://e/p> # ,\n 'a#b' # ;\n. # end", `<s> <p> "a#b" .`},
	{"bom", "\ufeff<http://e/s> <http://e/p> 1 .", `<s> <p> "1"` + rdftest.XSDSuffix + "integer> ."},
}

func TestTurtle(t *testing.T) {
	for _, c := range turtleGood {
		want := rdftest.Lines(rdftest.Parse(t, c.want))
		for _, f := range []rdfres.Format{rdfres.Turtle, rdfres.TriG} {
			got, err := codec.Decode(f, []byte(c.doc), rdfres.ReadOptions{})
			if err != nil {
				t.Errorf("%s (%s): %v", c.name, f, err)
			} else if rdftest.Lines(got) != want {
				t.Errorf("%s (%s): got\n%swant\n%s", c.name, f, rdftest.Lines(got), want)
			}
		}
		var slow []rdfres.Triple
		for q, err := range codec.Read(iotest.OneByteReader(strings.NewReader(c.doc)), rdfres.Turtle, rdfres.ReadOptions{}) {
			if err != nil {
				t.Errorf("%s, byte by byte: %v", c.name, err)
			}
			slow = append(slow, q.Triple)
		}
		if rdftest.Lines(rdfres.SortUnique(slow)) != want {
			t.Errorf("%s, byte by byte: got\n%swant\n%s", c.name, rdftest.Lines(slow), want)
		}
	}
}

func TestTurtleRefuses(t *testing.T) {
	const head = "@prefix : <http://e/> .\n"
	for _, c := range []struct{ doc, want string }{
		{"<s> <p> <o> .", "line 1, column 1: the IRI <s> is relative"},
		{head + ":s :p x:o .", `line 2, column 7: the prefix "x:" is not declared`},
		{head + ":s :p <http://e/a b> .", "line 2, column 18: a space cannot stand in an IRI"},
		{head + ":s :p <http://e/{a}> .", "'{' cannot stand"},
		{head + ":s :p :o", "'.' is missing"},
		{head + ":s :p", "ends in the middle"},
		{head + ":s :p .", "'.' cannot stand here"},
		{head + ":s .", "'.' cannot stand here"},
		{head + "'s' :p :o .", "a literal cannot stand here"},
		{head + ":s 'p' :o .", "the predicate"},
		{head + ":s _:p :o .", "the predicate"},
		{head + ":s [] :o .", "the predicate"},
		{head + ":s :p 'a\nb' .", "a line end cannot stand"},
		{head + ":s :p 'a .", "no closing quote"},
		{head + `:s :p """a"" .`, "no closing quote"},
		{head + `:s :p "\x" .`, "unknown escape"},
		{head + `:s :p "\ud800" .`, "surrogate"},
		{head + `:s :p <http://e/\n> .`, "unknown escape"},
		{head + `:s :p <http://e/\u00> .`, "hexadecimal"},
		{head + ":s :p 'a'@ .", "language tag"},
		{head + ":s :p 'a'@1 .", "language tag"},
		{head + ":s :p 'a'^:d .", "a datatype is written"},
		{head + ":s :p 'a'^^'d' .", "''' cannot stand here"},
		{head + ":s :p \"\xff\" .", "line 2, column 8: the text is not valid UTF-8"},
		{head + ":s :p ( :a .", "'.' cannot stand"},
		{head + ":s :p ( :a ", "')' is missing"},
		{head + ":s :p [ :q :a .", "']' is missing"},
		{head + ":s :p [ :q ] .", "cannot stand here"},
		{head + "( :a ) .", "'.' cannot stand"},
		{head + "[] .", "cannot stand"},
		{head + ":s :p :o } .", "'}' stands where '.' is missing"},
		{head + ":s :p :%4 .", "hexadecimal"},
		{head + `:s :p :\x .`, "unknown escape in a prefixed name"},
		{head + ":s :p 1a .", "missing"},
		{head + ":s :p TRUE .", "neither"},
		{head + ":s A :o .", "neither"},
		{"@PREFIX : <http://e/> .", "is @prefix, @base or @version"},
		{"@version '1.2'", "'.' is missing"},
		{"@version 1.2 .", "the version is missing"},
		{"VERSION", "the version is missing"},
		{"VERSION '1.2' .", "cannot stand here"},
		{"@prefix : <http://e/>", "'.' is missing"},
		{"PREFIX : <http://e/> .", "cannot stand here"},
		{"@prefix <http://e/> .", "prefix with its ':'"},
		{"@prefix _: <http://e/> .", "prefix with its ':'"},
		{"@base 'a' .", "the IRI of the base is missing"},
		{head + "<<:s :p :o>> :p :o .", "line 2, column 1: triple terms and reified triples (<< of RDF 1.2) cannot be read: have the source write RDF 1.1"},
		{"VERSION '1.2'\n" + head + ":s :p\n <<( :s :p :o )>> .", "line 4, column 2: triple terms and reified triples"},
		{head + "{ :s :p :o }", "cannot stand here"},
		{head + ":g { :s :p :o }", "cannot stand here"},
		{head + ":s = :o .", "'=' cannot stand"},
		{head + strings.Repeat("[ :p ", syntax.MaxNesting+1), "nested more than"},
		{head + ":s :p " + strings.Repeat("(", syntax.MaxNesting+1), "nested more than"},
	} {
		_, err := codec.Decode(rdfres.Turtle, []byte(c.doc), rdfres.ReadOptions{})
		if err == nil {
			t.Errorf("%s: accepted", chars.Cut(c.doc))
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", chars.Cut(c.doc), err, c.want)
		}
	}
}

func TestTriG(t *testing.T) {
	const doc = `@prefix : <http://e/> .
:s :p :o .
{ :s :p 1 . :t :p 2 }
:g { :s :p :o ; :q :r }
GRAPH _:b { [ :p :o ] . }
[] { :a :b :c . }
graph <http://e/h> { } graph [] {:d :e :f}
[ :x :y ] :z :w .
( :l ) :z :w .`
	var got []string
	for q, err := range codec.Read(strings.NewReader(doc), rdfres.TriG, rdfres.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.NewReplacer("http://e/", "", rdftest.XSDSuffix+"integer>", "", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf:").Replace(string(q.AppendLine(nil))))
	}
	want := []string{
		"<s> <p> <o> .\n", "<s> <p> \"1\" .\n", "<t> <p> \"2\" .\n", "<s> <p> <o> <g> .\n", "<s> <q> <r> <g> .\n", "_:anon-1 <p> <o> _:b .\n", "<a> <b> <c> _:anon-2 .\n",
		"<d> <e> <f> _:anon-3 .\n", "_:anon-4 <x> <y> .\n", "_:anon-4 <z> <w> .\n", "_:anon-5 <rdf:first> <l> .\n", "_:anon-5 <rdf:rest> <rdf:nil> .\n", "_:anon-5 <z> <w> .\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for _, bad := range []string{":g { :s :p :o", ":g { :s :p :o .. }", "[ :p :o ] { :a :b :c }", "( :a ) { :a :b :c }", "graph { }", ":g { @prefix a: <b> . }", "{ { } }", ":g { } .", "graph :g :s :p :o ."} {
		var err error
		for _, err = range codec.Read(strings.NewReader("@prefix : <http://e/> . "+bad), rdfres.TriG, rdfres.ReadOptions{}) {
		}
		if !errors.As(err, new(*rdfres.SyntaxError)) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := codec.Decode(rdfres.TriG, []byte("<http://e/g> { <http://e/a> <http://e/b> 1 }"), rdfres.ReadOptions{}); err == nil {
		t.Error("a named graph is decoded as one graph")
	}
}

func TestResolveIRI(t *testing.T) {
	const base = "http://a/b/c/d;p?q"
	for _, c := range [][2]string{ // RFC 3986, section 5.4
		{"g:h", "g:h"}, {"g", "http://a/b/c/g"}, {"./g", "http://a/b/c/g"}, {"g/", "http://a/b/c/g/"}, {"/g", "http://a/g"}, {"//g", "http://g"},
		{"?y", "http://a/b/c/d;p?y"}, {"g?y", "http://a/b/c/g?y"}, {"#s", "http://a/b/c/d;p?q#s"}, {"g#s", "http://a/b/c/g#s"}, {"g?y#s", "http://a/b/c/g?y#s"},
		{";x", "http://a/b/c/;x"}, {"g;x", "http://a/b/c/g;x"}, {"g;x?y#s", "http://a/b/c/g;x?y#s"}, {"", base}, {".", "http://a/b/c/"}, {"./", "http://a/b/c/"},
		{"..", "http://a/b/"}, {"../", "http://a/b/"}, {"../g", "http://a/b/g"}, {"../..", "http://a/"}, {"../../", "http://a/"}, {"../../g", "http://a/g"},
		{"../../../g", "http://a/g"}, {"../../../../g", "http://a/g"}, {"/./g", "http://a/g"}, {"/../g", "http://a/g"}, {"g.", "http://a/b/c/g."}, {".g", "http://a/b/c/.g"},
		{"g..", "http://a/b/c/g.."}, {"..g", "http://a/b/c/..g"}, {"./../g", "http://a/b/g"}, {"./g/.", "http://a/b/c/g/"}, {"g/./h", "http://a/b/c/g/h"}, {"g/../h", "http://a/b/c/h"},
		{"g;x=1/./y", "http://a/b/c/g;x=1/y"}, {"g;x=1/../y", "http://a/b/c/y"}, {"g?y/./x", "http://a/b/c/g?y/./x"}, {"g#s/../x", "http://a/b/c/g#s/../x"}, {"http:g", "http:g"},
		{"//h/../x", "http://h/x"}, {"//h", "http://h"},
	} {
		if got, ok := rdfres.ResolveIRI(base, c[0]); !ok || got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
	for _, c := range [][3]string{{"urn:a:b", "c", "urn:c"}, {"http://a", "b", "http://a/b"}, {"http://a?q", "", "http://a?q"}, {"file:///a/b", "c", "file:///a/c"}} {
		if got, ok := rdfres.ResolveIRI(c[0], c[1]); !ok || got != c[2] {
			t.Errorf("%q + %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
	if _, ok := rdfres.ResolveIRI("", "a"); ok {
		t.Error("resolved without a base")
	}
}

func TestReadBounds(t *testing.T) {
	doc := strings.Repeat("<http://e/s> <http://e/p> 'a' .\n", 1000)
	for _, f := range []rdfres.Format{rdfres.Turtle, rdfres.TriG, rdfres.NTriples} {
		text := doc
		if f == rdfres.NTriples {
			text = strings.ReplaceAll(doc, "'", `"`)
		}
		for _, max := range []int64{0, int64(len(doc)), int64(len(doc)) - 1} {
			var last error
			for _, err := range codec.Read(strings.NewReader(text), f, rdfres.ReadOptions{MaxBytes: max}) {
				last = err
			}
			if tooMuch := max > 0 && max < int64(len(doc)); tooMuch != (last != nil) {
				t.Errorf("%s with a bound of %d: %v", f, max, last)
			}
		}
		var last error
		for _, err := range codec.Read(iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(text))), f, rdfres.ReadOptions{Name: "doc"}) {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), "timeout") {
			t.Errorf("%s: a failing reader gives %v", f, last)
		}
		n := 0
		for range codec.Read(strings.NewReader(text), f, rdfres.ReadOptions{}) {
			if n++; n == 3 {
				break
			}
		}
	}
}
