package destination

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// A Resource List or Dump may be older than the one that was taken: a cache gives an old copy, or
// the source was set back. An older list is asked for again, past caches. Then
//
//   - a source with changes is believed: its list and its changes agree that it was set back;
//   - of a source without changes the list waits (doubtLasts), and nothing is changed. A later poll
//     that finds it still older takes it; sync with Full takes it at once.

// olderList is a list that waits.
type olderList struct {
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// isOlder tells that a list or dump is of a time before the one that was taken. One that was made
// after the last poll is news, whatever clock it tells. The file of a list without a time has one.
func (m *meta) isOlder(address string, dl *download, h *resourcesync.Head) bool {
	at, was := h.SnapshotTime(), m.Inventory.At
	if at.IsZero() && was.IsZero() {
		at, _ = http.ParseTime(dl.Header.Get("Last-Modified"))
		was, _ = http.ParseTime(m.Inventory.Modified)
	}
	return m.Inventory.URL == address && !at.IsZero() && at.Before(was) && at.Before(m.LastPoll)
}

// isCopy tells that an answer says of itself that it comes from a cache.
func isCopy(h http.Header) bool {
	age, err := strconv.Atoi(h.Get("Age"))
	return err == nil && age > 0
}

// pastCaches makes the rest of the run ask past caches. asked tells that it does already.
func (d *Destination) pastCaches(why string) (asked bool) {
	if d.fetch.PastCaches() {
		return true
	}
	d.log.Warn("the source looks older than it was; it is asked past caches", "why", why)
	return false
}

// olderThanTaken tells that a list or dump is older than the one that was taken, and is not believed yet.
func (d *Destination) olderThanTaken(o *offer, v *inventory, dl *download, h *resourcesync.Head) bool {
	m := d.snapshotMeta()
	if o.followed() || !m.isOlder(v.state.URL, dl, h) {
		return false
	}
	waited := !m.Older.Since.IsZero() && d.opt.Now().Sub(m.Older.Since) >= doubtLasts
	return !waited || isCopy(dl.Header)
}

// waitOlder keeps why a list or dump is not taken.
func (d *Destination) waitOlder(r *run, kind resourcesync.Capability, v *inventory) error {
	m := d.snapshotMeta()
	next := olderList{Since: m.Older.Since, Why: fmt.Sprintf("the %s%s is older than the one%s that was taken: it is an old copy, or the source was set back; it is taken when it is still there a day later, or at once by sync --full", kindName(kind), ofTime(v.state.At), ofTime(m.Inventory.At))}
	if next.Since.IsZero() {
		next.Since = d.opt.Now().UTC()
	}
	r.why("the list is older than the one before, and nothing was changed")
	return d.saveMeta(func(m *meta) { m.Older = next })
}

func ofTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " of " + stamp(t)
}
