package simulate

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// New York's clocks go back on 1 November 2026: 20:00 there is another hour of UTC.
func TestBurstsFollowTheClockOfTheirZone(t *testing.T) {
	s, err := FindScenario("arxiv")
	if err != nil {
		t.Fatal(err)
	}
	moments, err := s.Moments(time.Date(2026, 10, 29, 12, 0, 0, 0, time.UTC)) // a Thursday
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"2026-10-30T00:00:00Z", "2026-11-02T01:00:00Z", "2026-11-03T01:00:00Z"}
	for at, n := range moments {
		if got := at.UTC().Format(time.RFC3339); got != want[0] || n != 1800 {
			t.Fatalf("%d changes at %s, want 1800 at %s", n, got, want[0])
		}
		if want = want[1:]; len(want) == 0 {
			break
		}
	}
}

func TestSteadyRates(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, rate := range []float64{0.1, 1.4, 2, 14, 50} {
		moments, err := Scenario{Rate: rate}.Moments(from)
		if err != nil {
			t.Fatal(err)
		}
		changes := 0
		for at, n := range moments {
			if at.Sub(from) > 1000*time.Second {
				break
			}
			changes += n
		}
		if want := int(1000 * rate); changes < want-int(rate)-1 || changes > want {
			t.Errorf("%g a second: %d in 1000 s", rate, changes)
		}
	}
	if _, err := (Scenario{Name: "none"}).Moments(from); err == nil {
		t.Error("a scenario without changes is accepted")
	}
	if _, err := FindScenario("nasa"); err == nil {
		t.Error("an unknown scenario is found")
	}
}
