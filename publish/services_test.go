package publish

import (
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/rdfres"
)

// TestServices: other ways to the data are found from the description of the set,
// from its page and from Link headers, and never in a ResourceSync document; who
// stores answers as files is not led to them.
func TestServices(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Services: []Service{
		{Name: "oai", Title: "OAI-PMH 2.0", Text: "for harvesters", Endpoint: "/oai", Self: "/oai?verb=Identify&x=1", Type: "text/xml", ConformsTo: "http://spec.example/oai"},
		{Name: "ldes", Title: "Event stream", Text: "for followers", Endpoint: "/ldes/view", Self: "/ldes/view", Type: "application/trig", ConformsTo: "http://spec.example/ldes", Rel: "http://spec.example/view"},
	}})
	wantLinks := `<` + w.url("oai?verb=Identify&x=1") + `>; rel="service-desc"; type="text/xml"; title="OAI-PMH 2.0", <` +
		w.url("ldes/view") + `>; rel="service-desc http://spec.example/view"; type="application/trig"; title="Event stream"`
	if l := w.get(w.url("about.ttl")).Header().Get("Link"); strings.Contains(l, "service-desc") {
		t.Errorf("before the first publication: %s", l)
	}
	w.scan(map[string]int{"http://example.org/e/1": 4}, false, w.cfg.Format)
	w.publish()
	for _, address := range []string{w.url("about"), w.url("about.html"), w.url("about.nt"), w.url("capabilitylist.xml")} {
		res := w.get(address)
		if l := res.Header().Get("Link"); !strings.HasSuffix(l, ", "+wantLinks) || !strings.HasPrefix(l, "<") {
			t.Errorf("%s: Link %s", address, l)
		}
		if strings.HasSuffix(address, ".xml") == strings.Contains(res.Body.String(), "/data/oai") {
			t.Errorf("%s:\n%s", address, res.Body)
		}
		res = w.get(address, "Prefer", "respond-async, static")
		if res.Code != 200 || strings.Contains(res.Header().Get("Link")+res.Body.String(), "/data/oai") || res.Header().Get("Preference-Applied") != "static" {
			t.Errorf("%s, static: %v\n%s", address, res.Header(), res.Body)
		}
	}
	if page := w.get(w.url("about.html")).Body.String(); !strings.Contains(page, `<link rel="service-desc" type="text/xml" href="`+w.url("oai?verb=Identify&amp;x=1")) || !strings.Contains(page, "for harvesters") {
		t.Errorf("the page: %s", page)
	}
	d := w.url("about#dataset")
	for _, address := range []string{w.url("about.nt"), testBase + "/about.nt"} {
		body := w.get(address).Body.String()
		for _, line := range []string{
			"<" + w.url("about#oai") + "> <" + nsDCAT + "servesDataset> <" + d + "> .",
			"<" + w.url("about#oai") + "> <" + nsDCAT + "endpointURL> <" + w.url("oai") + "> .",
			"<" + w.url("about#oai") + "> <" + nsDCAT + "endpointDescription> <" + w.url("oai?verb=Identify&x=1") + "> .",
			"<" + w.url("about#oai") + "> <" + nsDCT + "conformsTo> <http://spec.example/oai> .",
			"<" + d + "> <" + nsDCAT + "distribution> <" + w.url("about#ldes-access") + "> .",
			"<" + w.url("about#ldes-access") + "> <" + nsDCAT + "accessService> <" + w.url("about#ldes") + "> .",
		} {
			if !strings.Contains(body, line) {
				t.Errorf("%s lacks %s\n%s", address, line, body)
			}
		}
	}
	if body := w.get(testBase + "/about.nt").Body.String(); !strings.Contains(body, "<"+nsDCAT+"service> <"+w.url("about#ldes")+"> .") {
		t.Errorf("the catalogue has no service:\n%s", body)
	}
}
