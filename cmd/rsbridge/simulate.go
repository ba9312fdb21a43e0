package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// simulated is the JSON of simulate.
type simulated struct {
	Entities int64            `json:"entities"` // filled in
	Triples  int64            `json:"triples"`
	Changes  map[string]int64 `json:"changes"` // by kind
	Seconds  float64          `json:"seconds"`
}

func (a *app) simulate() *cobra.Command {
	var entities, changes int64
	var seed uint64
	var rate, speed float64
	var mix, scenario string
	var during time.Duration
	c := &cobra.Command{Use: "simulate DIR", Short: "Fill an embedded store with DBpedia-like data and change it at a rate", Args: cobra.ExactArgs(1),
		Long: `Fills an empty embedded store in DIR with entities, then changes them. DIR may also
be the address of a store with /query, /update and /data below it (rsbridge store
serve). The simulation's own memory is the graph urn:rsbridge:simulate.

--scenario takes size, pace and mix from a real source:
` + scenarios() + `--speed 1000 lets its time pass a thousand times faster.

--json: {"entities","triples","changes":{"create","update","delete"},"seconds"}`,
		Example: "  rsbridge simulate ./origin --entities 100000 --rate 50 --for 10m",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			pace := simulate.Scenario{Name: "rate", Entities: entities, Rate: rate}
			if pace.Mix, err = simulate.ParseMix(mix); err != nil {
				return usage("%w", err)
			}
			if scenario != "" {
				given := cmd.Flags().Changed
				if pace, err = simulate.FindScenario(scenario); err != nil || given("rate") || given("mix") {
					return usage("%w", cmp.Or(err, errors.New("--scenario brings its own rate and mix")))
				}
				if given("entities") {
					pace.Entities = entities
				}
			}
			if !(speed > 0) || math.IsInf(speed, 0) {
				return usage("--speed %g: must be above 0", speed)
			}
			for name, n := range map[string]float64{"entities": float64(entities), "changes": float64(changes), "rate": rate, "for": during.Seconds()} {
				if !(n >= 0) || math.IsInf(n, 0) {
					return usage("--%s %v: must be 0 or more", name, cmd.Flags().Lookup(name).Value)
				}
			}
			e := sparql.Endpoint{Name: "simulated", Timeout: time.Hour, Logger: a.log} // one upload fills it, however large
			base := strings.TrimRight(args[0], "/")
			if !strings.Contains(base, "://") {
				if err := folder(args[0]); err != nil {
					return err
				}
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
			err = sim.run(ctx, pace, changes, speed)
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
	f.StringVar(&scenario, "scenario", "", "a pace by name, until --for, --changes or an interrupt")
	f.Float64Var(&speed, "speed", 1, "how many times faster the time of the scenario passes")
	f.StringVar(&mix, "mix", "1,8,1", "weights of create, update, delete")
	f.Uint64Var(&seed, "seed", 1, "the same seed gives the same data")
	f.Var(duration{&during}, "for", "end after this time")
	return c
}

// scenarios lists them for the help.
func scenarios() string {
	var b strings.Builder
	for _, s := range simulate.Scenarios {
		fmt.Fprintf(&b, "  %-13s %s\n", s.Name, s.What)
	}
	return b.String()
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

func (s *simulation) run(ctx context.Context, pace simulate.Scenario, changes int64, speed float64) error {
	made, version, err := s.remember(ctx)
	if err != nil {
		return err
	}
	if made == 0 {
		if err := s.vacant(ctx); err != nil {
			return err
		}
		if err := s.fill(ctx, pace.Entities); err != nil {
			return err
		}
		made = pace.Entities
	}
	next, stop := iter.Pull(s.world.Changes(made, version, pace.Mix))
	defer stop()
	if pace.Rate == 0 && pace.Burst == 0 { // as fast as it goes
		for ; changes > 0; changes -= batch {
			if err := s.change(ctx, next, int(min(changes, batch))); err != nil {
				return err
			}
		}
		return nil
	}
	began := time.Now()
	moments, err := pace.Moments(began)
	if err != nil {
		return err
	}
	for at, n := range moments {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(time.Duration(float64(at.Sub(began)) / speed)))):
		}
		last := changes > 0 && int64(n) >= changes
		if last {
			n = int(changes)
		}
		for ; n > 0; n -= batch {
			if err := s.change(ctx, next, min(n, batch)); err != nil {
				return err
			}
			changes -= int64(min(n, batch))
		}
		if last {
			return nil
		}
	}
	return nil
}

// vacant tells whether the place of a simulation is empty, or holds a simulation only: it
// is not mixed into other data.
func (s *simulation) vacant(ctx context.Context) error {
	sols, err := s.client.Select(ctx, fmt.Sprintf("SELECT ?s WHERE { ?s ?p ?o FILTER(isIRI(?s) && !STRSTARTS(STR(?s), %s)) } LIMIT 1", sparql.EscapeString(simulate.Resource)))
	if err != nil {
		return err
	}
	for row, err := range sols.Rows {
		if err != nil {
			return err
		}
		return usage("the default graph has other data, such as %s: simulate in a store that is empty", row[0])
	}
	return nil
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
	var triples *int64 // of the last try
	body := func() (io.ReadCloser, error) {
		made := new(int64)
		triples = made
		pr, pw := io.Pipe()
		go func() { // ends with the reader
			for lines := range s.world.Lines(0, n, n) {
				*made += int64(strings.Count(string(lines), "\n"))
				if _, err := pw.Write(lines); err != nil || ctx.Err() != nil {
					pw.CloseWithError(ctx.Err()) // a store in this process reads on otherwise
					return
				}
			}
			pw.Close()
		}()
		return pr, nil
	}
	if err := s.client.PostGraph(ctx, "", rdfres.NTriples, body); err != nil {
		return fmt.Errorf("fill the store with %d entities: nothing was made: %v", n, err) // not %w: the end of --for is no good end here
	}
	s.did.Triples = *triples
	s.did.Entities = n
	return s.client.Update(ctx, note(n, 0))
}

const batch = 100 // changes a request

// change makes the next n changes with one request.
func (s *simulation) change(ctx context.Context, next func() (simulate.Step, bool), n int) error {
	var ops []string
	counts := map[string]int64{}
	var last simulate.Step
	for range n {
		last, _ = next() // endless
		ops = append(ops, s.world.Update(last))
		counts[last.Kind]++
	}
	if err := s.client.Update(ctx, strings.Join(append(ops, note(last.N, last.Version)), " ;\n")); err != nil {
		return err
	}
	for kind, n := range counts {
		s.did.Changes[kind] += n
	}
	return nil
}
