package destination

import (
	"context"
	"log/slog"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// The log tells, at level debug, what became of every change that was met: "change is
// applied", "change is superseded" (by a later change of the same resource, or by a
// list or dump that is of a later time) or "change is pending" (with the error; it is
// applied or superseded later). What a run tells counts when it also tells that
// "changes are applied" through them; what it told after that and a kill kept from
// being written is met, and told, again.

// tell tells what became of the change of an op, and of one that was pending for the
// same resource.
func (d *Destination) tell(ctx context.Context, o *op) {
	if !d.telling() {
		return
	}
	change := o.it != nil && o.it.Change != ""
	again := false
	if f, err := d.led.Fault(ctx, o.loc); err == nil && f != nil {
		if it, err := feed.DecodeItem(f.Item); err == nil && it.Change != "" {
			if again = change && it.Identity() == o.it.Identity(); !again {
				d.superseded(it, o.it)
			}
		}
	}
	if l, err := d.led.Leaving(ctx, o.loc); err == nil && l != nil && !o.settle {
		if it, err := deletionOf(l); err == nil && it != nil && !(change && it.Identity() == o.it.Identity()) {
			d.superseded(it, o.it)
		}
	}
	switch {
	case !change:
	case o.leaves != nil: // and told again when it goes, or is held
		d.tellFate("change is pending", o.it, "state", "leaving")
	case o.fault == nil:
		d.tellFate("change is applied", o.it)
	case !again:
		d.tellFate("change is pending", o.it, "state", o.fault.State, "error", o.fault.Reason)
	}
}

func (d *Destination) telling() bool {
	return d.planning == nil && d.log.Enabled(context.Background(), slog.LevelDebug)
}

// superseded tells that of a change; by is nil or of no change where a list or dump
// took its place.
func (d *Destination) superseded(it, by *feed.Item) {
	switch {
	case !d.telling():
	case by == nil || by.Change == "":
		d.tellFate("change is superseded", it, "by_list", true)
	default:
		d.tellFate("change is superseded", it, "by", by.Sequence, "by_time", by.Time)
	}
}

func (d *Destination) tellFate(fate string, it *feed.Item, more ...any) {
	d.log.Debug(fate, append([]any{"sequence", it.Sequence, "change", it.Change, "time", it.Time, "loc", it.Loc}, more...)...)
}

// tellThrough tells up to where changes are applied.
func (d *Destination) tellThrough(c *feed.Cursor) {
	if !d.telling() {
		return
	}
	d.log.Debug("changes are applied", "through", c.Number(), "until", c.Time())
}

// tellPassed tells of the changes that a comparison has passed over.
func (d *Destination) tellPassed(before, after *feed.Cursor) {
	if !d.telling() {
		return
	}
	if after.Number() > before.Number() || after.Sequence() == nil && after.Time().After(before.Time()) {
		d.log.Debug("changes are superseded by a list", "after", before.Number(), "through", after.Number(), "from", before.Time(), "until", after.Time())
	}
}
