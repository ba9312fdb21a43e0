package publish

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strconv"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/publish/packing"
	"github.com/rsbridge/rsbridge/publish/partition"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	xmlType = kept.XMLType
	// mostBytes is the largest document allowed (ResourceSync 1.1, section 7).
	mostBytes = 50_000_000
	// mostEntries is how many entries a document may have (the same place).
	mostEntries = 50_000
	// layout is part of every ETag made from other things than the bytes. It changes with the
	// layout of documents.
	layout = "3"
)

// written is a document with few entries.
func written(head resourcesync.Head, entries []resourcesync.Entry) (*document, error) {
	var b bytes.Buffer
	w, err := resourcesync.NewWriter(&b, head)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if err := w.Write(&entries[i]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed(b.Bytes(), xmlType)
}

// streamed writes a document of rendered entries. An etag of "" is made from the bytes.
func streamed(etag string, head resourcesync.Head, entries func(w *resourcesync.Writer) error) (*document, error) {
	pk := packing.New(etag == "")
	w, err := resourcesync.NewWriter(pk, head)
	if err == nil {
		err = entries(w)
	}
	if err == nil {
		err = w.Close()
	}
	body, closeErr := pk.Close()
	if err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	if etag == "" {
		etag = pk.Tag()
	}
	return &document{etag: etag, contentType: xmlType, body: body}, nil
}

func capabilityEntry(loc string, c resourcesync.Capability, links ...resourcesync.Link) resourcesync.Entry {
	return resourcesync.Entry{Loc: loc, HasMeta: true, Meta: resourcesync.Meta{Capability: c, Length: -1}, Links: links}
}

const wellKnownPath = "/.well-known/resourcesync"

func (p *Publisher) wellKnown() string  { return p.base + wellKnownPath }
func (a *place) wellKnown() string      { return a.Base + wellKnownPath }
func (a *place) capabilityList() string { return a.url + "/capabilitylist.xml" }
func (a *place) about() string          { return a.url + "/about" }

// sourceSets is the number of sets in one Source Description.
const sourceSets = 10000

func (p *Publisher) sourceDescriptionPart(page int) string {
	return fmt.Sprintf("%s/sourcedescription-%05d.xml", p.base, page)
}

// sourceDescription lists every set. Page 0 is the one document, or the index if there are too many
// sets for one; the others are its parts.
func (p *Publisher) sourceDescription(page int) (*document, error) {
	head := resourcesync.Head{
		Meta:  resourcesync.Meta{Capability: resourcesync.Description, Length: -1},
		Links: []resourcesync.Link{link(resourcesync.RelDescribedBy, p.base+"/about")},
	}
	names := p.names
	if len(names) == 0 {
		return nil, notFound("This is no source: it has no sets.")
	}
	pages := (len(names) + p.sourceSets - 1) / p.sourceSets
	var entries []resourcesync.Entry
	switch {
	case page > pages || page > 0 && pages <= 1:
		return nil, errNoDocument
	case page > 0:
		head.Links = append(head.Links, link(resourcesync.RelIndex, p.wellKnown()))
		names = names[(page-1)*p.sourceSets : min(page*p.sourceSets, len(names))]
	case pages > 1:
		head.Index = true
		for n := 1; n <= pages; n++ {
			entries = append(entries, resourcesync.Entry{Loc: p.sourceDescriptionPart(n)})
		}
		return written(head, entries)
	}
	for _, name := range names {
		s := p.lookup(name)
		entries = append(entries, capabilityEntry(s.at.capabilityList(), resourcesync.CapabilityList, link(resourcesync.RelDescribedBy, s.at.about())))
	}
	return written(head, entries)
}

// capabilityListDoc lists the documents available now: none before the first complete scan.
func (s *set) capabilityListDoc(snap *snapshot) (*document, error) {
	head := resourcesync.Head{
		Meta: resourcesync.Meta{Capability: resourcesync.CapabilityList, Length: -1},
		Links: []resourcesync.Link{
			link(resourcesync.RelDescribedBy, s.at.about()),
			link(resourcesync.RelUp, s.at.wellKnown()),
		},
	}
	if len(s.cfg.Via) == 1 { // of several, none is the original of all
		head.Links = append(head.Links, link(resourcesync.RelVia, s.cfg.Via[0]))
	}
	if s.cfg.RootLinks != nil {
		head.Links = append(head.Links, s.cfg.RootLinks(s.at.url)...)
	}
	var entries []resourcesync.Entry
	for _, k := range documentKinds {
		switch {
		case !k.listed(s, snap):
		case k.link != nil:
			head.Links = append(head.Links, k.link(&s.at))
		case s.offers(k.capability):
			if entries = append(entries, capabilityEntry(s.at.url+"/"+k.name, k.capability)); k.capability == resourcesync.ChangeList {
				head.Links = append(head.Links, link(resourcesync.RelChangesFrom, s.at.url+"/changelist-from-"))
			}
		}
	}
	for _, kind := range archiveKinds {
		if slices.ContainsFunc(s.archive.all(), func(r archiveRecord) bool { return r.Kind == kind }) {
			entries = append(entries, capabilityEntry(s.at.archiveAddress(string(kind)), kind+"-archive"))
		}
	}
	if s.cfg.Channels != nil {
		entries = append(entries, s.cfg.Channels(s.at.url)...)
	}
	return written(head, entries)
}

func (a *place) root(c resourcesync.Capability) resourcesync.Head {
	return resourcesync.Head{
		Meta:  resourcesync.Meta{Capability: c, Length: -1},
		Links: []resourcesync.Link{link(resourcesync.RelUp, a.capabilityList())},
	}
}

func extNumbers(sequence, generation uint64) map[string]string {
	m := map[string]string{resourcesync.ExtSequence: strconv.FormatUint(sequence, 10)}
	if generation > 0 {
		m[resourcesync.ExtGeneration] = strconv.FormatUint(generation, 10)
	}
	return m
}

func (a *place) partAddress(p partition.Part) string {
	return a.url + "/resourcelist-" + p.Bits() + ".xml"
}

// resourceList is /SET/resourcelist.xml: the one part, or the index.
func (snap *snapshot) resourceList(ctx context.Context) (*document, error) {
	if len(snap.parts) == 1 {
		return snap.resourceListPart(ctx, snap.parts[0], false)
	}
	s := snap.set
	key := nameTag("rli %s %s %s %d %d %d", layout, s.at.Base, s.cfg.Name, snap.gen.Number, snap.gen.Sequence, snap.gen.At.UnixMicro())
	return s.p.cache.Get(ctx, key, func() (*document, error) {
		head := s.at.root(resourcesync.ResourceList)
		head.Index = true
		head.Meta.At = snap.gen.At
		head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
		var entries []resourcesync.Entry
		for _, p := range snap.parts {
			if p.Count > 0 {
				entries = append(entries, resourcesync.Entry{Loc: s.at.partAddress(p), LastMod: p.At, HasMeta: true,
					Meta: resourcesync.Meta{Length: -1, Ext: extNumbers(p.Seq, 0)}})
			}
		}
		d, err := written(head, entries)
		if err == nil {
			d.modified = snap.gen.At
		}
		return d, err
	})
}

// partDoc answers for the range of any present or former part: the client's index may be older.
func (snap *snapshot) partDoc(ctx context.Context, bits string) (*document, error) {
	s := snap.set
	p, ok := partition.ParseBits(bits)
	if !ok || bits == "" {
		return nil, errNoDocument
	}
	var lo [32]byte
	binary.BigEndian.PutUint64(lo[:], p.Lo)
	i := snap.parts.Find(lo)
	if at := snap.parts[i]; at.Lo == p.Lo && at.Depth == p.Depth {
		return snap.resourceListPart(ctx, at, len(snap.parts) > 1)
	}
	if snap.parts[i].Depth < p.Depth { // since then joined with its sibling
		if p.Depth > snap.parts[i].Depth+3 {
			return nil, errNoDocument
		}
		old := snap.parts[i]
		old.Lo, old.Depth, old.Count = p.Lo, p.Depth, -1
		return snap.resourceListPart(ctx, old, len(snap.parts) > 1)
	}
	whole := p // since then cut
	for ; i < len(snap.parts) && (p.End() == 0 || snap.parts[i].Lo < p.End()); i++ {
		q := snap.parts[i]
		whole.Count += q.Count
		whole.Bytes += max(0, q.Bytes)
		if q.Seq > whole.Seq {
			whole.Seq, whole.Gen, whole.At = q.Seq, q.Gen, q.At
		}
	}
	if whole.Count > int64(s.sizes.documentEntries) || whole.Bytes > mergedBytes {
		return nil, &statusError{code: http.StatusGone, reason: "This part of the Resource List was cut into smaller ones.",
			detail: []string{fmt.Sprintf("%s/resourcelist.xml lists the parts of now.", s.at.url)}}
	}
	return snap.resourceListPart(ctx, whole, true)
}

// resourceListPart assembles a part.
func (snap *snapshot) resourceListPart(ctx context.Context, p partition.Part, indexed bool) (*document, error) {
	s := snap.set
	key := nameTag("rl %s%s %s %s %s %d %d %d %d %v", layout, s.entries.tag(), s.at.Base, s.cfg.Name, p.Bits(), p.Count, p.Seq, p.Gen, p.At.UnixMicro(), indexed)
	return s.p.cache.Get(ctx, key, func() (*document, error) {
		head := s.at.root(resourcesync.ResourceList)
		if indexed {
			head.Links = append(head.Links, link(resourcesync.RelIndex, s.at.url+"/resourcelist.xml"))
		}
		head.Meta.At = p.At
		head.Meta.Ext = extNumbers(p.Seq, p.Gen)
		tag := key
		if s.cfg.Origin != nil { // its addresses are no part of the key
			tag = ""
		}
		d, err := streamed(tag, head, func(w *resourcesync.Writer) error {
			return snap.writePart(ctx, w, p)
		})
		if err == nil {
			d.modified = p.At
			if d.body.Length > mostBytes {
				s.p.log.Warn("a part of the Resource List is longer than the specification allows", "set", s.cfg.Name, "entries", p.Count, "bytes", d.body.Length, "allowed", mostBytes)
			}
		}
		return d, err
	})
}

func (snap *snapshot) writePart(ctx context.Context, w *resourcesync.Writer, p partition.Part) error {
	s := snap.set
	lo, hi := p.Bounds()
	view := snap.source()
	var buf []byte
	for st, err := range snap.view.Current(ctx, lo, hi) {
		if err != nil {
			return err
		}
		if w.Count()%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if buf, err = s.entries.appendResource(ctx, buf[:0], view, &st); err != nil {
			return err
		}
		if err := w.WriteRaw(buf, 1); err != nil {
			return err
		}
	}
	for f, err := range snap.view.CurrentFiles(ctx, lo, hi) {
		var e resourcesync.Entry
		if err == nil {
			e, err = s.entries.fileEntry(ctx, view, &f)
		}
		if err == nil && w.Count()%256 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.Write(&e)
		}
		if err != nil {
			return err
		}
	}
	if p.Count >= 0 && int64(w.Count()) != p.Count {
		return fmt.Errorf("Resource List part %q of %s: %d entities are recorded, %d are there", p.Bits(), s.cfg.Name, p.Count, w.Count())
	}
	return nil
}

func listName(l *listRecord) string {
	if l.Through > 0 {
		return fmt.Sprintf("changelist-%06d-%06d", l.Number, l.Through)
	}
	return fmt.Sprintf("changelist-%06d", l.Number)
}

func (a *place) listAddress(l *listRecord) string { return a.url + "/" + listName(l) + ".xml" }

// list finds the Change List with a number, or the list it was merged into.
func (snap *snapshot) list(number uint64) (*listRecord, bool) {
	i := sort.Search(len(snap.lists), func(i int) bool { return snap.lists[i].lastNumber() >= number })
	if i == len(snap.lists) || snap.lists[i].Number > number {
		return nil, false
	}
	return &snap.lists[i], true
}

// changeList is /SET/changelist.xml: the one list, or the index.
func (snap *snapshot) changeList(ctx context.Context) (*document, error) {
	if len(snap.lists) == 1 {
		return snap.changeListDoc(ctx, &snap.lists[0])
	}
	s, lists := snap.set, snap.lists
	if more := len(lists) - mostEntries; more > 0 { // older ones are as those that retention has dropped
		lists = lists[more:]
	}
	key := nameTag("cli %s %s %s %d %d %d %d", layout, s.at.Base, s.cfg.Name, snap.gen.Number, snap.gen.Sequence, lists[0].Number, snap.gen.At.UnixMicro())
	return s.p.cache.Get(ctx, key, func() (*document, error) {
		head := s.at.root(resourcesync.ChangeList)
		head.Index = true
		head.Meta.From = lists[0].From
		head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
		entries := make([]resourcesync.Entry, len(lists))
		for i, l := range lists {
			entries[i] = resourcesync.Entry{Loc: s.at.listAddress(&l), HasMeta: true,
				Meta: resourcesync.Meta{From: l.From, Until: l.Until, Length: -1, Ext: extNumbers(l.Last, 0)}}
		}
		d, err := written(head, entries)
		if err == nil {
			d.modified = snap.gen.At
		}
		return d, err
	})
}

// open is the growing Change List.
func (snap *snapshot) open() *listRecord { return &snap.lists[len(snap.lists)-1] }

// recentChanges is /SET/changelist-open.xml: the last changes in one Change List, at most the
// entries of one document and at least half of them. Its address never becomes an index's, for
// clients reading one list and no index.
func (snap *snapshot) recentChanges(ctx context.Context) (*document, error) {
	s, open := snap.set, snap.open()
	first, after, from := open.Number, uint64(0), open.From
	entries, bytes := open.Entries, open.Bytes
	for i := len(snap.lists) - 2; i >= 0; i-- {
		l := &snap.lists[i]
		fits := func(n int, size int64) bool { return entries+n <= s.sizes.documentEntries && bytes+size <= mergedBytes }
		if !fits(l.Entries, l.Bytes) {
			if h := l.Half; h.After > 0 && fits(l.Entries-h.Entries, l.Bytes-h.Bytes) {
				first, after, from, entries = l.Number, h.After, h.At, entries+l.Entries-h.Entries
			}
			break
		}
		first, from, entries, bytes = l.Number, l.From, entries+l.Entries, bytes+l.Bytes
	}
	head := s.at.root(resourcesync.ChangeList)
	head.Meta.From = from
	head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
	key := nameTag("clo %s %s %s %d %d %d %d", layout, s.at.Base, s.cfg.Name, first, after, snap.gen.Number, snap.gen.At.UnixMicro())
	return s.p.cache.Get(ctx, key, func() (*document, error) {
		d, err := streamed(key, head, func(w *resourcesync.Writer) error {
			if err := copyEntries(ctx, w, snap.kv, first, after, open); err != nil {
				return err
			}
			if w.Count() != entries {
				return fmt.Errorf("open Change List of %s: %d entries are recorded, %d are there", s.cfg.Name, entries, w.Count())
			}
			return nil
		})
		if err == nil {
			d.modified = snap.gen.At
		}
		return d, err
	})
}

// changesFrom is /SET/changelist-from-N.xml: the open Change List from change N on, for mirrors.
func (snap *snapshot) changesFrom(ctx context.Context, digits string) (*document, error) {
	l := snap.open()
	n, err := strconv.ParseUint(digits, 10, 63)
	if _, none := snap.kv.Get(ctx, keyOf('c', l.lastNumber(), n)); err != nil || strconv.FormatUint(n, 10) != digits || errors.Is(none, kv.ErrNotFound) {
		return nil, errNoDocument // another failure is told below
	}
	return streamed("", snap.changeListHead(l), func(w *resourcesync.Writer) error {
		return copyEntries(ctx, w, snap.kv, l.lastNumber(), n-1, l)
	})
}

// changeListDoc puts a Change List together from its rendered entries.
func (snap *snapshot) changeListDoc(ctx context.Context, l *listRecord) (*document, error) {
	s, number, head, modified := snap.set, l.Number, snap.changeListHead(l), l.Until
	key := nameTag("cl %s %s %s %d %d %d %v %d", layout, s.at.Base, s.cfg.Name, number, l.Last, l.From.UnixMicro(), len(snap.lists) > 1, l.Until.UnixMicro())
	if !l.closed() {
		modified, key = snap.gen.At, nameTag("%s %d %d", key, snap.gen.Number, snap.gen.At.UnixMicro())
	}
	return s.p.cache.Get(ctx, key, func() (*document, error) {
		d, err := streamed(key, head, func(w *resourcesync.Writer) error {
			if err := copyEntries(ctx, w, snap.kv, l.Number, 0, l); err != nil {
				return err
			}
			if w.Count() != l.Entries {
				return fmt.Errorf("Change List %d of %s: %d entries are recorded, %d are there", number, s.cfg.Name, l.Entries, w.Count())
			}
			return nil
		})
		if err == nil {
			d.modified, d.immutable = modified, l.closed()
		}
		return d, err
	})
}

func (snap *snapshot) changeListHead(l *listRecord) resourcesync.Head {
	head := snap.set.at.root(resourcesync.ChangeList)
	head.Meta.From, head.Meta.Until = l.From, l.Until
	if head.Meta.Ext = extNumbers(l.Last, 0); !l.closed() {
		head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
	}
	if len(snap.lists) > 1 {
		head.Links = append(head.Links, link(resourcesync.RelIndex, snap.set.at.url+"/changelist.xml"))
	}
	return head
}

// copyEntries writes the entries of the lists from number to the end of the list l. From the first
// list it takes only those after a sequence.
func copyEntries(ctx context.Context, w *resourcesync.Writer, r kv.Reader, number, after uint64, l *listRecord) error {
	for pair, err := range r.Scan(ctx, keyOf('c', number, after+1), keyOf('c', l.lastNumber(), l.Last+1)) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		n, width := binary.Uvarint(pair.Value)
		if width <= 0 {
			return fmt.Errorf("entries %x up to Change List %d: %w", pair.Key, l.Number, io.ErrUnexpectedEOF)
		}
		if err := w.WriteRaw(pair.Value[width:], int(n)); err != nil {
			return err
		}
	}
	return nil
}
