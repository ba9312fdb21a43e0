package changetrack

import (
	"bytes"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// made has what ahead makes of them in some of the descriptions.
func made(seq iter.Seq2[rdfres.Description, error], ahead func(string, []rdfres.Triple) []byte, spoil func(*rdfres.Description)) iter.Seq2[rdfres.Description, error] {
	return func(yield func(rdfres.Description, error) bool) {
		i := 0
		for d, err := range seq {
			if i++; err == nil && i%5 != 0 {
				d.Ahead = ahead(d.Entity, d.Triples)
				spoil(&d)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// TestMadeAhead: scans leave the very records that they leave when nothing was made
// ahead, in both formats and with all hashes, where it was made at an earlier moment,
// for other settings, or is spoiled.
func TestMadeAhead(t *testing.T) {
	formats := []ScanOptions{{}, {Format: rdfres.NTriples, SHA1: true}, {MD5: true, SHA1: true}}
	for name, spoil := range map[string]func(*rdfres.Description){
		"as made":         func(*rdfres.Description) {},
		"other settings":  nil,
		"cut off":         func(d *rdfres.Description) { d.Ahead = d.Ahead[:len(d.Ahead)-1] },
		"something else":  func(d *rdfres.Description) { d.Ahead = []byte("x") },
		"other checksum":  func(d *rdfres.Description) { d.Ahead = bytes.Clone(d.Ahead); d.Ahead[0] ^= 1 },
		"too few triples": func(d *rdfres.Description) { d.Ahead = bytes.Clone(d.Ahead); d.Ahead[len(d.Ahead)-1]++ },
	} {
		t.Run(name, func(t *testing.T) {
			for at, o := range formats {
				var logs [2]map[string]string
				for with := range 2 {
					s := memkv.New()
					to := testOptions(t.TempDir(), newClock())
					to.encode, to.decode, to.stageBytes, to.batchBytes = nil, nil, 2000, 2000
					tr, l := mustOpen(t, s, to)
					r := rand.New(rand.NewPCG(1, uint64(at)))
					src := source{}
					first := l.Ahead(t.Context(), o)
					for range 4 {
						for _, e := range slices.Sorted(maps.Keys(many(80, 0))) {
							switch r.IntN(4) {
							case 0:
								src[e] = []int{r.IntN(5), r.IntN(500)}
							case 1:
								if r.IntN(6) == 0 {
									delete(src, e)
								}
							}
						}
						seq := src.all()
						if with == 1 {
							ahead, spoil := l.Ahead(t.Context(), o), spoil
							if name == "other settings" {
								ahead = l.Ahead(t.Context(), formats[(at+1)%len(formats)])
							} else if ahead == nil {
								ahead = first
							}
							if spoil == nil {
								spoil = func(*rdfres.Description) {}
							}
							if ahead != nil {
								seq = made(seq, ahead, spoil)
							}
						}
						if _, err := l.Scan(t.Context(), seq, o); err != nil {
							t.Fatal(err)
						}
					}
					mustCheck(t, l)
					logs[with] = everything(t, s)
					tr.Close()
				}
				if !maps.Equal(logs[0], logs[1]) {
					t.Errorf("%+v: %d records, without %d, or they differ", o, len(logs[1]), len(logs[0]))
				}
			}
		})
	}
}

// TestMadeAheadIsUsed: of what is new the representation was measured ahead; where
// something is known nothing is.
func TestMadeAheadIsUsed(t *testing.T) {
	o := ScanOptions{Format: rdfres.JSONLD, SHA1: true}
	d := description("http://example.org/e", []int{1, 2, 3})
	to := testOptions(t.TempDir(), newClock())
	to.encode, to.decode = nil, nil
	_, l := mustOpen(t, memkv.New(), to)
	a, ok := readForeseen(l.Ahead(t.Context(), o)(d.Entity, d.Triples), len(d.Triples))
	if !ok || a.graph != rdfres.GraphDigest(d.Triples) {
		t.Fatalf("%+v, %v", a, ok)
	}
	data, represented := a.represented(&o, &item{entity: d.Entity, triples: d.Triples})
	want, err := codec.EncodeChecked(rdfres.JSONLD, d.Entity, d.Triples)
	if err != nil || !represented || !bytes.Equal(data, want) {
		t.Errorf("represented %v as %s, %v", represented, data, err)
	}
	if f := rdfres.ComputeFixity(want, false, true); a.fixity.SHA256 != f.SHA256 || !slices.Equal(a.fixity.SHA1, f.SHA1) || a.fixity.Length != f.Length {
		t.Errorf("fixity %+v, want %+v", a.fixity, f)
	}
	mustScan(t, l, source{d.Entity: {1, 2, 3}}, o)
	if l.Ahead(t.Context(), o) != nil {
		t.Error("something is made ahead although an entity is known")
	}
}
