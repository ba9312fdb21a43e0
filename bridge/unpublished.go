package bridge

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
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

// part is the graphs of a set.
func (s Set) part() sparql.Part { return sparqlsrc.PartOf(s.Graphs, s.Describe) }

// others are the graphs of other sets of the same data.
func (c *Config) others(name string) (p sparql.Part) {
	for other, s := range c.Sets {
		if other != name && c.dataOf(s) == c.dataOf(c.Sets[name]) {
			p = p.And(s.part())
		}
	}
	return p
}

// Published is the graphs of all sets of a store, false for no set.
func (c *Config) Published(store string) (p sparql.Part, ok bool) {
	for _, s := range c.Sets {
		if s.Store != "" && c.dataOf(s) == c.dataOf(Set{Store: store}) {
			p, ok = p.And(s.part()), true
		}
	}
	return p, ok
}

// dataOf names the data of a set, by the same text for each set of it.
func (c *Config) dataOf(s Set) string {
	if s.Store == "" {
		return "dumps " + strings.Join(slices.Sorted(slices.Values(s.Dumps)), "\n")
	}
	at := c.Stores[s.Store]
	return "store " + at.Query + "\n" + at.Embedded
}

// countUnpublished counts the triples of a set's data in graphs of no set. old is the last
// count, given again while a new one would cost too much.
func (s *set) countUnpublished(ctx context.Context, old *Unpublished, found *sparqlsrc.Scan) *Unpublished {
	began := s.bridge.now()
	out := &Unpublished{Counted: began.UTC(), Published: s.cfg.part().And(s.bridge.cfg.others(s.name))}
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
	if rep == nil || rep.Unpublished == nil || !rep.Unpublished.Published.Equal(s.cfg.part().And(s.bridge.cfg.others(s.name))) {
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
		if s.Store == "" || seen[cfg.dataOf(s)] {
			continue
		}
		seen[cfg.dataOf(s)] = true
		rest, err := cfg.findUnpublished(ctx, name, log)
		if err != nil {
			log.Info("it is not known whether the store holds more than the sets publish", "store", s.Store, "error", err)
		} else if !rest.Nothing() {
			out[s.Store] = rest
		}
	}
	return out
}

func (c *Config) findUnpublished(ctx context.Context, name string, log *slog.Logger) (rest sparql.Remainder, err error) {
	s := c.Sets[name]
	at := c.Stores[s.Store]
	if at.Embedded != "" {
		published := s.part().And(c.others(name))
		err = embedstore.Graphs(at.Embedded, func(graph string, triples int64) error {
			if !published.Has(rdfres.Term(graph)) {
				rest.Add(rdfres.Term(graph), triples)
			}
			return nil
		})
		return rest, err
	}
	sc := c.sourceConfig(name)
	sc.Others, sc.Logger = c.others(name), log
	err = at.ask(s.Store, log, func(client *sparql.Client) error {
		source, err := sparqlsrc.New(client, sc)
		if err == nil {
			rest, err = source.Remainder(ctx)
		}
		return err
	})
	return rest, err
}
