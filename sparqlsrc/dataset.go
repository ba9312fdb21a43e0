package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// The queries of the user are asked over the graphs of the set: a CONSTRUCT always, a
// SELECT unless it names graphs itself. FROM merges named graphs; it cannot name the
// default graph.

// maxFrom is how many graphs a query of the user's is asked over.
const maxFrom = 1000

// namedGraphs lists all named graphs but our own, escaped, for FROM. FROM cannot add a
// default graph of its own, so a nonempty one is an error.
func (s *Source) namedGraphs(ctx context.Context) ([]string, error) {
	out, err := s.listGraphs(ctx)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	outside, err := s.client.Ask(ctx, "ASK { ?s ?p ?o }")
	if err != nil {
		return nil, err
	}
	if outside {
		return nil, errOutside
	}
	return out, nil
}

// noGraph does not exist in any store: there is no FROM of nothing.
const noGraph = "<urn:rsbridge:none>"

// butOwn lists the graphs, escaped, behind a default graph of all graphs, without our own.
// It is nil if the store has none of ours, or if nothing can leave them out; the log tells
// the latter.
func (s *Source) butOwn(ctx context.Context) ([]string, error) {
	own, err := s.client.Ask(ctx, "ASK { "+ownPattern+"}")
	if err != nil || !own {
		return nil, err
	}
	out, err := s.listGraphs(ctx)
	outside := false
	if err == nil {
		outside, err = s.client.Ask(ctx, "ASK { ?s ?p ?o FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } FILTER(isIRI(?g)) } }")
	}
	if err == nil && outside {
		out = append(out, sparql.NilGraph)
		var named bool
		if named, err = s.client.Ask(ctx, "ASK FROM "+sparql.NilGraph+" { ?s ?p ?o }"); err == nil && !named {
			err = errOutside
		}
	}
	switch {
	case errors.Is(err, errOutside) || errors.Is(err, errManyGraphs):
		s.log.Warn("the queries of the set are asked over rsbridge's own graphs too", "why", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("leave rsbridge's own graphs out: %w", err)
	case len(out) == 0:
		return []string{noGraph}, nil
	}
	return out, nil
}

var (
	errManyGraphs = fmt.Errorf("the store has more than %d named graphs, more than a query can be asked over at once: name those that matter under graphs", maxFrom)
	errOutside    = errors.New("the default graph holds triples besides the named graphs, and no query can be asked over both: name the graphs under graphs (or move what is in the default graph into one with a name)")
)

// listGraphs lists all named graphs but our own, escaped.
func (s *Source) listGraphs(ctx context.Context) ([]string, error) {
	graphs, err := s.client.NamedGraphs(ctx, maxFrom+1)
	if err != nil {
		return nil, err
	}
	if len(graphs) > maxFrom {
		return nil, errManyGraphs
	}
	for i, graph := range graphs {
		if graphs[i], err = sparql.EscapeIRI(graph); err != nil {
			return nil, fmt.Errorf("list the named graphs: %w", err)
		}
	}
	return graphs, nil
}

// CheckSelect tells whether a query can be Select.Query, or asked by NamedSince: a SELECT
// of ?entity.
func CheckSelect(text string) error {
	q, err := parseQuery(text, "SELECT")
	if err != nil {
		return err
	}
	depth := 0
	for i, t := range q.tokens {
		switch {
		case t.kind == tokPunct && t.text == "(":
			depth++
		case t.kind == tokPunct && t.text == ")":
			depth--
		case t.kind == tokVar && t.text == "entity" && (depth == 0 || i > 0 && strings.EqualFold(q.tokens[i-1].text, "AS")):
			return nil
		case depth == 0 && t.kind == tokPunct && t.text == "*":
			if slices.ContainsFunc(q.tokens[i:], func(t token) bool { return t.kind == tokVar && t.text == "entity" }) {
				return nil
			}
		case depth == 0 && endsProjection(t):
			return fmt.Errorf("it does not select ?entity, the variable that names the entities")
		}
	}
	return fmt.Errorf("it does not select ?entity, the variable that names the entities")
}

func endsProjection(t token) bool {
	return t.kind == tokPunct && t.text == "{" || t.kind == tokWord && (strings.EqualFold(t.text, "WHERE") || strings.EqualFold(t.text, "FROM"))
}

// selection is a SELECT of the user's as it is asked, and the count of its rows.
type selection struct{ query, count string }

// overGraphs puts a SELECT over the graphs of the set: as the default graph of the query,
// and as the graphs of its variables. A SELECT with its own GRAPH, FROM or SERVICE is
// asked unchanged.
func (s *Source) overGraphs(ctx context.Context, text string) (selection, error) {
	q, err := parseQuery(text, "SELECT")
	if err != nil {
		return selection{}, err
	}
	count := func(from string) string {
		return q.prologue + " SELECT (COUNT(*) AS ?rsbridge_n) " + from + "WHERE { { " + text[q.form:] + "\n} }"
	}
	plain := selection{text, count("")}
	if s.byGraph || slices.ContainsFunc(q.tokens, func(t token) bool {
		return t.kind == tokWord && slices.Contains([]string{"GRAPH", "FROM", "SERVICE"}, strings.ToUpper(t.text))
	}) {
		return plain, nil
	}
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return plain, err
	}
	var graphs []string
	if every := slices.Equal(s.cfg.Graphs, []string{"*"}); every || len(s.cfg.Graphs) == 0 {
		var union shows
		union, err = s.showsUnion(ctx, caps)
		switch {
		case err != nil:
		case union != separate:
			graphs, err = s.butOwn(ctx)
		case every:
			graphs, err = s.namedGraphs(ctx)
		}
		if err != nil {
			return plain, err
		}
	} else {
		graphs, _ = escapeAll(s.cfg.Graphs) // checked by New
	}
	if len(graphs) == 0 {
		return plain, nil
	}
	depth := 0
	for _, t := range q.tokens {
		switch {
		case t.kind == tokPunct && t.text == "(":
			depth++
		case t.kind == tokPunct && t.text == ")":
			depth--
		case depth == 0 && endsProjection(t):
			from := from(graphs)
			return selection{text[:t.at] + from + text[t.at:], count(from)}, nil
		}
	}
	return plain, nil
}

func from(graphs []string) string {
	var b strings.Builder
	for _, g := range graphs {
		b.WriteString("FROM " + g + " FROM NAMED " + g + " ")
	}
	return b.String()
}

// repeats tells whether the answer to a small query has a row twice with o in the last
// column.
func (w *twins) repeats(ctx context.Context, s *Source, query string, o rdfres.Term) (bool, error) {
	sol, err := s.client.SelectAs(ctx, query, sparql.ReadSelectJSON)
	if err != nil {
		return false, err
	}
	seen := map[string]bool{}
	again := false
	for row, err := range sol.Rows {
		if err != nil {
			return false, err
		}
		if len(row) == 0 || row[len(row)-1] != o {
			continue
		}
		key := fmt.Sprint(row)
		again = again || seen[key]
		seen[key] = true
	}
	return again, nil
}
