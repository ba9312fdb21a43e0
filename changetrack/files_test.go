package changetrack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

// TestFiles holds random histories of descriptions that lead to files, and of the
// files, to a simple model.
func TestFiles(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { filesHistory(t, seed) })
	}
}

func filesHistory(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	store, dir := teststores.Records(t), t.TempDir()
	open := func() *Log {
		track, err := Open(t.Context(), kv.Prefix(store, []byte("t/")), Options{Dir: dir, Now: func() time.Time { now = now.Add(time.Second); return now }, batchBytes: 300})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { track.Close() })
		l, err := track.Log(t.Context(), "data")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	properties := "http://e.example/p"
	entity := func(i int) string { return fmt.Sprintf("http://e.example/%d", i) }
	link := func() {
		t.Helper()
		p := properties
		if err := l.LinkFiles(t.Context(), LinkOptions{Properties: p, Files: func(_ string, _ rdfres.Format, data []byte) (urls []string, err error) {
			for line := range bytes.Lines(data) {
				q, ok, err := rdfres.ParseLine(bytes.TrimSpace(line))
				if err != nil {
					return nil, err
				}
				if ok && strings.Contains(p, q.P.IRI()) {
					urls = append(urls, q.O.IRI())
				}
			}
			return urls, nil
		}}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.DropFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	leads := map[string]map[string][]string{} // entity: property: files
	current := map[string]FileVersion{}
	led := func() map[string][]string {
		out := map[string][]string{}
		for e, ps := range leads {
			for p, urls := range ps {
				if strings.Contains(properties, p) {
					for _, u := range urls {
						if !slices.Contains(out[u], e) {
							out[u] = append(out[u], e)
						}
					}
				}
			}
		}
		return out
	}
	touched := map[string]bool{}
	relinked := uint64(0) // sequence from which touched counts
	for step := range 60 {
		switch rnd.IntN(8) {
		case 0, 1, 2: // another state of the descriptions
			before := led()
			for range 1 + rnd.IntN(4) {
				e := entity(rnd.IntN(6))
				if rnd.IntN(4) == 0 {
					delete(leads, e)
					continue
				}
				leads[e] = map[string][]string{"none": nil}
				for _, p := range []string{"http://e.example/p", "http://e.example/q"} {
					for range rnd.IntN(3) {
						leads[e][p] = append(leads[e][p], fmt.Sprintf("http://f.example/%d", rnd.IntN(8)))
					}
				}
			}
			var ds []rdfres.Description
			for e, ps := range leads {
				ts := []rdfres.Triple{{S: rdfres.NewIRI(e), P: rdfres.NewIRI("http://e.example/n"), O: rdfres.NewLiteral(e, "", "")}}
				for p, urls := range ps {
					for _, u := range urls {
						ts = append(ts, rdfres.Triple{S: rdfres.NewIRI(e), P: rdfres.NewIRI(p), O: rdfres.NewIRI(u)})
					}
				}
				ds = append(ds, rdfres.Description{Entity: e, Triples: rdfres.SortUnique(ts)})
			}
			slices.SortFunc(ds, func(a, b rdfres.Description) int {
				x, y := rdfres.EntityKey(a.Entity), rdfres.EntityKey(b.Entity)
				return bytes.Compare(x[:], y[:])
			})
			relinked, _ = l.Head()
			if _, err := l.Scan(t.Context(), func(yield func(rdfres.Description, error) bool) {
				for _, d := range ds {
					if !yield(d, nil) {
						return
					}
				}
			}, ScanOptions{MaxDeleteRatio: -1, Format: rdfres.NTriples}); err != nil {
				t.Fatal(err)
			}
			link()
			after := led()
			clear(touched)
			for _, m := range []map[string][]string{before, after} {
				for u := range m {
					a, b := slices.Clone(before[u]), slices.Clone(after[u])
					slices.Sort(a)
					slices.Sort(b)
					touched[u] = !slices.Equal(a, b)
				}
			}
			v := l.View(t.Context())
			head, _ := v.Head()
			var keys []rdfres.Digest
			for k, err := range v.Relinked(t.Context(), relinked, head) {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, k)
			}
			v.Close()
			for u, is := range touched {
				if is && !slices.Contains(keys, FileKey(u)) {
					t.Fatalf("step %d: other descriptions lead to %s, and nobody is told", step, u)
				}
			}
		case 3, 4, 5: // somebody looks
			var found []FileFound
			for range 1 + rnd.IntN(5) {
				f := FileFound{URL: fmt.Sprintf("http://f.example/%d", rnd.IntN(8)), Gone: rnd.IntN(4) == 0}
				f.Version = FileVersion{Type: "text/plain", Length: int64(rnd.IntN(3))}
				if rnd.IntN(3) == 0 {
					f.Version.SHA256[0] = byte(1 + rnd.IntN(2))
				}
				if !slices.ContainsFunc(found, func(g FileFound) bool { return g.URL == f.URL }) {
					found = append(found, f)
				}
			}
			n, err := l.RecordFiles(t.Context(), found)
			if err != nil {
				t.Fatal(err)
			}
			var want FileChanges
			for _, f := range found {
				was, there := current[f.URL]
				switch {
				case f.Gone && there:
					want.Deleted++
					delete(current, f.URL)
				case f.Gone || len(led()[f.URL]) == 0:
				case !there:
					want.Created++
					current[f.URL] = f.Version
				case !was.Same(&f.Version):
					want.Updated++
					current[f.URL] = f.Version
				}
			}
			if n != want {
				t.Fatalf("step %d: %+v, want %+v", step, n, want)
			}
		case 6:
			properties = []string{"http://e.example/p", "http://e.example/q", "http://e.example/p http://e.example/q", ""}[rnd.IntN(4)]
			link()
		default:
			if _, err := l.Retain(t.Context(), now.Add(-time.Duration(rnd.IntN(60))*time.Second), now.Add(-time.Duration(rnd.IntN(60))*time.Second)); err != nil {
				t.Fatal(err)
			}
			l = open() // as after a crash
		}
		for u := range current {
			if len(led()[u]) == 0 {
				delete(current, u)
			}
		}
		if err := l.Check(t.Context()); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		v := l.View(t.Context())
		n, err := v.Files(t.Context())
		if err != nil || n != int64(len(current)) {
			t.Fatalf("step %d: %d files, want %d (%v)", step, n, len(current), err)
		}
		for st, err := range v.CurrentFiles(t.Context(), rdfres.Digest{}, rdfres.Digest{}) {
			want, ok := current[st.URL]
			if err != nil || !ok || !want.Same(st.Current) {
				t.Fatalf("step %d: %+v, want %+v (%v)", step, st.Current, want, err)
			}
		}
		there := map[string]bool{}
		for st, err := range v.LedFiles(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			there[st.URL] = true
			var es []string
			for e, err := range v.LeadingTo(t.Context(), st.URL) {
				if err != nil {
					t.Fatal(err)
				}
				es = append(es, e)
			}
			want := led()[st.URL]
			slices.Sort(es)
			slices.Sort(want)
			if !slices.Equal(es, want) {
				t.Fatalf("step %d: to %s lead %v, want %v", step, st.URL, es, want)
			}
		}
		if len(there) != len(led()) {
			t.Fatalf("step %d: %d are led to, want %d", step, len(there), len(led()))
		}
		v.Close()
	}
	// The log tells the same as the state.
	v := l.View(t.Context())
	defer v.Close()
	if tail, _ := v.Tail(); tail == 0 {
		replay := map[string]bool{}
		for c, err := range v.Changes(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if c.OfFile() {
				if (c.Kind == Created) == replay[c.File] || c.OfEntity() {
					t.Fatalf("%+v", c)
				}
				replay[c.File] = c.Kind != Deleted
			}
		}
	}
}

// TestNoFiles: a set without files has no record of them.
func TestNoFiles(t *testing.T) {
	store := teststores.Records(t)
	track, err := Open(t.Context(), store, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer track.Close()
	l, err := track.Log(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.LinkFiles(t.Context(), LinkOptions{}); err != nil {
		t.Fatal(err)
	}
	if n, err := l.DropFiles(t.Context()); err != nil || n != (FileChanges{}) {
		t.Fatal(n, err)
	}
	if _, err := l.store.Get(t.Context(), filesKey); err == nil {
		t.Fatal("a record was made")
	}
}

// TestFileRecords: what is written is read.
func TestFileRecords(t *testing.T) {
	at := time.UnixMicro(1777000000000001).UTC()
	v := &FileVersion{Sequence: 7, Time: at, Type: "application/pdf", Encoding: "gzip", Length: 0, Modified: at, SHA256: rdfres.Digest{1}}
	for _, w := range []*FileVersion{v, {Sequence: 8, Time: at, Type: "x/y", Length: -1}} {
		rec := &fileRecord{url: "http://f.example/1", first: at, changes: 3, current: w}
		got, err := readFileRecord(putFileRecord(nil, rec))
		if err != nil || !reflect.DeepEqual(got, rec) {
			t.Fatalf("%+v %v", got, err)
		}
		c := Change{Sequence: 9, Time: at, Kind: Updated, Finder: "files", File: "http://f.example/1", FileBefore: v, FileAfter: w}
		back, err := readChange(9, putChange(nil, &c))
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Fatalf("%+v %v", back, err)
		}
	}
}

func FuzzFileRecord(f *testing.F) {
	f.Add(putFileRecord(nil, &fileRecord{url: "http://f.example/1", current: &FileVersion{Type: "x/y"}}))
	f.Add(putLed([]string{"http://f.example/1"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := readFileRecord(b); err == nil {
			if again, err := readFileRecord(putFileRecord(nil, r)); err != nil || !reflect.DeepEqual(r, again) {
				t.Fatalf("%+v %+v %v", r, again, err)
			}
		}
		_, _ = readLed(b)
	})
}
