package changetrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Rebase appends a move of the set to other addresses to the log: a Change of the kind Rebased with
// the note and without an entity. It has a sequence and a time like every change, so documents
// under the old addresses can be told from later ones. It is durable when Rebase returns.
//
// Nothing else moves: neither the states of entities nor a held candidate.
func (l *Log) Rebase(ctx context.Context, note string) (Change, error) {
	if err := l.lock(ctx); err != nil {
		return Change{}, fmt.Errorf("rebase set %s: %w", l.name, err)
	}
	defer l.unlock()
	head, err := readHeadRecord(ctx, l.store)
	if err != nil {
		return Change{}, fmt.Errorf("rebase set %s: %w", l.name, err)
	}
	c := Change{Sequence: head.seq + 1, Time: l.nextTime(head), Kind: Rebased, Finder: "rebase", Note: note}
	head.seq, head.time = c.Sequence, c.Time
	b := l.store.Batch()
	defer b.Close()
	b.Set(seqKey(kindLog, c.Sequence), putChange(nil, &c))
	b.Set(rebasedKey, putChange(binary.BigEndian.AppendUint64(nil, c.Sequence), &c))
	b.Set(headKey, putHead(nil, &head))
	l.freeze(ctx)
	if err := b.Commit(ctx, true); err != nil {
		return Change{}, fmt.Errorf("rebase set %s: %w", l.name, err)
	}
	l.show(head)
	return c, nil
}

// Rebased is the last change of that kind, also after retention took it out of the log; false when
// there was none.
func (v *View) Rebased(ctx context.Context) (Change, bool, error) {
	if v.err != nil {
		return Change{}, false, v.err
	}
	b, err := v.r.Get(ctx, rebasedKey)
	if errors.Is(err, kv.ErrNotFound) {
		return Change{}, false, nil
	}
	if err != nil {
		return Change{}, false, err
	}
	if len(b) < 8 {
		return Change{}, false, fmt.Errorf("last change of addresses: %w", errDamaged)
	}
	c, err := readChange(binary.BigEndian.Uint64(b), b[8:])
	return c, err == nil, err
}
