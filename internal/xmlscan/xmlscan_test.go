package xmlscan

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func scan(doc []byte) *Scanner {
	return New(bytes.NewReader(doc), Options{
		MaxValue: 256 << 10, Spaces: func(string) Space { return Other },
		Fail: func(line int, kind error, message string) error {
			return fmt.Errorf("line %d: %s (%w)", line, message, kind)
		},
	})
}

func addSeeds(f *testing.F, add func([]byte)) {
	files, _ := filepath.Glob("../../resourcesync/testdata/dialects/*.xml")
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		add(b)
	}
	for _, s := range []string{
		"<a>]]</a>", "<a>\r\n\r</a>", "<a b='x\r\n\ty&#13;'/>", "<a><![CDATA[\r\n]]></a>", "<a><!-- - --><?p q?></a>",
		"\xef\xbb\xbf<a/>", "<a xmlns='u' xmlns:b='v' b:c=''><b:d xmlns=''/></a>", "<a>&lt;&#x10FFFF;&apos;</a >", "<é ü='ö'/>",
	} {
		add([]byte(s))
	}
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
	s := scan(doc)
	var b strings.Builder
	s.text.kept = true
	for {
		s.text.bytes = s.text.bytes[:0]
		if s.depth() == 0 && !s.els.empty {
			s.text.kept = false
		}
		tok, err := s.Next()
		if err != nil {
			return "", err
		}
		if len(s.text.bytes) > 0 {
			fmt.Fprintf(&b, "text %q\n", s.text.bytes)
		}
		switch tok {
		case EOF:
			return b.String(), nil
		case End:
			b.WriteString("end\n")
		case Start:
			fmt.Fprintf(&b, "start %q %q", flat(s.Name.URI), s.Name.Local)
			for i := range s.Attrs {
				a := &s.Attrs[i]
				if a.Space == XMLNS {
					continue
				}
				fmt.Fprintf(&b, " %q %q=%q", flat(a.URI), a.Local, flat(string(a.Value)))
			}
			b.WriteString("\n")
		}
		s.text.kept = true
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
					space = NamespaceXML
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
