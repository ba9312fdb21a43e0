package destination

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

func (b *bench) versions(entity string) (out []string) {
	b.t.Helper()
	for v, err := range b.open().Versions(context.Background(), "http://ex.org/"+entity) {
		if err != nil {
			b.t.Fatal(err)
		}
		s := ""
		for _, t := range v.Triples {
			s += string(t.O)
		}
		if v.Deleted {
			s += " deleted"
		}
		if v.Entity != "http://ex.org/"+entity || v.Until.IsZero() || v.Until.Before(v.From) {
			b.t.Errorf("%+v", v)
		}
		out = append(out, s)
	}
	return out
}

// Every version that a Change List told is kept, those that were superseded within
// one run too; a crash keeps none twice.
func TestKeepVersions(t *testing.T) {
	for _, crash := range []string{"", "intent", "written", "recorded"} {
		t.Run(crash, func(t *testing.T) {
			b := newBench(t)
			b.cfg.Keep = "versions"
			s := b.src
			s.ours = true
			s.put("a.nt", nt("a", "0"))
			s.put("b.nt", nt("b", "0"))
			b.sync()
			for i := range 3 {
				s.put("a.nt", nt("a", fmt.Sprint(i+1)))
			}
			s.remove("a.nt")
			s.put("a.nt", nt("a", "5"))
			s.put("a.nt", nt("a", "5")) // told, and the same
			s.put("b.nt", nt("b", "1"))
			if crash != "" {
				d := b.open()
				n := 0
				d.crash = func(point string) error {
					if n++; point == crash && n > 4 {
						return errInjected
					}
					return nil
				}
				if _, err := d.Sync(context.Background(), SyncOptions{}); err == nil {
					t.Fatal("no crash")
				}
			}
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
			if got, want := b.versions("a"), []string{`"0"`, `"1"`, `"2"`, `"3" deleted`}; !slices.Equal(got, want) {
				t.Errorf("versions are %q, want %q", got, want)
			}
			if got := b.versions("b"); !slices.Equal(got, []string{`"0"`}) {
				t.Errorf("versions of b are %q", got)
			}
			s.remove("b.nt")
			b.sync()
			b.equal()
			if got := b.versions("b"); !slices.Equal(got, []string{`"0"`, `"1" deleted`}) {
				t.Errorf("versions of b are %q", got)
			}
		})
	}
}
