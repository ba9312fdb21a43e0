package obtain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/item"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Outcome is a resource fetched and verified, or the reason why not.
type Outcome struct {
	Item   *item.Item
	Record *ledger.Record  // new state
	Wire   []byte          // wire form, sorted N-Triples
	Parsed []rdfres.Triple // of the wire form, nil when they are to be read from it
	Err    error

	NotRDF  bool   // fetched now, and no RDF
	Bare    bool   // no RDF, or RDF that says nothing or is a feed: it may be a list
	NoValue string // an expression of map that has no value for it
	Raw     []byte // the verified body, for a mirror of files

	Patched bool            // fetched as a patch of the kept version
	Before  []rdfres.Triple // the kept version

	Empty    bool   // the body says nothing
	Strange  bool   // it says nothing of any subject of before
	Unproven bool   // the source promised nothing of the answer
	ETag     string // of loc, if it answered
	Same     bool   // loc is unchanged since the ETag of the item
}

// ErrContent marks a verified response without a graph that can be stored.
var ErrContent = errors.New("cannot be used")

// ErrList marks a list in the place of a resource: its own entries are not read.
var ErrList = errors.New("and no resource")

// acceptRDF is for an address without promises: a generic address may show a page to clients
// without a wish for data.
const acceptRDF = "application/n-triples, text/turtle;q=0.9, application/n-quads;q=0.8, application/ld+json;q=0.7, application/rdf+xml;q=0.7, application/trig;q=0.6, */*;q=0.5"

// bigBody is the size from which representations are worked on one at a time.
const bigBody = 4 << 20

// Obtain fetches a resource from the best place and verifies it. The immutable version comes
// first, then loc, then the other places; those on another host or of an unknown scheme are
// passed over. A resource in none of them may still be in the package with its entry.
func (ob *Obtainer) Obtain(ctx context.Context, it *item.Item) *Outcome {
	o := ob.obtainSingly(ctx, it)
	if o.Err == nil || it.Package == "" || it.Path == "" || it.Bad != "" || ctx.Err() != nil || errors.Is(o.Err, ErrContent) || errors.Is(o.Err, fetch.ErrSourceGone) {
		return o
	}
	p, err := ob.obtainPackaged(ctx, it)
	if err != nil {
		o.Err = fmt.Errorf("%w; and %w", o.Err, err)
		return o
	}
	return p
}

func (ob *Obtainer) obtainSingly(ctx context.Context, it *item.Item) *Outcome {
	if it.Bad != "" {
		return &Outcome{Item: it, Err: fmt.Errorf("the source's entry %w: %s", ErrContent, it.Bad)}
	}
	if ob.Select.Outside(it) {
		return ob.left(it)
	}
	if !ob.KeepFiles && ob.passedOver(it) {
		rec := it.Record()
		rec.NotRDF(it.File)
		o := &Outcome{Item: it, Record: rec, NotRDF: true, Bare: true}
		sum, _ := rdfres.ParseDigest(it.Promise.Hashes.SHA256) // zero without a promise
		ob.otherwise(o, sum, nil)
		return o
	}
	var places []item.Place
	if it.Version != nil {
		places = append(places, *it.Version)
	}
	plain := item.Place{URL: it.Loc, Promise: it.Promise}
	isRDF := item.IsTypeOfRDF(it.Promise.Type)
	others := ob.others(it)
	if !isRDF && it.Promise.Type != "" && !ob.AsFiles { // places of another type come first, only if loc is not RDF
		var rest []item.Place
		for _, o := range others {
			if o.Promise.Type != it.Promise.Type {
				places = append(places, o)
			} else {
				rest = append(rest, o)
			}
		}
		others = rest
	}
	places = append(append(places, plain), others...)
	var first error
	var page *Outcome // loc has no RDF
	generic := it.Promise.Type == "" && !ob.AsFiles
	for i := 0; i < len(places); i++ {
		p := places[i]
		if err := ob.PlaceAllowed(p.URL); err != nil {
			first = moreTelling(first, err)
			continue
		}
		o, err := ob.obtainFrom(ctx, it, p)
		if ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
			return &Outcome{Item: it, Err: cmp.Or(err, context.Cause(ctx))}
		}
		if len(it.Found) > 0 { // the page links to it
			places, it.Found = append(places, it.Found...), nil
			generic = true
		}
		alternate := generic && slices.ContainsFunc(places[i+1:], func(p item.Place) bool { return item.IsTypeOfRDF(p.Promise.Type) })
		if err == nil && !o.NotRDF {
			return o
		}
		if err == nil {
			if page = o; alternate {
				continue
			}
			break
		}
		first = moreTelling(first, err)
		if errors.Is(err, ErrContent) && !alternate {
			break // the bytes are the promised ones; another copy has the same
		}
	}
	switch {
	case page == nil:
		return &Outcome{Item: it, Err: first}
	case first == nil || errors.Is(first, webguard.ErrScheme):
	case errors.Is(first, webguard.ErrNotAllowed):
		ob.Log.Warn("the RDF that a resource links to is not fetched", "loc", clip.Middle(it.Loc), "error", first)
	default: // the RDF may be had later
		return &Outcome{Item: it, Err: first}
	}
	return page
}

// others are the further places of a resource, with its links to RDF by the configured relations.
func (ob *Obtainer) others(it *item.Item) []item.Place {
	var out []item.Place
	for _, p := range it.Others {
		if p.Rel == "" || slices.Contains(ob.Linked, p.Rel) {
			out = append(out, p)
		}
	}
	return out
}

// linked gives the RDF linked from a page, by its headers or in its head.
func (ob *Obtainer) linked(a *fetch.Answer) (out []item.Place) {
	base, err := url.Parse(a.URL)
	if err != nil || len(ob.Linked) == 0 {
		return nil
	}
	var page io.Reader = strings.NewReader("")
	if t := fetch.Essence(a.ContentType()); t == "text/html" || t == "application/xhtml+xml" {
		page = bytes.NewReader(a.Body[:min(len(a.Body), maxHead)])
	}
	links := resourcesync.TypedLinks(a.Header.Values("Link"), page, base, ob.Linked...)
	slices.SortStableFunc(links, func(a, b resourcesync.Link) int { return cmp.Compare(item.FormatRank(a.Type), item.FormatRank(b.Type)) })
	for _, l := range links {
		if item.IsTypeOfRDF(l.Type) && len(out) < item.MaxPlaces {
			out = append(out, item.Place{URL: l.Href, Promise: fetch.Promise{Length: -1, Type: fetch.Essence(l.Type)}, Rel: l.Rel})
		}
	}
	return out
}

// maxHead is as much of a page as is looked at for links.
const maxHead = 256 << 10

// passedOver tells whether a triple store has no use for a resource: it is counted and never
// fetched. These are declared files, and resources of a promised non-RDF type without an RDF form.
func (ob *Obtainer) passedOver(it *item.Item) bool {
	if it.File {
		return true
	}
	if !item.IsTypeOfNoRDF(it.Promise.Type) || !it.AsOf.IsZero() {
		return false
	}
	for _, o := range ob.others(it) {
		if _, ok := rdfres.FormatByMediaType(o.Promise.Type); ok {
			return false
		}
	}
	_, packed, _ := formatOfName(it.Loc)
	return !packed || it.Promise.Type != item.GzipType
}

func moreTelling(have, err error) error {
	if have == nil || (errors.Is(have, webguard.ErrScheme) && !errors.Is(err, webguard.ErrScheme)) {
		return err
	}
	return have
}

func (ob *Obtainer) PlaceAllowed(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%s is no address: %w", clip.Middle(address), err)
	}
	if err := ob.Fetch.Allowed(u); err != nil {
		return &fetch.Error{URL: address, Err: err}
	}
	return nil
}

func (ob *Obtainer) obtainFrom(ctx context.Context, it *item.Item, p item.Place) (*Outcome, error) {
	big := p.Promise.Length > bigBody
	if big {
		ob.bigMu.Lock()
		defer ob.bigMu.Unlock()
	}
	if p.Promise.Length > ob.Limits.Resource {
		return nil, fmt.Errorf("%s: %w: %d bytes are promised, at most %d are taken (%s)", clip.Middle(p.URL), fetch.ErrTooLarge, p.Promise.Length, ob.Limits.Resource, ob.Settings.Of("max_resource_bytes"))
	}
	accept := "*/*"
	switch {
	case p.Promise.Type != "":
		accept = p.Promise.Type + ", */*;q=0.1"
	case p.Promise.Unproven() && p.Promise.Length < 0 && !ob.AsFiles:
		accept = acceptRDF
	}
	tag := ""
	if p.URL == it.Loc {
		tag = it.Ask.ETag
	}
	a, err := ob.Fetch.Get(ctx, fetch.Request{URL: p.URL, Accept: accept, ETag: tag, MaxBytes: ob.Limits.Resource, Attempts: 3,
		Gzip: p.Promise.Encoding == "gzip" || p.Promise.Length < 0 || p.Promise.Length > 8<<10})
	if errors.Is(err, fetch.ErrTooLarge) {
		err = fmt.Errorf("%w (%s)", err, ob.Settings.Of("max_resource_bytes"))
	}
	if err != nil {
		return nil, err
	}
	if a.NotModified {
		return &Outcome{Item: it, Same: true}, nil
	}
	if err := p.Promise.VerifyAnswer(a); err != nil {
		return nil, fmt.Errorf("%s %w: %w%s", clip.Middle(p.URL), feed.ErrMismatch, err, feed.MismatchHint)
	}
	if !big && (len(a.Body) > bigBody || len(a.Body) > bigBody/100 && fetch.IsGzip(a.Body)) {
		ob.bigMu.Lock()
		defer ob.bigMu.Unlock()
	}
	if p.URL == it.Loc {
		it.Found = ob.linked(a)
	}
	o, err := ob.represent(ctx, it, p, a.Body, a.Kind())
	if page := err == nil && o.NotRDF || errors.Is(err, ErrContent) && !errors.Is(err, ErrList); !page {
		it.Found = nil
	}
	if err == nil && p.Promise.Unproven() && item.Unsettled(it.LastMod, fetch.ServedAt(a.Header, ob.Now())) {
		o.Record.Unsettle()
	}
	if err == nil {
		o.answered(a, p)
	}
	return o, err
}

// represent makes a record of a verified body, with its triples or bytes.
func (ob *Obtainer) represent(ctx context.Context, it *item.Item, p item.Place, body []byte, kind fetch.Kind) (*Outcome, error) {
	if kind := listKind(body); kind != "" {
		return nil, fmt.Errorf("%s %w: it is a %s, %w", clip.Middle(p.URL), ErrContent, kind, ErrList)
	}
	if ob.AsFiles {
		return ob.representFile(ctx, it, p, body, kind)
	}
	return ob.representDescription(ctx, it, p, body, kind)
}

// representRDF makes the wire form of a verified body and its record. A non-RDF resource has a
// record without triples.
func (ob *Obtainer) representRDF(ctx context.Context, it *item.Item, p item.Place, body []byte, kind fetch.Kind) (*Outcome, error) {
	rec := it.Record()
	if rec.Hashes.SHA256 == "" && rec.Hashes.SHA1 == "" && rec.Hashes.MD5 == "" && p.URL == it.Loc {
		rec.Hashes = resourcesync.HashesOf(body, rec.Hashes)
	}
	var ts []rdfres.Triple
	var ok bool
	var err error
	if !it.File {
		base := it.Loc
		if p.Rel != "" {
			base = p.URL
		}
		ts, ok, err = ob.readRDF(ctx, p, base, body, kind)
	}
	if !ok && ob.unlisted != nil && !it.File && unpromised(p) && isBlank(body) && ob.Ledger.Lacks(ctx, ledger.HashOf(it.Loc)) {
		return nil, fmt.Errorf("%s is empty, and may be a list that is being written", clip.Middle(p.URL))
	}
	if !ok && !it.File && !item.IsTypeOfNoRDF(p.Promise.Type) && ob.isMirrored(ctx, it.Loc) {
		return nil, fmt.Errorf("%s %w: its description is mirrored, and what comes now is none (an error page in its place?)", clip.Middle(p.URL), ErrContent)
	}
	if !ok || it.File {
		rec.NotRDF(it.File)
		return &Outcome{Item: it, Record: rec, NotRDF: true, Bare: !isBlank(body) && !isMedium(body) && !isDocument(body, fetch.Essence(kind.ContentType))}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", clip.Middle(p.URL), ErrContent, err)
	}
	if int64(len(ts)) > ob.Limits.Triples {
		return nil, fmt.Errorf("%s %w: %d triples, at most %d are taken (%s)", clip.Middle(p.URL), ErrContent, len(ts), ob.Limits.Triples, ob.Settings.Of("max_resource_triples"))
	}
	ts = rdfres.SortUnique(ts)
	wireNames := false
	var wire []byte
	if !it.Promise.Graph.IsZero() {
		wire = AppendLines(nil, ts)
		got := rdfres.Digest(sha256.Sum256(wire))
		if got != it.Promise.Graph {
			return nil, fmt.Errorf("%s %w: graph digest is %s, promised was %s%s", clip.Middle(p.URL), feed.ErrMismatch, got, it.Promise.Graph, feed.MismatchHint)
		}
		wireNames = allWireNames(ts)
	}
	if wireNames {
		rec.Flags |= ledger.FlagWireNames
	} else {
		ts, _, err = rdfres.NameBlanks(ts, rdfres.NameOptions{Scope: it.Loc, WorkLimit: ob.Limits.BlankWork})
		if err != nil {
			return nil, fmt.Errorf("%s %w: blank nodes: %w", clip.Middle(p.URL), ErrContent, err)
		}
		wire = AppendLines(nil, ts)
	}
	if err := sink.CheckTriples(ts); err != nil {
		about := ""
		if it.Entity != "" {
			about = " (entity " + clip.Middle(it.Entity) + ")"
		}
		return nil, fmt.Errorf("%s%s %w: %w", clip.Middle(p.URL), about, ErrContent, err)
	}
	if rec.Entity == "" {
		rec.Entity = guessEntity(it.Loc, ts)
	}
	if rec.Graph = it.Promise.Graph; !wireNames { // else it was compared
		rec.Graph = sha256.Sum256(wire)
	}
	if ob.unlisted != nil && p.URL == it.Loc && ob.isNew(ctx, rec) {
		ob.unlisted.Named(ts, it.Loc)
	}
	o := &Outcome{Item: it, Record: rec, Bare: IsBare(ts) && !isBlank(body), Empty: len(ts) == 0, Strange: unpromised(p) && ob.isStrange(ctx, rec, ts)}
	if !ob.Select.Selected(rec.Entity, ts) {
		rec.Flags |= ledger.FlagUnselected
		return o, nil
	}
	rec.Triples, o.Wire, o.Parsed = int64(len(ts)), wire, ts
	return o, nil
}

func isBlank(body []byte) bool { return len(bytes.TrimSpace(body)) == 0 }

// listKind names a body's kind of ResourceSync document, or Sitemap, "" for any other.
func listKind(body []byte) string {
	first := body[:min(len(body), fetch.FirstBytes)]
	if fetch.IsGzip(first) {
		z, err := gzip.NewReader(bytes.NewReader(first))
		if err != nil {
			return ""
		}
		first, _ = io.ReadAll(io.LimitReader(z, fetch.FirstBytes)) // the root is enough
	}
	return resourcesync.DocumentKind(first)
}

// readRDF reads the triples of a body; ok is false for no RDF. A body packed with gzip is
// unpacked, of any type and suffix: no format of RDF begins with its two bytes.
func (ob *Obtainer) readRDF(ctx context.Context, p item.Place, base string, body []byte, kind fetch.Kind) (ts []rdfres.Triple, ok bool, err error) {
	for layer := 0; layer < 2 && err == nil && fetch.IsGzip(body); layer++ {
		if body, err = fetch.Gunzip(body, ob.Limits.Resource); err != nil {
			err = fmt.Errorf("unpack gzip: %w", err)
		}
	}
	format, certain, ok := chooseFormat(p, body, kind.ContentType)
	linked, several := kind.Context()
	if len(kind.Contexts) > 0 {
		format, certain, ok = rdfres.JSONLD, true, true
	}
	if err = cmp.Or(err, several); ok && err == nil {
		ts, err = codec.Decode(format, body, rdfres.ReadOptions{Base: base, Name: p.URL, Charset: kind.Charset(), MaxBytes: ob.Limits.Resource, Lax: true, OneGraph: true, LinkedContext: linked,
			Context: func(address string) ([]byte, string, error) { return ob.contexts.Get(ctx, address) }})
	}
	return ts, ok && (err == nil || certain || errors.Is(err, rdfres.ErrRemoteContext)), err
}

// Triples are those of the wire form.
func (o *Outcome) Triples() ([]rdfres.Triple, error) {
	if o.Parsed != nil {
		return o.Parsed, nil
	}
	return ledger.ParseWire(o.Wire)
}

// AppendLines appends the wire form of sorted triples. Its SHA-256 is their graph digest.
func AppendLines(b []byte, ts []rdfres.Triple) []byte {
	n := 0
	for _, t := range ts {
		n += len(t.S) + len(t.P) + len(t.O) + len("   .\n")
	}
	b = slices.Grow(b, n)
	for _, t := range ts {
		b = t.AppendLine(b)
	}
	return b
}

// chooseFormat finds the serialization: by the promised type, the type of the answer, the suffix,
// the content. certain is false by the content alone. A type or suffix common to other formats
// counts if the content is like it.
func chooseFormat(p item.Place, body []byte, contentType string) (f rdfres.Format, certain, ok bool) {
	for _, t := range []string{p.Promise.Type, contentType} {
		if f, ok := rdfres.FormatByMediaType(t); ok && item.IsTypeOfRDF(t) {
			return f, true, true
		}
	}
	bySuffix, certain, ok := formatOfName(p.URL)
	if certain {
		return bySuffix, true, true
	}
	for _, t := range []string{p.Promise.Type, contentType} {
		if f, ok := rdfres.FormatByMediaType(t); ok {
			f, ok = likeRDF(f, body)
			return f, ok, ok
		}
	}
	if ok {
		f, ok = likeRDF(bySuffix, body)
		return f, ok, ok
	}
	for _, t := range []string{p.Promise.Type, fetch.Essence(contentType)} {
		if item.IsTypeOfNoRDF(t) {
			return "", false, false
		}
	}
	f, ok = sniff(body)
	return f, false, ok
}

// formatOfName is the format by the suffix of an address, before any .gz; certain if only RDF has
// such a suffix.
func formatOfName(address string) (f rdfres.Format, certain, ok bool) {
	name := address
	if u, err := url.Parse(address); err == nil {
		name = u.Path
	}
	name = strings.TrimSuffix(strings.ToLower(path.Base(name)), ".gz")
	f, ok = rdfres.FormatBySuffix(name)
	return f, ok && !strings.HasSuffix(name, ".xml") && !strings.HasSuffix(name, ".json"), ok
}

// sniff guesses the format by the content. A beginning like Turtle may be followed by a named
// graph: it is read as TriG, a superset. A list of addresses only begins like a prefixed name.
func sniff(body []byte) (rdfres.Format, bool) {
	head := body[:min(len(body), 4096)]
	if resourcesync.IsTextList(head) {
		return "", false
	}
	f, ok := codec.SniffFormat(head)
	if f == rdfres.Turtle {
		f = rdfres.TriG
	}
	return f, ok
}

// likeRDF tells whether a body declared as plain text, XML or JSON can be of the RDF format of
// that type, or of another one.
func likeRDF(f rdfres.Format, body []byte) (rdfres.Format, bool) {
	switch f {
	case rdfres.RDFXML:
		return f, bytes.Contains(body, []byte("http://www.w3.org/1999/02/22-rdf-syntax-ns#")) || !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 // in UTF-16: told when it is read
	case rdfres.JSONLD:
		return f, bytes.Contains(body, []byte(`"@`)) || len(body) < 10 && bytes.Equal(bytes.TrimSpace(body), []byte("[]"))
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return f, true
	}
	return sniff(body)
}

// isMirrored tells whether the description of a resource is recorded.
func (ob *Obtainer) isMirrored(ctx context.Context, loc string) bool {
	rec, err := ob.Ledger.Record(ctx, ledger.HashOf(loc))
	return err == nil && rec != nil && rec.Triples > 0
}

func allWireNames(ts []rdfres.Triple) bool {
	for _, t := range ts {
		for _, x := range [2]rdfres.Term{t.S, t.O} {
			if x.Kind() == rdfres.KindBlank && !rdfres.IsWireName(x.Label()) {
				return false
			}
		}
	}
	return true
}

// guessEntity names the entity of a document without a link to it: the document's address
// without its suffix if it is a subject, else the subject with the most triples.
func guessEntity(loc string, ts []rdfres.Triple) string {
	bare := loc
	if u, err := url.Parse(loc); err == nil {
		bare = strings.TrimSuffix(loc, path.Ext(u.Path))
	}
	best, most, count := "", 0, 0
	var last rdfres.Term
	for _, t := range ts { // sorted by subject
		if t.S != last {
			last, count = t.S, 0
		}
		count++
		if t.S.Kind() != rdfres.KindIRI {
			continue
		}
		if iri := t.S.IRI(); iri == loc || iri == bare {
			return iri
		}
		if count > most {
			best, most = t.S.IRI(), count
		}
	}
	if best == "" {
		return loc
	}
	return best
}
