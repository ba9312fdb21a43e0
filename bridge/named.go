package bridge

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// What is named from outside is told once: who was answered that it is taken does not
// tell it again. So a request is kept before it is answered, until a look that began
// after it and had what it names has ended well. A run of it that fails, is held or
// cancelled, or that the process does not survive, is begun again.

// mostDue bounds what is kept of a set, in bytes: it is read at once.
const mostDue = 64 << 20

// ErrManyDue comes for a request that cannot be kept beside all that wait.
var ErrManyDue = errors.New("too much that was named before has not been looked at yet")

// dueRequest is one request that is kept.
type dueRequest struct {
	key  []byte
	args json.RawMessage // ScanArgs
}

func duePrefix(set string) []byte { return []byte("named/" + set + "/") }

// openDue finds the number of the last request that is kept, none is used twice, and how
// much is.
func (s *set) openDue() error {
	due, err := s.due()
	for _, d := range due {
		s.dueBytes.Add(int64(len(d.args)))
	}
	if n := len(due); n > 0 {
		s.lastDue.Store(binary.BigEndian.Uint64(due[n-1].key[len(duePrefix(s.name)):]))
	}
	return err
}

// keepDue keeps a request; it is durable when it returns.
func (s *set) keepDue(args ScanArgs) error {
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
	if err := b.Commit(true); err != nil {
		return fmt.Errorf("keep what was named of %s: %w", s.name, err)
	}
	s.dueBytes.Add(int64(len(raw)))
	return nil
}

// due are the requests that are kept, in their order.
func (s *set) due() (out []dueRequest, err error) {
	prefix := duePrefix(s.name)
	for p, err := range s.bridge.records.Scan(prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, fmt.Errorf("what was named of %s: %w", s.name, err)
		}
		out = append(out, dueRequest{bytes.Clone(p.Key), bytes.Clone(p.Value)})
	}
	return out, nil
}

// forgetDue forgets requests that are answered for.
func (s *set) forgetDue(done []dueRequest) error {
	if len(done) == 0 {
		return nil
	}
	b := s.bridge.records.Batch()
	defer b.Close()
	for _, d := range done {
		b.Delete(d.key)
	}
	if err := b.Commit(false); err != nil { // what comes again is looked at again
		return fmt.Errorf("forget what was named of %s: %w", s.name, err)
	}
	for _, d := range done {
		s.dueBytes.Add(-int64(len(d.args)))
	}
	return nil
}

// beginDue begins a run for each request that is kept and has none that is queued.
func (s *set) beginDue() error {
	if s.source == nil {
		return nil // of dumps the newest is read whole
	}
	due, err := s.due()
	for _, d := range due {
		if _, _, startErr := s.bridge.runner.Start("hint:"+s.name, "again", d.args); err == nil {
			err = startErr
		}
	}
	return err
}
