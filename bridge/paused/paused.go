// Package paused remembers paused schedules over restarts: those of sets and of destinations, in
// the records of a bridge.
package paused

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Set is the key of a set, Destination of a destination.
func Set(name string) []byte { return []byte("paused-set/" + name) }

// Destination is the key of a destination.
func Destination(name string) []byte { return []byte("paused/" + name) }

// Is tells whether a schedule is paused.
func Is(ctx context.Context, records kv.Store, key []byte) (bool, error) {
	_, err := records.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Put pauses a schedule, or lets it go on.
func Put(ctx context.Context, records kv.Store, key []byte, on bool) error {
	batch := records.Batch()
	defer batch.Close()
	if on {
		batch.Set(key, []byte{1})
	} else {
		batch.Delete(key)
	}
	return batch.Commit(ctx, true)
}
