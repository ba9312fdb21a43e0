package feed

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Item is one resource in the words of a list, a manifest or a change: the address to fetch, the
// promises, and the time of the change. Pending items are kept, so it has a byte form.
type Item struct {
	Loc      string
	Entity   string // from a describes or canonical link, "" if none
	Change   string // created, updated, deleted; "" from a list
	Promise  fetch.Promise
	LastMod  time.Time
	Time     time.Time    // of the change, zero if unknown
	Sequence uint64       // 0 unknown
	Version  *Place       // the immutable version (memento)
	Others   []Place      // alternates with RDF if loc has none, then duplicates by preference
	Path     string       // in a package
	Package  string       // its address; kept with Path only
	Via      string       // the resource's origin, "" if the source does not tell
	Patches  []PatchOffer // not kept
	TimeGate string       // an address to ask for versions by time (RFC 7089); kept with AsOf only
	AsOf     time.Time    // the version of this time is wanted, without any promise
	Found    []Place      // RDF linked from the page at loc; not kept
	Bad      string       // why the entry cannot be used, "" if it can
	Blind    bool         // Bad, and its resource is not known; not kept
	Ask      Ask          // not kept
	File     bool         // the source calls it a file, and no description
}

// Ask is how a resource is fetched in this run.
type Ask struct {
	Opened *Download // the package of its manifest, while it is open
	Tried  bool      // it is fetched now, so not again in this run
	ETag   string    // of the recorded state of loc
}

// held is about how many bytes of memory it takes.
func (it *Item) held() int64 {
	n := 500 + len(it.Loc) + len(it.Entity) + len(it.Path) + len(it.Via) + len(it.TimeGate) + len(it.Bad) + len(it.Promise.Type) + len(it.Promise.Encoding)
	for _, p := range it.Others {
		n += 300 + len(p.URL)
	}
	for _, p := range it.Patches {
		n += 300 + len(p.Place.URL)
	}
	return int64(n)
}

// EntryOf is a source's entry of a recorded state, without a promise of its bytes.
func EntryOf(rec *ledger.Record) *Item {
	return &Item{File: rec.Has(ledger.FlagFile), Loc: rec.Loc, Entity: rec.Entity, Promise: fetch.Promise{Length: -1}, LastMod: rec.LastMod, Time: rec.Time, Via: rec.Via}
}

// Record is the record of a resource before it is fetched.
func (it *Item) Record() *ledger.Record {
	r := &ledger.Record{Loc: it.Loc, Entity: it.Entity, Hashes: it.Promise.Hashes, Length: it.Promise.Length, LastMod: it.LastMod, Time: it.Time}
	r.ComesVia(it.Via)
	return r
}

// Place is an address of a representation.
type Place struct {
	URL     string
	Promise fetch.Promise
	Rel     string // the relation of linked RDF, if loc has none; "" for loc and its copies
}

// maxVia bounds the address of an origin.
const maxVia = 8 << 10

// MaxPlaces bounds the further addresses taken of one entry.
const MaxPlaces = 8

// newItem takes an entry of a document. A contradictory or unreadable entry gives a Bad item, and
// fails alone.
func newItem(e *resourcesync.Entry, r *resourcesync.Reader, address string) *Item {
	it := &Item{Loc: e.Loc, Change: e.Meta.Change, LastMod: e.LastMod, Path: e.Meta.Path}
	bad := func(format string, args ...any) {
		if it.Bad == "" {
			it.Bad = fmt.Sprintf("line %d of %s: ", e.Line, clip.Middle(address)) + fmt.Sprintf(format, args...)
		}
	}
	for _, f := range e.Faults {
		bad("%s", f)
	}
	if u, err := url.Parse(e.Loc); err != nil || u.Scheme == "" || len(e.Loc) > 64<<10 {
		bad("loc %q is no absolute address", clip.Middle(e.Loc))
		it.Blind = true
	}
	if slices.ContainsFunc(e.Faults, func(f string) bool { return strings.HasSuffix(f, " loc") }) {
		it.Blind = true
	}
	if it.Blind { // its resource is not known: its number in the list names it, since a list may be one line
		it.Loc = fmt.Sprintf("%s#entry=%d", address, e.Number)
	}
	if c := e.Meta.Capability; c != "" {
		bad("the entry leads to a document of capability %q, and to no resource", clip.Middle(string(c)))
	}
	hashes := e.Meta.Hash
	for _, token := range hashes.Broken {
		bad("hash %q cannot be read", clip.Middle(token))
	}
	hashes.Broken = nil
	it.Promise = fetch.Promise{Hashes: hashes, Length: e.Meta.Length, Type: fetch.Essence(e.Meta.Type), Encoding: strings.ToLower(e.Meta.Encoding)}
	if !e.HasMeta {
		it.Promise.Length = -1
	}
	if g := e.Meta.Ext[resourcesync.ExtGraph]; g != "" {
		d, err := ParseGraph(g)
		if err != nil {
			bad("%s: %v", resourcesync.ExtGraph, err)
		}
		it.Promise.Graph = d
	}
	if it.File = e.Meta.Ext[resourcesync.ExtKind] == resourcesync.KindFile; it.File && it.Promise.Type == "" {
		it.Promise.Type = fetch.Essence(e.Meta.Ext[resourcesync.ExtType])
	}
	it.Entity = e.Meta.Ext[resourcesync.ExtEntity] // several describes links might name it
	it.Sequence, _ = sequenceOf(&e.Meta)
	it.Time = changeTime(r, e)
	var alternates, duplicates []resourcesync.Link
	documented := hasNoRDF(it.Promise.Type)
	better := !IsTypeOfRDF(it.Promise.Type) // an alternate may be
	for _, l := range e.Links {
		switch l.Rel {
		case resourcesync.RelDescribes:
			if it.Entity == "" {
				it.Entity = l.Href
			}
		case resourcesync.RelMemento:
			if it.Version == nil && e.Meta.Change != "deleted" {
				it.Version = &Place{URL: l.Href, Promise: it.Promise}
				it.Version.Promise.Override(l)
			}
		case resourcesync.RelTimeGate:
			if it.TimeGate == "" {
				it.TimeGate = l.Href
			}
		case resourcesync.RelPatch:
			if p, ok := newPatchOffer(l); ok && len(it.Patches) < maxPatches {
				it.Patches = append(it.Patches, p)
			}
		case resourcesync.RelVia:
			if it.Via == "" && len(l.Href) <= maxVia {
				it.Via = l.Href
			}
		case resourcesync.RelAlternate:
			if better {
				alternates = append(alternates, l)
			}
		case resourcesync.RelDescribedBy:
			if documented && IsTypeOfRDF(l.Type) {
				alternates = append(alternates, l)
			}
		case resourcesync.RelDuplicate:
			duplicates = append(duplicates, l)
		}
	}
	if it.Entity == "" {
		if l := e.Link(resourcesync.RelCanonical); l != nil {
			it.Entity = l.Href
		}
	}
	slices.SortStableFunc(alternates, func(a, b resourcesync.Link) int {
		return cmp.Or(cmp.Compare(FormatRank(a.Type), FormatRank(b.Type)), cmp.Compare(pri(a), pri(b)))
	})
	for _, l := range alternates {
		if _, ok := rdfres.FormatByMediaType(l.Type); ok && len(it.Others) < MaxPlaces {
			p := Place{URL: l.Href, Promise: fetch.Promise{Length: -1}, Rel: l.Rel}
			p.Promise.Override(l)
			it.promiseLinked(l)
			it.Others = append(it.Others, p)
		}
	}
	slices.SortStableFunc(duplicates, func(a, b resourcesync.Link) int { return cmp.Compare(pri(a), pri(b)) })
	for _, l := range duplicates {
		if len(it.Others) < MaxPlaces {
			p := Place{URL: l.Href, Promise: it.Promise}
			p.Promise.Override(l)
			it.Others = append(it.Others, p)
		}
	}
	return it
}

// changeTime is the time of an entry's change, zero for none; r may be nil.
func changeTime(r *resourcesync.Reader, e *resourcesync.Entry) time.Time {
	if r != nil {
		if t := r.ChangeTime(e); !t.IsZero() {
			return t
		}
	}
	return e.Meta.DateTime
}

func pri(l resourcesync.Link) int {
	if l.Pri <= 0 {
		return 999999
	}
	return l.Pri
}

// FormatRank orders the formats by how cheap and how certain they are to read.
func FormatRank(mediaType string) int {
	f, ok := rdfres.FormatByMediaType(mediaType)
	if !ok {
		return 100
	}
	return slices.Index([]rdfres.Format{rdfres.NTriples, rdfres.Turtle, rdfres.NQuads, rdfres.JSONLD, rdfres.RDFXML, rdfres.TriG}, f)
}

// ParseGraph reads a graph digest in the form of rsb:graph: sha-256:HEX, among other tokens.
func ParseGraph(s string) (rdfres.Digest, error) {
	for tok := range strings.FieldsSeq(s) {
		if v, ok := strings.CutPrefix(tok, "sha-256:"); ok {
			return rdfres.ParseDigest(v)
		}
	}
	return rdfres.Digest{}, fmt.Errorf("%q is not sha-256:HEX", clip.Middle(s))
}

// Identity names a change by its resource, kind and time, to find it again in a list.
func (it *Item) Identity() string {
	return it.Loc + " " + it.Change + " " + it.Time.UTC().Format(time.RFC3339Nano)
}

// hasNoRDF tells the types of pages, and unknown types: the description of such a resource stands
// for it. The description of a picture or a PDF is a resource of its own.
func hasNoRDF(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "application/xhtml+xml" || !IsTypeOfNoRDF(mediaType) && !IsTypeOfRDF(mediaType)
}

// linkedPrefix begins a token among the hashes of other algorithms. It stands for all promises of
// linked RDF, since that may change while loc stays the same.
const linkedPrefix = "linked-rdf:"

func (it *Item) promiseLinked(l resourcesync.Link) {
	if l.Hash.IsZero() && l.Length < 0 && l.Modified.IsZero() {
		return
	}
	h := &it.Promise.Hashes
	before := linkedOf(*h)
	h.Other = slices.DeleteFunc(slices.Clone(h.Other), func(s string) bool { return strings.HasPrefix(s, linkedPrefix) })
	h.Other = append(h.Other, linkedPrefix+strconv.FormatUint(hash64(fmt.Sprint(before, l.Href, l.Hash, l.Length, l.Modified.UnixNano())), 16))
}

func linkedOf(h resourcesync.Hashes) string {
	for _, s := range h.Other {
		if strings.HasPrefix(s, linkedPrefix) {
			return s
		}
	}
	return ""
}

// Differs compares a record with a list's present entry. The digest of the graph and a common
// hash decide; then length, then lastmod. Without any common measure nothing is known: no
// difference.
func (it *Item) Differs(r *ledger.Record) (v verdict, why string) {
	if it.Bad != "" {
		return Different, "what cannot be used: " + it.Bad
	}
	if !it.Promise.Graph.IsZero() && r.Has(ledger.FlagWireNames) && !r.Has(ledger.FlagUnselected) {
		if it.Promise.Graph == r.Graph {
			return ProvenSame, ""
		}
		return Different, fmt.Sprintf("graph digest %s, recorded is %s", it.Promise.Graph, r.Graph)
	}
	if linkedOf(it.Promise.Hashes) != linkedOf(r.Hashes) {
		return Different, "what is promised of the RDF that it links to is another than recorded"
	}
	if equal, known := it.Promise.Hashes.Compare(r.Hashes); known {
		if equal {
			return ProvenSame, ""
		}
		return Different, fmt.Sprintf("hash %s, recorded is %s", it.Promise.Hashes, r.Hashes)
	}
	length, settled := r.Promised()
	lengths, times := it.Promise.Length >= 0 && length >= 0, !it.LastMod.IsZero() && !r.LastMod.IsZero()
	switch {
	case lengths && it.Promise.Length != length:
		return Different, fmt.Sprintf("length %d, recorded is %d", it.Promise.Length, length)
	case times && !it.LastMod.Equal(r.LastMod):
		return Different, fmt.Sprintf("lastmod %s, recorded is %s", it.LastMod, r.LastMod)
	case times && settled:
		return SeemsSame, ""
	case lengths && settled:
		return SameLength, ""
	}
	return Unknown, ""
}

// SamePromise tells whether two entries promise the same bytes.
func (it *Item) SamePromise(b *Item) bool {
	if !it.AsOf.Equal(b.AsOf) {
		return false
	}
	if equal, known := it.Promise.Hashes.Compare(b.Promise.Hashes); known {
		return equal
	}
	return it.Promise.Length == b.Promise.Length && it.LastMod.Equal(b.LastMod)
}

// vague tells of an entry: no other state of its resource can be seen by it. Its list was served
// at the time at.
func (it *Item) vague(at time.Time) bool {
	return it.Promise.Unproven() && (it.LastMod.IsZero() && it.Promise.Length < 0 || Unsettled(it.LastMod, at))
}

// Unsettled tells whether at the time at a resource could be changed once more and keep its
// lastmod: on the same day, or in the same minute or second.
func Unsettled(lastMod, at time.Time) bool {
	told := Lasts(lastMod)
	if told > 24*time.Hour {
		told += 12 * time.Hour // the day of any place
	}
	age := at.Sub(lastMod)
	return !lastMod.IsZero() && age < told // or of a time to come, by a clock ahead
}

// Lasts is the time in which a clock shows the same value, as precise as the source tells its times:
// a second, a minute, or a day.
func Lasts(t time.Time) time.Duration {
	told := 2 * time.Second
	for _, unit := range []time.Duration{time.Minute, 24 * time.Hour} {
		if t.Equal(t.Truncate(unit)) {
			told = unit + 2*time.Second
		}
	}
	return told
}

// verdict of comparing a record with an entry.
type verdict int

const (
	Unknown    verdict = iota // no measure in common
	Different                 // proven by a measure
	SameLength                // nothing else is told
	SeemsSame                 // lastmod agrees, and length if it is told
	ProvenSame                // a digest agrees
)

// Same tells whether nothing need be fetched for the comparison. A length says little, but beside
// followed changes comparisons are rare, and a passed-over difference is never told again.
func (v verdict) Same(o *Offer) bool {
	return v == ProvenSame || v == SeemsSame || v == SameLength && !o.Followed()
}

// itemVersion is the first byte of encode.
const itemVersion = 7

func (it *Item) Encode() []byte {
	b := []byte{itemVersion}
	b = ledger.AppendString(b, it.Loc)
	b = ledger.AppendString(b, it.Entity)
	b = ledger.AppendString(b, it.Change)
	b = appendPromise(b, &it.Promise)
	b = ledger.AppendTime(b, it.LastMod)
	b = ledger.AppendTime(b, it.Time)
	b = binary.AppendVarint(b, int64(it.Sequence))
	b = ledger.AppendString(b, it.Path)
	if it.Version == nil {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = ledger.AppendString(b, it.Version.URL)
		b = appendPromise(b, &it.Version.Promise)
	}
	b = binary.AppendVarint(b, int64(len(it.Others)))
	for _, p := range it.Others {
		b = ledger.AppendString(b, p.URL)
		b = appendPromise(b, &p.Promise)
		b = ledger.AppendString(b, p.Rel)
	}
	b = ledger.AppendString(b, it.Bad)
	if it.AsOf.IsZero() {
		b = append(b, 0)
	} else {
		b = ledger.AppendTime(ledger.AppendString(append(b, 1), it.TimeGate), it.AsOf)
	}
	if it.Path != "" {
		b = ledger.AppendString(b, it.Package)
	}
	if it.File {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return ledger.AppendString(b, it.Via)
}

func appendPromise(b []byte, p *fetch.Promise) []byte {
	b = ledger.AppendString(b, p.Hashes.String())
	b = binary.AppendVarint(b, p.Length)
	b = ledger.AppendString(b, p.Type)
	b = ledger.AppendString(b, p.Encoding)
	if p.Graph.IsZero() {
		return append(b, 0)
	}
	return append(append(b, 1), p.Graph[:]...)
}

func DecodeItem(b []byte) (*Item, error) {
	if len(b) == 0 || b[0] != itemVersion {
		return nil, ledger.ErrDamaged
	}
	d := ledger.Decoder{B: b[1:]}
	it := &Item{Loc: d.String(), Entity: d.String(), Change: d.String(), Promise: decodePromise(&d), LastMod: d.Time(), Time: d.Time()}
	it.Sequence = uint64(d.Varint())
	it.Path = d.String()
	if d.Flag() {
		it.Version = &Place{URL: d.String(), Promise: decodePromise(&d)}
	}
	n := d.Varint()
	for range min(max(n, 0), MaxPlaces) {
		it.Others = append(it.Others, Place{URL: d.String(), Promise: decodePromise(&d), Rel: d.String()})
	}
	it.Bad = d.String()
	if d.Flag() {
		it.TimeGate, it.AsOf = d.String(), d.Time()
	}
	if it.Path != "" {
		it.Package = d.String()
	}
	it.File, it.Via = d.Flag(), d.String()
	if d.Bad || n > MaxPlaces {
		return nil, ledger.ErrDamaged
	}
	return it, nil
}

func decodePromise(d *ledger.Decoder) fetch.Promise {
	var p fetch.Promise
	if h := d.String(); h != "" {
		var err error
		if p.Hashes, err = resourcesync.ParseHashes(h); err != nil {
			d.Bad = true
		}
	}
	p.Length = d.Varint()
	p.Type = d.String()
	p.Encoding = d.String()
	if d.Flag() {
		d.Fixed(p.Graph[:])
	}
	return p
}

// PatchOffer is the patch of a change, with the digests of its base and its result: graph digests
// for an RDF Patch, hashes of the representation for a JSON Patch. A patch without both is not
// used.
type PatchOffer struct {
	Place
	Base, Result rdfres.Digest
}

// JSONPatchType is the media type of JSON Patch (RFC 6902).
const (
	JSONPatchType = "application/json-patch+json"
	maxPatches    = 4 // taken of one entry
)

func newPatchOffer(l resourcesync.Link) (p PatchOffer, ok bool) {
	p.URL, p.Promise = l.Href, fetch.Promise{Length: -1}
	p.Promise.Override(l)
	p.Promise.Type = resourcesync.NormalizeType(l.Type)
	var err1, err2 error
	p.Base, err1 = ParseGraph(l.Ext[resourcesync.ExtBase])
	p.Result, err2 = ParseGraph(l.Ext[resourcesync.ExtResult])
	known := p.Promise.Type == rdfres.RDFPatchType || p.Promise.Type == JSONPatchType
	return p, known && err1 == nil && err2 == nil && p.Promise.Length >= 0
}

// IsTypeOfRDF tells the media types of RDF alone.
func IsTypeOfRDF(mediaType string) bool {
	switch fetch.Essence(mediaType) {
	case "text/plain", "application/xml", "text/xml", "application/json":
		return false
	}
	_, ok := rdfres.FormatByMediaType(mediaType)
	return ok
}

// IsTypeOfNoRDF tells the media types that never have RDF, such as images.
func IsTypeOfNoRDF(mediaType string) bool {
	major, sub, _ := strings.Cut(mediaType, "/")
	switch major {
	case "image", "audio", "video", "font":
		return true
	case "text":
		return sub == "html" || sub == "css" || sub == "csv" || sub == "javascript"
	case "application":
		return sub == "pdf" || sub == "zip" || mediaType == GzipType || sub == "javascript" || sub == "xhtml+xml" || strings.HasPrefix(sub, "vnd.openxmlformats")
	}
	return false
}

// GzipType is the media type of gzip files (RFC 6713).
const GzipType = "application/gzip"
