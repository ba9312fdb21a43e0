package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Flags of a Record.
const (
	FlagWireNames  = 1 << iota // labels are the source's wire names (rsb:graph was promised)
	FlagNotRDF                 // a non-RDF representation: counted, not stored
	FlagUnselected             // outside of the configured selection
	FlagKept                   // gone at the source, kept here (keep: deleted)
	FlagRewritten              // the store's normal form differs from the sent form
	FlagMapped                 // the stored triples were made by a CONSTRUCT
	FlagFile                   // the source says that it is a file: its inventory does not have it
	FlagVia                    // the source tells its own origin
)

// Record is the memory of one resource, without its triples.
type Record struct {
	Flags   byte
	Loc     string
	Entity  string
	Hashes  resourcesync.Hashes // as promised, or as computed where nothing was promised
	Length  int64               // as promised, -1 unknown; see Promised
	LastMod time.Time
	Graph   rdfres.Digest // graph digest of the wire form
	Normal  rdfres.Digest // digest over the sorted hashes of its triples in the store's normal form
	Triples int64
	Time    time.Time     // time of the change that made this state, zero if unknown
	Made    rdfres.Digest // graph digest of what is kept, where that is not the wire form (FlagMapped)
	Via     string        // where the source has it from (FlagVia)

	body []byte // the kept representation, packed; nil: not read ahead
}

// Promised gives the promised length, -1 unknown. A representation that could change once
// more under the same lastmod is not settled: its length n stands as -3-n.
func (r *Record) Promised() (length int64, settled bool) {
	if r.Length < -1 {
		return -3 - r.Length, false
	}
	return r.Length, true
}

// Unsettle makes a length unsettled.
func (r *Record) Unsettle() { r.Length = -3 - r.Length }

// Origin is the first known place of publication.
func (r *Record) Origin() string {
	if r.Via != "" {
		return r.Via
	}
	return r.Loc
}

// Forget makes nothing known of the resource at the source, so that it is fetched.
func (r *Record) Forget() {
	r.Graph, r.Hashes, r.Length, r.LastMod = rdfres.Digest{}, resourcesync.Hashes{}, -1, time.Time{}
}

// NotRDF marks the record of a resource without triples; file: the source says that it is a file.
func (r *Record) NotRDF(file bool) {
	r.Flags |= FlagNotRDF
	if file {
		r.Flags |= FlagFile
	}
}

// AskAgain forgets the source's promises, so that the resource is fetched. Its kept
// representation, and its triples in the mirror, stand until they are replaced.
func (r *Record) AskAgain() {
	if r.Flags |= FlagMapped; r.Made.IsZero() {
		r.Made = r.Graph
	}
	r.Forget()
}

// ComesVia keeps the source's own origin of the resource, "" for none.
func (r *Record) ComesVia(via string) {
	if r.Via = via; via != "" {
		r.Flags |= FlagVia
	}
}

// Has tells whether a flag is set.
func (r *Record) Has(flag byte) bool { return r.Flags&flag != 0 }

// Unselected is 1 for a resource of the source outside of the selection, else 0. A nil record
// has none.
func (r *Record) Unselected() int64 {
	if r != nil && r.Has(FlagUnselected) && !r.Has(FlagKept) {
		return 1
	}
	return 0
}

// Unmapped is 1 for a resource of whose description map makes nothing, else 0.
func (r *Record) Unmapped() int64 {
	if r != nil && r.Has(FlagMapped) && r.Triples == 0 && !r.Has(FlagKept) {
		return 1
	}
	return 0
}

// Since is the time of the present state, as far as the source told.
func (r *Record) Since() time.Time {
	if r.Time.IsZero() {
		return r.LastMod
	}
	return r.Time
}

const recordVersion = 2

// Size is the approximate length of Encode, in bytes.
func (r *Record) Size() int { return 200 + len(r.Loc) + len(r.Entity) + len(r.Via) }

// Encode is the stored form.
func (r *Record) Encode() []byte {
	b := append(make([]byte, 0, r.Size()), recordVersion, r.Flags)
	b = AppendString(b, r.Loc)
	b = AppendString(b, r.Entity)
	b = appendHashes(b, &r.Hashes)
	b = binary.AppendVarint(b, r.Length)
	b = AppendTime(b, r.LastMod)
	b = append(b, r.Graph[:]...)
	b = append(b, r.Normal[:]...)
	b = binary.AppendVarint(b, r.Triples)
	b = AppendTime(b, r.Time)
	if r.Has(FlagMapped) {
		b = append(b, r.Made[:]...)
	}
	if r.Has(FlagVia) {
		b = AppendString(b, r.Via)
	}
	return b
}

// ErrDamaged marks records that cannot be read.
var ErrDamaged = errors.New("record of the destination is damaged")

// DecodeRecord is the inverse of Encode.
func DecodeRecord(b []byte) (*Record, error) {
	if len(b) < 2 || b[0] != recordVersion {
		return nil, fmt.Errorf("%w: unknown version", ErrDamaged)
	}
	r := &Record{Flags: b[1]}
	d := Decoder{B: b[2:]}
	r.Loc = d.String()
	r.Entity = d.String()
	hashes := d.hashes(&r.Hashes)
	r.Length = d.Varint()
	r.LastMod = d.Time()
	d.Fixed(r.Graph[:])
	d.Fixed(r.Normal[:])
	r.Triples = d.Varint()
	r.Time = d.Time()
	if r.Has(FlagMapped) {
		d.Fixed(r.Made[:])
	}
	if r.Has(FlagVia) {
		r.Via = d.String()
	}
	if d.Bad {
		return nil, ErrDamaged
	}
	if hashes != "" {
		h, err := resourcesync.ParseHashes(hashes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		r.Hashes = h
	}
	return r, nil
}

// justSHA256 stands before 32 bytes in place of the length of a hash attribute: most records have
// this hash and no other.
const justSHA256 = -1

func appendHashes(b []byte, h *resourcesync.Hashes) []byte {
	sum, err := hex.DecodeString(h.SHA256)
	if err != nil || len(sum) != 32 || h.MD5 != "" || h.SHA1 != "" || len(h.Other)+len(h.Broken) > 0 {
		return AppendString(b, h.String())
	}
	return append(binary.AppendVarint(b, justSHA256), sum...)
}

// hashes reads what appendHashes wrote; text is a hash attribute still to be read.
func (d *Decoder) hashes(h *resourcesync.Hashes) (text string) {
	before := *d
	if d.Varint() != justSHA256 {
		*d = before
		return d.String()
	}
	var sum [32]byte
	d.Fixed(sum[:])
	h.SHA256 = hex.EncodeToString(sum[:])
	return ""
}
