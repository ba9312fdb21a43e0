package ledger

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Fault is a resource that is pending or failed.
type Fault struct {
	Loc    string    `json:"loc"`
	Entity string    `json:"entity,omitempty"`
	State  string    `json:"state"`
	Reason string    `json:"reason"`
	Tries  int       `json:"tries"`
	Next   time.Time `json:"next"`
	First  time.Time `json:"first"`
	Time   time.Time `json:"change,omitzero"` // time of the change that is not applied
	Item   []byte    `json:"item"`            // the source's entry; the feed reads it

	List     bool   `json:"list,omitempty"`     // it is a list, and what that names is not known
	Unread   bool   `json:"unread,omitempty"`   // so it is assumed of a new entry without RDF
	Unseen   bool   `json:"unseen,omitempty"`   // a list names it, and nothing of it ever came: it may be a list
	Run      string `json:"run,omitempty"`      // the run that tried it; it is not tried twice in one
	Doubted  string `json:"doubted,omitempty"`  // the first run that received what is not believed yet
	Came     string `json:"came,omitempty"`     // its digest; the same in a later run is believed
	Blocked  bool   `json:"blocked,omitempty"`  // somebody else's file is at its path
	Replaces []Hash `json:"replaces,omitempty"` // former locations of its entity, kept until it is fetched
}

// AsRecorded is the Doubted of a fault whose Came is a recorded state.
const AsRecorded = "recorded"

// Replace adds locations that go when the resource is stored.
func (f *Fault) Replace(locs []Hash) { f.Replaces = Union(f.Replaces, locs) }

// Union appends the new ones of b to a.
func Union(a, b []Hash) []Hash {
	for _, loc := range b {
		if !slices.Contains(a, loc) {
			a = append(a, loc)
		}
	}
	return a
}

// Waits tells that the pause is not over. A pause over the longest was made before the clock was set back, and
// does not count.
func (f *Fault) Waits(now time.Time, longest time.Duration) bool {
	return f.Next.After(now) && f.Next.Sub(now) <= longest
}

// MayBeList tells that the failing entry may be a list itself: fewer than three tries over an hour prove nothing.
// A first try in the future was made before the clock was set back.
func (f *Fault) MayBeList(now time.Time) bool {
	return f.Unseen && (f.Tries < 3 || !f.First.After(now) && now.Sub(f.First) < time.Hour)
}

// FaultOr is a fault, or why it cannot be read.
type FaultOr struct {
	*Fault
	Err error
}

// Fault reads the fault of a resource, nil for none.
func (l *Ledger) Fault(ctx context.Context, loc Hash) (*Fault, error) {
	if l.noFaults.Load() {
		return nil, nil
	}
	raw, err := l.store.Get(ctx, Key(KindFault, l.dest, loc))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeFault(raw)
}

func decodeFault(raw []byte) (*Fault, error) {
	f := &Fault{}
	if err := json.Unmarshal(raw, f); err != nil {
		return nil, fmt.Errorf("%w: fault: %w", ErrDamaged, err)
	}
	return f, nil
}

// Faults yields all faults, or those behind a location, from one consistent state. The sequence
// ends after the first error.
func (l *Ledger) Faults(ctx context.Context, behind ...Hash) iter.Seq2[Hash, FaultOr] {
	return func(yield func(Hash, FaultOr) bool) {
		if l.noFaults.Load() {
			return
		}
		prefix := Key(KindFault, l.dest)
		snap := l.store.Snapshot(ctx)
		defer snap.Close()
		for pair, err := range snap.Scan(ctx, After(KindFault, l.dest, behind...), kv.PrefixEnd(prefix)) {
			var loc Hash
			var f *Fault
			if err == nil {
				copy(loc[:], pair.Key[len(prefix):])
				f, err = decodeFault(pair.Value)
			}
			if !yield(loc, FaultOr{f, err}) || err != nil {
				return
			}
		}
	}
}

// Lacks tells of a location without a record.
func (l *Ledger) Lacks(ctx context.Context, loc Hash) bool {
	rec, err := l.Record(ctx, loc)
	return err == nil && rec == nil
}

// PutFault adds a fault to a batch.
func (l *Ledger) PutFault(b kv.Batch, loc Hash, f *Fault) {
	raw, err := json.Marshal(f)
	if err != nil {
		panic("ledger: fault cannot be written: " + err.Error()) // plain fields only
	}
	l.noFaults.Store(false)
	if len(f.Replaces) > 0 {
		l.mu.Lock()
		for _, left := range f.Replaces {
			if l.replaced != nil { // else they are found
				l.replaced[left] = true
			}
		}
		l.mu.Unlock()
	}
	l.uncount(b)
	b.Set(Key(KindFault, l.dest, loc), raw)
}

// CountFaults counts all faults. Between runs the number is on record. During a run, which
// may be one of millions of faults, it may be a twentieth out.
func (l *Ledger) CountFaults(ctx context.Context) (int64, error) {
	if l.noFaults.Load() {
		return 0, nil
	}
	raw, err := l.store.Get(ctx, Key(KindFaults, l.dest))
	if err == nil && len(raw) == 8 {
		return int64(binary.BigEndian.Uint64(raw)), nil
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return 0, err
	}
	l.counting.Lock()
	defer l.counting.Unlock()
	if l.counted > 20*l.touched.Load() {
		return l.counted, nil
	}
	l.touched.Store(0)
	n := int64(0)
	prefix := Key(KindFault, l.dest)
	snap := l.store.Snapshot(ctx)
	defer snap.Close()
	for _, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			l.counted = 0
			return 0, err
		}
		n++
	}
	l.counted = n
	return n, nil
}

// KeepCount puts the number of faults on record, until one comes or goes. Nothing is being
// written meanwhile.
func (l *Ledger) KeepCount(ctx context.Context) error {
	if l.noFaults.Load() {
		return nil
	}
	key := Key(KindFaults, l.dest)
	if _, err := l.store.Get(ctx, key); !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	l.touched.Store(math.MaxInt64 / 20)
	n, err := l.CountFaults(ctx)
	if err != nil {
		return err
	}
	b := l.store.Batch()
	defer b.Close()
	b.Set(key, binary.BigEndian.AppendUint64(nil, uint64(n)))
	return b.Commit(ctx, false) // it can be counted again
}

// uncount adds to a batch that the recorded number of faults is no longer right.
func (l *Ledger) uncount(b kv.Batch) {
	l.touched.Add(1)
	b.Delete(Key(KindFaults, l.dest))
}

// Replaced gives the former locations that faults keep for their entities. All faults are read once, and the
// answer is kept up to date from then on. Nobody writes during the first call.
func (l *Ledger) Replaced(ctx context.Context) (map[Hash]bool, error) {
	if l.noFaults.Load() {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replaced == nil {
		found := map[Hash]bool{}
		for _, f := range l.Faults(ctx) {
			if f.Err != nil {
				return nil, f.Err
			}
			for _, left := range f.Replaces {
				found[left] = true
			}
		}
		l.replaced = found
	}
	return maps.Clone(l.replaced), nil
}

// Return takes former locations out of all faults, since the source has them again.
func (l *Ledger) Return(ctx context.Context, b kv.Batch, back []Hash) error {
	gone := make(map[Hash]bool, len(back))
	for _, left := range back {
		gone[left] = true
	}
	is := func(left Hash) bool { return gone[left] }
	for loc, f := range l.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		if slices.ContainsFunc(f.Replaces, is) {
			f.Replaces = slices.DeleteFunc(f.Replaces, is)
			l.PutFault(b, loc, f.Fault)
		}
	}
	l.mu.Lock()
	maps.DeleteFunc(l.replaced, func(left Hash, _ bool) bool { return gone[left] })
	l.mu.Unlock()
	return nil
}

// DropFault adds the removal of a fault to a batch.
func (l *Ledger) DropFault(b kv.Batch, loc Hash) {
	if !l.noFaults.Load() {
		l.uncount(b)
		b.Delete(Key(KindFault, l.dest, loc))
	}
}

// Leaving is a resource that goes at the end of the run, or waits for a person: the source
// deleted it, or does not list it any more.
type Leaving struct {
	Since    time.Time `json:"since"`
	Item     []byte    `json:"item,omitempty"`     // the change that deleted it, as far as it is kept; the feed reads it
	Implied  bool      `json:"implied,omitempty"`  // no change did: a list lacks it
	Empty    bool      `json:"empty,omitempty"`    // that list was empty
	Unread   bool      `json:"unread,omitempty"`   // that list has a new entry that may lead to another, and the resource lives
	By       string    `json:"by,omitempty"`       // with unread: the entry, if it is recorded as a resource
	Accepted bool      `json:"accepted,omitempty"` // by a person
	Becomes  []byte    `json:"becomes,omitempty"`  // the record of what it is instead: it stays, without a description
	Body     []byte    `json:"body,omitempty"`     // the bytes of that, where files are kept
}

// LeavingOr is a resource that is leaving, or why it cannot be read.
type LeavingOr struct {
	*Leaving
	Err error
}

func (l *Ledger) leavingKey(loc Hash) []byte { return Key(KindLeaving, l.dest, loc) }

// Leaving reads whether a resource is leaving, nil for no.
func (l *Ledger) Leaving(ctx context.Context, loc Hash) (*Leaving, error) {
	if l.noneLeaving.Load() {
		return nil, nil
	}
	raw, err := l.store.Get(ctx, l.leavingKey(loc))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeLeaving(raw)
}

func decodeLeaving(raw []byte) (*Leaving, error) {
	g := &Leaving{}
	if err := json.Unmarshal(raw, g); err != nil {
		return nil, fmt.Errorf("%w: leaving: %w", ErrDamaged, err)
	}
	return g, nil
}

// AllLeaving yields the leaving resources of a consistent state, after a location; nil: all.
// The sequence ends after the first error.
func (l *Ledger) AllLeaving(ctx context.Context, r kv.Reader, after *Hash) iter.Seq2[Hash, LeavingOr] {
	return func(yield func(Hash, LeavingOr) bool) {
		if l.noneLeaving.Load() {
			return
		}
		prefix := Key(KindLeaving, l.dest)
		from := prefix
		if after != nil {
			from = append(l.leavingKey(*after), 0)
		}
		for pair, err := range r.Scan(ctx, from, kv.PrefixEnd(prefix)) {
			var loc Hash
			var g *Leaving
			if err == nil {
				copy(loc[:], pair.Key[len(prefix):])
				g, err = decodeLeaving(pair.Value)
			}
			if !yield(loc, LeavingOr{g, err}) || err != nil {
				return
			}
		}
	}
}

// LeavingRecord is a leaving resource with its record, nil for none; or why they cannot be read.
type LeavingRecord struct {
	*Leaving
	Record *Record
	Err    error
}

// LeavingRecords is Ledger.AllLeaving with the present records.
func LeavingRecords(ctx context.Context, l *Ledger, r kv.Reader) iter.Seq2[Hash, LeavingRecord] {
	return func(yield func(Hash, LeavingRecord) bool) {
		var locs []Hash
		var some []*Leaving
		give := func() bool {
			recs, err := RecordsAt(ctx, l, locs)
			if err != nil {
				yield(Hash{}, LeavingRecord{Err: err})
				return false
			}
			for i, loc := range locs {
				if !yield(loc, LeavingRecord{some[i], recs[i], nil}) {
					return false
				}
			}
			locs, some = nil, nil
			return true
		}
		for loc, g := range l.AllLeaving(ctx, r, nil) {
			if g.Err != nil {
				yield(loc, LeavingRecord{Err: g.Err})
				return
			}
			if locs, some = append(locs, loc), append(some, g.Leaving); len(locs) == atOnce && !give() {
				return
			}
		}
		give()
	}
}

// PutLeaving adds to a batch that a resource is leaving.
func (l *Ledger) PutLeaving(b kv.Batch, loc Hash, g *Leaving) {
	raw, err := json.Marshal(g)
	if err != nil {
		panic("ledger: leaving cannot be written: " + err.Error()) // plain fields only
	}
	l.noneLeaving.Store(false)
	b.Set(l.leavingKey(loc), raw)
}

// Stay adds to a batch that a resource is not leaving.
func (l *Ledger) Stay(b kv.Batch, loc Hash) {
	if !l.noneLeaving.Load() {
		b.Delete(l.leavingKey(loc))
	}
}

// NoneLeaving tells that nothing is known to be leaving.
func (l *Ledger) NoneLeaving() bool { return l.noneLeaving.Load() }

// NoFaults tells that no fault is known.
func (l *Ledger) NoFaults() bool { return l.noFaults.Load() }

// LookForFaults notes when there are none, as in most runs: then nothing is read or removed
// for each resource. Nothing is being written meanwhile.
func (l *Ledger) LookForFaults(ctx context.Context) error {
	for _, f := range l.Faults(ctx) {
		return f.Err
	}
	l.noFaults.Store(true)
	return nil
}

// LookForLeaving notes when nothing is leaving, as LookForFaults does.
func (l *Ledger) LookForLeaving(ctx context.Context) error {
	l.noneLeaving.Store(false)
	for _, g := range l.AllLeaving(ctx, l.store, nil) {
		return g.Err
	}
	l.noneLeaving.Store(true)
	return nil
}
