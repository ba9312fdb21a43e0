package destination

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// TestSharedHistories keeps several destinations of one state in one store, most of them in
// one graph, with triples in common. They run one after the other and at the same time,
// some are cut off, taken out, put back, have another name or a source that has ended;
// state and mirror are put back from backups of different moments, or the state is lost.
// A model tells what the mirror must hold, and what an audit must tell of each.
func TestSharedHistories(t *testing.T) {
	for seed := range teststores.Histories(1, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newSharedHistory(t, uint64(seed)).play()
		})
	}
}

// sharer is one destination of a shared history.
type sharer struct {
	*bench
	holds map[string][]byte // what it mirrors or keeps, by name; as of its last run
	cut   bool              // its last run was cut off: what it holds is known after the next
	out   bool              // it is not configured
	ended bool
}

type sharedHistory struct {
	t       *testing.T
	r       *rand.Rand
	hub     *bench
	all     []*sharer
	renamed int
	what    string
	foreign map[string]bool
}

const (
	graphB    = "http://mirror.example/b"
	graphElse = "http://else.example/x" // of somebody else
)

func newSharedHistory(t *testing.T, seed uint64) *sharedHistory {
	r := rand.New(rand.NewPCG(seed, 19))
	h := &sharedHistory{t: t, r: r, hub: newQuietBench(t)}
	hub := h.hub
	if r.IntN(3) == 0 {
		hub.caps.UpdateTriples, hub.caps.Transactional = 3, false
	}
	if r.IntN(3) == 0 {
		hub.few = 1
	}
	if r.IntN(6) == 0 {
		hub.mir.noUpdate = true // the graph is put whole
		hub.cfg.Adopt = true
	}
	if r.IntN(3) == 0 {
		hub.cfg.MemoryBytes = 2 << 10
	}
	for i := range 2 + r.IntN(4) {
		src := makeTestSource(t)
		src.srv = &httptest.Server{URL: fmt.Sprintf("http://source%d.example", i)}
		b := &bench{t: t, src: src, mir: hub.mir, store: hub.store, cfg: hub.cfg, clock: hub.clock, caps: hub.caps, few: hub.few, fetch: inproc.Transport{Handler: src}}
		b.cfg.Name, b.cfg.Source, b.cfg.MaxDeleteRatio, b.cfg.TempDir = fmt.Sprintf("d%d", i), b.src.url("/.well-known/resourcesync"), 1, t.TempDir()
		s := b.src
		s.ours = r.IntN(3) > 0
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
			s.list, s.changes, s.dump = false, false, true
		}
		switch r.IntN(6) {
		case 0:
			b.cfg.Keep = "deleted"
		case 1:
			if s.ours {
				b.cfg.Map = mapOfHistory
			}
		case 2:
			b.cfg.Keep = "versions"
		}
		b.cfg.Provenance = !hub.mir.noUpdate && r.IntN(4) == 0
		switch x := r.IntN(6); {
		case i < 2:
		case x == 0:
			b.cfg.GraphIRI = graphB
		case x == 1 && s.ours:
			b.cfg.Graph, b.cfg.GraphIRI = "per-entity", fmt.Sprintf("http://mirror.example/%d/{entity}", i)
		}
		h.all = append(h.all, &sharer{bench: b, holds: map[string][]byte{}})
	}
	return h
}

func (h *sharedHistory) do(format string, a ...any) { h.what += ", " + fmt.Sprintf(format, a...) }

func (h *sharedHistory) step(m *sharer) {
	if m.cut || m.ended {
		return
	}
	e := h.r.IntN(12)
	name := fmt.Sprintf("e%d.nt", e)
	switch x := h.r.IntN(8); {
	case x < 2:
		m.src.remove(name)
	case x < 4 && m.cfg.Map == "":
		m.src.put(fmt.Sprintf("b%d.ttl", e%3), fmt.Sprintf(`<http://ex.org/b%d> <http://ex.org/p> [ <http://ex.org/q> "%d", [ <http://ex.org/r> "%d" ] ], [ <http://ex.org/q> "same" ], [ <http://ex.org/q> "same" ] .`, e%3, h.r.IntN(3), h.r.IntN(3)))
	default:
		var body strings.Builder
		fmt.Fprintf(&body, "<http://ex.org/e%d> <http://ex.org/v> \"%d\" .\n", e, h.r.IntN(3))
		for range h.r.IntN(3) {
			fmt.Fprintf(&body, "<http://ex.org/e%d> <http://ex.org/p%d> \"%d\" .\n", e, h.r.IntN(3), h.r.IntN(3))
		}
		for range h.r.IntN(3) {
			fmt.Fprintf(&body, "<http://ex.org/shared%d> <http://ex.org/p> <http://ex.org/o%d> .\n", h.r.IntN(3), h.r.IntN(2))
		}
		m.src.put(name, body.String())
	}
}

// owns are the triples of one resource of a destination, with their graph.
func (m *sharer) owns(name string, body []byte) (out []string) {
	m.t.Helper()
	f, _ := rdfres.FormatBySuffix(name)
	loc := m.src.url(m.src.folder + name)
	ts, err := codec.Decode(f, body, rdfres.ReadOptions{Base: loc})
	if err == nil {
		ts, _, err = rdfres.NameBlanks(rdfres.SortUnique(ts), rdfres.NameOptions{Scope: loc})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	entity := "http://ex.org/" + name[:strings.IndexByte(name, '.')]
	graph := m.cfg.GraphIRI
	if m.cfg.Graph == "per-entity" {
		graph = strings.Replace(m.cfg.GraphIRI, "{entity}", entity, 1)
	}
	add := func(t rdfres.Triple) {
		t.S, t.O = rdfres.Skolemize(t.S, m.src.srv.URL), rdfres.Skolemize(t.O, m.src.srv.URL)
		out = append(out, graph+" "+string(t.AppendLine(nil)))
	}
	for _, t := range ts {
		switch {
		case m.cfg.Map == "":
			add(t)
		case t.S.IRI() == entity && t.P == "<http://ex.org/v>":
			add(rdfres.Triple{S: t.S, P: "<http://cat.example/v>", O: t.O})
			add(rdfres.Triple{S: t.S, P: obtain.RDFType, O: "<http://cat.example/Record>"})
		}
	}
	return out
}

// follow is what it holds after a run.
func (m *sharer) follow() {
	m.src.mu.Lock()
	defer m.src.mu.Unlock()
	if m.cfg.Keep != "deleted" {
		clear(m.holds)
	}
	maps.Copy(m.holds, m.src.bodies)
	m.cut = false
}

// open opens it as it is configured now.
func (h *sharedHistory) open(m *sharer) *Destination {
	m.cfg.Names = nil
	for _, o := range h.all {
		if !o.out {
			m.cfg.Names = append(m.cfg.Names, o.cfg.Name)
		}
	}
	return m.bench.open()
}

func (h *sharedHistory) sync(m *sharer) {
	h.t.Helper()
	if m.ended {
		if rep, err := h.open(m).Sync(h.t.Context(), SyncOptions{}); err == nil {
			h.t.Errorf("%s: %s has ended: %+v", h.what, m.cfg.Name, rep)
		}
		return
	}
	for i := 0; ; i++ {
		rep, err := h.open(m).Sync(h.t.Context(), SyncOptions{})
		if err != nil {
			h.t.Errorf("%s: %s: %v (%s)", h.what, m.cfg.Name, err, rep.Why)
			return
		}
		if rep.InSync || strings.HasPrefix(rep.Held, "an audit found the mirror changed") { // it is repaired, or was by another one
			break
		}
		if m.clock = m.clock.Add(2 * time.Hour); i == 3 {
			h.t.Errorf("%s: %s is not in sync: %+v", h.what, m.cfg.Name, rep)
			return
		}
	}
	m.follow()
}

func (h *sharedHistory) held() map[string]bool {
	out := map[string]bool{}
	h.hub.mir.mu.Lock()
	defer h.hub.mir.mu.Unlock()
	for g, ts := range h.hub.mir.graphs {
		for tr := range ts {
			if !strings.HasPrefix(g, "urn:rsbridge:") {
				out[g+" "+string(tr.AppendLine(nil))] = true
			}
		}
	}
	return out
}

func (h *sharedHistory) want() map[string]bool {
	want := maps.Clone(h.foreign)
	for _, m := range h.all {
		for name, body := range m.holds {
			for _, l := range m.owns(name, body) {
				want[l] = true
			}
		}
	}
	return want
}

func (h *sharedHistory) check() {
	h.t.Helper()
	want, got := h.want(), h.held()
	for l := range want {
		if !got[l] {
			h.t.Errorf("missing in the mirror: %s", l)
		}
	}
	for l := range got {
		if !want[l] {
			h.t.Errorf("extra in the mirror: %s", l)
		}
	}
	h.end()
}

func (h *sharedHistory) end() {
	h.t.Helper()
	if !h.t.Failed() {
		return
	}
	h.t.Log(h.what)
	for _, m := range h.all {
		h.t.Logf("%s: graph %s %s, keep %q, map %t, provenance %t, ours %t, list %t, changes %t, dump %t, change dump %t, ended %t, out %t", m.cfg.Name, m.cfg.Graph, m.cfg.GraphIRI, m.cfg.Keep, m.cfg.Map != "", m.cfg.Provenance, m.src.ours, m.src.list, m.src.changes, m.src.dump, m.src.changeDump, m.ended, m.out)
	}
	h.t.Logf("transactional %t, few %d, put whole %t, memory %d", h.hub.caps.Transactional, h.hub.few, h.hub.mir.noUpdate, h.hub.cfg.MemoryBytes)
	h.t.FailNow()
}

// auditAll asks each for the truth: equal where nothing of its own lacks and nothing in its
// graph is nobody's, else what lacks by name.
func (h *sharedHistory) auditAll() {
	h.t.Helper()
	want, got := h.want(), h.held()
	stray := map[string]int{} // by graph
	for l := range got {
		if g, _, _ := strings.Cut(l, " "); !want[l] {
			stray[g]++
		}
	}
	for _, m := range h.all {
		if m.out {
			continue
		}
		lacks := map[string]bool{}
		for name, body := range m.holds {
			for _, l := range m.owns(name, body) {
				if !got[l] {
					lacks[m.src.url(m.src.folder+name)] = true
				}
			}
		}
		strays := stray[m.cfg.GraphIRI]
		if before, _, ok := strings.Cut(m.cfg.GraphIRI, "{entity}"); ok {
			for g, n := range stray {
				if strings.HasPrefix(g, before) {
					strays += n
				}
			}
		}
		a, err := h.open(m).Audit(h.t.Context(), AuditOptions{})
		if err != nil {
			h.t.Errorf("%s: audit of %s: %v", h.what, m.cfg.Name, err)
			continue
		}
		named := map[string]bool{}
		for _, d := range a.Named {
			if d.Location != "" && (d.Kind == "missing" || strings.Contains(d.Detail, "are not in the mirror")) {
				named[d.Location] = true
			}
		}
		for loc := range named { // of a triple that lacks one owner is told
			if !lacks[loc] {
				h.t.Errorf("audit of %s: %s lacks nothing", m.cfg.Name, loc)
			}
		}
		clean := len(lacks)+strays == 0
		if equal := a.Missing+a.Extra+a.Different == 0; equal != clean && !(m.cfg.Provenance && clean) || len(lacks) > 0 && len(named) == 0 {
			h.t.Errorf("audit of %s: %+v; lacks %v, strays %d", m.cfg.Name, a, slices.Collect(maps.Keys(lacks)), strays)
		}
	}
	h.end()
}

func (h *sharedHistory) damage() {
	mir := h.hub.mir
	mir.mu.Lock()
	defer mir.mu.Unlock()
	for _, g := range slices.Sorted(maps.Keys(mir.graphs)) {
		if strings.HasPrefix(g, "urn:rsbridge:") || g == graphElse {
			continue
		}
		ts := slices.SortedFunc(maps.Keys(mir.graphs[g]), rdfres.Triple.Compare)
		switch x := h.r.IntN(10); {
		case x == 0:
			h.do("graph %s dropped", g)
			delete(mir.graphs, g)
		case x < 6 && len(ts) > 0:
			for range 1 + h.r.IntN(3) {
				tr := ts[h.r.IntN(len(ts))]
				delete(mir.graphs[g], tr)
				h.do("removed %s", tr.AppendLine(nil))
			}
			fallthrough
		case x < 8:
			for range h.r.IntN(3) {
				tr := rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://ex.org/e%d", h.r.IntN(20))), P: "<http://ex.org/v>", O: rdfres.NewIRI("http://stranger.example/")}
				if h.r.IntN(2) == 0 {
					tr.P, tr.O = "<http://ex.org/stranger>", `"stranger"`
				}
				mir.graphs[g][tr] = true
				h.do("added %s", tr.AppendLine(nil))
			}
		}
	}
}

// stateBackup is the records of all, and what they hold by them.
type stateBackup struct {
	pairs []kv.Pair
	holds []map[string][]byte
	cut   []bool
}

func (h *sharedHistory) backup() *stateBackup {
	s := &stateBackup{pairs: h.hub.backup()}
	for _, m := range h.all {
		s.holds = append(s.holds, maps.Clone(m.holds))
		s.cut = append(s.cut, m.cut)
	}
	return s
}

func (h *sharedHistory) restore(s *stateBackup) {
	h.hub.restore(s.pairs)
	for i, m := range h.all {
		m.holds, m.cut = maps.Clone(s.holds[i]), s.cut[i]
		if m.cut && m.ended { // what it has of it nobody knows
			m.ended, m.src.hook = false, nil
		}
	}
}

func (h *sharedHistory) lose() {
	h.hub.store = memkv.New()
	for _, m := range h.all {
		m.store = h.hub.store
		m.cfg.Adopt = true
		clear(m.holds)
		m.cut, m.ended, m.src.hook = false, false, nil
	}
}

// settle brings everybody back, and all to what their sources have.
func (h *sharedHistory) settle(repair bool) {
	h.t.Helper()
	for _, m := range h.all {
		m.out = false
	}
	for _, i := range h.r.Perm(len(h.all)) {
		h.sync(h.all[i])
	}
	if repair {
		for _, i := range h.r.Perm(len(h.all)) {
			m := h.all[i]
			if m.ended && len(m.holds) == 0 {
				continue
			}
			a, err := h.open(m).Audit(h.t.Context(), AuditOptions{Repair: true})
			if err != nil || a.Missing+a.Extra+a.Different > 0 {
				h.t.Errorf("repair of %s: %+v %v", m.cfg.Name, a, err)
			}
		}
	}
}

func (h *sharedHistory) play() {
	r, mir := h.r, h.hub.mir
	mir.graphs[graphElse] = map[rdfres.Triple]bool{{S: "<http://ex.org/e1>", P: "<http://ex.org/v>", O: `"of somebody else"`}: true}
	h.foreign = h.held()
	for _, m := range h.all {
		for range 10 {
			h.step(m)
		}
	}
	for _, m := range h.all {
		h.sync(m)
	}
	h.check()
	var was *stateBackup
	var mirrorWas map[string]map[rdfres.Triple]bool
	for round := range 25 {
		h.what = fmt.Sprintf("round %d", round)
		for _, m := range h.all {
			for range r.IntN(4) {
				h.step(m)
			}
			m.clock = m.clock.Add(time.Duration(r.IntN(100)) * time.Second)
		}
		for _, i := range r.Perm(len(h.all)) { // some are cut off
			m := h.all[i]
			if r.IntN(5) > 0 || m.out || m.ended {
				continue
			}
			d := h.open(m)
			point := cutAfter(r.IntN(8))
			if r.IntN(2) == 0 {
				d.mem.Crash = point
			} else {
				storeMirror(d).Fault = point
			}
			m.cut = true
			if r.IntN(3) == 0 {
				_, err := d.Audit(context.Background(), AuditOptions{Repair: true})
				h.do("repair of %s: %v", m.cfg.Name, err)
			} else {
				rep, err := d.Sync(context.Background(), SyncOptions{Full: r.IntN(3) == 0})
				h.do("sync of %s: %v (%s)", m.cfg.Name, err, rep.Why)
			}
		}
		repair := false
		switch r.IntN(12) {
		case 0, 1:
			if !slices.ContainsFunc(h.all, func(m *sharer) bool { return m.cut && m.cfg.Keep == "deleted" }) {
				was = h.backup()
			}
			if r.IntN(2) == 0 {
				break
			}
			fallthrough
		case 2:
			mirrorWas = mir.backup()
		case 3, 4, 5:
			x := r.IntN(3)
			if x != 1 && was != nil {
				h.restore(was)
				repair = true
				h.do("state restored")
			}
			if x != 0 && mirrorWas != nil {
				mir.restore(mirrorWas)
				repair = true
				h.do("mirror restored")
			}
			if repair && !slices.ContainsFunc(h.all, func(m *sharer) bool { return m.ended }) {
				repair = r.IntN(2) == 0
				h.settle(repair)
				h.check()
			}
		case 6, 7:
			h.settle(false)
			h.check()
			h.damage()
			h.auditAll()
			repair = true
		case 10:
			if r.IntN(3) == 0 {
				h.lose()
				was, repair = nil, true
				h.do("state lost")
			}
		case 8:
			m := h.all[r.IntN(len(h.all))]
			if m.out, h.renamed = !m.cut && !m.out, h.renamed+1; !m.out && r.IntN(2) == 0 {
				m.cfg.Name = fmt.Sprintf("d%dn", h.renamed)
			}
			h.do("%s is out: %t", m.cfg.Name, m.out)
		case 9:
			m := h.all[r.IntN(len(h.all))]
			if r.IntN(4) == 0 && !m.cut {
				m.ended = true
				m.src.hook = answers(http.StatusGone, "")
				h.do("%s has ended", m.cfg.Name)
			}
		}
		if repair {
			h.settle(true)
			h.check()
			continue
		}
		if r.IntN(3) == 0 {
			h.do("at once")
			for _, m := range h.all { // what one has written and not recorded is nobody's to the audit of another
				if m.cut && !m.out {
					h.sync(m)
				}
			}
			var g sync.WaitGroup
			audited := h.r.IntN(len(h.all)) // nothing changes for it
			h.sync(h.all[audited])
			for i, m := range h.all {
				switch {
				case m.out:
				case i == audited && !m.ended && !mir.noUpdate: // else what is put at the end of their runs is not there yet
					g.Go(func() {
						for range 3 {
							if a, err := m.d.Audit(h.t.Context(), AuditOptions{}); err != nil || !a.Equal {
								h.t.Errorf("%s: audit of %s, beside others: %+v %v", h.what, m.cfg.Name, a, err)
							}
						}
					})
				default:
					g.Go(func() { h.sync(m) })
				}
			}
			g.Wait()
		} else {
			for _, i := range r.Perm(len(h.all)) {
				if m := h.all[i]; !m.out {
					h.sync(m)
				}
			}
		}
		h.check()
		if r.IntN(4) == 0 {
			h.auditAll()
		}
	}
}
