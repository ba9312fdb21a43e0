package destination

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
)

// freshened is the last write of the freshness, by this opening.
type freshened struct {
	at   time.Time
	told *keep.Freshness
}

// Freshen writes how fresh the mirror is into its state graph, with Config.Freshness; without it, it
// removes what an earlier run wrote. It writes at most once in that time, and nothing anew but the
// time of the writing. It never runs beside a Sync or Audit.
func Freshen(ctx context.Context, d *Destination) error {
	m := d.mem.SnapshotMeta()
	if m.Stage == ledger.None {
		return nil
	}
	if d.cfg.Freshness <= 0 {
		if !m.Freshness {
			return nil
		}
		if err := d.mirror.Freshen(ctx, nil); err != nil {
			return fmt.Errorf("remove the freshness of the mirror %s: %w", d.cfg.Name, err)
		}
		return d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Freshness = false })
	}
	now := d.opt.Now()
	if since := now.Sub(d.fresh.at); d.fresh.told != nil && since >= 0 && since < d.cfg.Freshness {
		return nil
	}
	st, err := d.Status(ctx)
	if err != nil {
		return err
	}
	f := &keep.Freshness{Before: m.EqualBefore(), InSync: st.InSync, Seconds: st.BehindSeconds, Changes: st.BehindChanges}
	if reflect.DeepEqual(f, d.fresh.told) {
		return nil
	}
	if !m.Freshness { // before the write: it is removed even if this process dies in between
		if err := d.mem.SaveMeta(ctx, func(m *keep.Meta) { m.Freshness = true }); err != nil {
			return err
		}
	}
	if err := d.mirror.Freshen(ctx, d.stand.FreshnessTriples(f, now)); err != nil {
		return fmt.Errorf("write the freshness of the mirror %s: %w", d.cfg.Name, err)
	}
	d.fresh = freshened{now, f}
	return nil
}
