package resourcesync

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

const (
	maxFeed      = 64 << 20
	maxFeedItems = 100_000
)

// feedItem is an item of RSS or an entry of Atom.
type feedItem struct {
	loc  string
	time time.Time
}

// feedAsList gives a feed of RSS 2.0 or Atom as a Change List, the oldest first. A feed
// is read whole: it has its newest first, and few items.
func feedAsList(r io.Reader, maxBytes int64) io.Reader {
	limit := int64(maxFeed)
	if maxBytes > 0 {
		limit = min(limit, maxBytes)
	}
	limited := &io.LimitedReader{R: r, N: limit + 1}
	items, err := readFeed(limited)
	switch {
	case limited.N <= 0:
		return failedReader{fmt.Errorf("the feed is longer than %d bytes", limit)}
	case err != nil:
		if errors.As(err, new(*xml.SyntaxError)) {
			err = fmt.Errorf("%w: %w", ErrSyntax, err)
		}
		return failedReader{fmt.Errorf("the feed cannot be read: %w", err)}
	}
	slices.Reverse(items) // where no times tell
	slices.SortStableFunc(items, func(a, b feedItem) int {
		if a.time.IsZero() || b.time.IsZero() {
			return 0
		}
		return a.time.Compare(b.time)
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "<urlset xmlns=%q xmlns:rs=%q><rs:md capability=%q/>\n", NamespaceSitemap, NamespaceRS, ChangeList)
	for _, it := range items {
		b.WriteString("<url><loc>")
		b.Write(escapeText(nil, []byte(it.loc)))
		b.WriteString(`</loc>`)
		when := ""
		if !it.time.IsZero() {
			at := FormatTime(it.time)
			when = fmt.Sprintf(" datetime=%q", at)
			fmt.Fprintf(&b, "<lastmod>%s</lastmod>", at)
		}
		fmt.Fprintf(&b, "<rs:md change=%q%s/></url>\n", Updated, when)
	}
	b.WriteString("</urlset>\n")
	return &b
}

type feedElement struct {
	Links []struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
		Text string `xml:",chardata"`
	} `xml:"link"`
	GUID struct {
		Permalink string `xml:"isPermaLink,attr"`
		Text      string `xml:",chardata"`
	} `xml:"guid"`
	PubDate   string `xml:"pubDate"`
	Date      string `xml:"date"` // Dublin Core
	Updated   string `xml:"updated"`
	Published string `xml:"published"`
}

func readFeed(r io.Reader) (items []feedItem, err error) {
	d := xml.NewDecoder(r)
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) { return charset.NewReaderLabel(label, in) }
	ended := false
	for {
		tok, err := d.Token()
		if err == io.EOF {
			if !ended {
				return nil, io.ErrUnexpectedEOF
			}
			return items, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.EndElement:
			ended = t.Name.Local == "rss" || t.Name.Local == "feed"
		case xml.StartElement:
			if t.Name.Local != "item" && t.Name.Local != "entry" {
				continue
			}
			if len(items) == maxFeedItems {
				return nil, errors.New("it has too many items")
			}
			var e feedElement
			if err := d.DecodeElement(&e, &t); err != nil {
				return nil, err
			}
			items = append(items, feedItem{e.loc(), e.time()})
		}
	}
}

// loc is the address of what an item is about, "" if it has none.
func (e *feedElement) loc() string {
	for _, l := range e.Links {
		if l.Rel == "" || l.Rel == RelAlternate {
			if loc := cmp.Or(strings.TrimSpace(l.Href), strings.TrimSpace(l.Text)); loc != "" {
				return loc
			}
		}
	}
	if e.GUID.Permalink != "false" && HasScheme(strings.TrimSpace(e.GUID.Text)) {
		return strings.TrimSpace(e.GUID.Text)
	}
	return ""
}

// time is when an item was changed last, zero if it does not tell.
func (e *feedElement) time() time.Time {
	for _, s := range []string{e.Updated, e.PubDate, e.Date, e.Published} {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if t, _, ok := ScanTime(s); ok {
			return t
		}
		if t, err := mail.ParseDate(s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
