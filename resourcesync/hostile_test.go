package resourcesync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const (
	openList = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2024-05-01T00:00:00Z"/>`
	oneEntry = `<url><loc>http://src.example/a</loc></url>`
)

// endless repeats a piece for ever after a beginning.
type endless struct {
	head  string
	piece []byte
}

func (e *endless) Read(b []byte) (int, error) {
	if e.head != "" {
		n := copy(b, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	n := 0
	for n+len(e.piece) <= len(b) {
		n += copy(b[n:], e.piece)
	}
	if n == 0 {
		n = copy(b, e.piece)
		e.head = string(e.piece[n:])
	}
	return n, nil
}

// Each of these ends in an error of its kind that says what is wrong.
func TestHostileDocuments(t *testing.T) {
	repeat := strings.Repeat
	for _, c := range []struct {
		name, doc string
		kind      error
		says      string
	}{
		{"empty", "", ErrSyntax, "empty"},
		{"only blanks", "  \n ", ErrSyntax, "before its root"},
		{"only a declaration", `<?xml version="1.0"?>`, ErrSyntax, "before its root"},
		{"no XML", "hello", ErrSyntax, "outside of the root"},
		{"JSON", `{"a":1}`, ErrSyntax, "JSON"},
		{"web page", `<html><body>not found</body></html>`, ErrNotResourceSync, "web page"},
		{"web page with doctype", `<!DOCTYPE html><html></html>`, ErrNotResourceSync, "web page"},
		{"gzip", "\x1f\x8b\x08\x00", ErrSyntax, "gzip"},
		{"zip", "PK\x03\x04xxxx", ErrSyntax, "ZIP"},
		{"UTF-16 with half a pair", "\xff\xfe<\x00\x00\xd8>\x00", errEncoding, "not of its encoding"},
		{"UTF-16, cut", "\xff\xfe<\x00u\x00", ErrSyntax, "cut short"},
		{"windows-1252 with a byte that it does not have", "<?xml version=\"1.0\" encoding=\"windows-1253\"?><urlset>\xff</urlset>", errEncoding, "not of its encoding"},
		{"unknown encoding", `<?xml version="1.0" encoding="EBCDIC-X"?><urlset/>`, ErrSyntax, "EBCDIC-X"},
		{"line too long", "http://src.example/a\n" + repeat("x", 100_000), errLine, "longer"},
		{"feed, cut", `<rss><channel><item><link>http://src.example/a</link></item>`, ErrSyntax, "cannot be read"},
		{"feed with a DTD's entity", `<!DOCTYPE rss [<!ENTITY a "b">]><rss><item><link>&a;</link></item></rss>`, ErrSyntax, "entity &a;"},
		{"Latin-1 undeclared", openList + "<url><loc>http://src.example/caf\xe9</loc></url></urlset>", ErrSyntax, "not UTF-8"},
		{"XML 2.0", `<?xml version="2.0"?><urlset/>`, ErrSyntax, "2.0"},
		{"broken declaration", `<?xml encoding="UTF-8" version="1.0"?><urlset/>`, ErrSyntax, "declaration"},
		{"endless declaration", `<?xml version="` + repeat("1", 5000), ErrSyntax, "declaration"},
		{"entity bomb", `<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><urlset><url><loc>&c;</loc></url></urlset>`, ErrSyntax, "entity &c;"},
		{"external entity", `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><urlset><url><loc>http://src.example/&e;</loc></url></urlset>`, ErrSyntax, "entity &e;"},
		{"entity of an external DTD", `<!DOCTYPE x SYSTEM "file:///etc/passwd"><urlset><url><loc>http://src.example/&e;</loc></url></urlset>`, ErrSyntax, "entity &e;"},
		{"entity in a longer text", openList + `<url><loc>http://src.example/?a&b=1&c;</loc></url></urlset>`, ErrSyntax, "entity &c;"},
		{"attributes in a DTD", `<!DOCTYPE urlset [<!ATTLIST url x CDATA "y">]><urlset/>`, ErrSyntax, "ATTLIST"},
		{"two DTDs", `<!DOCTYPE x><!DOCTYPE x><urlset/>`, ErrSyntax, "DTD"},
		{"DTD without an end", `<!DOCTYPE x [<!ENTITY a "]>"><!-- ]> --><?p ]>?>` + repeat("<!ENTITY b 'c'>", 10_000), ErrSyntax, "cut short"},
		{"DTD with a comment without an end", `<!DOCTYPE x [<!-- ]><urlset/>`, ErrSyntax, "cut short"},
		{"DTD inside", openList + `<!DOCTYPE x><url/></urlset>`, ErrSyntax, "DTD"},
		{"unknown entity", openList + `<url><loc>&bomb;</loc></url></urlset>`, ErrSyntax, "&bomb;"},
		{"unknown entity in attribute", openList + `<rs:md type="&bomb;"/></urlset>`, ErrSyntax, "&bomb;"},
		{"character 0 by number", openList + `<url><loc>&#0;</loc></url></urlset>`, ErrSyntax, "&#0;"},
		{"surrogate by number", openList + `<url><loc>&#xD800;</loc></url></urlset>`, ErrSyntax, "&#xD800;"},
		{"too large a number", openList + `<url><loc>&#x110000;</loc></url></urlset>`, ErrSyntax, "no character"},
		{"NUL byte", openList + "<url><loc>http://src.example/\x00</loc></url></urlset>", ErrSyntax, "U+0000"},
		{"control character", openList + "<url><loc>http://src.example/\x01</loc></url></urlset>", ErrSyntax, "U+0001"},
		{"no character", openList + "<url><loc>http://src.example/\uFFFE</loc></url></urlset>", ErrSyntax, "U+FFFE"},
		{"overlong UTF-8", openList + "<url><loc>\xc0\xae</loc></url></urlset>", ErrSyntax, "not UTF-8"},
		{"cut in a character", openList + "<url><loc>\xe2\x82", ErrSyntax, "not UTF-8"},
		{"cut in a tag", openList + `<url`, ErrSyntax, "cut short"},
		{"cut in an attribute", openList + `<url><rs:md hash="md5`, ErrSyntax, "cut short"},
		{"cut in a text", openList + `<url><loc>http://src.e`, ErrSyntax, "cut short"},
		{"cut between entries", openList + oneEntry, ErrSyntax, "cut short"},
		{"cut in a comment", openList + oneEntry + "<!-- ", ErrSyntax, "cut short"},
		{"cut in CDATA", openList + "<url><loc><![CDATA[x", ErrSyntax, "cut short"},
		{"cut in the end tag", openList + oneEntry + "</urlse", ErrSyntax, "cut short"},
		{"wrong end tag", openList + `<url><loc>x</lco></url></urlset>`, ErrSyntax, "</lco>"},
		{"end tag too many", openList + `</urlset></urlset>`, ErrSyntax, "ends nothing"},
		{"second root", openList + `</urlset>` + openList + oneEntry + `</urlset>`, ErrSyntax, "second root"},
		{"text before the root", "Warning: x\n" + openList + `</urlset>`, ErrSyntax, "outside of the root"},
		{"CDATA after the root", openList + `</urlset><![CDATA[x]]>`, ErrSyntax, "CDATA"},
		{"doubled attribute", openList + `<url><rs:md type="a/b" type="c/d"/></url></urlset>`, ErrSyntax, "twice"},
		{"doubled by namespace", openList + `<url xmlns:a="urn:x" xmlns:b="urn:x" a:y="1" b:y="2"/></urlset>`, ErrSyntax, "twice"},
		{"undeclared prefix", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><rsx:md/></urlset>`, ErrSyntax, "not declared"},
		{"prefix out of scope", openList + `<x:a xmlns:x="urn:x"/><x:ln/></urlset>`, ErrSyntax, "not declared"},
		{"bound xmlns", `<urlset xmlns:xmlns="urn:x"/>`, ErrSyntax, "reserved"},
		{"bound xml", `<urlset xmlns:xml="urn:x"/>`, ErrSyntax, "reserved"},
		{"prefix unbound", `<urlset xmlns:x=""/>`, ErrSyntax, "without a namespace"},
		{"two colons", openList + `<a:b:c/></urlset>`, ErrSyntax, "name"},
		{"name with digit first", openList + `<1a/></urlset>`, ErrSyntax, "name"},
		{"no blank between attributes", openList + `<url a="1"b="2"/></urlset>`, ErrSyntax, "blank"},
		{"attribute without value", openList + `<url a/></urlset>`, ErrSyntax, "no value"},
		{"attribute without quotes", openList + `<url a=1/></urlset>`, ErrSyntax, "quotes"},
		{"< in an attribute", openList + `<url a="<"/></urlset>`, ErrSyntax, "&lt;"},
		{"]]> in text", openList + `<url><loc>a]]>b</loc></url></urlset>`, ErrSyntax, "]]>"},
		{"second declaration", openList + `<?xml version="1.0"?></urlset>`, ErrSyntax, "processing instruction"},
		{"wrong namespace", `<urlset xmlns="http://www.openarchives.org/rs/terms/"/>`, ErrNotResourceSync, "namespace"},
		{"wrong root", `<rdf/>`, ErrNotResourceSync, "<rdf>"},
		{"nested roots", openList + openList + oneEntry + `</urlset></urlset>`, ErrInvalid, "<urlset> inside <urlset>"},
		{"sitemap in urlset", openList + `<sitemap><loc>http://src.example/a</loc></sitemap></urlset>`, ErrInvalid, "want <url>"},
		{"url in url", openList + `<url>` + oneEntry + `</url></urlset>`, ErrInvalid, "<url> inside <url>"},
		{"no loc", openList + `<url><lastmod>2024-01-01</lastmod></url></urlset>`, ErrInvalid, "no loc"},
		{"empty loc", openList + `<url><loc> </loc></url></urlset>`, ErrInvalid, "no loc"},
		{"two loc", openList + `<url><loc>http://src.example/a</loc><loc>http://src.example/b</loc></url></urlset>`, ErrInvalid, "more than one loc"},
		{"element in loc", openList + `<url><loc>http://src.example/<b>a</b></loc></url></urlset>`, ErrInvalid, "<b> stands inside <loc>"},
		{"deep", openList + repeat("<a>", 100) + repeat("</a>", 100) + `</urlset>`, ErrLimit, "nested deeper"},
		{"many attributes", openList + `<a ` + func() string {
			var b strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&b, `a%d="" `, i)
			}
			return b.String()
		}() + `/></urlset>`, ErrSyntax, "more than 256 attributes"},
		{"many links", openList + `<url><loc>http://src.example/a</loc>` + repeat(`<rs:ln rel="a" href="http://x.example/"/>`, 2000) + `</url></urlset>`, ErrLimit, "rs:ln"},
		{"many root links", openList + repeat(`<rs:ln rel="a" href="http://x.example/"/>`, 2000) + `</urlset>`, ErrLimit, "rs:ln"},
		{"long attribute", openList + `<url><rs:md type="` + repeat("a", 300<<10) + `"/></url></urlset>`, ErrLimit, "longer than"},
		{"long text", openList + `<url><loc>` + repeat("a", 300<<10) + `</loc></url></urlset>`, ErrLimit, "longer than"},
		{"long text in CDATA", openList + `<url><loc><![CDATA[` + repeat("a", 300<<10) + `]]></loc></url></urlset>`, ErrLimit, "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, slow := range []bool{false, true} {
				var src io.Reader = strings.NewReader(c.doc)
				if slow {
					if len(c.doc) > 20_000 {
						continue
					}
					src = iotest.OneByteReader(src)
				}
				err := drain(src, ReaderOptions{BaseURL: "http://src.example/list.xml"})
				var de *DocumentError
				if !errors.Is(err, c.kind) || !errors.As(err, &de) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("slow %v: error %v, want one of kind %q with %q", slow, err, c.kind, c.says)
				} else if de.Location != "http://src.example/list.xml" {
					t.Errorf("error %v does not name the document", err)
				}
				if len(err.Error()) > 1000 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			}
		})
	}
}

func drain(src io.Reader, o ReaderOptions) error {
	r, err := NewReader(src, o)
	if err != nil {
		return err
	}
	var e Entry
	for {
		if err := r.NextInto(&e); err == io.EOF {
			return nil
		} else if err != nil {
			if again := r.NextInto(&e); again != err {
				return fmt.Errorf("the error %v was followed by %v", err, again)
			}
			return err
		}
	}
}

// What never ends is ended by a bound, in little memory.
func TestEndlessDocuments(t *testing.T) {
	for _, c := range []struct {
		name string
		src  *endless
		o    ReaderOptions
		says string
	}{
		{"attribute", &endless{openList + `<url a="`, []byte("aaaaaaaa")}, ReaderOptions{}, "longer than"},
		{"name", &endless{openList + `<url a`, []byte("aaaaaaaa")}, ReaderOptions{}, "longer than"},
		{"end tag", &endless{openList + `<url></url`, []byte("        ")}, ReaderOptions{}, "longer than"},
		{"text", &endless{openList + `<url><loc>`, []byte("aaaaaaaa")}, ReaderOptions{}, "longer than"},
		{"text of references", &endless{openList + `<url><loc>`, []byte("&amp;")}, ReaderOptions{}, "longer than"},
		{"blanks", &endless{openList, []byte("        ")}, ReaderOptions{MaxBytes: 3 << 20}, "longer than"},
		{"comment", &endless{openList + `<!--`, []byte("- aaaaaa")}, ReaderOptions{MaxBytes: 3 << 20}, "longer than"},
		{"instruction", &endless{openList + `<?x `, []byte("? aaaaaa")}, ReaderOptions{MaxBytes: 3 << 20}, "longer than"},
		{"foreign elements", &endless{openList + `<a xmlns="urn:x">`, []byte("<b>x</b>")}, ReaderOptions{MaxBytes: 3 << 20}, "longer than"},
		{"entries", &endless{openList, []byte(oneEntry)}, ReaderOptions{MaxEntries: 20_000}, "more than 20000 entries"},
		{"entries by bytes", &endless{openList, []byte(oneEntry)}, ReaderOptions{MaxBytes: 3 << 20}, "longer than"},
		{"links", &endless{openList + `<url><loc>http://src.example/a</loc>`, []byte(`<rs:ln rel="a" href="http://x.example/"/>`)}, ReaderOptions{}, "more than 1000 rs:ln"},
		{"open elements", &endless{openList, []byte("<a>")}, ReaderOptions{}, "nested deeper"},
		{"declarations", &endless{openList + `<a `, []byte(`xmlns:a="u" `)}, ReaderOptions{}, "attributes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(100)) // garbage counts as in the program
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := drain(c.src, c.o)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
			if held := after.HeapSys - min(before.HeapSys, after.HeapSys); held > 64<<20 {
				t.Errorf("%d MB were taken from the system", held>>20)
			}
		})
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReadErrors(t *testing.T) {
	broken := errors.New("the line went dead")
	err := drain(io.MultiReader(strings.NewReader(openList+oneEntry), iotest.ErrReader(broken)), ReaderOptions{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "reading failed after") {
		t.Errorf("error %v, want one that wraps the reader's", err)
	}
	if err := drain(stuck{}, ReaderOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v, want io.ErrNoProgress", err)
	}
}

// The pieces in which a document arrives do not matter.
func TestPiecesDoNotMatter(t *testing.T) {
	doc := string(read(t, "testdata/dialects/11-everything.xml"))
	want := func() string { r, e, err := readAll(doc, ReaderOptions{}); return dump(r, e, err) }()
	for name, src := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(strings.NewReader(doc)), "half": iotest.HalfReader(strings.NewReader(doc)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(doc)),
	} {
		r, err := NewReader(src, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var entries []*Entry
		for {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		if got := dump(r, entries, nil); got != want {
			t.Errorf("%s: read as\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestReadHeadTakesFewBytes(t *testing.T) {
	doc := bytes.Repeat([]byte(oneEntry), 10_000)
	src := &counter{r: io.MultiReader(strings.NewReader(openList), bytes.NewReader(doc))}
	h, err := ReadHead(src, ReaderOptions{})
	if err != nil || !h.SnapshotTime().Equal(at("2024-05-01T00:00:00Z")) {
		t.Fatalf("%v, %v", h.SnapshotTime(), err)
	}
	if src.n > 16<<10 {
		t.Errorf("%d bytes were read for the root", src.n)
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

// TestMemoryDoesNotGrow: a list is written and read in memory that does not depend on its
// length. RSBRIDGE_ENTRIES says how many entries there are.
func TestMemoryDoesNotGrow(t *testing.T) {
	entries := 120_000
	if s := os.Getenv("RSBRIDGE_ENTRIES"); s != "" {
		var err error
		if entries, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, way := range []struct {
		name  string
		bound int // of the heap's growth, bytes
		read  func(r io.Reader, each func()) error
	}{
		{"reader", 8 << 20, func(in io.Reader, each func()) error {
			r, err := NewReader(in, ReaderOptions{MaxBytes: 64 << 30})
			var e Entry
			for err == nil {
				if err = r.NextInto(&e); err == nil {
					each()
				}
			}
			if err == io.EOF {
				err = nil
			}
			return err
		}},
	} {
		pr, pw := io.Pipe()
		go func() {
			w, err := NewWriter(pw, Head{Meta: Meta{Capability: ResourceList, At: time.Unix(1e9, 0)}})
			for i := 0; i < entries && err == nil; i++ {
				err = w.Write(sampleEntry(i))
			}
			if err == nil {
				err = w.Close()
			}
			pw.CloseWithError(err)
		}()
		heap := func() int {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		n, before, most := 0, heap(), 0
		err := way.read(pr, func() {
			if n%max(30_000, entries/20) == 0 {
				most = max(most, heap())
			}
			n++
		})
		if err != nil || n != entries {
			t.Errorf("%s: %d entries of %d (%v)", way.name, n, entries, err)
		}
		if t.Logf("%s: %d entries, the heap grew by %d kB at most", way.name, n, (most-before)>>10); most > before+way.bound {
			t.Errorf("%s: the heap grew from %d to %d bytes", way.name, before, most)
		}
	}
}
