package resourcesync

import "time"

// ChangeFreq is the changefreq of an entry, "" without any known change.
func ChangeFreq(changes int, first, last time.Time) string {
	if changes < 2 || first.IsZero() {
		return ""
	}
	every := last.Sub(first) / time.Duration(changes-1)
	switch day := 24 * time.Hour; {
	case every < 2*time.Hour:
		return "hourly"
	case every < 3*day:
		return "daily"
	case every < 15*day:
		return "weekly"
	case every < 180*day:
		return "monthly"
	}
	return "yearly"
}
