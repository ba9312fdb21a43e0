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

// An unchanged store mostly repeats its last answer, triple by triple and in the same
// order. Such an answer needs no sorting, naming or comparing.

// answer is the digest of the triples of a download, in the order of arrival: a random
// key, and the SHA-256 of the GMAC tags of all blocks under this key and the zero nonce. A
// later answer is digested under the key of the earlier one. GMAC under one nonce is a
// universal hash: two different blocks of 64 KiB have the same tag under one of 2^116
// random keys. Unlike a hash without a key it costs a small part of the reading. It proves
// nothing to a holder of the key, but the key is in the state, and the state is trusted. A
// nil answer digests nothing.
type answer struct {
	key     [aes.BlockSize]byte
	block   cipher.AEAD
	tags    hash.Hash
	subject []byte // the last one
	buf     []byte
}

// answerBlock is how much has a tag of its own.
const answerBlock = 32 << 10

// newAnswer has the key of an earlier answer, or a new one.
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

// begin forgets the triples of a failed download.
func (a *answer) begin() {
	if a != nil {
		a.tags, a.subject, a.buf = sha256.New(), a.subject[:0], a.buf[:0]
	}
}

// add takes a triple: the lengths of its terms, then the terms. A repeated subject counts
// as one of length 0.
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

// Same tells an unchanged answer: ScanUnless was given the same one. Nothing is described.
func (sc *Scan) Same() bool { return sc.same }

// Answer names the store's answer, for ScanUnless. It is "" if the same triples might be
// described otherwise another time: after several answers, with repeated triples, or with
// entities named by a SELECT. Complete once Descriptions was read.
func (sc *Scan) Answer() string {
	if !sc.once {
		return ""
	}
	return sc.answer
}
