package destination

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Version is a description that was mirrored and is not current any more.
type Version struct {
	Entity, Location string
	From             time.Time // of the change that made it, or when it was last modified before; zero where the source told neither
	Until            time.Time // of the change that ended it, or when the mirror saw that
	Deleted          bool      // it ended with the deletion of the resource
	Graph            rdfres.Digest
	Triples          []rdfres.Triple // as they were mirrored, blank nodes by their wire names
}

const pastVersion = 1

// keepVersion puts what o replaces or deletes, at its location or the one that it has
// left, among the versions.
func (d *Destination) keepVersion(b kv.Batch, number uint64, loc ledger.Hash, o *op, old *ledger.Record) error {
	body, err := d.store.Get(ledger.Key(ledger.KindBody, d.dest, loc))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("keep the version of %s: %w", shorten(old.Loc), err)
	}
	until := d.opt.Now().UTC()
	switch {
	case o.rec != nil && !o.rec.Changed.IsZero():
		until = o.rec.Changed
	case o.rec == nil && o.it != nil && !o.it.Time.IsZero():
		until = o.it.Time
	case o.rec != nil && o.rec.LastMod.After(old.Since()) && o.rec.LastMod.Before(until): // of a list
		until = o.rec.LastMod
	}
	v := ledger.AppendTime([]byte{pastVersion}, until)
	if o.rec == nil {
		v = append(v, 1)
	} else {
		v = append(v, 0)
	}
	v = ledger.AppendString(v, old.Encode())
	b.Set(binary.BigEndian.AppendUint64(ledger.Key(ledger.KindPast, d.dest, ledger.HashOf(old.Entity)), number), append(v, body...))
	return nil
}

// leftBefore is the deletion after which a resource came back before it had gone, nil for
// none: a version ends with that.
func (d *Destination) leftBefore(ch *delta) (*op, error) {
	if d.cfg.Keep != "versions" || ch.old == nil || ch.op.rec == nil {
		return nil, nil
	}
	l, err := d.leavingOf(ch.op.loc)
	if err != nil || l == nil {
		return nil, err
	}
	it, err := l.item()
	if err != nil || it == nil {
		return nil, err
	}
	return &op{loc: ch.op.loc, it: it}, nil
}

// keepLeft keeps the version of a resource that came back as it was.
func (d *Destination) keepLeft(b kv.Batch, past *uint64, ch *delta) error {
	left, err := d.leftBefore(ch)
	if err != nil || left == nil {
		return err
	}
	*past++
	return d.keepVersion(b, d.meta.Versions+*past, ch.op.loc, left, ch.old)
}

// Versions yields the versions of an entity that are not current any more, the
// oldest first, as far as the mirror has seen them: keep: versions keeps every
// one that a Change List told, with the bytes where the source has versions
// (mementos) and otherwise as often as it was asked. The sequence ends after the
// first error.
func (d *Destination) Versions(ctx context.Context, entity string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		prefix := ledger.Key(ledger.KindPast, d.dest, ledger.HashOf(entity))
		snap := d.store.Snapshot()
		defer snap.Close()
		for pair, err := range snap.Scan(prefix, kv.PrefixEnd(prefix)) {
			var v Version
			if err == nil {
				v, err = decodeVersion(pair.Value)
			}
			if err == nil {
				err = ctx.Err()
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func decodeVersion(b []byte) (v Version, err error) {
	if len(b) == 0 || b[0] != pastVersion {
		return v, fmt.Errorf("%w: version", ledger.ErrDamaged)
	}
	dec := ledger.Decoder{B: b[1:]}
	v.Until = dec.Time()
	v.Deleted = dec.Flag()
	rec, err := ledger.DecodeRecord(dec.Bytes())
	if err != nil || dec.Bad {
		return v, fmt.Errorf("version: %w", errors.Join(ledger.ErrDamaged, err))
	}
	v.Entity, v.Location, v.From, v.Graph = rec.Entity, rec.Loc, rec.Since(), rec.Graph
	if len(dec.B) == 0 {
		return v, nil
	}
	wire, err := ledger.Unpack(dec.B)
	if err != nil {
		return v, err
	}
	v.Triples, err = parseWire(wire)
	return v, err
}
