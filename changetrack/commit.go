package changetrack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// staged is one change before it has a sequence and a time. old is the state record of the entity
// at the comparison, nil if there was none. The written records depend on old and on nothing else,
// so writing twice is writing once.
type staged struct {
	kind   Kind
	entity string
	old    []byte
	after  *Version // without sequence and time; nil for deleted
	blob   []byte   // its record
}

func putStaged(b []byte, s *staged) []byte {
	b = append(b, recordVersion, kindCodes[s.kind])
	b = putString(b, s.entity)
	b = putString(b, s.old)
	if s.after == nil {
		return b
	}
	return append(putVersion(b, s.after), s.blob...)
}

func readStaged(b []byte) (*staged, error) {
	r := &reading{b: b}
	if err := r.begin("staged change"); err != nil {
		return nil, err
	}
	s := &staged{kind: kindOf[r.byte()], entity: r.string(), old: r.bytes()}
	if s.kind == "" || s.kind == Rebased {
		r.bad = true
	}
	if s.kind != Deleted && !r.bad {
		s.after = r.version()
		s.blob, r.b = r.b, nil
		r.bad = r.bad || len(s.blob) == 0
	}
	return s, r.end("staged change")
}

// intent is a commit under way, as JSON in the store. While it is there the head is the old one,
// and Open and every writer finish it first.
type intent struct {
	Version  int    `json:"version"`
	File     string `json:"file"`             // in Options.Dir; "": not kept in a file
	Stored   bool   `json:"stored,omitempty"` // the changes are staged in the store
	Records  uint64 `json:"records"`
	First    uint64 `json:"first"` // sequence of the first record
	Time     int64  `json:"time"`  // of the first record, microseconds since 1970; one more for each next one
	Finder   string `json:"finder"`
	Head     []byte `json:"head"`      // the head record afterwards
	LastScan []byte `json:"last_scan"` // the record of the scan
	Clear    bool   `json:"clear"`     // nothing is held afterwards
}

// commit makes the staged changes durable and visible.
func (l *Log) commit(ctx context.Context, sp *spool, in intent) error {
	if sp.file == nil {
		return l.apply(ctx, sp.all(), &in)
	}
	if err := l.stage(ctx, sp, &in); err != nil {
		return err
	}
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	b := l.store.Batch()
	defer b.Close()
	b.Set(intentKey, data)
	// From here on the file belongs to the reader of the intent: after an error nobody knows
	// whether the intent was written.
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("commit changes: %w", err)
	}
	return l.finish(ctx, &in)
}

// stage puts the changes where the next writer finds them: in a file, or in a store that other processes write too.
func (l *Log) stage(ctx context.Context, sp *spool, in *intent) error {
	if in.Stored = kv.IsLed(l.store); in.Stored {
		return l.putStage(ctx, sp)
	}
	if err := sp.durable(); err != nil {
		return err
	}
	in.File = filepath.Base(sp.file.Name())
	return sp.keep()
}

// finish does what an intent says, to its end: it stands already.
func (l *Log) finish(ctx context.Context, in *intent) error {
	ctx = context.WithoutCancel(ctx)
	records := stagedFile(filepath.Join(l.t.o.Dir, in.File), in.Records)
	if in.Stored {
		records = l.storedStage(ctx, in.Records)
	}
	if err := l.apply(ctx, records, in); err != nil {
		return err
	}
	if err := removeLeftovers(l.t.o.Dir, l.id); err != nil {
		l.t.o.Logger.Warn("staged changes stay on disk", "set", l.name, "error", err)
	}
	return nil
}

// recover finishes the interrupted commit, if there is one, and reads the head. The caller is the
// only writer.
func (l *Log) recover(ctx context.Context) error {
	data, err := l.store.Get(ctx, intentKey)
	if err == nil && l.t.o.Following {
		return ErrUnderWay
	}
	if err == nil {
		var in intent
		if err := json.Unmarshal(data, &in); err != nil {
			return fmt.Errorf("finish the interrupted commit: %w: %w", err, errDamaged)
		}
		if in.Version > recordVersion {
			return fmt.Errorf("finish the interrupted commit: it has version %d, this program knows %d: %w", in.Version, recordVersion, ErrNewer)
		}
		l.t.o.Logger.Info("finishing an interrupted commit", "set", l.name, "first", in.First, "changes", in.Records)
		if err := l.finish(ctx, &in); err != nil {
			return fmt.Errorf("finish the interrupted commit: %w", err)
		}
		return nil
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if err := errors.Join(removeLeftovers(l.t.o.Dir, l.id), l.dropStage(ctx)); err != nil {
		return err
	}
	h, err := readHeadRecord(ctx, l.store)
	if err != nil {
		return err
	}
	l.show(h)
	return nil
}

// apply writes the changes, in batches, and with the last one the head. Until
// then readers get the snapshot from before.
func (l *Log) apply(ctx context.Context, records iter.Seq2[[]byte, error], in *intent) error {
	head, err := readHead(in.Head)
	if err != nil {
		return err
	}
	l.freeze(ctx)
	b := l.store.Batch()
	defer b.Close()
	seq, at := in.First, in.Time
	for rec, err := range records {
		if err == nil {
			err = writeStaged(b, rec, seq, time.UnixMicro(at).UTC(), in.Finder)
		}
		if err != nil {
			return fmt.Errorf("write change %d: %w", seq, err)
		}
		seq, at = seq+1, at+1
		if (in.File != "" || in.Stored) && b.Size() >= l.t.o.batchBytes {
			if err := b.Commit(ctx, false); err != nil {
				return fmt.Errorf("write changes: %w", err)
			}
		}
	}
	b.Set(headKey, in.Head)
	b.Set(lastScanKey, in.LastScan)
	b.Delete(intentKey)
	if in.Stored {
		b.DeleteRange([]byte{kindStage}, []byte{kindStage + 1})
	}
	if in.Clear {
		b.Delete(heldKey)
		b.DeleteRange([]byte{kindCandidate}, []byte{kindCandidate + 1})
	}
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("write changes: %w", err)
	}
	l.show(head)
	return nil
}

// setter is a batch, or a first scan.
type setter interface {
	Set(key, value []byte)
	Delete(key []byte)
}

// recordRoom is the size of most records without the entity.
const recordRoom = 128

// writeStaged writes all records of one change.
func writeStaged(b setter, rec []byte, seq uint64, at time.Time, finder string) error {
	s, err := readStaged(rec)
	if err != nil {
		return err
	}
	st := &stateRecord{entity: s.entity, firstSeq: seq, first: at}
	c := &Change{Sequence: seq, Time: at, Kind: s.kind, Entity: s.entity, Finder: finder}
	if len(s.old) > 0 {
		old, err := readState(s.old)
		if err != nil {
			return err
		}
		st.firstSeq, st.first, st.changes, c.Before = old.firstSeq, old.first, old.changes, old.current
	}
	st.changes++
	key := rdfres.EntityKey(s.entity)
	if s.after != nil {
		s.after.Sequence, s.after.Time = seq, at
		st.current, c.After = s.after, s.after
		if len(s.old) == 0 {
			c.After = elsewhere
		}
		b.Set(entitySeqKey(kindBlob, key, seq), s.blob)
	} else {
		st.delSeq, st.delTime = seq, at
	}
	if c.Before != nil {
		b.Set(seqKey(kindEnded, seq), putEnded(nil, &endedRecord{key, c.Before.Sequence, at, s.after == nil}))
	}
	stands, leaves := stateKey(key), goneKey(key)
	if st.current == nil {
		stands, leaves = leaves, stands
	}
	b.Set(stands, putState(make([]byte, 0, recordRoom+len(s.entity)), st))
	if len(s.old) > 0 && (c.Before == nil) != (st.current == nil) {
		b.Delete(leaves)
	}
	b.Set(seqKey(kindLog, seq), putChange(make([]byte, 0, recordRoom+len(s.entity)), c))
	if st.firstSeq != seq {
		b.Set(entitySeqKey(kindHistory, key, seq), nil)
	}
	return nil
}

// ---- the held candidate

// heldRecord is the stored candidate, as JSON. Its deletions stand under candidateKey.
type heldRecord struct {
	Held
	Version     int    `json:"version"`
	Generation  uint64 `json:"generation"`
	Fingerprint string `json:"fingerprint"` // of the scan's configuration
	Lost        int64  `json:"lost"`        // triples lost from remaining descriptions
}

func readHeld(ctx context.Context, r kv.Reader) (*heldRecord, error) {
	b, err := r.Get(ctx, heldKey)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var h heldRecord
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("held scan cannot be read: %w: %w", err, errDamaged)
	}
	return &h, nil
}

// hold records the candidate: first its entities under a generation of their
// own, then, with one commit, the candidate itself.
func (l *Log) hold(ctx context.Context, sp *spool, h heldRecord, head headRecord, scan []byte) error {
	b := l.store.Batch()
	defer b.Close()
	head.candidates++
	h.Version, h.Generation = recordVersion, head.candidates
	b.DeleteRange(candidatePrefix(h.Generation), kv.PrefixEnd(candidatePrefix(h.Generation)))
	for rec, err := range sp.all() {
		var s *staged
		if err == nil {
			s, err = readStaged(rec)
		}
		if err != nil {
			return fmt.Errorf("hold the scan: %w", err)
		}
		if s.kind == Deleted {
			b.Set(candidateKey(h.Generation, rdfres.EntityKey(s.entity)), nil)
		}
		if b.Size() >= l.t.o.batchBytes {
			if err := b.Commit(ctx, false); err != nil {
				return fmt.Errorf("hold the scan: %w", err)
			}
		}
	}
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b.Set(heldKey, data)
	b.Set(headKey, putHead(nil, &head))
	b.Set(lastScanKey, scan)
	b.DeleteRange([]byte{kindCandidate}, candidatePrefix(h.Generation))
	if err := b.Commit(ctx, true); err != nil {
		return fmt.Errorf("hold the scan: %w", err)
	}
	l.show(head)
	return nil
}

// nextTime is the time of the first change of a commit: now. If the clock is not past the last
// change, or a first scan without entities, it is just after that: a reader with the state of that
// time asks for later changes.
func (l *Log) nextTime(head headRecord) time.Time {
	now := l.t.o.Now().UTC().Truncate(time.Microsecond)
	last := head.time
	if head.baseline && head.baseTime.After(last) {
		last = head.baseTime
	}
	if last.IsZero() || now.After(last) {
		return now
	}
	if behind := last.Sub(now); behind > time.Second {
		l.t.o.Logger.Warn("the clock is behind the last change; times go on from there",
			"set", l.name, "clock", now, "last_change", last, "behind", behind)
	}
	return last.Add(time.Microsecond)
}

// candidateHas tells whether the deletion of an entity belongs to a held scan.
func candidateHas(ctx context.Context, r kv.Reader, gen uint64, entity string) (bool, error) {
	_, err := r.Get(ctx, candidateKey(gen, rdfres.EntityKey(entity)))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
