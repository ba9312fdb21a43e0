package simulate

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Scenario is the pace of a data set: so many entities, changed at a steady rate
// or many at one moment of the day.
type Scenario struct {
	Name, What string
	Entities   int64
	Rate       float64 // changes a second, when steady
	Mix        Mix

	// Burst changes come at one moment, Hour o'clock in Zone, on Days.
	Burst int
	Hour  int
	Zone  string
	Days  []time.Weekday
}

// Scenarios are the first sources that asked for ResourceSync, with their
// published figures.
var Scenarios = []Scenario{
	{Name: "arxiv", What: "2.4 million resources, 1,800 changes at 20:00 in New York, Sunday to Thursday", Entities: 2_400_000, Mix: Mix{1, 1, 0},
		Burst: 1800, Hour: 20, Zone: "America/New_York", Days: []time.Weekday{time.Sunday, time.Monday, time.Tuesday, time.Wednesday, time.Thursday}},
	{Name: "wikipedia", What: "4 million articles, 1.4 changes a second", Entities: 4_000_000, Rate: 1.4, Mix: Mix{1, 28, 1}},
	{Name: "dbpedia-live", What: "3.77 million things, 2 changes a second", Entities: 3_770_000, Rate: 2, Mix: Mix{1, 18, 1}},
	{Name: "capacity", What: "14 changes a second: a Change List of 50,000 entries an hour", Entities: 1_000_000, Rate: 14, Mix: Mix{1, 8, 1}},
}

// FindScenario gives a scenario by name.
func FindScenario(name string) (Scenario, error) {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i >= 0 {
		return Scenarios[i], nil
	}
	var names []string
	for _, s := range Scenarios {
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("scenario %q: there are %s", name, strings.Join(names, ", "))
}

// Moments yields when changes come after a time, and how many at once, endlessly:
// the bursts of a scenario, if it has any, else four times a second or as seldom
// as single changes come.
func (s Scenario) Moments(after time.Time) (iter.Seq2[time.Time, int], error) {
	if s.Burst == 0 {
		if s.Rate <= 0 {
			return nil, fmt.Errorf("scenario %q: a rate of %g changes a second", s.Name, s.Rate)
		}
		batch := max(1, int(s.Rate/4))
		return func(yield func(time.Time, int) bool) {
			for n := 1; ; n++ {
				if !yield(after.Add(time.Duration(float64(n*batch)/s.Rate*float64(time.Second))), batch) {
					return
				}
			}
		}, nil
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	return func(yield func(time.Time, int) bool) {
		y, m, d := after.In(zone).Date()
		for day := 0; ; day++ {
			at := time.Date(y, m, d+day, s.Hour, 0, 0, 0, zone)
			if at.After(after) && slices.Contains(s.Days, at.Weekday()) && !yield(at, s.Burst) {
				return
			}
		}
	}, nil
}
