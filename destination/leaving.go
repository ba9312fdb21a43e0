package destination

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/apply"
	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/pairs"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// A resource deleted by the source, or no longer listed, is leaving: the records say so, the mirror
// keeps it. At the end of the run all leaving resources are weighed together: many small Change Lists
// must not delete more than one may. Then they go, or are held until a person accepts them. Other
// changes do not wait for that.
//
// A resource with an empty new description is leaving too: its record stays, and its triples in the
// mirror would go.
//
// A resource back at the source stays. An accepted deletion goes, with any others beside it.

// ErrNotHeld comes from a sync with an unknown id to accept.
var ErrNotHeld = errors.New("nothing of that id is held")

// alwaysAllowed is how many deletions are never too many, unless they are all.
const alwaysAllowed = 10

// stay keeps listed leaving resources, unless the entry is of their next state.
func (lv *leavings) stay(ctx context.Context, v *feed.Inventory, snap kv.Reader) error {
	if lv.Ledger.NoneLeaving() {
		return nil
	}
	b := lv.Store.Batch()
	defer b.Close()
	for p, err := range pairs.Of(ctx, lv.Ledger, v, snap) {
		if err != nil {
			return err
		}
		if !p.There() {
			continue
		}
		if l, err := lv.Ledger.Leaving(ctx, p.Loc); err != nil {
			return err
		} else if l == nil {
			continue
		} else if next, err := apply.Becoming(l); err != nil {
			return err
		} else if next != nil {
			is, _ := p.Item.Differs(p.Record)
			if then, _ := p.Item.Differs(next); is != item.ProvenSame && (is != item.SeemsSame || then == item.SeemsSame) {
				continue
			}
		}
		lv.Ledger.Stay(b, p.Loc)
	}
	return b.Commit(ctx, true)
}

// weight is the number of leaving resources, and of all.
type weight struct {
	leaving, empty int64  // not accepted; of them, those missing from an empty list
	unread         int64  // of them, the living ones missing from a list with a possible further list
	entry          string // one of those
	emptied        int64  // of them, those staying without a description
	accepted       int64
	of             int64
	implied        bool // some are leaving only because a list lacks them
	id             string
	unreadID       string // of the unread alone
}

// weigh adds up the leaving resources. Those outside of the selection do not count.
func (lv *leavings) weigh(ctx context.Context, r kv.Reader) (weight, error) {
	return lv.weighed(ctx, r, false)
}

// weighed is weigh, with the accepted ones among the others or apart.
func (lv *leavings) weighed(ctx context.Context, r kv.Reader, accepted bool) (w weight, err error) {
	h, unread := sha256.New(), sha256.New()
	for loc, l := range ledger.LeavingRecords(ctx, lv.Ledger, r) {
		switch rec := l.Record; {
		case l.Err != nil:
			return w, l.Err
		case rec == nil || rec.Unselected() > 0:
		case l.Accepted && !accepted:
			w.accepted++
		default:
			w.leaving++
			w.implied = w.implied || l.Implied
			h.Write(loc[:])
			if l.Becomes != nil {
				w.emptied++
				h.Write([]byte("empty"))
			}
			if l.Empty {
				w.empty++
			}
			if l.Unread {
				w.unread++
				unread.Write(loc[:])
				w.entry = cmp.Or(w.entry, l.By)
			}
		}
	}
	for _, f := range lv.Ledger.Faults(ctx) {
		if w.unread == 0 || w.entry != "" {
			break
		}
		if f.Err != nil {
			return w, f.Err
		}
		if f.Unread {
			w.entry = f.Loc
		}
	}
	m := lv.SnapshotMeta()
	w.of, w.id, w.unreadID = m.Selected(), hex.EncodeToString(h.Sum(nil)[:6]), hex.EncodeToString(unread.Sum(nil)[:6])
	return w, nil
}

// hold is the reason to wait for a person.
type hold struct {
	why    string
	unread bool // only the unread ones wait
}

// keeps tells whether a leaving resource waits.
func (h hold) keeps(l *ledger.Leaving) bool {
	return h.why != "" && !l.Accepted && (l.Unread || !h.unread)
}

// tooMuch is the hold of the leaving resources.
func (lv *leavings) tooMuch(w weight) (h hold) {
	if w.unread > 0 {
		h = hold{fmt.Sprintf("the new entry %s may lead to a further list: %s kept without an entry, and without a 404 or 410 from the source", clip.Middle(w.entry), resourcesAre(w.unread)), true}
		w.leaving -= w.unread
	}
	if why := lv.tooMany(w); why != "" {
		if h.unread = false; h.why != "" {
			why = h.why + "; and " + why
		}
		h.why = why
	}
	if h.why != "" {
		h.why += "; if that is right: " + lv.cfg.Settings.Of("rsbridge accept "+lv.cfg.Name+" --destination")
	}
	return h
}

// tooMany is why so many may not go, "" if they may.
func (lv *leavings) tooMany(w weight) string {
	ratio := lv.cfg.MaxDeleteRatio
	allowed := max(int64(ratio*float64(w.of)), alwaysAllowed)
	what := "go"
	switch w.emptied {
	case 0:
	case w.leaving:
		what = "become empty"
	default:
		what = "go or become empty"
	}
	switch {
	case w.leaving == 0:
		return ""
	case w.empty > 0:
		return fmt.Sprintf("the Resource List is empty: %s kept; an empty list deletes nothing", resourcesAre(w.empty))
	case ratio >= 1:
		return ""
	case w.leaving >= w.of-w.accepted && w.leaving == 1:
		return fmt.Sprintf("the last resource would %s: it is kept", what)
	case w.leaving >= w.of-w.accepted:
		return fmt.Sprintf("all %d resources would %s: they are kept", w.leaving, what)
	case w.leaving > allowed:
		return fmt.Sprintf("%d of %d resources would %s, more than the %d that are allowed (%s: %g): they are kept", w.leaving, w.of, what, allowed, lv.cfg.Settings.Of("max_delete_ratio"), max(ratio, 0))
	}
	return ""
}

// resourcesAre begins a sentence about so many.
func resourcesAre(n int64) string {
	if n == 1 {
		return "1 resource is"
	}
	return fmt.Sprintf("%d resources are", n)
}

// depart lets the leaving resources go, or holds them: departs.record notes that. free lets go everything but
// those missing from an empty list: it is for a mirror of a point in time.
func (r *run) depart(ctx context.Context, free bool) error {
	d := r.d
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	w, err := d.leavings.weigh(ctx, snap)
	if err != nil {
		return err
	}
	r.rep.Accepted = w.accepted
	hold := d.leavings.tooMuch(w)
	if hold.unread {
		w.id, w.leaving = w.unreadID, w.unread
	}
	if free && w.empty+w.unread == 0 {
		hold.why = ""
	}
	m := d.mem.SnapshotMeta()
	news := d.fates.Telling() && (m.HeldDeletions == nil || m.HeldDeletions.ID != w.id)
	before := r.c.Deleted + r.c.Updated
	b := d.applier.Batch(ctx, &r.c, false)
	defer b.Wait()
	for loc, l := range d.mem.Ledger.AllLeaving(ctx, snap, nil) {
		if l.Err != nil {
			return l.Err
		}
		it, err := apply.ChangeOf(l.Leaving)
		if err != nil {
			return err
		}
		rec, err := apply.Becoming(l.Leaving)
		switch {
		case err != nil:
		case !hold.keeps(l.Leaving):
			err = b.Add(ctx, &apply.Op{Loc: loc, Item: it, Record: rec, Raw: l.Body})
		case news && it != nil:
			d.fates.TellFate("change is pending", it, "state", "held")
		}
		if err != nil {
			return err
		}
	}
	if err := b.Settle(ctx); err != nil {
		return err
	}
	if r.c.Deleted+r.c.Updated > before {
		r.mode("incremental")
	}
	if r.departs.weighed = true; hold.why == "" {
		return nil
	}
	held := &ledger.Deletions{ID: w.id, Reason: hold.why, Deletions: w.leaving, Of: w.of, Implied: w.implied, Since: d.opt.Now().UTC()}
	if m.HeldDeletions != nil && m.HeldDeletions.ID == w.id {
		held.Since = m.HeldDeletions.Since
	}
	r.departs.held = held
	d.mem.Log.Warn("deletions are held", "id", held.ID, "reason", hold.why)
	return nil
}

// planDepart is depart for a dry run.
func (r *run) planDepart(ctx context.Context) error {
	d := r.d
	w, err := d.leavings.weigh(ctx, d.mem.Store)
	if err != nil {
		return err
	}
	w.of += r.plan.counts.Created
	goes := &r.plan.counts.Deleted
	if d.cfg.Keep == "deleted" { // resources deleted by changes stay
		goes = &r.plan.gone
	}
	if r.plan.total == nil && !r.plan.base { // else it was met again
		*goes += w.leaving
	}
	if w.leaving = *goes; r.plan.empty {
		w.empty = w.leaving
	}
	if r.plan.total != nil {
		w.unread = min(r.plan.unread, w.leaving)
	}
	hold := d.leavings.tooMuch(w)
	if hold.why == "" || !r.until.IsZero() && !r.plan.empty {
		return nil
	}
	if hold.unread {
		w.leaving = w.unread
	}
	r.rep.Held = hold.why
	r.plan.counts.Deleted -= w.leaving
	if r.plan.total != nil {
		*r.plan.total += w.leaving
	}
	return nil
}

// acceptHeld lets exactly the held resources go at the end of this run: the id is theirs.
func (lv *leavings) acceptHeld(ctx context.Context, id string) error {
	m := lv.SnapshotMeta()
	if m.HeldDeletions == nil && id == heldGap(&m) {
		return lv.SaveMeta(ctx, func(m *keep.Meta) {
			m.At.PassMissing()
			m.LostUntil = m.Back.Since
			m.LeaveGap()
		})
	}
	switch {
	case m.HeldDeletions == nil:
		return fmt.Errorf("accept %s: %w: nothing is held", id, ErrNotHeld)
	case m.HeldDeletions.ID != id:
		return fmt.Errorf("accept %s: %w: %s is held", id, ErrNotHeld, m.HeldDeletions.ID)
	}
	snap := lv.Store.Snapshot(ctx)
	defer snap.Close()
	w, err := lv.weigh(ctx, snap)
	if err != nil {
		return err
	}
	if id != w.id && id != w.unreadID && w.accepted > 0 { // by a run that was cut off before they went
		if w, err = lv.weighed(ctx, snap, true); err != nil {
			return err
		}
	}
	if id != w.id && id != w.unreadID { // a run that was cut off has met others, and has not recorded that they are held
		return fmt.Errorf("accept %s: %w: what is held has changed since it was shown; the next sync tells it", id, ErrNotHeld)
	}
	b := lv.Store.Batch()
	defer b.Close()
	for loc, l := range lv.Ledger.AllLeaving(ctx, snap, nil) {
		if l.Err != nil {
			return l.Err
		}
		if id != w.id && !l.Unread {
			continue
		}
		l.Accepted = true
		lv.Ledger.PutLeaving(b, loc, l.Leaving)
	}
	return b.Commit(ctx, true)
}

// notClosed ends the message of a gap of a source without list and dump: a person may go on behind it.
func (lv *leavings) notClosed() string {
	return "; " + lv.cfg.Settings.Of("rsbridge accept "+lv.cfg.Name+" --destination") + " goes on without what is lost: the source has no inventory to close it with"
}

// heldGap is the id of a gap that only a person can close, "" for none.
func heldGap(m *keep.Meta) string {
	if !m.Back.Alone || m.Lost() == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(m.Lost()))
	return hex.EncodeToString(sum[:6])
}

// Held are deletions waiting for a person, or a gap. Items are a page of them; Next goes on, "" at the end.
type Held struct {
	ID        string     `json:"id"`
	Reason    string     `json:"reason"`
	Deletions int64      `json:"deletions"`
	Of        int64      `json:"of"`
	Time      time.Time  `json:"time"` // since when
	Items     []HeldItem `json:"items"`
	Next      string     `json:"next,omitempty"`
}

// HeldItem is one held resource. Label is of its description, if that has one. A file has the entity
// with the link to it.
type HeldItem struct {
	Entity   string `json:"entity"`
	Location string `json:"location"`
	Label    string `json:"label,omitempty"`
	File     bool   `json:"file,omitempty"`
	Empty    bool   `json:"empty,omitempty"` // it would stay, without a description
}

// Held are the held deletions, nil for none, with up to limit of the resources after a place (Held.Next;
// "" is the beginning).
func (d *Destination) Held(ctx context.Context, after string, limit int) (*Held, error) {
	m := d.mem.SnapshotMeta()
	if id := heldGap(&m); m.HeldDeletions == nil && id != "" {
		return &Held{ID: id, Reason: m.Lost(), Time: m.Back.Since, Items: []HeldItem{}}, nil
	}
	if m.HeldDeletions == nil {
		return nil, nil
	}
	out := &Held{ID: m.HeldDeletions.ID, Reason: m.HeldDeletions.Reason, Deletions: m.HeldDeletions.Deletions, Of: m.HeldDeletions.Of, Time: m.HeldDeletions.Since, Items: []HeldItem{}}
	var from *ledger.Hash
	if after != "" {
		from = new(ledger.Hash)
		if err := from.UnmarshalText([]byte(after)); err != nil {
			return nil, err
		}
	}
	snap := d.mem.Store.Snapshot(ctx)
	defer snap.Close()
	var last ledger.Hash
	for loc, l := range d.mem.Ledger.AllLeaving(ctx, snap, from) {
		if err := errors.Join(l.Err, ctx.Err()); err != nil {
			return nil, err
		}
		if l.Accepted {
			continue
		}
		rec, err := d.mem.Ledger.Record(ctx, loc)
		if err != nil {
			return nil, err
		}
		if rec == nil || rec.Unselected() > 0 {
			continue
		}
		if len(out.Items) == limit {
			text, _ := last.MarshalText()
			out.Next = string(text)
			break
		}
		out.Items = append(out.Items, HeldItem{Entity: rec.Entity, Location: rec.Loc, Label: d.leavings.labelOf(ctx, loc, rec), Empty: l.Becomes != nil})
		last = loc
	}
	return out, nil
}

// mostForLabel bounds the triples read for a label.
const mostForLabel = 1000

// labelOf is a name of an entity for people, by its kept description.
func (lv *leavings) labelOf(ctx context.Context, loc ledger.Hash, rec *ledger.Record) string {
	if rec.Triples == 0 || rec.Triples > mostForLabel {
		return ""
	}
	ts, err := lv.Ledger.Triples(ctx, loc, rec)
	if err != nil {
		return "" // only a label is lost
	}
	return rdfres.Label(rdfres.NewIRI(rec.Entity), ts)
}
