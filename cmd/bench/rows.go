package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

var rows = []row{
	{id: "load", what: "embedded store: load by one Graph Store POST", baseline: "Oxigraph", speed: true, limit: 1, needs: teststores.EnvOxigraph,
		measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) {
			return loading(ctx, e)
		}},
	{id: "stream", what: "embedded store: the whole graph by Graph Store GET", baseline: "Oxigraph", speed: true, limit: 1, needs: teststores.EnvOxigraph,
		measure: func(ctx context.Context, e *env) (time.Duration, time.Duration, error) {
			return both(ctx, e, func(s store) (time.Duration, error) {
				return timed(ctx, "GET", s.graph(benchGraph), "", "application/n-triples", nil)
			})
		}},
	{id: "tsv", what: "embedded store: the whole graph by SELECT as TSV", baseline: "Oxigraph", speed: true, limit: 1, needs: teststores.EnvOxigraph,
		measure: query(func(*env) string { return "SELECT ?s ?p ?o FROM <" + benchGraph + "> WHERE { ?s ?p ?o }" }, "text/tab-separated-values")},
	{id: "subjects", what: "embedded store: distinct subjects", baseline: "Oxigraph", speed: true, limit: 1, needs: teststores.EnvOxigraph,
		measure: query(func(*env) string { return "SELECT DISTINCT ?s FROM <" + benchGraph + "> WHERE { ?s ?p ?o }" }, "text/tab-separated-values")},
	{id: "cbd", what: "embedded store: CBD of 200 entities in one query", baseline: "Oxigraph", speed: true, limit: 0.5, needs: teststores.EnvOxigraph,
		measure: query(func(e *env) string {
			var values strings.Builder
			for i := range int64(200) {
				values.WriteString("<" + simulate.IRI(i*(e.n/200)) + "> ")
			}
			v := values.String()
			return fmt.Sprintf(`CONSTRUCT { ?s ?p ?o } FROM <%[1]s> WHERE {
  { VALUES ?s { %[2]s } ?s ?p ?o }
  UNION { VALUES ?e { %[2]s } ?e ?p1 ?s FILTER(isBlank(?s)) ?s ?p ?o }
  UNION { VALUES ?e { %[2]s } ?e ?p1 ?b FILTER(isBlank(?b)) ?b ?p2 ?s FILTER(isBlank(?s)) ?s ?p ?o } }`, benchGraph, v)
		}, "application/n-triples")},
	{id: "memory-load", what: "embedded store: most resident memory while it loads", baseline: "allowed", limit: 1, most: 500,
		megabytes: func(ctx context.Context, e *env) (int64, error) {
			return peak(ctx, e, false, func(s store) error {
				_, err := s.load(ctx, e, benchGraph)
				return err
			})
		}},
	{id: "memory-stream", what: "embedded store: most resident memory while it streams", baseline: "allowed", limit: 1, most: 500,
		megabytes: func(ctx context.Context, e *env) (int64, error) {
			return peak(ctx, e, true, func(s store) error {
				_, err := timed(ctx, "GET", s.graph(benchGraph), "", "application/n-triples", nil)
				return err
			})
		}},
	{id: "list", what: "Resource List of all, made and read", baseline: "resync-build", speed: true, limit: 20, needs: teststores.EnvPython, measure: resourceList},
	{id: "dump", what: "Resource Dump of all", baseline: "resync-build", speed: true, limit: 5, needs: teststores.EnvPython, measure: resourceDump},
	{id: "gets", what: "mirror of all into files, by single GETs", baseline: fmt.Sprintf("resync-sync (of %d, extrapolated)", resyncFetches), speed: true, limit: 5, needs: teststores.EnvPython, measure: filing(aloneCaps, intoFiles)},
	{id: "gets-dump", what: "mirror of all into a file of N-Triples, from the dump", baseline: fmt.Sprintf("resync-sync (by single GETs, of %d, extrapolated)", resyncFetches), speed: true, limit: 20, needs: teststores.EnvPython, measure: filing("/data/capabilitylist.xml", intoDump)},
	{id: "publish", what: "publish 100 changes in a set of 1,000,000", baseline: "of 100,000", limit: 1.2, measure: publishing},
	{id: "serve", what: "representations over HTTP", baseline: "bare handler", speed: true, limit: 0.5, measure: serving("identity")},
	{id: "serve-gzip", what: "representations over HTTP, as gzip", baseline: "bare handler", speed: true, limit: 0.5, measure: serving("gzip")},
	{id: "ntriples", what: "our N-Triples lines, as bytes, one core", baseline: "knakk/rdf", speed: true, limit: 4, measure: ntriples(false)},
	{id: "ntriples-terms", what: "our N-Triples reader, terms made, one core", baseline: "knakk/rdf", speed: true, limit: 4, measure: ntriples(true)},
}

// loading measures loads into empty stores.
func loading(ctx context.Context, e *env) (thing, base time.Duration, err error) {
	ours, err := embedded(ctx, e)
	if err != nil {
		return 0, 0, err
	}
	defer ours.stop()
	if thing, err = ours.load(ctx, e, benchGraph); err != nil {
		return 0, 0, err
	}
	const graph = benchGraph + "/load"
	theirs := oxigraph()
	if err := theirs.drop(ctx, graph); err != nil {
		return 0, 0, err
	}
	if base, err = theirs.load(ctx, e, graph); err != nil {
		return 0, 0, err
	}
	return thing, base, theirs.drop(ctx, graph)
}

// both measures the embedded store and Oxigraph with the data in them, loaded once for all rows.
func both(ctx context.Context, e *env, measure func(store) (time.Duration, error)) (thing, base time.Duration, err error) {
	ours, theirs, err := e.loaded(ctx)
	if err != nil {
		return 0, 0, err
	}
	if thing, err = measure(ours); err != nil {
		return 0, 0, err
	}
	base, err = measure(theirs)
	return thing, base, err
}

func query(text func(*env) string, accept string) func(context.Context, *env) (time.Duration, time.Duration, error) {
	return func(ctx context.Context, e *env) (time.Duration, time.Duration, error) {
		return both(ctx, e, func(s store) (time.Duration, error) {
			if _, err := s.ask(ctx, text(e), accept); err != nil { // both warm
				return 0, err
			}
			return s.ask(ctx, text(e), accept)
		})
	}
}
