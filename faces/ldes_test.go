package faces

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// follower is a client of an event stream: it keeps the members that it has seen
// and the closed pages, and reads everything else again at each poll.
type follower struct {
	w       *world
	members map[string]event
	closed  map[string]string // body by address
	state   map[string]event  // by entity: the member with the highest sequence
}

func newFollower(w *world) *follower {
	return &follower{w: w, members: map[string]event{}, closed: map[string]string{}, state: map[string]event{}}
}

func path(iri string) string { return strings.TrimPrefix(iri, "http://source.example") }

// poll reads what the view leads to, and returns the number of pages that it
// fetched.
func (f *follower) poll() (fetched int) {
	f.w.t.Helper()
	type link struct {
		to          string
		from, until string
	}
	todo := []link{{to: testBase + "/data/ldes/view"}}
	seen := map[string]bool{}
	for len(todo) > 0 {
		l := todo[0]
		todo = todo[1:]
		if seen[l.to] || f.closed[l.to] != "" {
			continue
		}
		seen[l.to] = true
		fetched++
		a := f.w.get(path(l.to))
		if a.header.Get("Etag") == "" {
			f.w.t.Fatalf("%s has no ETag", l.to)
		}
		quads := f.w.quads(l.to, a.body, rdfres.TriG)
		immutable := strings.Contains(a.header.Get("Cache-Control"), "immutable")
		said := false
		rel := map[rdfres.Term]*link{}
		var order []rdfres.Term
		found := map[string]*event{}
		var ids []string
		for _, q := range quads {
			s, p, o := q.S, q.P, q.O
			if q.G != "" {
				found[q.G.IRI()].triples = append(found[q.G.IRI()].triples, q.Triple)
				continue
			}
			lex, _, _ := o.Literal()
			at := func() *event { return found[s.IRI()] }
			switch p {
			case ldesImmutable:
				said = s.IRI() == l.to
			case treeMember:
				found[o.IRI()] = &event{id: o.IRI()}
				ids = append(ids, o.IRI())
			case treeRelation:
				if s.IRI() != l.to {
					f.w.t.Fatalf("%s has a relation of %s", l.to, s)
				}
				rel[o] = &link{}
				order = append(order, o)
			case treeNode:
				rel[s].to = o.IRI()
			case treeValue:
				if rel[s].from == "<" {
					rel[s].from = lex
				} else {
					rel[s].until, rel[s].from = lex, ""
				}
			case asObject:
				at().entity = o.IRI()
			case asPublished:
				at().published = lex
			case rsbSequence:
				at().sequence, _ = strconv.Atoi(lex)
			case rsbGraph:
				at().graph = lex
			case rdfType:
				if o == treeGTE {
					rel[s].from = "<"
				}
				if s.Kind() == rdfres.KindIRI && found[s.IRI()] != nil {
					at().kind = strings.TrimPrefix(o.IRI(), nsAS)
				}
			}
		}
		if said != immutable {
			f.w.t.Fatalf("%s: immutable in the page %v, in its header %v", l.to, said, immutable)
		}
		if immutable {
			f.closed[l.to] = a.body
		}
		bounds := map[string]*link{}
		for _, b := range order {
			r := rel[b]
			m := bounds[r.to]
			if m == nil {
				m = &link{to: r.to, until: l.until, from: l.from}
				bounds[r.to] = m
			}
			if r.from != "" {
				m.from = max(m.from, r.from)
			}
			if r.until != "" && (m.until == "" || r.until < m.until) {
				m.until = r.until
			}
		}
		for _, m := range bounds {
			todo = append(todo, *m)
		}
		last := 0
		for _, id := range ids {
			e := *found[id]
			if e.published < l.from || l.until != "" && e.published > l.until {
				f.w.t.Fatalf("%s: %s is published at %s, outside %s to %s", l.to, id, e.published, l.from, l.until)
			}
			if strings.Contains(l.to, "/log/") && e.sequence <= last {
				f.w.t.Fatalf("%s: %d follows %d", l.to, e.sequence, last)
			}
			last = e.sequence
			rdfres.SortUnique(e.triples)
			if e.kind == "Delete" {
				if len(e.triples) > 0 {
					f.w.t.Fatalf("%s: a deletion with a description", id)
				}
			} else if d := rdfres.GraphDigest(e.triples); d.String() != e.graph {
				f.w.t.Fatalf("%s: graph digest %s, want %s\n%s", id, d, e.graph, a.body)
			}
			if old, ok := f.members[id]; ok && !reflect.DeepEqual(old, e) {
				f.w.t.Fatalf("member %s changed:\n%v\n%v", id, old, e)
			}
			f.members[id] = e
			if f.state[e.entity].sequence <= e.sequence {
				f.state[e.entity] = e
			}
		}
	}
	return fetched
}

// check compares what the follower holds with the model.
func (f *follower) check() {
	f.w.t.Helper()
	have := 0
	for entity, e := range f.state {
		want, there := f.w.model[entity]
		if e.kind == "Delete" {
			if there {
				f.w.t.Fatalf("%s is deleted in the stream", entity)
			}
			continue
		}
		if !there {
			f.w.t.Fatalf("%s is in the stream and was deleted", entity)
		}
		have++
		if !slices.Equal(e.triples, rdfres.SortUnique(slices.Clone(want))) {
			f.w.t.Fatalf("%s: %v, want %v", entity, e.triples, want)
		}
	}
	if have != len(f.w.model) {
		f.w.t.Fatalf("%d entities in the stream, want %d", have, len(f.w.model))
	}
}

func TestLDESWholeAndFollowed(t *testing.T) {
	w := newWorld(t, SetConfig{})
	if a := w.do(http.MethodGet, "/data/ldes/view"); a.code != http.StatusNotFound {
		t.Errorf("before the first scan: %d", a.code)
	}
	r := rand.New(rand.NewPCG(1, 2))
	w.grow(700)
	f := newFollower(w)
	if n := f.poll(); n != 3 { // view, two pages
		t.Errorf("%d pages were fetched", n)
	}
	f.check()
	if len(f.members) != 700 {
		t.Errorf("%d members", len(f.members))
	}
	for range 40 {
		w.clock.add(time.Minute)
		w.change(r, 900, 1+r.IntN(60))
		if n := f.poll(); n > 3 {
			t.Errorf("%d pages were fetched to follow a few changes", n)
		}
		f.check()
	}
	head, _ := w.log.Head()
	if len(f.members) != int(head) {
		t.Errorf("%d members of %d changes", len(f.members), head)
	}
	for addr, body := range f.closed {
		if a := w.get(path(addr)); a.body != body {
			t.Errorf("the closed page %s changed", addr)
		}
	}
	late := newFollower(w)
	late.poll()
	late.check()
}

func TestLDESRetention(t *testing.T) {
	cases := []struct {
		name              string
		changes, versions time.Duration
	}{{"alike", 24 * time.Hour, 24 * time.Hour}, {"versions longer", 12 * time.Hour, 48 * time.Hour}, {"versions shorter", 30 * time.Hour, 12 * time.Hour}}
	if testing.Short() {
		cases = cases[2:]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, SetConfig{Changes: c.changes, Versions: c.versions})
			r := rand.New(rand.NewPCG(3, 4))
			w.grow(300)
			always := newFollower(w)
			fetched := 0
			for i := range 80 {
				w.clock.add(30 * time.Minute)
				w.change(r, 500, 1+r.IntN(20))
				if i%2 == 1 {
					w.retain(c.changes, c.versions)
				}
				fetched += always.poll()
				always.check()
				if i%8 == 0 {
					late := newFollower(w)
					late.poll()
					late.check()
				}
			}
			if tail, _ := w.log.View(t.Context()).Tail(); tail == 0 {
				t.Fatal("nothing was dropped")
			}
			if fetched > 80*9 {
				t.Errorf("%d pages were fetched in 80 polls", fetched)
			}
			for addr, body := range always.closed {
				a := w.do(http.MethodGet, path(addr))
				if a.code == http.StatusFound { // the rest of it is elsewhere
					a = w.do(http.MethodGet, path(a.header.Get("Location")))
					if a.code != http.StatusOK {
						t.Errorf("%s leads to what answers %d", addr, a.code)
					}
				} else if a.code == http.StatusGone {
					if strings.Trim(a.body, "\n") != "" && !strings.HasPrefix(a.body, "#") {
						t.Errorf("%s: %s", addr, a.body)
					}
				} else if a.code != http.StatusOK || a.body != body {
					t.Errorf("%s: %d, or it changed", addr, a.code)
				}
			}
		})
	}
}

// TestLDESLostVersions: versions were kept for a shorter time than is configured.
func TestLDESLostVersions(t *testing.T) {
	w := newWorld(t, SetConfig{})
	r := rand.New(rand.NewPCG(5, 6))
	w.grow(300)
	for range 10 {
		w.clock.add(time.Hour)
		w.change(r, 300, 50)
	}
	w.retain(1000*time.Hour, 2*time.Hour)
	for broken := range 1000 {
		if try(func() { newFollower(w).poll() }) {
			if broken == 0 {
				t.Error("no version was missing")
			}
			f := newFollower(w)
			f.poll()
			f.check()
			return
		}
	}
	t.Fatal("the stream is never whole again")
}

// try tells whether f came to its end without breaking the connection.
func try(f func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil && r != http.ErrAbortHandler {
			panic(r)
		}
	}()
	f()
	return true
}

func TestLDESAnswers(t *testing.T) {
	w := newWorld(t, SetConfig{Changes: time.Hour, Versions: time.Hour})
	w.grow(300)
	w.clock.add(time.Hour)
	w.model[entityName(1)] = triplesOf(entityName(1), 7)
	delete(w.model, entityName(2))
	w.scan()
	_, err := w.log.Rebase(t.Context(), "moved")
	w.must(err)
	if a := w.do(http.MethodGet, "/data/ldes"); a.code != 303 || a.header.Get("Location") != testBase+"/data/ldes/view" {
		t.Errorf("/data/ldes: %d %v", a.code, a.header)
	}
	if a := w.get("/sync/data/ldes/view"); !strings.Contains(a.body, "log/1-250") {
		t.Errorf("below the path of the base URL:\n%s", a.body)
	}
	for _, tt := range []struct {
		path string
		code int
	}{
		{"/data/ldes/log/1-250", 200}, {"/data/ldes/log/251-500", 404}, {"/data/ldes/log/501-750", 404}, {"/data/ldes/log/2-250", 404},
		{"/data/ldes/log/1-25000", 404}, {"/data/ldes/log/1-251", 404}, {"/data/ldes/log/01-250", 404}, {"/data/ldes/log/0-250", 404},
		{"/data/ldes/log/1-18446744073709551615", 404}, {"/data/ldes/log/", 404}, {"/data/ldes/log/x", 404},
		{"/data/ldes/member/1", 200}, {"/data/ldes/member/302", 200}, {"/data/ldes/member/303", 404}, {"/data/ldes/member/304", 404}, {"/data/ldes/member/0", 404},
		{"/data/ldes/base/0/0", 404}, {"/data/ldes/base/256/1", 200}, {"/data/ldes/base/256/1/0", 200}, {"/data/ldes/base/256/1/01", 404},
		{"/data/ldes/base/256/30", 404}, {"/data/ldes/base/400/1", 404}, {"/data/ldes/other", 404}, {"/data/r/x", 404}, {"/other/ldes/view", 404},
		{"/data/iiif", 404},
	} {
		if a := w.do(http.MethodGet, tt.path); a.code != tt.code {
			t.Errorf("%s: %d, want %d: %s", tt.path, a.code, tt.code, a.body)
		}
	}
	// The formats say the same.
	want := w.quads("", w.get("/data/ldes/view").body, rdfres.TriG)
	a := w.get("/data/ldes/view", "Accept", "application/n-quads")
	got := w.quads("", a.body, rdfres.NQuads)
	sortQuads(want)
	sortQuads(got)
	if !slices.Equal(got, want) || a.header.Get("Content-Type") != "application/n-quads" {
		t.Errorf("N-Quads differ from TriG: %d and %d quads", len(got), len(want))
	}
	if a := w.get("/data/ldes/base/256/1", "Accept", "text/turtle"); a.header.Get("Content-Type") != "text/turtle; charset=utf-8" {
		t.Errorf("a page without members: %v", a.header)
	} else {
		w.quads("", a.body, rdfres.Turtle)
	}
	if a := w.do(http.MethodGet, "/data/ldes/log/1-250", "Accept", "text/turtle"); a.code != 406 || !strings.Contains(a.body, "application/trig") {
		t.Errorf("members in Turtle: %d %s", a.code, a.body)
	}
	// Conditional and packed.
	a = w.get("/data/ldes/log/1-250", "Accept-Encoding", "gzip")
	if a.header.Get("Content-Encoding") != "gzip" {
		t.Error("not packed")
	}
	if b := w.do(http.MethodGet, "/data/ldes/log/1-250", "If-None-Match", a.header.Get("Etag")); b.code != 304 || b.body != "" {
		t.Errorf("If-None-Match: %d", b.code)
	}
	if b := w.do(http.MethodHead, "/data/ldes/log/1-250"); b.code != 200 || b.body != "" || b.header.Get("Access-Control-Expose-Headers") != "*" {
		t.Errorf("HEAD: %d %q %v", b.code, b.body, b.header)
	}
	if b := w.do(http.MethodPost, "/data/ldes/view"); b.code != 405 {
		t.Errorf("POST: %d", b.code)
	}
	if b := w.do(http.MethodOptions, "/data/ldes/view"); b.code != 204 {
		t.Errorf("OPTIONS: %d", b.code)
	}
	// After retention.
	w.clock.add(90 * time.Minute)
	w.model[entityName(3)] = triplesOf(entityName(3), 8)
	w.scan()
	w.clock.add(30 * time.Minute)
	w.retain(time.Hour, time.Hour)
	for _, tt := range []struct {
		path string
		code int
	}{{"/data/ldes/log/1-250", 410}, {"/data/ldes/log/251-500", 404}, {"/data/ldes/log/304-500", 404}, {"/data/ldes/member/1", 410}, {"/data/ldes/base/256/1", 410}, {"/data/ldes/base/304/1", 200}} {
		if a := w.do(http.MethodGet, tt.path); a.code != tt.code {
			t.Errorf("after retention %s: %d, want %d", tt.path, a.code, tt.code)
		}
	}
	f := newFollower(w)
	f.poll()
	f.check()
	w.faces.Close()
	if a := w.do(http.MethodGet, "/data/ldes/view"); a.code != 503 {
		t.Errorf("after Close: %d", a.code)
	}
}

func sortQuads(qs []rdfres.Quad) {
	slices.SortFunc(qs, func(a, b rdfres.Quad) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// TestLDESForeignIRIs: what no reader takes is percent-encoded, and said.
func TestLDESForeignIRIs(t *testing.T) {
	w := newWorld(t, SetConfig{})
	e := "http://example.org/a b{c}"
	w.model[e] = []rdfres.Triple{{S: rdfres.NewIRI(e), P: rdfType, O: rdfres.NewIRI("http://e/x\\y^z`|\"<>")},
		{S: rdfres.NewIRI(e), P: rdfType, O: rdfres.NewLiteral("1", "", "http://e/d t")}}
	w.scan()
	a := w.get("/data/ldes/view", "Accept", "application/n-quads")
	for _, want := range []string{"<http://example.org/a%20b%7Bc%7D>", "<http://e/x%5Cy%5Ez%60%7C%22%3C%3E>", `"1"^^<http://e/d%20t>`, string(rsbRewritten) + " " + string(literalTrue)} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in\n%s", want, a.body)
		}
	}
}

func TestNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		head := r.Uint64N(1<<r.IntN(40)) + 1
		begin := r.Uint64N(head + 1)
		var walk func(ns []node, from, to uint64)
		walk = func(ns []node, from, to uint64) {
			pos := from
			for _, n := range ns {
				if n.first != pos+1 {
					t.Fatalf("begin %d, head %d: %v follows %d", begin, head, n, pos)
				}
				if m, ok := parseNode(n.name()); !ok || m != n {
					t.Fatalf("%v is read as %v, %v", n, m, ok)
				}
				pos = n.last
				if n.level > 0 && n.level <= 2 && r.IntN(40) == 0 {
					walk(n.below(), n.first-1, n.last)
				}
			}
			if pos != to {
				t.Fatalf("begin %d, head %d: nodes end at %d, want %d", begin, head, pos, to)
			}
		}
		ns, after := top(begin, head)
		if len(ns) > 5*2*fanout || after < begin || after > head || head-after >= pageSpan {
			t.Fatalf("%d nodes at the top of %d to %d, up to %d", len(ns), begin, head, after)
		}
		walk(ns, begin, after)
	}
}

func TestRoundest(t *testing.T) {
	for _, tt := range [][3]uint64{{0, 9, 0}, {1, 1, 1}, {3, 9, 8}, {5, 7, 6}, {1000010, 1001000, 1000448}, {7, 7, 7}} {
		if got := roundest(tt[0], tt[1]); got != tt[2] {
			t.Errorf("roundest(%d, %d) = %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
	// In a window that moves, it moves seldom.
	moves, last := 0, uint64(0)
	for i := uint64(1); i < 100000; i++ {
		if b := roundest(i, i+1000); b != last {
			moves, last = moves+1, b
		}
	}
	if moves > 300 {
		t.Errorf("it moved %d times", moves)
	}
}

func TestBaseKeys(t *testing.T) {
	for _, depth := range []int{0, 1, 6, 7, 12} {
		var leaves []basePage
		var walk func(b basePage)
		walk = func(b basePage) {
			if m, ok := parseBase(b.name()); !ok || m != b {
				t.Fatalf("%v is read as %v, %v", b, m, ok)
			}
			if b.leaf() {
				leaves = append(leaves, b)
				return
			}
			for _, c := range b.below() {
				walk(c)
			}
		}
		walk(basePage{at: 5, depth: depth})
		var next rdfres.Digest
		for i, b := range leaves {
			lo, hi := b.keys()
			if lo != next || hi.IsZero() != (i == len(leaves)-1) {
				t.Fatalf("%v: from %s, want %s", b, lo, next)
			}
			next = hi
		}
		if len(leaves) != 1<<depth {
			t.Fatalf("%d pages of depth %d", len(leaves), depth)
		}
	}
}

func FuzzLDESPath(f *testing.F) {
	w := newWorld(f, SetConfig{Changes: time.Hour, Versions: time.Hour})
	w.grow(300)
	w.clock.add(2 * time.Hour)
	w.model[entityName(3)] = triplesOf(entityName(3), 8)
	w.scan()
	w.retain(time.Hour, time.Hour)
	for _, s := range []string{"view", "log/1-250", "log/301-500", "base/300/1/0", "base/300/1", "member/301", "log/1-25000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, "%?#\x7f ") || strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) >= 0 {
			return
		}
		if n, ok := parseNode(s); ok && n.name() != s {
			t.Errorf("%s is read as %v", s, n)
		}
		w.t = t
		switch a := w.do(http.MethodGet, "http://source.example/data/ldes/"+s); a.code {
		case 200, 302, 303, 404, 410:
		default:
			t.Errorf("%s: %d", s, a.code)
		}
	})
}
