package destination

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// With Config.Provenance the mirror itself has the origin and time of each description, in the
// state graph and never among the data. The subject is urn:rsbridge:description: + the number
// of the destination's mark + : + the hash of the location. All of it follows from the record:
// it is written, replaced and removed with the data, and an audit knows its right value.
const (
	descriptionPrefix = "urn:rsbridge:description:"

	predDigest  = sink.PropPrefix + "digest"
	predTopic   = "http://xmlns.com/foaf/0.1/primaryTopic"
	predDerived = "http://www.w3.org/ns/prov#wasDerivedFrom"
	predPrimary = "http://www.w3.org/ns/prov#hadPrimarySource"
	predSource  = "http://purl.org/dc/terms/source"
	predWhen    = "http://purl.org/dc/terms/modified"

	xsdDateTime = "http://www.w3.org/2001/XMLSchema#dateTime"

	provenanceTriples = 7 // of one description, at most
)

func (pl *planner) descriptionOf(loc ledger.Hash) string {
	return descriptionPrefix + strings.TrimPrefix(pl.mirror.Mark, sink.MarkPrefix) + ":" + hex.EncodeToString(loc[:])
}

// provenanceOf is the provenance of a recorded description, nothing for one without triples. A
// triple the store would change is left out.
func (pl *planner) provenanceOf(loc ledger.Hash, r *ledger.Record, source string) []sink.Statement {
	if source == "" || r == nil || r.Triples == 0 {
		return nil
	}
	subject := rdfres.NewIRI(pl.descriptionOf(loc))
	var out []sink.Statement
	add := func(predicate string, o rdfres.Term) {
		t := rdfres.Triple{S: subject, P: rdfres.NewIRI(predicate), O: o}
		if sink.CheckTerm(string(o)) != nil {
			return
		}
		n := pl.mirror.Layout.NormalForm.Triple(t)
		st := sink.Statement{Triple: t, Graph: sink.StateGraph, Subject: sink.SubjectHash(sink.StateGraph, n.S), Hash: sink.TripleHash(sink.StateGraph, n), Rewritten: n != t}
		if pl.mirror.Exact(&st) {
			out = append(out, st)
		}
	}
	add(sink.PropPrefix+"keptBy", rdfres.NewIRI(pl.mirror.Mark))
	add(predDerived, rdfres.NewIRI(r.Loc))
	add(predSource, rdfres.NewIRI(source))
	if r.Entity != "" {
		add(predTopic, rdfres.NewIRI(r.Entity))
	}
	when := r.Changed
	if when.IsZero() {
		when = r.LastMod
	}
	if !when.IsZero() {
		add(predWhen, rdfres.NewLiteral(when.UTC().Format(time.RFC3339Nano), "", xsdDateTime))
	}
	if !r.Graph.IsZero() {
		add(predDigest, rdfres.NewLiteral("sha-256:"+r.Graph.String(), "", ""))
	}
	if r.Via != "" {
		add(predPrimary, rdfres.NewIRI(r.Via))
	}
	return out
}

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
		before, after := pl.provenanceOf(o.loc, ch.old, source), pl.provenanceOf(o.loc, o.rec, source)
		if ch.old != nil && ch.old.Graph.IsZero() { // forgotten: the present provenance is unknown
			p.ClearSubjects = append(p.ClearSubjects, pl.descriptionOf(o.loc))
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
			p.ClearSubjects = append(p.ClearSubjects, d.applier.planner.descriptionOf(loc))
		}
		p.Add = append(p.Add, d.applier.planner.provenanceOf(loc, rec.Record, source)...)
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
		for _, st := range d.applier.planner.provenanceOf(loc, rec.Record, source) {
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
