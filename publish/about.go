package publish

import (
	"cmp"
	"net/http"

	"github.com/rsbridge/rsbridge/publish/catalogue"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// dataset is the IRI of a set as a dataset.
func (a *place) dataset() string { return catalogue.IRI(a.about()) }

// described is a set for catalogues.
func (s *set) described(w http.ResponseWriter, r *http.Request, snap *snapshot, services []Service) *catalogue.Dataset {
	d := &catalogue.Dataset{About: s.at.about(), Title: s.cfg.Title, Name: s.cfg.Name, Description: s.cfg.Description, Licence: s.cfg.Licence,
		Publisher: cmp.Or(s.cfg.Publisher, s.p.o.Publisher), Prefix: s.at.Prefix, CapabilityList: s.at.capabilityList(), Via: s.cfg.Via}
	if s.cfg.SPARQL != "" && !staysStatic(w, r) {
		d.SPARQL = s.cfg.SPARQL
	}
	for _, x := range services {
		d.Services = append(d.Services, catalogue.Service{Name: x.Name, Title: x.Title, Text: x.Text, Endpoint: s.at.url + x.Endpoint, Description: s.at.url + x.Self, ConformsTo: x.ConformsTo, Type: x.Type})
	}
	if snap == nil {
		return d
	}
	d.Published, d.Entities, d.Triples, d.Modified = true, snap.view.Resources(), snap.view.Triples(), snap.gen.At
	if s.cfg.Coverage != nil {
		d.Vocabulary = s.cfg.Coverage(r.Context()).Vocabulary
	}
	add := func(c resourcesync.Capability, title, mediaType string) *catalogue.Distribution {
		d.Distributions = append(d.Distributions, catalogue.Distribution{Name: string(c), Title: title, Type: mediaType, Access: s.at.url + "/" + string(c) + ".xml"})
		return &d.Distributions[len(d.Distributions)-1]
	}
	if s.offers(resourcesync.ResourceList) {
		add(resourcesync.ResourceList, "ResourceSync Resource List", xmlType)
	}
	if s.offers(resourcesync.ChangeList) {
		add(resourcesync.ChangeList, "ResourceSync Change List", xmlType)
	}
	if dump := s.dump.Load(); dump != nil && s.offers(resourcesync.ResourceDump) {
		x := add(resourcesync.ResourceDump, "ResourceSync Resource Dump", zipType)
		x.Modified = dump.At
		for _, p := range dump.Packages {
			x.Downloads = append(x.Downloads, s.at.url+"/"+p.File)
		}
	}
	if packages := *s.changeDumps.Load(); len(packages) > 0 && s.offers(resourcesync.ChangeDump) {
		add(resourcesync.ChangeDump, "ResourceSync Change Dump", zipType).Modified = packages[len(packages)-1].Until
	}
	return d
}

// serveAbout answers /SET/about and its forms by suffix.
func (s *set) serveAbout(w http.ResponseWriter, r *http.Request, snap *snapshot, name string) error {
	_, format, _ := offer.BySuffix(name)
	formats := []rdfres.Format{rdfres.Turtle, rdfres.JSONLD, rdfres.NTriples, rdfres.RDFXML, offer.HTML}
	if format == "" {
		var ok bool
		vary(w.Header(), "Accept")
		if format, ok = offer.Negotiate(r.Header["Accept"], formats); !ok {
			return notAcceptable(s.at.about(), formats)
		}
		w.Header().Set("Content-Location", s.at.about()+offer.Suffix(format))
	}
	services := s.services(w, r, snap)
	w.Header().Set("Link", "<"+s.at.capabilityList()+`>; rel="resourcesync", <`+s.at.wellKnown()+`>; rel="up", <`+s.at.dataset()+`>; rel="describes"`+s.at.serviceLinks(services))
	if format == offer.HTML {
		return s.setPage(w, r, snap, services)
	}
	g := &catalogue.Graph{}
	g.Document(s.at.about())
	g.Dataset(s.described(w, r, snap, services))
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
		vary(w.Header(), "Accept")
		if format, ok = offer.Negotiate(r.Header["Accept"], formats); !ok {
			return notAcceptable(about, formats)
		}
	}
	if format == offer.HTML {
		return p.serveHome(w, r)
	}
	g := &catalogue.Graph{}
	catalog := g.Catalog(about, p.o.Title, p.o.Description, p.o.Publisher, p.wellKnown())
	for _, name := range p.names {
		s, snap := p.present(r.Context(), name)
		if err := snap.unreadable(); err != nil {
			snap.release()
			return err
		}
		g.Listed(catalog, s.described(w, r, snap, s.services(w, r, snap)))
		snap.release()
	}
	return p.sendGraph(w, r, catalog, g, format)
}

func (p *Publisher) sendGraph(w http.ResponseWriter, r *http.Request, subject string, g *catalogue.Graph, format rdfres.Format) error {
	data, err := codec.Encode(format, subject, g.Triples())
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
