package destination

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// TestMixtures keeps several destinations of one state in one mirror, each with parts,
// maps, patches, provenance, files and points in time as they fall, while the mirror is
// damaged from outside, and it or the state is put back from a backup. A model tells what
// the mirror must hold.
func TestMixtures(t *testing.T) {
	n := teststores.Histories(2, 5)
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playMixture(t, uint64(seed))
		})
	}
}

// mixed is one destination of a mixture.
type mixed struct {
	*bench
	until time.Time // it stands there
}

const mapOfMixture = "CONSTRUCT { ?entity <http://cat.example/p> ?v . ?entity a <http://cat.example/Record> } WHERE { ?entity <http://ex.org/p0> ?v }"

// bodies of the source at a time, zero: now.
func (m *mixed) bodies() map[string][]byte {
	s := m.src
	if m.until.IsZero() {
		return s.bodies
	}
	out := map[string][]byte{}
	for _, l := range s.log {
		if l.at.After(m.until) {
			break
		}
		if out[l.name] = l.body; l.body == nil {
			delete(out, l.name)
		}
	}
	return out
}

// want are the triples that it owns, with their graph.
func (m *mixed) want(out map[string]bool) {
	for name, body := range m.bodies() {
		if !strings.HasSuffix(name, ".nt") {
			continue
		}
		entity := "http://ex.org/" + strings.TrimSuffix(name, ".nt")
		ts, err := codec.Decode(rdfres.NTriples, body, rdfres.ReadOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		sel := m.cfg.Select
		in := len(sel.Prefixes)+len(sel.Classes) == 0
		for _, p := range sel.Prefixes {
			in = in || strings.HasPrefix(entity, p)
		}
		for _, t := range ts {
			in = in || t.S.IRI() == entity && t.P == obtain.RDFType && slices.Contains(sel.Classes, t.O.IRI())
		}
		if !in {
			continue
		}
		graph := graphA
		if m.cfg.Graph == "per-entity" {
			graph = strings.Replace(m.cfg.GraphIRI, "{entity}", entity, 1)
		}
		add := func(t rdfres.Triple) { out[graph+" "+string(t.AppendLine(nil))] = true }
		for _, t := range ts {
			switch {
			case m.cfg.Map == "":
				add(t)
			case t.S.IRI() == entity && t.P == "<http://ex.org/p0>":
				add(rdfres.Triple{S: t.S, P: "<http://cat.example/p>", O: t.O})
				add(rdfres.Triple{S: t.S, P: obtain.RDFType, O: "<http://cat.example/Record>"})
			}
		}
	}
}

func playMixture(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	hub := newBench(t)
	perEntity := r.IntN(2) == 0
	if r.IntN(3) == 0 {
		hub.caps.UpdateTriples, hub.caps.Transactional = 3, false
	}
	if r.IntN(3) == 0 {
		hub.few = 1
	}
	var all []*mixed
	for i := range 1 + r.IntN(3) {
		b := &bench{t: t, src: newTestSource(t), mir: hub.mir, store: hub.store, cfg: hub.cfg, clock: hub.clock, caps: hub.caps, few: hub.few}
		b.cfg.Name, b.cfg.Source, b.cfg.MaxDeleteRatio, b.cfg.TempDir = fmt.Sprintf("d%d", i), b.src.url("/.well-known/resourcesync"), 1, t.TempDir()
		b.cfg.Adopt = true
		s := b.src
		s.ours, s.timegate = true, r.IntN(2) == 0
		switch r.IntN(5) {
		case 0:
			s.patches = map[string][]byte{}
		case 1:
			s.changes = false
		case 2:
			s.list, s.changes, s.dump, s.changeDump = false, false, true, true
		case 3:
			s.changeParts, s.parts = 4, 2
		}
		if r.IntN(3) == 0 {
			b.cfg.Map = mapOfMixture
		}
		switch r.IntN(4) {
		case 0:
			b.cfg.Select.Prefixes = []string{"http://ex.org/e1", "http://ex.org/e2"}
		case 1:
			b.cfg.Select.Classes = []string{"http://ex.org/C1"}
		}
		b.cfg.Provenance = r.IntN(3) == 0
		if r.IntN(3) == 0 {
			b.cfg.Files = filepath.Join(t.TempDir(), "files")
		}
		if perEntity {
			b.cfg.Graph, b.cfg.GraphIRI = "per-entity", fmt.Sprintf("http://mirror.example/%d/{entity}", i)
		}
		all = append(all, &mixed{bench: b})
	}
	step := func(m *mixed) {
		e := r.IntN(14)
		name := fmt.Sprintf("e%d.nt", e)
		switch r.IntN(8) {
		case 0, 1:
			m.src.remove(name)
		case 2:
			if (m.src.list || m.src.changes) && m.src.patches == nil { // a dump has no files
				if r.IntN(3) == 0 {
					m.src.remove(fmt.Sprintf("img%d.png", e%3))
				} else {
					m.src.put(fmt.Sprintf("img%d.png", e%3), fmt.Sprintf("\x00%d", r.IntN(100)))
				}
			}
		default:
			var out strings.Builder
			for range 1 + r.IntN(3) {
				fmt.Fprintf(&out, "<http://ex.org/e%d> <http://ex.org/p%d> \"%d\" .\n", e, r.IntN(3), r.IntN(4))
			}
			if r.IntN(2) == 0 {
				fmt.Fprintf(&out, "<http://ex.org/e%d> %s <http://ex.org/C%d> .\n", e, obtain.RDFType, 1+r.IntN(2))
			}
			for range r.IntN(3) {
				fmt.Fprintf(&out, "<http://ex.org/shared%d> <http://ex.org/p0> \"%d\" .\n", r.IntN(3), r.IntN(2))
			}
			m.src.put(name, out.String())
		}
	}
	check := func(what string) {
		t.Helper()
		want := map[string]bool{}
		for _, m := range all {
			m.want(want)
		}
		got := map[string]bool{}
		hub.mir.mu.Lock()
		for g, ts := range hub.mir.graphs {
			for tr := range ts {
				if !strings.HasPrefix(g, "urn:rsbridge:") {
					got[g+" "+string(tr.AppendLine(nil))] = true
				}
			}
		}
		hub.mir.mu.Unlock()
		for l := range want {
			if !got[l] {
				t.Errorf("%s: missing in the mirror: %s", what, l)
			}
		}
		for l := range got {
			if !want[l] {
				t.Errorf("%s: extra in the mirror: %s", what, l)
			}
		}
		for _, m := range all {
			if m.cfg.Files == "" {
				continue
			}
			others := func() map[string]string {
				files := maps.Clone(filesIn(t, m.cfg.Files))
				for name, body := range m.bodies() {
					if strings.HasSuffix(name, ".png") && len(m.cfg.Select.Prefixes)+len(m.cfg.Select.Classes) == 0 {
						if files["set/r/"+name] != string(body) {
							t.Errorf("%s: file %s is %q", what, name, files["set/r/"+name])
						}
						delete(files, "set/r/"+name)
					}
				}
				return files
			}
			files := others()
			if strings.Contains(what, "state restored") && len(files) > 0 { // the records do not know them: a sync leaves them, an audit finds them
				for _, repair := range []bool{false, true} {
					if a, err := m.open().Audit(t.Context(), AuditOptions{Repair: repair}); err != nil || a.Equal != repair || a.Extra != int64(len(files)) && !repair {
						t.Errorf("%s: other files %q: %+v %v", what, files, a, err)
					}
				}
				files = others()
			}
			if len(files) > 0 {
				t.Errorf("%s: other files: %q", what, files)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	sync := func(m *mixed, o SyncOptions) {
		t.Helper()
		for i := 0; ; i++ {
			rep, err := m.open().Sync(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: %v (%s)", m.cfg.Name, err, rep.Why)
			}
			if m.until = o.Until; rep.InSync {
				return
			}
			if m.clock = m.clock.Add(2 * time.Hour); i == 3 {
				t.Fatalf("%s is not in sync: %+v", m.cfg.Name, rep)
			}
		}
	}
	for range 12 {
		for _, m := range all {
			step(m)
		}
	}
	for _, m := range all {
		sync(m, SyncOptions{})
	}
	check("baseline")
	type backup struct {
		state  []kv.Pair
		mirror map[string]map[rdfres.Triple]bool
	}
	var was *backup
	for round := range 25 {
		damaged := false
		what := fmt.Sprintf("round %d", round)
		for _, m := range all {
			for range r.IntN(4) {
				step(m)
			}
		}
		switch r.IntN(9) {
		case 0:
			was = &backup{hub.backup(), hub.mir.backup()}
		case 1:
			if was != nil {
				hub.restore(was.state)
				what += ", state restored"
			}
		case 2:
			if was != nil {
				hub.mir.restore(was.mirror)
				what += ", mirror restored"
			}
		case 3, 4: // damage of any kind
			damaged = true
			hub.mir.mu.Lock()
			for _, g := range slices.Sorted(maps.Keys(hub.mir.graphs)) {
				ours := strings.HasPrefix(g, "urn:rsbridge:")
				switch x := r.IntN(12); {
				case x == 0:
					delete(hub.mir.graphs, g)
					what += ", dropped " + g
				case x < 4:
					ts := slices.SortedFunc(maps.Keys(hub.mir.graphs[g]), rdfres.Triple.Compare)
					for range 1 + r.IntN(3) {
						if len(ts) > 0 {
							tr := ts[r.IntN(len(ts))]
							delete(hub.mir.graphs[g], tr)
							what += ", removed " + string(tr.AppendLine(nil))
						}
					}
				case x < 6 && !ours:
					hub.mir.graphs[g][rdfres.Triple{S: rdfres.NewIRI(fmt.Sprintf("http://ex.org/e%d", r.IntN(20))), P: "<http://ex.org/p0>", O: `"stranger"`}] = true
				}
			}
			hub.mir.mu.Unlock()
		}
		for _, i := range r.Perm(len(all)) {
			m := all[i]
			m.clock = m.clock.Add(time.Duration(r.IntN(100)) * time.Second)
			what := what + ", " + m.cfg.Name
			o := SyncOptions{Full: r.IntN(6) == 0}
			if m.src.list && m.src.changes && m.src.timegate && len(m.src.log) > 3 && r.IntN(8) == 0 {
				o = SyncOptions{Until: m.src.log[r.IntN(len(m.src.log))].at}
				if rep, err := m.open().Sync(t.Context(), o); err != nil || rep.Failed+rep.Pending > 0 {
					t.Fatalf("%s: until: %+v %v", what, rep, err)
				}
				m.until = o.Until
				continue
			}
			sync(m, o)
		}
		if damaged || r.IntN(4) == 0 {
			for _, m := range all {
				if !damaged {
					depth := []string{"inventory", "store", "origin"}[r.IntN(3)]
					if a, err := m.open().Audit(t.Context(), AuditOptions{Depth: depth}); err != nil || !a.Equal && m.until.IsZero() {
						t.Fatalf("%s, %s: audit %s: %+v %v", what, m.cfg.Name, depth, a, err)
					}
					continue
				}
				a, err := m.open().Audit(t.Context(), AuditOptions{Depth: []string{"store", "origin"}[r.IntN(2)], Repair: true})
				if err != nil || !a.Equal && m.until.IsZero() {
					t.Fatalf("%s, %s: repair: %+v %v", what, m.cfg.Name, a, err)
				}
			}
		}
		check(what)
	}
}
