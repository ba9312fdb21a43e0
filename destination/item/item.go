package item

import (
	"cmp"
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
	Time     time.Time // of the change, zero if unknown
	Sequence uint64    // 0 unknown
	Version  *Place    // the immutable version (memento)
	Others   []Place   // alternates with RDF if loc has none, then duplicates by preference
	Path     string    // in a package
	Package  string    // its address; kept with Path only
	Via      string    // the resource's origin, "" if the source does not tell
	Patches  []Patch   // not kept
	TimeGate string    // an address to ask for versions by time (RFC 7089); kept with AsOf only
	AsOf     time.Time // the version of this time is wanted, without any promise
	Found    []Place   // RDF linked from the page at loc; not kept
	Bad      string    // why the entry cannot be used, "" if it can
	Blind    bool      // Bad, and its resource is not known; not kept
	Ask      Ask       // not kept
	File     bool      // the source calls it a file, and no description
}

// Ask is how a resource is fetched in this run.
type Ask struct {
	Opened *resourcesync.Package // of its manifest, while it is open
	Tried  bool                  // it is fetched now, so not again in this run
	ETag   string                // of the recorded state of loc
}

// Held is about how many bytes of memory it takes.
func (it *Item) Held() int64 {
	n := 500 + len(it.Loc) + len(it.Entity) + len(it.Path) + len(it.Via) + len(it.TimeGate) + len(it.Bad) + len(it.Promise.Type) + len(it.Promise.Encoding)
	for _, p := range it.Others {
		n += 300 + len(p.URL)
	}
	for _, p := range it.Patches {
		n += 300 + len(p.Place.URL)
	}
	return int64(n)
}

// Of is a source's entry of a recorded state, without a promise of its bytes.
func Of(rec *ledger.Record) *Item {
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

// New takes an entry of a document. A contradictory or unreadable entry gives a Bad item, and
// fails alone.
func New(e *resourcesync.Entry, r *resourcesync.Reader, address string) *Item {
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
	it.Sequence, _ = e.Meta.Sequence()
	it.Time = ChangeTime(r, e)
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
			if p, ok := newPatch(l); ok && len(it.Patches) < maxPatches {
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

// ChangeTime is the time of an entry's change, zero for none; r may be nil.
func ChangeTime(r *resourcesync.Reader, e *resourcesync.Entry) time.Time {
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
	h.Other = append(h.Other, linkedPrefix+strconv.FormatUint(ledger.HashOf(fmt.Sprint(before, l.Href, l.Hash, l.Length, l.Modified.UnixNano())).Brief(), 16))
}

func linkedOf(h resourcesync.Hashes) string {
	for _, s := range h.Other {
		if strings.HasPrefix(s, linkedPrefix) {
			return s
		}
	}
	return ""
}
