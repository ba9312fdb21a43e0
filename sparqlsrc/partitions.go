package sparqlsrc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Strategies are the ways of a full scan. In one answer: "whole", by the way that
// the probe found fastest, or the way that is named. In parts, each confirmed by a
// count of its own and, where it is cut or refused, narrowed and asked for again by
// itself: "predicates", "hash" of the entity IRI, "graphs" one by one, "batches" of entities.
var Strategies = append(oneAnswer, "predicates", "hash", "graphs", "batches")

var oneAnswer = []string{"whole", string(sparql.ReadGraphStore), string(sparql.ReadConstruct), string(sparql.ReadSelectTSV), string(sparql.ReadSelectJSON), string(sparql.ReadSelectXML), string(sparql.ReadSelectBinary)}

// CheckStrategy tells whether a strategy can be Config.Strategy beside a description
// rule.
func CheckStrategy(strategy, describe string) error {
	if strategy == "" {
		return nil
	}
	if !slices.Contains(Strategies, strategy) {
		return fmt.Errorf("strategy %q is not one of %s", strategy, strings.Join(Strategies, ", "))
	}
	switch describe {
	case "", "cbd", "scbd":
		return nil
	case "graph":
		if !slices.Contains([]string{"whole", "graphs", "batches"}, strategy) {
			return fmt.Errorf("strategy %s is not for describe: graph; there are whole, graphs, batches", strategy)
		}
		return nil
	}
	if strategy != "batches" {
		return fmt.Errorf("strategy %s is not for a CONSTRUCT, which is always asked by batches", strategy)
	}
	return nil
}

// inOneAnswer tells that nothing but one answer is wanted.
func (c *Config) inOneAnswer() bool {
	return slices.Contains(oneAnswer, c.Strategy)
}

// byPartitions reads the triples without blank nodes, one part after the other.
// again is how many of them came in vain, and once more.
func (s *Source) byPartitions(ctx context.Context, by string, caps sparql.Capabilities, sc *scope, g *grouper, read func()) (again int64, err error) {
	switch by {
	case "graphs":
		return 0, s.byGraphs(ctx, caps, sc, g, read)
	case "predicates":
		return s.byPredicates(ctx, caps, sc, g, read)
	}
	defer read()
	again, err = s.parts(caps, sc.all()+"FILTER(!isBlank(?o)) ").All(ctx, func(row sparql.Row) error {
		return g.add([]byte(row[0]), []byte(row[1]), []byte(row[2]))
	})
	if errors.Is(err, sparql.ErrTruncated) {
		err = fmt.Errorf("%w: %w", ErrShort, err)
	}
	return again, err
}

// byGraphs reads graph after graph, each as a scan of it alone would.
func (s *Source) byGraphs(ctx context.Context, caps sparql.Capabilities, sc *scope, g *grouper, read func()) error {
	add := func(_ string, t rdfres.Triple) error {
		if t.S[0] == '_' || t.O[0] == '_' {
			return nil // came with the others
		}
		return g.add([]byte(t.S), []byte(t.P), []byte(t.O))
	}
	graphs := s.cfg.Graphs
	switch sc.kind {
	case allGraphs:
		graphs = []string{""}
		err := s.eachSubject(ctx, caps, sc, "GRAPH ?s { ?x ?y ?z } ", func(graph string) error {
			if graphs = append(graphs, graph); len(graphs) > maxPartitions {
				return fmt.Errorf("there are more than %d", maxPartitions)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("list the graphs: %w", err)
		}
		slices.Sort(graphs)
		graphs = slices.DeleteFunc(slices.Compact(graphs), sparql.IsOwnGraph)
	case defaultGraph, unionButOwn:
		return errors.New("the default graph is one graph: name several, or all, under graphs")
	}
	for _, graph := range graphs {
		if err := s.readOneGraph(ctx, caps, graph, add); err != nil {
			return fmt.Errorf("graph %s: %w", cmp.Or(graph, "that is the default"), err)
		}
		read()
	}
	return nil
}
