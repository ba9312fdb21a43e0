package destination

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

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

	"unquoted page": {"text/html", `<html><body>`, `<a href=PATH>x</a>`, `</body></html>`},
	"unquoted base": {"text/html", `<html><head><base href=/r/></head><body>`, `<a href=NAME>x</a>`, `</body></html>`},
	"RSS 1.0": {"application/rdf+xml", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="BASE/more"/>`,
		`<item rdf:about="ADDRESS"><link>ADDRESS</link></item>`, `</rdf:RDF>`},
	"JSON escapes": {"application/json", `{"r":[`, `"UNICODE",`, `""]}`},
	"percent":      {"text/plain", "", "BASE/%72/NAME\n", ""},
	"in a query":   {"text/plain", "", "https://other.example/?u=QUERY&x=1\n", ""},
	"secure":       {"text/plain", "", "https://source.example/r/NAME\n", ""},
	"other host":   {"text/plain", "", "http://www.SOURCE.example.:80/r/../r/NAME#x\n", ""},
	"one line":     {"text/plain", strings.Repeat("http://other.example/x|", 500), "ADDRESS|", ""},
	"YAML":         {"text/yaml", "r:\n", "- {loc: ADDRESS, path:PATH}\n", ""},
}

func formOf(name string, first, last int) string {
	f := listForms[name]
	out := f.before
	for i := first; i < last; i++ {
		name := fmt.Sprintf("%d.nt", i)
		address := webHost + "/r/" + name
		out += strings.NewReplacer("ADDRESS", address, "ESCAPED", strings.ReplaceAll(address, "/", `\/`), "UNICODE", strings.ReplaceAll(address, "/", `\u002F`), "QUERY", url.QueryEscape(address), "PATH", "/r/"+name, "NAME", name).Replace(f.entry)
	}
	return strings.ReplaceAll(out+f.after, "BASE", webHost)
}

func utf16Of(s string) string { return "\xff\xfe" + unmarked16Of(s) }

func unmarked16Of(s string) string {
	var out []byte
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

func zstdOf(s string) string {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return string(z.EncodeAll([]byte(s), nil))
}

// A body without RDF is a list, in whatever form, if it names what is mirrored and has no entry: then
// nothing goes for want of one. It is a resource again when it names none of that.
func TestListInAnotherForm(t *testing.T) {
	at := `at="2025-02-01T00:00:00Z"`
	entries := map[string]string{"plain": "", "dated": lastYear, "typed": `<rs:md type="TYPE"/>`}
	codings := map[string]func(string) string{
		"": func(s string) string { return s }, " packed": gzipOf, " wide": utf16Of,
		" unmarked wide": unmarked16Of, " zstd": zstdOf, " ZIP": func(s string) string { return string(zipOf(map[string]string{"1": "x", "2": gzipOf(s)})) },
	}
	for form, f := range listForms {
		for entry, more := range entries {
			for coding, code := range codings {
				if coding != "" && (entry != "plain" || form != "page" && coding != " packed") { // others are known as lists already
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
						if !strings.Contains(problem, "it names http") || !strings.Contains(strings.Replace(problem, "?", "", 1), "/3.nt, which is mirrored and has no entry: it is a list, and no resource") {
							t.Error(problem)
						}
						if f.typ == "text/turtle" || form == "RSS 1.0" {
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

// The signs that end addresses in some forms stand in others' addresses.
func TestListOfAddressesWithSigns(t *testing.T) {
	for _, path := range []string{"/r/it's/0", "/r/0'", "/r/(0)", "/r/a(b,c)", "/r/a;v=1,2", "/r/~n:(1)", "/get?q='a','b'"} {
		for form, f := range listForms {
			if !strings.Contains(f.entry, "ADDRESS") && !strings.Contains(f.entry, "ESCAPED") && !strings.Contains(f.entry, "UNICODE") {
				continue
			}
			t.Run(form+" "+path, func(t *testing.T) {
				w := web{}
				w.resources(3)
				w[path] = w["/r/0.nt"]
				entries := append(resourcesOf(1, 3, lastYear), urlOf(path, lastYear+`<rs:md type="application/n-triples"/>`))
				w.list("/list", "urlset", "resourcelist", `at="2025-02-01T00:00:00Z"`, entries...)
				b := webBench(t, w, "/list")
				if rep := b.sync(); !rep.InSync || rep.Created != 3 {
					t.Fatalf("%+v", rep)
				}
				w["/more"] = func(int) (int, http.Header, string) {
					return 200, http.Header{"Content-Type": {f.typ}}, inForm(form, []string{webHost + path})
				}
				w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(entries[:2:2], urlOf("/more", lastYear))...)
				if rep := b.sync(); rep.InSync || rep.Deleted > 0 || len(b.mir.lines(graphA)) != 3 {
					t.Errorf("%+v", rep)
				}
			})
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

// A body that cannot be read may be a list: what has no entry beside it waits for a person. A picture is
// none, nor is what was there before.
func TestUnreadableBody(t *testing.T) {
	xz := "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01\x16\x00\x00\x00t/\xe5\xa3\x01\x00\x1chttp"
	for name, c := range map[string]struct {
		body, entry string
		holds       bool
	}{
		"xz":        {xz, "", true},
		"named":     {xz, `<rs:md type="application/x-xz"/>`, true},
		"bytes":     {xz, `<rs:md type="application/octet-stream"/>`, true},
		"cut gzip":  {gzipOf(strings.Repeat("x y ", 500))[:20], "", true},
		"cut ZIP":   {string(zipOf(map[string]string{"1": "x"}))[:40], "", true},
		"other":     {"\x01\x02\x03", "", true},
		"picture":   {"\x89PNG\x0d\x0a\x1a\x0a\x00\x01", "", false},
		"document":  {"%PDF-1.7\n\x01\x02", "", false},
		"of a kind": {"\x01\x02\x03", `<rs:md type="application/x-hdf5"/>`, false},
		"text":      {"caf\xe9\r\n\x1b", "", false},
		"packed":    {gzipOf("text"), "", false},
	} {
		for _, folder := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", folder), func(t *testing.T) {
				w := web{}
				w.resources(5)
				w.list("/list", "urlset", "resourcelist", `at="2025-02-01T00:00:00Z"`, resourcesOf(0, 5, lastYear)...)
				b := webBench(t, w, "/list")
				kept := func() int { return len(b.mir.lines(graphA)) }
				if folder {
					dir := t.TempDir()
					b.cfg.GraphIRI, b.sink = "", sinkOf(t, filesink.Open, dir)
					kept = func() int { return len(filesIn(t, dir)) }
				}
				b.sync()
				w.put("/more", c.body)
				w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/more", c.entry))...)
				others := map[bool]int{folder: 1}[true]
				var rep SyncReport
				for _, o := range []SyncOptions{{}, {}, {Full: true}, {Retry: true}, {Full: true, Retry: true}} {
					var err error
					if rep, err = b.open().Sync(t.Context(), o); err != nil || rep.InSync == c.holds || (kept() == 5) != c.holds {
						t.Fatalf("%+v %v, %d kept", rep, err, kept())
					}
					b.clock = b.clock.Add(time.Hour)
				}
				audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
				if err != nil || c.holds && audit.Equal || kept() != 5 && c.holds {
					t.Errorf("%+v %v", audit, err)
				}
				if c.holds {
					if !strings.Contains(rep.Held, "an entry that cannot be read may lead to a further list: 2 resources are kept without an entry; if that is right: rsbridge accept") {
						t.Error(rep.Held)
					}
					held, err := b.open().Held(t.Context(), "", 10)
					if err != nil || held == nil || len(held.Items) != 2 {
						t.Fatalf("%+v %v", held, err)
					}
					if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: held.ID}); err != nil || rep.Deleted != 2 {
						t.Errorf("%+v %v", rep, err)
					}
					b.clock = b.clock.Add(48 * time.Hour)
					b.sync()
				}
				if rep := b.sync(); !rep.InSync || kept() != 3+others {
					t.Errorf("%+v, %d kept", rep, kept())
				}
				// What is known is no reason to keep others.
				w.list("/list", "urlset", "resourcelist", `at="2025-02-03T00:00:00Z"`, append(resourcesOf(0, 2, lastYear), urlOf("/more", c.entry))...)
				if rep := b.sync(); !rep.InSync || kept() != 2+others {
					t.Errorf("%+v, %d kept", rep, kept())
				}
			})
		}
	}
}

// A member of a dump may be a list as well, or one that cannot be read. It is one whether or not its own
// address has it.
func TestListInAnotherFormInDump(t *testing.T) {
	address := func(n string) string { return "SOURCE/set/r/" + n }
	for name, c := range map[string]struct{ body, why string }{
		"text":       {address("b.nt"), "1 entry leads to a further list instead of a resource, so none of the 1 resources"},
		"page":       {"<html><body><a href=/set/r/b.nt>x</a></body></html>", "1 entry leads to a further list"},
		"RSS 1.0":    {`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="urn:x"/><item rdf:about="` + address("b.nt") + `"/></rdf:RDF>`, "1 entry leads to a further list"},
		"unreadable": {"\xfd7zXZ\x00\x01", "an entry that cannot be read may lead to a further list: 1 resource is kept without an entry"},
		"other":      {"<html><body><a href=/set/r/a.nt>x</a></body></html>", ""},
	} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", there), func(t *testing.T) {
				b := newQuietBench(t)
				b.cfg.MaxDeleteRatio = 1
				s := b.src
				body := strings.ReplaceAll(c.body, "SOURCE", s.srv.URL)
				at := 0
				pack := func(more bool, names ...string) {
					entries, files := "", map[string]string{}
					for _, n := range names {
						entries += `<url><loc>` + s.url("/set/r/"+n) + `</loc><rs:md path="/` + n + `"/></url>`
						files[n] = nt(n, "x")
					}
					if more {
						entries += `<url><loc>` + s.url("/set/r/more") + `</loc><rs:md path="/more"/></url>`
						files["more"] = body
						if there {
							s.put("more", body)
						}
					}
					files["manifest.xml"] = manifest(entries)
					at++
					dumpOf(s, zipOf(files), fmt.Sprintf(`at="2025-02-0%dT00:00:00Z"`, at))
				}
				kept := func() int { return strings.Count(strings.Join(b.mir.lines(graphA), "\n"), `"x"`) }
				pack(false, "a.nt", "b.nt")
				if rep := b.sync(); rep.Created != 2 {
					t.Fatalf("%+v", rep)
				}
				pack(true, "a.nt")
				for range 3 {
					rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true})
					if err != nil || (rep.Deleted == 0 && !rep.InSync && kept() == 2) != (c.why != "") || !strings.Contains(rep.Why+rep.Held, c.why) {
						t.Fatalf("%+v %v", rep, err)
					}
					if c.why == "" {
						return
					}
					b.clock = b.clock.Add(time.Hour)
					pack(true, "a.nt")
				}
				pack(true, "a.nt", "b.nt")
				b.sync()
				if rep := b.sync(); !rep.InSync || kept() != 2 {
					t.Errorf("%+v, %d", rep, kept())
				}
			})
		}
	}
}
