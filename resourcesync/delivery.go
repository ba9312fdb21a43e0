package resourcesync

import (
	"fmt"
	"time"
)

// CheckSuccession checks that a change notification follows the one before it
// without gap or overlap: rule 119.
func CheckSuccession(before, now *Head) []Finding {
	until, from := before.Meta.Until, now.Meta.From
	if until.IsZero() || from.IsZero() || until.Equal(from) {
		return nil
	}
	what := "a gap: changes between them were lost"
	if from.Before(until) {
		what = "an overlap"
	}
	return []Finding{{Rule: 119, Severity: SeverityError, Message: fmt.Sprintf(
		"the notification begins at %s, the one before ended at %s: %s", FormatTime(from), FormatTime(until), what)}}
}

// CheckDelivery checks the HTTP headers of a notification as it is sent: rule
// 122. links are the values of its Link headers.
func CheckDelivery(contentType string, links []string) []Finding {
	var out []Finding
	add := func(format string, args ...any) {
		out = append(out, Finding{Rule: 122, Severity: SeverityError, Message: fmt.Sprintf(format, args...)})
	}
	if NormalizeType(contentType) != "application/xml" {
		add("Content-Type %q, want application/xml", clip(contentType))
	}
	for _, rel := range []string{RelSelf, RelHub} {
		if len(HeaderLinks(links, rel)) == 0 {
			add("no Link header with rel=%q", rel)
		}
	}
	return out
}

// CheckLease checks the time that a subscription was granted for: rule 124.
func CheckLease(d time.Duration) []Finding {
	if s := d.Seconds(); s < 300 || s > 2678400 {
		return []Finding{{Rule: 124, Severity: SeverityWarning, Message: fmt.Sprintf("the lease is %.0f seconds, want 300 to 2678400", s)}}
	}
	return nil
}
