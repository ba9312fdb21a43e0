package resourcesync

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/xmlscan"
)

const (
	maxFeed      = 64 << 20
	maxFeedItems = 100_000
	maxFeedLinks = 100 // of one item

	namespaceAtom03 = "http://purl.org/atom/ns#"
)

// feedItem is an item of RSS (0.9 to 2.0) or an entry of Atom (0.3, 1.0).
type feedItem struct {
	loc   string
	time  time.Time
	links []Link // to other forms of it
}

// feedAsList gives a feed of RSS or Atom as a Change List, the oldest first, and its slips.
// A feed is read whole: it has its newest first, and few items.
func feedAsList(r io.Reader, location string, maxBytes int64) (io.Reader, []Slip) {
	limit := int64(maxFeed)
	if maxBytes > 0 {
		limit = min(limit, maxBytes)
	}
	limited := &io.LimitedReader{R: r, N: limit + 1}
	f := &feed{location: location}
	err := f.read(limited)
	switch {
	case limited.N <= 0:
		return failedReader{fmt.Errorf("the feed is longer than %d bytes", limit)}, nil
	case err != nil:
		return failedReader{fmt.Errorf("the feed cannot be read: %w", err)}, nil
	}
	slices.Reverse(f.items) // without times
	if !slices.ContainsFunc(f.items, func(it feedItem) bool { return it.time.IsZero() }) {
		slices.SortStableFunc(f.items, func(a, b feedItem) int { return a.time.Compare(b.time) })
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<urlset xmlns=%q xmlns:rs=%q><rs:md capability=%q/>\n", NamespaceSitemap, NamespaceRS, ChangeList)
	for _, it := range f.items {
		b.WriteString("<url><loc>")
		b.Write(escapeText(nil, []byte(it.loc)))
		b.WriteString(`</loc>`)
		when := ""
		if !it.time.IsZero() {
			at := FormatTime(it.time)
			when = fmt.Sprintf(" datetime=%q", at)
			fmt.Fprintf(&b, "<lastmod>%s</lastmod>", at)
		}
		fmt.Fprintf(&b, "<rs:md change=%q%s/>", Updated, when)
		for _, l := range it.links {
			fmt.Fprintf(&b, `<rs:ln rel="%s" href="%s" type="%s"/>`, l.Rel, escapeText(nil, []byte(l.Href)), escapeText(nil, []byte(l.Type)))
		}
		b.WriteString("</url>\n")
	}
	b.WriteString("</urlset>\n")
	f.warn.settle()
	slips := make([]Slip, len(f.warn.list))
	for i, text := range f.warn.list {
		slips[i] = Slip{Rule: 3, Text: text}
	}
	return &b, slips
}

// feed is a feed being read.
type feed struct {
	location string
	s        *xmlscan.Scanner
	warn     warnings
	items    []feedItem
}

func (f *feed) read(r io.Reader) error {
	f.s = xmlscan.New(r, xmlscan.Options{
		MaxValue: 256 << 10, Spaces: func(string) xmlscan.Space { return xmlscan.Other },
		Slip:       func(_ error, message string) { f.lapse(message, "%s", message) },
		Undeclared: func(n *xmlscan.Name) string { return "undeclared:" + string(n.Prefix) },
		Fail: func(line int, kind error, message string) error {
			return fmt.Errorf("line %d: %s (%w)", line, message, kind)
		},
	})
	bases := []string{""} // of the open elements
	for {
		tok, err := f.s.Next()
		switch {
		case err != nil:
			return err
		case tok == xmlscan.EOF:
			return nil
		case tok == xmlscan.End:
			bases = bases[:len(bases)-1]
			continue
		case tok != xmlscan.Start:
			continue
		}
		base, err := f.base(bases[len(bases)-1])
		if err != nil {
			return err
		}
		switch string(f.s.Name.Local) {
		case "item", "entry":
			if len(f.items) == maxFeedItems {
				return errors.New("it has too many items")
			}
			item, err := f.item(base)
			if err != nil {
				return err
			}
			f.items = append(f.items, item)
			continue // its end was read
		case "link":
			if next := f.attribute("href"); relation(f.attribute("rel")) == RelNext {
				f.lapse("next", "the feed goes on at %s, and only its first page is read", clip(next))
			}
		}
		bases = append(bases, base)
	}
}

func (f *feed) lapse(kind, format string, args ...any) { f.warn.add(kind, f.s.Line(), format, args...) }

// base is the base address of the current tag; outer is the base of the element around it, "" for
// none.
func (f *feed) base(outer string) (string, error) {
	for i := range f.s.Attrs {
		if a := &f.s.Attrs[i]; string(a.Local) == "base" && string(a.Prefix) == "xml" {
			told := strings.TrimSpace(string(a.Value))
			if _, err := url.Parse(told); err != nil {
				return "", fmt.Errorf("line %d: xml:base %q is no address", f.s.Line(), clip(told))
			}
			return resolve(cmp.Or(outer, f.location), told), nil
		}
	}
	return outer, nil
}

// resolve makes an address absolute. Without a base, or if ref is no address, ref stays as it is.
func resolve(base, ref string) string {
	b, err := url.Parse(base)
	if base == "" || ref == "" || err != nil {
		return ref
	}
	u, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(u).String()
}

// relation is the short name of a relation of Atom.
func relation(rel string) string {
	return strings.TrimPrefix(cmp.Or(rel, RelAlternate), "http://www.iana.org/assignments/relation/")
}

// feedTimes are the elements with the time of an item's last change, the best first.
var feedTimes = []string{"updated", "modified", "pubDate", "date", "published", "issued"}

// item reads the item after its start tag. Its loc is "" if it has none.
func (f *feed) item(base string) (item feedItem, err error) {
	s := f.s
	about := f.attribute("about") // of RSS 1.0
	own, guid := s.Name.URI, ""
	times := map[string]string{}
	for {
		tok, err := s.Next()
		if err != nil {
			return item, err
		}
		if tok == xmlscan.End {
			if item.loc == "" {
				item.loc = resolve(base, cmp.Or(guid, about))
			}
			item.time = f.itemTime(times)
			return item, nil
		}
		name := string(s.Name.Local)
		switch {
		case name == "link" && ofFeed(s.Name.URI, own):
			err = f.link(&item, base)
		case name == "guid" && ofFeed(s.Name.URI, own):
			told := f.attribute("isPermaLink")
			var text []byte
			text, err = s.Leaf()
			address := strings.TrimSpace(string(text))
			onWeb := strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
			if onWeb && (told == "" || strings.EqualFold(told, "true")) {
				guid = address
			}
		case slices.Contains(feedTimes, name) && (ofFeed(s.Name.URI, own) || ofDublinCore(s.Name.URI)):
			var text []byte
			text, err = s.Leaf()
			times[name] = cmp.Or(times[name], strings.TrimSpace(string(text)))
		default:
			err = s.Skip()
		}
		if err != nil {
			return item, err
		}
	}
}

// link reads a link of an item: of RSS with the address as its text, or of Atom.
func (f *feed) link(item *feedItem, base string) error {
	l := Link{Rel: relation(f.attribute("rel")), Type: f.attribute("type")}
	href := f.attribute("href")
	base, err := f.base(base)
	if err != nil {
		return err
	}
	text, err := f.s.Leaf()
	if err != nil {
		return err
	}
	l.Href = resolve(base, cmp.Or(href, strings.TrimSpace(string(text))))
	switch {
	case l.Href == "" || l.Rel != RelAlternate && l.Rel != RelDescribedBy:
	case l.Rel == RelAlternate && item.loc == "":
		item.loc = l.Href
	case href == "":
		if l.Href != item.loc {
			f.lapse("second link", "an item has more than one link; the first counts, and %s is left out", clip(l.Href))
		}
	case len(item.links) < maxFeedLinks:
		item.links = append(item.links, l)
	}
	return nil
}

// ofFeed tells an element of the feed itself, by its namespace and its item's, from one of a
// module. A module's link may be a picture's.
func ofFeed(uri, own string) bool {
	return uri == own || uri == namespaceAtom || uri == namespaceAtom03 || uri == "undeclared:atom"
}

func ofDublinCore(uri string) bool {
	return strings.HasPrefix(uri, "http://purl.org/dc/") || uri == "undeclared:dc" || uri == "undeclared:dcterms"
}

// attribute gives an attribute of the current tag, "" if absent. About has a prefix.
func (f *feed) attribute(local string) string {
	for i := range f.s.Attrs {
		if a := &f.s.Attrs[i]; string(a.Local) == local && (len(a.Prefix) == 0 || local == "about") {
			return strings.TrimSpace(string(a.Value))
		}
	}
	return ""
}

func (f *feed) itemTime(times map[string]string) time.Time {
	for _, name := range feedTimes {
		text := times[name]
		if text == "" {
			continue
		}
		t, lapse, ok := ScanTime(text)
		if !ok {
			t, lapse, ok = scanMailTime(text)
		}
		switch {
		case !ok:
			f.lapse("time", "%s %q is no time; it is left out", name, clip(text))
			continue
		case lapse != "":
			f.lapse("time: "+lapse, "%s %q is read as %s: %s", name, clip(text), FormatTime(t), lapse)
		}
		return t
	}
	return time.Time{}
}
