package destination

import (
	"context"
	"fmt"
	"slices"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// Each run resolves the configured address anew, unless nothing was published (feed/still.go), and
// its result counts. The place of earlier runs is a preference only: a doubtful answer is refused for
// a while, and never for good. A mirror led to another place is compared with everything there, and
// again on its way back.

// resolved names the found set.
func resolved(o *feed.Offer) keep.ResolvedSource {
	return keep.ResolvedSource{Way: o.Way, To: o.Address(), Sitemap: o.Plain}
}

// follows tells whether records are of the configured source and set. Hidden values of fields
// count too: they may tell one source from another.
func (d *Destination) follows(m *ledger.Identity) bool {
	return m.Source == d.cfg.Source && m.Set == d.cfg.Set && m.Fields == d.secrets.Digest(m.Mark)
}

// follow makes records those of the configured source and set.
func (d *Destination) follow(m *keep.Meta) {
	m.Source, m.Set, m.Fields = d.cfg.Source, d.cfg.Set, d.secrets.Digest(m.Mark)
}

// accept refuses a doubtful offer for the moment: a site may be under repair.
func (d *Destination) accept(ctx context.Context, o *feed.Offer) error {
	m, now := d.mem.SnapshotMeta(), resolved(o)
	was := &m.Resolved
	if m.Stage == ledger.None || !d.follows(&m.Identity) || !was.Doubts(now, feed.IsSiteRoot(d.cfg.Source)) {
		return nil
	}
	if was.Doubted.IsZero() {
		was.Doubted = d.opt.Now().UTC()
		if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Resolved.Doubted = was.Doubted }); err != nil {
			return err
		}
	}
	if d.opt.Now().Sub(was.Doubted) >= feed.DoubtLasts && !(now.Sitemap && d.src.LeadsToSource(ctx, was.To)) {
		return nil
	}
	return fmt.Errorf("discover %s: %s, and the mirror is of %s; nothing was changed: where the source has moved for good, give its new address", clip.Middle(d.cfg.Source), o.Found, clip.Middle(was.To))
}

// noteResolved keeps the place of the source. At another place the experience with the former one
// is void, and everything is compared.
func (r *run) noteResolved(ctx context.Context, o *feed.Offer) error {
	d := r.d
	m := d.mem.SnapshotMeta()
	was, now := m.Resolved, resolved(o)
	same := now.To == was.To
	if now.Runs = 1; same {
		now.Runs = min(was.Runs+1, keep.ConfirmedRuns)
	}
	now.Before = slices.DeleteFunc(slices.Clone(was.Before), func(to string) bool { return to == now.To })
	if !same && was.Runs >= keep.ConfirmedRuns {
		now.Before = slices.Insert(now.Before, 0, was.To)
		now.Before = now.Before[:min(len(now.Before), keep.MaxPlacesKept)]
	}
	another := !same && was.To != "" && m.Stage != ledger.None && d.follows(&m.Identity)
	if another {
		r.way.led = true
		r.why("the source's address leads to another place than before")
	} else if same && was.Runs == now.Runs && was.Way == now.Way && was.Sitemap == now.Sitemap && was.Doubted.IsZero() {
		return nil
	}
	return d.mem.SaveMeta(ctx, func(m *keep.Meta) {
		if m.Resolved = now; another {
			m.LeaveSource()
			m.OweSource("the source's address leads to another place than before")
		}
	})
}
