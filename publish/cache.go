package publish

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/lru"
	"github.com/rsbridge/rsbridge/publish/packing"
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

// nameTag is an ETag of the values that determine the bytes.
func nameTag(format string, a ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, a...))
	return packing.Tag(sum[:])
}

// packed makes a document of bytes.
func packed(data []byte, contentType string) (*document, error) {
	p := packing.New(true)
	if _, err := p.Write(data); err != nil {
		return nil, err
	}
	body, err := p.Close()
	if err != nil {
		return nil, err
	}
	return &document{etag: p.Tag(), contentType: contentType, body: body}, nil
}

// docCache keeps assembled documents by the names of their bytes: another content has another key.
type docCache = lru.Cache[*document]

func newDocCache(most int64) *docCache {
	return lru.New(most, func(key string, d *document) int64 {
		return int64(len(d.body.Deflated)+len(d.link)+2*len(key)) + 640
	})
}
