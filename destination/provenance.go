package destination

import (
	"context"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// planProvenance adds the changes of the provenance to a plan.
func (pl *planner) planProvenance(p *sink.Batch, changes []*delta) error {
	source := pl.SnapshotMeta().Provenance
	if source == "" {
		return nil
	}
	for _, ch := range changes {
		o := ch.op
		if o.fault != nil || o.settle || o.rec == nil && ch.old == nil || o.rec == nil && pl.cfg.Keep == "deleted" && !o.moved {
			continue
		}
		before, after := pl.stand.ProvenanceOf(o.loc, ch.old, source), pl.stand.ProvenanceOf(o.loc, o.rec, source)
		if ch.old != nil && ch.old.Graph.IsZero() { // forgotten: the present provenance is unknown
			p.ClearSubjects = append(p.ClearSubjects, pl.stand.DescriptionOf(o.loc))
			p.Add = append(p.Add, after...)
			continue
		}
		has := map[ledger.Hash]int{}
		for i := range before {
			has[before[i].Hash]++
		}
		for i := range after {
			if has[after[i].Hash] > 0 {
				has[after[i].Hash] = -1
			} else {
				p.Add = append(p.Add, after[i])
			}
		}
		for i := range before {
			if has[before[i].Hash] > 0 {
				p.Remove = append(p.Remove, before[i])
			}
		}
	}
	return nil
}

// provenanceMoved writes the provenance of everything, or removes it, after a change of its
// setting or of the source's address.
func (r *run) provenanceMoved(ctx context.Context) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	source := ""
	if d.cfg.Provenance {
		source = d.cfg.Source
	}
	if m.Provenance == source {
		return nil
	}
	if m.Stage == ledger.None || !d.mirror.Tells() {
		return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Provenance = source })
	}
	d.mem.SpaceLock.Lock()
	defer d.mem.SpaceLock.Unlock()
	d.mem.Log.Info("mirror: the provenance of all descriptions is written anew", "source", source)
	r.why("the provenance in the mirror is made anew")
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	p := &sink.Batch{}
	flush := func(least int) error {
		if len(p.ClearSubjects)+len(p.Add) < least {
			return nil
		}
		err := d.stand.WritePlan(ctx, p)
		p = &sink.Batch{}
		return err
	}
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		if m.Provenance != "" {
			p.ClearSubjects = append(p.ClearSubjects, d.stand.DescriptionOf(loc))
		}
		p.Add = append(p.Add, d.stand.ProvenanceOf(loc, rec.Record, source)...)
		if err := flush(2000); err != nil {
			return err
		}
	}
	if err := flush(1); err != nil {
		return err
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Provenance = source })
}

// provenance compares the provenance in the mirror with the records.
func (c *mirrorCompare) provenance(ctx context.Context, snap kv.Reader) error {
	d := c.d
	source := d.mem.SnapshotMeta().Provenance
	if source == "" {
		return nil
	}
	sorter, err := extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/2)
	if err != nil {
		return err
	}
	defer sorter.Close()
	add := func(t rdfres.Triple, loc ledger.Hash, whose byte) error {
		s, p := ledger.HashOf(string(t.S)), ledger.HashOf(string(t.P))
		return sorter.Add(append(append(append(make([]byte, 0, 33), s[:]...), p[:]...), whose), append(append([]byte{}, loc[:]...), t.AppendLine(nil)...))
	}
	for loc, rec := range d.mem.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		for _, st := range d.stand.ProvenanceOf(loc, rec.Record, source) {
			if err := add(st.Triple, loc, 'e'); err != nil {
				return err
			}
		}
	}
	if err := d.mirror.EachTold(ctx, func(t rdfres.Triple) error { return add(t, ledger.Hash{}, 'f') }); err != nil {
		return fmt.Errorf("read the provenance in the mirror: %w", err)
	}
	var expected []sink.Statement
	var found []rdfres.Triple
	var loc, last ledger.Hash
	var at string
	told := func(detail string) error {
		if loc == (ledger.Hash{}) {
			if last == ledger.HashOf(at[:16]) {
				return nil // one of a subject without a resource is reported
			}
			last = ledger.HashOf(at[:16])
			return c.event(ledger.HashOf("told\x00"+at[:16]), rankNoSubject, event{Entity: found[0].S.IRI(), Detail: "the mirror tells the provenance of a description that is not mirrored"})
		}
		return c.tell(ctx, loc, rankMirrorExcess, event{Detail: detail})
	}
	group := func() error {
		if len(expected)+len(found) == 0 {
			return nil
		}
		defer func() { expected, found, loc = expected[:0], found[:0], ledger.Hash{} }()
		same := func(a, b rdfres.Triple) bool {
			n, o := d.mirror.Layout.NormalForm.Triple(a), d.mirror.Layout.NormalForm.Triple(b)
			return n == o || a.O.Kind() == rdfres.KindLiteral && b.O.Kind() == rdfres.KindLiteral && rdfres.ValueEqual(a.O, b.O)
		}
		if len(expected) == 1 && len(found) == 1 && same(expected[0].Triple, found[0]) {
			return nil
		}
		if c.second && len(expected) == 1 && len(found) == 1 && found[0].O.Kind() == rdfres.KindLiteral {
			return c.tell(ctx, loc, rankRewritten, event{Detail: "the store keeps its provenance in its own form"})
		}
		if err := told("its provenance in the mirror is not as it should be"); err != nil {
			return err
		}
		if !c.fix {
			return nil
		}
		for _, t := range found {
			c.plan.Remove = append(c.plan.Remove, sink.Statement{Triple: t, Graph: sink.StateGraph})
		}
		c.plan.Add = append(c.plan.Add, expected...)
		if len(c.plan.Add)+len(c.plan.Remove) >= d.mirror.Limit() {
			return c.flush(ctx)
		}
		return nil
	}
	n := 0
	for rec, err := range sorter.Sort() {
		if err != nil {
			return err
		}
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if k := string(rec.Key[:32]); k != at {
			if err := group(); err != nil {
				return err
			}
			at = k
		}
		q, ok, err := rdfres.ParseLine([]byte(strings.TrimSuffix(string(rec.Value[16:]), "\n")))
		if err != nil || !ok {
			return fmt.Errorf("provenance in the mirror: %w", err)
		}
		if rec.Key[32] == 'f' {
			if len(found) == 0 || found[len(found)-1] != q.Triple {
				found = append(found, q.Triple)
			}
			continue
		}
		loc = ledger.Hash(rec.Value[:16])
		expected = append(expected, sink.Statement{Triple: q.Triple, Graph: sink.StateGraph, Rewritten: d.mirror.Layout.NormalForm.Triple(q.Triple) != q.Triple})
	}
	if err := group(); err != nil {
		return err
	}
	return c.flush(ctx)
}
