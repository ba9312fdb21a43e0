package embedstore

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"math/big"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/rdfres"
)

// w3cAllowed are the tests that fail, and why (docs/reference/stores.md). One that begins to hold has
// to leave the list.
var w3cAllowed = map[string]string{
	"sparql11/syntax-update-1/test_49":    "an update is run as it is read: LOAD is refused before the error behind it is seen",
	"sparql10/graph/graph-variable-scope": "the variable of GRAPH is bound within its group",
	"sparql10/graph/graph-optional":       "the variable of GRAPH is bound within its group",
}

// w3cTest is a test of the W3C suites.
type w3cTest struct {
	files map[string][]byte
	m     manifest
	iri   rdfres.Term
}

// The W3C suites for queries, updates, syntax and formats of results.
func TestW3CQueries(t *testing.T) {
	files := w3cFiles(t)
	tests := map[string]w3cTest{}
	for _, top := range []string{"sparql11/manifest-sparql11-query.ttl", "sparql11/manifest-sparql11-update.ttl", "sparql11/manifest-sparql11-results.ttl", "sparql10/manifest-evaluation.ttl", "sparql10/manifest-syntax.ttl"} {
		top = "sparql/" + top
		all := readManifest(t, files, top)
		for _, part := range all.list(all.one(rdfres.NewIRI(w3cBase+top), "include")) {
			file := strings.TrimPrefix(part.IRI(), w3cBase)
			m := readManifest(t, files, file)
			for _, iri := range m.tests() {
				_, local, _ := strings.Cut(iri.IRI(), "#")
				name := strings.TrimPrefix(pathpkg.Dir(file), "sparql/") + "/" + local
				if _, twice := tests[name]; twice {
					t.Errorf("the suites have two tests %s", name)
				}
				tests[name] = w3cTest{files, m, iri}
			}
		}
	}
	if len(tests) < 900 {
		t.Errorf("the suites have %d tests, not 900 or more", len(tests))
	}
	for name := range w3cAllowed {
		if _, ok := tests[name]; !ok {
			t.Errorf("%s is allowed to fail, and is no test", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tests[name].run(t)
			reason, allowed := w3cAllowed[name]
			switch {
			case !allowed && err != nil:
				t.Error(err)
			case allowed && err == nil:
				t.Errorf("holds, and is allowed to fail: %s", reason)
			}
		})
	}
}

// run is nil for a test that holds.
func (w w3cTest) run(t *testing.T) error {
	s, err := Open(t.TempDir(), Options{CacheBytes: 1 << 20, fs: vfs.NewMem()}) // quicker than a disk
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	action := w.m.one(w.iri, "action")
	kind := w.m.text(w.iri, "type")
	kind = strings.TrimSuffix(kind[strings.LastIndexByte(kind, '#')+1:], "11")
	switch kind {
	case "PositiveSyntaxTest", "NegativeSyntaxTest", "PositiveUpdateSyntaxTest", "NegativeUpdateSyntaxTest":
		text, base := w.file(t, action), action.IRI()
		if strings.Contains(kind, "Update") {
			err = s.UpdateFrom(t.Context(), bytes.NewReader(text), UpdateOptions{Base: base})
		} else {
			var r *Result
			if r, err = s.Query(t.Context(), string(text), QueryOptions{Base: base}); err == nil {
				r.Close()
			}
		}
		var wrong *SyntaxError
		switch {
		case strings.HasPrefix(kind, "Positive"):
			if errors.Is(err, ErrUnsupported) { // it was read
				err = nil
			}
			return err
		case !errors.As(err, &wrong):
			return fmt.Errorf("%v, not a syntax error: %s", err, text)
		}
		return nil
	case "UpdateEvaluationTest":
		return w.update(t, s, action)
	case "QueryEvaluationTest", "CSVResultFormatTest":
		return w.query(t, s, action)
	}
	t.Fatalf("a test of the kind %q", kind)
	return nil
}

func (w w3cTest) update(t *testing.T, s *Store, action rdfres.Term) error {
	given, want := w.dataset(t, action), w.dataset(t, w.m.one(w.iri, "result"))
	if err := fill(t, s, given); err != nil {
		return err
	}
	request := w.m.one(action, "request")
	if err := s.UpdateFrom(t.Context(), bytes.NewReader(w.file(t, request)), UpdateOptions{Base: request.IRI()}); err != nil {
		return err
	}
	var got []rdfres.Quad
	for _, line := range content(t, s) {
		q, _, err := rdfres.ParseLine([]byte(line))
		if err != nil {
			return err
		}
		got = append(got, q)
	}
	return same(t, got, want)
}

func (w w3cTest) query(t *testing.T, s *Store, action rdfres.Term) error {
	file := w.m.one(action, "query")
	text, base := string(w.file(t, file)), file.IRI()
	q, err := parseQuery(text, base)
	if err != nil {
		return err
	}
	given := w.dataset(t, action)
	for _, g := range slices.Concat(q.from.graphs, q.from.named) { // documents of the suite
		known := slices.ContainsFunc(given, func(x rdfres.Quad) bool { return string(x.G) == g })
		if !known && w.files[strings.TrimPrefix(rdfres.Term(g).IRI(), w3cBase)] != nil {
			given = append(given, w.quads(t, rdfres.Term(g), rdfres.Term(g))...)
		}
	}
	if err := fill(t, s, given); err != nil {
		return err
	}
	r, err := s.Query(t.Context(), text, QueryOptions{Base: base})
	if err != nil {
		return err
	}
	defer r.Close()
	result := w.m.one(w.iri, "result")
	if r.Kind == Graph {
		var got []rdfres.Quad
		for x, err := range r.Triples() {
			if err != nil {
				return err
			}
			got = append(got, rdfres.Quad{Triple: x})
		}
		return same(t, got, w.quads(t, result, ""))
	}
	format, ok := map[string]rowFormat{".srx": rowsXML, ".srj": rowsJSON, ".tsv": rowsTSV, ".csv": rowsCSV}[pathpkg.Ext(result.IRI())]
	ordered := len(q.orderBy) > 0
	var want answer
	if ok {
		want, err = readAnswer(format, w.file(t, result))
	} else { // a graph that describes them
		format = rowsJSON
		var indexed bool
		want, indexed, err = describedAnswer(indexTriples(w3cTriples(t, w.files, strings.TrimPrefix(result.IRI(), w3cBase))))
		ordered = ordered && indexed
	}
	if err != nil {
		t.Fatal(err) // the suite's fault
	}
	var b bytes.Buffer
	if err := r.writeRows(&b, format); err != nil {
		return err
	}
	got, err := readAnswer(format, b.Bytes())
	if err != nil {
		return fmt.Errorf("%w: %s", err, &b)
	}
	if w.m.text(w.iri, "resultCardinality") != "" { // lax: REDUCED may leave doubles out
		if len(got.rows) > len(want.rows) {
			return fmt.Errorf("%d rows, more than %d", len(got.rows), len(want.rows))
		}
		got.leaveOutDoubles()
		want.leaveOutDoubles()
	}
	if slices.Sort(got.vars); !slices.Equal(got.vars, slices.Sorted(slices.Values(want.vars))) {
		return fmt.Errorf("the variables are %q, not %q", got.vars, want.vars)
	}
	return same(t, got.quads(ordered), want.quads(ordered))
}

// file is one of the suite, by its address.
func (w w3cTest) file(t *testing.T, iri rdfres.Term) []byte {
	t.Helper()
	text, ok := w.files[strings.TrimPrefix(iri.IRI(), w3cBase)]
	if !ok {
		t.Fatalf("the suite has no %s", iri)
	}
	return text
}

// quads are those of a document, in a graph, with blank nodes of their own.
func (w w3cTest) quads(t *testing.T, document, graph rdfres.Term) (out []rdfres.Quad) {
	t.Helper()
	own := func(x rdfres.Term) rdfres.Term {
		if x.Kind() != rdfres.KindBlank {
			return x
		}
		return rdfres.NewBlank(fmt.Sprintf("%x%s", graph, x.Label()))
	}
	for _, x := range w3cTriples(t, w.files, strings.TrimPrefix(document.IRI(), w3cBase)) {
		out = append(out, rdfres.Quad{Triple: rdfres.Triple{S: own(x.S), P: x.P, O: own(x.O)}, G: graph})
	}
	return out
}

// dataset are the quads that an action begins with, or that a result has.
func (w w3cTest) dataset(t *testing.T, node rdfres.Term) (out []rdfres.Quad) {
	t.Helper()
	for _, d := range w.m[node]["data"] {
		out = append(out, w.quads(t, d, "")...)
	}
	for _, d := range w.m[node]["graphData"] {
		document, name := d, d
		if d.Kind() == rdfres.KindBlank {
			document = w.m.one(d, "graph")
			name = rdfres.NewIRI(w.m.text(d, "label"))
		}
		out = append(out, w.quads(t, document, name)...)
	}
	return out
}

func fill(t *testing.T, s *Store, qs []rdfres.Quad) error {
	var text []byte
	for _, q := range qs {
		text = q.AppendLine(text)
	}
	_, err := s.Load(t.Context(), "", rdfres.NQuads, bytes.NewReader(text), LoadOptions{})
	return err
}

// same compares datasets, with blank nodes by isomorphism and numbers by value.
func same(t *testing.T, got, want []rdfres.Quad) error {
	t.Helper()
	text := func(qs []rdfres.Quad) string {
		for i := range qs {
			qs[i].O = byValue(qs[i].O)
		}
		text, _, err := rdfres.Canonicalize(qs, rdfres.CanonOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if g, w := text(got), text(want); g != w {
		return fmt.Errorf("got\n%s\nwant\n%s", g, w)
	}
	return nil
}

// byValue spells a number and a language tag in one way: the suite asks for values.
func byValue(x rdfres.Term) rdfres.Term {
	if x.Kind() != rdfres.KindLiteral {
		return x
	}
	lex, lang, datatype := x.Literal()
	switch strings.TrimPrefix(datatype, xsdNS) {
	case "decimal":
		if r, ok := new(big.Rat).SetString(lex); ok && !strings.ContainsAny(lex, "eE/") {
			lex = r.RatString()
		}
	case "double", "float":
		if f, err := strconv.ParseFloat(lex, 64); err == nil {
			lex = strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
	return rdfres.NewLiteral(lex, strings.ToLower(lang), datatype)
}

// answer is what SELECT or ASK gave. ASK has one row without variables for yes, and none
// for no.
type answer struct {
	vars []string
	rows []map[string]rdfres.Term
}

func yesNo(yes bool) answer {
	a := answer{vars: []string{"(boolean)"}}
	if yes {
		a.rows = []map[string]rdfres.Term{{}}
	}
	return a
}

func (a *answer) leaveOutDoubles() {
	slices.SortFunc(a.rows, func(x, y map[string]rdfres.Term) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	a.rows = slices.CompactFunc(a.rows, maps.Equal)
}

// quads describe the rows: a blank node each, so that one comparison does for all.
func (a answer) quads(ordered bool) (out []rdfres.Quad) {
	for i, row := range a.rows {
		add := func(p string, o rdfres.Term) {
			out = append(out, rdfres.Quad{Triple: rdfres.Triple{S: rdfres.NewBlank(fmt.Sprintf("row%d", i)), P: rdfres.NewIRI("row:" + p), O: o}})
		}
		place := ""
		if ordered {
			place = strconv.Itoa(i)
		}
		add("", rdfres.NewLiteral(place, "", ""))
		for v, x := range row {
			if x.Kind() == rdfres.KindBlank {
				x = rdfres.NewBlank("value" + x.Label())
			}
			add(v, x)
		}
	}
	return out
}

// describedAnswer reads the suite's own form of results, a graph.
func describedAnswer(m manifest) (a answer, indexed bool, err error) {
	type solution struct {
		index int
		row   map[string]rdfres.Term
	}
	var all []solution
	found := false
	for set, about := range m {
		if about["boolean"] != nil {
			return yesNo(m.text(set, "boolean") == "true"), false, nil
		}
		if !slices.Contains(about["type"], "<http://www.w3.org/2001/sw/DataAccess/tests/result-set#ResultSet>") {
			continue
		}
		found = true
		for _, v := range about["resultVariable"] {
			name, _, _ := v.Literal()
			a.vars = append(a.vars, name)
		}
		for _, one := range about["solution"] {
			x := solution{row: map[string]rdfres.Term{}}
			if text := m.text(one, "index"); text != "" {
				indexed = true
				if x.index, err = strconv.Atoi(text); err != nil {
					return a, false, err
				}
			}
			for _, b := range m[one]["binding"] {
				x.row[m.text(b, "variable")] = m.one(b, "value")
			}
			all = append(all, x)
		}
	}
	if !found {
		return a, false, errors.New("no result set")
	}
	slices.SortStableFunc(all, func(x, y solution) int { return x.index - y.index })
	for _, x := range all {
		a.rows = append(a.rows, x.row)
	}
	return a, indexed, nil
}

// readAnswer reads results in a format of the recommendations. The cells of CSV have no
// kinds: all but blank nodes are read as strings.
func readAnswer(f rowFormat, text []byte) (a answer, err error) {
	switch f {
	case rowsJSON:
		return readJSONAnswer(text)
	case rowsXML:
		return readXMLAnswer(text)
	}
	var lines [][]string
	if f == rowsCSV {
		if lines, err = csv.NewReader(bytes.NewReader(text)).ReadAll(); err != nil {
			return a, err
		}
	} else {
		for line := range strings.Lines(string(text)) {
			lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	if len(lines) == 0 {
		return a, errors.New("no head")
	}
	for i, cells := range lines {
		if len(cells) != len(lines[0]) {
			return a, fmt.Errorf("line %d has %d cells", i+1, len(cells))
		}
		row := map[string]rdfres.Term{}
		for k, cell := range cells {
			if f == rowsTSV && i == 0 {
				name, ok := strings.CutPrefix(cell, "?")
				if !ok {
					return a, fmt.Errorf("the head has %q", cell)
				}
				a.vars = append(a.vars, name)
			} else if i == 0 {
				a.vars = append(a.vars, cell)
			} else if f == rowsTSV {
				if datatype := rdfres.ShorthandType([]byte(cell)); datatype != "" {
					row[a.vars[k]] = rdfres.NewLiteral(cell, "", datatype)
				} else if cell != "" {
					x, err := rdfres.ParseTerm([]byte(cell))
					if err != nil {
						return a, err
					}
					row[a.vars[k]] = x
				}
			} else if label, ok := strings.CutPrefix(cell, "_:"); ok {
				row[a.vars[k]] = rdfres.NewBlank(label)
			} else {
				row[a.vars[k]] = rdfres.NewLiteral(cell, "", "")
			}
		}
		if i > 0 {
			a.rows = append(a.rows, row)
		}
	}
	return a, nil
}

func readJSONAnswer(text []byte) (a answer, err error) {
	var doc struct {
		Head struct {
			Vars []string `json:"vars"`
		} `json:"head"`
		Boolean *bool `json:"boolean"`
		Results *struct {
			Bindings []map[string]struct {
				Type     string `json:"type"`
				Value    string `json:"value"`
				Lang     string `json:"xml:lang"`
				Datatype string `json:"datatype"`
			} `json:"bindings"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return a, err
	}
	if doc.Boolean != nil {
		return yesNo(*doc.Boolean), nil
	}
	if doc.Results == nil {
		return a, errors.New("neither results nor a boolean")
	}
	a.vars = doc.Head.Vars
	for _, b := range doc.Results.Bindings {
		row := map[string]rdfres.Term{}
		for v, x := range b {
			switch x.Type {
			case "uri":
				row[v] = rdfres.NewIRI(x.Value)
			case "bnode":
				row[v] = rdfres.NewBlank(x.Value)
			case "literal", "typed-literal":
				row[v] = rdfres.NewLiteral(x.Value, x.Lang, x.Datatype)
			default:
				return a, fmt.Errorf("a term of the type %q", x.Type)
			}
		}
		a.rows = append(a.rows, row)
	}
	return a, nil
}

func readXMLAnswer(text []byte) (a answer, err error) {
	var doc struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/sparql-results# sparql"`
		Vars    []struct {
			Name string `xml:"name,attr"`
		} `xml:"head>variable"`
		Boolean *bool `xml:"boolean"`
		Results *struct {
			Result []struct {
				Binding []struct {
					Name    string  `xml:"name,attr"`
					URI     *string `xml:"uri"`
					Blank   *string `xml:"bnode"`
					Literal *struct {
						Value    string `xml:",chardata"`
						Lang     string `xml:"http://www.w3.org/XML/1998/namespace lang,attr"`
						Datatype string `xml:"datatype,attr"`
					} `xml:"literal"`
				} `xml:"binding"`
			} `xml:"result"`
		} `xml:"results"`
	}
	if err := xml.Unmarshal(text, &doc); err != nil {
		return a, err
	}
	if doc.Boolean != nil {
		return yesNo(*doc.Boolean), nil
	}
	if doc.Results == nil {
		return a, errors.New("neither results nor a boolean")
	}
	for _, v := range doc.Vars {
		a.vars = append(a.vars, v.Name)
	}
	for _, r := range doc.Results.Result {
		row := map[string]rdfres.Term{}
		for _, b := range r.Binding {
			switch {
			case b.URI != nil:
				row[b.Name] = rdfres.NewIRI(*b.URI)
			case b.Blank != nil:
				row[b.Name] = rdfres.NewBlank(*b.Blank)
			case b.Literal != nil:
				row[b.Name] = rdfres.NewLiteral(b.Literal.Value, b.Literal.Lang, b.Literal.Datatype)
			default:
				return a, fmt.Errorf("nothing is bound to %s", b.Name)
			}
		}
		a.rows = append(a.rows, row)
	}
	return a, nil
}
