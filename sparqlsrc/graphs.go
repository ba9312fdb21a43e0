package sparqlsrc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// With Describe "graph" each named graph is an entity with its IRI, described by all its
// triples. The default graph has no name and is left out; so are graphs named by blank
// nodes, and those of rsbridge.

// addQuad takes a triple of a graph, in canonical terms, and does not keep them.
func (g *grouper) addQuad(graph, s, p, o []byte) error {
	g.rows++
	if len(s) == 0 || len(p) == 0 || len(o) == 0 {
		return fmt.Errorf("the store gave the triple %q %q %q with a part that is not there", clip(s), clip(p), clip(o))
	}
	s, o = localTerm(s), localTerm(o)
	if s[0] == '"' || p[0] != '<' {
		return fmt.Errorf("the store gave %s %s as subject and predicate, which is no RDF", clip(s), clip(p))
	}
	key := g.keyOf(graph)
	if string(graph) != string(g.graph) {
		g.graph = append(g.graph[:0], graph...)
		if err := g.entities.Add(key[:], append([]byte{recordEntity}, iriOf(graph)...)); err != nil {
			return err
		}
	}
	g.value = append(appendLine(g.value[:0], s, p, o), flagOwn)
	return g.entities.Add(key[:], g.value)
}

// graphQuads is the pattern of ?g ?s ?p ?o of the graphs as entities, or of some of them.
func (c *Config) graphQuads(only []string) string {
	const quad = "GRAPH ?g { ?s ?p ?o } "
	if only == nil && len(c.Graphs) > 0 && c.Graphs[0] != "*" {
		only = c.Graphs
	}
	if slices.ContainsFunc(only, func(g string) bool { _, err := sparql.NameIRI(g); return err != nil }) {
		var names []string
		for _, g := range only {
			names = append(names, sparql.EscapeString(g))
		}
		return quad + "FILTER(STR(?g) IN (" + strings.Join(names, ", ") + ")) "
	}
	if only != nil {
		values, _ := escapeAll(only)
		return "VALUES ?g { " + strings.Join(values, " ") + " } " + quad
	}
	return quad + "FILTER(isIRI(?g) && !" + sparql.OwnGraph("?g") + ") "
}

const selectQuads = "SELECT ?g ?s ?p ?o WHERE { "

// everyGraph tells whether all named graphs are entities.
func (c *Config) everyGraph() bool { return len(c.Graphs) == 0 || c.Graphs[0] == "*" }

// scanGraphs reads all graphs in one answer, by the faster of N-Quads and SELECT,
// or else graph by graph.
func (s *Source) scanGraphs(ctx context.Context, caps sparql.Capabilities, sc *Scan) error {
	sc.scope = &scope{kind: allGraphs}
	if !s.cfg.everyGraph() {
		sc.scope = &scope{kind: severalGraphs}
	}
	var last error
	if !s.cfg.graphwise() {
		ways := []sparql.Reading{caps.SelectReading()}
		if s.cfg.everyGraph() && s.quadSpeed(ctx) > caps.Speed[ways[0]] {
			ways = []sparql.Reading{readDataset, ways[0]}
		}
		way, ended := 0, earlyEnds(0)
		for try := 0; try < tries && way < len(ways); try++ {
			var v verdict
			v, last = s.graphsOnce(ctx, ways[way], caps, sc)
			if last == nil || v == fatal || ctx.Err() != nil {
				break
			}
			s.log.Warn("a download of all graphs did not hold", "way", ways[way], "err", last)
			if ended.cut(v, last) {
				sc.stats.Truncated++
				break
			}
			if v == refused {
				way++
			}
		}
	}
	if s.cfg.graphwise() || last != nil && s.cfg.Strategy == "" && ctx.Err() == nil {
		if err := s.graphByGraph(ctx, caps, sc); err != nil {
			return errors.Join(err, last)
		}
		last = nil
	}
	return last
}

// graphwise tells whether some graphs are read at a time, from the first on.
func (c *Config) graphwise() bool { return c.Strategy == "batches" || c.Strategy == "graphs" }

// readDataset is N-Quads of everything.
const readDataset sparql.Reading = "n-quads"

// quadTime is how long N-Quads are looked at.
const quadTime = 5 * time.Second

// quadSpeed is how many statements come in a second as N-Quads; 0: they do not.
func (s *Source) quadSpeed(ctx context.Context) float64 {
	if s.client.Endpoint().GraphStore == "" {
		return 0
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(ctx, quadTime, enough)
	defer cancel()
	began, n := time.Now(), 0
	err := s.client.StreamDataset(ctx, func(_, _, _, _ []byte) error {
		if n++; n >= 20_000 {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) && context.Cause(ctx) != enough || n == 0 {
		s.log.Debug("the store does not give all graphs as N-Quads", "err", err)
		return 0
	}
	return float64(n) / max(time.Since(began).Seconds(), 1e-6)
}

// graphsOnce reads everything once and holds it against the counts.
func (s *Source) graphsOnce(ctx context.Context, way sparql.Reading, caps sparql.Capabilities, sc *Scan) (v verdict, err error) {
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + s.cfg.graphQuads(nil) + "}"
	before, err := s.client.Count(ctx, count)
	if err != nil {
		return fatal, fmt.Errorf("count before reading: %w", err)
	}
	g, err := newGrouper(&s.cfg, false)
	if err != nil {
		return fatal, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	fn := func(graph, sub, p, o []byte) error {
		if g.rows&0x3fff == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.cfg.Progress("read", g.rows, before)
		}
		if len(graph) == 0 || graph[0] != '<' || way == readDataset && isOwnGraph(graph) {
			return nil
		}
		return g.addQuad(graph, sub, p, o)
	}
	if way == readDataset {
		err = s.client.StreamDataset(ctx, fn)
	} else {
		err = s.client.StreamQuads(ctx, selectQuads+s.cfg.graphQuads(nil)+"}", way, fn)
	}
	if err != nil {
		if errors.Is(err, sparql.ErrTruncated) {
			return short, err
		}
		var ofStore *sparql.Error
		if !errors.As(err, &ofStore) {
			return fatal, err
		}
		return refused, err
	}
	after, err := s.client.Count(ctx, count)
	if err != nil {
		return fatal, fmt.Errorf("count after reading: %w", err)
	}
	s.cfg.Progress("read", g.rows, after)
	if v, err = s.lengths.judge(g.rows, before, after, caps); err != nil {
		return v, err
	}
	sc.tookGraphs(g, min(before, after), string(way))
	return fine, nil
}

// tookGraphs notes the read triples. A graph holds a triple once: fewer different ones than
// the store's count mean a repeated part.
func (sc *Scan) tookGraphs(g *grouper, least int64, way string) {
	sc.group, sc.rows, sc.stats.Way = g, g.rows, way
	sc.verify = func(distinct int64, d *doubles) error {
		twins := !slices.ContainsFunc(d.lines, func(line string) bool { return !isPlain(tripleOf(line).O) })
		if d.n > 0 && distinct < least && !(twins && distinct+d.n >= least) { // "x" and "x"^^xsd:string are one in RDF 1.1
			return fmt.Errorf("%w: %d triples came twice, the first is %q, and only %d different ones where the store counts %d", ErrShort, d.n, clip([]byte(d.lines[0])), distinct, least)
		}
		return nil
	}
}

// graphByGraph lists the graphs, then reads some of them at a time.
func (s *Source) graphByGraph(ctx context.Context, caps sparql.Capabilities, sc *Scan) (err error) {
	g, err := newGrouper(&s.cfg, false)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	list, err := extsort.New(g.dir, s.cfg.MemoryBytes/4)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }() // its folder goes with the grouper's
	add := func(graph string) error {
		if sparql.IsOwnGraph(graph) {
			return nil
		}
		if _, err := sparql.EscapeIRI(graph); err != nil {
			g.fail(graph, err)
			return nil
		}
		key := rdfres.EntityKey(graph)
		return list.Add(key[:], []byte(graph))
	}
	if s.cfg.everyGraph() {
		err = s.eachSubject(ctx, caps, sc.scope, "GRAPH ?s { ?x ?y ?z } ", add)
	} else {
		for _, graph := range s.cfg.Graphs {
			err = errors.Join(err, add(graph))
		}
	}
	if err != nil {
		return fmt.Errorf("list the graphs: %w", err)
	}
	done := int64(0)
	err = eachOf(list, s.batch.get(), func(part []string) error {
		err := s.readGraphs(ctx, caps, part, func(graph string, t rdfres.Triple) error {
			return g.addQuad([]byte(rdfres.NewIRI(graph)), []byte(t.S), []byte(t.P), []byte(t.O))
		}, g.fail)
		done += int64(len(part))
		s.cfg.Progress("read", done, list.Len())
		return err
	})
	if err != nil {
		return fmt.Errorf("read graph by graph: %w", err)
	}
	sc.tookGraphs(g, 0, cmp.Or(s.cfg.Strategy, "batches"))
	return nil
}

// graphRows is how many triples of several graphs are held in memory.
const graphRows = 50_000

// readGraphs reads some graphs, each whole: small ones together, one beyond a single answer
// like a scan of its own. A graph with an invalid triple goes to fail, if there is one, and
// the rest is read.
func (s *Source) readGraphs(ctx context.Context, caps sparql.Capabilities, graphs []string, f func(graph string, t rdfres.Triple) error, fail func(graph string, why error)) error {
	type quad struct {
		graph string
		t     rdfres.Triple
	}
	var read func(part []string) error
	halve := func(part []string) error {
		if err := read(part[:len(part)/2]); err != nil {
			return err
		}
		return read(part[len(part)/2:])
	}
	read = func(part []string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pattern := s.cfg.graphQuads(part)
		count := "SELECT (COUNT(*) AS ?n) WHERE { " + pattern + "}"
		for range tries {
			n, err := s.client.Count(ctx, count)
			if err != nil {
				return err
			}
			if n > graphRows {
				if len(part) > 1 {
					return halve(part)
				}
				break
			}
			var got []quad
			err = s.client.StreamQuads(ctx, selectQuads+pattern+"}", caps.SelectReading(), func(g, sub, p, o []byte) error {
				if len(g) == 0 || g[0] != '<' {
					return fmt.Errorf("the store gave a triple of the graph %q, which was not asked for", clip(g))
				}
				if len(got) > 2*graphRows {
					return fmt.Errorf("%w: more than %d rows for one batch", ErrShort, len(got))
				}
				graph := iriOf(g)
				if n := len(got); n > 0 && got[n-1].graph == graph {
					graph = got[n-1].graph
				}
				got = append(got, quad{graph, rdfres.Triple{S: rdfres.Term(sub), P: rdfres.Term(p), O: rdfres.Term(o)}})
				return nil
			})
			if err != nil && !errors.Is(err, ErrShort) && !sparql.IsTooLarge(err) {
				return err
			}
			if err == nil && int64(len(got)) == n {
				for _, q := range got {
					if err := f(q.graph, q.t); err != nil {
						return err
					}
				}
				return nil
			}
			s.log.Info("some graphs did not come whole", "graphs", len(part), "triples", len(got), "counted", n, "err", err)
			if len(part) > 1 {
				return halve(part)
			}
		}
		err := s.readOneGraph(ctx, caps, part[0], f)
		var one *entityError
		if fail != nil && errors.As(err, &one) {
			fail(one.entity, one.err)
			return nil
		}
		return err
	}
	for part := range slices.Chunk(graphs, s.batch.get()) {
		if err := read(part); err != nil {
			return err
		}
	}
	return nil
}

// readOneGraph reads a graph ("": the default one) on disk, by all ways of a scan.
func (s *Source) readOneGraph(ctx context.Context, caps sparql.Capabilities, graph string, f func(graph string, t rdfres.Triple) error) (err error) {
	cfg := s.cfg
	cfg.Graphs, cfg.Select, cfg.Describe, cfg.Progress = []string{graph}, Select{}, "", func(string, int64, int64) {}
	if graph == "" {
		cfg.Graphs = nil
	}
	if cfg.Strategy == "graphs" {
		cfg.Strategy = ""
	}
	alone := s.with(cfg, s.cfg.BatchSize)
	if len(caps.Readings) > 0 {
		// The Graph Store Protocol gives one graph whole in most stores.
		if s.client.Endpoint().GraphStore != "" {
			caps.Readings = append([]sparql.Reading{sparql.ReadGraphStore}, caps.Readings...)
		}
	}
	alone.SetCapabilities(caps)
	sc, err := alone.scan(ctx, nil, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sc.Close()) }()
	for d, err := range sc.Descriptions() {
		if err != nil {
			return err
		}
		for _, t := range d.Triples {
			if err := f(graph, t); err != nil {
				return err
			}
		}
	}
	for _, why := range sc.Failed() {
		return &entityError{graph, why}
	}
	return nil
}

// graphs describes the requested graphs.
func (d *describer) graphs(ctx context.Context) error {
	var names []string
	for e := range d.asked {
		_, err := sparql.EscapeIRI(e)
		if err != nil || sparql.IsOwnGraph(e) || !d.s.cfg.everyGraph() && !slices.Contains(d.s.cfg.Graphs, e) {
			continue // no entity of this set
		}
		names = append(names, e)
	}
	names, err := d.each(names, func(names []string) error {
		for e := range d.asked {
			d.done[e] = nil
		}
		return d.s.readGraphs(ctx, d.caps, names, func(graph string, t rdfres.Triple) error {
			d.done[graph] = append(d.done[graph], local(t))
			return d.bound(graph, d.done[graph])
		}, nil)
	})
	if err != nil {
		return err
	}
	for _, e := range names {
		if len(d.done[e]) == 0 {
			continue
		}
		if d.done[e], err = nameOwn(&d.s.cfg, e, d.done[e]); err != nil {
			d.failed[e] = &entityError{e, err}
		}
	}
	return nil
}
