// Package catalogue describes sets for catalogues: as VoID datasets with DCAT distributions and
// services.
package catalogue

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Vocabularies of the descriptions of sets.
const (
	nsRDF     = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsRDFS    = "http://www.w3.org/2000/01/rdf-schema#"
	nsXSD     = "http://www.w3.org/2001/XMLSchema#"
	nsVoID    = "http://rdfs.org/ns/void#"
	nsDCAT    = "http://www.w3.org/ns/dcat#"
	nsDCT     = "http://purl.org/dc/terms/"
	nsFOAF    = "http://xmlns.com/foaf/0.1/"
	nsFormats = "http://www.w3.org/ns/formats/"
	nsIANA    = "https://www.iana.org/assignments/media-types/"

	framework = "http://www.openarchives.org/rs/1.1/resourcesync"
)

// Vocabulary counts the classes and properties of a set; zero if unknown. The largest come first.
type Vocabulary struct {
	Classes           int64   `json:"classes"`
	Properties        int64   `json:"properties"`
	LargestClasses    []Count `json:"largest_classes,omitempty"`    // with their entities
	LargestProperties []Count `json:"largest_properties,omitempty"` // with their triples
}

// Count is how often there is something.
type Count struct {
	IRI   string `json:"iri"`
	Count int64  `json:"count"`
}

// Distribution is a way to get a set.
type Distribution struct {
	Name, Title, Type, Access string
	Modified                  time.Time
	Downloads                 []string
}

// Service is another protocol for the data of a set.
type Service struct {
	Name, Title, Text                 string
	Endpoint, Description, ConformsTo string
	Type                              string // of Description
}

// Dataset is a set for catalogues.
type Dataset struct {
	About                                        string // address of the description
	Title, Name, Description, Licence, Publisher string
	Prefix, CapabilityList, SPARQL               string
	Via                                          []string
	Published                                    bool
	Entities, Triples                            int64
	Modified                                     time.Time
	Vocabulary                                   Vocabulary
	Distributions                                []Distribution
	Services                                     []Service
}

// IRI is the IRI of a set as a dataset.
func IRI(about string) string { return about + "#dataset" }

// Graph collects triples.
type Graph struct{ ts []rdfres.Triple }

// Triples are all of them, sorted.
func (g *Graph) Triples() []rdfres.Triple { return rdfres.SortUnique(g.ts) }

func (g *Graph) add(subject, predicate string, object rdfres.Term) {
	g.ts = append(g.ts, rdfres.Triple{S: rdfres.NewIRI(subject), P: rdfres.NewIRI(predicate), O: object})
}

func (g *Graph) iri(subject, predicate, object string) {
	if object != "" {
		g.add(subject, predicate, rdfres.NewIRI(object))
	}
}

func (g *Graph) text(subject, predicate, text string) {
	if text != "" {
		g.add(subject, predicate, rdfres.NewLiteral(text, "", ""))
	}
}

func (g *Graph) number(subject, predicate string, n int64) {
	g.add(subject, predicate, rdfres.NewLiteral(strconv.FormatInt(n, 10), "", nsXSD+"integer"))
}

func (g *Graph) time(subject, predicate string, t time.Time) {
	if !t.IsZero() {
		g.add(subject, predicate, rdfres.NewLiteral(t.UTC().Format(time.RFC3339Nano), "", nsXSD+"dateTime"))
	}
}

// publisher names an agent, as DCAT wants it: by its IRI, or by its name at a document.
func (g *Graph) publisher(subject, publisher, document string) {
	agent := publisher
	switch {
	case publisher == "":
		return
	case !naming.Describable(publisher): // "Library: maps" has a scheme too
		agent = document + "#publisher"
		g.text(agent, nsFOAF+"name", publisher)
	}
	g.iri(subject, nsDCT+"publisher", agent)
	g.iri(agent, nsRDF+"type", nsFOAF+"Agent")
}

var formatIRIs = []string{nsFormats + "JSON-LD", nsFormats + "N-Triples", nsFormats + "Turtle", nsFormats + "RDF_XML"}

// Document describes the description of a set.
func (g *Graph) Document(about string) {
	g.iri(about, nsRDF+"type", nsVoID+"DatasetDescription")
	g.iri(about, nsFOAF+"primaryTopic", IRI(about))
}

// Catalog describes a source; it gives the IRI of the catalogue.
func (g *Graph) Catalog(about, title, description, publisher, wellKnown string) string {
	c := about + "#catalog"
	g.iri(c, nsRDF+"type", nsDCAT+"Catalog")
	g.text(c, nsDCT+"title", title)
	g.text(c, nsDCT+"description", cmp.Or(description, "Sets of RDF descriptions, to be copied and kept up to date with ResourceSync"))
	g.publisher(c, publisher, about)
	g.iri(c, nsDCT+"conformsTo", framework)
	g.iri(c, nsRDFS+"seeAlso", wellKnown)
	return c
}

// Listed puts a set into a catalogue.
func (g *Graph) Listed(catalog string, d *Dataset) {
	g.iri(catalog, nsDCAT+"dataset", IRI(d.About))
	for _, x := range d.Services {
		g.iri(catalog, nsDCAT+"service", d.About+"#"+x.Name)
	}
	g.Dataset(d)
}

// Dataset describes a set.
func (g *Graph) Dataset(s *Dataset) {
	d := IRI(s.About)
	g.iri(d, nsRDF+"type", nsVoID+"Dataset")
	g.iri(d, nsRDF+"type", nsDCAT+"Dataset")
	g.text(d, nsDCT+"title", s.Title)
	g.text(d, nsDCT+"identifier", s.Name)
	g.text(d, nsDCT+"description", cmp.Or(s.Description, fmt.Sprintf("RDF descriptions of the set %s, to be copied and kept up to date with ResourceSync", s.Title)))
	if naming.Describable(s.Licence) {
		g.iri(d, nsDCT+"license", s.Licence)
	} else {
		g.text(d, nsDCT+"rights", s.Licence)
	}
	g.publisher(d, s.Publisher, s.About)
	g.text(d, nsVoID+"uriSpace", s.Prefix)
	for _, source := range s.Via {
		g.iri(d, nsDCT+"source", source)
	}
	g.iri(d, nsDCAT+"landingPage", s.About+".html")
	for _, iri := range formatIRIs {
		g.iri(d, nsVoID+"feature", iri)
	}
	g.iri(d, nsVoID+"rootResource", s.CapabilityList)
	g.iri(d, nsVoID+"sparqlEndpoint", s.SPARQL)
	g.services(s)
	if !s.Published {
		return
	}
	g.number(d, nsVoID+"entities", s.Entities)
	g.number(d, nsVoID+"triples", s.Triples)
	g.number(d, nsVoID+"documents", s.Entities)
	g.time(d, nsDCT+"modified", s.Modified)
	g.vocabulary(s)
	for _, x := range s.Distributions {
		iri := s.About + "#" + x.Name
		g.iri(d, nsDCAT+"distribution", iri)
		g.iri(iri, nsRDF+"type", nsDCAT+"Distribution")
		g.text(iri, nsDCT+"title", x.Title)
		g.iri(iri, nsDCAT+"mediaType", nsIANA+x.Type)
		g.iri(iri, nsDCAT+"accessURL", x.Access)
		g.iri(iri, nsDCT+"conformsTo", framework)
		g.time(iri, nsDCT+"modified", x.Modified)
		for _, download := range x.Downloads {
			g.iri(iri, nsDCAT+"downloadURL", download)
		}
	}
}

// vocabulary gives the numbers of classes and properties, and the largest.
func (g *Graph) vocabulary(s *Dataset) {
	d, v := IRI(s.About), s.Vocabulary
	if v.Properties == 0 {
		return
	}
	g.number(d, nsVoID+"classes", v.Classes)
	g.number(d, nsVoID+"properties", v.Properties)
	for i, c := range v.LargestClasses {
		x := fmt.Sprintf("%s#class-%d", s.About, i+1)
		g.iri(d, nsVoID+"classPartition", x)
		g.iri(x, nsVoID+"class", c.IRI)
		g.number(x, nsVoID+"entities", c.Count)
	}
	for i, c := range v.LargestProperties {
		x := fmt.Sprintf("%s#property-%d", s.About, i+1)
		g.iri(d, nsVoID+"propertyPartition", x)
		g.iri(x, nsVoID+"property", c.IRI)
		g.number(x, nsVoID+"triples", c.Count)
	}
}

// services describes services (DCAT 3, 6.6): each serves the dataset, and is the access of a distribution
// of it.
func (g *Graph) services(s *Dataset) {
	d := IRI(s.About)
	for _, x := range s.Services {
		service, access := s.About+"#"+x.Name, s.About+"#"+x.Name+"-access"
		g.iri(service, nsRDF+"type", nsDCAT+"DataService")
		g.text(service, nsDCT+"title", x.Title)
		g.text(service, nsDCT+"description", x.Text)
		g.iri(service, nsDCAT+"endpointURL", x.Endpoint)
		if x.Description != x.Endpoint {
			g.iri(service, nsDCAT+"endpointDescription", x.Description)
		}
		g.iri(service, nsDCT+"conformsTo", x.ConformsTo)
		g.iri(service, nsDCAT+"servesDataset", d)
		g.iri(d, nsDCAT+"distribution", access)
		g.iri(access, nsRDF+"type", nsDCAT+"Distribution")
		g.text(access, nsDCT+"title", x.Title)
		g.iri(access, nsDCAT+"mediaType", nsIANA+x.Type)
		g.iri(access, nsDCAT+"accessURL", x.Description)
		g.iri(access, nsDCAT+"accessService", service)
		g.iri(access, nsDCT+"conformsTo", x.ConformsTo)
	}
}
