package audit

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Comparison compares the owned triples of the records with the mirror's: it reads the graph, sorts the
// hashes of its triples on disk by subject, and merges them with the ownership index, in the same order.
// Subjects with triples without an owner are read again, to name them: the triples of a right mirror are
// never sorted themselves. With Fix the mirror is repaired on the way. Of a folder it compares the files.
type Comparison struct {
	*keep.Standing
	Doubts Doubts
	Most   int // triples of one subject held in memory

	Fix    bool
	Second bool // after a repair: remaining differences are the store's own
	Alone  bool // the source is unreachable: resources to be fetched again stay as they are
	Spare  bool // files without a resource stay: they may be anybody's

	Found Found

	event  func(ledger.Hash, byte, event) error // nil: nobody asks
	saw    func(ledger.Hash, rdfres.Triple)     // nil, or gets each triple as the mirror shows it
	plan   sink.Batch
	ghosts int64 // graphs of ours in the mirror, without a record
	broken map[ledger.Hash]bool

	lastLoc ledger.Hash
	lastSts map[ledger.Hash]*sink.Statement
}

// Found counts the findings of a comparison.
type Found struct {
	Lacking int   // resources without some of their triples
	Fixed   int64 // triples written or removed, and dropped graphs; without Fix, to be written or removed
	Dropped int64 // removed graphs of ours, without a record
	Others  int64 // graphs of the store beyond this mirror
	Unseen  int64 // triples in another form than given, against the normal form
	Strays  int64 // files without a resource
	Refetch int64 // resources with a kept representation not as recorded
}

// Run compares everything in the mirror.
func (c *Comparison) Run(ctx context.Context) error {
	c.SpaceLock.Lock() // nobody else writes into the graph meanwhile
	defer c.SpaceLock.Unlock()
	switch {
	case c.Mirror.Files != nil:
		return c.files(ctx)
	case !c.Mirror.Reads:
		return nil
	}
	return c.triples(ctx)
}

// finding hands on a finding.
func (c *Comparison) finding(loc ledger.Hash, rank byte, e event) error {
	if rank == rankMirrorLacks {
		c.Found.Lacking++
	}
	if c.event == nil {
		return nil
	}
	return c.event(loc, rank, e)
}

// triples compares the triples of a store.
func (c *Comparison) triples(ctx context.Context) error {
	if err := c.SameForm(ctx); err != nil {
		return err
	}
	c.broken = map[ledger.Hash]bool{}
	if err := c.graphs(ctx); err != nil {
		return fmt.Errorf("read the graphs of the mirror: %w", err)
	}
	keys, err := extsort.NewKeys(c.Config.TempDir, c.Config.MemoryBytes/8)
	if err != nil {
		return err
	}
	later := &subjectList{Keys: keys}
	defer later.Close()
	snap := c.Store.Snapshot(ctx)
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
func (c *Comparison) read(ctx context.Context, add func(graph string, t, normal rdfres.Triple) error) error {
	m := c.Mirror
	var got int64
	each := func(graph string, t rdfres.Triple) error {
		if got++; got%8192 == 0 {
			c.Options.Progress("mirror", got, 0)
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

// byTriple compares the subjects of a list, triple by triple.
func (c *Comparison) byTriple(ctx context.Context, snap kv.Reader, of *subjectList) error {
	sorter, err := extsort.New(c.Config.TempDir, c.Config.MemoryBytes)
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
func (c *Comparison) merge(ctx context.Context, sorter *extsort.Sorter, snap kv.Reader, of *subjectList) error {
	nextOwned, stopOwned := iter.Pull2(c.Groups(ctx, snap))
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
		cur := keep.Group{Subj: ledger.Hash(rec.Key)}
		if n > 0 && cur.Subj == before {
			continue
		}
		before = cur.Subj
		for gok && gerr == nil && string(g.Subj[:]) < string(cur.Subj[:]) {
			g, gerr, gok = nextOwned()
		}
		if gok && gerr != nil {
			return gerr
		}
		for hok && herr == nil && string(h.Key[:16]) < string(cur.Subj[:]) {
			h, herr, hok = nextHeld()
		}
		if n++; n%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.Options.Progress("subjects", int64(n), of.Len())
		}
		if gok && g.Subj == cur.Subj {
			cur = *g
		}
		seen := make([]bool, len(cur.Owned)/16)
		var extra []keep.Held
		over := 0
		var last ledger.Hash
		for hok && herr == nil && string(h.Key[:16]) == string(cur.Subj[:]) {
			var hash ledger.Hash
			copy(hash[:], h.Key[16:32])
			if i, ok := ledger.Find(cur.Owned, hash); ok {
				seen[i] = true
			} else if hash != last || len(extra) == 0 && over == 0 {
				graph, line, _ := strings.Cut(string(h.Value), "\x00")
				if len(extra) < c.Most {
					extra = append(extra, keep.Held{Hash: hash, Graph: graph, Line: line})
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
				missing = append(missing, ledger.Hash(cur.Owned[i*16:i*16+16]))
			}
		}
		if len(missing)+len(extra) > 0 {
			if err := c.differ(ctx, &cur, missing, extra, over > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// lack is an owned triple missing from the mirror.
type lack struct {
	hash  ledger.Hash
	st    *sink.Statement // nil: the kept representation is gone
	owner ledger.Owner
}

// differ works on one subject with other triples than owned. more: it has further ones than extra.
func (c *Comparison) differ(ctx context.Context, g *keep.Group, missing []ledger.Hash, extra []keep.Held, more bool) error {
	tolerated, err := c.Tolerated(ctx, g.Subj)
	if err != nil {
		return err
	}
	made := g.Explained(tolerated, missing, extra)
	var ownerHere *ledger.Owner
	for i := range g.Owners {
		if g.Owners[i].Dest == c.Dest {
			ownerHere = &g.Owners[i]
			break
		}
	}
	rewritten := map[ledger.Hash]string{} // resources, and their form in the store
	var lacks []lack
	var others []lack // of other destinations
	for _, h := range missing {
		l := lack{hash: h}
		for i, o := range g.Owners {
			if ledger.Holds(g.Lists[i], h) {
				if l.owner = o; o.Dest == c.Dest {
					break
				}
			}
		}
		if l.owner.Dest != c.Dest { // its own audit tells
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
		if made[e.Hash] {
			if ownerHere != nil {
				rewritten[ownerHere.Loc] = cmp.Or(rewritten[ownerHere.Loc], ownForm)
			}
			continue
		}
		q, ok, err := rdfres.ParseLine([]byte(strings.TrimSuffix(e.Line, "\n")))
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
				if paired[i] || t.P != l.st.Triple.P || extra[i].Graph != l.st.Graph || t.O.Kind() != rdfres.KindLiteral || l.st.Triple.O.Kind() != rdfres.KindLiteral {
					continue
				}
				if c.Mirror.SameValue(l.st.Triple.O, t.O) {
					match = i
					break
				}
				if c.Second && match < 0 { // any other, if none is like it
					match = i
				}
			}
		}
		if match < 0 {
			still = append(still, l)
			continue
		}
		paired[match] = true
		c.Found.Unseen++
		rewritten[l.owner.Loc] = rewritingOf(l.st.Triple, triples[match].O)
		if c.Second { // it was repaired and is otherwise again: the store's way, once and for all
			b := c.Store.Batch()
			b.Set(ledger.Key(ledger.KindRewritten, c.Space, g.Subj, l.hash), extra[match].Hash[:])
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
		if l.st != nil && c.Mirror.Keeps(l.st) == nil {
			c.plan.Add = append(c.plan.Add, *l.st)
		}
	}
	for loc, n := range lackOf {
		if err := c.tell(ctx, loc, rankMirrorLacks, event{Detail: fmt.Sprintf("%d of its triples are not in the mirror", n), Triples: n}); err != nil {
			return err
		}
	}
	excess := event{More: more}
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
		ghost, err := c.ghost(ctx, e.Graph)
		if err != nil {
			return err
		}
		if ghost { // it goes whole
			detail := "the mirror has graph " + clip.Middle(e.Graph) + ", which this destination wrote and no resource has"
			if err := c.finding(ledger.HashOf("graph\x00"+e.Graph), rankNoSubject, event{Entity: c.Mirror.Layout.EntityOf(e.Graph), Graph: e.Graph, Detail: detail}); err != nil {
				return err
			}
			continue
		}
		st := sink.Statement{Triple: t, Graph: e.Graph, Subject: g.Subj, Hash: e.Hash, Shown: true}
		st.Rewritten = c.Mirror.Layout.NormalForm.Triple(t) != t
		c.plan.Remove = append(c.plan.Remove, st)
		if excess.Triples++; excess.Triples == 1 {
			excess.Entity, excess.Graph, excess.Detail = cmp.Or(t.S.IRI(), string(t.S)), e.Graph, clip.Middle(strings.TrimSpace(e.Line))
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
	if len(c.plan.Add)+len(c.plan.Remove) >= c.Mirror.Limit() {
		return c.flush(ctx)
	}
	return nil
}

// tellExcess makes a finding of triples of one subject without an owner: of the resource that has others
// of it, else of their graph, or of the subject in a graph of ours.
func (c *Comparison) tellExcess(ctx context.Context, owner *ledger.Owner, e event) error {
	if owner != nil {
		return c.tell(ctx, owner.Loc, rankMirrorExcess, e)
	}
	key := "entity\x00" + e.Entity + "\x00" + e.Graph
	if e.Graph != "" {
		switch _, ours, err := c.Ledger.Ownership().GraphOwner(ctx, e.Graph); {
		case err != nil:
			return err
		case !ours:
			key, e.Entity = "graph\x00"+e.Graph, c.Mirror.Layout.EntityOf(e.Graph)
		}
	}
	return c.finding(ledger.HashOf(key), rankNoSubject, e)
}

// madeOf finds the likely source of a triple among those missing for other destinations, -1 for none: a
// literal of the same predicate.
func (c *Comparison) madeOf(ctx context.Context, others []lack, t rdfres.Triple) (int, error) {
	if t.O.Kind() != rdfres.KindLiteral {
		return -1, nil
	}
	for i := range others {
		l := &others[i]
		if l.st == nil {
			var err error
			if l.st, err = c.Theirs(ctx, l.owner, l.hash); err != nil {
				return -1, err
			}
		}
		if l.st.Triple.P == t.P && l.st.Triple.O.Kind() == rdfres.KindLiteral {
			return i, nil
		}
	}
	return -1, nil
}

func (c *Comparison) tell(ctx context.Context, loc ledger.Hash, rank byte, e event) error {
	e.Broken = c.broken[loc]
	if rec, err := c.Ledger.Record(ctx, loc); err == nil && rec != nil {
		e.Entity, e.Location = rec.Entity, rec.Loc
	}
	return c.finding(loc, rank, e)
}

// statement finds a triple of a resource by its hash. It is nil if the kept representation is not as
// recorded: then the resource is fetched again.
func (c *Comparison) statement(ctx context.Context, loc, h ledger.Hash) (*sink.Statement, error) {
	if c.lastSts == nil || c.lastLoc != loc {
		c.lastLoc, c.lastSts = loc, map[ledger.Hash]*sink.Statement{}
		sts, rec, err := c.StatementsOf(ctx, loc)
		if err != nil && !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
		if err != nil && !c.broken[loc] {
			c.broken[loc] = true
			c.Found.Refetch++
			if c.Fix && !c.Alone && rec != nil {
				c.Log.Warn("kept representation is not as recorded; it is fetched again", "loc", rec.Loc)
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

// forget makes a resource be fetched again, as its kept representation is lost. Its recorded state is remembered:
// without a promise only that is taken at once.
func (c *Comparison) forget(ctx context.Context, loc ledger.Hash, rec *ledger.Record, why string) error {
	f, err := c.Ledger.Fault(ctx, loc)
	if err != nil {
		return err
	}
	b := c.Store.Batch()
	defer b.Close()
	if came := c.StateOf(rec); f == nil && came != (rdfres.Digest{}) {
		f = c.Doubts.Doubtful(ctx, item.Of(rec), loc, "has to be what was recorded", came)
		f.Next, f.Doubted = f.First, ledger.AsRecorded
		c.Ledger.PutFault(b, loc, f)
	}
	forgotten := *rec
	forgotten.Forget()
	forgotten.Normal = rdfres.Digest{}
	c.Ledger.PutRecord(b, loc, &forgotten)
	return c.Commit(ctx, b, func(m *keep.Meta) { m.OweSource(why) })
}

func (c *Comparison) flush(ctx context.Context) error {
	if c.plan.Empty() {
		return nil
	}
	c.Found.Fixed += int64(len(c.plan.Add) + len(c.plan.Remove))
	if !c.Fix {
		c.plan = sink.Batch{}
		return nil
	}
	if c.PutsWhole() {
		c.plan = sink.Batch{}
		return c.SaveMeta(ctx, func(m *keep.Meta) { m.Ahead = true })
	}
	if c.Mirror.PutsGraphs() {
		p, err := c.touched(ctx)
		if err != nil {
			return err
		}
		c.plan = sink.Batch{}
		return c.WritePlan(ctx, p)
	}
	p := c.plan
	c.plan = sink.Batch{}
	return c.WritePlan(ctx, &p)
}

// touched puts the per-entity graphs of a repair whole.
func (c *Comparison) touched(ctx context.Context) (*sink.Batch, error) {
	p := &sink.Batch{}
	graphs := map[string]bool{}
	for _, list := range [][]sink.Statement{c.plan.Add, c.plan.Remove} {
		for _, st := range list {
			graphs[st.Graph] = true
		}
	}
	for g := range graphs {
		v, err := c.Store.Get(ctx, ledger.Key(ledger.KindGraph, c.Space, ledger.HashOf(g)))
		if errors.Is(err, kv.ErrNotFound) {
			p.DropGraphs = append(p.DropGraphs, g)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(v) < 20 || ledger.ID(binary.BigEndian.Uint32(v)) != c.Dest {
			continue
		}
		sts, _, err := c.StatementsOf(ctx, ledger.Hash(v[4:20]))
		if err != nil {
			return nil, err
		}
		p.Put = append(p.Put, sink.Graph{IRI: g, Statements: sts})
	}
	return p, nil
}
