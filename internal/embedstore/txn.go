package embedstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// spillBytes is how large the batch of a transaction may grow in memory.
const spillBytes = 16 << 20

// A long literal stays in memory, up to longBytes in one transaction: on its way through
// the scratch space it would be held there four times more.
const (
	longValue = 1 << 20
	longBytes = 256 << 20
)

// txn is one write under way; it belongs to the writer. Changes are kept in an indexed batch, and
// beyond spillBytes in a scratch space on disk, so reads of the transaction see its own changes.
type txn struct {
	s     *Store
	v     view
	batch *pebble.Batch
	over  *overlay // nil while all fits the batch
	old   []*pebble.Batch
	long  int // bytes of long values in the batch

	first   uint64 // s.next at the beginning
	next    uint64
	counts  map[id]int64 // changes per graph
	key     [quadKeyLen]byte
	known   map[string]id // terms of this transaction, bounded
	changed bool
	places  map[[2]id]struct{} // touched, for the journal
	wiped   bool
}

// newTxn begins a transaction; the caller holds the right to write.
func (s *Store) newTxn() *txn {
	t := &txn{s: s, batch: s.db.NewIndexedBatch(), first: s.next, next: s.next, counts: map[id]int64{}, known: map[string]id{}, places: map[[2]id]struct{}{}}
	t.v = pebbleView{t.batch}
	return t
}

func (t *txn) set(key, value []byte) error {
	if t.over != nil {
		return t.over.put(key, value, opSet)
	}
	if err := t.batch.Set(key, value, nil); err != nil {
		return err
	}
	if len(value) >= longValue {
		t.long += len(value)
	}
	return t.grown()
}

func (t *txn) del(key []byte) error {
	if t.over != nil {
		return t.over.put(key, nil, opDelete)
	}
	if err := t.batch.Delete(key, nil); err != nil {
		return err
	}
	return t.grown()
}

// grown moves the changes to disk when there are too many of them for memory.
func (t *txn) grown() error {
	if t.batch.Len()-min(t.long, longBytes) < spillBytes && !(t.s.forced.spill && t.batch.Count() > 3) {
		return nil
	}
	over, err := newOverlay(t.s)
	if err != nil {
		return err
	}
	for r := t.batch.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil {
			over.close()
			return err
		}
		if !ok {
			break
		}
		op := opSet
		if kind == pebble.InternalKeyKindDelete {
			op = opDelete
		}
		if err := over.put(key, value, op); err != nil {
			over.close()
			return err
		}
	}
	// Cursors may still stand on the batch: it is closed in the end.
	t.old = append(t.old, t.batch)
	t.batch, t.over = nil, over
	t.v = over
	return nil
}

// termID is the id of a term; a new one when the store does not hold it.
// Blank nodes are the store's own (see freshBlank).
func (t *txn) termID(term string) (id, error) {
	if term == "" {
		return 0, nil
	}
	if i, ok := t.known[term]; ok {
		return i, nil
	}
	i, err := lookup(t.v, term)
	if err != nil {
		return 0, err
	}
	if i == 0 {
		if kindOf(term) == idBlank {
			return 0, fmt.Errorf("blank node %s is not of this store", term)
		}
		if i, err = t.fresh(kindOf(term)); err != nil {
			return 0, err
		}
		k := hashKey(hashTerm(term))
		if err := t.set(k[:], appendID(nil, i)); err != nil {
			return 0, err
		}
		if err := t.set(termKey(i), unsafe.Slice(unsafe.StringData(term), len(term))); err != nil { // set only reads it
			return 0, err
		}
	}
	if len(t.known) < 10000 && len(term) < longValue {
		t.known[term] = i
	}
	return i, nil
}

// fresh is an id never used before.
func (t *txn) fresh(kind id) (id, error) {
	i := id(t.next)<<2 | kind
	if i > maxID {
		return 0, fmt.Errorf("the store is full: it has named %d terms", t.next)
	}
	t.next++
	return i, nil
}

func (t *txn) has(q *quad) (bool, error) {
	quadKey(&t.key, 3, q)
	_, ok, err := t.v.get(t.key[:])
	return ok, err
}

// insert adds q and tells whether it is new.
func (t *txn) insert(q *quad) (bool, error) {
	if ok, err := t.has(q); err != nil || ok {
		return false, err
	}
	for i := range orders {
		quadKey(&t.key, i, q)
		if err := t.set(t.key[:], nil); err != nil {
			return false, err
		}
	}
	t.counts[q[posG]]++
	t.note(q)
	return true, nil
}

// remove takes q away and tells whether it was there.
func (t *txn) remove(q *quad) (bool, error) {
	if ok, err := t.has(q); err != nil || !ok {
		return false, err
	}
	return true, t.removeHeld(q)
}

// removeHeld takes away a quad known to be there.
func (t *txn) removeHeld(q *quad) error {
	for i := range orders {
		quadKey(&t.key, i, q)
		if err := t.del(t.key[:]); err != nil {
			return err
		}
	}
	t.counts[q[posG]]--
	t.note(q)
	return nil
}

// untouched tells whether nothing was changed so far.
func (t *txn) untouched() bool {
	return t.over == nil && t.batch.Empty() && len(t.counts) == 0 && t.next == t.first
}

// wipe takes everything away, the terms too, in one cheap step. Quads removed one by one are only
// hidden by their deletion records, and their terms stay for ever. Numbers are not given a second
// time. Nothing else may be done in the transaction.
func (t *txn) wipe() error {
	t.changed, t.wiped = true, true
	return t.batch.DeleteRange([]byte{spaceCount}, []byte{spaceGSPO + 1}, nil)
}

// settle writes the counts of all changes so far, so reads of the transaction see them.
func (t *txn) settle() error {
	for g, d := range t.counts {
		n, err := graphCount(t.v, g)
		if err != nil {
			return err
		}
		if n+d < 0 {
			return guardfs.Damage(fmt.Errorf("graph %d would hold %d triples", uint64(g), n+d))
		}
		if n+d == 0 {
			err = t.del(countKey(g))
		} else {
			err = t.set(countKey(g), putCount(n+d))
		}
		if err != nil {
			return err
		}
		t.changed = true
	}
	clear(t.counts)
	return nil
}

// commit makes the changes visible and durable. The transaction is over
// afterwards, whatever comes back.
func (t *txn) commit(ctx context.Context) (err error) {
	defer t.close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := t.settle(); err != nil {
		return err
	}
	changed := t.changed || t.next != t.first
	if t.next != t.first {
		if err := t.set(keyNext, putNext(t.next)); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	m := t.s.commits.last
	if t.changed {
		m = m.next()
		if err := t.journal(m); err != nil {
			return err
		}
	}
	if t.over == nil {
		b := t.batch
		t.batch = nil
		if err := t.s.apply(b, pebble.Sync); err != nil {
			return err
		}
	} else if err := t.over.ingest(ctx); err != nil {
		return err
	}
	t.s.next = t.next
	t.s.committed(m)
	return nil
}

func (t *txn) close() {
	if t.batch != nil {
		t.batch.Close()
		t.batch = nil
	}
	for _, b := range t.old {
		b.Close()
	}
	t.old = nil
	if t.over != nil {
		t.over.close()
		t.over = nil
	}
}

// overlay is a view of the store under changes in a scratch space on disk. In the scratch space the
// first byte of a value is the change.
type overlay struct {
	s    *Store
	dir  string
	db   *pebble.DB
	disk *guardfs.Guard
	wbuf []byte
}

const (
	opSet    byte = 1
	opDelete byte = 2
)

var scratchNumber atomic.Int64

func newOverlay(s *Store) (*overlay, error) {
	dir := s.tmp("txn" + strconv.FormatInt(scratchNumber.Add(1), 10))
	o := pebbleOptions(8 << 20)
	o.DisableWAL = true
	o.MemTableSize = 32 << 20
	disk := guardfs.Scratch("the space of a large transaction", s.opts.fs, s.log)
	db, err := disk.Open(context.Background(), dir, o)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("make room for a large transaction: %w", err)
	}
	return &overlay{s: s, dir: dir, db: db, disk: disk}, nil
}

func (o *overlay) close() {
	o.disk.Close(o.db.Close) // of no use to anybody any more
	os.RemoveAll(o.dir)
}

// err is the fault of the scratch space: after one its content is worthless.
func (o *overlay) err() error {
	if err := o.disk.Err(); err != nil {
		return fmt.Errorf("write the space of a large transaction in %s: %w", o.dir, err)
	}
	return nil
}

func (o *overlay) put(key, value []byte, op byte) error {
	if err := o.err(); err != nil {
		return err
	}
	o.wbuf = append(append(o.wbuf[:0], op), value...)
	return o.db.Set(key, o.wbuf, pebble.NoSync)
}

func (o *overlay) get(key []byte) ([]byte, bool, error) {
	val, ok, err := pebbleView{o.db}.get(key)
	if err := errors.Join(o.err(), err); err != nil {
		return nil, false, err
	}
	if ok {
		return val[1:], val[0] == opSet, nil
	}
	return pebbleView{o.s.db}.get(key)
}

func (o *overlay) iter(space byte) (cursor, error) {
	base, err := pebbleView{o.s.db}.iter(space)
	if err != nil {
		return nil, err
	}
	top, err := pebbleView{o.db}.iter(space)
	if err != nil {
		base.Close()
		return nil, err
	}
	return &overlayCursor{o: o, base: base, top: top}, nil
}

// ingest makes the changes part of the store in one step.
func (o *overlay) ingest(ctx context.Context) error {
	w := newTables(o.s)
	defer w.discard()
	it, err := o.db.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v := it.Value()
		if v[0] == opSet {
			err = w.set(it.Key(), v[1:])
		} else {
			err = w.del(it.Key())
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(it.Error(), o.err()); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	return w.ingest(ctx)
}

// overlayCursor merges two cursors; a key of top hides the same key of base.
type overlayCursor struct {
	o         *overlay
	base, top cursor
	onTop     bool
	both      bool
}

func (c *overlayCursor) SeekGE(key []byte) bool {
	c.base.SeekGE(key)
	c.top.SeekGE(key)
	return c.settle()
}

func (c *overlayCursor) First() bool {
	c.base.First()
	c.top.First()
	return c.settle()
}

func (c *overlayCursor) Next() bool {
	if c.onTop {
		c.top.Next()
		if c.both {
			c.base.Next()
		}
	} else {
		c.base.Next()
	}
	return c.settle()
}

// settle finds the cursor with the next key.
func (c *overlayCursor) settle() bool {
	for {
		c.onTop, c.both = false, false
		if !c.top.Valid() {
			return c.base.Valid()
		}
		cmp := -1
		if c.base.Valid() {
			cmp = bytes.Compare(c.top.Key(), c.base.Key())
		}
		if cmp > 0 {
			return true
		}
		c.onTop, c.both = true, cmp == 0
		if c.top.Value()[0] == opSet {
			return true
		}
		c.top.Next()
		if c.both {
			c.base.Next()
		}
	}
}

func (c *overlayCursor) Valid() bool {
	if c.onTop {
		return c.top.Valid()
	}
	return c.base.Valid()
}

func (c *overlayCursor) Key() []byte {
	if c.onTop {
		return c.top.Key()
	}
	return c.base.Key()
}

func (c *overlayCursor) Value() []byte {
	if c.onTop {
		return c.top.Value()[1:]
	}
	return c.base.Value()
}

func (c *overlayCursor) Error() error {
	return errors.Join(c.base.Error(), c.top.Error(), c.o.err())
}

func (c *overlayCursor) Close() error {
	err := c.base.Close()
	if terr := c.top.Close(); err == nil {
		err = terr
	}
	return err
}
