package sparqlsrc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Describe describes the named entities by batches of VALUES. A deleted entity, or one
// outside of the selection, comes with no triples. Every owner of a touched blank-node
// component is described too. The descriptions, and the names of their blank nodes, are
// those of a full scan; they come in the order of rdfres.EntityKey.
//
// An entity without a description is an error.
func (s *Source) Describe(ctx context.Context, entities []string) ([]rdfres.Description, error) {
	out, failed, err := s.describe(ctx, entities, 0)
	for _, e := range slices.Sorted(maps.Keys(failed)) {
		if err == nil {
			err = failed[e]
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// errTooMany is the error of more triples than the memory may hold at once.
var errTooMany = errors.New("too many triples at once")

// describe is Describe; failures come by name, and not in out. Several entities with more
// than most triples together are errTooMany.
func (s *Source) describe(ctx context.Context, entities []string, most int64) (_ []rdfres.Description, failed map[string]error, err error) {
	d := &describer{s: s, most: most, asked: map[string]bool{}, done: map[string][]rdfres.Triple{}, failed: map[string]error{}}
	for _, e := range entities {
		d.asked[e] = true
	}
	if err := d.run(ctx); err != nil {
		return nil, nil, fmt.Errorf("describe %d entities of %s: %w", len(entities), s.cfg.Name, err)
	}
	for e := range d.failed {
		if outside, err := d.outside(ctx, e); err != nil {
			return nil, nil, fmt.Errorf("describe %s of %s: %w", e, s.cfg.Name, err)
		} else if outside {
			delete(d.failed, e)
			d.done[e] = nil
		}
	}
	out := make([]rdfres.Description, 0, len(d.done))
	for e, ts := range d.done {
		if !d.admits(e, ts) {
			ts = nil
		}
		if err := checkAll(ts); err != nil && d.failed[e] == nil {
			d.failed[e] = fmt.Errorf("describe %s: %w", e, err)
		}
		if d.failed[e] != nil {
			continue
		}
		if d.asked[e] || len(ts) > 0 {
			out = append(out, rdfres.Description{Entity: e, Triples: ts})
		}
	}
	if err := d.keepSelected(ctx, out); err != nil {
		return nil, nil, fmt.Errorf("describe %d entities of %s: select query: %w", len(entities), s.cfg.Name, err)
	}
	out = slices.DeleteFunc(out, func(x rdfres.Description) bool { return len(x.Triples) == 0 && !d.asked[x.Entity] })
	slices.SortFunc(out, func(a, b rdfres.Description) int {
		ka, kb := rdfres.EntityKey(a.Entity), rdfres.EntityKey(b.Entity)
		return slices.Compare(ka[:], kb[:])
	})
	return out, d.failed, nil
}

// describer is one call of Describe.
type describer struct {
	s     *Source
	caps  sparql.Capabilities
	scope *scope
	asked map[string]bool
	done  map[string][]rdfres.Triple
	hard  map[string]bool // need all triples with blank nodes

	failed map[string]error // cannot be described, by entity

	held, most int64 // triples; most 0: any number
}

// hold counts held triples.
func (d *describer) hold(n int) error {
	if d.held += int64(n); d.most > 0 && d.held > d.most && len(d.asked) > 1 {
		return errTooMany
	}
	return nil
}

func (d *describer) run(ctx context.Context) (err error) {
	if d.caps, err = d.s.Capabilities(ctx); err != nil {
		return err
	}
	if d.scope, err = d.s.scope(ctx, d.caps); err != nil {
		return err
	}
	d.hard = map[string]bool{}
	pending := make([]string, 0, len(d.asked))
	for e := range d.asked {
		d.done[e] = nil
		if strings.HasPrefix(e, orphanPrefix) {
			d.hard[e] = true
			continue
		}
		pending = append(pending, e)
	}
	slices.Sort(pending)
	if d.s.byGraph {
		clear(d.hard)
		return d.graphs(ctx)
	}
	if d.s.construct != nil {
		return d.constructed(ctx, pending)
	}
	if d.s.scbd {
		// Inbound parts lead anywhere: the exact way serves them all.
		for _, e := range pending {
			d.hard[e] = true
		}
		pending = nil
	}
	for len(pending) > 0 {
		n := min(d.s.batch.get(), len(pending))
		owners, err := d.batch(ctx, pending[:n])
		if err != nil {
			return err
		}
		pending = pending[n:]
		for _, o := range owners {
			if _, known := d.done[o]; !known {
				d.done[o] = nil
				pending = append(pending, o)
			}
		}
	}
	if len(d.hard) > 0 {
		return d.exact(ctx)
	}
	return nil
}

// batch describes some entities: first their own triples, then, for owners of blank nodes,
// everything in one answer, to a growing depth.
func (d *describer) batch(ctx context.Context, entities []string) (owners []string, err error) {
	own := map[string][]rdfres.Triple{}
	entities, err = d.each(entities, func(entities []string) error {
		clear(own)
		return d.s.ownTriples(ctx, d.caps, d.scope, entities, "?o", func(t rdfres.Triple) error {
			e := t.S.IRI()
			own[e] = append(own[e], local(t))
			return d.bound(e, own[e])
		})
	})
	if err != nil {
		return nil, err
	}
	var deep []string
	skolem := false
	for _, e := range entities {
		ts := own[e]
		if slices.ContainsFunc(ts, func(t rdfres.Triple) bool { return t.O.Kind() == rdfres.KindBlank }) {
			if _, err := sparql.NameIRI(e); err != nil {
				d.hard[e] = true
				continue
			}
			deep = append(deep, e)
			skolem = skolem || slices.ContainsFunc(ts, func(t rdfres.Triple) bool { return strings.HasPrefix(string(t.O), skolemPrefix) })
			continue
		}
		d.done[e] = rdfres.SortUnique(ts)
	}
	if skolem || d.scope.kind == unionButOwn {
		for _, e := range deep {
			d.hard[e] = true
		}
		return nil, nil
	}
	for ways := withinWays(1); len(deep) > 0 && ways != nil; {
		var left []string
		further := map[string]bool{}
		err := d.s.eachBatch(ctx, deep, func(part []string) error {
			found, rest, beyond, err := d.closure(ctx, part, ways)
			if err != nil {
				return err
			}
			owners = append(owners, found...)
			left = append(left, rest...)
			maps.Copy(further, beyond)
			return nil
		})
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errTooMany) {
				return nil, err
			}
			// Too hard for the store: the exact way asks simple questions only.
			d.s.log.Info("a query for blank nodes failed; reading all of them", "err", err)
			left = deep
			for _, e := range left {
				d.hard[e] = true
			}
			return owners, nil
		}
		deep = left
		ways = d.furtherWays(ways, further)
	}
	for _, e := range deep {
		d.hard[e] = true
	}
	return owners, nil
}

// A way leads from the first blank node behind an entity to another one: a letter for each
// step, along a triple or against it. "" is the first node itself.
const (
	stepOn   = "o"
	stepBack = "b"
)

// maxWays bounds the ways in one query: each is two branches of its union.
const maxWays = 64

// withinWays are all ways of at most depth steps from the entity.
func withinWays(depth int) map[string]bool {
	ways := map[string]bool{"": true}
	for ; depth > 1; depth-- {
		for w := range maps.Clone(ways) {
			ways[w+stepOn], ways[w+stepBack] = true, true
		}
	}
	return ways
}

// furtherWays are the ways of the next question. nil: all blank nodes are better read at
// once. A store with a limit on answers may not give them at once: then only the unfinished
// ways are followed, twice as far in the same direction, for lists are long.
func (d *describer) furtherWays(ways, further map[string]bool) map[string]bool {
	if d.caps.RowLimit == 0 && d.s.lengths.lastShort() == 0 {
		if len(ways) > 1 {
			return nil
		}
		return withinWays(3)
	}
	ways = maps.Clone(ways)
	for w := range further {
		for range len(w) {
			ways[w] = true
			w += w[len(w)-1:]
		}
	}
	if len(ways) > maxWays {
		return nil
	}
	return ways
}

// entityError is the error of an entity without a description.
type entityError struct {
	entity string
	err    error
}

func (e *entityError) Error() string { return fmt.Sprintf("describe %s: %v", e.entity, e.err) }
func (e *entityError) Unwrap() error { return e.err }

// bound counts one more triple of an entity; ts are its triples so far.
func (d *describer) bound(entity string, ts []rdfres.Triple) error {
	if most := d.s.cfg.MaxDescriptionTriples; len(ts) > most {
		return &entityError{entity, fmt.Errorf("more than %d triples (%s)", most, d.s.cfg.Names.Of("max_description_triples"))}
	}
	return d.hold(1)
}

// each reads some entities, and gives back the read ones. After an entityError it reads
// the others again; the entity fails by its name.
func (d *describer) each(entities []string, read func([]string) error) ([]string, error) {
	for held := d.held; ; d.held = held {
		err := read(entities)
		var one *entityError
		if !errors.As(err, &one) || !slices.Contains(entities, one.entity) {
			return entities, err
		}
		d.failed[one.entity] = one
		entities = slices.DeleteFunc(slices.Clone(entities), func(e string) bool { return e == one.entity })
	}
}

func local(t rdfres.Triple) rdfres.Triple {
	t.S, t.O = localOf(t.S), localOf(t.O)
	return t
}

// closure asks for the entities' own triples and for all triples of the blank nodes at the
// end of the ways. Entities with larger components come back in deeper, and their
// unfinished ways in further.
func (d *describer) closure(ctx context.Context, entities []string, ways map[string]bool) (owners, deeper []string, further map[string]bool, err error) {
	got, err := d.s.rows(ctx, d.caps, d.closurePattern(entities, ways))
	if err == nil {
		err = d.hold(len(got))
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range got {
		got[i] = local(got[i])
	}
	got = rdfres.SortUnique(got)
	var blanks []rdfres.Triple
	on, back, next := map[rdfres.Term][]rdfres.Term{}, map[rdfres.Term][]rdfres.Term{}, map[rdfres.Term][]rdfres.Term{}
	mine := map[rdfres.Term]bool{}
	for _, e := range entities {
		mine[rdfres.NewIRI(e)] = true
	}
	type stand struct {
		node rdfres.Term
		way  string
	}
	var queue []stand
	been := map[stand]bool{}
	starts := map[rdfres.Term][]rdfres.Term{} // of an entity
	for _, t := range got {
		sb, ob := t.S.Kind() == rdfres.KindBlank, t.O.Kind() == rdfres.KindBlank
		if sb || ob {
			blanks = append(blanks, t)
		}
		if sb && ob {
			on[t.S], back[t.O] = append(on[t.S], t.O), append(back[t.O], t.S)
			next[t.S] = append(next[t.S], t.O)
			next[t.O] = append(next[t.O], t.S)
		}
		if mine[t.S] && ob {
			starts[t.S] = append(starts[t.S], t.O)
			queue = append(queue, stand{t.O, ""})
		}
	}
	asked := map[rdfres.Term]bool{}
	far := map[rdfres.Term]bool{} // not asked for all their triples
	var beyond []stand
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if been[at] {
			continue
		}
		been[at] = true
		if !ways[at.way] {
			beyond = append(beyond, at)
			continue
		}
		asked[at.node] = true
		for _, n := range on[at.node] {
			queue = append(queue, stand{n, at.way + stepOn})
		}
		for _, n := range back[at.node] {
			queue = append(queue, stand{n, at.way + stepBack})
		}
	}
	further = map[string]bool{}
	for _, at := range beyond {
		if !asked[at.node] && !far[at.node] { // the shortest comes first
			far[at.node], further[at.way] = true, true
		}
	}
	// An entity is whole when nothing far is connected with it.
	whole := []string{}
	for _, e := range entities {
		if slices.ContainsFunc(starts[rdfres.NewIRI(e)], func(n rdfres.Term) bool { return connects(n, next, far) }) {
			deeper = append(deeper, e)
		} else {
			whole = append(whole, e)
		}
	}
	if len(whole) == 0 {
		return nil, deeper, further, nil
	}
	var reached map[rdfres.Term]bool
	keep := blanks
	if len(deeper) > 0 {
		reached = map[rdfres.Term]bool{}
		for _, e := range whole {
			for _, n := range starts[rdfres.NewIRI(e)] {
				spread(n, next, reached)
			}
		}
		keep = slices.DeleteFunc(slices.Clone(blanks), func(t rdfres.Triple) bool { return !reached[t.S] && !reached[t.O] })
	}
	named, comps, err := rdfres.NameBlanks(keep, rdfres.NameOptions{WorkLimit: d.s.cfg.WorkLimit})
	if err != nil {
		return nil, nil, nil, err
	}
	all := named
	for _, t := range got {
		if mine[t.S] && t.O.Kind() != rdfres.KindBlank {
			all = append(all, t)
		}
	}
	graph := rdfres.NewGraph(all)
	for _, e := range whole {
		ts, err := graph.BoundedCBD(rdfres.NewIRI(e), d.s.cfg.MaxDescriptionTriples)
		if err != nil {
			return nil, nil, nil, err
		}
		d.done[e] = ts
	}
	for _, t := range named {
		if t.S.Kind() == rdfres.KindIRI {
			owners = append(owners, t.S.IRI())
		}
	}
	for _, c := range comps {
		d.rest(c, graph)
	}
	return slices.Compact(owners), deeper, further, nil
}

// rest describes the part of an owned component out of reach of any IRI.
func (d *describer) rest(c rdfres.Component, graph *rdfres.Graph) {
	if !d.s.cfg.Select.isZero() {
		return
	}
	next := map[rdfres.Term][]rdfres.Term{}
	reached := map[rdfres.Term]bool{}
	for _, t := range c.Triples {
		if t.S.Kind() == rdfres.KindBlank && t.O.Kind() == rdfres.KindBlank {
			next[t.S] = append(next[t.S], t.O)
		}
	}
	for _, t := range c.Triples {
		if t.S.Kind() == rdfres.KindIRI {
			spread(t.O, next, reached)
		}
	}
	var out []rdfres.Triple
	seen := map[rdfres.Term]bool{}
	for _, t := range c.Triples {
		if t.S.Kind() == rdfres.KindBlank && !reached[t.S] && !seen[t.S] {
			spread(t.S, next, seen)
		}
	}
	for _, t := range c.Triples {
		if seen[t.S] {
			out = append(out, t)
		}
	}
	if len(out) > 0 {
		d.done[rdfres.OrphanEntity(c.Names.Digest, c.Ordinal)] = rdfres.SortUnique(out)
	}
}

func spread(n rdfres.Term, next map[rdfres.Term][]rdfres.Term, seen map[rdfres.Term]bool) {
	stack := []rdfres.Term{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		stack = append(stack, next[n]...)
	}
}

func connects(n rdfres.Term, next map[rdfres.Term][]rdfres.Term, far map[rdfres.Term]bool) bool {
	if len(far) == 0 {
		return false
	}
	seen := map[rdfres.Term]bool{}
	spread(n, next, seen)
	for m := range seen {
		if far[m] {
			return true
		}
	}
	return false
}

// closurePattern is a union of plain paths: the entities' own triples, and for each way
// through blank nodes the triples from and to the node at its end. Each branch stands
// alone: no store has to join with a union.
func (d *describer) closurePattern(entities []string, ways map[string]bool) string {
	values, _ := escapeAll(entities)
	list := " { " + strings.Join(values, " ") + " } "
	branches := []string{"{ VALUES ?s" + list + d.scope.triple("?s", "?p", "?o") + "}"}
	var walk func(prefix, node, way string)
	walk = func(prefix, node, way string) {
		if !ways[way] {
			return
		}
		out := strings.ReplaceAll(prefix, node+" ", "?s ")
		in := strings.ReplaceAll(prefix, node+" ", "?o ")
		branches = append(branches,
			"{ "+out+"FILTER(isBlank(?s)) "+d.scope.triple("?s", "?p", "?o")+"}",
			"{ "+in+"FILTER(isBlank(?o)) "+d.scope.triple("?s", "?p", "?o")+"}")
		level := len(way) + 1
		next := fmt.Sprintf("?n%d", level+1)
		here := prefix + "FILTER(isBlank(" + node + " )) "
		q := fmt.Sprintf("?q%d", level)
		walk(here+d.scope.triple(node+" ", q, next+" "), next, way+stepOn)
		walk(here+d.scope.triple(next+" ", q, node+" "), next, way+stepBack)
	}
	walk("VALUES ?e"+list+d.scope.triple("?e", "?q0", "?n1 "), "?n1", "")
	return strings.Join(branches, " UNION ") + " "
}

// exact describes the remaining entities with all triples of blank nodes, read in one
// answer and grouped on disk as in a scan; symmetric descriptions with all triples at all.
func (d *describer) exact(ctx context.Context) (err error) {
	s := d.s
	g, err := newGrouper(&s.cfg, s.scbd)
	if err != nil {
		return err
	}
	sc := &Scan{cfg: &s.cfg, group: g}
	defer func() { err = errors.Join(err, sc.group.close()) }()
	touched := map[string]bool{}        // owners of components of an entity in hard
	digests := map[rdfres.Digest]bool{} // of the orphans asked for
	for e := range d.hard {
		if hex, ok := strings.CutPrefix(e, orphanPrefix); ok {
			hex, _, _ = strings.Cut(hex, "-")
			if digest, err := rdfres.ParseDigest(hex); err == nil {
				digests[digest] = true
			}
		}
	}
	touch := func(owners []string, digest func() rdfres.Digest) {
		if slices.ContainsFunc(owners, func(o string) bool { return d.hard[rdfres.Term(o).IRI()] }) ||
			len(owners) > 0 && len(digests) > 0 && digests[digest()] {
			for _, o := range owners {
				touched[rdfres.Term(o).IRI()] = true
			}
		}
	}
	wanted := func(owners []string, digest rdfres.Digest) bool {
		return digests[digest] || slices.ContainsFunc(owners, func(o string) bool { return touched[rdfres.Term(o).IRI()] })
	}
	if s.scbd {
		if err := g.close(); err != nil {
			return err
		}
		if err := s.download(ctx, d.caps, sc); err != nil {
			sc.group = g
			return err
		}
		g = sc.group
		if s.cfg.Select.Query != "" { // it may name an entity with inbound triples only
			if err := s.selectedEntities(ctx, g); err != nil {
				return err
			}
		}
		g.touch = touch
		if err := g.finish(ctx); err != nil {
			return err
		}
	} else {
		if err := s.readSkolemAndBlank(ctx, d.caps, d.scope, g); err != nil {
			return err
		}
		g.touch, g.wanted = touch, wanted
		if err := g.finish(ctx); err != nil {
			return err
		}
		var list []string
		for e := range d.hard {
			touched[e] = true
		}
		for e := range touched {
			if !strings.HasPrefix(e, orphanPrefix) {
				list = append(list, e)
			}
		}
		slices.Sort(list)
		err := s.ownTriples(ctx, d.caps, d.scope, list, "?o", func(t rdfres.Triple) error {
			if t = local(t); t.O.Kind() == rdfres.KindBlank {
				return nil
			}
			return g.add([]byte(t.S), []byte(t.P), []byte(t.O))
		})
		if err != nil {
			return err
		}
	}
	for x, err := range sc.Descriptions() {
		if err != nil {
			return err
		}
		isRest := strings.HasPrefix(x.Entity, orphanPrefix) && !s.scbd && s.cfg.Select.isZero()
		if d.hard[x.Entity] || touched[x.Entity] || isRest {
			d.done[x.Entity] = x.Triples
			if err := d.hold(len(x.Triples)); err != nil {
				return err
			}
		}
	}
	for e := range touched {
		if why := g.failed.reason(e); why != nil {
			d.failed[e] = why
		}
	}
	for e := range d.hard {
		if why := g.failed.reason(e); why != nil {
			d.failed[e] = why
		}
	}
	return nil
}

// readSkolemAndBlank reads all triples with a blank node, or with our own IRI for one.
func (s *Source) readSkolemAndBlank(ctx context.Context, caps sparql.Capabilities, scope *scope, g *grouper) error {
	mark := sparql.EscapeString(string(genidMark))
	pattern := scope.all() + "FILTER(isBlank(?s) || isBlank(?o) || CONTAINS(STR(?s), " + mark + ") || (isIRI(?o) && CONTAINS(STR(?o), " + mark + "))) "
	return s.readCounted(ctx, caps, pattern, false, func(sub, p, o []byte) error {
		// An IRI only like one of ours is no business of the components.
		if sub, o := localTerm(sub), localTerm(o); sub[0] != '_' && o[0] != '_' {
			return nil
		}
		return g.add(sub, p, o)
	})
}

// constructed describes by the user's CONSTRUCT.
func (d *describer) constructed(ctx context.Context, entities []string) error {
	entities = slices.DeleteFunc(entities, func(e string) bool {
		err := rdfres.CheckIRI(rdfres.NewIRI(e)) // no query can name it
		if err != nil {
			d.failed[e] = fmt.Errorf("describe %s: %w", e, err)
		}
		return err != nil
	})
	got, over, err := d.s.constructBatch(ctx, d.scope, entities)
	if err != nil {
		return err
	}
	in, err := d.classMembers(ctx, entities)
	if err != nil {
		return err
	}
	for e, raw := range got {
		if err := d.hold(len(raw)); err != nil {
			return err
		}
		if _, asked := d.done[e]; !asked || (in != nil && !in[e]) {
			continue
		}
		if d.done[e], err = d.s.cfg.nameConstructed(e, raw, over); err != nil {
			d.failed[e] = fmt.Errorf("describe %s: %w", e, err)
		}
	}
	return nil
}

// classMembers are the entities of a selected class; nil without classes.
func (d *describer) classMembers(ctx context.Context, entities []string) (map[string]bool, error) {
	if len(d.s.cfg.Select.Classes) == 0 {
		return nil, nil
	}
	in := map[string]bool{}
	classes := map[rdfres.Term]bool{}
	for _, c := range d.s.cfg.Select.Classes {
		classes[rdfres.NewIRI(c)] = true
	}
	err := d.s.ownTriples(ctx, d.caps, d.scope, entities, "?o", func(t rdfres.Triple) error {
		if t.P == rdfType && classes[t.O] {
			in[t.S.IRI()] = true
		}
		return nil
	})
	return in, err
}

// admits tells whether an entity is of the set, as Scan.admits does: orphan
// components are of a set without any selection only. The user's SELECT is asked
// by keepSelected.
func (d *describer) admits(entity string, ts []rdfres.Triple) bool {
	if !d.s.byGraph && strings.HasPrefix(entity, orphanPrefix) {
		return d.s.cfg.Select.isZero()
	}
	return hasPrefix(entity, d.s.cfg.Select.Prefixes) && d.inClasses(entity, ts)
}

// outside tells whether an entity without a description is surely outside of the set.
func (d *describer) outside(ctx context.Context, entity string) (bool, error) {
	sel := d.s.cfg.Select
	iri, err := sparql.NameIRI(entity)
	if !hasPrefix(entity, sel.Prefixes) || err != nil || len(sel.Classes) == 0 || d.s.byGraph {
		return !hasPrefix(entity, sel.Prefixes), nil
	}
	values, _ := escapeAll(sel.Classes) // checked by New
	in, err := d.s.client.Ask(ctx, "ASK { VALUES ?class { "+strings.Join(values, " ")+" } "+d.scope.triple(iri, rdfType, "?class")+"}")
	return !in, err
}

// inClasses tells whether a description shows one of the selected classes.
func (d *describer) inClasses(entity string, ts []rdfres.Triple) bool {
	sel := d.s.cfg.Select
	if len(sel.Classes) == 0 || d.s.construct != nil {
		return true
	}
	e := rdfres.NewIRI(entity)
	return slices.ContainsFunc(ts, func(t rdfres.Triple) bool {
		return (t.S == e || d.s.byGraph && t.S.Kind() == rdfres.KindIRI) && t.P == rdfType && slices.Contains(sel.Classes, t.O.IRI())
	})
}

// keepSelected empties the descriptions of entities beyond the user's SELECT.
func (d *describer) keepSelected(ctx context.Context, out []rdfres.Description) error {
	if d.s.cfg.Select.Query == "" {
		return nil
	}
	in := map[string]bool{}
	for _, x := range out {
		in[x.Entity] = false
	}
	_, err := d.s.eachSelected(ctx, d.s.cfg.Select.Query, func(e string) error {
		if _, asked := in[e]; asked {
			in[e] = true
		}
		return nil
	})
	for i := range out {
		if !in[out[i].Entity] {
			out[i].Triples = nil
		}
	}
	return err
}
