package named

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/embedstore"
)

// Set is one set made from a store.
type Set struct {
	Queue *Queue
	By    string       // its entities are subjects ("cbd") or graphs ("graph"); else a change of one triple may be a change of any entity
	Begin func() error // begins a look at the queue
}

// mostEntities bounds the entities told by name at once.
const mostEntities = 10_000

// told is the message to the set.
func (s Set) told(t embedstore.Touched) Told {
	list := t.Subjects
	anyGraph := t.Bindings != nil && t.Bindings.AnyGraph
	blank := t.Blank
	switch {
	case s.By == "graph" && !anyGraph:
		list, blank = slices.DeleteFunc(slices.Clone(t.Graphs), func(g string) bool { return g == "" }), false
	case s.By != "cbd" && !t.IsEmpty():
		return Told{Unknown: true}
	}
	if t.Unknown || len(list) > mostEntities || slices.ContainsFunc(list, odd) {
		return Told{Unknown: true}
	}
	list = slices.Sorted(slices.Values(list)) // a copy: other sets read the same
	return Told{Entities: slices.Compact(list), Blank: blank}
}

// odd tells of an IRI with another spelling in some stores.
func odd(iri string) bool {
	scheme, rest, _ := strings.Cut(iri, ":")
	host, path, slash := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	hierarchical := strings.HasPrefix(rest, "//")
	return strings.Contains(iri, "/.") || scheme != strings.ToLower(scheme) ||
		hierarchical && (host != strings.ToLower(host) || strings.Contains(host, ":") || !slash && path == "")
}

// Sets are all sets made from a store. Every way to find changes tells them here: entities, or that
// they are unknown.
type Sets []Set

// Holds are the kept requests of one message.
type Holds struct {
	list []hold
	log  *slog.Logger
}

type hold struct {
	set Set
	req *Held
}

// Hold keeps what may be touched soon, for all sets.
func (s Sets) Hold(ctx context.Context, t embedstore.Touched, log *slog.Logger) (*Holds, error) {
	out := &Holds{log: log}
	for _, one := range s {
		told := one.told(t)
		if len(told.Entities) == 0 && !told.Unknown && !told.Blank {
			continue
		}
		req, err := one.Queue.Hold(ctx, told)
		if errors.Is(err, ErrMany) {
			req, err = one.Queue.Hold(ctx, Told{Unknown: true})
		}
		if err != nil {
			out.Drop(ctx)
			return nil, err
		}
		out.list = append(out.list, hold{one, req})
	}
	return out, nil
}

// Drop forgets the requests: nothing came of them.
func (hs *Holds) Drop(ctx context.Context) {
	for _, h := range hs.list {
		if err := h.req.Drop(ctx); err != nil { // it is looked at, for nothing
			hs.log.Warn("an update that was not done is not forgotten", "error", err)
		}
	}
}

// Confirm makes the requests due, and begins to look. unknown: more may have changed.
func (hs *Holds) Confirm(ctx context.Context, unknown bool) {
	for _, h := range hs.list {
		h.req.Release()
		var err error
		if unknown {
			err = h.set.Queue.Keep(ctx, Told{Unknown: true})
		}
		if err = errors.Join(err, h.set.Begin()); err != nil {
			hs.log.Error("what was touched is not looked at now; the next run, or a restart, does it", "error", err)
		}
	}
}
