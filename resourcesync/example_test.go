package resourcesync_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

func ExampleNewWriter() {
	head := resourcesync.Head{
		Meta:  resourcesync.Meta{Capability: resourcesync.ChangeList, From: time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC)},
		Links: []resourcesync.Link{{Rel: resourcesync.RelUp, Href: "http://src.example/people/capabilitylist.xml"}},
	}
	w, err := resourcesync.NewWriter(os.Stdout, head)
	if err != nil {
		log.Fatal(err)
	}
	err = w.Write(&resourcesync.Entry{
		Loc:     "http://src.example/people/ada.nt",
		HasMeta: true,
		Meta:    resourcesync.Meta{Change: resourcesync.Updated, DateTime: time.Date(2024, 5, 2, 9, 0, 0, 120_000, time.UTC), Length: 412, Type: "application/n-triples"},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/" xmlns:rsb="urn:rsbridge:terms">
	//   <rs:ln rel="up" href="http://src.example/people/capabilitylist.xml"/>
	//   <rs:md capability="changelist" from="2024-05-02T00:00:00Z"/>
	//   <url><loc>http://src.example/people/ada.nt</loc><rs:md change="updated" datetime="2024-05-02T09:00:00.000120Z" length="412" type="application/n-triples"/></url>
	// </urlset>
}

const list = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:ln rel="resourcesync" href="capabilitylist.xml"/>
  <rs:md capability="resourcelist" from="2013-06-01T09:00:00Z"/>
  <url><loc>r/ada.nt</loc><lastmod>2013-05-31 20:00:00</lastmod></url>
</urlset>`

// A list of 0.9 with relative addresses is read, and the reader tells what it let
// pass.
func ExampleNewReader() {
	r, err := resourcesync.NewReader(strings.NewReader(list), resourcesync.ReaderOptions{BaseURL: "http://src.example/people/resourcelist.xml"})
	if err != nil {
		log.Fatal(err)
	}
	head := r.Head()
	fmt.Println(head.Meta.Capability, "of", resourcesync.FormatTime(head.SnapshotTime()), "in", head.Parent())
	for {
		entry, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Loc, resourcesync.FormatTime(entry.LastMod))
	}
	fmt.Println("dialect", head.Dialect)
	for _, warning := range head.Warnings {
		fmt.Println(warning)
	}
	// Output:
	// resourcelist of 2013-06-01T09:00:00Z in http://src.example/people/capabilitylist.xml
	// http://src.example/people/r/ada.nt 2013-05-31T20:00:00Z
	// dialect 0.9
	// line 2: href "capabilitylist.xml" is not absolute; it is read as http://src.example/people/capabilitylist.xml (and 1 more of this kind)
	// line 4: lastmod "2013-05-31 20:00:00" is read as 2013-05-31T20:00:00Z: a time needs a zone (Z, +hh:mm or -hh:mm)
}

func ExamplePackageWriter() {
	var file bytes.Buffer
	p, err := resourcesync.NewPackageWriter(&file, resourcesync.Head{
		Meta: resourcesync.Meta{Capability: resourcesync.ResourceDumpManifest, At: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)},
	})
	if err != nil {
		log.Fatal(err)
	}
	data := []byte("<http://src.example/ada> <http://src.example/name> \"Ada\" .\n")
	err = p.Add("/r/ada.nt", data, &resourcesync.Entry{
		Loc:  "http://src.example/people/ada.nt",
		Meta: resourcesync.Meta{Length: int64(len(data)), Type: "application/n-triples"},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := p.Close(); err != nil {
		log.Fatal(err)
	}
	opened, err := resourcesync.OpenPackage(bytes.NewReader(file.Bytes()), int64(file.Len()), resourcesync.PackageOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(opened.Names())
	// Output:
	// [r/ada.nt manifest.xml]
}
