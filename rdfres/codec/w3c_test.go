package codec_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// The W3C test suites for N-Triples, N-Quads, Turtle and RDF/XML, as knakk/rdf
// carries them in its tests. They are read from the module's source; what that
// package gets wrong is in the list of each suite, with the reason.

type w3cCase struct {
	doc, want, file string
	bad             bool
}

func w3cFile(t *testing.T, name string) *ast.File {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/knakk/rdf").Output()
	if err != nil {
		t.Fatalf("the source of knakk/rdf is not here: %v", err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), name), nil, 0)
	if err != nil {
		t.Fatalf("the tests of knakk/rdf are not here: %v", err)
	}
	return f
}

// w3cSuite evaluates the composite literal of a suite.
func w3cSuite(t *testing.T, f *ast.File, name string) (cases []w3cCase) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != name {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			fields := e.(*ast.CompositeLit).Elts
			if len(fields) == 4 || strings.HasPrefix(name, "rdfxml") { // file, rdfxml, nt, err
				c := w3cCase{file: goString(fields[0]), doc: goString(fields[1]), want: goString(fields[2])}
				if len(fields) == 4 {
					c.bad = goString(fields[3]) != ""
				}
				cases = append(cases, c)
				continue
			}
			c := w3cCase{doc: goString(fields[0]), bad: goString(fields[1]) != ""}
			if list, ok := fields[2].(*ast.CompositeLit); ok {
				for _, item := range list.Elts {
					c.want += goStatement(item.(*ast.CompositeLit)) + " .\n"
				}
			}
			cases = append(cases, c)
		}
		return false
	})
	if len(cases) == 0 {
		t.Fatalf("no cases in %s", name)
	}
	return cases
}

func goString(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return goString(e.X) + goString(e.Y)
	}
	return ""
}

// goStatement is a Triple or Quad literal of knakk/rdf in N-Quads.
func goStatement(c *ast.CompositeLit) string {
	var terms []string
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		lit, ok := e.(*ast.CompositeLit)
		switch {
		case !ok: // defaultGraph
		case lit.Type != nil && lit.Type.(*ast.Ident).Name == "Triple":
			terms = append(terms, goStatement(lit))
		default:
			terms = append(terms, string(goTerm(lit)))
		}
	}
	return strings.Join(terms, " ")
}

func goTerm(c *ast.CompositeLit) rdfres.Term {
	fields := map[string]ast.Expr{}
	for _, e := range c.Elts {
		kv := e.(*ast.KeyValueExpr)
		fields[kv.Key.(*ast.Ident).Name] = kv.Value
	}
	switch c.Type.(*ast.Ident).Name {
	case "IRI":
		return rdfres.NewIRI(goString(fields["str"]))
	case "Blank":
		return rdfres.Term(goString(fields["id"]))
	}
	dt := ""
	switch d := fields["DataType"].(type) {
	case *ast.CompositeLit:
		dt = goTerm(d).IRI()
	case *ast.Ident:
		if name, ok := strings.CutPrefix(d.Name, "xsd"); ok {
			dt = chars.XSD + strings.ToLower(name[:1]) + name[1:]
		}
	}
	return rdfres.NewLiteral(goString(fields["str"]), goString(fields["lang"]), dt)
}

func w3cRun(t *testing.T, f rdfres.Format, cases []w3cCase, base string, except map[int]string) {
	good, bad := 0, 0
	for i, c := range cases {
		if reason, ok := except[i]; ok {
			t.Logf("case %d passed over: %s", i, reason)
			continue
		}
		var got []rdfres.Quad
		var failed error
		for q, err := range codec.Read(strings.NewReader(c.doc), f, rdfres.ReadOptions{Base: strings.ReplaceAll(base, "FILE", c.file)}) {
			if failed = err; err == nil {
				got = append(got, q)
			}
		}
		if c.bad {
			bad++
			if failed == nil {
				t.Errorf("%s, case %d accepted:\n%s", f, i, c.doc)
			}
			continue
		}
		good++
		if failed != nil {
			t.Errorf("%s, case %d: %v\n%s", f, i, failed, c.doc)
			continue
		}
		var want []rdfres.Quad
		for q, err := range codec.Read(strings.NewReader(c.want), rdfres.NQuads, rdfres.ReadOptions{Lax: true}) {
			if err != nil {
				t.Fatalf("%s, case %d: the expected graph: %v\n%s", f, i, err, c.want)
			}
			for _, term := range []*rdfres.Term{&q.S, &q.P, &q.O} {
				if iri := term.IRI(); iri != "" && !chars.HasScheme(iri) {
					iri, _ = rdfres.ResolveIRI(base, iri)
					*term = rdfres.NewIRI(iri)
				}
			}
			want = append(want, q)
		}
		a, _, err1 := rdfres.Canonicalize(got, rdfres.CanonOptions{})
		b, _, err2 := rdfres.Canonicalize(want, rdfres.CanonOptions{})
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s, case %d: %v %v\n%s\ngot\n%swant\n%s", f, i, err1, err2, c.doc, a, b)
		}
	}
	t.Logf("%s: %d positive and %d negative cases", f, good, bad)
}

func TestW3C(t *testing.T) {
	w3cRun(t, rdfres.NTriples, w3cSuite(t, w3cFile(t, "nt_test.go"), "ntTestSuite"), "", nil)
	w3cRun(t, rdfres.NQuads, w3cSuite(t, w3cFile(t, "nq_test.go"), "nqTestSuite"), "", nil)
	ttl := w3cSuite(t, w3cFile(t, "ttl_test.go"), "ttlTestSuite")
	except := map[int]string{}
	for i, c := range ttl {
		switch {
		case strings.Contains(c.doc, "good escape, bad charcater"), strings.Contains(c.doc, "hex 3C is <"), strings.Contains(c.doc, "hex 3E is >"):
			except[i] = "an IRI with an escaped character that IRIs do not have is carried as it is, so that what stores hold is not lost"
		}
	}
	const turtleBase = "http://www.w3.org/2013/TurtleTests/turtle-subm-27.ttl"
	w3cRun(t, rdfres.Turtle, ttl, turtleBase, except)
	for i, c := range ttl {
		if strings.Contains(c.doc, "Turtle is not TriG") {
			except[i] = "but TriG is"
		}
	}
	w3cRun(t, rdfres.TriG, ttl, turtleBase, except)
	xml := w3cFile(t, "rdfxml_test.go")
	w3cRun(t, rdfres.RDFXML, w3cSuite(t, xml, "rdfxmlExamples"), "http://www.w3.org/2013/RDFXMLTests/FILE", nil)
	w3cRun(t, rdfres.RDFXML, w3cSuite(t, xml, "rdfxmlTestSuite"), "http://www.w3.org/2013/RDFXMLTests/FILE", nil)
}
