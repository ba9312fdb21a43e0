package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/bridge/versions"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// Diff is the change of an entity's description between two points of the log: lines of
// canonical N-Triples, in their order. The version of a missing entity is null.
type Diff struct {
	Entity  string       `json:"entity"`
	From    *VersionLine `json:"from"`
	To      *VersionLine `json:"to"`
	Removed []string     `json:"removed"`
	Added   []string     `json:"added"`
}

// Errors of the points of a comparison.
var (
	ErrPoint  = versions.ErrPoint
	ErrBeyond = versions.ErrBeyond
)

// Diff compares the descriptions of an entity at two points of the log, each a
// sequence (digits alone: after that change) or a time; to "" is now, from "" the
// version before the one at to. Versions beyond retention are an error.
func (b *Bridge) Diff(ctx context.Context, set, entity, from, to string) (Diff, error) {
	out := Diff{Entity: entity, Removed: []string{}, Added: []string{}}
	s := b.sets[set]
	if s == nil {
		return out, fmt.Errorf("set %s: %w", set, ErrUnknown)
	}
	v := s.log.View(ctx)
	defer v.Close()
	before, after, err := versions.At(ctx, v, entity, from, to)
	if errors.Is(err, kv.ErrNotFound) {
		err = ErrUnknown
	}
	if err != nil {
		return out, fmt.Errorf("%s in set %s: %w", entity, set, err)
	}
	out.From, out.To = versionLine(before), versionLine(after)
	var lines [2][]string
	for i, ver := range []*changetrack.Version{before, after} {
		if lines[i], err = versions.Lines(ctx, v, entity, ver); err != nil {
			return out, fmt.Errorf("%s in set %s: %w", entity, set, err)
		}
	}
	out.Removed, out.Added = versions.Compare(lines[0], lines[1])
	return out, nil
}
