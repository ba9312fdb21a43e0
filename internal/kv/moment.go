package kv

import (
	"context"
	"sync"
)

// Moment is a fixed state of a store for readers over any time. Until Freeze it keeps no snapshot:
// the store itself is still in that state. Its owner calls Freeze before each write its readers
// must not see. Then one snapshot serves all of them, until the last holder has let go.
type Moment struct {
	store Store

	mu   sync.Mutex // guards the fields below
	snap Snapshot   // nil before Freeze
	refs int        // holders, and open readers of snap
}

// NewMoment is the present state of a store, with one holder.
func NewMoment(s Store) *Moment { return &Moment{store: s, refs: 1} }

// Hold adds a holder.
func (m *Moment) Hold() *Moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refs++
	return m
}

// Release is called once by each holder. Open readers stay readable.
func (m *Moment) Release() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs--; m.refs > 0 || m.snap == nil {
		return nil
	}
	return m.snap.Close()
}

// Freeze keeps the state through the writes to come. Later calls do nothing.
func (m *Moment) Freeze(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snap == nil {
		m.snap = m.store.Snapshot(context.WithoutCancel(ctx)) // of all readers
	}
}

// Frozen tells whether there may have been writes since.
func (m *Moment) Frozen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snap != nil
}

// Snapshot opens the state for one reader. The caller is a holder.
func (m *Moment) Snapshot(ctx context.Context) Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snap == nil {
		return m.store.Snapshot(ctx)
	}
	m.refs++
	return &frozen{Asker{m.snap}, sync.OnceValue(m.Release)}
}

// frozen is one reader's share of a snapshot.
type frozen struct {
	Asker
	release func() error
}

func (f *frozen) Close() error { return f.release() }
