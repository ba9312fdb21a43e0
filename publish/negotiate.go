package publish

import (
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
)

// htmlFormat is the page for people; it is offered beside the formats of rdfres.
const htmlFormat rdfres.Format = "html"

const htmlType = "text/html; charset=utf-8"

func mediaType(f rdfres.Format) string {
	if f == htmlFormat {
		return "text/html"
	}
	return f.MediaType()
}

func contentType(f rdfres.Format) string {
	if f == htmlFormat {
		return htmlType
	}
	return f.ContentType()
}

func suffixOf(f rdfres.Format) string {
	if f == htmlFormat {
		return ".html"
	}
	return f.Suffix()
}

// offered are the formats of a version; its own comes first. RDF/XML is among them if it can carry
// the version.
func offered(v *changetrack.Version) []rdfres.Format {
	all := append(make([]rdfres.Format, 0, 5), v.Format)
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, htmlFormat} {
		if f != v.Format && (f != rdfres.RDFXML || v.RDFXML) {
			all = append(all, f)
		}
	}
	return all
}

// bySuffix splits a format's suffix off. f is "" without an offered one; rest is then s, and other
// tells whether it ends in another suffix.
func bySuffix(s string) (rest string, f rdfres.Format, other bool) {
	for _, f := range []rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML, htmlFormat} {
		if r, ok := strings.CutSuffix(s, suffixOf(f)); ok {
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
	htmlFormat:    {"application/xhtml+xml"},
}

// negotiate picks the best format by the Accept header; ok is false when none is acceptable.
func negotiate(header []string, formats []rdfres.Format) (best rdfres.Format, ok bool) {
	offers := make([][]string, len(formats))
	for i, f := range formats {
		offers[i] = append([]string{mediaType(f)}, otherNames[f]...)
	}
	i, ok := accept.Best(header, offers...)
	return formats[i], ok
}
