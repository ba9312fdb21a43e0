package changetrack

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

func someVersion(r *rand.Rand) *Version {
	v := &Version{
		Sequence: r.Uint64N(1 << 40), Time: time.UnixMicro(r.Int64N(1 << 55)).UTC(),
		Format: rdfres.NTriples, Wanted: rdfres.JSONLD, Triples: r.IntN(1 << 30), RDFXML: r.IntN(2) == 0,
		Fixity: rdfres.ComputeFixity(fmt.Append(nil, r.Uint64()), r.IntN(2) == 0, r.IntN(2) == 0),
	}
	v.Graph[r.IntN(32)] = byte(r.Uint32())
	return v
}

func TestRecordsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	at := func() time.Time { return time.UnixMicro(r.Int64N(1 << 55)).UTC() }
	check := func(got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, %v, want %+v", got, err, want)
		}
	}
	for range 500 {
		c := Change{Sequence: r.Uint64(), Time: at(), Kind: Updated, Entity: "http://example.org/ü", Finder: "scan", Before: someVersion(r), After: someVersion(r)}
		got, err := readChange(c.Sequence, putChange(nil, &c))
		check(got, c, err)
		if when, err := changeTime(putChange(nil, &c)); err != nil || !when.Equal(c.Time) {
			t.Fatalf("changeTime = %s, %v, want %s", when, err, c.Time)
		}
		s := &stateRecord{entity: "e", firstSeq: r.Uint64(), first: at(), changes: r.Uint64N(9), current: someVersion(r)}
		if s.changes == 1 {
			s.firstSeq, s.first = s.current.Sequence, s.current.Time
		}
		gotState, err := readState(putState(nil, s))
		check(gotState, s, err)
		p, err := peekState(putState(nil, s))
		check(p, peek{[]byte("e"), true, s.firstSeq, s.current.Sequence, s.current.Graph, s.current.Format, s.current.Wanted}, err)
		s.changes, s.current, s.delSeq, s.delTime = 2+r.Uint64N(9), nil, r.Uint64(), at()
		gotState, err = readState(putState(nil, s))
		check(gotState, s, err)
		e := endedRecord{rdfres.EntityKey("e"), r.Uint64(), at(), r.IntN(2) == 0}
		gotEnded, err := readEnded(putEnded(nil, &e))
		check(gotEnded, e, err)
		h := headRecord{
			seq: 9, time: at(), tail: 3, tailTime: at(), resources: 5, components: 2, triples: 77,
			baseline: true, baseSeq: 2, baseTime: at(), fingerprint: "f", candidates: 4,
		}
		gotHead, err := readHead(putHead(nil, &h))
		check(gotHead, h, err)
	}
}

func TestNewerRecordIsRefused(t *testing.T) {
	b := putState(nil, &stateRecord{entity: "e"})
	b[0] = recordVersion + 1
	if _, err := readState(b); !errors.Is(err, ErrNewer) {
		t.Errorf("readState = %v, want ErrNewer", err)
	}
}

func TestSpool(t *testing.T) {
	for _, limit := range []int{0, 50, 1 << 20} {
		sp := &spool{dir: t.TempDir(), name: "scan-1-*.stage", limit: limit}
		var want [][]byte
		for i := range 100 {
			rec := bytes.Repeat([]byte{byte(i)}, i%7)
			want = append(want, rec)
			if err := sp.add(rec); err != nil {
				t.Fatal(err)
			}
		}
		if (sp.file != nil) != (limit < 1<<20) {
			t.Errorf("limit %d: file %v", limit, sp.file)
		}
		for range 2 {
			i := 0
			for rec, err := range sp.all() {
				if err != nil || !bytes.Equal(rec, want[i]) {
					t.Fatalf("record %d = %q, %v", i, rec, err)
				}
				i++
			}
			if i != len(want) {
				t.Fatalf("%d records, want %d", i, len(want))
			}
		}
		sp.discard()
		sp.discard()
	}
}

// FuzzRecords: no bytes make a reader panic or take much memory, and what can be
// read is written the same.
func FuzzRecords(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	v := someVersion(r)
	f.Add(putChange(nil, &Change{Kind: Created, Entity: "e", Finder: "scan", After: v}))
	f.Add(putState(nil, &stateRecord{entity: "e", current: v}))
	f.Add(putState(nil, &stateRecord{entity: "e", delSeq: 7}))
	f.Add(putEnded(nil, &endedRecord{start: 3}))
	f.Add(putHead(nil, &headRecord{seq: 4, fingerprint: "f"}))
	f.Add(putBlob(nil, Blob{Deflated: []byte{3, 0}, Length: 0}))
	f.Add(putStaged(nil, &staged{kind: Updated, entity: "e", old: []byte{1}, after: v, blob: putBlob(nil, Blob{Deflated: []byte{1, 2}})}))
	f.Add(putBlob(nil, Blob{Length: 3, plain: []byte("abc")}))
	f.Add(putChange(nil, &Change{Kind: Created, Entity: "e", Finder: "scan", After: elsewhere}))
	f.Add(frame(frame(nil, []byte("a")), nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := readChange(1, b); err == nil {
			if again, err := readChange(1, putChange(nil, &c)); err != nil || !reflect.DeepEqual(c, again) {
				t.Errorf("change %+v comes back as %+v, %v", c, again, err)
			}
		}
		if s, err := readState(b); err == nil {
			if again, err := readState(putState(nil, s)); err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("state %+v comes back as %+v, %v", s, again, err)
			}
		}
		if s, err := readStaged(b); err == nil {
			if _, err := readStaged(putStaged(nil, s)); err != nil {
				t.Errorf("staged %+v cannot be read again: %v", s, err)
			}
		}
		peekState(b)
		readEnded(b)
		readHead(b)
		if blob, err := readBlob(b); err == nil && blob.Length < 1<<20 {
			blob.Bytes()
		}
		for range readRecords(bytes.NewReader(b), 3, "fuzz") {
		}
	})
}
