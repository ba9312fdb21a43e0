package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/offer"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Several sets may describe the same entities, each in its own vocabulary: then their descriptions
// of one entity are alternates of each other. A generation looks at fixed states of the other sets'
// logs, so its lists are fixed too.

// source is the input of entries: the log of the set, and the logs of its alternate sets.
type source struct {
	*changetrack.View
	alternates *alternateSets
}

func (snap *snapshot) source() *source { return &source{snap.view, snap.links} }

// alternateMoments are the states of other sets' logs used by a generation.
type alternateMoments []alternateMoment

type alternateMoment struct {
	set *set
	log changetrack.Moment
}

// alternateSets are the same states, opened.
type alternateSets struct{ list []alternateSet }

type alternateSet struct {
	set  *set
	view *changetrack.View
}

// alternateRecord is a generation's record of the state of another set.
type alternateRecord struct {
	Sequence uint64 `json:"sequence"`
	Base     string `json:"base"`
	Prefix   string `json:"prefix"`
}

// presentAlternates takes the present states; nil if none are configured. Sets without a complete
// scan are left out.
func (s *set) presentAlternates(ctx context.Context) (alternateMoments, error) {
	if len(s.cfg.Alternates) == 0 {
		return nil, nil
	}
	a := alternateMoments{}
	for _, name := range s.cfg.Alternates {
		other := s.p.lookup(name)
		if other == nil {
			return nil, errors.Join(fmt.Errorf("there is no set %q to be an alternate of %s", name, s.cfg.Name), a.release())
		}
		a = append(a, alternateMoment{other, other.cfg.Log.Moment()})
		view := a[len(a)-1].log.View(ctx)
		_, _, ok := view.BaselineEnd()
		err := errors.Join(view.Err(), view.Close())
		if err == nil && !ok {
			err = a[len(a)-1].log.Release()
			a = a[:len(a)-1]
		}
		if err != nil {
			return nil, errors.Join(err, a.release())
		}
	}
	return a, nil
}

func (a alternateMoments) hold() alternateMoments {
	for _, m := range a {
		m.log.Hold()
	}
	return a
}

func (a alternateMoments) release() error {
	var errs []error
	for _, m := range a {
		errs = append(errs, m.log.Release())
	}
	return errors.Join(errs...)
}

// open opens the states, nil for none.
func (a alternateMoments) open(ctx context.Context) *alternateSets {
	if len(a) == 0 {
		return nil
	}
	out := &alternateSets{}
	for _, m := range a {
		out.list = append(out.list, alternateSet{m.set, m.log.View(ctx)})
	}
	return out
}

func (a *alternateSets) close() error {
	if a == nil {
		return nil
	}
	var errs []error
	for _, o := range a.list {
		errs = append(errs, o.view.Close())
	}
	return errors.Join(errs...)
}

// records are the records of the states in a generation.
func (a *alternateSets) records() map[string]alternateRecord {
	if a == nil {
		return nil
	}
	out := map[string]alternateRecord{}
	for _, o := range a.list {
		head, _ := o.view.Head()
		out[o.set.cfg.Name] = alternateRecord{head, o.set.at.Base, o.set.at.Prefix}
	}
	return out
}

// alternateLinks link to the descriptions of an entity in other sets. Entries of changes have none:
// they never change, and the links are those of now.
func (m *entryMaker) alternateLinks(ctx context.Context, e *resourcesync.Entry, view *source, entity string) error {
	if len(m.cfg.Alternates) == 0 || view.alternates == nil {
		return nil
	}
	for _, o := range view.alternates.list {
		st, err := o.view.Entity(ctx, entity)
		if errors.Is(err, kv.ErrNotFound) || err == nil && st.Current == nil {
			continue
		}
		if err != nil {
			return err
		}
		l := link(resourcesync.RelAlternate, o.set.at.address(entity, st.Current.Format))
		l.Type = offer.MediaType(st.Current.Format)
		e.Links = append(e.Links, l)
	}
	return nil
}

// alternateBytes is more than a link to another set takes.
const alternateBytes = 4096

// touchAlternates finds the parts whose entities have come to another set, left it, or changed
// their address there, since the generation before.
func (w *generationWriter) touchAlternates(ctx context.Context) error {
	if w.touched == nil || w.alternates == nil {
		return nil
	}
	now := w.alternates.records()
	for _, o := range w.alternates.list {
		name := o.set.cfg.Name
		was, had := w.before.Alternates[name]
		tail, _ := o.view.Tail()
		if !had || was.Base != now[name].Base || was.Prefix != now[name].Prefix || was.Sequence < tail || was.Sequence > now[name].Sequence {
			for i := range w.parts {
				w.parts[i].Bytes = -1
				w.touch(i, 0, 0)
			}
			return nil
		}
		for c, err := range o.view.Changes(ctx, was.Sequence) {
			if err != nil {
				return err
			}
			if !c.OfEntity() || c.Before != nil && c.After != nil && c.Before.Format == c.After.Format {
				continue
			}
			st, err := w.view.Entity(ctx, c.Entity)
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return err
			}
			if err == nil && st.Current != nil {
				w.touch(w.parts.Find(rdfres.EntityKey(c.Entity)), 0, alternateBytes)
			}
		}
	}
	return nil
}
