package resourcesync

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// document is one of every kind that is written.
type document struct {
	name    string
	head    Head
	entries []*Entry
}

func documents() []document {
	t1, t2, t3 := at("2024-05-01T00:00:00Z"), at("2024-05-01T09:00:00.00012Z"), at("2024-05-02T00:00:00Z")
	up := func(target string, more ...Link) []Link {
		return append([]Link{{Rel: RelUp, Href: "http://src.example/" + target}}, more...)
	}
	sha := Hashes{MD5: "68b329da9893e34099c7d8ad5cb9c940", SHA1: "adc83b19e793491b1c6ea0fd8b46cd9f32e592fc", SHA256: "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b"}
	of := func(c Capability, loc string, links ...Link) *Entry {
		return &Entry{Loc: "http://src.example/" + loc, HasMeta: true, Meta: Meta{Capability: c}, Links: links}
	}
	about := Link{Rel: RelDescribedBy, Href: "http://src.example/people/about"}
	resource := &Entry{
		Loc: "http://src.example/people/r/ada?x=1&y=<2>'\"", LastMod: t2, ChangeFreq: "daily", Priority: "0.5", HasMeta: true,
		Meta: Meta{Hash: sha, Length: 1, Type: "application/n-triples", Encoding: "gzip", Ext: map[string]string{ExtGraph: "sha-256:00", "a": "x \t\n\r<&>\"'"}},
		Links: []Link{
			{Rel: RelDescribes, Href: "http://people.example/ada"}, about,
			{Rel: RelDuplicate, Href: "http://mirror.example/ada", Pri: 2},
			{Rel: RelAlternate, Href: "http://src.example/people/r/ada.ttl", Type: "text/turtle", Profile: "http://src.example/profile"},
			{Rel: RelMemento, Href: "http://src.example/people/r/ada?version=1", Modified: t1, Hash: sha, Length: 0, Type: "application/n-triples", Encoding: "gzip"},
		},
	}
	change := func(loc, change string, t time.Time, m Meta, links ...Link) *Entry {
		m.Change, m.DateTime = change, t
		return &Entry{Loc: "http://src.example/people/r/" + loc, LastMod: t, HasMeta: true, Meta: m, Links: links}
	}
	patch := Link{Rel: RelPatch, Href: "http://src.example/p/1", Type: "application/json-patch+json", Length: 12, Ext: map[string]string{ExtBase: "sha-256:00", ExtResult: "sha-256:01"}}
	inside := patch
	inside.Path = "/p/1"
	part := func(name string, m Meta) *Entry {
		return &Entry{Loc: "http://src.example/people/" + name, HasMeta: true, Meta: m}
	}
	return []document{
		{"description", Head{Meta: Meta{Capability: Description}, Links: []Link{about}}, []*Entry{of(CapabilityList, "people/capabilitylist.xml", about)}},
		{"description-index", Head{Index: true, Meta: Meta{Capability: Description}}, []*Entry{of(Description, "d1.xml")}},
		{"capabilitylist", Head{Meta: Meta{Capability: CapabilityList}, Links: up(".well-known/resourcesync", about)}, []*Entry{
			of(ResourceList, "people/resourcelist.xml"), of(ChangeList, "people/changelist.xml"), of(ResourceDump, "people/resourcedump.xml"),
			of(ChangeDump, "people/changedump.xml"), of(ChangeNotification, "people/topic", Link{Rel: RelHub, Href: "http://hub.example/"})}},
		{"resourcelist", Head{Meta: Meta{Capability: ResourceList, At: t1, Completed: t2, Ext: map[string]string{ExtSequence: "7", ExtGeneration: "2"}}, Links: up("people/capabilitylist.xml", Link{Rel: RelIndex, Href: "http://src.example/people/resourcelist.xml"})},
			[]*Entry{resource, {Loc: "http://src.example/people/r/plain"}}},
		{"resourcelist-index", Head{Index: true, Meta: Meta{Capability: ResourceList, At: t1}, Links: up("people/capabilitylist.xml")}, []*Entry{part("resourcelist-1.xml", Meta{At: t1, Completed: t2}), part("resourcelist-2.xml", Meta{At: t2})}},
		{"resourcedump", Head{Meta: Meta{Capability: ResourceDump, At: t1}, Links: up("people/capabilitylist.xml")}, []*Entry{
			{Loc: "http://src.example/people/d1.zip", HasMeta: true, Meta: Meta{Type: "application/zip", Length: 4765, Hash: sha, At: t1}, Links: []Link{{Rel: RelContents, Href: "http://src.example/people/d1.xml", Type: "application/xml"}}}}},
		{"resourcedump-manifest", Head{Meta: Meta{Capability: ResourceDumpManifest, At: t1}, Links: up("people/capabilitylist.xml")}, []*Entry{part("r/ada", Meta{Type: "text/turtle", Path: "/r/ada"})}},
		{"changelist", Head{Meta: Meta{Capability: ChangeList, From: t1}, Links: up("people/capabilitylist.xml")}, []*Entry{
			change("ada", Created, t1, Meta{Hash: sha, Length: 0}), change("ada", Updated, t2, Meta{Length: 3}, patch), change("ada", Deleted, t2, Meta{})}},
		{"changelist-index", Head{Index: true, Meta: Meta{Capability: ChangeList, From: t1}, Links: up("people/capabilitylist.xml")}, []*Entry{part("changelist-1.xml", Meta{From: t1, Until: t2}), part("changelist-2.xml", Meta{From: t2})}},
		{"changedump", Head{Meta: Meta{Capability: ChangeDump, From: t1, Until: t3}, Links: up("people/capabilitylist.xml")}, []*Entry{part("c1.zip", Meta{Type: "application/zip", Length: 12, From: t1, Until: t3})}},
		{"changedump-manifest", Head{Meta: Meta{Capability: ChangeDumpManifest, From: t1, Until: t3}, Links: up("people/capabilitylist.xml")}, []*Entry{
			change("ada", Updated, t2, Meta{Type: "text/turtle", Path: "/1/ada"}, inside), change("zoe", Deleted, t2, Meta{})}},
		{"resourcelist-archive", Head{Meta: Meta{Capability: ResourceListArchive}, Links: up("people/capabilitylist.xml")}, []*Entry{part("a1.xml", Meta{At: t1})}},
		{"resourcedump-archive", Head{Meta: Meta{Capability: ResourceDumpArchive}, Links: up("people/capabilitylist.xml")}, []*Entry{part("a2.xml", Meta{At: t1, Completed: t2})}},
		{"changelist-archive", Head{Meta: Meta{Capability: ChangeListArchive}, Links: up("people/capabilitylist.xml")}, []*Entry{part("a3.xml", Meta{From: t1, Until: t2}), part("a4.xml", Meta{From: t2, Until: t3})}},
		{"changedump-archive", Head{Meta: Meta{Capability: ChangeDumpArchive}, Links: up("people/capabilitylist.xml")}, []*Entry{part("a5.xml", Meta{From: t1, Until: t2})}},
		{"changelist-archive-index", Head{Index: true, Meta: Meta{Capability: ChangeListArchive}, Links: up("people/capabilitylist.xml")}, []*Entry{{Loc: "http://src.example/people/a6.xml"}}},
		{"change-notification", Head{Meta: Meta{Capability: ChangeNotification, From: t1, Until: t2}, Links: up("people/capabilitylist.xml")}, []*Entry{change("ada", Updated, t2, Meta{Length: 418, Type: "text/turtle"})}},
		{"framework-notification", Head{Meta: Meta{Capability: FrameworkNotification}, Links: up("people/capabilitylist.xml")}, []*Entry{
			{Loc: "http://src.example/people/resourcelist-1.xml", HasMeta: true, Meta: Meta{Capability: ResourceList, Change: Created, DateTime: t2}, Links: []Link{{Rel: RelIndex, Href: "http://src.example/people/resourcelist.xml"}}}}},
	}
}

// Every kind of document: its bytes, that the strict reader reads it, and that it is
// stable. Package check holds the golden files against the rules.
func TestWrittenDocuments(t *testing.T) {
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			doc := writeAll(t, d.head, d.entries...)
			golden(t, filepath.Join("written", d.name+".xml"), doc)
			r, entries, err := readAll(string(doc), ReaderOptions{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			if h := r.Head(); h.Dialect != Dialect11 || len(h.Warnings) > 0 {
				t.Errorf("dialect %q, warnings %v", h.Dialect, h.Warnings)
			}
			if again := writeAll(t, *r.Head(), entries...); !bytes.Equal(again, doc) {
				t.Errorf("read and written again:\n%s\nwas\n%s", again, doc)
			}
		})
	}
}

// The XML Schemas accept every document that is written, and the reference library
// reads it.
func TestSchemas(t *testing.T) {
	dir := t.TempDir()
	for _, d := range documents() {
		if err := os.WriteFile(filepath.Join(dir, d.name+".xml"), writeAll(t, d.head, d.entries...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := teststores.Documents(t, dir); n != len(documents()) {
		t.Errorf("%d documents were read of %d", n, len(documents()))
	}
}

func TestWriterRefuses(t *testing.T) {
	t1, t2 := at("2024-05-01T00:00:00Z"), at("2024-05-02T00:00:00Z")
	for name, c := range map[string]struct {
		head Head
		says string
	}{
		"no capability":         {Head{}, "no capability"},
		"list without at":       {Head{Meta: Meta{Capability: ResourceList}}, "needs the attribute at"},
		"changes without from":  {Head{Meta: Meta{Capability: ChangeDump}}, "needs the attribute from"},
		"list with until":       {Head{Meta: Meta{Capability: ResourceList, At: t1, Until: t1}}, "not from and until"},
		"changes with at":       {Head{Meta: Meta{Capability: ChangeList, From: t1, At: t1}}, "not at and completed"},
		"at after completed":    {Head{Meta: Meta{Capability: ResourceDump, At: t2, Completed: t1}}, "before at"},
		"from after until":      {Head{Meta: Meta{Capability: ChangeList, From: t2, Until: t1}}, "before from"},
		"index of manifests":    {Head{Index: true, Meta: Meta{Capability: ResourceDumpManifest, At: t1}}, "no index form"},
		"open notification":     {Head{Meta: Meta{Capability: ChangeNotification, From: t1}}, "from and until"},
		"link without rel":      {Head{Meta: Meta{Capability: Description}, Links: []Link{{Href: "x:"}}}, "mandatory"},
		"character in link":     {Head{Meta: Meta{Capability: Description}, Links: []Link{{Rel: "up", Href: "x:\x00"}}}, "U+0000"},
		"extension not a name":  {Head{Meta: Meta{Capability: Description, Ext: map[string]string{"a b": ""}}}, "name of an XML attribute"},
		"year that is too late": {Head{Meta: Meta{Capability: ResourceList, At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}, "year 10000"},
	} {
		if _, err := NewWriter(&bytes.Buffer{}, c.head); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.says)
		}
	}
	for name, c := range map[string]struct {
		entry Entry
		says  string
	}{
		"no loc":           {Entry{}, "no loc"},
		"character in loc": {Entry{Loc: "http://src.example/\x01"}, `"http://src.example/\x01"`},
		"not UTF-8":        {Entry{Loc: "http://src.example/\xff"}, "0xff"},
		"half a surrogate": {Entry{Loc: "http://src.example/\xed\xa0\x80"}, "not UTF-8"},
		"noncharacter":     {Entry{Loc: "x:a", HasMeta: true, Meta: Meta{Type: "\uFFFF"}}, "U+FFFF"},
		"change":           {Entry{Loc: "x:a", HasMeta: true, Meta: Meta{Change: "modified"}}, "modified"},
		"pri":              {Entry{Loc: "x:a", Links: []Link{{Rel: "a", Href: "b:", Pri: 1000000}}}, "1000000"},
		"link":             {Entry{Loc: "x:a", Links: []Link{{Rel: "a"}}}, "mandatory"},
		"year":             {Entry{Loc: "x:a", LastMod: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, "lastmod"},
	} {
		before := []byte("before")
		got, err := AppendEntry(before, &c.entry)
		if err == nil || !strings.Contains(err.Error(), c.says) || string(got) != "before" {
			t.Errorf("%s: %q, %v, want an error with %q", name, got, err, c.says)
		}
	}
}

// Entries that were rendered before give the same bytes.
func TestWriteRaw(t *testing.T) {
	head := Head{Meta: Meta{Capability: ResourceList, At: at("2024-05-01T00:00:00Z")}}
	var rendered []byte
	var entries []*Entry
	var err error
	for i := range 500 {
		entries = append(entries, sampleEntry(i))
		if rendered, err = AppendEntry(rendered, entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := writeAll(t, head, entries...)
	for _, piece := range []int{1, 7, 1000, 100_000, len(rendered)} {
		var b bytes.Buffer
		w, err := NewWriter(&b, head)
		if err != nil {
			t.Fatal(err)
		}
		for rest := rendered; len(rest) > 0; {
			n := min(piece, len(rest))
			if err := w.WriteRaw(rest[:n], 0); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		w.WriteRaw(nil, 500)
		if err := w.Close(); err != nil || !bytes.Equal(b.Bytes(), want) || w.Count() != 500 || w.Size() != int64(b.Len()) {
			t.Errorf("pieces of %d: %v, Count %d, Size %d of %d, equal %v", piece, err, w.Count(), w.Size(), b.Len(), bytes.Equal(b.Bytes(), want))
		}
		if w.Close() != nil || w.Write(entries[0]) == nil {
			t.Error("a closed document takes entries, or cannot be closed again")
		}
	}
}

func TestNextIntoReusesOnlyRoom(t *testing.T) {
	doc := writeAll(t, Head{Meta: Meta{Capability: ResourceList, At: at("2024-05-01T00:00:00Z")}},
		sampleEntry(1), &Entry{Loc: "http://src.example/bare"}, sampleEntry(2))
	_, want, err := readAll(string(doc), ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(doc), ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var e Entry
	for i := range want {
		if err := r.NextInto(&e); err != nil {
			t.Fatal(err)
		}
		got := e
		if len(got.Links) == 0 {
			got.Links = nil
		}
		if !reflect.DeepEqual(&got, want[i]) {
			t.Errorf("entry %d: %+v, want %+v", i, got, want[i])
		}
	}
}
