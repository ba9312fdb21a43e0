package embedstore

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/rdfres"
)

// UpdateOptions for UpdateFrom.
type UpdateOptions struct {
	DefaultGraphs []string // using-graph-uri of the protocol
	NamedGraphs   []string // using-named-graph-uri
	Base          string   // base IRI of relative references
	Budget        Budget   // zero fields: the store's
}

// Update runs a SPARQL 1.1 update request. All its operations are one transaction, and later
// operations see the changes of earlier ones. Errors are those of Query.
func (s *Store) Update(ctx context.Context, text string) error {
	return s.UpdateFrom(ctx, strings.NewReader(text), UpdateOptions{})
}

// UpdateFrom is Update of a request read during its execution, so it may be larger than memory.
// Other writers wait while r is read.
func (s *Store) UpdateFrom(ctx context.Context, r io.Reader, o UpdateOptions) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	if err := s.beginWrite(ctx); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	defer s.endWrite()
	if err := s.update(ctx, r, o); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return nil
}

func (s *Store) update(ctx context.Context, r io.Reader, o UpdateOptions) error {
	p := newParser(contextReader{ctx, r}, o.Base)
	u := &updater{s: s, ctx: ctx, o: o, t: s.newTxn(), in: &p.in, ops: updateParser{p}}
	defer u.t.close()
	if err := u.in.guarded(func() { u.in.advance() }); err != nil {
		return err
	}
	for {
		more, err := u.one()
		if err != nil {
			return err
		}
		if err := u.t.settle(); err != nil {
			return err
		}
		if !more {
			return u.t.commit(ctx)
		}
	}
}

// updater runs one update request.
type updater struct {
	s   *Store
	ctx context.Context
	o   UpdateOptions
	t   *txn
	in  *tokenReader
	ops updateParser
}

// one reads and runs the next operation.
func (u *updater) one() (more bool, err error) {
	var op *operation
	err = u.in.guarded(func() {
		if op = u.ops.operation(); op == nil {
			return
		}
		switch op.kind {
		case opInsertData, opDeleteData:
			u.data(op.kind == opInsertData)
		}
		u.ops.separator()
	})
	if err != nil || op == nil {
		return false, err
	}
	switch op.kind {
	case opModify:
		err = u.modify(op)
	case opClear, opDrop:
		err = u.clear(op.a, u.in.tok.kind == tokEOF)
	case opCreate:
		var n int64
		if n, err = u.countOf(op.a); err == nil && n > 0 && !op.silent {
			err = refuse(http.StatusConflict, "CREATE GRAPH %s: the graph is there already; use CREATE SILENT", op.a.term)
		}
	case opLoad:
		if !op.silent {
			err = unsupported("LOAD " + op.loadIRI + ": the embedded store fetches nothing; send the document with the Graph Store Protocol")
		}
	case opAdd, opMove, opCopy:
		err = u.transfer(op)
	}
	return true, err
}

// data is INSERT DATA and DELETE DATA. It panics with a parseError, as the
// parser does.
func (u *updater) data(insert bool) {
	fresh := map[int]id{}
	n := 0
	u.ops.dataQuads(insert, func(qp quadPattern) {
		err := func() error {
			if n++; n&255 == 0 && u.ctx.Err() != nil {
				return context.Cause(u.ctx)
			}
			var q quad
			for i, t := range [4]pterm{qp.s, qp.p, qp.o, qp.g} {
				var err error
				switch {
				case t.isVar():
					if q[i] = fresh[t.slot]; q[i] == 0 {
						q[i], err = u.t.fresh(idBlank)
						fresh[t.slot] = q[i]
					}
				case insert:
					q[i], err = u.t.termID(t.term)
				case t.term != "":
					if q[i], err = lookup(u.t.v, t.term); err == nil && q[i] == 0 {
						return nil // never heard of: not there
					}
				}
				if err != nil {
					return err
				}
			}
			if q[posS].kind() == idLiteral {
				u.in.fail("a literal cannot be a subject: %s", qp.s.term)
			}
			var err error
			if insert {
				_, err = u.t.insert(&q)
			} else {
				_, err = u.t.remove(&q)
			}
			return err
		}()
		if err != nil {
			panic(parseError{err})
		}
	})
}

// modify is DELETE and INSERT with WHERE (section 3.1.3): all solutions first, then the deletions,
// then the insertions.
func (u *updater) modify(op *operation) error {
	x := u.s.newExec(u.ctx, u.t.v, op.slots, u.o.Budget.or(*u.s.budget.Load()))
	defer x.close()
	x.exprs.base = op.base
	target := id(0)
	if op.with != "" {
		var err error
		if target, err = u.t.termID(op.with); err != nil {
			return err
		}
		x.v = u.t.v
		x.ds.defaults = []id{target}
	}
	if given := len(u.o.DefaultGraphs)+len(u.o.NamedGraphs) > 0; given || op.using.given {
		if given && (op.using.given || op.with != "") {
			return refuse(http.StatusBadRequest, "using-graph-uri cannot be given for a request that says USING or WITH: leave one of them out")
		}
		if err := x.setDataset(op.using, QueryOptions{DefaultGraphs: u.o.DefaultGraphs, NamedGraphs: u.o.NamedGraphs}); err != nil {
			return err
		}
	}
	del, ins := u.spool(), u.spool()
	defer del.discard()
	defer ins.discard()
	fill := func(sp *quadSpool, tmpl []quadPattern) error {
		for i := range tmpl {
			var q quad
			ok := true
			for k, t := range [4]pterm{tmpl[i].s, tmpl[i].p, tmpl[i].o, tmpl[i].g} {
				switch {
				case t.isVar():
					q[k] = x.row[t.slot]
					ok = ok && q[k] != 0
				case t.term != "":
					n, err := x.idOf(t.term)
					if err != nil {
						return err
					}
					q[k] = n
				case k == posG:
					q[k] = target
				}
			}
			if !ok || q[posS].kind() == idLiteral || q[posP].kind() != idIRI || q[posG] != 0 && q[posG].kind() == idLiteral {
				continue
			}
			if err := sp.add(q); err != nil {
				return err
			}
		}
		return nil
	}
	err := x.evalPart(op.where, func() error {
		x.exprs.solution++
		if err := fill(del, op.del); err != nil {
			return err
		}
		for _, b := range op.blanks {
			n, err := u.t.fresh(idBlank)
			if err != nil {
				return err
			}
			x.row[b] = n
		}
		err := fill(ins, op.ins)
		for _, b := range op.blanks {
			x.row[b] = 0
		}
		return err
	})
	if err != nil {
		return err
	}
	err = del.each(func(q *quad) error {
		for _, n := range q {
			if n.isLocal() {
				return nil // the store does not know the term
			}
		}
		_, err := u.t.remove(q)
		return err
	})
	if err != nil {
		return err
	}
	made := map[id]id{}
	return ins.each(func(q *quad) error {
		for k, n := range q {
			if !n.isLocal() {
				continue
			}
			m, ok := made[n]
			if !ok {
				var err error
				if n.kind() == idBlank {
					m, err = u.t.fresh(idBlank)
				} else if rdfres.CheckIRI(x.local.term(n)) != nil {
					return nil // made by the query, and no RDF
				} else {
					m, err = u.t.termID(x.local.term(n))
				}
				if err != nil {
					return err
				}
				made[n] = m
			}
			q[k] = m
		}
		_, err := u.t.insert(q)
		return err
	})
}

// graphOf is the id of a graph; ok is false when the store does not know it.
func (u *updater) graphOf(r graphRef) (g id, ok bool, err error) {
	if r.kind == 'd' {
		return 0, true, nil
	}
	g, err = lookup(u.t.v, r.term)
	return g, g != 0, err
}

func (u *updater) countOf(r graphRef) (int64, error) {
	g, ok, err := u.graphOf(r)
	if err != nil || !ok {
		return 0, err
	}
	return graphCount(u.t.v, g)
}

// clear is CLEAR and DROP: without empty graphs they are the same, and a missing graph is empty.
// last means that no operation follows.
func (u *updater) clear(r graphRef, last bool) error {
	if last && u.t.untouched() {
		if all, err := u.isAll(r); err != nil {
			return err
		} else if all {
			return u.t.wipe()
		}
	}
	if r.kind == 'g' || r.kind == 'd' {
		g, ok, err := u.graphOf(r)
		if err != nil || !ok {
			return err
		}
		return u.empty(g)
	}
	var graphs []id
	err := graphCounts(u.t.v, func(g id, _ int64) bool {
		if g != 0 || r.kind == 'a' {
			graphs = append(graphs, g)
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, g := range graphs {
		if err := u.empty(g); err != nil {
			return err
		}
	}
	return nil
}

// isAll tells whether the store holds nothing beside the named graphs.
func (u *updater) isAll(r graphRef) (bool, error) {
	named := id(0)
	if r.kind == 'g' {
		g, ok, err := u.graphOf(r)
		if err != nil || !ok {
			return false, err
		}
		named = g
	}
	all := true
	err := graphCounts(u.t.v, func(g id, _ int64) bool {
		switch r.kind {
		case 'g', 'd':
			all = g == named
		case 'a':
		default:
			all = g != 0
		}
		return all
	})
	return all, err
}

// eachQuad walks a graph as it is now; the transaction may be changed meanwhile.
func (u *updater) eachQuad(g id, fn func(q *quad) error) error {
	var inner error
	n := 0
	pat := quad{posG: g}
	err := scan(u.t.v, nil, access{3, 1}, &pat, true, func(q *quad) bool {
		if n++; n&255 == 0 && u.ctx.Err() != nil {
			inner = context.Cause(u.ctx)
		} else {
			inner = fn(q)
		}
		return inner == nil
	})
	if inner != nil {
		return inner
	}
	return err
}

func (u *updater) empty(g id) error {
	return u.eachQuad(g, func(q *quad) error { return u.t.removeHeld(q) })
}

// transfer is ADD, COPY and MOVE.
func (u *updater) transfer(op *operation) error {
	if op.a == op.b {
		return nil
	}
	n, err := u.countOf(op.a)
	if err != nil {
		return err
	}
	if n == 0 && op.a.kind == 'g' {
		if op.silent {
			return nil
		}
		return fmt.Errorf("the graph %s is not there; say SILENT if that is no error", op.a.term)
	}
	from, _, err := u.graphOf(op.a)
	if err != nil {
		return err
	}
	to := id(0)
	if op.b.kind == 'g' {
		if to, err = u.t.termID(op.b.term); err != nil {
			return err
		}
	}
	if op.kind != opAdd {
		if err := u.empty(to); err != nil {
			return err
		}
	}
	err = u.eachQuad(from, func(q *quad) error {
		c := *q
		c[posG] = to
		_, err := u.t.insert(&c)
		return err
	})
	if err != nil || op.kind != opMove {
		return err
	}
	return u.empty(from)
}

// quadSpool keeps quads until all solutions are known: some in memory, the
// rest in a file.
type quadSpool struct {
	s   *Store
	mem []quad
	f   *os.File
	w   *bufio.Writer
}

const spoolQuads = 1 << 16

var spoolNumber atomic.Int64

func (u *updater) spool() *quadSpool { return &quadSpool{s: u.s} }

func (p *quadSpool) add(q quad) (err error) {
	if len(p.mem) < spoolQuads && !(p.s.forced.chunk > 0 && len(p.mem) >= p.s.forced.chunk) {
		p.mem = append(p.mem, q)
		return nil
	}
	if p.f == nil {
		if p.f, err = ownfile.Create(p.s.tmp("quads" + strconv.FormatInt(spoolNumber.Add(1), 10))); err != nil {
			return fmt.Errorf("keep the solutions: %w", err)
		}
		p.w = bufio.NewWriterSize(p.f, 128<<10)
	}
	var b [32]byte
	for i, n := range q {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(n))
	}
	if _, err := p.w.Write(b[:]); err != nil {
		return fmt.Errorf("keep the solutions: %w", err)
	}
	return nil
}

func (p *quadSpool) each(fn func(q *quad) error) error {
	for i := range p.mem {
		if err := fn(&p.mem[i]); err != nil {
			return err
		}
	}
	if p.f == nil {
		return nil
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("keep the solutions: %w", err)
	}
	if _, err := p.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(p.f, 128<<10)
	var b [32]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read back the solutions: %w", err)
		}
		var q quad
		for i := range q {
			q[i] = id(binary.LittleEndian.Uint64(b[8*i:]))
		}
		if err := fn(&q); err != nil {
			return err
		}
	}
}

func (p *quadSpool) discard() {
	if p.f != nil {
		p.f.Close()
		os.Remove(p.f.Name())
		p.f = nil
	}
}
