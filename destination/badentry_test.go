package destination

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
)

// A malformed entry fails alone and is told; what it may have meant is neither
// removed nor forgotten, and the next good list puts it right.
func TestBadEntryFailsAlone(t *testing.T) {
	for name, damage := range map[string]func(doc string) string{
		"hash": func(doc string) string { return strings.Replace(doc, `hash="sha-256:`, `hash="sha-256:zz`, 1) },
		"loc":  func(doc string) string { return strings.Replace(doc, `<loc>http://`, `<loc>ht tp://`, 1) },
		"none": func(doc string) string {
			a, rest, _ := strings.Cut(doc, "<loc>")
			_, rest, _ = strings.Cut(rest, "</loc>")
			return a + rest
		},
		"graph": func(doc string) string { return strings.Replace(doc, `rsb:graph="sha-256:`, `rsb:graph="sha-`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.src
			s.ours, s.changes = true, false
			fill(s, 20)
			b.sync()
			b.equal()
			good := s.want()
			s.remove("e19.nt")
			s.damage = damage
			rep := b.sync()
			if rep.InSync || rep.Failed != 1 || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].Reason, "line ") {
				t.Fatalf("%+v", rep)
			}
			if name == "loc" || name == "none" { // it may have been any of them
				b.same(b.mir.lines(graphA), good)
			} else {
				b.same(b.mir.lines(graphA), s.want())
			}
			told := slices.ContainsFunc(differences(t, b.d), func(diff keep.Difference) bool { return diff.Kind == "failed" })
			if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || a.Equal || !told {
				t.Fatalf("%+v %v, told %v", a, err, told)
			}
			s.damage = nil
			if rep = b.sync(); !rep.InSync || rep.Failed != 0 {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		})
	}
}

// differences are those of a destination; the list goes on from each of its places.
func differences(t *testing.T, d *Destination) []keep.Difference {
	t.Helper()
	from := func(after string) (out []keep.Difference) {
		for diff, err := range d.Differences(t.Context(), after) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, diff)
		}
		return out
	}
	all := from("")
	for i, diff := range all {
		if rest := from(diff.Place); !slices.Equal(rest, all[i+1:]) {
			t.Errorf("after %s the differences are %v, want %v", diff.Place, rest, all[i+1:])
		}
	}
	return all
}
