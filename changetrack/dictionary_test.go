package changetrack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/rdfres"
)

var exampleDictionary = bytes.Repeat([]byte("<http://example.org/> "), 9)

// packOlder makes a record of a representation as versions before this one did.
func packOlder(t testing.TB, number uint32, dictionary, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(number, dictionary), zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	b := binary.BigEndian.AppendUint32([]byte{dictionaryBlob}, crc32.ChecksumIEEE(data))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(data))), uint64(number))
	return enc.EncodeAll(data, b)
}

// TestRepresentations: short ones are kept as they are and long ones packed; those
// that an older version packed with a dictionary come back, and new ones beside
// them. A representation that is not what was written is an error.
func TestRepresentations(t *testing.T) {
	clk := newClock()
	s := memkv.New()
	o := testOptions(t.TempDir(), clk)
	_, l := mustOpen(t, s, o)
	long := source{"http://example.org/long": {}}
	for i := range 4000 {
		long["http://example.org/long"] = append(long["http://example.org/long"], 1000+i)
	}
	first := many(60, 1)
	maps.Copy(first, long)
	mustScan(t, l, first, plain)

	ours := kv.Prefix(s, setPrefix(l.id))
	b := ours.Batch()
	b.Set(dictionaryKey(7), append([]byte{recordVersion, formatCodes[rdfres.NTriples]}, exampleDictionary...))
	n := 0
	for p, err := range ours.Scan(t.Context(), []byte{kindBlob}, []byte{kindBlob + 1}) {
		if err != nil {
			t.Fatal(err)
		}
		blob, err := readBlob(p.Value, nil)
		if err != nil {
			t.Fatal(err)
		}
		if blob.plain != nil == (blob.Length > plainMost) {
			t.Errorf("%d bytes are kept as they are: %t", blob.Length, blob.plain != nil)
		}
		if n++; n%2 == 0 && blob.plain != nil {
			b.Set(p.Key, packOlder(t, 7, exampleDictionary, blob.plain))
		}
	}
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
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
		case blob.dictionary != nil:
			ways["dictionary"]++
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
	if ways["dictionary"] < 20 || ways["plain"] < 50 || ways["deflated"] != 1 {
		t.Errorf("they are kept so: %v", ways)
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
	want := collect(t, l.View(t.Context()).Changes(t.Context(), 0))
	tr.Close()

	ours := kv.Prefix(s, setPrefix(l.id))
	b := ours.Batch()
	long := 0
	for _, c := range want {
		key := rdfres.EntityKey(c.Entity)
		for _, kind := range []byte{kindHistory, kindBlob} {
			short := entitySeqKey(kind, key, c.Sequence)
			value, err := ours.Get(t.Context(), short)
			if err != nil {
				t.Fatal(err)
			}
			b.Delete(short)
			b.Set(slices.Concat([]byte{kind}, key[:], short[len(short)-8:]), value)
			long++
		}
	}
	if err := b.Commit(t.Context(), true); err != nil || long < 100 {
		t.Fatal(long, err)
	}
	m := s.Batch()
	m.Set(markerKey, []byte{1})
	if err := m.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}

	reading := o
	reading.Reading = true
	tr, l = mustOpen(t, s, reading)
	if seq, _ := l.Head(); seq != want[len(want)-1].Sequence {
		t.Errorf("read only, the head is %d", seq)
	}
	tr.Close()
	if version, _ := s.Get(t.Context(), markerKey); !slices.Equal(version, []byte{1}) {
		t.Errorf("read only, the version became %v", version)
	}

	commits := 0
	s.FailCommits(func(bool) error {
		if commits++; commits > 1 { // interrupted after the first one, and repeated
			return context.Canceled
		}
		return nil
	})
	if _, err := Open(t.Context(), s, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("opening went on: %v", err)
	}
	s.FailCommits(nil)
	if version, _ := s.Get(t.Context(), markerKey); len(version) != 2 { // which version 1 refuses
		t.Errorf("interrupted, the version is %v", version)
	}
	_, l = mustOpen(t, s, o)
	mustCheck(t, l)
	equalChanges(t, "changes", collect(t, l.View(t.Context()).Changes(t.Context(), 0)), want)
	if version, _ := s.Get(t.Context(), markerKey); !slices.Equal(version, []byte{stateVersion}) {
		t.Errorf("the version is %v", version)
	}
}

// TestHistoryOfOthers: two entities whose keys begin alike are not taken for one.
func TestHistoryOfOthers(t *testing.T) {
	s := memkv.New()
	_, l := mustOpen(t, s, testOptions(t.TempDir(), newClock()))
	mustScan(t, l, many(5, 1), plain)
	mustScan(t, l, many(5, 2), plain)
	all := collect(t, l.View(t.Context()).Changes(t.Context(), 0))
	entity := all[0].Entity
	want := collect(t, l.View(t.Context()).History(t.Context(), entity))
	ours := kv.Prefix(s, setPrefix(l.id))
	b := ours.Batch()
	for _, c := range all { // as if all keys began alike
		b.Set(entitySeqKey(kindHistory, rdfres.EntityKey(entity), c.Sequence), nil)
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
