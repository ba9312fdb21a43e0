package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/s2"
)

// A run is a file of blocks. A block is two little-endian uint32, the length of
// its content and the length as stored, and the content packed with S2. The
// content is whole records in order, each as two uvarints (bytes shared with
// the record before in the block; further bytes) and the further bytes.
type run struct {
	path string
}

// runWriter writes one run.
type runWriter struct {
	file   *os.File
	path   string
	block  []byte
	packed []byte
	last   []byte
	limit  int
	bytes  int64
}

func (s *Sorter) newRun() (*runWriter, error) {
	if s.dir == "" {
		if err := os.MkdirAll(s.parent, 0o700); err != nil {
			return nil, fmt.Errorf("extsort: make the folder for spilling: %w", err)
		}
		dir, err := os.MkdirTemp(s.parent, "extsort-*")
		if err != nil {
			return nil, fmt.Errorf("extsort: make a folder for spilling: %w", err)
		}
		s.dir = dir
	}
	s.nextRun++
	path := filepath.Join(s.dir, fmt.Sprintf("run-%06d", s.nextRun))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("extsort: spill: %w", err)
	}
	return &runWriter{file: f, path: path, limit: s.blockLen}, nil
}

func (w *runWriter) add(rec []byte) error {
	shared := 0
	if len(w.block) > 0 {
		n := min(len(rec), len(w.last))
		for shared+8 <= n && binary.LittleEndian.Uint64(rec[shared:]) == binary.LittleEndian.Uint64(w.last[shared:]) {
			shared += 8
		}
		for shared < n && rec[shared] == w.last[shared] {
			shared++
		}
	}
	w.block = binary.AppendUvarint(w.block, uint64(shared))
	w.block = binary.AppendUvarint(w.block, uint64(len(rec)-shared))
	w.block = append(w.block, rec[shared:]...)
	w.last = append(w.last[:shared], rec[shared:]...)
	if len(w.block) >= w.limit {
		return w.flush()
	}
	return nil
}

func (w *runWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	n := s2.MaxEncodedLen(len(w.block))
	if n < 0 {
		return fmt.Errorf("extsort: spill %s: block of %d bytes is too long", w.path, len(w.block))
	}
	if cap(w.packed) < 8+n {
		w.packed = make([]byte, 8+n)
	}
	packed := s2.Encode(w.packed[8:8+n], w.block)
	out := w.packed[:8+len(packed)]
	binary.LittleEndian.PutUint32(out, uint32(len(w.block)))
	binary.LittleEndian.PutUint32(out[4:], uint32(len(packed)))
	if _, err := w.file.Write(out); err != nil {
		return fmt.Errorf("extsort: spill (is the disk full?): %w", err)
	}
	w.bytes += int64(len(out))
	w.block, w.last = w.block[:0], w.last[:0]
	return nil
}

// close finishes the run, or removes it when it was not finished.
func (w *runWriter) close(failed error) (*run, error) {
	if failed == nil {
		failed = w.flush()
	}
	if err := w.file.Close(); failed == nil && err != nil {
		failed = fmt.Errorf("extsort: spill (is the disk full?): %w", err)
	}
	if failed != nil {
		_ = os.Remove(w.path)
		return nil, failed
	}
	return &run{path: w.path}, nil
}

// written is what came of writing an arena.
type written struct {
	run   *run
	bytes int64
	err   error
}

// Spill begins to write what is in memory, if something was written before, so that
// it need not be waited for when what was added is read. More may be added.
func (s *Sorter) Spill() error {
	if s.closed || s.sorted || len(s.runs) == 0 && s.writing == nil {
		return nil
	}
	return s.spill()
}

// spill begins to write what is in memory as a run; the other arena is filled next.
func (s *Sorter) spill() error {
	if err := s.written(); err != nil || len(s.arena.index) == 0 {
		return err
	}
	w, err := s.newRun()
	if err != nil {
		s.failed = err
		return err
	}
	a := s.arena
	s.arena, s.other = s.other, a
	s.writing = make(chan written, 1)
	go func(done chan<- written) {
		a.sort()
		var failed error
		for _, e := range a.index {
			if failed = w.add(a.at(e)); failed != nil {
				break
			}
		}
		r, err := w.close(failed)
		done <- written{r, w.bytes, err}
	}(s.writing)
	return nil
}

// written waits for what is being written. Its error is final.
func (s *Sorter) written() error {
	if s.writing == nil {
		return s.failed
	}
	w := <-s.writing
	s.writing = nil
	if w.err != nil {
		s.failed = w.err
		return w.err
	}
	s.spilled += w.bytes
	s.runs = append(s.runs, w.run)
	s.other.empty(s.chunkLen())
	return nil
}

// mergeDown merges the oldest fanIn runs into one.
func (s *Sorter) mergeDown() error {
	n := min(s.fanIn, len(s.runs))
	old := s.runs[:n]
	w, err := s.newRun()
	if err != nil {
		return err
	}
	var failed error
	err = s.merge(old, func(b []byte) bool {
		failed = w.add(b)
		return failed == nil
	})
	r, err := w.close(errors.Join(err, failed))
	if err != nil {
		return err
	}
	s.spilled += w.bytes
	for _, o := range old {
		if err := os.Remove(o.path); err != nil {
			return fmt.Errorf("extsort: remove a merged run: %w", err)
		}
	}
	s.runs = append(append([]*run{}, s.runs[n:]...), r)
	return nil
}

// cursor reads one run.
type cursor struct {
	file   *os.File
	path   string
	packed []byte
	block  []byte
	at     int
	rec    []byte
	prefix uint64
}

func openCursor(r *run) (*cursor, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, fmt.Errorf("extsort: read a run: %w", err)
	}
	return &cursor{file: f, path: r.path}, nil
}

// next moves to the next record; false at the end.
func (c *cursor) next() (bool, error) {
	if c.at >= len(c.block) {
		var head [8]byte
		if _, err := io.ReadFull(c.file, head[:]); err == io.EOF {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("extsort: read %s: %w", c.path, err)
		}
		raw, n := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
		if cap(c.packed) < int(n) {
			c.packed = make([]byte, n)
		}
		if _, err := io.ReadFull(c.file, c.packed[:n]); err != nil {
			return false, fmt.Errorf("extsort: read %s: %w", c.path, err)
		}
		if cap(c.block) < int(raw) {
			c.block = make([]byte, raw)
		}
		block, err := s2.Decode(c.block[:cap(c.block)], c.packed[:n])
		if err != nil || len(block) != int(raw) {
			return false, fmt.Errorf("extsort: read %s: damaged block: %w", c.path, err)
		}
		c.block, c.at, c.rec = block, 0, c.rec[:0]
	}
	shared, n := binary.Uvarint(c.block[c.at:])
	if n <= 0 || shared > uint64(len(c.rec)) {
		return false, fmt.Errorf("extsort: read %s: damaged record", c.path)
	}
	c.at += n
	rest, n := binary.Uvarint(c.block[c.at:])
	if n <= 0 || rest > uint64(len(c.block)-c.at-n) {
		return false, fmt.Errorf("extsort: read %s: damaged record", c.path)
	}
	c.at += n
	c.rec = append(c.rec[:shared], c.block[c.at:c.at+int(rest)]...)
	c.at += int(rest)
	c.prefix = prefixOf(c.rec)
	return true, nil
}

func (c *cursor) less(d *cursor) bool {
	if c.prefix != d.prefix {
		return c.prefix < d.prefix
	}
	return bytes.Compare(c.rec, d.rec) < 0
}

// merge gives the records of all runs in order until yield says no.
func (s *Sorter) merge(runs []*run, yield func([]byte) bool) error {
	heap := make([]*cursor, 0, len(runs))
	opened := make([]*cursor, 0, len(runs))
	defer func() {
		for _, c := range opened {
			_ = c.file.Close() // read only
		}
	}()
	for _, r := range runs {
		c, err := openCursor(r)
		if err != nil {
			return err
		}
		opened = append(opened, c)
		ok, err := c.next()
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, c)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i)
	}
	for len(heap) > 0 {
		if !yield(heap[0].rec) {
			return nil
		}
		ok, err := heap[0].next()
		if err != nil {
			return err
		}
		if !ok {
			last := len(heap) - 1
			heap[0] = heap[last]
			heap = heap[:last]
		}
		siftDown(heap, 0)
	}
	return nil
}

// aheadBatches are merged before they are asked for.
const aheadBatches = 2

// mergeAhead is merge of all runs, in a goroutine of its own, which has ended when it
// returns, also when yield panics; a panic of merge is one of mergeAhead.
func (s *Sorter) mergeAhead(yield func([]byte) bool) error {
	batches, free, stop := make(chan []byte, aheadBatches), make(chan []byte, aheadBatches+2), make(chan struct{})
	var failed error
	var panicked any
	go func() {
		defer close(batches)
		defer func() { panicked = recover() }()
		var batch []byte // records, each after four bytes of its length
		send := func() bool {
			select {
			case batches <- batch:
			case <-stop:
				return false
			}
			select {
			case batch = <-free:
				batch = batch[:0]
			default:
				batch = nil
			}
			return true
		}
		failed = s.merge(s.runs, func(rec []byte) bool {
			batch = append(binary.LittleEndian.AppendUint32(batch, uint32(len(rec))), rec...)
			return len(batch) < s.blockLen || send()
		})
		if failed == nil && len(batch) > 0 {
			send()
		}
	}()
	defer func() {
		close(stop)
		for range batches { // until the goroutine has ended
		}
	}()
	for batch := range batches {
		for at := 0; at < len(batch); {
			from := at + 4
			at = from + int(binary.LittleEndian.Uint32(batch[at:]))
			if !yield(batch[from:at:at]) {
				return nil
			}
		}
		free <- batch // there is room for all
	}
	if panicked != nil {
		panic(panicked)
	}
	return failed
}

func siftDown(heap []*cursor, i int) {
	for {
		c := 2*i + 1
		if c >= len(heap) {
			return
		}
		if c+1 < len(heap) && heap[c+1].less(heap[c]) {
			c++
		}
		if !heap[c].less(heap[i]) {
			return
		}
		heap[i], heap[c] = heap[c], heap[i]
		i = c
	}
}
