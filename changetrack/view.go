package changetrack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// View is one consistent state of the log. Close it. Safe for concurrent use.
//
// A view taken during the commit of a scan shows the state before the scan.
type View struct {
	r     kv.Reader
	l     *Log
	head  headRecord
	err   error // every question is answered with it
	close func() error
}

// View is the present state.
func (l *Log) View(ctx context.Context) *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.viewOf(ctx, l.now)
}

func (l *Log) viewOf(ctx context.Context, m *kv.Moment) *View {
	snap := m.Snapshot(ctx)
	v := &View{l: l, r: snap, close: sync.OnceValue(snap.Close)}
	v.head, v.err = readHeadRecord(ctx, v.r)
	if v.err != nil {
		v.err = fmt.Errorf("read log of set %s: %w", l.name, v.err)
	}
	return v
}

// Close gives the snapshot free. It may be called twice.
func (v *View) Close() error { return v.close() }

// Moment is one consistent state of the log, for views at any later time. It keeps a snapshot only
// after the log has gone on. Release it.
type Moment struct {
	l *Log
	m *kv.Moment
}

// Moment is the present state.
func (l *Log) Moment() Moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Moment{l, l.now.Hold()}
}

// Hold is the same moment for one more holder.
func (m Moment) Hold() Moment { return Moment{m.l, m.m.Hold()} }

// View opens the state.
func (m Moment) View(ctx context.Context) *View { return m.l.viewOf(ctx, m.m) }

// Release is called once by each holder. Open views stay readable.
func (m Moment) Release() error { return m.m.Release() }

// Err is the reason why the state cannot be read. Head and its like are zero then; do not take them
// for an empty log.
func (v *View) Err() error { return v.err }

// Head is the last change; 0 and the zero time when there is none.
func (v *View) Head() (seq uint64, t time.Time) { return v.head.seq, v.head.time }

// Tail: the log is complete after this sequence and time; 0 at first, more when
// Retain has dropped changes.
func (v *View) Tail() (seq uint64, t time.Time) { return v.head.tail, v.head.tailTime }

// Resources is the number of current entities.
func (v *View) Resources() int64 { return v.head.resources }

// Triples is the number of triples of all current descriptions; a triple in two descriptions counts
// twice.
func (v *View) Triples() int64 { return v.head.triples }

// BaselineEnd is the end of the first complete scan.
func (v *View) BaselineEnd() (seq uint64, t time.Time, ok bool) {
	return v.head.baseSeq, v.head.baseTime, v.head.baseline
}

// Held is the scan waiting for a person, or nil.
func (v *View) Held(ctx context.Context) *Held {
	c, err := readHeld(ctx, v.r)
	if err != nil || c == nil {
		return nil
	}
	return &c.Held
}

// HeldDeletions yields the deletions of the held scan, in the order of their keys, after one of
// them; nil is the beginning. The sequence ends after the first error.
func (v *View) HeldDeletions(ctx context.Context, after *rdfres.Digest) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		c, err := readHeld(ctx, v.r)
		if err = cmp.Or(v.err, err); err != nil {
			yield(State{}, err)
			return
		}
		if c == nil {
			return
		}
		prefix := candidatePrefix(c.Generation)
		from := prefix
		if after != nil {
			from = append(candidateKey(c.Generation, *after), 0)
		}
		for p, err := range v.r.Scan(ctx, from, kv.PrefixEnd(prefix)) {
			var st State
			if err == nil {
				st, err = v.EntityByKey(ctx, rdfres.Digest(p.Key[len(prefix):]))
			}
			if !yield(st, err) || err != nil {
				return
			}
		}
	}
}

// LastScan is the last complete scan, held ones included; zero and nil when there was none.
func (v *View) LastScan(ctx context.Context) (t time.Time, res *ScanResult) {
	b, err := v.r.Get(ctx, lastScanKey)
	if err != nil {
		return time.Time{}, nil
	}
	s, err := readLastScan(b)
	if err != nil {
		return time.Time{}, nil
	}
	return s.Time, &s.Result
}

// Changes yields changes with after < sequence, in order. It begins after Tail: changes dropped by
// Retain are left out, so a returning caller compares its own position with Tail first.
func (v *View) Changes(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if v.err != nil {
			yield(Change{}, v.err)
			return
		}
		if after >= v.head.seq { // even if nothing could come after it
			return
		}
		want := max(after, v.head.tail) + 1
		var some []Change
		most := 1 // grows: a reader may need few
		give := func() bool {
			for c, err := range whole(ctx, v.r, some) {
				if !yield(c, err) || err != nil {
					return false
				}
			}
			some, most = some[:0], min(2*most, readAhead)
			return true
		}
		for p, err := range v.r.Scan(ctx, seqKey(kindLog, want), seqKey(kindLog, v.head.seq+1)) {
			var c Change
			if err == nil {
				if seq := lastSeq(p.Key); seq != want {
					err = fmt.Errorf("log: sequence %d follows %d: %w", seq, want-1, errDamaged)
				} else {
					c, err = readChange(seq, p.Value)
				}
			}
			if err != nil {
				if give() {
					yield(Change{}, err)
				}
				return
			}
			if some = append(some, c); len(some) >= most && !give() {
				return
			}
			want++
		}
		if give() && want <= v.head.seq {
			yield(Change{}, fmt.Errorf("log ends after sequence %d, want %d: %w", want-1, v.head.seq, errDamaged))
		}
	}
}

// readAhead is how many changes are read at once.
const readAhead = 128

// whole yields changes with the versions after them, wherever stored.
func whole(ctx context.Context, r kv.Reader, some []Change) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		var keys [][]byte
		for i := range some {
			if some[i].After == elsewhere {
				keys = append(keys, stateKey(rdfres.EntityKey(some[i].Entity)))
			}
		}
		states, err := kv.GetMany(ctx, r, keys)
		for _, c := range some {
			if err == nil && c.After == elsewhere {
				c, err = wholeOf(ctx, r, c, states[0])
				states = states[1:]
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// SequenceAt is the last sequence with time <= t, 0 when t is before the first.
// ErrBeyondRetention when t is before Tail.
func (v *View) SequenceAt(ctx context.Context, t time.Time) (uint64, error) {
	if v.err != nil {
		return 0, v.err
	}
	if v.head.tail > 0 && t.Before(v.head.tailTime) {
		return 0, fmt.Errorf("sequence at %s: the log begins at %s: %w",
			t.Format(time.RFC3339Nano), v.head.tailTime.Format(time.RFC3339Nano), ErrBeyondRetention)
	}
	var failed error
	n := sort.Search(int(v.head.seq-v.head.tail), func(i int) bool {
		seq := v.head.tail + 1 + uint64(i)
		b, err := v.r.Get(ctx, seqKey(kindLog, seq))
		var at time.Time
		if err == nil {
			at, err = changeTime(b)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("sequence at %s: %d: %w", t.Format(time.RFC3339Nano), seq, err)
		}
		return failed != nil || at.After(t)
	})
	if failed != nil {
		return 0, failed
	}
	return v.head.tail + uint64(n), nil
}

// Entity gives the state of one entity; kv.ErrNotFound if it was never known, or was deleted before
// the retention.
func (v *View) Entity(ctx context.Context, iri string) (State, error) {
	return v.EntityByKey(ctx, rdfres.EntityKey(iri))
}

// EntityByKey finds by rdfres.EntityKey.
func (v *View) EntityByKey(ctx context.Context, k rdfres.Digest) (State, error) {
	if v.err != nil {
		return State{}, v.err
	}
	s, _, err := stateOf(ctx, v.r, k)
	if err != nil {
		return State{}, err
	}
	return v.state(ctx, k, s)
}

// Versions gives the present versions of entities in their order, nil for deleted and unknown ones. They are read at
// once.
func (v *View) Versions(ctx context.Context, entities []string) ([]*Version, error) {
	if v.err != nil {
		return nil, v.err
	}
	keys := make([][]byte, len(entities))
	for i, entity := range entities {
		keys[i] = stateKey(rdfres.EntityKey(entity))
	}
	states, err := kv.GetMany(ctx, v.r, keys)
	if err != nil {
		return nil, err
	}
	versions := make([]*Version, len(entities))
	for i, b := range states {
		if b == nil {
			continue
		}
		s, err := readState(b)
		if err != nil {
			return nil, err
		}
		if s.entity == entities[i] {
			versions[i] = s.current
		}
	}
	return versions, nil
}

// stateOf reads the state of a known entity, or gives kv.ErrNotFound. raw is nil for a deleted one.
func stateOf(ctx context.Context, r kv.Reader, k rdfres.Digest) (s *stateRecord, raw []byte, err error) {
	raw, err = r.Get(ctx, stateKey(k))
	b := raw
	if errors.Is(err, kv.ErrNotFound) {
		b, err = r.Get(ctx, goneKey(k))
	}
	if err != nil {
		return nil, nil, err
	}
	s, err = readState(b)
	if err == nil && rdfres.EntityKey(s.entity) != k {
		return nil, nil, kv.ErrNotFound
	}
	return s, raw, err
}

// knownOf reads the states of entities in their order, nil for unknown ones.
func knownOf(ctx context.Context, r kv.Reader, entities []rdfres.Digest) ([][]byte, error) {
	keys := make([][]byte, 2*len(entities))
	for i, k := range entities {
		keys[i], keys[len(entities)+i] = stateKey(k), goneKey(k)
	}
	found, err := kv.GetMany(ctx, r, keys)
	if err != nil {
		return nil, err
	}
	states := found[:len(entities)]
	for i := range states {
		if states[i] == nil {
			states[i] = found[len(entities)+i]
		}
	}
	return states, nil
}

// knownStates yields the states of current and of deleted entities in the order of their keys: those from lo on, and
// before hi unless it is zero. The first and the last one may be outside of the range.
func knownStates(ctx context.Context, r kv.Reader, lo, hi rdfres.Digest) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		next, stop := iter.Pull2(r.Scan(ctx, goneKey(lo), endOf(kindGone, hi)))
		defer stop()
		gone, err, some := next()
		before := func(key []byte) bool { // yields the deleted ones before a key; nil: all
			for some && (err != nil || key == nil || bytes.Compare(gone.Key[1:], key) < 0) {
				if !yield(gone, err) || err != nil {
					return false
				}
				gone, err, some = next()
			}
			return true
		}
		for p, err := range r.Scan(ctx, stateKey(lo), endOf(kindState, hi)) {
			if err == nil && !before(p.Key[1:]) || !yield(p, err) || err != nil {
				return
			}
		}
		before(nil)
	}
}

func (v *View) state(ctx context.Context, k rdfres.Digest, s *stateRecord) (State, error) {
	st := State{Entity: s.entity, Current: s.current, Changes: int(s.changes), First: s.first}
	if s.current == nil {
		c, err := v.change(ctx, k, s.delSeq)
		switch {
		case err == nil:
			st.Deleted = &c
		case !errors.Is(err, kv.ErrNotFound):
			return State{}, err
		}
	}
	return st, nil
}

// change finds a change of an entity in the log or, when it has left it, in the
// history of the entity.
func (v *View) change(ctx context.Context, k rdfres.Digest, seq uint64) (Change, error) {
	b, err := v.r.Get(ctx, entitySeqKey(kindHistory, k, seq))
	if err == nil && len(b) == 0 {
		b, err = v.r.Get(ctx, seqKey(kindLog, seq))
	}
	if err != nil {
		return Change{}, err
	}
	return readWhole(ctx, v.r, seq, b)
}

// readWhole reads a change with the version after it, wherever stored.
func readWhole(ctx context.Context, r kv.Reader, seq uint64, b []byte) (Change, error) {
	c, err := readChange(seq, b)
	if err != nil {
		return c, err
	}
	for c, err = range whole(ctx, r, []Change{c}) {
	}
	return c, err
}

func wholeOf(ctx context.Context, r kv.Reader, c Change, state []byte) (_ Change, err error) {
	if c.After, err = versionIn(ctx, r, &c, state); err != nil {
		return Change{}, fmt.Errorf("version %d of %s: %w", c.Sequence, c.Entity, err)
	}
	return c, nil
}

// versionAfter is the version made by a change: the current one, or the one ended by the next
// change of the entity.
func versionAfter(ctx context.Context, r kv.Reader, c *Change) (*Version, error) {
	b, err := r.Get(ctx, stateKey(rdfres.EntityKey(c.Entity)))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return versionIn(ctx, r, c, b)
}

// versionIn is versionAfter with the state record of the entity, nil for a deleted one.
func versionIn(ctx context.Context, r kv.Reader, c *Change, state []byte) (*Version, error) {
	if state != nil {
		s, err := readState(state)
		if err == nil && s.entity != c.Entity {
			err = errDamaged
		}
		if err != nil {
			return nil, err
		}
		if s.current != nil && s.current.Sequence == c.Sequence {
			return s.current, nil
		}
	}
	for next, err := range history(ctx, r, rdfres.EntityKey(c.Entity), c.Sequence+1) {
		switch {
		case err != nil:
			return nil, err
		case next.Entity != c.Entity:
		case next.Before != nil && next.Before.Sequence == c.Sequence:
			return next.Before, nil
		default:
			return nil, errDamaged
		}
	}
	return nil, errDamaged
}

// history yields changes of an entity from a sequence on, as they are written, and
// possibly some of others. A first change in the log is not among them.
func history(ctx context.Context, r kv.Reader, k rdfres.Digest, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for p, err := range r.Scan(ctx, entitySeqKey(kindHistory, k, from), kv.PrefixEnd(shortEntityKey(kindHistory, k))) {
			var c Change
			if err == nil {
				seq, b := lastSeq(p.Key), p.Value
				if len(b) == 0 {
					b, err = r.Get(ctx, seqKey(kindLog, seq))
				}
				if err == nil {
					c, err = readChange(seq, b)
				}
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// Current yields current entities with lo <= EntityKey, and < hi unless hi is zero, in the order of
// EntityKey.
func (v *View) Current(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[State, error] {
	return v.states(ctx, lo, hi, v.r.Scan(ctx, stateKey(lo), endOf(kindState, hi)))
}

// Known is Current with the deleted entities, until they are forgotten. History of each tells
// whether it existed at a past position of the log.
func (v *View) Known(ctx context.Context, lo, hi rdfres.Digest) iter.Seq2[State, error] {
	return v.states(ctx, lo, hi, knownStates(ctx, v.r, lo, hi))
}

// endOf is the end of a range of states of a kind; hi zero: of all. The first and the last one may be outside of the
// range.
func endOf(kind byte, hi rdfres.Digest) []byte {
	if hi.IsZero() {
		return []byte{kind + 1}
	}
	return kv.PrefixEnd(entityKey(kind, hi)[:1+stateKeyBytes])
}

func outside(key, lo, hi *rdfres.Digest) bool {
	return bytes.Compare(key[:], lo[:]) < 0 || !hi.IsZero() && bytes.Compare(key[:], hi[:]) >= 0
}

func (v *View) states(ctx context.Context, lo, hi rdfres.Digest, records iter.Seq2[kv.Pair, error]) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if v.err != nil {
			yield(State{}, v.err)
			return
		}
		for p, err := range records {
			var s *stateRecord
			if err == nil {
				s, err = readState(p.Value)
			}
			var st State
			if err == nil {
				key := rdfres.EntityKey(s.entity)
				if outside(&key, &lo, &hi) {
					continue
				}
				st, err = v.state(ctx, key, s)
			}
			if !yield(st, err) || err != nil {
				return
			}
		}
	}
}

// EntityGraph is an entity with the digest of its graph.
type EntityGraph struct {
	Entity string
	rdfres.InventoryEntry
}

// Graphs yields the entities with lo <= EntityKey, and < hi unless hi is zero, in the order of EntityKey: each with
// its graph at a position of the log not before Tail, zero if it was not there. Deleted entities are among them,
// unless the position is the head: nothing is read of them then.
func (v *View) Graphs(ctx context.Context, lo, hi rdfres.Digest, at uint64) iter.Seq2[EntityGraph, error] {
	return func(yield func(EntityGraph, error) bool) {
		err := v.err
		if err == nil && at < v.head.tail {
			err = fmt.Errorf("graphs at %d: the log begins after %d: %w", at, v.head.tail, ErrBeyondRetention)
		}
		if err != nil {
			yield(EntityGraph{}, err)
			return
		}
		records := v.r.Scan(ctx, stateKey(lo), endOf(kindState, hi))
		if at < v.head.seq {
			records = knownStates(ctx, v.r, lo, hi)
		}
		for p, err := range records {
			var s peek
			var e EntityGraph
			if err == nil {
				s, err = peekState(p.Value)
			}
			if err == nil {
				e.Entity = string(s.entity)
				if e.Key = rdfres.EntityKey(e.Entity); outside(&e.Key, &lo, &hi) {
					continue
				}
				e.Graph, err = v.graphAt(ctx, &e, &s, at)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// graphAt is the graph of an entity at a position of the log, zero if it was not there.
func (v *View) graphAt(ctx context.Context, e *EntityGraph, s *peek, at uint64) (rdfres.Digest, error) {
	switch {
	case s.first > at:
		return rdfres.Digest{}, nil
	case s.last <= at:
		return s.graph, nil
	}
	for next, err := range history(ctx, v.r, e.Key, at+1) { // the first one after it tells what was before
		if err != nil || next.Entity == e.Entity {
			if next.Before == nil {
				return rdfres.Digest{}, err
			}
			return next.Before.Graph, nil
		}
	}
	return rdfres.Digest{}, fmt.Errorf("state of %s at %d: %w", e.Entity, at, errDamaged)
}

// History yields the changes of one entity within retention, oldest first: those in the log, and
// those with a kept version.
func (v *View) History(ctx context.Context, iri string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if v.err != nil {
			yield(Change{}, v.err)
			return
		}
		key := rdfres.EntityKey(iri)
		s, raw, err := stateOf(ctx, v.r, key)
		if errors.Is(err, kv.ErrNotFound) {
			return
		}
		give := func(c Change, err error) bool {
			if err == nil && c.After == elsewhere {
				c, err = wholeOf(ctx, v.r, c, raw)
			}
			if err != nil {
				yield(Change{}, fmt.Errorf("history of %s: %w", iri, err))
				return false
			}
			return yield(c, nil)
		}
		if err != nil {
			give(Change{}, err)
			return
		}
		if s.firstSeq > v.head.tail { // the first change is in the log alone
			b, err := v.r.Get(ctx, seqKey(kindLog, s.firstSeq))
			if errors.Is(err, kv.ErrNotFound) {
				err = errDamaged
			}
			var c Change
			if err == nil {
				c, err = readChange(s.firstSeq, b)
			}
			if !give(c, err) {
				return
			}
		}
		for c, err := range history(ctx, v.r, key, 0) {
			if err == nil && c.Entity != iri {
				continue
			}
			if !give(c, err) {
				return
			}
		}
	}
}

// Ref names a version of an entity.
type Ref struct {
	Entity   string
	Sequence uint64
}

// Representations gives the bytes of versions in their order, an empty Blob for one not kept. They are read at once.
func (v *View) Representations(ctx context.Context, refs []Ref) ([]Blob, error) {
	if v.err != nil {
		return nil, v.err
	}
	keys := make([][]byte, len(refs))
	for i, r := range refs {
		keys[i] = entitySeqKey(kindBlob, rdfres.EntityKey(r.Entity), r.Sequence)
	}
	found, err := kv.GetMany(ctx, v.r, keys)
	if err != nil {
		return nil, err
	}
	blobs := make([]Blob, len(refs))
	for i, b := range found {
		if b == nil {
			continue
		}
		if blobs[i], err = readBlob(b); err != nil {
			return nil, fmt.Errorf("representation of %s: %w", clip.Middle(refs[i].Entity), err)
		}
	}
	return blobs, nil
}

// IsKept tells whether there is a representation.
func (b *Blob) IsKept() bool { return b.Deflated != nil || b.plain != nil }

// Representation gives the bytes of a version current or within retention; kv.ErrNotFound
// otherwise.
func (v *View) Representation(ctx context.Context, iri string, sequence uint64) (Blob, error) {
	if v.err != nil {
		return Blob{}, v.err
	}
	b, err := v.r.Get(ctx, entitySeqKey(kindBlob, rdfres.EntityKey(iri), sequence))
	if err != nil {
		return Blob{}, err
	}
	return readBlob(b)
}
