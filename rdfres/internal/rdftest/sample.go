package rdftest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/internal/chars"
	"github.com/rsbridge/rsbridge/rdfres/internal/syntax"
)

// BenchDoc is DBpedia-like N-Triples: ten triples about each entity.
func BenchDoc(tb testing.TB) (doc []byte, triples int) {
	tb.Helper()
	var b bytes.Buffer
	for i := range 2000 {
		for _, t := range Sample(i).Triples {
			b.Write(t.AppendLine(nil))
			triples++
		}
	}
	return b.Bytes(), triples
}

// Sample is a description of ten triples without blank nodes.
func Sample(i int) rdfres.Description {
	const dbr, dbo = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
	e := fmt.Sprintf("%sTown_%d", dbr, i)
	s := rdfres.NewIRI(e)
	ts := []rdfres.Triple{
		{S: s, P: syntax.Type, O: rdfres.NewIRI(dbo + "Place")},
		{S: s, P: syntax.Type, O: rdfres.NewIRI(dbo + "Town")},
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral(fmt.Sprintf("Town %d", i), "en", "")},
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), O: rdfres.NewLiteral(fmt.Sprintf("Städtchen %d", i), "de", "")},
		{S: s, P: rdfres.NewIRI(dbo + "abstract"), O: rdfres.NewLiteral(fmt.Sprintf("Town %d is a town in the \"middle\" of nowhere. It has %d inhabitants and was founded a long time ago by people who liked it there.", i, i*37), "en", "")},
		{S: s, P: rdfres.NewIRI(dbo + "populationTotal"), O: rdfres.NewLiteral(fmt.Sprint(i*37), "", chars.XSDInteger)},
		{S: s, P: rdfres.NewIRI(dbo + "country"), O: rdfres.NewIRI(dbr + "Nowhere")},
		{S: s, P: rdfres.NewIRI(dbo + "foundingDate"), O: rdfres.NewLiteral("1234-05-06", "", chars.XSD+"date")},
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2003/01/geo/wgs84_pos#lat"), O: rdfres.NewLiteral(fmt.Sprintf("%d.25", i%90), "", chars.XSD+"float")},
		{S: s, P: rdfres.NewIRI("http://www.w3.org/2002/07/owl#sameAs"), O: rdfres.NewIRI(fmt.Sprintf("http://www.wikidata.org/entity/Q%d", i))},
	}
	return rdfres.Description{Entity: e, Triples: rdfres.SortUnique(ts)}
}
