package bridge

import (
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestAlternates: two sets that describe the same entities in two vocabularies lead
// to each other, and stop where one has the entity no more.
func TestAlternates(t *testing.T) {
	cfg := small(t.TempDir())
	plain := cfg.Sets["data"]
	plain.Alternates = []string{"qdc"}
	cfg.Sets["data"] = plain
	qdc := NewSet()
	qdc.Store, qdc.Alternates, qdc.Format = "source", []string{"data"}, "ntriples"
	qdc.Describe = "CONSTRUCT { ?entity <http://purl.org/dc/terms/title> ?t } WHERE { ?entity <http://schema.org/name> ?t }"
	qdc.Select.Query = "SELECT ?entity WHERE { ?entity <http://schema.org/name> ?t }"
	cfg.Sets["qdc"] = qdc
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b := mustOpen(t, cfg)
	defer func() { b.Close() }()
	const both, one = "<http://e.example/a> <http://schema.org/name> \"A\" .\n", "<http://e.example/b> <http://schema.org/size> \"1\" .\n"
	leads := func(set, entity string, want ...string) {
		t.Helper()
		loc, err := b.Location(t.Context(), set, entity)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range entryIn(t, b, set, loc).Links {
			if l.Rel == resourcesync.RelAlternate {
				if l.Type == "" {
					t.Errorf("%+v", l)
				}
				got = append(got, l.Href)
			}
		}
		for _, other := range []string{"data", "qdc"} {
			if other == set {
				continue
			}
			href, err := b.Location(t.Context(), other, entity)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(got, href) != slices.Contains(want, other) {
				t.Errorf("%s in %s leads to %v; want an alternate in %v", entity, set, got, want)
			}
		}
	}
	scan := func() {
		t.Helper()
		for _, name := range []string{"data", "qdc"} {
			if rep := do[ScanReport](t, b, "scan", name); rep.Held != nil {
				t.Fatalf("%+v", rep.Held)
			}
		}
	}
	fill(t, b, "source", both+one)
	scan()
	leads("data", "http://e.example/a", "qdc")
	leads("data", "http://e.example/b")
	leads("qdc", "http://e.example/a", "data")
	validate(t, b)

	// Nothing of the one changes, and its entry does, in a document of another tag.
	before, _ := b.pub.Generation("data")
	fill(t, b, "source", both+one+"<http://e.example/b> <http://schema.org/name> \"B\" .\n<http://e.example/a> <http://schema.org/size> \"2\" .\n")
	if rep := do[ScanReport](t, b, "scan", "qdc"); rep.Created != 1 {
		t.Fatalf("%+v", rep)
	}
	leads("data", "http://e.example/b", "qdc")
	after, _ := b.pub.Generation("data")
	if after.Sequence != before.Sequence || after.Number == before.Number {
		t.Fatalf("generation %+v, after %+v", after, before)
	}
	scan()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = mustOpen(t, cfg)
	last, _ := b.pub.Generation("data")
	leads("data", "http://e.example/b", "qdc")
	if b.Close(); last.Number == 0 {
		t.Fatal("nothing is published")
	}
	b = mustOpen(t, cfg)
	if again, _ := b.pub.Generation("data"); again != last {
		t.Fatalf("a restart made generation %+v of %+v", again, last)
	}
	leads("qdc", "http://e.example/b", "data")
	fill(t, b, "source", both+one)
	scan()
	leads("data", "http://e.example/b")
	validate(t, b)

	bad := cfg.Sets["qdc"]
	bad.Alternates = []string{"qdc", "none"}
	cfg.Sets["qdc"] = bad
	if err := cfg.Validate(); err == nil {
		t.Error("a set that is its own alternate is taken")
	}
}
