package rdfres

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	stdhash "hash"
	"sync"

	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
)

// Digest is a SHA-256 value.
type Digest [32]byte

// String is lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero tells whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// ParseDigest reads 64 hexadecimal digits of either case.
func ParseDigest(s string) (d Digest, err error) {
	if len(s) != 2*len(d) {
		return Digest{}, fmt.Errorf("rdfres: a SHA-256 digest has %d hexadecimal digits, %q has %d characters", 2*len(d), chars.Cut(s), len(s))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, fmt.Errorf("rdfres: %q is no SHA-256 digest: %w", s, err)
	}
	return d, nil
}

// EntityKey is the SHA-256 of the entity IRI: the order of scans, of the tracker and of the parts
// of Resource Lists.
func EntityKey(entity string) Digest { return sha256.Sum256([]byte(entity)) }

// GraphDigest is SHA-256 over the sorted canonical lines of ts (wire form). ts
// must be sorted and unique (SortUnique).
func GraphDigest(ts []Triple) Digest {
	d := digesters.Get().(*digester)
	defer digesters.Put(d)
	d.Reset()
	for _, t := range ts {
		if d.buf = t.AppendLine(d.buf); len(d.buf) > 1<<15 {
			d.flush()
		}
	}
	d.flush()
	var sum Digest
	d.Sum(sum[:0])
	return sum
}

// digester is reused: otherwise it would be most of the memory allocated for comparing an unchanged
// entity.
type digester struct {
	stdhash.Hash
	buf []byte
}

var digesters = sync.Pool{New: func() any { return &digester{Hash: sha256.New()} }}

func (d *digester) flush() {
	d.Write(d.buf)
	if d.buf = d.buf[:0]; cap(d.buf) > 1<<17 { // of a very long literal
		d.buf = nil
	}
}

// Fixity is a list's promise about a representation.
type Fixity struct {
	Length int64
	SHA256 Digest
	MD5    []byte // nil unless asked for
	SHA1   []byte // nil unless asked for
}

// ComputeFixity measures a representation: always its length in bytes and
// SHA-256, MD5 and SHA-1 when they are asked for.
func ComputeFixity(data []byte, withMD5, withSHA1 bool) Fixity {
	f := Fixity{Length: int64(len(data)), SHA256: sha256.Sum256(data)}
	if withMD5 {
		sum := md5.Sum(data)
		f.MD5 = sum[:]
	}
	if withSHA1 {
		sum := sha1.Sum(data)
		f.SHA1 = sum[:]
	}
	return f
}
