package publish

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/naming"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// A set with linked files lists the files as resources of their own, at their own addresses.

// mostDescribedBy is the most links from a file's entry to its descriptions: a logo may be in every
// one.
const mostDescribedBy = 100

// fileLinks adds links to the files of a description. Then the entry has more than one describes
// link, and names the entity's own.
func (m *entryMaker) fileLinks(ctx context.Context, e *resourcesync.Entry, view *source, entity string) error {
	if m.cfg.Content == "" {
		return nil
	}
	urls, err := view.FilesOf(ctx, entity)
	if err != nil || len(urls) == 0 {
		return err
	}
	if naming.XMLText(entity) {
		e.Meta.Ext[resourcesync.ExtEntity] = entity
	}
	for _, u := range urls[:min(len(urls), mostLinks)] {
		if u != entity {
			e.Links = append(e.Links, link(resourcesync.RelDescribes, u))
		}
	}
	return nil
}

// fileMeta are the known properties of a version of a file.
func fileMeta(v *changetrack.FileVersion) resourcesync.Meta {
	m := resourcesync.Meta{Length: v.Length, Encoding: v.Encoding,
		Ext: map[string]string{resourcesync.ExtKind: resourcesync.KindFile, resourcesync.ExtSequence: strconv.FormatUint(v.Sequence, 10)}}
	if strings.Contains(v.Type, ".") { // the schema of the framework knows no such types
		m.Ext[resourcesync.ExtType] = v.Type
	} else {
		m.Type = v.Type
	}
	if !v.SHA256.IsZero() {
		m.Hash = resourcesync.Hashes{SHA256: v.SHA256.String()}
	}
	return m
}

// describedBy links to the descriptions linking to a file.
func (m *entryMaker) describedBy(ctx context.Context, e *resourcesync.Entry, view *source, url string) error {
	n := 0
	for entity, err := range view.LeadingTo(ctx, url) {
		if err != nil {
			return err
		}
		st, err := view.Entity(ctx, entity)
		if err != nil {
			return err
		}
		if st.Current == nil {
			continue
		}
		e.Links = append(e.Links, link(resourcesync.RelDescribedBy, m.at.address(entity, st.Current.Format)))
		if n++; n >= mostDescribedBy {
			break
		}
	}
	return nil
}

// modified is the lastmod of a file: its server's, or else the time of the change in the log.
func modified(v *changetrack.FileVersion) time.Time {
	if v.Modified.IsZero() || v.Modified.After(v.Time) {
		return v.Time
	}
	return v.Modified
}

// fileEntry is the entry of a current file in a Resource List.
func (m *entryMaker) fileEntry(ctx context.Context, view *source, st *changetrack.FileState) (resourcesync.Entry, error) {
	v := st.Current
	e := resourcesync.Entry{Loc: st.URL, LastMod: modified(v), HasMeta: true, Meta: fileMeta(v)}
	e.ChangeFreq = resourcesync.ChangeFreq(st.Changes, st.First, v.Time)
	return e, m.describedBy(ctx, &e, view, st.URL)
}

// fileChange is the entry of a file's change. Its datetime is the time of the change. Its lastmod
// is the Resource List's, so a comparison of the two finds them equal.
func (m *entryMaker) fileChange(ctx context.Context, view *source, c *changetrack.Change) (resourcesync.Entry, error) {
	e := resourcesync.Entry{Loc: c.File, LastMod: c.Time, HasMeta: true}
	if c.FileAfter == nil {
		e.Meta = resourcesync.Meta{Length: -1, Ext: map[string]string{
			resourcesync.ExtKind: resourcesync.KindFile, resourcesync.ExtSequence: strconv.FormatUint(c.Sequence, 10)}}
	} else {
		e.Meta, e.LastMod = fileMeta(c.FileAfter), modified(c.FileAfter)
		if err := m.describedBy(ctx, &e, view, c.File); err != nil {
			return e, err
		}
	}
	e.Meta.Change, e.Meta.DateTime = string(c.Kind), c.Time
	return e, nil
}

// keyOfChange is the place of a changed resource in the Resource List.
func keyOfChange(c *changetrack.Change) rdfres.Digest {
	if c.OfFile() {
		return changetrack.FileKey(c.File)
	}
	return rdfres.EntityKey(c.Entity)
}
