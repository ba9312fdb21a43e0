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
	"github.com/rsbridge/rsbridge/rdfres"
)

func TestTagCase(t *testing.T) {
	for tag, want := range map[string]string{
		"en": "en", "EN": "en", "en-gb": "en-GB", "EN-gb": "en-GB", "en-GB": "en-GB", "zh-hant-tw": "zh-Hant-TW", "SGN-be-fr": "sgn-BE-FR",
		"de-CH-1996": "de-CH-1996", "es-419": "es-419", "DE-1901": "de-1901", "az-latn-X-LATN": "az-Latn-x-latn", "EN-ca-x-CA": "en-CA-x-ca",
		"X-Private": "x-private", "i-KLINGON": "i-klingon", "de-DE-U-CO-phonebk": "de-DE-u-co-phonebk", "EN-gb-OED": "en-GB-oed", "ab-": "ab-", "": "",
	} {
		if got := tagCase(tag); got != want {
			t.Errorf("%s becomes %s, not %s", tag, got, want)
		}
	}
	for term, want := range map[string]string{
		`"a"@EN`: `"a"@en`, `"a\"@EN"`: `"a\"@EN"`, `"@EN"@EN`: `"@EN"@en`, `"a"^^<http://x/EN>`: `"a"^^<http://x/EN>`, "<http://x/@EN>": "<http://x/@EN>", "_:EN": "_:EN", "": "",
	} {
		if got := inOneCase(term); got != want {
			t.Errorf("%s becomes %s, not %s", term, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { inOneCase(`"a"@zh-Hant-TW`); inOneCase(`"a"`) }); n != 0 {
		t.Errorf("a tag in the usual case costs %v allocations", n)
	}
}

// tagSteps are updates and queries, with their tags between signs.
var tagSteps = []string{
	`INSERT DATA { <http://x/1> <http://x/p> "a"@§en§ , "a"@§en-GB§ , "b"@§fr§ . <http://x/2> <http://x/p> "a"@§en§ , "a" . <http://x/3> <http://x/q> "a"@§en-GB§ , "c"@§zh-Hant-TW§ }`,
	`INSERT DATA { <http://x/1> <http://x/p> "a"@§en§ . <http://x/1> <http://x/q> "b"@§en§ . <http://x/2> <http://x/r> <http://x/1> , <http://x/3> . <http://x/4> <http://x/p> "a\"@EN" , "a"^^<http://x/EN> }`,
	`INSERT DATA { GRAPH <http://x/g> { <http://x/1> <http://x/p> "a"@§en§ , "b"@§en-GB§ } }`,
	`DELETE DATA { <http://x/TAG> <http://x/p> "a"@§TAG§ }`, `DELETE DATA { <http://x/1> <http://x/p> "b"@§TAG§ ; <http://x/q> "b"@§en§ }`,
	`DELETE WHERE { ?s <http://x/p> "a"@§TAG§ }`,
	`DELETE { ?s <http://x/p> "a"@§TAG§ } INSERT { ?s <http://x/q> "a"@§TAG§ } WHERE { ?s ?p "b"@§TAG§ }`,
	`DELETE { ?s ?p ?o } INSERT { ?s <http://x/r> ?n } WHERE { ?s ?p ?o BIND(STRLANG(STR(?o), "§TAG§") AS ?n) FILTER(?o IN ("a"@§TAG§, "c"@§zh-Hant-TW§)) }`,
	`INSERT { ?s <http://x/p> ?o } WHERE { ?s ?p ?x VALUES (?x ?o) { ("a"@§TAG§ "b"@§TAG§) ("b"@§TAG§ "a"@§TAG§) } }`,
	`INSERT { GRAPH <http://x/g> { ?s ?p ?o } } WHERE { ?s ?p ?o FILTER(LANGMATCHES(LANG(?o), "§TAG§")) }`, `WITH <http://x/g> DELETE { ?s ?p "a"@§TAG§ } WHERE { ?s ?p ?o }`,
	`SELECT ?s { ?s ?p "a"@§TAG§ }`, `SELECT ?s { ?s <http://x/p> "a"@§TAG§ , "b"@§TAG§ }`, `SELECT ?g ?s { GRAPH ?g { ?s ?p "a"@§TAG§ } }`,
	`SELECT ?s { ?s <http://x/p>* "a"@§TAG§ }`, `SELECT ?s { ?s <http://x/r>+/<http://x/q> "a"@§TAG§ }`, `SELECT ?s { "a"@§TAG§ ^<http://x/p>/<http://x/p>* ?s }`, `SELECT ?s { "a"@§TAG§ (<http://x/p>|^<http://x/p>|<http://x/q>|^<http://x/q>)+ ?s }`,
	`SELECT ?s { ?s !<http://x/q> "a"@§TAG§ }`, `SELECT ?s { ?s <http://x/p>? "a"@§TAG§ }`, `SELECT * { "z"@§TAG§ <http://x/p>* ?o }`, `ASK { "a"@§TAG§ <http://x/p>* "a"@§TAG§ }`,
	`SELECT ?s ?o { BIND("a"@§TAG§ AS ?o) ?s ?p ?o }`, `SELECT ?s ?o { ?s ?p ?o BIND("a"@§TAG§ AS ?o2) FILTER(?o = ?o2) }`, `SELECT ?s { BIND(STRLANG("a", "§TAG§") AS ?o) ?s <http://x/p> ?o }`,
	`SELECT ?s ?o { VALUES ?o { "a"@§TAG§ "b"@§TAG§ } ?s ?p ?o }`, `SELECT ?s ?o { ?s ?p ?o } VALUES ?o { "a"@§TAG§ "b"@§TAG§ }`, `SELECT ?x { VALUES ?x { "n"@§TAG§ "n"@§TAG§ } }`,
	`SELECT DISTINCT ?x { VALUES ?x { "n"@§TAG§ "n"@§TAG§ "a"@§TAG§ } }`, `SELECT ?x (COUNT(*) AS ?n) { VALUES ?x { "n"@§en§ "n"@§en§ "n"@§TAG§ } } GROUP BY ?x`, `SELECT ?x { VALUES ?x { "n"@§TAG§ } { SELECT ?x { VALUES ?x { "n"@§TAG§ } } } }`,
	`SELECT DISTINCT ?o { ?s ?p ?o }`, `SELECT ?o (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?o`, `SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o }`, `SELECT ?l (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (LANG(?o) AS ?l)`,
	`SELECT ?s ?o { ?s ?p ?o MINUS { ?s ?q "a"@§TAG§ } }`, `SELECT ?o { ?s ?p ?o MINUS { VALUES ?o { "a"@§TAG§ "a"@§TAG§ } } }`, `SELECT ?s { ?s ?p ?o FILTER NOT EXISTS { ?s ?q "a"@§TAG§ } }`,
	`SELECT ?o { ?s ?p ?o FILTER(?o IN ("a"@§TAG§, "b"@§TAG§)) }`, `SELECT ?o { ?s ?p ?o FILTER(isLiteral(?o) && ?o NOT IN ("a"@§TAG§)) }`, `SELECT ?o { ?s ?p ?o FILTER(sameTerm(?o, "a"@§TAG§)) }`, `SELECT ?o { ?s ?p ?o FILTER(?o != "a"@§TAG§) }`,
	`SELECT ?s ?t { { SELECT ?s (STRLANG(STR(?x), "§TAG§") AS ?o) { ?s <http://x/q> ?x } } ?t <http://x/p> ?o }`, `SELECT ?s ?x { ?s ?p ?o OPTIONAL { ?x <http://x/q> ?o FILTER(?o = "a"@§TAG§) } }`,
	`SELECT ?o { ?s ?p ?o FILTER(LANGMATCHES(LANG(?o), "§TAG§")) } ORDER BY ?o ?s LIMIT 4`, `SELECT (MIN(?o) AS ?a) (MAX(?o) AS ?b) { ?s ?p ?o FILTER(LANG(?o) != "") }`,
	`SELECT (CONCAT(?o, "x"@§TAG§) AS ?c) { ?s ?p ?o }`, `SELECT ?o { ?s ?p ?o FILTER(STRSTARTS(?o, "a"@§TAG§)) }`, `SELECT (STRAFTER(?o, ""@§TAG§) AS ?c) (REPLACE(?o, "a", "b") AS ?d) (UCASE(?o) AS ?e) { ?s ?p ?o }`,
	`CONSTRUCT { ?s <http://x/made> "a"@§TAG§ , "a"@§TAG§ , ?o } { ?s ?p ?o FILTER(?o = "a"@§TAG§) }`, `SELECT (LANG("a"@§TAG§) AS ?l) {}`, `SELECT ("a"@§TAG§ = ?o AS ?y) { ?s ?p ?o FILTER(LANG(?o) != "") }`, `SELECT (IF(?o = "a"@§TAG§, "y"@§TAG§, ?o) AS ?y) { ?s ?p ?o }`,
}

var (
	signedTag = regexp.MustCompile(`§[A-Za-z-]+§`)
	noSteps   = regexp.MustCompile(`>[*?] "|"z"`)
	shownTag  = regexp.MustCompile(`"@([A-Za-z-]+)`)
)

// withTags writes a step with each tag as spell does.
func withTags(step string, spell func(string) string) string {
	return signedTag.ReplaceAllStringFunc(step, func(s string) string { return spell(strings.Trim(s, "§")) })
}

// tagsScript is oxigraphScript for steps of which some are updates.
const tagsScript = `
import sys, json, pyoxigraph as ox
store, out = ox.Store(), []
for q in json.load(sys.stdin):
    if q.startswith(("INSERT", "DELETE", "WITH")):
        store.update(q)
        out.append([])
        continue
    r = store.query(q)
    if isinstance(r, ox.QueryBoolean):
        out.append([str(bool(r)).lower()])
    elif isinstance(r, ox.QuerySolutions):
        out.append(sorted("|".join("" if s[i] is None else str(s[i]) for i in range(len(r.variables))) for s in r))
    else:
        out.append(sorted(set(" ".join(str(x) for x in t) for t in r)))
json.dump(out, sys.stdout)
`

// A history with tags in any case is the history with tags in one case, and Oxigraph's.
func TestLanguageTagsInAnyCase(t *testing.T) {
	teststores.Sequential(t)
	python := os.Getenv(teststores.EnvPython)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		anyCase := func(tag string) string {
			b := []byte(tag)
			for i := range b {
				if r.IntN(2) == 0 {
					b[i] = strings.ToUpper(tag)[i]
				}
			}
			return string(b)
		}
		usual, other := openTest(t, t.TempDir()), openTest(t, t.TempDir())
		var steps []string
		var answers [][]string
		for range 150 {
			step := tagSteps[r.IntN(3)]
			if r.IntN(5) > 0 {
				step = tagSteps[r.IntN(len(tagSteps))]
			}
			for strings.Contains(step, "TAG") {
				step = strings.Replace(step, "TAG", []string{"en", "en-GB", "fr"}[r.IntN(3)], 1)
			}
			in, mixed := withTags(step, tagCase), withTags(step, anyCase)
			steps = append(steps, mixed)
			if strings.Contains(step, "DATA") || strings.Contains(step, "DELETE") || strings.HasPrefix(step, "INSERT") {
				answers = append(answers, []string{})
				for s, text := range map[*Store]string{usual: in, other: mixed} {
					s.forced.spill = r.IntN(4) == 0
					if err := s.Update(t.Context(), text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
				if got, want := content(t, other), content(t, usual); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %s\n got %q\nwant %q", seed, mixed, got, want)
				}
				continue
			}
			got, want := ask(t, other, mixed), ask(t, usual, in)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s\n got %q\nwant %q", seed, mixed, got, want)
			}
			answers = append(answers, got)
		}
		// Loaded, the same.
		lines := content(t, usual)
		loaded := openTest(t, t.TempDir())
		loaded.forced.bulk, loaded.forced.chunk = seed%2 == 0, 3
		for range 2 {
			text := shownTag.ReplaceAllStringFunc(strings.Join(append(lines, ""), "\n"), func(s string) string { return s[:2] + anyCase(s[2:]) })
			loadText(t, loaded, "", text)
		}
		if got := content(t, loaded); !slices.Equal(got, lines) {
			t.Fatalf("loaded %q\nof %q", got, lines)
		}
		if _, err := other.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if python != "" {
			againstOxigraph(t, python, steps, answers)
		}
	}
}

func againstOxigraph(t *testing.T, python string, steps []string, answers [][]string) {
	job, _ := json.Marshal(steps)
	cmd := osexec.Command(python, "-c", tagsScript)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(job)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", python, err)
	}
	var theirs [][]string
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatal(err)
	}
	for i, want := range theirs {
		if noSteps.MatchString(steps[i]) { // Oxigraph knows no path of no steps from a term of the query alone
			continue
		}
		for _, rows := range [][]string{want, answers[i]} {
			for k := range rows {
				rows[k] = strings.ToLower(rows[k]) // Oxigraph's tags are
			}
			slices.Sort(rows)
		}
		if !slices.Equal(answers[i], want) {
			t.Errorf("%s\n     got %q\nOxigraph %q", steps[i], answers[i], want)
		}
	}
}

// A mapping and a Pattern take tags in any case.
func TestLanguageTagsInMemory(t *testing.T) {
	text := "<http://x/1> <http://x/p> \"a\"@EN .\n<http://x/1> <http://x/p> \"a\"@en .\n<http://x/2> <http://x/p> \"a\"@EN-gb .\n"
	var ts []rdfres.Triple
	for line := range strings.Lines(text) {
		q, _, err := rdfres.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		ts = append(ts, q.Triple)
	}
	for where, want := range map[string]string{
		`?s ?p "a"@eN`: `"a"@en`, `?s <http://x/p>+ "a"@EN-GB`: `"a"@en-GB`, `BIND("a"@En AS ?o) ?s ?p ?o`: `"a"@en`, `?s ?p ?o FILTER(LANG(?o) = "en-GB")`: `"a"@en-GB`,
	} {
		m, err := ParseMapping("CONSTRUCT { ?s ?p ?o } WHERE { { " + where + " } ?s ?p ?o }")
		if err != nil {
			t.Fatal(err)
		}
		if made, _, err := m.Apply(t.Context(), "http://x/e", ts); err != nil || len(made) != 1 || string(made[0].O) != want {
			t.Errorf("a map of %s makes %v, %v", where, made, err)
		}
	}
	s := openTest(t, t.TempDir())
	if n := loadText(t, s, "", text); n != 2 {
		t.Errorf("%d triples", n)
	}
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for tag, want := range map[string]int64{"En": 1, "EN-GB": 1, "fr": 0} {
		if n, err := snap.Count(Pattern{O: rdfres.NewLiteral("a", tag, "")}); n != want || err != nil {
			t.Error(tag, fmt.Sprint(n, err))
		}
	}
}
