package guardfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkLogs looks at the write-ahead logs and the manifest of a database. Pebble takes a damaged
// record near the end of either for the end: acknowledged writes would be lost silently. A record
// cut by the death of the process or the machine is no damage, behind the acknowledged ones. Pebble
// decides whether a log may end so; it knows the logs in use.
func checkLogs(fs vfs.FS, dir string) (*synced, error) {
	names, err := fs.List(dir)
	if err != nil {
		return &synced{}, nil // a new database; or Pebble tells
	}
	manifest, marker, orphan := "", "", ""
	logs, manifests := map[uint64]string{}, map[uint64]string{}
	for _, name := range names {
		if isLog, number, ok := logOrManifest(name); ok && isLog {
			logs[number] = name
		} else if ok {
			manifests[number] = name
		}
		if ext := filepath.Ext(name); ext == ".log" || ext == ".sst" {
			orphan = name
		}
		if named, ok := markedManifest(name); ok && name > marker { // the highest one counts
			manifest, marker = named, name
		}
	}
	lengths, err := readSynced(fs, dir)
	last := lengths.current()
	if manifest == "" && orphan == "" && last == 0 { // a new one: its first start may have been interrupted
		return &synced{anew: err != nil}, nil
	}
	if manifest == "" { // Pebble would begin anew, and remove all of it
		err := errors.New("file marker.manifest.* is missing")
		if last == 0 && len(manifests) > 0 {
			last = slices.Max(slices.Collect(maps.Keys(manifests)))
		}
		if manifests[last] == "" {
			return nil, Damage(err)
		}
		return nil, Remake(err, "marker.manifest.000001."+manifests[last])
	}
	if err != nil {
		return nil, err
	}
	_, number, _ := logOrManifest(manifest)
	if wrong := number < last || manifests[number] == ""; wrong && last > 0 && number != last {
		if manifests[last] == "" {
			return nil, Damage(fmt.Errorf("file MANIFEST-%06d is missing, and file %s names another manifest", last, marker))
		}
		return nil, Mendable(fmt.Errorf("file %s names a manifest not in use, and %s was", marker, manifests[last]),
			renamed(marker, manifests[last]))
	}
	edits := &chunkReader{}
	if err := edits.checkFile(fs, dir, manifest, lengths.of(false, number)); err != nil {
		return nil, err
	}
	area, _ := lengths.area(true)
	for _, c := range area {
		if c.length > 0 && c.number >= edits.firstLog && logs[c.number] == "" {
			return nil, Damage(fmt.Errorf("file %06d.log is missing, with %d bytes of acknowledged writes", c.number, c.length))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(logs)) {
		c := chunkReader{isLog: true, number: uint32(number)}
		var length uint64
		if number >= edits.firstLog {
			length = lengths.of(true, number)
		}
		if err := c.checkFile(fs, dir, logs[number], length); err != nil {
			return nil, err
		}
	}
	return lengths, nil
}

// markedManifest takes the name of a marker apart: the manifest of marker.manifest.ITERATION.MANIFEST-NUMBER.
func markedManifest(name string) (manifest string, ok bool) {
	rest, ok := strings.CutPrefix(name, "marker.manifest.")
	_, manifest, _ = strings.Cut(rest, ".")
	return manifest, ok
}

const (
	blockSize  = 32 << 10
	sectorSize = 512
	minZeros   = 64 // no record ends with so many

	plainHeader = 7               // checksum, length, type
	logHeader   = plainHeader + 4 // and the number of the log
	syncHeader  = logHeader + 8   // and the synced length of the log
	noPromise   = uint64(0)       // of a chunk without a synced length
)

// chunkReader reads the chunks of a log or manifest in the format of Pebble's package record.
// Unlike Pebble's own reader it knows the end of the file, and whether the last record is whole.
type chunkReader struct {
	isLog  bool
	number uint32

	r    io.Reader
	buf  []byte // the present block
	at   int64  // its offset in the file
	last bool   // nothing comes after it

	head     []byte // of a manifest: the beginning of the present record
	firstLog uint64 // of a manifest: the lowest log in use
}

// checkFile checks a file whose first bytes, so many, were acknowledged.
func (c *chunkReader) checkFile(fs vfs.FS, dir, name string, acknowledged uint64) error {
	f, err := fs.Open(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return Damage(fmt.Errorf("file %s is missing", name))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	c.r = f
	at, end, err := c.check()
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	case end == wrong && acknowledged > 0 && uint64(at) >= acknowledged:
		return Mendable(fmt.Errorf("file %s holds something else behind its end at byte %d; the bytes before it are whole", name, at),
			fmt.Sprintf("bring the folder back from a backup; or, if the machine lost no power since the last writes, shorten the file: truncate -s %d %s", at, name))
	case end != whole:
		return Damage(fmt.Errorf("file %s at byte %d; writes that were acknowledged cannot be read", name, at))
	case uint64(at) < acknowledged:
		return Damage(fmt.Errorf("file %s ends at byte %d; %d more bytes of acknowledged writes are missing", name, at, acknowledged-uint64(at)))
	}
	return nil
}

func (c *chunkReader) next() error {
	if c.buf == nil {
		c.buf = make([]byte, blockSize)
	} else {
		c.at += int64(len(c.buf))
	}
	n, err := io.ReadFull(c.r, c.buf[:blockSize])
	c.buf = c.buf[:n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		c.last, err = true, nil
	}
	return err
}

// ending is how the right chunks of a file end.
type ending int

const (
	whole ending = iota // where writing stopped
	wrong               // before bytes nobody wrote so
	lost                // before synced ones
)

// check reads the whole file, and at is its last right chunk's end.
func (c *chunkReader) check() (at int64, end ending, err error) {
	for !c.last {
		if err := c.next(); err != nil {
			return 0, wrong, err
		}
		for i := 0; i < len(c.buf); {
			n, ok := c.chunk(i)
			if ok {
				c.edit(c.buf[i : i+n])
				i += n
				continue
			}
			at := c.at + int64(i)
			end, err := c.ends(i)
			return at, end, err
		}
	}
	return c.at + int64(len(c.buf)), whole, nil
}

// edit reads the lowest log in use from a chunk of a manifest: it stands at the beginning of a record,
// behind the name of the order of keys.
func (c *chunkReader) edit(chunk []byte) {
	if c.isLog || len(chunk) < plainHeader {
		return
	}
	const full, first, last, tagOrder, tagLog, enough = 1, 2, 4, 1, 2, 256
	kind, part := chunk[6], chunk[plainHeader:]
	if kind == full || kind == first {
		c.head = c.head[:0]
	}
	c.head = append(c.head, part[:min(len(part), enough)]...)
	if kind != full && kind != last {
		return
	}
	b := c.head
	next := func() (v uint64) {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v
	}
	tag := next()
	if tag == tagOrder {
		b = b[min(next(), uint64(len(b))):]
		tag = next()
	}
	if tag == tagLog {
		c.firstLog = next()
	}
}

// header reads the header of a chunk at i. size 0: there is none.
func (c *chunkReader) header(b []byte) (size, length int, synced uint64) {
	if len(b) < plainHeader {
		return 0, 0, noPromise
	}
	kind := b[6]
	length = int(binary.LittleEndian.Uint16(b[4:]))
	switch {
	case !c.isLog && kind >= 1 && kind <= 4:
		return plainHeader, length, noPromise
	case c.isLog && kind >= 5 && kind <= 8:
		size = logHeader
	case c.isLog && kind >= 9 && kind <= 12:
		size = syncHeader
	}
	if size == 0 || len(b) < size || binary.LittleEndian.Uint32(b[7:]) != c.number {
		return 0, 0, noPromise
	}
	if size == syncHeader {
		synced = binary.LittleEndian.Uint64(b[11:])
	}
	return size, length, synced
}

// chunk tells whether a right chunk, or the filling at the end of a block, is at i,
// and how long it is.
func (c *chunkReader) chunk(i int) (n int, ok bool) {
	b := c.buf[i:]
	filling := plainHeader
	if c.isLog {
		filling = syncHeader
	}
	if i > blockSize-filling && zero(b) {
		return len(b), true
	}
	if i > blockSize-plainHeader { // Pebble does not read this space
		return len(b), true
	}
	if c.isLog && bytes.HasPrefix(b, c.trailer()) {
		return logHeader, true
	}
	size, length, _ := c.header(b)
	if size == 0 || size+length > len(b) || binary.LittleEndian.Uint32(b) != checksum(crc32.Update(0, castagnoli, b[6:size+length])) {
		return 0, false
	}
	return size + length, true
}

// trailer is the end of a closed log.
func (c *chunkReader) trailer() []byte {
	b := make([]byte, logHeader)
	b[6] = 5
	binary.LittleEndian.PutUint32(b[7:], c.number+1)
	return b
}

// ends tells what the wrong chunk at i is.
func (c *chunkReader) ends(i int) (ending, error) {
	b, where := bytes.Clone(c.buf[i:]), uint64(c.at)+uint64(i)
	// A dead process leaves the beginning of a record, and nothing after it.
	if c.last && c.isCut(b) {
		return whole, nil
	}
	begun := bytes.TrimRight(b, "\x00")
	zeros, clean := len(b)-len(begun), true
	for block := b; ; {
		for j := range block {
			if c.promises(block[j:], where) {
				return lost, nil
			}
		}
		if c.last {
			break
		}
		if err := c.next(); err != nil {
			return wrong, err
		}
		block = c.buf
		zeros, clean = zeros+len(block), clean && zero(block)
	}
	// A dead machine may leave zeros in place of the rest, or zero sectors before later written
	// ones.
	if clean && (len(begun) == 0 || zeros >= minZeros && c.isCut(begun)) || c.isLog && hasHole(b, int64(i)) {
		return whole, nil
	}
	return wrong, nil
}

// isCut tells whether b, the end of the file, is the beginning of a chunk.
func (c *chunkReader) isCut(b []byte) bool {
	header := plainHeader
	if c.isLog {
		header = syncHeader
	}
	if len(b) < header {
		return c.isHeader(b)
	}
	size, length, _ := c.header(b)
	if size == 0 || size+length <= len(b) {
		return false
	}
	// The length is not in the checksum: it may be wrong.
	want := binary.LittleEndian.Uint32(b)
	sum := crc32.Update(0, castagnoli, b[6:size])
	for i := size; ; i++ {
		if checksum(sum) == want {
			return false
		}
		if i == len(b) {
			return true
		}
		sum = crc32.Update(sum, castagnoli, b[i:i+1])
	}
}

// isHeader tells whether b may be the beginning of a header: of one cut within the checksum and the
// length nothing can be told.
func (c *chunkReader) isHeader(b []byte) bool {
	const kindAt, numberAt = 6, 7
	if len(b) <= kindAt {
		return true
	}
	if kind := b[kindAt]; !c.isLog || kind < 5 || kind > 12 {
		return false
	}
	number := binary.LittleEndian.AppendUint32(nil, c.number)
	got := b[numberAt:]
	return bytes.HasPrefix(number, got[:min(len(got), len(number))])
}

// promises tells whether b begins with a right chunk and a synced length beyond where.
func (c *chunkReader) promises(b []byte, where uint64) bool {
	size, length, synced := c.header(b)
	return size != 0 && synced > where && size+length <= len(b) &&
		binary.LittleEndian.Uint32(b) == checksum(crc32.Update(0, castagnoli, b[6:size+length]))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is how Pebble writes one.
func checksum(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// hasHole tells whether b, at offset in its block, has a whole sector of zeros, or begins with zeros to
// the end of its sector: the part before it was synced.
func hasHole(b []byte, offset int64) bool {
	first := (sectorSize - offset%sectorSize) % sectorSize
	if first > 0 && first <= int64(len(b)) && zero(b[:first]) {
		return true
	}
	for i := first; i+sectorSize <= int64(len(b)); i += sectorSize {
		if zero(b[i : i+sectorSize]) {
			return true
		}
	}
	return false
}
