package destination

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestPartNamesItsCapability: the first entry of a list, or all entries of a part of an index, look
// like lists. An entry that names a capability fails by name, and the others are taken.
func TestPartNamesItsCapability(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, rest string
		part        bool
		failed      int64
	}{
		{"the first entry of a part", `<rs:md capability="resourcelist"/>`, "", true, 1},
		{"all entries of a part", `<rs:md capability="resourcelist"/>`, `<rs:md capability="resourcelist"/>`, true, 3},
		{"the first entry of a list", `<rs:md capability="resourcelist"/>`, "", false, 1},
		{"the first entry of a part, by its time", `<rs:md at="2026-01-01T00:00:00Z"/>`, "", true, 0},
	} {
		b := newBench(t)
		s := b.src
		fill(s, 3)
		root := `<rs:ln rel="up" href="` + s.url(s.caps) + `"/><rs:md capability="resourcelist" at="2026-02-01T00:00:00Z"/>`
		entries := ""
		for i, md := range []string{c.first, c.rest, c.rest} {
			entries += "<url><loc>" + s.url("/set/r/e"+string(rune('0'+i))+".nt") + "</loc>" + md + "</url>"
		}
		list := urlset + root + entries + "</urlset>"
		if c.part {
			xmlAt(s, "/set/part.xml", list)
			list = strings.Replace(urlset, "urlset", "sitemapindex", 1) + root + "<sitemap><loc>" + s.url("/set/part.xml") + "</loc></sitemap></sitemapindex>"
		}
		xmlAt(s, listXML, list)
		if rep := b.sync(); rep.Created != 3-c.failed || rep.Failed != c.failed || c.failed > 0 && !strings.Contains(rep.Problems[0].Reason, "to no resource") {
			t.Errorf("%s: %+v", c.name, rep)
		}
	}
}

// A part of an index that was wrong leaves no trace once it is right again, however old the index is: what
// went for it is back, and what it only had held stays, also if somebody accepts it.
func TestWrongPartOnce(t *testing.T) {
	const part = "/set/resourcelist-1.xml"
	for name, wrong := range map[string]func(s *testSource, of func(path string) []byte) string{
		"empty": func(s *testSource, of func(string) []byte) string {
			return string(without(of(part), func(int) bool { return true }))
		},
		"short": func(s *testSource, of func(string) []byte) string {
			return string(without(of(part), func(n int) bool { return n > 2 }))
		},
		"swapped": func(s *testSource, of func(string) []byte) string { return string(of("/set/resourcelist-0.xml")) },
		"yesterday": func(s *testSource, of func(string) []byte) string {
			return strings.ReplaceAll(string(without(of(part), func(n int) bool { return n%2 == 0 })), s.listAt.Format("2006-01-02"), s.listAt.AddDate(0, 0, -1).Format("2006-01-02"))
		},
	} {
		for _, followed := range []bool{true, false} {
			for _, age := range []time.Duration{time.Minute, 9 * time.Hour} {
				for _, n := range []int{14, 60} {
					for _, polls := range []int{1, 3} {
						if teststores.Unraced(t, 5) {
							continue
						}
						t.Run(fmt.Sprint(name, " followed ", followed, " ", age, " ", n, " ", polls), func(t *testing.T) {
							t.Parallel()
							b := dated(t, func(s *testSource) { s.changes, s.parts = followed, 2; fill(s, n) })
							s := b.src
							s.put("e3.nt", nt("e3", "later"))
							b.freezeList()
							b.clock = b.clock.Add(age)
							back := served(s, part, wrong(s, s.get))
							var rep SyncReport
							for range polls {
								rep = b.later()
							}
							if many := n == 60; many != (rep.Held != "") || many && rep.InSync {
								t.Fatalf("%+v", rep)
							}
							back()
							if polls == 1 && rep.Held != "" {
								if rep := b.accept(); rep.Deleted > 0 {
									t.Fatalf("%+v", rep)
								}
							}
							if rep := b.later(); !rep.InSync || rep.Held != "" {
								t.Fatalf("%+v", rep)
							}
							b.equal()
						})
					}
				}
			}
		}
	}
}

// A Change List with a later one behind it is read once. What it told wrongly then is mended by the next run,
// though its index and the later list are as they were.
func TestWrongPartOfChanges(t *testing.T) {
	turned := regexp.MustCompile(`change="(created|updated)"`)
	for name, wrong := range map[string]func(list, before []byte) string{
		"empty":     func(list, _ []byte) string { return string(without(list, func(int) bool { return true })) },
		"short":     func(list, _ []byte) string { return string(without(list, func(n int) bool { return n > 1 })) },
		"a hole":    func(list, _ []byte) string { return string(without(list, func(n int) bool { return n == 1 })) },
		"deletions": func(list, _ []byte) string { return turned.ReplaceAllString(string(list), `change="deleted"`) },
		"swapped":   func(_, before []byte) string { return string(before) },
	} {
		for _, ours := range []bool{false, true} {
			for _, bare := range []int{0, 1} {
				if teststores.Unraced(t, 7) {
					continue
				}
				t.Run(fmt.Sprint(name, " numbers ", ours, " bare ", bare), func(t *testing.T) {
					t.Parallel()
					b := dated(t, func(s *testSource) { s.changeParts, s.ours, s.bare = 4, ours, bare })
					s := b.src
					b.freezeList()
					b.later()
					for i := range 5 { // the fourth begins with the last one
						s.put(fmt.Sprintf("e%d.nt", i), nt(fmt.Sprintf("e%d", i), "later"))
					}
					s.remove("e9.nt")
					part := "/set/changelist-3.xml"
					back := served(s, part, wrong(s.get(part), s.get("/set/changelist-2.xml")))
					b.later()
					back()
					for range 2 {
						if rep := b.later(); rep.InSync {
							b.equal()
						}
					}
					if st := b.status(); !st.InSync || st.Held != "" {
						t.Fatalf("%+v", st)
					}
				})
			}
		}
	}
}

// get is the source's answer at an address.
func (s *testSource) get(path string) []byte {
	res, err := http.Get(s.url(path))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return body
}
