package sparql

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Survey is what some graphs of a store hold, for a first configuration. What the store does not tell in time is
// left out.
type Survey struct {
	Entities int64        // subjects with an IRI; -1: not told
	Classes  []ClassCount // the largest ones
	Prefix   string       // of most entities in a sample; "": none
}

// ClassCount is the number of entities of a class.
type ClassCount struct {
	Class    string
	Entities int64
}

const (
	surveyClasses = 5
	surveySample  = 2000
)

// Survey asks what a part holds, each question for patience.
func (c *Client) Survey(ctx context.Context, p Part, patience time.Duration) (s Survey, err error) {
	ask := func(query string, columns int) []Row {
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, onceKey{}, true), patience)
		defer cancel()
		rows, err := c.fewRows(ctx, query, columns)
		if err != nil {
			return nil
		}
		return rows
	}
	s.Entities = -1
	of := func(pattern string) string { return p.holds(pattern) }
	if rows := ask("SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { "+of("?s ?p ?o")+"FILTER(isIRI(?s)) }", 1); len(rows) == 1 {
		if n, err := number(rows[0][0]); err == nil {
			s.Entities = n
		}
	}
	for _, row := range ask(fmt.Sprintf("SELECT ?c (COUNT(DISTINCT ?s) AS ?n) WHERE { %sFILTER(isIRI(?s) && isIRI(?c)) } GROUP BY ?c ORDER BY DESC(?n) LIMIT %d", of("?s a ?c"), surveyClasses), 2) {
		if n, err := number(row[1]); err == nil && row[0].IRI() != "" {
			s.Classes = append(s.Classes, ClassCount{row[0].IRI(), n})
		}
	}
	var sample []string
	for _, row := range ask(fmt.Sprintf("SELECT DISTINCT ?s WHERE { %sFILTER(isIRI(?s)) } LIMIT %d", of("?s ?p ?o"), surveySample), 1) {
		sample = append(sample, row[0].IRI())
	}
	s.Prefix = commonPrefix(sample)
	return s, context.Cause(ctx)
}

// holds is a pattern in the graphs of a part.
func (p Part) holds(pattern string) string {
	named := "{ GRAPH ?g { " + pattern + " } FILTER(!" + OwnGraph("?g") + ") } "
	if !p.Named && len(p.Graphs) > 0 {
		named = "{ GRAPH ?g { " + pattern + " } FILTER(" + isOneOf("?g", p.Graphs) + ") } "
	}
	switch {
	case !p.Named && len(p.Graphs) == 0:
		return pattern + " "
	case p.Default:
		return "{ " + pattern + " } UNION " + named
	}
	return named
}

// commonPrefix is the longest beginning of most IRIs that ends a name space; "" without one longer than a host.
func commonPrefix(iris []string) string {
	hosts := map[string][]string{}
	best := ""
	for _, iri := range iris {
		scheme, rest, ok := strings.Cut(iri, "://")
		host, _, path := strings.Cut(rest, "/")
		if !ok || !path {
			continue
		}
		at := scheme + "://" + host + "/"
		if hosts[at] = append(hosts[at], iri); len(hosts[at]) > len(hosts[best]) {
			best = at
		}
	}
	most := hosts[best]
	if len(most)*2 <= len(iris) {
		return ""
	}
	prefix := most[0]
	for _, iri := range most {
		n := 0
		for n < len(prefix) && n < len(iri) && prefix[n] == iri[n] {
			n++
		}
		prefix = prefix[:n]
	}
	return prefix[:strings.LastIndexAny(prefix, "/#")+1]
}
