package destination

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// hostile is one thing that a source can do to harm its followers. The good
// resources beside it must reach the mirror unless the documents themselves are
// unusable; what is bad must be told with the words of want.
type hostile struct {
	name string
	want string // in the error of the run or in the reason of a problem
	stop bool   // the run as a whole fails and the mirror stays empty
	set  func(b *bench, s *testSource)
}

// answer makes the source give an answer of its own at some paths.
func answerAt(s *testSource, path string, h http.HandlerFunc) {
	before := s.hook
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == path {
			h(w, r)
			return true
		}
		return before != nil && before(w, r)
	}
}

func xmlAt(s *testSource, path, body string) {
	answerAt(s, path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, body)
	})
}

const (
	urlset  = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">`
	mapidx  = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">`
	listMD  = `<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>`
	listXML = "/set/resourcelist.xml"
)

// withEntry adds one raw entry to the Resource List of the good resources.
func withEntry(b *bench, s *testSource, entry string) {
	var rest string
	for k, body := range s.bodies {
		sum := sha256.Sum256(body)
		rest += fmt.Sprintf(`<url><loc>%s</loc><rs:md hash="sha-256:%s"/></url>`, s.url("/set/r/"+k), hex.EncodeToString(sum[:]))
	}
	s.changes = false
	xmlAt(s, listXML, urlset+listMD+strings.ReplaceAll(entry, "BASE", s.srv.URL)+rest+"</urlset>")
}

// badBody puts one resource beside the good ones and serves it by h.
func badBody(s *testSource, name string, h http.HandlerFunc) {
	s.put(name, "placeholder")
	answerAt(s, "/set/r/"+name, h)
}

// promised puts a resource whose bytes are as promised and bad in themselves.
func promised(name, body string) func(*bench, *testSource) {
	return func(b *bench, s *testSource) { s.put(name, body) }
}

func zipOf(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, body := range files {
		f, _ := w.Create(name)
		io.WriteString(f, body)
	}
	w.Close()
	return b.Bytes()
}

// dumpOf offers a dump with one package of these bytes and nothing else.
func dumpOf(s *testSource, pkg []byte, md string) {
	s.list, s.changes, s.dump = false, false, true
	xmlAt(s, "/set/resourcedump.xml", urlset+`<rs:md capability="resourcedump" at="2026-01-01T00:00:00Z"/><url><loc>`+s.url("/set/dump.zip")+`</loc><rs:md type="application/zip" `+md+`/></url></urlset>`)
	answerAt(s, "/set/dump.zip", func(w http.ResponseWriter, r *http.Request) { w.Write(pkg) })
}

func manifest(entries string) string {
	return urlset + `<rs:md capability="resourcedump-manifest" at="2026-01-01T00:00:00Z"/>` + entries + "</urlset>"
}

func clique(n int) string {
	var s strings.Builder
	for i := range n {
		for j := range n {
			if i != j {
				fmt.Fprintf(&s, "_:n%d <http://ex.org/knows> _:n%d .\n", i, j)
			}
		}
	}
	return s.String()
}

var hostiles = []hostile{
	// ---- documents
	{"list-is-a-page", "no ResourceSync document", true, func(b *bench, s *testSource) { xmlAt(s, listXML, "<!DOCTYPE html><html><body>hello</body></html>") }},
	{"list-is-not-xml", "no ResourceSync document", true, func(b *bench, s *testSource) { xmlAt(s, listXML, `{"a": 1}`) }},
	{"list-is-cut", "resourcelist", true, func(b *bench, s *testSource) { xmlAt(s, listXML, urlset+listMD+"<url><loc>http://x") }},
	{"list-is-empty-body", "no ResourceSync document", true, func(b *bench, s *testSource) { xmlAt(s, listXML, "") }},
	{"entity-bomb", "resourcelist.xml", true, func(b *bench, s *testSource) {
		xmlAt(s, listXML, `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>`+urlset+listMD+`<url><loc>http://x/&b;</loc></url></urlset>`)
	}},
	{"external-entity", "resourcelist.xml", true, func(b *bench, s *testSource) {
		xmlAt(s, listXML, `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>`+urlset+listMD+`<url><loc>http://x/&a;</loc></url></urlset>`)
	}},
	{"endless-list", "too large", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, urlset+listMD)
			for i := 0; r.Context().Err() == nil; i++ {
				if _, err := fmt.Fprintf(w, "<url><loc>%s</loc></url>\n", s.url(fmt.Sprintf("/set/r/x%d.nt", i))); err != nil {
					return
				}
			}
		})
	}},
	{"endless-white-space", "too large", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, urlset+listMD)
			blank := bytes.Repeat([]byte(" "), 64<<10)
			for r.Context().Err() == nil {
				if _, err := w.Write(blank); err != nil {
					return
				}
			}
		})
	}},
	{"huge-list-announced", "too large", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10737418240")
			io.WriteString(w, urlset)
		})
	}},
	{"gzip-bomb-list", "too", true, func(b *bench, s *testSource) {
		z := gz(append([]byte(urlset+listMD), bytes.Repeat([]byte(" "), 16<<20)...))
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Encoding", "gzip"); w.Write(z) })
	}},
	{"list-with-unknown-coding", "content coding", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			w.Write([]byte("x"))
		})
	}},
	{"index-names-itself", "circles", true, func(b *bench, s *testSource) {
		xmlAt(s, listXML, mapidx+listMD+`<sitemap><loc>`+s.url(listXML)+`</loc></sitemap></sitemapindex>`)
	}},
	{"indexes-in-a-ring", "circles", true, func(b *bench, s *testSource) {
		xmlAt(s, listXML, mapidx+listMD+`<sitemap><loc>`+s.url("/a.xml")+`</loc></sitemap></sitemapindex>`)
		xmlAt(s, "/a.xml", mapidx+listMD+`<sitemap><loc>`+s.url("/b.xml")+`</loc></sitemap></sitemapindex>`)
		xmlAt(s, "/b.xml", mapidx+listMD+`<sitemap><loc>`+s.url("/a.xml")+`</loc></sitemap></sitemapindex>`)
	}},
	{"endless-indexes", "nested", true, func(b *bench, s *testSource) {
		s.hook = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != listXML && !strings.HasPrefix(r.URL.Path, "/deep/") {
				return false
			}
			fmt.Fprintf(w, "%s%s<sitemap><loc>%s</loc></sitemap></sitemapindex>", mapidx, listMD, s.url("/deep/"+fmt.Sprint(len(r.URL.Path))+r.URL.Path))
			return true
		}
	}},
	{"index-of-too-many", "more than", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, mapidx+listMD)
			for i := range 2000 {
				fmt.Fprintf(w, "<sitemap><loc>%s</loc></sitemap>", s.url(fmt.Sprintf("/p%d.xml", i)))
			}
			io.WriteString(w, "</sitemapindex>")
		})
	}},
	{"part-of-index-gone", "404", true, func(b *bench, s *testSource) {
		xmlAt(s, listXML, mapidx+listMD+`<sitemap><loc>`+s.url("/gone.xml")+`</loc></sitemap></sitemapindex>`)
	}},
	{"wrong-capability", "announced as resourcelist", true, func(b *bench, s *testSource) {
		xmlAt(s, listXML, urlset+`<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/></urlset>`)
	}},
	{"capability-list-offers-nothing", "neither lists nor dumps", true, func(b *bench, s *testSource) {
		xmlAt(s, s.caps, urlset+`<rs:md capability="capabilitylist"/></urlset>`)
	}},
	{"list-on-another-host", "not allowed", true, func(b *bench, s *testSource) {
		xmlAt(s, s.caps, urlset+`<rs:md capability="capabilitylist"/><url><loc>http://169.254.169.254/latest/meta-data</loc><rs:md capability="resourcelist"/></url></urlset>`)
	}},
	{"redirect-to-another-host", "not allowed", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/secret", http.StatusFound)
		})
	}},
	{"redirect-to-a-file", "scheme", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		})
	}},
	{"redirects-in-a-ring", "redirects", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, listXML, http.StatusFound) })
	}},
	{"too-many-sets", "more than", true, func(b *bench, s *testSource) {
		answerAt(s, "/.well-known/resourcesync", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, urlset+`<rs:md capability="description"/>`)
			for i := range 3000 {
				fmt.Fprintf(w, "<url><loc>%s</loc></url>", s.url(fmt.Sprintf("/s%d/capabilitylist.xml", i)))
			}
			io.WriteString(w, "</urlset>")
		})
	}},
	{"comes-back-tomorrow", "come back after 24h0m0s", true, func(b *bench, s *testSource) {
		answerAt(s, listXML, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "86400")
			http.Error(w, "busy", http.StatusServiceUnavailable)
		})
	}},
	{"million-links", "rs:ln", true, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/set/r/many.nt</loc>`+strings.Repeat(`<rs:ln rel="duplicate" href="http://x/"/>`, 20_000)+`</url>`)
	}},
	{"loc-is-no-address", "no absolute address", false, func(b *bench, s *testSource) { withEntry(b, s, `<url><loc>::::</loc></url>`) }},
	{"no-loc", "no loc", false, func(b *bench, s *testSource) { withEntry(b, s, `<url><rs:md length="7"/></url>`) }},
	{"two-locs", "more than one loc", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/set/r/e1.nt</loc><loc>BASE/set/r/e2.nt</loc></url>`)
	}},
	{"hash-is-none", "cannot be read", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/l.nt</loc><rs:md hash="sha-256:xyz"/></url>`)
	}},
	{"graph-digest-is-none", "sha-256:HEX", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/l.nt</loc><rs:md xmlns:rsb="urn:rsbridge:terms" rsb:graph="12"/></url>`)
	}},
	{"time-is-none", "no W3C Datetime", false, func(b *bench, s *testSource) {
		xmlAt(s, "/set/changelist.xml", urlset+`<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/><url><loc>`+s.url("/set/r/e9.nt")+`</loc><rs:md change="created" datetime="yesterday"/></url></urlset>`)
	}},
	{"change-without-loc", "no loc", false, func(b *bench, s *testSource) {
		xmlAt(s, "/set/changelist.xml", urlset+`<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/><url><rs:md change="created" datetime="2027-01-01T00:00:03Z"/></url></urlset>`)
	}},
	{"loc-of-a-megabyte", "loc", true, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/`+strings.Repeat("x", 1<<20)+`</loc></url>`)
	}},
	{"unknown-change", "neither created", false, func(b *bench, s *testSource) {
		xmlAt(s, "/set/changelist.xml", urlset+`<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/><url><loc>`+s.url("/set/r/e0.nt")+`</loc><rs:md change="exploded"/></url></urlset>`)
	}},
	{"change-list-is-a-dump", "Change Dump", true, func(b *bench, s *testSource) {
		xmlAt(s, "/set/changelist.xml", urlset+`<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/><url><loc>`+s.url("/x.tar.xz")+`</loc><rs:md type="application/x-xz" length="5"/></url></urlset>`)
	}},
	// ---- resources
	{"loc-on-another-host", "not allowed", false, func(b *bench, s *testSource) { withEntry(b, s, `<url><loc>http://127.0.0.1:1/admin</loc></url>`) }},
	{"loc-in-the-private-net", "not allowed", false, func(b *bench, s *testSource) { withEntry(b, s, `<url><loc>http://10.0.0.1/</loc></url>`) }},
	{"loc-is-a-file", "scheme", false, func(b *bench, s *testSource) { withEntry(b, s, `<url><loc>file:///etc/passwd</loc></url>`) }},
	{"only-duplicates-elsewhere", "404", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/set/r/none.nt</loc><rs:ln rel="duplicate" href="gsiftp://x/none"/><rs:ln rel="duplicate" href="http://10.0.0.1/none"/></url>`)
	}},
	{"version-on-another-host", "not allowed", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/set/r/none2.nt</loc><rs:ln rel="memento" href="http://10.0.0.1/v"/></url>`)
	}},
	{"hash-lies", "promise", false, func(b *bench, s *testSource) { s.put("lie.nt", nt("lie", "x")); s.lie["lie.nt"] = true }},
	{"length-lies", "promised were 7", false, func(b *bench, s *testSource) {
		s.put("len.nt", nt("len", "x"))
		delete(s.bodies, "len.nt")
		withEntry(b, s, `<url><loc>BASE/l.nt</loc><rs:md length="7"/></url>`)
		answerAt(s, "/l.nt", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, nt("len", "x")) })
	}},
	{"length-of-a-terabyte", "too large", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>BASE/l.nt</loc><rs:md length="1099511627776"/></url>`)
	}},
	{"endless-body", "too large", false, func(b *bench, s *testSource) {
		badBody(s, "endless.nt", func(w http.ResponseWriter, r *http.Request) {
			line := []byte(nt("endless", "x"))
			for r.Context().Err() == nil {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		})
	}},
	{"body-stalls", "no progress", false, func(b *bench, s *testSource) {
		badBody(s, "stall.nt", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<http://ex.org/")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
	}},
	{"body-never-begins", "no answer within", false, func(b *bench, s *testSource) {
		badBody(s, "silent.nt", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}},
	{"body-is-cut", "EOF", false, func(b *bench, s *testSource) {
		badBody(s, "cut.nt", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "<http://ex.org/")
		})
	}},
	{"gzip-that-is-none", "5 bytes came", false, func(b *bench, s *testSource) {
		badBody(s, "g.nt", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "plain")
		})
	}},
	{"gzip-bomb", "too large", false, func(b *bench, s *testSource) {
		z := gz(bytes.Repeat([]byte(" "), 8<<20))
		badBody(s, "bomb.nt", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Encoding", "gzip"); w.Write(z) })
	}},
	{"resource-redirects-away", "not allowed", false, func(b *bench, s *testSource) {
		badBody(s, "away.nt", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/x", http.StatusFound)
		})
	}},
	{"context-on-another-host", "not allowed", false, func(b *bench, s *testSource) {
		s.put("c.jsonld", `{"@context": "http://169.254.169.254/c", "@id": "http://ex.org/c", "v": "1"}`)
	}},
	{"context-redirects-away", "add it to allow", false, func(b *bench, s *testSource) {
		s.put("c.jsonld", `{"@context": "/away", "@id": "http://ex.org/c", "v": "1"}`)
		answerAt(s, "/away", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/c", http.StatusFound)
		})
	}},
	{"endless-context", "too large", false, func(b *bench, s *testSource) {
		s.put("c.jsonld", `{"@context": "/endless", "@id": "http://ex.org/c", "v": "1"}`)
		answerAt(s, "/endless", func(w http.ResponseWriter, r *http.Request) {
			for blank := bytes.Repeat([]byte(" "), 64<<10); r.Context().Err() == nil; {
				if _, err := w.Write(blank); err != nil {
					return
				}
			}
		})
	}},
	{"contexts-in-a-ring", "leads to itself", false, func(b *bench, s *testSource) {
		s.put("c.jsonld", `{"@context": "/a", "@id": "http://ex.org/c", "v": "1"}`)
		xmlAt(s, "/a", `{"@context": ["/b", "/b"]}`)
		xmlAt(s, "/b", `{"@context": ["/a", "/a"]}`)
	}},
	{"resource-needs-a-password", "401", false, func(b *bench, s *testSource) {
		badBody(s, "pw.nt", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) })
	}},
	{"not-rdf-under-an-rdf-name", "cannot be used", false, promised("bad.ttl", "this is not turtle at all {{{")},
	{"iri-breaks-out", "cannot be used", false, promised("iri.nt", `<http://ex.org/iri\u003E\u0020\u007D\u003B\u0020DROP\u0020ALL> <http://ex.org/p> "x" .`+"\n")},
	{"iri-with-a-raw-brace", "cannot be used", false, promised("brace.nt", `<http://ex.org/a} } ; DROP ALL ; INSERT DATA { GRAPH <http://x> <http://ex.org/p> "x" .`+"\n")},
	{"datatype-breaks-out", "cannot be used", false, promised("dt.nt", `<http://ex.org/dt> <http://ex.org/p> "x"^^<http://ex.org/\u003E\u0020.> .`+"\n")},
	{"language-tag-breaks-out", "cannot be used", false, promised("lang.nt", `<http://ex.org/l> <http://ex.org/p> "x"@en} .`+"\n")},
	{"remote-context", "cannot be used", false, promised("ctx.jsonld", `{"@context": "http://10.0.0.1/context.jsonld", "@id": "http://ex.org/ctx", "p": "x"}`)},
	{"context-of-its-own-host", "cannot be used", false, func(b *bench, s *testSource) {
		s.put("ctx.jsonld", `{"@context": "`+s.url("/context.jsonld")+`", "@id": "http://ex.org/ctx", "p": "x"}`)
	}},
	{"several-graphs", "cannot be used", false, promised("two.nq", "<http://a/s> <http://a/p> \"1\" <http://a/g1> .\n<http://a/s> <http://a/p> \"2\" <http://a/g2> .\n")},
	{"entities-in-rdfxml", "cannot be used", false, promised("e.rdf", `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "`+strings.Repeat("a", 2000)+`"><!ENTITY b "`+strings.Repeat("&a;", 2000)+`"><!ENTITY c "`+strings.Repeat("&b;", 2000)+`">]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="http://ex.org/e"><rdf:value>&c;</rdf:value></rdf:Description></rdf:RDF>`)},
	{"poison-graph", "blank nodes", false, func(b *bench, s *testSource) { s.put("poison.nt", clique(14)) }},
	{"deep-json", "cannot be used", false, promised("deep.jsonld", strings.Repeat(`{"@graph":[`, 20_000)+strings.Repeat(`]}`, 20_000))},
	// ---- packages
	{"package-is-no-zip", "zip", true, func(b *bench, s *testSource) { dumpOf(s, []byte("not a zip"), "") }},
	{"package-without-manifest", "manifest", true, func(b *bench, s *testSource) { dumpOf(s, zipOf(map[string]string{"a.nt": nt("a", "x")}), "") }},
	{"package-climbs-out", "..", false, func(b *bench, s *testSource) {
		entries, files := `<url><loc>http://x/a.nt</loc><rs:md path="/../../etc/passwd"/></url>`, map[string]string{"../../etc/passwd": "x"}
		for name, body := range s.bodies {
			entries += `<url><loc>` + s.url(s.folder+name) + `</loc><rs:md path="/` + name + `"/></url>`
			files[name] = string(body)
		}
		files["manifest.xml"] = manifest(entries)
		dumpOf(s, zipOf(files), "")
	}},
	{"package-bomb", "package", true, func(b *bench, s *testSource) {
		dumpOf(s, zipOf(map[string]string{"manifest.xml": manifest("") + strings.Repeat(" ", 24<<20)}), "")
	}},
	{"package-hash-lies", "promise", true, func(b *bench, s *testSource) {
		dumpOf(s, zipOf(map[string]string{"manifest.xml": manifest("")}), `hash="md5:68b329da9893e34099c7d8ad5cb9c940"`)
	}},
	{"package-length-lies", "promise", true, func(b *bench, s *testSource) {
		dumpOf(s, zipOf(map[string]string{"manifest.xml": manifest("")}), `length="5"`)
	}},
	{"package-of-a-petabyte", "too large", true, func(b *bench, s *testSource) {
		dumpOf(s, zipOf(map[string]string{"manifest.xml": manifest("")}), `length="1125899906842624"`)
	}},
	{"archive-names-itself", "neither", true, func(b *bench, s *testSource) {
		s.list, s.changes = false, false
		xmlAt(s, s.caps, urlset+`<rs:md capability="capabilitylist"/><url><loc>`+s.url("/set/changelist-archive.xml")+`</loc><rs:md capability="changelist-archive"/></url></urlset>`)
	}},
	{"package-member-lies", "in the package", false, func(b *bench, s *testSource) {
		s.list, s.changes, s.dump = false, false, true
		s.put("lie.nt", nt("lie", "x"))
		s.lie["lie.nt"] = true
	}},
	{"host-that-sounds-like-ours", "not allowed", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>http://localhost.evil.example/x.nt</loc></url>`)
	}},
	{"loc-with-a-password", "not allowed", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>http://127.0.0.1:80@evil.example/x.nt</loc></url>`)
	}},
	{"loc-of-the-loopback-in-ipv6", "not allowed", false, func(b *bench, s *testSource) {
		withEntry(b, s, `<url><loc>http://[::1]:9/x.nt</loc></url>`)
	}},
	{"member-is-missing", "by itself", false, func(b *bench, s *testSource) {
		var entries string
		files := map[string]string{}
		for k, body := range s.bodies {
			entries += `<url><loc>` + s.url("/set/r/"+k) + `</loc><rs:md path="/` + k + `"/></url>`
			files[k] = string(body)
		}
		files["manifest.xml"] = manifest(entries + `<url><loc>` + s.url("/set/r/nope.nt") + `</loc><rs:md path="/nope.nt"/></url>`)
		dumpOf(s, zipOf(files), "")
	}},
}

// TestHostileSources meets each of them as the first thing that a source says, and
// after a mirror was made of what it said before.
func TestHostileSources(t *testing.T) {
	if _, err := ledger.Unpack(ledger.Pack(nil)); err != nil { // what these share is made outside of every bubble
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, h := range hostiles {
		if names[h.name] {
			t.Fatal("two cases are called", h.name)
		}
		names[h.name] = true
		if teststores.Unraced(t, 4) {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			for _, later := range []bool{false, true} {
				if stalling[h.name] {
					synctest.Test(t, func(t *testing.T) { h.meet(t, newQuietBench(t), later) })
				} else {
					h.meet(t, newBench(t), later)
				}
			}
		})
	}
	if len(hostiles) < 60 {
		t.Errorf("the table has %d cases", len(hostiles))
	}
}

// stalling are those that are waited for, in virtual time: there no other answer is
// late.
var stalling = map[string]bool{"body-stalls": true, "body-never-begins": true}

// comparedLater has what is told where a dump that is not the first is compared
// resource by resource.
var comparedLater = map[string]string{"package-member-lies": "promised were 44", "member-is-missing": `"/nope.nt", which is not in it`}

// meet runs a sync of a hostile source, or one that is hostile later.
func (h hostile) meet(t *testing.T, b *bench, later bool) {
	s := b.src
	fill(s, 3)
	good := s.want()
	if later {
		if rep := b.sync(); !rep.InSync {
			t.Fatalf("%+v", rep)
		}
	}
	h.set(b, s)
	d := b.open()
	d.lim.Document, d.lim.Resource, d.lim.Package = 4<<20, 1<<20, 8<<20
	d.lim.Parts, d.lim.Sets = 1000, 1000
	d.lim.BlankWork = 2000
	most := time.Minute
	if stalling[h.name] {
		most = time.Hour // virtual
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	rep, err := d.Sync(ctx, SyncOptions{Full: later})
	told := ""
	if err != nil {
		told = err.Error()
	}
	for _, p := range rep.Problems {
		told += " | " + p.Reason
	}
	want := h.want
	if w, ok := comparedLater[h.name]; later && ok {
		want = w
	}
	if !strings.Contains(told, want) {
		t.Errorf("later %t: told is %q, wanted %q in it", later, clip.Middle(told), want)
	}
	if len(told) > 5000 {
		t.Errorf("later %t: a message of %d bytes", later, len(told))
	}
	if rep.InSync {
		t.Errorf("later %t: in sync", later)
	}
	if h.stop != (err != nil) {
		t.Errorf("later %t: error of the run: %v", later, err)
	}
	got := b.mir.lines(graphA)
	if h.stop && h.name != "change-list-is-a-dump" && !later {
		if len(got) > 0 {
			t.Errorf("the mirror has %d triples", len(got))
		}
	} else if (!h.stop || later) && !slices.Equal(got, good) {
		t.Errorf("later %t: the mirror has %v, the good ones are %v", later, got, good)
	}
	for g := range b.mir.graphs {
		if g != graphA && g != sink.StateGraph {
			t.Errorf("graph %q appeared", g)
		}
	}
}

// What looks dangerous and is data goes through unchanged.
func TestHarmlessLooksDangerous(t *testing.T) {
	b := newBench(t)
	b.src.put("e.nt", `<http://ex.org/e> <http://ex.org/p> "\" } ; DROP ALL ; #" .
<http://ex.org/e> <http://ex.org/p> "back\\u0022slash \\U00000022" .
<http://ex.org/e> <http://ex.org/p> "line\nend\ttab" .
<http://ex.org/e> <http://ex.org/p> "''' \"\"\" {{ }}" .
<http://ex.org/e> <http://ex.org/p> "\u0001\u0007"@EN-us .
<http://ex.org/e> <http://ex.org/p> "ünïcödé 😀" .
`)
	b.cfg.Concurrency = 1
	if rep := b.sync(); !rep.InSync {
		t.Fatalf("%+v", rep)
	}
	b.equal()
	b.src.put("e.nt", nt("e", "x"))
	b.sync()
	b.equal()
}
