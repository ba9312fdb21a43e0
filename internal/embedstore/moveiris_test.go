package embedstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/rdfres"
)

// asVersion1 puts the IRIs of a store back to where version 1 had them: all, or some
// of them, as a process leaves it that was killed while it moved them.
func asVersion1(t *testing.T, s *Store, some func() bool) {
	t.Helper()
	b := s.db.NewBatch()
	for _, space := range []byte{spaceTerm, spaceIRI} { // it knew no pages
		b.DeleteRange([]byte{space}, []byte{space + 1}, nil)
		err := eachTermFrom(pebbleView{s.db}, space, 0, func(i id, term []byte) error {
			to := termSpace(i)
			if some == nil || some() {
				to = spaceTerm
			}
			return b.Set(appendID([]byte{to}, i), term, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if some == nil {
		b.Set(keyVersion, binary.BigEndian.AppendUint32(nil, 1), nil)
	} else {
		b.Set(keyMoving, nil, nil)
	}
	if err := s.apply(b, pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// A store of version 1 holds the same when it was opened by this version, also when
// a process was killed while it was moved, and can be written to.
func TestStoreOfVersion1(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	dir := t.TempDir()
	dumped := func(s *Store) string {
		var b bytes.Buffer
		if err := s.Dump(context.Background(), &b, rdfres.NQuads, DumpOptions{All: true}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	s := openTest(t, dir)
	more := func(n int, bulk bool) {
		var lines strings.Builder
		for range n {
			fmt.Fprintf(&lines, "<http://example.org/s%d> <http://example.org/p%d> ", rng.IntN(500), rng.IntN(9))
			switch rng.IntN(3) {
			case 0:
				fmt.Fprintf(&lines, "<http://example.org/o%d> .\n", rng.IntN(900))
			case 1:
				fmt.Fprintf(&lines, "_:b%d .\n", rng.IntN(50))
			default:
				fmt.Fprintf(&lines, "\"value %d\" .\n", rng.IntN(900))
			}
		}
		s.forceBulk = bulk
		if _, err := s.Load(context.Background(), "http://example.org/g", rdfres.NTriples, strings.NewReader(lines.String()), LoadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	more(3000, true)
	more(300, false)
	for i, some := range []func() bool{nil, func() bool { return rng.IntN(2) == 0 }, func() bool { return false }, nil} {
		want := dumped(s)
		asVersion1(t, s, some)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openTest(t, dir)
		if got := dumped(s); got != want {
			t.Fatalf("%d: %d bytes of quads before, %d after", i, len(want), len(got))
		}
		checkDictionary(t, s)
		if v, ok, err := (pebbleView{s.db}).get(keyVersion); err != nil || !ok || binary.BigEndian.Uint32(v) != storeVersion {
			t.Fatalf("%d: version %v %v %v", i, v, ok, err)
		}
		if _, ok, err := (pebbleView{s.db}).get(keyMoving); err != nil || ok {
			t.Fatalf("%d: moving is left: %v %v", i, ok, err)
		}
		more(300, i%2 == 0)
		checkDictionary(t, s)
	}
	b := s.db.NewBatch()
	b.Set(keyVersion, binary.BigEndian.AppendUint32(nil, storeVersion+1), nil)
	if err := errors.Join(s.apply(b, pebble.Sync), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "format version") {
		t.Fatalf("a store of a later version was opened: %v", err)
	}
}
