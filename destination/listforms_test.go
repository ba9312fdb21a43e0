package destination

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/rsbridge/rsbridge/destination/sink/filesink"
)

// listForms are forms of a list without the words of ResourceSync, with the media type of each.
var listForms = map[string]struct{ typ, before, entry, after string }{
	"text":           {"text/plain", "", "ADDRESS\n", ""},
	"text as RDF":    {"text/turtle", "", "ADDRESS\n", ""},
	"Atom":           {"application/atom+xml", `<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title>`, `<entry><link href="ADDRESS"/><id>urn:x</id></entry>`, `</feed>`},
	"RSS":            {"application/rss+xml", `<rss version="2.0"><channel><title>x</title>`, `<item><link>ADDRESS</link></item>`, `</channel></rss>`},
	"page":           {"text/html", `<!DOCTYPE html><html><body>`, `<a href="ADDRESS">x</a>`, `</body></html>`},
	"relative page":  {"text/html", `<html><body>`, `<a href='PATH?'>x</a><a href='PATH'>x</a>`, `</body></html>`},
	"page of a base": {"text/html", `<html><head><base href="/r/"></head><body>`, `<a href="NAME">x</a>`, `</body></html>`},
	"feed of a base": {"application/xml", `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="BASE/r/">`, `<entry><link href="NAME"/></entry>`, `</feed>`},
	"Markdown":       {"text/markdown", "# Resources\n", "* [x](ADDRESS)\n", ""},
	"table":          {"text/csv", "loc,length\n", "ADDRESS,17\n", ""},
	"JSON":           {"application/json", `[`, `{"url":"ESCAPED"},`, `{}]`},
	"JSON paths":     {"application/json", `{"r":[`, `"PATH",`, `""]}`},
}

func formOf(name string, first, last int) string {
	f := listForms[name]
	out := f.before
	for i := first; i < last; i++ {
		name := fmt.Sprintf("%d.nt", i)
		address := webHost + "/r/" + name
		out += strings.NewReplacer("ADDRESS", address, "ESCAPED", strings.ReplaceAll(address, "/", `\/`), "PATH", "/r/"+name, "NAME", name).Replace(f.entry)
	}
	return strings.ReplaceAll(out+f.after, "BASE", webHost)
}

func utf16Of(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

func gzipOf(s string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write([]byte(s))
	z.Close()
	return out.String()
}

// A body without RDF is a list, in whatever form, if it names what is mirrored and has no entry: then
// nothing goes for want of one. It is a resource again when it names none of that.
func TestListInAnotherForm(t *testing.T) {
	at := `at="2025-02-01T00:00:00Z"`
	entries := map[string]string{"plain": "", "dated": lastYear, "typed": `<rs:md type="TYPE"/>`}
	codings := map[string]func(string) string{"": func(s string) string { return s }, " packed": gzipOf, " wide": utf16Of}
	for form, f := range listForms {
		for entry, more := range entries {
			for coding, code := range codings {
				if coding != "" && entry != "plain" || coding == " wide" && form != "page" { // others are known as lists already
					continue
				}
				for _, folder := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %s%s %t", form, entry, coding, folder), func(t *testing.T) {
						w := web{}
						w.resources(5)
						w.list("/list", "urlset", "resourcelist", at, resourcesOf(0, 5, lastYear)...)
						b := webBench(t, w, "/list")
						kept := func() int { return len(b.mir.lines(graphA)) }
						if folder {
							dir := t.TempDir()
							b.cfg.GraphIRI, b.sink = "", sinkOf(t, filesink.Open, dir)
							kept = func() int { return len(filesIn(t, dir)) }
						}
						if rep := b.sync(); !rep.InSync || rep.Created != 5 {
							t.Fatalf("%+v", rep)
						}
						serve := func(body string) {
							w["/more"] = func(int) (int, http.Header, string) {
								return 200, http.Header{"Content-Type": {f.typ}}, code(body)
							}
						}
						serve(formOf(form, 3, 5))
						w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/more", strings.ReplaceAll(more, "TYPE", f.typ)))...)
						problem := ""
						for n, o := range []SyncOptions{{}, {}, {Full: true}, {Retry: true}, {}, {Full: true, Retry: true}} {
							rep, err := b.open().Sync(t.Context(), o)
							if err != nil || rep.Deleted > 0 || rep.InSync || kept() != 5 {
								t.Fatalf("%d: %+v %v, %d kept", n, rep, err, kept())
							}
							if (n == 0 || o.Full) && !strings.Contains(rep.Why, "1 entry leads to a further list instead of a resource, so none of the 2 resources") {
								t.Errorf("%d: %s", n, rep.Why)
							}
							for _, p := range rep.Problems {
								problem = p.Reason
							}
							b.clock = b.clock.Add(2 * time.Second)
						}
						audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
						if err != nil || audit.Equal || audit.Extra > 0 || !strings.Contains(audit.SourceError, "leads to a further list") || kept() != 5 {
							t.Errorf("%+v %v", audit, err)
						}
						if !strings.Contains(problem, "it names "+webHost+"/r/3.nt, which is mirrored and has no entry: it is a list, and no resource") {
							t.Error(problem)
						}
						if f.typ == "text/turtle" {
							return
						}
						serve(strings.ReplaceAll(formOf(form, 0, 3), "/more", ""))
						b.clock = b.clock.Add(2 * time.Hour)
						b.sync()
						want := 3
						if folder {
							want++ // the page
						}
						if rep := b.sync(); !rep.InSync || kept() != want {
							t.Errorf("%+v, %d kept", rep, kept())
						}
					})
				}
			}
		}
	}
}

// A page is no list for what it says of itself, or of what has an entry; nor is one that was there
// before, unless it changed. A new body without a byte may become a list.
func TestPageAmongResources(t *testing.T) {
	page := func(links ...string) string {
		return `<!DOCTYPE html><html><head>` + links[0] + `</head><body>` + strings.Join(links[1:], " ") + `</body></html>`
	}
	to := func(n int) string { return fmt.Sprintf(`<a href="/r/%d.nt">x</a>`, n) }
	alternate := `<link rel="alternate" type="application/n-triples" href="/r/4.nt"/>`
	of4 := `<rs:ln rel="alternate" type="application/n-triples" href="` + webHost + `/r/4.nt"/>`
	for name, c := range map[string]struct {
		before, entry, body, after string
		left                       int
	}{
		"of listed ones":        {"", "", page("", to(0), to(2)), "", 3},
		"of itself":             {"", "", page(alternate, to(4)), "", 4},
		"of itself and another": {"", "", page(alternate, to(4), to(3)), "", 5},
		"by its entry":          {"", of4, page("", to(4)), "", 4},
		"known":                 {page("", to(3)), lastYear, page("", to(3)), "", 3},
		"known, undated":        {page("", to(3)), "", page("", to(3)), "", 5},
		"changed":               {page("", to(0)), lastYear, page("", to(3)), `<lastmod>2025-01-02T00:00:00Z</lastmod>`, 5},
		"changed, undated":      {page("", to(0)), "", page("", to(3)), "", 5},
		"of a file":             {"", `<rs:md type="image/svg+xml"/>`, page("", to(3)), "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := web{}
			w.resources(5)
			serve := func(body string) {
				w["/page"] = func(int) (int, http.Header, string) { return 200, http.Header{"Content-Type": {"text/html"}}, body }
			}
			entries := resourcesOf(0, 5, lastYear)
			if c.before != "" {
				serve(c.before)
				entries = append(entries, urlOf("/page", c.entry))
			}
			w.list("/list", "urlset", "resourcelist", `at="2025-02-01T00:00:00Z"`, entries...)
			b := webBench(t, w, "/list")
			b.sync()
			if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 5 {
				t.Fatalf("%+v", rep)
			}
			serve(c.body)
			w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/page", cmp.Or(c.after, c.entry)))...)
			rep := b.sync()
			if n := len(b.mir.lines(graphA)); n != c.left || strings.Contains(rep.Why, "further list") != (n == 5) {
				t.Errorf("%d triples: %+v", n, rep)
			}
		})
	}
	t.Run("empty", func(t *testing.T) {
		w := web{}
		w.resources(5)
		w.list("/list", "urlset", "resourcelist", `at="2025-02-01T00:00:00Z"`, resourcesOf(0, 5, lastYear)...)
		b := webBench(t, w, "/list")
		b.sync()
		w.put("/more", "")
		w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/more", ""))...)
		for range 4 {
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true, Retry: true}); err != nil || rep.Deleted > 0 || rep.InSync || !strings.Contains(rep.Why, "may lead to a further list") {
				t.Errorf("%+v %v", rep, err)
			}
			b.clock = b.clock.Add(5 * time.Minute)
		}
		b.clock = b.clock.Add(time.Hour)
		b.sync()
		if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 3 {
			t.Errorf("%+v", rep)
		}
	})
}
