package embedstore

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// oxigraphScript answers the queries of its input with pyoxigraph.
const oxigraphScript = `
import sys, json, pyoxigraph as ox
job = json.load(sys.stdin)
store = ox.Store()
store.load(job["data"].encode(), format=ox.RdfFormat.N_QUADS)
out = []
for q in job["queries"]:
    try:
        r = store.query(q)
        if isinstance(r, ox.QueryBoolean):
            out.append([str(bool(r)).lower()])
        elif isinstance(r, ox.QuerySolutions):
            n = len(r.variables)
            out.append(sorted("|".join("" if s[i] is None else str(s[i]) for i in range(n)) for s in r))
        else:
            out.append(sorted(set(" ".join(str(x) for x in t) for t in r)))
    except Exception as e:
        out.append(["error"])
json.dump(out, sys.stdout)
`

// oddGraph is GRAPH of what is not there, or over a group that may be another's alone.
var oddGraph = regexp.MustCompile(`GRAPH <http://x/zz>|GRAPH \?.*GRAPH`)

// functionCalls are expressions over ?o whose values are compared.
var functionCalls = []string{
	"STR(?o)", "LANG(?o)", "DATATYPE(?o)", "?o + 1", "?o * 2.5", "?o / 2", "1 - ?o", "-?o", "ABS(?o)", "CEIL(?o)", "FLOOR(?o)", "ROUND(?o)",
	"STRLEN(?o)", "UCASE(?o)", "LCASE(?o)", "SUBSTR(?o, 2)", "SUBSTR(?o, 2, 2)", "SUBSTR(?o, 0, 2)", `CONTAINS(?o, "l")`, `STRSTARTS(STR(?o), "http")`,
	`STRENDS(?o, "o")`, `STRBEFORE(?o, "l")`, `STRAFTER(?o, "l")`, "ENCODE_FOR_URI(?o)", `CONCAT(?o, "!")`, "CONCAT(?o, ?o)", `REPLACE(?o, "l+", "<$0>")`,
	`REGEX(?o, "^H", "i")`, "MD5(STR(?o))", "SHA1(STR(?o))", "SHA256(STR(?o))", "SHA384(STR(?o))", "SHA512(STR(?o))", "YEAR(?o)", "MONTH(?o)", "DAY(?o)", "HOURS(?o)",
	"MINUTES(?o)", "SECONDS(?o)", "TZ(?o)", "TIMEZONE(?o)", `IRI(CONCAT("http://y/", STR(?o)))`, "isIRI(?o)", "isLiteral(?o)", "isNumeric(?o)",
	"?o = 1", "?o != 1", `?o = "x"`, "?o < 2", "?o >= 1", "?o IN (1, <http://x/a>)", "?o NOT IN (1, 2)", "IF(?o > 1, 1, 2)", "COALESCE(?o + 1, 0)",
	"!?o", "?o && true", "?o || false", `STRLANG(?o, "de")`, "STRDT(?o, <http://x/dt>)", "sameTerm(?o, 1)", `langMatches(lang(?o), "en")`,
	"<http://www.w3.org/2001/XMLSchema#integer>(?o)", "<http://www.w3.org/2001/XMLSchema#string>(?o)", "<http://www.w3.org/2001/XMLSchema#boolean>(?o)",
	"<http://www.w3.org/2001/XMLSchema#double>(?o)", "<http://www.w3.org/2001/XMLSchema#decimal>(?o)",
}

// TestAgainstOxigraph compares answers with Oxigraph's.
func TestAgainstOxigraph(t *testing.T) {
	teststores.Sequential(t)
	python := teststores.Python(t)
	g := gen{rand.New(rand.NewPCG(11, 12))}
	for round := range 4 {
		var lines []string
		for _, q := range g.ground(60) {
			q[2] = strings.ReplaceAll(q[2], `"01"`, `"7"`)
			lines = append(lines, fmt.Sprintf("%s %s %s %s .", q[0], q[1], q[2], q[3]))
		}
		for i, o := range []string{`"hello"`, `"hello"@en`, `"Ünï"`, `"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>`, `"-3"^^<http://www.w3.org/2001/XMLSchema#integer>`,
			`"1.5"^^<http://www.w3.org/2001/XMLSchema#double>`, `"true"^^<http://www.w3.org/2001/XMLSchema#boolean>`, `"2024-02-29T12:30:15Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>`,
			`"2024-02-29T12:30:15.25+02:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>`, `"v"^^<http://x/dt>`, `""`, `"x"`, `<http://x/a>`} {
			lines = append(lines, fmt.Sprintf("<http://x/f%d> <http://x/f> %s .", i, o))
		}
		var queries []string
		for _, f := range functionCalls {
			queries = append(queries, "SELECT ?s ("+f+" AS ?v) { ?s <http://x/f> ?o }")
		}
		small := func(s string) string {
			for from, to := range map[string]string{"x/a>": "x/s1>", "x/b>": "x/s2>", "x/c>": "x/s3>", "x/d>": "x/s4>", "x/p>": "x/p0>", "x/q>": "x/p1>", "x/r>": "x/p2>", "x/g>": "x/g1>"} {
				s = strings.ReplaceAll(s, from, to)
			}
			return s
		}
		for len(queries) < len(functionCalls)+150 {
			// Graphs of FROM NAMED and GRAPH that are not there, and GRAPH without
			// patterns, are answered differently everywhere.
			if q := g.query(); !strings.Contains(q, "FROM NAMED") && !oddGraph.MatchString(q) {
				queries = append(queries, strings.Replace(small(q), " * ", " ?a ?b ?c ?d ?e ", 1))
			}
		}
		queries = append(queries,
			"SELECT ?p (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) (MIN(?o) AS ?a) (MAX(STR(?o)) AS ?b) { ?s ?p ?o } GROUP BY ?p HAVING (COUNT(*) > 2)",
			"SELECT (SUM(?o) AS ?n) (AVG(?o) AS ?m) { ?s ?p ?o FILTER(isNumeric(?o)) }", "SELECT (SUM(?o) AS ?n) { ?s ?p ?o }",
			"SELECT (GROUP_CONCAT(?x; separator=',') AS ?n) { SELECT (STR(?s) AS ?x) { ?s ?p <http://x/s1> } ORDER BY ?s }",
			"SELECT ?a ?b { ?a <http://x/p0>+ ?b }", "SELECT ?a ?b { ?a <http://x/p0>* ?b }", "SELECT ?a ?b { ?a (<http://x/p0>|^<http://x/p1>)? ?b }",
			"SELECT ?b { <http://x/s1> !(<http://x/p0>|^<http://x/p1>) ?b }", "SELECT ?a ?b { ?a <http://x/p0>/<http://x/p1>* ?b }", "SELECT ?b { <http://x/s1> (<http://x/p0>/<http://x/p1>)+ ?b }",
			"SELECT ?a { ?a <http://x/p0> ?b FILTER NOT EXISTS { ?b <http://x/p1> ?a } }", "SELECT ?a { ?a <http://x/p0> ?b FILTER EXISTS { ?b ?p ?c FILTER(?c != ?a) } }",
			"CONSTRUCT { ?o <http://x/back> ?s } { ?s <http://x/p0> ?o }", "CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }",
			"SELECT ?s { ?s ?p ?o } ORDER BY DESC(?s) ?o LIMIT 7 OFFSET 3", "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?s LIMIT 5 OFFSET 2",
			`SELECT DISTINCT ?s { ?s ?p ?o FILTER(STR(?s) > "http://x/s12") } ORDER BY ?s LIMIT 4`, "SELECT DISTINCT ?s { ?s <http://x/p0> <http://x/s1> } ORDER BY DESC(STR(?s))",
			"SELECT DISTINCT ?p { ?s ?p ?o } ORDER BY DESC(?p) LIMIT 2", "SELECT DISTINCT ?o { ?s ?p ?o FILTER(isIRI(?o)) } ORDER BY STRLEN(STR(?o)) ?o LIMIT 9", "SELECT DISTINCT ?s ?p { ?s ?p ?o } ORDER BY ?s ?p LIMIT 20",
			"SELECT ?p (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(COUNT(?s)) ?p LIMIT 3", "SELECT DISTINCT ?p { ?s ?p ?o }", "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }",
		)
		data := strings.Join(lines, "\n") + "\n"
		job, _ := json.Marshal(map[string]any{"data": data, "queries": queries})
		cmd := osexec.Command(python, "-c", oxigraphScript)
		cmd.Stdin = strings.NewReader(string(job))
		cmd.Stderr = os.Stderr
		answer, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", python, err)
		}
		var want [][]string
		if err := json.Unmarshal(answer, &want); err != nil {
			t.Fatal(err)
		}
		s := openTest(t, t.TempDir())
		loadText(t, s, "", data)
		bad := 0
		for i, q := range queries {
			if len(want[i]) == 1 && want[i][0] == "error" {
				if _, err := parseQuery(q, ""); err == nil {
					t.Logf("round %d: Oxigraph refuses %s", round, q)
				}
				continue
			}
			got := ask(t, s, q)
			for _, rows := range [][]string{got, want[i]} {
				for k := range rows {
					rows[k] = canonicalRow(rows[k])
				}
				slices.Sort(rows)
			}
			if !slices.Equal(got, want[i]) {
				if bad++; bad < 12 {
					t.Errorf("round %d: %s\n got %.900q\nwant %.900q", round, q, got, want[i])
				}
			}
		}
		s.Close()
	}
}

// canonicalRow writes what two engines compute alike and spell differently in
// one way: doubles.
func canonicalRow(row string) string {
	cells := strings.Split(row, "|")
	for i, c := range cells {
		if v := parseCell(c); c != "" && kindOf(c) == idLiteral && (v.kind == vDouble || v.kind == vFloat) {
			cells[i] = fmt.Sprintf("double %g", v.f)
		}
	}
	return strings.Join(cells, "|")
}

func parseCell(c string) value {
	if c == "" {
		return value{}
	}
	return parseValue(c)
}
