package sparqlsink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// errShort is for answers shorter than their count.
var errShort = errors.New("the store gave less than it counts")

// reader reads a mirror back.
type reader struct {
	m     *Mirror
	cutAt int64 // rows of an answer cut short; 0 none
}

// ReadSingle reads the graph of a mirror: whole, or in parts if the store cuts long answers.
// A broken answer is asked for again, since the network may be the cause; the second time it
// is a limit. A triple may come twice. got is raised by add.
func (rd *reader) ReadSingle(ctx context.Context, got *int64, add func(rdfres.Triple) error) error {
	for attempt := 0; ; attempt++ {
		before, err := rd.Count(ctx)
		if err != nil {
			return err
		}
		start := *got
		parts := rd.stillCuts(ctx, before)
		if parts {
			err = rd.readParts(ctx, add)
		} else {
			for t, terr := range rd.graph(ctx) {
				if err = terr; err == nil {
					err = add(t)
				}
				if err != nil {
					break
				}
			}
		}
		n := *got - start
		if errors.Is(err, sparql.ErrTruncated) && !parts && attempt < 2 {
			if attempt > 0 {
				rd.readInParts(n, before)
			}
			continue
		}
		if err != nil {
			return err
		}
		if before < 0 || n == before {
			return nil
		}
		after, err := rd.Count(ctx)
		if err != nil {
			return err
		}
		switch least := min(before, after); {
		case n >= least:
			return nil
		case parts && attempt > 0:
			return fmt.Errorf("%w: %d triples came of %d, read in parts: is it written to by others?", errShort, n, least)
		case !parts:
			rd.readInParts(n, least)
		}
		// Reading again only adds doubles for the merge to pass over.
	}
}

// cuts tells whether an answer of so many rows would be cut.
func (rd *reader) cuts(rows int64) bool {
	if rd.m.Client.Endpoint().Query == "" || rows < 0 {
		return false
	}
	limit := rd.rowLimit()
	return limit > 0 && rows >= limit
}

// stillCuts is cuts before much is read. The probe may be old: without newer evidence it
// looks for a raised limit.
func (rd *reader) stillCuts(ctx context.Context, rows int64) bool {
	if limit := rd.rowLimit(); rd.cuts(rows) && limit == rd.m.Caps.RowLimit && limit != rd.cutAt {
		if n, err := rd.some(ctx, limit+1); err == nil && n > limit {
			rd.m.Log.Info("the mirror's store does not cut answers any more where it did", "rows", limit)
			rd.m.Caps.RowLimit = 0
		}
	}
	return rd.cuts(rows)
}

// some counts the rows of an answer, up to a number.
func (rd *reader) some(ctx context.Context, most int64) (n int64, err error) {
	s, err := rd.m.Client.Select(ctx, fmt.Sprintf("SELECT ?s WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } LIMIT %d", most))
	if err != nil {
		return 0, err
	}
	for _, err := range s.Rows {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// rowLimit is the known limit of answers; 0 for none.
func (rd *reader) rowLimit() (limit int64) {
	for _, l := range []int64{rd.m.Caps.RowLimit, rd.m.Client.MaxRows(), rd.cutAt} {
		if l > 0 && (limit == 0 || l < limit) {
			limit = l
		}
	}
	return limit
}

// rows yields the rows of a pattern for its variables: in one answer, or in parts by the
// first variable if the store cuts long answers. only chooses values of the first variable;
// nil for all. A row may come twice, and is valid during the call.
func (rd *reader) rows(ctx context.Context, pattern string, vars []string, only func(string) (bool, error), row func(sparql.Row) error) error {
	counted := func() (int64, error) {
		return rd.m.Client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+pattern+"}")
	}
	least, err := counted()
	if err != nil {
		return err
	}
	if !rd.stillCuts(ctx, least) {
		came, err := rd.oneAnswer(ctx, pattern, vars, row)
		if errors.Is(err, sparql.ErrTruncated) { // as in readSingle
			came, err = rd.oneAnswer(ctx, pattern, vars, row)
		}
		broken := errors.Is(err, sparql.ErrTruncated)
		if err != nil && !broken || err == nil && came >= least {
			return err
		}
		now, err := counted()
		if err != nil || !broken && came >= now {
			return err
		}
		rd.readInParts(came, now)
	}
	p := rd.parts(pattern, vars[0], vars[1:]...)
	p.Confirm = true
	return p.Keys(ctx, func(keys []string) error {
		if only != nil {
			wanted := keys[:0]
			for _, k := range keys {
				ok, err := only(k)
				if err != nil {
					return err
				}
				if ok {
					wanted = append(wanted, k)
				}
			}
			keys = wanted
		}
		return p.Of(ctx, keys, row)
	})
}

// oneAnswer yields the rows of one query, and counts them.
func (rd *reader) oneAnswer(ctx context.Context, pattern string, vars []string, row func(sparql.Row) error) (n int64, err error) {
	s, err := rd.m.Client.SelectAs(ctx, "SELECT "+strings.Join(vars, " ")+" WHERE { "+pattern+"}", rd.selectReading())
	if err != nil {
		return 0, err
	}
	for r, err := range s.Rows {
		if err == nil && len(r) != len(vars) {
			err = errors.New("the store answered with other columns than asked for")
		}
		if err == nil {
			n++
			err = row(r)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// selectReading is the format of long answers: the fastest one of the probe, as for a
// scan. For tab-separated values, and without a finding, the client chooses.
func (rd *reader) selectReading() sparql.Reading {
	i := slices.IndexFunc(rd.m.Caps.Readings, sparql.Reading.Selects)
	if i < 0 || rd.m.Caps.Readings[i] == sparql.ReadSelectTSV {
		return ""
	}
	return rd.m.Caps.Readings[i]
}

// readInParts notes the length of a cut answer.
func (rd *reader) readInParts(came, counted int64) {
	rd.m.Log.Info("the mirror does not come in one answer; it is read in parts", "came", came, "counted", counted)
	rd.cutAt = max(1, came)
}

// parts reads a pattern of the mirror in parts.
func (rd *reader) parts(pattern, key string, others ...string) *sparql.Parts {
	p := &sparql.Parts{Client: rd.m.Client, As: rd.selectReading(), Pattern: pattern, Key: key, Others: others, Limit: rd.rowLimit(), Pages: true}
	if n := rd.m.Caps.ValuesLimit; n > 0 {
		p.Batch = min(n, 200)
	}
	return p
}

func (rd *reader) pattern() string {
	if rd.m.Layout.Graph == "" {
		return "?s ?p ?o . "
	}
	return "GRAPH <" + rd.m.Layout.Graph + "> { ?s ?p ?o } "
}

func (rd *reader) readParts(ctx context.Context, add func(rdfres.Triple) error) error {
	p := rd.parts(rd.pattern(), "?s", "?p", "?o")
	p.Confirm = true // doubles would stand for missing rows
	row := func(r sparql.Row) error { return add(rdfres.Triple{S: r[0], P: r[1], O: r[2]}) }
	err := p.Keys(ctx, func(subjects []string) error { return p.Of(ctx, subjects, row) })
	if err == nil {
		err = p.Blanks(ctx, row) // of somebody else
	}
	return err
}

// Count asks for the number of triples, -1 for unknown.
func (rd *reader) Count(ctx context.Context) (int64, error) {
	if !rd.Countable() {
		return -1, nil
	}
	return rd.m.Client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+rd.pattern()+"}")
}

// Countable tells of a store with queries for the graph alone.
func (rd *reader) Countable() bool {
	return rd.m.Client.Endpoint().Query != "" && (rd.m.Layout.Graph != "" || !rd.m.Caps.UnionDefault)
}

// graph streams the single graph by the fastest way of the store.
func (rd *reader) graph(ctx context.Context) iter.Seq2[rdfres.Triple, error] {
	pattern := "{ " + rd.pattern() + "}"
	e := rd.m.Client.Endpoint()
	ways := slices.Clone(rd.m.Caps.Readings)
	ways = append(ways, sparql.ReadGraphStore, sparql.ReadConstruct)
	for _, way := range ways {
		switch {
		case way == sparql.ReadGraphStore && e.GraphStore != "":
			return rd.m.Client.GetGraph(ctx, rd.m.Layout.Graph)
		case e.Query == "" || rd.m.Layout.Graph == "" && rd.m.Caps.UnionDefault:
		case way == sparql.ReadConstruct:
			return rd.m.Client.Construct(ctx, "CONSTRUCT { ?s ?p ?o } WHERE "+pattern)
		case way.Selects():
			return func(yield func(rdfres.Triple, error) bool) {
				stopped := errors.New("stopped")
				_, err := rd.oneAnswer(ctx, rd.pattern(), []string{"?s", "?p", "?o"}, func(r sparql.Row) error {
					if !yield(rdfres.Triple{S: r[0], P: r[1], O: r[2]}, nil) {
						return stopped
					}
					return nil
				})
				if err != nil && err != stopped {
					yield(rdfres.Triple{}, err)
				}
			}
		}
	}
	return func(yield func(rdfres.Triple, error) bool) {
		yield(rdfres.Triple{}, errors.New("the store offers no way to read a whole graph"))
	}
}

// Asks tells of a store with a query address.
func (rd *reader) Asks() bool { return rd.m.Client.Endpoint().Query != "" }

// ReadGraph gives the triples of one graph.
func (rd *reader) ReadGraph(ctx context.Context, graph string) iter.Seq2[rdfres.Triple, error] {
	return rd.m.Client.GetGraph(ctx, graph)
}

// ReadGraphs gives the triples of all wanted graphs.
func (rd *reader) ReadGraphs(ctx context.Context, wanted func(string) (bool, error), add func(string, rdfres.Triple) error) error {
	const pattern = "GRAPH ?g { ?s ?p ?o } "
	return rd.rows(ctx, pattern, []string{"?g", "?s", "?p", "?o"}, wanted, func(r sparql.Row) error {
		ok, err := wanted(r[0].IRI())
		if err != nil || !ok {
			return err
		}
		return add(r[0].IRI(), rdfres.Triple{S: r[1], P: r[2], O: r[3]})
	})
}

// Has asks for a triple.
func (rd *reader) Has(ctx context.Context, st *sink.Statement) (bool, error) {
	pattern := string(appendSPARQL([]byte("{\n"), st.Triple)) + "}"
	if g := rd.m.graphFor(st); g != "" {
		pattern = "{ GRAPH <" + g + "> " + pattern + " }"
	}
	return rd.m.Client.Ask(ctx, "ASK "+pattern)
}

// shows looks for a triple among all with its subject and predicate.
func (rd *reader) shows(ctx context.Context, st *sink.Statement) (there bool, err error) {
	pattern := string(st.Triple.S) + " " + string(st.Triple.P) + " ?o . "
	if g := rd.m.graphFor(st); g != "" {
		pattern = "GRAPH <" + g + "> { " + pattern + "} "
	}
	n, err := rd.oneAnswer(ctx, pattern, []string{"?o"}, func(r sparql.Row) error {
		there = there || rd.m.Layout.NormalForm.Term(r[0]) == rd.m.Layout.NormalForm.Term(st.Triple.O)
		return nil
	})
	if err == nil && rd.cuts(n) {
		err = errShort
	}
	return there, err
}
