package feed

import (
	"net/http"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// DoubtLasts is how long a surprising answer has no effect: an older list, another address, a record that
// differs. Caches and replicas agree again by then.
const DoubtLasts = 24 * time.Hour

// isOlder tells whether a list or dump is of a time before the taken one. A list made after the
// last poll is news, whatever clock it tells. The file of a list without a time has one.
func (m *Position) isOlder(address string, dl *Download, h *resourcesync.Head) bool {
	at, was := h.SnapshotTime(), m.at.Inventory.At
	if at.IsZero() && was.IsZero() {
		at, was = timeOf(at, dl.Header.Get("Last-Modified")), timeOf(was, m.at.Inventory.Modified)
	}
	return m.at.Inventory.URL == address && !m.at.Inventory.Ahead && !at.IsZero() && at.Before(was) && at.Before(m.at.LastPoll)
}

// timeOf is the time of a list, or of its file, zero for none.
func timeOf(at time.Time, modified string) time.Time {
	if at.IsZero() {
		at, _ = http.ParseTime(modified)
	}
	return at
}

// isCopy tells whether an answer calls itself a cache's.
func isCopy(h http.Header) bool {
	age, err := strconv.Atoi(h.Get("Age"))
	return err == nil && age > 0
}

// PastCaches makes the rest of the run ask past caches. asked tells whether it does already.
func (src *Source) PastCaches(why string) (asked bool) {
	if src.Docs.fetch.PastCaches() {
		return true
	}
	src.Docs.log.Warn("the source looks older than it was; it is asked past caches", "why", why)
	return false
}

// olderThanTaken tells whether a list or dump is older than the taken one, and not believed yet.
func (src *Source) olderThanTaken(o *Offer, v *Inventory, dl *Download, h *resourcesync.Head) bool {
	m := src.keeper.Position()
	v.Copied = isCopy(dl.Header)
	if o.Followed() || !m.isOlder(v.list.URL, dl, h) {
		return false
	}
	waited := !m.at.Older.Since.IsZero() && src.Docs.opt.Now().Sub(m.at.Older.Since) >= DoubtLasts
	return !waited || v.Copied
}

func ofTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " of " + Stamp(t)
}

// olderList is a waiting list.
type olderList struct {
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Other string    `json:"other,omitempty"` // Other is the digest of a Resource Dump that was compared with the mirror, and differs.
}
