package destination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// change is one entry of a Change List, or, with it == nil, the end of a list.
type change struct {
	it       *item
	list     string
	position int // entries of the list up to and with this one
	closed   bool
	until    time.Time
	sequence *uint64 // at the end: the position in the source's log that the list reaches
	state    listState
	from     time.Time // at the end: where the list begins
	served   time.Time // what the list says of later times is not known yet
	document uint64    // the list as it is, see download.name
	unproven bool      // the change at which the poll began has not been met yet, and may be of another history
	newest   *newest   // at the end: the change at which the cursor stands, where it does not know it
	seen     *seen     // at the end: what the list looks like, nil with numbers
}

// kind is where a change is from: a list, or a package of a Change Dump.
func (c *change) kind() resourcesync.Capability {
	if c.it.Package != "" {
		return resourcesync.ChangeDump
	}
	return resourcesync.ChangeList
}

// gapError says that changes between the cursor and what the source still
// offers are lost, or that its history is another one than we followed.
type gapError struct {
	why     string
	missing []string // lists that are named and not there, which it is for
	then    string   // what the mirror follows meanwhile, where the source tells no changes at all
	root    bool     // it is the root of the changes
	unread  []string // lists that are there and are not read for it
	timed   bool     // and all of their index tell where they begin
	behind  bool     // the changes end before the list or dump from which they are to be followed, as far as their root tells
}

func (e *gapError) Error() string { return e.why }

// eachChange reads the changes after from, in order, from a Change List or an
// index of them, or from a Change Dump. With strict a gap is a *gapError before
// any change is handed out that lies behind it; without, what is there is taken.
func (d *Destination) eachChange(ctx context.Context, o *offer, from *cursor, strict bool, f func(change) error) error {
	address, kind := o.changes()
	dl, r, err := d.changesRoot(ctx, fetch.Request{URL: address}, kind)
	if err != nil {
		return err
	}
	defer dl.Close()
	return d.eachChangeOf(ctx, dl, r, from, strict, f)
}

func (d *Destination) eachChangeOf(ctx context.Context, dl *download, r *resourcesync.Reader, from *cursor, strict bool, f func(change) error) error {
	from.trail = new(trail)
	h := r.Head()
	rootSequence, hasRoot := sequenceOf(&h.Meta)
	if strict && hasRoot && from.Sequence != nil && rootSequence < *from.Sequence {
		return &gapError{why: fmt.Sprintf("the source stands at change %d and we at %d: it was set back, as by restoring a backup", rootSequence, *from.Sequence), behind: from.Newest == nil}
	}
	var p *proof
	if strict {
		p = &proof{from: from}
	}
	if h.Meta.Capability == resourcesync.ChangeDump {
		parts, err := d.packagesAfter(ctx, dl, r, from)
		if err != nil {
			return err
		}
		if strict && from.Closed && len(parts) > 0 && parts[0].url == from.List {
			switch same, err := d.samePackage(ctx, parts[0].pkg, from); {
			case err != nil:
				return err
			case same:
				p.done, parts = true, parts[1:]
			}
		}
		return d.eachChangeIn(ctx, parts, from, p, f)
	}
	if !h.Index {
		if strict && !hasRoot && from.Sequence == nil && !from.Closed && from.List != "" && from.List != dl.URL {
			switch begins := !h.Meta.From.IsZero(); {
			case begins && d.standsAt(ctx, from.List):
				return d.eachChangeIn(ctx, []part{{url: from.List, left: true}, {url: dl.URL}}, from, p, f)
			case !begins && from.Newest == nil:
				return &gapError{why: fmt.Sprintf("Change List %s, which was followed, is offered no more, and %s does not tell where it begins", clip.Middle(from.List), clip.Middle(dl.URL))}
			}
		}
		if err := d.listChanges(dl, from, p, true, f); err != nil {
			return err
		}
		return p.end()
	}
	parts, err := d.parts(ctx, dl, r, resourcesync.ChangeList)
	if err != nil {
		return err
	}
	if err := d.inOrder(ctx, dl, parts); err != nil {
		return err
	}
	parts = skipApplied(parts, from)
	if parts, err = d.present(parts, from, strict); err != nil {
		return err
	}
	if strict && len(parts) > 1 && parts[0].url == from.List && from.Closed {
		switch same, err := d.sameClosed(ctx, p, parts[0].url); {
		case err != nil:
			return err
		case same:
			parts = parts[1:]
			if from.Seen != nil {
				from.trail.follow(from.Seen.Tail)
			}
		}
	}
	err = d.eachChangeIn(ctx, parts, from, p, f)
	var absent *absentError
	if !errors.As(err, &absent) {
		return err
	}
	if _, known := d.surveys[absent.url]; known || !slices.ContainsFunc(parts, func(p part) bool { return p.url == absent.url }) {
		return err
	}
	if err := d.survey(ctx, parts); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errSurveyed, err)
}

// standsAt tells whether the list at which we stand can still be had where the source names
// another one instead: what came in it since is nowhere else.
func (d *Destination) standsAt(ctx context.Context, address string) bool {
	dl, _, err := d.document(ctx, fetch.Request{URL: address, Attempts: 2}, resourcesync.ChangeList)
	if err != nil {
		d.log.Debug("the Change List that was followed is there no more", "list", address, "error", err)
		return false
	}
	return dl.Close() == nil
}

// eachChangeIn is eachChange over documents that are in the order of their times.
// With p a gap is a *gapError.
func (d *Destination) eachChangeIn(ctx context.Context, parts []part, from *cursor, p *proof, f func(change) error) error {
	var last time.Time
	reached := from.stands()
	first := true
	at := *from // moves with what was handed out
	err := d.eachPart(ctx, parts, resourcesync.ChangeList, func(q part, pdl *download, pr *resourcesync.Reader) error {
		ph := pr.Head()
		if p != nil {
			p.more = q.url != parts[len(parts)-1].url
		}
		if p != nil && !first && !last.IsZero() && !ph.Meta.From.IsZero() && ph.Meta.From.After(last) && !from.before(ph.Meta.From) && !at.coversWith(pdl, d) {
			return &gapError{why: fmt.Sprintf("between the Change List that ends at %s and %s, which begins at %s, changes are missing", stamp(last), clip.Middle(pdl.URL), stamp(ph.Meta.From))}
		}
		err := d.listChanges(pdl, &at, p, first, func(c change) error {
			if c.it != nil && c.it.Sequence > 0 {
				s := c.it.Sequence
				at.Sequence = &s
			}
			if c.it != nil && c.it.Time.After(reached) {
				reached = c.it.Time
			}
			switch {
			case c.it == nil:
			case c.it.Time.IsZero():
				at.anew = at.anew || c.it.Sequence == 0
			case !c.it.Time.After(from.stands()) && (at.again.IsZero() || c.it.Time.Before(at.again)):
				at.again = c.it.Time
			}
			return f(c)
		})
		first = false
		last = time.Time{}
		if closed(pdl, ph) {
			last = ph.Meta.Until
		} else if q.left {
			last = reached
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.end()
}

// sameClosed tells whether the closed list that was applied up to its end is still the
// same: one whose end was to come when it was written may have got more changes. This
// costs one conditional request.
func (d *Destination) sameClosed(ctx context.Context, p *proof, address string) (bool, error) {
	from := p.from
	if from.Newest == nil {
		return true, nil
	}
	if from.Last.URL != address {
		return false, nil
	}
	same, err := d.listIs(ctx, &from.Last)
	if isGone(err) {
		return true, nil // retention took it meanwhile: where the next list begins tells
	}
	p.done = same
	return same, err
}

// coversWith tells whether the first change of a list follows the cursor by its
// number, so that a hole in the times is none in the changes.
func (c *cursor) coversWith(dl *download, d *Destination) bool {
	if c.Sequence == nil {
		return false
	}
	r, err := d.reader(dl)
	if err != nil {
		return false
	}
	e, err := r.Next()
	if err != nil {
		h := r.Head()
		s, ok := sequenceOf(&h.Meta)
		return ok && s <= *c.Sequence
	}
	s, ok := sequenceOf(&e.Meta)
	return ok && s <= *c.Sequence+1
}

// sortParts puts the parts of an index in the order of their intervals where all
// tell one. Older dialects, which tell none, list the newest first. told is false where
// nothing in the index tells an order.
func sortParts(parts []part) (told bool) {
	if !slices.ContainsFunc(parts, untimed) {
		slices.SortStableFunc(parts, func(a, b part) int { return a.from.Compare(b.from) })
		return true
	}
	newestFirst, oldestFirst := byLastmod(parts)
	if newestFirst = newestFirst && !slices.ContainsFunc(parts, func(p part) bool { return !p.old }); newestFirst {
		slices.Reverse(parts)
	}
	return newestFirst || oldestFirst
}

// byLastmod tells the order of parts of which all have a lastmod.
func byLastmod(parts []part) (newestFirst, oldestFirst bool) {
	first, last := parts[0].lastmod, parts[len(parts)-1].lastmod
	newestFirst, oldestFirst = first.After(last), last.After(first)
	for i, p := range parts {
		newestFirst = newestFirst && !p.lastmod.IsZero() && (i == 0 || !p.lastmod.After(parts[i-1].lastmod))
		oldestFirst = oldestFirst && !p.lastmod.IsZero() && (i == 0 || !p.lastmod.Before(parts[i-1].lastmod))
	}
	return newestFirst, oldestFirst
}

// skipApplied leaves out closed lists that end before the cursor.
func skipApplied(parts []part, from *cursor) []part {
	n := 0
	for n < len(parts)-1 {
		p := parts[n]
		before := !p.until.IsZero() && !from.Time.IsZero() && p.until.Before(from.applied())
		if !before && (!(p.url == from.List && from.Closed) || from.Newest != nil) {
			break
		}
		n++
	}
	return parts[n:]
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// listChanges hands out the changes of one list after the cursor.
// With p a gap is a *gapError before any change is handed out.
func (d *Destination) listChanges(dl *download, cur *cursor, p *proof, first bool, f func(change) error) error {
	start := *cur // several entries may share a number: what this list hands out does not move its own start
	from := &start
	_, served := dl.Served(d.opt.Now())
	hand := f
	document := dl.name()
	f = func(c change) error {
		c.served, c.unproven, c.document = served, p.seeks(), document
		return hand(c)
	}
	scan, err := d.scanChanges(dl, from)
	if err != nil {
		return err
	}
	defer scan.sorted.close()
	if from.trail != nil {
		*from.trail = scan.seen.trail
	}
	h := scan.head
	end := change{list: dl.URL, position: scan.count, closed: scan.closed && (dl.pkg != nil || !scan.head.Meta.Until.After(served)), until: h.Meta.Until, from: h.Meta.From, newest: scan.adopt,
		state: listState{URL: dl.URL, ETag: dl.etag(), Modified: dl.modified(), Digest: dl.Digest.String(), Package: dl.pkg != nil}}
	if s, ok := sequenceOf(&h.Meta); ok {
		end.sequence = &s
	}
	if !scan.numbered {
		end.seen = scan.seen.end(dl.URL, h.Meta.From)
	}
	if p != nil {
		if err := p.check(scan, dl.URL); err != nil {
			return err
		}
		if err := scan.seen.late(h.Meta.From, from.Closed && from.List == dl.URL); err != nil {
			return err
		}
		if err := scan.lacks(dl, from, p.old); err != nil {
			return err
		}
		if first {
			if err := scan.gap(dl.URL, from); err != nil {
				return err
			}
		}
	}
	if scan.sorted != nil {
		for it, err := range scan.sorted.items() {
			if err != nil {
				return err
			}
			if scan.wanted(it, from) {
				if err := f(change{it: it, list: dl.URL, position: 0}); err != nil {
					return err
				}
			}
		}
		return f(end)
	}
	var again time.Time // what is of it and before the cursor's change is applied again
	switch {
	case scan.start == 0:
	case scan.seen.again():
		again = scan.seen.was.Time
	case from.List != dl.URL && from.Newest != nil: // nobody knows what stood there
		again = from.Newest.Time
	}
	if t := from.again; scan.start > 0 && !t.IsZero() && (again.IsZero() || t.Before(again)) { // what followed them follows them again
		again = t
	}
	give := func(n int, it *item) error {
		applied := n <= scan.start && (again.IsZero() || it.Time.Before(again)) || scan.byTime && n < scan.passed && (scan.seen.now.Grown || it.Time.IsZero() || it.Time.After(served))
		if !scan.wanted(it, from) || applied && !from.anew {
			return nil
		}
		return f(change{it: it, list: dl.URL, position: n})
	}
	if !scan.many {
		for _, k := range scan.kept {
			if err := give(k.position, k.item); err != nil {
				return err
			}
		}
		return f(end)
	}
	r, err := d.reader(dl)
	if err != nil {
		return err
	}
	n := 0
	err = eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		if n++; n <= scan.start && again.IsZero() && !from.anew {
			return nil
		}
		it, err := d.changeItem(e, r, dl)
		if err != nil {
			return err
		}
		return give(n, it)
	})
	if err != nil {
		return err
	}
	return f(end)
}

func (d *Destination) changeItem(e *resourcesync.Entry, r *resourcesync.Reader, dl *download) (*item, error) {
	it := newItem(e, r, dl.URL)
	if dl.pkg != nil && dl.pkg.isZIP() {
		it.Package = dl.pkg.url
	}
	if dl.zip != nil {
		it.pkg = dl
	}
	address := dl.URL
	switch it.Change {
	case "created", "updated", "deleted":
	case "":
		if t := it.Promise.Type; t == "application/zip" || t == "application/x-tar" || t == "application/x-xz" || t == "application/gzip" {
			return nil, fmt.Errorf("%s line %d: the entry has no change and is a package: this is a Change Dump and no Change List", clip.Middle(address), e.Line)
		}
		it.Change = "updated"
	default:
		if it.Bad == "" {
			it.Bad = fmt.Sprintf("line %d of %s: change %q is neither created, updated nor deleted", e.Line, clip.Middle(address), clip.Middle(it.Change))
		}
		it.Change = "updated"
	}
	return it, nil
}

// closed tells that a document with changes will never change again.
func closed(dl *download, h *resourcesync.Head) bool { return dl.pkg != nil || h.Closed() }

// changeScan is what a first pass over a Change List found.
type changeScan struct {
	head      resourcesync.Head
	served    time.Time // when it was had, by the later of both clocks
	closed    bool      // it will never change again
	count     int
	start     int       // entries to pass over: applied already, by position
	found     bool      // the identity of the cursor was found
	firstTime time.Time // of the first entry
	firstSeq  uint64
	lastSeq   uint64
	byTime    bool          // choose by time: the list does not know our position
	passed    int           // a change here is of before the cursor, and so are those before it that say they are of a time to come
	sorted    *changeSorter // nil: the list is in order
	kept      []keptItem    // that may be wanted
	many      bool          // more of those than are kept
	numbered  bool          // every entry tells its number
	minTime   time.Time     // of all entries that tell one
	maxTime   time.Time
	sight     sighting
	place     placing // of the newest change, where that tells neither time nor number
	taken     bool    // it has the change of cursor.Taken
	seen      looker
	adopt     *newest // of a cursor that stands at a number without knowing the change
}

type keptItem struct {
	*item
	position int
}

// scanChanges finds where to go on, and whether the list is in order. Lists of
// early dialects have the newest first; what is out of order is sorted. Of what the
// numbers say is applied, little is looked at.
func (d *Destination) scanChanges(dl *download, from *cursor) (*changeScan, error) {
	numbers := from.Sequence != nil && (from.Newest == nil || from.Newest.Sequence > 0)
	s, err := d.scanChangesBy(dl, from, numbers)
	if errors.Is(err, errUnnumbered) { // the position does not follow from the numbers
		s, err = d.scanChangesBy(dl, from, false)
	}
	return s, err
}

var errUnnumbered = errors.New("some entries tell no number")

func (d *Destination) scanChangesBy(dl *download, from *cursor, numbers bool) (*changeScan, error) {
	r, err := d.reader(dl)
	if err != nil {
		return nil, err
	}
	_, latest := dl.Served(d.opt.Now())
	s := &changeScan{byTime: true, served: latest}
	if k := from.Seen; k != nil {
		s.seen.all, s.place.tail = k.All, k.Tail
		if k.List == dl.URL {
			s.seen.was = k
		}
	}
	if from.trail != nil {
		s.seen.trail = *from.trail
	}
	var last time.Time
	bytes := int64(0) // of the kept
	ordered, descending, strictly, sequences := true, true, false, true
	past := order{until: latest}
	at := 0
	applied := func(m *resourcesync.Meta) bool {
		seq, _ := sequenceOf(m)
		return numbers && seq > 0 && seq < *from.Sequence && (from.Newest == nil || seq != from.Newest.Sequence)
	}
	r.PassLinks(applied)
	err = eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		var it *item
		if applied(&e.Meta) {
			seq, _ := sequenceOf(&e.Meta)
			it = &item{Loc: e.Loc, Sequence: seq, Time: changeTime(r, e)}
		} else {
			var err error
			if it, err = d.changeItem(e, r, dl); err != nil {
				return err
			}
		}
		s.count++
		switch {
		case s.many || from.Sequence != nil && it.Sequence > 0 && it.Sequence <= *from.Sequence: // applied, whatever else the list tells
		case len(s.kept) == d.lim.keptItems, bytes > d.cfg.MemoryBytes/8:
			s.many, s.kept = true, nil
		default:
			bytes += it.held()
			s.kept = append(s.kept, keptItem{it, s.count})
		}
		if s.count == 1 {
			s.firstTime, s.firstSeq = it.Time, it.Sequence
		}
		if it.Sequence == 0 {
			if numbers {
				return errUnnumbered
			}
			sequences = false
		}
		s.lastSeq = it.Sequence
		s.sight.look(from.Newest, it)
		if n := from.Taken; n != nil && it.Loc == n.Loc && !it.Time.After(from.Time) {
			s.taken = true
		}
		if from.Newest == nil {
			numbered := from.Sequence != nil && it.Sequence > 0
			if numbered && it.Sequence == *from.Sequence || !numbered && !it.Time.IsZero() && !it.Time.After(latest) && (s.adopt == nil || !it.Time.Before(s.adopt.Time)) {
				s.adopt = newestOf(it)
			}
		}
		if !it.Time.IsZero() {
			if s.minTime.IsZero() || it.Time.Before(s.minTime) {
				s.minTime = it.Time
			}
			if it.Time.After(s.maxTime) {
				s.maxTime = it.Time
			}
		}
		if from.Identity != "" && strings.HasPrefix(from.Identity, it.Loc) && it.identity() == from.Identity && (!s.found || from.List != dl.URL || at != from.Position) {
			s.found = true
			at = s.count
		}
		if !numbers { // else they are not looked at
			s.seen.look(it, at == s.count, latest)
			if n := from.Newest; n != nil && n.Time.IsZero() {
				s.place.look(&s.seen.trail, n.is(it))
			}
		}
		if past.look(it.Time); !it.Time.IsZero() && it.Time.Before(from.applied()) {
			s.passed = s.count
		}
		if !it.Time.IsZero() && !last.IsZero() {
			ordered = ordered && !it.Time.Before(last)
			descending = descending && !it.Time.After(last)
			strictly = strictly || it.Time.Before(last)
		}
		if !it.Time.IsZero() {
			last = it.Time
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.head = *r.Head()
	s.closed = closed(dl, &s.head)
	if s.numbered = sequences && s.count > 0; s.numbered {
		s.seen.was = nil
	}
	if descending && strictly {
		s.seen.now.First = s.seen.oldest
	}
	bySequence := from.Sequence != nil && sequences && s.count > 0
	// Changes of a resource without times look the same, so that only the place tells them apart.
	if s.found && !bySequence && from.Newest != nil && from.Newest.Time.IsZero() {
		if s.found = s.seen.kept(); s.found {
			was, begin, digest := s.seen.was, s.head.Meta.From, dl.Digest.String()
			stood := was.All.N
			if dl.URL == from.List {
				stood = from.Position
			}
			s.found = at == stood && (s.count > was.All.N || !begin.IsZero() && begin.Equal(was.Begin) || digest == from.Last.Digest || digest == from.Filled.Digest)
		}
	}
	if s.found && !bySequence && s.seen.exactly() { // else they are applied again
		s.start, s.byTime = at, false
	}
	if ordered || sequences {
		return s, nil
	}
	if known := d.snapshotMeta().Cursor.Seen; s.seen.grew() || known != nil && known.List == dl.URL && known.Grown && !descending {
		d.log.Warn("change list has grown by changes of before its last one; the source's clock was set back, and they are taken where they stand", "list", dl.URL)
		if s.seen.now.Grown = true; s.seen.grew() {
			s.start, s.byTime = s.seen.was.All.N, false
		}
		return s, nil
	}
	if past.rises() {
		d.log.Warn("change list has changes of times to come; they are taken where they stand", "list", dl.URL)
		return s, nil
	}
	d.log.Warn("change list is not in the order of its times", "list", dl.URL, "newest_first", descending && strictly)
	if s.sorted, err = d.sortChanges(dl, descending && strictly); err != nil {
		return nil, err
	}
	s.many, s.kept = false, nil
	s.start, s.byTime = 0, true
	return s, nil
}

// order tells whether the changes of a list stand in the order of their times, but for
// those of times that are still to come, which are wrong.
type order struct {
	until, last   time.Time
	rising, falls bool
}

func (o *order) look(t time.Time) {
	if t.IsZero() || t.After(o.until) {
		return
	}
	o.rising = o.rising || !o.last.IsZero() && t.After(o.last)
	o.falls = o.falls || t.Before(o.last)
	o.last = t
}

func (o *order) rises() bool { return o.rising && !o.falls }

// wanted leaves out what is surely applied: by number where both sides count,
// else by time. Doubtful ones are applied again, which changes nothing.
func (s *changeScan) wanted(it *item, from *cursor) bool {
	if from.Sequence != nil && it.Sequence > 0 {
		return it.Sequence > *from.Sequence
	}
	if s.byTime && !from.Time.IsZero() && !from.anew {
		if it.Time.IsZero() {
			until := s.head.Meta.Until
			return !s.closed || until.IsZero() || !until.Before(from.applied())
		}
		// A change of before its own list begins is of a clock that was set back.
		return !it.Time.Before(from.applied()) || it.Time.Before(s.head.Meta.From)
	}
	return true
}

// applied is the time before which a list without numbers has nothing new. The end of a
// list may be later than its last change, and a snapshot say that it is of a time to come.
func (c *cursor) applied() time.Time {
	at := c.Had
	if n := c.Newest; n != nil && !n.Time.IsZero() {
		at = n.Time
	}
	if !at.IsZero() && at.Before(c.Time) {
		return at
	}
	return c.Time
}

// before tells that everything before a time is applied, whatever of it the lists still have.
func (c *cursor) before(t time.Time) bool {
	return !t.After(c.Time) && (c.Had.IsZero() || !t.After(c.Had))
}

// stands is the time up to which the changes are applied that the source has told.
func (c *cursor) stands() time.Time {
	if n := c.Newest; n != nil && n.Time.After(c.Time) { // by a clock that is ahead
		return n.Time
	}
	return c.Time
}

// gap finds out whether changes between the cursor and this first list are lost.
func (s *changeScan) gap(list string, from *cursor) error {
	anew := from.Sequence != nil && !s.sight.seen && !from.Begin.IsZero() && !s.head.Meta.From.Equal(from.Begin) && s.head.Meta.From.After(from.stands())
	if anew {
		return &gapError{why: fmt.Sprintf("the source's Change Lists begin anew at %s, and we stand at %s", stamp(s.head.Meta.From), stamp(from.Time))}
	}
	if from.Sequence != nil && s.count > 0 && s.firstSeq > 0 {
		if s.firstSeq > *from.Sequence+1 && (s.head.Meta.From.IsZero() || s.head.Meta.From.After(from.stands())) {
			return &gapError{why: fmt.Sprintf("the source's changes begin with number %d and we stand at %d", s.firstSeq, *from.Sequence)}
		}
		if s.lastSeq < *from.Sequence {
			if root, ok := sequenceOf(&s.head.Meta); ok && root < *from.Sequence && !s.closed {
				return &gapError{why: fmt.Sprintf("the source's changes end with number %d and we stand at %d: it was set back", s.lastSeq, *from.Sequence)}
			}
		}
		return nil
	}
	if s.found || from.Time.IsZero() {
		return nil
	}
	if from.unproven != nil && s.head.Meta.From.IsZero() && (s.minTime.IsZero() || s.minTime.After(from.Time)) {
		*from.unproven = true
	}
	stands := from.stands()
	if from.Told.After(stands) && s.head.Meta.From.After(s.served.Add(absurd)) {
		stands = from.Told // not the list or dump alone, the source's clock is ahead
	}
	if f := s.head.Meta.From; !f.IsZero() && f.After(stands) {
		if root, ok := sequenceOf(&s.head.Meta); ok && from.Sequence != nil && root == *from.Sequence {
			return nil // an empty list that begins where we stand
		}
		return &gapError{why: fmt.Sprintf("the source's changes begin at %s and we stand at %s", stamp(f), stamp(stands))}
	}
	empty := from.Last.URL == list && from.Position == 0 // when it was read, so that the change is of an earlier list
	if from.Identity != "" && from.List == list && !from.Closed && !empty {
		return &gapError{why: fmt.Sprintf("Change List %s does not have the change any more at which we stand: it was rewritten or went backwards", clip.Middle(list))}
	}
	return nil
}

// lacks is a gap when a package, or an archived list, is of the time of the last changed
// resource of the list or dump that was taken, and does not tell of it. What lies beside that
// when it is taken is of the same source.
func (s *changeScan) lacks(dl *download, from *cursor, archived bool) error {
	n := from.Taken
	if n == nil || s.taken || dl.pkg == nil && !archived || from.Root.URL == "" || !s.head.Meta.From.Before(n.Time) || s.head.Meta.Until.Before(n.Time) {
		return nil
	}
	return &gapError{why: fmt.Sprintf("%s has the changes from %s until %s, and not that of %s at %s, as which it is mirrored: the source was set back, as by restoring a backup", clip.Middle(dl.URL), stamp(s.head.Meta.From), stamp(s.head.Meta.Until), clip.Middle(n.Loc), stamp(n.Time))}
}

// increment brings the mirror from the cursor to the newest change. depth counts
// gaps closed in this run.
func (d *Destination) increment(ctx context.Context, r *run, o *offer, depth int) error {
	plan, planned := r.plan, r.planned
	return again(func() error {
		if r.dry {
			r.plan, r.planned = plan, planned
		}
		return d.incrementOnce(ctx, r, o, depth)
	})
}

func (d *Destination) incrementOnce(ctx context.Context, r *run, o *offer, depth int) error {
	m := d.snapshotMeta()
	if !m.Until.IsZero() { // a repair while the mirror stands at a time of before
		return nil
	}
	if !o.followed() {
		return d.incrementBySnapshot(ctx, r, o, &m)
	}
	if (m.Gap != "" || m.Missing.Why != "" && d.cfg.OnGap != "stop") && depth == 0 && o.listed() && !r.dry && !r.nothingNewer {
		// A gap that could not be closed: a newer inventory may do it now.
		var end func(*meta)
		var err error
		what := "Resource List"
		if o.ResourceList != "" {
			end, err = d.compareNewer(ctx, r, o, &m.Inventory)
		} else {
			what = "Resource Dump"
			end, err = d.dumpNewer(ctx, r, o, &m.Inventory)
		}
		switch {
		case errors.Is(err, errUnchangedList), errors.Is(err, errStaleList):
			r.nothingNewer = true
		case err != nil:
			return err
		default:
			r.mode("baseline")
			if err := d.checkpoint(ctx, ledger.Following, func(m *meta) { end(m); m.closeGap() }); err != nil {
				return err
			}
			if m = d.snapshotMeta(); m.gap() == "" {
				r.why("a new %s closes the gap of before", what)
			} else {
				r.why("compared with a new %s", what)
			}
			depth = 1
		}
	}
	if depth == 0 && !r.dry && m.Gap != "" && m.GapFrom != nil {
		if err := d.gapClosed(ctx, r, o, &m); err != nil {
			return err
		}
		m = d.snapshotMeta()
	}
	from := m.Cursor
	d.tellThrough(&from) // a run that was killed may not have said so
	address, kind := o.changes()
	dl, rd, err := d.changesSince(ctx, address, kind, &from)
	var gap *gapError
	if errors.As(missingOf(o, err), &gap) {
		return d.closeGap(ctx, r, o, gap, depth, nil)
	}
	if err != nil {
		return err
	}
	if dl == nil {
		r.complete = true
		r.why("no change since the last poll")
		return nil
	}
	defer dl.Close()
	if len(m.Missing.Lists) > 0 && !o.listed() {
		if err := d.returnMissing(ctx, r, o, dl); err != nil {
			return err
		}
		from = d.snapshotMeta().Cursor
	}
	w := d.window(r, o, from)
	defer w.close()
	reaches := from.reachesBack(!r.askedNewer && !r.compared && o.listed())
	err = missingOf(o, d.eachChangeOf(ctx, dl, rd, &from, true, func(c change) error {
		if err := reaches(); err != nil {
			return err
		}
		return w.add(ctx, c)
	}))
	if errors.Is(err, errUnreached) {
		r.askedNewer = true
		done, err := d.takeNewer(ctx, r, o, &m, errUnreached.Error())
		if done || err != nil {
			return err
		}
		return d.incrementOnce(ctx, r, o, depth)
	}
	if err == nil && w.ahead != nil {
		err = w.unmet()
	}
	if errors.As(err, &gap) {
		if depth == 0 && gap.missing == nil && !d.pastCaches(gap.why) {
			w.close()
			r.plan, r.planned = planning{}, counts{}
			return d.incrementOnce(ctx, r, o, depth)
		}
		if gap.behind && kind == resourcesync.ChangeDump {
			if done, err := d.aheadOfDump(ctx, r, o, &m, dl); err != nil {
				return err
			} else if done {
				return d.found(ctx, o, dl, &from)
			}
		}
		return d.closeGap(ctx, r, o, gap, depth, dl)
	}
	if err != nil {
		return err
	}
	if err := w.finish(ctx, dl, address); err != nil {
		return err
	}
	return d.found(ctx, o, dl, &from)
}

// errUnreached says that nothing in the Change Lists proves that they reach back to the list or
// dump at which the cursor stands: they do not tell where they begin, and have later changes alone.
var errUnreached = errors.New("the Change Lists do not reach back to the list that is mirrored")

// reachesBack watches that for the lists that are read from a cursor.
func (c *cursor) reachesBack(ask bool) func() error {
	unproven := false
	if ask && c.Newest == nil {
		c.unproven = &unproven
	}
	return func() error {
		if unproven {
			return errUnreached
		}
		return nil
	}
}

// takeNewer compares with a list or dump that is newer than the one that was taken, where the changes
// may not be all. Without one nothing is done. done is for a dry run that is planned to its end.
func (d *Destination) takeNewer(ctx context.Context, r *run, o *offer, m *meta, why string) (done bool, err error) {
	newer := func(v *inventory) (bool, error) { return v.at.IsZero() || v.at.After(m.Cursor.Time), nil }
	var end func(*meta)
	if o.ResourceList != "" {
		var v *inventory
		if v, err = d.readInventory(ctx, o, &m.Inventory); err == nil {
			if ok, _ := newer(v); !ok || v.stale(&m.Cursor) {
				return false, v.Close()
			}
			end, err = d.compareWith(ctx, r, o, v)
		}
	} else {
		end, err = d.dumpIf(ctx, r, o, &m.Inventory, newer)
	}
	switch {
	case err == nil:
	case errors.Is(err, errUnchangedList), errors.Is(err, errStaleList):
		return false, nil
	case ctx.Err() != nil || d.ownFailure(err):
		return false, err
	default:
		d.log.Warn("no newer list or dump can be had", "why", why, "error", err)
		return false, nil
	}
	r.mode("baseline")
	r.why("%s: compared with a newer one", why)
	if r.dry {
		return !r.plan.base, d.saveMeta(end)
	}
	return false, d.checkpoint(ctx, ledger.Following, end)
}

// aheadOfDump is for a Change Dump that ends before the list or Resource Dump at which we
// stand, as those are made at other times: there is nothing to apply, and what such a list
// or dump has later is taken from it. If the source was set back, it is not done.
func (d *Destination) aheadOfDump(ctx context.Context, r *run, o *offer, m *meta, dl *download) (done bool, err error) {
	rd, err := d.reader(dl)
	if err != nil {
		return false, err
	}
	packages, err := d.listPackages(ctx, dl, rd)
	if err != nil {
		return false, err
	}
	at := m.Cursor
	for i := range packages.list {
		if until := packages.list[i].until; until.IsZero() || until.After(at.Time) {
			return false, nil
		}
	}
	there := func(v *inventory) (bool, error) { return v.sequence != nil && *v.sequence >= *at.Sequence, nil }
	var end func(*meta)
	if o.ResourceList == "" {
		end, err = d.dumpIf(ctx, r, o, &m.Inventory, there)
	} else {
		var v *inventory
		if v, err = d.readInventory(ctx, o, &m.Inventory); err == nil {
			if ok, _ := there(v); !ok {
				return false, v.Close()
			}
			end, err = d.compareWith(ctx, r, o, v)
		}
	}
	switch {
	case errors.Is(err, errStaleList):
		return false, nil
	case errors.Is(err, errUnchangedList):
		err = nil
		r.why("the Change Dump ends before the state that is mirrored")
	case err != nil:
		return false, err
	default:
		r.mode("baseline")
		r.why("the Change Dump ends before the state that is mirrored, and a newer one was taken whole")
		if r.dry {
			err = d.saveMeta(end)
		} else {
			err = d.checkpoint(ctx, ledger.Following, end)
		}
	}
	r.complete = err == nil
	return r.complete, err
}

// changesSince opens the Change List or index, nil when nothing was published
// since the cursor was brought to its end. An index may stay as it is while its open
// list grows. One that tells the position in the source's log comes to tell it again
// after the source was set back. So the lists at which the cursor stands are asked for too.
func (d *Destination) changesSince(ctx context.Context, address string, kind resourcesync.Capability, from *cursor) (*download, *resourcesync.Reader, error) {
	known := from.Root.URL == address && from.Ahead == nil && len(d.snapshotMeta().Missing.Lists) == 0
	req := fetch.Request{URL: address}
	if known {
		req.ETag, req.Modified = from.Root.ETag, from.Root.Modified
	}
	dl, rd, err := d.changesRoot(ctx, req, kind)
	if err != nil {
		return nil, nil, err
	}
	if !dl.NotModified && !(known && from.Root.Digest == dl.Digest.String()) {
		return dl, rd, nil
	}
	if !from.Root.Index || kind == resourcesync.ChangeDump && from.Root.Numbered || kind == resourcesync.ChangeList && d.lastListsUnchanged(ctx, from) {
		return nil, nil, dl.Close()
	}
	if !dl.NotModified {
		return dl, rd, nil
	}
	if err := dl.Close(); err != nil {
		return nil, nil, err
	}
	return d.changesRoot(ctx, fetch.Request{URL: address}, kind)
}

// lastListsUnchanged tells whether what came last in the lists of an index that is unchanged is
// as it was applied.
func (d *Destination) lastListsUnchanged(ctx context.Context, from *cursor) bool {
	without := from.Position == 0 && from.Newest != nil && from.Filled.URL == "" // by a version that did not keep it
	if !from.Root.Numbered && (from.Closed || from.Root.Untold) || from.Last.URL == "" || without {
		return false
	}
	is, err := d.listIs(ctx, &from.Last)
	if is && err == nil && from.Filled.URL != "" && from.Filled.URL != from.Last.URL {
		is, err = d.listIs(ctx, &from.Filled)
		is = is || isGone(err) // retention took it: its changes are applied
	}
	return is // an error is told when the lists are read
}

// listIs tells whether a Change List is as it was.
func (d *Destination) listIs(ctx context.Context, was *listState) (bool, error) {
	dl, _, err := d.document(ctx, fetch.Request{URL: was.URL, ETag: was.ETag, Modified: was.Modified}, resourcesync.ChangeList)
	if err != nil {
		return false, err
	}
	defer dl.Close()
	return dl.NotModified || dl.Digest.String() == was.Digest, nil
}

// closeGap does what is configured when changes are lost.
func (d *Destination) closeGap(ctx context.Context, r *run, o *offer, gap *gapError, depth int, dl *download) error {
	d.log.Warn("changes are missing", "why", gap.why)
	if r.gap != gap.why {
		r.why("gap: %s", gap.why)
	}
	r.gap = gap.why
	if depth == 0 || gap.missing == nil {
		r.plan, r.planned = planning{}, counts{}
	}
	if depth == 0 && (gap.missing == nil || gap.timed) {
		closed, err := d.bridgeGap(ctx, r, o, dl)
		if closed && err == nil && o.listed() && !d.snapshotMeta().Missing.Dropped { // else the cursor was behind what is missing
			return d.saveMeta(func(m *meta) { m.Missing = missing{} })
		}
		if closed || ctx.Err() != nil || err != nil && d.ownFailure(err) {
			return err
		}
		if err != nil {
			d.log.Warn("archives could not be used", "error", err)
			r.why("the archives could not be used (%v)", clip.Middle(err.Error()))
		}
		r.plan, r.planned = planning{}, counts{}
	}
	if gap.missing != nil {
		if err := d.miss(o, gap, dl); err != nil {
			return err
		}
	}
	if d.cfg.OnGap == "stop" {
		then := "compare with the whole source"
		if !o.listed() {
			then = "go on behind it with the changes that it still offers. That does not close the gap: what was lost stays lost, and no audit can tell it, until the source offers a Resource List or a Resource Dump, which only whoever runs it can do"
		}
		r.rep.Held = "gap: " + gap.why + gapStops + then
		if r.dry {
			return nil
		}
		return d.saveMeta(func(m *meta) { m.HeldGap = r.rep.Held })
	}
	if depth == 0 && o.listed() && (gap.missing == nil || !r.nothingNewer) {
		var end func(*meta)
		var err error
		how := "compared with the Resource List, fetching what differs"
		if o.ResourceList != "" {
			end, err = d.compareNewer(ctx, r, o, nil)
		} else {
			how = "taken again from the Resource Dump"
			end, err = d.dumpNewer(ctx, r, o, nil)
		}
		if errors.Is(err, errStaleList) {
			return d.leaveGap(ctx, r, o, gap, depth, dl)
		}
		r.why("%s", how)
		if err != nil {
			return err
		}
		r.mode("baseline")
		if r.dry {
			if !r.plan.base {
				return nil
			}
			err = d.saveMeta(end)
		} else {
			err = d.checkpoint(ctx, ledger.Following, func(m *meta) { end(m); m.closeGap() })
		}
		if err != nil {
			return err
		}
		return d.increment(ctx, r, o, depth+1)
	}
	return d.leaveGap(ctx, r, o, gap, depth, dl)
}

const gapStops = "; on_gap is stop: run sync with --full to "

// leaveGap is for a gap that nothing can close: what is there is applied, and it stays
// told. Behind an inventory that this run has taken it is only what came later. For lists that
// are missing nothing is applied where there is an inventory, whose next one closes it.
func (d *Destination) leaveGap(ctx context.Context, r *run, o *offer, gap *gapError, depth int, dl *download) error {
	if r.dry || gap.missing != nil && o.listed() {
		return nil
	}
	if gap.missing == nil {
		if err := d.saveMeta(func(m *meta) {
			if m.Gap == "" {
				before := m.Cursor
				m.GapFrom, m.GapSince = &before, d.opt.Now().UTC()
			}
			m.Gap = "gap: " + gap.why + notClosed
		}); err != nil {
			return err
		}
	}
	rd, err := d.reader(dl)
	if err != nil {
		return err
	}
	from := d.snapshotMeta().Cursor
	address, _ := o.changes()
	w := d.window(r, o, from)
	defer w.close()
	if depth == 0 && gap.missing == nil {
		from.Time = time.Time{}
	}
	from.Sequence, from.Identity, from.Newest, from.Seen = nil, "", nil, nil
	w.ahead = nil // told with the gap
	if err := d.eachChangeOf(ctx, dl, rd, &from, false, func(c change) error { return w.add(ctx, c) }); err != nil {
		return err
	}
	return w.finish(ctx, dl, address)
}

// incrementBySnapshot follows a source that does not tell its changes: its list or dump is
// compared when it has changed.
func (d *Destination) incrementBySnapshot(ctx context.Context, r *run, o *offer, m *meta) error {
	if r.complete { // the baseline of this run was that
		return nil
	}
	known := &m.Inventory
	if m.HeldGap != "" || m.Recheck.Why != "" {
		known = nil
	}
	var end func(*meta)
	var err error
	switch {
	case o.ResourceList != "":
		var v *inventory
		if v, err = d.readInventory(ctx, o, known); err != nil {
			break
		}
		if v.outdated {
			agrees, err := d.agrees(v)
			if err != nil {
				return errors.Join(err, v.Close())
			}
			v.outdated = !agrees
		}
		if v.outdated {
			return errors.Join(d.waitOlder(r, resourcesync.ResourceList, v), v.Close())
		}
		end, err = d.compareWith(ctx, r, o, v)
	case o.ResourceDump != "":
		var v *inventory
		end, err = d.dumpIf(ctx, r, o, known, func(of *inventory) (bool, error) { v = of; return !of.outdated, nil })
		if v != nil && v.outdated {
			return d.waitOlder(r, resourcesync.ResourceDump, v)
		}
	default:
		return errors.New("the source offers neither lists nor dumps")
	}
	if errors.Is(err, errUnchangedList) {
		r.complete = true
		r.why("the list is the one that was processed before")
		return nil
	}
	if err != nil {
		return err
	}
	r.complete = true
	r.mode("incremental")
	r.why("the source does not tell its changes: compared with its list")
	return d.saveMeta(func(m *meta) {
		end(m)
		m.Missing.Dropped = true // the changes that were missed are named no more
		m.closeGap()
	})
}

// window collects changes, keeps the last for each resource, fetches them beside
// each other and applies them with the cursor behind the last.
type window struct {
	d     *Destination
	r     *run
	order []*item
	items map[ledger.Hash]int // position in order
	count int
	at    cursor // behind everything that was added
	any   bool
	ahead *newest // the last change of a window that was cut off before, until it is met
	stays bool    // so does the cursor: what was added is not proven to follow it yet

	dump     string // the Change Dump, "" for none
	packages *changePackages
	read     []uint64 // see cursor.Read
	packaged bool     // some of the collected are in a package that is read as a list
}

// maxRead bounds of how many lists it is remembered that they were read.
const maxRead = 256

// maxTogether bounds the changes of one number, in windows.
const maxTogether = 10

// window begins at a cursor. Where the changes themselves come from the Change Dump,
// it is no other place of their bytes.
func (d *Destination) window(r *run, o *offer, from cursor) *window {
	w := &window{d: d, r: r, items: map[ledger.Hash]int{}, at: from, ahead: from.Ahead}
	if _, kind := o.changes(); kind == resourcesync.ChangeList {
		w.dump = o.ChangeDump
	}
	return w
}

// reach moves the cursor to a later time, and never to one that was still to come when the
// list was given: what comes until then is not applied.
func (c *cursor) reach(t, served time.Time) {
	if t.After(served) {
		t = served
	}
	if t.After(c.Time) {
		c.Time = t
	}
}

// stand puts the cursor at the end of a list. A list without changes leaves the one before it
// known, which has the newest change.
func (c *cursor) stand(end *change) {
	switch {
	case end.position > 0:
		c.Seen, c.Filled = end.seen, listState{}
		if k := c.Seen; k != nil && (c.Newest == nil || len(k.Tail) == 0 || uint32(k.Tail[0]) != hash32(c.Identity)) {
			k.Tail = nil
		}
	case c.Filled.URL != "":
	case c.Last.URL != end.list && !c.Last.Package:
		c.Filled = c.Last
	default: // nothing that could be asked for again was before it
		c.Filled = end.state
	}
	c.List, c.Position, c.Closed = end.list, end.position, end.closed
	c.Last, c.Begin = end.state, end.from
}

// passed tells that a change is not met any more by who goes on from here.
func (c *cursor) passed(n *newest) bool {
	return !n.Time.After(c.Time) || c.Newest != nil && !n.Time.After(c.Newest.Time)
}

func (w *window) add(ctx context.Context, c change) error {
	w.stays = c.unproven
	if c.it == nil { // the end of a list
		w.at.stand(&c)
		if w.read = append(w.read, c.document); len(w.read) > 2*maxRead {
			w.read = slices.Clone(w.read[len(w.read)-maxRead:])
		}
		if n := c.newest; n != nil && (w.at.Newest == nil || n.Sequence == 0 && !n.Time.Before(w.at.Newest.Time)) {
			w.at.Newest = n
		}
		if n := w.at.Taken; n != nil && !c.until.Before(n.Time) {
			w.at.Taken = nil
		}
		if c.closed {
			w.at.reach(c.until, c.served)
		}
		if c.sequence != nil {
			s := *c.sequence
			if w.at.Sequence == nil || s > *w.at.Sequence {
				w.at.Sequence = &s
			}
		}
		if w.packaged {
			return w.apply(ctx, nil) // while the package is open
		}
		return nil
	}
	if n := w.ahead; n != nil && n.Loc == c.it.Loc && n.Change == c.it.Change && n.Time.Equal(c.it.Time) {
		w.ahead = nil
	}
	// Entries of one number (a resource that moved: deleted here, created there)
	// are never cut apart, because the cursor could not stand between them.
	together := c.it.Sequence > 0 && w.at.Sequence != nil && c.it.Sequence == *w.at.Sequence
	if together && len(w.order) >= maxTogether*w.limit() {
		return fmt.Errorf("%s: more than %d changes have the number %d", clip.Middle(c.list), len(w.order), c.it.Sequence)
	}
	if len(w.order) >= w.limit() && !together {
		if err := w.apply(ctx, nil); err != nil {
			return err
		}
	}
	loc := ledger.HashOf(c.it.Loc)
	passed := w.r.passed[ledger.HashOf(c.it.identity())] // a later one has been compared: the mirror would go back
	if _, ok := w.items[loc]; ok && w.d.cfg.Keep == "versions" && !together && !passed {
		if err := w.apply(ctx, nil); err != nil { // each of them is a version
			return err
		}
	}
	if i, ok := w.items[loc]; ok && !passed {
		w.d.superseded(w.order[i], c.it)
		w.order[i] = nil // only the last counts
	}
	if !passed {
		w.items[loc] = len(w.order)
		w.order = append(w.order, c.it)
		w.packaged = w.packaged || c.it.pkg != nil
	}
	w.any = true
	if w.r.dry {
		w.r.plan.change(c.list, c.kind())
	}
	w.at.List, w.at.Position, w.at.Identity, w.at.Closed = c.list, c.position, c.it.identity(), false
	w.at.Newest, w.at.Last, w.at.Filled = newestOf(c.it), listState{}, listState{}
	w.at.Read = nil
	w.at.Root = listState{URL: w.at.Root.URL} // should this run be cut off, the cursor is of none that was read to its end
	w.at.reach(c.it.Time, c.served)
	if c.it.Sequence > 0 {
		s := c.it.Sequence
		w.at.Sequence = &s
	}
	return nil
}

// unmet is the gap that a source has which does not tell any more of changes that a run
// applied in part before it was cut off.
func (w *window) unmet() error {
	return &gapError{why: fmt.Sprintf("the source does not tell of a change any more up to which a run was under way that did not end (%s): it was set back, as by restoring a backup, or what told of it is not offered any more", w.ahead)}
}

// again tells that the last of what is collected is of before the cursor, as where lists
// overlap. The run after one that was cut off may not meet it.
func (w *window) again() bool {
	n := w.d.snapshotMeta().Cursor.Newest
	return n != nil && w.at.Newest != nil && w.at.Newest.Sequence == 0 && w.at.Newest.Time.Before(n.Time)
}

// limit is how many changes are applied together.
func (w *window) limit() int {
	if w.dump != "" {
		return max(w.d.lim.window, packageWindow)
	}
	return w.d.lim.window
}

// apply fetches and applies what is collected.
func (w *window) apply(ctx context.Context, then func(*meta)) error {
	d, r := w.d, w.r
	items := w.order
	w.order, w.packaged = nil, false
	clear(w.items)
	at := w.at
	at.Ahead = w.ahead
	if r.dry {
		for _, it := range items {
			if it == nil {
				continue
			}
			if err := d.planChange(r, it); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.packagesFor(ctx, items); err != nil {
		return err
	}
	if len(items) > 0 && w.ahead == nil && !w.again() { // the cursor moves behind the last of them, and a part may stand in the mirror before
		if err := d.saveMeta(func(m *meta) { m.Cursor.Ahead = w.at.Newest }); err != nil {
			return err
		}
	}
	if err := d.returned(func(waiting map[ledger.Hash]bool) (back []ledger.Hash, err error) {
		for _, it := range items {
			if it != nil && it.Bad == "" && it.Change != "deleted" && waiting[ledger.HashOf(it.Loc)] {
				back = append(back, ledger.HashOf(it.Loc))
			}
		}
		return back, nil
	}); err != nil {
		return err
	}
	left, err := d.pairMoves(items)
	if err != nil {
		return err
	}
	b := d.batcher(&r.c, false)
	defer b.wait()
	jobs := func(yield func(job, error) bool) {
		for _, it := range items {
			if it == nil {
				continue
			}
			loc := ledger.HashOf(it.Loc)
			it.tried = true
			rec, err := d.led.Record(loc)
			if err != nil {
				yield(nil, err)
				return
			}
			j := d.fetchJob(it)
			switch {
			case it.Bad != "", it.Change == "deleted":
			case rec != nil && !rec.Has(ledger.FlagKept):
				if v, _ := it.differs(rec); v == provenSame {
					j = func(context.Context) *outcome { return &outcome{it: it, rec: rec} }
				} else {
					if j = w.fromPackage(it); j == nil {
						j = d.updateJob(it, loc, rec)
					}
					j = d.withFormer(j, loc, rec)
				}
			default:
				if p := w.fromPackage(it); p != nil {
					j = p
				}
			}
			if !yield(replacing(j, left[loc]), nil) {
				return
			}
		}
	}
	err = d.pipeline(ctx, jobs, func(o *outcome) error {
		r.note(o)
		w.count++
		if w.count%100 == 0 {
			d.opt.Progress("changes", int64(w.count), 0)
		}
		return b.outcome(ctx, o)
	})
	if err != nil {
		return err
	}
	err = b.flush(ctx, func(m *meta) {
		if !w.stays {
			m.Cursor = at
		}
		if then != nil {
			then(m)
		}
	})
	if err == nil && len(items) > 0 && !w.stays {
		d.tellThrough(&at)
	}
	return err
}

// withFormer reads beside the others what a resource was.
func (d *Destination) withFormer(j job, loc ledger.Hash, rec *ledger.Record) job {
	return func(ctx context.Context) *outcome {
		o := j(ctx)
		if o.err == nil {
			o.was, o.before = d.former(loc, rec, o.before), nil
		}
		return o
	}
}

// finish applies the rest and remembers the document that was read to its end.
func (w *window) finish(ctx context.Context, dl *download, address string) error {
	w.r.complete, w.stays = true, false
	if w.any {
		w.r.mode("incremental")
		w.r.why("changes applied from where the last run stood")
	} else if w.r.rep.Mode == "" {
		w.r.why("no change since the last poll")
	}
	w.at.Read = w.read[max(0, len(w.read)-maxRead):]
	w.at.Root = listState{URL: address, ETag: dl.etag(), Modified: dl.modified(), Digest: dl.Digest.String(), Index: dl.index, Numbered: dl.numbered, Untold: dl.untold}
	if w.r.dry {
		return w.apply(ctx, nil)
	}
	return w.apply(ctx, func(m *meta) { m.HeldGap = "" })
}
