package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// makeChangeDumps packages the closed Change Lists without packages. A package holds a bitstream
// for every change but deletions, so a list with a version no longer kept cannot be packaged: the
// Change Dump then begins after it. Packages leave out new and changed files. A list of nothing
// else would make a package without an entry: the package of the next list covers its time too.
func (s *set) makeChangeDumps(ctx context.Context, snap *snapshot) error {
	have := slices.Clone(*s.changeDumps.Load())
	due := slices.DeleteFunc(slices.Clone(snap.lists), func(l listRecord) bool {
		return !l.closed() || len(have) > 0 && l.Number <= have[len(have)-1].Number
	})
	if len(due) == 0 {
		return nil
	}
	first, last := due[0].After, due[len(due)-1].Last
	took := func(change uint64) {
		s.p.o.Progress(s.cfg.Name, "changedump", int64(change-first), int64(last-first))
	}
	took(first)
	var from time.Time // begin of the next package: lists without one may lie before
	for _, l := range due {
		if len(have) > 0 {
			from = have[len(have)-1].Until
		} else if from.IsZero() {
			from = l.From
		}
		made, err := s.makeChangeDump(ctx, snap, l, from, took)
		if errors.Is(err, kv.ErrNotFound) {
			s.p.log.Warn("the Change Dump begins later: versions of a Change List are no longer kept", "set", s.cfg.Name, "list", l.Number)
			made, err, from = nil, nil, time.Time{}
			if dropErr := s.dropChangeDumps(ctx, have); dropErr != nil {
				return dropErr
			}
			have = nil
		}
		if err != nil {
			return err
		}
		if len(made) == 0 {
			continue
		}
		b := s.kv.Batch()
		for _, rec := range made {
			if err := setJSON(b, keyOf('D', rec.Number, rec.Last), rec); err != nil {
				b.Close()
				return err
			}
		}
		err = b.Commit(ctx, true)
		b.Close()
		if err != nil {
			return err
		}
		have = append(have, made...)
		published := slices.Clone(have)
		s.changeDumps.Store(&published)
	}
	return nil
}

// makeChangeDump packages one list, the first package from a time on. A list too large for one
// package is cut. There is no package without an entry. took is told of changes now and then.
func (s *set) makeChangeDump(ctx context.Context, snap *snapshot, l listRecord, from time.Time, took func(change uint64)) (made []kept.Package, err error) {
	if tail, _ := snap.view.Tail(); tail > l.After {
		return nil, fmt.Errorf("the changes of list %d: %w", l.Number, kv.ErrNotFound)
	}
	type cut struct {
		after, last uint64
		from, until time.Time
	}
	cuts := []cut{{after: l.After, last: l.After, from: from}}
	var size int64
	filled := false // the last cut has an entry
	for c, err := range snap.view.Changes(ctx, l.After) {
		if err != nil {
			return nil, err
		}
		if c.Sequence > l.Last {
			break
		}
		var n int64
		if c.After != nil {
			n = c.After.Fixity.Length
		}
		at := &cuts[len(cuts)-1]
		if packable(&c) {
			if filled && size+n > s.cfg.PackageBytes {
				cuts = append(cuts, cut{after: at.last, last: at.last, from: at.until})
				at, size = &cuts[len(cuts)-1], 0
			}
			size += n
			filled = true
		}
		at.last, at.until = c.Sequence, c.Time
	}
	if !filled {
		return nil, nil
	}
	cuts[len(cuts)-1].until = l.Until
	for i, cut := range cuts {
		rec, err := s.changePackage(ctx, snap, kept.OnlyName("changedump/%06d-%03d", l.Number, i+1), cut.after, cut.last, cut.from, cut.until, took)
		if err != nil {
			return nil, errors.Join(err, s.archive.removePackages(context.WithoutCancel(ctx), made))
		}
		rec.Number = l.Number
		made = append(made, rec)
	}
	return made, nil
}

// packable tells whether a package has entries of a change: it holds no files, and
// each of its entries but deletions needs a bitstream.
func packable(c *changetrack.Change) bool {
	return c.OfEntity() || c.OfFile() && c.FileAfter == nil
}

func (s *set) changePackage(ctx context.Context, snap *snapshot, name string, after, last uint64, from, until time.Time, took func(change uint64)) (rec kept.Package, err error) {
	head := s.at.root(resourcesync.ChangeDumpManifest)
	head.Meta.From, head.Meta.Until = from, until
	head.Meta.Ext = extNumbers(last, 0)
	out, err := s.files.NewPackage(name, s.at.Prefix, head)
	if err != nil {
		return rec, err
	}
	defer func() {
		if out != nil {
			out.Abort()
		}
	}()
	for c, err := range snap.view.Changes(ctx, after) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return rec, err
		}
		if c.Sequence > last {
			break
		}
		if !packable(&c) {
			continue
		}
		if err := snap.addChange(ctx, out, &c); err != nil {
			return rec, err
		}
		if c.Sequence%1000 == 0 {
			took(c.Sequence)
		}
	}
	rec, err = out.Close(ctx)
	out = nil
	rec.From, rec.Until, rec.Last = from, until, last
	return rec, err
}

// addChange adds the entries of a change, with representation and patches.
func (snap *snapshot) addChange(ctx context.Context, f *kept.Writer, c *changetrack.Change) (err error) {
	var patches []patch.Patch
	if snap.set.cfg.DumpPatches {
		if patches, err = patchesOf(ctx, snap.kv, c.Sequence); err != nil {
			return err
		}
	}
	entries, err := snap.set.entries.ofChange(ctx, snap.source(), c, patches)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := addPatches(f, &e, c, patches); err != nil {
			return err
		}
		if e.Meta.Change == resourcesync.Deleted {
			if err := f.AddEntry(&e); err != nil {
				return err
			}
			continue
		}
		blob, err := snap.view.Representation(ctx, c.Entity, c.After.Sequence)
		if err != nil {
			return err
		}
		if err := f.Add(f.Path(fmt.Sprintf("changes/%d", c.Sequence), c.Entity, c.After.Format), blob, &e); err != nil {
			return err
		}
	}
	return nil
}

// dropChangeDumps removes records, then files.
func (s *set) dropChangeDumps(ctx context.Context, drop []kept.Package) error {
	if len(drop) == 0 {
		return nil
	}
	b := s.kv.Batch()
	defer b.Close()
	gone := map[string]bool{}
	for _, rec := range drop {
		b.Delete(keyOf('D', rec.Number, rec.Last))
		gone[rec.File] = true
	}
	if err := b.Commit(ctx, true); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(*s.changeDumps.Load()), func(rec kept.Package) bool { return gone[rec.File] })
	s.changeDumps.Store(&left)
	return s.archive.removePackages(ctx, drop)
}

// changeDumpDoc lists the packages: page 0 is /SET/changedump.xml, the one list or the index; the
// others are its parts. All but the last are closed. The last is open: packages will be appended.
func (s *set) changeDumpDoc(page int) (*document, error) {
	packages := *s.changeDumps.Load()
	if len(packages) == 0 {
		return nil, notFound("There is no Change Dump of %s yet.", s.cfg.Name).
			hint("Its packages are made of closed Change Lists; the changes are at %s/changelist.xml.", s.at.url)
	}
	head := s.at.root(resourcesync.ChangeDump)
	head.Meta.Ext = extNumbers(packages[len(packages)-1].Last, 0)
	// Parts begin at fixed numbers of Change Lists, so they stay the same when the oldest are
	// dropped.
	most := uint64(s.sizes.dumpDocEntries)
	partOf := func(p *kept.Package) int { return int((p.Number-1)/most) + 1 }
	first, last := partOf(&packages[0]), partOf(&packages[len(packages)-1])
	var entries []resourcesync.Entry
	from, until := packages[0].From, packages[len(packages)-1].Until
	modified := until
	switch {
	case page > last || page > 0 && (page < first || first == last):
		return nil, errNoDocument
	case page == 0 && first != last:
		head.Index = true
		for n := first; n <= last; n++ {
			m := resourcesync.Meta{Length: -1}
			for i := range packages {
				if partOf(&packages[i]) == n {
					if m.From.IsZero() {
						m.From = packages[i].From
					}
					if n < last {
						m.Until = packages[i].Until
					}
				}
			}
			if !m.From.IsZero() { // some list of these numbers has a package
				entries = append(entries, resourcesync.Entry{Loc: fmt.Sprintf("%s/changedump-%05d.xml", s.at.url, n), HasMeta: true, Meta: m})
			}
		}
	default:
		if page > 0 {
			head.Links = append(head.Links, link(resourcesync.RelIndex, s.at.url+"/changedump.xml"))
		}
		from = time.Time{}
		for i := range packages {
			p := &packages[i]
			if page > 0 && partOf(p) != page {
				continue
			}
			if from.IsZero() {
				from = p.From
			}
			if until = p.Until; page > 0 && page < last {
				head.Meta.Until = until
			}
			entries = append(entries, s.at.packageEntry(p, resourcesync.Meta{From: p.From, Until: p.Until}))
		}
		if len(entries) == 0 {
			return nil, errNoDocument
		}
		modified = until
	}
	head.Meta.From = from
	doc, err := written(head, entries)
	if err == nil {
		doc.modified = modified
	}
	return doc, err
}

// addPatches stores the patches linked from an entry, and their paths in the entry.
func addPatches(f *kept.Writer, e *resourcesync.Entry, c *changetrack.Change, patches []patch.Patch) error {
	for i := range e.Links {
		l := &e.Links[i]
		for _, p := range patches {
			if l.Rel != resourcesync.RelPatch || l.Type != p.Kind.MediaType {
				continue
			}
			l.Path = fmt.Sprintf("/patches/%d%s", c.Sequence, p.Kind.Suffix)
			if err := f.AddFile(l.Path, p.Data, c.Time); err != nil {
				return err
			}
		}
	}
	return nil
}
