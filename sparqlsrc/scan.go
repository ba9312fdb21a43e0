package sparqlsrc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// tries is how often a download is tried.
const tries = 3

// ErrShort marks a download that does not agree with the store's own counts.
var ErrShort = errors.New("the store's answer does not agree with its own count")

// Scan downloads and groups. It returns only when everything was received and
// the counts agree; any short, cut or refused answer is an error.
func (s *Source) Scan(ctx context.Context) (*Scan, error) { return s.ScanUnless(ctx, "") }

// ScanUnless is Scan, except that the very answer of before (Scan.Answer) is not grouped:
// Scan.Same tells.
func (s *Source) ScanUnless(ctx context.Context, before string) (*Scan, error) {
	sum, err := newAnswer(before)
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", s.cfg.Name, err)
	}
	sc, err := s.scan(ctx, sum, before)
	if errors.Is(err, ErrShort) {
		err = fmt.Errorf("%w (nothing was changed; the store cuts its answers, so raise its row limit, or it is written to all the time, so scan at a quieter hour)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("scan %s: %w", s.cfg.Name, err)
	}
	if sc.stats.Triples == 0 {
		s.tellElsewhere(ctx)
	} else if len(s.cfg.Graphs) > 1 {
		s.tellEmpty(ctx)
	}
	return sc, nil
}

// scan digests the answer by sum (nil: it does not) where it comes in one and says all.
func (s *Source) scan(ctx context.Context, sum *answer, before string) (*Scan, error) {
	requests, bytes := s.client.Traffic()
	s.recheck(ctx)
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	sc := &Scan{cfg: &s.cfg, selects: !s.cfg.Select.isZero(), built: s.construct != nil, byGraph: s.byGraph}
	switch {
	case s.construct != nil:
		err = s.scanConstruct(ctx, caps, sc)
	case s.byGraph:
		err = s.scanGraphs(ctx, caps, sc)
		if err == nil && s.cfg.Select.Query != "" {
			sc.marked = true
			err = s.selectedEntities(ctx, sc.group)
		}
	default:
		if s.cfg.Select.Query == "" {
			sc.sum = sum
		}
		err = s.download(ctx, caps, sc)
		if err == nil && s.cfg.Select.Query != "" {
			sc.marked = true
			err = s.selectedEntities(ctx, sc.group)
		}
		sc.same = before != "" && sc.answer == before
		if err == nil && !sc.same {
			err = sc.group.finish(ctx)
		}
	}
	if err != nil {
		if sc.group != nil {
			err = errors.Join(err, sc.group.close())
		}
		return nil, err
	}
	r, b := s.client.Traffic()
	sc.stats.Requests, sc.stats.Bytes = r-requests, b-bytes
	sc.stats.Triples = sc.group.rows
	if sc.stats.Own, err = s.countOwn(ctx, sc.scope); err != nil {
		return nil, errors.Join(err, sc.group.close())
	}
	return sc, nil
}

// tellEmpty warns of each graph of several that holds nothing.
func (s *Source) tellEmpty(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if empty, err := s.client.EmptyGraphs(ctx, s.cfg.Graphs); err != nil {
		s.log.Info("it is not known whether each graph of the set holds something", "error", err)
	} else if len(empty) > 0 {
		s.log.Warn("graphs of the set hold nothing: are their names right?", "empty", strings.Join(empty, ", "))
	}
}

// tellElsewhere warns where nothing was read although other graphs hold something.
func (s *Source) tellElsewhere(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if graphs, err := s.client.NamedGraphs(ctx, 8); err == nil && len(graphs) > 0 {
		s.log.Warn("what the set is over is empty, and other graphs are not: name them, or \"*\" for all", "name", s.cfg.Names.Of("graphs"), "empty", cmp.Or(strings.Join(s.cfg.Graphs, ", "), "the default graph"), "others", strings.Join(graphs, ", "))
	}
}

// download reads the whole scope into a grouper, by the first way that gives as
// much as the store counts.
func (s *Source) download(ctx context.Context, caps sparql.Capabilities, sc *Scan) error {
	scope, err := s.scope(ctx, caps)
	if err != nil {
		return err
	}
	var last error
	if s.cfg.Strategy == "" || s.cfg.inOneAnswer() {
		ways := s.cfg.ways(caps, scope)
		if way := sparql.Reading(s.cfg.Strategy); len(ways) == 0 && ofOneGraph(way) && (!scope.single() || scope.union) {
			last = fmt.Errorf("strategy %s gives once what stands in several graphs, so it is for one graph, and the set is over several, or over a default graph that shows others: strategy graphs reads them one by one, whole, select-json or select-tsv together", way)
		} else if len(ways) == 0 {
			last = fmt.Errorf("the store has no way of reading %s in one answer (it can: %v)", cmp.Or(strings.TrimPrefix(s.cfg.Strategy, "whole"), "several graphs"), caps.Readings)
		}
		many, err := s.byManyPredicates(ctx, caps, scope, ways)
		if err == nil && many {
			if err = s.byParts(ctx, "predicates", caps, sc); err == nil {
				return nil
			}
			s.log.Warn("a download by predicates did not hold", "err", err)
		}
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		way, ended := 0, earlyEnds(0)
		for try := 0; try < tries && way < len(ways); try++ {
			var v verdict
			v, last = s.wholeOnce(ctx, ways[way], sc)
			if last == nil || v == fatal || ctx.Err() != nil {
				return last
			}
			s.log.Warn("a download of the whole graph did not hold", "way", ways[way], "err", last)
			if ended.cut(v, last) {
				sc.stats.Truncated++
				break // it will be cut again
			}
			if v == refused {
				way++ // another way may do
			}
		}
		if s.cfg.inOneAnswer() {
			if errors.Is(last, ErrShort) || errors.Is(last, sparql.ErrTruncated) {
				last = fmt.Errorf("%w (strategy %s asks for everything in one answer; without it what is cut is read in parts)", last, s.cfg.Strategy)
			}
			return last
		}
	}
	parts := []string{s.cfg.Strategy}
	if s.cfg.Strategy == "" {
		parts = []string{"batches"}
		if scope.kind == severalGraphs || scope.kind == allGraphs { // one graph may come whole where all do not
			parts = []string{"graphs", "batches"}
		}
		if caps.ValuesLimit == 0 { // batches name their entities by VALUES, which were refused
			parts[len(parts)-1] = "hash"
		}
	}
	for _, by := range parts {
		err := s.byParts(ctx, by, caps, sc)
		if err == nil || ctx.Err() != nil {
			return err
		}
		last = errors.Join(err, last)
	}
	return last
}

// ways are the ways of reading the scope in one answer, the fastest first.
func (c *Config) ways(caps sparql.Capabilities, sc *scope) (out []sparql.Reading) {
	switch way := sparql.Reading(c.Strategy); way {
	case sparql.ReadSelectBinary, sparql.ReadSelectTSV, sparql.ReadSelectXML: // a probe tries the one only of an RDF4J, and where it does perhaps not the other
		return []sparql.Reading{way}
	}
	for _, r := range caps.Readings {
		named := c.Strategy == "" || c.Strategy == "whole" || c.Strategy == string(r)
		if named && (!ofOneGraph(r) || sc.single() && !sc.union) {
			out = append(out, r)
		}
	}
	return out
}

// ofOneGraph tells whether a way gives once what stands in several graphs, and counts twice.
func ofOneGraph(way sparql.Reading) bool {
	return way == sparql.ReadGraphStore || way == sparql.ReadConstruct
}

// verdict is how a download ended.
type verdict int

const (
	fine  verdict = iota
	cut           // on a limit of the store
	short         // it does not agree with the counts
	refused
	fatal // no other way of reading will help
)

// earlyEnds counts answers that ended before their end: one that did twice is cut.
type earlyEnds int

func (n *earlyEnds) cut(v verdict, err error) bool {
	if errors.Is(err, sparql.ErrTruncated) {
		*n++
	}
	return v == cut || *n == 2
}

// wholeOnce reads everything once and holds it against the counts.
func (s *Source) wholeOnce(ctx context.Context, way sparql.Reading, sc *Scan) (v verdict, err error) {
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return fatal, err
	}
	// The scope is found again for each try: a graph of ours may have appeared.
	scope, err := s.scope(ctx, caps)
	if err != nil {
		return fatal, err
	}
	if scope.union && ofOneGraph(way) {
		return refused, fmt.Errorf("%w: the default graph shows named graphs now", ErrShort)
	}
	known, err := s.cfg.Known(ctx)
	if err != nil {
		return fatal, err
	}
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + scope.all() + "}"
	mark := markEnd(way)
	counting := s.counting(ctx, count, mark == nil)
	defer counting.stop()
	g, err := newGrouper(&s.cfg, s.scbd)
	if err != nil {
		return fatal, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	sc.sum.begin()
	fn := func(sub, p, o []byte) error {
		if g.rows&0x3fff == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			total := counting.sofar.Load()
			if total == 0 && known > 0 { // about as many as last time
				total = max(known, g.rows)
			}
			s.cfg.Progress("read", g.rows, total)
		}
		if mark.is(sub, p, o) {
			return nil
		}
		sc.sum.add(sub, p, o)
		return g.add(sub, p, o)
	}
	sel := "SELECT ?s ?p ?o WHERE { " + mark.behind(scope.all()) + "}"
	read := func() error {
		switch way {
		case sparql.ReadGraphStore:
			return s.client.StreamGraph(ctx, scope.graph, fn)
		case sparql.ReadConstruct:
			return s.client.StreamConstruct(ctx, "CONSTRUCT { ?s ?p ?o } WHERE { "+scope.all()+"}", fn)
		}
		return s.client.StreamSelect(ctx, sel, way, fn)
	}
	var ofStore *sparql.Error
	if err = read(); g.rows == 0 && errors.As(err, &ofStore) && !errors.Is(err, sparql.ErrTruncated) { // it may take one question at a time
		counting.wait()
		err = read()
	}
	if err != nil {
		if errors.Is(err, sparql.ErrTruncated) {
			return short, err
		}
		if !errors.As(err, &ofStore) {
			return fatal, err // of the disk, or the caller has given up
		}
		return refused, err
	}
	before, proven := g.rows, mark.proves() && g.rows >= known && !s.lengths.onLimit(g.rows, caps)
	if !proven {
		before, err = counting.wait()
		if err != nil && ctx.Err() == nil {
			before, err = s.client.Count(ctx, count) // with the store to itself
		}
		if err != nil {
			return fatal, fmt.Errorf("count beside reading: %w", err)
		}
	}
	// What came is what was counted, or came to its end: a further count could not
	// change the verdict, whatever it is, and is only asked for where it can.
	recount := func(ctx context.Context) (int64, int64, error) {
		n, err := s.client.Count(ctx, count)
		if err != nil {
			return 0, 0, fmt.Errorf("count after reading: %w", err)
		}
		if proven { // what the store took meanwhile is not what is missing
			return min(before, n), n, nil
		}
		return before, n, nil
	}
	after := before
	if g.rows != before || s.lengths.onLimit(g.rows, caps) {
		if before, after, err = recount(ctx); err != nil {
			return fatal, err
		}
		recount = nil
	}
	s.cfg.Progress("read", g.rows, after)
	now, err := s.scope(ctx, caps)
	if err != nil {
		return fatal, err
	}
	if now.kind != scope.kind || now.union != scope.union {
		return short, fmt.Errorf("%w: a graph of rsbridge itself appeared while the default graph was read", ErrShort)
	}
	if v, err = s.lengths.judge(g.rows, before, after, caps); err != nil {
		return v, err
	}
	sc.took(ctx, s, g, scope, before, after, recount)
	sc.stats.Way, sc.answer = string(way), sc.sum.String()
	return fine, nil
}

// counting asks for a count beside the reading that begins now, where the store may be
// asked two things at once (Endpoint.Concurrency), else after it.
type counting struct {
	sofar atomic.Int64 // 0 until it has come
	ended chan struct{}
	err   error
	stop  func()
}

// errNotCounted is of a count that was not begun.
var errNotCounted = errors.New("not counted")

func (s *Source) counting(ctx context.Context, query string, begin bool) *counting {
	c := &counting{ended: make(chan struct{})}
	if !begin {
		c.err, c.stop = errNotCounted, func() {}
		close(c.ended)
		return c
	}
	ctx, cancel := context.WithCancel(ctx)
	c.stop = func() {
		cancel()
		<-c.ended
	}
	go func() {
		defer close(c.ended)
		n, err := s.client.Count(ctx, query)
		c.err = err
		c.sofar.Store(n)
	}()
	return c
}

func (c *counting) wait() (int64, error) {
	<-c.ended
	return c.sofar.Load(), c.err
}

// took notes what was read, to be verified once doubles are known. recount, if
// it is not nil, gives the counts that were not needed yet.
func (sc *Scan) took(ctx context.Context, s *Source, g *grouper, scope *scope, before, after int64, recount func(context.Context) (before, after int64, err error)) {
	sc.group, sc.rows, sc.scope = g, g.rows, scope
	sc.verify = func(distinct int64, d *doubles) (err error) {
		before, after := before, after
		if recount != nil && d.n > 0 {
			if before, after, err = recount(ctx); err != nil {
				return err
			}
		}
		least, most := min(before, after), max(before, after)
		return s.verify(ctx, scope, distinct, least, most-least, d)
	}
}

// isRound tells whether a number of rows looks like somebody's limit: some thousands,
// 1, 2, 2.5 or 5 times a power of ten from 100 on, or a power of two from 1,024 on.
func isRound(n int64) bool {
	if n < 100 {
		return false
	}
	if n%1000 == 0 || n >= 1024 && n&(n-1) == 0 {
		return true
	}
	for n%10 == 0 {
		n /= 10
	}
	return slices.Contains([]int64{1, 2, 25, 5}, n)
}

// selectedEntities runs the user's SELECT and marks what it names.
func (s *Source) selectedEntities(ctx context.Context, g *grouper) error {
	n, err := s.eachSelected(ctx, s.cfg.Select.Query, g.selected)
	if err != nil {
		return fmt.Errorf("select query: %w", err)
	}
	s.log.Debug("the select query named entities", "rows", n)
	return nil
}

// eachSelected runs a SELECT and gives the IRIs that it names as ?entity. One may
// come more than once.
func (s *Source) eachSelected(ctx context.Context, query string, f func(entity string) error) (rows int64, err error) {
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return 0, err
	}
	asked, err := s.overGraphs(ctx, query)
	if err != nil {
		return 0, err
	}
	for first := int64(-1); ; first = rows {
		if rows, err = s.selectOnce(ctx, asked.query, f); err != nil {
			return rows, err
		}
		likely := s.lengths.onLimit(rows, caps) || isRound(rows) && rows >= 1000
		if !likely && !s.lengths.mayBeCut(rows, caps) {
			return rows, nil
		}
		counted, err := s.client.Count(ctx, asked.count)
		switch {
		case err != nil:
			return rows, fmt.Errorf("%d rows came, which may be a limit of the store, and counting them failed: %w", rows, err)
		case counted <= rows:
			s.lengths.noteWhole(rows)
			return rows, nil
		case first < 0: // a store that is written to may count more than it gave
		case !likely && rows > first:
			return rows, nil // a limit would have cut both alike
		default:
			return rows, fmt.Errorf("%w: %d rows came of %d; choose a narrower query, or raise the row limit of the store", ErrShort, rows, counted)
		}
	}
}

func (s *Source) selectOnce(ctx context.Context, query string, f func(entity string) error) (rows int64, err error) {
	sol, err := s.client.Select(ctx, query)
	if err != nil {
		return 0, err
	}
	col := slices.Index(sol.Vars, "entity")
	if col < 0 {
		sol.Close()
		return 0, errors.New("the answer has no ?entity")
	}
	for row, err := range sol.Rows {
		if err != nil {
			return rows, err
		}
		rows++
		if row[col].Kind() == rdfres.KindIRI {
			if err := f(row[col].IRI()); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}
