package bridge

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// A client names changed entities once, and does not repeat an accepted request. So a
// request is kept before its answer, until a later look at its entities has ended well. A
// failed, held or cancelled run, or one lost with the process, is begun again.

// mostDue bounds the kept requests of a set, in bytes: they are read at once.
const mostDue = 64 << 20

// ErrManyDue comes for a request without room beside the waiting ones.
var ErrManyDue = errors.New("too much that was named before has not been looked at yet")

// dueRequest is one kept request.
type dueRequest struct {
	key  []byte
	args json.RawMessage // ScanArgs
}

// dueQueue holds the kept requests of one set.
type dueQueue struct {
	records kv.Store
	set     string
	last    atomic.Uint64 // number of the last request
	bytes   atomic.Int64  // of all requests
}

func duePrefix(set string) []byte { return []byte("named/" + set + "/") }

// open finds the number of the last kept request, since none is used twice, and the
// bytes of all.
func (q *dueQueue) open(ctx context.Context) error {
	due, err := q.all(ctx)
	for _, d := range due {
		q.bytes.Add(int64(len(d.args)))
	}
	if n := len(due); n > 0 {
		q.last.Store(binary.BigEndian.Uint64(due[n-1].key[len(duePrefix(q.set)):]))
	}
	return err
}

// keep keeps a request; it is durable when it returns.
func (q *dueQueue) keep(ctx context.Context, args ScanArgs) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if n := q.bytes.Load(); n+int64(len(raw)) > mostDue {
		return fmt.Errorf("set %s: %w (%d MB): a full scan looks at everything", q.set, ErrManyDue, n>>20)
	}
	b := q.records.Batch()
	defer b.Close()
	b.Set(binary.BigEndian.AppendUint64(duePrefix(q.set), q.last.Add(1)), raw)
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("keep what was named of %s: %w", q.set, err)
	}
	q.bytes.Add(int64(len(raw)))
	return nil
}

// all are the kept requests, in their order.
func (q *dueQueue) all(ctx context.Context) (out []dueRequest, err error) {
	prefix := duePrefix(q.set)
	for p, err := range q.records.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, fmt.Errorf("what was named of %s: %w", q.set, err)
		}
		out = append(out, dueRequest{bytes.Clone(p.Key), bytes.Clone(p.Value)})
	}
	return out, nil
}

// forget forgets finished requests.
func (q *dueQueue) forget(ctx context.Context, done []dueRequest) error {
	if len(done) == 0 {
		return nil
	}
	b := q.records.Batch()
	defer b.Close()
	for _, d := range done {
		b.Delete(d.key)
	}
	if err := b.Commit(ctx, false); err != nil { // a request not forgotten is looked at again
		return fmt.Errorf("forget what was named of %s: %w", q.set, err)
	}
	for _, d := range done {
		q.bytes.Add(-int64(len(d.args)))
	}
	return nil
}

// beginDue begins a run for each kept request without a queued one.
func (s *set) beginDue(ctx context.Context) error {
	if s.source == nil {
		return nil // of dumps the newest is read whole
	}
	due, err := s.due.all(ctx)
	for _, d := range due {
		if _, _, startErr := s.bridge.runner.Start("hint:"+s.name, "again", d.args); err == nil {
			err = startErr
		}
	}
	return err
}
