package bridge

import (
	"context"

	"github.com/rsbridge/rsbridge/publish/search"
)

// Names is the index of the names in a set, nil for an unknown set. It ends with the bridge.
func Names(b *Bridge, set string) *search.Index {
	if b.pub == nil {
		return nil
	}
	return b.pub.Names(set)
}

// makeNames begins the index of the names in a published set: the first question finds it.
func makeNames(ctx context.Context, s *set) {
	if _, published := s.bridge.pub.Generation(s.name); !published || s.bridge.o.dry {
		return
	}
	if err := s.bridge.pub.Names(s.name).Make(ctx); err != nil {
		s.bridge.log.Error("the index of names is not begun; the first question does it", "set", s.name, "error", err)
	}
}
