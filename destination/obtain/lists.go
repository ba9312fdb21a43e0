package obtain

import (
	"bytes"
	"context"
	"html"
	"net/url"
	"regexp"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// An entry may lead to a list in a form of its own: plain text, a feed, a page of links, a table.
// No form is recognized. A body without RDF is a list if it names the address of a resource that
// goes otherwise, since it is mirrored and has no entry.

// Unlisted are the mirrored resources without an entry.
type Unlisted interface {
	// Names tells whether a body is a list because it names loc.
	Names(ctx context.Context, it *feed.Item, loc ledger.Hash) (bool, error)
}

// Beside gives an Obtainer that fails with ErrList for a body naming one of u; nil: none.
func (ob *Obtainer) Beside(u Unlisted) *Obtainer {
	c := *ob
	c.unlisted = u
	return &c
}

// MayBeList tells whether the body of a resource without RDF may be looked at for addresses.
func (ob *Obtainer) MayBeList(it *feed.Item) bool {
	return ob.unlisted != nil && !it.File && (!ob.passedOver(it) || ob.mayList(it))
}

// mayList tells whether a resource of a type without RDF is looked at all the same.
func (ob *Obtainer) mayList(it *feed.Item) bool {
	if ob.unlisted == nil || it.File {
		return false
	}
	switch it.Promise.Type {
	case "text/html", "application/xhtml+xml", "text/csv", feed.GzipType:
		return true
	}
	return false
}

// longestAddress bounds the addresses that are looked for.
const longestAddress = 8 << 10

// named gives the first address in a body without RDF that makes it a list, "" for none. The links of
// its own entry or page do not count.
func (ob *Obtainer) named(ctx context.Context, it *feed.Item, p feed.Place, body []byte) (string, error) {
	if ob.unlisted == nil || it.File {
		return "", nil
	}
	for layer := 0; layer < 2 && fetch.IsGzip(body); layer++ {
		plain, err := fetch.Gunzip(body, ob.Limits.Resource)
		if err != nil {
			break
		}
		body = plain
	}
	if bytes.HasPrefix(body, []byte{0xfe, 0xff}) || bytes.HasPrefix(body, []byte{0xff, 0xfe}) {
		body = bytes.ReplaceAll(body, []byte{0}, nil) // of UTF-16, addresses are left
	}
	base, err := url.Parse(p.URL)
	if err != nil {
		return "", nil
	}
	if m := ownBase.FindSubmatch(body[:min(len(body), maxHead)]); m != nil {
		if u, err := base.Parse(html.UnescapeString(string(m[1]))); err == nil {
			base = u
		}
	}
	own := map[string]bool{it.Loc: true, p.URL: true}
	for _, at := range append(it.Others, it.Found...) {
		own[at.URL] = true
	}
	for address := range addresses(base, body) {
		if own[address] {
			continue
		}
		if is, err := ob.unlisted.Names(ctx, it, ledger.HashOf(address)); is || err != nil {
			return address, err
		}
	}
	return "", ctx.Err()
}

// ownBase finds the base of a page or feed.
var ownBase = regexp.MustCompile(`(?i)(?:<base\s[^>]*href|\sxml:base)\s*=\s*["']([^"'<>]+)["']`)

// edges end an address in any text; softEdges may be part of one.
const (
	edges     = "\"'`<>"
	softEdges = ",;|()[]{}\\"
)

// addresses yields what can be an address in a text of any form, some of it more than once. Words are
// relative addresses only in quotes, or with a sign of a path.
func addresses(base *url.URL, text []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		isEdge := func(c byte) bool { return c <= ' ' || strings.IndexByte(edges, c) >= 0 }
		for at := 0; at < len(text); {
			if isEdge(text[at]) {
				at++
				continue
			}
			end := at
			for end < len(text) && !isEdge(text[end]) {
				end++
			}
			quoted := at > 0 && (text[at-1] == '"' || text[at-1] == '\'')
			if word := text[at:end]; len(word) <= longestAddress && (quoted || bytes.ContainsAny(word, "/.?")) {
				for word := range readings(string(word)) {
					if !resolve(base, word, yield) {
						return
					}
				}
			}
			at = end
		}
	}
}

// readings yields a word as it stands, without what surrounds it, and its parts.
func readings(word string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if strings.Contains(word, `\/`) { // JSON
			word = strings.ReplaceAll(word, `\/`, "/")
		}
		if strings.Contains(word, "&") {
			word = html.UnescapeString(word)
		}
		if !yield(word) {
			return
		}
		bare := strings.Trim(word, softEdges+".:!?*_=")
		if i := strings.Index(bare, "http"); i > 0 {
			bare = bare[i:]
		}
		if bare != word && !yield(bare) {
			return
		}
		if strings.ContainsAny(bare, softEdges) {
			for part := range strings.FieldsFuncSeq(bare, func(r rune) bool { return strings.ContainsRune(softEdges, r) }) {
				if !yield(part) {
					return
				}
			}
		}
	}
}

// resolve yields a word as an address: as it is written, and in the form of a request.
func resolve(base *url.URL, word string, yield func(string) bool) bool {
	word, _, _ = strings.Cut(word, "#")
	if strings.Contains(word, "://") && !yield(word) {
		return false
	}
	u, err := base.Parse(word)
	if err != nil || u.Host == "" {
		return true
	}
	s := u.String()
	return s == word || yield(s)
}
