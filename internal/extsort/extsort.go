// Package extsort sorts byte records larger than memory.
//
// A record is a key of a fixed width and a value of any length. Records are
// added in any order and come back ordered by key, then by value, bytewise;
// equal records are kept, so that a caller may count them. What does not fit
// into the memory bound is spilled as sorted runs to a private folder below the
// one that New is given, and merged while it is read; everything is removed by
// Close.
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
// A Sorter that never exceeded its memory touches no disk. One goroutine at a
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

// entryCost is what a record costs beside its bytes: its index entry, the
// second entry that sorting needs, and its length.
const entryCost = 2*16 + 4

// Sorter collects records and gives them back in order.
type Sorter struct {
	parent string // where the private folder goes
	dir    string // the private folder, "" as long as nothing was spilled
	memory int64

	keySize  int // -1 until the first Add
	chunks   [][]byte
	free     [][]byte // chunks to be filled again
	arena    int64
	index    []entry
	scratch  []entry
	runs     []*run
	nextRun  int
	records  int64
	spilled  int64
	sorted   bool
	closed   bool
	blockLen int
	fanIn    int
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
	s := &Sorter{parent: dir, memory: memoryBytes, keySize: -1}
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
	if len(s.index) > 0 && s.arena+int64(n)+int64(len(s.index)+1)*entryCost > s.memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	chunk, at := s.reserve(4 + n)
	binary.LittleEndian.PutUint32(chunk[at:], uint32(n))
	copy(chunk[at+4:], key)
	copy(chunk[at+4+len(key):], value)
	s.index = append(s.index, entry{prefix: prefixOf(chunk[at+4 : at+4+n]), pos: uint64(len(s.chunks)-1)<<32 | uint64(at)})
	s.arena += int64(n)
	s.records++
	return nil
}

// reserve gives n contiguous bytes of the arena.
func (s *Sorter) reserve(n int) (chunk []byte, at int) {
	if k := len(s.chunks); k > 0 {
		c := s.chunks[k-1]
		if cap(c)-len(c) >= n {
			at = len(c)
			s.chunks[k-1] = c[:at+n]
			return s.chunks[k-1], at
		}
	}
	size := s.chunkLen()
	if k := len(s.free); k > 0 && n <= size {
		c := s.free[k-1][:n]
		s.free = s.free[:k-1]
		s.chunks = append(s.chunks, c)
		return c, 0
	}
	if s.arena == 0 {
		size = min(size, 64<<10) // small sorters stay small
	}
	s.chunks = append(s.chunks, make([]byte, n, max(n, size)))
	return s.chunks[len(s.chunks)-1], 0
}

// chunkLen is the usual size of a chunk.
func (s *Sorter) chunkLen() int { return int(min(max(s.memory/16, 4<<10), 1<<20)) }

func (s *Sorter) at(e entry) []byte {
	c := s.chunks[e.pos>>32]
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
			for _, e := range s.index {
				b := s.at(e)
				if !yield(Record{Key: b[:s.keySize:s.keySize], Value: b[s.keySize:]}, nil) {
					return
				}
			}
			return
		}
		err := s.merge(s.runs, func(b []byte) bool {
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
	if len(s.runs) == 0 {
		s.sortIndex()
		s.sorted = true
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.chunks, s.free, s.index, s.scratch = nil, nil, nil, nil
	for len(s.runs) > s.fanIn {
		if err := s.mergeDown(); err != nil {
			return err
		}
	}
	s.sorted = true
	return nil
}

// Close removes what was spilled. It is safe to call twice.
func (s *Sorter) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.chunks, s.free, s.index, s.scratch, s.runs = nil, nil, nil, nil, nil
	if s.dir == "" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("extsort: remove %s: %w", s.dir, err)
	}
	return nil
}

// sortIndex orders the index: a counting sort on the top bits of the prefix,
// which is all of the work for hashed keys, then comparing within the buckets.
func (s *Sorter) sortIndex() {
	n := len(s.index)
	if n < 2 {
		return
	}
	if n < 1<<12 {
		s.sortEntries(s.index)
		return
	}
	const bits = 12
	var counts [1<<bits + 1]int
	for _, e := range s.index {
		counts[e.prefix>>(64-bits)+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	if cap(s.scratch) < n {
		s.scratch = make([]entry, n)
	}
	out := s.scratch[:n]
	next := counts
	for _, e := range s.index {
		b := e.prefix >> (64 - bits)
		out[next[b]] = e
		next[b]++
	}
	for b := range 1 << bits {
		if from, to := counts[b], counts[b+1]; to-from > 1 {
			s.sortEntries(out[from:to])
		}
	}
	s.index, s.scratch = out, s.index
}

func (s *Sorter) sortEntries(es []entry) {
	slices.SortFunc(es, func(a, b entry) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return bytes.Compare(s.at(a), s.at(b))
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
