package faces

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"slices"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// oaiFormats are the metadata formats; every item has the first.
var oaiFormats = []struct{ prefix, schema, namespace string }{
	{"oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", "http://www.openarchives.org/OAI/2.0/oai_dc/"},
	{"rdf", "http://www.openarchives.org/OAI/2.0/rdf.xsd", nsRDF},
}

func knownFormat(prefix string) bool { return prefix == "oai_dc" || prefix == "rdf" }

// xmlWriter writes XML; errors stay in w.
type xmlWriter struct{ w *bufio.Writer }

func (x *xmlWriter) raw(s string) { x.w.WriteString(s) }

// text escapes; characters not allowed in XML become U+FFFD.
func (x *xmlWriter) text(s string) { xml.EscapeText(x.w, []byte(s)) }

func (x *xmlWriter) attr(name, value string) {
	x.raw(" " + name + `="`)
	x.text(value)
	x.raw(`"`)
}

func (x *xmlWriter) element(name, text string) {
	x.raw("<" + name + ">")
	x.text(text)
	x.raw("</" + name + ">\n")
}

// metadata is an item in a format; nil when it is deleted. errFormat when
// RDF/XML cannot express it.
func (q *request) metadata(ctx context.Context, m member, prefix string) ([]byte, error) {
	if m.version == nil {
		return nil, nil
	}
	ts, err := q.triples(ctx, m.entity, m.version)
	if err != nil {
		return nil, err
	}
	if prefix == "oai_dc" {
		return dublinCore(m.entity, ts), nil
	}
	data, err := codec.Encode(rdfres.RDFXML, m.entity, ts)
	if errors.Is(err, rdfres.ErrCannotCarry) {
		return nil, errFormat
	}
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte("<?xml")) { // it stands within another document
		if end := bytes.Index(data, []byte("?>")); end >= 0 {
			data = bytes.TrimLeft(data[end+2:], "\r\n")
		}
	}
	return data, nil
}

const (
	nsDC       = "http://purl.org/dc/elements/1.1/"
	nsRDFS     = "http://www.w3.org/2000/01/rdf-schema#"
	nsSchema   = "http://schema.org/"
	nsSchemas  = "https://schema.org/"
	nsFOAF     = "http://xmlns.com/foaf/0.1/"
	nsSKOS     = "http://www.w3.org/2004/02/skos/core#"
	nsDCAT     = "http://www.w3.org/ns/dcat#"
	nsOWL      = "http://www.w3.org/2002/07/owl#"
	nsBIBO     = "http://purl.org/ontology/bibo/"
	oaiDCBegin = `<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd">` + "\n"
)

// dcElements are the elements of Dublin Core in the order of writing, each with its properties,
// best first.
var dcElements = []struct {
	name       string
	properties []rdfres.Term
}{
	dcElement("title", "dct title", "rdfs label", "schema name", "schema headline", "schema title", "foaf name", "skos prefLabel"),
	dcElement("creator", "dct creator", "schema author", "schema creator", "foaf maker"),
	dcElement("subject", "dct subject", "schema about", "schema keywords", "dcat keyword", "dcat theme"),
	dcElement("description", "dct description", "dct abstract", "schema description", "schema abstract", "rdfs comment", "skos definition"),
	dcElement("publisher", "dct publisher", "schema publisher"),
	dcElement("contributor", "dct contributor", "schema contributor", "schema editor"),
	dcElement("date", "dct date", "dct issued", "dct created", "dct modified", "schema datePublished", "schema dateCreated", "schema dateModified"),
	dcElement("type", "dct type", "rdf type", "schema additionalType"),
	dcElement("format", "dct format", "schema encodingFormat", "dcat mediaType"),
	dcElement("identifier", "dct identifier", "schema identifier", "schema isbn", "bibo doi", "bibo isbn"),
	dcElement("source", "dct source", "schema isBasedOn"),
	dcElement("language", "dct language", "schema inLanguage"),
	dcElement("relation", "dct relation", "dct isPartOf", "dct hasPart", "dct references", "dct isReferencedBy", "dct isVersionOf", "dct hasVersion", "dct replaces", "dct isReplacedBy",
		"schema isPartOf", "schema hasPart", "schema citation", "schema sameAs", "owl sameAs", "rdfs seeAlso"),
	dcElement("coverage", "dct coverage", "dct spatial", "dct temporal", "schema spatialCoverage", "schema temporalCoverage"),
	dcElement("rights", "dct rights", "dct license", "dct accessRights", "dct rightsHolder", "schema license", "schema copyrightNotice"),
}

func dcElement(name string, properties ...string) (e struct {
	name       string
	properties []rdfres.Term
}) {
	e.name = name
	e.properties = []rdfres.Term{voc(nsDC, name)}
	for _, p := range properties {
		e.properties = append(e.properties, terms(p)...)
	}
	return e
}

// terms reads "prefix name"; schema.org has two namespaces.
func terms(s string) []rdfres.Term {
	namespaces := map[string]string{"dct": nsDCT, "rdfs": nsRDFS, "rdf": nsRDF, "foaf": nsFOAF, "skos": nsSKOS, "dcat": nsDCAT, "owl": nsOWL, "bibo": nsBIBO, "schema": nsSchema}
	for prefix, ns := range namespaces {
		if len(s) > len(prefix) && s[:len(prefix)+1] == prefix+" " {
			ts := []rdfres.Term{voc(ns, s[len(prefix)+1:])}
			if prefix == "schema" {
				ts = append(ts, voc(nsSchemas, s[len(prefix)+1:]))
			}
			return ts
		}
	}
	panic("no namespace in " + s)
}

// namesOf are properties for the name of a blank node.
var namesOf = append(slices.Concat(terms("rdf value"), terms("schema name"), terms("rdfs label"), terms("foaf name"), terms("skos prefLabel"), terms("dct title")), voc(nsDC, "title"))

// dublinCore writes the unqualified Dublin Core of an entity: at least its IRI. A blank node is
// written by its name, if it has one.
func dublinCore(entity string, ts []rdfres.Triple) []byte {
	of := map[rdfres.Term]map[rdfres.Term][]rdfres.Term{} // subject, property
	for _, t := range ts {
		if of[t.S] == nil {
			of[t.S] = map[rdfres.Term][]rdfres.Term{}
		}
		of[t.S][t.P] = append(of[t.S][t.P], t.O)
	}
	var buf bytes.Buffer
	x := &xmlWriter{w: bufio.NewWriter(&buf)}
	x.raw(oaiDCBegin)
	own := of[rdfres.NewIRI(entity)]
	for _, e := range dcElements {
		seen := map[rdfres.Term]bool{}
		if e.name == "identifier" {
			x.element("dc:identifier", entity)
			seen[rdfres.NewIRI(entity)] = true
		}
		var write func(o rdfres.Term, deep bool)
		write = func(o rdfres.Term, deep bool) {
			if o.Kind() == rdfres.KindBlank {
				for _, p := range namesOf {
					for _, name := range of[o][p] {
						if deep {
							write(name, false)
						}
					}
					if len(of[o][p]) > 0 {
						return
					}
				}
				return
			}
			if seen[o] {
				return
			}
			seen[o] = true
			x.raw("<dc:" + e.name)
			text := o.IRI()
			if o.Kind() == rdfres.KindLiteral {
				var lang string
				if text, lang, _ = o.Literal(); lang != "" {
					x.attr("xml:lang", lang)
				}
			}
			x.raw(">")
			x.text(text)
			x.raw("</dc:" + e.name + ">\n")
		}
		for _, p := range e.properties {
			for _, o := range own[p] {
				write(o, true)
			}
		}
	}
	x.raw("</oai_dc:dc>\n")
	x.w.Flush() // into memory
	return buf.Bytes()
}
