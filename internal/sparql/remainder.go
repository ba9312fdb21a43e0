package sparql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Part names the graphs a reader uses of a store, or of a file with quads.
type Part struct {
	Default bool     `json:"default"`          // the default graph
	Named   bool     `json:"named"`            // each graph with an IRI
	Graphs  []string `json:"graphs,omitempty"` // these, sorted; nil with Named
}

// And is both parts.
func (p Part) And(o Part) Part {
	p.Default, p.Named = p.Default || o.Default, p.Named || o.Named
	p.Graphs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.Graphs, o.Graphs))))
	if p.Named {
		p.Graphs = nil
	}
	return p
}

// Equal compares two parts.
func (p Part) Equal(o Part) bool {
	return p.Default == o.Default && p.Named == o.Named && slices.Equal(p.Graphs, o.Graphs)
}

// Has tells whether a graph, "" or a term, is in the part.
func (p Part) Has(graph rdfres.Term) bool {
	if graph == "" {
		return p.Default
	}
	return graph[0] == '<' && (p.Named || slices.Contains(p.Graphs, graph.IRI()))
}

// Remainder is the data outside of a Part. The bookkeeping of rsbridge is no data.
type Remainder struct {
	Triples int64        `json:"triples"`
	Graphs  int64        `json:"graphs"`
	Largest []GraphCount `json:"largest,omitempty"` // at most RemainderShown of them
	System  []string     `json:"system,omitempty"`  // graphs of the store itself, not counted
	// Unknown is why nothing was counted. Largest then names some graphs without a
	// count, or none.
	Unknown string `json:"unknown,omitempty"`
}

// GraphCount is the size of one graph. Graph is "" for the default graph; for graphs named by blank
// nodes it is a label like _:b0.
type GraphCount struct {
	Graph   string `json:"graph"`
	Triples int64  `json:"triples"`
}

// RemainderShown is the most graphs in a Remainder.
const RemainderShown = 8

// Nothing tells whether everything is in the Part, as far as is known.
func (r Remainder) Nothing() bool { return r.Graphs == 0 && len(r.Largest) == 0 && r.Unknown == "" }

// Add counts a graph, "" or a term, outside of every part. One of rsbridge itself is passed over.
func (r *Remainder) Add(graph rdfres.Term, triples int64) {
	if IsOwnGraph(graph.IRI()) {
		return
	}
	r.Triples, r.Graphs = r.Triples+triples, r.Graphs+1
	r.Largest = append(r.Largest, GraphCount{cmp.Or(graph.IRI(), string(graph)), triples})
	r.sort()
}

// sort puts the largest graphs first and keeps RemainderShown of them.
func (r *Remainder) sort() {
	slices.SortFunc(r.Largest, func(a, b GraphCount) int {
		return cmp.Or(cmp.Compare(b.Triples, a.Triples), cmp.Compare(a.Graph, b.Graph))
	})
	r.Largest = r.Largest[:min(len(r.Largest), RemainderShown)]
}

// String is a clause, such as "12 triples in 2 graphs: http://a.example/ (10), the
// default graph (2)".
func (r Remainder) String() string {
	var names []string
	for _, g := range r.Largest {
		name := cmp.Or(g.Graph, "the default graph")
		if r.Unknown == "" {
			name += fmt.Sprintf(" (%d)", g.Triples)
		}
		names = append(names, name)
	}
	if r.Graphs > int64(len(names)) {
		names = append(names, "...")
	}
	list, text := strings.Join(names, ", "), "nothing"
	switch {
	case r.Unknown != "" && list == "":
		text = "perhaps triples in other graphs, not counted: " + r.Unknown
	case r.Unknown != "":
		text = "triples in " + list + ", perhaps in more graphs, not counted: " + r.Unknown
	case r.Graphs > 0:
		text = fmt.Sprintf("%s in %s: %s", count(r.Triples, "triple"), count(r.Graphs, "graph"), list)
	}
	if len(r.System) > 0 {
		text += "; besides, the store's own graphs: " + strings.Join(r.System, ", ")
	}
	return text
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Remainder counts the triples outside of a part, in one row, and then names the largest graphs. It
// gives up after patience. product is the store's name.
func (c *Client) Remainder(ctx context.Context, p Part, product string, patience time.Duration) Remainder {
	r, err := c.countRemainder(ctx, p, product, patience)
	if err == nil {
		return r
	}
	r = Remainder{Unknown: shortError(err), System: r.System}
	if errors.Is(err, context.DeadlineExceeded) {
		r.Unknown = fmt.Sprintf("the store needs more than %v for it", patience)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), patience)
	defer cancel()
	if named, err := c.iris(ctx, fmt.Sprintf("SELECT DISTINCT ?g WHERE { %s} LIMIT %d", outside(p, product), RemainderShown)); err == nil {
		for _, g := range named {
			r.Largest = append(r.Largest, GraphCount{Graph: g})
		}
		r.sort()
	}
	return r
}

func (c *Client) countRemainder(ctx context.Context, p Part, product string, patience time.Duration) (r Remainder, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), patience)
	defer cancel()
	union := false
	if !p.Default || !p.Named {
		if union, err = c.ShowsUnion(ctx, product); err != nil {
			return r, err
		}
	}
	where := outside(p, product)
	if _, known := KnownUnion(product); union && p.Default {
		if known {
			return r, nil
		}
		where += "FILTER NOT EXISTS { ?s ?p ?o } " // a sample looked like a union
	}
	if system := SystemGraphs(product); !p.Named && len(system) > 0 {
		if r.System, err = c.filled(ctx, system, p); err != nil {
			return r, err
		}
	}
	named, err := c.countGraphs(ctx, where)
	if err != nil && union && p.Default { // it is a union, as far as is known
		return Remainder{}, nil
	}
	if err != nil {
		return r, err
	}
	r.Triples, r.Graphs, r.Largest = named.Triples, named.Graphs, named.Largest
	nameless := int64(0)
	switch { // only in RDF4J a union default graph has triples of its own
	case p.Default:
	case !union:
		nameless, err = c.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
	case c.LikeRDF4J():
		nameless, err = c.Count(ctx, "SELECT (COUNT(*) AS ?n) FROM "+NilGraph+" WHERE { ?s ?p ?o }")
	}
	r.sort()
	if nameless > 0 {
		r.Add("", nameless)
	}
	return r, err
}

// NilGraph names, in a FROM of RDF4J and its descendants, the triples of no graph.
const NilGraph = "<http://www.openrdf.org/schema/sesame#nil>"

// outside is the pattern of the triples in named graphs outside of a part.
func outside(p Part, product string) string {
	const quad = "GRAPH ?g { ?s ?p ?o } "
	if p.Named {
		return quad + "FILTER(isBlank(?g)) "
	}
	filter := "!" + OwnGraph("?g")
	if others := slices.Concat(p.Graphs, SystemGraphs(product)); len(others) > 0 {
		filter += " && !(" + isOneOf("?g", others) + ")"
	}
	return quad + "FILTER(isBlank(?g) || (" + filter + ")) "
}

// isOneOf compares a variable with names of graphs: as IRIs, since Virtuoso compares these well
// beyond ASCII, or as strings if an IRI cannot stand in a query.
func isOneOf(variable string, graphs []string) string {
	var iris, names []string
	for _, g := range graphs {
		if iri, err := NameIRI(g); err == nil && strings.Contains(g, ":") {
			iris = append(iris, iri)
		} else {
			names = append(names, EscapeString(g))
		}
	}
	var either []string // an empty list is no use: Oxigraph finds nothing in it, and nothing else either
	if len(iris) > 0 {
		either = append(either, variable+" IN ("+strings.Join(iris, ", ")+")")
	}
	if len(names) > 0 {
		either = append(either, "STR("+variable+") IN ("+strings.Join(names, ", ")+")")
	}
	return strings.Join(either, " || ")
}

// virtuosoGraphs come with every Virtuoso, or are made by it.
var virtuosoGraphs = []string{
	"http://localuriqaserver/sparql", "http://www.openlinksw.com/schemas/virtrdf#", "http://www.w3.org/2002/07/owl#",
	"http://www.w3.org/ns/ldp#", "urn:activitystreams-owl:map", "urn:core:services:sparql",
	"b3sifp", "b3sonto", "dbprdf-label", "facets", "virtrdf-label",
	"http://localhost:8890/DAV", "http://localhost:8890/DAV/", "http://localhost:8890/sparql",
}

// SystemGraphs are the graphs of a product itself, put there by nobody. A reader of its default graph, or of all
// graphs, sees them.
func SystemGraphs(product string) []string {
	if product == "Virtuoso" {
		return virtuosoGraphs
	}
	return nil
}

// filled are the nonempty ones of some graphs that are not in a part.
func (c *Client) filled(ctx context.Context, graphs []string, p Part) ([]string, error) {
	graphs = slices.DeleteFunc(slices.Clone(graphs), func(g string) bool { return slices.Contains(p.Graphs, g) })
	if len(graphs) == 0 {
		return nil, nil
	}
	found, err := c.iris(ctx, "SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } FILTER("+isOneOf("?g", graphs)+") }")
	slices.Sort(found)
	return found, err
}

// countGraphs counts a pattern of ?g in one row, and names the largest graphs.
func (c *Client) countGraphs(ctx context.Context, where string) (r Remainder, err error) {
	total, err := c.fewRows(ctx, "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?g) AS ?graphs) WHERE { "+where+"}", 2)
	if err != nil {
		return r, err
	}
	if len(total) != 1 {
		return r, fmt.Errorf("the answer to a count has %d rows", len(total))
	}
	r.Triples, err = number(total[0][0])
	if err == nil {
		r.Graphs, err = number(total[0][1])
	}
	if err != nil || r.Graphs == 0 {
		return r, err
	}
	rows, err := c.fewRows(ctx, fmt.Sprintf("SELECT ?g (COUNT(*) AS ?n) WHERE { %s} GROUP BY ?g ORDER BY DESC(?n) LIMIT %d", where, RemainderShown), 2)
	for _, row := range rows {
		n, wrong := number(row[1])
		if err = wrong; err != nil {
			break
		}
		r.Largest = append(r.Largest, GraphCount{cmp.Or(row[0].IRI(), string(row[0])), n})
	}
	return r, err
}

// fewRows are all rows of a small answer.
func (c *Client) fewRows(ctx context.Context, query string, columns int) (out []Row, err error) {
	sol, err := c.SelectAs(ctx, query, ReadSelectJSON)
	if err != nil {
		return nil, err
	}
	for row, err := range sol.Rows {
		switch {
		case err != nil:
			return nil, err
		case len(row) != columns:
			return nil, fmt.Errorf("the answer has %d columns, %d were asked for", len(row), columns)
		}
		out = append(out, slices.Clone(row))
	}
	return out, nil
}
