package destination

import (
	"context"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// window collects changes, keeps the last for each resource, fetches them beside
// each other and applies them with the cursor behind the last.
type window struct {
	d      *Destination
	r      *run
	order  []*item.Item
	items  map[ledger.Hash]int // position in order
	count  int
	from   uint64      // the number of the change before them, 0 for none
	at     feed.Cursor // behind everything added
	any    bool
	ahead  *feed.Newest // the last change of a window that was cut off before, until it is met
	begins bool         // nothing is mirrored yet, and the changes are all there is
	stays  bool         // so does the cursor: what was added is not proven to follow it yet
	back   *feed.Cursor // the beginning, until the first operation; nil: the mirror never goes back there
	first  *feed.Newest // the first change of an empty mirror

	dump     *feed.Offer // with a Change Dump beside the changes, nil for none
	packages *feed.ChangePackages
	packaged bool // some of the collected are in a package that is read as a list
}

// maxTogether bounds the changes of one number, in windows.
const maxTogether = 10

// stands is the place of the mirror in the source's changes.
func (r *run) stands() feed.Cursor {
	m := r.d.mem.SnapshotMeta()
	return *m.At.Cursor()
}

// window begins at a cursor. If the changes themselves come from the Change Dump, it is no
// further place of their bytes.
func (r *run) window(o *feed.Offer, from feed.Cursor) *window {
	d := r.d
	from.NextPoll()
	w := &window{d: d, r: r, items: map[ledger.Hash]int{}, from: from.Number(), at: from, ahead: from.Ahead()}
	if _, kind := o.Changes(); kind == resourcesync.ChangeList && o.ChangeDump != "" {
		w.dump = o
	}
	if !o.Listed() && from.Newest() != nil && from.Ahead() == nil {
		w.back = &from
	}
	if !o.Listed() {
		w.at.Hear()
	}
	m := d.mem.SnapshotMeta()
	w.begins = !o.Listed() && m.Resources == 0 && m.First == nil && !from.HasRead() && !m.At.HasList()
	return w
}

func (w *window) add(ctx context.Context, c feed.Change) error {
	w.stays = c.Unproven
	if c.Item == nil { // the end of a list
		w.at.End(&c)
		w.r.gap.shrunk = w.r.gap.shrunk || c.Shrunk
		if w.packaged {
			return w.apply(ctx, nil) // while the package is open
		}
		return nil
	}
	if n := w.ahead; n != nil && n.LooksLike(c.Item) {
		w.ahead = nil
	}
	// Entries of one number (a resource that moved: deleted here, created there)
	// are never cut apart, because the cursor could not stand between them.
	together := c.Item.Sequence > 0 && c.Item.Sequence == w.at.Number()
	if together && len(w.order) >= maxTogether*w.limit() {
		return fmt.Errorf("%s: more than %d changes have the number %d", clip.Middle(c.List), len(w.order), c.Item.Sequence)
	}
	if len(w.order) >= w.limit() && !together {
		if err := w.apply(ctx, nil); err != nil {
			return err
		}
	}
	loc := ledger.HashOf(c.Item.Loc)
	passed := w.r.list.passed[ledger.HashOf(c.Item.Identity())] // a later one has been compared: the mirror would go back
	if _, ok := w.items[loc]; ok && w.d.cfg.Keep == "versions" && !together && !passed {
		if err := w.apply(ctx, nil); err != nil { // each of them is a version
			return err
		}
	}
	if i, ok := w.items[loc]; ok && !passed {
		w.d.fates.Superseded(w.order[i], c.Item)
		w.order[i] = nil // only the last counts
	}
	if !passed {
		w.items[loc] = len(w.order)
		w.order = append(w.order, c.Item)
		w.packaged = w.packaged || c.Item.Ask.Opened != nil
	}
	w.any = true
	if w.r.dry {
		w.r.plan.Change(c.List, c.Kind())
	}
	w.at.Take(&c)
	if w.first == nil && w.begins {
		w.first = w.at.Newest()
	}
	return nil
}

// again tells whether the last collected change is older than the cursor, as with
// overlapping lists. The run after an interrupted one may not meet it.
func (w *window) again() bool {
	was := w.r.stands()
	return w.at.Precedes(&was)
}

// limit is how many changes are applied together.
func (w *window) limit() int {
	if w.dump != nil {
		return max(w.d.lim.window, feed.PackageWindow)
	}
	return w.d.lim.window
}

// apply fetches and applies the collected changes.
func (w *window) apply(ctx context.Context, then func(*keep.Meta)) error {
	d, r := w.d, w.r
	items := w.order
	w.order, w.packaged = nil, false
	clear(w.items)
	at := w.at
	at.SetAhead(w.ahead)
	if r.dry {
		for _, it := range items {
			if it == nil {
				continue
			}
			if err := r.planChange(ctx, it); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.packagesFor(ctx, items); err != nil {
		return err
	}
	if len(items) > 0 {
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	if len(items) > 0 && w.ahead == nil && !w.again() { // the cursor moves behind the last of them, and a part may stand in the mirror before
		pending, err := d.mem.Ledger.CountFaults(ctx)
		if err != nil {
			return err
		}
		first := items[slices.IndexFunc(items, func(it *item.Item) bool { return it != nil })] // the last one is there
		if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) {
			m.At.Cursor().SetAhead(w.at.Newest())
			m.Reads(first.Time, d.opt.Now(), d.src.Stands(), pending)
		}); err != nil {
			return err
		}
	}
	if err := d.mem.Returned(ctx, func(waiting map[ledger.Hash]bool) (back []ledger.Hash, err error) {
		for _, it := range items {
			if it != nil && it.Bad == "" && it.Change != "deleted" && waiting[ledger.HashOf(it.Loc)] {
				back = append(back, ledger.HashOf(it.Loc))
			}
		}
		return back, nil
	}); err != nil {
		return err
	}
	left, err := d.pairMoves(ctx, items)
	if err != nil {
		return err
	}
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	jobs := func(yield func(apply.Job, error) bool) {
		var known map[ledger.Hash]knownItem
		for i, it := range items {
			if i%lookedUp == 0 {
				var err error
				if known, err = d.lookUp(ctx, items[i:min(i+lookedUp, len(items))]); err != nil {
					yield(nil, err)
					return
				}
			}
			if it == nil {
				continue
			}
			loc := ledger.HashOf(it.Loc)
			it.Ask.Tried = true
			j, rec := apply.JobOf(d.obtains.Job(it)), known[loc]
			switch {
			case it.Bad != "", it.Change == "deleted":
			case rec.differs:
				if j = w.fromPackage(it); j == nil {
					j = apply.JobOf(d.obtains.Update(it, loc, rec.Record))
				}
				j = d.applier.WithFormer(j, loc, rec.Record)
			case rec.Record != nil && !rec.Has(ledger.FlagKept):
				j = apply.Known(it, rec.Record)
			default:
				if p := w.fromPackage(it); p != nil {
					j = p
				}
			}
			if !yield(apply.Replacing(j, left[loc]), nil) {
				return
			}
		}
	}
	err = d.applier.Pipeline(ctx, jobs, func(o *apply.Outcome) error {
		r.note(o)
		w.count++
		if w.count%100 == 0 {
			d.opt.Progress(w.progress(o.Item))
		}
		return b.Take(ctx, o)
	})
	if err != nil {
		return err
	}
	err = b.Flush(ctx, func(m *keep.Meta) {
		if !w.stays {
			m.At.MoveTo(at)
		}
		if w.first != nil {
			m.First = w.first
		}
		if then != nil {
			then(m)
		}
	})
	if err == nil && len(items) > 0 && !w.stays {
		d.fates.TellThrough(&at)
	}
	return err
}

// progress tells how far the changes are applied: by their numbers, of all that the source has told of, else by those
// applied.
func (w *window) progress(it *item.Item) (stage string, done, total int64) {
	if newest := w.d.src.Stands(); w.from < it.Sequence && it.Sequence <= newest {
		return "changes", int64(it.Sequence - w.from), int64(newest - w.from)
	}
	return "changes", int64(w.count), 0
}

// lookedUp is how many changed resources are looked up at once.
const lookedUp = 100

// knownItem is an item's resource as recorded, nil for none.
type knownItem struct {
	*ledger.Record
	differs bool // it is current, and another one now; its kept representation was read ahead
}

// lookUp finds the records of items, some of them nil.
func (d *Destination) lookUp(ctx context.Context, items []*item.Item) (map[ledger.Hash]knownItem, error) {
	var locs []ledger.Hash
	for _, it := range items {
		if it != nil {
			locs = append(locs, ledger.HashOf(it.Loc))
		}
	}
	recs, err := ledger.RecordsAt(ctx, d.mem.Ledger, locs)
	if err != nil {
		return nil, err
	}
	known, bodies := map[ledger.Hash]knownItem{}, map[ledger.Hash]*ledger.Record{}
	for _, it := range items {
		if it == nil {
			continue
		}
		loc, k := locs[0], knownItem{Record: recs[0]}
		locs, recs = locs[1:], recs[1:]
		if k.Record != nil && !k.Has(ledger.FlagKept) && it.Bad == "" && it.Change != "deleted" {
			if v, _ := it.Differs(k.Record); v != item.ProvenSame {
				k.differs, bodies[loc] = true, k.Record
			}
		}
		known[loc] = k
	}
	return known, ledger.ReadBodies(ctx, d.mem.Ledger, bodies)
}

// begin notes where the mirror may go back to, before the first operation of a poll. A gap has its own
// place.
func (w *window) begin(ctx context.Context) error {
	d := w.d
	m := d.mem.SnapshotMeta()
	if w.back == nil || m.Back.Gap {
		return nil
	}
	b := d.mem.Store.Batch()
	defer b.Close()
	back := *w.back
	w.back = nil
	return d.mem.Mark(ctx, b, back, func(*keep.Back) {})
}

// finish applies the rest, up to the end of a poll.
func (w *window) finish(ctx context.Context, poll *feed.Poll) error {
	w.r.complete, w.stays = true, false
	if w.any {
		w.r.mode("incremental")
		w.r.why("changes applied from where the last run stood")
	} else if w.r.rep.Mode == "" {
		w.r.why("no change since the last poll")
	}
	poll.Finish(&w.at)
	if w.r.dry {
		return w.apply(ctx, nil)
	}
	return w.apply(ctx, func(m *keep.Meta) { m.HeldGap = "" })
}

// fromPackage is the job of a change with its bytes in a package, nil for others.
func (w *window) fromPackage(it *item.Item) apply.Job {
	if it.Ask.Opened == nil || it.Path == "" || it.Bad != "" {
		return w.packagedElsewhere(it)
	}
	d := w.d
	return apply.JobOf(d.obtains.Opened(it))
}

// packagesFor reads the Change Dump when there is much to fetch.
func (w *window) packagesFor(ctx context.Context, items []*item.Item) error {
	d := w.d
	if w.dump == nil || w.r.dry {
		return nil
	}
	var wanted []*item.Item
	for _, it := range items {
		if it != nil && it.Bad == "" && it.Change != "deleted" {
			wanted = append(wanted, it)
		}
	}
	if len(wanted) < feed.PackageFew {
		return nil
	}
	if w.packages == nil {
		c, err := d.src.ReadChangeDump(ctx, w.dump)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			d.mem.Log.Warn("the Change Dump could not be used; changes are fetched one by one", "error", err)
			w.dump = nil
			return nil
		}
		w.packages = c
	}
	w.packages.Choose(ctx, wanted)
	return ctx.Err()
}

// close ends the use of packages and tells of it.
func (w *window) close() {
	if c := w.packages; c != nil {
		c.Close()
		if c.Served > 0 {
			w.r.why("%d changes came in %d packages of the Change Dump, which costs less than fetching each", c.Served, c.Used)
		}
		w.packages = nil
	}
}

// packagedElsewhere is the job of a change whose bytes one of the packages has, nil for none.
func (w *window) packagedElsewhere(it *item.Item) apply.Job {
	d := w.d
	body := w.packages.Body(it)
	if body == nil {
		return nil
	}
	return apply.JobOf(d.obtains.Body(it, body))
}
