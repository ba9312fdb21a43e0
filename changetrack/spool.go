package changetrack

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/ownfile"
)

// spoolMemory is how much a spool keeps in memory before it goes to a file.
const spoolMemory = 4 << 20

// A staged file begins with fileMagic, the version of its form, and zeros to 16
// bytes. Records follow: length (4 bytes, big-endian), CRC-32C of the content (4
// bytes), content.
const (
	fileMagic  = "rsbstage"
	fileHeader = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// spool keeps records in the order of their addition: few in memory, many in a file.
type spool struct {
	dir     string
	name    string // pattern for os.CreateTemp
	limit   int
	mem     []byte
	file    *os.File
	w       *bufio.Writer
	bytes   int64 // of the framed records
	records uint64
}

// frame appends content as a record of a spool.
func frame(b, content []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(content, castagnoli))
	return append(b, content...)
}

func (s *spool) add(content []byte) error {
	if int64(len(content)) > 1<<31 {
		return fmt.Errorf("stage: a record of %d bytes is too long", len(content))
	}
	return s.addFramed(frame(nil, content), 1)
}

// addFramed adds n records prepared by frame.
func (s *spool) addFramed(b []byte, n uint64) error {
	if len(b) == 0 {
		return nil
	}
	s.bytes += int64(len(b))
	s.records += n
	if s.fits(len(b)) {
		s.mem = append(s.mem, b...)
		return nil
	}
	if s.file == nil {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	return nil
}

// fits tells whether n more bytes stay in memory.
func (s *spool) fits(n int) bool { return s.file == nil && len(s.mem)+n <= s.limit }

func (s *spool) spill() error {
	f, err := ownfile.CreateTemp(s.dir, s.name)
	if err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	s.file = f
	s.w = bufio.NewWriterSize(f, 256<<10)
	header := make([]byte, fileHeader)
	copy(header, fileMagic)
	header[len(fileMagic)] = recordVersion
	_, err = s.w.Write(header)
	if err == nil {
		_, err = s.w.Write(s.mem)
	}
	s.mem = nil
	if err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	return nil
}

// all yields the records; the slices are valid until the next step. Nothing may
// be added while it runs.
func (s *spool) all() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if s.file == nil {
			readRecords(bytes.NewReader(s.mem), s.records, "staged changes")(yield)
			return
		}
		if err := s.w.Flush(); err != nil {
			yield(nil, fmt.Errorf("stage changes: %w", err))
			return
		}
		stagedFile(s.file.Name(), s.records)(yield)
	}
}

// durable puts the file on disk, its name included.
func (s *spool) durable() error {
	err := s.w.Flush()
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = ownfile.Sync(s.dir)
	}
	if err != nil {
		return fmt.Errorf("make staged changes durable: %w", err)
	}
	return nil
}

// keep closes the file and leaves it in place.
func (s *spool) keep() error {
	f := s.file
	s.file, s.w = nil, nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	return nil
}

// discard forgets all. It may be called twice.
func (s *spool) discard() {
	s.mem = nil
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
		s.file, s.w = nil, nil
	}
}

// stagedFile yields the n records of a spool's file.
func stagedFile(name string, n uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(name)
		if err != nil {
			yield(nil, fmt.Errorf("read staged changes: %w", err))
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 256<<10)
		header := make([]byte, fileHeader)
		if _, err := io.ReadFull(r, header); err != nil || string(header[:len(fileMagic)]) != fileMagic {
			yield(nil, fmt.Errorf("read staged changes: %s does not begin as it should: %w", name, errDamaged))
			return
		}
		if v := header[len(fileMagic)]; v > recordVersion {
			yield(nil, fmt.Errorf("read staged changes: %s has version %d, this program knows %d: %w", name, v, recordVersion, ErrNewer))
			return
		}
		readRecords(r, n, name)(yield)
	}
}

// readRecords yields exactly n records, or an error.
func readRecords(r io.Reader, n uint64, name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var head [8]byte
		var buf bytes.Buffer
		for i := range n {
			_, err := io.ReadFull(r, head[:])
			size := int64(binary.BigEndian.Uint32(head[:4]))
			if err == nil {
				buf.Reset()
				_, err = io.CopyN(&buf, r, size)
			}
			if err != nil {
				err = fmt.Errorf("read %s: record %d of %d: %w", name, i+1, n, errors.Join(err, errDamaged))
			} else if crc32.Checksum(buf.Bytes(), castagnoli) != binary.BigEndian.Uint32(head[4:]) {
				err = fmt.Errorf("read %s: record %d of %d has a wrong checksum: %w", name, i+1, n, errDamaged)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(buf.Bytes(), nil) {
				return
			}
		}
	}
}

// removeLeftovers drops staged files of the set without a commit.
func removeLeftovers(dir string, id uint32) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("staging folder: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), fmt.Sprintf("scan-%d-", id)) || !strings.HasSuffix(e.Name(), ".stage") {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("staging folder: %w", err)
		}
	}
	return nil
}
