package destination

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// A wrong Change List, an empty feed in its place for example, looks like a gap. When the right one
// is back, and has the change at which the mirror stood before the gap, nothing is missing. A wrong
// list may also look right, and the right one after it like a gap: then it has the change of before
// the last poll. What was touched since is brought back.

// gapClosed goes back to where the mirror stood before a gap, if the Change Lists follow from there.
func (r *run) gapClosed(ctx context.Context, o *feed.Offer, m *keep.Meta) error {
	both := []ledger.Span{ledger.SincePoll, ledger.SinceGap}
	ways := []wayBack{{m.Back.Gap, both[1:]}}
	switch poll := m.Back.Poll; {
	case poll == nil:
	case poll.IsAt(m.Back.Gap): // it was met behind operations of its poll
		ways[0].spans = both
	case !o.Listed():
		ways = append(ways, wayBack{poll, both})
	}
	for _, w := range ways {
		if done, err := r.goBack(ctx, o, w); done || err != nil {
			return err
		}
	}
	return nil
}

// wayBack is a cursor of before, and the spans of the operations since.
type wayBack struct {
	to    *feed.Cursor
	spans []ledger.Span
}

// goBack goes back to a cursor, if the Change Lists follow from there. The resources touched since get
// their state there, but for those named by later changes: these are applied again.
func (r *run) goBack(ctx context.Context, o *feed.Offer, w wayBack) (done bool, err error) {
	d := r.d
	named := &locations{dir: d.cfg.TempDir, memory: d.cfg.MemoryBytes / 8}
	defer named.close()
	follows, err := d.src.Follows(ctx, o, *w.to, named.add)
	if err = errors.Join(err, named.err); !follows || err != nil {
		return false, err
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	recheck := false
	if o.Listed() { // whose next list tells more than single answers
		recheck = d.mem.SnapshotMeta().Back.Changed
		for _, t := range d.mem.Ledger.Touched(ctx, snap, w.spans...) {
			if t.Err != nil {
				return false, t.Err
			}
			recheck = true
			break
		}
		if err := d.forgetSince(ctx, d.mem.SnapshotMeta().Back.Since, named); err != nil {
			return false, err
		}
	} else if err := r.untouch(ctx, o, snap, w, named); err != nil {
		return false, err
	}
	r.why("the Change Lists have what was before the gap, which is closed")
	b := d.mem.Store.Batch()
	defer b.Close()
	d.mem.Ledger.Untouch(b, ledger.SincePoll)
	d.mem.Ledger.Untouch(b, ledger.SinceGap)
	return true, d.mem.Commit(ctx, b, func(m *keep.Meta) {
		m.At.MoveTo(*w.to)
		m.At.Cursor().ReadAgain() // it may be told again what a change in the gap has replaced
		m.Gap, m.Back = "", keep.Back{}
		if !o.Listed() {
			m.At.FoundMissing()
		}
		if recheck {
			m.Recheck.Why = "a Change List that was offered for a time is of another history"
		}
	})
}

// locations are on disk, in order.
type locations struct {
	dir    string
	memory int64
	sorter *extsort.Sorter
	err    error
}

// add takes the location of a change; nil begins anew.
func (l *locations) add(it *feed.Item) {
	if it == nil || l.sorter == nil {
		l.close()
		l.sorter, l.err = extsort.New(l.dir, l.memory)
	}
	if it != nil && l.err == nil {
		loc := ledger.HashOf(it.Loc)
		l.err = l.sorter.Add(loc[:], nil)
	}
}

func (l *locations) close() {
	if l.sorter != nil {
		l.sorter.Close()
	}
}

// has tells of locations, asked for in order, whether they are there.
func (l *locations) has() (has func(ledger.Hash) (bool, error), stop func()) {
	next, stop := pull(l.sorter)
	at, ok, err := next()
	return func(loc ledger.Hash) (bool, error) {
		for err == nil && ok && at.Compare(loc) < 0 {
			at, ok, err = next()
		}
		return err == nil && ok && at == loc, err
	}, stop
}

// former is a touched resource as it was.
type former struct {
	item *feed.Item     // how the source told it, nil: it was unknown
	kept *ledger.Record // it is recorded so, and only what is pending of it goes
}

func (f *former) goes() bool { return f.kept == nil && (f.item == nil || f.item.Change == "deleted") }

// formers are on disk, by location, each with the changes of before that are still told.
type formers struct {
	led    *ledger.Ledger
	sorter *extsort.Sorter
	some   *extsort.Keys // their locations
	n      uint64
}

const (
	formerUnknown = iota
	formerKept
	formerTold
)

func (s *formers) add(loc ledger.Hash, f *former) error {
	value := []byte{formerUnknown}
	switch {
	case f.kept != nil:
		value[0] = formerKept
	case f.item != nil:
		value = append([]byte{formerTold}, f.item.Encode()...)
	}
	return errors.Join(s.some.Add(loc[:]), s.sorter.Add(append(loc[:], make([]byte, 8)...), value))
}

func (s *formers) told(it *feed.Item) error {
	loc := ledger.HashOf(it.Loc)
	if !s.some.Maybe(loc[:]) {
		return nil
	}
	s.n++
	return s.sorter.Add(binary.BigEndian.AppendUint64(loc[:], s.n), it.Encode())
}

// each yields those that later changes do not name, by their last change.
func (s *formers) each(ctx context.Context, named *locations) iter.Seq2[ledger.Hash, formerOr] {
	return func(yield func(ledger.Hash, formerOr) bool) {
		has, stop := named.has()
		defer stop()
		var loc ledger.Hash
		var first, last []byte // of loc; none: it is not one of them
		give := func() bool {
			is, err := has(loc)
			if first == nil || is && err == nil {
				return true
			}
			var f *former
			if err == nil {
				f, err = s.decode(ctx, loc, first, last)
			}
			return yield(loc, formerOr{f, err}) && err == nil
		}
		for rec, err := range s.sorter.Sort() {
			if err != nil {
				yield(loc, formerOr{err: err})
				return
			}
			if at := ledger.Hash(rec.Key[:16]); at != loc {
				if !give() {
					return
				}
				loc, first, last = at, nil, nil
			}
			if binary.BigEndian.Uint64(rec.Key[16:]) == 0 {
				first = slices.Clone(rec.Value)
			} else {
				last = append(last[:0], rec.Value...)
			}
		}
		give()
	}
}

type formerOr struct {
	*former
	err error
}

func (s *formers) decode(ctx context.Context, loc ledger.Hash, first, last []byte) (*former, error) {
	f, err := &former{}, error(nil)
	switch first[0] {
	case formerUnknown:
		return f, nil
	case formerKept:
		if f.kept, err = s.led.Record(ctx, loc); err == nil && last == nil {
			f.item = feed.EntryOf(f.kept)
		}
	case formerTold:
		f.item, err = feed.DecodeItem(first[1:])
	}
	if err == nil && last != nil {
		f.item, err = feed.DecodeItem(last)
	}
	return f, err
}

// untouch brings the resources touched since a cursor back to their state there: by their last change of
// before, if that is still told, else by their address. Those unknown there go.
func (r *run) untouch(ctx context.Context, o *feed.Offer, snap kv.Reader, w wayBack, named *locations) error {
	d := r.d
	was, err := formersOf(ctx, d, snap, w.spans)
	if err != nil {
		return err
	}
	defer was.close()
	if was.some.Len() == 0 {
		return nil
	}
	if err := d.src.EachChange(ctx, o, &feed.Cursor{}, false, func(c feed.Change) error {
		if c.Item == nil {
			return nil
		}
		return was.told(c.Item)
	}); err != nil {
		return err
	}
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	before := r.c.Changed()
	for loc, f := range was.each(ctx, named) {
		err := f.err
		switch {
		case err != nil:
		case f.goes():
			err = b.Leave(ctx, loc, nil, ledger.Leaving{Implied: true})
		case f.kept != nil:
			err = b.Add(ctx, &apply.Op{Loc: loc, Record: f.kept, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	if err := b.Settle(ctx); err != nil {
		return err
	}
	err = d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) {
		for _, f := range was.each(ctx, named) {
			var j apply.Job
			switch {
			case f.err != nil:
			case f.goes():
				continue
			case f.kept != nil:
				j = apply.Known(f.item, f.kept)
			default:
				f.item.Ask.Tried = true
				j = apply.JobOf(d.obtains.Job(f.item))
			}
			if !yield(j, f.err) {
				return
			}
		}
	}, func(o *apply.Outcome) error { return b.Take(ctx, o) })
	if err = errors.Join(err, b.Settle(ctx)); err != nil {
		return err
	}
	if r.c.Changed() > before {
		r.mode("incremental")
	}
	return nil
}

// formersOf are the resources touched in some spans. The caller closes them.
func formersOf(ctx context.Context, d *Destination, snap kv.Reader, spans []ledger.Span) (*formers, error) {
	sorter, err := extsort.New(d.cfg.TempDir, d.cfg.MemoryBytes/8)
	if err != nil {
		return nil, err
	}
	some, err := extsort.NewKeys(d.cfg.TempDir, d.cfg.MemoryBytes/8)
	if err != nil {
		return nil, errors.Join(err, sorter.Close())
	}
	was := &formers{led: d.mem.Ledger, sorter: sorter, some: some}
	for loc, t := range d.mem.Ledger.Touched(ctx, snap, spans...) {
		f, err := (*former)(nil), t.Err
		if err == nil {
			f, err = d.former(ctx, loc, t.Touched)
		}
		if err == nil && f != nil {
			err = was.add(loc, f)
		}
		if err != nil {
			return nil, errors.Join(err, was.close())
		}
	}
	return was, nil
}

func (s *formers) close() error { return errors.Join(s.sorter.Close(), s.some.Close()) }

// former is nil for a resource that is as it was.
func (d *Destination) former(ctx context.Context, loc ledger.Hash, t *ledger.Touched) (*former, error) {
	rec, err := d.mem.Ledger.Record(ctx, loc)
	if err != nil {
		return nil, err
	}
	f, err := d.mem.Ledger.Fault(ctx, loc)
	if err != nil {
		return nil, err
	}
	l, err := d.mem.Ledger.Leaving(ctx, loc)
	if err != nil {
		return nil, err
	}
	is := t.Is(rec, d.stand.StateOf(rec))
	switch {
	case is && !t.Pending && f == nil && l == nil, len(t.Item) == 0 && rec == nil && f == nil:
		return nil, nil
	case len(t.Item) == 0:
		return &former{}, nil
	case is && !t.Pending:
		return &former{feed.EntryOf(rec), rec}, nil
	}
	it, err := feed.DecodeItem(t.Item)
	return &former{item: it}, err
}

// untold forgets changes that fail for long and are told no more, of a source without list and
// dump: a wrong Change List told of them. Those before the first change may have left the lists.
func (r *run) untold(ctx context.Context, o *feed.Offer) error {
	d := r.d
	v, err := feed.NewInventory(d.cfg.TempDir, d.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer v.Close()
	first, err := d.src.AddChanges(ctx, o, v)
	if err != nil {
		d.mem.Log.Warn("some of what changes told of fails, and they cannot be read from the first one", "error", err)
		return ctx.Err()
	}
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	failing := pairs.FailingChanges(pairs.WithFaults(ctx, d.mem.Ledger, pairs.Of(ctx, d.mem.Ledger, v, snap)), first)
	for p, err := range failing {
		if err == nil && p.Item == nil {
			err = b.Add(ctx, &apply.Op{Loc: p.Loc, Record: p.Record, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	err = d.applier.Pipeline(ctx, func(yield func(apply.Job, error) bool) { // another change was the last one
		for p, err := range failing {
			if err == nil && p.Item == nil {
				continue
			}
			if !yield(func(ctx context.Context) *apply.Outcome { return apply.JobOf(d.obtains.Job(p.Item))(ctx) }, err) {
				return
			}
		}
	}, func(o *apply.Outcome) error { return b.Take(ctx, o) })
	return errors.Join(err, b.Settle(ctx))
}

// forgetSince forgets what changes told of since a time that are none, and could not be had.
func (d *Destination) forgetSince(ctx context.Context, since time.Time, named *locations) error {
	has, stop := named.has()
	defer stop()
	b := d.applier.Batch(ctx, &apply.Counts{}, false)
	defer b.Wait()
	for loc, f := range d.mem.Ledger.Faults(ctx) {
		if f.Err != nil {
			return f.Err
		}
		if it, err := feed.DecodeItem(f.Item); err != nil || it.Change == "" || f.First.Before(since) {
			continue
		}
		switch is, err := has(loc); {
		case err != nil:
			return err
		case is:
			continue
		}
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err == nil {
			err = b.Add(ctx, &apply.Op{Loc: loc, Record: rec, Settle: true})
		}
		if err != nil {
			return err
		}
	}
	return b.Settle(ctx)
}
