package changetrack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Check verifies the invariants of the records: sequences without gaps, times increasing, each
// state equal to the replay of the log, each representation there with its hash, no record without
// an owner. For tests and for `rsbridge check --records`. It reads everything, in bounded memory,
// and ends with the first fault.
func (l *Log) Check(ctx context.Context) error {
	v := l.View(ctx)
	defer v.Close()
	c := &checker{v}
	err := v.err
	for _, step := range []func(context.Context) error{c.log, c.entities, c.files, c.ended, c.rest} {
		if err == nil {
			err = step(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("check log of set %s: %w", l.name, err)
	}
	return nil
}

type checker struct{ v *View }

func wrong(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errDamaged)...)
}

// log reads every change in order.
func (c *checker) log(ctx context.Context) error {
	h := c.v.head
	at, seq := h.tailTime, h.tail
	for ch, err := range c.v.Changes(ctx, 0) {
		if err != nil {
			return err
		}
		if !ch.Time.After(at) {
			return wrong("change %d is of %s, the one before of %s", ch.Sequence, ch.Time, at)
		}
		at, seq = ch.Time, ch.Sequence
		if err := checkChange(&ch); err != nil {
			return err
		}
		if !ch.OfEntity() {
			continue
		}
		key := rdfres.EntityKey(ch.Entity)
		b, err := c.v.r.Get(ctx, entitySeqKey(kindHistory, key, seq))
		if errors.Is(err, kv.ErrNotFound) {
			var s *stateRecord
			if s, _, err = stateOf(ctx, c.v.r, key); err == nil && s.firstSeq != seq {
				err = kv.ErrNotFound
			}
		}
		if err != nil || len(b) != 0 {
			return wrong("change %d is not in the history of %s (%v)", seq, ch.Entity, err)
		}
	}
	if seq != h.seq || !at.Equal(h.time) {
		return wrong("log ends with %d at %s, head is %d at %s", seq, at, h.seq, h.time)
	}
	for _, err := range c.v.r.Scan(ctx, []byte{kindLog}, seqKey(kindLog, h.tail+1)) {
		if err != nil {
			return err
		}
		return wrong("there are changes before the tail %d", h.tail)
	}
	for _, err := range c.v.r.Scan(ctx, seqKey(kindLog, h.seq+1), []byte{kindLog + 1}) {
		if err != nil {
			return err
		}
		return wrong("there are changes after the head %d", h.seq)
	}
	return nil
}

// checkChange looks at one change alone.
func checkChange(ch *Change) error {
	b, a := ch.Before, ch.After
	ok := ch.Entity != "" && ch.Finder != ""
	if ch.OfFile() {
		if ch.Entity != "" || a != nil || b != nil || (ch.FileBefore == nil) != (ch.Kind == Created) || (ch.FileAfter == nil) != (ch.Kind == Deleted) {
			return wrong("change %d (%s of the file %s) contradicts itself", ch.Sequence, ch.Kind, ch.File)
		}
		return nil
	}
	switch ch.Kind {
	case Rebased:
		ok = ch.Entity == "" && ch.Finder != "" && b == nil && a == nil
	case Created:
		ok = ok && b == nil && a != nil
	case Updated:
		ok = ok && b != nil && a != nil
	case Deleted:
		ok = ok && b != nil && a == nil
	default:
		ok = false
	}
	if ok && a != nil {
		ok = a.Sequence == ch.Sequence && a.Time.Equal(ch.Time)
	}
	if ok && b != nil {
		ok = b.Sequence < ch.Sequence && b.Time.Before(ch.Time)
	}
	if !ok {
		return wrong("change %d (%s of %s) contradicts itself", ch.Sequence, ch.Kind, ch.Entity)
	}
	return nil
}

// cursor steps through records of one kind.
type cursor struct {
	next  func() (kv.Pair, error, bool)
	stop  func()
	is    func(kv.Pair) (bool, error) // skips the others; nil: none is skipped
	pair  kv.Pair
	ok    bool
	count int // of its records so far
}

func newCursor(pairs iter.Seq2[kv.Pair, error], is func(kv.Pair) (bool, error)) (*cursor, error) {
	cur := &cursor{is: is}
	cur.next, cur.stop = iter.Pull2(pairs)
	return cur, cur.advance()
}

func (c *cursor) advance() (err error) {
	for {
		if c.pair, err, c.ok = c.next(); err != nil || !c.ok {
			return err
		}
		is := true
		if c.is != nil {
			is, err = c.is(c.pair)
		}
		if is || err != nil {
			c.count++
			return err
		}
	}
}

// pass steps over the records of one short key, and counts them.
func (c *cursor) pass(key []byte) (n int, err error) {
	for c.at(key) && err == nil {
		n++
		err = c.advance()
	}
	return n, err
}

// at tells whether the cursor stands at a record of the entity with this key.
func (c *cursor) at(key []byte) bool { return c.ok && bytes.HasPrefix(c.pair.Key[1:], key[:shortKey]) }

// entities walks states, histories and representations side by side: all three
// are in the order of the entity keys.
func (c *checker) entities(ctx context.Context) error {
	var cs [3]*cursor
	for i, pairs := range []iter.Seq2[kv.Pair, error]{knownStates(ctx, c.v.r, rdfres.Digest{}, rdfres.Digest{}),
		c.v.r.Scan(ctx, []byte{kindHistory}, []byte{kindHistory + 1}), c.v.r.Scan(ctx, []byte{kindBlob}, []byte{kindBlob + 1})} {
		cur, err := newCursor(pairs, nil)
		if err != nil {
			return err
		}
		defer cur.stop()
		cs[i] = cur
	}
	states, history, blobs := cs[0], cs[1], cs[2]
	var resources, components, triples int64
	for states.ok {
		var alike []*stateRecord // of one short key: nearly always one
		for first := states.pair.Key; len(alike) == 0 || states.at(first[1:]); {
			s, err := readState(states.pair.Value)
			if err != nil {
				return err
			}
			k, kind := rdfres.EntityKey(s.entity), byte(kindState)
			if s.current == nil {
				kind = kindGone
			}
			if !isState(states.pair.Key[1:], &k) || states.pair.Key[0] != kind {
				return wrong("state of %s stands under another key", s.entity)
			}
			first, alike = entityKey(kind, k), append(alike, s)
			if s.current != nil {
				resources++
				triples += int64(s.current.Triples)
				if isComponent(s.entity) {
					components++
				}
			}
			if err := states.advance(); err != nil {
				return err
			}
		}
		var err error
		if len(alike) > 1 {
			err = c.apart(ctx, alike, history, blobs)
		} else {
			err = c.entity(ctx, alike[0], history, blobs)
		}
		if err != nil {
			return err
		}
	}
	if history.ok || blobs.ok {
		return wrong("there is a history or a representation without an entity")
	}
	h := c.v.head
	if resources != h.resources || components != h.components || triples != h.triples {
		return wrong("head counts %d resources, %d components, %d triples; there are %d, %d, %d",
			h.resources, h.components, h.triples, resources, components, triples)
	}
	return nil
}

// apart checks entities with one short key, each by its own records. Together they have all records of the key.
func (c *checker) apart(ctx context.Context, alike []*stateRecord, history, blobs *cursor) error {
	k := rdfres.EntityKey(alike[0].entity)
	counts := [2]int{}
	for _, s := range alike {
		of := func(kind byte) (*cursor, error) {
			prefix := shortEntityKey(kind, k)
			return newCursor(c.v.r.Scan(ctx, prefix, kv.PrefixEnd(prefix)), func(p kv.Pair) (bool, error) { return c.isOf(ctx, s, k, lastSeq(p.Key)) })
		}
		ownHistory, err := of(kindHistory)
		if err != nil {
			return err
		}
		defer ownHistory.stop()
		ownBlobs, err := of(kindBlob)
		if err != nil {
			return err
		}
		defer ownBlobs.stop()
		if err := c.entity(ctx, s, ownHistory, ownBlobs); err != nil {
			return err
		}
		counts[0] += ownHistory.count
		counts[1] += ownBlobs.count
	}
	for i, all := range []*cursor{history, blobs} {
		n, err := all.pass(k[:])
		if err != nil {
			return err
		}
		if n != counts[i] {
			return wrong("there is a history or a representation without an entity beside %s", alike[0].entity)
		}
	}
	return nil
}

// isOf tells whether a change is of the entity of a state. Both have the short key of k.
func (c *checker) isOf(ctx context.Context, s *stateRecord, k rdfres.Digest, seq uint64) (bool, error) {
	b, err := c.v.r.Get(ctx, entitySeqKey(kindHistory, k, seq))
	if errors.Is(err, kv.ErrNotFound) {
		return seq == s.firstSeq, nil // in the log alone
	}
	if err == nil && len(b) == 0 {
		b, err = c.v.r.Get(ctx, seqKey(kindLog, seq))
	}
	if err != nil {
		return false, err
	}
	ch, err := readChange(seq, b)
	return ch.Entity == s.entity, err
}

// entity replays the history of one entity and compares the end with its state.
func (c *checker) entity(ctx context.Context, s *stateRecord, history, blobs *cursor) error {
	if err := c.replay(ctx, s, history, blobs); err != nil {
		return fmt.Errorf("%s: %w", s.entity, err)
	}
	return nil
}

func (c *checker) replay(ctx context.Context, s *stateRecord, history, blobs *cursor) error {
	k := rdfres.EntityKey(s.entity)
	key := k[:]
	var first, last *Change
	var n uint64
	alone := s.firstSeq > c.v.head.tail // its first change is in the log alone
	for alone || history.at(key) {
		seq, b := s.firstSeq, []byte(nil)
		if !alone {
			if seq, b = lastSeq(history.pair.Key), history.pair.Value; seq == s.firstSeq && len(b) == 0 {
				return wrong("the first change, %d, is in the history and in the log", seq)
			}
		}
		moved := len(b) > 0
		if moved != (seq <= c.v.head.tail) {
			return wrong("change %d is in the history or in the log, and belongs to the other (tail %d)", seq, c.v.head.tail)
		}
		var err error
		if !moved {
			if b, err = c.v.r.Get(ctx, seqKey(kindLog, seq)); err != nil {
				return fmt.Errorf("change %d: %w", seq, err)
			}
		}
		ch, err := readChange(seq, b)
		once := ch.After == elsewhere // no second record has its digest
		if err == nil && once {
			ch.After, err = versionAfter(ctx, c.v.r, &ch)
		}
		if err == nil {
			err = c.follows(s, last, &ch)
		}
		if err == nil {
			err = c.version(ctx, s, &ch, blobs, key, once)
		}
		if err != nil {
			return err
		}
		if last = &ch; n == 0 {
			first = last
		}
		n++
		if alone {
			alone = false
			continue
		}
		if err := history.advance(); err != nil {
			return err
		}
	}
	switch {
	case last == nil:
		return wrong("there is no change of it")
	case s.firstSeq == 0 || s.firstSeq > first.Sequence || (s.firstSeq == first.Sequence) != s.first.Equal(first.Time) || s.first.After(first.Time):
		return wrong("its first change is %d at %s, the oldest one there is %d at %s", s.firstSeq, s.first, first.Sequence, first.Time)
	case s.changes == n && s.firstSeq != first.Sequence:
		return wrong("it counts %d changes from %d on, and all of them begin with %d", s.changes, s.firstSeq, first.Sequence)
	case blobs.at(key):
		return wrong("there is a representation of %d, which is no version", lastSeq(blobs.pair.Key))
	case s.current == nil && (last.Kind != Deleted || last.Sequence != s.delSeq || !last.Time.Equal(s.delTime)):
		return wrong("it is deleted by %d, its last change is %s by %d", s.delSeq, last.Kind, last.Sequence)
	case s.current != nil && !reflect.DeepEqual(s.current, last.After):
		return wrong("its version is %v, its last change made %v", s.current, last.After)
	case s.changes < n || c.v.head.tail == 0 && s.changes != n:
		return wrong("it counts %d changes, there are %d", s.changes, n)
	case c.v.head.tail == 0 && last.Sequence == 0:
		return wrong("sequence 0")
	}
	return nil
}

// follows: the change begins at the end of the one before it.
func (c *checker) follows(s *stateRecord, last, ch *Change) error {
	if ch.Entity != s.entity {
		return wrong("change %d is of %s", ch.Sequence, ch.Entity)
	}
	if err := checkChange(ch); err != nil {
		return err
	}
	if last == nil {
		if ch.Kind != Created && c.v.head.tail == 0 {
			return wrong("the first change, %d, is %s", ch.Sequence, ch.Kind)
		}
		return nil
	}
	if ch.Sequence <= last.Sequence {
		return wrong("change %d comes after %d", ch.Sequence, last.Sequence)
	}
	if (last.After == nil) != (ch.Before == nil) || last.After != nil && !reflect.DeepEqual(last.After, ch.Before) {
		return wrong("change %d begins with %v, change %d ended with %v", ch.Sequence, ch.Before, last.Sequence, last.After)
	}
	return nil
}

// version: the representation of a version is there while it is current or waits to be dropped. It
// has the promised bytes, and with digest also the graph.
func (c *checker) version(ctx context.Context, s *stateRecord, ch *Change, blobs *cursor, key []byte, digest bool) error {
	have := blobs.at(key) && lastSeq(blobs.pair.Key) == ch.Sequence
	if ch.After == nil {
		if have {
			return wrong("there is a representation of the deletion %d", ch.Sequence)
		}
		return nil
	}
	if !have {
		if s.current != nil && s.current.Sequence == ch.Sequence {
			return wrong("there is no representation of the current version %d", ch.Sequence)
		}
		if ch.Sequence <= c.v.head.tail {
			return wrong("change %d is kept, its version is not", ch.Sequence)
		}
		return nil // ended before retention; ended checks the others
	}
	blob, err := readBlob(blobs.pair.Value)
	if err != nil {
		return err
	}
	data, err := blob.Bytes()
	if err != nil {
		return fmt.Errorf("version %d: %w", ch.Sequence, err)
	}
	f := ch.After.Fixity
	if got := rdfres.ComputeFixity(data, f.MD5 != nil, f.SHA1 != nil); !reflect.DeepEqual(got, f) {
		return wrong("representation of version %d has not the promised hash", ch.Sequence)
	}
	if digest {
		ts, err := c.v.l.t.o.decode(ch.After.Format, data, rdfres.ReadOptions{Name: ch.Entity})
		if err != nil || rdfres.GraphDigest(ts) != ch.After.Graph || len(ts) != ch.After.Triples {
			return wrong("representation of version %d has not the promised graph (%v)", ch.Sequence, err)
		}
	}
	return blobs.advance()
}

// ended: every ended and kept version has a record of its end, in the order of the sequences, and
// the other way round.
func (c *checker) ended(ctx context.Context) error {
	var ended int64
	for p, err := range c.v.r.Scan(ctx, []byte{kindEnded}, []byte{kindEnded + 1}) {
		if err != nil {
			return err
		}
		e, err := readEnded(p.Value)
		if err != nil {
			return err
		}
		seq := lastSeq(p.Key)
		ch, err := c.v.change(ctx, e.key, seq)
		if err != nil {
			return fmt.Errorf("version %d ended with %d: %w", e.start, seq, err)
		}
		if ch.Before == nil || ch.Before.Sequence != e.start || !ch.Time.Equal(e.time) || e.deleted != (ch.Kind == Deleted) {
			return wrong("version %d ended with %d, which says otherwise", e.start, seq)
		}
		if ok, err := exists(ctx, c.v.r, entitySeqKey(kindBlob, e.key, e.start)); err != nil || !ok {
			return wrong("version %d, ended with %d, has no representation (%v)", e.start, seq, err)
		}
		ended++
	}
	var blobs int64
	for _, err := range c.v.r.Scan(ctx, []byte{kindBlob}, []byte{kindBlob + 1}) {
		if err != nil {
			return err
		}
		blobs++
	}
	if blobs != ended+c.v.head.resources {
		return wrong("there are %d representations, for %d current and %d ended versions", blobs, c.v.head.resources, ended)
	}
	return nil
}

// rest: single records can be read.
func (c *checker) rest(ctx context.Context) error {
	if _, err := readHeld(ctx, c.v.r); err != nil {
		return err
	}
	if b, err := c.v.r.Get(ctx, lastScanKey); err == nil {
		if _, err := readLastScan(b); err != nil {
			return err
		}
	} else if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	h := c.v.head
	if h.tail > h.seq || h.baseline && h.baseSeq > h.seq {
		return wrong("head %d, tail %d, end of the baseline %d", h.seq, h.tail, h.baseSeq)
	}
	return nil
}
