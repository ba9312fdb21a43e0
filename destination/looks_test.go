package destination

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Types that much else has than RDF do not make RDF of it, and RDF is found under them; a
// document that names one graph is that graph.
func TestTypesThatSayLittle(t *testing.T) {
	const triple = `<http://ex.org/a> <http://ex.org/v> "1" .` + "\n"
	for _, c := range []struct {
		name, typ, body string
		rdf             bool
	}{
		{"record.xml", "application/xml", `<mets xmlns="http://www.loc.gov/METS/"><file xmlns="http://f/">a</file></mets>`, false},
		{"feed", "text/xml", `<feed xmlns="http://www.w3.org/2005/Atom"><title>a</title></feed>`, false},
		{"record.xml", "application/octet-stream", `<mets xmlns="http://www.loc.gov/METS/"/>`, false},
		{"item.json", "application/json", `{"title": "a"}`, false},
		{"list.json", "application/json", `[1, 2]`, false},
		{"README", "text/plain", "Read: this first.\n", false},
		{"empty", "text/plain", "", true},
		{"a.ttl", "text/plain", "@prefix e: <http://ex.org/> . e:a e:v '1' .", true},
		{"a", "text/plain", "@prefix e: <http://ex.org/> . e:a e:v '1' .", true},
		{"a", "text/plain", "@prefix e: <http://ex.org/> . e:g { e:a e:v '1' }", true},
		{"a", "application/octet-stream", "@prefix e: <http://ex.org/> . e:g { e:a e:v '1' }", true},
		{"a", "text/plain; charset=utf-8", triple, true},
		{"a", "application/xml", `<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/"><r:Description r:about="http://ex.org/a" e:v="1"/></r:RDF>`, true},
		{"a.json", "application/json", `{"@id": "http://ex.org/a", "http://ex.org/v": "1"}`, true},
		{"a.nq", "application/n-quads", `<http://ex.org/a> <http://ex.org/v> "1" <http://ex.org/g> .` + "\n", true},
		{"a.trig", "application/trig", `<http://ex.org/g> { <http://ex.org/a> <http://ex.org/v> "1" }`, true},
		{"a.jsonld", "application/ld+json", `{"@id": "http://ex.org/g", "@graph": [{"@id": "http://ex.org/a", "http://ex.org/v": "1"}]}`, true},
	} {
		b := newBench(t)
		b.src.types[c.name] = c.typ
		b.src.put(c.name, c.body)
		rep := b.sync()
		if !rep.InSync || (rep.NotRDF == 0) != c.rdf {
			t.Errorf("%s, %s: %+v", c.name, c.typ, rep)
		}
		want := []string{triple}
		if !c.rdf || c.body == "" {
			want = nil
		}
		if got := b.mir.lines(graphA); !slices.Equal(got, want) {
			t.Errorf("%s, %s: the mirror has %q", c.name, c.typ, got)
		}
	}
}

// What is mirrored stays when something comes in its place that only its content shows to
// be no RDF.
func TestPageInPlaceOfRDF(t *testing.T) {
	for _, typ := range []string{"application/xml", "application/octet-stream", "text/plain"} {
		b := newBench(t)
		s := b.src
		s.changes, s.noHash = false, true
		s.types["a"] = typ
		s.put("a", `<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/"><r:Description r:about="http://ex.org/a" e:v="1"/></r:RDF>`)
		if rep := b.sync(); !rep.InSync || rep.Created != 1 || rep.NotRDF != 0 {
			t.Fatalf("%s: %+v", typ, rep)
		}
		was := s.bodies["a"]
		s.put("a", `<error>overloaded</error>`)
		if rep := b.sync(); rep.InSync || rep.Pending+rep.Failed != 1 {
			t.Fatalf("%s: %+v", typ, rep)
		}
		if got := b.mir.lines(graphA); len(got) != 1 {
			t.Fatalf("%s: the mirror has %q", typ, got)
		}
		s.put("a", string(was))
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%s: %+v", typ, rep)
		}
	}
}

// An alternate that is RDF is taken where the resource is of a type that says little.
func TestAlternateOfXML(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.changes = false
	s.types["a.xml"] = "application/xml"
	s.put("a.xml", `<record xmlns="http://r/"><title>a</title></record>`)
	badBody(s, "a.ttl", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/turtle")
		w.Write([]byte(`<http://ex.org/a> <http://ex.org/v> "1" .`))
	})
	s.damage = func(doc string) string {
		doc = strings.Replace(doc, "</url>", `<rs:ln rel="alternate" href="`+s.url(s.folder+"a.ttl")+`" type="text/turtle"/></url>`, 1)
		return strings.Replace(doc, `<url><loc>`+s.url(s.folder+"a.ttl"), `<url><loc>`+s.url(s.folder+"a.xml"), 1)
	}
	delete(s.bodies, "a.ttl")
	if rep := b.sync(); !rep.InSync || rep.NotRDF != 0 {
		t.Fatalf("%+v", rep)
	}
	if got := b.mir.lines(graphA); !slices.Equal(got, []string{`<http://ex.org/a> <http://ex.org/v> "1" .` + "\n"}) {
		t.Errorf("the mirror has %q", got)
	}
}
