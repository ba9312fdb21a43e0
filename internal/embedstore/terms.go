package embedstore

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
)

// termReader turns ids into terms. It belongs to one goroutine. Repeated terms (predicates,
// classes, the subject of the last rows) are kept in a table. It grows with use up to a fixed size.
type termReader struct {
	v     view
	local *localTerms
	curs  [2]termCursor // of literals, and of IRIs

	slots []termSlot
	miss  int
	table *termTable // of the present rows, nil for none

	beside  *termReader    // reads the next table
	reading sync.WaitGroup // work under way

	missing []uint64 // id << cellBits | cell, of the terms to read
	arena   []byte
}

type termSlot struct {
	id   id
	term string
}

const (
	minSlots = 1 << 8
	maxSlots = 1 << 15
	// keptTerm is the longest term in the table.
	keptTerm = 256
)

func newTermReader(v view, local *localTerms) *termReader {
	return &termReader{v: v, local: local, slots: make([]termSlot, minSlots)}
}

func (r *termReader) close() {
	if r.beside != nil {
		r.reading.Wait()
		r.beside.close()
	}
	for i := range r.curs {
		if r.curs[i].cursor != nil {
			r.curs[i].Close()
			r.curs[i].cursor = nil
		}
	}
}

func (r *termReader) slot(i id) *termSlot {
	h := uint64(i>>2) * 0x9E3779B97F4A7C15
	return &r.slots[h>>32&uint64(len(r.slots)-1)]
}

func (r *termReader) keep(i id, term string) {
	r.miss++
	if r.miss > 2*len(r.slots) && len(r.slots) < maxSlots {
		old := r.slots
		r.slots = make([]termSlot, 4*len(old))
		for _, s := range old {
			if s.id != 0 {
				*r.slot(s.id) = s
			}
		}
		r.miss = 0
	}
	if len(term) <= keptTerm {
		*r.slot(i) = termSlot{i, term}
	}
}

// term is the term of one id; "" for 0.
func (r *termReader) term(i id) (string, error) {
	if i == 0 {
		return "", nil
	}
	if i.isLocal() {
		return r.local.term(i), nil
	}
	if i.kind() == idBlank {
		return string(appendBlank(nil, i)), nil
	}
	if s := r.slot(i); s.id == i {
		return s.term, nil
	}
	val, err := r.read(i)
	if err != nil {
		return "", err
	}
	t := string(val)
	r.keep(i, t)
	return t, nil
}

func errNoTerm(i id) error {
	return guardfs.Damage(fmt.Errorf("no term for id %d", uint64(i)))
}

// resolve writes the terms of many ids to out. The strings are valid until the next resolve.
// Missing ids are read in one walk in their order, the order of the terms' arrival in the store.
// More than most bytes of terms are errLarge.
func (r *termReader) resolve(ids []id, out []string, most int) error {
	r.missing = r.missing[:0]
	r.arena = r.arena[:0]
	for n, i := range ids {
		switch {
		case i == 0:
			out[n] = ""
		case i.isLocal():
			out[n] = r.local.term(i)
		case i.kind() == idBlank:
			out[n] = ""
		default:
			if s := r.slot(i); s.id == i {
				out[n] = s.term
			} else if t, ok := r.table.get(i); ok {
				out[n] = t
			} else {
				r.missing = append(r.missing, uint64(i)<<cellBits|uint64(n))
			}
		}
	}
	if err := r.fetch(out, most); err != nil {
		return err
	}
	for n, i := range ids {
		if i.kind() == idBlank && !i.isLocal() && i != 0 {
			out[n] = r.stash(func(b []byte) []byte { return appendBlank(b, i) })
		}
	}
	return nil
}

// rowWalk hands out rows with their terms: few at first, so small answers come soon and cost
// little, then ever more at once. The terms of a large store stand far from each other. A walk of
// the dictionary for more terms finds more of them in each block it reads. If the order of rows is
// free, very many are collected as ids and put into the order of their literals' arrival in the
// store (arrange).
type rowWalk struct {
	r     *termReader
	width int
	fn    func(terms []string) error // of several rows; valid until it returns
	free  bool                       // rows may come in any order, those of equal first columns together
	apart bool                       // fn runs in a goroutine of its own, while the next rows are read; wait for it
	ids   []id                       // collected
	last  id                         // first column of the row before them
	ahead *rowWindow                 // arranged rows, to be handed out before
	spare rowWindow                  // one to be used again
	next  []id                       // handed out now, arranged
	out   []string
	got   gotten
	most  int           // cells handed out at once
	many  int           // cells arranged at once
	rows  int           // handed out at once now
	since time.Time     // when the last were
	quick time.Duration // rows handed out faster than this double their number
}

const (
	batchRows = 1024          // of a walk at first
	mostCells = 1 << 19       // of all rows handed out at once
	manyCells = 8 * mostCells // of all arranged rows
	manyRows  = 1 << 20
	mostBytes = 32 << 20
	cellBits  = 64 - 8*idBytes // of the number of a cell
)

// errLarge reports terms of many rows with more than mostBytes.
var errLarge = errors.New("many large terms")

func (r *termReader) walk(width int, fn func(terms []string) error) *rowWalk {
	w := &rowWalk{r: r, width: width, fn: fn, ids: make([]id, 0, 64*width), most: mostCells, many: min(manyCells, manyRows*width), since: time.Now(), quick: time.Second}
	w.rows = w.first()
	return w
}

func (w *rowWalk) add(row ...id) error {
	if w.ids = append(w.ids, row...); len(w.ids) < w.rows*w.width {
		return nil
	}
	if !w.free || 2*w.rows*w.width <= w.most {
		return w.flush()
	}
	if cap(w.ids) < w.many { // allocate the full size at once
		w.ids = append(make([]id, 0, w.many), w.ids...)
	}
	full := len(w.ids)+w.width > w.many
	if !full && (len(w.ids)>>16 == (len(w.ids)-w.width)>>16 || time.Since(w.since) < w.quick) {
		return nil
	}
	if err := w.arrange(); err != nil || full {
		return err
	}
	return w.settle()
}

func (w *rowWalk) flush() error {
	err := w.settle()
	for err == nil && len(w.ids) > w.rows*w.width {
		if err = w.arrange(); err == nil {
			err = w.settle()
		}
	}
	if err == nil && len(w.ids) > 0 {
		w.last = w.ids[len(w.ids)-w.width]
		err = w.handOut(w.ids)
		w.ids = w.ids[:0]
	}
	return cmp.Or(err, w.wait())
}

func (w *rowWalk) handOut(ids []id) error {
	if len(ids) == 0 {
		return nil
	}
	split, err := w.give(ids)
	took := time.Since(w.since)
	switch w.since = w.since.Add(took); { // do not let the reader of slow rows wait
	case split || took > 4*w.quick:
		w.rows = w.first()
	case took < w.quick && 2*w.rows*w.width <= w.most:
		w.rows *= 2
	}
	return err
}

// rowRun are rows of equal first columns.
type rowRun struct {
	came     id // the last of their literals: when they came into the store
	from, to int32
}

// rowWindow is a window of arranged rows. Its table is read in the background: until done is closed
// it belongs to the goroutine reading it.
type rowWindow struct {
	ids   []id
	order []rowRun
	table *termTable // an old one until it is read, to reuse its room
	err   error
	done  chan struct{}
}

// arrange puts the collected rows into the order of their last literals: a literal may be an old
// one met again, and the last one marks the arrival of the subject's new data. The last run may go
// on: it is kept, unless it is the only one. While the table of these rows is read, the rows
// arranged before are handed out.
func (w *rowWalk) arrange() error {
	before := w.ahead
	if before != nil {
		<-before.done
	}
	next := w.spare
	w.spare = rowWindow{}
	next.order, next.done = next.order[:0], make(chan struct{})
	for at := 0; at < len(w.ids); at += w.width {
		if at == 0 || w.ids[at] != w.ids[at-w.width] {
			next.order = append(next.order, rowRun{from: int32(at)})
		}
		run := &next.order[len(next.order)-1]
		run.to = int32(at + w.width)
		for _, i := range w.ids[at : at+w.width] {
			if i.kind() == idLiteral && !i.isLocal() {
				run.came = max(run.came, i)
			}
		}
	}
	if w.ids[0] == w.last {
		next.order[0].came = 0 // it goes on
	}
	end := len(w.ids)
	if last := len(next.order) - 1; last > 0 {
		end = int(next.order[last].from)
		next.order = next.order[:last]
	}
	w.last = w.ids[end-w.width]
	w.ids, next.ids = append(next.ids[:0], w.ids[end:]...), w.ids[:end]
	w.ahead = &next
	w.r.readBeside(&next)
	if before == nil {
		return nil
	}
	return w.giveArranged(before)
}

// settle hands out the last arranged rows.
func (w *rowWalk) settle() error {
	last := w.ahead
	if last == nil {
		return nil
	}
	w.ahead = nil
	<-last.done
	return w.giveArranged(last)
}

// giveArranged hands out rows after the reading of their table.
func (w *rowWalk) giveArranged(of *rowWindow) error {
	if of.err != nil {
		return of.err
	}
	w.r.table, of.table = of.table, w.r.table
	w.next = w.next[:0]
	for _, run := range of.order {
		for from, to := int(run.from), int(run.to); from < to; {
			n := min(to-from, w.rows*w.width-len(w.next))
			w.next = append(w.next, of.ids[from:from+n]...)
			if from += n; len(w.next) < w.rows*w.width {
				continue
			}
			if err := w.handOut(w.next); err != nil {
				return err
			}
			w.next = w.next[:0]
		}
	}
	w.spare = *of
	return w.handOut(w.next)
}

// termTable holds terms read in one walk, for very many rows at once: IRIs, since subjects and
// objects are named from everywhere, and literals known long before their subject was described,
// such as dates and years. Fewer walks make the reading quick.
type termTable struct {
	ids      []id // ascending
	literals bool // there are some
	ends     []uint32
	text     []byte
	slots    []uint32 // index in ids and 1, by hash
}

const (
	// mostTable is how long the text of a table becomes.
	mostTable = 24 << 20
	// oldLiteral is how far a literal is from the last one of its subject to be in it.
	oldLiteral id = 1 << 10
)

// readBeside reads the table of rows while others are handed out, and puts their runs
// in order.
func (r *termReader) readBeside(of *rowWindow) {
	if r.beside == nil {
		r.beside = newTermReader(r.v, nil)
	}
	r.reading.Go(func() {
		defer close(of.done)
		of.err = r.beside.readTable(of)
		slices.SortFunc(of.order, func(a, b rowRun) int { return cmp.Or(cmp.Compare(a.came, b.came), cmp.Compare(a.from, b.from)) })
	})
}

// readTable makes the table of rows, in the place of an old one. Terms missing in it are read with
// their rows.
func (r *termReader) readTable(of *rowWindow) error {
	t := &termTable{}
	if was := of.table; was != nil {
		t.ids, t.ends, t.slots = was.ids[:0], was.ends[:0], was.slots
		t.text = make([]byte, 0, len(was.text)) // its strings may be kept by a reader
	}
	of.table = nil // until it is whole
	clear(r.slots)
	for _, run := range of.order {
		for _, i := range of.ids[run.from:run.to] {
			old := i.kind() == idLiteral && i+oldLiteral < run.came
			if !old && i.kind() != idIRI || i.isLocal() {
				continue
			}
			if s := r.slot(i); s.id != i { // else it came a moment ago, as predicates do
				s.id = i
				t.ids = append(t.ids, i)
				t.literals = t.literals || old
			}
		}
	}
	slices.Sort(t.ids)
	all := slices.Compact(t.ids)
	t.ids = all[:0]
	for _, i := range all {
		val, err := r.read(i)
		if err != nil {
			return err
		}
		if len(val) > keptTerm {
			continue
		}
		if t.text = append(t.text, val...); len(t.text) > mostTable {
			break
		}
		t.ids = append(t.ids, i)
		t.ends = append(t.ends, uint32(len(t.text)))
	}
	size := 1 << bits.Len(uint(2*len(t.ids)))
	if len(t.slots) != size {
		t.slots = make([]uint32, size)
	}
	clear(t.slots)
	for n, i := range t.ids {
		at := t.slotOf(i)
		for ; t.slots[at] != 0; at = (at + 1) & (len(t.slots) - 1) {
		}
		t.slots[at] = uint32(n + 1)
	}
	of.table = t
	return nil
}

func (t *termTable) slotOf(i id) int {
	return int(uint64(i>>2) * 0x9E3779B97F4A7C15 >> 32 & uint64(len(t.slots)-1))
}

// get gives the term of an id in the table.
func (t *termTable) get(i id) (string, bool) {
	if t == nil || i.kind() == idLiteral && !t.literals {
		return "", false
	}
	for at := t.slotOf(i); t.slots[at] != 0; at = (at + 1) & (len(t.slots) - 1) {
		n := t.slots[at] - 1
		if t.ids[n] != i {
			continue
		}
		from := uint32(0)
		if n > 0 {
			from = t.ends[n-1]
		}
		return unsafe.String(&t.text[from], int(t.ends[n]-from)), true
	}
	return "", false
}

// first is how many rows are handed out at once at first.
func (w *rowWalk) first() int { return max(1, min(batchRows, w.most/w.width)) }

// give tells whether the rows had to be handed out in parts.
func (w *rowWalk) give(ids []id) (split bool, err error) {
	most := mostBytes
	if len(ids) <= w.first()*w.width {
		most = math.MaxInt
	}
	if len(w.out) < len(ids) {
		w.out = make([]string, len(ids))
	}
	out := w.out[:len(ids)]
	switch err := w.r.resolve(ids, out, most); err {
	case nil:
		return false, w.pass(out)
	case errLarge:
		at := len(ids) / w.width / 2 * w.width
		if _, err := w.give(ids[:at]); err != nil {
			return true, err
		}
		_, err := w.give(ids[at:])
		return true, err
	default:
		return false, err
	}
}

// gotten is a batch for fn in the background, and its room.
type gotten struct {
	done  chan error // nil: it has nothing
	out   []string
	arena []byte
}

func (w *rowWalk) pass(rows []string) error {
	if !w.apart {
		return w.fn(rows)
	}
	if err := w.wait(); err != nil {
		return err
	}
	done := make(chan error, 1)
	w.got.done = done
	go func() { done <- w.fn(rows) }()
	w.out, w.got.out = w.got.out, w.out
	w.r.arena, w.got.arena = w.got.arena, w.r.arena
	return nil
}

// wait waits until fn is done with its batch.
func (w *rowWalk) wait() error {
	if w.got.done == nil {
		return nil
	}
	err := <-w.got.done
	w.got.done = nil
	return err
}

// stash puts bytes into the arena. A full arena is left to its strings.
func (r *termReader) stash(fill func([]byte) []byte) string {
	if cap(r.arena)-len(r.arena) < 64 {
		r.arena = make([]byte, 0, max(64<<10, 2*64))
	}
	from := len(r.arena)
	r.arena = fill(r.arena)
	return unsafe.String(unsafe.SliceData(r.arena[from:]), len(r.arena)-from)
}

func (r *termReader) stashBytes(v []byte) string {
	if len(v) == 0 {
		return ""
	}
	if cap(r.arena)-len(r.arena) < len(v) {
		r.arena = make([]byte, 0, max(64<<10, len(v)))
	}
	from := len(r.arena)
	r.arena = append(r.arena, v...)
	return unsafe.String(&r.arena[from], len(v))
}

func (r *termReader) fetch(out []string, most int) error {
	if len(r.missing) == 0 {
		return nil
	}
	slices.Sort(r.missing)
	last, from := id(0), 0
	for _, m := range r.missing {
		i, cell := id(m>>cellBits), int(m&(1<<cellBits-1))
		if i == last {
			out[cell] = out[from]
			continue
		}
		last, from = i, cell
		val, err := r.read(i)
		if err != nil {
			return err
		}
		if most -= len(val); most < 0 {
			return errLarge
		}
		if i.kind() == idIRI && len(val) <= keptTerm {
			t := string(val)
			r.keep(i, t)
			out[cell] = t
		} else {
			out[cell] = r.stashBytes(val)
		}
	}
	return nil
}

// read gives a stored term, valid until the next call.
func (r *termReader) read(i id) ([]byte, error) {
	space := termSpace(i)
	c := &r.curs[space-spaceTerm]
	if c.cursor == nil {
		cur, err := r.v.iter(space)
		if err != nil {
			return nil, err
		}
		c.cursor = cur
	}
	if err := c.to(i); err != nil {
		return nil, err
	}
	if c.at != i {
		return nil, errNoTerm(i)
	}
	return c.term, nil
}

// localTerms are terms made or named by one query and unknown to the store. Their ids have idLocal
// set.
type localTerms struct {
	ids   map[string]id
	terms []string
	bytes int64
}

func (l *localTerms) term(i id) string {
	if i&idFresh != 0 {
		return "_:q" + strconv.FormatUint(uint64(i&^(idLocal|idFresh))>>2, 10)
	}
	return l.terms[(i&^idLocal)>>2]
}

// intern gives term an id of this query.
func (l *localTerms) intern(term string) id {
	if i, ok := l.ids[term]; ok {
		return i
	}
	if l.ids == nil {
		l.ids = map[string]id{}
	}
	i := idLocal | id(len(l.terms))<<2 | kindOf(term)
	l.ids[term] = i
	l.terms = append(l.terms, term)
	l.bytes += int64(len(term)) + 64
	return i
}
