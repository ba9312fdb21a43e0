package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Version is a former description.
type Version struct {
	Entity, Location string
	From             time.Time // of the change that made it, or when it was last modified before; zero where the source told neither
	Until            time.Time // of the change that ended it, or when the mirror saw that
	Deleted          bool      // it ended with the deletion of the resource
	Graph            rdfres.Digest
	Triples          []rdfres.Triple // as they were mirrored, blank nodes by their wire names
}

const pastVersion = 1

// KeepVersion adds the present description of a resource to a batch, as a former one that
// ended at a time. Numbers grow over the destination.
func (l *Ledger) KeepVersion(ctx context.Context, b kv.Batch, number uint64, loc Hash, old *Record, until time.Time, deleted bool) error {
	body, err := l.store.Get(ctx, Key(KindBody, l.dest, loc))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	v := AppendTime([]byte{pastVersion}, until)
	if deleted {
		v = append(v, 1)
	} else {
		v = append(v, 0)
	}
	v = AppendString(v, old.Encode())
	b.Set(binary.BigEndian.AppendUint64(Key(KindPast, l.dest, HashOf(old.Entity)), number), append(v, body...))
	return nil
}

// Versions yields the former descriptions of an entity, the oldest first. The sequence ends
// after the first error.
func (l *Ledger) Versions(ctx context.Context, entity string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		prefix := Key(KindPast, l.dest, HashOf(entity))
		snap := l.store.Snapshot(ctx)
		defer snap.Close()
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
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
		return v, fmt.Errorf("%w: version", ErrDamaged)
	}
	dec := Decoder{B: b[1:]}
	v.Until = dec.Time()
	v.Deleted = dec.Flag()
	rec, err := DecodeRecord(dec.Bytes())
	if err != nil || dec.Bad {
		return v, fmt.Errorf("version: %w", errors.Join(ErrDamaged, err))
	}
	v.Entity, v.Location, v.From, v.Graph = rec.Entity, rec.Loc, rec.Since(), rec.Graph
	if len(dec.B) == 0 {
		return v, nil
	}
	wire, err := Unpack(dec.B)
	if err != nil {
		return v, err
	}
	v.Triples, err = ParseWire(wire)
	return v, err
}
