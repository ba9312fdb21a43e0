package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/lru"
)

// document is a body ready to be sent.
type document struct {
	etag        string // without quotes
	contentType string
	modified    time.Time // zero: no Last-Modified
	immutable   bool      // the address always answers with these bytes
	link        string    // Link header, or ""
	linked      *linked   // the parts of the Link header, or nil
	memento     time.Time // Memento-Datetime, or zero
	body        changetrack.Blob
}

// packer packs written bytes as raw deflate.
type packer struct {
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

// newPacker starts a body; with digest it also hashes the written bytes.
func newPacker(digest bool) *packer {
	p := &packer{flate: flatePool.Get().(*flate.Writer), crc: crc32.NewIEEE()}
	p.flate.Reset(&p.buf)
	if digest {
		p.sum = sha256.New()
	}
	return p
}

func (p *packer) Write(b []byte) (int, error) {
	p.crc.Write(b)
	if p.sum != nil {
		p.sum.Write(b)
	}
	p.length += int64(len(b))
	return p.flate.Write(b)
}

// close ends the body.
func (p *packer) close() (changetrack.Blob, error) {
	err := p.flate.Close()
	flatePool.Put(p.flate)
	if err != nil {
		return changetrack.Blob{}, err
	}
	return changetrack.Blob{Deflated: bytes.Clone(p.buf.Bytes()), CRC32: p.crc.Sum32(), Length: p.length}, nil
}

// contentTag is an ETag of the written bytes.
func (p *packer) contentTag() string { return contentTag(p.sum.Sum(nil)) }

// contentTag is an ETag from the digest of the bytes.
func contentTag(sum []byte) string { return hex.EncodeToString(sum[:16]) }

// nameTag is an ETag of the values that determine the bytes.
func nameTag(format string, a ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, a...))
	return contentTag(sum[:])
}

// packed makes a document of bytes.
func packed(data []byte, contentType string) (*document, error) {
	p := newPacker(true)
	if _, err := p.Write(data); err != nil {
		return nil, err
	}
	body, err := p.close()
	if err != nil {
		return nil, err
	}
	return &document{etag: p.contentTag(), contentType: contentType, body: body}, nil
}

// docCache keeps assembled documents by the names of their bytes: another content has another key.
type docCache = lru.Cache[*document]

func newDocCache(most int64) *docCache {
	return lru.New(most, func(key string, d *document) int64 {
		return int64(len(d.body.Deflated)+len(d.link)+2*len(key)) + 640
	})
}
