package rdfres

import "strings"

// Format names a serialization: its media type and suffix follow from it.
type Format string

const (
	JSONLD   Format = "jsonld"
	NTriples Format = "ntriples"
	Turtle   Format = "turtle"
	RDFXML   Format = "rdfxml"
	NQuads   Format = "nquads"
	TriG     Format = "trig"
)

var formats = []struct {
	format    Format
	mediaType string
	suffix    string
	aliases   []string // other media types
	suffixes  []string // other suffixes
}{
	{JSONLD, "application/ld+json", ".jsonld", []string{"application/json", "application/json-ld"}, []string{".json"}},
	{NTriples, "application/n-triples", ".nt", []string{"text/plain", "text/ntriples", "application/ntriples"}, []string{".ntriples"}},
	{Turtle, "text/turtle", ".ttl", []string{"application/x-turtle", "application/turtle", "text/n3", "text/rdf+n3"}, []string{".turtle", ".n3"}},
	{RDFXML, "application/rdf+xml", ".rdf", []string{"application/xml", "text/xml"}, []string{".rdfs", ".owl", ".xml"}},
	{NQuads, "application/n-quads", ".nq", []string{"text/x-nquads", "text/nquads", "application/nquads"}, []string{".nquads"}},
	{TriG, "application/trig", ".trig", []string{"application/x-trig"}, nil},
}

// MediaType is the registered media type, without parameters; "" for a format outside the
// constants.
func (f Format) MediaType() string {
	for i := range formats {
		if formats[i].format == f {
			return formats[i].mediaType
		}
	}
	return ""
}

// ContentType is the value of a Content-Type header: the media type, and the charset of Turtle.
// Without it HTTP/1.1 clients may take text/* for ISO-8859-1.
func (f Format) ContentType() string {
	if t := f.MediaType(); strings.HasPrefix(t, "text/") {
		return t + "; charset=utf-8"
	}
	return f.MediaType()
}

// Suffix is the file name suffix, with its dot; "" for an unknown format.
func (f Format) Suffix() string {
	for i := range formats {
		if formats[i].format == f {
			return formats[i].suffix
		}
	}
	return ""
}

// FormatByMediaType finds the format of a Content-Type. Parameters and case are ignored.
// Unregistered names in use by stores are known (text/plain is N-Triples, as before RDF 1.1;
// application/json is read as JSON-LD).
func FormatByMediaType(mediaType string) (Format, bool) {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	for i := range formats {
		if formats[i].mediaType == mediaType {
			return formats[i].format, true
		}
		for _, a := range formats[i].aliases {
			if a == mediaType {
				return formats[i].format, true
			}
		}
	}
	return "", false
}

// FormatBySuffix finds the format of a file name or address by its end. A
// .gz after it is passed over; case is ignored.
func FormatBySuffix(name string) (Format, bool) {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	for i := range formats {
		if strings.HasSuffix(name, formats[i].suffix) {
			return formats[i].format, true
		}
		for _, s := range formats[i].suffixes {
			if strings.HasSuffix(name, s) {
				return formats[i].format, true
			}
		}
	}
	return "", false
}
