package bridge

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// CheckPlaces gives the refusals of a next sync, by "destination NAME": the mirror's place has data of somebody
// else, is gone, or cannot be asked. It writes nothing. Stores in unreachable are left out, and all while a daemon has the state.
func CheckPlaces(ctx context.Context, cfg *Config, unreachable map[string]string, log *slog.Logger) (_ map[string]error, err error) {
	store, end, err := reading(ctx, cfg, log, 0, false)
	if errors.Is(err, fs.ErrNotExist) {
		store, end = memkv.New(), func() error { return nil }
	} else if err != nil {
		return nil, nil // CheckState tells it
	}
	defer func() { err = errors.Join(err, end()) }()
	out := map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Destinations)) {
		c := cfg.Destinations[name]
		if unreachable["store "+c.Store] != "" {
			continue
		}
		err := readingSink(cfg.Stores[c.Store], c.Store, log, func(to sink.Sink, absent bool) error {
			d, err := destination.Open(ctx, kv.Forget(kv.Prefix(store, spaces.Destination)), to, cfg.Mirror(name, ""), destination.Options{})
			if err != nil {
				return err
			}
			return errors.Join(d.CheckPlace(ctx, absent), d.Close())
		})
		if err != nil && ctx.Err() == nil {
			out["destination "+name] = err
		}
	}
	return out, nil
}

// reading gives f the sink of a store, to be asked only.
func readingSink(c Store, name string, log *slog.Logger, f func(to sink.Sink, absent bool) error) error {
	there := c.Embedded == ""
	ask := func(transport http.RoundTripper) error {
		to, err := closedSink(c, name, log, transport)
		if err != nil {
			return err
		}
		return errors.Join(f(to, !there), to.Close())
	}
	if !there {
		var asked error
		err := embedstore.Read(c.Embedded, func(s *embedstore.Store) error {
			there = true
			asked = ask(s.Transport())
			return nil
		})
		if there || err != nil {
			return cmp.Or(asked, err)
		}
	}
	return ask(nil)
}
