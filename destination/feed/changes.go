package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Change is one entry of a Change List. Without an Item it is the end of a list.
type Change struct {
	At       Position // behind it; of Source.Changes alone
	Item     *item.Item
	List     string
	position int      // entries of the list up to and with this one
	packages []uint64 // at the end, of a package: the names of all in its Change Dump
	closed   bool
	until    time.Time
	state    listState
	from     time.Time // at the end: the beginning of the list
	Served   time.Time // the list is silent about later times
	Document uint64    // the list as it is, see download.name
	Unproven bool      // the change at the poll's beginning was not met yet, and may be of another history
	newest   *Newest   // at the end: the change at the cursor, if the cursor does not know it
	seen     *seen     // at the end: the looks of the list, nil with numbers
	said     *said     // at the end: the changes of the list, nil without numbers
	all      tally     // at the end: its entries, briefly
	first    uint32    // at the end: the first of them
	Shrunk   bool      // at the end: the list has not kept what it had, see growth
	looks    earlier   // at the end
	tail     bool      // at the end: the list was read from the cursor on alone
}

// Kind is the origin of a change: a list, or a package of a Change Dump.
func (c *Change) Kind() resourcesync.Capability {
	if c.Item.Package != "" {
		return resourcesync.ChangeDump
	}
	return resourcesync.ChangeList
}

// GapError tells of lost changes between the cursor and the source's present offer, or of a history other than
// the followed one.
type GapError struct {
	Why     string
	Missing []string // its cause: lists named and not there
	then    string   // followed meanwhile, if the source tells no changes at all
	root    bool     // it is the root of the changes
	unread  []string // lists left unread for it
	Timed   bool     // and their index tells all their beginnings
	Behind  bool     // by their root, the changes end before the list or dump at the cursor
}

func (e *GapError) Error() string { return e.Why }

// EachChange reads the changes after from, in order, from a Change List or an index of them, or
// from a Change Dump. With strict, a gap is a *GapError before any change behind it. Without
// strict, gaps are passed over.
func (src *Source) EachChange(ctx context.Context, o *Offer, from *Cursor, strict bool, f func(Change) error) error {
	address, kind := o.Changes()
	dl, r, err := src.changesRoot(ctx, fetch.Request{URL: address}, kind)
	if err != nil {
		return err
	}
	defer dl.Close()
	return src.eachChangeOf(ctx, dl, r, &from.at, strict, f)
}

// LeadsOn tells whether the changes go on from an inventory, as far as the lists tell. A gap is a
// *GapError.
func (src *Source) LeadsOn(ctx context.Context, o *Offer, v *Inventory) (bool, error) {
	from, unproven := v.cursor(), false
	from.unproven = &unproven
	err := Again(func() error {
		return missingOf(o, src.EachChange(ctx, o, &Cursor{from}, true, func(Change) error { return nil }))
	})
	return err == nil && !unproven, err
}

// AddChanges adds all changes that the source offers, and tells the time of the first one: zero if
// there is none, or one has no time.
func (src *Source) AddChanges(ctx context.Context, o *Offer, v *Inventory) (first time.Time, err error) {
	some := false
	err = src.EachChange(ctx, o, &Cursor{}, true, func(c Change) error {
		if c.Item == nil {
			return nil
		}
		if !some || c.Item.Time.Before(first) {
			first, some = c.Item.Time, true
		}
		return v.Add(c.Item)
	})
	return first, err
}

// eachChangeOf is EachChange of an opened root.
func (src *Source) eachChangeOf(ctx context.Context, dl *Download, r *resourcesync.Reader, from *cursor, strict bool, f func(Change) error) error {
	h := r.Head()
	stands, numbered := h.Meta.Sequence()
	if numbered {
		src.stands = stands
	}
	if !strict || from.Sequence == nil {
		return src.changesOf(ctx, dl, r, from, strict, f)
	}
	last := *from.Sequence
	if numbered && stands < last {
		return &GapError{Why: fmt.Sprintf("the source stands at change %d and we at %d: it was set back, as by restoring a backup", stands, last), Behind: from.Newest == nil}
	}
	err := src.changesOf(ctx, dl, r, from, strict, func(c Change) error { // each change has its entry
		if c.Item != nil {
			n := c.Item.Sequence
			if n > last+1 {
				return &GapError{Why: fmt.Sprintf("Change List %s tells of change %d, and none tells of change %d", clip.Middle(c.List), n, last+1)}
			}
			last = max(last, n)
		}
		return f(c)
	})
	if err == nil && stands > last && h.Meta.Capability != resourcesync.ChangeDump { // which ends at its last package
		err = &GapError{Why: fmt.Sprintf("the source stands at change %d, and its Change Lists end with change %d", stands, last)}
	}
	return err
}

func (src *Source) changesOf(ctx context.Context, dl *Download, r *resourcesync.Reader, from *cursor, strict bool, f func(Change) error) error {
	from.trail = new(trail)
	h := r.Head()
	_, hasRoot := h.Meta.Sequence()
	var p *proof
	if strict {
		p = &proof{from: from}
	}
	if h.Meta.Capability == resourcesync.ChangeDump {
		parts, packages, err := src.packagesAfter(ctx, dl, r, from, strict)
		if err != nil {
			return err
		}
		hand := f
		f = func(c Change) error {
			c.packages = packages
			return hand(c)
		}
		if strict && from.Closed && len(parts) > 0 && parts[0].URL == from.List {
			switch same, err := src.Docs.samePackage(ctx, parts[0].pkg, from); {
			case err != nil:
				return err
			case same:
				p.done, parts = true, parts[1:]
			}
		}
		return src.eachChangeIn(ctx, parts, from, p, f)
	}
	if !h.Index {
		if strict && !hasRoot && from.Sequence == nil && !from.Closed && from.List != "" && from.List != dl.URL {
			switch begins := !h.Meta.From.IsZero(); {
			case begins && src.Docs.standsAt(ctx, from.List):
				return src.eachChangeIn(ctx, []part{{URL: from.List, left: true}, {URL: dl.URL}}, from, p, f)
			case !begins && from.Newest == nil:
				return &GapError{Why: fmt.Sprintf("Change List %s, which was followed, is offered no more, and %s does not tell where it begins", clip.Middle(from.List), clip.Middle(dl.URL))}
			}
		}
		if err := src.listChanges(dl, from, p, true, f); err != nil {
			return err
		}
		return p.end()
	}
	parts, err := src.Docs.parts(ctx, dl, r, resourcesync.ChangeList)
	if err != nil {
		return err
	}
	if err := src.survey.inOrder(ctx, dl, parts); err != nil {
		return err
	}
	parts = skipApplied(parts, from)
	if parts, err = src.survey.present(parts, from, strict); err != nil {
		return err
	}
	if strict && len(parts) > 1 && parts[0].URL == from.List && from.Closed {
		switch same, err := p.sameClosed(ctx, src.Docs, parts[0].URL); {
		case err != nil:
			return err
		case same:
			parts = parts[1:]
			if from.Seen != nil {
				from.trail.follow(from.Seen.Tail)
			}
		}
	}
	err = src.eachChangeIn(ctx, parts, from, p, f)
	var absent *absentError
	if !errors.As(err, &absent) {
		return err
	}
	if src.survey.knows(absent.url) || !slices.ContainsFunc(parts, func(p part) bool { return p.URL == absent.url }) {
		return err
	}
	if err := src.survey.look(ctx, parts); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errSurveyed, err)
}

// standsAt tells whether the list at the cursor can still be had, though the source names another
// one. Its latest changes are nowhere else.
func (src *Documents) standsAt(ctx context.Context, address string) bool {
	dl, _, err := src.document(ctx, fetch.Request{URL: address, Attempts: 2}, resourcesync.ChangeList)
	if err != nil {
		src.log.Debug("the Change List that was followed is there no more", "list", address, "error", err)
		return false
	}
	return dl.Close() == nil
}

// eachChangeIn is EachChange over documents in the order of their times. With p a gap is a
// *GapError.
func (src *Source) eachChangeIn(ctx context.Context, parts []part, from *cursor, p *proof, f func(Change) error) error {
	var last time.Time
	reached := from.stands()
	first := true
	at := *from // moves with the changes
	err := src.Docs.eachPart(ctx, parts, resourcesync.ChangeList, func(q part, pdl *Download, pr *resourcesync.Reader) error {
		ph := pr.Head()
		if p != nil {
			p.more = q.URL != parts[len(parts)-1].URL
		}
		if p != nil && !first && !last.IsZero() && !ph.Meta.From.IsZero() && ph.Meta.From.After(last) && !from.before(ph.Meta.From) && !at.coversWith(pdl, src) {
			return &GapError{Why: fmt.Sprintf("between the Change List that ends at %s and %s, which begins at %s, changes are missing", Stamp(last), clip.Middle(pdl.URL), Stamp(ph.Meta.From))}
		}
		err := src.listChanges(pdl, &at, p, first, func(c Change) error {
			if c.Item != nil && c.Item.Sequence > 0 {
				s := c.Item.Sequence
				at.Sequence = &s
			}
			if c.Item != nil && c.Item.Time.After(reached) {
				reached = c.Item.Time
			}
			switch {
			case c.Item == nil:
			case c.Item.Time.IsZero():
				at.anew = at.anew || c.Item.Sequence == 0
			case !c.Item.Time.After(from.stands()) && (at.again.IsZero() || c.Item.Time.Before(at.again)):
				at.again = c.Item.Time
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

// sameClosed tells whether the fully applied closed list is still the same. A list written before
// its own end may have got more changes. This costs one conditional request.
func (p *proof) sameClosed(ctx context.Context, docs *Documents, address string) (bool, error) {
	from := p.from
	if from.Newest == nil {
		return true, nil
	}
	if from.Last.URL != address {
		return false, nil
	}
	same, err := docs.listIs(ctx, fetch.Request{}, &from.Last)
	if IsGone(err) {
		return true, nil // retention took it meanwhile: the beginning of the next list tells
	}
	p.done = same
	return same, err
}

// sortParts puts the parts of an index in the order of their intervals, if all tell one. Older
// dialects tell none, and list the newest first. told is false if nothing in the index tells an
// order.
func sortParts(parts []part) (told bool) {
	if !slices.ContainsFunc(parts, untimed) {
		slices.SortStableFunc(parts, func(a, b part) int { return a.From.Compare(b.From) })
		return true
	}
	newestFirst, oldestFirst := byLastmod(parts)
	if newestFirst = newestFirst && !slices.ContainsFunc(parts, func(p part) bool { return !p.old }); newestFirst {
		slices.Reverse(parts)
	}
	return newestFirst || oldestFirst
}

// byLastmod tells the order of parts if all have a lastmod.
func byLastmod(parts []part) (newestFirst, oldestFirst bool) {
	first, last := parts[0].lastmod, parts[len(parts)-1].lastmod
	newestFirst, oldestFirst = first.After(last), last.After(first)
	for i, p := range parts {
		newestFirst = newestFirst && !p.lastmod.IsZero() && (i == 0 || !p.lastmod.After(parts[i-1].lastmod))
		oldestFirst = oldestFirst && !p.lastmod.IsZero() && (i == 0 || !p.lastmod.Before(parts[i-1].lastmod))
	}
	return newestFirst, oldestFirst
}

// skipApplied leaves out closed lists before the cursor.
func skipApplied(parts []part, from *cursor) []part {
	n := 0
	for n < len(parts)-1 {
		p := parts[n]
		before := !p.Until.IsZero() && !from.Time.IsZero() && p.Until.Before(from.applied())
		if !before && (!(p.URL == from.List && from.Closed) || from.Newest != nil) {
			break
		}
		n++
	}
	return parts[n:]
}

// Stamp writes a time as the records and notes have it.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// listChanges hands out the changes of one list after the cursor.
// With p a gap is a *gapError before any change is handed out.
func (src *Source) listChanges(dl *Download, cur *cursor, p *proof, first bool, f func(Change) error) error {
	start := *cur // several entries may share a number: the list's own changes do not move its start
	from := &start
	_, served := dl.Served(src.Docs.opt.Now())
	hand := f
	document := dl.name()
	f = func(c Change) error {
		c.Served, c.Unproven, c.Document = served, p.seeks(), document
		return hand(c)
	}
	scan, err := src.scanChanges(dl, from)
	if err != nil {
		return err
	}
	defer scan.sorted.close()
	if from.trail != nil {
		*from.trail = scan.seen.trail
	}
	h := scan.head
	end := Change{List: dl.URL, position: scan.count, closed: scan.closed && (dl.pkg != nil || !scan.head.Meta.Until.After(served)), until: h.Meta.Until, from: h.Meta.From, newest: scan.adopt,
		state: listState{URL: dl.URL, ETag: dl.etag(), Modified: dl.modified(), Digest: dl.Digest.String(), Package: dl.pkg != nil}}
	before := 0 // entries of the list before those here
	if dl.tail {
		before, end.tail = from.Position-1, true
		end.position, end.state = before+scan.count, listState{URL: dl.URL}
	}
	grown := &scan.seen.told.grown
	end.all, end.first, end.Shrunk = grown.now, grown.first, !dl.tail && grown.shrunk(scan.seen.falls)
	if end.said = scan.seen.told.end(dl.tail); !scan.numbered {
		end.seen = scan.seen.end(dl.URL, h.Meta.From)
	}
	end.looks = scan.looks(&end)
	if p != nil {
		if err := p.check(scan, dl.URL); err != nil {
			return err
		}
		if err := scan.seen.told.contradicts(dl.URL); err != nil {
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
				if err := f(Change{Item: it, List: dl.URL, position: 0}); err != nil {
					return err
				}
			}
		}
		return f(end)
	}
	var again time.Time // changes from this time to the cursor's change are applied again
	switch {
	case scan.start == 0:
	case scan.seen.again():
		again = scan.seen.was.Time
	case from.List != dl.URL && from.Newest != nil: // nothing is known of its entries there
		again = from.Newest.Time
	}
	if t := from.again; scan.start > 0 && !t.IsZero() && (again.IsZero() || t.Before(again)) { // their successors succeed them again
		again = t
	}
	give := func(n int, it *item.Item) error {
		applied := n <= scan.start && (again.IsZero() || it.Time.Before(again)) || scan.byTime && n < scan.passed && (scan.seen.now.Grown || it.Time.IsZero() || it.Time.After(served))
		if !scan.wanted(it, from) || applied && !from.anew {
			return nil
		}
		return f(Change{Item: it, List: dl.URL, position: before + n})
	}
	if !scan.many {
		for _, k := range scan.kept {
			if err := give(k.position, k.item); err != nil {
				return err
			}
		}
		return f(end)
	}
	r, err := src.Docs.reader(dl)
	if err != nil {
		return err
	}
	n := 0
	err = eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		if n++; n <= scan.start && again.IsZero() && !from.anew {
			return nil
		}
		it, err := changeItem(e, r, dl)
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

func changeItem(e *resourcesync.Entry, r *resourcesync.Reader, dl *Download) (*item.Item, error) {
	it := item.New(e, r, dl.URL)
	if dl.pkg != nil && dl.pkg.IsZIP() {
		it.Package = dl.pkg.URL
	}
	it.Ask.Opened = dl.ZIP
	address := dl.URL
	switch it.Change {
	case "created", "updated", "deleted":
	case "":
		if t := it.Promise.Type; t == "application/zip" || t == "application/x-tar" || t == "application/x-xz" || t == "application/gzip" {
			return nil, fmt.Errorf("%s line %d: the entry has no change and is a package: this is a Change Dump and no Change List", clip.Middle(address), e.Line)
		}
	default:
		if it.Bad == "" {
			it.Bad = fmt.Sprintf("line %d of %s: change %q is neither created, updated nor deleted", e.Line, clip.Middle(address), clip.Middle(it.Change))
		}
	}
	it.Change = knownChange(it.Change)
	return it, nil
}

// knownChange is the kind of a change, as it is applied.
func knownChange(kind string) string {
	if kind == "created" || kind == "deleted" {
		return kind
	}
	return "updated"
}

// closed tells of a document with changes: it will never change again.
func closed(dl *Download, h *resourcesync.Head) bool { return dl.pkg != nil || h.Closed() }

// changeScan is the result of a first pass over a Change List.
type changeScan struct {
	head     resourcesync.Head
	served   time.Time // when it was had, by the later of both clocks
	closed   bool      // it will never change again
	count    int
	start    int           // entries to pass over: applied already, by position
	found    bool          // the identity of the cursor was found
	numbers  span          // of the first and the last entry
	byTime   bool          // choose by time: the list does not know our position
	passed   int           // a change here is of before the cursor, and so are those before it with times to come
	sorted   *changeSorter // nil: the list is in order
	kept     []keptItem    // possibly wanted
	many     bool          // more of those than are kept
	numbered bool          // every entry tells its number
	minTime  time.Time     // of all entries with a time
	maxTime  time.Time
	sight    sighting
	place    placing // of the newest change, if it tells neither time nor number
	taken    bool    // it has the change of cursor.Taken
	seen     looker
	adopt    *Newest // of a cursor at a number, without the change
}

// span is from one number in the source's log to another, 0 without numbers.
type span struct{ first, last uint64 }

type keptItem struct {
	item     *item.Item
	position int
}

// scanChanges finds the place to go on, and whether the list is in order. Lists of early dialects have the newest
// first. A list out of order is sorted. Of entries with numbers up to the cursor's only kind and time are read.
func (src *Source) scanChanges(dl *Download, from *cursor) (*changeScan, error) {
	numbers := from.Sequence != nil && (from.Newest == nil || from.Newest.Sequence > 0)
	s, err := src.scanChangesBy(dl, from, numbers)
	if errors.Is(err, errUnnumbered) { // the position does not follow from the numbers
		s, err = src.scanChangesBy(dl, from, false)
	}
	return s, err
}

var errUnnumbered = errors.New("some entries tell no number")

func (src *Source) scanChangesBy(dl *Download, from *cursor, numbers bool) (*changeScan, error) {
	r, err := src.Docs.reader(dl)
	if err != nil {
		return nil, err
	}
	_, latest := dl.Served(src.Docs.opt.Now())
	s := &changeScan{byTime: true, served: latest}
	if k := from.Seen; k != nil {
		s.seen.all, s.place.tail = k.All, k.Tail
		if k.List == dl.URL {
			s.seen.was = k
		}
	}
	if from.Said != nil {
		s.seen.told.was = *from.Said
	}
	if i := slices.IndexFunc(from.Heard, func(h heard) bool { return h.URL == dl.URL }); i >= 0 {
		s.seen.told.grown.was = from.Heard[i]
	}
	if from.trail != nil {
		s.seen.trail = *from.trail
	}
	var last time.Time
	bytes := int64(0) // of the kept
	ordered, descending, strictly, sequences := true, true, false, true
	falling := true // numbers
	past := order{until: latest}
	at := 0
	applied := func(m *resourcesync.Meta) bool {
		seq, _ := m.Sequence()
		return numbers && seq > 0 && seq < *from.Sequence && (from.Newest == nil || seq != from.Newest.Sequence)
	}
	r.PassLinks(applied)
	err = eachEntry(r, dl.URL, func(e *resourcesync.Entry) error {
		var it *item.Item
		if applied(&e.Meta) {
			seq, _ := e.Meta.Sequence()
			it = &item.Item{Loc: e.Loc, Change: knownChange(e.Meta.Change), Sequence: seq, Time: item.ChangeTime(r, e)}
		} else {
			var err error
			if it, err = changeItem(e, r, dl); err != nil {
				return err
			}
		}
		s.count++
		switch {
		case s.many || from.Sequence != nil && it.Sequence > 0 && it.Sequence <= *from.Sequence: // applied, whatever else the list tells
		case len(s.kept) == src.Docs.lim.KeptItems, bytes > src.Docs.opt.MemoryBytes/8:
			s.many, s.kept = true, nil
		default:
			bytes += it.Held()
			s.kept = append(s.kept, keptItem{it, s.count})
		}
		if s.count == 1 {
			s.numbers.first = it.Sequence
		}
		if it.Sequence == 0 {
			if numbers {
				return errUnnumbered
			}
			sequences = false
		}
		falling = falling && (s.count == 1 || it.Sequence < s.numbers.last)
		s.numbers.last = it.Sequence
		s.sight.look(from.Newest, it)
		s.seen.told.look(it)
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
		if from.Identity != "" && strings.HasPrefix(from.Identity, it.Loc) && it.Identity() == from.Identity && (!s.found || from.List != dl.URL || at != from.Position) {
			s.found = true
			at = s.count
		}
		if !numbers { // else they are not looked at
			s.seen.look(it, at == s.count, latest)
			if n := from.Newest; n != nil && n.Time.IsZero() {
				s.place.look(&s.seen.trail, n.Is(it))
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
	if s.seen.falls = descending && strictly; s.seen.falls {
		s.seen.now.First = s.seen.oldest
	}
	bySequence := from.Sequence != nil && sequences && s.count > 0
	// Changes of a resource without times look the same: only the place tells them apart.
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
	backward := descending && strictly
	if falling && sequences && s.count > 1 {
		s.numbers, backward = span{s.numbers.last, s.numbers.first}, true
	} else if ordered || sequences {
		return s, nil
	} else if known := src.keeper.Position().at.Cursor.at.Seen; s.seen.grew() || known != nil && known.List == dl.URL && known.Grown && !descending {
		src.Docs.log.Warn("change list has grown by changes of before its last one; the source's clock was set back, and they are taken where they stand", "list", dl.URL)
		if s.seen.now.Grown = true; s.seen.grew() {
			s.start, s.byTime = s.seen.was.All.N, false
		}
		return s, nil
	} else if past.rises() {
		src.Docs.log.Warn("change list has changes of times to come; they are taken where they stand", "list", dl.URL)
		return s, nil
	}
	src.Docs.log.Warn("change list is not in the order of its changes", "list", dl.URL, "newest_first", backward)
	if s.sorted, err = src.sortChanges(dl, backward); err != nil {
		return nil, err
	}
	s.many, s.kept = false, nil
	s.start, s.byTime = 0, true
	return s, nil
}

// order tells whether the changes of a list stand in the order of their times. Times still to
// come are wrong, and do not count.
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

// wanted leaves out changes that are surely applied: by number if source and cursor have numbers, else by time.
// Doubtful changes are applied again, and change nothing.
func (s *changeScan) wanted(it *item.Item, from *cursor) bool {
	if from.Sequence != nil && it.Sequence > 0 {
		return it.Sequence > *from.Sequence
	}
	if s.byTime && !from.Time.IsZero() && !from.anew {
		if it.Time.IsZero() {
			until := s.head.Meta.Until
			return !s.closed || until.IsZero() || !until.Before(from.applied())
		}
		// A change of before its own list begins tells of a clock set back.
		return !it.Time.Before(from.applied()) || it.Time.Before(s.head.Meta.From)
	}
	return true
}

// gap finds out whether changes between the cursor and this first list are lost.
func (s *changeScan) gap(list string, from *cursor) error {
	anew := from.Sequence != nil && !s.sight.seen && !from.Begin.IsZero() && !s.head.Meta.From.Equal(from.Begin) && s.head.Meta.From.After(from.stands())
	if anew {
		return &GapError{Why: fmt.Sprintf("the source's Change Lists begin anew at %s, and we stand at %s", Stamp(s.head.Meta.From), Stamp(from.Time))}
	}
	if from.Sequence != nil && s.count > 0 && s.numbers.first > 0 {
		if s.numbers.first > *from.Sequence+1 && (s.head.Meta.From.IsZero() || s.head.Meta.From.After(from.stands())) {
			return &GapError{Why: fmt.Sprintf("the source's changes begin with number %d and we stand at %d", s.numbers.first, *from.Sequence)}
		}
		if s.numbers.last < *from.Sequence {
			if root, ok := s.head.Meta.Sequence(); ok && root < *from.Sequence && !s.closed {
				return &GapError{Why: fmt.Sprintf("the source's changes end with number %d and we stand at %d: it was set back", s.numbers.last, *from.Sequence)}
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
		if root, ok := s.head.Meta.Sequence(); ok && from.Sequence != nil && root == *from.Sequence {
			return nil // an empty list from the cursor on
		}
		return &GapError{Why: fmt.Sprintf("the source's changes begin at %s and we stand at %s", Stamp(f), Stamp(stands))}
	}
	empty := from.Last.URL == list && from.Position == 0 // when it was read: the change is of an earlier list
	if from.Identity != "" && from.List == list && !from.Closed && !empty {
		return &GapError{Why: fmt.Sprintf("Change List %s does not have the change any more at which we stand: it was rewritten or went backwards", clip.Middle(list))}
	}
	return nil
}

// lacks is a gap: a package, or an archived list, covers the time of the last changed resource of the taken list
// or dump (cursor.Taken), and does not have that change. So list and changes are of different histories.
func (s *changeScan) lacks(dl *Download, from *cursor, archived bool) error {
	n := from.Taken
	if n == nil || s.taken || dl.pkg == nil && !archived || from.Root.URL == "" || !s.head.Meta.From.Before(n.Time) || s.head.Meta.Until.Before(n.Time) {
		return nil
	}
	return &GapError{Why: fmt.Sprintf("%s has the changes from %s until %s, and not that of %s at %s, as which it is mirrored: the source was set back, as by restoring a backup", clip.Middle(dl.URL), Stamp(s.head.Meta.From), Stamp(s.head.Meta.Until), clip.Middle(n.Loc), Stamp(n.Time))}
}

// changesSince opens the Change List or index, nil if nothing was published since the cursor came to its end. An
// unchanged index proves nothing: its open list may have grown, or the source was set back and has reached the
// same position again. So the lists at the cursor are asked for too.
func (src *Source) changesSince(ctx context.Context, address string, kind resourcesync.Capability, c *Cursor) (*Download, *resourcesync.Reader, error) {
	if e := src.takeEarly(address, c); e != nil {
		return e.dl, e.rd, nil
	}
	return src.askChanges(ctx, fetch.Request{URL: address}, kind, c)
}

func (src *Source) askChanges(ctx context.Context, req fetch.Request, kind resourcesync.Capability, c *Cursor) (*Download, *resourcesync.Reader, error) {
	from := &c.at
	known := from.Root.URL == req.URL && from.Ahead == nil && len(src.keeper.Position().at.Missing.Lists) == 0
	again := req
	if known {
		req.ETag, req.Modified = from.Root.ETag, from.Root.Modified
	}
	dl, rd, err := src.changesRoot(ctx, req, kind)
	if err != nil {
		return nil, nil, err
	}
	if !dl.NotModified && !(known && from.Root.Digest == dl.Digest.String()) {
		return dl, rd, nil
	}
	was, last := from.Root.ETag+from.Root.Modified, from.Last.ETag+from.Last.Modified
	from.Root.validates(dl)
	if !from.Root.Index || kind == resourcesync.ChangeDump && from.Root.Numbered || kind == resourcesync.ChangeList && src.lastListsUnchanged(ctx, from) {
		if was != from.Root.ETag+from.Root.Modified || last != from.Last.ETag+from.Last.Modified {
			err = src.keepValidators(ctx, from)
		}
		return nil, nil, errors.Join(err, dl.Close())
	}
	if !dl.NotModified {
		return dl, rd, nil
	}
	if err := dl.Close(); err != nil {
		return nil, nil, err
	}
	return src.changesRoot(ctx, again, kind)
}

// keepValidators keeps those of the lists at a cursor. A list read just after it had been
// written had none (fetch.Body.ETag).
func (src *Source) keepValidators(ctx context.Context, from *cursor) error {
	return src.keeper.Keep(ctx, func(p *Position) {
		for _, l := range [][2]*listState{{&p.at.Cursor.at.Root, &from.Root}, {&p.at.Cursor.at.Last, &from.Last}} {
			if to, of := l[0], l[1]; to.URL == of.URL && to.Digest == of.Digest {
				to.ETag, to.Modified = of.ETag, of.Modified
			}
		}
	})
}

// validates takes the validators of an unchanged document that was sent again.
func (l *listState) validates(dl *Download) {
	if !dl.NotModified && dl.etag()+dl.modified() != "" {
		l.ETag, l.Modified = dl.etag(), dl.modified()
	}
}

// lastListsUnchanged tells whether the last entries in the lists of an unchanged index are as
// they were applied.
func (src *Source) lastListsUnchanged(ctx context.Context, from *cursor) bool {
	without := from.Position == 0 && from.Newest != nil && from.Filled.URL == "" // by a version without it
	if !from.Root.Numbered && (from.Closed || from.Root.Untold) || from.Last.URL == "" || without {
		return false
	}
	is, err := src.Docs.listIs(ctx, fetch.Request{}, &from.Last)
	if is && err == nil && from.Filled.URL != "" && from.Filled.URL != from.Last.URL {
		is, err = src.Docs.listIs(ctx, fetch.Request{}, &from.Filled)
		is = is || IsGone(err) // retention took it: its changes are applied
	}
	return is // an error is told when the lists are read
}

// listIs tells whether a Change List is as it was, and takes its validators then.
func (src *Documents) listIs(ctx context.Context, r fetch.Request, was *listState) (bool, error) {
	r.URL, r.ETag, r.Modified = was.URL, was.ETag, was.Modified
	dl, _, err := src.document(ctx, r, resourcesync.ChangeList)
	if err != nil {
		return false, err
	}
	defer dl.Close()
	if !dl.NotModified && dl.Digest.String() != was.Digest {
		return false, nil
	}
	was.validates(dl)
	return true, nil
}
