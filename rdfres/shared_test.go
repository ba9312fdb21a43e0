package rdfres

import (
	"bytes"
	"fmt"
	"testing"
)

// benchDoc is DBpedia-like N-Triples: ten triples about each entity.
func benchDoc(tb testing.TB) (doc []byte, triples int) {
	tb.Helper()
	var b bytes.Buffer
	for i := range 2000 {
		for _, t := range sampleDescription(i).Triples {
			b.Write(t.AppendLine(nil))
			triples++
		}
	}
	return b.Bytes(), triples
}

// sampleDescription is a description of ten triples without blank nodes.
func sampleDescription(i int) Description {
	const dbr, dbo = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"
	e := fmt.Sprintf("%sTown_%d", dbr, i)
	s := NewIRI(e)
	ts := []Triple{
		{s, termType, NewIRI(dbo + "Place")},
		{s, termType, NewIRI(dbo + "Town")},
		{s, NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), NewLiteral(fmt.Sprintf("Town %d", i), "en", "")},
		{s, NewIRI("http://www.w3.org/2000/01/rdf-schema#label"), NewLiteral(fmt.Sprintf("Städtchen %d", i), "de", "")},
		{s, NewIRI(dbo + "abstract"), NewLiteral(fmt.Sprintf("Town %d is a town in the \"middle\" of nowhere. It has %d inhabitants and was founded a long time ago by people who liked it there.", i, i*37), "en", "")},
		{s, NewIRI(dbo + "populationTotal"), NewLiteral(fmt.Sprint(i*37), "", xsdInteger)},
		{s, NewIRI(dbo + "country"), NewIRI(dbr + "Nowhere")},
		{s, NewIRI(dbo + "foundingDate"), NewLiteral("1234-05-06", "", xsdNS+"date")},
		{s, NewIRI("http://www.w3.org/2003/01/geo/wgs84_pos#lat"), NewLiteral(fmt.Sprintf("%d.25", i%90), "", xsdNS+"float")},
		{s, NewIRI("http://www.w3.org/2002/07/owl#sameAs"), NewIRI(fmt.Sprintf("http://www.wikidata.org/entity/Q%d", i))},
	}
	return Description{Entity: e, Triples: SortUnique(ts)}
}
