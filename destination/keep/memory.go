// Package keep is the memory of a destination and the standing of its mirror: its own record with
// position and history, and marks, checkpoints and owners in the mirror.
package keep

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Memory is the record of a destination, with its place among the others of a state.
type Memory struct {
	Store  kv.Store
	Ledger *ledger.Ledger
	Dest   ledger.ID
	Space  ledger.ID
	Log    *slog.Logger

	mu        sync.Mutex // guards meta
	Meta      Meta
	Writer    string     // of this opening: numbers of writes come again after a backup was put back
	SpaceLock *SpaceLock // held by the writer into the graph

	Crash func(point string) error // tests: an error here is a crash there
}

// Meta is the record of a destination, as the engine reads it. The ledger keeps position
// and history unread.
type Meta struct {
	ledger.Meta
	Reading
	Runs
}

// Reading is how far the source was read.
type Reading struct {
	At          feed.Position  `json:"at"`
	ByList      bool           `json:"by_list,omitempty"` // the baseline under way is taken from the Resource List: with its changes newer than a dump may be
	Resolved    ResolvedSource `json:"resolved,omitzero"`
	Recheck     Recheck        `json:"recheck,omitzero"`
	Gap         string         `json:"gap,omitempty"`
	Alone       bool           `json:"changes_alone,omitempty"` // Alone tells that the mirror rests on changes, and on no list or dump but a new one.
	First       *feed.Newest   `json:"first,omitempty"`         // First is the first change of the source that the mirror has, if it has it from its changes alone.
	Reach       time.Time      `json:"reach,omitzero"`          // Reach is the earliest beginning of Change Lists with First.
	Back        Back           `json:"back,omitzero"`
	LostUntil   time.Time      `json:"lost_until,omitzero"` // LostUntil is when a gap was met that a person let pass, if no list or dump was taken since.
	Unpublished Unpublished    `json:"unpublished,omitzero"`
	Newest      uint64         `json:"newest,omitempty"` // the last told position of the source's own log, 0 without numbers
}

// Back is where the mirror may go back to, the oldest place first: the ledger has each resource that was
// touched since, as it was.
type Back struct {
	Places []Place     `json:"places,omitempty"`
	Last   ledger.Span `json:"last,omitempty"` // Last is the one of the operations from now on.

	Gap     bool      `json:"open,omitempty"`    // Gap tells that the last place is before the open gap.
	Since   time.Time `json:"since,omitzero"`    // Since is when the gap was met.
	Changed bool      `json:"changed,omitempty"` // Changed tells of operations before it in the same run.
	Alone   bool      `json:"alone,omitempty"`   // Alone tells of a source without list and dump to close it with.
	Whole   bool      `json:"whole,omitempty"`   // Whole tells that the Change Lists reach back to the first change, and lack some of the resources.

	Listed time.Time `json:"listed,omitzero"` // Listed is when a source of changes alone offered a list or dump.
}

// Place is a cursor of before, and the first span since.
type Place struct {
	Cursor feed.Cursor  `json:"cursor"`
	Span   ledger.Span  `json:"span"`
	First  *feed.Newest `json:"first,omitempty"` // see Reading.First
}

// maxPlaces bounds them.
const maxPlaces = 4

// Span is the one of the operations from now on, false for none.
func (k *Back) Span() (ledger.Span, bool) { return k.Last, len(k.Places) > 0 }

// Mark adds a place to a batch, if it is another one than the last. What is changed goes with the batch.
func (mem *Memory) Mark(ctx context.Context, b kv.Batch, at feed.Cursor, change func(*Back)) error {
	return mem.Commit(ctx, b, func(m *Meta) {
		k := &m.Back
		n := len(k.Places)
		if n == 0 || !k.Places[n-1].Cursor.IsAt(&at) {
			k.Last++
			if n == 0 {
				mem.Ledger.Untouch(b, math.MaxUint32)
			}
			k.Places = append(slices.Clone(k.Places[max(0, n-maxPlaces+1):]), Place{at, k.Last, m.First})
			mem.Ledger.Untouch(b, k.Places[0].Span)
		}
		change(k)
	})
}

// close ends the gap. The places up to one of them stay, or all (nil).
func (k *Back) close(to *Place) {
	k.Gap, k.Since, k.Changed, k.Alone, k.Whole, k.Listed = false, time.Time{}, false, false, false, time.Time{}
	if to != nil {
		k.Places = slices.DeleteFunc(slices.Clone(k.Places), func(p Place) bool { return p.Span > to.Span })
	}
}

// GoneBack is for a mirror equal to all changes from a place on, or to the whole history (nil).
func (m *Meta) GoneBack(to *Place) {
	m.Gap = ""
	m.Back.close(to)
}

// Runs is how the last runs ended.
type Runs struct {
	LastSync  time.Time    `json:"last_sync,omitzero"`
	AskedAll  time.Time    `json:"asked_all,omitzero"` // AskedAll is the start of the last run that fetched each listed resource without a measure.
	LastAudit *AuditReport `json:"last_audit,omitempty"`
	LastError string       `json:"last_error,omitempty"`
	// Interrupted tells that the last sync was stopped before its end.
	Interrupted bool      `json:"interrupted,omitempty"`
	InSync      bool      `json:"in_sync"`
	Behind      time.Time `json:"behind,omitzero"`  // commit time of the oldest change not applied, as far as it was read
	Damage      string    `json:"damage,omitempty"` // an audit found the store other than the records
}

func (mem *Memory) CrashAt(point string) error {
	if mem.Crash != nil {
		return mem.Crash(point)
	}
	return nil
}

// Held is one triple as the mirror holds it.
type Held struct {
	Hash  ledger.Hash
	Graph string
	Line  string
}

// Group is everything about one subject.
type Group struct {
	Subj   ledger.Hash
	Owned  []byte // sorted, without doubles
	Owners []ledger.Owner
	Lists  [][]byte
}

// Groups yields the ownership index by subject.
func (mem *Memory) Groups(ctx context.Context, snap kv.Reader) iter.Seq2[*Group, error] {
	return func(yield func(*Group, error) bool) {
		prefix := ledger.Key(ledger.KindOwned, mem.Space)
		var g *Group
		for pair, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				yield(nil, err)
				return
			}
			subj, o, ok := ledger.SplitOwned(pair.Key)
			if !ok || len(pair.Value)%16 != 0 {
				yield(nil, fmt.Errorf("%w: ownership", ledger.ErrDamaged))
				return
			}
			if g != nil && g.Subj != subj {
				if !yield(g.done(), nil) {
					return
				}
				g = nil
			}
			if g == nil {
				g = &Group{Subj: subj}
			}
			g.Owners = append(g.Owners, o)
			g.Lists = append(g.Lists, slices.Clone(pair.Value))
		}
		if g != nil {
			yield(g.done(), nil)
		}
	}
}

func (g *Group) done() *Group {
	if len(g.Lists) == 1 {
		g.Owned = g.Lists[0]
		return g
	}
	var all []ledger.Hash
	for _, l := range g.Lists {
		for i := 0; i+16 <= len(l); i += 16 {
			all = append(all, ledger.Hash(l[i:i+16]))
		}
	}
	slices.SortFunc(all, ledger.Hash.Compare)
	all = slices.Compact(all)
	g.Owned = make([]byte, 0, 16*len(all))
	for _, h := range all {
		g.Owned = append(g.Owned, h[:]...)
	}
	return g
}

// Tolerated are the triples of a subject rewritten by the store itself, each with its form there. Older
// records without both (empty) do not count.
func (mem *Memory) Tolerated(ctx context.Context, subj ledger.Hash) (map[ledger.Hash]ledger.Hash, error) {
	var all map[ledger.Hash]ledger.Hash
	prefix := ledger.Key(ledger.KindRewritten, mem.Space, subj)
	for pair, err := range mem.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, err
		}
		if len(pair.Value) != 16 {
			continue
		}
		if all == nil {
			all = map[ledger.Hash]ledger.Hash{}
		}
		all[ledger.Hash(pair.Key[len(prefix):])] = ledger.Hash(pair.Value)
	}
	return all, nil
}

// Explained are the mirror's triples made by the store of missing ones: extra ones without an owner, or
// owned ones. A form made and then removed by somebody explains nothing.
func (g *Group) Explained(tolerated map[ledger.Hash]ledger.Hash, missing []ledger.Hash, extra []Held) map[ledger.Hash]bool {
	if len(tolerated) == 0 {
		return nil
	}
	made := map[ledger.Hash]bool{}
	for _, h := range missing {
		m, ok := tolerated[h]
		if ok && (slices.ContainsFunc(extra, func(e Held) bool { return e.Hash == m }) || ledger.Holds(g.Owned, m) && !slices.Contains(missing, m)) {
			made[m] = true
		}
	}
	return made
}

// Metas are the records of all destinations of this state, by their names.
func (mem *Memory) Metas(ctx context.Context) (map[string]ledger.Known, error) {
	metas := map[string]ledger.Known{}
	for k, err := range ledger.All(ctx, mem.Store) {
		if err != nil {
			return nil, err
		}
		metas[k.Name] = k
	}
	return metas, nil
}

func RandomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// SnapshotMeta is a copy of the destination's meta.
func (mem *Memory) SnapshotMeta() Meta {
	mem.mu.Lock()
	defer mem.mu.Unlock()
	return mem.Meta
}

// SaveMeta changes the record of the destination durably.
func (mem *Memory) SaveMeta(ctx context.Context, change func(*Meta)) error {
	b := mem.Store.Batch()
	defer b.Close()
	return mem.Commit(ctx, b, change)
}

// Commit writes a batch together with a changed meta, all or nothing.
func (mem *Memory) Commit(ctx context.Context, b kv.Batch, change func(*Meta)) error {
	return mem.withMeta(change, func(m *ledger.Meta) error { return mem.Ledger.Commit(ctx, b, m) })
}

// Done is commit of the batch with its intent in a slot.
func (mem *Memory) Done(ctx context.Context, slot byte, b kv.Batch, change func(*Meta)) error {
	return mem.withMeta(change, func(m *ledger.Meta) error { return mem.Ledger.Done(ctx, slot, b, m) })
}

func (mem *Memory) withMeta(change func(*Meta), write func(*ledger.Meta) error) error {
	mem.mu.Lock()
	defer mem.mu.Unlock()
	m := mem.Meta
	if change != nil {
		change(&m)
	}
	if err := write(m.Sealed()); err != nil {
		return err
	}
	mem.Meta = m
	return nil
}

// Wrote counts a write.
func (mem *Memory) Wrote(m *Meta) {
	m.Generation++
	m.Writer = mem.Writer
}

// BeingForgotten is why a mirror is compared after a Forget that did not end.
const BeingForgotten = "it was being forgotten"

// Neighbour is another destination of this state that has written into the same graph, or
// per-entity graphs, "" for none.
func (mem *Memory) Neighbour(ctx context.Context) (string, error) {
	for k, err := range ledger.All(ctx, mem.Store) {
		if err != nil {
			return "", err
		}
		if k.Space == mem.Space && k.Dest != mem.Dest && k.Stage != ledger.None {
			return k.Name, nil
		}
	}
	return "", nil
}

// IsPast tells of a mirror of a time.
func (m Meta) IsPast() bool { return m.At.IsPast() }

// Lost is what is told of changes that are lost, "" for none.
func (m *Meta) Lost() string {
	if m.Gap == "" {
		return m.At.Lacks()
	}
	return m.Gap
}

// CloseGap is for a list or dump that was taken whole and is where the cursor stands: what was
// lost before it does not matter any more.
func (m *Meta) CloseGap() {
	if m.Back.Alone { // the missing were of another offer
		m.At.FoundMissing()
	}
	m.LeaveGap()
	m.LostUntil = time.Time{}
	m.At.CloseMissing()
}

// LeaveGap forgets an open gap, and the places before it unless the source has but lately offered a list
// or dump: that may be wrong.
func (m *Meta) LeaveGap() {
	if m.Gap = ""; m.Back.Listed.IsZero() {
		m.Back = Back{}
		return
	}
	listed := m.Back.Listed
	m.Back.close(nil)
	m.Back.Listed = listed
}

// CutOffBeside names another destination of the same graph with an unfinished batch, "" for none:
// its triples in the mirror are in no record yet.
func (mem *Memory) CutOffBeside(ctx context.Context) (string, error) {
	for k, err := range ledger.All(ctx, mem.Store) {
		if err != nil {
			return "", fmt.Errorf("the batch of another destination: %w", err)
		}
		if k.Dest == mem.Dest || k.Space != mem.Space {
			continue
		}
		for slot := range byte(ledger.Slots) {
			if _, err := mem.Ledger.Of(k.Dest).Intent(ctx, slot); !errors.Is(err, kv.ErrNotFound) {
				return k.Name, nil
			}
		}
	}
	return "", nil
}

// Told is why something waits for a person, "" for nothing.
func (m *Meta) Told() string {
	var all []string
	if m.HeldDeletions != nil {
		all = append(all, m.HeldDeletions.Reason)
	}
	if m.HeldGap != "" {
		all = append(all, m.HeldGap)
	}
	return strings.Join(slices.Compact(all), "; and ")
}

// phase is the stage as a checkpoint has it.
func (m *Meta) phase() string {
	if m.Stage == ledger.Following {
		return "current"
	}
	return string(m.Stage)
}

// OpenMeta reads position and history.
func OpenMeta(m ledger.Meta) (out Meta, err error) {
	out.Meta = m
	if err = unseal(m.Position, &out.Reading); err == nil {
		err = unseal(m.History, &out.Runs)
	}
	return out, err
}

func unseal(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: meta: %w", ledger.ErrDamaged, err)
	}
	return nil
}

// Sealed is the ledger's part, with position and history written into it.
func (m *Meta) Sealed() *ledger.Meta {
	m.Meta.Position, m.History = seal(m.Reading), seal(m.Runs)
	return &m.Meta
}

func seal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("destination: meta cannot be written: " + err.Error()) // plain fields only
	}
	return raw
}

// Returned keeps resources with the source again from going when a pending one is stored. find
// picks them from the waiting ones.
func (mem *Memory) Returned(ctx context.Context, find func(waiting map[ledger.Hash]bool) ([]ledger.Hash, error)) error {
	waiting, err := mem.Ledger.Replaced(ctx)
	if err != nil || len(waiting) == 0 {
		return err
	}
	back, err := find(waiting)
	if err != nil || len(back) == 0 {
		return err
	}
	b := mem.Store.Batch()
	defer b.Close()
	if err := mem.Ledger.Return(ctx, b, back); err != nil {
		return err
	}
	return b.Commit(ctx, true)
}

// SpaceLock is held from the plan of a batch to its record.
type SpaceLock struct {
	sync.Mutex
	Waiting atomic.Int32 // number of waiting destinations
}

func (l *SpaceLock) Lock() {
	l.Waiting.Add(1)
	l.Mutex.Lock()
	l.Waiting.Add(-1)
}

// ResolvedSource is the place behind the configured address, and the way there.
type ResolvedSource struct {
	Way     feed.Way  `json:"way"`
	To      string    `json:"to"`
	Sitemap bool      `json:"sitemap,omitempty"` // To is a plain Sitemap or a feed
	Runs    int       `json:"runs,omitempty"`    // Runs counts the runs with this result, up to confirmedRuns
	Before  []string  `json:"before,omitempty"`  // Before has the confirmed places of before, the latest first
	Doubted time.Time `json:"doubted,omitzero"`  // Doubted is when the address led elsewhere for the first time since
}

const (
	ConfirmedRuns = 2 // that confirm a place: one answer may be wrong
	MaxPlacesKept = 8
)

// Doubts tells whether a place looks wrong beside the one of before: it was found by a weaker
// way, or it is a plain Sitemap, as sites have of their pages too. An unconfirmed place, a
// Sitemap and a document at the root of a site prove nothing against another one.
func (was *ResolvedSource) Doubts(now ResolvedSource, rootConfigured bool) bool {
	switch {
	case was.Runs < ConfirmedRuns, was.Sitemap, was.Way == feed.ByAddress && rootConfigured:
		return false
	case now.Sitemap:
		return true
	case now.To == was.To, slices.Contains(was.Before, now.To):
		return false
	}
	return now.Way > was.Way
}

// LeaveSource forgets the lists of the former place. The cursor stays: for a source of changes
// alone it shows that some were lost.
func (m *Meta) LeaveSource() {
	m.At.LeaveSource()
	m.Recheck, m.Newest = Recheck{}, 0
}

// OwnsGraph tells of the record of a per-entity graph whether it is of this
// destination. Others in the same store have theirs: their audits tell of them.
func (mem *Memory) OwnsGraph(record []byte) bool {
	return len(record) >= 20 && ledger.ID(binary.BigEndian.Uint32(record)) == mem.Dest
}

// Recheck is a due comparison with the source's list.
type Recheck struct {
	Why  string    `json:"why,omitempty"` // Why the mirror differs from the source. It is not in sync until then.
	Next time.Time `json:"next,omitzero"` // Next is when the last list changed the mirror, while no other list was compared since.
}

// Waits is what keeps the mirror from being in sync until somebody, or the source, does
// something.
func (m *Meta) Waits() string {
	return cmp.Or(m.Told(), m.Lost(), m.At.Waits(), m.Recheck.Why, m.Damage)
}

// IsInSync tells whether the last sync ended in sync, and no audit has found otherwise since.
func (m *Meta) IsInSync() bool { return m.InSync && m.Recheck.Why == "" && m.Damage == "" }

// OtherWrite is the reason for a comparison: mirror and records stand at different writes. "" is
// none.
func (m *Meta) OtherWrite(cp *sink.Checkpoint) string {
	if cp.IsOf(m.Generation, m.Writer) && cp.Phase == m.phase() {
		return ""
	}
	return fmt.Sprintf("the mirror stands at write %s (%s), our records at %d (%s): one of them was restored from a backup", cp.Generation, cp.Phase, m.Generation, m.phase())
}

func (mem *Memory) NoteCompare(ctx context.Context, why string) error {
	if why == "" || mem.Meta.CompareMirror != "" {
		return nil
	}
	mem.Log.Warn("mirror must be compared", "why", why)
	return mem.SaveMeta(ctx, func(m *Meta) { m.CompareMirror = why })
}

// Unpublished are the changes of a source not published yet.
type Unpublished struct {
	Sequence uint64    `json:"sequence,omitempty"` // Sequence of its newest change, 0: everything is published.
	Since    time.Time `json:"since,omitzero"`     // Since is the time of the first such change, as far as polls have seen it.
}

// UnpublishedAt is that of a source at a change in none of its lists and dumps.
func (m *Meta) UnpublishedAt(sequence uint64, at time.Time) Unpublished {
	next := m.Unpublished
	if next.Sequence == 0 {
		if next.Since = at; at.IsZero() {
			next.Since = m.At.Cursor().Time()
		}
	}
	next.Sequence = sequence
	return next
}

// NotPublished says so in words, "" if everything is published.
func (m *Meta) NotPublished() string {
	if m.Unpublished.Sequence == 0 {
		return ""
	}
	return fmt.Sprintf("the source stands at change %d and publishes its changes up to %d", m.Unpublished.Sequence, m.At.Cursor().Number())
}
