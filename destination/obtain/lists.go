package obtain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"html"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
)

// An entry may lead to a list in a form of its own: plain text, a feed, a page of links, a table.
// No form is recognized. A body without RDF is a list if it names a mirrored resource without an entry,
// which would go. An unreadable body may be a list.

// ErrMaybeList marks an unreadable body: it may be a list.
var ErrMaybeList = fmt.Errorf("and may be a list, %w", ErrList)

// Beside gives an Obtainer that fails with ErrList for a body naming a resource about to go. names tells
// of one by the [fetch.Spelling] of its address.
func (ob *Obtainer) Beside(names func(spelling string) bool) *Obtainer {
	c := *ob
	c.goes = names
	return &c
}

// MayBeList tells whether the body of a resource without RDF may be looked at for addresses.
func (ob *Obtainer) MayBeList(it *feed.Item) bool {
	return ob.goes != nil && !it.File && (!ob.passedOver(it) || ob.mayList(it))
}

// mayList tells whether a resource of a type without RDF is looked at all the same.
func (ob *Obtainer) mayList(it *feed.Item) bool {
	if ob.goes == nil || it.File {
		return false
	}
	return holdsText(it.Promise.Type)
}

// holdsText tells whether a body of a type may have addresses in it.
func holdsText(mediaType string) bool {
	switch major, sub, _ := strings.Cut(mediaType, "/"); major {
	case "image", "audio", "video", "font", "model":
		return false
	default:
		return sub != "css" && sub != "pdf"
	}
}

// Suspect tells of a new member of a dump, perhaps a list: the missing resources are not known yet.
func (ob *Obtainer) Suspect(ctx context.Context, o *Outcome) bool {
	return o.Err == nil && (o.NotRDF || o.Feed) && !o.Item.File && holdsText(o.Item.Promise.Type) && !ob.isKnown(ctx, o.Item.Loc, o.Record.Graph)
}

// Again obtains a suspect once more, beside the missing resources.
func (ob *Obtainer) Again(it *feed.Item) func(context.Context) *Outcome {
	c := *ob
	c.again = true
	return func(ctx context.Context) *Outcome {
		o := c.Obtain(ctx, it)
		if o.Err != nil && !errors.Is(o.Err, ErrList) {
			o.Err = fmt.Errorf("%w: it was in the dump, %w", o.Err, ErrMaybeList)
		}
		return o
	}
}

// longestAddress bounds the addresses that are looked for.
const longestAddress = 8 << 10

// list tells why a body is a list, or may be one; nil for no list. The links of its own entry or page
// do not count.
func (ob *Obtainer) list(ctx context.Context, it *feed.Item, p feed.Place, body []byte) error {
	if ob.goes == nil || it.File {
		return nil
	}
	text, unpackable := unpack(body, ob.Limits.Resource, maxLayers)
	text = narrow(text)
	bases := basesOf(p.URL, text)
	own := map[string]bool{}
	for _, at := range append(append([]feed.Place{{URL: it.Loc}, p}, it.Others...), it.Found...) {
		own[fetch.Spelling(bases[0], at.URL)] = true
	}
	for word := range addresses(text) {
		for _, base := range bases {
			if s := fetch.Spelling(base, word); s != "" && ob.goes(s) && !own[s] {
				return fmt.Errorf("%s %w: it names %s, which is mirrored and has no entry: it is a list, %w", clip.Middle(p.URL), ErrContent, clip.Middle(absolute(base, word)), ErrList)
			}
		}
	}
	if unpackable == nil && isText(text) || isMedium(body, p.Promise.Type) || feed.IsTypeOfRDF(p.Promise.Type) || ob.isKnown(ctx, it.Loc, sha256.Sum256(body)) {
		return ctx.Err()
	}
	if unpackable != nil {
		return fmt.Errorf("%s %w: it cannot be unpacked (%w), %w", clip.Middle(p.URL), ErrContent, unpackable, ErrMaybeList)
	}
	return fmt.Errorf("%s %w: it is neither RDF nor text, %w", clip.Middle(p.URL), ErrContent, ErrMaybeList)
}

func absolute(base *url.URL, word string) string {
	u, err := base.Parse(word)
	if err != nil {
		return word
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// isKnown tells of a body, or a graph, recorded before as no list.
func (ob *Obtainer) isKnown(ctx context.Context, loc string, sum rdfres.Digest) bool {
	if ob.again {
		return false
	}
	rec, err := ob.Ledger.Record(ctx, ledger.HashOf(loc))
	if err != nil || rec == nil || rec.Graph != sum {
		return false
	}
	f, err := ob.Ledger.Fault(ctx, ledger.HashOf(loc))
	return err == nil && (f == nil || !f.List)
}

// rssChannel is the class of a feed in RSS 1.0.
var rssChannel = rdfres.NewIRI("http://purl.org/rss/1.0/channel")

// isFeed tells RSS 1.0: RDF, and a list.
func isFeed(ts []rdfres.Triple) bool {
	return slices.ContainsFunc(ts, func(t rdfres.Triple) bool { return t.O == rssChannel })
}

// ownBase finds the base of a page or feed.
var ownBase = regexp.MustCompile(`(?i)(?:<base\s[^>]*href|\sxml:base)\s*=\s*["']?([^"'<>\s]+)`)

// basesOf are the possible bases of relative addresses: the body's own, those in it, and the root of the
// host.
func basesOf(address string, text []byte) (bases []*url.URL) {
	own, err := url.Parse(address)
	if err != nil {
		return []*url.URL{{}}
	}
	bases = []*url.URL{own}
	add := func(u *url.URL, err error) {
		if err == nil && !slices.ContainsFunc(bases, func(b *url.URL) bool { return b.String() == u.String() }) {
			bases = append(bases, u)
		}
	}
	for _, m := range ownBase.FindAllSubmatch(text, maxBases) {
		add(own.Parse(html.UnescapeString(string(m[1]))))
	}
	add(own.Parse("/"))
	return bases
}

// maxBases bounds the bases of one body.
const maxBases = 8

// edges end an address in any text; softEdges may be part of one, dots only inside of it.
const (
	edges     = "\"`<>"
	softEdges = ",;|()[]{}\\'"
	dots      = ".:!?*_="
)

func isEdge(r rune) bool { return r <= ' ' || strings.ContainsRune(edges, r) }

// addresses yields possible addresses in a text of any form, some of them more than once. Words are
// relative addresses only in quotes, or with a sign of a path or an attribute.
func addresses(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; at < len(text); {
			if isEdge(rune(text[at])) {
				at++
				continue
			}
			end := at
			for end < len(text) && !isEdge(rune(text[end])) {
				end++
			}
			word := text[at:end]
			quoted := at > 0 && text[at-1] == '"' || opensQuote(word)
			if quoted || bytes.ContainsAny(word, `/.?=\`) {
				if !readings(string(word), true, yield) {
					return
				}
			}
			at = end
		}
	}
}

// opensQuote tells of an apostrophe that is none in a word.
func opensQuote(word []byte) bool {
	i := bytes.IndexByte(word, '\'')
	return i == 0 || i > 0 && strings.IndexByte(softEdges+":", word[i-1]) >= 0
}

// readings yields a word as it stands, without escapes, without signs around it, and its parts.
func readings(word string, escaped bool, yield func(string) bool) bool {
	if escaped {
		if plain := unescaped(word); plain != word {
			for word := range strings.FieldsFuncSeq(plain, isEdge) {
				if !readings(word, false, yield) {
					return false
				}
			}
		}
	}
	bare := strings.Trim(word, softEdges+dots)
	if !yieldShort(word, yield) || bare != word && !yieldShort(bare, yield) {
		return false
	}
	if strings.ContainsAny(word, softEdges) && !runs(word, yield) {
		return false
	}
	return valuesOf(bare, yield)
}

// maxSigns bounds the signs inside of an address that is looked for among others.
const maxSigns = 8

// runs yields the parts of a word between its signs, and those of an address with some signs inside.
func runs(word string, yield func(string) bool) bool {
	for start := 0; start < len(word); {
		next, at := len(word), start
		for signs := 0; signs <= maxSigns && at <= len(word); signs++ {
			end := len(word)
			if i := strings.IndexAny(word[at:], softEdges); i >= 0 {
				end = at + i
			}
			if signs == 0 {
				next = end
			}
			run := strings.Trim(word[start:end], dots)
			if end == start || signs > 0 && !strings.Contains(run, "/") {
				break
			}
			if !yieldShort(run, yield) || !valuesOf(run, yield) {
				return false
			}
			at = end + 1
		}
		start = next + 1
	}
	return true
}

func yieldShort(word string, yield func(string) bool) bool {
	return len(word) > longestAddress || yield(word)
}

// valuesOf yields the value behind the name of an attribute, and the addresses behind anything.
func valuesOf(word string, yield func(string) bool) bool {
	if i := strings.IndexAny(word, "=:"); i > 0 && i+1 < len(word) && !strings.HasPrefix(word[i:], "://") && !yieldShort(word[i+1:], yield) {
		return false
	}
	for i := strings.Index(word, "http"); i >= 0; {
		next := strings.Index(word[i+4:], "http")
		end := len(word)
		if next >= 0 {
			end = i + 4 + next
		}
		inside, _, _ := strings.Cut(word[i:end], "&")
		if whole := word[i:end]; whole != word && !yieldShort(whole, yield) || inside != whole && !yieldShort(inside, yield) {
			return false
		}
		if i = end; next < 0 {
			break
		}
	}
	return true
}

// escapes are those of JSON and scripts, and of whole addresses in others.
var escapes = regexp.MustCompile(`\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\/|(?i:%3a%2f%2f[^&]*)`)

// unescaped reads the escapes of HTML, JSON and addresses.
func unescaped(word string) string {
	if strings.Contains(word, "&") {
		word = html.UnescapeString(word)
	}
	if !strings.ContainsAny(word, `\%`) {
		return word
	}
	return escapes.ReplaceAllStringFunc(word, func(e string) string {
		if e[0] == '%' {
			plain, err := url.PathUnescape(e)
			if err != nil {
				return e
			}
			return plain
		}
		code, err := strconv.ParseUint(strings.TrimLeft(e, `\ux`), 16, 32)
		if err != nil {
			return strings.TrimPrefix(e, `\`)
		}
		return string(rune(code))
	})
}
