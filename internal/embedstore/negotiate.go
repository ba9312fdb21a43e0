package embedstore

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// offer is a format that can be given, and the media types that ask for it.
// The first offer is given to those who ask for nothing.
type offer struct {
	format string
	types  []string
}

var rowOffers = []offer{
	{string(rowsJSON), []string{"application/sparql-results+json", "application/json", "text/json"}},
	{string(rowsXML), []string{"application/sparql-results+xml", "application/xml", "text/xml"}},
	{string(rowsTSV), []string{"text/tab-separated-values", "text/tsv"}},
	{string(rowsCSV), []string{"text/csv"}},
}

var graphOffers = []offer{
	{string(rdfres.NTriples), []string{"application/n-triples", "text/plain"}},
	{string(rdfres.Turtle), []string{"text/turtle", "application/x-turtle"}},
	{string(rdfres.RDFXML), []string{"application/rdf+xml", "application/xml", "text/xml"}},
	{string(rdfres.JSONLD), []string{"application/ld+json", "application/json"}},
	{string(rdfres.NQuads), []string{"application/n-quads"}},
	{string(rdfres.TriG), []string{"application/trig"}},
}

var datasetOffers = []offer{
	{string(rdfres.NQuads), []string{"application/n-quads", "text/plain"}},
	{string(rdfres.TriG), []string{"application/trig"}},
	{string(rdfres.JSONLD), []string{"application/ld+json", "application/json"}},
}

func contentTypeOf(f rdfres.Format) string {
	if f == rdfres.Turtle {
		return f.MediaType() + "; charset=utf-8"
	}
	return f.MediaType()
}

func allFormats() string {
	var out []string
	for _, o := range graphOffers {
		out = append(out, o.types[0])
	}
	return strings.Join(out, ", ")
}

func notAcceptable(offers []offer) error {
	var out []string
	for _, o := range offers {
		out = append(out, o.types[0])
	}
	return refuse(http.StatusNotAcceptable, "none of the accepted types can be given: ask for one of %s", strings.Join(out, ", "))
}

// negotiate picks the offer with the highest q; the more specific range of the
// header decides for a type, and of equals the earlier offer wins (RFC 9110,
// section 12.5.1).
func negotiate(accept []string, offers []offer) (string, bool) {
	header := strings.TrimSpace(strings.Join(accept, ","))
	if header == "" {
		return offers[0].format, true
	}
	type rng struct {
		typ, sub string
		q        float64
	}
	var ranges []rng
	for _, part := range strings.Split(header, ",") {
		fields := strings.Split(part, ";")
		typ, sub, ok := strings.Cut(strings.ToLower(strings.TrimSpace(fields[0])), "/")
		if !ok {
			if typ != "*" {
				continue
			}
			sub = "*"
		}
		q := 1.0
		for _, f := range fields[1:] {
			k, v, _ := strings.Cut(f, "=")
			if strings.EqualFold(strings.TrimSpace(k), "q") {
				var err error
				if q, err = strconv.ParseFloat(strings.TrimSpace(v), 64); err != nil || q < 0 || q > 1 {
					q = 0
				}
			}
		}
		ranges = append(ranges, rng{typ, sub, q})
	}
	best, bestQ := "", 0.0
	for _, o := range offers {
		for i, t := range o.types {
			typ, sub, _ := strings.Cut(t, "/")
			q, level := 0.0, 0
			for _, r := range ranges {
				l := 0
				switch {
				case r.typ == typ && r.sub == sub:
					l = 3
				case r.typ == typ && r.sub == "*":
					l = 2
				case r.typ == "*" && r.sub == "*":
					l = 1
				}
				if l > level {
					q, level = r.q, l
				}
			}
			// Other names of a format only count when they are asked for.
			if i > 0 && level < 3 {
				continue
			}
			if q > bestQ {
				best, bestQ = o.format, q
			}
		}
	}
	return best, best != ""
}
