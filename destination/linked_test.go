package destination

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/destination/feed"
)

// pages makes the source of a bench a site of pages: one entry, and what the addresses
// give. A value that begins with a number is a status.
func pages(b *bench, entry *string, at map[string]string) {
	s := b.src
	s.changes = false
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/set/resourcelist.xml" {
			w.Header().Set("Content-Type", "application/xml")
			io.WriteString(w, fmt.Sprintf(strings.Replace(changeListXML, "changelist", "resourcelist", 1), `at="`+feed.Stamp(s.now)+`"`, *entry))
			return true
		}
		body, ok := at[r.URL.Path]
		if !ok {
			return false
		}
		switch {
		case strings.HasSuffix(r.URL.Path, ".ttl"):
			w.Header().Set("Content-Type", "text/turtle")
		case strings.HasSuffix(r.URL.Path, ".rdf"):
			w.Header().Set("Content-Type", "application/rdf+xml")
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if link, ok := at["link"]; ok {
				w.Header().Set("Link", link)
			}
		}
		if body == "500" {
			w.WriteHeader(http.StatusNotImplemented)
		}
		io.WriteString(w, body)
		return true
	}
}

// TestLinkedRDF: where a resource is a page, the RDF is taken that the list, a Link
// header or the page links to, and nothing else; what cannot be had is no page instead.
func TestLinkedRDF(t *testing.T) {
	data := nt("e1", "1")
	described := `<rs:ln rel="describedby" href="/data/1.ttl" type="text/turtle"/>`
	for name, c := range map[string]struct {
		entry  string
		at     map[string]string
		linked []string
		want   string // "data", "page", "pending"
	}{
		"describedby":              {`<url><loc>/page/1</loc>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, nil, "data"},
		"describedby of HTML":      {`<url><loc>/page/1</loc><rs:md type="text/html"/>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, nil, "data"},
		"no RDF behind":            {`<url><loc>/page/1</loc><rs:ln rel="describedby" href="/about" type="text/html"/></url>`, map[string]string{"/page/1": "<html>", "/about": "<html>"}, nil, "page"},
		"other relation":           {`<url><loc>/page/1</loc><rs:ln rel="collection" href="/data/1.ttl" type="text/turtle"/></url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, nil, "page"},
		"a picture":                {`<url><loc>/page/1</loc><rs:md type="image/png"/>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, nil, "page"},
		"off":                      {`<url><loc>/page/1</loc>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, []string{}, "page"},
		"alternate alone":          {`<url><loc>/page/1</loc>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, []string{"alternate"}, "page"},
		"loc is RDF":               {`<url><loc>/data/1.ttl</loc><rs:ln rel="describedby" href="/data/2.ttl" type="text/turtle"/></url>`, map[string]string{"/data/1.ttl": data, "/data/2.ttl": nt("e2", "2")}, nil, "data"},
		"Link header":              {`<url><loc>/page/1</loc></url>`, map[string]string{"/page/1": "<html>", "link": `</x>; rel="canonical", </data/1.ttl>; rel="describedby"; type="text/turtle"`, "/data/1.ttl": data}, nil, "data"},
		"Link header of another":   {`<url><loc>/page/1</loc></url>`, map[string]string{"/page/1": "<html>", "link": `</data/1.ttl>; rel="describedby"; type="text/turtle"; anchor="/x"`, "/data/1.ttl": data}, nil, "page"},
		"head":                     {`<url><loc>/page/1</loc></url>`, map[string]string{"/page/1": `<html><head><base href="/data/"><link rel="alternate" type="application/rss+xml" href="x"><link rel="alternate" type="text/turtle" href="1.ttl"></head>`, "/data/1.ttl": data}, nil, "data"},
		"head, off":                {`<url><loc>/page/1</loc></url>`, map[string]string{"/page/1": `<link rel="alternate" type="text/turtle" href="/data/1.ttl">`, "/data/1.ttl": data}, []string{}, "page"},
		"body":                     {`<url><loc>/page/1</loc></url>`, map[string]string{"/page/1": `<html><body><link rel="alternate" type="text/turtle" href="/data/1.ttl">`, "/data/1.ttl": data}, nil, "page"},
		"it is relative":           {`<url><loc>/page/1</loc>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": `<../x> <http://p.example/n> "1" .`}, nil, "relative"},
		"it cannot be had":         {`<url><loc>/page/1</loc>` + described + `</url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": "500"}, nil, "pending"},
		"it keeps no promise":      {`<url><loc>/page/1</loc><rs:ln rel="describedby" href="/data/1.ttl" type="text/turtle" length="7"/></url>`, map[string]string{"/page/1": "<html>", "/data/1.ttl": data}, nil, "pending"},
		"it is elsewhere":          {`<url><loc>/page/1</loc><rs:ln rel="describedby" href="http://other.example/1.ttl" type="text/turtle"/></url>`, map[string]string{"/page/1": "<html>"}, nil, "page"},
		"the page leads elsewhere": {`<url><loc>/page/1</loc></url>`, map[string]string{"/page/1": `<link rel="alternate" type="text/turtle" href="http://other.example/1.ttl">`}, nil, "page"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.cfg.Linked = c.linked
			pages(b, &c.entry, c.at)
			rep := b.sync()
			lines := b.mir.lines(graphA)
			switch c.want {
			case "data":
				b.same(lines, []string{data})
				if !rep.InSync || rep.NotRDF > 0 {
					t.Errorf("%+v", rep)
				}
			case "relative":
				if len(lines) != 1 || !strings.HasPrefix(lines[0], "<"+b.src.url("/x")+"> ") {
					t.Errorf("%q", lines)
				}
			case "page":
				if len(lines) > 0 || !rep.InSync || rep.NotRDF != 1 {
					t.Errorf("%q %+v", lines, rep)
				}
			case "pending":
				if len(lines) > 0 || rep.InSync || rep.Pending+rep.Failed != 1 || rep.NotRDF > 0 {
					t.Errorf("%q %+v", lines, rep)
				}
			}
		})
	}
}

// What is promised of linked RDF changes by itself: the page stays as it is.
func TestLinkedRDFChanges(t *testing.T) {
	b := newBench(t)
	entry, at := "", map[string]string{"/page/1": "<html>"}
	pages(b, &entry, at)
	for value := range 3 {
		data := nt("e1", fmt.Sprint(value))
		at["/data/1.ttl"] = data
		entry = fmt.Sprintf(`<url><loc>/page/1</loc><lastmod>2020-01-01T00:00:00Z</lastmod><rs:ln rel="describedby" href="/data/1.ttl" type="text/turtle" hash="sha-256:%x"/></url>`, sha256.Sum256([]byte(data)))
		for range 2 {
			if rep := b.sync(); !rep.InSync || rep.NotRDF > 0 {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), []string{data})
			b.src.tick()
		}
	}
}

// TestEmptyIsConfirmed: a body without triples, of which nothing is promised, is taken for
// the description of a mirrored resource when the next poll finds it too.
func TestEmptyIsConfirmed(t *testing.T) {
	data := nt("e1", "1")
	for name, c := range map[string]struct {
		empty   string
		promise string
		at      string // the address
		once    bool   // it is taken at once
		back    bool   // it is as it was at the next poll
	}{
		"nothing":               {"", "", "/data/1.ttl", false, false},
		"nothing, for a moment": {"", "", "/data/1.ttl", false, true},
		"white space":           {" \n\n", "", "/data/1.ttl", false, false},
		"comments":              {"# nothing\n@prefix a: <http://a.example/> .\n", "", "/data/1.ttl", false, true},
		"an empty RDF/XML":      {`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>`, "", "/data/1.rdf", false, false},
		"promised length":       {"", `<rs:md length="0"/>`, "/data/1.ttl", true, false},
		"promised hash":         {"#\n", fmt.Sprintf(`<rs:md hash="sha-256:%x"/>`, sha256.Sum256([]byte("#\n"))), "/data/1.ttl", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.cfg.MaxDeleteRatio = 1 // it is all that there is
			before := data
			if strings.HasSuffix(c.at, ".rdf") {
				before = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="http://p.example/"><rdf:Description rdf:about="http://e.example/1"><p:n>1</p:n></rdf:Description></rdf:RDF>`
			}
			entry, at := `<url><loc>`+c.at+`</loc></url>`, map[string]string{c.at: before}
			pages(b, &entry, at)
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			was := b.mir.lines(graphA)
			if len(was) != 1 {
				t.Fatalf("%q", was)
			}
			b.src.tick()
			at[c.at], entry = c.empty, `<url><loc>`+c.at+`</loc>`+c.promise+`</url>`
			rep := b.sync()
			if c.once {
				if lines := b.mir.lines(graphA); !rep.InSync || len(lines) > 0 {
					t.Fatalf("%q %+v", lines, rep)
				}
				return
			}
			if rep.InSync || rep.Pending != 1 || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0].Reason, "empty") {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), was)
			want := []string{}
			if c.back {
				at[c.at], want = before, was
			}
			b.src.tick()
			if rep := b.sync(); !rep.InSync {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), want)
		})
	}
}
