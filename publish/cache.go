package publish

import (
	"bytes"
	"container/list"
	"context"
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
)

// document is a body that is ready to be answered with.
type document struct {
	etag        string // without quotes
	contentType string
	modified    time.Time // zero: no Last-Modified
	immutable   bool      // the address always answers with these bytes
	link        string    // Link header, or ""
	linked      *linked   // what the Link header is made of, or nil
	memento     time.Time // Memento-Datetime, or zero
	body        changetrack.Blob
}

// packer packs what is written to it as raw deflate.
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

// newPacker starts a body; with digest it also hashes what is written.
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

// contentTag is an ETag from what was written.
func (p *packer) contentTag() string { return contentTag(p.sum.Sum(nil)) }

// contentTag is an ETag from the digest of the bytes.
func contentTag(sum []byte) string { return hex.EncodeToString(sum[:16]) }

// nameTag is an ETag from what determines the bytes.
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

// docCache keeps assembled documents, those asked for last, up to a number of
// packed bytes. Each is built once at a time.
type docCache struct {
	mu    sync.Mutex // guards all below
	most  int64
	size  int64
	order *list.List // of *cacheItem, the newest in front
	items map[string]*list.Element
}

type cacheItem struct {
	key   string
	ready chan struct{} // closed when doc and err are set
	doc   *document
	err   error
	size  int64
}

func newDocCache(most int64) *docCache {
	return &docCache{most: most, order: list.New(), items: map[string]*list.Element{}}
}

// get gives the document of a key, built if it is not there. key names the bytes:
// another content has another key.
func (c *docCache) get(ctx context.Context, key string, build func() (*document, error)) (*document, error) {
	for {
		c.mu.Lock()
		e, found := c.items[key]
		if !found {
			item := &cacheItem{key: key, ready: make(chan struct{})}
			e = c.order.PushFront(item)
			c.items[key] = e
			c.mu.Unlock()
			c.fill(e, item, build)
			return item.doc, item.err
		}
		c.order.MoveToFront(e)
		c.mu.Unlock()
		item := e.Value.(*cacheItem)
		select {
		case <-item.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if item.err == nil {
			return item.doc, nil
		}
		// The one who built it may have gone away; try it ourselves.
	}
}

func (c *docCache) fill(e *list.Element, item *cacheItem, build func() (*document, error)) {
	ended := false
	defer func() {
		if !ended { // in a panic
			item.err = fmt.Errorf("building the document %s ended in a panic", item.key)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if item.err != nil {
			c.order.Remove(e)
			delete(c.items, item.key)
		} else {
			item.size = int64(len(item.doc.body.Deflated)+len(item.doc.link)+2*len(item.key)) + 640
			c.size += item.size
			for back := c.order.Back(); c.size > c.most && back != nil; {
				old := back.Value.(*cacheItem)
				prev := back.Prev()
				if old.size > 0 && back != e { // not those being built
					c.size -= old.size
					c.order.Remove(back)
					delete(c.items, old.key)
				}
				back = prev
			}
			if c.size > c.most { // larger than all the room there is
				c.size -= item.size
				c.order.Remove(e)
				delete(c.items, item.key)
			}
		}
		close(item.ready)
	}()
	item.doc, item.err = build()
	ended = true
}
