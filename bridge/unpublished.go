package bridge

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// Unpublished is the data of a store, or of a dump, in graphs of no set.
type Unpublished struct {
	sparql.Remainder
	Counted   time.Time   `json:"counted"`
	Seconds   float64     `json:"seconds"`   // of counting
	Published sparql.Part `json:"published"` // the graphs of all sets of the data, when it was counted
}

// Told tells whether there is something to say of it.
func (u *Unpublished) Told() bool { return u != nil && !u.Nothing() }

// countPause is the pause after a count of more than a second, as a multiple of its time.
const countPause = 100

// countUnpublished counts the triples of a set's data in graphs of no set. old is the last
// count, given again while a new one would cost too much.
func (s *set) countUnpublished(ctx context.Context, old *Unpublished, found *sparqlsrc.Scan) *Unpublished {
	began := s.bridge.now()
	out := &Unpublished{Counted: began.UTC(), Published: s.cfg.Part().And(s.bridge.cfg.Others(s.name))}
	if s.files != nil {
		out.Remainder = found.Remainder()
	} else {
		if old != nil && old.Published.Equal(out.Published) {
			age := began.Sub(old.Counted)
			if old.Seconds > 1 && age >= 0 && age.Seconds() < countPause*old.Seconds {
				return old
			}
		}
		rest, err := s.source.Remainder(ctx)
		if err != nil {
			s.bridge.log.Info("it is not known whether the store holds more than the sets publish", "set", s.name, "error", err)
			return nil
		}
		out.Remainder, out.Seconds = rest, s.bridge.now().Sub(began).Seconds()
	}
	if out.Told() && (!old.Told() || old.Graphs != out.Graphs) {
		s.bridge.log.Warn("data is in graphs that no set publishes", "set", s.name, "unpublished", out.String())
	}
	return out
}

// unpublished is the count of the last complete scan, nil after a change of the sets.
func (s *set) unpublished(rep *ScanReport) *Unpublished {
	if rep == nil || rep.Unpublished == nil || !rep.Unpublished.Published.Equal(s.cfg.Part().And(s.bridge.cfg.Others(s.name))) {
		return nil
	}
	return rep.Unpublished
}

// FindUnpublished counts the triples in graphs of no set, by store, without opening the
// state. It leaves out unreachable stores, such as an embedded store of a running daemon.
func FindUnpublished(ctx context.Context, cfg *Config, log *slog.Logger) map[string]sparql.Remainder {
	out, seen := map[string]sparql.Remainder{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sets)) {
		s := cfg.Sets[name]
		if s.Store == "" || seen[cfg.DataOf(s)] {
			continue
		}
		seen[cfg.DataOf(s)] = true
		rest, err := findUnpublished(ctx, cfg, name, log)
		if err != nil {
			log.Info("it is not known whether the store holds more than the sets publish", "store", s.Store, "error", err)
		} else if !rest.Nothing() {
			out[s.Store] = rest
		}
	}
	return out
}

func findUnpublished(ctx context.Context, c *Config, name string, log *slog.Logger) (rest sparql.Remainder, err error) {
	s := c.Sets[name]
	at := c.Stores[s.Store]
	if at.Embedded != "" {
		published := s.Part().And(c.Others(name))
		err = embedstore.Graphs(at.Embedded, func(graph string, triples int64) error {
			if !published.Has(rdfres.Term(graph)) {
				rest.Add(rdfres.Term(graph), triples)
			}
			return nil
		})
		return rest, err
	}
	sc := c.SourceConfig(name)
	sc.Others, sc.Logger = c.Others(name), log
	err = askStore(at, s.Store, log, func(client *sparql.Client) error {
		source, err := sparqlsrc.New(client, sc)
		if err == nil {
			rest, err = source.Remainder(ctx)
		}
		return err
	})
	return rest, err
}
