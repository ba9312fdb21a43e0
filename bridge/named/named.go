// Package named keeps the names of changed entities of a set, until they have been looked at.
//
// A client names changed entities once, and does not repeat an accepted request. So a request is
// kept before its answer, until a later look at its entities has ended well. One look is at all
// requests kept before it begins.
package named

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// most bounds the kept requests of a set, in bytes: they are read at once.
const most = 64 << 20

// ErrMany comes for a request without room beside the waiting ones.
var ErrMany = errors.New("too much that was named before has not been looked at yet")

// Told is the message of one request.
type Told struct {
	Entities []string `json:"entities,omitempty"`
	Unknown  bool     `json:"unknown,omitempty"` // others may have changed: everything is to be read
	Blank    bool     `json:"blank,omitempty"`   // blank nodes have changed: orphans may have, too
}

// Request is a kept request.
type Request struct {
	key  []byte
	told json.RawMessage // Told
}

// Gather joins the messages of requests, each entity once.
func Gather(due []Request) (*Told, error) {
	all := new(Told)
	for _, d := range due {
		var one Told
		if err := json.Unmarshal(d.told, &one); err != nil {
			return nil, err
		}
		all.Entities, all.Unknown = append(all.Entities, one.Entities...), all.Unknown || one.Unknown
		all.Blank = all.Blank || one.Blank
	}
	slices.Sort(all.Entities)
	all.Entities = slices.Compact(all.Entities)
	return all, nil
}

// Queue holds the kept requests of one set.
type Queue struct {
	records kv.Store
	set     string
	last    atomic.Uint64 // number of the last request
	bytes   atomic.Int64  // of all requests

	mu   sync.Mutex
	held map[string]bool // keys of requests whose time has not come
}

// Prefix begins the keys of a set's requests.
func Prefix(set string) []byte { return []byte("named/" + set + "/") }

// Open finds the kept requests of a set. No number is used twice.
func Open(ctx context.Context, records kv.Store, set string) (*Queue, error) {
	q := &Queue{records: records, set: set, held: map[string]bool{}}
	due, err := q.Due(ctx)
	for _, d := range due {
		q.bytes.Add(int64(len(d.told)))
	}
	if n := len(due); n > 0 {
		q.last.Store(binary.BigEndian.Uint64(due[n-1].key[len(Prefix(q.set)):]))
	}
	return q, err
}

// Keep keeps a request; it is durable when it returns.
func (q *Queue) Keep(ctx context.Context, what Told) error {
	h, err := q.Hold(ctx, what)
	if err == nil {
		h.Release()
	}
	return err
}

// Held is a kept request, due after its release or a restart.
type Held struct {
	q   *Queue
	req Request
}

// Hold keeps a request; it is durable when it returns. What is not known is always kept.
func (q *Queue) Hold(ctx context.Context, what Told) (*Held, error) {
	raw, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	if n := q.bytes.Load(); n+int64(len(raw)) > most && len(what.Entities) > 0 {
		return nil, fmt.Errorf("set %s: %w (%d MB): a full scan looks at everything", q.set, ErrMany, n>>20)
	}
	h := &Held{q, Request{binary.BigEndian.AppendUint64(Prefix(q.set), q.last.Add(1)), raw}}
	q.mu.Lock()
	q.held[string(h.req.key)] = true
	q.mu.Unlock()
	b := q.records.Batch()
	defer b.Close()
	b.Set(h.req.key, raw)
	if err := b.Commit(ctx, true); err != nil {
		h.Release() // it may be there after all
		return nil, fmt.Errorf("keep what was named of %s: %w", q.set, err)
	}
	q.bytes.Add(int64(len(raw)))
	return h, nil
}

// Release makes the request due.
func (h *Held) Release() {
	h.q.mu.Lock()
	delete(h.q.held, string(h.req.key))
	h.q.mu.Unlock()
}

// Drop forgets the request: nothing came of it.
func (h *Held) Drop(ctx context.Context) error {
	defer h.Release()
	return h.q.Forget(ctx, []Request{h.req})
}

func (q *Queue) holds(key []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held[string(key)]
}

// Due are the kept requests without the held ones, in their order.
func (q *Queue) Due(ctx context.Context) (out []Request, err error) {
	prefix := Prefix(q.set)
	for p, err := range q.records.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, fmt.Errorf("what was named of %s: %w", q.set, err)
		}
		if !q.holds(p.Key) {
			out = append(out, Request{bytes.Clone(p.Key), bytes.Clone(p.Value)})
		}
	}
	return out, nil
}

// Bytes is the size of the kept requests.
func (q *Queue) Bytes() int64 { return q.bytes.Load() }

// Forget forgets finished requests.
func (q *Queue) Forget(ctx context.Context, done []Request) error {
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
		q.bytes.Add(-int64(len(d.told)))
	}
	return nil
}
