package jobs

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/rsbridge/rsbridge/internal/settings"
)

// parseSchedule is cron.ParseStandard, with the days on which the clocks are changed: there
// cron passes over what falls into an hour that is left out, in zones that leave out
// midnight or change by half an hour also runs of other hours and days. Periods may have
// days and weeks.
func parseSchedule(text string) (cron.Schedule, error) {
	if zone, every, ok := strings.Cut(text, "@every "); ok {
		if d, err := settings.ParseDuration(strings.TrimSpace(every)); err == nil {
			text = zone + "@every " + d.String()
		}
	}
	s, err := cron.ParseStandard(text)
	if spec, ok := s.(*cron.SpecSchedule); ok {
		z := zoned{*spec, spec.Location}
		z.spec.Location = time.Local // cron's word for that of the time it is given
		return z, err
	}
	return s, err
}

// zoned is a schedule by the clocks of a place.
type zoned struct {
	spec cron.SpecSchedule
	loc  *time.Location
}

// Next looks for the next run by a clock that is never changed, up to the moment when those
// of the place are; then by one as they are from then on. What would have been in the time
// that they leave out is run at once. In the hour that comes twice, so does what is in it.
func (z zoned) Next(t time.Time) time.Time {
	at := t.In(z.loc)
	for after := t; ; {
		_, offset := at.Zone()
		next := z.spec.Next(after.In(time.FixedZone("", offset)))
		_, change := at.ZoneBounds()
		if next.IsZero() || change.IsZero() || next.Before(change) {
			return next.In(t.Location())
		}
		at = change.In(z.loc)
		_, then := at.Zone()
		if next.Before(change.Add(time.Duration(then-offset) * time.Second)) {
			return change.In(t.Location())
		}
		after = change.Add(-time.Second)
	}
}
