package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestOddAnswers: servers write charsets where codings belong, pack twice or not at all,
// answer a part where nobody asked for one, or a part of something else. Either way the
// bytes that come are those of the document, or none.
func TestOddAnswers(t *testing.T) {
	const text = "<http://e.example/a> <http://p.example/n> \"A\" .\n"
	whole := []byte(strings.Repeat(text, 4000))
	half := len(whole) / 2 // of 192,000
	once := gz(whole)
	type reply struct {
		status int
		header string // "Name: value" lines
		body   []byte
	}
	// cut sends the first half and breaks off, and then what is asked of the rest.
	cut := func(rest reply) func(*http.Request) reply {
		return func(r *http.Request) reply {
			if r.Header.Get("Range") == "" {
				return reply{200, "Etag: \"v1\"", nil}
			}
			return rest
		}
	}
	plain := func(a reply) func(*http.Request) reply { return func(*http.Request) reply { return a } }
	for name, c := range map[string]struct {
		answer   func(*http.Request) reply
		document bool // it is had as a document; as a resource otherwise
		err      string
	}{
		"charset as coding":           {plain(reply{200, "Content-Encoding: UTF-8", whole}), false, ""},
		"charset as coding, document": {plain(reply{200, "Content-Encoding: iso-8859-1", whole}), true, ""},
		"none":                        {plain(reply{200, "Content-Encoding: none", whole}), false, ""},
		"packed":                      {plain(reply{200, "Content-Encoding: gzip", once}), false, ""},
		"packed twice":                {plain(reply{200, "Content-Encoding: gzip, gzip", gz(once)}), false, ""},
		"packed twice, document":      {plain(reply{200, "Content-Encoding: gzip", gz(once)}), true, ""},
		"packed without a word":       {plain(reply{200, "X: y", once}), true, ""},
		"not packed":                  {plain(reply{200, "Content-Encoding: gzip", whole}), false, ""},
		"not packed, document":        {plain(reply{200, "Content-Encoding: gzip", whole}), true, ""},
		"brotli":                      {plain(reply{200, "Content-Encoding: br", whole}), false, "br"},
		"brotli, document":            {plain(reply{200, "Content-Encoding: br", whole}), true, "br"},
		"all as a part":               {plain(reply{206, "Content-Range: bytes 0-191999/192000", whole}), false, ""},
		"all as a part, document":     {plain(reply{206, "Content-Range: bytes 0-191999/192000", whole}), true, ""},
		"a part":                      {plain(reply{206, "Content-Range: bytes 0-95999/192000", whole[:half]}), false, "206"},
		"a part, document":            {plain(reply{206, "Content-Range: bytes 0-95999/192000", whole[:half]}), true, "got \"bytes 0-95999"},
		"no range":                    {plain(reply{206, "X: y", whole[:half]}), false, "206"},
		"the rest":                    {cut(reply{206, "Content-Range: bytes 96000-191999/192000", whole[half:]}), true, ""},
		"the rest, of unknown length": {cut(reply{206, "Content-Range: bytes 96000-191999/*", whole[half:]}), true, ""},
		"a part of the rest":          {cut(reply{206, "Content-Range: bytes 96000-99999/192000", whole[half : half+4000]}), true, "unexpected EOF"},
		"another part":                {cut(reply{206, "Content-Range: bytes 0-95999/192000", whole[:half]}), true, "unexpected EOF"},
		"another unit":                {cut(reply{206, "Content-Range: items 96000-191999/192000", whole[half:]}), true, "unexpected EOF"},
		"several parts":               {cut(reply{206, "Content-Type: multipart/byteranges; boundary=x", whole[half:]}), true, "unexpected EOF"},
		"the rest of another":         {cut(reply{206, "Etag: \"v2\"\nContent-Range: bytes 96000-191999/192000", whole[half:]}), true, "unexpected EOF"},
		"all instead of the rest":     {cut(reply{200, "Etag: \"v2\"", whole}), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				a := c.answer(r)
				for line := range strings.SplitSeq(a.header, "\n") {
					name, value, _ := strings.Cut(line, ": ")
					w.Header().Set(name, value)
				}
				if a.body == nil { // breaks off
					w.Header().Set("Content-Length", "192000")
					a.body = whole[:half]
				}
				w.WriteHeader(a.status)
				_, _ = w.Write(a.body) // the client may have gone
			}))
			defer s.Close()
			lim := DefaultLimits()
			lim.Attempts = 2
			f, err := NewClient(s.URL, Options{Limits: &lim})
			if err != nil {
				t.Fatal(err)
			}
			f.Sleep = func(context.Context, time.Duration) error { return nil }
			var got []byte
			if c.document {
				var d *Body
				if d, err = f.Download(t.Context(), t.TempDir(), Request{URL: s.URL, MaxBytes: 1 << 20}); err == nil {
					defer d.Close()
					var r io.Reader
					if r, err = d.Open(); err == nil {
						got, err = io.ReadAll(r)
					}
				}
			} else {
				var a *Answer
				if a, err = f.Get(t.Context(), Request{URL: s.URL, MaxBytes: 1 << 20, Attempts: 2}); err == nil {
					got = a.Body
				}
			}
			switch {
			case c.err == "" && (err != nil || !bytes.Equal(got, whole)):
				t.Errorf("%d bytes, %v", len(got), err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%d bytes, %v; want an error with %s", len(got), err, c.err)
			}
		})
	}
}

func gz(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(body)
	z.Close()
	return b.Bytes()
}
