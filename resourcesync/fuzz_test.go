package resourcesync

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/iotest"
	"time"
)

func addSeeds(f *testing.F, add func([]byte)) {
	files, _ := filepath.Glob("testdata/dialects/*.xml")
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		add(b)
	}
	for _, s := range []string{
		openList + oneEntry + "</urlset>", "<a>]]</a>", "<a>\r\n\r</a>", "<a b='x\r\n\ty&#13;'/>", "<a><![CDATA[\r\n]]></a>", "<a><!-- - --><?p q?></a>",
		"\xef\xbb\xbf<a/>", "<a xmlns='u' xmlns:b='v' b:c=''><b:d xmlns=''/></a>", "<a>&lt;&#x10FFFF;&apos;</a >", "<é ü='ö'/>",
	} {
		add([]byte(s))
	}
}

// FuzzReader: no input makes the reader panic, or hold more than its bounds, and
// the pieces in which it comes do not matter.
func FuzzReader(f *testing.F) {
	addSeeds(f, func(b []byte) { f.Add(b, false); f.Add(b, true) })
	f.Fuzz(func(t *testing.T, doc []byte, strict bool) {
		o := ReaderOptions{BaseURL: "http://src.example/x", Strict: strict, MaxEntries: 1000, MaxEntryLinks: 10, MaxValueBytes: 1000}
		r, entries, err := readAll(string(doc), o)
		for _, e := range entries {
			if e.Loc == "" || len(e.Links) > 10 || e.Line < 1 {
				t.Fatalf("entry %+v", e)
			}
		}
		if r == nil {
			return
		}
		if n := len(r.Head().Warnings); n > maxWarnings || strict && n > 0 {
			t.Fatalf("%d warnings", n)
		}
		got := dump(r, entries, err)
		slow, err := NewReader(iotest.OneByteReader(bytes.NewReader(doc)), o)
		if err != nil {
			t.Fatalf("by single bytes: %v", err)
		}
		var again []*Entry
		for {
			var e *Entry
			if e, err = slow.Next(); err != nil {
				break
			}
			again = append(again, e)
		}
		if err == io.EOF {
			err = nil
		}
		if by := dump(slow, again, err); by != got {
			t.Fatalf("by single bytes:\n%s\nat once:\n%s", by, got)
		}
	})
}

// FuzzRoundTrip: what the writer writes, the strict reader reads back as it was,
// and encoding/xml agrees.
func FuzzRoundTrip(f *testing.F) {
	f.Add("http://src.example/a?x&y", "text/turtle", "http://src.example/b \" ' < > \n\t", "/a/b", int64(12), int64(1714550400_000000), "0123456789abcdef0123456789abcdef", "sequence", "7")
	f.Add("x:\r\n", "", "\u00e9\U0001F600", "", int64(-1), int64(0), "", "", "")
	f.Add("a:\x00", "\xff", "\uFFFE", "]]>", int64(0), int64(1), "zz", "1", "2")
	f.Fuzz(func(t *testing.T, loc, typ, href, path string, length, micros int64, hash, ext, value string) {
		e := &Entry{
			Loc: loc, LastMod: time.UnixMicro(micros).UTC(), ChangeFreq: "daily", HasMeta: true,
			Meta: Meta{Change: Updated, Type: typ, Path: path, Length: length, DateTime: time.UnixMicro(micros).UTC()},
			Links: []Link{{Rel: "duplicate", Href: href, Length: length, Pri: int(uint64(length) % 999999), Type: typ},
				{Rel: RelPatch, Href: href, Length: -1, Encoding: typ, Profile: value, Path: path}},
		}
		if h, err := ParseHashes("md5:" + hash); err == nil {
			e.Meta.Hash = h
		}
		if ext != "" {
			e.Meta.Ext = map[string]string{ext: value}
		}
		head := Head{Meta: Meta{Capability: ChangeDumpManifest, From: at("2024-05-01T00:00:00Z")}, Links: []Link{{Rel: RelUp, Href: "http://src.example/c"}}}
		var b bytes.Buffer
		w, err := NewWriter(&b, head)
		if err != nil {
			t.Fatal(err)
		}
		refused := w.Write(e)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := wellFormed(b.Bytes()); err != nil {
			t.Fatalf("written is not well-formed: %v\n%s", err, b.String())
		}
		r, entries, err := readAll(b.String(), ReaderOptions{})
		if refused != nil {
			if err != nil || len(entries) != 0 {
				t.Fatalf("a refused entry (%v) left %d entries, %v", refused, len(entries), err)
			}
			return
		}
		// What the reader trims, or does not take for an address, is not compared.
		if loc != trimSpace(loc) || href != trimSpace(href) || typ != trimSpace(typ) || trimSpace(loc) == "" || trimSpace(href) == "" {
			return
		}
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d entries were read, %v\n%s", len(entries), err, b.String())
		}
		got := *entries[0]
		got.Line = 0
		want := *e
		fix := func(n int64, hashed bool) int64 {
			if n < 0 || n == 0 && !hashed {
				return -1
			}
			return n
		}
		want.Meta.Length = fix(length, !want.Meta.Hash.IsZero())
		want.Links = append([]Link(nil), e.Links...)
		want.Links[0].Length = fix(length, false)
		if length > 999_999_999_999_999_999 { // more than the reader takes for a count of bytes
			want.Meta.Length, want.Links[0].Length = -1, -1
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("written and read back:\n%+v\nwas\n%+v\nwarnings %v\n%s", got, want, r.Head().Warnings, b.String())
		}
	})
}

// wellFormed is what encoding/xml says of a document.
func wellFormed(doc []byte) error {
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
