package sparqlsrc

import (
	"context"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// scope is the triples that a source is about, as patterns for queries. Each
// row of a pattern is one triple in one graph, so that COUNT(*) of a pattern
// and the rows of its SELECT are on the same terms; a triple that stands in two
// graphs counts twice in both.
type scope struct {
	kind   scopeKind
	graph  string   // of one
	union  bool     // the default graph shows all graphs
	graphs []string // of several, escaped
	every  bool     // these are all that the store has
	from   []string // what a CONSTRUCT of the user's is asked over, escaped; nil: as it stands
	keeps  *bool    // the store keeps graphs of our own, once it was asked
	next   int
}

type scopeKind int

const (
	defaultGraph  scopeKind = iota // the default graph, as the store shows it
	unionButOwn                    // a default graph that shows all graphs, also our own: without them
	oneGraph                       // one named graph
	severalGraphs                  // several named graphs
	allGraphs                      // the default graph and all named graphs but our own
)

// single tells whether the scope is one graph, which the Graph Store Protocol
// and CONSTRUCT can give without dropping what counts twice.
func (sc *scope) single() bool { return sc.kind == defaultGraph || sc.kind == oneGraph }

// scope finds the patterns for what is configured and the store's habits.
func (s *Source) scope(ctx context.Context, caps sparql.Capabilities) (*scope, error) {
	g := s.cfg.Graphs
	switch {
	case len(g) == 1 && g[0] != "*":
		return &scope{kind: oneGraph, graph: g[0]}, nil
	case len(g) > 1:
		sc := &scope{kind: severalGraphs}
		for _, graph := range g {
			iri, err := sparql.EscapeIRI(graph)
			if err != nil {
				return nil, err
			}
			sc.graphs = append(sc.graphs, iri)
		}
		sc.from = sc.graphs
		return sc, nil
	}
	union, err := s.showsUnion(ctx, caps)
	if err != nil {
		return nil, err
	}
	switch {
	case union != separate:
		own, err := s.client.Ask(ctx, "ASK { "+ownPattern+"}")
		if err != nil {
			return nil, err
		}
		if own || union == unknown { // this pattern is right for both
			sc := &scope{kind: unionButOwn}
			if s.construct != nil {
				sc.from, err = s.butOwn(ctx)
			}
			return sc, err
		}
		return &scope{kind: defaultGraph, union: true}, nil
	case len(g) == 1 && s.construct != nil:
		graphs, err := s.namedGraphs(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe by a CONSTRUCT over all graphs: %w", err)
		}
		if len(graphs) > 0 {
			return &scope{kind: severalGraphs, graphs: graphs, from: graphs, every: true}, nil
		}
		return &scope{kind: defaultGraph}, nil
	case len(g) == 1:
		return &scope{kind: allGraphs}, nil
	}
	return &scope{kind: defaultGraph}, nil
}

// What the default graph shows.
type shows int

const (
	separate shows = iota // a graph of its own
	all                   // what the named graphs hold too
	unknown               // all as it seems, and the store cannot say for sure
)

// showsUnion is asked anew each time: a store without named graphs does not show its
// habit before the bridge itself writes the first. Of a set over all graphs a sample is
// not enough, where the default graph and one of the others may be copies: what the
// others have alone would not be read.
func (s *Source) showsUnion(ctx context.Context, caps sparql.Capabilities) (shows, error) {
	union, err := s.client.ShowsUnion(ctx, caps.Product)
	if err != nil {
		return separate, fmt.Errorf("look whether the default graph shows named graphs: %w", err)
	}
	_, known := sparql.KnownUnion(caps.Product)
	switch {
	case !union:
		return separate, nil
	case known || len(s.cfg.Graphs) == 0 || s.cfg.Graphs[0] != "*":
		return all, nil
	}
	alone, err := s.client.Ask(ctx, "ASK { GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { ?s ?p ?o } }")
	switch {
	case ctx.Err() != nil:
		return separate, context.Cause(ctx)
	case err != nil:
		s.log.Warn("the store does not say whether its default graph shows all that the named graphs hold", "error", err.Error())
		return unknown, nil
	case alone:
		return separate, nil
	}
	return all, nil
}

// ownPattern is the triples that every scan over all graphs leaves out: the
// bookkeeping of rsbridge itself.
var ownPattern = "GRAPH ?g { ?s ?p ?o } FILTER" + sparql.OwnGraph("?g") + " "

// countOwn counts what the scope leaves out for it.
func (s *Source) countOwn(ctx context.Context, sc *scope) (int64, error) {
	if sc.kind != unionButOwn && sc.kind != allGraphs && !sc.every {
		return 0, nil
	}
	n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+ownPattern+"}")
	if err != nil {
		return 0, fmt.Errorf("count the triples of rsbridge's own graphs: %w", err)
	}
	if n > 0 {
		s.log.Info("graphs of rsbridge itself are left out", "triples", n)
	}
	return n, nil
}

// triple is the pattern of one triple; s, p and o are variables or escaped terms.
func (sc *scope) triple(s, p, o string) string {
	t := s + " " + p + " " + o
	switch sc.kind {
	case oneGraph:
		return "GRAPH <" + sc.graph + "> { " + t + " } "
	case severalGraphs:
		sc.next++
		g := fmt.Sprintf("?g%d", sc.next)
		return "VALUES " + g + " { " + strings.Join(sc.graphs, " ") + " } GRAPH " + g + " { " + t + " } "
	case unionButOwn, allGraphs:
		sc.next += 2
		g, h := fmt.Sprintf("?g%d", sc.next-1), fmt.Sprintf("?g%d", sc.next)
		named := "{ GRAPH " + g + " { " + t + " } FILTER(!" + sparql.OwnGraph(g) + ") }"
		if sc.kind == allGraphs {
			return "{ { " + t + " } UNION " + named + " } "
		}
		return "{ { " + t + " FILTER NOT EXISTS { GRAPH " + h + " { " + t + " } } } UNION " + named + " } "
	}
	return t + " . "
}

// all is the pattern of every triple.
func (sc *scope) all() string { return sc.triple("?s", "?p", "?o") }
