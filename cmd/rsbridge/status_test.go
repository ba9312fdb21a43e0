package main

import (
	"strings"
	"testing"

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
