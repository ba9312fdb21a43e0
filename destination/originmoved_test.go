package destination

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/keep"
)

// The first source of what is mirrored gives it another address, which changes nothing of
// it here: a repair learns the address, and the audit asks there.
func TestFirstSourceMoves(t *testing.T) {
	b := newBench(t)
	first := newTestSource(t)
	b.cfg.Allow = []string{strings.TrimPrefix(first.srv.URL, "http://")}
	via := "/set/r/"
	b.src.damage = func(doc string) string {
		return regexp.MustCompile(`(?s)(/set/r/)(e\d\.nt)(</loc>.*?)(</url>)`).ReplaceAllString(doc, `$1$2$3<rs:ln rel="via" href="`+first.srv.URL+via+`$2"/>$4`)
	}
	b.src.changes = false
	fill(b.src, 3)
	fill(first, 3)
	b.sync()
	audit := func(repair bool) keep.AuditReport {
		t.Helper()
		rep, err := b.open().Audit(t.Context(), AuditOptions{Depth: "origin", Repair: repair})
		if err != nil || rep.Origins != 3 {
			t.Fatalf("%+v %v", rep, err)
		}
		return rep
	}
	if rep := audit(false); !rep.Equal {
		t.Fatalf("%+v", rep)
	}
	first.moveAll("/new/", false)
	via = "/new/"
	if rep := audit(false); rep.Different != 3 {
		t.Fatalf("%+v", rep)
	}
	clear(b.src.requests)
	if rep := audit(true); !rep.Equal || rep.Repaired != 3 {
		t.Fatalf("%+v", rep)
	}
	b.equal()
}

// What one representation of the first source describes beside an entity is told of by
// other resources of a catalogue that republishes it, and is no difference of this one.
func TestFirstSourceDescribesMore(t *testing.T) {
	b := newBench(t)
	first := newTestSource(t)
	b.cfg.Allow = []string{strings.TrimPrefix(first.srv.URL, "http://")}
	b.src.damage = func(doc string) string {
		return regexp.MustCompile(`(?s)(/set/r/)(e\d\.nt)(</loc>.*?)(</url>)`).ReplaceAllString(doc, `$1$2$3<rs:ln rel="via" href="`+first.srv.URL+`/set/r/$2"/>$4`)
	}
	b.src.changes = false
	const place = `<http://ex.org/e1> <http://ex.org/place> _:b .
_:b <http://ex.org/lat> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
`
	const more = `<http://ex.org/other> <http://ex.org/place> _:b .
`
	b.src.put("e1.nt", nt("e1", "1")+place)
	first.put("e1.nt", nt("e1", "1")+place+more)
	b.sync()
	for _, equal := range []bool{true, false} {
		rep, err := b.open().Audit(t.Context(), AuditOptions{Depth: "origin"})
		if err != nil || rep.Origins != 1 || rep.Equal != equal {
			t.Fatalf("%+v %v", rep, err)
		}
		first.put("e1.nt", nt("e1", "2")+place+more)
	}
}
