package codec_test

import (
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/rdfres/internal/rdftest"
)

func TestTurtleForm(t *testing.T) {
	ts := rdftest.Parse(t, `<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://schema.org/Place> .
<s> <http://www.w3.org/2000/01/rdf-schema#label> "a\n\"b\""@en .
<s> <http://www.w3.org/2000/01/rdf-schema#label> "c"@de .
<s> <p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<s> <p> "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<s> <p> "1"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<s> <p> "2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .
<s> <p> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .
<s> <p> <http://dbpedia.org/resource/Berlin> .
<s> <p> <http://dbpedia.org/resource/Berlin_(Ost)> .
<s> <q> _:rsb1n0 .
_:rsb1n0 <q> "x" .
<a> <q> <b> .`)
	const want = `@prefix dbr: <http://dbpedia.org/resource/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <http://schema.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

<http://e/s>
    a schema:Place ;
    <http://e/p> "1"^^xsd:decimal ,
        1 ,
        1.50 ,
        "2020-01-01"^^xsd:date ,
        true ,
        dbr:Berlin ,
        <http://dbpedia.org/resource/Berlin_(Ost)> ;
    <http://e/q> _:rsb1n0 ;
    rdfs:label "a\n\"b\""@en ,
        "c"@de .

<http://e/a>
    <http://e/q> <http://e/b> .

_:rsb1n0
    <http://e/q> "x" .
`
	got, err := codec.EncodeChecked(rdfres.Turtle, "http://e/s", ts)
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if got, err := codec.Encode(rdfres.Turtle, "http://e/s", nil); err != nil || len(got) != 0 {
		t.Errorf("nothing: %q %v", got, err)
	}
}

func TestRDFXMLForm(t *testing.T) {
	ts := rdftest.Parse(t, `<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <C> .
<s> <http://www.w3.org/2000/01/rdf-schema#label> "a &> \"\r\n"@en .
<s> <p/x> "1"^^<d\u0022> .
<s> <p/x> _:b .
_:b <p#1.y-z> "x" .`)
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF
    xmlns:ns1="http://e/p#1."
    xmlns:ns2="http://e/p/"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
  <rdf:Description rdf:about="http://e/s">
    <ns2:x rdf:datatype="http://e/d&quot;">1</ns2:x>
    <ns2:x rdf:nodeID="b"/>
    <rdf:type rdf:resource="http://e/C"/>
    <rdfs:label xml:lang="en">a &amp;&gt; "&#xD;
</rdfs:label>
  </rdf:Description>
  <rdf:Description rdf:nodeID="b">
    <ns1:y-z>x</ns1:y-z>
  </rdf:Description>
</rdf:RDF>
`
	got, err := codec.EncodeChecked(rdfres.RDFXML, "http://e/s", ts)
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	for _, bad := range []string{`<s> <p/1> "x" .`, `<s> <p#> "x" .`, `<s> <urn:1> "x" .`, `<s> <p> "\u0001" .`, `<s> <p> "\uFFFE" .`, `<s\u0001> <p> "x" .`, `<s> <p> _:1 .`, `<s> <p> _:a:b .`,
		`<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#li> "x" .`, `<s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#Description> "x" .`} {
		if got, err := codec.Encode(rdfres.RDFXML, "http://e/s", rdftest.Parse(t, bad)); !errors.Is(err, rdfres.ErrCannotCarry) {
			t.Errorf("%s: %v %s", bad, err, got)
		}
	}
	if _, err := codec.Encode(rdfres.Turtle, "http://e/s", rdftest.Parse(t, `<s> <p> _:a:b .`)); !errors.Is(err, rdfres.ErrCannotCarry) {
		t.Errorf("Turtle: %v", err)
	}
}
