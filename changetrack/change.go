package changetrack

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Kind of a change.
type Kind string

// The kinds of change. An entity returning after its deletion is created. Rebased is no change of
// an entity: the set got other addresses (Log.Rebase).
const (
	Created Kind = "created"
	Updated Kind = "updated"
	Deleted Kind = "deleted"
	Rebased Kind = "rebased"
)

// Version is one state of an entity.
type Version struct {
	Sequence uint64 // of its change
	Time     time.Time
	Graph    rdfres.Digest // graph digest
	Format   rdfres.Format // of the representation
	Wanted   rdfres.Format // configured format; Format differs if this one could not carry the graph
	Fixity   rdfres.Fixity
	Triples  int
	RDFXML   bool // RDF/XML can carry it too (rdfxml.Carries)
}

// Change is one entry of the log. Before is nil for created, After for deleted.
// A Rebased one has neither and no entity, only a note. One of a file (OfFile) has
// File, FileBefore and FileAfter instead of Entity, Before and After.
type Change struct {
	Sequence uint64
	Time     time.Time // strictly increasing, whole microseconds, UTC
	Kind     Kind
	Entity   string
	Before   *Version
	After    *Version
	Finder   string // how it was found: "scan", "hint", ...
	Note     string // of a Rebased one: the note given to Log.Rebase

	File                  string // address of a file; "" for every other change
	FileBefore, FileAfter *FileVersion
}

// State is the known state of an entity: its current version, or its end.
type State struct {
	Entity  string
	Current *Version // nil: deleted
	Deleted *Change  // the deletion, when it is deleted and within retention
	Changes int      // how often it changed, for changefreq
	First   time.Time
}

// Blob is a stored representation, with the lengths and sums for ZIP and gzip. The store keeps
// short ones plain and packs them together; long ones are raw deflate (RFC 1951). Bytes and
// Deflate are for both.
type Blob struct {
	Deflated []byte // nil if it is kept otherwise
	CRC32    uint32 // IEEE, of the unpacked bytes
	Length   int64  // unpacked

	plain []byte // nil if it is kept otherwise
}

// PlainBlob makes a blob of unpacked bytes.
func PlainBlob(data []byte) Blob {
	return Blob{CRC32: crc32.ChecksumIEEE(data), Length: int64(len(data)), plain: data}
}

// Deflate gives the blob with its bytes as raw deflate, packed now if they are not
// kept so.
func (b Blob) Deflate() (Blob, error) {
	if b.plain == nil {
		return b, nil
	}
	data, err := b.Bytes()
	if err != nil {
		return Blob{}, err
	}
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	packed := bytes.NewBuffer(make([]byte, 0, len(data)/2))
	w.Reset(packed)
	if _, err := w.Write(data); err != nil {
		return Blob{}, err
	}
	if err := w.Close(); err != nil {
		return Blob{}, err
	}
	return Blob{Deflated: packed.Bytes(), CRC32: b.CRC32, Length: b.Length}, nil
}

// deflaters are fast: their output is sent once.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// Bytes unpacks, checks length and CRC. The caller must not change the result.
func (b Blob) Bytes() ([]byte, error) {
	if b.plain != nil {
		if int64(len(b.plain)) != b.Length {
			return nil, fmt.Errorf("representation has %d bytes, not the promised %d: %w", len(b.plain), b.Length, errDamaged)
		}
		return b.checked(b.plain)
	}
	src := bytes.NewReader(b.Deflated)
	r := inflaters.Get().(io.Reader)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(src, nil); err != nil {
		return nil, fmt.Errorf("unpack representation: %w", err)
	}
	var out bytes.Buffer
	if b.Length > 0 && b.Length <= 1<<26 { // beyond it, grow as it comes: the length may be damaged
		out.Grow(int(b.Length))
	}
	n, err := io.Copy(&out, io.LimitReader(r, b.Length+1))
	if err != nil {
		return nil, fmt.Errorf("unpack representation: %w", err)
	}
	if n != b.Length || src.Len() > 0 {
		return nil, fmt.Errorf("unpack representation: it has not the promised %d bytes: %w", b.Length, errDamaged)
	}
	return b.checked(out.Bytes())
}

func (b Blob) checked(data []byte) ([]byte, error) {
	if crc := crc32.ChecksumIEEE(data); crc != b.CRC32 {
		return nil, fmt.Errorf("representation: CRC-32 is %08x, want %08x: %w", crc, b.CRC32, errDamaged)
	}
	return data, nil
}

// inflaters are costly to make and cheap to use again.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// errDamaged is a record changed since it was written.
var errDamaged = errors.New("the state is damaged; restore it from a backup, or remove it and scan again")

// componentPrefix begins the IRIs of orphan components, see rdfres.OrphanEntity.
const componentPrefix = "urn:rsbridge:component:"

func isComponent(entity string) bool { return strings.HasPrefix(entity, componentPrefix) }
