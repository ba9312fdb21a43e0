package storelog

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// Modified is the feed of a store with times of modification, asked for again and again. Its place
// is the time of the last look. It tells of no deletions: it is a hint.
type Modified struct {
	Source     *sparqlsrc.Source
	Properties []string
	Every      time.Duration
	Overlap    time.Duration // looked at again: clocks differ, and changes may arrive late
	Now        func() time.Time

	told map[[2]string]bool // entities with their times, as the last look found them
}

// mostModified bounds the answer to one look; more is unknown.
const mostModified = 10_000

// keepTime is how far the place may lie behind a look that found nothing new.
const keepTime = time.Minute

// Since looks for times since a place.
func (m *Modified) Since(ctx context.Context, place string) (t embedstore.Touched, end string, err error) {
	now := m.Now().UTC()
	end = now.Format(time.RFC3339Nano)
	last, err := time.Parse(time.RFC3339Nano, place)
	if err != nil || last.After(now) { // the clock was set back
		return embedstore.Touched{Unknown: true}, end, nil
	}
	found, more, err := m.Source.LatestSince(ctx, m.Properties, last.Add(-m.Overlap), mostModified)
	if err != nil || more {
		return embedstore.Touched{Unknown: more}, end, err
	}
	for one := range found {
		if !m.told[one] {
			t.Subjects = append(t.Subjects, one[0])
		}
	}
	if t.IsEmpty() && now.Sub(last) < keepTime {
		return t, place, nil
	}
	m.told = found
	return t, end, nil
}

// Wait waits for the time of the next look.
func (m *Modified) Wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(m.Every):
		return true
	}
}
