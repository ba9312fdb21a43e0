package sparqlsrc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// construct is a user's description rule, taken apart: the rows of its WHERE
// are asked for many entities at once (a SELECT with VALUES ?entity), and the
// template is filled in on this side, row by row.
//
// Blank nodes of a constructed description are its own: two descriptions never
// share one, because a template makes new ones for each row.
type construct struct {
	prologue string
	template []templateTriple
	vars     []string // of the template, ?entity first
	where    string   // between the outer braces
	graphs   bool     // WHERE names graphs, perhaps others than those of the set
}

type templateTriple [3]node

// node is a term of a template: a constant, a variable (its index), or a new blank node
// for each row.
type node struct {
	term  rdfres.Term
	v     int // -1: none
	blank string
}

// CheckDescribe tells whether a text can be Describe.
func CheckDescribe(text string) error {
	switch text {
	case "", "cbd", "scbd", "graph":
		return nil
	}
	_, err := parseConstruct(text)
	return err
}

func parseConstruct(text string) (*construct, error) {
	q, err := parseQuery(text, "CONSTRUCT")
	if err != nil {
		return nil, fmt.Errorf(`%q is not cbd, scbd or a CONSTRUCT query: %w`, excerpt(text), err)
	}
	c := &construct{prologue: q.prologue, vars: []string{"entity"}}
	toks := q.tokens
	var template []token
	if len(toks) > 0 && toks[0].text == "{" && toks[0].kind == tokPunct {
		end := closing(toks, 0)
		if end < 0 {
			return nil, fmt.Errorf("the template has no closing brace")
		}
		template, toks = toks[1:end], toks[end+1:]
	}
	if len(toks) > 0 && toks[0].kind == tokWord && strings.EqualFold(toks[0].text, "FROM") {
		return nil, fmt.Errorf("FROM in a CONSTRUCT: the graphs are those of the set")
	}
	if len(toks) > 0 && toks[0].kind == tokWord && strings.EqualFold(toks[0].text, "WHERE") {
		toks = toks[1:]
	}
	if len(toks) == 0 || toks[0].kind != tokPunct || toks[0].text != "{" {
		return nil, fmt.Errorf("no WHERE { ... } after the template")
	}
	end := closing(toks, 0)
	if end < 0 {
		return nil, fmt.Errorf("WHERE has no closing brace")
	}
	if end+1 < len(toks) {
		return nil, fmt.Errorf("%q after WHERE: a description takes no solution modifiers", toks[end+1].text)
	}
	c.where = text[toks[0].at+1 : toks[end].at]
	where := toks[1:end]
	c.graphs = slices.ContainsFunc(where, func(t token) bool { return t.kind == tokWord && strings.EqualFold(t.text, "GRAPH") })
	if template == nil {
		template = where // CONSTRUCT WHERE { ... }
	}
	if !slices.ContainsFunc(where, func(t token) bool { return t.kind == tokVar && t.text == "entity" }) {
		return nil, fmt.Errorf("WHERE does not use ?entity, the variable that stands for the entity to be described")
	}
	p := &templateParser{q: q, c: c, toks: template}
	if err := p.triples(); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if len(c.template) == 0 {
		return nil, fmt.Errorf("the template is empty")
	}
	return c, nil
}

func excerpt(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

// closing finds the closing brace of the one at i.
func closing(toks []token, i int) int {
	depth := 0
	for ; i < len(toks); i++ {
		if toks[i].kind != tokPunct {
			continue
		}
		switch toks[i].text {
		case "{":
			depth++
		case "}":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// query asks for the rows of some entities; restrict names them by ?entity.
func (c *construct) query(sc *scope, restrict string) string {
	var b strings.Builder
	b.WriteString(c.prologue)
	b.WriteString(" SELECT")
	for _, v := range c.vars {
		b.WriteString(" ?" + v)
	}
	b.WriteString(" " + from(sc.from))
	where := "{ " + restrict
	switch {
	case sc.kind == oneGraph:
		where += "GRAPH <" + sc.graph + "> { " + c.where + "\n} }"
	case sc.kind == severalGraphs || sc.kind == unionButOwn || sc.union:
		// Some stores give a row for each graph of a triple, although merged graphs
		// hold it once: a template would make blank nodes for each row.
		where = "{ { SELECT DISTINCT * WHERE " + where + "{ " + c.where + "\n} } } }"
	default:
		where += "{ " + c.where + "\n} }"
	}
	b.WriteString("WHERE " + where)
	return b.String()
}

// fill gives the triples of one row; fresh numbers the rows of an entity.
func (c *construct) fill(row []rdfres.Term, fresh int, out []rdfres.Triple) []rdfres.Triple {
	for _, t := range c.template {
		var terms [3]rdfres.Term
		for i, n := range t {
			switch {
			case n.v >= 0:
				terms[i] = row[n.v]
				if terms[i].Kind() == rdfres.KindBlank {
					terms[i] = "_:s" + terms[i][2:] // of the store; never one of the template
				}
			case n.blank != "":
				terms[i] = rdfres.Term(fmt.Sprintf("_:t%dx%s", fresh, n.blank))
			default:
				terms[i] = n.term
			}
		}
		s, p, o := terms[0].Kind(), terms[1].Kind(), terms[2].Kind()
		if slices.ContainsFunc(terms[:], func(t rdfres.Term) bool { return sparql.IsOwnNode(t.IRI()) }) {
			continue // of the bookkeeping: it tells of entities too
		}
		if (s == rdfres.KindIRI || s == rdfres.KindBlank) && p == rdfres.KindIRI && o != rdfres.KindNone {
			out = append(out, rdfres.Triple{S: terms[0], P: terms[1], O: terms[2]})
		} // SPARQL 1.1, section 16.2: unbound or impossible triples are left out
	}
	return out
}

// constructBatch describes some entities. Those without rows are not in the map, those
// with too many come as nothing and are over.
func (s *Source) constructBatch(ctx context.Context, sc *scope, entities []string) (raw map[string][]rdfres.Triple, over map[string]bool, err error) {
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return nil, nil, err
	}
	raw, over = map[string][]rdfres.Triple{}, map[string]bool{}
	if entities, err = s.butBookkeeping(ctx, sc, entities); err != nil {
		return nil, nil, err
	}
	ask := func(restrict string) error {
		got, tooMany := map[string][]rdfres.Triple{}, map[string]bool{}
		query := s.construct.query(sc, restrict)
		sol, err := s.client.Select(ctx, query)
		if err != nil {
			return err
		}
		rows := int64(0)
		for row, err := range sol.Rows {
			if err != nil {
				return err
			}
			if len(row) != len(s.construct.vars) {
				return fmt.Errorf("the answer has %d columns, want %d", len(row), len(s.construct.vars))
			}
			rows++
			for i := range row {
				row[i] = localOf(row[i])
			}
			if e := row[0].IRI(); e != "" && !tooMany[e] {
				if got[e] = s.construct.fill(row, int(rows), got[e]); len(got[e]) > 4*s.cfg.MaxDescriptionTriples {
					got[e], tooMany[e] = nil, true
				}
			}
		}
		if err := s.lengths.confirmRows(ctx, caps, rows, func() (int64, error) {
			at := strings.Index(query[len(s.construct.prologue):], " SELECT") + len(s.construct.prologue)
			merged := from(sc.from)
			inner := strings.Replace(query[at:], merged, "", 1) // a subquery takes no FROM
			return s.client.Count(ctx, query[:at]+" SELECT (COUNT(*) AS ?rsbridge_n) "+merged+"WHERE { {"+inner+"} }")
		}); err != nil {
			return err
		}
		maps.Copy(raw, got)
		maps.Copy(over, tooMany)
		return nil
	}
	var plain []string
	for _, e := range entities {
		if _, err := sparql.NameIRI(e); err == nil {
			plain = append(plain, e)
		} else if err := ask("FILTER(isIRI(?entity) && STR(?entity) = " + sparql.EscapeString(e) + ") "); err != nil {
			return nil, nil, fmt.Errorf("entity %s: %w", e, err)
		}
	}
	err = s.eachBatch(ctx, plain, func(part []string) error {
		values, _ := escapeAll(part)
		return ask("VALUES ?entity { " + strings.Join(values, " ") + " } ")
	})
	if err != nil {
		return nil, nil, err
	}
	return raw, over, nil
}

// butBookkeeping leaves out the subjects of rsbridge's own graphs: a user's query over all
// graphs selects them too. A subject with triples in the scope stays.
func (s *Source) butBookkeeping(ctx context.Context, sc *scope, entities []string) ([]string, error) {
	if sc.keeps == nil {
		own, err := s.client.Ask(ctx, "ASK { "+ownPattern+"}")
		if err != nil {
			return nil, err
		}
		sc.keeps = &own
	}
	if !*sc.keeps {
		return entities, nil
	}
	drop := map[string]bool{}
	err := s.eachBatch(ctx, entities, func(part []string) error {
		values, _ := escapeAll(part)
		if len(values) == 0 {
			return nil
		}
		sol, err := s.client.Select(ctx, "SELECT DISTINCT ?entity WHERE { VALUES ?entity { "+strings.Join(values, " ")+" } GRAPH ?own { ?entity ?p1 ?o1 } FILTER"+sparql.OwnGraph("?own")+
			" FILTER NOT EXISTS { "+sc.triple("?entity", "?p2", "?o2")+"} FILTER NOT EXISTS { "+sc.triple("?s3", "?p3", "?entity")+"} }")
		if err != nil {
			return err
		}
		for row, err := range sol.Rows {
			if err != nil {
				return err
			}
			drop[row[0].IRI()] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("leave out the subjects of rsbridge's own graphs: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(entities), func(e string) bool { return drop[e] }), nil
}

// scanConstruct enumerates the entities and describes them by batches.
func (s *Source) scanConstruct(ctx context.Context, caps sparql.Capabilities, sc *Scan) (err error) {
	scope, err := s.scope(ctx, caps)
	if err != nil {
		return err
	}
	if sc.group, err = newGrouper(&s.cfg, false); err != nil {
		return err
	}
	sc.stats.Way = "batches"
	sc.scope = scope
	list, err := extsort.New(sc.group.dir, s.cfg.MemoryBytes/4)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }() // its folder goes with the grouper's
	add := func(entity string) error {
		if !hasPrefix(entity, s.cfg.Select.Prefixes) || strings.HasPrefix(entity, orphanPrefix) {
			return nil
		}
		if err := rdfres.CheckIRI(rdfres.NewIRI(entity)); err != nil {
			sc.group.fail(entity, err)
			return nil
		}
		key := rdfres.EntityKey(entity)
		return list.Add(key[:], []byte(entity))
	}
	if s.cfg.Select.Query != "" {
		_, err = s.eachSelected(ctx, s.cfg.Select.Query, add)
	} else {
		err = s.eachSubject(ctx, caps, scope, s.cfg.selectionPattern(scope), add)
	}
	if err != nil {
		return fmt.Errorf("enumerate the entities: %w", err)
	}
	done := int64(0)
	err = eachOf(list, s.batch.get(), func(part []string) error {
		done += int64(len(part))
		if s.cfg.Select.Query != "" { // it knows nothing of the classes
			in, err := (&describer{s: s, caps: caps, scope: scope}).classMembers(ctx, part)
			if err != nil {
				return err
			}
			if in != nil {
				part = slices.Sorted(maps.Keys(in))
			}
		}
		got, over, err := s.constructBatch(ctx, scope, part)
		if err != nil {
			return err
		}
		for entity, raw := range got {
			ts, err := s.cfg.nameConstructed(entity, raw, over)
			if err != nil {
				sc.group.fail(entity, err)
				continue
			}
			if err := sc.group.addDescribed(entity, ts, flagOwn); err != nil {
				return err
			}
		}
		s.cfg.Progress("read", done, list.Len())
		return nil
	})
	if err != nil {
		return err
	}
	// The graphs are counted: only a part of them, or none, was read.
	if sc.rows, err = s.countGraphs(ctx, scope); err != nil {
		return fmt.Errorf("count the triples of the graphs: %w", err)
	}
	return nil
}

// countGraphs counts the triples of a scope. If the store can, it counts a triple of
// several graphs once.
func (s *Source) countGraphs(ctx context.Context, sc *scope) (int64, error) {
	if !sc.single() || sc.union {
		n, err := s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { SELECT DISTINCT ?s ?p ?o WHERE { "+sc.all()+"} }")
		if err == nil || ctx.Err() != nil {
			return n, err
		}
		s.log.Info("the store does not count its different triples; one that stands in several graphs counts several times", "err", err)
	}
	return s.client.Count(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+sc.all()+"}")
}

// nameConstructed is nameOwn for the result of a CONSTRUCT; over are the entities beyond
// the limit.
func (c *Config) nameConstructed(entity string, ts []rdfres.Triple, over map[string]bool) ([]rdfres.Triple, error) {
	if over[entity] {
		return nil, fmt.Errorf("more than %d triples (%s)", c.MaxDescriptionTriples, c.Names.Of("max_description_triples"))
	}
	return nameOwn(c, entity, ts)
}

// nameOwn names the blank nodes of a description that shares none.
func nameOwn(cfg *Config, entity string, ts []rdfres.Triple) ([]rdfres.Triple, error) {
	ts = rdfres.SortUnique(ts)
	if err := checkAll(ts); err != nil {
		return nil, err
	}
	if len(ts) > cfg.MaxDescriptionTriples {
		return nil, fmt.Errorf("more than %d triples (%s)", cfg.MaxDescriptionTriples, cfg.Names.Of("max_description_triples"))
	}
	named, _, err := rdfres.NameBlanks(ts, rdfres.NameOptions{Scope: entity, WorkLimit: cfg.WorkLimit})
	return named, err
}

// selectionPattern is the pattern of the subjects with the classes and prefixes.
func (c *Config) selectionPattern(sc *scope) string {
	pattern := sc.all()
	if len(c.Select.Classes) > 0 {
		values, _ := escapeAll(c.Select.Classes) // checked by New
		pattern = "VALUES ?class { " + strings.Join(values, " ") + " } " + sc.triple("?s", rdfType, "?class")
	}
	var prefixes []string
	for _, p := range c.Select.Prefixes {
		prefixes = append(prefixes, "STRSTARTS(STR(?s), "+sparql.EscapeString(p)+")")
	}
	if len(prefixes) > 0 {
		pattern += " FILTER(" + strings.Join(prefixes, " || ") + ")"
	}
	return pattern
}
