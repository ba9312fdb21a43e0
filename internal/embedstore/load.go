package embedstore

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// LoadOptions for Load.
type LoadOptions struct {
	Replace bool   // the graph (with "" and a format of quads: every graph) holds only the loaded quads afterwards
	Base    string // base IRI of relative references
	Name    string // of the document, for messages
}

// Load adds the statements of r as one transaction and returns the number of those new to the
// store. graph is the IRI of the graph for triples; "" is the default graph. N-Quads and TriG keep
// their own graphs when graph is "", and may name none when it is not.
func (s *Store) Load(ctx context.Context, graph string, f rdfres.Format, r io.Reader, o LoadOptions) (added int64, err error) {
	res, err := s.load(ctx, graph, f, r, o, scopeAuto)
	return res.added, err
}

// loaded is the result of a load.
type loaded struct {
	added, removed int64
	created        bool // the graph held nothing before
}

// loadScope is the target of a load without a named graph.
type loadScope byte

const (
	scopeAuto loadScope = iota // the default graph, or with a format of quads all graphs
	scopeOne                   // the default graph alone
	scopeAll                   // all graphs, whatever the format
)

func (s *Store) load(ctx context.Context, graph string, f rdfres.Format, r io.Reader, o LoadOptions, scope loadScope) (res loaded, err error) {
	return s.loadAll(ctx, graph, f, o.Replace, scope, func(ctx context.Context, l *load) error { return l.read(ctx, f, r, o) })
}

// loadAll is load of all documents given by read.
func (s *Store) loadAll(ctx context.Context, graph string, f rdfres.Format, replace bool, scope loadScope, read func(context.Context, *load) error) (res loaded, err error) {
	if err := s.begin(); err != nil {
		return res, err
	}
	defer s.done()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	l := &load{s: s, seg: newSegment(), one: scope == scopeOne || graph != "", replace: replace}
	defer l.discard()
	if graph != "" {
		l.graph = iriTerm(graph)
		if err := rdfres.CheckIRI(l.graph); err != nil {
			return res, &InputError{fmt.Errorf("load into a graph: %w", err)}
		}
	}
	l.replaceAll = replace && !l.one && (scope == scopeAll || f == rdfres.NQuads || f == rdfres.TriG)
	if err := read(ctx, l); err != nil {
		return res, err
	}
	if err := s.beginWrite(ctx); err != nil {
		return res, err
	}
	defer s.endWrite()
	return l.write(ctx)
}

// load is one document on its way into the store.
type load struct {
	s          *Store
	graph      string // term; "" for the default graph
	one        bool   // all goes into graph
	replace    bool
	replaceAll bool
	part       int // number of the document, if there are several

	seg  *segment // the last part of the document
	file *segmentFile
}

var loadNumber atomic.Int64

// read takes the whole document, before anything is written.
func (l *load) read(ctx context.Context, f rdfres.Format, r io.Reader, o LoadOptions) error {
	name := o.Name
	if name == "" {
		name = "the document"
	}
	n := 0
	for q, err := range codec.Read(contextReader{ctx, r}, f, rdfres.ReadOptions{Base: o.Base, Name: name, CheckIRIs: true}) {
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &InputError{fmt.Errorf("load %s as %s: %w", name, f, err)}
		}
		if n++; n&1023 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g := string(q.G)
		if l.one {
			if g != "" {
				return &InputError{fmt.Errorf("load %s: statement %d stands in graph %s, and all were to go into one graph: load it without naming a graph", name, n, g)}
			}
			g = l.graph
		}
		if l.seg.full() || l.s.forced.chunk > 0 && len(l.seg.quads) >= l.s.forced.chunk {
			if err := l.spill(); err != nil {
				return err
			}
		}
		l.seg.quads = append(l.seg.quads, [4]uint32{l.number(q.S), l.seg.number(string(q.P)), l.number(q.O), l.seg.number(g)})
	}
	return ctx.Err()
}

// number is the number of a term in the segment.
func (l *load) number(t rdfres.Term) uint32 {
	if l.part > 0 && kindOf(string(t)) == idBlank {
		return l.seg.number(fmt.Sprintf("_:p%d.%s", l.part, t[2:]))
	}
	return l.seg.number(string(t))
}

// InputError is an unreadable document; nothing of it was stored.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func (l *load) spill() (err error) {
	if l.file == nil {
		if l.file, err = newSegmentFile(l.s.tmp("load" + strconv.FormatInt(loadNumber.Add(1), 10))); err != nil {
			return err
		}
	}
	if err := l.file.write(l.seg); err != nil {
		return err
	}
	l.seg.reset()
	return nil
}

func (l *load) discard() {
	if l.file != nil {
		l.file.discard()
		l.file = nil
	}
}

// Up to here a load is written as a small transaction (one synced write to the
// log); beyond, as sorted tables.
const (
	smallLoad    = 20_000
	smallReplace = 20_000
)

// write stores the read statements; the caller holds the right to write.
func (l *load) write(ctx context.Context) (res loaded, err error) {
	v := pebbleView{l.s.db}
	var g id
	if l.graph != "" {
		if g, err = lookup(v, l.graph); err != nil {
			return res, err
		}
	}
	held := int64(0)
	if l.graph == "" || g != 0 {
		if held, err = graphCount(v, g); err != nil {
			return res, err
		}
	}
	res.created = held == 0
	old := int64(0)
	if l.replaceAll {
		err = graphCounts(v, func(_ id, n int64) bool { old += n; return true })
		if err != nil {
			return res, err
		}
	} else if l.replace {
		old = held
	}
	if !l.s.forced.bulk && l.file == nil && len(l.seg.quads) <= smallLoad && old <= smallReplace {
		res.added, res.removed, err = l.writeSmall(ctx, g, old > 0)
	} else {
		res.added, res.removed, err = l.writeBulk(ctx, g, old > 0)
	}
	return res, err
}

// writeSmall is the load as one ordinary transaction.
func (l *load) writeSmall(ctx context.Context, g id, replacing bool) (added, removed int64, err error) {
	t := l.s.newTxn()
	defer t.close()
	ids := make([]id, len(l.seg.terms)+1)
	for i, term := range l.seg.terms {
		if kindOf(term) == idBlank {
			ids[i+1], err = t.fresh(idBlank)
		} else {
			ids[i+1], err = t.termID(term)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	quads := make(map[quad]struct{}, len(l.seg.quads))
	for i := range l.seg.quads {
		n := &l.seg.quads[i]
		quads[quad{ids[n[0]], ids[n[1]], ids[n[2]], ids[n[3]]}] = struct{}{}
	}
	if replacing {
		var gone []quad
		pat := quad{posG: g}
		err := scan(t.v, nil, access{3, map[bool]int{true: 0, false: 1}[l.replaceAll]}, &pat, !l.replaceAll, func(q *quad) bool {
			if _, ok := quads[*q]; !ok {
				gone = append(gone, *q)
			}
			return true
		})
		if err != nil {
			return 0, 0, err
		}
		for i := range gone {
			if _, err := t.remove(&gone[i]); err != nil {
				return 0, 0, err
			}
			removed++
		}
	}
	for i := range l.seg.quads {
		if i&255 == 0 && ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		n := &l.seg.quads[i]
		ok, err := t.insert(&quad{ids[n[0]], ids[n[1]], ids[n[2]], ids[n[3]]})
		if err != nil {
			return 0, 0, err
		}
		if ok {
			added++
		}
	}
	return added, removed, t.commit(ctx)
}

// contextReader ends reading with the context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
