package resourcesync

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func dumpHead() Head {
	return Head{
		Meta:  Meta{Capability: ResourceDumpManifest, At: at("2024-05-01T00:00:00Z")},
		Links: []Link{{Rel: RelUp, Href: "http://src.example/capabilitylist.xml", Length: -1}},
	}
}

func deflated(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func TestPackageRoundTrip(t *testing.T) {
	text := bytes.Repeat([]byte("<http://src.example/a> a <http://src.example/B> .\n"), 100)
	build := func() ([]byte, []byte) {
		var b bytes.Buffer
		p, err := NewPackageWriter(&b, Head{
			Meta:  Meta{Capability: ChangeDumpManifest, From: at("2024-05-01T00:00:00Z")},
			Links: dumpHead().Links,
		})
		if err != nil {
			t.Fatal(err)
		}
		entry := func(loc, change string) *Entry {
			return &Entry{Loc: "http://src.example/" + loc, LastMod: at("2024-05-01T10:00:01Z"), Meta: Meta{Change: change, Type: "application/n-triples", Length: int64(len(text)), DateTime: at("2024-05-01T10:00:01Z")}, HasMeta: true}
		}
		steps := []error{
			p.AddDeflated("/1/a.nt", deflated(t, text), crc32.ChecksumIEEE(text), int64(len(text)), entry("a", Updated)),
			p.Add("1/b.nt", text, entry("b", Created)), // without slash
			p.Add("/1/\u00e4.nt", []byte("x"), &Entry{Loc: "http://src.example/c", HasMeta: true, Meta: Meta{Change: Updated, Length: 1, Hash: Hashes{MD5: strings.Repeat("0", 32)}, Path: "/1/\u00e4.nt"}}),
			p.AddFile("/p/1.rdfp", []byte("A .\n"), time.Time{}),
			p.AddFile("/p/2.rdfp", text, time.Time{}),
			p.AddEntry(&Entry{Loc: "http://src.example/d", HasMeta: true, Meta: Meta{Change: Deleted, Length: -1, DateTime: at("2024-05-01T11:00:00Z")}}),
		}
		for i, err := range steps {
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		manifest, err := p.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Add("/late", nil, &Entry{Loc: "x:"}); err == nil {
			t.Error("a closed package takes bitstreams")
		}
		return b.Bytes(), manifest
	}
	file, manifest := build()
	if again, _ := build(); !bytes.Equal(file, again) {
		t.Error("the same calls give other bytes")
	}

	p, err := OpenPackage(bytes.NewReader(file), int64(len(file)), PackageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1/a.nt", "1/b.nt", "1/\u00e4.nt", "p/1.rdfp", "p/2.rdfp", "manifest.xml"}; !reflect.DeepEqual(p.Names(), want) {
		t.Errorf("members %q, want %q", p.Names(), want)
	}
	r, closer, err := p.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	var paths []string
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, e.Meta.Path)
		if e.Meta.Path != "" && e.Loc != "http://src.example/c" {
			if got := readMember(t, p, e.Meta.Path); !bytes.Equal(got, text) {
				t.Errorf("%s has %d bytes, want %d", e.Meta.Path, len(got), len(text))
			}
		}
	}
	if want := []string{"/1/a.nt", "/1/b.nt", "/1/\u00e4.nt", ""}; !reflect.DeepEqual(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
	if got := readMember(t, p, "manifest.xml"); !bytes.Equal(got, manifest) {
		t.Errorf("manifest.xml is not what Close returned:\n%s\n%s", got, manifest)
	}
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if got := z.File[0].Modified; !got.Equal(at("2024-05-01T10:00:00Z")) { // two-second steps
		t.Errorf("modified %v", got)
	}
	for _, f := range z.File {
		if f.Flags&8 != 0 {
			t.Errorf("%s has a data descriptor", f.Name)
		}
	}
}

func readMember(t *testing.T, p *Package, path string) []byte {
	t.Helper()
	body, err := p.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := p.ReadFile(path, 1<<30); err != nil || !bytes.Equal(whole, b) {
		t.Fatalf("ReadFile: %d bytes of %d, %v", len(whole), len(b), err)
	}
	return b
}

// TestReadAfterClose: what is read of a member that was closed is an error, and
// nothing of another one that has its inflater now.
func TestReadAfterClose(t *testing.T) {
	one, other := strings.Repeat("one ", 30_000), strings.Repeat("other ", 30_000)
	z := makeZip(t, member{name: ManifestName, data: tinyManifest}, member{name: "one", data: one}, member{name: "other", data: other})
	p, err := OpenPackage(bytes.NewReader(z), int64(len(z)), PackageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Open("one")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if _, err := io.ReadFull(f, buf); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	g, err := p.Open("other")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if n, err := f.Read(buf); n != 0 || err == nil || err == io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got, err := io.ReadAll(g); err != nil || string(got) != other {
		t.Errorf("%d bytes of %d, %v", len(got), len(other), err)
	}
}

// A refused bitstream leaves the package as it was.
func TestPackageWriterRefuses(t *testing.T) {
	var b bytes.Buffer
	p, err := NewPackageWriter(&b, dumpHead())
	if err != nil {
		t.Fatal(err)
	}
	good := func() *Entry { return &Entry{Loc: "http://src.example/a"} }
	if err := p.Add("/a", []byte("a"), good()); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"": "empty", "/": "empty", "/a": "already", "a": "already", "/manifest.xml": "already", "//a": "absolute", "/../a": `".."`, "/a/../../b": `".."`,
		"/./a": `"."`, "/a//b": `""`, "/a/": "folder", `/a\b`: `\`, "/c:/x": "drive", "C:evil": "drive", "/a\x00b": "NUL", "/" + strings.Repeat("a", 70000): "longer",
	} {
		if err := p.Add(path, []byte("x"), good()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("path %q: %v, want an error with %s", path, err, says)
		}
	}
	if err := p.Add("/b", []byte("x"), &Entry{Loc: "http://src.example/a", Meta: Meta{Path: "/c"}}); err == nil {
		t.Error("an entry of another path is taken")
	}
	if err := p.Add("/b", []byte("x"), &Entry{}); err == nil {
		t.Error("an entry without loc is taken")
	}
	if _, err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := OpenPackage(bytes.NewReader(b.Bytes()), int64(b.Len()), PackageOptions{})
	if err != nil || len(got.Names()) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := NewPackageWriter(&b, Head{Meta: Meta{Capability: ResourceList, At: time.Now()}}); err == nil {
		t.Error("a Resource List is taken for a manifest")
	}
}

type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		n := f.left
		f.left = 0
		return n, errors.New("no space left")
	}
	f.left -= len(b)
	return len(b), nil
}

func TestWriteErrorsAreKept(t *testing.T) {
	p, err := NewPackageWriter(&failing{left: 5000}, dumpHead())
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	var first error
	for i := 0; i < 10 && first == nil; i++ {
		first = p.Add(fmt.Sprint("/", i), noise, &Entry{Loc: "http://src.example/a"})
	}
	if _, err := p.Close(); err == nil || first != nil && !strings.Contains(first.Error(), "no space left") {
		t.Errorf("Close: %v after %v", err, first)
	}
	w, err := NewWriter(&failing{left: 100}, dumpHead())
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err = w.Write(sampleEntry(1)); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") || w.Close() == nil {
		t.Errorf("error %v", err)
	}
}

// A bitstream that is read from somewhere is stored as it is; one that is not what
// was said of it ends the package.
func TestAddStored(t *testing.T) {
	text := []byte("a picture")
	for _, given := range []string{"a picture", "a pict", "a picture and more", "A picture"} {
		var b bytes.Buffer
		p, err := NewPackageWriter(&b, dumpHead())
		if err != nil {
			t.Fatal(err)
		}
		err = p.AddStored("/files/1.png", strings.NewReader(given), crc32.ChecksumIEEE(text), int64(len(text)), &Entry{Loc: "http://src.example/1", HasMeta: true, Meta: Meta{Length: int64(len(text))}})
		_, closed := p.Close()
		if given != string(text) {
			if err == nil || closed == nil {
				t.Errorf("%q: %v, then %v", given, err, closed)
			}
			continue
		}
		if err != nil || closed != nil {
			t.Fatal(err, closed)
		}
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := fs.ReadFile(z, "files/1.png"); err != nil || string(data) != given {
			t.Errorf("%q %v", data, err)
		}
	}
}

// A manifest beyond what is held in memory goes through a temporary file, which
// is gone afterwards.
func TestLargeManifestIsSpooled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var b bytes.Buffer
	p, err := NewPackageWriter(&b, dumpHead())
	if err != nil {
		t.Fatal(err)
	}
	p.spool.bound = 4 << 10
	for i := range 500 {
		if err := p.Add(fmt.Sprintf("/%d", i), []byte("x"), sampleEntry(i)); err != nil {
			t.Fatal(err)
		}
	}
	var manifest bytes.Buffer
	if err := p.CloseTo(&manifest); err != nil {
		t.Fatal(err)
	}
	got, err := OpenPackage(bytes.NewReader(b.Bytes()), int64(b.Len()), PackageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readMember(t, got, "/manifest.xml"), manifest.Bytes()) {
		t.Error("the manifest differs")
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	aborted, _ := NewPackageWriter(io.Discard, dumpHead())
	aborted.spool.bound = 0
	aborted.manifest.flush(0)
	aborted.Abort()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left behind by Abort: %v", left)
	}
}

// member is one member of a package made by hand.
type member struct {
	name   string
	data   string
	change func(*zip.FileHeader)
}

func makeZip(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		data := deflated(t, []byte(m.data))
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(m.data)), CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(m.data))}
		if strings.HasSuffix(m.name, "/") {
			h.Method, h.CompressedSize64, h.UncompressedSize64, data = zip.Store, 0, 0, nil
		}
		if m.change != nil {
			m.change(h)
		}
		w, err := z.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const tinyManifest = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcedump-manifest" at="2024-05-01T00:00:00Z"/><url><loc>http://src.example/a</loc><rs:md path="/a"/></url></urlset>`

// TestOddNames: a path means the member whose name says the same, in whichever form.
func TestOddNames(t *testing.T) {
	const composed, apart = "r\u00e9sum\u00e9.nt", "re\u0301sume\u0301.nt"
	for _, c := range []struct {
		name, path, found string
		others            []string
	}{
		{`resources\a.nt`, "resources/a.nt", `resources\a.nt`, nil},
		{`resources\a.nt`, `resources\a.nt`, `resources\a.nt`, nil},
		{"resources/a.nt", `\resources\a.nt`, "resources/a.nt", nil},
		{`\resources\a.nt`, "/resources/a.nt", `\resources\a.nt`, nil},
		{"./a.nt", "a.nt", "./a.nt", nil},
		{"/a.nt", "/a.nt", "/a.nt", nil},
		{"x/../a.nt", "a.nt", "x/../a.nt", nil},
		{"x//a.nt", "x/a.nt", "x//a.nt", nil},
		{composed, apart, composed, nil},
		{apart, composed, apart, nil},
		{"r\x82sum\x82.nt", composed, "r\x82sum\x82.nt", nil}, // CP437
		{"a b.nt", "a%20b.nt", "a b.nt", nil},
		{"a%20b.nt", "a%20b.nt", "a%20b.nt", []string{"a b.nt"}},
		// what is written so comes first
		{`x\a.nt`, `x\a.nt`, `x\a.nt`, []string{"x/a.nt"}},
		{`x\a.nt`, `x/a.nt`, `x/a.nt`, []string{"x/a.nt"}},
		{composed, composed, composed, []string{apart}},
		{apart, apart, apart, []string{composed}},
		// none without doubt
		{`x\a.nt`, "x/a.nt", "", []string{"./x/a.nt"}},
		{"a.nt", "b.nt", "", nil},
		{"x/a.nt", "x/a.nt/", "", nil},
	} {
		members := []member{{name: "manifest.xml", data: tinyManifest}}
		for _, name := range append([]string{c.name}, c.others...) {
			members = append(members, member{name: name, data: "bytes of " + name})
		}
		b := makeZip(t, members...)
		p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{})
		if err != nil {
			t.Errorf("%q: %v", c.name, err)
			continue
		}
		body, err := p.ReadFile(c.path, 1000)
		if c.found == "" && err == nil || c.found != "" && string(body) != "bytes of "+c.found {
			t.Errorf("of %q and %q the path %q gives %q, %v", c.name, c.others, c.path, body, err)
		}
	}
	b := makeZip(t, member{name: `.\manifest.xml`, data: tinyManifest})
	if p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{}); err != nil {
		t.Error(err)
	} else if r, closer, err := p.Manifest(); err != nil {
		t.Error(err)
	} else {
		if _, err := r.Next(); err != nil {
			t.Error(err)
		}
		closer.Close()
	}
}

func TestHostilePackages(t *testing.T) {
	manifest := member{name: "manifest.xml", data: tinyManifest}
	for _, c := range []struct {
		name    string
		members []member
		kind    error
		says    string
	}{
		{"no manifest", []member{{name: "a"}}, ErrPackage, "no manifest.xml"},
		{"manifest in a folder", []member{{name: "x/manifest.xml"}}, ErrPackage, "no manifest.xml"},
		{"double manifest", []member{manifest, {name: "manifest.xml", data: "<urlset/>"}}, ErrPackage, "twice"},
		{"encrypted manifest", []member{{name: "manifest.xml", change: func(h *zip.FileHeader) { h.Flags |= 1 }}}, ErrPackage, "encrypted"},
		{"bomb by total", []member{manifest, {name: "a", data: strings.Repeat("a", 600)}, {name: "b", data: strings.Repeat("a", 600)}}, ErrLimit, "more than 1000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := makeZip(t, c.members...)
			o := PackageOptions{}
			if c.name == "bomb by total" {
				o.MaxBytes = 1000
			}
			_, err := OpenPackage(bytes.NewReader(b), int64(len(b)), o)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one of kind %q with %q", err, c.kind, c.says)
			}
		})
	}
	for _, c := range []struct {
		name string
		bad  []member
		kind error
		says string
	}{
		{"slip", []member{{name: "../a"}}, ErrPackage, "not safe"},
		{"slip inside", []member{{name: "a/../../b"}}, ErrPackage, "not safe"},
		{"slip with backslashes", []member{{name: `..\a`}}, ErrPackage, "not safe"},
		{"drive", []member{{name: "c:/a"}}, ErrPackage, "not safe"},
		{"drive with a backslash", []member{{name: `C:\a`}}, ErrPackage, "not safe"},
		{"NUL", []member{{name: "a\x00.txt"}}, ErrPackage, "not safe"},
		{"empty name", []member{{name: ""}}, ErrPackage, "not safe"},
		{"dots", []member{{name: ".."}}, ErrPackage, "not safe"},
		{"doubles", []member{{name: "a", data: "x"}, {name: "a", data: "y"}}, ErrPackage, "twice"},
		{"encrypted", []member{{name: "a", change: func(h *zip.FileHeader) { h.Flags |= 1 }}}, ErrPackage, "encrypted"},
		{"method", []member{{name: "a", change: func(h *zip.FileHeader) { h.Method = 99 }}}, ErrPackage, "method 99"},
		{"bomb by ratio", []member{{name: "a", change: func(h *zip.FileHeader) { h.UncompressedSize64 = 200 << 20 }}}, ErrLimit, "times as much"},
		{"bomb by size", []member{{name: "a", change: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 40 }}}, ErrLimit, "more than 268435456"},
	} {
		b := makeZip(t, append([]member{manifest, {name: "good", data: "the good one"}}, c.bad...)...)
		p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{})
		if err != nil {
			t.Errorf("%s: it keeps the package from being read: %v", c.name, err)
			continue
		}
		if body, err := p.ReadFile("/good", 1000); err != nil || string(body) != "the good one" {
			t.Errorf("%s: beside it %q is read, %v", c.name, body, err)
		}
		if _, err := p.ReadFile(c.bad[0].name, 1<<40); !errors.Is(err, c.kind) || c.says != "not safe" && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: it is read: %v", c.name, err)
		}
		if faults := fmt.Sprint(p.Faults()); !strings.Contains(faults, c.says) {
			t.Errorf("%s: told of it is %s, want %s", c.name, faults, c.says)
		}
	}
	for name, b := range map[string][]byte{"empty": nil, "no ZIP": []byte("hello"), "cut": makeZip(t, manifest)[:100]} {
		if _, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{}); !errors.Is(err, ErrPackage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What shows only when a member is read.
	for name, change := range map[string]func(*zip.FileHeader){
		"wrong checksum": func(h *zip.FileHeader) { h.CRC32++ },
		"claims less":    func(h *zip.FileHeader) { h.UncompressedSize64-- },
		"claims more":    func(h *zip.FileHeader) { h.UncompressedSize64++ },
	} {
		b := makeZip(t, manifest, member{name: "a", data: "some bytes", change: change})
		p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		body, err := p.Open("/a")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if !errors.Is(err, ErrPackage) || len(got) > 10 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if got, err := p.ReadFile("/a", 1<<30); !errors.Is(err, ErrPackage) || got != nil {
			t.Errorf("%s: ReadFile gives %d bytes, %v", name, len(got), err)
		}
	}
	b := makeZip(t, manifest, member{name: "dir/"})
	p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/a", "../a", "", "/dir/"} {
		if _, err := p.Open(path); !errors.Is(err, ErrPackage) {
			t.Errorf("Open(%q): %v", path, err)
		}
		if _, err := p.ReadFile(path, 1<<30); !errors.Is(err, ErrPackage) {
			t.Errorf("ReadFile(%q): %v", path, err)
		}
	}
}

// In packages of 0.5 manifest.xml may be an index of manifests, which may be
// indexes again.
func TestManifestIndexOf05(t *testing.T) {
	const index = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcedump-manifest" modified="2013-01-03T09:00:00Z"/>%s</sitemapindex>`
	const list = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcedump-manifest" modified="2013-01-03T09:00:00Z"/>%s</urlset>`
	one := func(loc string) string {
		return `<url><loc>http://src.example/` + loc + `</loc><rs:md path="/` + loc + `"/></url>`
	}
	open := func(members ...member) ([]string, *Reader, error) {
		b := makeZip(t, members...)
		p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{Reader: ReaderOptions{BaseURL: "http://src.example/dump.zip"}})
		if err != nil {
			t.Fatal(err)
		}
		r, closer, err := p.Manifest()
		if err != nil {
			return nil, nil, err
		}
		defer closer.Close()
		var locs []string
		for {
			e, err := r.Next()
			if err == io.EOF {
				return locs, r, nil
			}
			if err != nil {
				return locs, r, err
			}
			locs = append(locs, strings.TrimPrefix(e.Loc, "http://src.example/"))
		}
	}
	locs, r, err := open(
		member{name: "manifest.xml", data: fmt.Sprintf(index, `<sitemap><loc>m1.xml</loc><rs:md path="/m1.xml"/></sitemap><sitemap><loc>more.xml</loc></sitemap><sitemap><loc>/m3.xml</loc></sitemap>`)},
		member{name: "m1.xml", data: fmt.Sprintf(list, one("a")+one("b"))},
		member{name: "more.xml", data: fmt.Sprintf(index, `<sitemap><loc>m2.xml</loc></sitemap>`)},
		member{name: "m2.xml", data: fmt.Sprintf(list, one("c"))},
		member{name: "m3.xml", data: fmt.Sprintf(list, "")},
	)
	if err != nil || !reflect.DeepEqual(locs, []string{"a", "b", "c"}) {
		t.Errorf("read %q, %v", locs, err)
	} else if h := r.Head(); h.Index || h.Meta.Capability != ResourceDumpManifest || r.Count() != 3 {
		t.Errorf("head %+v, count %d", h, r.Count())
	}
	for name, c := range map[string]struct{ entries, says string }{
		"circle":    {`<sitemap><loc>manifest.xml</loc></sitemap>`, "twice"},
		"nothing":   {``, "names no manifest"},
		"not there": {`<sitemap><loc>m9.xml</loc></sitemap>`, "not in it"},
		"slip":      {`<sitemap><loc>../m.xml</loc></sitemap>`, ".."},
	} {
		if _, _, err := open(member{name: "manifest.xml", data: fmt.Sprintf(index, c.entries)}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.says)
		}
	}
}

// FuzzPackage: no bytes make the package reader panic or unpack more than it may.
func FuzzPackage(f *testing.F) {
	f.Add(makeZip(f, member{name: "manifest.xml", data: tinyManifest}, member{name: "a", data: "x"}))
	f.Add(makeZip(f, member{name: "manifest.xml", data: strings.ReplaceAll(tinyManifest, "urlset", "sitemapindex")}))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := OpenPackage(bytes.NewReader(b), int64(len(b)), PackageOptions{MaxEntryBytes: 1 << 16, MaxBytes: 1 << 17, MaxMembers: 100, Reader: ReaderOptions{MaxEntries: 100}})
		if err != nil {
			return
		}
		for _, name := range p.Names() {
			if CheckMemberName(name) != nil {
				t.Fatalf("the name %q passed", name)
			}
			body, err := p.Open(name)
			if err != nil {
				continue
			}
			var streamed bytes.Buffer
			n, err := io.Copy(&streamed, body)
			body.Close()
			if n > 1<<17 {
				t.Fatalf("%q gave %d bytes", name, n)
			}
			if whole, werr := p.ReadFile(name, 1<<30); err == nil && (werr != nil || !bytes.Equal(whole, streamed.Bytes())) {
				t.Fatalf("%q gave %d bytes, and %d at once: %v", name, n, len(whole), werr)
			}
		}
		r, closer, err := p.Manifest()
		if err != nil {
			return
		}
		defer closer.Close()
		for {
			if _, err := r.Next(); err != nil {
				return
			}
		}
	})
}
