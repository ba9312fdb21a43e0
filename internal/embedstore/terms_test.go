package embedstore

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Rows are handed out in their order, whole and once, whether their terms are few,
// many, or too large for as many rows as are handed out at once.
func TestRowWalk(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var doc bytes.Buffer
	large := strings.Repeat("0123456789", 2500)
	for i := range 12_000 {
		value := fmt.Sprint(i % 7)
		if i >= 6000 && i < 9000 { // 75 MB
			value = fmt.Sprint(i, large)
		}
		fmt.Fprintf(&doc, "<http://e/%05d> <http://e/p> \"%s\" .\n", i, value)
	}
	want := doc.String()
	if n, err := s.Load(t.Context(), "", rdfres.NTriples, &doc, LoadOptions{}); err != nil || n != 12_000 {
		t.Fatal(n, err)
	}
	var got strings.Builder
	if err := s.Dump(t.Context(), &got, rdfres.NTriples, DumpOptions{}); err != nil {
		t.Fatal(err)
	}
	if got.String() != want { // subjects came in their order, and so they stand
		t.Fatalf("%d bytes, not the %d that were loaded", got.Len(), len(want))
	}
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	split, parts, rows := false, 0, 0
	w := newTermReader(snap.v, nil)
	defer w.close()
	walk := w.walk(4, nil)
	walk.fn = func(terms []string) error {
		split = split || walk.rows == batchRows && parts > 0
		parts, rows = parts+1, rows+len(terms)/4
		return nil
	}
	err = scan(snap.v, nil, access{3, 1}, &quad{}, true, func(q *quad) bool { err = walk.add(q[:]...); return err == nil })
	if err == nil {
		err = walk.flush()
	}
	if err != nil || rows != 12_000 || !split || parts > 12 {
		t.Fatalf("%d rows in %d parts, taken apart: %v; %v", rows, parts, split, err)
	}
}
