package kv

// Forget is a view of s whose writes are forgotten: batches can be filled and
// committed, and nothing of it is ever read or stored. It is for looking at
// records by code that would also write them. Close of the view does nothing.
func Forget(s Store) Store { return forgetful{s} }

type forgetful struct{ Store }

func (s forgetful) Batch() Batch { return &forgetfulBatch{s.Store.Batch(), s.Store} }
func (s forgetful) Close() error { return nil }

type forgetfulBatch struct {
	Batch
	store Store
}

func (b *forgetfulBatch) Commit(bool) error {
	err := b.Batch.Close()
	b.Batch = b.store.Batch()
	return err
}
