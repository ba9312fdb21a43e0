package destination

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// An update is fetched as a patch where that is shorter and of what is kept; a
// patch that lies, is gone or makes something else is replaced by the whole.
func TestPatches(t *testing.T) {
	for _, suffix := range []string{".nt", ".jsonld"} {
		for _, damage := range []string{"", "lies", "gone", "wrong", "skipped"} {
			t.Run(suffix+" "+damage, func(t *testing.T) {
				b := newBench(t)
				s := b.src
				s.ours, s.patches = true, map[string][]byte{}
				put := func(e, round int) {
					var doc strings.Builder
					x := fmt.Sprintf("http://ex.org/e%d", e)
					for i := range 20 {
						fmt.Fprintf(&doc, "<%s> <http://ex.org/p%d> \"a value that stays as it is\" .\n", x, i)
					}
					fmt.Fprintf(&doc, "<%s> <http://ex.org/v> \"round %d\" .\n<%s> <http://ex.org/b> _:x .\n_:x <http://ex.org/q> \"%d\" .\n", x, round, x, round)
					body := named(t, doc.String())
					if suffix == ".jsonld" {
						ts, err := ledger.ParseWire([]byte(body))
						if err != nil {
							t.Fatal(err)
						}
						raw, err := codec.Encode(rdfres.JSONLD, x, ts)
						if err != nil {
							t.Fatal(err)
						}
						body = string(raw)
					}
					s.put(fmt.Sprintf("e%d%s", e, suffix), body)
				}
				for e := range 6 {
					put(e, 0)
				}
				b.sync()
				b.equal()
				for e := range 3 {
					put(e, 1)
				}
				if damage == "skipped" { // the last patch is of a version that we never had
					for e := range 3 {
						put(e, 2)
					}
				}
				for i := 7; i <= 12; i++ {
					path := fmt.Sprintf("/set/patch/%d.rdfp", i)
					if suffix == ".jsonld" {
						path = fmt.Sprintf("/set/patch/%d.json", i)
					}
					switch damage {
					case "lies":
						s.patches[path] = []byte("[]")
					case "gone":
						s.patches[path] = nil
					}
				}
				if damage == "wrong" { // well formed and as promised, but it makes something else
					s.wrongPatch = true
				}
				clear(s.requests)
				rep := b.sync()
				if !rep.InSync || rep.Updated != 3 {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				whole := 0
				for path, n := range s.requests {
					if strings.HasPrefix(path, s.folder) {
						whole += n
					}
				}
				want := int64(0)
				if damage == "" {
					want = 3
				}
				if rep.Patched != want || whole != 3-int(want) {
					t.Errorf("%d patched, %d whole, wanted %d patched", rep.Patched, whole, want)
				}
			})
		}
	}
}

// An RDF Patch is taken before a JSON Patch of the same change, and the JSON Patch
// where it cannot be had.
func TestPatchOfGraphFirst(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("gone ", gone), func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours, s.bothPatches, s.patches = true, true, map[string][]byte{}
			put := func(round int) {
				var ts []rdfres.Triple
				for i := range 20 {
					ts = append(ts, rdfres.Triple{S: rdfres.NewIRI("http://ex.org/e"), P: rdfres.NewIRI(fmt.Sprint("http://ex.org/p", i)), O: rdfres.NewLiteral("a value that stays as it is", "", "")})
				}
				ts = append(ts, rdfres.Triple{S: rdfres.NewIRI("http://ex.org/e"), P: rdfres.NewIRI("http://ex.org/v"), O: rdfres.NewLiteral(fmt.Sprint(round), "", "")})
				body, err := codec.Encode(rdfres.JSONLD, "http://ex.org/e", rdfres.SortUnique(ts))
				if err != nil {
					t.Fatal(err)
				}
				s.put("e.jsonld", string(body))
			}
			put(0)
			b.sync()
			for round := 1; round <= 2; round++ { // the second is a patch of what the first has made
				put(round)
				ofGraph, ofDocument := fmt.Sprintf("/set/patch/%d.rdfp", round+1), fmt.Sprintf("/set/patch/%d.json", round+1)
				if gone {
					s.patches[ofGraph] = nil
				}
				clear(s.requests)
				if rep := b.sync(); !rep.InSync || rep.Patched != 1 {
					t.Fatalf("%+v", rep)
				}
				b.equal()
				if used := s.requests[ofDocument] > 0; s.requests[ofGraph] == 0 || used != gone {
					t.Errorf("requests: %v", s.requests)
				}
			}
		})
	}
}

// A JSON Patch that is more than half of the document is passed over.
func TestPatchOfAlmostAll(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours, s.patches = true, map[string][]byte{}
	var last string
	put := func(round int) {
		ts := []rdfres.Triple{{S: rdfres.NewIRI("http://ex.org/e"), P: rdfres.NewIRI("http://ex.org/stays"), O: rdfres.NewLiteral(strings.Repeat("as it is ", 150), "", "")}}
		for i := range 20 {
			ts = append(ts, rdfres.Triple{S: rdfres.NewIRI("http://ex.org/e"), P: rdfres.NewIRI(fmt.Sprint("http://ex.org/p", i)), O: rdfres.NewLiteral(fmt.Sprint("round ", round), "", "")})
		}
		body, err := codec.Encode(rdfres.JSONLD, "http://ex.org/e", rdfres.SortUnique(ts))
		if err != nil {
			t.Fatal(err)
		}
		last = string(body)
		s.put("e.jsonld", last)
	}
	put(0)
	b.sync()
	put(1)
	clear(s.requests)
	if rep := b.sync(); !rep.InSync || rep.Updated != 1 || rep.Patched != 0 || s.requests["/set/patch/2.json"] != 0 {
		t.Errorf("%+v, requests %v", rep, s.requests)
	}
	if n := len(s.patches["/set/patch/2.json"]); n >= len(last) || 2*n <= len(last) {
		t.Fatalf("the patch has %d bytes, the document %d", n, len(last))
	}
	b.equal()
}
