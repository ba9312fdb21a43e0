package check

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"

	"github.com/rsbridge/rsbridge/resourcesync"
)

const openList = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2024-05-01T00:00:00Z"/>`

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
func readAll(doc string, o resourcesync.ReaderOptions) (*resourcesync.Reader, []*resourcesync.Entry, error) {
	r, err := resourcesync.NewReader(strings.NewReader(doc), o)
	if err != nil {
		return nil, nil, err
	}
	var entries []*resourcesync.Entry
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

func at(s string) time.Time {
	t, err := resourcesync.ParseTime(s, false)
	if err != nil {
		panic(err)
	}
	return t
}

func sampleEntry(i int) *resourcesync.Entry {
	return &resourcesync.Entry{
		Loc: fmt.Sprintf("http://src.example/books/r/resource/Berlin_%d.jsonld", i), LastMod: time.Unix(1700000000+int64(i), 123456000).UTC(),
		HasMeta: true,
		Meta: resourcesync.Meta{
			Length: 1234, Type: "application/ld+json",
			Hash: resourcesync.Hashes{SHA256: "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"},
		},
		Links: []resourcesync.Link{
			{Rel: resourcesync.RelDescribes, Href: "http://dbpedia.org/resource/Berlin", Length: -1},
			{Rel: resourcesync.RelMemento, Href: "http://src.example/books/r/resource/Berlin.jsonld?version=20240102030405", Modified: time.Unix(1700000000, 0).UTC(), Length: -1},
		},
	}
}

// member is one member of a package made by hand.
type member struct{ name, data string }

func makeZip(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		w, err := z.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, m.data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const tinyManifest = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcedump-manifest" at="2024-05-01T00:00:00Z"/><url><loc>http://src.example/a</loc><rs:md path="/a"/></url></urlset>`

const tinyList = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2024-05-01T00:00:00Z"/></urlset>`
