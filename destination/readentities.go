package destination

import (
	"context"
	"errors"
	"strings"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// readEntities reads the graphs that are ours: owned by a resource or in the
// mirror, or of the form that the template gives and nobody else's. It counts others.
func (c *mirrorCompare) readEntities(ctx context.Context, add func(string, rdfres.Triple) error) error {
	d := c.d
	m := d.mirror
	if !m.Asks() {
		return c.readEntitiesOneByOne(ctx, add)
	}
	before, after, _ := strings.Cut(m.Layout.Template, "{entity}")
	named := before != "" || after != ""
	ours := map[string]bool{}
	c.others = 0
	is := func(g string) (bool, error) {
		if sink.IsOwnGraph(g) {
			return false, nil
		}
		if v, ok := ours[g]; ok {
			return v, nil
		}
		owner, err := d.mem.Store.Get(ctx, ledger.Key(ledger.KindGraph, d.mem.Space, ledger.HashOf(g)))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return false, err
		}
		v := err == nil && d.mem.OwnsGraph(owner)
		if err != nil {
			if v = named && strings.HasPrefix(g, before) && strings.HasSuffix(g, after); !v {
				if v, err = c.ghost(ctx, g); err != nil {
					return false, err
				}
			}
		}
		if !v && owner == nil {
			c.others++
		}
		if len(ours) > 100_000 {
			clear(ours)
		}
		ours[g] = v
		return v, nil
	}
	return m.ReadGraphs(ctx, is, add)
}

func (c *mirrorCompare) readEntitiesOneByOne(ctx context.Context, add func(string, rdfres.Triple) error) error {
	prefix := ledger.Key(ledger.KindGraph, c.d.mem.Space)
	for pair, err := range c.d.mem.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return err
		}
		if len(pair.Value) < 20 {
			return ledger.ErrDamaged
		}
		if !c.d.mem.OwnsGraph(pair.Value) {
			continue
		}
		g := string(pair.Value[20:])
		for t, err := range c.d.mirror.ReadGraph(ctx, g) {
			if err == nil {
				err = add(g, t)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
