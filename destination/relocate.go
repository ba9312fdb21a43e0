package destination

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// elsewhere is the error of records of a mirror in another place than the configured one.
func (d *Destination) elsewhere(ctx context.Context, graph string) error {
	spaces, err := ledger.Spaces(ctx, d.mem.store)
	if err != nil {
		return err
	}
	k := Kept{Target: spaces[d.mem.meta.Space].Target}
	if d.mem.meta.Graph != graph {
		return fmt.Errorf("it has kept its mirror in %q of %s, and %q of %s is configured: give the new mirror a new name, or set the old one back", d.mem.meta.Graph, k.At(), graph, d.stand.at())
	}
	e := &MovedError{Name: d.cfg.Name, From: k.At(), To: d.stand.at(), Store: d.to.Name()}
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
func Relocate(ctx context.Context, store kv.Store, name string, to sink.Sink, o Options) (rep MoveReport, err error) {
	k, err := KeptAs(ctx, store, name)
	if err == nil && (k == nil || !k.Mirrored) {
		err = errors.New("nothing was mirrored yet: no records have to move")
	}
	if err != nil {
		return rep, fmt.Errorf("move destination %s: %w", name, err)
	}
	cfg := k.Config()
	cfg.relocate, cfg.Files = true, ""
	d, err := Open(ctx, store, to, cfg, o)
	if err != nil {
		return rep, fmt.Errorf("move: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.takePlace(ctx, k.space); err != nil {
		return rep, fmt.Errorf("move destination %s: %w", name, err)
	}
	return MoveReport{Name: name, From: k.At(), To: d.stand.at(), Moved: k.space != d.mem.space, Resources: k.Resources, Generation: d.mem.meta.Generation}, nil
}

// takePlace moves the records from a space to the target's.
func (d *Destination) takePlace(ctx context.Context, from ledger.ID) error {
	if from == d.mem.space {
		return nil
	}
	if err := d.stand.holdsCheckpoint(ctx); err != nil {
		return err
	}
	if err := d.mem.led.In(from).CopySpace(ctx, d.mem.space); err != nil {
		return err
	}
	if err := d.mem.crashAt("copied"); err != nil {
		return err
	}
	return d.endMove(ctx, from)
}

// holdsCheckpoint refuses a store not at the last write of the records.
func (stand *standing) holdsCheckpoint(ctx context.Context) error {
	cp, err := stand.mirror.Checkpoint(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("nothing was changed: %w", err)
	case cp == nil:
		return fmt.Errorf("%s has no checkpoint of this mirror in %s; nothing was changed: copy the store with all its graphs, or give the new mirror a new name", stand.at(), sink.StateGraph)
	case cp.IsOf(stand.meta.Generation, stand.meta.Writer) && cp.Phase == stand.meta.phase():
		return nil
	}
	for slot := range byte(2) { // of an interrupted batch: it may stand there
		if _, err := stand.led.Intent(ctx, slot); err == nil && cp.Generation == fmt.Sprint(stand.meta.Generation+1) {
			return nil
		}
	}
	return fmt.Errorf("%s stands at write %s, the records at %d; nothing was changed: copy the store again while the mirror is paused", stand.at(), cp.Generation, stand.meta.Generation)
}

// endMove makes the new space valid, in one step, and removes the rest of the old one.
func (d *Destination) endMove(ctx context.Context, from ledger.ID) error {
	defer ledger.LockNumbers()()
	old := d.mem.led.In(from)
	last, err := old.Alone(ctx, from)
	if err != nil {
		return err
	}
	first, err := d.mem.led.Alone(ctx, d.mem.space)
	if err != nil {
		return err
	}
	b := d.mem.store.Batch()
	defer b.Close()
	if err := d.takeForm(ctx, b, from, !first); err != nil {
		return err
	}
	if last {
		if err := old.DropSpace(ctx, b); err != nil {
			return err
		}
	}
	err = d.mem.commit(ctx, b, func(m *meta) { m.Space, m.CompareMirror = d.mem.space, "the mirror has another address" })
	if err != nil || last {
		return err
	}
	return old.LeaveSpace(ctx)
}

// takeForm takes the normal form of the ownership index along. If the new space has another one,
// the next run makes the index anew.
func (d *Destination) takeForm(ctx context.Context, b kv.Batch, from ledger.ID, others bool) error {
	old, err := d.mem.store.Get(ctx, ledger.Key(ledger.KindForm, from))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := d.mem.store.Get(ctx, ledger.Key(ledger.KindForm, d.mem.space))
	switch {
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return err
	case err != nil || !others:
		b.Set(ledger.Key(ledger.KindForm, d.mem.space), old)
	case !bytes.Equal(old, now):
		b.Set(ledger.Key(ledger.KindForm, d.mem.space), formBytes(nil, true))
	}
	return nil
}
