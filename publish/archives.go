package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// archiveRecord is one archived document: a Resource List (with its parts), a
// Change List, a Resource Dump or a Change Dump. Its files never change.
type archiveRecord struct {
	Version   int                     `json:"v"`
	Kind      resourcesync.Capability `json:"kind"` // of the document
	Number    uint64                  `json:"number"`
	Sequence  uint64                  `json:"sequence,omitempty"` // of a scheduled Resource List
	At        time.Time               `json:"at,omitzero"`
	Completed time.Time               `json:"completed,omitzero"`
	From      time.Time               `json:"from,omitzero"`
	Until     time.Time               `json:"until,omitzero"`
	Stored    time.Time               `json:"stored"`
	Documents []kept.Document         `json:"documents"` // the archive names the first
	Packages  []kept.Package          `json:"packages,omitempty"`
}

// archive keeps documents of a set after they were replaced.
type archive struct {
	cfg   *SetConfig
	at    *place
	files *kept.Folder
	kv    kv.Store
	log   *slog.Logger
	now   func() time.Time

	docEntries int         // documents in one part of an archive
	writing    *sync.Mutex // locks.archiving
	list       atomic.Pointer[[]archiveRecord]
}

// archiveKinds are the capabilities with archives, with the code of their records.
var archiveKinds = []resourcesync.Capability{resourcesync.ResourceList, resourcesync.ResourceDump, resourcesync.ChangeList, resourcesync.ChangeDump}

func (r *archiveRecord) key() []byte {
	return append(keyOf('A', uint64(slices.Index(archiveKinds, r.Kind))), keyOf('n', r.Number)...)
}

// all gives the archived documents, in the order of kinds and numbers.
func (a *archive) all() []archiveRecord { return *a.list.Load() }

func (a *archive) has(kind resourcesync.Capability, number uint64) bool {
	return slices.ContainsFunc(a.all(), func(r archiveRecord) bool { return r.Kind == kind && r.Number == number })
}

// keeps are the packages, manifests and folders used by archives.
func (a *archive) keeps() map[string]bool {
	keep := map[string]bool{}
	for _, r := range a.all() {
		for _, d := range r.Documents {
			keep[d.Path()] = true
		}
		for _, p := range r.Packages {
			keep[p.File], keep[p.Manifest] = true, true
			keep[p.File[:strings.LastIndexByte(p.File, '/')]] = true
		}
	}
	return keep
}

// put adds and drops records.
func (a *archive) put(ctx context.Context, add, drop []archiveRecord) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	b := a.kv.Batch()
	defer b.Close()
	all := slices.Clone(a.all())
	for i := range drop {
		b.Delete(drop[i].key())
		all = slices.DeleteFunc(all, func(r archiveRecord) bool { return r.Kind == drop[i].Kind && r.Number == drop[i].Number })
	}
	for i := range add {
		if err := setJSON(b, add[i].key(), &add[i]); err != nil {
			return err
		}
		all = append(all, add[i])
	}
	if err := b.Commit(ctx, true); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b archiveRecord) int {
		return cmp.Or(slices.Index(archiveKinds, a.Kind)-slices.Index(archiveKinds, b.Kind), cmp.Compare(a.Number, b.Number))
	})
	a.list.Store(&all)
	return nil
}

// open reads the records, and forgets those with missing files.
func (a *archive) open(ctx context.Context, files kept.Files) error {
	none := []archiveRecord{}
	a.list.Store(&none)
	var all, lost []archiveRecord
	for pair, err := range a.kv.Scan(ctx, []byte("A"), []byte("B")) {
		if err != nil {
			return err
		}
		var r archiveRecord
		if err := decodeRecord(pair.Key, pair.Value, &r); err != nil {
			return err
		}
		there := files.HasAll(r.Packages)
		for _, d := range r.Documents {
			there = there && files.Has(d.Path(), d.Stored)
		}
		if there || a.files.Dry {
			all = append(all, r)
		} else {
			a.log.Warn("an archived document is forgotten: its files are not there, or have another size", "set", a.cfg.Name, "kind", r.Kind, "number", r.Number)
			lost = append(lost, r)
		}
	}
	if all != nil {
		a.list.Store(&all)
	}
	if len(lost) > 0 {
		return a.put(ctx, nil, lost)
	}
	return nil
}

// Archive keeps the present Resource List and Resource Dump, and drops documents older than
// SetConfig.ArchivesKeep from the archives. Archived documents never change. Change Lists and
// Change Dumps go into their archives when retention takes them out of the present ones (Retain).
// Without SetConfig.Archives nothing happens.
func (p *Publisher) Archive(ctx context.Context, name string) error {
	s, err := p.set(name)
	if err != nil {
		return err
	}
	if !s.cfg.Archives {
		return nil
	}
	if s.files.Store == nil {
		return fmt.Errorf("publish: archives of %s: there is no folder for files (Options.Dir)", name)
	}
	s = p.lockDumping(name)
	defer s.dumping.Unlock()
	if err := mendMissing(ctx, s); err != nil {
		return err
	}
	snap := s.acquire(ctx)
	if snap == nil {
		return nil
	}
	defer snap.release()
	if s.offers(resourcesync.ResourceList) && !s.archive.has(resourcesync.ResourceList, snap.gen.Number) {
		rec, err := s.archive.resourceList(ctx, snap)
		if err == nil {
			err = s.archive.put(ctx, []archiveRecord{rec}, nil)
		}
		if err != nil {
			return fmt.Errorf("publish: the Resource List Archive of %s: %w", name, err)
		}
	}
	if d := s.dump.Load(); d != nil && s.offers(resourcesync.ResourceDump) && !s.archive.has(resourcesync.ResourceDump, d.Generation) {
		rec, err := s.archive.resourceDump(ctx, d)
		if err == nil {
			err = s.archive.put(ctx, []archiveRecord{rec}, nil)
		}
		if err != nil {
			return fmt.Errorf("publish: the Resource Dump Archive of %s: %w", name, err)
		}
	}
	return s.archive.trim(ctx, s.dump.Load())
}

// trim drops documents kept long enough; present is the Resource Dump, which may share their
// packages. The caller holds s.dumping.
func (a *archive) trim(ctx context.Context, present *dumpRecord) error {
	if a.cfg.ArchivesKeep <= 0 {
		return nil
	}
	before := a.now().Add(-a.cfg.ArchivesKeep)
	var drop []archiveRecord
	for _, r := range a.all() {
		if r.Stored.Before(before) {
			drop = append(drop, r)
		}
	}
	if len(drop) == 0 {
		return nil
	}
	if err := a.put(ctx, nil, drop); err != nil {
		return err
	}
	keep := a.keeps()
	if present != nil {
		keep[present.Folder] = true
		if present.Before != nil {
			keep[present.Before.Folder] = true
		}
	}
	if a.files.Dry {
		return nil
	}
	var all error
	for _, r := range drop {
		for _, d := range r.Documents {
			all = errors.Join(all, a.files.Store.Delete(ctx, d.Path()))
		}
		if r.Kind == resourcesync.ChangeDump || !keep[folderOf(r.Packages)] {
			all = errors.Join(all, a.removePackages(ctx, r.Packages))
		}
	}
	a.log.Info("trimmed the archives", "set", a.cfg.Name, "documents", len(drop))
	return all
}

// folderOf is the folder of a dump's packages.
func folderOf(ps []kept.Package) string {
	if len(ps) == 0 {
		return ""
	}
	return ps[0].File[:strings.LastIndexByte(ps[0].File, '/')]
}

func (a *place) archiveAddress(name string) string { return a.url + "/archives/" + name + ".xml" }

// stamp is a time as records have it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func (a *archive) resourceList(ctx context.Context, snap *snapshot) (rec archiveRecord, err error) {
	rec = archiveRecord{Version: recordVersion, Kind: resourcesync.ResourceList, Number: snap.gen.Number, At: snap.gen.At, Stored: stamp(a.now())}
	rec.Documents, err = snap.storeResourceList(ctx, "", fmt.Sprintf("resourcelist-%d", rec.Number), a.at.archiveAddress)
	return rec, err
}

// storeResourceList writes the Resource List into a folder: the list itself, or its
// index and then its parts.
func (snap *snapshot) storeResourceList(ctx context.Context, folder, name string, address func(string) string) ([]kept.Document, error) {
	var entries []resourcesync.Entry
	var parts []kept.Document
	for _, p := range snap.parts {
		if p.Count == 0 && len(snap.parts) > 1 {
			continue
		}
		head := snap.set.at.root(resourcesync.ResourceList)
		partName := name
		if len(snap.parts) > 1 {
			partName += "-" + p.Bits()
			head.Links = append(head.Links, link(resourcesync.RelIndex, address(name)))
		}
		head.Meta.At = p.At
		head.Meta.Ext = extNumbers(p.Seq, p.Gen)
		d, err := streamed("", head, func(w *resourcesync.Writer) error { return snap.writePart(ctx, w, p) })
		if err != nil {
			return nil, err
		}
		a, err := snap.set.files.Keep(ctx, folder, partName, d.body)
		if err != nil {
			return nil, err
		}
		parts = append(parts, a)
		entries = append(entries, resourcesync.Entry{Loc: address(partName), LastMod: p.At, HasMeta: true, Meta: resourcesync.Meta{Length: -1, Ext: extNumbers(p.Seq, 0)}})
	}
	if len(snap.parts) > 1 {
		head := snap.set.at.root(resourcesync.ResourceList)
		head.Index = true
		head.Meta.At = snap.gen.At
		head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
		d, err := written(head, entries)
		if err != nil {
			return nil, err
		}
		a, err := snap.set.files.Keep(ctx, folder, name, d.body)
		if err != nil {
			return nil, err
		}
		parts = append([]kept.Document{a}, parts...)
	}
	return parts, nil
}

func (a *archive) resourceDump(ctx context.Context, d *dumpRecord) (rec archiveRecord, err error) {
	rec = archiveRecord{Version: recordVersion, Kind: resourcesync.ResourceDump, Number: d.Generation, At: d.At, Completed: d.Completed, Stored: stamp(a.now()), Packages: d.Packages}
	head := a.at.root(resourcesync.ResourceDump)
	head.Meta.At, head.Meta.Completed = d.At, d.Completed
	head.Meta.Ext = extNumbers(d.Sequence, d.Generation)
	return rec, a.keepPackages(ctx, &rec, fmt.Sprintf("resourcedump-%d", rec.Number), head)
}

// keepPackages keeps the document with the list of a dump's packages.
func (a *archive) keepPackages(ctx context.Context, rec *archiveRecord, name string, head resourcesync.Head) error {
	var entries []resourcesync.Entry
	for i := range rec.Packages {
		p := &rec.Packages[i]
		entries = append(entries, a.at.packageEntry(p, resourcesync.Meta{From: p.From, Until: p.Until}))
	}
	d, err := written(head, entries)
	if err != nil {
		return err
	}
	doc, err := a.files.Keep(ctx, "", name, d.body)
	rec.Documents = []kept.Document{doc}
	return err
}

// addChangeLists keeps closed Change Lists before they are dropped. Links to a missing target,
// or one dropped with the list, are left out: patches, versions no longer kept, other formats of
// deleted entities.
func (a *archive) addChangeLists(ctx context.Context, cur *snapshot, view *changetrack.View, lists []listRecord) error {
	for _, l := range lists {
		if a.has(resourcesync.ChangeList, l.Number) {
			continue
		}
		rec := archiveRecord{Version: recordVersion, Kind: resourcesync.ChangeList, Number: l.Number, From: l.From, Until: l.Until, Stored: stamp(a.now())}
		d, err := cur.changeListDoc(ctx, &l)
		if err != nil {
			return err
		}
		data, err := d.body.Bytes()
		if err != nil {
			return err
		}
		r, err := resourcesync.NewReader(bytes.NewReader(data), resourcesync.ReaderOptions{Strict: true})
		if err != nil {
			return err
		}
		head := a.at.root(resourcesync.ChangeList)
		head.Meta.From, head.Meta.Until = l.From, l.Until
		head.Meta.Ext = extNumbers(l.Last, 0)
		pruned, err := streamed("", head, func(w *resourcesync.Writer) error {
			for {
				e, err := r.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err == nil {
					err = pruneLinks(ctx, view, e)
				}
				if err == nil {
					err = w.Write(e)
				}
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
		doc, err := a.files.Keep(ctx, "", listName(&l), pruned.body)
		if err != nil {
			return err
		}
		rec.Documents = []kept.Document{doc}
		if err := a.put(ctx, []archiveRecord{rec}, nil); err != nil {
			return err
		}
	}
	return nil
}

// pruneLinks leaves out the links of an entry with a missing target.
func pruneLinks(ctx context.Context, view *changetrack.View, e *resourcesync.Entry) error {
	entity := e.Meta.Ext[resourcesync.ExtEntity]
	if l := e.Link(resourcesync.RelDescribes); l != nil {
		entity = l.Href
	}
	sequence, ok := e.Meta.Sequence()
	if !ok {
		return fmt.Errorf("entry %s has no sequence", e.Loc)
	}
	_, err := view.Representation(ctx, entity, sequence)
	version := err == nil
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	st, err := view.Entity(ctx, entity)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	current := err == nil && st.Current != nil
	any := current || version // any version for the TimeGate
	if err == nil && !any {
		versions, err := (&snapshot{view: view}).versions(ctx, &st)
		if err != nil {
			return err
		}
		any = len(versions) > 0
	}
	e.Links = slices.DeleteFunc(e.Links, func(l resourcesync.Link) bool {
		switch l.Rel {
		case resourcesync.RelPatch:
			return true
		case resourcesync.RelMemento:
			return !version
		case resourcesync.RelTimeGate:
			return !any
		case resourcesync.RelAlternate, resourcesync.RelCanonical:
			return !current
		}
		return false
	})
	return nil
}

// addChangeDumps keeps the packages of lists before they are dropped, one document for each list.
func (a *archive) addChangeDumps(ctx context.Context, packages []kept.Package) error {
	byList := map[uint64][]kept.Package{}
	var numbers []uint64
	for _, p := range packages {
		if byList[p.Number] == nil {
			numbers = append(numbers, p.Number)
		}
		byList[p.Number] = append(byList[p.Number], p)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if a.has(resourcesync.ChangeDump, n) {
			continue
		}
		ps := byList[n]
		last := ps[len(ps)-1]
		rec := archiveRecord{Version: recordVersion, Kind: resourcesync.ChangeDump, Number: n, From: ps[0].From, Until: last.Until, Stored: stamp(a.now()), Packages: ps}
		head := a.at.root(resourcesync.ChangeDump)
		head.Meta.From, head.Meta.Until = rec.From, rec.Until
		head.Meta.Ext = extNumbers(last.Last, 0)
		if err := a.keepPackages(ctx, &rec, fmt.Sprintf("changedump-%06d", n), head); err != nil {
			return err
		}
		if err := a.put(ctx, []archiveRecord{rec}, nil); err != nil {
			return err
		}
	}
	return nil
}

// archiveDocEntries is the number of documents in one part of an archive.
const archiveDocEntries = 10000

// page is /SET/archives/KIND.xml: the archive, or its index; a page from 1 on is a part of it.
func (a *archive) page(kind resourcesync.Capability, page int) (*document, error) {
	var entries []resourcesync.Entry
	var last time.Time
	for _, r := range a.all() {
		if r.Kind == kind {
			entries = append(entries, resourcesync.Entry{Loc: a.at.archiveAddress(r.Documents[0].Name), HasMeta: true,
				Meta: resourcesync.Meta{At: r.At, Completed: r.Completed, From: r.From, Until: r.Until, Length: -1}})
			last = r.Stored
		}
	}
	if len(entries) == 0 {
		return nil, notFound("Nothing is in this archive of %s.", a.cfg.Name).hint("What is offered is listed at %s.", a.at.capabilityList())
	}
	head := a.at.root(kind + "-archive")
	most := a.docEntries
	pages := (len(entries) + most - 1) / most
	switch {
	case page > pages || page > 0 && pages == 1:
		return nil, errNoDocument
	case page > 0:
		head.Links = append(head.Links, link(resourcesync.RelIndex, a.at.archiveAddress(string(kind))))
		entries = entries[(page-1)*most : min(page*most, len(entries))]
	case pages > 1:
		head.Index = true
		entries = nil
		for n := 1; n <= pages; n++ {
			entries = append(entries, resourcesync.Entry{Loc: a.at.archiveAddress(fmt.Sprintf("%s-archive-%05d", kind, n))})
		}
	}
	d, err := written(head, entries)
	if err == nil {
		d.modified = last
	}
	return d, err
}

// storedDocument is a kept document, at the address of a set.
func storedDocument(ctx context.Context, files *kept.Folder, url string, r *archiveRecord, d kept.Document) (*document, error) {
	body, err := files.Document(ctx, d)
	if errors.As(err, new(*kept.DamagedError)) {
		return nil, notFound("This document has just been replaced, or has left the archive.")
	}
	if err != nil {
		return nil, err
	}
	return &document{etag: nameTag("stored %s %s %s %d %d", url, d.Name, r.Stored, d.CRC32, d.Length), contentType: xmlType, modified: r.Stored, body: body}, nil
}

// document answers below /SET/archives/.
func (a *archive) document(ctx context.Context, name string) (*document, error) {
	name, ok := strings.CutSuffix(name, ".xml")
	if !ok {
		return nil, errNoDocument
	}
	for _, kind := range archiveKinds {
		if name == string(kind) {
			return a.page(kind, 0)
		}
		if digits, ok := strings.CutPrefix(name, string(kind)+"-archive-"); ok {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 1 || fmt.Sprintf("%05d", n) != digits {
				return nil, errNoDocument
			}
			return a.page(kind, n)
		}
	}
	for _, r := range a.all() {
		for _, doc := range r.Documents {
			if doc.Name != name {
				continue
			}
			d, err := storedDocument(ctx, a.files, a.at.url, &r, doc)
			if err == nil {
				d.immutable = true
			}
			return d, err
		}
	}
	return nil, &statusError{code: 410, reason: "There is no such document in the archives (any more).", detail: []string{"What is offered is listed at " + a.at.capabilityList() + "."}}
}
