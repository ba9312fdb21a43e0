package syntax

import "github.com/rsbridge/rsbridge/rdfres/internal/chars"

// CommonPrefixes are the usual prefixes of namespaces. Writers
// declare only the prefixes in use. To add one is safe for
// readers, but changes the bytes of our Turtle and RDF/XML.
var CommonPrefixes = map[string]string{
	chars.RDF:                                       "rdf",
	chars.XSD:                                       "xsd",
	"http://www.w3.org/2000/01/rdf-schema#":         "rdfs",
	"http://www.w3.org/2002/07/owl#":                "owl",
	"http://www.w3.org/2004/02/skos/core#":          "skos",
	"http://www.w3.org/ns/shacl#":                   "sh",
	"http://www.w3.org/ns/prov#":                    "prov",
	"http://www.w3.org/ns/dcat#":                    "dcat",
	"http://www.w3.org/ns/org#":                     "org",
	"http://www.w3.org/ns/sosa/":                    "sosa",
	"http://www.w3.org/2006/vcard/ns#":              "vcard",
	"http://www.w3.org/2006/time#":                  "time",
	"http://www.w3.org/2003/01/geo/wgs84_pos#":      "geo",
	"http://www.opengis.net/ont/geosparql#":         "geosparql",
	"http://rdfs.org/ns/void#":                      "void",
	"http://rdfs.org/sioc/ns#":                      "sioc",
	"http://purl.org/dc/terms/":                     "dcterms",
	"http://purl.org/dc/elements/1.1/":              "dc",
	"http://purl.org/linked-data/cube#":             "qb",
	"http://xmlns.com/foaf/0.1/":                    "foaf",
	"http://schema.org/":                            "schema",
	"https://schema.org/":                           "sdo",
	"http://dbpedia.org/ontology/":                  "dbo",
	"http://dbpedia.org/property/":                  "dbp",
	"http://dbpedia.org/resource/":                  "dbr",
	"http://www.wikidata.org/entity/":               "wd",
	"http://www.wikidata.org/prop/direct/":          "wdt",
	"http://qudt.org/schema/qudt/":                  "qudt",
	"http://qudt.org/vocab/unit/":                   "unit",
	"http://www.europeana.eu/schemas/edm/":          "edm",
	"http://www.openarchives.org/ore/terms/":        "ore",
	"http://creativecommons.org/ns#":                "cc",
	"http://www.loc.gov/mads/rdf/v1#":               "mads",
	"http://id.loc.gov/ontologies/bibframe/":        "bf",
	"http://d-nb.info/standards/elementset/gnd#":    "gndo",
	"http://www.cidoc-crm.org/cidoc-crm/":           "crm",
	"http://data.ashrae.org/standard223#":           "s223",
	"http://purl.org/vocab/vann/":                   "vann",
	"http://www.w3.org/2003/06/sw-vocab-status/ns#": "vs",
}
