package changetrack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Retain drops changes before changesBefore and versions that ended before
// versionsBefore; current versions and their change stay: a change whose version
// is still kept leaves the log but stays in the history of its entity. Tail then
// tells where the log begins. A deleted entity is forgotten when its deletion and
// all its versions have gone.
//
// It returns how many changes left the log plus how many versions were dropped.
// It works in batches: what an error or the end of ctx interrupts is consistent,
// and the next call goes on from there.
func (l *Log) Retain(ctx context.Context, changesBefore, versionsBefore time.Time) (dropped int64, err error) {
	if err := l.lock(ctx); err != nil {
		return 0, fmt.Errorf("retain in set %s: %w", l.name, err)
	}
	defer l.unlock()
	r := &retention{l: l, ctx: ctx, b: l.store.Batch()}
	defer r.b.Close()
	if r.head, err = readHeadRecord(l.store); err == nil {
		err = r.versions(versionsBefore)
	}
	if err == nil {
		err = r.changes(changesBefore)
	}
	if err != nil {
		err = fmt.Errorf("retain in set %s: %w", l.name, err)
	}
	return r.dropped, err
}

// retention is one Retain under way.
type retention struct {
	l       *Log
	ctx     context.Context
	b       kv.Batch
	head    headRecord
	pending int64 // in the batch
	loose   bool  // something was committed that may not be on disk yet
	dropped int64 // committed
}

// done commits what was collected when it is enough, or when all is done.
func (r *retention) done(all bool) error {
	if !all && r.b.Size() < r.l.t.o.batchBytes {
		return nil
	}
	if r.pending > 0 || all && r.loose {
		r.b.Set(headKey, putHead(nil, &r.head))
		if err := r.b.Commit(all); err != nil {
			return err
		}
		r.loose = !all
		r.dropped += r.pending
		r.pending = 0
		r.l.show(r.head)
	}
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// versions drops the representations of versions that ended before t, in the
// order in which they ended.
func (r *retention) versions(t time.Time) error {
	for p, err := range r.l.store.Scan([]byte{kindEnded}, []byte{kindEnded + 1}) {
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
			if err := r.forget(e.key, end); err != nil {
				return err
			}
		}
		r.pending++
		if err := r.done(false); err != nil {
			return err
		}
	}
	return r.done(true)
}

// forget drops a deletion that has left the log and whose version has gone, and
// the state of the entity if that was its end.
func (r *retention) forget(key rdfres.Digest, seq uint64) error {
	r.b.Delete(entitySeqKey(kindHistory, key, seq))
	b, err := r.l.store.Get(entityKey(kindState, key))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := readState(b)
	if err != nil {
		return err
	}
	if s.current == nil && s.delSeq == seq {
		r.b.Delete(entityKey(kindState, key))
	}
	return nil
}

// changes takes the changes before t out of the log. Those whose version, or for
// a deletion the version it ended, is still kept move into the history.
func (r *retention) changes(t time.Time) error {
	for p, err := range r.l.store.Scan(seqKey(kindLog, r.head.tail+1), seqKey(kindLog, r.head.seq+1)) {
		if err != nil {
			return err
		}
		seq := lastSeq(p.Key)
		c, err := readWhole(r.l.store, seq, p.Value)
		if err != nil {
			return err
		}
		if !c.Time.Before(t) {
			break
		}
		if !c.OfEntity() {
			if c.OfFile() {
				if err := r.retainFile(&c); err != nil {
					return err
				}
			}
			r.b.Delete(p.Key)
			r.head.tail, r.head.tailTime = seq, c.Time
			r.pending++
			if err := r.done(false); err != nil {
				return err
			}
			continue
		}
		key := rdfres.EntityKey(c.Entity)
		witness := entitySeqKey(kindBlob, key, seq)
		if c.After == nil {
			witness = seqKey(kindEnded, seq)
		}
		kept, err := exists(r.l.store, witness)
		if err != nil {
			return err
		}
		r.b.Delete(p.Key)
		switch {
		case kept:
			r.b.Set(entitySeqKey(kindHistory, key, seq), putChange(nil, &c))
		case c.After == nil:
			if err := r.forget(key, seq); err != nil {
				return err
			}
		default:
			r.b.Delete(entitySeqKey(kindHistory, key, seq))
		}
		r.head.tail, r.head.tailTime = seq, c.Time
		r.pending++
		if err := r.done(false); err != nil {
			return err
		}
	}
	if r.pending > 0 {
		r.b.DeleteRange([]byte{kindRelinked}, seqKey(kindRelinked, r.head.tail+1))
	}
	return r.done(true)
}

func exists(r kv.Reader, key []byte) (bool, error) {
	_, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
