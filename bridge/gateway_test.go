package bridge

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// gated is a bridge over a store behind its gateway, with a set of each kind.
type gated struct {
	t    *testing.T
	cfg  *Config
	b    *Bridge
	at   string
	said []string
}

func newGated(t *testing.T, st Store, sets map[string]func(*Set)) *gated {
	g := &gated{t: t, cfg: small(t.TempDir())}
	clear(g.cfg.Destinations)
	g.cfg.Stores["source"] = st
	for name, change := range sets {
		set := NewSet()
		set.Store, set.Schedule, set.MaxDeleteRatio, set.Prefix = "source", "", 1, ""
		change(&set)
		g.cfg.Sets[name] = set
	}
	g.open()
	t.Cleanup(func() {
		if err := g.b.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// served is a remote store with a gateway: an embedded one behind its addresses.
func served(t *testing.T) Store {
	es, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(es.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := es.Close(); err != nil {
			t.Error(err)
		}
	})
	st := NewStore()
	st.Query, st.Update, st.GraphStore, st.Gateway = server.URL+"/query", server.URL+"/update", server.URL+"/data", true
	return st
}

func (g *gated) open() {
	g.b = mustOpen(g.t, g.cfg)
	server := httptest.NewServer(g.b.StoreHandler("source"))
	g.t.Cleanup(server.Close)
	g.at = server.URL
}

// send sends one request, and gives its status.
func (g *gated) send(method, path, kind, body string) int {
	g.said = append(g.said, method+path+" "+body)
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.at+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		g.t.Fatal(err)
	}
	return res.StatusCode
}

func (g *gated) update(text string) {
	g.t.Helper()
	if code := g.send("POST", "/update", "application/sparql-update", text); code < 200 || code > 204 {
		g.t.Fatalf("%s: %d", text, code)
	}
}

// settle waits for the runs that the gateway began. held tells that all was read: it accepts what is held, and
// scans a set whose store was written while a run read it.
func (g *gated) settle(set string) (held bool) {
	g.t.Helper()
	if f := storeLog(g.b.sets[set]); f != nil {
		if err := f.Step(g.t.Context(), 0); err != nil {
			g.t.Fatal(err)
		}
	}
	if g.waitHints(set) {
		do[ScanReport](g.t, g.b, "scan", set)
		held = true
	}
	st, err := g.b.SetStatus(g.t.Context(), set)
	if err != nil {
		g.t.Fatal(err)
	}
	if st.Held != nil {
		do[ScanReport](g.t, g.b, "accept", set)
	}
	if due, err := g.b.sets[set].due.Due(g.t.Context()); err != nil || len(due) > 0 {
		g.t.Fatalf("%s: still due: %s %v", set, due, err)
	}
	return held || st.Held != nil
}

// allKinds are sets of each kind.
var allKinds = map[string]func(*Set){
	"data":   func(*Set) {},
	"named":  func(s *Set) { s.Graphs = []string{"urn:g1", "urn:g2"} },
	"graphs": func(s *Set) { s.Describe = "graph" },
	"class":  func(s *Set) { s.Graphs, s.Select.Classes = []string{"*"}, []string{"urn:C"} },
}

// TestGatewayTellsAll: after any updates, a full scan of each set finds nothing new.
func TestGatewayTellsAll(t *testing.T) {
	newGated(t, served(t), allKinds).random("data", "urn:g", true, 50)
}

// TestCommitsTellAll is TestGatewayTellsAll of an embedded store: its commits tell.
func TestCommitsTellAll(t *testing.T) {
	st := NewStore()
	st.Embedded = t.TempDir()
	newGated(t, st, allKinds).random("data", "urn:g", true, 50)
}

// TestGatewayOfServers is TestGatewayTellsAll in two graphs of real stores.
func TestGatewayOfServers(t *testing.T) {
	if testing.Short() {
		t.Skip("real stores in processes that the race detector does not see; it meets the same ways in TestGatewayTellsAll; it runs without -short")
	}
	for name, of := range map[string]func(testing.TB) teststores.Server{"Oxigraph": teststores.Oxigraph, "Fuseki": teststores.Fuseki} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the stores take their time
			at := of(t)
			st := NewStore()
			st.Query, st.Update, st.GraphStore, st.Gateway = at.Query, at.Update, at.GraphStore, true
			t.Cleanup(func() { at.Clear(t, at.Graph+"1"); at.Clear(t, at.Graph+"2") })
			g := newGated(t, st, map[string]func(*Set){"named": func(s *Set) { s.Graphs = []string{at.Graph + "1", at.Graph + "2"} }})
			g.random("named", at.Graph, false, 25)
		})
	}
}

// waitHints tells that the store was written while a run read it.
func (g *gated) waitHints(set string) (torn bool) {
	g.t.Helper()
	for run, busy := g.b.runner.Busy("hint:" + set); busy; run, busy = g.b.runner.Busy("hint:" + set) {
		if run, err := g.b.runner.Wait(g.t.Context(), run.ID); err != nil || run.State != jobs.Done {
			if strings.Contains(run.Error, sparqlsrc.ErrShort.Error()) { // it was written meanwhile
				torn = true
				continue
			}
			g.t.Fatalf("%+v %v\n%s", run, err, g.said)
		}
	}
	return torn
}

// random sends random updates in two graphs and, of all, the default graph; after each step it
// holds the sets against a full scan.
func (g *gated) random(set, graph string, all bool, steps int) {
	t := g.t
	g1, g2 := "<"+graph+"1>", "<"+graph+"2>"
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	e := func() string { return "<urn:e" + fmt.Sprint(r.IntN(12)) + ">" }
	p := func() string { return "<urn:p" + fmt.Sprint(r.IntN(3)) + ">" }
	var o func() string
	o = func() string {
		switch r.IntN(8) {
		case 0:
			return e()
		case 1:
			return "[ " + p() + " " + o() + " ]"
		case 2:
			return "_:x"
		case 3:
			return "( 1 " + e() + " )"
		}
		return fmt.Sprint(r.IntN(4))
	}
	in := func(body string) string {
		if all && r.IntN(3) == 0 {
			return body
		}
		return "GRAPH " + pick(g1, g2) + " { " + body + " }"
	}
	plain := func() string { return e() + " " + p() + " " + fmt.Sprint(r.IntN(4)) }
	data := func() string {
		s := e() + " " + p() + " " + o() + " ; a " + pick("<urn:C>", "<urn:D>") + " . "
		if r.IntN(4) == 0 {
			s += "_:x " + p() + " " + o() + " . "
		}
		return in(s)
	}
	one := func() string {
		switch r.IntN(16) {
		case 14: // a triple that leads to a new blank node falls away, as its subject or property is a literal or not bound
			of := pick("?s", "?o", "?no", e())
			by := pick(p(), p(), "?o", "?no")
			rest := pick("[ "+p()+" ?s ]", "( 1 ?s )", "_:n . _:n "+p()+" _:m . _:m "+p()+" 7", "_:n . _:n ?o _:m . _:m "+p()+" 7")
			return "INSERT { " + in(of+" "+by+" "+rest) + " } WHERE { " + in("?s "+p()+" ?o") + " }"
		case 15:
			return "WITH " + g1 + " DELETE { ?s " + p() + " ?o } INSERT { ?o " + p() + " [ " + p() + " 8 ] } WHERE { ?s " + p() + " ?o FILTER(isIRI(?s)) }"
		case 13:
			return "INSERT { " + in("?s "+p()+" 9") + " } WHERE { { SELECT DISTINCT ?s WHERE { " + in("?s a <urn:C>") + " } } FILTER(isIRI(?s)) }"
		case 10: // inside of a description
			return "INSERT { " + in("?b "+p()+" "+o()) + " } WHERE { " + in(e()+" "+p()+" ?b FILTER(isBlank(?b))") + " }"
		case 11: // shared, or led to no more
			return pick("INSERT", "DELETE") + " { " + in(e()+" "+p()+" ?b") + " } WHERE { " + in("?s "+p()+" ?b FILTER(isBlank(?b))") + " }"
		case 12:
			return "DELETE WHERE { " + in(e()+" "+p()+" ?b . ?b ?q ?o") + " }"
		case 0, 1, 2:
			return "INSERT DATA { " + data() + " }"
		case 3:
			return "DELETE DATA { " + in(plain()) + " }"
		case 4:
			return "DELETE WHERE { " + in(e()+" ?p ?o") + " }"
		case 5:
			return "DELETE WHERE { " + in("?s "+p()+" ?o") + " }"
		case 6:
			return "WITH " + g1 + " DELETE { ?s " + p() + " ?o } INSERT { ?s " + p() + " [ " + p() + " ?o ] } WHERE { ?s ?q ?o FILTER(!isBlank(?o)) }"
		case 7:
			return "INSERT { " + e() + " " + p() + " ?o } WHERE { " + in("?s "+p()+" ?o") + " }"
		case 8:
			if all && r.IntN(3) == 0 {
				return pick("ADD SILENT DEFAULT TO "+g2, "CLEAR DEFAULT")
			}
			return pick("CLEAR SILENT GRAPH "+g2, "DROP SILENT GRAPH "+g1, "COPY SILENT "+g1+" TO "+g2, "MOVE SILENT "+g2+" TO "+g1, "ADD SILENT "+g1+" TO "+g2, "CREATE SILENT GRAPH "+g2)
		}
		return "INSERT { ?u " + p() + " 1 } WHERE { " + in("?s "+p()+" ?o") + " BIND(IRI(CONCAT(STR(?s), \"x\")) AS ?u) FILTER(isIRI(?s) && STRLEN(STR(?s)) < 9) }"
	}
	g.update("INSERT DATA { GRAPH " + g1 + " { <urn:e1> a <urn:C> } GRAPH " + g2 + " { <urn:e2> a <urn:C> } }")
	if all {
		g.update("INSERT DATA { <urn:e0> a <urn:C> }")
	}
	for name := range g.cfg.Sets {
		do[ScanReport](t, g.b, "scan", name)
		g.settle(name)
	}
	byName := 0
	for n := range steps {
		var said []string
		for range 1 + r.IntN(2) {
			var what string
			switch r.IntN(6) {
			case 0:
				method, kind, at := pick("POST", "PUT", "DELETE"), "text/turtle", "?graph="+url.QueryEscape(graph+pick("1", "2"))
				if all && r.IntN(3) == 0 {
					at = "?default"
				}
				body := e() + " " + p() + " " + o() + " ; a <urn:C> ."
				what = method + " " + at + " " + body
				g.send(method, "/data"+at, kind, body)
			case 1:
				what = one() + " ; " + one()
				if strings.Count(what, "_:x") > 0 { // a label of one operation is none of another
					what = relabelled(what)
				}
				g.send("POST", "/update", "application/sparql-update", what)
			default:
				what = one()
				g.update(what)
			}
			said = append(said, what)
		}
		for name := range g.cfg.Sets {
			if g.settle(name) {
				continue
			}
			rep := do[ScanReport](t, g.b, "scan", name)
			if rep.Held != nil || rep.Created+rep.Updated+rep.Deleted > 0 {
				t.Fatalf("seed %d, step %d, set %s: the gateway did not tell of all that these did:\n%s\n%+v", seed, n, name, strings.Join(said, "\n"), rep)
			}
		}
	}
	for run, err := range g.b.runner.Runs(t.Context(), "hint:"+set) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(run.Result), `"finder":"hint"`) {
			byName++
		}
	}
	if byName < steps/5 {
		t.Errorf("seed %d: only %d runs looked at entities by name", seed, byName)
	}
}

// relabelled gives the second use of a label another name.
func relabelled(text string) string {
	a, b, _ := strings.Cut(text, " ; ")
	return a + " ; " + strings.ReplaceAll(b, "_:x", "_:y")
}
