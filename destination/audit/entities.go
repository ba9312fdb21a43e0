package audit

import (
	"context"
	"errors"
	"strings"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// readEntities reads our graphs: owned by a resource or in the
// mirror, or of the template's form and nobody else's. It counts others.
func (c *Comparison) readEntities(ctx context.Context, add func(string, rdfres.Triple) error) error {
	m := c.Mirror
	if !m.Asks() {
		return c.readEntitiesOneByOne(ctx, add)
	}
	before, after, _ := strings.Cut(m.Layout.Template, "{entity}")
	named := before != "" || after != ""
	ours := map[string]bool{}
	c.Found.Others = 0
	is := func(g string) (bool, error) {
		if sink.IsOwnGraph(g) {
			return false, nil
		}
		if v, ok := ours[g]; ok {
			return v, nil
		}
		owner, err := c.Store.Get(ctx, ledger.Key(ledger.KindGraph, c.Space, ledger.HashOf(g)))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return false, err
		}
		v := err == nil && c.OwnsGraph(owner)
		if err != nil {
			if v = named && strings.HasPrefix(g, before) && strings.HasSuffix(g, after); !v {
				if v, err = c.ghost(ctx, g); err != nil {
					return false, err
				}
			}
		}
		if !v && owner == nil {
			c.Found.Others++
		}
		if len(ours) > 100_000 {
			clear(ours)
		}
		ours[g] = v
		return v, nil
	}
	return m.ReadGraphs(ctx, is, add)
}

func (c *Comparison) readEntitiesOneByOne(ctx context.Context, add func(string, rdfres.Triple) error) error {
	prefix := ledger.Key(ledger.KindGraph, c.Space)
	for pair, err := range c.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return err
		}
		if len(pair.Value) < 20 {
			return ledger.ErrDamaged
		}
		if !c.OwnsGraph(pair.Value) {
			continue
		}
		g := string(pair.Value[20:])
		for t, err := range c.Mirror.ReadGraph(ctx, g) {
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
