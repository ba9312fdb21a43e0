package sparqlsrc

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// An answer that is, triple by triple and in their order, the one of before describes what
// that described: nothing needs to be sorted, named or compared. Stores that were not written
// to mostly give it so.

// answer is the digest of the triples of a download, in the order in which they came.
type answer struct {
	sum hash.Hash
	buf []byte
}

func newAnswer() *answer { return &answer{sum: sha256.New(), buf: make([]byte, 0, 40<<10)} }

func (a *answer) add(s, p, o []byte) {
	for _, term := range [][]byte{s, p, o} {
		a.buf = binary.AppendUvarint(a.buf, uint64(len(term)))
		a.buf = append(a.buf, term...)
	}
	if len(a.buf) >= 32<<10 {
		a.sum.Write(a.buf)
		a.buf = a.buf[:0]
	}
}

func (a *answer) String() string {
	a.sum.Write(a.buf)
	a.buf = a.buf[:0]
	return hex.EncodeToString(a.sum.Sum(nil))
}

// Same tells that what came is the answer that ScanUnless was given: nothing is described.
func (sc *Scan) Same() bool { return sc.same }

// Answer names what the store has answered, for ScanUnless. It is "" where another answer of
// the same bytes might describe something else: where it was not one answer, has triples
// twice, or a SELECT names the entities. Complete once Descriptions was read.
func (sc *Scan) Answer() string {
	if !sc.once || sc.marked {
		return ""
	}
	return sc.answer
}
