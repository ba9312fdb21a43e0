// Package days counts the changes of a set by day and kind, for a chart. A publication counts the
// changes it reads anyway. The record has the key H.
package days

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
)

const (
	kept    = 90
	version = 1
)

var key = []byte("H")

// Day counts the changes of a UTC day.
type Day struct {
	Date                      string
	Created, Updated, Deleted int64
}

// Sum is the number of all changes.
func (d *Day) Sum() int64 { return d.Created + d.Updated + d.Deleted }

// record has the numbers of created, updated and deleted by day.
type record struct {
	Version int                 `json:"v"`
	Days    map[string][3]int64 `json:"days"`
}

func read(ctx context.Context, r kv.Reader) (rec record, err error) {
	data, err := r.Get(ctx, key)
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	if err == nil && rec.Version != version {
		err = fmt.Errorf("it has version %d, this program knows %d", rec.Version, version)
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return rec, fmt.Errorf("changes by day: %w", err)
	}
	return rec, nil
}

// Counter counts the changes of a publication. The zero value is ready.
type Counter map[string][3]int64

// Count takes up a change.
func (n *Counter) Count(c *changetrack.Change) {
	if *n == nil {
		*n = Counter{}
	}
	day := c.Time.UTC().Format(time.DateOnly)
	at := (*n)[day]
	if i := slices.Index([]changetrack.Kind{changetrack.Created, changetrack.Updated, changetrack.Deleted}, c.Kind); i >= 0 {
		at[i]++
	}
	(*n)[day] = at
}

// Write adds the numbers to those before, in a batch.
func (n Counter) Write(ctx context.Context, before kv.Reader, batch kv.Batch) error {
	if len(n) == 0 {
		return nil
	}
	rec, err := read(ctx, before)
	if err != nil {
		return err
	}
	if rec.Version = version; rec.Days == nil {
		rec.Days = map[string][3]int64{}
	}
	for day, more := range n {
		have := rec.Days[day]
		for i := range more {
			have[i] += more[i]
		}
		rec.Days[day] = have
	}
	all := slices.Sorted(maps.Keys(rec.Days))
	for _, day := range all[:max(0, len(all)-kept)] {
		delete(rec.Days, day)
	}
	data, err := json.Marshal(&rec)
	if err != nil {
		return err
	}
	batch.Set(key, data)
	return nil
}

// Last are so many days up to today, the oldest first.
func Last(ctx context.Context, r kv.Reader, today time.Time, most int) ([]Day, error) {
	rec, err := read(ctx, r)
	if err != nil {
		return nil, err
	}
	out := make([]Day, most)
	for i := range out {
		day := today.UTC().AddDate(0, 0, i+1-most).Format(time.DateOnly)
		n := rec.Days[day]
		out[i] = Day{day, n[0], n[1], n[2]}
	}
	return out, nil
}
