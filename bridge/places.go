package bridge

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// tryPlace is ownfile.Try for the place of a local store.
func (c Store) tryPlace() error {
	dir := c.folder()
	if dir == "" {
		return nil
	}
	return ownfile.Try(dir)
}

// CheckPlaces gives the refusals of a next sync, by "destination NAME": the mirror's place has data of somebody
// else. It writes nothing. Stores in unreachable are left out, and all while a daemon has the state.
func CheckPlaces(ctx context.Context, cfg *Config, unreachable map[string]string, log *slog.Logger) (_ map[string]error, err error) {
	store, end, err := reading(ctx, cfg, log)
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
		dc := cfg.destination(name, "")
		if ownfile.IsMissing(dc.Files) { // opening would make it
			dc.Files = ""
		}
		err := cfg.Stores[c.Store].reading(c.Store, log, func(to sink.Sink, absent bool) error {
			d, err := destination.Open(ctx, kv.Forget(kv.Prefix(store, prefixDest)), to, dc, destination.Options{})
			if err != nil {
				return err
			}
			return errors.Join(d.CheckPlace(ctx, absent), d.Close())
		})
		var foreign *keep.ForeignPlaceError
		if errors.As(err, &foreign) {
			out["destination "+name] = foreign
		} else if err != nil {
			log.Info("it is not known whether the place of the mirror holds data of somebody else", "destination", name, "error", err)
		}
	}
	return out, nil
}

// reading gives f the sink of a store, to be asked only, none for a missing folder of files.
func (c Store) reading(name string, log *slog.Logger, f func(to sink.Sink, absent bool) error) error {
	if c.Files != "" && ownfile.IsMissing(c.Files) {
		return nil
	}
	there := c.Embedded == ""
	ask := func(transport http.RoundTripper) error {
		to, err := c.closedSink(name, log, transport)
		if err != nil {
			return err
		}
		return errors.Join(f(to, !there), to.Close())
	}
	if !there {
		err := embedstore.Read(c.Embedded, func(s *embedstore.Store) error {
			there = true
			return ask(s.Transport())
		})
		if there || err != nil {
			return err
		}
	}
	return ask(nil)
}
