package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// look runs a job of the bridge and reads its report.
func look(t *testing.T, b *Bridge, job string, args any) (rep ScanReport) {
	t.Helper()
	run, _, err := b.runner.Start(job, "test", args)
	if err == nil {
		run, err = b.runner.Wait(t.Context(), run.ID)
	}
	if err == nil && run.State != jobs.Done {
		err = errors.New(run.Error)
	}
	if err == nil {
		err = json.Unmarshal(run.Result, &rep)
	}
	if err != nil {
		t.Fatalf("%s: %v", job, err)
	}
	return rep
}

// things is a store of entities with a value and a time of modification.
type things map[string][2]string

func (x things) nt() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(x)) {
		e := "<http://e.example/" + name + ">"
		fmt.Fprintf(&b, "%s <http://e.example/value> \"%s\" .\n%s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e.example/%c> .\n", e, x[name][0], e, name[0])
		if m := x[name][1]; m != "" {
			fmt.Fprintf(&b, "%s <http://purl.org/dc/terms/modified> %s .\n", e, m)
		}
	}
	return b.String()
}

func at(t time.Time) string {
	return `"` + t.UTC().Format(time.RFC3339) + `"^^<http://www.w3.org/2001/XMLSchema#dateTime>`
}

// TestHints: what a hint names is found at once, with its finder in the log; what
// hints miss, or lie about, the full scan finds.
func TestHints(t *testing.T) {
	cfg := small(t.TempDir())
	set := cfg.Sets["data"]
	set.Hints.Modified = []string{"http://purl.org/dc/terms/modified"}
	set.Hints.Query = `SELECT ?entity WHERE { ?entity <http://e.example/seen> ?t FILTER(?t >= ?since) } # not ?since`
	cfg.Sets["data"] = set
	b := mustOpen(t, cfg)
	defer b.Close()
	old, now := time.Now().Add(-100*time.Hour), time.Now()
	x := things{}
	for i := range 40 {
		x[fmt.Sprintf("a%d", i)] = [2]string{"1", at(old)}
	}
	x["dated"] = [2]string{"1", `"2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date>`}
	fill(t, b, "source", x.nt())
	first := look(t, b, "hint:data", nil)
	if first.Finder != "scan" || first.Created != 41 {
		t.Fatalf("before the first complete scan everything is read: %+v", first)
	}
	if again := look(t, b, "hint:data", nil); again.Finder != "hint" || again.Created+again.Updated+again.Deleted != 0 || again.Unchanged != again.Hints["modified"] {
		t.Errorf("nothing changed: %+v", again)
	}
	check := func(what string, rep ScanReport, finder string, created, updated, deleted int64) {
		t.Helper()
		if rep.Finder != finder || rep.Created != created || rep.Updated != updated || rep.Deleted != deleted || rep.Held != nil || rep.Failed != 0 {
			t.Errorf("%s: %+v", what, rep)
		}
	}
	// Told by the time of modification: a change and a new one, in another zone too.
	x["a1"] = [2]string{"2", at(now)}
	x["dated"] = [2]string{"2", `"` + now.UTC().Format(time.DateOnly) + `"^^<http://www.w3.org/2001/XMLSchema#date>`}
	x["new"] = [2]string{"1", `"` + now.In(time.FixedZone("", -7*3600)).Format(time.RFC3339) + `"^^<http://www.w3.org/2001/XMLSchema#dateTime>`}
	// Silent: no new time, no time at all, and one that has gone.
	x["a2"] = [2]string{"silent", at(old)}
	x["a3"] = [2]string{"untold", ""}
	delete(x, "a4")
	// A lie: the time is new, the rest is not; it is a change of the description all the same.
	x["a5"] = [2]string{"1", at(now.Add(100 * 24 * time.Hour))} // and of the future
	fill(t, b, "source", x.nt())
	check("modified", look(t, b, "hint:data", nil), "hint", 1, 3, 0)
	rep := look(t, b, "scan:data", nil)
	check("the full scan", rep, "scan", 0, 2, 1)
	if rep.Missed != 3 {
		t.Errorf("missed: %+v", rep)
	}
	// The time of the future does not hide what comes now.
	x["a6"] = [2]string{"2", at(time.Now())}
	fill(t, b, "source", x.nt())
	check("after a time of the future", look(t, b, "hint:data", nil), "hint", 0, 1, 0)
	// By the user's query, with a time.
	fill(t, b, "source", x.nt()+"<http://e.example/a7> <http://e.example/seen> "+at(time.Now())+" .\n<http://e.example/a8> <http://e.example/seen> "+at(old)+" .\n")
	check("query", look(t, b, "hint:data", nil), "hint", 0, 1, 0)
	// By name: changed, gone, never there, unchanged.
	x["a9"] = [2]string{"2", at(old)}
	delete(x, "a10")
	fill(t, b, "source", x.nt())
	var named ScanReport
	if err := b.Do(t.Context(), "scan", "data", ScanArgs{Entities: []string{"http://e.example/a9", "http://e.example/a10", "http://e.example/none", "http://e.example/a11"}}, &named); err != nil {
		t.Fatal(err)
	}
	check("named", named, "hint", 0, 1, 1)
	if named.Hints["named"] != 4 || named.Unchanged != 1 {
		t.Errorf("named: %+v", named)
	}
	finders := map[string]int{}
	changes, err := b.Changes(t.Context(), "data", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes.Changes {
		finders[c.Finder+" "+c.Change]++
	}
	if want := map[string]int{"scan created": 41, "hint created": 1, "hint updated": 6, "hint deleted": 1, "scan updated": 2, "scan deleted": 1}; !maps.Equal(finders, want) {
		t.Errorf("finders %v, want %v", finders, want)
	}
	var asked ScanReport
	if err := b.Do(t.Context(), "scan", "data", ScanArgs{Hints: true}, &asked); err != nil || asked.Finder != "hint" || asked.Hints["modified"] == 0 {
		t.Errorf("hints on demand: %+v %v", asked, err)
	}
	for _, wrong := range []string{"relative", "http://e.example/\x00"} {
		if err := b.Do(t.Context(), "scan", "data", ScanArgs{Entities: []string{wrong}}, &named); !errors.Is(err, ErrEntities) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := b.Do(t.Context(), "scan", "data", ScanArgs{Entities: []string{"http://e.example/100%", "http://e.example:no/port"}}, &named); err != nil {
		t.Errorf("IRIs that are no URLs: %v", err)
	}
	// Too many at once: everything is read.
	for i := range 1500 {
		x[fmt.Sprintf("b%d", i)] = [2]string{"1", at(time.Now())}
	}
	fill(t, b, "source", x.nt())
	if rep := look(t, b, "hint:data", nil); rep.Finder != "scan" || rep.Created != 1500 {
		t.Errorf("many: %+v", rep)
	}
	// Hints that say nothing of a deletion of nearly everything named: it is held.
	var all []string
	for name := range x {
		if name != "new" {
			all = append(all, "http://e.example/"+name)
		}
	}
	fill(t, b, "source", things{"new": x["new"]}.nt())
	rep = ScanReport{}
	if err := b.Do(t.Context(), "scan", "data", ScanArgs{Entities: all}, &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Held == nil || rep.Deleted != 0 {
		t.Errorf("a great loss: %+v", rep)
	}
}

// TestHintCounts: counts show which class or graph changed.
func TestHintCounts(t *testing.T) {
	for _, by := range []string{"class", "graph"} {
		cfg := small(t.TempDir())
		set := cfg.Sets["data"]
		set.Hints.Counts = []string{by}
		if by == "graph" {
			set.Describe = "graph"
		}
		cfg.Sets["data"] = set
		b := mustOpen(t, cfg)
		load := func(x things, graph string) {
			t.Helper()
			if by == "class" {
				graph = ""
			}
			if _, err := b.LoadStore(t.Context(), "source", graph, "ntriples", strings.NewReader(x.nt()), true); err != nil {
				t.Fatal(err)
			}
		}
		x := things{"a1": {"1", ""}, "a2": {"1", ""}, "b1": {"1", ""}, "b2": {"1", ""}, "b3": {"1", ""}}
		load(x, "http://g.example/1")
		if by == "graph" {
			load(x, "http://g.example/2")
			load(x, "http://g.example/3")
		}
		look(t, b, "scan:data", nil)
		if rep := look(t, b, "hint:data", nil); rep.Finder != "hint" || rep.Unchanged != 0 {
			t.Errorf("%s: nothing: %+v", by, rep)
		}
		x["a1"] = [2]string{"longer", ""}
		x["a3"] = [2]string{"1", ""}
		load(x, "http://g.example/1")
		rep := look(t, b, "hint:data", nil)
		if by == "class" && (rep.Finder != "hint" || rep.Created != 1 || rep.Updated != 1 || rep.Unchanged != 1) {
			t.Errorf("class: %+v", rep)
		}
		if by == "graph" {
			load(nil, "http://g.example/3")
			gone := look(t, b, "hint:data", nil)
			if rep.Updated != 1 || rep.Unchanged != 0 || gone.Finder != "hint" || gone.Deleted != 1 {
				t.Errorf("graph: %+v %+v", rep, gone)
			}
		} else {
			delete(x, "b2") // which is gone is not told by counts
			load(x, "")
			if rep := look(t, b, "hint:data", nil); rep.Finder != "scan" || rep.Deleted != 1 || rep.Missed != 0 { // the hint led to it
				t.Errorf("class: gone: %+v", rep)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHintsAfterClockSetBack: what changed while the clock was ahead is not passed over
// by hints that ask for what is newer.
func TestHintsAfterClockSetBack(t *testing.T) {
	cfg := small(t.TempDir())
	set := cfg.Sets["data"]
	set.Hints.Modified = []string{"http://purl.org/dc/terms/modified"}
	cfg.Sets["data"] = set
	now := time.Now()
	ahead := time.Hour
	b, err := Open(t.Context(), cfg, Options{Now: func() time.Time { return now.Add(ahead) }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	x := things{"a1": {"1", at(now)}, "a2": {"1", at(now)}}
	fill(t, b, "source", x.nt())
	look(t, b, "scan:data", nil)
	ahead = 0
	now = now.Add(10 * time.Minute)
	x["a1"] = [2]string{"2", at(now)}
	fill(t, b, "source", x.nt())
	if rep := look(t, b, "hint:data", nil); rep.Finder != "scan" || rep.Updated != 1 {
		t.Errorf("%+v", rep)
	}
	now = now.Add(10 * time.Minute)
	x["a2"] = [2]string{"2", at(now)}
	fill(t, b, "source", x.nt())
	if rep := look(t, b, "hint:data", nil); rep.Finder != "hint" || rep.Updated != 1 {
		t.Errorf("then: %+v", rep)
	}
}

// TestOtherHints: where the hints are others than those that were followed, or of another
// store, what they did not tell until then is looked for once.
func TestOtherHints(t *testing.T) {
	cfg := small(t.TempDir())
	set := cfg.Sets["data"]
	set.Hints.Modified = []string{"http://purl.org/dc/terms/issued"}
	cfg.Sets["data"] = set
	b := mustOpen(t, cfg)
	x := things{"a1": {"1", ""}, "a2": {"1", ""}}
	fill(t, b, "source", x.nt())
	look(t, b, "hint:data", nil)
	x["a1"] = [2]string{"2", at(time.Now().Add(-time.Hour))}
	fill(t, b, "source", x.nt())
	if rep := look(t, b, "hint:data", nil); rep.Finder != "hint" || rep.Updated != 0 {
		t.Errorf("the property that changed is not among the hints: %+v", rep)
	}
	for _, change := range []func(){
		func() { set.Hints.Modified = []string{"http://purl.org/dc/terms/modified"} },
		func() { set.Store = "mirror" },
	} {
		change()
		cfg.Sets["data"] = set
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = mustOpen(t, cfg)
		if set.Store == "mirror" {
			x["a2"] = [2]string{"2", at(time.Now().Add(-time.Hour))}
			fill(t, b, "mirror", x.nt())
		}
		if rep := look(t, b, "hint:data", nil); rep.Finder != "scan" || rep.Updated != 1 {
			t.Errorf("%v of %s: %+v", set.Hints.Modified, set.Store, rep)
		}
		if rep := look(t, b, "hint:data", nil); rep.Finder != "hint" || rep.Updated != 0 {
			t.Errorf("then: %+v", rep)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
