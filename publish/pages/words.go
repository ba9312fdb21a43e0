package pages

import (
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Time is a moment for people and for programs.
type Time struct{ Text, ISO string }

// At is the moment of a page.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Format("2006-01-02 15:04:05"), resourcesync.FormatTime(t)}
}

// Digits groups the digits of a number.
func Digits(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range []byte(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteString("\u202f")
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Bytes is a length for people.
func Bytes(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	if i == 0 {
		return strconv.FormatInt(n, 10) + "\u202fB"
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + "\u202f" + units[i]
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// Count is a number with its noun.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Digits(n) + " " + many
}

func formatName(f rdfres.Format) string {
	switch f {
	case rdfres.JSONLD:
		return "JSON-LD"
	case rdfres.NTriples:
		return "N-Triples"
	case rdfres.Turtle:
		return "Turtle"
	case rdfres.RDFXML:
		return "RDF/XML"
	case offer.HTML:
		return "HTML"
	}
	return strings.ToUpper(string(f))
}

// prefixes of names on pages.
var prefixes = []struct{ prefix, ns string }{
	{"rdf", nsRDF}, {"rdfs", nsRDFS}, {"xsd", nsXSD}, {"owl", "http://www.w3.org/2002/07/owl#"}, {"skos", nsSKOS},
	{"dcterms", "http://purl.org/dc/terms/"}, {"dc", "http://purl.org/dc/elements/1.1/"}, {"foaf", "http://xmlns.com/foaf/0.1/"}, {"void", "http://rdfs.org/ns/void#"}, {"dcat", "http://www.w3.org/ns/dcat#"},
	{"schema", "https://schema.org/"}, {"schema", "http://schema.org/"}, {"geo", "http://www.w3.org/2003/01/geo/wgs84_pos#"},
	{"prov", "http://www.w3.org/ns/prov#"}, {"sh", "http://www.w3.org/ns/shacl#"}, {"dbo", "http://dbpedia.org/ontology/"},
	{"dbr", "http://dbpedia.org/resource/"}, {"dbp", "http://dbpedia.org/property/"}, {"wd", "http://www.wikidata.org/entity/"}, {"wdt", "http://www.wikidata.org/prop/direct/"},
}

const (
	nsRDF  = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsRDFS = "http://www.w3.org/2000/01/rdf-schema#"
	nsXSD  = "http://www.w3.org/2001/XMLSchema#"
	nsSKOS = "http://www.w3.org/2004/02/skos/core#"
)

func shortIRI(iri string) string {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(iri, p.ns); ok && rest != "" {
			return p.prefix + ":" + rest
		}
	}
	return iri
}

// propertyName names a property: by a known prefix, or its last part.
func propertyName(iri string) string {
	if s := shortIRI(iri); s != iri {
		return s
	}
	return localName(iri)
}

func shortTerm(t rdfres.Term) string {
	if t.Kind() == rdfres.KindIRI {
		return shortIRI(t.IRI())
	}
	return string(t)
}

// localName is the last part of an IRI, for people.
func localName(iri string) string {
	s := strings.TrimRight(iri, "/#")
	if i := strings.LastIndexAny(s, "/#"); i >= 0 && i+1 < len(s) && !naming.IsComponent(iri) {
		s = s[i+1:]
	}
	return clip.Middle(strings.ReplaceAll(s, "_", " "))
}
