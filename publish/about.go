package publish

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
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
)

// statements collects triples about subjects.
type statements struct{ ts []rdfres.Triple }

func (g *statements) add(subject, predicate string, object rdfres.Term) {
	g.ts = append(g.ts, rdfres.Triple{S: rdfres.NewIRI(subject), P: rdfres.NewIRI(predicate), O: object})
}

func (g *statements) iri(subject, predicate, object string) {
	if object != "" {
		g.add(subject, predicate, rdfres.NewIRI(object))
	}
}

func (g *statements) text(subject, predicate, text string) {
	if text != "" {
		g.add(subject, predicate, rdfres.NewLiteral(text, "", ""))
	}
}

// publisher names an agent, as DCAT wants it: by its IRI, or by its name at a document.
func (g *statements) publisher(subject, publisher, document string) {
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

func (g *statements) number(subject, predicate string, n int64) {
	g.add(subject, predicate, rdfres.NewLiteral(strconv.FormatInt(n, 10), "", nsXSD+"integer"))
}

func (g *statements) time(subject, predicate string, t time.Time) {
	if !t.IsZero() {
		g.add(subject, predicate, rdfres.NewLiteral(t.UTC().Format(time.RFC3339Nano), "", nsXSD+"dateTime"))
	}
}

var formatIRIs = map[rdfres.Format]string{
	rdfres.JSONLD: nsFormats + "JSON-LD", rdfres.NTriples: nsFormats + "N-Triples",
	rdfres.Turtle: nsFormats + "Turtle", rdfres.RDFXML: nsFormats + "RDF_XML",
}

// dataset is the IRI of a set as a dataset.
func (a *place) dataset() string { return a.about() + "#dataset" }

// describe describes a set for catalogues: VoID and DCAT.
func (s *set) describe(ctx context.Context, g *statements, snap *snapshot) {
	d := s.at.dataset()
	g.iri(d, nsRDF+"type", nsVoID+"Dataset")
	g.iri(d, nsRDF+"type", nsDCAT+"Dataset")
	g.text(d, nsDCT+"title", s.cfg.Title)
	g.text(d, nsDCT+"identifier", s.cfg.Name)
	g.text(d, nsDCT+"description", cmp.Or(s.cfg.Description, fmt.Sprintf("RDF descriptions of the set %s, to be copied and kept up to date with ResourceSync", s.cfg.Title)))
	if naming.Describable(s.cfg.Licence) {
		g.iri(d, nsDCT+"license", s.cfg.Licence)
	} else {
		g.text(d, nsDCT+"rights", s.cfg.Licence)
	}
	g.publisher(d, cmp.Or(s.cfg.Publisher, s.p.o.Publisher), s.at.about())
	g.text(d, nsVoID+"uriSpace", s.at.Prefix)
	for _, source := range s.cfg.Via {
		g.iri(d, nsDCT+"source", source)
	}
	g.iri(d, nsDCAT+"landingPage", s.at.about()+".html")
	for _, iri := range formatIRIs {
		g.iri(d, nsVoID+"feature", iri)
	}
	g.iri(d, nsVoID+"rootResource", s.at.capabilityList())
	if snap == nil {
		return
	}
	g.number(d, nsVoID+"entities", snap.view.Resources())
	g.number(d, nsVoID+"triples", snap.view.Triples())
	g.number(d, nsVoID+"documents", snap.view.Resources())
	g.time(d, nsDCT+"modified", snap.gen.At)
	if s.cfg.Coverage != nil {
		s.at.describeVocabulary(g, s.cfg.Coverage(ctx).Vocabulary)
	}
	distribution := func(name, title, mediaType, access string) string {
		x := s.at.about() + "#" + name
		g.iri(d, nsDCAT+"distribution", x)
		g.iri(x, nsRDF+"type", nsDCAT+"Distribution")
		g.text(x, nsDCT+"title", title)
		g.iri(x, nsDCAT+"mediaType", nsIANA+mediaType)
		g.iri(x, nsDCAT+"accessURL", access)
		g.iri(x, nsDCT+"conformsTo", "http://www.openarchives.org/rs/1.1/resourcesync")
		return x
	}
	if s.offers(resourcesync.ResourceList) {
		distribution("resourcelist", "ResourceSync Resource List", xmlType, s.at.url+"/resourcelist.xml")
	}
	if s.offers(resourcesync.ChangeList) {
		distribution("changelist", "ResourceSync Change List", xmlType, s.at.url+"/changelist.xml")
	}
	if dump := s.dump.Load(); dump != nil && s.offers(resourcesync.ResourceDump) {
		x := distribution("resourcedump", "ResourceSync Resource Dump", zipType, s.at.url+"/resourcedump.xml")
		g.time(x, nsDCT+"modified", dump.At)
		for _, p := range dump.Packages {
			g.iri(x, nsDCAT+"downloadURL", s.at.url+"/"+p.File)
		}
	}
	if packages := *s.changeDumps.Load(); len(packages) > 0 && s.offers(resourcesync.ChangeDump) {
		x := distribution("changedump", "ResourceSync Change Dump", zipType, s.at.url+"/changedump.xml")
		g.time(x, nsDCT+"modified", packages[len(packages)-1].Until)
	}
}

// describeVocabulary gives the numbers of classes and properties, and the largest.
func (a *place) describeVocabulary(g *statements, v Vocabulary) {
	d := a.dataset()
	if v.Properties == 0 {
		return
	}
	g.number(d, nsVoID+"classes", v.Classes)
	g.number(d, nsVoID+"properties", v.Properties)
	for i, c := range v.LargestClasses {
		x := fmt.Sprintf("%s#class-%d", a.about(), i+1)
		g.iri(d, nsVoID+"classPartition", x)
		g.iri(x, nsVoID+"class", c.IRI)
		g.number(x, nsVoID+"entities", c.Count)
	}
	for i, c := range v.LargestProperties {
		x := fmt.Sprintf("%s#property-%d", a.about(), i+1)
		g.iri(d, nsVoID+"propertyPartition", x)
		g.iri(x, nsVoID+"property", c.IRI)
		g.number(x, nsVoID+"triples", c.Count)
	}
}

// serveAbout answers /SET/about and its forms by suffix.
func (s *set) serveAbout(w http.ResponseWriter, r *http.Request, snap *snapshot, name string) error {
	_, format, _ := offer.BySuffix(name)
	formats := []rdfres.Format{rdfres.Turtle, rdfres.JSONLD, rdfres.NTriples, rdfres.RDFXML, offer.HTML}
	if format == "" {
		var ok bool
		w.Header().Add("Vary", "Accept")
		if format, ok = offer.Negotiate(r.Header["Accept"], formats); !ok {
			return notAcceptable(s.at.about(), formats)
		}
		w.Header().Set("Content-Location", s.at.about()+offer.Suffix(format))
	}
	services := s.services(w, r, snap)
	w.Header().Set("Link", "<"+s.at.capabilityList()+`>; rel="resourcesync", <`+s.at.wellKnown()+`>; rel="up", <`+s.at.dataset()+`>; rel="describes"`+s.at.serviceLinks(services))
	if format == offer.HTML {
		d, err := s.setPage(r.Context(), snap, services)
		return s.p.send(w, r, d, err)
	}
	g := &statements{}
	g.iri(s.at.about(), nsRDF+"type", nsVoID+"DatasetDescription")
	g.iri(s.at.about(), nsFOAF+"primaryTopic", s.at.dataset())
	s.describe(r.Context(), g, snap)
	s.at.describeServices(g, services)
	s.describeEndpoint(g, w, r)
	return s.p.sendGraph(w, r, s.at.dataset(), g, format)
}

func notAcceptable(address string, formats []rdfres.Format) error {
	e := &statusError{code: http.StatusNotAcceptable, reason: "None of the formats that there are is among those accepted."}
	for _, f := range formats {
		e.hint("%s  %s", address+offer.Suffix(f), offer.MediaType(f))
	}
	return e
}

// serveSourceAbout answers /about: the source as a catalogue of its sets.
func (p *Publisher) serveSourceAbout(w http.ResponseWriter, r *http.Request, path string) error {
	_, format, _ := offer.BySuffix(path)
	formats := []rdfres.Format{rdfres.Turtle, rdfres.JSONLD, rdfres.NTriples, rdfres.RDFXML, offer.HTML}
	about := p.base + "/about"
	if format == "" {
		var ok bool
		w.Header().Add("Vary", "Accept")
		if format, ok = offer.Negotiate(r.Header["Accept"], formats); !ok {
			return notAcceptable(about, formats)
		}
	}
	if format == offer.HTML {
		return p.serveHome(w, r)
	}
	g := &statements{}
	catalog := about + "#catalog"
	g.iri(catalog, nsRDF+"type", nsDCAT+"Catalog")
	g.text(catalog, nsDCT+"title", p.o.Title)
	g.text(catalog, nsDCT+"description", cmp.Or(p.o.Description, "Sets of RDF descriptions, to be copied and kept up to date with ResourceSync"))
	g.publisher(catalog, p.o.Publisher, about)
	g.iri(catalog, nsDCT+"conformsTo", "http://www.openarchives.org/rs/1.1/resourcesync")
	g.iri(catalog, nsRDFS+"seeAlso", p.wellKnown())
	for _, name := range p.names {
		s, snap := p.present(r.Context(), name)
		if err := snap.unreadable(); err != nil {
			snap.release()
			return err
		}
		g.iri(catalog, nsDCAT+"dataset", s.at.dataset())
		s.describe(r.Context(), g, snap)
		services := s.services(w, r, snap)
		for _, x := range services {
			g.iri(catalog, nsDCAT+"service", s.at.about()+"#"+x.Name)
		}
		s.at.describeServices(g, services)
		s.describeEndpoint(g, w, r)
		snap.release()
	}
	return p.sendGraph(w, r, catalog, g, format)
}

func (p *Publisher) sendGraph(w http.ResponseWriter, r *http.Request, subject string, g *statements, format rdfres.Format) error {
	data, err := codec.Encode(format, subject, rdfres.SortUnique(g.ts))
	if err != nil {
		return err
	}
	d, err := packed(data, offer.ContentType(format))
	return p.send(w, r, d, err)
}

// mirrorCommand is how a set is mirrored with one command.
func (a *place) mirrorCommand() string {
	return "rsbridge mirror " + a.wellKnown() + " --set " + a.set + " --into embedded:" + a.set
}

func groupDigits(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b bytes.Buffer
	for i, c := range []byte(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteString("\u202f")
		}
		b.WriteByte(c)
	}
	return b.String()
}

func shortBytes(n int64) string {
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
