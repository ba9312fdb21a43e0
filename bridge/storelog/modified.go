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

	// told are entities with their times, as the last look found them, and when each was first seen; the
	// zero time: all changes with that time of modification were told.
	told map[[2]string]time.Time
}

// resolution of times of modification: within it an entity may change again with the same time.
const resolution = time.Second

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
	read, told := m.Now(), map[[2]string]time.Time{}
	for one := range found {
		seen, again := m.told[one]
		if !again {
			seen = read
		}
		if !seen.IsZero() {
			t.Subjects = append(t.Subjects, one[0])
			if now.Sub(seen) >= resolution {
				seen = time.Time{}
			}
		}
		told[one] = seen
	}
	if t.IsEmpty() && now.Sub(last) < keepTime {
		return t, place, nil
	}
	m.told = told
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
