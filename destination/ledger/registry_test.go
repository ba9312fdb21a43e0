package ledger

import (
	"context"
	"log/slog"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Numbers are given once; a renamed destination keeps its own; the last destination of a
// space takes the index, the probe and the names with it.
func TestRegistry(t *testing.T) {
	store := teststores.Records(t)
	commit := func(f func(b kv.Batch) error) {
		t.Helper()
		b := store.Batch()
		defer b.Close()
		if err := f(b); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	graph := Space{Target: "http://store.example/update", Name: SingleSpace + "http://ex.org/g"}
	var ids [2]ID
	var space ID
	loc, subject, triple := HashOf("http://ex.org/a.nt"), HashOf("a"), HashOf("a p o")
	open := func(i int) *Ledger { return New(store, slog.New(slog.DiscardHandler), ids[i], space) }
	for i, name := range []string{"first", "second"} {
		commit(func(b kv.Batch) (err error) {
			if err := CheckLayout(t.Context(), store, b); err != nil {
				return err
			}
			if space, err = NewSpaceID(t.Context(), store, b, graph); err == nil {
				ids[i], err = NewDestID(t.Context(), store, b, name)
			}
			if err != nil {
				return err
			}
			l := open(i)
			l.PutRecord(b, loc, &Record{Loc: "http://ex.org/a.nt"})
			l.Ownership().Own(b, loc, Owned{subject, triple[:]})
			l.Put(b, &Meta{Identity: Identity{Name: name, Space: space}})
			b.Set(NameKey(KindProbe, graph.Target), []byte("{}"))
			return nil
		})
	}
	if ids != [2]ID{1, 2} || space != 1 {
		t.Fatal(ids, space)
	}
	if n, err := SpaceID(t.Context(), store, graph); n != space || err != nil {
		t.Fatal(n, err)
	}
	commit(func(b kv.Batch) error {
		n, err := Rename(t.Context(), store, b, "second", "new name")
		if n != ids[1] {
			t.Errorf("the renamed destination is %d", n)
		}
		return err
	})
	if n, err := DestID(t.Context(), store, "second"); n != 0 || err != nil {
		t.Error(n, err)
	}
	if e, err := open(0).Extent(context.Background()); err != nil || e != (Extent{Records: 4, Resources: 1}) {
		t.Errorf("%+v %v", e, err) // the other one owns the triple too
	}
	if err := open(0).Forget(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if e, err := open(1).Extent(context.Background()); err != nil || e != (Extent{Records: 4, Resources: 1, Triples: 1}) {
		t.Errorf("%+v %v", e, err)
	}
	if err := open(1).Forget(t.Context(), "new name"); err != nil {
		t.Fatal(err)
	}
	left := ""
	for pair, err := range store.Scan(t.Context(), []byte{0}, []byte{0xff}) {
		if err != nil {
			t.Fatal(err)
		}
		left += string(pair.Key[:1])
	}
	if left != "NSv" { // numbers are not given again
		t.Errorf("left: %q", left)
	}
}
