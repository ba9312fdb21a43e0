package guardfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// SyncedFile holds the acknowledged lengths of the logs and manifests of a database. Pebble takes
// a log without its last records for one cut by the death of its process, and a missing log for an
// obsolete one.
//
// A length is written after the sync of its file returned, and is not synced itself, except the
// first one of a file. After kill -9 it is exact. After a loss of power it may be older, and never
// newer than the file. The first length of a manifest is written once a marker on disk names it:
// the highest one was in use.
//
// The file is on disk before the first marker. A person who knows that all logs are whole writes
// the line "anew" in its place.
const SyncedFile = "SYNCED"

const anew = "anew"

// The file is a page of slots, one a log or manifest:
//
//	magic and version (4), number of the file (8), length (8), zeros (8), CRC-32C of these (4)
//
// in big-endian. Unused slots are of number 0, so zeros are damage. A new file takes the slot of the
// lowest number of its kind: the file of that number was removed long before.
const (
	slotMagic     = "RSY1"
	slotSize      = 32
	slots         = 128
	manifestSlots = 8 // the first ones
)

// claim is the acknowledged length of a file.
type claim struct{ number, length uint64 }

// synced writes the file. Nil, or without a file, it does nothing.
type synced struct {
	mu     sync.Mutex // guards the fields below
	f      vfs.File
	claims [slots]claim
	failed bool
	anew   bool   // a person has written the file
	begun  claim  // of a manifest without a marker on disk
	marked uint64 // number of the manifest in a marker perhaps not on disk; 0: none
}

// area are the slots for files of the kind.
func (s *synced) area(isLog bool) (area []claim, first int) {
	if isLog {
		return s.claims[manifestSlots:], manifestSlots
	}
	return s.claims[:manifestSlots], 0
}

// of is the acknowledged length of a file.
func (s *synced) of(isLog bool, number uint64) uint64 {
	area, _ := s.area(isLog)
	for _, c := range area {
		if c.number == number {
			return c.length
		}
	}
	return 0
}

// current is the number of the manifest last known to be in use; 0: there was none.
func (s *synced) current() (number uint64) {
	area, _ := s.area(false)
	for _, c := range area {
		number = max(number, c.number)
	}
	return number
}

// log notes the length of a log that was synced. fresh: it is the first one since the log was begun.
func (s *synced) log(number, length uint64, fresh bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note(true, claim{number, length}, fresh)
}

// manifest notes the length of a manifest that was synced.
func (s *synced) manifest(number, length uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of(false, number) == 0 {
		s.begun = claim{number, length}
		return nil
	}
	return s.note(false, claim{number, length}, false)
}

// mark notes that a marker names a manifest.
func (s *synced) mark(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = number
}

// toMark is the number of the manifest in a marker perhaps not on disk.
func (s *synced) toMark() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marked
}

// marks notes that the marker of a manifest is on disk.
func (s *synced) marks(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == 0 || s.marked != number || s.begun.number != number {
		return nil
	}
	s.marked = 0
	return s.note(false, s.begun, true)
}

// note writes the length of a file. Its error is told once: without a new length the old one counts,
// and protects less. The caller holds s.mu.
func (s *synced) note(isLog bool, now claim, fresh bool) error {
	if s.f == nil {
		return nil
	}
	area, at := s.area(isLog)
	i := 0
	for j, c := range area {
		if c.number == now.number {
			i = j
			break
		}
		if c.number < area[i].number {
			i = j
		}
	}
	area[i] = now
	_, err := s.f.WriteAt(area[i].slot(), int64(at+i)*slotSize)
	if err == nil && fresh {
		err = s.f.Sync()
	}
	if err == nil || s.failed {
		return nil
	}
	s.failed = true
	return err
}

// close makes the lengths durable.
func (s *synced) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f == nil {
		return nil
	}
	err := errors.Join(s.f.Sync(), s.f.Close())
	s.f = nil
	return err
}

func (c claim) slot() []byte {
	b := make([]byte, slotSize)
	copy(b, slotMagic)
	binary.BigEndian.PutUint64(b[4:], c.number)
	binary.BigEndian.PutUint64(b[12:], c.length)
	binary.BigEndian.PutUint32(b[slotSize-4:], crc32.Checksum(b[:slotSize-4], castagnoli))
	return b
}

// readSynced reads the file of a folder. A database has one.
func readSynced(files vfs.FS, dir string) (*synced, error) {
	s := &synced{}
	f, err := files.Open(filepath.Join(dir, SyncedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, damagedSynced("is missing")
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, slots*slotSize+1))
	if err != nil {
		return s, fmt.Errorf("read %s: %w", SyncedFile, err)
	}
	if s.anew = strings.TrimSpace(string(b)) == anew; s.anew {
		return s, nil
	}
	if len(b) != slots*slotSize {
		return s, damagedSynced(fmt.Sprintf("has not %d bytes", slots*slotSize))
	}
	for i := range s.claims {
		slot := b[i*slotSize:][:slotSize]
		c := claim{binary.BigEndian.Uint64(slot[4:]), binary.BigEndian.Uint64(slot[12:])}
		if string(slot) != string(c.slot()) {
			return s, damagedSynced(fmt.Sprintf("is wrong at byte %d", i*slotSize))
		}
		s.claims[i] = c
	}
	return s, nil
}

func damagedSynced(how string) error {
	return Mendable(fmt.Errorf("file %s %s; it tells how long the logs have to be", SyncedFile, how),
		"bring the folder back from a backup; or, if the logs are known to be whole, write the line \""+anew+"\" into the file "+SyncedFile)
}

// open makes the file unless it is there, and opens it for writing.
func (s *synced) open(files vfs.FS, dir string) error {
	name := filepath.Join(dir, SyncedFile)
	_, err := files.Stat(name)
	if s.anew || errors.Is(err, fs.ErrNotExist) {
		err = makeSynced(files, dir, name)
	}
	if err != nil {
		return err
	}
	f, err := files.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
	return nil
}

// makeSynced makes it whole or not at all.
func makeSynced(files vfs.FS, dir, name string) error {
	if err := files.MkdirAll(dir, ownfile.FolderMode); err != nil {
		return err
	}
	f, err := files.Create(name+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat(claim{}.slot(), slots))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = files.Rename(name+".tmp", name)
	}
	if err != nil {
		return err
	}
	return syncFolder(files, dir)
}

// syncFolder makes the names in a folder durable.
func syncFolder(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// logOrManifest is the number of a log or manifest; ok is false for other files.
func logOrManifest(path string) (isLog bool, number uint64, ok bool) {
	name := filepath.Base(path)
	digits, isLog := strings.CutSuffix(name, ".log")
	if !isLog {
		if digits, ok = strings.CutPrefix(name, "MANIFEST-"); !ok {
			return false, 0, false
		}
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return isLog, number, err == nil
}
