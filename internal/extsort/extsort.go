// Package extsort sorts byte records larger than memory.
//
// A record is a key of a fixed width and a value of any length. Records are
// added in any order and come back ordered by key, then by value, bytewise;
// equal records are kept, so that a caller may count them. What does not fit
// into the memory bound is spilled as sorted runs to a private folder below the
// the one given to New, and merged while it is read; everything is removed by
// Close. One half of the memory is sorted and written while the other is filled.
//
//	s, err := extsort.New(dir, 64<<20)
//	...
//	defer s.Close()
//	for ... {
//		if err := s.Add(key, value); err != nil { ... }
//	}
//	for rec, err := range s.Sort() {
//		...
//	}
//
// A Sorter that never exceeded half its memory touches no disk. One goroutine at a
// time may use a Sorter.
package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
)

// Record is one sorted record. Key and Value are valid until the next step of
// the sequence; copy what is to be kept.
type Record struct {
	Key, Value []byte
}

// MinMemory is the smallest memory bound; smaller ones are raised to it.
const MinMemory = 16 << 10

// entryCost is the cost of a record beside its bytes: its index entry, the
// second entry for sorting, and its length.
const entryCost = 2*16 + 4

// Sorter collects records and gives them back in order.
type Sorter struct {
	parent string // where the private folder goes
	dir    string // the private folder, "" as long as nothing was spilled
	memory int64

	keySize  int          // -1 until the first Add
	arena    *arena       // being filled
	other    *arena       // being written, or to be filled next
	writing  chan written // its outcome; nil: nothing is written
	failed   error        // of writing
	runs     []*run
	nextRun  int
	records  int64
	spilled  int64
	sorted   bool
	closed   bool
	blockLen int
	fanIn    int
}

// arena holds records in memory.
type arena struct {
	chunks  [][]byte
	free    [][]byte // chunks to be filled again
	bytes   int64
	index   []entry
	scratch []entry
}

// entry points to a record in the arena: four bytes of length, then the bytes.
type entry struct {
	prefix uint64 // the first eight bytes, for quick comparing
	pos    uint64 // chunk << 32 | offset
}

// New makes a sorter that uses about memoryBytes of memory (at least MinMemory)
// and spills below dir, "" for the folder of temporary files of the system. dir
// is made when it is needed.
func New(dir string, memoryBytes int64) (*Sorter, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	memoryBytes = max(memoryBytes, MinMemory)
	s := &Sorter{parent: dir, memory: memoryBytes, keySize: -1, arena: &arena{}, other: &arena{}}
	s.blockLen = int(min(max(memoryBytes/64, 1<<10), 64<<10))
	// Each run that is merged holds two blocks: packed and unpacked.
	s.fanIn = int(min(max(memoryBytes/int64(3*s.blockLen), 4), 128))
	return s, nil
}

// Add adds a record. All keys of one sorter have the length of the first. key
// and value are copied. An error is one of the disk, and final.
func (s *Sorter) Add(key, value []byte) error {
	switch {
	case s.closed:
		return errors.New("extsort: add: sorter is closed")
	case s.sorted:
		return errors.New("extsort: add: sorter is already being read")
	case s.keySize < 0:
		s.keySize = len(key)
	case len(key) != s.keySize:
		return fmt.Errorf("extsort: add: key of %d bytes in a sorter of keys of %d bytes", len(key), s.keySize)
	}
	n := len(key) + len(value)
	if n > math.MaxInt32 {
		return fmt.Errorf("extsort: add: record of %d bytes is too long", n)
	}
	a := s.arena
	if len(a.index) > 0 && a.bytes+int64(n)+int64(len(a.index)+1)*entryCost > s.memory/2 {
		if err := s.spill(); err != nil {
			return err
		}
		a = s.arena
	}
	chunk, at := a.reserve(4+n, s.chunkLen())
	binary.LittleEndian.PutUint32(chunk[at:], uint32(n))
	copy(chunk[at+4:], key)
	copy(chunk[at+4+len(key):], value)
	a.index = append(a.index, entry{prefix: prefixOf(chunk[at+4 : at+4+n]), pos: uint64(len(a.chunks)-1)<<32 | uint64(at)})
	a.bytes += int64(n)
	s.records++
	return nil
}

// reserve gives n contiguous bytes of an arena whose chunks have the usual size.
func (a *arena) reserve(n, size int) (chunk []byte, at int) {
	if k := len(a.chunks); k > 0 {
		c := a.chunks[k-1]
		if cap(c)-len(c) >= n {
			at = len(c)
			a.chunks[k-1] = c[:at+n]
			return a.chunks[k-1], at
		}
	}
	if k := len(a.free); k > 0 && n <= size {
		c := a.free[k-1][:n]
		a.free = a.free[:k-1]
		a.chunks = append(a.chunks, c)
		return c, 0
	}
	if a.bytes == 0 {
		size = min(size, 64<<10) // small sorters stay small
	}
	a.chunks = append(a.chunks, make([]byte, n, max(n, size)))
	return a.chunks[len(a.chunks)-1], 0
}

// empty makes an arena ready for other records; chunks of the usual size are filled
// again.
func (a *arena) empty(size int) {
	for _, c := range a.chunks {
		if cap(c) == size {
			a.free = append(a.free, c)
		}
	}
	clear(a.chunks)
	a.chunks, a.index, a.bytes = a.chunks[:0], a.index[:0], 0
}

// chunkLen is the usual size of a chunk.
func (s *Sorter) chunkLen() int { return int(min(max(s.memory/16, 4<<10), 1<<20)) }

func (a *arena) at(e entry) []byte {
	c := a.chunks[e.pos>>32]
	at := e.pos & math.MaxUint32
	n := uint64(binary.LittleEndian.Uint32(c[at:]))
	return c[at+4 : at+4+n : at+4+n]
}

// Len is the number of records added.
func (s *Sorter) Len() int64 { return s.records }

// Spilled is the number of bytes written to disk so far.
func (s *Sorter) Spilled() int64 { return s.spilled }

// Sort ends the adding and yields all records in order. It can be ranged over
// several times, one after the other. The sequence ends after the first error.
func (s *Sorter) Sort() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if s.closed {
			yield(Record{}, errors.New("extsort: sort: sorter is closed"))
			return
		}
		if err := s.finish(); err != nil {
			yield(Record{}, err)
			return
		}
		if len(s.runs) == 0 {
			for _, e := range s.arena.index {
				b := s.arena.at(e)
				if !yield(Record{Key: b[:s.keySize:s.keySize], Value: b[s.keySize:]}, nil) {
					return
				}
			}
			return
		}
		err := s.mergeAhead(func(b []byte) bool {
			return yield(Record{Key: b[:s.keySize:s.keySize], Value: b[s.keySize:]}, nil)
		})
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// finish makes the sorter ready for reading: everything in order in memory, or
// at most fanIn runs on disk.
func (s *Sorter) finish() error {
	if s.sorted {
		return nil
	}
	if err := s.written(); err != nil {
		return err
	}
	if len(s.runs) == 0 {
		s.arena.sort()
		s.sorted = true
		return nil
	}
	if err := errors.Join(s.spill(), s.written()); err != nil {
		return err
	}
	s.arena, s.other = &arena{}, &arena{}
	for len(s.runs) > s.fanIn {
		if err := s.mergeDown(); err != nil {
			return err
		}
	}
	s.sorted = true
	return nil
}

// Close removes all spilled runs. It is safe to call twice.
func (s *Sorter) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	_ = s.written() // it is removed
	s.arena, s.other, s.runs = nil, nil, nil
	if s.dir == "" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("extsort: remove %s: %w", s.dir, err)
	}
	return nil
}

// sort orders the index: a counting sort on the top bits of the prefix,
// which is all of the work for hashed keys, then comparing within the buckets.
func (a *arena) sort() {
	n := len(a.index)
	if n < 2 {
		return
	}
	if n < 1<<12 {
		a.sortEntries(a.index)
		return
	}
	const bits = 12
	var counts [1<<bits + 1]int
	for _, e := range a.index {
		counts[e.prefix>>(64-bits)+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	if cap(a.scratch) < n {
		a.scratch = make([]entry, n)
	}
	out := a.scratch[:n]
	next := counts
	for _, e := range a.index {
		b := e.prefix >> (64 - bits)
		out[next[b]] = e
		next[b]++
	}
	for b := range 1 << bits {
		if from, to := counts[b], counts[b+1]; to-from > 1 {
			a.sortEntries(out[from:to])
		}
	}
	a.index, a.scratch = out, a.index
}

func (a *arena) sortEntries(es []entry) {
	slices.SortFunc(es, func(x, y entry) int {
		if x.prefix != y.prefix {
			if x.prefix < y.prefix {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.at(x), a.at(y))
	})
}

// prefixOf is the first eight bytes as a number, padded with zeros.
func prefixOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var p [8]byte
	copy(p[:], b)
	return binary.BigEndian.Uint64(p[:])
}
