package destination

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Literals that Virtuoso refuses in updates, mangles in uploads, or is destroyed
// by: what has one is held back and named; what is only written otherwise is not
// different.
func TestVirtuosoLiterals(t *testing.T) {
	store := teststores.Virtuoso(t)
	client := virtuosoClient(t, store)
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	b := newBench(t)
	fill(b.src, 300)
	literals := []string{`"1"^^<` + xsd + `integer>`, `"1.0"^^<` + xsd + `float>`, `"true"^^<` + xsd + `boolean>`, `"1.10"^^<` + xsd + `decimal>`, `"värde"@sv-SE`, `"PT1H"^^<` + xsd + `dayTimeDuration>`, `"3.141592653589793"^^<` + xsd + `double>`,
		`"-0044-03-15"^^<` + xsd + `date>`, `"12345-01-01T00:00:00Z"^^<` + xsd + `dateTime>`, `"2020-01-02T24:00:00Z"^^<` + xsd + `dateTime>`, `"2020-01-02T03:04:05.5-14:00"^^<` + xsd + `dateTime>`}
	bad := []string{`"NaN"^^<` + xsd + `double>`, `"P1Y"^^<` + xsd + `duration>`, `"9223372036854775808"^^<` + xsd + `integer>`, `"abc"^^<` + xsd + `integer>`,
		`"-0001-01-01T00:00:00Z"^^<` + xsd + `dateTime>`, `"-0001"^^<` + xsd + `gYear>`, `"-5000-07-12"^^<` + xsd + `date>`, `""^^<` + xsd + `date>`}
	write := func(suffix string) {
		var many strings.Builder
		for _, l := range literals {
			fmt.Fprintf(&many, "<http://ex.org/many%s> <http://ex.org/v> %s .\n", suffix, l)
		}
		b.src.put("many"+suffix+".nt", many.String())
		for i, l := range bad {
			b.src.put(fmt.Sprintf("bad%d%s.nt", i, suffix), fmt.Sprintf("<http://ex.org/bad%d%s> <http://ex.org/v> %s .\n", i, suffix, l))
		}
	}
	cfg := b.cfg
	cfg.GraphIRI = store.Graph
	open := func() *Destination {
		d, err := Open(context.Background(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// By uploads, then by updates: the same is held back.
	for round, suffix := range []string{"", "x"} {
		write(suffix)
		rep, err := open().Sync(t.Context(), SyncOptions{})
		if err != nil || rep.Failed+rep.Pending != int64(len(bad)*(round+1)) {
			t.Fatalf("%+v %v", rep, err)
		}
		for _, p := range rep.Problems {
			if !strings.Contains(p.Reason, "does not hold this literal") || !strings.Contains(p.Reason, "http://ex.org/bad") {
				t.Errorf("%+v", p)
			}
		}
		for _, repair := range []bool{false, true} {
			a, err := open().Audit(t.Context(), AuditOptions{Repair: repair})
			if err != nil || a.Missing != int64(len(bad)*(round+1)) || a.Different+a.Extra != 0 || a.Rewritten == 0 {
				t.Fatalf("%+v %v", a, err)
			}
		}
	}
}

// Of two literals that Virtuoso keeps side by side both come; of a literal that becomes
// another one of the same value, in its type or zone, the new one does; and what a
// version with other rules for that has left out is found and put right.
func TestVirtuosoValues(t *testing.T) {
	store := teststores.Virtuoso(t)
	client := virtuosoClient(t, store)
	const xsd = "http://www.w3.org/2001/XMLSchema#"
	b := newBench(t)
	b.src.ours = true
	line := func(name, literal, local string) string {
		return fmt.Sprintf("<http://ex.org/%s> <http://ex.org/v> \"%s\"^^<%s%s> .\n", name, literal, xsd, local)
	}
	apart := line("apart", "1", "negativeInteger") + line("apart", "1", "integer")
	b.src.put("apart.nt", apart)
	b.src.put("type.nt", line("type", "5", "int"))
	b.src.put("zone.nt", line("zone", "2020-01-01T01:00:00+01:00", "dateTime"))
	cfg := b.cfg
	cfg.GraphIRI = store.Graph
	run := func() {
		t.Helper()
		d, err := Open(t.Context(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
			t.Fatalf("%+v %v", rep, err)
		}
		if a, err := d.Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal {
			t.Fatalf("%+v %v", a, err)
		}
	}
	holds := func(want ...string) {
		t.Helper()
		got := string(store.Get(t, ""))
		for _, w := range want {
			if !strings.Contains(got, strings.TrimSpace(w)) {
				t.Errorf("%s is not in\n%s", w, got)
			}
		}
	}
	run()
	holds(strings.SplitAfter(apart, "\n")...)
	b.src.put("type.nt", line("type", "5", "integer"))
	b.src.put("zone.nt", line("zone", "2020-01-01T00:00:00Z", "dateTime"))
	run()
	holds(line("type", "5", "integer"), line("zone", "2020-01-01T00:00:00Z", "dateTime"))

	// As a version left it whose rules are not known any more.
	old := []string{"boolean", "decimal-15places", "double-6digits", "float-6digits", "integer-64bit", "language-case", "time-us", "virtuoso-numbers"}
	d, err := Open(t.Context(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.prober.probeRecord(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.NormalForm.Rules = old
	d.mirror.Layout.NormalForm = p.NormalForm
	if err := errors.Join(d.prober.saveProbe(t.Context(), p, false), d.prober.setForm(t.Context(), ledger.Key(ledger.KindForm, d.mem.Space), false), d.prober.reindex(t.Context())); err != nil {
		t.Fatal(err)
	}
	store.Run(t, "DELETE DATA { GRAPH <"+store.Graph+"> { "+line("apart", "1", "negativeInteger")+" } }")
	run()
	holds(strings.SplitAfter(apart, "\n")...)
}

// What has an IRI that Virtuoso would cut off is held back and named, and never becomes
// what has the same beginning; all others come.
func TestVirtuosoLongIRIs(t *testing.T) {
	teststores.Sequential(t)
	for _, layout := range []string{"single", "per-entity"} {
		t.Run(layout, func(t *testing.T) {
			store := teststores.Virtuoso(t)
			client := virtuosoClient(t, store)
			b := newBench(t)
			fill(b.src, 300)
			cfg := b.cfg
			cfg.GraphIRI = store.Graph
			if layout == "per-entity" {
				cfg.Graph, cfg.GraphIRI = layout, store.Graph+"/{entity}"
				t.Cleanup(func() { store.GetBelow(t, store.Graph) })
			}
			long := func(bytes int, end string) string {
				return "http://ex.org/" + strings.Repeat("x", bytes-len("http://ex.org/")-len(end)) + end
			}
			bad := 0
			for round, name := range []string{"a", "b"} { // by uploads, then by updates
				put := func(file, format string, args ...any) {
					b.src.put(name+file+".nt", fmt.Sprintf("<http://ex.org/"+name+file+"> <http://ex.org/v> \"x\" .\n"+format+" .\n", args...))
				}
				put("longest", "<http://ex.org/%slongest> <http://ex.org/v> <%s>", name, long(1880, name))
				put("value", "<http://ex.org/%svalue> <http://ex.org/v> <%s>", name, long(1880+1, name))
				put("other", "<http://ex.org/%sother> <http://ex.org/v> <%s>", name, long(1880+1, "o"))
				put("property", "<http://ex.org/%sproperty> <%s> \"x\"", name, long(1880+2, name))
				put("datatype", "<http://ex.org/%sdatatype> <http://ex.org/v> \"x\"^^<%s>", name, long(1880+3, name))
				bad += 4
				if layout == "single" {
					b.src.put(name+"subject.nt", fmt.Sprintf("<%s> <http://ex.org/v> \"x\" .\n", long(9000, name)))
					bad++
				} else { // the entity is within the bound, the graph is not
					b.src.put(name+"graph.nt", fmt.Sprintf("<%s> <http://ex.org/v> \"x\" .\n", long(1880-10, name)))
					bad++
				}
				d, err := Open(t.Context(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
				if err != nil {
					t.Fatal(err)
				}
				rep, err := d.Sync(t.Context(), SyncOptions{})
				if err != nil || rep.Failed+rep.Pending != int64(bad) || round == 0 && rep.Created != 301 {
					t.Fatalf("%+v %v", rep, err)
				}
				for _, p := range rep.Problems {
					if !strings.Contains(p.Reason, "cuts off what an IRI has beyond 1880 bytes") {
						t.Errorf("%+v", p)
					}
				}
				if a, err := d.Audit(t.Context(), AuditOptions{}); err != nil || a.Missing != int64(bad) || a.Different+a.Extra != 0 {
					t.Fatalf("%+v %v", a, err)
				}
			}
		})
	}
}

// One update of many graphs takes from each what it is to take, also the literals
// with a language or a datatype of their own, and so does a removal of many.
func TestVirtuosoManyGraphs(t *testing.T) {
	teststores.Sequential(t)
	store := teststores.Virtuoso(t)
	client := virtuosoClient(t, store)
	b := newBench(t)
	cfg := b.cfg
	cfg.Graph, cfg.GraphIRI, cfg.MaxDeleteRatio = "per-entity", store.Graph+"/{entity}", 1
	const entities = 120
	// The literal that stays keeps its graph alive; the others go with the next version.
	for version, count := range []int{entities, entities, 1} {
		for i := range entities {
			name := fmt.Sprintf("e%d.nt", i)
			if i >= count {
				b.src.remove(name)
				continue
			}
			s := fmt.Sprintf("<http://ex.org/e%d> <http://ex.org/v> ", i)
			b.src.put(name, fmt.Sprintf("%[1]s\"stays\"@en .\n%[1]s\"v%[2]d\"@en-GB .\n%[1]s\"%[2]d\"^^<http://ex.org/odd> .\n%[1]s\"POINT(1.%[2]d 2)\"^^<http://www.opengis.net/ont/geosparql#wktLiteral> .\n", s, version))
		}
		d, err := Open(context.Background(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rep, err := d.Sync(t.Context(), SyncOptions{}); err != nil || !rep.InSync {
			t.Fatalf("version %d: %+v %v", version, rep, err)
		}
		if a, err := d.Audit(t.Context(), AuditOptions{}); err != nil || !a.Equal || a.Resources != int64(count) {
			t.Fatalf("version %d: %+v %v", version, a, err)
		}
		got := string(store.GetBelow(t, store.Graph+"/"))
		if n := strings.Count(got, "\n"); n != 4*count || strings.Count(got, fmt.Sprintf(`"v%d"@en-`, version)) != count {
			t.Fatalf("version %d: %d triples: %.500s", version, n, got)
		}
	}
}

// Virtuoso shows an rdf:XMLLiteral as it has parsed it, which is not different, and does
// not find what it shows by that: an audit removes it all the same.
func TestVirtuosoXML(t *testing.T) {
	teststores.Sequential(t)
	store := teststores.Virtuoso(t)
	client := virtuosoClient(t, store)
	literals := []string{"<b xmlns='http://x/'>h</b>", "<b xmlns:u='http://u/'>x</b>", "<br/>", "<i></i>", "<b b='2' a='1'>&#xE9;<![CDATA[a<b]]>c</b>", "plain", ""}
	line := func(entity, xml string) string {
		return fmt.Sprintf("<http://ex.org/%s> <http://ex.org/v> %q^^<%s> .\n", entity, xml, "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral")
	}
	for _, graph := range []string{"single", "per-entity"} {
		t.Run(graph, func(t *testing.T) {
			b := newBench(t)
			cfg := b.cfg
			cfg.Graph, cfg.GraphIRI = graph, store.Graph
			at := store.Graph
			if graph == "per-entity" {
				cfg.GraphIRI += "/{entity}"
				at += "/http://ex.org/e0"
			}
			for i, l := range literals {
				b.src.put(fmt.Sprintf("e%d.nt", i), line(fmt.Sprintf("e%d", i), l))
			}
			audit := func(equal, repair bool) {
				t.Helper()
				d, err := Open(context.Background(), b.store, sparqlsink.Of(client), cfg, keep.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Sync(t.Context(), SyncOptions{}); err != nil {
					t.Fatal(err)
				}
				if a, err := d.Audit(t.Context(), AuditOptions{Repair: repair}); err != nil || a.Equal != equal {
					t.Fatalf("%+v %v", a, err)
				}
			}
			audit(true, false)
			for _, xml := range literals {
				stray := strings.ReplaceAll(line("e0", xml), "/v>", "/stray>")
				if err := client.Update(t.Context(), "INSERT DATA { GRAPH <"+at+"> { "+stray+" } }"); err != nil {
					t.Fatal(err)
				}
			}
			audit(false, false)
			audit(true, true)
			audit(true, false)
			if got := string(store.GetBelow(t, at)); strings.Contains(got, "stray") || !strings.Contains(got, "http://x/") {
				t.Errorf("%s", got)
			}
			for i := range literals {
				b.src.remove(fmt.Sprintf("e%d.nt", i))
			}
			for round := range 6 { // in each those of the round before go
				var same strings.Builder
				for i := range 3 {
					same.WriteString(line(fmt.Sprintf("same%d-%d", round, i), "<a/>"))
				}
				for i := range 1 + 7*round {
					fmt.Fprintf(&same, "<http://ex.org/f%d-%d> <http://ex.org/p> <http://ex.org/o%d> .\n", round, i, i)
				}
				b.src.put("same.nt", same.String())
				audit(true, false)
			}
			b.src.remove("same.nt")
			b.src.put("e0.nt", line("e0", "<c xmlns='http://x/'/>"))
			audit(true, false)
			if got := string(store.GetBelow(t, store.Graph)); strings.Count(got, "\n") != 1 {
				t.Errorf("%s", got)
			}
		})
	}
}

func virtuosoClient(t *testing.T, store teststores.Server) *sparql.Client {
	return clientOf(t, sparql.Endpoint{Name: "virtuoso", Query: store.Query, Update: store.Update, GraphStore: store.GraphStore, Username: store.Username, Password: store.Password})
}
