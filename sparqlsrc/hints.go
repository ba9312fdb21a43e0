package sparqlsrc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/extsort"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Named are possibly changed entities, each once, kept on disk. Close it.
type Named struct {
	s    *Source
	dir  string
	list *extsort.Sorter

	failed map[string]error
}

// Named makes an empty list.
func (s *Source) Named() (*Named, error) {
	dir, err := ownfile.MkdirTemp(s.cfg.TempDir, "hints-*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the entities that are named: %w", err)
	}
	list, err := extsort.New(dir, s.cfg.MemoryBytes/8)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Named{s: s, dir: dir, list: list, failed: map[string]error{}}, nil
}

// Add takes an entity; one may come more than once.
func (n *Named) Add(entity string) error {
	key := rdfres.EntityKey(entity)
	return n.list.Add(key[:], []byte(entity))
}

// Len is how often Add was called.
func (n *Named) Len() int64 { return n.list.Len() }

// Failed are the entities without a description, with the reason, once Descriptions was
// read: the caller must keep their last state.
func (n *Named) Failed() map[string]error { return n.failed }

// Close removes the list from the disk.
func (n *Named) Close() error { return errors.Join(n.list.Close(), os.RemoveAll(n.dir)) }

// namedBatch bounds the entities described at once, in memory; heldTriple is the assumed
// size of a triple in bytes.
const (
	namedBatch = 1000
	heldTriple = 256
)

// Descriptions describes the entities as they are now. A deleted entity, or one outside of
// the selection, comes with no triples. Other owners of their blank-node components come
// last.
//
// It holds at most Config.MemoryBytes of descriptions, or one named entity with the other
// owners of its components.
func (n *Named) Descriptions(ctx context.Context) iter.Seq2[rdfres.Description, error] {
	return func(yield func(rdfres.Description, error) bool) {
		if err := n.describe(ctx, yield); err != nil && !errors.Is(err, errStopped) {
			yield(rdfres.Description{}, err)
		}
	}
}

func (n *Named) describe(ctx context.Context, yield func(rdfres.Description, error) bool) (err error) {
	unasked, err := extsort.New(n.dir, n.s.cfg.MemoryBytes/8)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unasked.Close()) }()
	done := int64(0)
	var some func(part []string) error
	some = func(part []string) error {
		ds, failed, err := n.s.describe(ctx, part, n.s.cfg.MemoryBytes/heldTriple)
		if errors.Is(err, errTooMany) {
			n.s.log.Debug("too much is described at once, so half of it is", "entities", len(part))
			if err := some(part[:len(part)/2]); err != nil {
				return err
			}
			return some(part[len(part)/2:])
		}
		if err != nil {
			return err
		}
		maps.Copy(n.failed, failed)
		asked := map[string]bool{}
		for _, e := range part {
			asked[e] = true
		}
		for _, d := range ds {
			if !asked[d.Entity] {
				key := rdfres.EntityKey(d.Entity)
				if err := unasked.Add(key[:], packDescription(d)); err != nil {
					return err
				}
				continue
			}
			done++
			if !yield(d, nil) {
				return errStopped
			}
		}
		n.s.cfg.Progress("describe", done, n.list.Len())
		return nil
	}
	if err := eachOf(n.list, namedBatch, some); err != nil {
		return err
	}
	return n.others(unasked, yield)
}

// others gives the entities beyond the named ones, each once.
func (n *Named) others(unasked *extsort.Sorter, yield func(rdfres.Description, error) bool) error {
	next, stop := iter.Pull2(n.list.Sort())
	defer stop()
	named, err, more := next()
	var last []byte
	for r, rerr := range unasked.Sort() {
		for err == nil && more && bytes.Compare(named.Key, r.Key) < 0 {
			named, err, more = next()
		}
		if err := cmp.Or(rerr, err); err != nil {
			return err
		}
		if bytes.Equal(r.Key, last) || more && bytes.Equal(r.Key, named.Key) {
			continue
		}
		last = append(last[:0], r.Key...)
		d, err := unpackDescription(r.Value)
		if err != nil {
			return err
		}
		if !yield(d, nil) {
			return errStopped
		}
	}
	return err
}

// packDescription writes an entity after its length, and its triples, one a line.
func packDescription(d rdfres.Description) []byte {
	b := append(binary.AppendUvarint(nil, uint64(len(d.Entity))), d.Entity...)
	for _, t := range d.Triples {
		b = t.AppendLine(b)
	}
	return b
}

func unpackDescription(b []byte) (d rdfres.Description, err error) {
	n, at := binary.Uvarint(b)
	if at <= 0 || n > uint64(len(b)-at) {
		return d, errors.New("a description on disk is not whole")
	}
	b = b[at:]
	d.Entity = string(b[:n])
	for line := range bytes.Lines(b[n:]) {
		q, ok, err := rdfres.ParseLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return d, fmt.Errorf("description of %s on disk: %w", d.Entity, err)
		}
		if ok {
			d.Triples = append(d.Triples, q.Triple)
		}
	}
	return d, nil
}

const xsdDateTime = "<http://www.w3.org/2001/XMLSchema#dateTime>"

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// modifiedPattern binds ?s to an entity and ?m to a value of one of the properties; by
// graph, to a value of anything in the graph.
func (sc *scope) modifiedPattern(byGraph bool, properties []string) (string, error) {
	values, odd := escapeAll(properties)
	if len(odd) > 0 {
		return "", fmt.Errorf("the property %q cannot be written in a query", odd[0])
	}
	p, before := values[0], ""
	if len(values) > 1 {
		p, before = "?p", "VALUES ?p { "+strings.Join(values, " ")+" } "
	}
	if byGraph {
		return before + "GRAPH ?s { ?x " + p + " ?m } FILTER(!" + sparql.OwnGraph("?s") + ") ", nil
	}
	return before + sc.triple("?s", p, "?m"), nil
}

// ModifiedSince gives the entities with a time of since or later as a value of one of the
// properties: an xsd:dateTime of any time zone, a date, a year, or a text of such a form.
// An entity may come more than once, and some with a slightly earlier time too.
func (s *Source) ModifiedSince(ctx context.Context, properties []string, since time.Time, f func(entity string) error) error {
	caps, scope, err := s.ready(ctx)
	if err != nil {
		return err
	}
	pattern, err := scope.modifiedPattern(s.byGraph, properties)
	if err == nil {
		err = s.eachSubject(ctx, caps, scope, pattern+modifiedFilter(since), f)
	}
	if err != nil {
		return fmt.Errorf("what was modified since %s: %w", timeText(since), err)
	}
	return nil
}

// LatestSince is ModifiedSince with the values, by one query, for at most so many. more tells of
// others.
func (s *Source) LatestSince(ctx context.Context, properties []string, since time.Time, most int) (found map[[2]string]bool, more bool, err error) {
	_, scope, err := s.ready(ctx)
	if err != nil {
		return nil, false, err
	}
	pattern, err := scope.modifiedPattern(s.byGraph, properties)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.client.SelectAs(ctx, fmt.Sprintf("SELECT DISTINCT ?s ?m WHERE { %sFILTER(isIRI(?s)) } LIMIT %d", pattern+modifiedFilter(since), most+1), sparql.ReadSelectJSON)
	if err != nil {
		return nil, false, fmt.Errorf("what was modified since %s: %w", timeText(since), err)
	}
	defer rows.Close()
	found = map[[2]string]bool{}
	n := 0
	for row, err := range rows.Rows {
		if err != nil {
			return nil, false, err
		}
		if n++; row[0].Kind() == rdfres.KindIRI {
			found[[2]string{row[0].IRI(), string(row[1])}] = true
		}
	}
	return found, n > most, nil
}

// modifiedFilter lets pass a time ?m of since or later.
func modifiedFilter(since time.Time) string {
	text := timeText(since)
	day := sparql.EscapeString(text[:10])
	return "FILTER(IF(STRLEN(STR(?m)) <= 10 || SUBSTR(STR(?m), 11, 1) != \"T\", SUBSTR(STR(?m), 1, 10) >= SUBSTR(" + day + ", 1, STRLEN(STR(?m))), STR(?m) >= " + sparql.EscapeString(text) +
		") || (DATATYPE(?m) = " + xsdDateTime + " && ?m >= " + sparql.EscapeString(text) + "^^" + xsdDateTime + ") || " +
		// A text of a zone in the west is up to half a day behind, and nothing compares it as a time.
		"(DATATYPE(?m) != " + xsdDateTime + " && STRLEN(STR(?m)) > 20 && SUBSTR(STR(?m), STRLEN(STR(?m)) - 5, 1) = \"-\" && STR(?m) >= " +
		sparql.EscapeString(timeText(since.Add(-12*time.Hour))) + ")) "
}

// NamedSince gives the IRIs of ?entity in the user's SELECT; ?since in it stands for a time
// (xsd:dateTime).
func (s *Source) NamedSince(ctx context.Context, query string, since time.Time, f func(entity string) error) error {
	text, err := withSince(query, since)
	if err == nil {
		_, err = s.eachSelected(ctx, text, f)
	}
	if err != nil {
		return fmt.Errorf("hints query: %w", err)
	}
	return nil
}

// withSince puts the time in the place of ?since.
func withSince(query string, since time.Time) (string, error) {
	if _, err := parseQuery(query, "SELECT"); err != nil {
		return "", err
	}
	tokens, err := lex(query)
	if err != nil {
		return "", err
	}
	value := sparql.EscapeString(timeText(since)) + "^^" + xsdDateTime
	for _, t := range slices.Backward(tokens) {
		if t.kind == tokVar && t.text == "since" {
			query = query[:t.at] + value + query[t.at+len("?since"):]
		}
	}
	return query, nil
}

// The countable partitions.
const (
	ByClass = "class"
	ByGraph = "graph"
)

// Partition is the counts of one class or graph; equal ones show no change.
type Partition struct {
	Entities int64  `json:"entities"` // different subjects
	Sum      string `json:"sum"`      // triples, and the length of all their objects
}

// maxPartitions bounds the result of Partitions.
const maxPartitions = 50_000

// Partitions counts the entities of each class or graph, by IRI.
func (s *Source) Partitions(ctx context.Context, by string) (map[string]Partition, error) {
	caps, scope, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	pattern := "GRAPH ?k { ?s ?p ?o } FILTER(!" + sparql.OwnGraph("?k") + ") "
	if by == ByClass && s.byGraph { // of graphs as entities, and no others
		pattern = s.cfg.graphQuads(nil) + "GRAPH ?g { ?s " + rdfType + " ?k } "
	} else if by == ByClass {
		pattern = scope.triple("?s", rdfType, "?k") + scope.triple("?s", "?p", "?o")
		if classes, odd := escapeAll(s.cfg.Select.Classes); len(classes) > 0 && len(odd) == 0 {
			pattern = "VALUES ?k { " + strings.Join(classes, " ") + " } " + pattern
		}
	} else if !s.byGraph && len(s.cfg.Graphs) > 0 && s.cfg.Graphs[0] != "*" || s.byGraph && !s.cfg.everyGraph() {
		values, _ := escapeAll(s.cfg.Graphs)
		pattern = "VALUES ?k { " + strings.Join(values, " ") + " } GRAPH ?k { ?s ?p ?o } "
	}
	query := "SELECT ?k (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?e) (SUM(IF(isBlank(?o), 0, STRLEN(STR(?o)))) AS ?l) WHERE { " + pattern + "} GROUP BY ?k"
	sol, err := s.client.SelectAs(ctx, query, sparql.ReadSelectJSON)
	if err != nil {
		return nil, fmt.Errorf("count by %s: %w", by, err)
	}
	out := map[string]Partition{}
	rows := int64(0)
	for row, err := range sol.Rows {
		if err != nil {
			return nil, fmt.Errorf("count by %s: %w", by, err)
		}
		if rows++; rows > maxPartitions {
			sol.Close()
			return nil, fmt.Errorf("count by %s: there are more than %d", by, maxPartitions)
		}
		if len(row) != 4 || row[0].Kind() != rdfres.KindIRI {
			continue
		}
		var p Partition
		n, _, _ := row[1].Literal()
		e, _, _ := row[2].Literal()
		l, _, _ := row[3].Literal()
		if _, err := fmt.Sscan(e, &p.Entities); err != nil {
			return nil, fmt.Errorf("count by %s: %q is no number", by, e)
		}
		p.Sum = n + " " + l
		out[row[0].IRI()] = p
	}
	if s.lengths.mayBeCut(rows, caps) || rows >= 1000 && isRound(rows) {
		n, err := s.client.Count(ctx, "SELECT (COUNT(DISTINCT ?k) AS ?n) WHERE { "+pattern+"}")
		if err == nil && n != rows {
			err = fmt.Errorf("%w: %d rows came of %d", ErrShort, rows, n)
		}
		if err != nil {
			return nil, fmt.Errorf("count by %s: %w", by, err)
		}
	}
	return out, nil
}

// OfPartition gives the entities of a class or graph.
func (s *Source) OfPartition(ctx context.Context, by, key string, f func(entity string) error) error {
	if s.byGraph && by == ByGraph {
		return f(key)
	}
	caps, scope, err := s.ready(ctx)
	if err != nil {
		return err
	}
	iri, err := sparql.EscapeIRI(key)
	if err != nil {
		return err
	}
	pattern := "GRAPH " + iri + " { ?s ?p ?o } "
	if by == ByClass {
		pattern = scope.triple("?s", rdfType, iri)
		if s.byGraph {
			pattern = "GRAPH ?s { ?x " + rdfType + " " + iri + " } "
		}
	}
	if err := s.eachSubject(ctx, caps, scope, pattern, f); err != nil {
		return fmt.Errorf("the entities of %s %s: %w", by, key, err)
	}
	return nil
}

// ready is the capabilities of the store, and the patterns for it.
func (s *Source) ready(ctx context.Context) (sparql.Capabilities, *scope, error) {
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return caps, nil, err
	}
	scope, err := s.scope(ctx, caps)
	return caps, scope, err
}
