package destination

import (
	"strings"
	"testing"
)

// Of the graphs that somebody else adds to a store a mirror owns those of its template's form: they
// are extra, and a repair removes them. It counts the others.
func TestForeignGraphsBeside(t *testing.T) {
	for _, template := range []string{"http://mirror.example/{entity}", "{entity}/graph", "{entity}"} {
		b := newBench(t)
		b.cfg.Graph, b.cfg.GraphIRI = "per-entity", template
		fill(b.src, 3)
		b.sync()
		alien := strings.Replace(template, "{entity}", "http://ex.org/alien", 1)
		b.mir.exec("INSERT DATA { GRAPH <" + alien + "> {\n<http://ex.org/alien> <http://ex.org/v> \"1\" .\n} }")
		owned, others := int64(1), int64(0)
		if template == "{entity}" {
			owned, others = 0, 1
		}
		if a := b.audited("store"); a.Extra != owned || a.OtherGraphs != others || a.Equal != (owned == 0) {
			t.Errorf("%s: %+v", template, a)
		}
		a, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
		if err != nil || !a.Equal || a.Repaired != owned || a.OtherGraphs != others || int64(len(b.mir.lines(alien))) != others {
			t.Errorf("%s: %+v %v, left %v", template, a, err, b.mir.lines(alien))
		}
	}
}

// An audit names the foreign graph of a template, once, with the number of its triples, whatever
// subjects they have; and what is foreign in a graph of ours, by subject.
func TestForeignGraphsAreNamed(t *testing.T) {
	const one, two, ours = "http://mirror.example/http://ex.org/one", "http://mirror.example/other", "http://mirror.example/http://ex.org/e1"
	line := func(s, v string) string { return "<http://ex.org/" + s + "> <http://ex.org/v> \"" + v + "\" .\n" }
	b := newQuietBench(t)
	b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "http://mirror.example/{entity}"
	fill(b.src, 3)
	b.sync()
	want := b.mir.lines(ours)
	for g, text := range map[string]string{one: line("x", "1") + line("x", "2") + line("y", "1"), two: line("x", "1"), ours: line("x", "1") + line("x", "2")} {
		b.mir.exec("INSERT DATA { GRAPH <" + g + "> {\n" + text + "} }")
	}
	for _, repair := range []bool{false, true} {
		rep, err := b.open().Audit(t.Context(), AuditOptions{Repair: repair})
		found := rep.Named
		if err != nil || repair && (!rep.Equal || rep.Repaired != 3) || !repair && rep.Extra != 3 {
			t.Fatalf("%+v %v", rep, err)
		}
		if repair {
			found = rep.Mended
		}
		got := map[string]string{}
		for _, d := range found {
			says, _, _ := strings.Cut(d.Detail, " that no")
			got[d.Graph] = d.Kind + " " + d.Entity + " " + says
		}
		for g, is := range map[string]string{
			one:  "extra http://ex.org/one the mirror has 3 triples in graph " + one,
			two:  "extra other the mirror has a triple in graph " + two,
			ours: "extra http://ex.org/x the mirror has 2 triples in graph " + ours,
		} {
			if got[g] != is || len(got) != 3 {
				t.Errorf("repair %t: of graph %s: %q, want %q", repair, g, got[g], is)
			}
		}
	}
	b.same(append(append(b.mir.lines(one), b.mir.lines(two)...), b.mir.lines(ours)...), want)
}
