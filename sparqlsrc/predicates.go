package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	// bunchTriples is how many triples one answer may have that is asked for by
	// predicates. Virtuoso ends at a million.
	bunchTriples = 250_000
	// bunchPredicates bounds the length of the question.
	bunchPredicates = 100
	// manyTriples are read by predicates from a store that makes answers whole, also when
	// nothing forbids one answer.
	manyTriples = 500_000
)

// bunch is some predicates, or one that no query can name, and how many triples
// without blank nodes the store counts of each.
type bunch struct {
	predicates []string // escaped
	counts     []int64
	total      int64
	filter     string // instead of predicates
}

func (b *bunch) pattern(all string) string {
	if b.filter != "" {
		return all + b.filter
	}
	return "VALUES ?p { " + strings.Join(b.predicates, " ") + " } " + all
}

func (b *bunch) add(predicate string, n int64) {
	b.predicates, b.counts, b.total = append(b.predicates, predicate), append(b.counts, n), b.total+n
}

// halves cuts a bunch of several predicates in two.
func (b *bunch) halves() (halves [2]bunch) {
	for i := range b.predicates {
		halves[2*i/len(b.predicates)].add(b.predicates[i], b.counts[i])
	}
	return halves
}

// byManyPredicates tells whether a scope is read by predicates before anything else
// is tried: one graph in a store that makes answers whole. Virtuoso gives a million triples
// by CONSTRUCT in a third of its time for JSON, and more than that not in one answer.
func (s *Source) byManyPredicates(ctx context.Context, caps sparql.Capabilities, sc *scope, ways []sparql.Reading) (bool, error) {
	if s.cfg.Strategy != "" || !caps.WholeFirst() || !constructs(caps, sc) || len(ways) == 0 || ways[0].Selects() ||
		caps.RowLimit > 0 && caps.RowLimit < 2*bunchTriples {
		return false, nil
	}
	n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+sc.all()+"}")
	if err != nil {
		return false, fmt.Errorf("count before reading: %w", err)
	}
	return n > s.many, nil
}

// constructs tells whether CONSTRUCT gives what a pattern of the scope does.
func constructs(caps sparql.Capabilities, sc *scope) bool {
	return sc.single() && !sc.union && slices.Contains(caps.Readings, sparql.ReadConstruct)
}

// byPredicates reads the triples without blank nodes by bunches of predicates, as
// many at once as the store may be asked (Endpoint.Concurrency). A bunch that is cut
// or refused, or does not agree with its count, is asked for again as two; one
// predicate as a SELECT, and then by the hash of its subjects. again is how many
// triples came in vain.
func (s *Source) byPredicates(ctx context.Context, caps sparql.Capabilities, sc *scope, g *grouper, read func()) (again int64, err error) {
	r := &predicateReader{s: s, caps: caps, g: g, read: read, all: sc.all() + "FILTER(isIRI(?s)) FILTER(!isBlank(?o)) "}
	bunches, err := r.bunches(ctx)
	if err != nil {
		return 0, fmt.Errorf("count the triples of each predicate: %w", err)
	}
	construct := constructs(caps, sc)
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(max(1, s.client.Endpoint().Concurrency))
	for i := range bunches {
		readers.Go(func() error { return r.bunch(ctx, &bunches[i], construct) })
	}
	err = readers.Wait()
	return r.again, err
}

type predicateReader struct {
	s    *Source
	caps sparql.Capabilities
	all  string // pattern

	mu    sync.Mutex // guards what follows
	g     *grouper
	read  func()
	again int64
}

// bunches asks for the predicates.
func (r *predicateReader) bunches(ctx context.Context) (out []bunch, err error) {
	most := int64(bunchTriples)
	for _, limit := range []int64{r.caps.RowLimit, r.s.lengths.lastShort()} {
		if limit > 0 {
			most = min(most, limit*2/3)
		}
	}
	sol, err := r.s.client.SelectAs(ctx, "SELECT ?p (COUNT(*) AS ?n) WHERE { "+r.all+"} GROUP BY ?p", r.caps.SelectReading())
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	var b bunch
	for row, err := range sol.Rows {
		if err != nil {
			return nil, err
		}
		if rows++; rows > maxPartitions {
			sol.Close()
			return nil, fmt.Errorf("there are more than %d", maxPartitions)
		}
		if len(row) != 2 || row[0].Kind() != rdfres.KindIRI {
			continue // of nothing at all
		}
		lexical, _, _ := row[1].Literal()
		n, err := strconv.ParseInt(lexical, 10, 64)
		if err != nil {
			sol.Close()
			return nil, fmt.Errorf("%q is no number", lexical)
		}
		p, err := sparql.NameIRI(row[0].IRI())
		if err != nil {
			out = append(out, bunch{total: n, filter: "FILTER(STR(?p) = " + sparql.EscapeString(row[0].IRI()) + ") "})
			continue
		}
		if len(b.predicates) > 0 && (b.total+n > most || len(b.predicates) == bunchPredicates) {
			out, b = append(out, b), bunch{}
		}
		b.add(p, n)
	}
	if len(b.predicates) > 0 {
		out = append(out, b)
	}
	return out, nil
}

// bunch reads one.
func (r *predicateReader) bunch(ctx context.Context, b *bunch, construct bool) error {
	pattern := b.pattern(r.all)
	rows := int64(0)
	add := func(s, p, o []byte) error {
		rows++
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.g.add(s, p, o)
	}
	var err error
	if construct {
		err = r.s.client.StreamConstruct(ctx, "CONSTRUCT { ?s ?p ?o } WHERE { "+pattern+"}", add)
	} else {
		err = r.s.client.StreamSelect(ctx, "SELECT ?s ?p ?o WHERE { "+pattern+"}", r.caps.SelectReading(), add)
	}
	if err == nil && rows != b.total {
		var after int64
		if after, err = r.s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+pattern+"}"); err == nil && (rows < min(b.total, after) || rows > max(b.total, after)) {
			err = fmt.Errorf("%w: %d triples of %d predicates came; it counts %d before and %d after", ErrShort, rows, max(1, len(b.predicates)), b.total, after)
		}
	}
	if err == nil || !errors.Is(err, ErrShort) && !sparql.IsTooLarge(err) {
		r.took(0)
		return err
	}
	r.s.log.Info("triples of some predicates did not come in one answer", "predicates", max(1, len(b.predicates)), "triples", b.total, "err", err)
	r.took(rows)
	switch {
	case len(b.predicates) > 1:
		for _, half := range b.halves() {
			if err := r.bunch(ctx, &half, construct); err != nil {
				return err
			}
		}
		return nil
	case construct:
		return r.bunch(ctx, b, false)
	}
	again, err := r.s.parts(r.caps, pattern).All(ctx, func(row sparql.Row) error { return add([]byte(row[0]), []byte(row[1]), []byte(row[2])) })
	r.took(again)
	if errors.Is(err, sparql.ErrTruncated) {
		err = fmt.Errorf("%w: %w", ErrShort, err)
	}
	return err
}

// took ends an answer, of which some triples came in vain.
func (r *predicateReader) took(inVain int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again += inVain
	r.read()
}
