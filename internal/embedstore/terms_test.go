package embedstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Rows are handed out in their order, whole and once, whether their terms are few,
// many, or too large for as many rows as are handed out at once.
func TestRowWalk(t *testing.T) {
	teststores.Sequential(t)
	s := openTest(t, t.TempDir())
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
	snap, r := readTerms(t, s)
	parts, rows, most := 0, 0, 0
	walk := r.walk(4, func(terms []string) error {
		parts, rows, most = parts+1, rows+len(terms)/4, max(most, len(terms)/4)
		return nil
	})
	walk.quick = time.Hour // whatever the machine has to do beside
	var werr error
	err := scan(snap.v, nil, access{3, 1}, &quad{}, true, func(q *quad) bool { werr = walk.add(q[:]...); return werr == nil })
	if err = errors.Join(err, werr, walk.flush()); err != nil || rows != 12_000 {
		t.Fatal(rows, err)
	}
	// 1,024 rows, 2,048 and 4,096; the other 4,832, whose first 1,832 take 46 MB, as two
	// quarters and a half.
	if most != 4096 || parts != 6 {
		t.Fatalf("%d parts, at most %d rows", parts, most)
	}
}

// An answer is written on as it grows, also where one large term is in every row.
func TestAnswerIsNotHeld(t *testing.T) {
	teststores.Sequential(t)
	s := openTest(t, t.TempDir())
	var doc bytes.Buffer
	shared := strings.Repeat("0123456789", 500)
	for i := range 6000 {
		fmt.Fprintf(&doc, "<http://e/%d> <http://e/p> \"%s\" .\n", i, shared)
	}
	if _, err := s.Load(t.Context(), "", rdfres.NTriples, &doc, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range []rowFormat{rowsTSV, rowsJSON, rowsXML, rowsCSV} {
		res, err := s.Query(t.Context(), "SELECT ?s ?o { ?s ?p ?o }", QueryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var w longest
		if err := errors.Join(res.WriteRows(&w, string(f)), res.Close()); err != nil || w.all < 6000*5000 || w.one > 128<<10 {
			t.Fatalf("%v: %d bytes, %d of them at once; %v", f, w.all, w.one, err)
		}
	}
}

// What a format cannot hold is no answer in it, rather than another text.
func TestCharactersThatXMLCannotHold(t *testing.T) {
	s := openTest(t, t.TempDir())
	for text, can := range map[string]bool{"tab\\t <&> é": true, "\\u0001": false, "bell \\u0007": false, "\\b": false, "\uFFFE": false, "\\\\u0001": true} {
		if _, err := s.Load(t.Context(), "", rdfres.NTriples, strings.NewReader(fmt.Sprintf("<http://e/s> <http://e/p> \"%s\" .\n", text)), LoadOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		for _, f := range []rowFormat{rowsTSV, rowsJSON, rowsXML} {
			res, err := s.Query(t.Context(), "SELECT ?o { ?s ?p ?o }", QueryOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := errors.Join(res.WriteRows(&out, string(f)), res.Close()); (err == nil) != (can || f != rowsXML) {
				t.Errorf("%q as %s: %v\n%s", text, f, err, &out)
			}
		}
	}
}

// longest notes the longest of what is written.
type longest struct{ all, one int }

func (l *longest) Write(p []byte) (int, error) {
	l.all, l.one = l.all+len(p), max(l.one, len(p))
	return len(p), nil
}

// Where the order of rows is free, they come in the order in which their literals came
// into the store, each once, and those of a subject together.
func TestArrangedRows(t *testing.T) {
	teststores.Sequential(t)
	s := openTest(t, t.TempDir())
	const entities = 3000
	size := func(i int) int { // one is larger than what is arranged at once
		if i == 1234 {
			return 400
		}
		return 1 + i%5
	}
	var doc bytes.Buffer
	for i := range entities { // each is named by another before something is said of it
		fmt.Fprintf(&doc, "<http://e/%d> <http://e/next> <http://e/%d> .\n", i, (i*1777+11)%entities)
		for k := range size(i) {
			fmt.Fprintf(&doc, "<http://e/%d> <http://e/p%d> \"%d of %d\" .\n", i, k, k, i)
		}
		fmt.Fprintf(&doc, "<http://e/%d> <http://e/class> \"%d\" .\n", i, i%3)
	}
	text := doc.String()
	if _, err := s.Load(t.Context(), "", rdfres.NTriples, &doc, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	snap, r := readTerms(t, s)
	for rows := 1; rows <= 16; rows++ {
		quick := time.Hour // at first, some are not arranged
		if rows == 16 {
			quick = 0
		}
		want, sum := map[string]bool{}, 0
		for line := range strings.Lines(text) {
			want[line] = true
		}
		var subjects []string
		walk := r.walk(4, func(terms []string) error {
			for i := 0; i < len(terms); i += 4 {
				line := fmt.Sprintf("%s %s %s .\n", terms[i], terms[i+1], terms[i+2])
				if !want[line] {
					return fmt.Errorf("%q came twice, or is not there", line)
				}
				delete(want, line)
				sum++
				if len(subjects) == 0 || subjects[len(subjects)-1] != terms[i] {
					subjects = append(subjects, terms[i])
				}
			}
			return nil
		})
		walk.free, walk.rows, walk.most, walk.many, walk.quick = true, rows, 64, 1000, quick
		var werr error
		err := scan(snap.v, nil, access{3, 1}, &quad{}, true, func(q *quad) bool { werr = walk.add(q[:]...); return werr == nil })
		if err = errors.Join(err, werr, walk.flush()); err != nil || len(want) > 0 {
			t.Fatal(sum, len(want), err)
		}
		seen, back := map[string]bool{}, 0
		for i, sub := range subjects {
			if seen[sub] {
				t.Fatalf("%s came in two places", sub)
			}
			seen[sub] = true
			var a, b int
			if i > 0 {
				fmt.Sscanf(subjects[i-1], "<http://e/%d>", &a)
				fmt.Sscanf(sub, "<http://e/%d>", &b)
				if b < a {
					back++
				}
			}
		}
		if back > entities*5/200 { // once for each that is arranged at once, of at least 1,000 cells
			t.Fatalf("%d steps back in %d subjects", back, len(subjects))
		}
	}
}

func readTerms(t *testing.T, s *Store) (*Snapshot, *termReader) {
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r := newTermReader(snap.v, nil)
	t.Cleanup(func() {
		r.close()
		snap.Close()
	})
	return snap, r
}

// A dump whose reader goes away ends with its error, and writes nothing afterwards.
func TestDumpBreaksOff(t *testing.T) {
	s := openTest(t, t.TempDir())
	var doc bytes.Buffer
	for i := range 30_000 {
		fmt.Fprintf(&doc, "<http://e/%d> <http://e/p> \"value %d\" .\n", i, i)
	}
	whole := doc.String()
	if _, err := s.Load(t.Context(), "", rdfres.NTriples, &doc, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	for left := 0; left < len(whole); left += 1 + len(whole)/9 {
		w := &breaking{left: left}
		if err := s.Dump(t.Context(), w, rdfres.NTriples, DumpOptions{}); !errors.Is(err, errGone) {
			t.Fatalf("after %d bytes: %v", left, err)
		}
		if got := w.got.String(); got != whole[:len(got)] {
			t.Fatalf("after %d bytes: not what is held", left)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &breaking{left: len(whole), full: func() { cancel(errGone) }}
	if err := s.Dump(ctx, w, rdfres.NTriples, DumpOptions{}); !errors.Is(err, errGone) {
		t.Fatal(err)
	}
}

var errGone = errors.New("the reader has gone")

// breaking takes so many bytes; full is called by the first write.
type breaking struct {
	left int
	full func()
	got  bytes.Buffer
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.full != nil {
		b.full()
		b.full = nil
	}
	if b.left -= len(p); b.left < 0 {
		return 0, errGone
	}
	return b.got.Write(p)
}
