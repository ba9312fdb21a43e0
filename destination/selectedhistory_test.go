package destination

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// TestSelectedHistories changes what is selected, kept and mapped while the source changes,
// renames and moves resources, loses changes, is set back, and answers 404 for what it
// lists; the mirror goes to points in time and back. A model of what was ever published
// tells what the mirror must hold, may hold and must not hold.
func TestSelectedHistories(t *testing.T) {
	for seed := range teststores.Histories(2, 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newSelectedHistory(t, uint64(seed)).play()
		})
	}
}

// edition is what was published at an address once. Its mark is in no other.
type edition struct {
	mark, loc, entity string
	plain             rdfres.Triple // has the mark
	triples, mapped   []rdfres.Triple
	types             []string
}

type selectedHistory struct {
	*bench
	r        *rand.Rand
	marks    int
	editions map[string]*edition // all that ever were, by mark
	missing  map[string]bool     // names that are answered with 404
	before   map[string]bool     // the marks that the mirror held last
	unsure   bool                // since then it was written by a run that was cut off
	seen     map[string]bool     // with keep: versions: marks that were mirrored
}

const mapOfHistory = "CONSTRUCT { ?entity <http://cat.example/v> ?v . ?entity a <http://cat.example/Record> } WHERE { ?entity <http://ex.org/v> ?v }"

var markShapeOfHistory = regexp.MustCompile(`<http://(?:ex.org|cat.example)/v> "(m\d+)"`)

func newSelectedHistory(t *testing.T, seed uint64) *selectedHistory {
	r := rand.New(rand.NewPCG(seed, 23))
	b := newBench(t)
	h := &selectedHistory{bench: b, r: r, editions: map[string]*edition{}, missing: map[string]bool{}, before: map[string]bool{}, seen: map[string]bool{}}
	s := b.src
	b.cfg.MaxDeleteRatio = 1
	b.cfg.Keep = []string{"current", "deleted", "versions"}[r.IntN(3)]
	s.ours = r.IntN(3) > 0
	s.timegate = r.IntN(2) == 0
	s.inventory = s.ours && r.IntN(2) == 0
	switch r.IntN(6) {
	case 0:
		s.changes = false
	case 1:
		s.list, s.changes, s.dump, s.changeDump = false, false, true, true
	case 2:
		s.changeParts, s.parts = 4, 2
	case 3:
		s.dump = true
	case 4:
		s.archive = true
	}
	if r.IntN(3) == 0 {
		b.caps.UpdateTriples, b.caps.Transactional = 3, false
	}
	if r.IntN(3) == 0 {
		b.few = 1
	}
	if r.IntN(3) == 0 {
		b.cfg.MemoryBytes = 2 << 10
	}
	if r.IntN(3) == 0 {
		b.cfg.Graph, b.cfg.GraphIRI = "per-entity", "http://mirror.example/{entity}"
	}
	h.reselect()
	s.hook = func(w http.ResponseWriter, req *http.Request) bool {
		name := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
		if !h.missing[name] {
			return false
		}
		http.NotFound(w, req)
		return true
	}
	return h
}

// reselect configures another part, another map.
func (h *selectedHistory) reselect() {
	c := &h.cfg
	c.Select.Prefixes, c.Select.Classes, c.Map = nil, nil, ""
	if h.r.IntN(3) == 0 {
		c.Select.Prefixes = []string{fmt.Sprintf("http://ex.org/e%d", 1+h.r.IntN(2))}
	}
	if h.r.IntN(3) == 0 {
		c.Select.Classes = []string{fmt.Sprintf("http://ex.org/C%d", 1+h.r.IntN(2))}
	}
	if h.r.IntN(3) == 0 {
		c.Map = mapOfHistory
	}
}

func (h *selectedHistory) entity(name string) string {
	return "http://ex.org/" + name[:strings.IndexByte(name, '.')]
}

// at is the name under which the source has an entity, "" for none.
func (h *selectedHistory) at(e int) string {
	for _, suffix := range []string{".nt", ".ttl"} {
		if name := fmt.Sprintf("e%d%s", e, suffix); h.src.bodies[name] != nil {
			return name
		}
	}
	return ""
}

func (h *selectedHistory) publish(name string) {
	h.marks++
	mark, entity := fmt.Sprintf("m%d", h.marks), h.entity(name)
	var body strings.Builder
	fmt.Fprintf(&body, "<%s> <http://ex.org/v> \"%s\" .\n", entity, mark)
	for range h.r.IntN(3) {
		fmt.Fprintf(&body, "<%s> <http://ex.org/p%d> \"%d\" .\n", entity, h.r.IntN(3), h.r.IntN(3))
	}
	if h.r.IntN(2) == 0 {
		fmt.Fprintf(&body, "<%s> %s <http://ex.org/C%d> .\n", entity, obtain.RDFType, 1+h.r.IntN(2))
	}
	if h.src.ours { // else another subject could be taken for the entity
		for range h.r.IntN(3) {
			fmt.Fprintf(&body, "<http://ex.org/shared%d> <http://ex.org/p> \"%d\" .\n", h.r.IntN(3), h.r.IntN(2))
		}
	}
	h.src.put(name, body.String())
	h.edition(h.src.folder+name, []byte(body.String()))
}

func (h *selectedHistory) step() {
	e := h.r.IntN(14)
	name := h.at(e)
	switch x := h.r.IntN(12); {
	case name == "":
		h.publish(fmt.Sprintf("e%d%s", e, []string{".nt", ".ttl"}[h.r.IntN(2)]))
	case x < 3:
		h.src.remove(name)
	case x < 5: // it gets another address, as it is or changed
		to := strings.TrimSuffix(name, ".ttl") + ".ttl"
		if to == name {
			to = strings.TrimSuffix(name, ".ttl") + ".nt"
		} else {
			to = strings.TrimSuffix(name, ".nt") + ".ttl"
		}
		body := string(h.src.bodies[name])
		h.src.remove(name)
		if h.r.IntN(2) == 0 {
			h.src.put(to, body)
			h.edition(h.src.folder+to, []byte(body))
		} else {
			h.publish(to)
		}
	default:
		h.publish(name)
	}
}

// target is what the source has or had, by address.
func (h *selectedHistory) target(until time.Time) map[string]*edition {
	out := map[string]*edition{}
	s := h.src
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.IsZero() {
		for name, body := range s.bodies {
			out[s.folder+name] = h.edition(s.folder+name, body)
		}
		return out
	}
	for _, l := range s.log {
		if l.at.After(until) {
			break
		}
		if loc := l.folder + l.name; l.body == nil {
			delete(out, loc)
		} else {
			out[loc] = h.edition(loc, l.body)
		}
	}
	return out
}

// edition knows what was published by its address and mark.
func (h *selectedHistory) edition(loc string, body []byte) *edition {
	mark := markShapeOfHistory.FindStringSubmatch(string(body))[1]
	id := loc + " " + mark
	if e := h.editions[id]; e != nil {
		return e
	}
	ts, err := codec.Decode(rdfres.NTriples, body, rdfres.ReadOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	e := &edition{mark: mark, loc: loc, entity: h.entity(loc[strings.LastIndexByte(loc, '/')+1:]), triples: ts}
	for _, t := range ts {
		if t.P == obtain.RDFType {
			e.types = append(e.types, t.O.IRI())
		}
		if t.P == "<http://ex.org/v>" {
			e.plain = t
			e.mapped = []rdfres.Triple{{S: t.S, P: "<http://cat.example/v>", O: t.O}, {S: t.S, P: obtain.RDFType, O: "<http://cat.example/Record>"}}
		}
	}
	h.editions[id] = e
	return e
}

func (h *selectedHistory) selected(e *edition) bool {
	sel := h.cfg.Select
	if len(sel.Prefixes)+len(sel.Classes) == 0 {
		return true
	}
	return slices.ContainsFunc(sel.Prefixes, func(p string) bool { return strings.HasPrefix(e.entity, p) }) ||
		slices.ContainsFunc(sel.Classes, func(c string) bool { return slices.Contains(e.types, c) })
}

// held is what the mirror has: lines with their graph, and the marks in them.
func (h *selectedHistory) held() (lines map[string]bool, marks map[string]bool) {
	lines, marks = map[string]bool{}, map[string]bool{}
	h.mir.mu.Lock()
	defer h.mir.mu.Unlock()
	for g, ts := range h.mir.graphs {
		if strings.HasPrefix(g, "urn:rsbridge:") {
			continue
		}
		for tr := range ts {
			line := string(tr.AppendLine(nil))
			lines[g+" "+line] = true
			if m := markShapeOfHistory.FindStringSubmatch(line); m != nil {
				marks[m[1]] = true
			}
		}
	}
	return lines, marks
}

// check holds the mirror against the model after a run that was not cut off. whole: every
// resource could be had.
func (h *selectedHistory) check(what string, until time.Time, whole bool) {
	h.t.Helper()
	h.checkCounts(what)
	lines, marks := h.held()
	target := h.target(until)
	must := map[string]bool{}
	for _, e := range target {
		if !h.selected(e) {
			continue
		}
		if !whole && (h.unsure || h.missing[e.loc[strings.LastIndexByte(e.loc, '/')+1:]]) { // or it waits, since it failed in the run that was cut off
			continue
		}
		must[e.mark] = true
		if !marks[e.mark] {
			h.t.Errorf("%s: %s of %s is not in the mirror", what, e.mark, e.loc)
		}
	}
	byMark := map[string][]*edition{}
	for _, e := range h.editions {
		byMark[e.mark] = append(byMark[e.mark], e)
	}
	entities := map[string]bool{}
	for _, e := range target {
		entities[e.entity] = true
	}
	keeps := h.cfg.Keep == "deleted"
	for mark := range marks {
		if must[mark] {
			continue
		}
		ok := false
		for _, e := range byMark[mark] {
			there := target[e.loc] != nil
			name := e.loc[strings.LastIndexByte(e.loc, '/')+1:]
			switch {
			case !whole && h.missing[name], !whole && entities[e.entity]: // what was, or what is
				ok = true
			case keeps && !there:
				ok = h.before[mark] || h.unsure
			}
			if ok {
				break
			}
		}
		if !ok {
			h.t.Errorf("%s: %s is in the mirror, of %s", what, mark, byMark[mark][0].loc)
		}
	}
	if keeps {
		for mark := range h.before {
			gone := true
			for _, e := range byMark[mark] {
				gone = gone && !entities[e.entity]
			}
			if gone && !marks[mark] && !h.unsure {
				h.t.Errorf("%s: %s was in the mirror, is deleted, and is not kept", what, mark)
			}
		}
	}
	// Nothing but what belongs to them.
	want := map[string]bool{}
	for mark := range marks {
		for _, e := range byMark[mark] {
			graph := graphA
			if h.cfg.Graph == "per-entity" {
				graph = strings.Replace(h.cfg.GraphIRI, "{entity}", e.entity, 1)
			}
			plain, mapped := lines[graph+" "+string(e.plain.AppendLine(nil))], lines[graph+" "+string(e.mapped[0].AppendLine(nil))]
			if must[mark] && !(mapped && h.cfg.Map != "" || plain && h.cfg.Map == "") || mapped && plain && !(keeps && len(byMark[mark]) > 1) { // one of them is kept at an address of before
				h.t.Errorf("%s: %s is mapped %v, plain %v", what, mark, mapped, plain)
			}
			var ts []rdfres.Triple
			if plain {
				ts = append(ts, e.triples...)
			}
			if mapped {
				ts = append(ts, e.mapped...)
			}
			for _, t := range ts {
				want[graph+" "+string(t.AppendLine(nil))] = true
			}
		}
	}
	for l := range want {
		if !lines[l] {
			h.t.Errorf("%s: missing in the mirror: %s", what, l)
		}
	}
	for l := range lines {
		if !want[l] {
			h.t.Errorf("%s: extra in the mirror: %s", what, l)
		}
	}
	if h.cfg.Keep == "versions" {
		h.checkVersions(what, marks)
	}
	if h.t.Failed() {
		h.t.Logf("keep %s, select %+v, map %t, graph %s, ours %v", h.cfg.Keep, h.cfg.Select, h.cfg.Map != "", h.cfg.Graph, h.src.ours)
		h.t.FailNow()
	}
	h.before, h.unsure = marks, false
}

// checkVersions: what was mirrored once and is not any more is among the versions.
// checkCounts holds the sums that status tells against the records.
func (h *selectedHistory) checkCounts(what string) {
	h.t.Helper()
	d := h.open()
	var selected, unselected int64
	for _, rec := range d.mem.Ledger.Records(h.t.Context(), d.mem.Store) {
		switch {
		case rec.Err != nil:
			h.t.Fatal(rec.Err)
		case rec.Has(ledger.FlagKept):
		case rec.Has(ledger.FlagUnselected):
			unselected++
		default:
			selected++
		}
	}
	st, err := d.Status(h.t.Context())
	if err != nil || st.Resources != selected || st.Unselected != unselected {
		h.t.Errorf("%s: status tells %d resources and %d that are not selected, and %d and %d are recorded (%v)", what, st.Resources, st.Unselected, selected, unselected, err)
	}
}

func (h *selectedHistory) checkVersions(what string, marks map[string]bool) {
	h.t.Helper()
	kept := map[string]bool{}
	d := h.open()
	for e := range 14 {
		for v, err := range d.Versions(context.Background(), fmt.Sprintf("http://ex.org/e%d", e)) {
			if err != nil {
				h.t.Fatal(err)
			}
			for _, t := range v.Triples {
				if t.P == "<http://ex.org/v>" || t.P == "<http://cat.example/v>" {
					kept[strings.Trim(string(t.O), `"`)] = true
				}
			}
		}
	}
	for mark := range h.seen {
		if !marks[mark] && !kept[mark] {
			h.t.Errorf("%s: %s was mirrored, is not any more, and is no version", what, mark)
		}
	}
	maps.Copy(h.seen, marks)
}

func (h *selectedHistory) play() {
	t, r, s := h.t, h.r, h.src
	for range 16 {
		h.step()
	}
	for round := range 25 {
		what := fmt.Sprintf("round %d", round)
		do := func(this string) { what += ", " + this }
		for range r.IntN(5) {
			h.step()
		}
		switch r.IntN(10) {
		case 0, 1:
			if len(s.log) > 4 && s.changeParts == 0 {
				s.mu.Lock()
				s.drop, s.anew = len(s.log)-r.IntN(3), time.Time{}
				s.mu.Unlock()
				do("a gap")
			}
		case 2:
			if n := len(s.log) - 1 - r.IntN(4); s.ours && n > s.drop && s.folder == "/set/r/" {
				s.restore(n)
				do("the source is set back")
			}
		case 3:
			if s.ours && r.IntN(2) == 0 {
				pairs := s.changes || s.changeDump // lists that begin anew without a change of theirs are no source of ours
				s.moveAll(fmt.Sprintf("/set/r%d/", round), pairs)
				do(fmt.Sprint("all move, pairs ", pairs))
			}
		case 4:
			h.reselect()
			do("another part")
		case 5:
			if h.cfg.Keep != "versions" {
				h.cfg.Keep = map[string]string{"current": "deleted", "deleted": "current"}[h.cfg.Keep]
				do("keep " + h.cfg.Keep)
			}
		case 6:
			for _, name := range slices.Sorted(maps.Keys(s.bodies)) {
				if r.IntN(4) == 0 {
					h.missing[name] = true
				}
			}
			do(fmt.Sprint("missing ", slices.Sorted(maps.Keys(h.missing))))
		}
		h.clock = h.clock.Add(time.Duration(r.IntN(100)) * time.Second)
		if r.IntN(5) == 0 {
			d := h.open()
			point := cutAfter(r.IntN(6))
			if r.IntN(2) == 0 {
				d.mem.Crash = point
			} else {
				storeMirror(d).Fault = point
			}
			rep, err := d.Sync(context.Background(), SyncOptions{})
			h.unsure = true
			do(fmt.Sprintf("cut off: %v (%s)", err, rep.Why))
		}
		if len(h.missing) > 0 {
			if rep, err := h.open().Sync(t.Context(), SyncOptions{}); err != nil {
				t.Fatalf("%s: %v (%s)", what, err, rep.Why)
			}
			h.check(what+", some missing", time.Time{}, false)
			clear(h.missing)
		}
		o := SyncOptions{Full: r.IntN(6) == 0}
		if s.ours && s.list && s.changes && s.timegate && s.drop == 0 && s.anew.IsZero() && s.folder == "/set/r/" && len(s.log) > 3 && r.IntN(6) == 0 {
			o = SyncOptions{Until: s.log[r.IntN(len(s.log))].at}
			do("until")
		}
		var rep SyncReport
		for i := range 4 {
			var err error
			if rep, err = h.open().Sync(t.Context(), o); err != nil {
				t.Fatalf("%s: %v (%s)", what, err, rep.Why)
			}
			if rep.InSync {
				break
			}
			if h.clock = h.clock.Add(2 * time.Hour); i == 3 {
				t.Fatalf("%s: not in sync: %+v", what, rep)
			}
		}
		what += " (" + rep.Why + ")"
		h.check(what, o.Until, true)
		if r.IntN(3) == 0 {
			depth := []string{"inventory", "store", "origin"}[r.IntN(3)]
			a, err := h.open().Audit(t.Context(), AuditOptions{Depth: depth, Repair: r.IntN(2) == 0})
			if err != nil || !a.Equal && o.Until.IsZero() {
				t.Fatalf("%s: audit %s: %+v %v", what, depth, a, err)
			}
			h.check(what+", audited", o.Until, true)
		}
	}
}
