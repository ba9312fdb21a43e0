package destination

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// The log tells, at level debug, the fate of every change: "change is applied", "change is
// superseded" (by a later change of the same resource, or by a later list or dump) or "change
// is pending" (with the error; it is applied or superseded later). The line "changes are
// applied" makes the lines before it final. After a kill, the changes behind it are met, and
// told, again.

// tell tells the fate of the change of an op, and of a pending one for the same resource.
func (ap *applier) tell(ctx context.Context, o *op) {
	if !ap.fates.Telling() {
		return
	}
	change := o.it != nil && o.it.Change != ""
	again := false
	if f, err := ap.Ledger.Fault(ctx, o.loc); err == nil && f != nil {
		if it, err := feed.DecodeItem(f.Item); err == nil && it.Change != "" {
			if again = change && it.Identity() == o.it.Identity(); !again {
				ap.fates.Superseded(it, o.it)
			}
		}
	}
	if l, err := ap.Ledger.Leaving(ctx, o.loc); err == nil && l != nil && !o.settle {
		if it, err := deletionOf(l); err == nil && it != nil && !(change && it.Identity() == o.it.Identity()) {
			ap.fates.Superseded(it, o.it)
		}
	}
	switch {
	case !change:
	case o.leaves != nil: // and told again when it goes, or is held
		ap.fates.TellFate("change is pending", o.it, "state", "leaving")
	case o.fault == nil:
		ap.fates.TellFate("change is applied", o.it)
	case !again:
		ap.fates.TellFate("change is pending", o.it, "state", o.fault.State, "error", o.fault.Reason)
	}
}
