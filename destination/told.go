package destination

import (
	"context"
	"log/slog"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// The log tells, at level debug, the fate of every change: "change is applied", "change is
// superseded" (by a later change of the same resource, or by a later list or dump) or "change
// is pending" (with the error; it is applied or superseded later). The line "changes are
// applied" makes the lines before it final. After a kill, the changes behind it are met, and
// told, again.

// tell tells the fate of the change of an op, and of a pending one for the same resource.
func (ap *applier) tell(ctx context.Context, o *op) {
	if !ap.fates.telling() {
		return
	}
	change := o.it != nil && o.it.Change != ""
	again := false
	if f, err := ap.led.Fault(ctx, o.loc); err == nil && f != nil {
		if it, err := feed.DecodeItem(f.Item); err == nil && it.Change != "" {
			if again = change && it.Identity() == o.it.Identity(); !again {
				ap.fates.superseded(it, o.it)
			}
		}
	}
	if l, err := ap.led.Leaving(ctx, o.loc); err == nil && l != nil && !o.settle {
		if it, err := deletionOf(l); err == nil && it != nil && !(change && it.Identity() == o.it.Identity()) {
			ap.fates.superseded(it, o.it)
		}
	}
	switch {
	case !change:
	case o.leaves != nil: // and told again when it goes, or is held
		ap.fates.tellFate("change is pending", o.it, "state", "leaving")
	case o.fault == nil:
		ap.fates.tellFate("change is applied", o.it)
	case !again:
		ap.fates.tellFate("change is pending", o.it, "state", o.fault.State, "error", o.fault.Reason)
	}
}

func (ft *fates) telling() bool {
	return !ft.quiet && ft.log.Enabled(context.Background(), slog.LevelDebug)
}

// superseded tells it of a change; by is nil, or of no change, if a list or dump took its
// place.
func (ft *fates) superseded(it, by *feed.Item) {
	switch {
	case !ft.telling():
	case by == nil || by.Change == "":
		ft.tellFate("change is superseded", it, "by_list", true)
	default:
		ft.tellFate("change is superseded", it, "by", by.Sequence, "by_time", by.Time)
	}
}

func (ft *fates) tellFate(fate string, it *feed.Item, more ...any) {
	ft.log.Debug(fate, append([]any{"sequence", it.Sequence, "change", it.Change, "time", it.Time, "loc", it.Loc}, more...)...)
}

// tellThrough tells the position of the applied changes.
func (ft *fates) tellThrough(c *feed.Cursor) {
	if !ft.telling() {
		return
	}
	ft.log.Debug("changes are applied", "through", c.Number(), "until", c.Time())
}

// tellPassed tells of the changes passed over by a comparison.
func (ft *fates) tellPassed(before, after *feed.Cursor) {
	if !ft.telling() {
		return
	}
	if after.Number() > before.Number() || after.Sequence() == nil && after.Time().After(before.Time()) {
		ft.log.Debug("changes are superseded by a list", "after", before.Number(), "through", after.Number(), "from", before.Time(), "until", after.Time())
	}
}
