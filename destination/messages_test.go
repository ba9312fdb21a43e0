package destination

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// A message tells an address once.
func TestMessagesTellAnAddressOnce(t *testing.T) {
	b := newBench(t)
	b.cfg.Source = b.src.url("/.well-known/resourcesync")
	b.src.srv.Close()
	_, err := b.open().Sync(context.Background(), SyncOptions{})
	if err == nil || strings.Count(err.Error(), b.cfg.Source) != 1 || strings.Contains(err.Error(), "Get ") || !strings.Contains(err.Error(), "is the source running") {
		t.Fatal(err)
	}
	b = newBench(t)
	b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "http://10.0.0.1/x", http.StatusFound)
		return true
	}
	_, err = b.open().Sync(context.Background(), SyncOptions{})
	if err == nil || strings.Count(err.Error(), b.cfg.Source) != 1 || strings.Count(err.Error(), "http://10.0.0.1/x") != 1 || !strings.Contains(err.Error(), "not allowed") {
		t.Fatal(err)
	}
}

// A certificate that nobody here trusts, and https where none is spoken, are explained.
func TestMessageTellsWhatToDoAboutHTTPS(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := newTestSource(t).srv.URL
	for address, want := range map[string]string{secure.URL: "SSL_CERT_FILE", strings.Replace(plain, "http:", "https:", 1): "use http:// instead"} {
		b := newBench(t)
		b.cfg.Source = address + "/set/capabilitylist.xml"
		if _, err := b.open().Sync(t.Context(), SyncOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What is cut out of a long address is whole letters.
func TestShortenedMessagesAreText(t *testing.T) {
	for n := range 4 {
		long := strings.Repeat("x", 196+n) + strings.Repeat("\u20ac", 100)
		if short := clip.Middle(long); !utf8.ValidString(short) || len(short) > 270 || !strings.HasSuffix(short, "\u20ac") {
			t.Errorf("%q", short)
		}
	}
}

// IRIs with characters that no IRI may have: the resource stays failed, and the
// message names the character and the entity.
func TestForbiddenCharacters(t *testing.T) {
	for escape, want := range map[string]string{`\u0020`: "U+0020", `\u007B`: "U+007B", `\u0022`: "U+0022", `\u005C`: "U+005C", `\u003C`: "U+003C", `\u000A`: "U+000A", `\U00000060`: "U+0060"} {
		for _, place := range []string{"S", "P", "O", "D"} {
			b := newBench(t)
			b.src.ours = true
			fill(b.src, 2)
			iri := "<http://ex.org/x" + escape + "y>"
			line := map[string]string{"S": iri + " <http://ex.org/p> \"v\" .\n", "P": "<http://ex.org/bad> " + iri + " \"v\" .\n", "O": "<http://ex.org/bad> <http://ex.org/p> " + iri + " .\n", "D": "<http://ex.org/bad> <http://ex.org/p> \"v\"^^" + iri + " .\n"}[place]
			b.src.put("bad.nt", line)
			rep := b.sync()
			if rep.InSync || rep.Failed != 1 || rep.Created != 2 {
				t.Fatalf("%s %s: %+v", escape, place, rep)
			}
			if p := rep.Problems[0]; !strings.Contains(p.Reason, want) || !strings.Contains(p.Reason, "http://ex.org/bad") || p.Entity != "http://ex.org/bad" {
				t.Errorf("%s %s: wanted %s in %s", escape, place, want, p.Reason)
			}
		}
	}
}

// Where loc is no RDF the best alternate is taken, with its own promise.
func TestAlternateIsChosen(t *testing.T) {
	b := newBench(t)
	s := b.src
	body := map[string][2]string{ // address: type, body
		"/x/page.html": {"text/html", "<html>a page</html>"},
		"/x/page.rdf":  {"application/rdf+xml", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/"><rdf:Description rdf:about="http://ex.org/page"><e:from>rdfxml</e:from></rdf:Description></rdf:RDF>`},
		"/x/page.ttl":  {"text/turtle", `<http://ex.org/page> <http://ex.org/from> "turtle" .`},
		"/x/lie.nt":    {"application/n-triples", "<http://ex.org/page> <http://ex.org/from> \"lie\" .\n"},
	}
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		f, ok := body[r.URL.Path]
		if ok {
			w.Header().Set("Content-Type", f[0])
			io.WriteString(w, f[1])
		}
		return ok
	}
	entry := func(links string) string {
		return `<url><loc>BASE/x/page.html</loc><rs:md type="text/html"/>` + links + `<rs:ln rel="canonical" href="http://ex.org/page"/></url>`
	}
	rdfxml := `<rs:ln rel="alternate" type="application/rdf+xml" href="BASE/x/page.rdf"/>`
	for name, c := range map[string]struct{ links, want string }{
		"cheapest to read":                {rdfxml + `<rs:ln rel="alternate" type="text/turtle" href="BASE/x/page.ttl"/>`, "turtle"},
		"the only one":                    {`<rs:ln rel="alternate" type="text/html" href="BASE/x/page.html"/>` + rdfxml, "rdfxml"},
		"by preference":                   {`<rs:ln rel="alternate" type="text/turtle" pri="2" href="BASE/x/none.ttl"/><rs:ln rel="alternate" type="text/turtle" pri="1" href="BASE/x/page.ttl"/>`, "turtle"},
		"when another is not as promised": {`<rs:ln rel="alternate" type="application/n-triples" length="3" href="BASE/x/lie.nt"/>` + rdfxml, "rdfxml"},
		"when another is gone":            {`<rs:ln rel="alternate" type="application/n-triples" href="BASE/x/none.nt"/>` + rdfxml, "rdfxml"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.src.hook = s.hook
			withEntry(b, b.src, entry(c.links))
			if rep := b.sync(); !rep.InSync || rep.Created != 1 {
				t.Fatalf("%+v", rep)
			}
			b.same(b.mir.lines(graphA), []string{`<http://ex.org/page> <http://ex.org/from> "` + c.want + "\" .\n"})
			rec, err := b.d.mem.Ledger.Record(t.Context(), ledger.HashOf(b.src.url("/x/page.html")))
			if err != nil || rec == nil || rec.Entity != "http://ex.org/page" {
				t.Fatalf("%+v %v", rec, err)
			}
		})
	}
}

// A duplicate stands in for a location that fails, in the order of pri, and only
// with the bytes that were promised.
func TestDuplicateReplacesLocation(t *testing.T) {
	good := nt("d", "x")
	promise := `<rs:md type="application/n-triples" length="` + fmt.Sprint(len(good)) + `" hash="sha-256:` + fmt.Sprintf("%x", sha256.Sum256([]byte(good))) + `"/>`
	for name, c := range map[string]struct {
		links string
		ok    bool
		asked string
	}{
		"the first that is there":        {`<rs:ln rel="duplicate" pri="2" href="BASE/x/two.nt"/><rs:ln rel="duplicate" pri="1" href="BASE/x/none.nt"/>`, true, "/x/two.nt"},
		"not one that lies":              {`<rs:ln rel="duplicate" pri="1" href="BASE/x/lie.nt"/><rs:ln rel="duplicate" pri="2" href="BASE/x/two.nt"/>`, true, "/x/two.nt"},
		"one that lies alone":            {`<rs:ln rel="duplicate" href="BASE/x/lie.nt"/>`, false, "/x/lie.nt"},
		"none is asked when loc is well": {`<rs:ln rel="duplicate" href="BASE/x/two.nt"/>`, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			asked := map[string]bool{}
			var mu sync.Mutex
			b.src.hook = func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				asked[r.URL.Path] = true
				mu.Unlock()
				switch r.URL.Path {
				case "/x/d.nt":
					if c.asked != "" {
						http.Error(w, "broken", http.StatusInternalServerError)
						return true
					}
					io.WriteString(w, good)
				case "/x/two.nt":
					io.WriteString(w, good)
				case "/x/lie.nt":
					io.WriteString(w, nt("d", "lie"))
				default:
					return false
				}
				return true
			}
			withEntry(b, b.src, `<url><loc>BASE/x/d.nt</loc>`+promise+c.links+`</url>`)
			rep := b.sync()
			if rep.InSync != c.ok {
				t.Fatalf("%+v", rep)
			}
			want := []string{good}
			if !c.ok {
				want = nil
			}
			b.same(b.mir.lines(graphA), want)
			mu.Lock()
			defer mu.Unlock()
			if c.asked != "" && !asked[c.asked] || c.asked == "" && asked["/x/two.nt"] {
				t.Errorf("asked %v", asked)
			}
		})
	}
}
