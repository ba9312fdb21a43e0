package sparqlsrc

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Stats of a scan, complete once it is read.
type Stats struct {
	Triples int64 // in the graphs; one that stands in several counts once (before Descriptions was read: rows received)
	Covered int64 // of them in at least one description; 0 for a CONSTRUCT, whose triples need not be in the graphs
	LeftOut int64 // by the selection; 0 for a CONSTRUCT

	// Constructed are the triples of the descriptions that a CONSTRUCT made: what
	// it left out of the graphs is not known.
	Constructed int64

	Own       int64 // in graphs of rsbridge's own bookkeeping, which are no data: left out, and not among Triples
	Entities  int64 // described, orphans included
	Orphans   int64 // components, and parts of components, that no IRI leads to
	Requests  int64
	Bytes     int64
	Truncated int64  // answers that were cut and asked again
	Way       string // how it was read: a sparql.Reading, or one of Strategies
}

// Scan is a complete, verified download, grouped by entity on disk. Close it.
type Scan struct {
	group   *grouper
	cfg     *Config
	selects bool             // there is a selection
	marked  bool             // by the user's SELECT
	built   bool             // by a CONSTRUCT
	byGraph bool             // each named graph is an entity; its blank nodes have no names yet
	rest    sparql.Remainder // of a dump
	stats   Stats
	scope   *scope                                 // that was read
	verify  func(distinct int64, d *doubles) error // nil where no count is known
	rows    int64
	sum     *answer
	answer  string // by sum, of a whole graph that came in one
	once    bool   // no triple came twice
	same    bool   // it is that of before
}

// Failed are the entities that could not be described, with the reason (work
// limit, bounds), where they are very many some of them. Entities beyond
// MaxDescriptionTriples appear once Descriptions was read.
func (sc *Scan) Failed() map[string]error { return sc.group.failed.why }

// FailedCount is how many there are.
func (sc *Scan) FailedCount() int64 { return sc.group.failed.count() }

// IsFailed tells whether the entity could not be described, or may be an orphan
// component that could not be named: what is known of it must be kept.
func (sc *Scan) IsFailed(entity string) bool {
	return sc.group.failed.has(entity) || (sc.group.orphanFailed && strings.HasPrefix(entity, orphanPrefix))
}

// Stats tells what the scan found; complete once Descriptions was read to its end.
func (sc *Scan) Stats() Stats { return sc.stats }

// Remainder is what the dump holds outside of this set and of Config.Others.
func (sc *Scan) Remainder() sparql.Remainder { return sc.rest }

// Close removes the spill files. It is safe to call twice.
func (sc *Scan) Close() error { return sc.group.close() }

const rdfType = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

// Descriptions yields the entities in the order of rdfres.EntityKey. Ranging
// over it again reads everything again. The sequence ends after the first error.
func (sc *Scan) Descriptions() iter.Seq2[rdfres.Description, error] {
	return func(yield func(rdfres.Description, error) bool) {
		if sc.same {
			return
		}
		err := sc.read(yield)
		if err != nil && !errors.Is(err, errStopped) {
			yield(rdfres.Description{}, fmt.Errorf("read the scan: %w", err))
		}
	}
}

var errStopped = errors.New("stopped")

// entityGroup is what the sorter holds of one entity.
type entityGroup struct {
	entity   string // by a record, or by the subject of the first line
	selected bool
	class    bool
	own      bool // has lines of its own, not only inbound ones
	over     bool // of MaxDescriptionTriples
	buf      []byte
	ends     []int
	flags    []byte
}

func (sc *Scan) read(yield func(rdfres.Description, error) bool) (err error) {
	covered, err := extsort.New(sc.group.dir, sc.cfg.MemoryBytes/16)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, covered.Close()) }()
	st := &sc.stats
	st.Triples, st.Covered, st.LeftOut, st.Entities, st.Orphans = sc.group.distinctBlank, 0, 0, 0, 0
	var failedTriples int64
	twice := doubles{n: sc.group.doubles.n, lines: slices.Clone(sc.group.doubles.lines)}
	lines := lineSet{dir: sc.group.dir, memory: sc.cfg.MemoryBytes / 16}
	defer func() { err = errors.Join(err, lines.close()) }()
	classes := map[rdfres.Term]bool{}
	for _, class := range sc.cfg.Select.Classes {
		classes[rdfres.NewIRI(class)] = true
	}
	var g entityGroup
	var key rdfres.Digest
	var last []byte
	flush := func() error {
		if g.entity == "" {
			return nil
		}
		orphan := strings.HasPrefix(g.entity, orphanPrefix) && !sc.byGraph
		ok := sc.admits(&g, orphan)
		if g.over && ok {
			sc.group.fail(g.entity, fmt.Errorf("its description has more than %d triples (%s)", sc.cfg.MaxDescriptionTriples, sc.cfg.Names.Of("max_description_triples")))
		}
		var described rdfres.Description
		if ok && !g.over {
			var err error
			if described, err = sc.describe(&g); err != nil {
				sc.group.fail(g.entity, err)
			}
		}
		switch {
		case sc.group.failed.has(g.entity):
			failedTriples += int64(len(g.ends))
			return nil
		case !ok:
			return nil
		}
		st.Entities++
		if orphan {
			st.Orphans++
		}
		for i, flag := range g.flags {
			if flag == flagOwn || flag == flagBlank {
				st.Covered++
				continue
			}
			h := labelKey(g.line(i))
			if err := covered.Add(h[:], nil); err != nil {
				return err
			}
		}
		if st.Entities%128 == 0 {
			sc.cfg.Progress("describe", st.Triples, max(st.Triples, sc.group.rows))
		}
		if !yield(described, nil) {
			return errStopped
		}
		return nil
	}
	line := func(v []byte) {
		line, flag := v[:len(v)-1], v[len(v)-1]
		if len(last) > 0 && bytes.Equal(last, line) {
			if flag == flagOwn {
				twice.add(line)
			}
			return
		}
		last = append(last[:0], line...)
		if flag == flagOwn || flag == flagOwnShared {
			st.Triples++
		}
		if flag != flagInbound {
			g.own = true
			if g.entity == "" {
				g.entity = iriOf(line[:termEnd(line, 0)])
			}
			if len(classes) > 0 && line[0] == '<' {
				s, p := cutLine(line)
				g.class = g.class || string(line[s+1:p]) == rdfType && classes[rdfres.Term(line[p+1:])]
			}
		}
		if len(g.ends) >= sc.cfg.MaxDescriptionTriples {
			g.over = true
			return
		}
		g.buf = append(g.buf, line...)
		g.ends = append(g.ends, len(g.buf))
		g.flags = append(g.flags, flag)
	}
	end := func() error {
		if !lines.empty() {
			for v, err := range lines.inOrder() {
				if err != nil {
					return err
				}
				line(v)
			}
			if err := lines.reset(); err != nil {
				return err
			}
		}
		return flush()
	}
	if err := sc.group.endRun(); err != nil {
		return err
	}
	for r, err := range sc.group.entities.Sort() {
		if err != nil {
			return err
		}
		if !bytes.Equal(key[:], r.Key) {
			if err := end(); err != nil {
				return err
			}
			copy(key[:], r.Key)
			last = last[:0]
			g = entityGroup{buf: g.buf[:0], ends: g.ends[:0], flags: g.flags[:0]}
		}
		v := r.Value
		switch v[0] {
		case recordEntity:
			if g.entity == "" {
				g.entity = string(v[1:])
			}
		case recordSelected:
			g.selected = true
		case recordRun:
			subject, err := lines.addRun(v[1:])
			if err != nil {
				return err
			}
			if g.entity == "" {
				g.entity = iriOf(subject)
			}
		default:
			if lines.empty() {
				line(v)
			} else if err := lines.add(v); err != nil {
				return err
			}
		}
	}
	if err := end(); err != nil {
		return err
	}
	sc.cfg.Progress("describe", st.Triples, st.Triples)
	if sc.verify != nil {
		if err := sc.verify(st.Triples, &twice); err != nil {
			return err
		}
	}
	sc.once = twice.n == 0
	var h []byte
	for r, err := range covered.Sort() {
		if err != nil {
			return err
		}
		if !bytes.Equal(h, r.Key) {
			h = append(h[:0], r.Key...)
			st.Covered++
		}
	}
	if sc.built { // what was made is not what the graphs hold
		st.Triples, st.Constructed, st.Covered = sc.rows, st.Covered, 0
	} else if sc.selects {
		st.LeftOut = max(0, st.Triples-st.Covered-failedTriples)
	}
	return nil
}

// admits tells whether an entity is of the set.
func (sc *Scan) admits(g *entityGroup, orphan bool) bool {
	sel := sc.cfg.Select
	switch {
	case orphan:
		return !sc.selects
	case !g.own && !g.selected, len(g.ends) == 0:
		return false
	case len(sel.Classes) > 0 && !g.class && !sc.built:
		return false
	case sc.marked && !g.selected:
		return false
	}
	return hasPrefix(g.entity, sel.Prefixes)
}

func hasPrefix(entity string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(entity, p) {
			return true
		}
	}
	return len(prefixes) == 0
}

func (g *entityGroup) line(i int) []byte {
	from := 0
	if i > 0 {
		from = g.ends[i-1]
	}
	return g.buf[from:g.ends[i]]
}

// describe is the description of an entity. The blank nodes of a graph get their
// names here: they are nobody else's.
func (sc *Scan) describe(g *entityGroup) (rdfres.Description, error) {
	d := g.description()
	if !sc.byGraph {
		return d, nil
	}
	var err error
	d.Triples, err = nameOwn(sc.cfg, d.Entity, d.Triples)
	return d, err
}

// description makes the terms: one string for all of them.
func (g *entityGroup) description() rdfres.Description {
	all := string(g.buf)
	d := rdfres.Description{Entity: g.entity, Triples: make([]rdfres.Triple, len(g.ends))}
	from := 0
	for i, to := range g.ends {
		d.Triples[i] = tripleOf(all[from:to])
		from = to
	}
	return d
}
