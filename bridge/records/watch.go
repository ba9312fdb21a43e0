package records

import (
	"context"
	"errors"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/pgkv"
)

// ProcessName is the name of a process of this machine as a leader.
func ProcessName(pid int) string { return pgkv.Name(pid) }

// Watch reads the records of another process.
type Watch struct {
	store kv.Store
	led   kv.Led
	place Place
}

// Watch opens records for reading over a longer time. Without records it gives fs.ErrNotExist. Close it after the
// moments of Now.
func (p Place) Watch(ctx context.Context, o kv.OpenOptions) (*Watch, error) {
	o.ReadOnly = true
	s, err := p.open(ctx, o)
	if err != nil {
		return nil, err
	}
	led, ok := s.(kv.Led)
	if !ok {
		return nil, errors.Join(errors.New("the state in "+p.String()+" is of one process"), s.Close())
	}
	return &Watch{s, led, p}, nil
}

// Leader is the process with the right to write.
func (w *Watch) Leader(ctx context.Context) (kv.Leader, error) { return w.led.Leader(ctx) }

// Now is the present moment. Its Close keeps the watch open.
func (w *Watch) Now(ctx context.Context) (kv.Store, error) {
	now := w.store.Snapshot(ctx)
	m, err := readMarks(ctx, w.store)
	if err == nil {
		err = m.usable(w.place)
	}
	if err != nil {
		return nil, errors.Join(err, now.Close())
	}
	return &fixed{kv.Asker{Reader: now}, now, left{w.store}}, nil
}

// IsLed tells whether another process writes the records of a store opened for reading.
func IsLed(ctx context.Context, s kv.Store) (bool, error) {
	f, ok := s.(*fixed)
	if !ok {
		return false, nil
	}
	led, ok := f.store.(kv.Led)
	if !ok {
		return false, nil
	}
	l, err := led.Leader(ctx)
	return l.Leads, err
}

// Close ends the watch.
func (w *Watch) Close() error { return w.store.Close() }

// left is a store closed by its owner.
type left struct{ kv.Store }

func (left) Close() error { return nil }
