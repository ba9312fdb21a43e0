package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sayings are the triples of some entities.
func sayings(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "<http://e.example/%s> <http://e.example/p> \"%s\" .\n", name, name)
	}
	return b.String()
}

// TestSettingsSaidOtherwise: a list that is written and empty is what it is when it is
// left out; nobody has to accept that.
func TestSettingsSaidOtherwise(t *testing.T) {
	cfg := small(t.TempDir())
	open := func(s Set) *Bridge {
		cfg.Sets["data"] = s
		b := mustOpen(t, cfg)
		return b
	}
	plain := cfg.Sets["data"]
	empty := plain
	empty.Graphs, empty.Select = []string{}, Select{Classes: []string{}, Prefixes: []string{}}
	for i, s := range []Set{plain, empty, plain} {
		b := open(s)
		if i == 0 {
			fill(t, b, "source", sayings("a", "b"))
		}
		rep := do[ScanReport](t, b, "scan", "data")
		if rep.Held != nil || rep.Resources != 2 {
			t.Errorf("%d: %+v %+v", i, rep, rep.Held)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	other := plain
	other.Select.Classes = []string{"http://e.example/C"}
	b := open(other)
	defer func() { b.Close() }()
	if rep := do[ScanReport](t, b, "scan", "data"); rep.Held == nil || !strings.Contains(rep.Held.Reason, "select from nothing to") {
		t.Errorf("another selection: %+v", rep.Held)
	}
}

// TestFromDumpsAndBack: a set that was made from a dump, then from a store, and then
// from the dump again holds what the dump has.
func TestFromDumpsAndBack(t *testing.T) {
	dir := t.TempDir()
	cfg := small(dir)
	file := filepath.Join(dir, "one.nt")
	if err := os.WriteFile(file, []byte(sayings("a", "b")), 0o600); err != nil {
		t.Fatal(err)
	}
	stored := cfg.Sets["data"]
	stored.Hints.Query = "SELECT ?entity { ?entity ?p ?since FILTER(false) }"
	dumped := NewSet()
	dumped.Dumps, dumped.DumpsSettle = []string{file}, 1
	for i, step := range []struct {
		set  Set
		want string // deleted, created
	}{{dumped, "0 2"}, {stored, "1 1"}, {dumped, "1 1"}, {stored, "1 1"}} {
		cfg.Sets["data"] = step.set
		b := mustOpen(t, cfg)
		if i == 0 {
			fill(t, b, "source", sayings("a", "c"))
		}
		var rep ScanReport
		var args any
		if step.set.Store != "" {
			args = ScanArgs{Hints: true}
		}
		if err := b.Do(t.Context(), "scan", "data", args, &rep); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(rep.Deleted, " ", rep.Created); got != step.want || rep.Held != nil {
			t.Errorf("step %d: %s deleted and created, want %s: %+v", i, got, step.want, rep)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDumpsBounds: an entity that was too large of a dump is there when the bound is
// raised, though there is no newer file.
func TestDumpsBounds(t *testing.T) {
	dir := t.TempDir()
	cfg := small(dir)
	file := filepath.Join(dir, "one.nt")
	if err := os.WriteFile(file, []byte(sayings("a", "b")+"<http://e.example/b> <http://e.example/q> \"more\" .\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := NewSet()
	set.Dumps, set.DumpsSettle, set.MaxTriples = []string{file}, 1, 1
	for _, most := range []int{1, 2} {
		set.MaxTriples = most
		cfg.Sets["data"] = set
		b := mustOpen(t, cfg)
		if rep := do[ScanReport](t, b, "scan", "data"); rep.Resources != int64(most) || rep.Failed != int64(2-most) {
			t.Errorf("with at most %d triples: %+v", most, rep)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDumpsAtOnce: who wants no dump to be waited for is not made to wait.
func TestDumpsAtOnce(t *testing.T) {
	if got := (Set{}).DumpOptions().Settle; got > 1 {
		t.Errorf("dumps_settle: 0s is %v", got)
	}
}

// TestFreshnessSetting: a mirror tells its freshness in a store with updates, and not all the time.
func TestFreshnessSetting(t *testing.T) {
	for text, want := range map[string]string{
		"{embedded: ./e} 1m": "",
		"{update: \"http://s.example/u\", query: \"http://s.example/q\"} 1s": "",
		"{dump: ./m.nt} 1m":                        "is for stores that take SPARQL updates",
		"{files: ./f} 1m":                          "is for stores that take SPARQL updates",
		"{graph_store: \"http://s.example/d\"} 1m": "is for stores that take SPARQL updates",
		"{embedded: ./e} 500ms":                    "is less than a second",
	} {
		at := strings.LastIndexByte(text, ' ')
		_, err := Parse(fmt.Appendf(nil, "state: ./s\npublic: {listen: \"\"}\nadmin: {listen: \"\"}\nstores: {m: %s}\ndestinations: {d: {source: \"http://source.example/\", store: m, freshness: %s}}\n", text[:at], text[at+1:]), filepath.Join(t.TempDir(), "c.yaml"))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
