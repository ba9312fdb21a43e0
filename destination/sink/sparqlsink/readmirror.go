package sparqlsink

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// errShort says that a store gave less than it counts.
var errShort = errors.New("the store gave less than it counts")

// ReadSingle reads the graph of a mirror: whole where the store gives as much as
// it counts, in parts where it cuts long answers. One that breaks off is asked for
// again, since that may have been the network; the second time it is a limit. A triple
// may come twice. got is raised by add.
func (m *Mirror) ReadSingle(ctx context.Context, got *int64, add func(rdfres.Triple) error) error {
	for attempt := 0; ; attempt++ {
		before, err := m.Count(ctx)
		if err != nil {
			return err
		}
		start := *got
		parts := m.stillCuts(ctx, before)
		if parts {
			err = m.readParts(ctx, add)
		} else {
			for t, terr := range m.graph(ctx) {
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
				m.readInParts(n, before)
			}
			continue
		}
		if err != nil {
			return err
		}
		if before < 0 || n == before {
			return nil
		}
		after, err := m.Count(ctx)
		if err != nil {
			return err
		}
		switch least := min(before, after); {
		case n >= least:
			return nil
		case parts && attempt > 0:
			return fmt.Errorf("%w: %d triples came of %d, read in parts: is it written to by others?", errShort, n, least)
		case !parts:
			m.readInParts(n, least)
		}
		// Reading again only adds doubles, which the merge passes over.
	}
}

// cuts tells whether an answer of so many rows would be cut.
func (m *Mirror) cuts(rows int64) bool {
	if m.Client.Endpoint().Query == "" || rows < 0 {
		return false
	}
	limit := m.rowLimit()
	return limit > 0 && rows >= limit
}

// stillCuts is cuts before much is read: where only the probe says so, which may be long
// ago, it looks whether the limit was raised since.
func (m *Mirror) stillCuts(ctx context.Context, rows int64) bool {
	if limit := m.rowLimit(); m.cuts(rows) && limit == m.Caps.RowLimit && limit != m.cutAt {
		if n, err := m.some(ctx, limit+1); err == nil && n > limit {
			m.Log.Info("the mirror's store does not cut answers any more where it did", "rows", limit)
			m.Caps.RowLimit = 0
		}
	}
	return m.cuts(rows)
}

// some counts the rows of an answer that could have so many.
func (m *Mirror) some(ctx context.Context, most int64) (n int64, err error) {
	s, err := m.Client.Select(ctx, fmt.Sprintf("SELECT ?s WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } LIMIT %d", most))
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

// rowLimit is where the store cuts answers, as far as is known; 0 for nowhere.
func (m *Mirror) rowLimit() (limit int64) {
	for _, l := range []int64{m.Caps.RowLimit, m.Client.MaxRows(), m.cutAt} {
		if l > 0 && (limit == 0 || l < limit) {
			limit = l
		}
	}
	return limit
}

// rows yields what a pattern gives for its variables: in one answer where the
// store gives as many rows as it counts, in parts by the first variable where it
// cuts long answers. only, where given, says for which values of that variable
// the parts are read. A row may come twice, and is valid during the call.
func (m *Mirror) rows(ctx context.Context, pattern string, vars []string, only func(string) (bool, error), row func(sparql.Row) error) error {
	counted := func() (int64, error) {
		return m.Client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+pattern+"}")
	}
	least, err := counted()
	if err != nil {
		return err
	}
	if !m.stillCuts(ctx, least) {
		came, err := m.oneAnswer(ctx, pattern, vars, row)
		if errors.Is(err, sparql.ErrTruncated) { // as in readSingle
			came, err = m.oneAnswer(ctx, pattern, vars, row)
		}
		broken := errors.Is(err, sparql.ErrTruncated)
		if err != nil && !broken || err == nil && came >= least {
			return err
		}
		now, err := counted()
		if err != nil || !broken && came >= now {
			return err
		}
		m.readInParts(came, now)
	}
	p := m.parts(pattern, vars[0], vars[1:]...)
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
func (m *Mirror) oneAnswer(ctx context.Context, pattern string, vars []string, row func(sparql.Row) error) (n int64, err error) {
	s, err := m.Client.SelectAs(ctx, "SELECT "+strings.Join(vars, " ")+" WHERE { "+pattern+"}", m.selectReading())
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

// selectReading is the format of long answers: the fastest of those that the probe
// found, as for a scan. Of tab-separated values the client sees again that they are
// in the W3C form, and chooses itself where nothing was found.
func (m *Mirror) selectReading() sparql.Reading {
	i := slices.IndexFunc(m.Caps.Readings, sparql.Reading.Selects)
	if i < 0 || m.Caps.Readings[i] == sparql.ReadSelectTSV {
		return ""
	}
	return m.Caps.Readings[i]
}

// readInParts notes that an answer ended after the rows that came.
func (m *Mirror) readInParts(came, counted int64) {
	m.Log.Info("the mirror does not come in one answer; it is read in parts", "came", came, "counted", counted)
	m.cutAt = max(1, came)
}

// parts reads a pattern of the mirror in parts.
func (m *Mirror) parts(pattern, key string, others ...string) *sparql.Parts {
	p := &sparql.Parts{Client: m.Client, As: m.selectReading(), Pattern: pattern, Key: key, Others: others, Limit: m.rowLimit(), Pages: true}
	if n := m.Caps.ValuesLimit; n > 0 {
		p.Batch = min(n, 200)
	}
	return p
}

func (m *Mirror) pattern() string {
	if m.Layout.Graph == "" {
		return "?s ?p ?o . "
	}
	return "GRAPH <" + m.Layout.Graph + "> { ?s ?p ?o } "
}

func (m *Mirror) readParts(ctx context.Context, add func(rdfres.Triple) error) error {
	p := m.parts(m.pattern(), "?s", "?p", "?o")
	p.Confirm = true // rows that come twice would stand for others that do not come
	row := func(r sparql.Row) error { return add(rdfres.Triple{S: r[0], P: r[1], O: r[2]}) }
	err := p.Keys(ctx, func(subjects []string) error { return p.Of(ctx, subjects, row) })
	if err == nil {
		err = p.Blanks(ctx, row) // of somebody else
	}
	return err
}

// Count asks for the number of triples, -1 where it cannot be asked.
func (m *Mirror) Count(ctx context.Context) (int64, error) {
	if !m.Countable() {
		return -1, nil
	}
	return m.Client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+m.pattern()+"}")
}

// Countable tells whether the store can be asked for what stands in the graph alone.
func (m *Mirror) Countable() bool {
	return m.Client.Endpoint().Query != "" && (m.Layout.Graph != "" || !m.Caps.UnionDefault)
}

// graph streams the single graph by the fastest way that the store offers.
func (m *Mirror) graph(ctx context.Context) iter.Seq2[rdfres.Triple, error] {
	pattern := "{ " + m.pattern() + "}"
	e := m.Client.Endpoint()
	ways := slices.Clone(m.Caps.Readings)
	ways = append(ways, sparql.ReadGraphStore, sparql.ReadConstruct)
	for _, way := range ways {
		switch {
		case way == sparql.ReadGraphStore && e.GraphStore != "":
			return m.Client.GetGraph(ctx, m.Layout.Graph)
		case e.Query == "" || m.Layout.Graph == "" && m.Caps.UnionDefault:
		case way == sparql.ReadConstruct:
			return m.Client.Construct(ctx, "CONSTRUCT { ?s ?p ?o } WHERE "+pattern)
		case way.Selects():
			return func(yield func(rdfres.Triple, error) bool) {
				stopped := errors.New("stopped")
				_, err := m.oneAnswer(ctx, m.pattern(), []string{"?s", "?p", "?o"}, func(r sparql.Row) error {
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
