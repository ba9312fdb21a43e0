package destination

import (
	"net/http"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// doubtLasts is after how long what a source says counts, however odd it looks.
const doubtLasts = 24 * time.Hour

// isOlder tells that a list or dump is of a time before the one that was taken. One that was made
// after the last poll is news, whatever clock it tells. The file of a list without a time has one.
func (m *readPosition) isOlder(address string, dl *download, h *resourcesync.Head) bool {
	at, was := h.SnapshotTime(), m.Inventory.At
	if at.IsZero() && was.IsZero() {
		at, was = timeOf(at, dl.Header.Get("Last-Modified")), timeOf(was, m.Inventory.Modified)
	}
	return m.Inventory.URL == address && !m.Inventory.Ahead && !at.IsZero() && at.Before(was) && at.Before(m.LastPoll)
}

// timeOf is the time of a list, or that of its file, zero for none.
func timeOf(at time.Time, modified string) time.Time {
	if at.IsZero() {
		at, _ = http.ParseTime(modified)
	}
	return at
}

// isCopy tells that an answer says of itself that it comes from a cache.
func isCopy(h http.Header) bool {
	age, err := strconv.Atoi(h.Get("Age"))
	return err == nil && age > 0
}

// pastCaches makes the rest of the run ask past caches. asked tells that it does already.
func (src *source) pastCaches(why string) (asked bool) {
	if src.fetch.PastCaches() {
		return true
	}
	src.log.Warn("the source looks older than it was; it is asked past caches", "why", why)
	return false
}

// olderThanTaken tells that a list or dump is older than the one that was taken, and is not believed yet.
func (src *source) olderThanTaken(o *offer, v *inventory, dl *download, h *resourcesync.Head) bool {
	m := src.keeper.Position()
	v.copied = isCopy(dl.Header)
	if o.followed() || !m.isOlder(v.state.URL, dl, h) {
		return false
	}
	waited := !m.Older.Since.IsZero() && src.opt.Now().Sub(m.Older.Since) >= doubtLasts
	return !waited || v.copied
}

func ofTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " of " + stamp(t)
}

// olderList is a list that waits.
type olderList struct {
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}
