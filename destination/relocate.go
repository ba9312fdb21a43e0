package destination

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// elsewhere is the error of records of a mirror in another place than the configured one.
func (d *Destination) elsewhere(ctx context.Context, graph string) error {
	spaces, err := ledger.Spaces(ctx, d.mem.Store)
	if err != nil {
		return err
	}
	k := Kept{Target: spaces[d.mem.Meta.Space].Target}
	if d.mem.Meta.Graph != graph {
		return fmt.Errorf("it has kept its mirror in %q of %s, and %q of %s is configured: give the new mirror a new name, or set the old one back", d.mem.Meta.Graph, k.At(), graph, d.stand.At())
	}
	e := &MovedError{Name: d.cfg.Name, From: k.At(), To: d.stand.At(), Store: d.to.Name()}
	if e.Store == e.To { // it is called by its place
		e.Store = "STORE"
	}
	return e
}

// MovedError comes from opening a destination with another store address than its mirror's.
type MovedError struct{ Name, From, To, Store string }

// Error names both addresses and a remedy.
func (e *MovedError) Error() string {
	return fmt.Sprintf("its mirror is at %s, and the store is configured at %s: if that is the same store or a copy of it, rsbridge move %s --to %s; else give the new mirror a new name", e.From, e.To, e.Name, e.Store)
}

// MoveReport is the report of Relocate.
type MoveReport struct {
	Name       string `json:"name"`
	From       string `json:"from"`
	To         string `json:"to"`
	Moved      bool   `json:"moved"` // false: it was there already
	Resources  int64  `json:"resources"`
	Generation uint64 `json:"generation"` // write of the common checkpoint
}

// Relocate makes another address the place of the mirror. The new store must have the checkpoint
// of the last write; the next sync compares everything in it. The destination is closed. An
// interrupted Relocate has changed nothing of effect, or all of it.
func Relocate(ctx context.Context, store kv.Store, name string, to sink.Sink, o keep.Options) (rep MoveReport, err error) {
	k, err := KeptAs(ctx, store, name)
	if err == nil && (k == nil || !k.Mirrored) {
		err = errors.New("nothing was mirrored yet: no records have to move")
	}
	if err != nil {
		return rep, fmt.Errorf("move destination %s: %w", name, err)
	}
	cfg := k.Config()
	cfg.Relocate, cfg.Files = true, ""
	d, err := Open(ctx, store, to, cfg, o)
	if err != nil {
		return rep, fmt.Errorf("move: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.takePlace(ctx, k.space); err != nil {
		return rep, fmt.Errorf("move destination %s: %w", name, err)
	}
	return MoveReport{Name: name, From: k.At(), To: d.stand.At(), Moved: k.space != d.mem.Space, Resources: k.Resources, Generation: d.mem.Meta.Generation}, nil
}

// takePlace moves the records from a space to the target's.
func (d *Destination) takePlace(ctx context.Context, from ledger.ID) error {
	if from == d.mem.Space {
		return nil
	}
	if err := d.stand.HoldsCheckpoint(ctx); err != nil {
		return err
	}
	if err := d.mem.Ledger.In(from).CopySpace(ctx, d.mem.Space); err != nil {
		return err
	}
	if err := d.mem.CrashAt("copied"); err != nil {
		return err
	}
	return d.endMove(ctx, from)
}

// endMove makes the new space valid, in one step, and removes the rest of the old one.
func (d *Destination) endMove(ctx context.Context, from ledger.ID) error {
	defer ledger.LockNumbers()()
	old := d.mem.Ledger.In(from)
	last, err := old.Alone(ctx, from)
	if err != nil {
		return err
	}
	first, err := d.mem.Ledger.Alone(ctx, d.mem.Space)
	if err != nil {
		return err
	}
	b := d.mem.Store.Batch()
	defer b.Close()
	if err := d.takeForm(ctx, b, from, !first); err != nil {
		return err
	}
	if last {
		if err := old.DropSpace(ctx, b); err != nil {
			return err
		}
	}
	err = d.mem.Commit(ctx, b, func(m *keep.Meta) { m.Space, m.CompareMirror = d.mem.Space, "the mirror has another address" })
	if err != nil || last {
		return err
	}
	return old.LeaveSpace(ctx)
}

// takeForm takes the normal form of the ownership index along. If the new space has another one,
// the next run makes the index anew.
func (d *Destination) takeForm(ctx context.Context, b kv.Batch, from ledger.ID, others bool) error {
	old, err := d.mem.Store.Get(ctx, ledger.Key(ledger.KindForm, from))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := d.mem.Store.Get(ctx, ledger.Key(ledger.KindForm, d.mem.Space))
	switch {
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return err
	case err != nil || !others:
		b.Set(ledger.Key(ledger.KindForm, d.mem.Space), old)
	case !bytes.Equal(old, now):
		b.Set(ledger.Key(ledger.KindForm, d.mem.Space), keep.FormOf(nil, true))
	}
	return nil
}
