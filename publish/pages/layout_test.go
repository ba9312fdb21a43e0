package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/publish/days"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const subject = "http://e.example/s"

// laid lays out a description in Turtle about subject; IRIs below http://e.example/here/ are of the set.
func laid(t *testing.T, turtle string) *Layout {
	t.Helper()
	ts, err := codec.Decode(rdfres.Turtle, []byte("@prefix e: <http://e.example/> . @prefix h: <http://e.example/here/> . @prefix rdf: <"+nsRDF+"> . @prefix rdfs: <"+nsRDFS+"> .\n"+turtle), rdfres.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lay(subject, rdfres.SortUnique(ts), func(iri string) (string, string) {
		if name, ok := strings.CutPrefix(iri, "http://e.example/here/"); ok {
			return "Label of " + name, "/set/r/" + name + ".html"
		}
		return "", ""
	})
}

func (l *Layout) row(t *testing.T, name string) Row {
	t.Helper()
	for _, r := range l.Rows {
		if strings.HasSuffix(r.IRI, "/"+name) || strings.HasSuffix(r.IRI, "#"+name) {
			return r
		}
	}
	t.Fatalf("no row %s in %+v", name, l.Rows)
	return Row{}
}

// show is a value as text.
func (v Value) show() string {
	switch {
	case v.IsList:
		var items []string
		for _, x := range v.List {
			items = append(items, x.show())
		}
		return "(" + strings.Join(items, " ") + ")"
	case v.IsNode:
		var rows []string
		for _, r := range v.Rows {
			rows = append(rows, r.Name+"="+r.Values[0].show())
		}
		return "[" + strings.Join(rows, " ") + "]"
	}
	return v.Text
}

func TestLayout(t *testing.T) {
	l := laid(t, `e:s a e:Thing, h:Class ; rdfs:label "Ding"@de, "Thing"@en ; rdfs:comment "What it\n is"@en ;
	  e:zone (1 (2 3) h:x [ e:a "in a list" ]) ; e:empty () ; e:node [ e:b [ e:c "deep" ] ] ; e:link h:y, e:elsewhere, <urn:x:y> ; e:num 7 .`)
	if l.Label != "Thing" || l.Lang != "en" || l.Comment != "What it is" {
		t.Errorf("heading %q %q %q", l.Label, l.Lang, l.Comment)
	}
	if len(l.Types) != 2 || l.Types[0].show() != "Thing" || l.Types[1].show() != "Label of Class" || l.Types[1].Href != "/set/r/Class.html" {
		t.Errorf("types %+v", l.Types)
	}
	names := ""
	for _, r := range l.Rows {
		names += r.Name[strings.LastIndexAny(r.Name, "/:")+1:] + " "
	}
	if names != "label comment empty link node num zone " {
		t.Errorf("rows %s", names)
	}
	for name, want := range map[string]string{
		"zone": "(1 (2 3) Label of x [a=in a list])", "empty": "()", "node": "[b=[c=deep]]", "num": "7",
	} {
		if got := l.row(t, name).Values[0].show(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	hrefs := ""
	for _, v := range l.row(t, "link").Values {
		hrefs += v.Href + " "
	}
	if hrefs != "http://e.example/elsewhere /set/r/y.html  " {
		t.Errorf("links %q", hrefs)
	}
	if v := l.row(t, "num").Values[0]; v.Datatype != "xsd:integer" || v.Title != nsXSD+"integer" {
		t.Errorf("datatype %+v", v)
	}
	if len(l.Others) != 0 {
		t.Errorf("others %+v", l.Others)
	}
}

// TestNoLists: chains that are no lists are shown as nodes, and all of them are shown.
func TestNoLists(t *testing.T) {
	for name, turtle := range map[string]string{
		"a cycle":        `e:s e:p _:a . _:a rdf:first 1 ; rdf:rest _:b . _:b rdf:first 2 ; rdf:rest _:a .`,
		"no end":         `e:s e:p _:a . _:a rdf:first 1 ; rdf:rest _:b . _:b rdf:first 2 .`,
		"two firsts":     `e:s e:p _:a . _:a rdf:first 1, 2 ; rdf:rest () .`,
		"something else": `e:s e:p _:a . _:a rdf:first 1 ; rdf:rest () ; e:note "n" .`,
		"an IRI":         `e:s e:p _:a . _:a rdf:first 1 ; rdf:rest e:more .`,
	} {
		l := laid(t, turtle)
		if v := l.row(t, "p").Values[0]; v.IsList || !v.IsNode {
			t.Errorf("%s: %s", name, v.show())
		}
	}
	shared := laid(t, `e:s e:p _:a ; e:q _:a . _:a rdf:first 1 ; rdf:rest () .`)
	if p, q := shared.row(t, "p").Values[0], shared.row(t, "q").Values[0]; p.show() != "(1)" || q.Href != "#"+p.Node {
		t.Errorf("a shared list: %+v and %+v", p, q)
	}
}

// TestBoundsOfLayout: many values are folded and cut, deep nodes follow as sections, long texts are folded.
func TestBoundsOfLayout(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "e:s e:many %d ; e:some %d .\n", i, i%25)
	}
	b.WriteString("e:s e:deep " + strings.Repeat("[ e:in ", 12) + `"bottom"` + strings.Repeat(" ]", 12) + " .\n")
	fmt.Fprintf(&b, "e:s e:long %q ; e:huge %q .\n", strings.Repeat("word ", 400), strings.Repeat("ä", 40000))
	l := laid(t, b.String())
	if r := l.row(t, "many"); len(r.Values) != 20 || len(r.Folded) != 180 || r.More != 100 {
		t.Errorf("300 values: %d open, %d folded, %d more", len(r.Values), len(r.Folded), r.More)
	}
	if r := l.row(t, "some"); len(r.Values) != 20 || len(r.Folded) != 5 || r.More != 0 {
		t.Errorf("25 values: %d open, %d folded, %d more", len(r.Values), len(r.Folded), r.More)
	}
	v := l.row(t, "deep").Values[0]
	for depth := 1; depth < mostDepth; depth++ {
		v = v.Rows[0].Values[0]
	}
	if end := v.Rows[0].Values[0]; end.IsNode || len(l.Others) != 1 || end.Href != "#"+l.Others[0].Node || !strings.Contains(l.Others[0].Rows[0].Values[0].show(), "bottom") {
		t.Errorf("deep: %+v, %+v", end, l.Others)
	}
	if v := l.row(t, "long").Values[0]; v.Text+v.Rest != strings.Repeat("word ", 400) || len(v.Text) > longText || v.Cut {
		t.Errorf("long text: %d and %d", len(v.Text), len(v.Rest))
	}
	if v := l.row(t, "huge").Values[0]; !v.Cut || len(v.Rest) > mostText || strings.Trim(v.Text+v.Rest, "ä") != "" {
		t.Errorf("huge text: %d and %d", len(v.Text), len(v.Rest))
	}
}

func TestChart(t *testing.T) {
	if c := ChartOf(make([]days.Day, 30)); c != nil {
		t.Errorf("nothing: %+v", c)
	}
	c := ChartOf([]days.Day{{Date: "2026-05-01"}, {Date: "2026-05-02", Created: 1000, Updated: 1, Deleted: 999}, {Date: "2026-05-03", Created: 1}})
	for _, b := range c.Bars {
		if b.DeletedAt < 0 || b.CreatedFrom+b.Created != 80 {
			t.Errorf("%+v", b)
		}
	}
	if c.Bars[1].Updated != 1 || c.Bars[2].Created != 1 || c.Bars[0].Created != 0 || c.Text != "2\u202f001 changes from 2026-05-01 to 2026-05-03, at most 2\u202f000 a day" {
		t.Errorf("%+v", c)
	}
}

// TestChangedWords: of two long texts the changed words are marked, with the words around them.
func TestChangedWords(t *testing.T) {
	long := strings.Repeat("a long life in few words ", 60)
	for _, tt := range []struct{ old, now, want string }{
		{"Albrecht Dürer, painter of Nuremberg", "Albrecht Dürer, engraver of Nuremberg", "Albrecht Dürer, [painter] of Nuremberg|Albrecht Dürer, [engraver] of Nuremberg"},
		{"born in Nuremberg in May", "born in May", "born in [Nuremberg in ]May|born in []May"},
		{"1471", "1473", "1471|1473"},
		{"one thing", "quite another", "one thing|quite another"},
		{"é a", "è a", "é a|è a"},
		{"same same", "same same same", "same []same|same [same ]same"},
		{long + "and an end", long + "with an end", "… few words a long life in few words a long life in few words [and] an end|… few words a long life in few words a long life in few words [with] an end"},
		{"first " + long, "second " + long, "[first] a long life in few words a long life in few words a long life …|[second] a long life in few words a long life in few words a long life …"},
	} {
		s, p := rdfres.NewIRI(subject), rdfres.NewIRI("http://e.example/p")
		of := func(text string) []rdfres.Triple {
			return []rdfres.Triple{{S: s, P: p, O: rdfres.NewLiteral(text, "en", "")}, {S: s, P: p, O: rdfres.NewLiteral("other "+text, "de", "")}}
		}
		gs := groups(subject, of(tt.old), of(tt.now), func(string) (string, string) { return "", "" })
		show := func(v Value) string {
			if v.Changed == nil {
				return v.Text
			}
			return v.Changed.Before + "[" + v.Changed.Text + "]" + v.Changed.After
		}
		if got := show(gs[0].Removed[0]) + "|" + show(gs[0].Added[0]); got != tt.want {
			t.Errorf("%.40q to %.40q:\n%s\nwant\n%s", tt.old, tt.now, got, tt.want)
		}
	}
	two := func(a, b string) []rdfres.Triple {
		s, p := rdfres.NewIRI(subject), rdfres.NewIRI("http://e.example/p")
		return []rdfres.Triple{{S: s, P: p, O: rdfres.NewLiteral(a, "", "")}, {S: s, P: p, O: rdfres.NewLiteral(b, "", "")}}
	}
	for _, g := range groups(subject, two("one of two", "two of two"), two("one of three", "two of three"), func(string) (string, string) { return "", "" }) {
		if g.Removed[0].Changed != nil || g.Added[1].Changed != nil {
			t.Errorf("of several values none is the new form of another: %+v", g)
		}
	}
}
