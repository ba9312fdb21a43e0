package destination

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/ledger"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// probed is the record of a place's findings.
type probed struct {
	sink.Findings
	Server string    `json:"server,omitempty"` // the place's own name then
	At     time.Time `json:"at,omitzero"`
}

// ready loads the probe of the mirror, or probes it, and brings the ownership index to its normal
// form. Without making, a missing folder stays missing.
func (pr *prober) ready(ctx context.Context, making bool) error {
	if pr.stand.Files != nil {
		if err := pr.stand.Files.Again(pr.stand.FirstFiles(), !making); err != nil {
			return err
		}
	}
	if pr.mirror.Learner == nil {
		return pr.indexInForm(ctx)
	}
	if pr.mirror.Learned && pr.stand.SameForm(ctx) == nil {
		return nil
	}
	p, err := pr.probedOnce(ctx)
	if err != nil {
		return err
	}
	return pr.take(ctx, p)
}

// probedOnce is the probe of the mirror's store. It probes an unknown store once, even with many
// destinations at the same time.
func (pr *prober) probedOnce(ctx context.Context) (*probed, error) {
	pr.probeL.Lock()
	defer pr.probeL.Unlock()
	p, err := pr.probeRecord(ctx)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return pr.probe(ctx, nil)
	}
	if unknown := p.NormalForm.Unknown(); len(unknown) > 0 || len(p.Unanswered) > 0 {
		pr.Log.Info("the mirror's store was probed by another version of rsbridge, or was busy then, and is probed again", "rules", strings.Join(unknown, ", "), "unanswered", strings.Join(p.Unanswered, ", "))
		pr.mirror.Layout.NormalForm = p.NormalForm // of the ownership index
		return pr.probe(ctx, p)
	}
	return p, nil
}

// take makes a probe valid.
func (pr *prober) take(ctx context.Context, p *probed) error {
	if err := pr.mirror.Learner.Take(&p.Findings); err != nil {
		return err
	}
	pr.mirror.Learned = true
	return pr.indexInForm(ctx)
}

func (pr *prober) probeRecord(ctx context.Context) (*probed, error) {
	raw, err := pr.Store.Get(ctx, ledger.NameKey(ledger.KindProbe, pr.stand.Target))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &probed{}
	if json.Unmarshal(raw, p) != nil || p.Facts == nil {
		return nil, nil // probed again
	}
	return p, nil
}

// probe examines the store. old is the last probe, nil for none.
func (pr *prober) probe(ctx context.Context, old *probed) (*probed, error) {
	p := &probed{At: pr.opt.Now().UTC(), Server: pr.mirror.Learner.Named()}
	found, err := pr.mirror.Learner.Learn(ctx)
	if err != nil {
		return nil, err
	}
	p.Findings = *found
	return p, pr.saveProbe(ctx, p, old != nil)
}

// saveProbe remembers a probe. Before it replaces another one, every space of the store without a
// normal form yet gets the old one.
func (pr *prober) saveProbe(ctx context.Context, p *probed, replaces bool) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	b := pr.Store.Batch()
	defer b.Close()
	if replaces {
		prefix := append(ledger.NameKey(ledger.KindSpaceName, pr.stand.Target), 0)
		for pair, err := range pr.Store.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				return err
			}
			if len(pair.Value) != 4 {
				return ledger.ErrDamaged
			}
			k := ledger.Key(ledger.KindForm, ledger.ID(binary.BigEndian.Uint32(pair.Value)))
			if _, err := pr.Store.Get(ctx, k); errors.Is(err, kv.ErrNotFound) {
				b.Set(k, keep.FormOf(pr.mirror.Layout.NormalForm.Rules, false))
			} else if err != nil {
				return err
			}
		}
	}
	b.Set(ledger.NameKey(ledger.KindProbe, pr.stand.Target), raw)
	return b.Commit(ctx, true)
}

// indexInForm makes the ownership index of the space anew when it was made in
// another normal form than the store has now.
func (pr *prober) indexInForm(ctx context.Context) error {
	pr.SpaceLock.Lock()
	defer pr.SpaceLock.Unlock()
	err := pr.stand.SameForm(ctx)
	if !errors.Is(err, keep.ErrProbedAnew) {
		return err
	}
	k := ledger.Key(ledger.KindForm, pr.Space)
	_, err = pr.Store.Get(ctx, k)
	if errors.Is(err, kv.ErrNotFound) { // the index is in the form of the only probe there was
		return pr.setForm(ctx, k, false)
	}
	if err != nil {
		return err
	}
	pr.Log.Warn("the mirror's store keeps literals otherwise than it did: what belongs to whom is worked out again", "rules", strings.Join(pr.mirror.Layout.NormalForm.Rules, ", "))
	if err := pr.setForm(ctx, k, true); err != nil {
		return err
	}
	if err := pr.reindex(ctx); err != nil {
		return fmt.Errorf("work out again what belongs to whom: %w", err)
	}
	if err := pr.setForm(ctx, k, false); err != nil {
		return err
	}
	return pr.NoteCompare(ctx, "the mirror's store keeps literals otherwise than it did")
}

func (pr *prober) setForm(ctx context.Context, k []byte, busy bool) error {
	b := pr.Store.Batch()
	defer b.Close()
	b.Set(k, keep.FormOf(pr.mirror.Layout.NormalForm.Rules, busy))
	return b.Commit(ctx, true)
}

// reindex makes the ownership index of the space from the kept representations of all its
// destinations.
func (pr *prober) reindex(ctx context.Context) error {
	b := pr.Store.Batch()
	defer b.Close()
	for _, kind := range []byte{ledger.KindOwned, ledger.KindRewritten} {
		prefix := ledger.Key(kind, pr.Space)
		b.DeleteRange(prefix, kv.PrefixEnd(prefix))
	}
	if err := b.Commit(ctx, true); err != nil {
		return err
	}
	snap := pr.Store.Snapshot(ctx)
	defer snap.Close()
	n := int64(0)
	for m, err := range ledger.All(ctx, snap) {
		if err != nil {
			return err
		}
		if m.Space != pr.Space {
			continue
		}
		dest := m.Dest
		lay := pr.mirror.Layout
		lay.Authority = m.Authority
		if _, template, ok := bytes.Cut([]byte(m.Graph), []byte(" ")); ok && lay.PerEntity {
			lay.Template = string(template)
		}
		prefix := ledger.Key(ledger.KindBody, dest)
		for body, err := range snap.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
			if err != nil {
				return err
			}
			if n++; n%1024 == 0 {
				pr.opt.Progress("ownership", n, 0)
			}
			loc := ledger.Hash(body.Key[len(prefix):])
			raw, err := snap.Get(ctx, ledger.Key(ledger.KindResource, dest, loc))
			if errors.Is(err, kv.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			rec, err := ledger.DecodeRecord(raw)
			if err != nil {
				return err
			}
			wire, err := ledger.Unpack(body.Value)
			var ts []rdfres.Triple
			if err == nil {
				ts, err = ledger.ParseWire(wire)
			}
			if err != nil {
				pr.Log.Error("kept representation is damaged; it is fetched again when the source's list is compared", "loc", rec.Loc, "error", err)
				rec.Forget()
				b.Set(ledger.Key(ledger.KindResource, dest, loc), rec.Encode())
				continue
			}
			sts, err := lay.Statements(rec.Entity, ts)
			if err != nil {
				return err
			}
			rec.Normal = sink.DigestOf(sts)
			rec.Flags &^= ledger.FlagRewritten
			if sink.AnyRecast(sts) {
				rec.Flags |= ledger.FlagRewritten
			}
			b.Set(ledger.Key(ledger.KindResource, dest, loc), rec.Encode())
			for _, of := range sink.BySubject(sts) {
				b.Set(ledger.OwnedKey(pr.Space, of.Subject, dest, loc), of.Hashes)
			}
			if b.Size() > 4<<20 {
				if err := b.Commit(ctx, true); err != nil {
					return err
				}
			}
		}
	}
	return b.Commit(ctx, true)
}

// probePause is how long a probe stands at least: stores behind a balancer may
// name themselves differently in turn.
const probePause = 24 * time.Hour

// sawServer probes again if the store is another one, or another version, than the probed one.
func (pr *prober) sawServer(ctx context.Context) error {
	if pr.mirror.Learner == nil {
		return nil
	}
	now := pr.mirror.Learner.Named()
	p, err := pr.probeRecord(ctx)
	if err != nil || p == nil || now == "" || p.Server == now {
		return err
	}
	if p.Server == "" { // no answer was seen then
		p.Server = now
		return pr.saveProbe(ctx, p, false)
	}
	if pr.recent(p, probePause) {
		return nil
	}
	pr.Log.Info("the mirror's store names itself otherwise than when it was probed", "was", p.Server, "is", now)
	_, err = pr.probeAgain(ctx, p)
	return err
}

// recent tells whether a probe is at most so old. A probe of the future was made by a clock set
// back since.
func (pr *prober) recent(p *probed, age time.Duration) bool {
	since := pr.opt.Now().Sub(p.At)
	return since >= 0 && since < age
}

// probeAgain tells whether the store keeps literals otherwise than was known.
func (pr *prober) probeAgain(ctx context.Context, old *probed) (changed bool, err error) {
	before := pr.mirror.Layout.NormalForm.Rules
	p, err := pr.probe(ctx, old)
	if err != nil {
		return false, err
	}
	if err := pr.take(ctx, p); err != nil {
		return false, err
	}
	return !slices.Equal(before, p.NormalForm.Rules), nil
}

// unexplained takes the number of triples an audit found in another form than given, against the
// normal form: the store may have become another one.
func (pr *prober) unexplained(ctx context.Context, n int64) (changed bool, err error) {
	p, err := pr.probeRecord(ctx)
	if err != nil || p == nil || n == 0 || pr.recent(p, time.Hour) {
		return false, err
	}
	pr.Log.Info("an audit found literals rewritten in a way that the probe did not see; the store is probed again", "triples", n)
	return pr.probeAgain(ctx, p)
}
