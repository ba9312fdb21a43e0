package destination

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// mirrorCompare compares the owned triples of the records with the mirror's: it reads the graph, sorts the
// hashes of its triples on disk by subject, and merges them with the ownership index, in the same order.
// Subjects with triples without an owner are read again, to name them: the triples of a right mirror are
// never sorted themselves. With fix the mirror is repaired on the way.
type mirrorCompare struct {
	d      *Destination
	fix    bool
	second bool
	alone  bool // the source is unreachable: resources to be fetched again stay as they are
	spare  bool // files without a resource stay: without a checkpoint they may be anybody's
	event  func(ledger.Hash, byte, event) error
	saw    func(ledger.Hash, rdfres.Triple) // nil, or gets each triple as the mirror shows it

	plan    sink.Batch
	fixed   int64 // triples written or removed, and dropped
	ghosts  int64 // graphs of ours in the mirror, without a record
	dropped int64 // removed ones of them
	others  int64 // graphs of the store beyond this mirror
	unseen  int64 // triples in another form than given, against the normal form
	strays  int64 // files without a resource
	refetch int64 // resources with a kept representation not as recorded
	broken  map[ledger.Hash]bool

	lastLoc ledger.Hash
	lastSts map[ledger.Hash]*sink.Statement
}

// compareMirror is the comparison of Sync if state and mirror do not stand at the same write.
func (r *run) compareMirror(ctx context.Context) error {
	d := r.d
	mc := &mirrorCompare{d: d, fix: true, spare: d.mem.snapshotMeta().CompareMirror == lostCheckpoint, event: func(ledger.Hash, byte, event) error { return nil }}
	if err := mc.run(ctx); err != nil {
		return err
	}
	if n := mc.fixed - mc.dropped; n > 0 {
		r.why("%d triples of the mirror were put right", n)
	}
	if mc.dropped > 0 {
		r.why("%d graphs that no resource has were removed", mc.dropped)
	}
	if mc.strays > 0 && mc.spare {
		r.why("files without a resource stay, %d: audit names them, and audit --repair removes them", mc.strays)
	} else if mc.strays > 0 {
		r.why("files without a resource were removed, %d", mc.strays)
	}
	if mc.fixed > 0 && !d.mem.snapshotMeta().Ahead { // a snapshot sink is written at the end
		lacking := 0 // writes confirmed again and again, and not done
		again := &mirrorCompare{d: d, second: true, event: func(_ ledger.Hash, rank byte, _ event) error {
			if rank == rankMirrorLacks {
				lacking++
			}
			return nil
		}}
		if err := again.run(ctx); err != nil {
			return err
		}
		if lacking > 0 {
			return fmt.Errorf("%w: %d resources lack triples that were just written", sink.ErrUnconfirmed, lacking)
		}
	}
	if mc.refetch > 0 {
		r.full = true
	}
	return d.stand.checkpoint(ctx, d.mem.snapshotMeta().Stage, func(m *meta) { m.CompareMirror, m.Damage = "", "" })
}

func (c *mirrorCompare) run(ctx context.Context) error {
	d := c.d
	d.mem.spaceL.Lock() // nobody else writes into the graph meanwhile
	defer d.mem.spaceL.Unlock()
	return d.applier.content.compare(ctx, c)
}

func (of descriptions) compare(ctx context.Context, c *mirrorCompare) error {
	d := of.d
	if !d.mirror.Reads {
		return nil
	}
	if err := d.prober.sameForm(ctx); err != nil {
		return err
	}
	c.broken = map[ledger.Hash]bool{}
	if err := c.graphs(ctx); err != nil {
		return fmt.Errorf("read the graphs of the mirror: %w", err)
	}
	keys, err := extsort.NewKeys(d.cfg.TempDir, d.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	later := &subjectList{Keys: keys}
	defer later.Close()
	snap := d.mem.store.Snapshot(ctx)
	defer snap.Close()
	if err := c.byHash(ctx, snap, later); err != nil {
		return err
	}
	if !later.empty() {
		if err := c.byTriple(ctx, snap, later); err != nil {
			return err
		}
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	if err := c.dropGhosts(ctx); err != nil {
		return err
	}
	if err := c.filesBeside(ctx, snap); err != nil {
		return err
	}
	return c.provenance(ctx, snap)
}

// read gives add each triple of the mirror and its form in the store's normal form.
// One may come twice.
func (c *mirrorCompare) read(ctx context.Context, add func(graph string, t, normal rdfres.Triple) error) error {
	m := c.d.mirror
	var got int64
	each := func(graph string, t rdfres.Triple) error {
		if got++; got%8192 == 0 {
			c.d.opt.Progress("mirror", got, 0)
		}
		return add(graph, t, m.Layout.NormalForm.Triple(t))
	}
	var err error
	if m.Layout.PerEntity {
		err = c.readEntities(ctx, each)
	} else {
		err = m.ReadSingle(ctx, &got, func(t rdfres.Triple) error { return each("", t) })
	}
	if err != nil {
		return fmt.Errorf("read the mirror: %w", err)
	}
	return nil
}

// held is one triple as the mirror holds it.
type held struct {
	hash  ledger.Hash
	graph string
	line  string
}

// group is everything about one subject.
type group struct {
	subj   ledger.Hash
	owned  []byte // sorted, without doubles
	owners []ledger.Owner
	lists  [][]byte
}

// byTriple compares the subjects of a list, triple by triple.
func (c *mirrorCompare) byTriple(ctx context.Context, snap kv.Reader, of *subjectList) error {
	d := c.d
	sorter, err := extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes)
	if err != nil {
		return err
	}
	defer sorter.Close()
	var k, val []byte
	err = c.read(ctx, func(graph string, t, normal rdfres.Triple) error {
		s := sink.SubjectHash(graph, normal.S)
		if normal.S.Kind() == rdfres.KindBlank {
			if err := of.Add(s[:]); err != nil { // by its label in this answer
				return err
			}
		} else if !of.Maybe(s[:]) {
			return nil
		}
		h := sink.TripleHash(graph, normal)
		k = append(append(k[:0], s[:]...), h[:]...)
		val = append(append(val[:0], graph...), 0)
		return sorter.Add(k, t.AppendLine(val))
	})
	if err != nil {
		return err
	}
	return c.merge(ctx, sorter, snap, of)
}

// merge compares the subjects of a list with triples of the mirror: key subject and
// triple hash in normal form, value graph, zero byte, line.
func (c *mirrorCompare) merge(ctx context.Context, sorter *extsort.Sorter, snap kv.Reader, of *subjectList) error {
	nextOwned, stopOwned := iter.Pull2(c.d.mem.groups(ctx, snap))
	defer stopOwned()
	nextHeld, stopHeld := iter.Pull2(sorter.Sort())
	defer stopHeld()
	g, gerr, gok := nextOwned()
	h, herr, hok := nextHeld()
	n := 0
	var before ledger.Hash
	for rec, err := range of.Sorted().Sort() {
		if err != nil {
			return err
		}
		cur := group{subj: ledger.Hash(rec.Key)}
		if n > 0 && cur.subj == before {
			continue
		}
		before = cur.subj
		for gok && gerr == nil && string(g.subj[:]) < string(cur.subj[:]) {
			g, gerr, gok = nextOwned()
		}
		if gok && gerr != nil {
			return gerr
		}
		for hok && herr == nil && string(h.Key[:16]) < string(cur.subj[:]) {
			h, herr, hok = nextHeld()
		}
		if n++; n%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.d.opt.Progress("subjects", int64(n), of.Len())
		}
		if gok && g.subj == cur.subj {
			cur = *g
		}
		seen := make([]bool, len(cur.owned)/16)
		var extra []held
		over := 0
		var last ledger.Hash
		for hok && herr == nil && string(h.Key[:16]) == string(cur.subj[:]) {
			var hash ledger.Hash
			copy(hash[:], h.Key[16:32])
			if i, ok := ledger.Find(cur.owned, hash); ok {
				seen[i] = true
			} else if hash != last || len(extra) == 0 && over == 0 {
				graph, line, _ := strings.Cut(string(h.Value), "\x00")
				if len(extra) < c.d.lim.diffCap {
					extra = append(extra, held{hash, graph, line})
				} else {
					over++
				}
			}
			last = hash
			h, herr, hok = nextHeld()
		}
		if hok && herr != nil {
			return herr
		}
		var missing []ledger.Hash
		for i, ok := range seen {
			if !ok {
				missing = append(missing, ledger.Hash(cur.owned[i*16:i*16+16]))
			}
		}
		if len(missing)+len(extra) > 0 {
			if err := c.differ(ctx, &cur, missing, extra); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups yields the ownership index by subject.
func (mem *memory) groups(ctx context.Context, snap kv.Reader) iter.Seq2[*group, error] {
	return func(yield func(*group, error) bool) {
		prefix := ledger.Key(ledger.KindOwned, mem.space)
		var g *group
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				yield(nil, err)
				return
			}
			subj, o, ok := ledger.SplitOwned(pair.Key)
			if !ok || len(pair.Value)%16 != 0 {
				yield(nil, fmt.Errorf("%w: ownership", ledger.ErrDamaged))
				return
			}
			if g != nil && g.subj != subj {
				if !yield(g.done(), nil) {
					return
				}
				g = nil
			}
			if g == nil {
				g = &group{subj: subj}
			}
			g.owners = append(g.owners, o)
			g.lists = append(g.lists, slices.Clone(pair.Value))
		}
		if g != nil {
			yield(g.done(), nil)
		}
	}
}

func (g *group) done() *group {
	if len(g.lists) == 1 {
		g.owned = g.lists[0]
		return g
	}
	var all []ledger.Hash
	for _, l := range g.lists {
		for i := 0; i+16 <= len(l); i += 16 {
			all = append(all, ledger.Hash(l[i:i+16]))
		}
	}
	slices.SortFunc(all, ledger.Hash.Compare)
	all = slices.Compact(all)
	g.owned = make([]byte, 0, 16*len(all))
	for _, h := range all {
		g.owned = append(g.owned, h[:]...)
	}
	return g
}

// lack is an owned triple missing from the mirror.
type lack struct {
	hash  ledger.Hash
	st    *sink.Statement // nil: the kept representation is gone
	owner ledger.Owner
}

// tolerated are the triples of a subject rewritten by the store itself, each with its form there. Older
// records without both (empty) do not count.
func (mem *memory) tolerated(ctx context.Context, subj ledger.Hash) (map[ledger.Hash]ledger.Hash, error) {
	var all map[ledger.Hash]ledger.Hash
	prefix := ledger.Key(ledger.KindRewritten, mem.space, subj)
	for pair, err := range mem.store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		if len(pair.Value) != 16 {
			continue
		}
		if all == nil {
			all = map[ledger.Hash]ledger.Hash{}
		}
		all[ledger.Hash(pair.Key[len(prefix):])] = ledger.Hash(pair.Value)
	}
	return all, nil
}

// explained are the mirror's triples made by the store of missing ones: extra ones without an owner, or
// owned ones. A form made and then removed by somebody explains nothing.
func (g *group) explained(tolerated map[ledger.Hash]ledger.Hash, missing []ledger.Hash, extra []held) map[ledger.Hash]bool {
	if len(tolerated) == 0 {
		return nil
	}
	made := map[ledger.Hash]bool{}
	for _, h := range missing {
		m, ok := tolerated[h]
		if ok && (slices.ContainsFunc(extra, func(e held) bool { return e.hash == m }) || ledger.Holds(g.owned, m) && !slices.Contains(missing, m)) {
			made[m] = true
		}
	}
	return made
}

// differ works on one subject with other triples than owned.
func (c *mirrorCompare) differ(ctx context.Context, g *group, missing []ledger.Hash, extra []held) error {
	d := c.d
	tolerated, err := d.mem.tolerated(ctx, g.subj)
	if err != nil {
		return err
	}
	made := g.explained(tolerated, missing, extra)
	var ownerHere *ledger.Owner
	for i := range g.owners {
		if g.owners[i].Dest == d.mem.dest {
			ownerHere = &g.owners[i]
			break
		}
	}
	rewritten := map[ledger.Hash]string{} // resources, and their form in the store
	var lacks []lack
	var others []lack // of other destinations
	for _, h := range missing {
		l := lack{hash: h}
		for i, o := range g.owners {
			if ledger.Holds(g.lists[i], h) {
				if l.owner = o; o.Dest == d.mem.dest {
					break
				}
			}
		}
		if l.owner.Dest != d.mem.dest { // its own audit tells
			others = append(others, l)
			continue
		}
		if m, ok := tolerated[h]; ok && made[m] {
			rewritten[l.owner.Loc] = cmp.Or(rewritten[l.owner.Loc], ownForm)
			continue
		}
		st, err := c.statement(ctx, l.owner.Loc, h)
		if err != nil {
			return err
		}
		l.st = st
		lacks = append(lacks, l)
	}
	// Triples in another form than given.
	kept := extra[:0]
	triples := make([]rdfres.Triple, 0, len(extra))
	for _, e := range extra {
		if made[e.hash] {
			if ownerHere != nil {
				rewritten[ownerHere.Loc] = cmp.Or(rewritten[ownerHere.Loc], ownForm)
			}
			continue
		}
		q, ok, err := rdfres.ParseLine([]byte(strings.TrimSuffix(e.line, "\n")))
		if err != nil || !ok {
			return fmt.Errorf("triple of the mirror: %w", err)
		}
		kept = append(kept, e)
		triples = append(triples, q.Triple)
	}
	extra = kept
	paired := make([]bool, len(extra))
	still := lacks[:0]
	for _, l := range lacks {
		match := -1
		if l.st != nil {
			for i := range extra {
				t := triples[i]
				if paired[i] || t.P != l.st.Triple.P || extra[i].graph != l.st.Graph || t.O.Kind() != rdfres.KindLiteral || l.st.Triple.O.Kind() != rdfres.KindLiteral {
					continue
				}
				if d.mirror.SameValue(l.st.Triple.O, t.O) {
					match = i
					break
				}
				if c.second && match < 0 { // any other, if none is like it
					match = i
				}
			}
		}
		if match < 0 {
			still = append(still, l)
			continue
		}
		paired[match] = true
		c.unseen++
		rewritten[l.owner.Loc] = rewritingOf(l.st.Triple, triples[match].O)
		if c.second { // it was repaired and is otherwise again: the store's way, once and for all
			b := d.mem.store.Batch()
			b.Set(ledger.Key(ledger.KindRewritten, d.mem.space, g.subj, l.hash), extra[match].hash[:])
			err := b.Commit(ctx, true)
			b.Close()
			if err != nil {
				return err
			}
		}
	}
	lackOf := map[ledger.Hash]int{}
	for _, l := range still {
		lackOf[l.owner.Loc]++
		if c.fix && l.st != nil && d.mirror.Keeps(l.st) == nil {
			c.plan.Add = append(c.plan.Add, *l.st)
		}
	}
	for loc, n := range lackOf {
		if err := c.tell(ctx, loc, rankMirrorLacks, event{Detail: fmt.Sprintf("%d of its triples are not in the mirror", n), Triples: n}); err != nil {
			return err
		}
	}
	excess := event{}
	for i, e := range extra {
		if paired[i] {
			continue
		}
		t := triples[i]
		if of, err := c.madeOf(ctx, others, t); err != nil {
			return err
		} else if of >= 0 {
			others = slices.Delete(others, of, of+1)
			continue
		}
		ghost, err := c.ghost(ctx, e.graph)
		if err != nil {
			return err
		}
		if ghost { // it goes whole
			detail := "the mirror has graph " + clip.Middle(e.graph) + ", which this destination wrote and no resource has"
			if err := c.event(ledger.HashOf("graph\x00"+e.graph), rankNoSubject, event{Entity: d.mirror.Layout.EntityOf(e.graph), Graph: e.graph, Detail: detail}); err != nil {
				return err
			}
			continue
		}
		if c.fix {
			st := sink.Statement{Triple: t, Graph: e.graph, Subject: g.subj, Hash: e.hash, Shown: true}
			st.Rewritten = d.mirror.Layout.NormalForm.Triple(t) != t
			c.plan.Remove = append(c.plan.Remove, st)
		}
		if excess.Triples++; excess.Triples == 1 {
			excess.Entity, excess.Graph, excess.Detail = cmp.Or(t.S.IRI(), string(t.S)), e.graph, clip.Middle(strings.TrimSpace(e.line))
		}
	}
	if excess.Triples > 0 {
		if err := c.tellExcess(ctx, ownerHere, excess); err != nil {
			return err
		}
	}
	for loc, how := range rewritten {
		if err := c.tell(ctx, loc, rankRewritten, event{Detail: how}); err != nil {
			return err
		}
	}
	if len(c.plan.Add)+len(c.plan.Remove) >= d.mirror.Limit() {
		return c.flush(ctx)
	}
	return nil
}

// tellExcess makes a finding of triples of one subject without an owner: of the resource that has others
// of it, else of their graph, or of the subject in a graph of ours.
func (c *mirrorCompare) tellExcess(ctx context.Context, owner *ledger.Owner, e event) error {
	if owner != nil {
		return c.tell(ctx, owner.Loc, rankMirrorExcess, e)
	}
	key := "entity\x00" + e.Entity + "\x00" + e.Graph
	if e.Graph != "" {
		switch _, ours, err := c.d.mem.led.Ownership().GraphOwner(ctx, e.Graph); {
		case err != nil:
			return err
		case !ours:
			key, e.Entity = "graph\x00"+e.Graph, c.d.mirror.Layout.EntityOf(e.Graph)
		}
	}
	return c.event(ledger.HashOf(key), rankNoSubject, e)
}

// madeOf finds the likely source of a triple among those missing for other destinations, -1 for none: a
// literal of the same predicate.
func (c *mirrorCompare) madeOf(ctx context.Context, others []lack, t rdfres.Triple) (int, error) {
	if t.O.Kind() != rdfres.KindLiteral {
		return -1, nil
	}
	for i := range others {
		l := &others[i]
		if l.st == nil {
			var err error
			if l.st, err = c.d.stand.theirs(ctx, l.owner, l.hash); err != nil {
				return -1, err
			}
		}
		if l.st.Triple.P == t.P && l.st.Triple.O.Kind() == rdfres.KindLiteral {
			return i, nil
		}
	}
	return -1, nil
}

// theirs is a triple owned by another destination in the same graph, an empty one if its kept
// representation is damaged.
func (stand *standing) theirs(ctx context.Context, o ledger.Owner, hash ledger.Hash) (*sink.Statement, error) {
	m, err := ledger.MetaOf(ctx, stand.store, o.Dest)
	if err != nil {
		return nil, fmt.Errorf("another destination of this graph: %w", err)
	}
	lay := stand.mirror.Layout
	lay.Authority = m.Authority
	other := &standing{memory: &memory{store: stand.store, led: stand.led.Of(o.Dest), dest: o.Dest}, mirror: &sink.Full{Place: &sink.Place{Layout: lay}}}
	sts, _, err := other.statementsOf(ctx, o.Loc)
	if err != nil && !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	if i := slices.IndexFunc(sts, func(st sink.Statement) bool { return st.Hash == hash }); i >= 0 {
		return &sts[i], nil
	}
	return &sink.Statement{}, nil
}

func (c *mirrorCompare) tell(ctx context.Context, loc ledger.Hash, rank byte, e event) error {
	e.Broken = c.broken[loc]
	if rec, err := c.d.mem.led.Record(ctx, loc); err == nil && rec != nil {
		e.Entity, e.Location = rec.Entity, rec.Loc
	}
	return c.event(loc, rank, e)
}

// statement finds a triple of a resource by its hash. It is nil if the kept representation is not as
// recorded: then the resource is fetched again.
func (c *mirrorCompare) statement(ctx context.Context, loc, h ledger.Hash) (*sink.Statement, error) {
	if c.lastSts == nil || c.lastLoc != loc {
		c.lastLoc, c.lastSts = loc, map[ledger.Hash]*sink.Statement{}
		sts, rec, err := c.d.stand.statementsOf(ctx, loc)
		if err != nil && !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
		if err != nil && !c.broken[loc] {
			c.broken[loc] = true
			c.refetch++
			if c.fix && !c.alone && rec != nil {
				c.d.mem.log.Warn("kept representation is not as recorded; it is fetched again", "loc", rec.Loc)
				if err := c.forget(ctx, loc, rec, "a kept representation is not as recorded"); err != nil {
					return nil, err
				}
			}
		}
		for i := range sts {
			c.lastSts[sts[i].Hash] = &sts[i]
		}
	}
	return c.lastSts[h], nil
}

// forget makes a resource be fetched again, as what is kept of it is lost. Its recorded state is remembered:
// without a promise only that is taken at once.
func (c *mirrorCompare) forget(ctx context.Context, loc ledger.Hash, rec *ledger.Record, why string) error {
	d := c.d
	f, err := d.mem.led.Fault(ctx, loc)
	if err != nil {
		return err
	}
	b := d.mem.store.Batch()
	defer b.Close()
	if came := d.applier.stateOf(rec); f == nil && came != (rdfres.Digest{}) {
		f = d.applier.planner.faults.newFault(ctx, recordedEntry(rec), loc, &doubtfulError{"has to be what was recorded", came})
		f.Next, f.Doubted = f.First, asRecorded
		d.mem.led.PutFault(b, loc, f)
	}
	forgotten := *rec
	forgotten.Forget()
	forgotten.Normal = rdfres.Digest{}
	d.mem.led.PutRecord(b, loc, &forgotten)
	return d.mem.commit(ctx, b, func(m *meta) { m.OweSource(why) })
}

// asRecorded is the Doubted of a fault whose Came is a recorded state.
const asRecorded = "recorded"

// recordedEntry is a source's entry of a recorded state, without a promise of its bytes.
func recordedEntry(rec *ledger.Record) *feed.Item {
	return &feed.Item{File: rec.Has(ledger.FlagFile), Loc: rec.Loc, Entity: rec.Entity, Promise: fetch.Promise{Length: -1}, LastMod: rec.LastMod, Time: rec.Changed, Via: rec.Via}
}

func (c *mirrorCompare) flush(ctx context.Context) error {
	if c.plan.Empty() {
		return nil
	}
	d := c.d
	c.fixed += int64(len(c.plan.Add) + len(c.plan.Remove))
	if d.stand.putsWhole() {
		c.plan = sink.Batch{}
		return d.mem.saveMeta(ctx, func(m *meta) { m.Ahead = true })
	}
	if d.mirror.PutsGraphs() {
		p, err := c.touched(ctx)
		if err != nil {
			return err
		}
		c.plan = sink.Batch{}
		return d.stand.writePlan(ctx, p)
	}
	p := c.plan
	c.plan = sink.Batch{}
	return d.stand.writePlan(ctx, &p)
}

// touched puts the per-entity graphs of a repair whole.
func (c *mirrorCompare) touched(ctx context.Context) (*sink.Batch, error) {
	p := &sink.Batch{}
	graphs := map[string]bool{}
	for _, list := range [][]sink.Statement{c.plan.Add, c.plan.Remove} {
		for _, st := range list {
			graphs[st.Graph] = true
		}
	}
	for g := range graphs {
		v, err := c.d.mem.store.Get(ctx, ledger.Key(ledger.KindGraph, c.d.mem.space, ledger.HashOf(g)))
		if errors.Is(err, kv.ErrNotFound) {
			p.DropGraphs = append(p.DropGraphs, g)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(v) < 20 || ledger.ID(binary.BigEndian.Uint32(v)) != c.d.mem.dest {
			continue
		}
		sts, _, err := c.d.stand.statementsOf(ctx, ledger.Hash(v[4:20]))
		if err != nil {
			return nil, err
		}
		p.Put = append(p.Put, sink.Graph{IRI: g, Statements: sts})
	}
	return p, nil
}
