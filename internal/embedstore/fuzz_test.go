package embedstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

var fuzzSeeds = []string{
	`PREFIX x: <http://x/> SELECT DISTINCT ?s (COUNT(*) AS ?n) FROM x:g WHERE { ?s a x:C ; x:p/x:q* "a\tb"@en-GB, 1.5e3 . OPTIONAL { ?s ^x:r|!(x:a|^x:b) ?o FILTER(REGEX(STR(?o), "^h", "i") && ?o NOT IN (1, 2)) } } GROUP BY ?s HAVING (COUNT(*) > 1) ORDER BY DESC(?n) LIMIT 5 OFFSET 2`,
	`CONSTRUCT { ?s ?p [ <http://x/p> ( 1 true "x" ) ] } WHERE { { VALUES (?s ?p) { (<http://x/a> UNDEF) } } UNION { GRAPH ?g { ?s ?p _:b } MINUS { ?s ?p 1 } } BIND(IF(BOUND(?g), ?g, "no") AS ?z) }`,
	`DESCRIBE * { ?s ?p ?o { SELECT ?s { ?s ?p '''long'''^^<http://x/dt> } } }`,
	`ASK { FILTER NOT EXISTS { ?s ?p ?o } FILTER(COALESCE(?a + 1, -2) <= +3.0) }`,
	`BASE <http://x/> INSERT DATA { <a> <b> _:c . GRAPH <g> { _:c <d> "\u00e9\U0001F600" } } ; WITH <g> DELETE { ?s ?p ?o } INSERT { ?s ?p [] } USING NAMED <h> WHERE { ?s ?p ?o } ; CLEAR SILENT ALL ; COPY DEFAULT TO <g>`,
	"SELECT*{?s?p?o}", "ASK{", "# only a comment", "SELECT ?x { ?x <http://x/p> ", "ASK { <a\\u003e> ?p ?o }",
}

// FuzzQuery: the parser ends, with a query or an error, and what it takes can
// be evaluated.
func FuzzQuery(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s)
	}
	s := openTest(f, f.TempDir())
	loadText(f, s, "", sample)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := s.Query(context.Background(), text, QueryOptions{Budget: Budget{Rows: 10_000, Time: 1e9}})
		if err != nil {
			return
		}
		defer r.Close()
		n := 0
		switch r.Kind {
		case Solutions:
			for range r.Rows() {
				if n++; n > 1000 {
					break
				}
			}
		case Graph:
			for range r.Triples() {
				if n++; n > 1000 {
					break
				}
			}
		}
	})
}

// FuzzUpdate: an update request that fails leaves nothing, and reading it byte
// by byte is the same as reading it at once.
func FuzzUpdate(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parse := func(p *parser) (out []string, err error) {
			ops := updateParser{p}
			err = p.in.guarded(func() {
				p.in.advance()
				for {
					op := ops.operation()
					if op == nil {
						return
					}
					n := 0
					if op.kind == opInsertData || op.kind == opDeleteData {
						ops.dataQuads(op.kind == opInsertData, func(quadPattern) { n++ })
					}
					out = append(out, string(rune('a'+op.kind))+string(rune('0'+n+len(op.ins)+len(op.del))))
					ops.separator()
				}
			})
			return out, err
		}
		a, aerr := parse(newParser(strings.NewReader(text), "http://x/"))
		b, berr := parse(newParser(iotest.OneByteReader(strings.NewReader(text)), "http://x/"))
		if strings.Join(a, ",") != strings.Join(b, ",") || (aerr == nil) != (berr == nil) {
			t.Fatalf("at once: %v %v, byte by byte: %v %v", a, aerr, b, berr)
		}
		var syntax *SyntaxError
		if aerr != nil && !errors.As(aerr, &syntax) && !errors.Is(aerr, ErrUnsupported) {
			t.Fatalf("an error of another kind: %v", aerr)
		}
	})
}
