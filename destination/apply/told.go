package apply

import (
	"context"

	"github.com/rsbridge/rsbridge/destination/item"
)

// The log tells, at level debug, the fate of every change: "change is applied", "change is
// superseded" (by a later change of the same resource, or by a later list or dump) or "change
// is pending" (with the error; it is applied or superseded later). The line "changes are
// applied" makes the lines before it final. After a kill, the changes behind it are met, and
// told, again.

// tell tells the fate of the change of an op, and of a pending one for the same resource.
func (ap *Applier) tell(ctx context.Context, o *Op) {
	if !ap.Fates.Telling() {
		return
	}
	change := o.Item != nil && o.Item.Change != ""
	again := false
	if f, err := ap.Ledger.Fault(ctx, o.Loc); err == nil && f != nil {
		if it, err := item.Decode(f.Item); err == nil && it.Change != "" {
			if again = change && it.Identity() == o.Item.Identity(); !again {
				ap.Fates.Superseded(it, o.Item)
			}
		}
	}
	if l, err := ap.Ledger.Leaving(ctx, o.Loc); err == nil && l != nil && !o.Settle {
		if it, err := deletionOf(l); err == nil && it != nil && !(change && it.Identity() == o.Item.Identity()) {
			ap.Fates.Superseded(it, o.Item)
		}
	}
	switch {
	case !change:
	case o.leaves != nil: // and told again when it goes, or is held
		ap.Fates.TellFate("change is pending", o.Item, "state", "leaving")
	case o.fault == nil:
		ap.Fates.TellFate("change is applied", o.Item)
	case !again:
		ap.Fates.TellFate("change is pending", o.Item, "state", o.fault.State, "error", o.fault.Reason)
	}
}
