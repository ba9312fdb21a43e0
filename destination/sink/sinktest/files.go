package sinktest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/rdfres"
)

// names is a record of paths in memory.
type names map[string]string

func (n names) Owner(ctx context.Context, name, loc string) (own, taken bool, err error) {
	of, taken := n[name]
	return taken && of == loc, taken, nil
}
func (n names) Take(name, loc string) { n[name] = loc }
func (n names) Free(name string)      { delete(n, name) }

// files have the bytes of each address, also where one address is below another, and as many
// as there are.
func (s *suite) files() {
	f, ok := s.mirror.(sink.Files)
	if !ok {
		s.t.Skip("it keeps triples")
	}
	known, want := names{}, map[string]string{}
	holds := func() {
		s.t.Helper()
		var all, recorded []string
		for name, err := range f.All(context.Background()) {
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, name)
		}
		slices.Sort(all)
		for loc, body := range want {
			name, err := f.Find(s.t.Context(), known, loc)
			if err != nil || name == "" {
				s.t.Fatalf("%s is at %q: %v", loc, name, err)
			}
			recorded = append(recorded, name)
			if sum, err := f.Digest(name); err != nil || sum != rdfres.Digest(sha256.Sum256([]byte(body))) {
				s.t.Errorf("%s has other bytes: %v", name, err)
			}
		}
		if slices.Sort(recorded); !reflect.DeepEqual(all, recorded) {
			s.t.Errorf("it holds %q, not %q", all, recorded)
		}
		s.empty(len(want) == 0)
	}
	write := func(n int, f func(b sink.FileBatch) error) {
		s.t.Helper()
		for range 2 { // the second time changes nothing
			b := s.mirror.(sink.Files).Begin(known, n)
			err := f(b)
			if err == nil {
				err = b.Flush()
			}
			b.Close()
			if err != nil {
				s.t.Fatal(err)
			}
		}
		holds()
	}
	put := func(bodies map[string]string, n int) {
		s.t.Helper()
		maps.Copy(want, bodies)
		write(n, func(b sink.FileBatch) error {
			for _, loc := range slices.Sorted(maps.Keys(bodies)) {
				if err := b.Put(s.t.Context(), loc, []byte(bodies[loc]), false); err != nil {
					return err
				}
			}
			return nil
		})
	}
	s.empty(true)
	put(map[string]string{Authority + "/a": "1", Authority + "/a/b": "2", Authority + "/a/": "3", Authority + "/": "4", "http://other.example/a": "5", "urn:a:b": "6"}, 6)
	put(map[string]string{Authority + "/a": "changed", Authority + "/a/b": ""}, 2)
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("%s/many/%d?q=/../x", Authority, i)] = fmt.Sprint(i)
	}
	put(many, len(many))
	clear(want)
	write(1, func(b sink.FileBatch) error {
		for name := range maps.Clone(known) {
			delete(known, name) // as if a crash had left the files
		}
		for _, loc := range slices.Concat(slices.Collect(maps.Keys(many)), []string{Authority + "/a/", Authority + "/", "http://other.example/a", "urn:a:b", Authority + "/a", Authority + "/a/b"}) {
			if err := b.Clear(s.t.Context(), loc); err != nil {
				return err
			}
		}
		return nil
	})
	put(map[string]string{Authority + "/a": "again"}, 1)
	clear(want)
	for _, had := range []bool{true, false} {
		b := f.Begin(known, 1)
		if removed, err := b.Remove(s.t.Context(), Authority+"/a"); err != nil || removed != had {
			s.t.Errorf("removed %t, not %t: %v", removed, had, err)
		}
		b.Close()
	}
	holds()
	if err := f.Remove("nothing/here"); err != nil {
		s.t.Error(err)
	}
}
