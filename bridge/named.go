package bridge

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

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

func duePrefix(set string) []byte { return []byte("named/" + set + "/") }

// openDue finds the number of the last kept request, since none is used twice, and the
// bytes of all.
func (s *set) openDue(ctx context.Context) error {
	due, err := s.due(ctx)
	for _, d := range due {
		s.dueBytes.Add(int64(len(d.args)))
	}
	if n := len(due); n > 0 {
		s.lastDue.Store(binary.BigEndian.Uint64(due[n-1].key[len(duePrefix(s.name)):]))
	}
	return err
}

// keepDue keeps a request; it is durable when it returns.
func (s *set) keepDue(ctx context.Context, args ScanArgs) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if n := s.dueBytes.Load(); n+int64(len(raw)) > mostDue {
		return fmt.Errorf("set %s: %w (%d MB): a full scan looks at everything", s.name, ErrManyDue, n>>20)
	}
	b := s.bridge.records.Batch()
	defer b.Close()
	b.Set(binary.BigEndian.AppendUint64(duePrefix(s.name), s.lastDue.Add(1)), raw)
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("keep what was named of %s: %w", s.name, err)
	}
	s.dueBytes.Add(int64(len(raw)))
	return nil
}

// due are the kept requests, in their order.
func (s *set) due(ctx context.Context) (out []dueRequest, err error) {
	prefix := duePrefix(s.name)
	for p, err := range s.bridge.records.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, fmt.Errorf("what was named of %s: %w", s.name, err)
		}
		out = append(out, dueRequest{bytes.Clone(p.Key), bytes.Clone(p.Value)})
	}
	return out, nil
}

// forgetDue forgets finished requests.
func (s *set) forgetDue(ctx context.Context, done []dueRequest) error {
	if len(done) == 0 {
		return nil
	}
	b := s.bridge.records.Batch()
	defer b.Close()
	for _, d := range done {
		b.Delete(d.key)
	}
	if err := b.Commit(ctx, false); err != nil { // a request not forgotten is looked at again
		return fmt.Errorf("forget what was named of %s: %w", s.name, err)
	}
	for _, d := range done {
		s.dueBytes.Add(-int64(len(d.args)))
	}
	return nil
}

// beginDue begins a run for each kept request without a queued one.
func (s *set) beginDue(ctx context.Context) error {
	if s.source == nil {
		return nil // of dumps the newest is read whole
	}
	due, err := s.due(ctx)
	for _, d := range due {
		if _, _, startErr := s.bridge.runner.Start("hint:"+s.name, "again", d.args); err == nil {
			err = startErr
		}
	}
	return err
}
