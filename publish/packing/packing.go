// Package packing packs the bodies of documents as raw deflate, and sends packed ones.
package packing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/rsbridge/rsbridge/changetrack"
)

// Packer packs written bytes as raw deflate.
type Packer struct {
	buf    bytes.Buffer
	flate  *flate.Writer
	crc    hash.Hash32
	sum    hash.Hash
	length int64
}

var flatePool = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// New begins a body; with digest it also hashes the written bytes.
func New(digest bool) *Packer {
	p := &Packer{flate: flatePool.Get().(*flate.Writer), crc: crc32.NewIEEE()}
	p.flate.Reset(&p.buf)
	if digest {
		p.sum = sha256.New()
	}
	return p
}

func (p *Packer) Write(b []byte) (int, error) {
	p.crc.Write(b)
	if p.sum != nil {
		p.sum.Write(b)
	}
	p.length += int64(len(b))
	return p.flate.Write(b)
}

// Close ends the body.
func (p *Packer) Close() (changetrack.Blob, error) {
	err := p.flate.Close()
	flatePool.Put(p.flate)
	if err != nil {
		return changetrack.Blob{}, err
	}
	return changetrack.Blob{Deflated: bytes.Clone(p.buf.Bytes()), CRC32: p.crc.Sum32(), Length: p.length}, nil
}

// Tag is an ETag of the written bytes.
func (p *Packer) Tag() string { return Tag(p.sum.Sum(nil)) }

// Tag is an ETag from the digest of the bytes.
func Tag(sum []byte) string { return hex.EncodeToString(sum[:16]) }

type inflater struct {
	r   io.ReadCloser
	src bytesReader
	buf []byte
}

// bytesReader is a bytes.Reader without the methods flate does not need.
type bytesReader struct {
	b []byte
	i int
}

func (r *bytesReader) Read(p []byte) (int, error) {
	if r.i >= len(r.b) {
		return 0, io.EOF
	}
	n := copy(p, r.b[r.i:])
	r.i += n
	return n, nil
}

func (r *bytesReader) ReadByte() (byte, error) {
	if r.i >= len(r.b) {
		return 0, io.EOF
	}
	r.i++
	return r.b[r.i-1], nil
}

var inflaters = sync.Pool{New: func() any {
	return &inflater{r: flate.NewReader(&bytesReader{}), buf: make([]byte, 32<<10)}
}}

// Send writes a blob, in pieces if it may be long, and checks it: a body with a wrong sum is an
// error before its last piece is written.
func Send(w io.Writer, b changetrack.Blob) error {
	if b.Deflated == nil && b.Length > 0 {
		data, err := b.Bytes()
		if err == nil {
			w.Write(data) // or the client has gone away
		}
		return err
	}
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	f.src = bytesReader{b: b.Deflated}
	if err := f.r.(flate.Resetter).Reset(&f.src, nil); err != nil {
		return err
	}
	var sum uint32
	left := b.Length
	for {
		n := 0
		for n < len(f.buf) {
			m, err := f.r.Read(f.buf[n:])
			n += m
			if err == io.EOF {
				break
			}
			if err != nil {
				return fmt.Errorf("stored bytes are damaged: %w", err)
			}
		}
		sum = crc32.Update(sum, crc32.IEEETable, f.buf[:n])
		left -= int64(n)
		if left < 0 || n < len(f.buf) && left > 0 {
			return fmt.Errorf("stored bytes are damaged: %d bytes are recorded, they unpack to another number", b.Length)
		}
		if left == 0 && sum != b.CRC32 {
			return errors.New("stored bytes are damaged: their sum does not match")
		}
		if n > 0 {
			if _, err := w.Write(f.buf[:n]); err != nil {
				return nil // the client has gone away
			}
		}
		if left == 0 {
			return nil
		}
	}
}
