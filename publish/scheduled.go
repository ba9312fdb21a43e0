package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// listKey is the key of a scheduled Resource List.
var listKey = []byte("R")

// ListResources makes the Resource List anew for a set with a scheduled one
// (SetConfig.ScheduledList). Until the next time the list stays as it is, and Change Lists tell the
// changes after its at. If nothing was published since, the present list stays. For other sets it
// does nothing.
func (p *Publisher) ListResources(ctx context.Context, name string) error {
	s, err := p.set(name)
	if err != nil {
		return err
	}
	if !s.cfg.ScheduledList || !s.offers(resourcesync.ResourceList) {
		return nil
	}
	if s.files.Store == nil {
		return fmt.Errorf("publish: a Resource List of %s by schedule: there is no folder for files (Options.Dir)", name)
	}
	defer p.o.Changed(name)
	s = p.lockDumping(name)
	defer s.dumping.Unlock()
	if err := mendMissing(ctx, s); err != nil {
		return err
	}
	if err := s.makeList(ctx); err != nil {
		return fmt.Errorf("publish: the Resource List of %s: %w", name, err)
	}
	return nil
}

// HasResourceList tells whether a Resource List is offered now.
func (p *Publisher) HasResourceList(name string) bool {
	s, err := p.set(name)
	if err != nil {
		return false
	}
	_, ok := p.Generation(name)
	return ok && (!s.cfg.ScheduledList || s.scheduled.Load() != nil)
}

// makeList: the caller holds s.dumping.
func (s *set) makeList(ctx context.Context) error {
	snap := s.acquire(ctx)
	if snap == nil {
		return nil
	}
	defer snap.release()
	old := s.scheduled.Load()
	if old != nil && old.Number == snap.gen.Number {
		return nil
	}
	folder := kept.OnlyName("resourcelist/%d", snap.gen.Number)
	docs, err := snap.storeResourceList(ctx, folder, "resourcelist", func(name string) string { return s.at.url + "/" + name + ".xml" })
	if err != nil {
		return errors.Join(err, s.files.RemoveFolder(context.WithoutCancel(ctx), folder))
	}
	rec := &archiveRecord{Version: recordVersion, Kind: resourcesync.ResourceList, Number: snap.gen.Number, Sequence: snap.gen.Sequence, At: snap.gen.At, Stored: stamp(s.p.now()), Documents: docs}
	b := s.kv.Batch()
	defer b.Close()
	if err := setJSON(b, listKey, rec); err != nil {
		return err
	}
	if err := b.Commit(ctx, true); err != nil {
		return err
	}
	s.scheduled.Store(rec)
	if old != nil {
		if err := s.files.RemoveFolder(ctx, old.Documents[0].Folder); err != nil {
			s.p.log.Warn("removing an old Resource List", "set", s.cfg.Name, "error", err)
		}
	}
	s.p.log.Info("listed", "set", s.cfg.Name, "generation", rec.Number, "sequence", rec.Sequence, "documents", len(docs))
	return nil
}

// openList reads the record; keep gets the folder of its files.
func (s *set) openList(ctx context.Context, files kept.Files, keep map[string]bool) error {
	s.scheduled.Store(nil)
	var rec archiveRecord
	known, err := getJSON(ctx, s.kv, listKey, &rec)
	if err != nil || !known || !s.cfg.ScheduledList || s.files.Store == nil {
		return err
	}
	for _, d := range rec.Documents {
		if !s.files.Dry && !files.Has(d.Path(), d.Stored) {
			s.files.Lost.Store(true) // it is made again
			return nil
		}
	}
	keep[rec.Documents[0].Folder] = true
	s.scheduled.Store(&rec)
	return nil
}

// scheduledDoc answers for the documents of a scheduled Resource List.
func (s *set) scheduledDoc(ctx context.Context, name string) (*document, error) {
	rec := s.scheduled.Load()
	if rec == nil {
		return nil, notFound("There is no Resource List of %s yet; it is made by schedule.", s.cfg.Name).hint("The changes are listed at %s/changelist.xml.", s.at.url)
	}
	for _, d := range rec.Documents {
		if d.Name == strings.TrimSuffix(name, ".xml") {
			doc, err := storedDocument(ctx, s.files, s.at.url, rec, d)
			if err == nil {
				doc.modified = rec.At
			}
			return doc, err
		}
	}
	return nil, errNoDocument
}
