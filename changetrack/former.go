package changetrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// ErrHasLog comes from a rename to a set with changes of its own.
var ErrHasLog = errors.New("the set has a log of its own")

// Forget removes the log of a set and all states of its entities, in a batch of any store around
// store. No tracker has the set open.
func Forget(ctx context.Context, store kv.Store, batch kv.Batch, set string) error {
	id, known, err := idOf(ctx, store, set)
	if err != nil || !known {
		return err
	}
	b := kv.Join(store, batch)
	b.DeleteRange(setPrefix(id), kv.PrefixEnd(setPrefix(id)))
	b.Delete(nameKey(set))
	return nil
}

// Rename gives a log the name of another set without a log, or with an empty one. See Forget.
func Rename(ctx context.Context, store kv.Store, batch kv.Batch, from, to string) error {
	id, known, err := idOf(ctx, store, from)
	if err == nil && !known {
		err = fmt.Errorf("set %s has no log", from)
	}
	if err != nil {
		return err
	}
	if other, known, err := idOf(ctx, store, to); err != nil {
		return err
	} else if known {
		head, err := readHeadRecord(ctx, kv.Prefix(store, setPrefix(other)))
		if err == nil && head.seq > 0 {
			err = fmt.Errorf("set %s: %w", to, ErrHasLog)
		}
		if err != nil {
			return err
		}
		if err := Forget(ctx, store, batch, to); err != nil {
			return err
		}
	}
	b := kv.Join(store, batch)
	b.Delete(nameKey(from))
	b.Set(nameKey(to), binary.BigEndian.AppendUint32(nil, id))
	return nil
}

func nameKey(set string) []byte { return append(append([]byte(nil), namesKey...), set...) }

func idOf(ctx context.Context, r kv.Reader, set string) (id uint32, known bool, err error) {
	v, err := r.Get(ctx, nameKey(set))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case len(v) != 4:
		return 0, false, fmt.Errorf("set %q has no readable number: %w", set, errDamaged)
	}
	return binary.BigEndian.Uint32(v), true, nil
}
