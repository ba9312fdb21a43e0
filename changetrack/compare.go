package changetrack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Items go to the workers in jobs of about this size, so a handful of jobs bounds the memory.
const (
	jobItems   = 64
	jobTriples = 4096
)

// job is a run of items; done is closed when the rest is filled in.
type job struct {
	items   []item
	triples int

	out     []byte // framed records, in the order of the items
	records uint64
	tally   tally
	err     error
	done    chan struct{}
}

// compare runs the pipeline. This goroutine merges found with the states, the workers compare and
// encode, and a collector stages their results in the order of found. All have ended when it
// returns.
func (s *scan) compare(ctx context.Context, found iter.Seq2[rdfres.Description, error]) error {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := runtime.GOMAXPROCS(0)
	work := make(chan *job, 2*n)
	order := make(chan *job, 4*n)
	s.free = make(chan []byte, 4*n)
	coders := make([]*coder, n)
	for i := range coders {
		var err error
		if coders[i], err = s.coder(); err != nil {
			return err
		}
	}
	var workers, collector sync.WaitGroup
	for _, c := range coders {
		workers.Go(func() {
			for j := range work {
				j.run(c)
			}
		})
	}
	collector.Go(func() {
		for j := range order {
			<-j.done
			if ctx.Err() == nil {
				if err := s.collect(j); err != nil {
					cancel(err)
				}
			}
		}
	})
	p := &producer{s: s, ctx: ctx, work: work, order: order}
	err := func() error {
		defer func() { // also when found panics
			close(work)
			workers.Wait()
			close(order)
			collector.Wait()
		}()
		err := p.produce(ctx, found)
		if err == nil {
			err = p.flush()
		}
		if err != nil {
			cancel(err) // the remaining jobs are not wanted
		}
		return err
	}()
	if err == nil || errors.Is(err, context.Canceled) {
		if cause := context.Cause(ctx); cause != nil {
			err = cause // of the collector, or of the caller
		}
	}
	if err == nil {
		err = outer.Err()
	}
	return err
}

func (j *job) run(c *coder) {
	defer close(j.done)
	select {
	case j.out = <-c.free:
	default:
	}
	for i := range j.items {
		var n uint64
		if j.out, n, j.err = c.compare(j.out, &j.items[i], &j.tally); j.err != nil {
			return
		}
		j.records += n
	}
	j.items = nil
}

func (s *scan) collect(j *job) error {
	if j.err != nil {
		return j.err
	}
	defer func() { // the receiver copies it
		select {
		case s.free <- j.out[:0]:
		default:
		}
	}()
	s.add(&j.tally)
	if s.first == nil && s.loads && !s.changes.fits(len(j.out)) {
		if err := s.beginFirst(); err != nil {
			return err
		}
	}
	if s.first != nil {
		return s.first.add(j.out, j.records)
	}
	return s.changes.addFramed(j.out, j.records)
}

// producer merges found descriptions with known states.
type producer struct {
	s     *scan
	ctx   context.Context
	work  chan<- *job
	order chan<- *job
	job   *job
	count int64
}

func (p *producer) produce(ctx context.Context, found iter.Seq2[rdfres.Description, error]) error {
	if p.s.o.Partial {
		return p.some(ctx, found)
	}
	return p.all(ctx, found)
}

// all merges two sequences in the order of the entity keys.
func (p *producer) all(ctx context.Context, found iter.Seq2[rdfres.Description, error]) error {
	next, stop := iter.Pull2(knownStates(ctx, p.s.view.r, rdfres.Digest{}, rdfres.Digest{}))
	defer stop()
	var known struct {
		kv.Pair
		ok bool
	}
	advance := func() (err error) {
		known.Pair, err, known.ok = next()
		return err
	}
	if err := advance(); err != nil {
		return err
	}
	var last rdfres.Digest
	var before string
	for d, err := range found {
		if err != nil {
			return err
		}
		if err := p.step(d); err != nil {
			return err
		}
		key := rdfres.EntityKey(d.Entity)
		if c := bytes.Compare(key[:], last[:]); p.count > 1 && c <= 0 {
			if c == 0 {
				return fmt.Errorf("%s is described twice", d.Entity)
			}
			return fmt.Errorf("%s comes after %s: descriptions must come in the order of rdfres.EntityKey", d.Entity, before)
		}
		if p.count > 1 && isState(last[:stateKeyBytes], &key) {
			return alike(d.Entity, before)
		}
		last, before = key, d.Entity
		for known.ok && bytes.Compare(known.Key[1:], key[:stateKeyBytes]) < 0 {
			if err := errors.Join(p.s.missing(known.Value), advance()); err != nil {
				return err
			}
		}
		var old []byte
		if known.ok && isState(known.Key[1:], &key) {
			if err := isOf(known.Value, d.Entity); err != nil {
				return err
			}
			old = bytes.Clone(known.Value)
			if err := advance(); err != nil {
				return err
			}
		}
		if err := p.item(d, old); err != nil {
			return err
		}
	}
	for known.ok {
		if err := errors.Join(p.s.missing(known.Value), advance()); err != nil {
			return err
		}
	}
	return nil
}

// lookedUp is how many entities are looked up at once.
const lookedUp = 100

// some looks every entity up. It remembers seen entities, 24 bytes each: a partial scan covers
// entities known to have changed.
func (p *producer) some(ctx context.Context, found iter.Seq2[rdfres.Description, error]) error {
	seen := map[[16]byte][8]byte{}
	var waiting []rdfres.Description
	var keys []rdfres.Digest
	triples := 0
	lookUp := func() error {
		olds, err := knownOf(ctx, p.s.view.r, keys)
		for i := 0; err == nil && i < len(waiting); i++ {
			if olds[i] != nil {
				err = isOf(olds[i], waiting[i].Entity)
			}
			if err == nil {
				err = p.item(waiting[i], olds[i])
			}
		}
		waiting, keys, triples = nil, nil, 0
		return err
	}
	for d, err := range found {
		if err != nil {
			return err
		}
		if err := p.step(d); err != nil {
			return err
		}
		key := rdfres.EntityKey(d.Entity)
		graph := rdfres.GraphDigest(d.Triples)
		if other, ok := seen[[16]byte(key[:16])]; ok {
			if other != [8]byte(graph[:8]) {
				return fmt.Errorf("%s is described twice, and differently", d.Entity)
			}
			continue
		}
		seen[[16]byte(key[:16])] = [8]byte(graph[:8])
		waiting, keys = append(waiting, d), append(keys, key)
		if triples += len(d.Triples); len(waiting) < lookedUp && triples < jobTriples {
			continue
		}
		if err := lookUp(); err != nil {
			return err
		}
	}
	return lookUp()
}

// isOf refuses the state of another entity with the same key.
func isOf(state []byte, entity string) error {
	p, err := peekState(state)
	if err != nil {
		return fmt.Errorf("state of %s: %w", entity, err)
	}
	if string(p.entity) != entity {
		return alike(entity, string(p.entity))
	}
	return nil
}

// alike is the error for entities with one key: somebody has made them for that.
func alike(a, b string) error {
	return fmt.Errorf("%s and %s have the same first %d bytes of their SHA-256: only one of them can be kept", a, b, stateKeyBytes)
}

// step looks whether to stop.
func (p *producer) step(d rdfres.Description) error {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	if d.Entity == "" {
		return errors.New("a description has no entity")
	}
	p.count++
	return nil
}

// item sends one entity on; one without triples is missing.
func (p *producer) item(d rdfres.Description, old []byte) error {
	if len(d.Triples) == 0 {
		if old == nil {
			return nil
		}
		return p.s.missing(old)
	}
	if p.job == nil {
		p.job = &job{done: make(chan struct{}), items: make([]item, 0, jobItems)}
	}
	p.job.items = append(p.job.items, item{d.Entity, d.Triples, old})
	p.job.triples += len(d.Triples)
	if len(p.job.items) < jobItems && p.job.triples < jobTriples {
		return nil
	}
	return p.flush()
}

func (p *producer) flush() error {
	j := p.job
	if j == nil {
		return nil
	}
	p.job = nil
	select {
	case p.order <- j:
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
	p.work <- j // workers go on until work is closed
	return nil
}

// missing sets aside a current entity not found by the scan. It runs on the goroutine of the
// producer, and absent is its own.
func (s *scan) missing(state []byte) error {
	st, err := readState(state)
	if err != nil || st.current == nil {
		return err
	}
	return s.absent.add(state)
}

// confirmBatch is how many entities are asked for at once.
const confirmBatch = 500

// confirm asks a second time for missing entities, and stages the deletions.
func (s *scan) confirm(ctx context.Context) error {
	c, err := s.coder()
	if err != nil {
		return err
	}
	var states [][]byte
	for rec, err := range s.absent.all() {
		if err == nil {
			states = append(states, bytes.Clone(rec))
			if len(states) == confirmBatch {
				err = s.confirmSome(ctx, c, states)
				states = states[:0]
			}
		}
		if err != nil {
			return err
		}
	}
	return s.confirmSome(ctx, c, states)
}

func (s *scan) confirmSome(ctx context.Context, c *coder, states [][]byte) error {
	var gone []*stateRecord
	var raw [][]byte
	var names []string
	for _, b := range states {
		st, err := readState(b)
		if err != nil {
			return err
		}
		if s.o.Failed != nil && s.o.Failed(st.entity) {
			continue
		}
		gone, raw, names = append(gone, st), append(raw, b), append(names, st.entity)
	}
	if len(gone) == 0 {
		return ctx.Err()
	}
	still := map[string][]rdfres.Triple{}
	if s.o.Confirm != nil {
		ds, err := s.o.Confirm(ctx, names)
		if err != nil {
			return fmt.Errorf("confirm %d deletions: %w", len(names), err)
		}
		for _, d := range ds {
			still[d.Entity] = d.Triples
		}
	}
	for i, st := range gone {
		if err := s.settle(c, st, raw[i], still[st.entity]); err != nil {
			return err
		}
	}
	return nil
}

// settle stages the deletion of an entity, or compares its remaining description.
func (s *scan) settle(c *coder, st *stateRecord, raw []byte, still []rdfres.Triple) error {
	if len(still) > 0 {
		var t tally
		out, n, err := c.compare(nil, &item{entity: st.entity, triples: still, old: raw}, &t)
		if err != nil {
			return err
		}
		s.add(&t)
		return s.changes.addFramed(out, n)
	}
	n := int64(st.current.Triples)
	s.res.Deleted++
	s.sum.triples -= n
	if isComponent(st.entity) {
		s.sum.components--
		s.sum.componentsGone++
		s.sum.componentLost += n
	} else {
		s.sum.deletedTriples += n
	}
	return s.changes.add(putStaged(nil, &staged{kind: Deleted, entity: st.entity, old: raw}))
}
