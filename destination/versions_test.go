package destination

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
)

func (b *bench) versions(entity string) (out []string) {
	b.t.Helper()
	for v, err := range b.open().Versions(context.Background(), "http://ex.org/"+entity) {
		if err != nil {
			b.t.Fatal(err)
		}
		s := ""
		for _, t := range v.Triples {
			s += string(t.O)
		}
		if v.Deleted {
			s += " deleted"
		}
		if v.Entity != "http://ex.org/"+entity || v.Until.IsZero() || v.Until.Before(v.From) {
			b.t.Errorf("%+v", v)
		}
		out = append(out, s)
	}
	return out
}

// Every version that a Change List told is kept, those that were superseded within
// one run too; a crash keeps none twice.
func TestKeepVersions(t *testing.T) {
	for _, crash := range []string{"", "intent", "written", "recorded"} {
		t.Run(crash, func(t *testing.T) {
			b := newBench(t)
			b.cfg.Keep = "versions"
			s := b.src
			s.ours = true
			s.put("a.nt", nt("a", "0"))
			s.put("b.nt", nt("b", "0"))
			b.sync()
			for i := range 3 {
				s.put("a.nt", nt("a", fmt.Sprint(i+1)))
			}
			s.remove("a.nt")
			s.put("a.nt", nt("a", "5"))
			s.put("a.nt", nt("a", "5")) // told, and the same
			s.put("b.nt", nt("b", "1"))
			if crash != "" {
				d := b.open()
				n := 0
				d.mem.Crash = func(point string) error {
					if n++; point == crash && n > 4 {
						return errInjected
					}
					return nil
				}
				if _, err := d.Sync(context.Background(), SyncOptions{}); err == nil {
					t.Fatal("no crash")
				}
			}
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			if got, want := b.versions("a"), []string{`"0"`, `"1"`, `"2"`, `"3" deleted`}; !slices.Equal(got, want) {
				t.Errorf("versions are %q, want %q", got, want)
			}
			if got := b.versions("b"); !slices.Equal(got, []string{`"0"`}) {
				t.Errorf("versions of b are %q", got)
			}
			s.remove("b.nt")
			b.sync()
			b.equal()
			if got := b.versions("b"); !slices.Equal(got, []string{`"0"`, `"1" deleted`}) {
				t.Errorf("versions of b are %q", got)
			}
		})
	}
}

// What an entity was at a time is found, and that it was not there.
func TestDescribe(t *testing.T) {
	for _, graph := range []string{"single", "per-entity"} {
		b := newBench(t)
		b.cfg.Keep, b.cfg.Graph = "versions", graph
		if graph == "per-entity" {
			b.cfg.GraphIRI = "http://mirror.example/g/{entity}"
		}
		s := b.src
		s.ours = true
		s.put("a.nt", nt("a", "0"))
		s.put("b.nt", nt("b", "0"))
		b.sync()
		s.put("a.nt", nt("a", "1"))
		b.sync()
		s.remove("a.nt")
		b.sync()
		s.put("a.nt", nt("a", "2"))
		b.sync()
		d := b.open()
		describe := func(entity string, at time.Time) string {
			t.Helper()
			v, ok, err := d.Describe(context.Background(), "http://ex.org/"+entity, at)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return "none"
			}
			out := ""
			for _, x := range v.Triples {
				out += string(x.O)
			}
			return out
		}
		var past []ledger.Version
		for v, err := range d.Versions(context.Background(), "http://ex.org/a") {
			if err != nil {
				t.Fatal(err)
			}
			past = append(past, v)
		}
		if len(past) != 2 {
			t.Fatalf("%s: %d versions", graph, len(past))
		}
		deleted := past[1].Until
		for _, c := range []struct {
			at   time.Time
			want string
		}{
			{time.Time{}, `"2"`}, {deleted.Add(time.Hour), `"2"`}, {past[0].Until.Add(-time.Microsecond), `"0"`},
			{past[0].Until, `"1"`}, {deleted.Add(-time.Microsecond), `"1"`}, {deleted, "none"},
		} {
			if got := describe("a", c.at); got != c.want {
				t.Errorf("%s: at %v: %s, want %s", graph, c.at, got, c.want)
			}
		}
		if got := describe("b", time.Time{}); got != `"0"` {
			t.Errorf("%s: b is %s", graph, got)
		}
		if got := describe("c", time.Time{}); got != "none" {
			t.Errorf("%s: c is %s", graph, got)
		}
		if origin, err := d.Origin(t.Context(), "http://ex.org/b"); err != nil || !strings.HasSuffix(origin, "/b.nt") {
			t.Errorf("%s: b comes from %q %v", graph, origin, err)
		}
	}
}

// A list that is older than the changes after it does not put its versions behind theirs.
func TestVersionsAfterAnOldList(t *testing.T) {
	for _, ours := range []bool{false, true} {
		b := newBench(t)
		b.cfg.Keep = "versions"
		s := b.src
		s.ours = ours
		put := func(v string) { s.put("a.nt", nt("a", v)) }
		put("0")
		s.frozen, s.listSeq, s.listAt = maps.Clone(s.bodies), len(s.log), s.now
		put("1")
		put("2")
		put("3")
		s.remove("a.nt")
		put("4")
		b.sync()
		b.equal()
		if got := b.versions("a"); len(got) > 0 {
			t.Errorf("ours %v: versions are %q", ours, got)
		}
		put("5")
		b.open().Sync(t.Context(), SyncOptions{Full: true})
		b.equal()
		put("6")
		b.sync()
		b.equal()
		if got, want := b.versions("a"), []string{`"4"`, `"5"`}; !slices.Equal(got, want) {
			t.Errorf("ours %v: versions are %q, want %q", ours, got, want)
		}
	}
}

// A version that a list ended ends with the lastmod of the next.
func TestVersionsOfLists(t *testing.T) {
	b := newBench(t)
	b.cfg.Keep = "versions"
	s := b.src
	s.changes = false
	var times []time.Time
	for _, v := range []string{"0", "1", "2"} {
		s.put("a.nt", nt("a", v))
		times = append(times, s.now)
		b.sync()
		b.equal()
		s.now = s.now.Add(time.Hour)
	}
	for i, at := range times {
		v, ok, err := b.open().Describe(t.Context(), "http://ex.org/a", at.Add(time.Minute))
		if err != nil || !ok || len(v.Triples) != 1 || string(v.Triples[0].O) != `"`+string(rune('0'+i))+`"` {
			t.Errorf("at %v: %v %v %v", at, v, ok, err)
		}
	}
}

// What an entity was at an address that it has left for another is a version of it, unless
// it is the same there.
func TestVersionsOfWhatMoves(t *testing.T) {
	for _, kind := range []string{"pairs", "list-only", "dump-only"} {
		for _, changed := range []bool{true, false} {
			b := newBench(t)
			b.cfg.Keep = "versions"
			s := b.src
			s.ours = true
			switch kind {
			case "list-only":
				s.changes = false
			case "dump-only":
				s.changes, s.list, s.dump = false, false, true
			}
			fill(s, 3)
			s.put("a.nt", nt("a", "0"))
			b.sync()
			s.remove("a.nt")
			want := []string{`"0"`}
			if changed {
				s.put("a.ttl", nt("a", "1"))
			} else {
				s.put("a.ttl", nt("a", "0"))
				want = nil
			}
			if rep := b.sync(); !rep.InSync || rep.Moved != 1 {
				t.Fatalf("%s: %+v", kind, rep)
			}
			b.equal()
			if got := b.versions("a"); !slices.Equal(got, want) {
				t.Errorf("%s: versions are %q, want %q", kind, got, want)
			}
		}
	}
}
