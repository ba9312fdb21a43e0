package feed

import (
	"context"
	"time"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// Poll is one look at the changes of a source: their opened root, a list, dump or index.
type Poll struct {
	src   *Source
	offer *Offer
	root  *Download // nil: it is named and not there
}

// Poll looks for changes after a cursor. It is nil if nothing was published since the cursor came to
// its end. If the source has an inventory, a root that is not there is a *GapError beside the Poll.
func (src *Source) Poll(ctx context.Context, o *Offer, c *Cursor) (*Poll, error) {
	if dl := src.tail(ctx, o, c); dl != nil {
		return &Poll{src: src, offer: o, root: dl}, nil
	}
	address, kind := o.Changes()
	root, _, err := src.changesSince(ctx, address, kind, c)
	if err == nil && root == nil {
		return nil, nil
	}
	return &Poll{src: src, offer: o, root: root}, missingOf(o, err)
}

func (p *Poll) Close() error {
	if p.root == nil {
		return nil
	}
	return p.root.Close()
}

// Each reads the changes after from, in order. With strict, a gap is a *GapError before any change
// behind it. Without strict, gaps are passed over.
func (p *Poll) Each(ctx context.Context, from *Cursor, strict bool, f func(Change) error) error {
	r, err := p.src.Docs.reader(p.root)
	if err != nil {
		return err
	}
	err = p.src.eachChangeOf(ctx, p.root, r, &from.at, strict, f)
	if err != nil && p.root.tail { // the whole list is to tell
		p.src.whole = time.Time{}
	}
	if strict {
		err = missingOf(p.offer, err)
	}
	return err
}

// IsDump tells of changes from the packages of a Change Dump.
func (p *Poll) IsDump() bool {
	_, kind := p.offer.Changes()
	return kind == resourcesync.ChangeDump
}

// EndsBefore tells of a Change Dump without changes after a cursor.
func (p *Poll) EndsBefore(ctx context.Context, c *Cursor) (bool, error) {
	r, err := p.src.Docs.reader(p.root)
	if err != nil {
		return false, err
	}
	packages, err := p.src.Docs.listPackages(ctx, p.root, r)
	if err != nil {
		return false, err
	}
	for i := range packages.list {
		if until := packages.list[i].until; until.IsZero() || until.After(c.Time()) {
			return false, nil
		}
	}
	return true, nil
}

// Finish moves a cursor behind all changes, if it is behind the last one.
func (p *Poll) Finish(c *Cursor) {
	address, _ := p.offer.Changes()
	if c.at.finish(address, p.root); !p.root.tail {
		p.src.whole = p.src.Docs.opt.Now()
	}
}
