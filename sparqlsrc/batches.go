package sparqlsrc

import (
	"bytes"
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

// byParts reads the whole scope in parts, for stores with a limit on answers. The triples
// with blank nodes come in one answer, because labels hold within one answer only. The
// others come by batches of subjects, or by the named partition. The sum is held against
// the counts taken before and after.
func (s *Source) byParts(ctx context.Context, by string, caps sparql.Capabilities, sc *Scan) (err error) {
	scope, err := s.scope(ctx, caps)
	if err != nil {
		return err
	}
	g, err := newGrouper(&s.cfg, s.scbd)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + scope.all() + "}"
	before, err := s.client.Count(ctx, count)
	if err != nil {
		return fmt.Errorf("count before reading: %w", err)
	}
	blankPattern := scope.all() + "FILTER(isBlank(?s) || isBlank(?o)) "
	anew := func() (err error) {
		if err = g.close(); err == nil {
			g, err = newGrouper(&s.cfg, s.scbd)
		}
		return err
	}
	for try := 1; ; try++ {
		err = s.readCounted(ctx, caps, blankPattern, by == "predicates" && constructs(caps, scope), g.add)
		if try == tries || !errors.Is(err, sparql.ErrTruncated) {
			break
		}
		s.log.Info("the answer with blank nodes broke off; it is asked for again", "err", err)
		if err := anew(); err != nil {
			return err
		}
	}
	if (errors.Is(err, ErrShort) || sparql.IsTooLarge(err)) && !s.scbd && scope.single() {
		s.log.Info("the triples with blank nodes do not come in one answer; reading them entity by entity", "err", err)
		if err := anew(); err != nil {
			return err
		}
		err = s.blanksByOwner(ctx, caps, scope, g, blankPattern)
	}
	if err != nil {
		return fmt.Errorf("read the triples with blank nodes: %w", err)
	}
	read := func() { s.cfg.Progress("read", g.rows, before) }
	again := int64(0)
	if by == "batches" {
		err = s.byBatches(ctx, caps, scope, g, read)
	} else {
		again, err = s.byPartitions(ctx, by, caps, scope, g, read)
	}
	if err != nil {
		return fmt.Errorf("read by %s: %w", by, err)
	}
	after, err := s.client.Count(ctx, count)
	if err != nil {
		return fmt.Errorf("count after reading: %w", err)
	}
	// An entity of several classes comes with each of them: only missing triples show
	// here, and took counts again without doubles.
	if n := g.rows - again; n < min(before, after) || n > max(before, after) && by != "classes" {
		return fmt.Errorf("%w: %d triples came by %s; it counts %d before and %d after", ErrShort, n, by, before, after)
	}
	sc.took(ctx, s, g, scope, before, after, nil)
	sc.stats.Way = by
	return nil
}

// manyEntities is how many entities are taken from a list at once; eachBatch makes
// as many queries of them as the store needs.
const manyEntities = 5000

// byBatches reads the triples without blank nodes by batches of subjects.
func (s *Source) byBatches(ctx context.Context, caps sparql.Capabilities, scope *scope, g *grouper, read func()) error {
	subjects, err := extsort.New(g.dir, s.cfg.MemoryBytes/4)
	if err != nil {
		return err
	}
	defer func() { _ = subjects.Close() }() // its folder goes with the grouper's
	err = s.eachSubject(ctx, caps, scope, scope.all(), func(entity string) error {
		key := rdfres.EntityKey(entity)
		return subjects.Add(key[:], []byte(entity))
	})
	if err != nil {
		return fmt.Errorf("enumerate the subjects: %w", err)
	}
	return eachOf(subjects, manyEntities, func(part []string) error {
		defer read()
		return s.ownTriples(ctx, caps, scope, part, "?o", func(t rdfres.Triple) error {
			if t.O[0] == '_' {
				return nil // came with the others
			}
			return g.add([]byte(t.S), []byte(t.P), []byte(t.O))
		})
	})
}

// blanksByOwner reads the triples with blank nodes by batches of their owners. Each batch
// has whole components, so their names are the same in every answer. Orphan components
// cannot be read by this: a higher count of the store is an error.
func (s *Source) blanksByOwner(ctx context.Context, caps sparql.Capabilities, scope *scope, g *grouper, pattern string) (err error) {
	owners, err := extsort.New(g.dir, s.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, owners.Close()) }()
	lines, err := extsort.New(g.dir, s.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	err = s.eachSubject(ctx, caps, scope, scope.all()+"FILTER(isBlank(?o)) ", func(entity string) error {
		key := rdfres.EntityKey(entity)
		return owners.Add(key[:], []byte(entity))
	})
	if err != nil {
		return fmt.Errorf("enumerate who leads to blank nodes: %w", err)
	}
	cfg := s.cfg
	cfg.Select = Select{}
	plain := s.with(cfg, s.batch.get())
	plain.probed = &caps
	err = eachOf(owners, s.batch.get(), func(part []string) error {
		d := &describer{s: plain, caps: caps, scope: scope, asked: map[string]bool{}, done: map[string][]rdfres.Triple{}, hard: map[string]bool{}, failed: map[string]error{}}
		if _, err := d.batch(ctx, part); err != nil {
			return err
		}
		for _, why := range d.failed {
			return why
		}
		for e := range d.hard {
			return fmt.Errorf("%w: the blank nodes of %s are too many or too deep for one answer: raise the row limit of the store", ErrShort, e)
		}
		for entity, ts := range d.done {
			ts = slices.DeleteFunc(slices.Clone(ts), func(t rdfres.Triple) bool { return t.S.Kind() != rdfres.KindBlank && t.O.Kind() != rdfres.KindBlank })
			if err := g.addDescribed(entity, ts, flagShared); err != nil {
				return err
			}
			for _, t := range ts {
				g.line = appendTriple(g.line[:0], t)
				key := labelKey(g.line)
				if err := lines.Add(key[:], nil); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var last []byte
	for r, err := range lines.Sort() {
		if err != nil {
			return err
		}
		if !bytes.Equal(last, r.Key) {
			last = append(last[:0], r.Key...)
			g.distinctBlank++
		}
	}
	counted, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+pattern+"}")
	if err != nil {
		return err
	}
	if counted != g.distinctBlank {
		return fmt.Errorf("%w: %d triples with blank nodes came, entity by entity; it counts %d. Blank nodes that no IRI leads to can be read in one answer only: raise the row limit of the store (Virtuoso: ResultSetMaxRows)", ErrShort, g.distinctBlank, counted)
	}
	g.rows += g.distinctBlank
	return nil
}

// readCounted reads a pattern in one answer, by CONSTRUCT or SELECT, confirmed by counts.
func (s *Source) readCounted(ctx context.Context, caps sparql.Capabilities, pattern string, construct bool, f sparql.TripleFunc) error {
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + pattern + "}"
	before, err := s.client.Count(ctx, count)
	if err != nil {
		return err
	}
	if before == 0 {
		return nil
	}
	rows := int64(0)
	add := func(sub, p, o []byte) error {
		rows++
		return f(sub, p, o)
	}
	if construct && before <= manyTriples {
		err = s.client.StreamConstruct(ctx, "CONSTRUCT { ?s ?p ?o } WHERE { "+pattern+"}", add)
	} else {
		err = s.client.StreamSelect(ctx, "SELECT ?s ?p ?o WHERE { "+pattern+"}", caps.SelectReading(), add)
	}
	if err != nil {
		return err
	}
	after, err := s.client.Count(ctx, count)
	if err != nil {
		return err
	}
	if rows < min(before, after) {
		s.lengths.noteShort(rows)
	}
	if rows < min(before, after) || rows > max(before, after) {
		return fmt.Errorf("%w: %d triples with blank nodes came in one answer; it counts %d before and %d after; their labels hold within one answer only: raise the row limit of the store (Virtuoso: ResultSetMaxRows)", ErrShort, rows, before, after)
	}
	return nil
}

// eachSubject gives the IRIs of ?s in a pattern: in one answer if it comes whole, else by
// the hash of the IRI. An IRI may come more than once.
func (s *Source) eachSubject(ctx context.Context, caps sparql.Capabilities, scope *scope, pattern string, f func(string) error) error {
	pattern += " FILTER(isIRI(?s)) "
	count := "SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { " + pattern + "}"
	before, err := s.client.Count(ctx, count)
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	rows := int64(0)
	sol, err := s.client.SelectAs(ctx, "SELECT DISTINCT ?s WHERE { "+pattern+"}", caps.SelectReading())
	if err == nil {
		for row, rerr := range sol.Rows {
			if err = rerr; err == nil && row[0].Kind() == rdfres.KindIRI { // and not the text of an error at the end of the answer
				rows++
				err = f(row[0].IRI())
			}
			if err != nil {
				break
			}
		}
	}
	if err != nil && !sparql.IsTooLarge(err) {
		return err
	}
	after := before
	if rows != before || err != nil {
		if after, err = s.client.Count(ctx, count); err != nil {
			return fmt.Errorf("count: %w", err)
		}
	}
	if rows >= min(before, after) && rows <= max(before, after) && !s.lengths.onLimit(rows, caps) {
		return nil
	}
	if err == nil && rows < min(before, after) {
		s.lengths.noteShort(rows)
	}
	err = s.parts(caps, pattern).Keys(ctx, func(subjects []string) error {
		for _, e := range subjects {
			if err := f(e); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, sparql.ErrTruncated) {
		return fmt.Errorf("%w: %w", ErrShort, err)
	}
	return err
}

// parts reads ?s ?p ?o of a pattern in parts, by ?s.
func (s *Source) parts(caps sparql.Capabilities, pattern string) *sparql.Parts {
	p := &sparql.Parts{Client: s.client, As: caps.SelectReading(), Pattern: pattern, Key: "?s", Others: []string{"?p", "?o"}, Batch: s.batch.get(), Confirm: true}
	for _, limit := range []int64{caps.RowLimit, s.lengths.lastShort()} {
		if limit > 0 && (p.Limit == 0 || limit < p.Limit) {
			p.Limit = limit
		}
	}
	return p
}

// eachOf goes through a list of entities (key: EntityKey, value: IRI) in parts,
// doubles dropped.
func eachOf(list *extsort.Sorter, size int, f func([]string) error) error {
	var part []string
	var last []byte
	for r, err := range list.Sort() {
		if err != nil {
			return err
		}
		if bytes.Equal(last, r.Value) {
			continue
		}
		last = append(last[:0], r.Value...)
		if part = append(part, string(r.Value)); len(part) >= size {
			if err := f(part); err != nil {
				return err
			}
			part = nil
		}
	}
	if len(part) > 0 {
		return f(part)
	}
	return nil
}

// eachBatch calls ask with as many entities as the store takes. It halves a batch after a
// refusal for size, or after two cut answers: one alone may come from a write between
// answer and count. ask must have no effect when it fails.
func (s *Source) eachBatch(ctx context.Context, entities []string, ask func([]string) error) error {
	cut := -1 // begin of a cut batch
	for from := 0; from < len(entities); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(s.batch.get(), len(entities)-from)
		began := time.Now()
		err := ask(entities[from : from+n])
		switch {
		case err == nil:
			from += n
			s.batch.grow(n, time.Since(began))
		case n > 1 && errors.Is(err, ErrShort) && cut != from:
			cut = from
		case n > 1 && (sparql.IsTooLarge(err) || errors.Is(err, ErrShort)):
			s.log.Info("a batch was too large for the store", "entities", n, "err", err)
			s.batch.shrink(n)
		case n == 1:
			return fmt.Errorf("entity %s: %w", entities[from], err)
		default:
			return err
		}
	}
	return nil
}

// escapeAll writes IRIs for a query; odd are the others, impossible in a query.
func escapeAll(iris []string) (values, odd []string) {
	for _, iri := range iris {
		v, err := sparql.EscapeIRI(iri)
		if err != nil {
			odd = append(odd, iri)
			continue
		}
		values = append(values, v)
	}
	return values, odd
}

// ownTriples asks for the triples of the entities as subjects (position "?o" free) by
// batches, each confirmed. IRIs impossible in a query are compared as strings. Terms come
// unchanged.
func (s *Source) ownTriples(ctx context.Context, caps sparql.Capabilities, scope *scope, entities []string, object string, f func(rdfres.Triple) error) error {
	ask := func(restrict string) error {
		pattern := restrict + scope.triple("?s", "?p", object)
		got, err := s.rows(ctx, caps, pattern)
		if err != nil {
			return err
		}
		for _, t := range got {
			if err := f(t); err != nil {
				return err
			}
		}
		return nil
	}
	var plain, odd []string
	for _, e := range entities {
		if _, err := sparql.NameIRI(e); err != nil {
			odd = append(odd, e)
		} else {
			plain = append(plain, e)
		}
	}
	err := s.eachBatch(ctx, plain, func(part []string) error {
		values, _ := escapeAll(part)
		restrict := "VALUES ?s { " + strings.Join(values, " ") + " } "
		err := ask(restrict)
		if len(part) == 1 && (errors.Is(err, ErrShort) || sparql.IsTooLarge(err)) {
			return s.inParts(ctx, caps, restrict+scope.triple("?s", "?p", object), part, f)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range odd {
		if err := ask("FILTER(isIRI(?s) && STR(?s) = " + sparql.EscapeString(e) + ") "); err != nil {
			return fmt.Errorf("entity %s: %w", e, err)
		}
	}
	return nil
}

// inParts reads an entity too large for one answer.
func (s *Source) inParts(ctx context.Context, caps sparql.Capabilities, pattern string, entity []string, f func(rdfres.Triple) error) error {
	rows, most := int64(0), int64(4*s.cfg.MaxDescriptionTriples)
	err := s.parts(caps, pattern).Of(ctx, entity, func(row sparql.Row) error {
		if rows++; rows > most {
			return fmt.Errorf("%w: more than %d rows", ErrShort, most)
		}
		return f(rdfres.Triple{S: row[0], P: row[1], O: row[2]})
	})
	if errors.Is(err, sparql.ErrTruncated) {
		return fmt.Errorf("%w: %w", ErrShort, err)
	}
	if err != nil {
		return err
	}
	n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+pattern+"}")
	if err == nil && n > rows {
		err = fmt.Errorf("%w: %d rows came in parts of %d", ErrShort, rows, n)
	}
	return err
}

// rows reads ?s ?p ?o of a pattern into memory and confirms their number.
func (s *Source) rows(ctx context.Context, caps sparql.Capabilities, pattern string) ([]rdfres.Triple, error) {
	var out []rdfres.Triple
	err := s.client.StreamSelect(ctx, "SELECT ?s ?p ?o WHERE { "+pattern+"}", caps.SelectReading(), func(sub, p, o []byte) error {
		if len(sub) == 0 || len(p) == 0 || len(o) == 0 {
			return fmt.Errorf("the store gave the triple %q %q %q with a part that is not there", clip(sub), clip(p), clip(o))
		}
		if len(out) >= 4*s.cfg.MaxDescriptionTriples {
			return fmt.Errorf("%w: more than %d rows for one batch", ErrShort, len(out))
		}
		all := string(append(append(append(make([]byte, 0, len(sub)+len(p)+len(o)), sub...), p...), o...))
		out = append(out, rdfres.Triple{S: rdfres.Term(all[:len(sub)]), P: rdfres.Term(all[len(sub) : len(sub)+len(p)]), O: rdfres.Term(all[len(sub)+len(p):])})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, s.lengths.confirmRows(ctx, caps, int64(len(out)), func() (int64, error) {
		return s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+pattern+"}")
	})
}

// addDescribed adds a ready description.
func (g *grouper) addDescribed(entity string, ts []rdfres.Triple, flag byte) error {
	key := rdfres.EntityKey(entity)
	if err := g.entities.Add(key[:], append([]byte{recordEntity}, entity...)); err != nil {
		return err
	}
	for _, t := range ts {
		g.value = append(appendTriple(g.value[:0], t), flag)
		if err := g.entities.Add(key[:], g.value); err != nil {
			return err
		}
	}
	return nil
}
