package destination

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// wrongChanges are the ways in which a Change List is wrong. Each gets the entries, and an entry for a
// resource of any kind at the time of another one.
var wrongChanges = map[string]func(r *rand.Rand, all []string, of func(change, like string) string) []string{
	"foreign in the midst": func(r *rand.Rand, all []string, of func(change, like string) string) []string {
		at := r.IntN(len(all))
		return slices.Insert(all, at, of("created", all[at]))
	},
	"deletion in the midst": func(r *rand.Rand, all []string, of func(change, like string) string) []string {
		at := r.IntN(len(all))
		return slices.Insert(all, at, of("deleted", all[at]))
	},
	"foreign beside the last": func(r *rand.Rand, all []string, of func(change, like string) string) []string {
		last := len(all) - 1
		return slices.Insert(all, last, of("created", all[last]))
	},
	"deletion beside the last": func(r *rand.Rand, all []string, of func(change, like string) string) []string {
		last := len(all) - 1
		return slices.Insert(all, last, of("deleted", all[last]))
	},
	"foreign at the end": func(_ *rand.Rand, all []string, of func(change, like string) string) []string {
		return append(all, of("created", ""))
	},
	"deletion at the end": func(_ *rand.Rand, all []string, of func(change, like string) string) []string {
		return append(all, of("deleted", ""))
	},
	"deletion at the last time": func(_ *rand.Rand, all []string, of func(change, like string) string) []string {
		return append(all, of("deleted", all[len(all)-1]))
	},
	"empty": func(*rand.Rand, []string, func(change, like string) string) []string { return nil },
	"short": func(r *rand.Rand, all []string, _ func(change, like string) string) []string {
		return all[:1+r.IntN(len(all))]
	},
	"cut": func(r *rand.Rand, all []string, _ func(change, like string) string) []string {
		return all[r.IntN(len(all)):]
	},
	"reversed": func(_ *rand.Rand, all []string, _ func(change, like string) string) []string {
		slices.Reverse(all)
		return all
	},
	"a hole": func(r *rand.Rand, all []string, _ func(change, like string) string) []string {
		return slices.Delete(all, len(all)/2, len(all)/2+1)
	},
	"doubled": func(r *rand.Rand, all []string, _ func(change, like string) string) []string {
		return append(all, all[len(all)-min(3, len(all)):]...)
	},
	"another last time": func(_ *rand.Rand, all []string, of func(change, like string) string) []string {
		last := &all[len(all)-1]
		*last = timeOfChange.ReplaceAllString(*last, timeOfChange.FindString(of("", "")))
		return all
	},
	"a deletion": func(r *rand.Rand, all []string, _ func(change, like string) string) []string {
		at := &all[r.IntN(len(all))]
		*at = changeOf.ReplaceAllString(*at, `change="deleted"`)
		return all
	},
}

var timeOfChange = regexp.MustCompile(`datetime="[^"]*"`)

// TestWrongChangesInARow follows sources without a list of resources, or with nothing else, whose Change
// Lists are wrong some times in a row, or that offer a list, a dump or changes for once. Once the source is
// right again, the mirror is never in sync and another one, and after two syncs it is in sync.
func TestWrongChangesInARow(t *testing.T) {
	for seed := range teststores.Histories(8, 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playWrongChanges(t, uint64(seed))
		})
	}
}

func playWrongChanges(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 51))
	s := makeTestSource(t)
	s.srv = &httptest.Server{URL: foreignHost}
	mir := makeTestMirror(t)
	mir.srv = &httptest.Server{URL: "http://mirror.example"}
	b := benchOf(t, s, mir, teststores.Records(t))
	b.fetch, mir.transport = inproc.Transport{Handler: s}, inproc.Transport{Handler: mir}
	b.cfg.MaxDeleteRatio = 1
	b.cfg.Source = s.url("/set/capabilitylist.xml")
	kind := []string{"changes", "changes", "changes", "changes", "changes", "Change Dump", "Resource List"}[r.IntN(7)]
	s.list = kind == "Resource List"
	s.changes, s.changeDump, s.packed = kind == "changes", kind == "Change Dump", 1
	s.ours, s.noHash = r.IntN(3) == 0, r.IntN(2) == 0
	if s.changeParts = r.IntN(2) * (3 + r.IntN(4)); kind == "changes" && !s.ours && s.changeParts == 0 && r.IntN(4) == 0 {
		s.bare = 3
	}
	s.changesFrom, s.now = b.clock, b.clock
	var did []string
	do := func(format string, a ...any) { did = append(did, fmt.Sprintf(format, a...)) }
	fail := func(format string, a ...any) {
		t.Helper()
		t.Fatalf("%s\n%s, numbers %t, parts of %d, bare %d, without hashes %t\n%s\nhas   %v\nwants %v", fmt.Sprintf(format, a...), kind, s.ours, s.changeParts, s.bare, s.noHash, strings.Join(did, "\n"), mir.lines(graphA), s.want())
	}
	edit := func() {
		for range 1 + r.IntN(3) {
			name := fmt.Sprintf("e%d.nt", r.IntN(14))
			if _, ok := s.bodies[name]; ok && r.IntN(3) == 0 && len(s.bodies) > 3 {
				s.remove(name)
			} else {
				s.put(name, nt(strings.TrimSuffix(name, ".nt"), fmt.Sprint(len(s.log))))
			}
		}
		do("published")
	}
	sync := func(how string) SyncReport {
		t.Helper()
		b.clock = b.clock.Add(time.Minute)
		s.date, s.now = b.clock, b.clock
		rep, err := b.open().Sync(context.Background(), SyncOptions{})
		do("%s: in sync %t, held %q: %s (+%d ~%d -%d, %v)", how, rep.InSync, rep.Held, rep.Why, rep.Created, rep.Updated, rep.Deleted, err)
		return rep
	}
	fill(s, 8)
	sync("first")
	retention := kind == "changes" && r.IntN(4) == 0 // then not all that is wrong can be found out
	if retention {
		s.drop = 2 + r.IntN(4)
		edit()
		sync("retention")
	}
	for range 2 {
		for range 1 + r.IntN(3) {
			if r.IntN(3) == 0 {
				edit()
			}
			name, back := goWrong(s, kind, r)
			runs := 1 + r.IntN(2)
			if retention { // which leaves nothing to tell a list that came twice from a right one
				runs = 1
			}
			for range runs {
				sync(name)
			}
			back()
			if r.IntN(3) == 0 && sync("right between").InSync && !slices.Equal(mir.lines(graphA), s.want()) {
				fail("in sync, and it differs")
			}
		}
		if r.IntN(2) == 0 {
			edit()
		}
		var rep SyncReport
		for range 3 {
			if rep = sync("right"); rep.InSync && !slices.Equal(mir.lines(graphA), s.want()) {
				fail("in sync, and it differs")
			}
		}
		switch {
		case rep.InSync:
		case retention && strings.HasPrefix(rep.Held, "gap: "):
			return
		default:
			fail("it is never in sync")
		}
		if a, err := b.open().Audit(context.Background(), AuditOptions{}); err != nil || a.Missing+a.Extra+a.Different > 0 {
			fail("%+v %v", a, err)
		}
	}
}

// goWrong makes a source wrong in one way until back is called.
func goWrong(s *testSource, kind string, r *rand.Rand) (string, func()) {
	some := func() map[string][]byte {
		part := maps.Clone(s.bodies)
		for range 1 + r.IntN(len(part)-1) {
			delete(part, slices.Sorted(maps.Keys(part))[r.IntN(len(part))])
		}
		return part
	}
	switch {
	case kind == "Resource List":
		s.changes = true
		name, right := wrongDocument(s, r)
		return "changes once, " + name, func() { right(); s.changes = false }
	case r.IntN(6) == 0 || kind == "Change Dump" && r.IntN(2) == 0:
		s.frozen, s.listAt, s.listSeq, s.list = some(), s.now, len(s.log), true
		return "a Resource List once", func() { s.frozen, s.list = nil, false }
	case r.IntN(8) == 0 || kind == "Change Dump":
		right := s.bodies
		s.bodies = some()
		s.freezeDump()
		s.bodies, s.dump = right, true
		return "a Resource Dump once", func() { s.dump, s.dumped = false, nil }
	case r.IntN(8) == 0:
		doc := urlset + `<rs:md capability="resourcelist" at="` + feed.Stamp(s.now) + `"/>`
		for path := range some() {
			doc += "<url><loc>" + s.url("/set/r/"+path) + "</loc></url>"
		}
		return "a Resource List in the place of the Capability List", served(s, "/set/capabilitylist.xml", doc+"</urlset>")
	}
	return wrongDocument(s, r)
}

// wrongDocument makes one of the Change Lists wrong.
func wrongDocument(s *testSource, r *rand.Rand) (name string, back func()) {
	name = slices.Sorted(maps.Keys(wrongChanges))[r.IntN(len(wrongChanges))]
	path := "/set/changelist.xml"
	if s.changeParts > 0 {
		path = fmt.Sprintf("/set/changelist-%d.xml", r.IntN(len(s.log)/s.changeParts+1))
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, s.url(path), nil))
	doc := rec.Body.String()
	all := entryOf.FindAllString(doc, -1)
	if len(all) == 0 {
		return "nothing to be wrong", func() {}
	}
	other := fmt.Sprintf("/set/r/e%d.nt", r.IntN(14))
	of := func(change, like string) string {
		at := fmt.Sprintf(`datetime="%s"`, feed.Stamp(s.now.Add(time.Second)))
		if t := timeOfChange.FindString(like); t != "" {
			at = t
		}
		loc := other
		if change == "created" {
			loc = "/set/foreign.nt"
		}
		return fmt.Sprintf(`<url><loc>%s</loc><rs:md change="%s" %s/></url>`, s.url(loc), change, at)
	}
	wrong := withEntries([]byte(doc), [][]byte{[]byte(strings.Join(wrongChanges[name](r, all, of), "\n"))})
	before := s.hook
	s.hook = func(w http.ResponseWriter, req *http.Request) bool {
		switch req.URL.Path {
		case path:
			w.Header().Set("Content-Type", "application/xml")
			w.Write(wrong)
		case "/set/foreign.nt":
			w.Header().Set("Content-Type", "application/n-triples")
			w.Write([]byte(nt("foreign", "x")))
		default:
			return before != nil && before(w, req)
		}
		return true
	}
	return name + " in " + path, func() { s.hook = before }
}

// A foreign change stands once in the midst of a list with numbers, which tells not where it begins. It goes
// when the list is right again, though no number of before tells another change.
func TestForeignChangeBesideNumbers(t *testing.T) {
	w := web{}
	w.resources(8)
	w.put("/foreign.nt", nt("foreign", "1"))
	list := func(rows ...string) {
		w.list("/changes", "urlset", "changelist", `xmlns:rsb="urn:rsbridge:terms"`, rows...)
	}
	var rows []string
	for i := range 8 {
		rows = append(rows, urlOf(fmt.Sprintf("/r/%d.nt", i), fmt.Sprintf(`<rs:md change="created" datetime="2025-02-01T00:00:0%dZ" rsb:sequence="%d" xmlns:rsb="urn:rsbridge:terms"/>`, i, i+1)))
	}
	list(rows[:6]...)
	b := webBench(t, w, "/changes")
	if rep := b.sync(); !rep.InSync || rep.Created != 6 {
		t.Fatalf("%+v", rep)
	}
	list(slices.Insert(slices.Clone(rows), 3, urlOf("/foreign.nt", `<rs:md change="created" datetime="2025-02-01T00:00:02Z" rsb:sequence="9" xmlns:rsb="urn:rsbridge:terms"/>`))...)
	b.sync()
	list(rows...)
	for range 3 {
		if rep := b.sync(); rep.InSync && slices.ContainsFunc(b.mir.lines(graphA), func(l string) bool { return strings.Contains(l, "foreign") }) {
			t.Fatalf("in sync, with a foreign resource: %+v", rep)
		}
	}
	if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 8 {
		t.Errorf("%+v %v", rep, b.mir.lines(graphA))
	}
}

// A list with numbers has its newest changes first: they are applied in the order of the numbers.
func TestNumbersNewestFirst(t *testing.T) {
	w := web{}
	w.resources(2)
	var rows []string
	change := func(i int, kind string) {
		n := len(rows) + 1
		rows = append([]string{urlOf(fmt.Sprintf("/r/%d.nt", i), fmt.Sprintf(`<rs:md change="%s" datetime="2025-02-01T00:00:00Z" rsb:sequence="%d" xmlns:rsb="urn:rsbridge:terms"/>`, kind, n))}, rows...)
		w.list("/changes", "urlset", "changelist", "", rows...)
	}
	change(0, "created")
	change(1, "created")
	b := webBench(t, w, "/changes")
	for range 2 {
		if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 2 {
			t.Fatalf("%+v", rep)
		}
	}
	change(1, "updated")
	change(1, "deleted")
	w["/r/1.nt"] = func(int) (int, http.Header, string) { return 404, nil, "" }
	change(0, "updated")
	w.put("/r/0.nt", nt("0", "another"))
	for range 2 {
		rep := b.sync()
		if lines := b.mir.lines(graphA); !rep.InSync || len(lines) != 1 || !strings.Contains(lines[0], "another") || strings.Contains(rep.Why, "gap") {
			t.Fatalf("%+v %v", rep, lines)
		}
	}
}
