package bridge

import (
	"context"

	"github.com/rsbridge/rsbridge/internal/webguard"
)

// origin gives the address at its source of what an entity of the set was mirrored
// from; nil when the set is over no mirror.
func (s *set) origin() func(ctx context.Context, entity string) string {
	names := s.bridge.cfg.ViaDestinations(s.cfg)
	if len(names) == 0 {
		return nil
	}
	return func(ctx context.Context, entity string) string {
		for _, name := range names {
			d, err := s.bridge.Destination(name)
			if err != nil {
				continue // it is told elsewhere
			}
			loc, err := d.Origin(ctx, entity)
			if err != nil && ctx.Err() == nil {
				s.bridge.log.Warn("where a description was mirrored from cannot be read", "set", s.name, "destination", name, "error", err)
			}
			if loc, _ = webguard.WithoutUser(loc); loc != "" {
				return webguard.WithoutHidden(loc)
			}
		}
		return ""
	}
}
