package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/publish/patch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Retain drops closed Change Lists, their patches and Change Dump packages when the log no longer
// holds any of their changes (decided by changetrack.Log.Retain). It drops a Resource Dump from
// before the first remaining list, because nobody could go on from it. The from of the remaining
// lists stays right. It also releases the old view, so changes dropped from the log are no longer
// served.
func (p *Publisher) Retain(ctx context.Context, name string) error {
	if _, err := p.set(name); err != nil {
		return err
	}
	first, err := p.retainLists(ctx, name)
	if err == nil && first != nil {
		err = p.retainDumps(ctx, name, *first)
	}
	if err == nil {
		s := p.lockDumping(name)
		err = s.archive.trim(ctx, s.dump.Load())
		if l := s.scheduled.Load(); err == nil && l != nil && first != nil && l.Sequence < first.After {
			err = s.makeList(ctx) // nobody could go on from the present one
		}
		s.dumping.Unlock()
	}
	if err != nil {
		return fmt.Errorf("publish: retention of %s: %w", name, err)
	}
	return nil
}

// retainLists drops lists; first is the first remaining one, nil when none was dropped.
func (p *Publisher) retainLists(ctx context.Context, name string) (first *listRecord, err error) {
	s := p.lockPublishing(name)
	defer s.publishing.Unlock()
	if s, _, err = s.publish(ctx); err != nil {
		return nil, err
	}
	cur := s.acquire(ctx)
	if cur == nil {
		return nil, nil
	}
	defer cur.release()
	now := s.cfg.Log.Moment()
	kept := false
	defer func() {
		if !kept {
			s.closed(now.Release())
		}
	}()
	view := now.View(ctx)
	defer view.Close()
	if err := view.Err(); err != nil {
		return nil, err
	}
	if head, _ := view.Head(); head != cur.gen.Sequence {
		return nil, nil // a run has just ended; its publication comes, and retention again
	}
	tail, _ := view.Tail()
	drop := 0
	for drop < len(cur.lists)-1 && cur.lists[drop].Last <= tail {
		drop++
	}
	lists := slices.Clone(cur.lists[drop:])
	if drop > 0 {
		if s.cfg.Archives && s.files.Store != nil && s.offers(resourcesync.ChangeList) {
			if err := s.archive.addChangeLists(ctx, cur, view, cur.lists[:drop]); err != nil {
				return nil, fmt.Errorf("Change List Archive: %w", err)
			}
		}
		b := s.kv.Batch()
		defer b.Close()
		b.DeleteRange([]byte("l"), keyOf('l', lists[0].Number))
		b.DeleteRange([]byte("c"), keyOf('c', lists[0].Number))
		for _, kind := range patch.Kinds {
			b.DeleteRange([]byte{kind.ID}, keyOf(kind.ID, lists[0].After+1))
		}
		s.freeze(ctx)
		if err := b.Commit(ctx, true); err != nil {
			return nil, err
		}
		if err := s.inventory.Trim(ctx, lists[0].After); err != nil {
			return nil, err
		}
		s.p.log.Info("dropped Change Lists", "set", s.cfg.Name, "lists", drop, "first", lists[0].Number)
		first = &lists[0]
	}
	kept = true
	s.replace(&generation{gen: cur.gen, log: now, parts: cur.parts, lists: lists, alternates: cur.alternates.hold()})
	return first, nil
}

// retainDumps drops dumps and packages of lists before first.
func (p *Publisher) retainDumps(ctx context.Context, name string, first listRecord) error {
	s := p.lockDumping(name)
	defer s.dumping.Unlock()
	var old []kept.Package
	for _, rec := range *s.changeDumps.Load() {
		if rec.Number < first.Number {
			old = append(old, rec)
		}
	}
	if s.cfg.Archives && s.files.Store != nil && s.offers(resourcesync.ChangeDump) {
		if err := s.archive.addChangeDumps(ctx, old); err != nil {
			return fmt.Errorf("Change Dump Archive: %w", err)
		}
	}
	if err := s.dropChangeDumps(ctx, old); err != nil {
		return err
	}
	d := s.dump.Load()
	if d == nil || d.Sequence >= first.After {
		return nil
	}
	s.p.log.Warn("the Resource Dump is dropped: the changes since then are no longer kept; the next dump replaces it", "set", s.cfg.Name, "sequence", d.Sequence)
	if err := s.putDump(ctx, nil); err != nil {
		return err
	}
	s.dump.Store(nil)
	packages := d.Packages
	if d.Before != nil {
		packages = append(packages[:len(packages):len(packages)], d.Before.Packages...)
	}
	return s.archive.removePackages(ctx, packages)
}

// removePackages removes packages not in an archive.
func (a *archive) removePackages(ctx context.Context, packages []kept.Package) error {
	if a.files.Store == nil {
		return nil
	}
	var gone []string
	keep := a.keeps()
	for _, rec := range packages {
		if !keep[rec.File] {
			gone = append(gone, rec.File, rec.Manifest)
		}
	}
	return a.files.Store.Delete(ctx, gone...)
}
