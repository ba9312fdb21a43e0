package publish

import (
	"net/http"
	"strings"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Service is another protocol for the data of a set, beside ResourceSync, below the address of the
// set. Another package answers it (package faces). Its pages are no ResourceSync documents, so no
// Capability List may name it. It is found in the description of the set, as a dcat:DataService, on
// its page for people, and in Link headers.
type Service struct {
	Name       string // in IRIs: letters and digits, none twice
	Title      string // for people
	Text       string // its use, for people
	Endpoint   string // path of a client's first request, below the set's address: "/oai"
	Self       string // path of a page about the service: "/oai?verb=Identify"
	Type       string // media type of Self
	ConformsTo string // IRI of the specification
	Rel        string // the specification's own link relation; "": none
}

// relServiceDesc links to a description of a service for machines (RFC 8631).
const relServiceDesc = "service-desc"

// preferStatic is a preference (RFC 7240) of a client storing answers for a file server: links to
// services of a program are left out.
const preferStatic = "static"

// services are the services to link from an answer: none before the first publication, and none for
// a static site.
func (s *set) services(w http.ResponseWriter, r *http.Request, snap *snapshot) []Service {
	if len(s.cfg.Services) == 0 || snap == nil || staysStatic(w, r) {
		return nil
	}
	return s.cfg.Services
}

// staysStatic tells whether the client wants an answer without services, as the maker of a static
// site does, and says so in the answer.
func staysStatic(w http.ResponseWriter, r *http.Request) bool {
	vary(w.Header(), "Prefer")
	for _, line := range r.Header.Values("Prefer") {
		for p := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(p), preferStatic) {
				w.Header().Set("Preference-Applied", preferStatic)
				return true
			}
		}
	}
	return false
}

// serviceLinks are the links to services in a Link header: "", or beginning with
// a comma.
func (a *place) serviceLinks(services []Service) string {
	var b strings.Builder
	for _, x := range services {
		rel := relServiceDesc
		if x.Rel != "" {
			rel += " " + x.Rel
		}
		b.WriteString(`, <` + a.url + x.Self + `>; rel="` + rel + `"; type="` + x.Type + `"; title="` + x.Title + `"`)
	}
	return b.String()
}

// serveCapabilityList answers with the list. Its Link header names the services, since the list may
// not.
func (s *set) serveCapabilityList(w http.ResponseWriter, r *http.Request, snap *snapshot) error {
	d, err := s.capabilityListDoc(snap)
	if err != nil {
		return err
	}
	if services := s.services(w, r, snap); len(services) > 0 {
		d.link = "<" + s.at.about() + `>; rel="` + resourcesync.RelDescribedBy + `"` + s.at.serviceLinks(services)
	}
	s.p.answer(w, r, d)
	return nil
}
