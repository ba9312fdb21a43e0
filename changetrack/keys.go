package changetrack

import (
	"bytes"
	"encoding/binary"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Keys of the tracker.
var (
	markerKey = []byte("v") // version of all records
	namesKey  = []byte("n") // + set name -> id, 4 bytes
)

// setPrefix begins the keys of one set.
func setPrefix(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte("s"), id) }

// Keys of one set, below its prefix. Numbers are big-endian: the order of the keys is the order of
// the numbers.
const (
	kindState     = 'e' // + beginning of the entity key -> stateRecord of a current entity
	kindGone      = 'g' // + beginning of the entity key -> stateRecord of a deleted entity
	kindLog       = 'l' // + sequence -> change, of whatever kind
	kindHistory   = 'h' // + short entity key + sequence -> nothing, or the change when it has left the log; none for a first change in the log
	kindBlob      = 'r' // + short entity key + sequence -> blob
	kindEnded     = 'x' // + sequence of the change ending a version -> endedRecord
	kindStage     = 'w' // + number -> a part of the staged changes of a commit under way
	kindCandidate = 'c' // + generation + entity key -> nothing: a deletion of the held scan
)

var (
	headKey     = []byte("H") // headRecord
	intentKey   = []byte("I") // intent: a commit under way
	heldKey     = []byte("C") // heldRecord
	lastScanKey = []byte("S") // lastScan
	rebasedKey  = []byte("B") // sequence of the last Rebased change, then the change
)

func entityKey(kind byte, k rdfres.Digest) []byte {
	return append(append(make([]byte, 0, 33), kind), k[:]...)
}

// stateKeyBytes is how much of the entity key is in the key of a state: the record has the entity. A
// second entity with the same beginning is refused.
const stateKeyBytes = 16

func stateKey(k rdfres.Digest) []byte { return entityKey(kindState, k)[:1+stateKeyBytes] }
func goneKey(k rdfres.Digest) []byte  { return entityKey(kindGone, k)[:1+stateKeyBytes] }

// isState tells whether a key of a state, without its kind, is that of an entity, or of one with the
// same beginning.
func isState(key []byte, k *rdfres.Digest) bool { return bytes.Equal(key, k[:stateKeyBytes]) }

// shortKey is the length of the entity key before a sequence. The sequence alone makes keys unique:
// this part only brings the records of one entity together. Readers check the entity. A variable for tests.
var shortKey = 10

func shortEntityKey(kind byte, k rdfres.Digest) []byte {
	return append(append(make([]byte, 0, 1+shortKey+8), kind), k[:shortKey]...)
}

func entitySeqKey(kind byte, k rdfres.Digest, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(shortEntityKey(kind, k), seq)
}

func seqKey(kind byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), kind), seq)
}

func candidatePrefix(gen uint64) []byte {
	return binary.BigEndian.AppendUint32([]byte{kindCandidate}, uint32(gen))
}

func candidateKey(gen uint64, k rdfres.Digest) []byte { return append(candidatePrefix(gen), k[:]...) }

// lastSeq is the sequence at the end of a key.
func lastSeq(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }
