package destination

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// The key space (docs/reference/state-destination.md). All destinations of a
// state share it, because ownership of a triple spans every destination that
// writes into the same graph. The first byte is the kind of record:
//
//	v                                    version of the layout, one byte
//	n NAME                               -> id of the destination, 4 bytes big endian
//	N                                    -> last id given out
//	s TARGET 0 GRAPH                     -> id of the space (one graph, or all per-entity graphs, of one store)
//	S                                    -> last space id given out
//	p TARGET                             -> what the probe of the store found, JSON
//	m DEST                               -> meta: cursor, generation, times, JSON
//	r DEST LOC                           -> resource record
//	b DEST LOC                           -> wire form of the resource, sorted N-Triples, compressed
//	f DEST LOC                           -> pending or failed resource, JSON
//	i DEST                               -> intent: the batch that is being written into the mirror
//	o SPACE SUBJECT DEST LOC             -> hashes of the triples with this subject that the resource owns, 16 bytes each, sorted
//	g SPACE GRAPH                        -> DEST LOC: the resource that owns a per-entity graph, then the graph's IRI
//	d DEST LOC-or-ENTITY                 -> a difference that the last audit found, JSON
//	w SPACE SUBJECT TRIPLE               -> TRIPLE that the store makes of it by itself: a difference that survived a repair
//	h DEST ENTITY NUMBER                 -> a version that is not current any more (keep: versions); NUMBER 8 bytes big endian, growing
//	q DEST GRAPH                         -> IRI of a graph that the mirror says is ours and no record knows; while a comparison runs
//	u DEST LOC                           -> a resource that is no RDF: the path of its file, "" for none
//	k DEST PATH                          -> DEST LOC: the resource that a file beside the store is of, then its path
//	l DEST LOC                           -> a resource that the source does not have any more, until it is decided that it goes, JSON
//	x SPACE                              -> rules of the normal form in which o was made, JSON
//
// DEST and SPACE are 4 bytes; LOC, ENTITY, SUBJECT, TRIPLE, GRAPH and PATH are the
// first 16 bytes of a SHA-256.
//
// Version 2 added x, locations that are replaced (in i and f), bad entries (in the
// items of f), and the newest change of a cursor; version 3 h, and versions by time
// in items; version 4 u and k, and packages in items; version 5 another packing of
// bodies. Earlier ones are read as they are.
const layoutVersion = 5

const (
	kindVersion   = 'v'
	kindDestName  = 'n'
	kindDestLast  = 'N'
	kindSpaceName = 's'
	kindSpaceLast = 'S'
	kindProbe     = 'p'
	kindMeta      = 'm'
	kindResource  = 'r'
	kindBody      = 'b'
	kindFault     = 'f'
	kindIntent    = 'i'
	kindOwned     = 'o'
	kindGraph     = 'g'
	kindDiff      = 'd'
	kindRewritten = 'w'
	kindForm      = 'x'
	kindPast      = 'h'
	kindGhost     = 'q'
	kindOther     = 'u'
	kindFile      = 'k'
	kindLeaving   = 'l'
)

// hash16 is the first half of a SHA-256: a name for a location, a subject or a
// triple. 2^64 of them would have to be made before two meet by accident.
type hash16 [16]byte

func hashString(s string) hash16 { return hashBytes([]byte(s)) }

func hashBytes(b []byte) hash16 {
	sum := sha256.Sum256(b)
	return hash16(sum[:16])
}

// MarshalText writes it in hexadecimal.
func (h hash16) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *hash16) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(h[:], b[:min(len(b), 32)]); err != nil || n != 16 || len(b) != 32 {
		return fmt.Errorf("%q is no hash of 16 bytes", b)
	}
	return nil
}

type id uint32

func key(kind byte, n id, parts ...hash16) []byte {
	k := make([]byte, 0, 5+16*len(parts)+4)
	k = append(k, kind)
	k = binary.BigEndian.AppendUint32(k, uint32(n))
	for _, p := range parts {
		k = append(k, p[:]...)
	}
	return k
}

// ownedKey is where the triples of one subject that one resource owns stand.
func ownedKey(space id, subject hash16, dest id, loc hash16) []byte {
	k := key(kindOwned, space, subject)
	k = binary.BigEndian.AppendUint32(k, uint32(dest))
	return append(k, loc[:]...)
}

// owner names a resource of any destination.
type owner struct {
	dest id
	loc  hash16
}

func splitOwned(k []byte) (subject hash16, o owner, ok bool) {
	if len(k) != 1+4+16+4+16 {
		return
	}
	copy(subject[:], k[5:21])
	o.dest = id(binary.BigEndian.Uint32(k[21:25]))
	copy(o.loc[:], k[25:41])
	return subject, o, true
}

// singleSpace begins the name of a space that is one graph; its name follows.
const singleSpace = "single "

func nameKey(kind byte, parts ...string) []byte {
	k := []byte{kind}
	for i, p := range parts {
		if i > 0 {
			k = append(k, 0)
		}
		k = append(k, p...)
	}
	return k
}
