package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ordered"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

const (
	zipType = kept.ZIPType
	// packageEntries bounds a package, beside partBytes: its manifest is a document with
	// at most 50,000 entries and 50 MB.
	packageEntries = 25000
	// dumpDocEntries is the number of packages in one document.
	dumpDocEntries = 10000
)

// Dump makes a new Resource Dump of the published state. It also makes the Change Dump packages of
// lists closed since the last time, unless these have a schedule of their own
// (SetConfig.ScheduledChangeDump). Linked files are in the dump within SetConfig.DumpFiles and if
// they can be fetched; the dump counts the others. It becomes visible by one record. The dump
// before it stays on disk, for running downloads, until the next. If nothing was published since
// the last dump, that one stays.
func (p *Publisher) Dump(ctx context.Context, name string) error {
	return p.dump(ctx, name, func(s *set, snap *snapshot) error {
		if s.offers(resourcesync.ResourceDump) {
			if err := s.makeDump(ctx, snap); err != nil {
				return fmt.Errorf("publish: a Resource Dump of %s: %w", name, err)
			}
		}
		s.files.Lost.Store(false)
		if s.cfg.ScheduledChangeDump {
			return nil
		}
		return s.dumpChanges(ctx, snap)
	})
}

// DumpChanges makes the Change Dump packages of lists closed since the last time. For a set without
// a Change Dump it does nothing.
func (p *Publisher) DumpChanges(ctx context.Context, name string) error {
	return p.dump(ctx, name, func(s *set, snap *snapshot) error { return s.dumpChanges(ctx, snap) })
}

// dump calls f, one call for a set at a time, with the published state.
func (p *Publisher) dump(ctx context.Context, name string, f func(*set, *snapshot) error) error {
	s, err := p.set(name)
	if err != nil {
		return err
	}
	if s.files.Store == nil {
		return fmt.Errorf("publish: a dump of %s: there is no folder for files (Options.Dir)", name)
	}
	defer p.o.Changed(name)
	s = p.lockDumping(name)
	defer s.dumping.Unlock()
	snap := s.acquire(ctx)
	if snap == nil {
		return fmt.Errorf("publish: a dump of %s: nothing has been published yet", name)
	}
	defer snap.release()
	if err := mendMissing(ctx, s); err != nil {
		return err
	}
	return f(s, snap)
}

func (s *set) dumpChanges(ctx context.Context, snap *snapshot) error {
	if !s.offers(resourcesync.ChangeDump) {
		return nil
	}
	if err := s.makeChangeDumps(ctx, snap); err != nil {
		return fmt.Errorf("publish: a Change Dump of %s: %w", s.cfg.Name, err)
	}
	return nil
}

// DumpInfo describes the present Resource Dump.
type DumpInfo struct {
	Sequence  uint64 // last position of the log in it
	At        time.Time
	Completed time.Time
	Entries   int64
	Packages  int
	Bytes     int64
}

// ResourceDump describes the present Resource Dump; false when there is none.
func (p *Publisher) ResourceDump(name string) (DumpInfo, bool) {
	s, err := p.set(name)
	if err != nil {
		return DumpInfo{}, false
	}
	d := s.dump.Load()
	if d == nil {
		return DumpInfo{}, false
	}
	info := DumpInfo{Sequence: d.Sequence, At: d.At, Completed: d.Completed, Entries: d.Entries, Packages: len(d.Packages)}
	for _, pk := range d.Packages {
		info.Bytes += pk.Length
	}
	return info, true
}

func (s *set) makeDump(ctx context.Context, snap *snapshot) (err error) {
	old := s.dump.Load()
	if old != nil && old.Generation == snap.gen.Number {
		return nil
	}
	started := s.p.now()
	d := &dumpRecord{Version: recordVersion, Sequence: snap.gen.Sequence, Generation: snap.gen.Number, At: snap.gen.At,
		Folder: kept.OnlyName("resourcedump/%d", snap.gen.Number)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.files.RemoveFolder(context.WithoutCancel(ctx), d.Folder))
		}
	}()
	head := s.at.root(resourcesync.ResourceDumpManifest)
	head.Meta.At = snap.gen.At
	head.Meta.Ext = extNumbers(snap.gen.Sequence, snap.gen.Number)
	out := &kept.Series{Folder: s.files, Name: d.Folder, Prefix: s.at.Prefix, Head: head, Bounds: kept.Bounds{Entries: packageEntries, ManifestBytes: s.sizes.partSize.Usual.Bytes, Bytes: s.cfg.PackageBytes}}
	defer out.Abort()
	type member struct {
		state changetrack.State
		blob  changetrack.Blob
		entry resourcesync.Entry
	}
	view := snap.source()
	members := ordered.MapSome(snap.view.Current(ctx, rdfres.Digest{}, rdfres.Digest{}), func(some []changetrack.State) (ms []member, err error) {
		refs := make([]changetrack.Ref, len(some))
		for i, st := range some {
			refs[i] = changetrack.Ref{Entity: st.Entity, Sequence: st.Current.Sequence}
		}
		blobs, err := snap.view.Representations(ctx, refs)
		if err != nil {
			return nil, err
		}
		for i, st := range some {
			m := member{state: st}
			if !blobs[i].IsKept() {
				err = kv.ErrNotFound
			} else if m.blob, err = blobs[i].Deflate(); err == nil {
				m.entry, err = s.entries.resourceEntry(ctx, view, &st)
			}
			if err != nil {
				return ms, fmt.Errorf("representation of %s: %w", clip.Middle(st.Entity), err)
			}
			ms = append(ms, m)
		}
		return ms, nil
	})
	done := int64(0)
	for m, err := range members {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if done++; done%1000 == 0 {
			s.p.o.Progress(s.cfg.Name, "dump", done, snap.view.Resources())
		}
		f, err := out.Room(ctx, int64(len(m.blob.Deflated)))
		if err != nil {
			return err
		}
		if err := f.Add(f.Path("r", m.state.Entity, m.state.Current.Format), m.blob, &m.entry); err != nil {
			return err
		}
	}
	add := func(file *dumpedFile, e *resourcesync.Entry) error {
		f, err := out.Room(ctx, file.length)
		if err != nil {
			return err
		}
		return addFile(f, file, e)
	}
	if d.Files, err = s.dumpFiles(ctx, snap, add); err != nil {
		return err
	}
	if d.Packages, err = out.End(ctx); err != nil {
		return err
	}
	for _, p := range d.Packages {
		d.Entries += int64(p.Entries)
	}
	d.Completed = stamp(s.p.now())
	if d.Completed.Before(d.At) {
		d.Completed = time.Time{} // the clock is behind the log
	}
	if old != nil {
		before := *old
		before.Before = nil
		d.Before = &before
	}
	if err := s.putDump(ctx, d); err != nil {
		return err
	}
	s.dump.Store(d)
	if old != nil && old.Before != nil && !s.archive.keeps()[old.Before.Folder] {
		if err := s.files.RemoveFolder(ctx, old.Before.Folder); err != nil {
			s.p.log.Warn("removing an old dump", "set", s.cfg.Name, "folder", old.Before.Folder, "error", err)
		}
	}
	s.p.log.Info("dumped", "set", s.cfg.Name, "sequence", d.Sequence, "entries", d.Entries, "packages", len(d.Packages), "files left out", d.Files, "seconds", s.p.now().Sub(started).Seconds())
	return nil
}

func (s *set) putDump(ctx context.Context, d *dumpRecord) error {
	b := s.kv.Batch()
	defer b.Close()
	if d == nil {
		b.Delete([]byte("d"))
	} else if err := setJSON(b, []byte("d"), d); err != nil {
		return err
	}
	return b.Commit(ctx, true)
}

// resourceDumpDoc lists the packages: page 0 is /SET/resourcedump.xml, the one
// list or the index; the others are its parts.
func (s *set) resourceDumpDoc(d *dumpRecord, page int) (*document, error) {
	if d == nil {
		return nil, notFound("There is no Resource Dump of %s yet.", s.cfg.Name).hint("Its Resource List is %s/resourcelist.xml.", s.at.url)
	}
	head := s.at.root(resourcesync.ResourceDump)
	head.Meta.At = d.At
	head.Meta.Completed = d.Completed
	head.Meta.Ext = extNumbers(d.Sequence, d.Generation)
	if d.Files > 0 {
		head.Meta.Ext[resourcesync.ExtFiles] = strconv.FormatInt(d.Files, 10)
	}
	packages := d.Packages
	var entries []resourcesync.Entry
	most := s.sizes.dumpDocEntries
	pages := (len(packages) + most - 1) / most
	switch {
	case pages <= 1 && page > 0 || page > pages:
		return nil, errNoDocument
	case pages > 1 && page == 0:
		head.Index = true
		for n := 1; n <= pages; n++ {
			entries = append(entries, resourcesync.Entry{Loc: fmt.Sprintf("%s/resourcedump-%05d.xml", s.at.url, n), HasMeta: true,
				Meta: resourcesync.Meta{At: d.At, Completed: d.Completed, Length: -1}})
		}
	default:
		if page > 0 {
			head.Links = append(head.Links, link(resourcesync.RelIndex, s.at.url+"/resourcedump.xml"))
			packages = packages[(page-1)*most : min(page*most, len(packages))]
		}
		for i := range packages {
			entries = append(entries, s.at.packageEntry(&packages[i], resourcesync.Meta{}))
		}
	}
	doc, err := written(head, entries)
	if err == nil {
		doc.modified = d.At
		if !d.Completed.IsZero() {
			doc.modified = d.Completed
		}
	}
	return doc, err
}

func (a *place) packageEntry(p *kept.Package, m resourcesync.Meta) resourcesync.Entry {
	m.Type, m.Length, m.Hash = zipType, p.Length, resourcesync.Hashes{SHA256: p.SHA256}
	contents := link(resourcesync.RelContents, a.url+"/"+p.Manifest)
	contents.Type = xmlType
	return resourcesync.Entry{Loc: a.url + "/" + p.File, HasMeta: true, Meta: m, Links: []resourcesync.Link{contents}}
}

// packageOf is the record of a package, by the path of its file or of the copy of its manifest; nil for none.
func (s *set) packageOf(path string) *kept.Package {
	var rec *kept.Package
	match := func(ps []kept.Package) {
		for i := range ps {
			if ps[i].File == path || ps[i].Manifest == path {
				rec = &ps[i]
			}
		}
	}
	if d := s.dump.Load(); d != nil {
		match(d.Packages)
		if d.Before != nil && rec == nil {
			match(d.Before.Packages)
		}
	}
	if rec == nil {
		match(*s.changeDumps.Load())
	}
	for _, r := range s.archive.all() {
		if rec == nil {
			match(r.Packages)
		}
	}
	return rec
}

// serveDumpFile serves a package or the copy of a manifest named by a record, whole or in ranges.
func (s *set) serveDumpFile(w http.ResponseWriter, r *http.Request, path string) error {
	rec := s.packageOf(path)
	if rec == nil {
		return &statusError{code: http.StatusGone, reason: "This package is not kept (any more).",
			detail: []string{fmt.Sprintf("What is offered is listed at %s.", s.at.capabilityList())}}
	}
	size := rec.Length
	if path == rec.Manifest {
		size = rec.ManifestLength
	}
	if s.files.Public != "" {
		w.Header().Set("Cache-Control", cacheForever)
		http.Redirect(w, r, s.files.Public+"/"+path, http.StatusTemporaryRedirect)
		return nil
	}
	f, info, err := blob.Seeker(r.Context(), s.files.Store, path)
	if err == nil {
		defer f.Close()
	} else if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	if err != nil || info.Size != size {
		s.files.Meets(path)
		return notFound("This package is damaged, and is made again.").hint("What is offered is listed at %s.", s.at.capabilityList())
	}
	h := w.Header()
	h.Set("Cache-Control", cacheForever)
	tag := rec.SHA256[:32]
	if path == rec.Manifest {
		h.Set("Content-Type", xmlType)
		tag += "-manifest"
	} else {
		h.Set("Content-Type", zipType)
	}
	h.Set("Etag", `"`+tag+`"`)
	if !byteRange.MatchString(r.Header.Get("Range")) { // ServeContent would refuse it
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", info.Modified, f)
	return nil
}

// byteRange is an answerable Range. Any other one is ignored: a server must ignore unknown units
// (RFC 9110, section 14.2).
var byteRange = regexp.MustCompile(`^bytes=[ \t]*(\d+-\d*|-\d+)([ \t]*,[ \t]*(\d+-\d*|-\d+))*[ \t]*$`)

// openDumps reads the records, drops those with missing files, and removes files without a record.
func (s *set) openDumps(ctx context.Context) error {
	var d dumpRecord
	known, err := getJSON(ctx, s.kv, []byte("d"), &d)
	if err != nil {
		return err
	}
	files, err := s.files.There(ctx)
	if err != nil {
		return err
	}
	if err := s.archive.open(ctx, files); err != nil {
		return err
	}
	keep := s.archive.keeps()
	if err := s.openList(ctx, files, keep); err != nil {
		return err
	}
	if known && s.files.Store != nil && s.files.Keeps(files, d.Packages) {
		keep[d.Folder] = true
		if d.Before != nil && s.files.Keeps(files, d.Before.Packages) {
			keep[d.Before.Folder] = true
		} else {
			d.Before = nil
		}
		s.dump.Store(&d)
	} else if known {
		s.p.log.Warn("the Resource Dump is dropped, and made again: its files are not there, or have another size", "set", s.cfg.Name)
		s.files.Lost.Store(true)
		if err := s.putDump(ctx, nil); err != nil {
			return err
		}
	}
	var cds []kept.Package
	broken := false
	b := s.kv.Batch()
	defer b.Close()
	for pair, err := range s.kv.Scan(ctx, []byte("D"), []byte("E")) {
		if err != nil {
			return err
		}
		var rec kept.Package
		if err := decodeRecord(pair.Key, pair.Value, &rec); err != nil {
			return err
		}
		if !broken && s.files.Store != nil && s.files.Keeps(files, []kept.Package{rec}) {
			cds = append(cds, rec)
			continue
		}
		if !broken {
			s.p.log.Warn("the Change Dump is dropped from a package on, and made again: its files are not there, or have another size", "set", s.cfg.Name, "list", rec.Number)
			s.files.Lost.Store(true)
			broken = true
			for len(cds) > 0 && cds[len(cds)-1].Number == rec.Number { // of the same list
				last := cds[len(cds)-1]
				cds = cds[:len(cds)-1]
				b.Delete(keyOf('D', last.Number, last.Last))
			}
		}
		b.Delete(keyOf('D', rec.Number, rec.Last)) // the next package comes after the rest
	}
	for _, rec := range cds {
		keep[rec.File], keep[rec.Manifest] = true, true
	}
	if err := b.Commit(ctx, true); err != nil {
		return err
	}
	s.changeDumps.Store(&cds)
	if s.files.Store == nil || s.files.Dry {
		return nil
	}
	return s.files.Sweep(ctx, files, keep)
}
