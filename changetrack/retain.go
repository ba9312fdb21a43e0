package changetrack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Retain drops changes before changesBefore and versions ended before versionsBefore. Current
// versions and their change stay: a change whose version is still kept leaves the log but stays in
// the history of its entity. Tail then tells the beginning of the log. A deleted entity is
// forgotten with its deletion and all its versions.
//
// It returns the number of changes gone from the log plus the number of versions dropped. It works
// in batches: an error or the end of ctx leaves consistent records, and the next call goes on.
func (l *Log) Retain(ctx context.Context, changesBefore, versionsBefore time.Time) (dropped int64, err error) {
	if err := l.lock(ctx); err != nil {
		return 0, fmt.Errorf("retain in set %s: %w", l.name, err)
	}
	defer l.unlock()
	r := &retention{l: l, b: l.store.Batch()}
	defer r.b.Close()
	if r.head, err = readHeadRecord(ctx, l.store); err == nil {
		err = r.versions(ctx, versionsBefore)
	}
	if err == nil {
		err = r.changes(ctx, changesBefore)
	}
	if err != nil {
		err = fmt.Errorf("retain in set %s: %w", l.name, err)
	}
	return r.dropped, err
}

// retention is one Retain under way.
type retention struct {
	l       *Log
	b       kv.Batch
	head    headRecord
	pending int64 // in the batch
	loose   bool  // some commit may not be on disk yet
	dropped int64 // committed
}

// done commits the collected deletions if they are enough, or when all is done.
func (r *retention) done(ctx context.Context, all bool) error {
	if !all && r.b.Size() < r.l.t.o.batchBytes {
		return nil
	}
	if r.pending > 0 || all && r.loose {
		r.b.Set(headKey, putHead(nil, &r.head))
		r.l.freeze(ctx)
		if err := r.b.Commit(ctx, all); err != nil {
			return err
		}
		r.loose = !all
		r.dropped += r.pending
		r.pending = 0
		r.l.show(r.head)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// versions drops the representations of versions ended before t, in the order of their ends.
func (r *retention) versions(ctx context.Context, t time.Time) error {
	for p, err := range r.l.store.Scan(ctx, []byte{kindEnded}, []byte{kindEnded + 1}) {
		if err != nil {
			return err
		}
		e, err := readEnded(p.Value)
		if err != nil {
			return err
		}
		if !e.time.Before(t) {
			break
		}
		end := lastSeq(p.Key)
		r.b.Delete(p.Key)
		r.b.Delete(entitySeqKey(kindBlob, e.key, e.start))
		if e.start <= r.head.tail {
			r.b.Delete(entitySeqKey(kindHistory, e.key, e.start))
		}
		if e.deleted && end <= r.head.tail {
			if err := r.forget(ctx, e.key, end); err != nil {
				return err
			}
		}
		r.pending++
		if err := r.done(ctx, false); err != nil {
			return err
		}
	}
	return r.done(ctx, true)
}

// forget drops a deletion without a place in the log and without its version, and the state of the
// entity if the deletion was its end.
func (r *retention) forget(ctx context.Context, key rdfres.Digest, seq uint64) error {
	r.b.Delete(entitySeqKey(kindHistory, key, seq))
	s, _, err := stateOf(ctx, r.l.store, key)
	if err == nil && s.current == nil && s.delSeq == seq {
		r.b.Delete(goneKey(key))
	}
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	return err
}

// changes takes the changes before t out of the log. A change whose version is still kept moves
// into the history; so does a deletion while the version it ended is kept.
func (r *retention) changes(ctx context.Context, t time.Time) error {
	for p, err := range r.l.store.Scan(ctx, seqKey(kindLog, r.head.tail+1), seqKey(kindLog, r.head.seq+1)) {
		if err != nil {
			return err
		}
		seq := lastSeq(p.Key)
		c, err := readChange(seq, p.Value) // a version elsewhere stays there
		if err != nil {
			return err
		}
		if !c.Time.Before(t) {
			break
		}
		if !c.OfEntity() {
			if c.OfFile() {
				if err := r.retainFile(ctx, &c); err != nil {
					return err
				}
			}
			r.b.Delete(p.Key)
			r.head.tail, r.head.tailTime = seq, c.Time
			r.pending++
			if err := r.done(ctx, false); err != nil {
				return err
			}
			continue
		}
		key := rdfres.EntityKey(c.Entity)
		witness := entitySeqKey(kindBlob, key, seq)
		if c.After == nil {
			witness = seqKey(kindEnded, seq)
		}
		kept, err := exists(ctx, r.l.store, witness)
		if err != nil {
			return err
		}
		r.b.Delete(p.Key)
		switch {
		case kept:
			r.b.Set(entitySeqKey(kindHistory, key, seq), putChange(nil, &c))
		case c.After == nil:
			if err := r.forget(ctx, key, seq); err != nil {
				return err
			}
		default:
			r.b.Delete(entitySeqKey(kindHistory, key, seq))
		}
		r.head.tail, r.head.tailTime = seq, c.Time
		r.pending++
		if err := r.done(ctx, false); err != nil {
			return err
		}
	}
	if r.pending > 0 {
		r.b.DeleteRange([]byte{kindRelinked}, seqKey(kindRelinked, r.head.tail+1))
	}
	return r.done(ctx, true)
}

func exists(ctx context.Context, r kv.Reader, key []byte) (bool, error) {
	_, err := r.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
