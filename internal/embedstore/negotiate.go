package embedstore

import (
	"net/http"
	"strings"

	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/rdfres"
)

// offer is an available format, and its media types. The first offer is for requests without a
// preference.
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

// negotiate picks the best format by the Accept header.
func negotiate(header []string, offers []offer) (string, bool) {
	types := make([][]string, len(offers))
	for i, o := range offers {
		types[i] = o.types
	}
	i, ok := accept.Best(header, types...)
	return offers[i].format, ok
}
