package kv

import "context"

// Forget is a view of s that forgets writes: batches can be filled and
// committed, and nothing of it is ever read or stored. It is for looking at
// records by code made to write them too. Close of the view does nothing.
func Forget(s Store) Store { return forgetful{s, Asker{s}} }

type forgetful struct {
	Store
	Asker
}

func (s forgetful) Batch() Batch { return &forgetfulBatch{s.Store.Batch(), s.Store} }
func (s forgetful) Close() error { return nil }

type forgetfulBatch struct {
	Batch
	store Store
}

func (b *forgetfulBatch) Commit(ctx context.Context, _ bool) error {
	err := b.Batch.Close()
	b.Batch = b.store.Batch()
	if err == nil {
		err = NotBegun(ctx)
	}
	return err
}
