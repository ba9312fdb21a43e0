package feed

import (
	"context"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// An open Change List has up to 50,000 entries, and with push a mirror would read them all for each change. A
// source of our kind gives the list from a change on (Offer.ChangesFrom). The change at the cursor comes first, and
// proves that the log is the followed one. Earlier entries are taken as unchanged until the whole list is read
// again, after wholeAgain at the latest.

// wholeAgain is how long a Change List is read from the cursor on alone.
const wholeAgain = time.Minute

// tail opens the open Change List from the change at a cursor on; nil if it is to be read whole.
func (src *Source) tail(ctx context.Context, o *Offer, c *Cursor) *Download {
	at, n := &c.at, c.at.Newest
	age := src.Docs.opt.Now().Sub(src.whole)
	switch {
	case o.ChangesFrom == "" || !o.Listed() || src.early != nil || age < 0 || age >= wholeAgain:
		return nil
	case n == nil || n.Sequence == 0 || at.Sequence == nil || *at.Sequence != n.Sequence || at.Said == nil || at.Said.Last != n.Sequence:
		return nil
	case at.Root.URL != o.ChangeList || at.List == "" || at.Position == 0 || at.Closed || at.Ahead != nil || len(src.keeper.Position().at.Missing.Lists) > 0:
		return nil
	}
	address := o.ChangesFrom + strconv.FormatUint(n.Sequence, 10) + ".xml"
	dl, rd, err := src.Docs.document(ctx, fetch.Request{URL: address, Attempts: 1}, resourcesync.ChangeList)
	if err != nil {
		src.Docs.log.Debug("a Change List is read whole", "list", at.List, "why", err)
		return nil
	}
	if !at.begins(rd, dl) {
		src.Docs.log.Debug("a Change List is read whole", "list", at.List, "why", "what begins at the cursor is another one")
		dl.Close()
		return nil
	}
	dl.tail, dl.URL = true, at.List
	return dl
}

// begins tells whether a document is the list of the cursor, from the cursor's change on.
func (c *cursor) begins(rd *resourcesync.Reader, dl *Download) bool {
	h := rd.Head()
	stands, numbered := h.Meta.Sequence()
	if h.Index || len(dl.pages) > 0 || !numbered || stands < c.Newest.Sequence || !h.Meta.Until.IsZero() || !h.Meta.From.Equal(c.Begin) {
		return false
	}
	e, err := rd.Next()
	if err != nil {
		return false
	}
	it, err := changeItem(e, rd, dl)
	return err == nil && it.Sequence == c.Newest.Sequence && c.Newest.Is(it)
}
