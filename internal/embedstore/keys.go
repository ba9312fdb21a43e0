package embedstore

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/rsbridge/rsbridge/rdfres"
)

// The key space, in this order. All numbers are big endian: the order of keys is the order of
// numbers.
//
//	00 name                  facts about the store: "commits", "next", "version"
//	01 graph                 triples of a graph, 8 bytes; no key: the graph is empty
//	02 hash                  id of a term by the first 16 bytes of its SHA-256
//	03 id                    the literal of an id, in canonical N-Triples, or a page of them
//	04 id                    the IRI of an id, in canonical N-Triples, or a page of them
//	05 number                the places touched by a commit (journal.go)
//	10 s p o g, 11 p o s g, 12 o s p g, 13 g s p o    the quads, empty values
//
// An id takes 5 bytes. Blank nodes have no keys in 02 to 04: their label is their id. Literals come
// with the first description using them, and are read again with it. IRIs are used from everywhere:
// they stand apart, close together.
const (
	spaceMeta    = 0x00
	spaceCount   = 0x01
	spaceHash    = 0x02
	spaceTerm    = 0x03
	spaceIRI     = 0x04
	spaceJournal = 0x05
	spaceSPOG    = 0x10
	spacePOSG    = 0x11
	spaceOSPG    = 0x12
	spaceGSPO    = 0x13
)

const (
	idBytes    = 5
	recBytes   = 4 * idBytes
	quadKeyLen = 1 + recBytes
	maxID      = id(1)<<40 - 1

	storeVersion = 5
)

var (
	keyCommits = append([]byte{spaceMeta}, "commits"...)
	keyNext    = append([]byte{spaceMeta}, "next"...)
	keyVersion = append([]byte{spaceMeta}, "version"...)
)

// id names a term: a number that grows with the first appearance, shifted left by two, and the kind
// of the term in the low bits. 0 is the default graph, and in rows an unbound variable. Ids with
// the highest bit set belong to one query and are never stored.
type id uint64

const (
	idIRI     id = 1
	idBlank   id = 2
	idLiteral id = 3
	idKinds   id = 3

	idLocal id = 1 << 63
	idFresh id = 1 << 62 // with idLocal: a blank node made by a template
)

func (i id) kind() id      { return i & idKinds }
func (i id) isLocal() bool { return i&idLocal != 0 }

// kindOf is the kind of a term in canonical N-Triples.
func kindOf(term string) id {
	if term == "" {
		return 0
	}
	switch term[0] {
	case '<':
		return idIRI
	case '_':
		return idBlank
	}
	return idLiteral
}

// A blank node's label is its id: the letter e (for embedded) and the number in
// base 36.
func appendBlank(dst []byte, i id) []byte {
	dst = append(dst, '_', ':', 'e')
	return strconv.AppendUint(dst, uint64(i>>2), 36)
}

// parseBlank is the id of a blank node by the store's label.
func parseBlank(term string) (id, bool) {
	if len(term) < 4 || len(term) > 16 || term[:3] != "_:e" {
		return 0, false
	}
	n, err := strconv.ParseUint(term[3:], 36, 64)
	if err != nil || n == 0 || id(n) > maxID>>2 {
		return 0, false
	}
	i := id(n)<<2 | idBlank
	if string(appendBlank(nil, i)) != term {
		return 0, false
	}
	return i, true
}

// quad is a quad of ids by position.
type quad [4]id

const (
	posS = 0
	posP = 1
	posO = 2
	posG = 3
)

// orders gives, per index, the positions in the order of the key.
var orders = [4][4]int{
	{posS, posP, posO, posG},
	{posP, posO, posS, posG},
	{posO, posS, posP, posG},
	{posG, posS, posP, posO},
}

func putID(dst []byte, i id) {
	_ = dst[4]
	dst[0] = byte(i >> 32)
	dst[1] = byte(i >> 24)
	dst[2] = byte(i >> 16)
	dst[3] = byte(i >> 8)
	dst[4] = byte(i)
}

func getID(src []byte) id {
	_ = src[4]
	return id(src[0])<<32 | id(src[1])<<24 | id(src[2])<<16 | id(src[3])<<8 | id(src[4])
}

func appendID(dst []byte, i id) []byte {
	return append(dst, byte(i>>32), byte(i>>24), byte(i>>16), byte(i>>8), byte(i))
}

// quadKey writes the key of q in an index (0 to 3, as in orders).
func quadKey(dst *[quadKeyLen]byte, index int, q *quad) {
	o := &orders[index]
	dst[0] = spaceSPOG + byte(index)
	putID(dst[1:], q[o[0]])
	putID(dst[6:], q[o[1]])
	putID(dst[11:], q[o[2]])
	putID(dst[16:], q[o[3]])
}

func decodeQuad(key []byte, index int, q *quad) {
	o := &orders[index]
	_ = key[quadKeyLen-1]
	q[o[0]] = getID(key[1:])
	q[o[1]] = getID(key[6:])
	q[o[2]] = getID(key[11:])
	q[o[3]] = getID(key[16:])
}

func countKey(g id) []byte { return appendID([]byte{spaceCount}, g) }
func termKey(i id) []byte  { return appendID([]byte{termSpace(i)}, i) }

// termSpace is the key space of an id's term.
func termSpace(i id) byte {
	if i.kind() == idIRI {
		return spaceIRI
	}
	return spaceTerm
}

type hash16 [16]byte

func hashTerm(term string) (h hash16) {
	var buf [256]byte
	sum := sha256.Sum256(append(buf[:0], term...))
	copy(h[:], sum[:])
	return h
}

func hashKey(h hash16) (k [17]byte) {
	k[0] = spaceHash
	copy(k[1:], h[:])
	return k
}

func putCount(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// keyEnd is the smallest key greater than all keys beginning with prefix.
func keyEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// iriTerm is the term of an IRI given as plain text.
func iriTerm(iri string) string { return string(rdfres.NewIRI(iri)) }
