package apply

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
)

// A first baseline has only new resources, and all their triples come. Some stores take a batch of 200,000
// triples in half the time of four of 50,000 (TDB2: the fixed cost of an update grows with the store). To
// hold as many, only the posted part of each resource is kept, packed, and its part of the ownership index.

const (
	// compactOps bounds their number.
	compactOps = 40_000
	// compactResource is how many triples one may have.
	compactResource = 10_000
)

// compacted is the kept part of an op's statements.
type compacted struct {
	owned []ledger.Owned
	text  []byte // packed N-Triples, nil: they are op.packed
	size  int    // of the text
	rest  itemRest
}

// itemRest is the little part of an item missing from its record: items of two batches and a half, with
// their strings, are a fifth of a baseline's memory.
type itemRest struct {
	path, pkg, typ, encoding string
	graph                    bool // the graph's digest was promised
}

// restOf tells whether an item can be made again of its record and the rest.
func restOf(it *item.Item, r *ledger.Record) (rest itemRest, ok bool) {
	p, h := &it.Promise, it.Promise.Hashes
	ok = it.Loc == r.Loc && it.Entity == r.Entity && it.Via == r.Via && it.LastMod.Equal(r.LastMod) && p.Length == r.Length &&
		h.MD5 == r.Hashes.MD5 && h.SHA1 == r.Hashes.SHA1 && h.SHA256 == r.Hashes.SHA256 && len(h.Other)+len(r.Hashes.Other) == 0 &&
		(p.Graph.IsZero() || p.Graph == r.Graph) &&
		it.Change == "" && it.Time.IsZero() && it.Sequence == 0 && it.Version == nil && len(it.Others)+len(it.Patches) == 0 &&
		it.TimeGate == "" && it.AsOf.IsZero() && it.Bad == "" && !it.Blind && it.Found == nil && !it.File && it.Ask == (item.Ask{})
	return itemRest{it.Path, it.Package, p.Type, p.Encoding, !p.Graph.IsZero()}, ok
}

func (s *itemRest) item(r *ledger.Record) *item.Item {
	length, _ := r.Promised()
	it := &item.Item{Loc: r.Loc, Entity: r.Entity, Via: r.Via, LastMod: r.LastMod, Path: s.path, Package: s.pkg,
		Promise: fetch.Promise{Hashes: r.Hashes, Length: length, Type: s.typ, Encoding: s.encoding}}
	if s.graph {
		it.Promise.Graph = r.Graph
	}
	return it
}

// canCompact tells whether the resources of a batcher may be kept so: nothing depends
// on the terms of their triples.
func (b *Batcher) canCompact() bool {
	m := b.ap.Mirror
	return b.first != nil && !b.ap.Config.Provenance && m.CanPostPacked()
}

// isNew tells whether a location has no record, and gets none by a batch being written.
func (b *Batcher) isNew(ctx context.Context, loc ledger.Hash) bool {
	if b.first == nil || b.busy(loc) {
		return false
	}
	rec, err := b.ap.Ledger.Record(ctx, loc)
	return err == nil && rec == nil
}

// compact makes an op of a new resource small, if possible: all its triples are as described, and can be
// posted.
func (o *Op) compact(m *sink.Full) {
	if o.Record == nil || len(o.packed) == 0 || len(o.sts) == 0 || len(o.sts) > compactResource || int64(len(o.sts)) != o.Record.Triples {
		return
	}
	if !m.Postable(o.sts) || m.KeepsAll(o.sts) != nil {
		return
	}
	c := &compacted{size: len(o.wire), owned: sink.BySubject(o.sts)}
	n := 0
	for i := range o.sts {
		t := o.sts[i].Triple
		n += len(t.S) + len(t.P) + len(t.O) + len("   .\n")
		if o.sts[i].Recast {
			o.Record.Flags |= ledger.FlagRewritten
		}
	}
	if n != c.size { // blank nodes are IRIs in the mirror
		text := make([]byte, 0, n)
		for i := range o.sts {
			text = o.sts[i].Triple.AppendLine(text)
		}
		c.text, c.size = ledger.Pack(text), len(text)
	}
	if o.Item != nil {
		if rest, ok := restOf(o.Item, o.Record); ok {
			c.rest, o.Item = rest, nil
		}
	}
	o.small, o.sts, o.wire = c, nil, nil
}

// expand makes it an op like any other again.
func (o *Op) expand() (err error) {
	if o.small != nil {
		if o.Item == nil {
			o.Item = o.small.rest.item(o.Record)
		}
		o.wire, err = ledger.Unpack(o.packed)
		o.small = nil
	}
	return err
}

// smallOps counts them in a batch. With few triples none stays small, and they go with the checkpoint. None
// stays small beside an op with removals either: the statements of the others protect their triples.
func (pl *planner) smallOps(ops []*Op) (n int, err error) {
	removes, triples := false, int64(0)
	for _, o := range ops {
		if o.small != nil {
			n, triples = n+1, triples+o.Record.Triples
		}
		removes = removes || o.fault == nil && !o.Settle && (!o.fresh || len(o.Replaces) > 0)
	}
	if !removes && triples >= int64(pl.lim.Few) {
		return n, nil
	}
	return 0, expandAll(ops)
}

func expandAll(ops []*Op) error {
	for _, o := range ops {
		if err := o.expand(); err != nil {
			return err
		}
	}
	return nil
}

// bytes is its rough size in memory.
func (c *compacted) bytes() (n int64) {
	for _, o := range c.owned {
		n += int64(len(o.Hashes)) + 40
	}
	return n + int64(len(c.text))
}

// postSmall uploads the triples of small ops, and some statements.
func (ap *Applier) postSmall(ctx context.Context, ops []*Op, sts []sink.Statement) error {
	p := &sink.Packed{} // a failed request may read on while the ops are expanded
	for _, o := range ops {
		if o.small == nil {
			continue
		}
		p.Bytes, p.Triples = p.Bytes+o.small.size, p.Triples+o.Record.Triples
		if o.small.text != nil {
			p.Parts = append(p.Parts, o.small.text)
		} else {
			p.Parts = append(p.Parts, o.packed)
		}
	}
	return ap.Mirror.PostPacked(ctx, p, sts)
}
