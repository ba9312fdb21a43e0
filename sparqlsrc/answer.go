package sparqlsrc

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// An answer that is, triple by triple and in their order, the one of before describes what
// that described: nothing needs to be sorted, named or compared. Stores that were not written
// to mostly give it so.

// answer is the digest of the triples of a download, in the order in which they came: a
// random key, and the SHA-256 of the tags that GMAC gives of every block under that key and
// the zero nonce. The answers of before are digested under their key. GMAC under one nonce
// is a universal hash: two blocks of 64 KiB that differ have the same tag under one of 2^116
// random keys. Unlike a hash without a key it costs a small part of what reading does. It proves
// nothing to who knows the key, which is with the state, and the state is trusted.
// A nil answer digests nothing.
type answer struct {
	key     [aes.BlockSize]byte
	block   cipher.AEAD
	tags    hash.Hash
	subject []byte // the last one
	buf     []byte
}

// answerBlock is how much has a tag of its own.
const answerBlock = 32 << 10

// newAnswer has the key of an answer of before, or a new one where there is none.
func newAnswer(before string) (*answer, error) {
	a := &answer{buf: make([]byte, 0, answerBlock+answerBlock/4)}
	if key, err := hex.DecodeString(before); err == nil && len(key) == len(a.key)+sha256.Size {
		copy(a.key[:], key)
	} else {
		_, _ = rand.Read(a.key[:]) // it does not fail
	}
	block, err := aes.NewCipher(a.key[:])
	if err == nil {
		a.block, err = cipher.NewGCM(block)
	}
	return a, err
}

// begin forgets what a download gave that did not hold.
func (a *answer) begin() {
	if a != nil {
		a.tags, a.subject, a.buf = sha256.New(), a.subject[:0], a.buf[:0]
	}
}

// add takes a triple: the lengths of its terms, then these, without a subject that is the
// last one, which stands as one of length 0.
func (a *answer) add(s, p, o []byte) {
	if a == nil {
		return
	}
	if bytes.Equal(s, a.subject) {
		s = nil
	} else {
		a.subject = append(a.subject[:0], s...)
	}
	b := binary.LittleEndian.AppendUint32(a.buf, uint32(len(s)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(o)))
	b = append(append(append(b, s...), p...), o...)
	if a.buf = b; len(b) >= answerBlock {
		a.tag()
	}
}

func (a *answer) tag() {
	var nonce [12]byte
	var tag [16]byte
	a.tags.Write(a.block.Seal(tag[:0], nonce[:], nil, a.buf))
	a.buf = a.buf[:0]
}

// String ends it.
func (a *answer) String() string {
	if a == nil {
		return ""
	}
	a.tag()
	return hex.EncodeToString(a.tags.Sum(a.key[:]))
}

// Same tells that what came is the answer that ScanUnless was given: nothing is described.
func (sc *Scan) Same() bool { return sc.same }

// Answer names what the store has answered, for ScanUnless. It is "" where another answer of
// the same triples might describe something else: where it was not one answer, has triples
// twice, or a SELECT names the entities. Complete once Descriptions was read.
func (sc *Scan) Answer() string {
	if !sc.once {
		return ""
	}
	return sc.answer
}
