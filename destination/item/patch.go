package item

import (
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Patch is the patch of a change, with the digests of its base and its result: graph digests
// for an RDF Patch, hashes of the representation for a JSON Patch. A patch without both is not
// used.
type Patch struct {
	Place
	Base, Result rdfres.Digest
}

// JSONPatchType is the media type of JSON Patch (RFC 6902).
const (
	JSONPatchType = "application/json-patch+json"
	maxPatches    = 4 // taken of one entry
)

func newPatch(l resourcesync.Link) (p Patch, ok bool) {
	p.URL, p.Promise = l.Href, fetch.Promise{Length: -1}
	p.Promise.Override(l)
	p.Promise.Type = resourcesync.NormalizeType(l.Type)
	var err1, err2 error
	p.Base, err1 = ParseGraph(l.Ext[resourcesync.ExtBase])
	p.Result, err2 = ParseGraph(l.Ext[resourcesync.ExtResult])
	known := p.Promise.Type == rdfres.RDFPatchType || p.Promise.Type == JSONPatchType
	return p, known && err1 == nil && err2 == nil && p.Promise.Length >= 0
}
