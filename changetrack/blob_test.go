package changetrack

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestRepresentations: short ones are kept as they are and long ones packed. A representation
// that is not what was written is an error.
func TestRepresentations(t *testing.T) {
	clk := newClock()
	s := teststores.Records(t)
	o := testOptions(t.TempDir(), clk)
	_, l := mustOpen(t, s, o)
	long := source{"http://example.org/long": {}}
	for i := range 4000 {
		long["http://example.org/long"] = append(long["http://example.org/long"], 1000+i)
	}
	first := many(60, 1)
	maps.Copy(first, long)
	mustScan(t, l, first, plain)

	for p, err := range kv.Prefix(s, setPrefix(l.id)).Scan(t.Context(), []byte{kindBlob}, []byte{kindBlob + 1}) {
		if err != nil {
			t.Fatal(err)
		}
		blob, err := readBlob(p.Value)
		if err != nil {
			t.Fatal(err)
		}
		if blob.plain != nil == (blob.Length > plainMost) {
			t.Errorf("%d bytes are kept as they are: %t", blob.Length, blob.plain != nil)
		}
	}
	second := many(60, 2)
	maps.Copy(second, long)
	mustScan(t, l, second, plain)
	mustCheck(t, l)

	v := l.View(t.Context())
	defer v.Close()
	ways := map[string]int{}
	for c, err := range v.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.After == nil {
			continue
		}
		blob, err := v.Representation(t.Context(), c.Entity, c.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		data, err := blob.Bytes()
		if err != nil || rdfres.ComputeFixity(data, false, false).SHA256 != c.After.Fixity.SHA256 {
			t.Fatalf("%s: %q, %v", c.Entity, data, err)
		}
		deflated, err := blob.Deflate()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := deflated.Bytes(); err != nil || deflated.Deflated == nil || deflated.CRC32 != blob.CRC32 || !bytes.Equal(again, data) {
			t.Fatalf("%s: deflated %q, %v", c.Entity, again, err)
		}
		switch {
		case blob.plain != nil:
			ways["plain"]++
			damaged := blob
			damaged.plain = append(bytes.Clone(blob.plain[1:]), 0)
			if _, err := damaged.Bytes(); !errors.Is(err, errDamaged) {
				t.Errorf("damaged: %v", err)
			}
			damaged.plain = blob.plain[1:]
			if _, err := damaged.Bytes(); !errors.Is(err, errDamaged) {
				t.Errorf("too short: %v", err)
			}
		default:
			ways["deflated"]++
		}
	}
	if ways["plain"] < 100 || ways["deflated"] != 1 {
		t.Errorf("they are kept so: %v", ways)
	}
}

// TestHistoryOfOthers: two entities whose keys begin alike are not taken for one.
func TestHistoryOfOthers(t *testing.T) {
	s := teststores.Records(t)
	_, l := mustOpen(t, s, testOptions(t.TempDir(), newClock()))
	mustScan(t, l, many(5, 1), plain)
	mustScan(t, l, many(5, 2), plain)
	all := collect(t, l.View(t.Context()).Changes(t.Context(), 0))
	entity := all[0].Entity
	want := collect(t, l.View(t.Context()).History(t.Context(), entity))
	ours := kv.Prefix(s, setPrefix(l.id))
	b := ours.Batch()
	for _, c := range all { // as if all keys began alike
		if c.Entity != entity {
			b.Set(entitySeqKey(kindHistory, rdfres.EntityKey(entity), c.Sequence), nil)
		}
	}
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	equalChanges(t, "history", collect(t, l.View(t.Context()).History(t.Context(), entity)), want)
	if len(want) < 2 || len(want) == len(all) {
		t.Errorf("%d of %d changes are its own", len(want), len(all))
	}
	equalChanges(t, "changes", collect(t, l.View(t.Context()).Changes(t.Context(), 0)), all)
}
