package feed

import (
	"context"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Bridge is a way around a gap: older documents, and then the present ones.
type Bridge struct {
	Name    string
	src     *Source
	older   func(context.Context) ([]part, error)
	present []part
	left    []part // present ones within the older ones
}

// Bridges are the archives and the Change Dump of the offer.
func (poll *Poll) Bridges(ctx context.Context) ([]*Bridge, error) {
	src, o, dl := poll.src, poll.offer, poll.root
	rd, err := src.Docs.reader(dl)
	if err != nil {
		return nil, err
	}
	head := *rd.Head()
	_, kind := o.Changes()
	var present []part
	if kind == resourcesync.ChangeDump {
		c, err := src.Docs.listPackages(ctx, dl, rd)
		if err != nil {
			return nil, err
		}
		present = c.parts()
	} else if present, err = src.Docs.parts(ctx, dl, rd, kind); err != nil {
		return nil, err
	}
	sortParts(present)
	var list []*Bridge
	add := func(name string, older func(context.Context) ([]part, error)) {
		list = append(list, &Bridge{Name: name, src: src, older: older, present: present})
	}
	if a := archiveOf(o.ChangeArchive, &head); a != "" && kind == resourcesync.ChangeList {
		add("the archive of Change Lists", func(ctx context.Context) ([]part, error) {
			return src.Docs.archived(ctx, a, resourcesync.ChangeListArchive)
		})
	}
	if o.ChangeDump != "" && kind == resourcesync.ChangeList {
		add("the Change Dump", func(ctx context.Context) ([]part, error) {
			c, err := src.ReadChangeDump(ctx, o)
			if err != nil {
				return nil, err
			}
			return c.parts(), nil
		})
	}
	a := o.DumpArchive
	if kind == resourcesync.ChangeDump {
		a = archiveOf(a, &head)
	}
	if a != "" {
		add("the archive of Change Dumps", func(ctx context.Context) ([]part, error) { return src.Docs.archivedPackages(ctx, a) })
	}
	return list, nil
}

// EachChange reads the changes after from. It is a *GapError if they do not close the gap, and
// ok is false if they cannot.
func (b *Bridge) EachChange(ctx context.Context, c Cursor, f func(Change) error) (ok bool, err error) {
	from := c.at
	older, err := b.older(ctx)
	if err != nil {
		return false, err
	}
	early := func(p part) bool { return p.From.IsZero() || !p.From.After(from.Time) }
	if !slices.ContainsFunc(older, early) {
		return false, nil // they begin behind the cursor: there is no use in downloading them
	}
	sortParts(older)
	parts := slices.DeleteFunc(slices.Clone(older), func(p part) bool { return !p.Until.IsZero() && p.Until.Before(from.applied()) })
	var has []interval
	for _, p := range parts {
		if !p.From.IsZero() && !p.Until.IsZero() {
			has = append(has, interval{from: p.From, until: p.Until})
		}
	}
	n := len(parts)
	b.left = nil
	for i, p := range b.present {
		end := p.Until
		if end.IsZero() && i+1 < len(b.present) {
			end = b.present[i+1].From
		}
		begin := p.From
		if begin.Before(from.applied()) {
			begin = from.applied()
		}
		same := func(q part) bool {
			return q.URL == p.URL || !p.From.IsZero() && q.From.Equal(p.From) && q.Until.Equal(end)
		}
		within := !p.From.IsZero() && !end.IsZero() && (end.Before(from.applied()) || covered(has, begin, end.Add(1)).IsZero()) // a change of its end may come after theirs
		switch {
		case within || slices.ContainsFunc(parts[:n], same):
			b.left = append(b.left, p)
		case b.src.survey.isMissing(p.URL):
			return false, nil
		default:
			parts = append(parts, p)
		}
	}
	from.trail = new(trail)
	p := &proof{from: &from, old: true}
	err = b.src.eachChangeIn(ctx, parts, &from, p, f)
	if err == nil && from.Newest != nil && !p.met { // the lists did not have it either: it may be another history
		err = &GapError{Why: fmt.Sprintf("the change at which we stand (%s) is not in them", from.Newest)}
	}
	return err == nil, err
}

// Cross puts a cursor behind a bridge, from the end of its changes: the present lists within
// them are applied with them.
func (b *Bridge) Cross(ctx context.Context, c, end *Cursor) {
	c.at.reads = append(end.at.reads, b.src.Docs.namesOf(ctx, b.left)...)
}
