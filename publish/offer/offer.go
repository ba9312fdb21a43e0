// Package offer is the formats of a published version: their media types and suffixes, and
// the choice by an Accept header (RFC 9110, 12.5.1).
package offer

import (
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
)

// HTML is the page for people; it is offered beside the formats of rdfres.
const HTML rdfres.Format = "html"

// HTMLType is the content type of the page.
const HTMLType = "text/html; charset=utf-8"

// MediaType is the bare media type of a format.
func MediaType(f rdfres.Format) string {
	if f == HTML {
		return "text/html"
	}
	return f.MediaType()
}

// ContentType is the media type with its charset.
func ContentType(f rdfres.Format) string {
	if f == HTML {
		return HTMLType
	}
	return f.ContentType()
}

// Suffix is the end of the addresses of a format.
func Suffix(f rdfres.Format) string {
	if f == HTML {
		return ".html"
	}
	return f.Suffix()
}

// Formats are the formats of a version; its own comes first. RDF/XML is among them if it can carry
// the version.
func Formats(v *changetrack.Version) []rdfres.Format {
	all := append(make([]rdfres.Format, 0, 5), v.Format)
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, HTML} {
		if f != v.Format && (f != rdfres.RDFXML || v.RDFXML) {
			all = append(all, f)
		}
	}
	return all
}

// BySuffix splits a format's suffix off. f is "" without an offered one; rest is then s, and other
// tells whether it ends in another suffix.
func BySuffix(s string) (rest string, f rdfres.Format, other bool) {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, HTML} {
		if r, ok := strings.CutSuffix(s, Suffix(f)); ok {
			return r, f, false
		}
	}
	for _, x := range naming.Suffixes {
		if strings.HasSuffix(s, x) {
			return s, "", true
		}
	}
	return s, "", false
}

// otherNames are further media types of our formats, though answers have the registered type.
var otherNames = map[rdfres.Format][]string{
	rdfres.JSONLD: {"application/json"},
	rdfres.Turtle: {"application/x-turtle", "text/n3"},
	HTML:          {"application/xhtml+xml"},
}

// Negotiate picks the best format by the Accept header; ok is false when none is acceptable.
func Negotiate(header []string, formats []rdfres.Format) (best rdfres.Format, ok bool) {
	offers := make([][]string, len(formats))
	for i, f := range formats {
		offers[i] = append([]string{MediaType(f)}, otherNames[f]...)
	}
	i, ok := accept.Best(header, offers...)
	return formats[i], ok
}
