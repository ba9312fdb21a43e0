package sparqlsrc

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/rsbridge/rsbridge/rdfres"
)

// While a store still sends, a processor is often idle. A subject with triples in a row,
// and without a blank node, is likely to be described by them alone: Config.Ahead works on
// this description meanwhile. Its result is forgotten if there is more of the entity
// (Scan.read).

// Runs go to the workers in batches of about so many bytes, without longer runs. If all are
// at work, a batch is sorted without foresight: a download never waits.
const (
	foreseenBytes   = 64 << 10
	foreseenBatches = 4
)

// A batch of records of the entity sorter (run.appendRecord), one after the other.
type runBatch struct {
	keys      []rdfres.Digest
	buf       []byte
	ends      []int
	spare     []byte // buffer of a worker
	spareEnds []int
}

// foresight runs Config.Ahead on likely descriptions. Its owner calls add and end from one
// goroutine, and close at its end.
type foresight struct {
	ask     func() Ahead // Config.Ahead; nil: it was asked, by the first record
	sink    func(key *rdfres.Digest, record []byte) error
	batch   *runBatch
	work    chan *runBatch
	done    chan *runBatch
	free    []*runBatch
	pending int // batches with the workers
	workers sync.WaitGroup
	closed  bool

	// A sample of subjects, by the first bits of their keys: a store with the triples of
	// one subject in several places gains nothing.
	seen         map[rdfres.Digest]bool
	asked, twice int
	off          bool // nothing is made ahead
}

// newForesight asks at the first record. sink takes the records, in any order.
func newForesight(ask func() Ahead, sink func(key *rdfres.Digest, record []byte) error) *foresight {
	return &foresight{ask: ask, sink: sink, seen: map[rdfres.Digest]bool{}}
}

// begin starts the workers, unless nothing is to be made ahead.
func (f *foresight) begin() {
	ahead := f.ask()
	f.ask = nil
	if f.off = ahead == nil; f.off {
		return
	}
	workers := max(1, runtime.GOMAXPROCS(0)/2) // the others are for the store and the reader of its answer
	f.work, f.done = make(chan *runBatch, foreseenBatches), make(chan *runBatch, 2*foreseenBatches+workers)
	for range workers {
		f.workers.Go(func() {
			var w foreseer
			for b := range f.work {
				w.all(ahead, b)
				f.done <- b // it has room for all batches
			}
		})
	}
}

// wanted tells whether the runs of this store are worth it.
func (f *foresight) wanted(key *rdfres.Digest) bool {
	const sampled = 4096
	if !f.off && key[0]&0x1f == 0 && f.asked < sampled {
		if f.asked++; f.seen[*key] {
			f.twice++
		} else {
			f.seen[*key] = true
		}
		f.off = f.twice*8 > f.asked+64
	}
	return !f.off
}

// add takes a record, and does not keep it.
func (f *foresight) add(key *rdfres.Digest, record []byte) error {
	if f.ask != nil {
		f.begin()
	}
	if len(record) > foreseenBytes || !f.wanted(key) { // of a very long literal
		return f.sink(key, record)
	}
	b := f.batch
	if n := len(f.free); b == nil && n > 0 {
		b, f.free = f.free[n-1], f.free[:n-1]
	} else if b == nil {
		b = &runBatch{}
	}
	f.batch = b
	b.keys = append(b.keys, *key)
	b.buf = append(b.buf, record...)
	if b.ends = append(b.ends, len(b.buf)); len(b.buf) < foreseenBytes {
		return nil
	}
	f.batch = nil
	if err := f.collect(false); err != nil {
		return err
	}
	select {
	case f.work <- b:
		f.pending++
		return nil
	default:
		return f.give(b)
	}
}

// give passes the records of a batch on.
func (f *foresight) give(b *runBatch) error {
	for i := range b.keys {
		if err := f.sink(&b.keys[i], piece(b.buf, b.ends, i)); err != nil {
			return err
		}
	}
	b.keys, b.buf, b.ends = b.keys[:0], b.buf[:0], b.ends[:0]
	f.free = append(f.free, b)
	return nil
}

// collect passes finished batches on, with wait all of them.
func (f *foresight) collect(wait bool) error {
	for f.pending > 0 {
		var b *runBatch
		if wait {
			b = <-f.done
		} else {
			select {
			case b = <-f.done:
			default:
				return nil
			}
		}
		f.pending--
		if err := f.give(b); err != nil {
			return err
		}
	}
	return nil
}

// end passes on everything.
func (f *foresight) end() error {
	if b := f.batch; b != nil {
		f.batch = nil
		f.work <- b
		f.pending++
	}
	return f.collect(true)
}

// close ends the workers. It is safe to call twice.
func (f *foresight) close() {
	if !f.closed {
		f.closed = true
		if f.work != nil {
			close(f.work)
		}
		f.workers.Wait()
		f.batch, f.free = nil, nil
	}
}

// foreseer is the reused memory of one worker.
type foreseer struct {
	lines   lineSet
	triples []rdfres.Triple
}

// all writes the records of a batch again, if possible with the results of ahead.
func (w *foreseer) all(ahead Ahead, b *runBatch) {
	out, ends := b.spare[:0], b.spareEnds[:0]
	for i := range b.keys {
		out = w.one(out, ahead, piece(b.buf, b.ends, i))
		ends = append(ends, len(out))
	}
	b.spare, b.spareEnds, b.buf, b.ends = b.buf, b.ends, out, ends
}

// one appends a record unchanged; or recordAhead, the result of ahead after its length, and
// the rest of the record with its triples in order.
func (w *foreseer) one(dst []byte, ahead Ahead, record []byte) []byte {
	subject, rest, ok := cutBytes(record[1:])
	l := &w.lines
	l.buf, l.ends, l.order = l.buf[:0], l.ends[:0], l.order[:0]
	for ok && len(rest) > 0 {
		var line []byte
		if line, rest, ok = cutBytes(rest); ok {
			l.order = append(l.order, len(l.ends))
			l.buf = append(append(append(l.buf, subject...), ' '), line...)
			l.ends = append(l.ends, len(l.buf))
		}
	}
	if !ok { // whoever reads it will say so
		return append(dst, record...)
	}
	compare := func(a, b int) int { return bytes.Compare(piece(l.buf, l.ends, a), piece(l.buf, l.ends, b)) }
	slices.SortFunc(l.order, compare)
	all := string(l.buf)
	w.triples = w.triples[:0]
	for k, i := range l.order {
		if k > 0 && compare(l.order[k-1], i) == 0 { // a double: it must be counted
			return append(dst, record...)
		}
		w.triples = append(w.triples, tripleOf(piece(all, l.ends, i)))
	}
	made := ahead(iriOf(subject), w.triples)
	clear(w.triples)
	if len(made) == 0 {
		return append(dst, record...)
	}
	dst = binary.AppendUvarint(append(dst, recordAhead), uint64(len(made)))
	dst = append(dst, made...)
	dst = binary.AppendUvarint(dst, uint64(len(subject)))
	dst = append(dst, subject...)
	for _, i := range l.order {
		line := piece(l.buf, l.ends, i)[len(subject)+1:]
		dst = binary.AppendUvarint(dst, uint64(len(line)))
		dst = append(dst, line...)
	}
	return dst
}
