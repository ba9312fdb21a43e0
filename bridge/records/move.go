package records

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Errors of records that are not to be used, and of a place that is not to be moved into.
var (
	ErrMoved      = errors.New("its records were moved away")
	ErrUnfinished = errors.New("a move of records into it has not ended")
	ErrNotEmpty   = errors.New("it holds records already")
)

// MarkError is about records with a mark. It wraps one of the errors above.
type MarkError struct {
	Place string
	Other string // the other end of the move, without a password
	Err   error
}

func (e *MarkError) Error() string {
	return fmt.Sprintf("the state in %s cannot be used: %v (%s)", e.Place, e.Err, e.Other)
}

func (e *MarkError) Unwrap() error { return e.Err }

// Hint tells what to do.
func (e *MarkError) Hint() string {
	switch {
	case errors.Is(e.Err, ErrMoved):
		return "set state of the configuration to the new place"
	case errors.Is(e.Err, ErrUnfinished):
		return "run rsbridge migrate again, with the configuration of the place that it comes from"
	}
	return "move into an empty database, or into a folder without records"
}

// Marks of a store, in the order of a move.
var (
	marksPrefix = []byte("state/")
	markLeaving = []byte("state/leaving") // a move was begun
	markComing  = []byte("state/coming")  // a move into it has not ended
	markCame    = []byte("state/came")    // all of it came by this move
	markMoved   = []byte("state/moved")   // all of it went by this move
)

type mark struct {
	ID    string    `json:"id"` // of the move, at both ends
	Other string    `json:"other"`
	At    time.Time `json:"at"`
}

// marks are those of one store.
type marks struct {
	by      map[string]mark
	holding bool // it has other records too
}

func (m marks) id(key []byte) string { return m.by[string(key)].ID }

func readMarks(ctx context.Context, s kv.Reader) (marks, error) {
	m := marks{by: map[string]mark{}}
	for p, err := range s.Scan(ctx, marksPrefix, kv.PrefixEnd(marksPrefix)) {
		var one mark
		if err == nil {
			err = json.Unmarshal(p.Value, &one)
		}
		if err != nil {
			return m, fmt.Errorf("read the marks of the state: %w", err)
		}
		m.by[string(p.Key)] = one
	}
	for _, err := range others(s.Scan(ctx, nil, nil)) {
		m.holding = true
		return m, err
	}
	return m, nil
}

// usable tells why the records at a place are not to be used.
func (m marks) usable(p Place) error {
	if was, ok := m.by[string(markMoved)]; ok {
		return &MarkError{Place: p.String(), Other: "to " + was.Other + " at " + was.At.Format(time.RFC3339), Err: ErrMoved}
	}
	if was, ok := m.by[string(markComing)]; ok {
		return &MarkError{Place: p.String(), Other: "from " + was.Other, Err: ErrUnfinished}
	}
	return nil
}

// others are the pairs without marks.
func others(pairs iter.Seq2[kv.Pair, error]) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for p, err := range pairs {
			if err == nil && bytes.HasPrefix(p.Key, marksPrefix) {
				continue
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// holderWait is the time for a command with the state to end.
const holderWait = 10 * time.Second

// Report tells what a move has proven: both ends hold so many records with one digest.
type Report struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`  // of keys and values
	SHA256  string `json:"sha256"` // of all keys and values in order, each after its length
}

// Move moves all records from one place to an empty one. It reads the copy again, compares the digests, and then
// marks the old records as moved. Before the mark only the old place can be used, after it only the new one. A
// killed move is run again: it begins anew, or does the rest. progress gets the number of records read at both
// ends, and may be nil.
//
// One of the places is the folder of the state, and its other files stay. If a process holds it, the error is a
// *holder.HeldError. A database moved into goes on from the commit shared, that of its bucket; it may be zero.
func Move(ctx context.Context, from, to Place, o kv.OpenOptions, shared kv.Point, progress func(int64)) (rep Report, err error) {
	if ctx.Err() != nil { // the state need not be there then
		return rep, context.Cause(ctx)
	}
	lock, err := holder.Take(ctx, from.Folder, "rsbridge migrate", holderWait)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := from.Missing(); err != nil {
		return rep, fmt.Errorf("%s holds no state: %w", from, err)
	}
	src, err := from.open(ctx, o)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if led, ok := src.(kv.Led); ok {
		_, _, err = from.compare(ctx, led)
	} else if err = os.Remove(from.noteFile()); errors.Is(err, fs.ErrNotExist) { // of a database of before
		err = nil
	}
	if err != nil {
		return rep, err
	}
	dst, err := to.open(ctx, o)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	into, several := dst.(kv.Led)
	if several && shared.Lead != "" {
		if err := into.Adopt(ctx, shared.Lead); err != nil {
			return rep, err
		}
	}
	m := mover{from: from.String(), to: to.String(), src: src, dst: dst, progress: progress}
	if m.progress == nil {
		m.progress = func(int64) {}
	}
	rep, err = m.move(ctx, from, to)
	if several && err == nil {
		var newest kv.Point
		if newest, _, err = into.Newest(ctx, kv.Point{}); err == nil {
			err = to.note(newest)
		}
	}
	return rep, err
}

// mover moves the records of one open store to another.
type mover struct {
	from, to string
	src, dst kv.Store
	progress func(int64)
	read     int64 // at both ends
}

func (m *mover) move(ctx context.Context, from, to Place) (Report, error) {
	rep := Report{From: m.from, To: m.to}
	has, err := readMarks(ctx, m.src)
	if err != nil {
		return rep, err
	}
	there, err := readMarks(ctx, m.dst)
	if err != nil {
		return rep, err
	}
	id := has.id(markMoved)
	ending := id != "" && there.id(markComing) == id // a kill left the last step
	if !ending {
		if err := has.usable(from); err != nil {
			return rep, err
		}
		if id = has.id(markLeaving); id == "" {
			id = rand.Text()
		}
		if !there.replaceable(id, has.id(markCame)) {
			return rep, &MarkError{Place: m.to, Other: fmt.Sprintf("for a move from %s", m.from), Err: ErrNotEmpty}
		}
		if err := m.begin(ctx, id); err != nil {
			return rep, err
		}
	}
	ours, theirs := newSum(), newSum()
	if ending {
		if err := drain(m.all(ctx, m.src, ours)); err != nil {
			return rep, err
		}
	} else if _, err := kv.Fill(ctx, m.dst, m.all(ctx, m.src, ours)); err != nil {
		return rep, fmt.Errorf("copy the records to %s: %w", m.to, err)
	}
	if err := drain(m.all(ctx, m.dst, theirs)); err != nil {
		return rep, fmt.Errorf("read the records of %s again: %w", m.to, err)
	}
	rep.Records, rep.Bytes, rep.SHA256 = ours.records, ours.bytes, ours.digest()
	if got := theirs.digest(); got != rep.SHA256 || theirs.records != ours.records {
		return rep, fmt.Errorf("compare the copy in %s: it has %d records with digest %s, the original %d with %s", m.to, theirs.records, got, ours.records, rep.SHA256)
	}
	return rep, m.end(context.WithoutCancel(ctx), id) // after the first mark the state is nowhere
}

// replaceable tells whether a move may empty the store. Nothing is lost if it
//   - is empty,
//   - holds an unfinished copy of the same move (id), or
//   - was itself moved to the present source before (came).
func (m marks) replaceable(id, came string) bool {
	switch {
	case m.id(markMoved) != "":
		return m.id(markMoved) == came
	case m.id(markComing) != "":
		return m.id(markComing) == id
	}
	return !m.holding
}

// begin marks both ends, and empties the target.
func (m *mover) begin(ctx context.Context, id string) error {
	if err := m.put(ctx, m.src, func(b kv.Batch) { m.set(b, markLeaving, id, m.to) }); err != nil {
		return err
	}
	return m.put(ctx, m.dst, func(b kv.Batch) {
		b.DeleteRange(nil, nil)
		m.set(b, markComing, id, m.from)
	})
}

// end gives up the old records, and then lets the new ones be used: never are both in use.
func (m *mover) end(ctx context.Context, id string) error {
	if err := m.put(ctx, m.src, func(b kv.Batch) {
		b.Delete(markLeaving)
		m.set(b, markMoved, id, m.to)
	}); err != nil {
		return err
	}
	return m.put(ctx, m.dst, func(b kv.Batch) {
		b.Delete(markComing)
		m.set(b, markCame, id, m.from)
	})
}

func (m *mover) set(b kv.Batch, key []byte, id, other string) {
	raw, err := json.Marshal(mark{ID: id, Other: other, At: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		panic(err) // of a type of this package
	}
	b.Set(key, raw)
}

func (m *mover) put(ctx context.Context, s kv.Store, fill func(kv.Batch)) (err error) {
	b := s.Batch()
	defer func() { err = errors.Join(err, b.Close()) }()
	fill(b)
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("mark the move: %w", err)
	}
	return nil
}

// all are the records of a store as of now, counted in sum as they pass.
func (m *mover) all(ctx context.Context, s kv.Store, sum *sum) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		snap := s.Snapshot(ctx)
		defer snap.Close()
		for p, err := range others(snap.Scan(ctx, nil, nil)) {
			if err == nil {
				sum.add(p)
				if m.read++; m.read%1024 == 0 {
					m.progress(m.read)
				}
			}
			if !yield(p, err) {
				return
			}
		}
		m.progress(m.read)
	}
}

func drain(pairs iter.Seq2[kv.Pair, error]) error {
	for _, err := range pairs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sum is a digest over pairs in order.
type sum struct {
	hash           hash.Hash
	records, bytes int64
	buf            []byte
}

func newSum() *sum { return &sum{hash: sha256.New()} }

func (s *sum) add(p kv.Pair) {
	s.buf = binary.AppendUvarint(s.buf[:0], uint64(len(p.Key)))
	s.buf = append(s.buf, p.Key...)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(p.Value)))
	s.hash.Write(s.buf)
	s.hash.Write(p.Value)
	s.records++
	s.bytes += int64(len(p.Key) + len(p.Value))
}

func (s *sum) digest() string { return hex.EncodeToString(s.hash.Sum(nil)) }
