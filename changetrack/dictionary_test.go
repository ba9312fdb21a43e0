package changetrack

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestDictionary: representations that were packed with a dictionary come back,
// also after the state was opened again, and are smaller than deflate makes them.
func TestDictionary(t *testing.T) {
	clk := newClock()
	s := memkv.New()
	o := testOptions(t.TempDir(), clk)
	tr, l := mustOpen(t, s, o)
	mustScan(t, l, many(60, 1), plain)
	mustScan(t, l, many(60, 2), plain)
	tr.Close()
	_, l = mustOpen(t, s, o)
	v := l.View()
	defer v.Close()
	kept, deflated, withDictionary := 0, 0, 0
	for c, err := range v.Changes(0) {
		if err != nil {
			t.Fatal(err)
		}
		blob, err := v.Representation(c.Entity, c.Sequence)
		if err != nil {
			t.Fatal(err)
		}
		data, err := blob.Bytes()
		if err != nil || rdfres.ComputeFixity(data, false, false).SHA256 != c.After.Fixity.SHA256 {
			t.Fatalf("%s: %q, %v", c.Entity, data, err)
		}
		plain, err := blob.Deflate()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := plain.Bytes(); err != nil || plain.CRC32 != blob.CRC32 || !bytes.Equal(again, data) {
			t.Fatalf("%s: deflated %q, %v", c.Entity, again, err)
		}
		if blob.dictionary != nil {
			withDictionary++
			kept += len(blob.frame)
			deflated += len(plain.Deflated)
		}
	}
	if withDictionary < 100 || kept > deflated*2/3 {
		t.Errorf("%d with a dictionary, %d bytes, deflated %d", withDictionary, kept, deflated)
	}
}

// TestOlderKeys: a state of version 1 is taken up, with all that is in it.
func TestOlderKeys(t *testing.T) {
	clk := newClock()
	s := memkv.New()
	o := testOptions(t.TempDir(), clk)
	tr, l := mustOpen(t, s, o)
	for seed := range uint64(3) {
		mustScan(t, l, many(30, int(seed)), plain)
	}
	want := collect(t, l.View().Changes(0))
	tr.Close()

	ours := kv.Prefix(s, setPrefix(l.id))
	b := ours.Batch()
	long := 0
	for _, c := range want {
		key := rdfres.EntityKey(c.Entity)
		for _, kind := range []byte{kindHistory, kindBlob} {
			short := entitySeqKey(kind, key, c.Sequence)
			value, err := ours.Get(short)
			if err != nil {
				t.Fatal(err)
			}
			b.Delete(short)
			b.Set(slices.Concat([]byte{kind}, key[:], short[len(short)-8:]), value)
			long++
		}
	}
	if err := b.Commit(true); err != nil || long < 100 {
		t.Fatal(long, err)
	}
	m := s.Batch()
	m.Set(markerKey, []byte{1})
	if err := m.Commit(true); err != nil {
		t.Fatal(err)
	}

	reading := o
	reading.Reading = true
	tr, l = mustOpen(t, s, reading)
	if seq, _ := l.Head(); seq != want[len(want)-1].Sequence {
		t.Errorf("read only, the head is %d", seq)
	}
	tr.Close()
	if version, _ := s.Get(markerKey); !slices.Equal(version, []byte{1}) {
		t.Errorf("read only, the version became %v", version)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, s, o); err == nil { // interrupted, and repeated
		t.Fatal("opening went on")
	}
	if version, _ := s.Get(markerKey); len(version) != 2 { // which version 1 refuses
		t.Errorf("interrupted, the version is %v", version)
	}
	_, l = mustOpen(t, s, o)
	mustCheck(t, l)
	equalChanges(t, "changes", collect(t, l.View().Changes(0)), want)
	if version, _ := s.Get(markerKey); !slices.Equal(version, []byte{stateVersion}) {
		t.Errorf("the version is %v", version)
	}
}

// TestHistoryOfOthers: two entities whose keys begin alike are not taken for one.
func TestHistoryOfOthers(t *testing.T) {
	s := memkv.New()
	_, l := mustOpen(t, s, testOptions(t.TempDir(), newClock()))
	mustScan(t, l, many(5, 1), plain)
	mustScan(t, l, many(5, 2), plain)
	all := collect(t, l.View().Changes(0))
	entity := all[0].Entity
	want := collect(t, l.View().History(entity))
	ours := kv.Prefix(s, setPrefix(l.id))
	b := ours.Batch()
	for _, c := range all { // as if all keys began alike
		b.Set(entitySeqKey(kindHistory, rdfres.EntityKey(entity), c.Sequence), nil)
	}
	if err := b.Commit(true); err != nil {
		t.Fatal(err)
	}
	equalChanges(t, "history", collect(t, l.View().History(entity)), want)
	if len(want) < 2 || len(want) == len(all) {
		t.Errorf("%d of %d changes are its own", len(want), len(all))
	}
	equalChanges(t, "changes", collect(t, l.View().Changes(0)), all)
}
