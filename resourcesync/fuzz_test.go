package resourcesync

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
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

// FuzzAgainstEncodingXML: what the tokenizer accepts, encoding/xml accepts and
// reads the same.
func FuzzAgainstEncodingXML(f *testing.F) {
	addSeeds(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, doc []byte) {
		if hasWideName(doc) {
			return // the editions of XML differ in which letters names may have
		}
		got, err := tokens(doc)
		if err != nil {
			return
		}
		want, err := standardTokens(doc)
		if err != nil {
			t.Fatalf("accepted, encoding/xml says: %v\n%s", err, got)
		}
		if got != want {
			t.Fatalf("read as\n%s\nencoding/xml reads\n%s", got, want)
		}
	})
}

func hasWideName(doc []byte) bool {
	inside := false
	for _, b := range doc {
		switch {
		case b == '<':
			inside = true
		case b == '>':
			inside = false
		case b >= 0x80 && inside:
			return true
		}
	}
	return false
}

// tokens shows what the tokenizer reads, with the text of every element.
func tokens(doc []byte) (string, error) {
	s := newScanner(bytes.NewReader(doc), "", 0, 256<<10)
	var b strings.Builder
	s.keep = true
	for {
		s.text = s.text[:0]
		if s.depth() == 0 && !s.selfEnd {
			s.keep = false
		}
		tok, err := s.next()
		if err != nil {
			return "", err
		}
		if len(s.text) > 0 {
			fmt.Fprintf(&b, "text %q\n", s.text)
		}
		switch tok {
		case tokenEOF:
			return b.String(), nil
		case tokenEnd:
			b.WriteString("end\n")
		case tokenStart:
			fmt.Fprintf(&b, "start %q %q", flat(s.name.uri), s.name.local)
			for i := range s.attrs {
				a := &s.attrs[i]
				if a.ns == nsXMLNS {
					continue
				}
				fmt.Fprintf(&b, " %q %q=%q", flat(a.uri), a.local, flat(string(a.value)))
			}
			b.WriteString("\n")
		}
		s.keep = true
	}
}

// flat is attribute-value normalization for what encoding/xml leaves as it is.
func flat(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(s)
}

func standardTokens(doc []byte) (string, error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var b strings.Builder
	text, depth := "", 0
	flush := func() {
		if text != "" && depth > 0 {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text = ""
	}
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			flush()
			depth++
			fmt.Fprintf(&b, "start %q %q", flat(tok.Name.Space), tok.Name.Local)
			for _, a := range tok.Attr {
				if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
					continue
				}
				space := a.Name.Space
				if space == "xml" {
					space = namespaceXML
				}
				fmt.Fprintf(&b, " %q %q=%q", flat(space), a.Name.Local, flat(a.Value))
			}
			b.WriteString("\n")
		case xml.EndElement:
			flush()
			depth--
			b.WriteString("end\n")
		case xml.CharData:
			text += string(tok)
		}
	}
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
		if _, err := standardTokens(b.Bytes()); err != nil {
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

// FuzzValidate: no input makes the validator panic, and it finds an error in
// everything that the strict reader refuses for its XML.
func FuzzValidate(f *testing.F) {
	addSeeds(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, doc []byte) {
		n := 0
		_, findings, err := Validate(bytes.NewReader(doc), ValidateOptions{Location: "http://src.example/x", Now: at("2024-05-01T00:00:00Z"), MaxPerRule: 3,
			Entry: func(*Head, *Entry) error { n++; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		failed := false
		for _, f := range findings {
			failed = failed || f.Severity == SeverityError
			if _, ok := RuleOf(f.Rule); !ok {
				t.Fatalf("finding of no rule: %s", f)
			}
		}
		if _, entries, err := readAll(string(doc), ReaderOptions{Strict: true}); err != nil && !failed {
			if _, _, lenient := readAll(string(doc), ReaderOptions{}); lenient != nil {
				t.Fatalf("the reader says %v after %d entries, the validator found nothing", err, len(entries))
			}
		}
	})
}
