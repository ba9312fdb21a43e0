package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge/history"
)

// TestBars: a bar tells its numbers to those who point at it. A span without any has none.
func TestBars(t *testing.T) {
	to := time.Date(2026, 3, 8, 9, 0, 0, 0, time.Local)
	from := to.Add(-24 * time.Hour)
	samples := []history.Sample{
		{Time: to.Add(-2 * time.Hour), Span: 5 * time.Minute, Counts: history.Counts{Created: 10, Deleted: 1, Runs: 2, Longest: 3}},
		{Time: to.Add(-2*time.Hour + 5*time.Minute), Span: 5 * time.Minute, Counts: history.Counts{Created: 2, Runs: 1, Failed: 1, Longest: 4}},
		{Time: to.Add(-time.Hour), Span: 5 * time.Minute},
	}
	for name, tt := range map[string]struct {
		graph Graph
		want  string
	}{
		"changes": {changesGraph(samples, from, to), "<title>Mar 8 07:00: +12 created, −1 deleted</title>"},
		"runs":    {runsGraph(samples, from, to), "<title>Mar 8 07:00: 3 runs, 1 failed, at most 4 s</title>"},
	} {
		if picture := string(tt.graph.Picture); !strings.Contains(picture, tt.want) || strings.Count(picture, "<g>") != 1 || strings.Count(picture, "</g>") != 1 {
			t.Errorf("%s: %s", name, picture)
		}
	}
}
