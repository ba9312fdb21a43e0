package resourcesync

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares got with testdata/name, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to make it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update if that is right)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// sharedFiles are the XML files of a folder of the shared fixtures.
func sharedFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(teststores.Shared(t, dir), "*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples in %s (%v)", dir, err)
	}
	return files
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readAll reads a whole document.
func readAll(doc string, o ReaderOptions) (*Reader, []*Entry, error) {
	r, err := NewReader(strings.NewReader(doc), o)
	if err != nil {
		return nil, nil, err
	}
	var entries []*Entry
	for {
		e, err := r.Next()
		if err == io.EOF {
			return r, entries, nil
		}
		if err != nil {
			return r, entries, err
		}
		entries = append(entries, e)
	}
}

// writeAll writes a whole document.
func writeAll(t testing.TB, h Head, entries ...*Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != w.Size() || w.Count() != len(entries) {
		t.Fatalf("Size %d, Count %d of a document of %d bytes and %d entries", w.Size(), w.Count(), b.Len(), len(entries))
	}
	return b.Bytes()
}

// infoset gives the information of a document, by encoding/xml: names with their
// namespaces, attributes sorted, text trimmed. rs elements of one parent are
// sorted, as their order means nothing.
func infoset(t testing.TB, doc []byte) string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(doc))
	type node struct {
		name     string
		text     string
		children []string
		rs       []string
	}
	stack := []*node{{}}
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return strings.Join(append(stack[0].children, stack[0].rs...), "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			var attrs []string
			for _, a := range tok.Attr {
				if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
					continue
				}
				attrs = append(attrs, fmt.Sprintf("%s %s=%q", a.Name.Space, a.Name.Local, strings.Join(strings.Fields(a.Value), " ")))
			}
			slices.Sort(attrs)
			stack = append(stack, &node{name: fmt.Sprintf("{%s}%s %s", tok.Name.Space, tok.Name.Local, strings.Join(attrs, " "))})
		case xml.CharData:
			stack[len(stack)-1].text += string(tok)
		case xml.EndElement:
			n, parent := stack[len(stack)-1], stack[len(stack)-2]
			stack = stack[:len(stack)-1]
			slices.Sort(n.rs)
			s := fmt.Sprintf("<%s>%s[%s|%s]", n.name, strings.TrimSpace(n.text), strings.Join(n.children, "\n"), strings.Join(n.rs, "\n"))
			if tok.Name.Space == NamespaceRS {
				parent.rs = append(parent.rs, s)
			} else {
				parent.children = append(parent.children, s)
			}
		}
	}
}

func at(s string) time.Time {
	t, err := ParseTime(s, false)
	if err != nil {
		panic(err)
	}
	return t
}

func sampleEntry(i int) *Entry {
	return &Entry{
		Loc: fmt.Sprintf("http://src.example/books/r/resource/Berlin_%d.jsonld", i), LastMod: time.Unix(1700000000+int64(i), 123456000).UTC(),
		HasMeta: true,
		Meta: Meta{
			Length: 1234, Type: "application/ld+json",
			Hash: Hashes{SHA256: "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"},
		},
		Links: []Link{
			{Rel: RelDescribes, Href: "http://dbpedia.org/resource/Berlin", Length: -1},
			{Rel: RelMemento, Href: "http://src.example/books/r/resource/Berlin.jsonld?version=20240102030405", Modified: time.Unix(1700000000, 0).UTC(), Length: -1},
		},
	}
}

// dump shows everything that was read of a document.
func dump(r *Reader, entries []*Entry, err error) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r == nil {
		line("error: %v", err)
		return b.String()
	}
	h := r.Head()
	line("capability %q index %v dialect %q legacy %v", h.Meta.Capability, h.Index, h.Dialect, h.LegacyLinks)
	line("parent %q indexurl %q closed %v snapshot %s order %s", h.Parent(), h.IndexURL(), h.Closed(), show(h.SnapshotTime()), r.Order())
	line("root %s", showMeta(&h.Meta))
	for i := range h.Links {
		line("  %s", showLink(&h.Links[i]))
	}
	for _, w := range h.Warnings {
		line("warning: %s", w)
	}
	for _, e := range entries {
		line("entry %q line %d lastmod %s changefreq %q priority %q change time %s package %v", e.Loc, e.Line, show(e.LastMod), e.ChangeFreq, e.Priority, show(r.ChangeTime(e)), e.IsPackage())
		if e.HasMeta {
			line("  %s", showMeta(&e.Meta))
		}
		for i := range e.Links {
			line("  %s", showLink(&e.Links[i]))
		}
	}
	if err != nil {
		line("error: %v", err)
	}
	return b.String()
}

func show(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return FormatTime(t)
}

func showMeta(m *Meta) string {
	return fmt.Sprintf("md capability %q change %q at %s completed %s from %s until %s modified %s datetime %s encoding %q path %q type %q length %d hash %q ext %v",
		m.Capability, m.Change, show(m.At), show(m.Completed), show(m.From), show(m.Until), show(m.Modified), show(m.DateTime),
		m.Encoding, m.Path, m.Type, m.Length, m.Hash, m.Ext)
}

func showLink(l *Link) string {
	return fmt.Sprintf("ln rel %q href %q type %q encoding %q path %q profile %q length %d modified %s pri %d hash %q ext %v",
		l.Rel, l.Href, l.Type, l.Encoding, l.Path, l.Profile, l.Length, show(l.Modified), l.Pri, l.Hash, l.Ext)
}
