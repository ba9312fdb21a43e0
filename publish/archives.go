package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
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
	Documents []archivedDocument      `json:"documents"` // the archive names the first
	Packages  []packageRecord         `json:"packages,omitempty"`
}

// archivedDocument is a document as it is kept: raw deflate in a file.
type archivedDocument struct {
	Name   string `json:"name"`             // its address is archives/NAME.xml, or NAME.xml if there is a folder
	Folder string `json:"folder,omitempty"` // "": archives
	Length int64  `json:"length"`
	CRC32  uint32 `json:"crc32"`
	Stored int64  `json:"stored"` // bytes of the file
}

func (d archivedDocument) file() string {
	return cmp.Or(d.Folder, "archives") + "/" + d.Name + ".xml.deflate"
}

// archiveKinds are the capabilities with archives, with the code of their records.
var archiveKinds = []resourcesync.Capability{resourcesync.ResourceList, resourcesync.ResourceDump, resourcesync.ChangeList, resourcesync.ChangeDump}

func (r *archiveRecord) key() []byte {
	return append(keyOf('A', uint64(slices.Index(archiveKinds, r.Kind))), keyOf('n', r.Number)...)
}

// archived gives the archived documents, in the order of kinds and numbers.
func (s *set) archived() []archiveRecord { return *s.archives.Load() }

func (s *set) isArchived(kind resourcesync.Capability, number uint64) bool {
	return slices.ContainsFunc(s.archived(), func(r archiveRecord) bool { return r.Kind == kind && r.Number == number })
}

// archivedFiles are the packages, manifests and folders used by archives.
func (s *set) archivedFiles() map[string]bool {
	keep := map[string]bool{}
	for _, r := range s.archived() {
		for _, d := range r.Documents {
			keep[d.file()] = true
		}
		for _, p := range r.Packages {
			keep[p.File], keep[p.Manifest] = true, true
			keep[p.File[:strings.LastIndexByte(p.File, '/')]] = true
		}
	}
	return keep
}

// putArchives adds and drops records.
func (s *set) putArchives(ctx context.Context, add, drop []archiveRecord) error {
	s.archiving.Lock()
	defer s.archiving.Unlock()
	b := s.kv.Batch()
	defer b.Close()
	all := slices.Clone(s.archived())
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
	s.archives.Store(&all)
	return nil
}

// openArchives reads the records, and forgets those with missing files.
func (s *set) openArchives(ctx context.Context) error {
	none := []archiveRecord{}
	s.archives.Store(&none)
	var all, lost []archiveRecord
	for pair, err := range s.kv.Scan(ctx, []byte("A"), []byte("B")) {
		if err != nil {
			return err
		}
		var r archiveRecord
		if err := decodeRecord(pair.Key, pair.Value, &r); err != nil {
			return err
		}
		there := s.files.dir != "" && s.files.allThere(r.Packages)
		for _, d := range r.Documents {
			there = there && s.files.hasSize(d.file(), d.Stored)
		}
		if there {
			all = append(all, r)
		} else {
			s.p.log.Warn("an archived document is forgotten: its files are not there, or have another size", "set", s.cfg.Name, "kind", r.Kind, "number", r.Number)
			lost = append(lost, r)
		}
	}
	if all != nil {
		s.archives.Store(&all)
	}
	if len(lost) > 0 {
		return s.putArchives(ctx, nil, lost)
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
	if s.files.dir == "" {
		return fmt.Errorf("publish: archives of %s: there is no folder for files (Options.Dir)", name)
	}
	s = p.lockDumping(name)
	defer s.dumping.Unlock()
	if err := mendMissing(ctx, s); err != nil {
		return err
	}
	snap := s.acquire()
	if snap == nil {
		return nil
	}
	defer snap.release()
	if s.offers(resourcesync.ResourceList) && !s.isArchived(resourcesync.ResourceList, snap.gen.Number) {
		rec, err := s.archiveResourceList(ctx, snap)
		if err == nil {
			err = s.putArchives(ctx, []archiveRecord{rec}, nil)
		}
		if err != nil {
			return fmt.Errorf("publish: the Resource List Archive of %s: %w", name, err)
		}
	}
	if d := s.dump.Load(); d != nil && s.offers(resourcesync.ResourceDump) && !s.isArchived(resourcesync.ResourceDump, d.Generation) {
		rec, err := s.archiveResourceDump(d)
		if err == nil {
			err = s.putArchives(ctx, []archiveRecord{rec}, nil)
		}
		if err != nil {
			return fmt.Errorf("publish: the Resource Dump Archive of %s: %w", name, err)
		}
	}
	return s.trimArchives(ctx)
}

// trimArchives drops documents kept long enough. The caller holds s.dumping.
func (s *set) trimArchives(ctx context.Context) error {
	if s.cfg.ArchivesKeep <= 0 {
		return nil
	}
	before := s.p.now().Add(-s.cfg.ArchivesKeep)
	var drop []archiveRecord
	for _, r := range s.archived() {
		if r.Stored.Before(before) {
			drop = append(drop, r)
		}
	}
	if len(drop) == 0 {
		return nil
	}
	if err := s.putArchives(ctx, nil, drop); err != nil {
		return err
	}
	keep := s.archivedFiles()
	if d := s.dump.Load(); d != nil {
		keep[d.Folder] = true
		if d.Before != nil {
			keep[d.Before.Folder] = true
		}
	}
	var all error
	for _, r := range drop {
		for _, d := range r.Documents {
			if err := os.Remove(s.files.path(d.file())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, err)
			}
		}
		if r.Kind == resourcesync.ChangeDump || !keep[folderOf(r.Packages)] {
			all = errors.Join(all, s.removeFiles(r.Packages))
		}
	}
	s.p.log.Info("trimmed the archives", "set", s.cfg.Name, "documents", len(drop))
	return all
}

// folderOf is the folder of a dump's packages.
func folderOf(ps []packageRecord) string {
	if len(ps) == 0 {
		return ""
	}
	return ps[0].File[:strings.LastIndexByte(ps[0].File, '/')]
}

func (a *place) archiveAddress(name string) string { return a.url + "/archives/" + name + ".xml" }

func (s *set) now() time.Time { return s.p.now().UTC().Truncate(time.Microsecond) }

func (s *set) archiveResourceList(ctx context.Context, snap *snapshot) (rec archiveRecord, err error) {
	rec = archiveRecord{Version: recordVersion, Kind: resourcesync.ResourceList, Number: snap.gen.Number, At: snap.gen.At, Stored: s.now()}
	rec.Documents, err = s.storeResourceList(ctx, snap, "", fmt.Sprintf("resourcelist-%d", rec.Number), s.at.archiveAddress)
	return rec, err
}

// storeResourceList writes the Resource List of a snapshot into a folder: the list
// itself, or its index and then its parts.
func (s *set) storeResourceList(ctx context.Context, snap *snapshot, folder, name string, address func(string) string) ([]archivedDocument, error) {
	var entries []resourcesync.Entry
	var parts []archivedDocument
	for _, p := range snap.parts {
		if p.Count == 0 && len(snap.parts) > 1 {
			continue
		}
		head := s.at.root(resourcesync.ResourceList)
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
		a, err := s.files.keepDocument(folder, partName, d)
		if err != nil {
			return nil, err
		}
		parts = append(parts, a)
		entries = append(entries, resourcesync.Entry{Loc: address(partName), LastMod: p.At, HasMeta: true, Meta: resourcesync.Meta{Length: -1, Ext: extNumbers(p.Seq, 0)}})
	}
	if len(snap.parts) > 1 {
		head := s.at.root(resourcesync.ResourceList)
		head.Index = true
		head.Meta.At = snap.gen.At
		head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
		d, err := s.p.document(head, entries)
		if err != nil {
			return nil, err
		}
		a, err := s.files.keepDocument(folder, name, d)
		if err != nil {
			return nil, err
		}
		parts = append([]archivedDocument{a}, parts...)
	}
	return parts, ownfile.Sync(filepath.Dir(s.files.path(parts[0].file())))
}

func (s *set) archiveResourceDump(d *dumpRecord) (rec archiveRecord, err error) {
	rec = archiveRecord{Version: recordVersion, Kind: resourcesync.ResourceDump, Number: d.Generation, At: d.At, Completed: d.Completed, Stored: s.now(), Packages: d.Packages}
	head := s.at.root(resourcesync.ResourceDump)
	head.Meta.At, head.Meta.Completed = d.At, d.Completed
	head.Meta.Ext = extNumbers(d.Sequence, d.Generation)
	return rec, s.archivePackages(&rec, fmt.Sprintf("resourcedump-%d", rec.Number), head)
}

// archivePackages keeps the document with the list of a dump's packages.
func (s *set) archivePackages(rec *archiveRecord, name string, head resourcesync.Head) error {
	var entries []resourcesync.Entry
	for i := range rec.Packages {
		p := &rec.Packages[i]
		entries = append(entries, s.at.packageEntry(p, resourcesync.Meta{From: p.From, Until: p.Until}))
	}
	d, err := s.p.document(head, entries)
	if err != nil {
		return err
	}
	a, err := s.files.keepDocument("", name, d)
	rec.Documents = []archivedDocument{a}
	if err != nil {
		return err
	}
	return ownfile.Sync(filepath.Join(s.files.dir, "archives"))
}

// archiveChangeLists keeps closed Change Lists before they are dropped. Links to a missing target,
// or one dropped with the list, are left out: patches, versions no longer kept, other formats of
// deleted entities.
func (s *set) archiveChangeLists(ctx context.Context, cur *snapshot, view *changetrack.View, lists []listRecord) error {
	for _, l := range lists {
		if s.isArchived(resourcesync.ChangeList, l.Number) {
			continue
		}
		rec := archiveRecord{Version: recordVersion, Kind: resourcesync.ChangeList, Number: l.Number, From: l.From, Until: l.Until, Stored: s.now()}
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
		head := s.at.root(resourcesync.ChangeList)
		head.Meta.From, head.Meta.Until = l.From, l.Until
		head.Meta.Ext = extNumbers(l.Last, 0)
		kept, err := streamed("", head, func(w *resourcesync.Writer) error {
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
		a, err := s.files.keepDocument("", listName(&l), kept)
		if err == nil {
			err = ownfile.Sync(filepath.Join(s.files.dir, "archives"))
		}
		if err != nil {
			return err
		}
		rec.Documents = []archivedDocument{a}
		if err := s.putArchives(ctx, []archiveRecord{rec}, nil); err != nil {
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
	sequence, err := strconv.ParseUint(e.Meta.Ext[resourcesync.ExtSequence], 10, 64)
	if err != nil {
		return fmt.Errorf("entry %s has no sequence", e.Loc)
	}
	_, err = view.Representation(ctx, entity, sequence)
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

// archiveChangeDumps keeps the packages of lists before they are dropped, one document for each list.
func (s *set) archiveChangeDumps(ctx context.Context, packages []packageRecord) error {
	byList := map[uint64][]packageRecord{}
	var numbers []uint64
	for _, p := range packages {
		if byList[p.Number] == nil {
			numbers = append(numbers, p.Number)
		}
		byList[p.Number] = append(byList[p.Number], p)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if s.isArchived(resourcesync.ChangeDump, n) {
			continue
		}
		ps := byList[n]
		last := ps[len(ps)-1]
		rec := archiveRecord{Version: recordVersion, Kind: resourcesync.ChangeDump, Number: n, From: ps[0].From, Until: last.Until, Stored: s.now(), Packages: ps}
		head := s.at.root(resourcesync.ChangeDump)
		head.Meta.From, head.Meta.Until = rec.From, rec.Until
		head.Meta.Ext = extNumbers(last.Last, 0)
		if err := s.archivePackages(&rec, fmt.Sprintf("changedump-%06d", n), head); err != nil {
			return err
		}
		if err := s.putArchives(ctx, []archiveRecord{rec}, nil); err != nil {
			return err
		}
	}
	return nil
}

// archiveDocEntries is the number of documents in one part of an archive.
const archiveDocEntries = 10000

// archiveDoc is /SET/archives/KIND.xml: the archive, or its index; a page from 1 on is a part of it.
func (s *set) archiveDoc(kind resourcesync.Capability, page int) (*document, error) {
	var entries []resourcesync.Entry
	var last time.Time
	for _, r := range s.archived() {
		if r.Kind == kind {
			entries = append(entries, resourcesync.Entry{Loc: s.at.archiveAddress(r.Documents[0].Name), HasMeta: true,
				Meta: resourcesync.Meta{At: r.At, Completed: r.Completed, From: r.From, Until: r.Until, Length: -1}})
			last = r.Stored
		}
	}
	if len(entries) == 0 {
		return nil, notFound("Nothing is in this archive of %s.", s.cfg.Name).hint("What is offered is listed at %s.", s.at.capabilityList())
	}
	head := s.at.root(kind + "-archive")
	most := s.archiveDocEntries
	pages := (len(entries) + most - 1) / most
	switch {
	case page > pages || page > 0 && pages == 1:
		return nil, errNoDocument
	case page > 0:
		head.Links = append(head.Links, link(resourcesync.RelIndex, s.at.archiveAddress(string(kind))))
		entries = entries[(page-1)*most : min(page*most, len(entries))]
	case pages > 1:
		head.Index = true
		entries = nil
		for n := 1; n <= pages; n++ {
			entries = append(entries, resourcesync.Entry{Loc: s.at.archiveAddress(fmt.Sprintf("%s-archive-%05d", kind, n))})
		}
	}
	d, err := s.p.document(head, entries)
	if err == nil {
		d.modified = last
	}
	return d, err
}

// archivedDoc answers below /SET/archives/.
func (s *set) archivedDoc(name string) (*document, error) {
	name, ok := strings.CutSuffix(name, ".xml")
	if !ok {
		return nil, errNoDocument
	}
	for _, kind := range archiveKinds {
		if name == string(kind) {
			return s.archiveDoc(kind, 0)
		}
		if digits, ok := strings.CutPrefix(name, string(kind)+"-archive-"); ok {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 1 || fmt.Sprintf("%05d", n) != digits {
				return nil, errNoDocument
			}
			return s.archiveDoc(kind, n)
		}
	}
	for _, r := range s.archived() {
		for _, a := range r.Documents {
			if a.Name != name {
				continue
			}
			d, err := s.files.stored(s.at.url, &r, a)
			if err == nil {
				d.immutable = true
			}
			return d, err
		}
	}
	return nil, &statusError{code: 410, reason: "There is no such document in the archives (any more).", detail: []string{"What is offered is listed at " + s.at.capabilityList() + "."}}
}
