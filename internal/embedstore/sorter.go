package embedstore

import (
	"bufio"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// record is a quad in the order of an index, packed for comparison as three numbers, and the
// operation on it.
type record struct {
	a, b uint64
	c    uint32
	op   uint32
}

func pack(index int, q *quad, op byte) record {
	o := &orders[index]
	w, x, y, z := uint64(q[o[0]]), uint64(q[o[1]]), uint64(q[o[2]]), uint64(q[o[3]])
	return record{w<<24 | x>>16, x<<48 | y<<8 | z>>32, uint32(z), uint32(op)}
}

func (r *record) unpack(index int, q *quad) {
	o := &orders[index]
	q[o[0]] = id(r.a >> 24)
	q[o[1]] = id(r.a<<16|r.b>>48) & maxID
	q[o[2]] = id(r.b>>8) & maxID
	q[o[3]] = id(r.b<<32|uint64(r.c)) & maxID
}

func (r *record) compare(x *record) int {
	switch {
	case r.a != x.a:
		if r.a < x.a {
			return -1
		}
		return 1
	case r.b != x.b:
		if r.b < x.b {
			return -1
		}
		return 1
	case r.c != x.c:
		if r.c < x.c {
			return -1
		}
		return 1
	}
	return 0
}

func (r *record) sameKey(x *record) bool { return r.a == x.a && r.b == x.b && r.c == x.c }

// sorterRecords is how many records a sorter holds in memory (24 bytes each).
const sorterRecords = 1 << 20

const recordBytes = 21

// sorter sorts records in bounded memory: full chunks go to a file.
type sorter struct {
	s     *Store
	limit int
	chunk []record
	files []string
}

func newSorter(s *Store) *sorter {
	t := &sorter{s: s, limit: sorterRecords}
	if s.forced.chunk > 0 {
		t.limit = s.forced.chunk
	}
	return t
}

var runNumber atomic.Int64

func (t *sorter) add(r record) error {
	if len(t.chunk) >= t.limit {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.chunk = append(t.chunk, r)
	return nil
}

func (t *sorter) sortChunk() {
	slices.SortFunc(t.chunk, func(x, y record) int { return x.compare(&y) })
}

func (t *sorter) flush() (err error) {
	t.sortChunk()
	path := t.s.tmp("run" + strconv.FormatInt(runNumber.Add(1), 10))
	f, err := ownfile.Create(path)
	if err != nil {
		return fmt.Errorf("sort: %w", err)
	}
	t.files = append(t.files, path)
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 256<<10)
	var buf [recordBytes]byte
	for i := range t.chunk {
		r := &t.chunk[i]
		binary.BigEndian.PutUint64(buf[0:], r.a)
		binary.BigEndian.PutUint64(buf[8:], r.b)
		binary.BigEndian.PutUint32(buf[16:], r.c)
		buf[20] = byte(r.op)
		if _, err := w.Write(buf[:]); err != nil {
			return fmt.Errorf("sort: %w", err)
		}
	}
	t.chunk = t.chunk[:0]
	return w.Flush()
}

// each calls fn with the records in order, doubles left out.
func (t *sorter) each(ctx context.Context, fn func(r *record) error) error {
	t.sortChunk()
	var last record
	n := 0
	emit := func(r *record) error {
		if n > 0 && last.sameKey(r) {
			return nil
		}
		if n++; n&4095 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		last = *r
		return fn(r)
	}
	if len(t.files) == 0 {
		for i := range t.chunk {
			if err := emit(&t.chunk[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var h runHeap
	defer func() {
		for _, r := range h {
			r.close()
		}
	}()
	add := func(r *run) error {
		ok, err := r.next()
		if err != nil || !ok {
			r.close()
			return err
		}
		h = append(h, r)
		return nil
	}
	for _, path := range t.files {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("sort: %w", err)
		}
		if err := add(&run{f: f, r: bufio.NewReaderSize(f, 128<<10)}); err != nil {
			return err
		}
	}
	if err := add(&run{mem: t.chunk}); err != nil {
		return err
	}
	heap.Init(&h)
	for len(h) > 0 {
		r := h[0]
		if err := emit(&r.rec); err != nil {
			return err
		}
		ok, err := r.next()
		if err != nil {
			return err
		}
		if ok {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
			r.close()
		}
	}
	return nil
}

// discard removes the files and frees the memory.
func (t *sorter) discard() {
	for _, p := range t.files {
		os.Remove(p)
	}
	t.files, t.chunk = nil, nil
}

// run is one sorted sequence, of a file or of memory.
type run struct {
	rec record
	mem []record
	f   *os.File
	r   *bufio.Reader
}

func (r *run) next() (bool, error) {
	if r.f == nil {
		if len(r.mem) == 0 {
			return false, nil
		}
		r.rec, r.mem = r.mem[0], r.mem[1:]
		return true, nil
	}
	var buf [recordBytes]byte
	if _, err := io.ReadFull(r.r, buf[:]); err != nil {
		if err == io.EOF {
			return false, nil
		}
		return false, fmt.Errorf("sort: %w", err)
	}
	r.rec = record{binary.BigEndian.Uint64(buf[0:]), binary.BigEndian.Uint64(buf[8:]), binary.BigEndian.Uint32(buf[16:]), uint32(buf[20])}
	return true, nil
}

func (r *run) close() {
	if r.f != nil {
		r.f.Close()
	}
}

type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return h[i].rec.compare(&h[j].rec) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
