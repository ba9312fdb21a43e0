package push

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/position"
	"github.com/rsbridge/rsbridge/push/positions"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const positionSegment = "position"

// Mirror is a mirror of a set, by its last report, and how far it is behind the log.
type Mirror struct {
	Name          string    `json:"name"`           // as the mirror calls itself
	Key           string    `json:"key"`            // of its signatures
	Sequence      uint64    `json:"sequence"`       // its position in the log
	BehindChanges *uint64   `json:"behind_changes"` // those that it does not have; null: not known
	BehindSeconds *float64  `json:"behind_seconds"` // age of the oldest of them; null: not known
	Pending       uint64    `json:"pending"`
	InSync        bool      `json:"in_sync"` // as it said, if it has everything
	LastReport    time.Time `json:"last_report"`
	FirstReport   time.Time `json:"first_report"`
}

// Mirrors are the mirrors of a set with a report in the last week, by name.
func (p *Push) Mirrors(ctx context.Context, name string, log *changetrack.View) ([]Mirror, error) {
	s := p.sets[name]
	if s == nil || !s.Positions {
		return nil, nil
	}
	list, err := p.positions.List(ctx, name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make([]Mirror, 0, len(list))
	for _, m := range list {
		x := Mirror{Name: m.Name, Key: string(m.Key), Sequence: m.Sequence, Pending: m.Pending, InSync: m.InSync, LastReport: m.Last, FirstReport: m.First}
		if x.BehindChanges, x.BehindSeconds, err = lag(ctx, log, m, p.now()); err != nil {
			return out, err
		}
		x.InSync = x.InSync && x.BehindChanges != nil && *x.BehindChanges == 0
		out = append(out, x)
	}
	return out, nil
}

// lag compares a mirror with the log. One that claims more, as of a set that
// was restored from a backup, has an unknown lag. The age is unknown if the log has dropped the
// change, and of pending resources.
func lag(ctx context.Context, v *changetrack.View, m positions.Mirror, now time.Time) (changes *uint64, seconds *float64, err error) {
	head, _ := v.Head()
	if m.Sequence > head {
		return nil, nil, nil
	}
	n, age := head-m.Sequence+m.Pending, 0.0
	if n == 0 && !m.InSync {
		return nil, nil, nil
	}
	if n == 0 {
		return &n, &age, nil
	}
	if tail, _ := v.Tail(); m.Sequence < tail || m.Pending > 0 {
		return &n, nil, nil
	}
	for c, err := range v.Changes(ctx, m.Sequence) {
		if err != nil {
			return nil, nil, err
		}
		age = max(0, now.Sub(c.Time).Seconds())
		break
	}
	return &n, &age, nil
}

// mirrors are the keys of the mirrors whose reports are taken; nil: any.
func (c *Config) mirrors() (out []position.Key) {
	for _, key := range c.Mirrors {
		out = append(out, position.Key(key))
	}
	return out
}

// RootLinks gives the links of a Capability List for the reports of mirrors; nil without any.
func (c Config) RootLinks() func(set string) []resourcesync.Link {
	if !c.Positions {
		return nil
	}
	return func(set string) []resourcesync.Link {
		return []resourcesync.Link{{Rel: resourcesync.RelPosition, Href: set + notify + positionSegment, Length: -1}}
	}
}
