package changetrack

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// recordVersion begins every record of this package, and is the version of keys and records
// together. A higher one is of a newer program.
const recordVersion = 3

// ---- writing: each function appends

func putString[S ~string | ~[]byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func putTime(b []byte, t time.Time) []byte { return binary.AppendVarint(b, t.UnixMicro()) }

var kindCodes = map[Kind]byte{Created: 1, Updated: 2, Deleted: 3, Rebased: 4}

var formatCodes = map[rdfres.Format]byte{
	rdfres.JSONLD: 1, rdfres.NTriples: 2, rdfres.Turtle: 3, rdfres.RDFXML: 4, rdfres.NQuads: 5, rdfres.TriG: 6,
}

func invert[K, V comparable](m map[K]V) map[V]K {
	out := make(map[V]K, len(m))
	for k, v := range m {
		out[v] = k
	}
	return out
}

// fileCodes are the kinds of changes of files: they are read differently.
var fileCodes = map[Kind]byte{Created: 5, Updated: 6, Deleted: 7}

var (
	fileKindOf = invert(fileCodes)
	kindOf     = invert(kindCodes)
	formatOf   = invert(formatCodes)
)

const (
	hasMD5 = 1 << iota
	hasSHA1
	carriesRDFXML
)

func putVersion(b []byte, v *Version) []byte {
	b = binary.AppendUvarint(b, v.Sequence)
	b = putTime(b, v.Time)
	b = append(b, v.Graph[:]...)
	var flags byte
	if len(v.Fixity.MD5) == 16 {
		flags |= hasMD5
	}
	if len(v.Fixity.SHA1) == 20 {
		flags |= hasSHA1
	}
	if v.RDFXML {
		flags |= carriesRDFXML
	}
	b = append(b, formatCodes[v.Format], formatCodes[v.Wanted], flags)
	b = binary.AppendUvarint(b, uint64(v.Fixity.Length))
	b = append(b, v.Fixity.SHA256[:]...)
	if flags&hasMD5 != 0 {
		b = append(b, v.Fixity.MD5...)
	}
	if flags&hasSHA1 != 0 {
		b = append(b, v.Fixity.SHA1...)
	}
	return binary.AppendUvarint(b, uint64(v.Triples))
}

const (
	hasBefore = 1 << iota
	hasAfter
	afterElsewhere
)

// elsewhere stands for the version after a change stored outside it: the entity's current one, or
// the one before its next change (complete). That saves space in the first change of every entity,
// for most entities the only one.
var elsewhere = &Version{}

// putChange leaves out the sequence: it is in the key. The time stands at a fixed
// place, for the search by time.
func putChange(b []byte, c *Change) []byte {
	b = append(b, recordVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Time.UnixMicro()))
	var flags byte
	if c.Before != nil || c.FileBefore != nil {
		flags |= hasBefore
	}
	if c.After == elsewhere {
		flags |= afterElsewhere
	} else if c.After != nil || c.FileAfter != nil {
		flags |= hasAfter
	}
	if c.OfFile() {
		b = append(b, fileCodes[c.Kind], flags)
		b = putString(putString(b, c.Finder), c.File)
		if c.FileBefore != nil {
			b = putFileVersion(b, c.FileBefore)
		}
		if c.FileAfter != nil {
			b = putFileVersion(b, c.FileAfter)
		}
		return b
	}
	b = append(b, kindCodes[c.Kind], flags)
	b = putString(b, c.Finder)
	if c.Kind == Rebased {
		return putString(b, c.Note)
	}
	b = putString(b, c.Entity)
	if c.Before != nil {
		b = putVersion(b, c.Before)
	}
	if flags&hasAfter != 0 {
		b = putVersion(b, c.After)
	}
	return b
}

// stateRecord is State as it is kept.
type stateRecord struct {
	entity   string
	firstSeq uint64 // of the first change
	first    time.Time
	changes  uint64
	current  *Version
	delSeq   uint64 // of the deletion when current is nil
	delTime  time.Time
}

func putState(b []byte, s *stateRecord) []byte {
	b = append(b, recordVersion)
	b = putString(b, s.entity)
	b = binary.AppendUvarint(b, s.changes)
	if s.changes != 1 { // otherwise it is the current version's
		b = putTime(binary.AppendUvarint(b, s.firstSeq), s.first)
	}
	if s.current != nil {
		return putVersion(append(b, 1), s.current)
	}
	b = binary.AppendUvarint(append(b, 0), s.delSeq)
	return putTime(b, s.delTime)
}

// Versions of blobs.
const (
	deflatedBlob = 1
	plainBlob    = 2
)

func putBlob(b []byte, blob Blob) []byte {
	version, rest := byte(deflatedBlob), blob.Deflated
	if blob.plain != nil {
		version, rest = plainBlob, blob.plain
	}
	b = append(b, version)
	b = binary.BigEndian.AppendUint32(b, blob.CRC32)
	b = binary.AppendUvarint(b, uint64(blob.Length))
	return append(b, rest...)
}

// endedRecord names the version a change ended.
type endedRecord struct {
	key     rdfres.Digest
	start   uint64 // the version's sequence
	time    time.Time
	deleted bool // by a deletion
}

func putEnded(b []byte, e *endedRecord) []byte {
	b = append(b, recordVersion)
	b = append(b, e.key[:]...)
	b = binary.AppendUvarint(b, e.start)
	b = putTime(b, e.time)
	if e.deleted {
		return append(b, 1)
	}
	return append(b, 0)
}

// headRecord is the state of the log as a whole.
type headRecord struct {
	seq         uint64
	time        time.Time // zero when seq is 0
	tail        uint64
	tailTime    time.Time
	resources   int64
	components  int64 // orphan components among the resources
	triples     int64
	baseline    bool
	baseSeq     uint64
	baseTime    time.Time
	fingerprint string
	candidates  uint64 // generation of the held candidate's keys
}

func putHead(b []byte, h *headRecord) []byte {
	b = append(b, recordVersion)
	b = putTime(binary.AppendUvarint(b, h.seq), h.time)
	b = putTime(binary.AppendUvarint(b, h.tail), h.tailTime)
	b = binary.AppendUvarint(b, uint64(h.resources))
	b = binary.AppendUvarint(b, uint64(h.components))
	b = binary.AppendUvarint(b, uint64(h.triples))
	if h.baseline {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = putTime(binary.AppendUvarint(b, h.baseSeq), h.baseTime)
	b = putString(b, h.fingerprint)
	return binary.AppendUvarint(b, h.candidates)
}

// ---- reading

// reading takes a record apart. After the first fault everything is zero, and
// end tells it.
type reading struct {
	b   []byte
	bad bool
}

func (r *reading) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reading) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reading) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reading) time() time.Time {
	v, n := binary.Varint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return time.Time{}
	}
	r.b = r.b[n:]
	return time.UnixMicro(v).UTC()
}

func (r *reading) bytes() []byte             { return r.take(r.uvarint()) }
func (r *reading) string() string            { return string(r.bytes()) }
func (r *reading) digest() (d rdfres.Digest) { copy(d[:], r.take(32)); return d }

func (r *reading) bool() bool {
	b := r.byte()
	if b > 1 {
		r.bad = true
	}
	return b == 1
}

func (r *reading) format() rdfres.Format {
	f, ok := formatOf[r.byte()]
	if !ok {
		r.bad = true
	}
	return f
}

// begin checks the version of a record.
func (r *reading) begin(what string) error {
	if v := r.byte(); v > recordVersion && !r.bad {
		return fmt.Errorf("%s has version %d, this program knows %d: %w", what, v, recordVersion, ErrNewer)
	}
	return nil
}

func (r *reading) end(what string) error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%s cannot be read: %w", what, errDamaged)
	}
	return nil
}

func (r *reading) version() *Version {
	v := &Version{Sequence: r.uvarint(), Time: r.time(), Graph: r.digest(), Format: r.format(), Wanted: r.format()}
	flags := r.byte()
	v.Fixity.Length = int64(r.uvarint())
	v.Fixity.SHA256 = r.digest()
	if flags&hasMD5 != 0 {
		v.Fixity.MD5 = append([]byte(nil), r.take(16)...)
	}
	if flags&hasSHA1 != 0 {
		v.Fixity.SHA1 = append([]byte(nil), r.take(20)...)
	}
	v.Triples = int(r.uvarint())
	v.RDFXML = flags&carriesRDFXML != 0
	if flags > hasMD5|hasSHA1|carriesRDFXML {
		r.bad = true
	}
	return v
}

func readChange(seq uint64, b []byte) (Change, error) {
	r := &reading{b: b}
	if err := r.begin("change"); err != nil {
		return Change{}, err
	}
	c := Change{Sequence: seq}
	if t := r.take(8); t != nil {
		c.Time = time.UnixMicro(int64(binary.BigEndian.Uint64(t))).UTC()
	}
	code := r.byte()
	c.Kind = kindOf[code]
	flags := r.byte()
	c.Finder = r.string()
	if kind, ok := fileKindOf[code]; ok {
		c.Kind, c.File = kind, r.string()
		if flags&hasBefore != 0 {
			c.FileBefore = r.fileVersion()
		}
		if flags&hasAfter != 0 {
			c.FileAfter = r.fileVersion()
		}
		r.bad = r.bad || c.File == ""
		flags &^= hasBefore | hasAfter
	} else if c.Kind == Rebased {
		c.Note = r.string()
		r.bad = r.bad || flags != 0
	} else {
		c.Entity = r.string()
	}
	if flags&hasBefore != 0 {
		c.Before = r.version()
	}
	if flags&hasAfter != 0 {
		c.After = r.version()
	} else if flags&afterElsewhere != 0 {
		c.After = elsewhere
	}
	if c.Kind == "" || flags > afterElsewhere {
		r.bad = true
	}
	if err := r.end("change"); err != nil {
		return Change{}, fmt.Errorf("sequence %d: %w", seq, err)
	}
	return c, nil
}

func changeTime(b []byte) (time.Time, error) {
	if len(b) < 9 || b[0] != recordVersion {
		return time.Time{}, fmt.Errorf("change cannot be read: %w", errDamaged)
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:9]))).UTC(), nil
}

func readState(b []byte) (*stateRecord, error) {
	r := &reading{b: b}
	if err := r.begin("state of an entity"); err != nil {
		return nil, err
	}
	s := &stateRecord{entity: r.string(), changes: r.uvarint()}
	if s.changes != 1 {
		s.firstSeq, s.first = r.uvarint(), r.time()
	}
	switch {
	case r.bool():
		if s.current = r.version(); s.changes == 1 {
			s.firstSeq, s.first = s.current.Sequence, s.current.Time
		}
	case s.changes == 1: // a deletion is a second change
		r.bad = true
	default:
		s.delSeq, s.delTime = r.uvarint(), r.time()
	}
	return s, r.end("state of an entity")
}

// peek is the part of a state that tells whether an entity is unchanged.
type peek struct {
	entity         []byte // a part of the record
	current        bool
	first, last    uint64        // sequences of the first change, and of the current version or the deletion
	graph          rdfres.Digest // zero unless current
	format, wanted rdfres.Format
}

// peekState reads the beginning of a state record.
func peekState(b []byte) (p peek, err error) {
	r := reading{b: b}
	if err := r.begin("state of an entity"); err != nil {
		return p, err
	}
	p.entity = r.bytes()
	once := r.uvarint() == 1
	if !once {
		p.first = r.uvarint()
		r.time()
	}
	p.current = r.bool()
	if p.last = r.uvarint(); once {
		p.first = p.last
	}
	r.time()
	if p.current {
		p.graph, p.format, p.wanted = r.digest(), r.format(), r.format()
	}
	r.b = nil
	return p, r.end("state of an entity")
}

func readBlob(b []byte) (Blob, error) {
	r := &reading{b: b}
	version := r.byte()
	if version > plainBlob {
		return Blob{}, fmt.Errorf("representation has version %d, this program knows %d: %w", version, plainBlob, ErrNewer)
	}
	var blob Blob
	if crc := r.take(4); crc != nil {
		blob.CRC32 = binary.BigEndian.Uint32(crc)
	}
	blob.Length = int64(r.uvarint())
	if version == plainBlob {
		blob.plain = r.take(uint64(len(r.b)))
	} else {
		blob.Deflated = r.take(uint64(len(r.b)))
	}
	return blob, r.end("representation")
}

func readEnded(b []byte) (endedRecord, error) {
	r := &reading{b: b}
	if err := r.begin("end of a version"); err != nil {
		return endedRecord{}, err
	}
	e := endedRecord{key: r.digest(), start: r.uvarint(), time: r.time()}
	e.deleted = r.bool()
	return e, r.end("end of a version")
}

func readHead(b []byte) (headRecord, error) {
	r := &reading{b: b}
	if err := r.begin("head of the log"); err != nil {
		return headRecord{}, err
	}
	h := headRecord{seq: r.uvarint(), time: r.time(), tail: r.uvarint(), tailTime: r.time()}
	h.resources, h.components, h.triples = int64(r.uvarint()), int64(r.uvarint()), int64(r.uvarint())
	h.baseline = r.bool()
	h.baseSeq, h.baseTime = r.uvarint(), r.time()
	h.fingerprint = r.string()
	h.candidates = r.uvarint()
	if h.seq == 0 {
		h.time = time.Time{}
	}
	if h.tail == 0 {
		h.tailTime = time.Time{}
	}
	if !h.baseline {
		h.baseTime = time.Time{}
	}
	return h, r.end("head of the log")
}
