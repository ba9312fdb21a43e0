package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// The key space (docs/reference/state-destination.md). All destinations of a
// state share it, because ownership of a triple spans all destinations of one
// graph. The first byte is the kind of record:
//
//	v                                    version of the layout, one byte
//	n NAME                               -> id of the destination, 4 bytes big endian
//	N                                    -> last id given out
//	s TARGET 0 GRAPH                     -> id of the space (one graph, or all per-entity graphs, of one store)
//	S                                    -> last space id given out
//	p TARGET                             -> findings of the last probe of the store, JSON
//	m DEST                               -> meta: identity, state, counts, position, JSON
//	r DEST LOC                           -> resource record
//	b DEST LOC                           -> wire form of the resource, sorted N-Triples, compressed
//	f DEST LOC                           -> pending or failed resource, JSON
//	c DEST                               -> number of pending and failed resources, 8 bytes; none: not counted
//	i DEST                               -> intent: the batch under way
//	o SPACE SUBJECT DEST LOC             -> hashes of the resource's triples with this subject, 16 bytes each, sorted
//	g SPACE GRAPH                        -> DEST LOC: the owner of a per-entity graph, then the graph's IRI
//	d DEST LOC-or-ENTITY                 -> a difference found by the last audit, JSON
//	w SPACE SUBJECT TRIPLE               -> the store's own TRIPLE for it: a difference beyond repair
//	h DEST ENTITY NUMBER                 -> a former version (keep: versions); NUMBER 8 bytes big endian, growing
//	q DEST GRAPH                         -> IRI of a graph marked as ours without a record; during a comparison
//	u DEST LOC                           -> a non-RDF resource: the path of its file, "" for none
//	k DEST PATH                          -> DEST LOC: the owner of a file beside the store, then its path
//	l DEST LOC                           -> a resource gone at the source, until its removal is decided, JSON
//	t DEST LOC                           -> a resource received without a promise, until it is confirmed, JSON
//	y DEST SPAN LOC                      -> a resource as it was before its first operation in a span, JSON; SPAN one byte
//	x SPACE                              -> rules of the normal form of o, JSON
//
// DEST and SPACE are 4 bytes; LOC, ENTITY, SUBJECT, TRIPLE, GRAPH and PATH are the
// first 16 bytes of a SHA-256.
const LayoutVersion = 8

const (
	KindVersion   = 'v'
	KindDestName  = 'n'
	KindDestLast  = 'N'
	KindSpaceName = 's'
	KindSpaceLast = 'S'
	KindProbe     = 'p'
	KindMeta      = 'm'
	KindResource  = 'r'
	KindBody      = 'b'
	KindFault     = 'f'
	KindFaults    = 'c'
	KindIntent    = 'i'
	KindOwned     = 'o'
	KindGraph     = 'g'
	KindDiff      = 'd'
	KindRewritten = 'w'
	KindForm      = 'x'
	KindPast      = 'h'
	KindGhost     = 'q'
	KindOther     = 'u'
	KindFile      = 'k'
	KindLeaving   = 'l'
	KindDoubt     = 't'
	KindTouched   = 'y'
)

// Hash is the first half of a SHA-256: a name for a location, a subject, a triple or a
// graph. Two of them meet by accident after about 2^64 others.
type Hash [16]byte

// HashOf is the hash of a string.
func HashOf(s string) Hash { return HashBytes([]byte(s)) }

// HashBytes is the hash of bytes.
func HashBytes(b []byte) Hash {
	sum := sha256.Sum256(b)
	return Hash(sum[:16])
}

// Compare orders hashes as their keys are ordered.
func (h Hash) Compare(o Hash) int { return bytes.Compare(h[:], o[:]) }

// Brief is the first half of it, as a number.
func (h Hash) Brief() uint64 { return binary.BigEndian.Uint64(h[:]) }

// MarshalText writes it in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *Hash) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(h[:], b[:min(len(b), 32)]); err != nil || n != 16 || len(b) != 32 {
		return fmt.Errorf("%q is no hash of 16 bytes", b)
	}
	return nil
}

// ID is the number of a destination or of a space: one graph of one store, or all per-entity
// graphs of one store. It is never given twice.
type ID uint32

// Key is a key of a kind below a destination or space.
func Key(kind byte, n ID, parts ...Hash) []byte {
	k := make([]byte, 0, 5+16*len(parts)+4)
	k = append(k, kind)
	k = binary.BigEndian.AppendUint32(k, uint32(n))
	for _, p := range parts {
		k = append(k, p[:]...)
	}
	return k
}

// After is the first key behind those of Key with the same parts: without any, of all keys of the kind.
func After(kind byte, n ID, parts ...Hash) []byte { return append(Key(kind, n, parts...), 0) }

// OwnedKey is the key of a resource's triples with one subject.
func OwnedKey(space ID, subject Hash, dest ID, loc Hash) []byte {
	k := Key(KindOwned, space, subject)
	k = binary.BigEndian.AppendUint32(k, uint32(dest))
	return append(k, loc[:]...)
}

// Owner names a resource of any destination.
type Owner struct {
	Dest ID
	Loc  Hash
}

// SplitOwned is the inverse of OwnedKey.
func SplitOwned(k []byte) (subject Hash, o Owner, ok bool) {
	if len(k) != 1+4+16+4+16 {
		return
	}
	copy(subject[:], k[5:21])
	o.Dest = ID(binary.BigEndian.Uint32(k[21:25]))
	copy(o.Loc[:], k[25:41])
	return subject, o, true
}

// SingleSpace begins the name of a space of one graph; the graph's IRI follows.
const SingleSpace = "single "

// NameKey is a key of a kind and names.
func NameKey(kind byte, parts ...string) []byte {
	k := []byte{kind}
	for i, p := range parts {
		if i > 0 {
			k = append(k, 0)
		}
		k = append(k, p...)
	}
	return k
}
