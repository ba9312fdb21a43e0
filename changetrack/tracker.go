package changetrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Errors for callers to branch on.
var (
	// ErrNewer comes when records were written by a newer version; nothing has
	// been changed then.
	ErrNewer = kv.ErrNewer
	// ErrFingerprint comes from a partial scan under another configuration than the one in force. A
	// full scan is held instead.
	ErrFingerprint = errors.New("the configuration of the set has changed; scan in full, then accept it")
	// ErrNoCandidate comes from accepting a candidate that is not held.
	ErrNoCandidate = errors.New("nothing of that id is held")
	// ErrBeyondRetention comes from questions about a time before View.Tail.
	ErrBeyondRetention = errors.New("before what the log still holds")
	// ErrUnderWay comes from opening a log while another process makes a commit visible.
	ErrUnderWay = errors.New("another process is committing changes")
	// ErrClosed comes after Tracker.Close.
	ErrClosed = errors.New("change tracker is closed")
)

// Options of Open.
type Options struct {
	Dir    string           // folder for staging files, of this tracker alone; made if it is not there
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: silent
	Names  settings.Names   // of the settings in reasons
	// Reading: the store takes no writes. Histories and representations in an older form are then
	// not found.
	Reading bool
	// Following: another process writes the logs. A commit under way gives ErrUnderWay.
	Following bool

	// For tests: how much is staged in memory, is written at once, and the encoder
	// and its decoder.
	stageBytes, batchBytes int

	encode encoder
	decode func(rdfres.Format, []byte, rdfres.ReadOptions) ([]rdfres.Triple, error)
}

// batchBytes is how much is written to the store at once.
const batchBytes = 4 << 20

// Tracker keeps the logs of all sets of one state.
type Tracker struct {
	store  kv.Store
	o      Options
	closed chan struct{}

	mu   sync.Mutex // guards the fields below
	logs map[string]*Log
	next uint32 // id for the next new set
}

// Open reads the state and finishes work interrupted by a crash. The store may be a view made by
// kv.Prefix; the tracker does not close it.
func Open(ctx context.Context, store kv.Store, o Options) (*Tracker, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.stageBytes == 0 {
		o.stageBytes = spoolMemory
	}
	if o.batchBytes == 0 {
		o.batchBytes = batchBytes
	}
	if o.encode == nil {
		o.encode, o.decode = codec.EncodeChecked, codec.Decode
	}
	t := &Tracker{store: store, o: o, closed: make(chan struct{}), logs: map[string]*Log{}, next: 1}
	if err := t.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open change tracker: %w", err), t.Close())
	}
	return t, nil
}

func (t *Tracker) open(ctx context.Context) error {
	marker, err := t.store.Get(ctx, markerKey)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		b := t.store.Batch()
		defer b.Close()
		b.Set(markerKey, []byte{recordVersion})
		if err := b.Commit(ctx, true); err != nil {
			return err
		}
	case err != nil:
		return err
	case len(marker) != 1:
		return fmt.Errorf("version of the records cannot be read: %w", errDamaged)
	case marker[0] > recordVersion:
		return fmt.Errorf("records have version %d, this program knows %d: %w", marker[0], recordVersion, ErrNewer)
	case marker[0] < recordVersion:
		return fmt.Errorf("its records were written by an earlier rsbridge (version %d, this one reads %d): begin with a new state", marker[0], recordVersion)
	}
	if !t.o.Reading {
		if err := ownfile.MkdirAll(t.o.Dir); err != nil {
			return err
		}
	}
	type entry struct {
		name string
		id   uint32
	}
	var sets []entry
	for p, err := range t.store.Scan(ctx, namesKey, kv.PrefixEnd(namesKey)) {
		if err != nil {
			return err
		}
		if len(p.Value) != 4 {
			return fmt.Errorf("set %q has no readable number: %w", p.Key[len(namesKey):], errDamaged)
		}
		sets = append(sets, entry{string(p.Key[len(namesKey):]), binary.BigEndian.Uint32(p.Value)})
	}
	for _, e := range sets {
		l := newLog(t, e.name, e.id)
		t.logs[e.name] = l
		if err := l.recover(ctx); err != nil {
			return fmt.Errorf("set %s: %w", e.name, err)
		}
		t.next = max(t.next, e.id+1)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Log is the log of a set, opened or made; the same *Log for the same name.
func (t *Tracker) Log(ctx context.Context, set string) (*Log, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.logs[set]; ok {
		return l, nil
	}
	if t.isClosed() {
		return nil, ErrClosed
	}
	if set == "" {
		return nil, errors.New("open log: a set needs a name")
	}
	b := t.store.Batch()
	defer b.Close()
	b.Set(nameKey(set), binary.BigEndian.AppendUint32(nil, t.next))
	if err := b.Commit(ctx, true); err != nil {
		return nil, fmt.Errorf("open log of set %s: %w", set, err)
	}
	l := newLog(t, set, t.next)
	if err := l.recover(context.WithoutCancel(ctx)); err != nil { // its number is taken
		return nil, fmt.Errorf("open log of set %s: %w", set, err)
	}
	t.logs[set] = l
	t.next++
	return l, nil
}

// Sets are the names of all sets with a log, sorted.
func (t *Tracker) Sets() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.logs))
}

// Close waits for running scans and retentions (end their contexts for a sooner stop) and ends
// every Wait. Views stay readable until the store is closed. It may be called twice.
func (t *Tracker) Close() error {
	t.mu.Lock()
	if !t.isClosed() {
		close(t.closed)
	}
	logs := slices.Collect(maps.Values(t.logs))
	t.mu.Unlock()
	var errs []error
	for _, l := range logs {
		l.writer <- struct{}{} // the last writer; nobody comes after it
		<-l.writer
		errs = append(errs, l.forget())
	}
	return errors.Join(errs...)
}

func (t *Tracker) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// Log is the log and the states of one set. One writer at a time. Readers see whole runs: all
// changes of a run become visible at once. Safe for concurrent use.
type Log struct {
	t      *Tracker
	name   string
	id     uint32
	store  kv.Store      // below the set's prefix
	writer chan struct{} // holds one token while somebody writes

	mu    sync.Mutex // guards the fields below
	head  headRecord // as it is visible
	moved chan struct{}
	now   *kv.Moment // as it is visible; frozen while something else is written
}

func newLog(t *Tracker, name string, id uint32) *Log {
	store := kv.Prefix(t.store, setPrefix(id))
	return &Log{
		t: t, name: name, id: id,
		store:  store,
		writer: make(chan struct{}, 1),
		moved:  make(chan struct{}),
		now:    kv.NewMoment(store),
	}
}

// Set is the name of the set.
func (l *Log) Set() string { return l.name }

// lock waits for other writers, and finishes failed work.
func (l *Log) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.writer <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.t.closed:
		return ErrClosed
	}
	err := error(nil)
	if l.t.isClosed() {
		err = ErrClosed
	} else {
		err = l.recover(ctx)
	}
	if err != nil {
		l.unlock()
	}
	return err
}

func (l *Log) unlock() { <-l.writer }

// readHeadRecord gives the head of the log in r.
func readHeadRecord(ctx context.Context, r kv.Reader) (headRecord, error) {
	b, err := r.Get(ctx, headKey)
	if errors.Is(err, kv.ErrNotFound) {
		return headRecord{}, nil
	}
	if err != nil {
		return headRecord{}, err
	}
	return readHead(b)
}

// show makes a new head visible and wakes waiting readers.
func (l *Log) show(h headRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.goOn(); err != nil {
		l.t.o.Logger.Error("closing a snapshot", "set", l.name, "error", err)
	}
	moved := h.seq != l.head.seq
	l.head = h
	if moved {
		close(l.moved)
		l.moved = make(chan struct{})
	}
}

// forget releases the readers' snapshot after a failed commit: the next Open finishes the commit.
func (l *Log) forget() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goOn()
}

// freeze keeps the visible state for readers during writes, until show.
func (l *Log) freeze(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Freeze(ctx)
}

// goOn makes what was written visible. The caller holds l.mu.
func (l *Log) goOn() error {
	if !l.now.Frozen() {
		return nil
	}
	before := l.now
	l.now = kv.NewMoment(l.store)
	return before.Release()
}

// Head is View().Head() without the snapshot.
func (l *Log) Head() (uint64, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head.seq, l.head.time
}

// Wait returns when the head is beyond after, or ctx ends, or the tracker is
// closed.
func (l *Log) Wait(ctx context.Context, after uint64) error {
	for {
		l.mu.Lock()
		seq, moved := l.head.seq, l.moved
		l.mu.Unlock()
		if seq > after {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.t.closed:
			return ErrClosed
		}
	}
}
