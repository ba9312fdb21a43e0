package resourcesync

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

const (
	maxFeed      = 64 << 20
	maxFeedItems = 100_000
)

// feedItem is an item of RSS (0.9 to 2.0) or an entry of Atom (0.3, 1.0).
type feedItem struct {
	loc  string
	time time.Time
}

// feedAsList gives a feed of RSS or Atom as a Change List, the oldest first. A feed
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

func readFeed(r io.Reader) (items []feedItem, err error) {
	s := xmlscan.New(r, xmlscan.Options{
		MaxValue: 256 << 10, Spaces: func(string) xmlscan.Space { return xmlscan.Other },
		Slip: func(error, string) {}, Undeclared: func(n *xmlscan.Name) string { return "undeclared:" + string(n.Prefix) },
		Fail: func(line int, kind error, message string) error {
			return fmt.Errorf("line %d: %s (%w)", line, message, kind)
		},
	})
	for {
		tok, err := s.Next()
		switch {
		case err != nil:
			return nil, err
		case tok == xmlscan.EOF:
			return items, nil
		case tok != xmlscan.Start || string(s.Name.Local) != "item" && string(s.Name.Local) != "entry":
			continue
		case len(items) == maxFeedItems:
			return nil, errors.New("it has too many items")
		}
		item, err := readItem(s)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
}

// feedTimes are the elements that tell when an item was changed last, the best first.
var feedTimes = []string{"updated", "modified", "pubDate", "date", "published", "issued"}

// readItem reads the item whose start tag was just read. Its loc is "" if it has none.
func readItem(s *xmlscan.Scanner) (item feedItem, err error) {
	about := attribute(s, "about") // of RSS 1.0
	guid := ""
	times := map[string]string{}
	for {
		tok, err := s.Next()
		if err != nil {
			return item, err
		}
		if tok == xmlscan.End {
			item.loc = cmp.Or(item.loc, guid, about)
			item.time = itemTime(times)
			return item, nil
		}
		switch name := string(s.Name.Local); {
		case name == "link":
			rel, href := attribute(s, "rel"), attribute(s, "href")
			text, err := s.Leaf()
			if err != nil {
				return item, err
			}
			if rel == "" || rel == RelAlternate {
				item.loc = cmp.Or(item.loc, href, strings.TrimSpace(string(text)))
			}
		case name == "guid":
			permalink := attribute(s, "isPermaLink") != "false"
			text, err := s.Leaf()
			if err != nil {
				return item, err
			}
			if address := strings.TrimSpace(string(text)); permalink && HasScheme(address) {
				guid = address
			}
		case slices.Contains(feedTimes, name):
			text, err := s.Leaf()
			if err != nil {
				return item, err
			}
			times[name] = strings.TrimSpace(string(text))
		default:
			if err := s.Skip(); err != nil {
				return item, err
			}
		}
	}
}

// attribute gives an attribute of the current tag, "" if absent.
func attribute(s *xmlscan.Scanner, local string) string {
	for i := range s.Attrs {
		if a := &s.Attrs[i]; string(a.Local) == local {
			return strings.TrimSpace(string(a.Value))
		}
	}
	return ""
}

func itemTime(times map[string]string) time.Time {
	for _, name := range feedTimes {
		if t, _, ok := ScanTime(times[name]); ok {
			return t
		}
		if t, err := mail.ParseDate(times[name]); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
