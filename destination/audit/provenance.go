package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// provenance compares the provenance in the mirror with the records.
func (c *Comparison) provenance(ctx context.Context, snap kv.Reader) error {
	source := c.SnapshotMeta().Provenance
	if source == "" {
		return nil
	}
	sorter, err := extsort.New(c.Config.TempDir, c.Config.MemoryBytes/2)
	if err != nil {
		return err
	}
	defer sorter.Close()
	add := func(t rdfres.Triple, loc ledger.Hash, whose byte) error {
		s, p := ledger.HashOf(string(t.S)), ledger.HashOf(string(t.P))
		return sorter.Add(append(append(append(make([]byte, 0, 33), s[:]...), p[:]...), whose), append(append([]byte{}, loc[:]...), t.AppendLine(nil)...))
	}
	for loc, rec := range c.Ledger.Records(ctx, snap) {
		if rec.Err != nil {
			return rec.Err
		}
		for _, st := range c.ProvenanceOf(loc, rec.Record, source) {
			if err := add(st.Triple, loc, 'e'); err != nil {
				return err
			}
		}
	}
	if err := c.Mirror.EachTold(ctx, func(t rdfres.Triple) error { return add(t, ledger.Hash{}, 'f') }); err != nil {
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
			return c.finding(ledger.HashOf("told\x00"+at[:16]), rankNoSubject, event{Entity: found[0].S.IRI(), Detail: "the mirror tells the provenance of a description that is not mirrored"})
		}
		return c.tell(ctx, loc, rankMirrorExcess, event{Detail: detail})
	}
	group := func() error {
		if len(expected)+len(found) == 0 {
			return nil
		}
		defer func() { expected, found, loc = expected[:0], found[:0], ledger.Hash{} }()
		same := func(a, b rdfres.Triple) bool {
			n, o := c.Mirror.Layout.NormalForm.Triple(a), c.Mirror.Layout.NormalForm.Triple(b)
			return n == o || a.O.Kind() == rdfres.KindLiteral && b.O.Kind() == rdfres.KindLiteral && rdfres.ValueEqual(a.O, b.O)
		}
		if len(expected) == 1 && len(found) == 1 && same(expected[0].Triple, found[0]) {
			return nil
		}
		if c.Second && len(expected) == 1 && len(found) == 1 && found[0].O.Kind() == rdfres.KindLiteral {
			return c.tell(ctx, loc, rankRewritten, event{Detail: "the store keeps its provenance in its own form"})
		}
		if err := told("its provenance in the mirror is not as it should be"); err != nil {
			return err
		}
		if !c.Fix {
			return nil
		}
		for _, t := range found {
			c.plan.Remove = append(c.plan.Remove, sink.Statement{Triple: t, Graph: sink.StateGraph})
		}
		c.plan.Add = append(c.plan.Add, expected...)
		if len(c.plan.Add)+len(c.plan.Remove) >= c.Mirror.Limit() {
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
		expected = append(expected, sink.Statement{Triple: q.Triple, Graph: sink.StateGraph, Rewritten: c.Mirror.Layout.NormalForm.Triple(q.Triple) != q.Triple})
	}
	if err := group(); err != nil {
		return err
	}
	return c.flush(ctx)
}
