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
	"github.com/rsbridge/rsbridge/internal/teststores"
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
	"RSS 0.90": {"application/rdf+xml", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel><title>x</title></channel>`,
		`<item><link>ADDRESS</link></item>`, `</rdf:RDF>`},
	"RSS 1.1": {"application/rdf+xml", `<Channel rdf:about="BASE/more" xmlns="http://purl.org/net/rss1.1#" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><items rdf:parseType="Collection">`,
		`<item rdf:about="ADDRESS"/>`, `</items></Channel>`},
	"XML as RDF":  {"application/rdf+xml", `<urls xmlns="http://x.example/">`, `<url>ADDRESS</url>`, `</urls>`},
	"catalogue":   {"text/turtle", "<http://x.example/catalogue> <http://www.w3.org/ns/dcat#dataset> ", "<ADDRESS>, ", "<http://x.example/last> .\n"},
	"JSON as RDF": {"application/ld+json", `{"urls":[`, `"ADDRESS",`, `""]}`},
	"nodes":       {"application/ld+json", `[`, `{"@id":"ADDRESS"},`, `{}]`},
	"comments":    {"text/turtle", "", "# ADDRESS\n", ""},
	"robots.txt":  {"text/plain", "User-agent: *\n", "Allow: PATH\n", ""},
	"Parquet":     {"application/vnd.apache.parquet", "PAR1\x15\x04", "\x00\xd1NAME", "PAR1"},
	"Brotli":      {"application/x-brotli", "\x1b\xff\x03\x00", "\xf8\x9f", "\x03"},
	"names":       {"text/csv", "id,title\n", "NAME,x\n", ""},
	"other paths": {"text/plain", "", "BASE//r//NAME\n", ""},
	"other name":  {"text/plain", "", "http://elsewhere.example/r/NAME\n", ""},
	"broken href": {"text/html", "<html><body>", "<a href=\"/r\n/NAME\">x</a>", "</body></html>"},

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

// A new entry without RDF may lead to a list, in whatever form, while resources have lost their entries and
// are there still: then they wait for a person. It is a resource once they are gone.
func TestListInAnotherForm(t *testing.T) {
	at := `at="2025-02-01T00:00:00Z"`
	entries := map[string]string{"plain": "", "dated": lastYear, "typed": `<rs:md type="TYPE"/>`}
	codings := map[string]func(string) string{
		"": func(s string) string { return s }, " packed": gzipOf,
		" zstd": zstdOf, " ZIP": func(s string) string { return string(zipOf(map[string]string{"1": "x", "2": gzipOf(s)})) },
	}
	for form, f := range listForms {
		if form == "catalogue" { // TestListTakenAsResource
			continue
		}
		for entry, more := range entries {
			for coding, code := range codings {
				if coding != "" && (entry != "plain" || form != "page" && coding != " packed") { // others are known as lists already
					continue
				}
				for _, folder := range []bool{false, true} {
					if folder && entry != "plain" {
						continue
					}
					if teststores.Unraced(t, 7) {
						continue
					}
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
							if !strings.Contains(rep.Held, "the new entry http://source.example/more may lead to a further list: 2 resources are kept without an entry, and without a 404 or 410 from the source; if that is right: rsbridge accept") {
								t.Errorf("%d: %s", n, rep.Held)
							}
							for _, p := range rep.Problems {
								problem = p.Reason
							}
							b.clock = b.clock.Add(2 * time.Second)
						}
						audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: true})
						if err != nil || audit.Equal || audit.Extra > 0 || !strings.Contains(audit.SourceError, "1 new entry brings no RDF, and may lead to a further list") || kept() != 5 {
							t.Errorf("%+v %v", audit, err)
						}
						if !strings.HasPrefix(problem, "http://source.example/more cannot be used: ") || !strings.Contains(problem, ".nt has lost its entry and answers 200, so it may lead to a further list, and no resource") {
							t.Error(problem)
						}
						delete(w, "/r/3.nt")
						if rep := b.sync(); rep.InSync || rep.Deleted != 1 || kept() != 4 || !strings.Contains(rep.Held, "1 resource is kept without an entry") {
							t.Errorf("%+v, %d kept", rep, kept())
						}
						w["/r/4.nt"] = func(int) (int, http.Header, string) { return 410, nil, "" }
						rep := b.sync()
						if rep.Deleted != 1 || rep.Held != "" {
							t.Errorf("%+v, %d kept", rep, kept())
						}
						if f.typ != "text/turtle" && f.typ != "application/ld+json" && (!rep.InSync || folder && kept() != 4) { // others are broken, or in doubt
							t.Errorf("%+v, %d kept", rep, kept())
						}
					})
				}
			}
		}
	}
}

// Only a new page may lead to a list, or a changed one, and only while something without an entry is there.
// A page with a link to RDF is replaced by it.
func TestPageAmongResources(t *testing.T) {
	page := func(links ...string) string {
		return `<!DOCTYPE html><html><head>` + links[0] + `</head><body>` + strings.Join(links[1:], " ") + `</body></html>`
	}
	to := func(n int) string { return fmt.Sprintf(`<a href="/r/%d.nt">x</a>`, n) }
	alternate := `<link rel="alternate" type="application/n-triples" href="/r/4.nt"/>`
	of4 := `<rs:ln rel="alternate" type="application/n-triples" href="` + webHost + `/r/4.nt"/>`
	for name, c := range map[string]struct {
		before, entry, body, after string
		status                     int // of a resource without its entry
		left                       int
	}{
		"new":              {"", "", page("", to(3)), "", 200, 5},
		"new, of others":   {"", "", page("", to(0)), "", 200, 5},
		"new, typed":       {"", `<rs:md type="text/html"/>`, page("", to(3)), "", 200, 5},
		"gone":             {"", "", page("", to(3)), "", 410, 3},
		"not there":        {"", `<rs:md type="text/html"/>`, page("", to(3)), "", 404, 3},
		"forbidden":        {"", "", page("", to(3)), "", 403, 5},
		"failing":          {"", "", page("", to(3)), "", 500, 5},
		"of itself":        {"", "", page(alternate, to(4), to(3)), "", 200, 4},
		"by its entry":     {"", of4, page("", to(4)), "", 200, 4},
		"known":            {page("", to(3)), lastYear, page("", to(3)), "", 200, 3},
		"known, undated":   {page("", to(3)), "", page("", to(3)), "", 200, 3},
		"changed":          {page("", to(0)), lastYear, page("", to(3)), `<lastmod>2025-01-02T00:00:00Z</lastmod>`, 200, 5},
		"changed, undated": {page("", to(0)), "", page("", to(3)), "", 200, 5},
		"of a file":        {"", `<rs:md type="image/svg+xml"/>`, page("", to(3)), "", 200, 3},
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
			if c.status != 200 {
				for _, path := range []string{"/r/3.nt", "/r/4.nt"} {
					w[path] = func(int) (int, http.Header, string) { return c.status, nil, "" }
				}
			}
			w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/page", cmp.Or(c.after, c.entry)))...)
			for _, dry := range []bool{false, true} {
				rep, err := b.open().Sync(t.Context(), SyncOptions{DryRun: dry})
				if n := len(b.mir.lines(graphA)); err != nil || n != c.left || dry && rep.Deleted != 0 || strings.Contains(rep.Held, "the new entry http://source.example/page may lead") != (n == 5) {
					t.Errorf("%t, %d triples: %+v %v", dry, n, rep, err)
				}
			}
			if c.left < 5 {
				return
			}
			held, err := b.open().Held(t.Context(), "", 10)
			if err != nil || held == nil || len(held.Items) != 2 || held.Deletions != 2 {
				t.Fatalf("%+v %v", held, err)
			}
			if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: held.ID}); err != nil || rep.Deleted != 2 || !rep.InSync || len(b.mir.lines(graphA)) != 3 {
				t.Errorf("%+v %v", rep, err)
			}
			if rep := b.sync(); !rep.InSync || rep.Mode == "baseline" {
				t.Errorf("%+v", rep)
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

// Pictures and documents hold no list, by their bytes or their type.
func TestNoList(t *testing.T) {
	for name, c := range map[string]struct {
		body, typ string
		holds     bool
	}{
		"xz":       {"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F", "", true},
		"bytes":    {"\x01\x02\x03", "application/octet-stream", true},
		"cut ZIP":  {string(zipOf(map[string]string{"1": "x"}))[:40], "", true},
		"office":   {"PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", false},
		"docx":     {string(zipOf(map[string]string{"[Content_Types].xml": "<Types/>", "word/media/1.png": "\x89PNG\x00\x01"})), "", false},
		"odt":      {string(zipOf(map[string]string{"mimetype": "application/vnd.oasis.opendocument.text"})), "", false},
		"doc":      {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x01", "", false},
		"tif":      {"II*\x00\x01\x02", "", false},
		"jp2":      {"\x00\x00\x00\x0cjP  \r\n\x87\n\x01", "", false},
		"netCDF":   {"CDF\x01\x00", "application/x-netcdf", false},
		"a table":  {"id,address\n1,x\n", "application/vnd.ms-excel", true},
		"picture":  {"\x89PNG\x0d\x0a\x1a\x0a\x00\x01", "", false},
		"typed":    {"\x01\x02\x03", "image/jp2", false},
		"document": {"%PDF-1.7\n\x01\x02", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := web{}
			w.resources(5)
			w.list("/list", "urlset", "resourcelist", `at="2025-02-01T00:00:00Z"`, resourcesOf(0, 5, lastYear)...)
			b := webBench(t, w, "/list")
			b.sync()
			w.put("/more", c.body)
			entry := ""
			if c.typ != "" {
				entry = `<rs:md type="` + c.typ + `"/>`
			}
			w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/more", entry))...)
			for range 2 {
				if rep := b.sync(); rep.InSync == c.holds || (rep.Held != "") != c.holds || (len(b.mir.lines(graphA)) == 5) != c.holds {
					t.Fatalf("%+v", rep)
				}
			}
			w.list("/list", "urlset", "resourcelist", `at="2025-02-03T00:00:00Z"`, append(resourcesOf(0, 5, lastYear), urlOf("/more", entry))...)
			if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 5 { // a hold ends by itself
				t.Fatalf("%+v", rep)
			}
			w.list("/list", "urlset", "resourcelist", `at="2025-02-04T00:00:00Z"`, append(resourcesOf(0, 3, lastYear), urlOf("/more", entry))...)
			if rep := b.sync(); !rep.InSync || len(b.mir.lines(graphA)) != 3 { // what is known is no reason for one
				t.Errorf("%+v", rep)
			}
		})
	}
}

// A member of a dump may lead to a list as well. Members that are only in packages are asked for in vain.
func TestListInAnotherFormInDump(t *testing.T) {
	for name, body := range map[string]string{
		"text": "SOURCE/set/r/b.nt", "page": "<html><body><a href=/set/r/b.nt>x</a></body></html>", "unreadable": "\xfd7zXZ\x00\x01", "nothing in it": "text",
		"RSS 1.0": `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="urn:x"/><item rdf:about="SOURCE/set/r/b.nt"/></rdf:RDF>`,
	} {
		for _, there := range []string{"", "a.nt", "a.nt b.nt"} {
			if teststores.Unraced(t, 5) {
				continue
			}
			t.Run(name+" "+there, func(t *testing.T) {
				b := newQuietBench(t)
				b.cfg.MaxDeleteRatio = 1
				s := b.src
				for _, n := range strings.Fields(there) {
					s.put(n, nt(n, "x"))
				}
				at := 0
				pack := func(more bool, names ...string) {
					entries, files := "", map[string]string{}
					for _, n := range names {
						entries += `<url><loc>` + s.url("/set/r/"+n) + `</loc><rs:md path="/` + n + `"/></url>`
						files[n] = nt(n, "x")
					}
					if more {
						entries += `<url><loc>` + s.url("/set/r/more") + `</loc><rs:md path="/more"/></url>`
						files["more"] = strings.ReplaceAll(body, "SOURCE", s.srv.URL)
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
				if there == "a.nt" { // b.nt is gone
					if rep := b.sync(); rep.Deleted != 1 || rep.Held != "" || kept() != 1 {
						t.Errorf("%+v", rep)
					}
					return
				}
				for range 3 {
					rep, err := b.open().Sync(t.Context(), SyncOptions{Full: true})
					if err != nil || rep.Deleted > 0 || rep.InSync || kept() != 2 || !strings.Contains(rep.Held, "/set/r/more may lead to a further list: 1 resource is kept without an entry") {
						t.Fatalf("%+v %v", rep, err)
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

// RDF that names what has lost its entry stays a resource, and a new entry may come with a change, before
// the list without the others: these wait as well, as long as it is there.
func TestListTakenAsResource(t *testing.T) {
	forms := map[string]string{
		"VoID":  `<http://x.example/d> <http://rdfs.org/ns/void#dataDump> <` + webHost + `/r/3.nt>, <` + webHost + "/r/4.nt> .\n",
		"names": `<http://x.example/d> <http://x.example/p> "` + webHost + `/r/3.nt", "` + webHost + "/r/4.nt\" .\n",
		"text":  webHost + "/r/3.nt\n" + webHost + "/r/4.nt\n",
		"page":  "<html><body>a page</body></html>",
		"nodes": `[{"@id":"` + webHost + `/r/3.nt"}]`,
	}
	types := map[string]string{"text": "text/plain", "page": "text/html", "nodes": "application/ld+json"}
	for form, body := range forms {
		for _, way := range []string{"list", "change first", "both at once"} {
			if way == "list" && types[form] != "" { // TestListInAnotherForm
				continue
			}
			for _, end := range []string{"accepted", "gone", "listed again", "entry gone"} {
				if teststores.Unraced(t, 7) {
					continue
				}
				t.Run(form+" "+way+" "+end, func(t *testing.T) {
					w := web{}
					w.resources(5)
					changes := []string{}
					list := func(day int, entries ...string) {
						w.list("/list", "urlset", "resourcelist", fmt.Sprintf(`at="2025-02-%02dT00:00:00Z"`, day), entries...)
						if w.list("/cap.xml", "urlset", "capabilitylist", "", urlOf("/list", `<rs:md capability="resourcelist"/>`)); way != "list" {
							w.list("/cap.xml", "urlset", "capabilitylist", "", urlOf("/list", `<rs:md capability="resourcelist"/>`), urlOf("/changes", `<rs:md capability="changelist"/>`))
							w.list("/changes", "urlset", "changelist", `from="2025-01-01T00:00:00Z"`, changes...)
						}
					}
					list(1, resourcesOf(0, 5, lastYear)...)
					b := webBench(t, w, "/cap.xml")
					if rep := b.sync(); !rep.InSync || rep.Created != 5 {
						t.Fatalf("%+v", rep)
					}
					kept := func() (n int) {
						for _, line := range b.mir.lines(graphA) {
							if !strings.Contains(line, "x.example") {
								n++
							}
						}
						return n
					}
					w["/more"] = func(int) (int, http.Header, string) {
						return 200, http.Header{"Content-Type": {cmp.Or(types[form], "text/turtle")}}, body
					}
					more := urlOf("/more", lastYear)
					if changes = append(changes, urlOf("/more", `<rs:md change="created" datetime="2025-02-02T00:00:00Z"/>`)); way == "change first" {
						list(1, resourcesOf(0, 5, lastYear)...)
						b.sync()
						b.clock = b.clock.Add(time.Hour)
						b.sync()
					}
					list(3, append(resourcesOf(0, 3, lastYear), more)...)
					for _, o := range []SyncOptions{{}, {Full: true}, {}, {Retry: true}, {Full: true}} {
						rep, err := b.open().Sync(t.Context(), o)
						if err != nil || rep.Deleted > 0 || kept() != 5 {
							t.Fatalf("%+v %v", rep, err)
						}
						if o.Full && (rep.InSync || !strings.Contains(rep.Held, "the new entry http://source.example/more may lead to a further list: 2 resources are kept without an entry, and without a 404 or 410 from the source") && form != "names" && form != "VoID") {
							t.Fatalf("%+v", rep)
						}
						b.clock = b.clock.Add(time.Second)
					}
					if audit, err := b.open().Audit(t.Context(), AuditOptions{Repair: true}); err != nil || audit.Equal || kept() != 5 {
						t.Fatalf("%+v %v", audit, err)
					}
					want := 3
					switch end {
					case "accepted":
						held, err := b.open().Held(t.Context(), "", 10)
						if err != nil || held == nil || len(held.Items) != 2 {
							t.Fatalf("%+v %v", held, err)
						}
						if rep, err := b.open().Sync(t.Context(), SyncOptions{Accept: held.ID}); err != nil || rep.Deleted != 2 {
							t.Errorf("%+v %v", rep, err)
						}
					case "gone":
						delete(w, "/r/3.nt")
						delete(w, "/r/4.nt")
					case "listed again":
						want = 5
						list(4, append(resourcesOf(0, 5, lastYear), more)...)
					case "entry gone":
						delete(w, "/more")
						changes = append(changes, urlOf("/more", `<rs:md change="deleted" datetime="2025-02-03T12:00:00Z"/>`))
						list(4, resourcesOf(0, 3, lastYear)...)
					}
					for range 3 {
						b.clock = b.clock.Add(10 * time.Minute)
						b.sync()
					}
					if rep := b.sync(); !rep.InSync || kept() != want {
						t.Errorf("%+v, %d kept", rep, kept())
					}
				})
			}
		}
	}
}

// A run asks for a bounded number of resources, and the next ones for the rest. Nothing is asked for beside
// new RDF.
func TestManyLostEntries(t *testing.T) {
	w := web{}
	w.resources(maxAsked + 10)
	w.list("/list", "urlset", "resourcelist", `at="2025-02-01T00:00:00Z"`, resourcesOf(0, maxAsked+10, lastYear)...)
	b := webBench(t, w, "/list")
	b.cfg.MaxDeleteRatio = 1
	if rep := b.sync(); rep.Created != maxAsked+10 {
		t.Fatalf("%+v", rep)
	}
	b.sync() // which asks once more for what came without a promise
	b.sync()
	asked := 0
	for i := 1; i < maxAsked+10; i++ {
		w[fmt.Sprintf("/r/%d.nt", i)] = func(int) (int, http.Header, string) { asked++; return 404, nil, "" }
	}
	w.put("/new", "<http://ex.org/new> <http://ex.org/p> \"1\" .\n")
	w.put("/page", "<html></html>")
	w.list("/list", "urlset", "resourcelist", `at="2025-02-02T00:00:00Z"`, append(resourcesOf(0, 1, lastYear), urlOf("/page", ""))...)
	if rep := b.sync(); rep.Deleted != maxAsked || rep.InSync || asked != maxAsked {
		t.Errorf("%+v, %d requests", rep, asked)
	}
	if rep := b.sync(); rep.Deleted != 9 || !rep.InSync || asked != maxAsked+9 {
		t.Errorf("%+v, %d requests", rep, asked)
	}
	asked = 0
	w["/r/0.nt"] = w["/r/1.nt"]
	w.list("/list", "urlset", "resourcelist", `at="2025-02-03T00:00:00Z"`, urlOf("/new", ""), urlOf("/page", ""))
	if rep := b.sync(); rep.Deleted != 1 || rep.Created != 1 || !rep.InSync || asked != 0 {
		t.Errorf("%+v, %d requests", rep, asked)
	}
}
