package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// simulated is what `simulate --json` prints.
type simulated struct {
	Entities int64            `json:"entities"` // filled in
	Triples  int64            `json:"triples"`
	Changes  map[string]int64 `json:"changes"` // by kind
	Seconds  float64          `json:"seconds"`
}

func (a *app) simulate() *cobra.Command {
	var entities, changes int64
	var seed uint64
	var rate float64
	var mix string
	var during time.Duration
	c := &cobra.Command{Use: "simulate DIR", Short: "Fill an embedded store with DBpedia-like data and change it at a rate", Args: cobra.ExactArgs(1),
		Long: `Fills the embedded store in DIR with entities when it is empty, then changes them.
DIR may be the address of a store that serves /query, /update and /data below it
(rsbridge store serve). What it remembers is in the graph urn:rsbridge:simulate.

--json: {"entities","triples","changes":{"create","update","delete"},"seconds"}`,
		Example: "  rsbridge simulate ./origin --entities 100000 --rate 50 --for 10m",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m, err := simulate.ParseMix(mix)
			if err != nil {
				return usage("%w", err)
			}
			e := sparql.Endpoint{Name: "simulated", Logger: a.log}
			base := strings.TrimRight(args[0], "/")
			if !strings.Contains(base, "://") {
				s, err := embedstore.Open(args[0], embedstore.Options{Logger: a.log})
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, s.Close()) }()
				base, e.Transport = "http://embedded.invalid", s.Transport()
			}
			e.Query, e.Update, e.GraphStore = base+"/query", base+"/update", base+"/data"
			client, err := sparql.New(e)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, client.Close()) }()
			sim := &simulation{client: client, world: simulate.World{Seed: seed}, did: simulated{Changes: map[string]int64{}}}
			began := time.Now()
			ctx := cmd.Context()
			if during > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, during)
				defer cancel()
			}
			err = sim.run(ctx, entities, changes, rate, m)
			if ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
				err = nil // the time is over, or somebody had enough
			}
			sim.did.Seconds = time.Since(began).Seconds()
			if a.json {
				return errors.Join(err, a.print(sim.did))
			}
			fmt.Fprintf(a.out, "%d entities (%d triples) made, %d changes, in %.1f s\n", sim.did.Entities, sim.did.Triples,
				sim.did.Changes["create"]+sim.did.Changes["update"]+sim.did.Changes["delete"], sim.did.Seconds)
			return err
		}}
	f := c.Flags()
	f.Int64Var(&entities, "entities", 1000, "entities to make when the store is empty")
	f.Int64Var(&changes, "changes", 0, "make this many changes and end")
	f.Float64Var(&rate, "rate", 0, "changes a second, until --for or an interrupt; 0 with --changes: as fast as it goes")
	f.StringVar(&mix, "mix", "1,8,1", "weights of create, update, delete")
	f.Uint64Var(&seed, "seed", 1, "the same seed gives the same data")
	f.DurationVar(&during, "for", 0, "end after this time")
	return c
}

type simulation struct {
	client *sparql.Client
	world  simulate.World
	did    simulated
}

const (
	simGraph   = "urn:rsbridge:simulate"
	simMade    = "urn:rsbridge:simulate#made"
	simVersion = "urn:rsbridge:simulate#version"
)

func (s *simulation) run(ctx context.Context, entities, changes int64, rate float64, m simulate.Mix) error {
	made, version, err := s.remember(ctx)
	if err != nil {
		return err
	}
	if made == 0 {
		if err := s.fill(ctx, entities); err != nil {
			return err
		}
		made = entities
	}
	if changes == 0 && rate == 0 {
		return nil
	}
	return s.change(ctx, made, version, changes, rate, m)
}

// remember reads how many entities were made, and the last version.
func (s *simulation) remember(ctx context.Context) (made, version int64, err error) {
	sols, err := s.client.Select(ctx, fmt.Sprintf("SELECT ?p ?o WHERE { GRAPH <%s> { <%s> ?p ?o } }", simGraph, simGraph))
	if err != nil {
		return 0, 0, err
	}
	for row, err := range sols.Rows {
		if err != nil {
			return 0, 0, err
		}
		lex, _, _ := row[1].Literal()
		n, err := strconv.ParseInt(lex, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("what the simulation remembers in %s: %w", simGraph, err)
		}
		switch row[0].IRI() {
		case simMade:
			made = n
		case simVersion:
			version = n
		}
	}
	return made, version, nil
}

func note(made, version int64) string {
	return fmt.Sprintf("DELETE WHERE { GRAPH <%[1]s> { <%[1]s> ?p ?o } } ;\nINSERT DATA { GRAPH <%[1]s> { <%[1]s> <%[2]s> %[3]d ; <%[4]s> %[5]d } }",
		simGraph, simMade, made, simVersion, version)
}

// fill makes the entities with one request.
func (s *simulation) fill(ctx context.Context, n int64) error {
	body := func() (io.ReadCloser, error) {
		s.did.Triples = 0
		pr, pw := io.Pipe()
		go func() { // ends with the reader
			for lines := range s.world.Lines(0, n, n) {
				s.did.Triples += int64(strings.Count(string(lines), "\n"))
				if _, err := pw.Write(lines); err != nil {
					return
				}
			}
			pw.Close()
		}()
		return pr, nil
	}
	if err := s.client.PostGraph(ctx, "", rdfres.NTriples, body); err != nil {
		return err
	}
	s.did.Entities = n
	return s.client.Update(ctx, note(n, 0))
}

// change applies steps, a batch a request, at the given rate.
func (s *simulation) change(ctx context.Context, made, version, most int64, rate float64, m simulate.Mix) error {
	batch := 100
	var tick *time.Ticker
	if rate > 0 {
		batch = max(1, int(rate/4))
		tick = time.NewTicker(time.Duration(float64(batch) / rate * float64(time.Second)))
		defer tick.Stop()
	}
	var ops []string
	counts := map[string]int64{}
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		ops = append(ops, note(made, version))
		if err := s.client.Update(ctx, strings.Join(ops, " ;\n")); err != nil {
			return err
		}
		for k, n := range counts {
			s.did.Changes[k] += n
		}
		clear(counts)
		ops = ops[:0]
		return nil
	}
	var n int64
	for step := range s.world.Changes(made, version, m) {
		if most > 0 && n == most {
			break
		}
		n++
		made, version = step.N, step.Version
		ops = append(ops, s.world.Update(step))
		counts[step.Kind]++
		if len(ops) < batch {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if tick != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		} else if err := ctx.Err(); err != nil {
			return err
		}
	}
	return flush()
}
