package item

import (
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/rdfres"
)

// IsTypeOfRDF tells the media types of RDF alone.
func IsTypeOfRDF(mediaType string) bool {
	switch fetch.Essence(mediaType) {
	case "text/plain", "application/xml", "text/xml", "application/json":
		return false
	}
	_, ok := rdfres.FormatByMediaType(mediaType)
	return ok
}

// IsTypeOfNoRDF tells the media types that never have RDF, such as images.
func IsTypeOfNoRDF(mediaType string) bool {
	major, sub, _ := strings.Cut(mediaType, "/")
	switch major {
	case "image", "audio", "video", "font":
		return true
	case "text":
		return sub == "html" || sub == "css" || sub == "csv" || sub == "javascript"
	case "application":
		return sub == "pdf" || sub == "zip" || mediaType == GzipType || sub == "javascript" || sub == "xhtml+xml" || strings.HasPrefix(sub, "vnd.openxmlformats")
	}
	return false
}

// GzipType is the media type of gzip files (RFC 6713).
const GzipType = "application/gzip"

// hasNoRDF tells the types of pages, and unknown types: the description of such a resource stands
// for it. The description of a picture or a PDF is a resource of its own.
func hasNoRDF(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "application/xhtml+xml" || !IsTypeOfNoRDF(mediaType) && !IsTypeOfRDF(mediaType)
}

// FormatRank orders the formats by how cheap and how certain they are to read.
func FormatRank(mediaType string) int {
	f, ok := rdfres.FormatByMediaType(mediaType)
	if !ok {
		return 100
	}
	return slices.Index([]rdfres.Format{rdfres.NTriples, rdfres.Turtle, rdfres.NQuads, rdfres.JSONLD, rdfres.RDFXML, rdfres.TriG}, f)
}
