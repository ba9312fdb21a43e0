package publish

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// TestAppendResource: the entry that is written straight is the one that the
// Writer would write.
func TestAppendResource(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	entities := []string{"http://example.org/Berlin", "http://example.org/a&b", "http://example.org/'x'", "http://other.org/é?x=y#z", "urn:rsbridge:component:ab-0",
		"http://example.org/a b", "not an iri", "http://example.org/x.html", "mailto:a@example.org", "http://example.org/100%", "urn:x:\u0001", "http://example.org/\ufffe",
		"http:///nohost", "HTTP://example.org/{x}"}
	for _, base := range []string{"http://h.example", "http://h.example/a'b&c"} {
		at := newPlace("data", Addresses{Base: base, Prefix: "http://example.org/"}, nil)
		m := entryMaker{&SetConfig{Format: rdfres.JSONLD}, &at}
		for i := range 500 {
			st := changetrack.State{Entity: entities[r.IntN(len(entities))], Changes: r.IntN(4), First: time.UnixMicro(r.Int64N(1e15)).UTC()}
			if r.IntN(2) == 0 {
				st.Entity += fmt.Sprint(i)
			}
			st.Current = &changetrack.Version{Sequence: r.Uint64N(1e6), Time: st.First.Add(time.Duration(r.Int64N(1e16)).Truncate(time.Microsecond)),
				Graph: rdfres.EntityKey(fmt.Sprint(i)), Format: []rdfres.Format{rdfres.JSONLD, rdfres.NTriples}[r.IntN(2)],
				Fixity: rdfres.ComputeFixity([]byte(fmt.Sprint(i)), r.IntN(5) == 0, r.IntN(5) == 0)}
			got, err := m.appendResource(t.Context(), nil, nil, &st)
			if err != nil {
				t.Fatalf("%q: %v", st.Entity, err)
			}
			e, err := m.resourceEntry(t.Context(), nil, &st)
			if err != nil {
				t.Fatal(err)
			}
			want, err := resourcesync.AppendEntry(nil, &e)
			if err != nil || string(got) != string(want) {
				t.Fatalf("%q:\n%s\nwant %v\n%s", st.Entity, got, err, want)
			}
			if (e.Link(resourcesync.RelDescribes) == nil) == (e.Meta.Ext[resourcesync.ExtEntity] == "") && naming.XMLText(st.Entity) {
				t.Fatalf("%q is named in no way, or in two: %s", st.Entity, got)
			}
		}
	}
}

// TestEntrySize: an entry of a Resource List takes at most 600 bytes, of a Change List without
// patches 700.
func TestEntrySize(t *testing.T) {
	at := newPlace("data", Addresses{Base: "https://source.example.org", Prefix: "http://example.org/resource/"}, nil)
	m := entryMaker{&SetConfig{Format: rdfres.JSONLD}, &at}
	v := &changetrack.Version{Sequence: 1234567, Time: time.UnixMicro(1.7e15 + 123456).UTC(), Format: rdfres.JSONLD, Fixity: rdfres.ComputeFixity(make([]byte, 1234), false, false)}
	st := changetrack.State{Entity: "http://example.org/resource/Entity_1234567", Changes: 2, First: v.Time.Add(-time.Hour), Current: v}
	listed, err := m.appendResource(t.Context(), nil, nil, &st)
	if err != nil || len(listed) > 600 {
		t.Errorf("%d bytes (%v): %s", len(listed), err, listed)
	}
	changes, err := m.ofChange(t.Context(), nil, &changetrack.Change{Sequence: v.Sequence, Time: v.Time, Entity: st.Entity, Kind: changetrack.Created, After: v}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := resourcesync.AppendEntry(nil, &changes[0])
	if err != nil || len(changed) > 700 {
		t.Errorf("%d bytes (%v): %s", len(changed), err, changed)
	}
}

func TestChangeFreq(t *testing.T) {
	for _, tt := range []struct {
		changes int
		after   time.Duration
		want    string
	}{
		{1, time.Hour, ""}, {2, time.Hour, "hourly"}, {3, 48 * time.Hour, "daily"}, {2, 10 * 24 * time.Hour, "weekly"},
		{5, 200 * 24 * time.Hour, "monthly"}, {2, 400 * 24 * time.Hour, "yearly"},
	} {
		first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		st := changetrack.State{Changes: tt.changes, First: first, Current: &changetrack.Version{Time: first.Add(tt.after)}}
		if got := changeFreq(&st); got != tt.want {
			t.Errorf("%d changes in %v: %q, want %q", tt.changes, tt.after, got, tt.want)
		}
	}
}
