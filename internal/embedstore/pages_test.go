package embedstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// Terms are read as they were written, in any order, wherever they stand: in pages, alone,
// or where there is a gap.
func TestPages(t *testing.T) {
	s := openTest(t, t.TempDir())
	rng := rand.New(rand.NewPCG(7, 9))
	want := map[id]string{}
	for _, kind := range []id{idLiteral, idIRI} {
		next := id(1)
		for range 12 {
			w := newTables(s)
			defer w.discard()
			p := pageWriter{w: w}
			for range rng.IntN(400) {
				next += 1 + id(rng.ExpFloat64()*2)
				i := next<<2 | kind
				term := fmt.Sprintf("<http://example.org/%d/%d>", rng.IntN(3), rng.IntN(1e6))
				if kind == idLiteral {
					term = `"` + strings.Repeat("x", int(rng.ExpFloat64()*1000)) + `"`
				}
				want[i] = term
				if err := p.add(i, term); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(p.flush(), w.finish(), w.ingest(t.Context())); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(2) == 0 { // by an update
				next++
				want[next<<2|kind] = `"alone"`
				if err := s.db.Set(termKey(next<<2|kind), []byte(`"alone"`), pebble.NoSync); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var ids []id
	for i := range want {
		ids = append(ids, i)
	}
	slices.Sort(ids)
	_, r := readTerms(t, s)
	check := func(i id) {
		t.Helper()
		got, err := r.read(i)
		if term, ok := want[i]; ok != (err == nil) || string(got) != term {
			t.Fatalf("%d: %.40q %v, want %.40q", i, got, err, term)
		}
	}
	for _, step := range []int{1, 2, 7, 90, 900} {
		for at := 0; at < len(ids); at += 1 + rng.IntN(step) {
			check(ids[at])
		}
	}
	for range 2000 {
		check(ids[rng.IntN(len(ids))])
		check(ids[rng.IntN(len(ids))] + id(rng.IntN(3))<<2) // perhaps of none
	}
	for _, space := range []byte{spaceTerm, spaceIRI} {
		var got []id
		if err := eachTermFrom(pebbleView{s.db}, space, 0, func(i id, term []byte) error {
			if got = append(got, i); string(term) != want[i] {
				t.Fatalf("%d: %.40q", i, term)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		all := slices.DeleteFunc(slices.Clone(ids), func(i id) bool { return termSpace(i) != space })
		if !slices.Equal(got, all) {
			t.Fatalf("space %d: %d terms, want %d", space, len(got), len(all))
		}
	}
}

// A damaged page is an error or gives terms; reading one ends.
func FuzzPage(f *testing.F) {
	s := openTest(f, f.TempDir())
	put := func(last id, value []byte) {
		if err := s.db.Set(termKey(last), value, pebble.NoSync); err != nil {
			f.Fatal(err)
		}
	}
	page := binary.AppendUvarint([]byte{pageMark}, 3)
	for i, term := range []string{"<http://a/>", "<http://a/b>", "<http://b>"} {
		if i > 0 {
			page = binary.AppendUvarint(page, uint64(i))
		}
		page = append(append(page, 0, byte(len(term))), term...)
	}
	f.Add(page)
	f.Add(page[:len(page)-1])
	f.Add([]byte{pageMark, 1, 0, 0, 1, 1, 0})
	f.Add([]byte{pageMark, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		last := id(1000)<<2 | idIRI
		put(last, value)
		put(last+4, []byte("<http://after/>"))
		last0, ended := id(0), false
		err := eachTermFrom(pebbleView{s.db}, spaceIRI, 0, func(i id, term []byte) error {
			if i <= last0 || i > last+4 {
				t.Fatalf("%d after %d", i, last0)
			}
			last0, ended = i, bytes.Equal(term, []byte("<http://after/>"))
			return nil
		})
		if (err == nil) != ended || err != nil && !errors.Is(err, errPage) {
			t.Fatalf("%v %v", err, ended)
		}
	})
}
