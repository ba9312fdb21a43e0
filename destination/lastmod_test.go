package destination

import (
	"regexp"
	"testing"
	"time"
)

// A lastmod that is a day does not tell of a second change on that day, not even a list
// that has no other change.
func TestLastmodOfADay(t *testing.T) {
	for _, plain := range []bool{false, true} {
		b := newBench(t)
		s := b.src
		s.changes, s.noHash = false, true
		day := regexp.MustCompile(`<lastmod>([0-9-]{10})T[^<]*`)
		root := regexp.MustCompile(`<rs:md capability="resourcelist"[^>]*>`)
		s.damage = func(doc string) string {
			if plain {
				doc = root.ReplaceAllString(doc, "")
			}
			return day.ReplaceAllString(doc, "<lastmod>$1")
		}
		fill(s, 3)
		s.date = s.now.Add(time.Hour)
		b.sync()
		for _, v := range []string{"2", "3"} {
			s.put("e1.nt", nt("e1", "a", v))
			s.date = s.date.Add(time.Hour)
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.equal()
		}
		s.date = s.date.Add(48 * time.Hour)
		s.now = s.date.Add(-time.Hour)
		s.put("e2.nt", nt("e2", "a", "b"))
		b.sync()
		b.equal()
		n := s.requests["/set/r/e1.nt"]
		s.put("e2.nt", nt("e2", "a", "c"))
		b.sync()
		if got := s.requests["/set/r/e1.nt"]; got != n {
			t.Errorf("plain %v: e1 was fetched %d times more, two days later", plain, got-n)
		}
		b.equal()
	}
}
