package bridge

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/faces"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/push"
)

// forms are the ways beside documents that tell of the logs of the sets.
type forms struct {
	faces *faces.Faces
	push  *push.Push
}

// open opens those in the configuration.
func (f *forms) open(ctx context.Context, b *Bridge) (err error) {
	var shown []faces.SetConfig
	for _, name := range slices.Sorted(maps.Keys(b.sets)) {
		shown = append(shown, b.sets[name].facesConfig(ctx))
	}
	if f.faces, err = faces.New(shown, faces.Options{Now: b.now, Logger: b.log}); err != nil {
		return fmt.Errorf("open the faces: %w", err)
	}
	keys := filepath.Join(b.cfg.Folder(), "hub.key")
	if b.o.dry {
		keys = "" // one for nothing
	}
	f.push, err = openPush(b.cfg, b, keys)
	return err
}

// services are the faces as the publisher tells of them.
func (s *set) services() (out []publish.Service) {
	for _, x := range faces.Services(s.cfg.Faces) {
		out = append(out, publish.Service(x))
	}
	return out
}

func (s *set) facesConfig(ctx context.Context) faces.SetConfig {
	// A retention of no time keeps entries until the next run of it.
	pub := s.bridge.pub
	kept := func(d Duration) time.Duration { return max(time.Duration(d), time.Second) }
	return faces.SetConfig{
		Name: s.name, Title: s.cfg.Title, Log: s.log, Faces: s.cfg.Faces, Email: s.cfg.Contact,
		Changes: kept(s.cfg.Retention.Changes), Versions: kept(s.cfg.Retention.Versions),
		Base: func(ctx context.Context) string {
			at, _, err := pub.Addresses(s.name)
			if err != nil { // the publisher is being closed
				return s.bridge.cfg.Public.BaseURL
			}
			return at.Base
		},
		Location: func(ctx context.Context, entity string) (string, error) { return pub.Location(ctx, s.name, entity) },
		Settled:  s.settled,
	}
}

// settled is the latest moment with all its changes visible: a scan gives its changes their
// times before they become visible.
func (s *set) settled() time.Time {
	now := s.bridge.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && s.run.Started.Before(now) {
		return s.run.Started
	}
	return now
}
