package fetch

import (
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Promise is a source's word on the bytes of a representation.
type Promise struct {
	Hashes   resourcesync.Hashes
	Length   int64 // -1 unknown
	Type     string
	Encoding string
	Graph    rdfres.Digest // zero: not promised; labels mean nothing outside of the document then
}

// Unproven tells the absence of a digest.
func (p *Promise) Unproven() bool {
	h := p.Hashes
	return p.Graph.IsZero() && h.SHA256 == "" && h.SHA1 == "" && h.MD5 == ""
}

// VerifyAnswer compares length and hashes. With a content coding the
// specification leaves open the octets meant, so either may match.
func (p *Promise) VerifyAnswer(a *Answer) error {
	err := p.Verify(a.Body)
	if err != nil && len(a.Raw) != len(a.Body) && p.Verify(a.Raw) == nil {
		return nil
	}
	return err
}

// Verify compares length and hashes with the bytes of a body.
func (p *Promise) Verify(body []byte) error {
	if p.Length >= 0 && int64(len(body)) != p.Length {
		return fmt.Errorf("%d bytes came, promised were %d", len(body), p.Length)
	}
	return p.Hashes.Check(body)
}

// Override takes the own promises of a link.
func (p *Promise) Override(l resourcesync.Link) {
	if h := l.Hash; h.SHA256 != "" || h.SHA1 != "" || h.MD5 != "" {
		l.Hash.Other, l.Hash.Broken = nil, nil
		p.Hashes = l.Hash
	}
	if l.Length >= 0 {
		p.Length = l.Length
	}
	if l.Type != "" {
		p.Type = Essence(l.Type)
	}
	if l.Encoding != "" {
		p.Encoding = strings.ToLower(l.Encoding)
	}
}
