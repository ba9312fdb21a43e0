package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
)

// TestStatusText: columns go on below notes, which name what is pending.
func TestStatusText(t *testing.T) {
	gone := destination.Problem{Location: "http://data.example/gone", State: "failed", Reason: "404"}
	var out strings.Builder
	if err := sayStatus(&out, bridge.Status{Disk: bridge.Disk{Records: 50_000_000}, Destinations: []bridge.DestinationStatus{
		{Name: "a", State: bridge.StateFailing, Status: destination.Status{Resources: 12, Pending: 2, Problems: []destination.Problem{gone}}},
		{Name: "longer", State: bridge.StatePaused, Paused: true, Status: destination.Status{InSync: true}},
	}}); err != nil {
		t.Fatal(err)
	}
	const want = `DESTINATION  STATE    RESOURCES  IN SYNC  BEHIND   LAST SYNC  NEXT    PENDING  LAST AUDIT  
a            failing  12         no       unknown  -          -       2        never       
  failed: http://data.example/gone: 404
  and 1 more (GET /api/v1/destinations/a/differences names them)
longer       paused   0          yes      unknown  -          paused  0        never       
disk: records 50.0 MB, published 0 B, temporary 0 B
last backup: none is known of
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestNextColumn: the next run is the sooner of two, and never in the past.
func TestNextColumn(t *testing.T) {
	at := func(d time.Duration) *time.Time { t := time.Now().Add(d); return &t }
	for want, next := range map[string]*time.Time{"-": nil, "now": at(-5 * time.Minute), "in 1h0m0s": sooner(at(2*time.Hour), at(time.Hour)), "in 2h0m0s": sooner(nil, at(2*time.Hour)), "in 3h0m0s": sooner(at(3*time.Hour), nil)} {
		if got := dueIn(next); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
