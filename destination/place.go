package destination

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/internal/clip"
)

// Each run resolves the configured address anew, and its result counts. The place of earlier runs
// is a preference only: a doubtful answer is refused for a while, and never for good. A mirror led
// to another place is compared with everything there, and again on its way back.

// resolvedSource is the place behind the configured address, and the way there.
type resolvedSource struct {
	Way     feed.Way  `json:"way"`
	To      string    `json:"to"`
	Sitemap bool      `json:"sitemap,omitempty"` // To is a plain Sitemap or a feed
	Runs    int       `json:"runs,omitempty"`    // Runs counts the runs with this result, up to confirmedRuns
	Before  []string  `json:"before,omitempty"`  // Before has the confirmed places of before, the latest first
	Doubted time.Time `json:"doubted,omitzero"`  // Doubted is when the address led elsewhere for the first time since
}

const (
	confirmedRuns = 2 // that confirm a place: one answer may be wrong
	maxPlacesKept = 8
)

// resolved names the found set.
func resolved(o *feed.Offer) resolvedSource {
	return resolvedSource{Way: o.Way, To: o.Address(), Sitemap: o.Plain}
}

// doubts tells whether a place looks wrong beside the one of before: it was found by a weaker
// way, or it is a plain Sitemap, as sites have of their pages too. An unconfirmed place, a
// Sitemap and a document at the root of a site prove nothing against another one.
func (was *resolvedSource) doubts(now resolvedSource, rootConfigured bool) bool {
	switch {
	case was.Runs < confirmedRuns, was.Sitemap, was.Way == feed.ByAddress && rootConfigured:
		return false
	case now.Sitemap:
		return true
	case now.To == was.To, slices.Contains(was.Before, now.To):
		return false
	}
	return now.Way > was.Way
}

// follows tells whether records are of the configured source and set. Hidden values of fields
// count too: they may tell one source from another.
func (d *Destination) follows(m *ledger.Identity) bool {
	return m.Source == d.cfg.Source && m.Set == d.cfg.Set && m.Fields == d.secrets.Digest(m.Mark)
}

// follow makes records those of the configured source and set.
func (d *Destination) follow(m *meta) {
	m.Source, m.Set, m.Fields = d.cfg.Source, d.cfg.Set, d.secrets.Digest(m.Mark)
}

// accept refuses a doubtful offer for the moment: a site may be under repair.
func (d *Destination) accept(ctx context.Context, o *feed.Offer) error {
	m, now := d.mem.snapshotMeta(), resolved(o)
	was := &m.Resolved
	if m.Stage == ledger.None || !d.follows(&m.Identity) || !was.doubts(now, feed.IsSiteRoot(d.cfg.Source)) {
		return nil
	}
	if was.Doubted.IsZero() {
		was.Doubted = d.opt.Now().UTC()
		if err := d.mem.saveMeta(ctx, func(m *meta) { m.Resolved.Doubted = was.Doubted }); err != nil {
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
	m := d.mem.snapshotMeta()
	was, now := m.Resolved, resolved(o)
	same := now.To == was.To
	if now.Runs = 1; same {
		now.Runs = min(was.Runs+1, confirmedRuns)
	}
	now.Before = slices.DeleteFunc(slices.Clone(was.Before), func(to string) bool { return to == now.To })
	if !same && was.Runs >= confirmedRuns {
		now.Before = slices.Insert(now.Before, 0, was.To)
		now.Before = now.Before[:min(len(now.Before), maxPlacesKept)]
	}
	another := !same && was.To != "" && m.Stage != ledger.None && d.follows(&m.Identity)
	if another {
		r.why("the source's address leads to another place than before")
	} else if same && was.Runs == now.Runs && was.Way == now.Way && was.Sitemap == now.Sitemap && was.Doubted.IsZero() {
		return nil
	}
	return d.mem.saveMeta(ctx, func(m *meta) {
		if m.Resolved = now; another {
			m.leaveSource()
			m.OweSource("the source's address leads to another place than before")
		}
	})
}

// leaveSource forgets the lists of the former place. The cursor stays: for a source of changes
// alone it shows that some were lost.
func (m *meta) leaveSource() {
	m.Inventory, m.Missing, m.Rises, m.Recheck = feed.ListState{}, feed.Missing{}, false, recheck{}
}
