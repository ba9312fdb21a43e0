package storelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
)

// change is a line of a patch: terms in their spelling there, which SPARQL reads too. The default
// graph is "".
type change struct {
	add        bool
	s, p, o, g string
}

// changes are those of a transaction.
type changes []change

func parseChange(add bool, text string) (c change, ok bool) {
	c.add = add
	for _, into := range []*string{&c.s, &c.p, &c.o, &c.g} {
		if *into, text, ok = nextTerm(strings.TrimLeft(text, " ")); !ok {
			return c, false
		}
		if text == "" && into == &c.o {
			break
		}
	}
	if c.g == "<urn:x-arq:DefaultGraph>" || c.g == "<urn:x-arq:DefaultGraphNode>" {
		c.g = ""
	}
	return c, strings.TrimSpace(text) == "" && (c.s[0] == '<' && c.p[0] == '<') && (c.g == "" || c.g[0] == '<' && !isBlankLabel(c.g))
}

// nextTerm takes a term from the beginning of a text. Quoted triples and prefixed names are none.
func nextTerm(text string) (term, rest string, ok bool) {
	switch {
	case text == "" || strings.HasPrefix(text, "<<"):
		return "", "", false
	case strings.HasPrefix(text, "_:"):
		label, rest, _ := strings.Cut(text, " ")
		return "<" + label + ">", rest, true
	case text[0] == '<':
		end := strings.IndexByte(text, '>')
		return text[:end+1], text[end+1:], end > 0 && !strings.ContainsAny(text[1:end], " <\"{}|^`\t")
	case text[0] == '"':
		end := 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return "", "", false
		}
		if strings.HasPrefix(text[end+1:], "^^<") {
			more := strings.IndexByte(text[end:], '>')
			if more < 0 {
				return "", "", false
			}
			return text[:end+more+1], text[end+more+1:], true
		}
		if more := strings.IndexByte(text[end:], ' '); more > 0 {
			return text[:end+more], text[end+more:], true
		}
		return text, "", true
	}
	term, rest, _ = strings.Cut(text, " ")
	if _, err := strconv.ParseFloat(term, 64); err != nil && term != "true" && term != "false" {
		return "", "", false
	}
	return term, rest, true
}

// isBlankLabel tells a blank node: Jena finds it by its label in a query, too.
func isBlankLabel(term string) bool { return strings.HasPrefix(term, "<_:") }

// in is a pattern in a graph.
func in(graph, pattern string) string {
	if graph == "" {
		return pattern + " "
	}
	return "GRAPH " + graph + " { " + pattern + " } "
}

// mostAsked bounds the changes asked for.
const mostAsked = 100

// shown tells whether the store shows the effect of the last changes.
func (cs changes) shown(ctx context.Context, client *sparql.Client) (bool, error) {
	net := map[change]bool{}
	var there, gone strings.Builder
	for _, c := range slices.Backward(cs) { // the last word on a statement counts
		key := c
		key.add = false
		if net[key] {
			continue
		}
		net[key] = true
		if c.add {
			there.WriteString(in(c.g, c.s+" "+c.p+" "+c.o+" . "))
		} else {
			fmt.Fprintf(&gone, "FILTER NOT EXISTS { %s} ", in(c.g, c.s+" "+c.p+" "+c.o+" . "))
		}
		if len(net) == mostAsked {
			break
		}
	}
	if len(net) == 0 {
		return true, nil
	}
	shown, err := client.Ask(ctx, "ASK { "+there.String()+gone.String()+"}")
	var refused *sparql.Error
	if errors.As(err, &refused) && ctx.Err() == nil { // it is not known, and becomes unknown in time
		return false, nil
	}
	return shown, err
}

// Bounds of the questions for owners.
const (
	mostBlanks = 500
	mostOwners = 10_000
	blanksOnce = 10
	mostHops   = 5 // of blank nodes between an owner and a changed one
)

// owners adds the IRIs from which triples lead to the blank nodes over blank nodes alone: those of
// each graph with triples of a node. false: there are others.
func (r *reading) owners(ctx context.Context, client *sparql.Client, blanks []string, into *[]string) (known bool, err error) {
	owned := map[[2]string]bool{} // node and graph, by statements that the log has just added
	for more := true; more; {
		more = false
		for link, there := range r.links {
			node := [2]string{link[1], link[2]}
			if there && !owned[node] && (!isBlankLabel(link[0]) || owned[[2]string{link[0], link[2]}]) {
				owned[node], more = true, true
			}
		}
	}
	if len(blanks) > mostBlanks {
		return false, nil
	}
	for some := range slices.Chunk(blanks, blanksOnce) {
		known, err := ask(ctx, client, some, owned, into)
		if err != nil || !known || len(*into) > mostOwners {
			return false, err
		}
	}
	return true, nil
}

// ask asks for the owners of some blank nodes. Those in owned have one.
func ask(ctx context.Context, client *sparql.Client, blanks []string, owned map[[2]string]bool, into *[]string) (known bool, err error) {
	var parts []string
	for n, b := range blanks {
		patterns := []string{b + " ?p0 ?o0", "?x0 ?p0 " + b + " FILTER(isBlank(?x0))"} // these need an owner
		for hops := range mostHops {
			path, at, filter := "", b, ""
			for h := range hops {
				path, at, filter = path+fmt.Sprintf("?x%d ?p%d %s . ", h, h, at), fmt.Sprintf("?x%d", h), filter+fmt.Sprintf("isBlank(?x%d) && ", h)
			}
			patterns = append(patterns, fmt.Sprintf("%s?s ?p %s FILTER(%sisIRI(?s))", path, at, filter))
		}
		for _, p := range patterns {
			parts = append(parts, fmt.Sprintf("{ %s BIND(%d AS ?n) }", p, n), fmt.Sprintf("{ GRAPH ?g { %s } BIND(%d AS ?n) }", p, n))
		}
	}
	query := fmt.Sprintf("SELECT DISTINCT ?n ?g ?s WHERE { %s } LIMIT %d", strings.Join(parts, " UNION "), mostOwners+1)
	rows, err := client.SelectAs(ctx, query, sparql.ReadSelectJSON)
	var refused *sparql.Error
	if errors.As(err, &refused) && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer rows.Close()
	needs, count := map[[2]string]bool{}, 0
	for row, err := range rows.Rows {
		if err != nil {
			return false, err
		}
		lexical, _, _ := row[0].Literal()
		n, err := strconv.Atoi(lexical)
		if err != nil || n < 0 || n >= len(blanks) {
			return false, fmt.Errorf("the store answers a question for blank nodes with %q", row[0])
		}
		count++
		place := [2]string{blanks[n], string(row[1])}
		needs[place] = needs[place] || row[2] != "" || owned[place]
		if row[2] != "" {
			*into = append(*into, row[2].IRI())
		}
	}
	known = count <= mostOwners
	for _, has := range needs {
		known = known && has
	}
	return known, nil
}
