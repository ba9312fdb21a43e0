package destination

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Flags of a resource record.
const (
	flagWireNames  = 1 << iota // labels are the source's wire names (rsb:graph was promised)
	flagNotRDF                 // the representation is no RDF: counted, not stored
	flagUnselected             // outside of the configured selection
	flagKept                   // gone at the source, kept here (keep: deleted)
	flagRewritten              // the store's normal form differs from what was sent
	flagMapped                 // what is stored was made of it by a CONSTRUCT
	flagFile                   // the source says that it is a file: its inventory does not have it
	flagVia                    // the source tells where it has it from
)

// record is what is remembered of one resource, without its triples.
type record struct {
	Flags   byte
	Loc     string
	Entity  string
	Hashes  resourcesync.Hashes // as promised, or as computed where nothing was promised
	Length  int64               // as promised, -1 unknown; see told
	LastMod time.Time
	Graph   rdfres.Digest // graph digest of the wire form
	Normal  rdfres.Digest // digest over the sorted hashes of its triples in the store's normal form
	Triples int64
	Changed time.Time     // time of the change that made this state, zero if unknown
	Made    rdfres.Digest // graph digest of what is kept, where that is not the wire form (flagMapped)
	Via     string        // where the source has it from (flagVia)
}

// told gives the promised length, -1 unknown. What was had while it could be changed once
// more and keep its lastmod is not settled: a length n of it stands as -3-n.
func (r *record) told() (length int64, settled bool) {
	if r.Length < -1 {
		return -3 - r.Length, false
	}
	return r.Length, true
}

// unsettle is for what has just been recorded.
func (r *record) unsettle() { r.Length = -3 - r.Length }

// origin is where a description was published first, as far as is known.
func (r *record) origin() string {
	if r.Via != "" {
		return r.Via
	}
	return r.Loc
}

// record is what is remembered of a resource before it is fetched.
func (it *item) record() *record {
	r := &record{Loc: it.Loc, Entity: it.Entity, Hashes: it.Promise.Hashes, Length: it.Promise.Length, LastMod: it.LastMod, Changed: it.Time}
	r.comesVia(it.Via)
	return r
}

// askAgain forgets what the source promised, so that it is fetched. What is kept
// of it, and what it owns, stands until it is replaced.
func (r *record) askAgain() {
	if r.Flags |= flagMapped; r.Made.IsZero() {
		r.Made = r.Graph
	}
	r.forget()
}

// comesVia keeps where the source has it from.
func (r *record) comesVia(via string) {
	if r.Via = via; via != "" {
		r.Flags |= flagVia
	}
}

func (r *record) has(flag byte) bool { return r.Flags&flag != 0 }

// unselected is 1 for a resource of the source that is outside of what is selected.
func (r *record) unselected() int64 {
	if r != nil && r.has(flagUnselected) && !r.has(flagKept) {
		return 1
	}
	return 0
}

// unmapped is 1 for a resource of whose description map makes nothing.
func (r *record) unmapped() int64 {
	if r != nil && r.has(flagMapped) && r.Triples == 0 && !r.has(flagKept) {
		return 1
	}
	return 0
}

// since is the time from which on the resource is as it is, as far as the source
// told.
func (r *record) since() time.Time {
	if r.Changed.IsZero() {
		return r.LastMod
	}
	return r.Changed
}

const recordVersion = 1

// size is about what it takes encoded.
func (r *record) size() int { return 200 + len(r.Loc) + len(r.Entity) + len(r.Via) }

func (r *record) encode() []byte {
	b := append(make([]byte, 0, r.size()), recordVersion, r.Flags)
	b = appendString(b, r.Loc)
	b = appendString(b, r.Entity)
	b = appendString(b, r.Hashes.String())
	b = binary.AppendVarint(b, r.Length)
	b = appendTime(b, r.LastMod)
	b = append(b, r.Graph[:]...)
	b = append(b, r.Normal[:]...)
	b = binary.AppendVarint(b, r.Triples)
	b = appendTime(b, r.Changed)
	if r.has(flagMapped) {
		b = append(b, r.Made[:]...)
	}
	if r.has(flagVia) {
		b = appendString(b, r.Via)
	}
	return b
}

var errRecord = errors.New("record of the destination is damaged")

func decodeRecord(b []byte) (*record, error) {
	if len(b) < 2 || b[0] != recordVersion {
		return nil, fmt.Errorf("%w: unknown version", errRecord)
	}
	r := &record{Flags: b[1]}
	d := decoder{b: b[2:]}
	r.Loc = d.str()
	r.Entity = d.str()
	hashes := d.str()
	r.Length = d.varint()
	r.LastMod = d.time()
	d.fixed(r.Graph[:])
	d.fixed(r.Normal[:])
	r.Triples = d.varint()
	r.Changed = d.time()
	if r.has(flagMapped) {
		d.fixed(r.Made[:])
	}
	if r.has(flagVia) {
		r.Via = d.str()
	}
	if d.bad {
		return nil, errRecord
	}
	if hashes != "" {
		h, err := resourcesync.ParseHashes(hashes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		r.Hashes = h
	}
	return r, nil
}

// decoder reads the fields of a record; after a short read bad is set and
// everything else is zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.varint()
	if d.bad || n < 0 || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	s := d.b[:n]
	d.b = d.b[n:]
	return s
}

func (d *decoder) str() string { return string(d.bytes()) }

func (d *decoder) fixed(dst []byte) {
	if len(d.b) < len(dst) {
		d.bad, d.b = true, nil
		return
	}
	copy(dst, d.b)
	d.b = d.b[len(dst):]
}

func (d *decoder) time() time.Time {
	sec, nsec := d.varint(), d.varint()
	if d.bad || (sec == 0 && nsec == -1) {
		return time.Time{}
	}
	return time.Unix(sec, nsec).UTC()
}

func appendString[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendVarint(b, int64(len(s)))
	return append(b, s...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(binary.AppendVarint(b, 0), -1)
	}
	return binary.AppendVarint(binary.AppendVarint(b, t.Unix()), int64(t.Nanosecond()))
}

// Bodies are kept with S2, which costs little and leaves to the store's lowest level
// what bodies that stand beside each other have in common: on disk less than half of
// what Zstandard makes of each alone. Those of layouts before 5 are Zstandard.

const (
	packedS2   = 1       // the first byte of a packed body
	packedHead = 1 + 4   // and the CRC-32C of what is in it
	maxKept    = 1 << 30 // bounds what one value may unpack to
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxKept)) // of older bodies
)

// pack packs a body; nothing stays nothing.
func pack(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	room := packedHead + s2.MaxEncodedLen(len(b))
	var out []byte
	if room <= pooledPack {
		from := packRooms.Get().(*[pooledPack]byte)
		defer packRooms.Put(from)
		out = from[:0]
	} else {
		out = make([]byte, 0, room)
	}
	out = binary.LittleEndian.AppendUint32(append(out, packedS2), crc32.Checksum(b, castagnoli))
	n := len(s2.Encode(out[packedHead:cap(out)], b))
	return slices.Clip(slices.Clone(out[:packedHead+n]))
}

// packRooms are where bodies that are not large are packed.
var packRooms = sync.Pool{New: func() any { return new([pooledPack]byte) }}

const pooledPack = 64 << 10

func unpack(b []byte) ([]byte, error) { return unpackInto(nil, b) }

// unpackInto unpacks over what is in a buffer, if it is large enough.
func unpackInto(buf, b []byte) (out []byte, err error) {
	switch {
	case len(b) > 0 && b[0] != packedS2:
		out, err = unpacker.DecodeAll(b, buf[:0])
	case len(b) >= packedHead:
		var n int
		if n, err = s2.DecodedLen(b[packedHead:]); err == nil && n > maxKept {
			err = fmt.Errorf("%d bytes", n)
		}
		if err == nil {
			out, err = s2.Decode(buf[:cap(buf)], b[packedHead:])
		}
		if err == nil && crc32.Checksum(out, castagnoli) != binary.LittleEndian.Uint32(b[1:]) {
			err = errors.New("another checksum than was recorded")
		}
	case len(b) > 0:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: kept body: %w", errRecord, err)
	}
	return out, nil
}

// hashesOf computes what a record keeps of a body when the source promised no
// hash, so that the next list with one can be compared.
func hashesOf(body []byte, like resourcesync.Hashes) resourcesync.Hashes {
	sum := sha256.Sum256(body)
	h := resourcesync.Hashes{SHA256: hex.EncodeToString(sum[:]), Other: like.Other}
	if like.MD5 != "" {
		m := md5.Sum(body)
		h.MD5 = hex.EncodeToString(m[:])
	}
	if like.SHA1 != "" {
		s := sha1.Sum(body)
		h.SHA1 = hex.EncodeToString(s[:])
	}
	return h
}

// checkHashes compares a body with all promised hashes that are known.
func checkHashes(body []byte, want resourcesync.Hashes) error {
	got := hashesOf(body, want)
	for _, c := range []struct{ name, got, want string }{
		{"sha-256", got.SHA256, want.SHA256}, {"sha-1", got.SHA1, want.SHA1}, {"md5", got.MD5, want.MD5},
	} {
		if c.want != "" && !strings.EqualFold(c.got, c.want) {
			return fmt.Errorf("%s is %s, promised was %s", c.name, c.got, c.want)
		}
	}
	return nil
}

// compareHashes tells whether two hash attributes prove equality or difference;
// known is false when they share no algorithm.
func compareHashes(a, b resourcesync.Hashes) (equal, known bool) {
	equal = true
	for _, c := range [][2]string{{a.SHA256, b.SHA256}, {a.SHA1, b.SHA1}, {a.MD5, b.MD5}} {
		if c[0] != "" && c[1] != "" {
			known = true
			equal = equal && strings.EqualFold(c[0], c[1])
		}
	}
	return equal && known, known
}

// checkHashesOf is checkHashes of a stream.
func checkHashesOf(r io.Reader, want resourcesync.Hashes) error {
	s256, s1, m := sha256.New(), sha1.New(), md5.New()
	var ws []io.Writer
	if want.SHA256 != "" {
		ws = append(ws, s256)
	}
	if want.SHA1 != "" {
		ws = append(ws, s1)
	}
	if want.MD5 != "" {
		ws = append(ws, m)
	}
	if _, err := io.Copy(io.MultiWriter(ws...), r); err != nil {
		return err
	}
	for _, c := range []struct {
		name, want string
		h          hash.Hash
	}{{"sha-256", want.SHA256, s256}, {"sha-1", want.SHA1, s1}, {"md5", want.MD5, m}} {
		if got := hex.EncodeToString(c.h.Sum(nil)); c.want != "" && !strings.EqualFold(got, c.want) {
			return fmt.Errorf("%s is %s, promised was %s", c.name, got, c.want)
		}
	}
	return nil
}
