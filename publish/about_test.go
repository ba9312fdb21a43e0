package publish

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// TestAbout: the description of a set tells a catalogue what there is, the same in
// every form, and leads back to what it describes.
func TestAbout(t *testing.T) {
	graphs := []string{"*"}
	for i := range shownGraphs + 1 {
		graphs = append(graphs, fmt.Sprintf("http://example.org/graph/%d", i))
	}
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Title: "Places", Description: "Of all sorts", Licence: "http://licence.example/", Publisher: "http://publisher.example/",
		Prefix: "http://example.org/", RotateEntries: 1, Capabilities: []string{"resourcelist", "changelist", "resourcedump", "changedump"},
		Coverage: func(context.Context) Coverage {
			return Coverage{Graphs: graphs, Triples: 9, Covered: 9, Vocabulary: Vocabulary{Classes: 1, Properties: 3, LargestClasses: []Count{{IRI: "http://example.org/C", Count: 2}}, LargestProperties: []Count{{IRI: "http://example.org/p", Count: 4}}}}
		}})
	w.scan(map[string]int{berlin: 0, "http://example.org/Rome": 0}, false, rdfres.JSONLD)
	w.publish()
	for i := range 3 {
		w.clock.add(time.Hour)
		w.scan(map[string]int{berlin: i + 1}, true, rdfres.JSONLD)
		w.publish()
	}
	w.must(w.pub.Dump(t.Context(), "data"))
	var first rdfres.Digest
	for _, suffix := range []string{".nt", ".ttl", ".jsonld", ".rdf"} {
		res := w.get(w.url("about" + suffix))
		f, _ := rdfres.FormatBySuffix(suffix)
		ts, err := codec.Decode(f, res.Body.Bytes(), rdfres.ReadOptions{})
		w.must(err)
		if digest := rdfres.GraphDigest(rdfres.SortUnique(ts)); first.IsZero() {
			first = digest
		} else if digest != first {
			t.Errorf("%s tells something else:\n%s", suffix, res.Body)
		}
		if link := res.Header().Get("Link"); !strings.Contains(link, "<"+w.url("about#dataset")+`>; rel="describes"`) || !strings.Contains(link, "<"+w.url("capabilitylist.xml")+`>; rel="resourcesync"`) {
			t.Errorf("%s: Link %s", suffix, link)
		}
	}
	page := w.get(w.url("about.html")).Body.String()
	for _, want := range []string{`<dt>Graph</dt><dd dir="auto">all of the store</dd>`, `<dt>Graph</dt><dd dir="auto"><a href="http://example.org/graph/0">`, `<dt>More graphs</dt><dd dir="auto">2</dd>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	text := w.get(w.url("about.nt")).Body.String()
	d := "<" + w.url("about#dataset") + "> <"
	for _, want := range []string{
		d + nsVoID + `entities> "2"^^`, d + nsVoID + `triples> "`, d + nsVoID + `classes> "1"^^`, d + nsVoID + `properties> "3"^^`,
		d + nsVoID + "classPartition> <", nsVoID + "class> <http://example.org/C>", nsVoID + "property> <http://example.org/p>",
		d + nsDCT + `title> "Places"`, d + nsDCT + `description> "Of all sorts"`, d + nsDCT + "license> <http://licence.example/>", d + nsDCT + "publisher> <http://publisher.example/>",
		d + nsDCT + `modified> "2026-05-01T15:00:00`, d + nsVoID + "rootResource> <" + w.url("capabilitylist.xml") + ">",
		nsDCAT + "downloadURL> <" + w.url("resourcedump/"),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
	for _, name := range []string{"resourcelist", "changelist", "resourcedump", "changedump"} {
		if x := "<" + w.url("about#"+name) + ">"; !strings.Contains(text, d+nsDCAT+"distribution> "+x) || !strings.Contains(text, fmt.Sprintf("%s <%saccessURL> <%s>", x, nsDCAT, w.url(name+".xml"))) {
			t.Errorf("it lacks the distribution %s", name)
		}
	}
	for _, name := range []string{"Library: maps and plans", "urn:x:library", "http://"} {
		a := newWorld(t, SetConfig{Licence: name, Publisher: name}).get("/data/about.ttl").Body.Bytes()
		ts, err := codec.Decode(rdfres.Turtle, a, rdfres.ReadOptions{})
		if err != nil {
			t.Errorf("published by %s: %v\n%s", name, err, a)
		}
		for _, x := range ts {
			if p := x.P.IRI(); p == nsDCT+"publisher" && (x.O == rdfres.NewIRI("urn:x:library")) != (name == "urn:x:library") {
				t.Errorf("published by %s: %s", name, x.O)
			}
		}
	}
	page = w.get(w.url("about"), "Accept", "text/html").Body.String()
	for _, want := range []string{"Of all sorts", "http://licence.example/", "http://publisher.example/", "1 class, 3 properties", "2026-05-01 15:00:00", "Resource Dump", "Change Dump"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if h, _ := w.read(w.url("capabilitylist.xml")); len(h.Links) == 0 || h.Links[0].Rel != "describedby" || h.Links[0].Href != w.url("about") {
		t.Errorf("the Capability List leads to %v", h.Links)
	}
}

// TestCatalogueOfAgents: the catalogue and each set have a description and a publisher, an
// agent (DCAT 3, sections 6.3 and 6.4), also where only the source says who it is.
func TestCatalogueOfAgents(t *testing.T) {
	w := newWorld(t, SetConfig{Title: "Places"})
	w.pub.o.Publisher = "City Library"
	for _, address := range []string{testBase + "/about.nt", w.url("about.nt")} {
		ts, err := codec.Decode(rdfres.NTriples, w.get(address).Body.Bytes(), rdfres.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		has := func(s rdfres.Term, p string, o rdfres.Term) bool {
			return slices.ContainsFunc(ts, func(x rdfres.Triple) bool {
				return x.S == s && x.P == rdfres.NewIRI(p) && (o == "" || x.O == o)
			})
		}
		described := 0
		for _, x := range ts {
			if x.O != rdfres.NewIRI(nsDCAT+"Catalog") && x.O != rdfres.NewIRI(nsDCAT+"Dataset") {
				continue
			}
			described++
			if !has(x.S, nsDCT+"description", "") || !has(x.S, nsDCT+"publisher", "") {
				t.Errorf("%s lacks a description or a publisher:\n%s", x.S, ts)
			}
		}
		for _, x := range ts {
			if x.P == rdfres.NewIRI(nsDCT+"publisher") && (!has(x.O, nsRDF+"type", rdfres.NewIRI(nsFOAF+"Agent")) || !has(x.O, nsFOAF+"name", `"City Library"`)) {
				t.Errorf("the publisher %s is no agent with a name", x.O)
			}
		}
		if described == 0 {
			t.Errorf("%s describes nothing", address)
		}
	}
}

// TestLinkToRDFXML: the Link header tells RDF/XML where a version can be had so, and
// only there.
func TestLinkToRDFXML(t *testing.T) {
	w := newWorld(t, SetConfig{Format: rdfres.JSONLD, Prefix: "http://example.org/"})
	var found iter.Seq2[rdfres.Description, error] = func(yield func(rdfres.Description, error) bool) {
		entities := map[string]string{"http://example.org/a": "http://example.org/p", "http://example.org/b": "http://example.org/p/"}
		for _, e := range slices.SortedFunc(maps.Keys(entities), func(a, b string) int {
			x, y := rdfres.EntityKey(a), rdfres.EntityKey(b)
			return bytes.Compare(x[:], y[:])
		}) {
			if !yield(rdfres.Description{Entity: e, Triples: []rdfres.Triple{{S: rdfres.NewIRI(e), P: rdfres.NewIRI(entities[e]), O: `"x"`}}}, nil) {
				return
			}
		}
	}
	if _, err := w.log.Scan(t.Context(), found, changetrack.ScanOptions{Format: rdfres.JSONLD, MaxDeleteRatio: -1}); err != nil {
		t.Fatal(err)
	}
	w.publish()
	for name, can := range map[string]bool{"a": true, "b": false} {
		for _, address := range []string{"r/" + name, "r/" + name + ".jsonld", "r/" + name + ".html"} {
			if got := strings.Contains(w.get(w.url(address)).Header().Get("Link"), "/r/"+name+".rdf>"); got != can {
				t.Errorf("%s links to RDF/XML: %v", address, got)
			}
		}
		if res := w.get(w.url("r/" + name + ".rdf")); (res.Code == 200) != can {
			t.Errorf("%s.rdf: %d", name, res.Code)
		}
	}
}
