// Package audit proves a mirror: the source's inventory or list against the records, and the records
// against the mirror. It stands beside the engine, and the engine repairs its findings.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/keep"
	"github.com/rsbridge/rsbridge/destination/obtain"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/internal/extsort"
)

// Feed is a source as an audit reads it.
type Feed struct {
	feed.Lists
	feed.Log
}

// Bounds are those of memory and reports.
type Bounds struct {
	Named int // differences named in a report
	Most  int // triples of one subject held in memory
}

// Audit compares source, records and mirror.
type Audit struct {
	*keep.Standing
	Engine  Engine
	Doubts  Doubts
	Feed    Feed
	Obtains *obtain.Obtainer
	Offer   *feed.Offer
	Depth   string // "inventory", "store", "origin"
	Bounds  Bounds

	place place
}

// place is the mirror's place, as it is found.
type place struct {
	foreign error  // why a repair would refuse it
	lost    string // why the mirror has to be compared, "" for a checkpoint of the last write
	unasked error  // why it cannot be asked, at depth inventory
}

// pass is one pass of an audit.
type pass struct {
	*Audit
	fix      bool // repair the mirror while comparing
	second   bool // after a repair: remaining differences are the store's own
	silently bool // findings are counted only
	told     told

	events        *extsort.Sorter
	sourceDiffers bool
	unexplained   bool // a difference without a change for the next run
	storeDiffers  bool // from the records
	found         Found
	rewritten     rewrittenOnes
}

// told is the source's part of a pass.
type told struct {
	silent error // why the source could not be asked, nil while it can
	lost   error // why its changes, without a list, do not tell all of it
	older  bool  // the source's list is, and its changes do not reach back to it
	passed int64 // resources not compared with it: changed since
	listAt time.Time
	from   feed.Cursor        // the mirror's position
	root   *feed.InventoryDoc // of the source as the audit begins, nil for none
	ahead  bool               // it has unpublished changes
	untold int64              // resources without a measure, of a source without changes
	taken  bool               // the mirror was made equal to this very list

	inventory string       // see AuditReport
	through   uint64       // of an inventory with a proof of all: its last change
	origins   atomic.Int64 // resources asked for at their first source
	unasked   atomic.Int64 // origins on hosts without permission
}

// Run audits, and with repair repairs and audits again. undiscovered is why the source was not found, nil
// with an Offer.
func (a *Audit) Run(ctx context.Context, undiscovered error, begun time.Time, repair bool) (keep.AuditReport, error) {
	rep := keep.AuditReport{Name: a.Config.Name, Depth: a.Depth, Time: begun.UTC()}
	p := &pass{Audit: a, fix: repair}
	var err error
	if err = p.withoutSource(ctx, undiscovered); err != nil {
		return rep, err
	}
	if err := a.checkpoint(ctx, repair); err != nil {
		if repair || a.Depth != "inventory" || ctx.Err() != nil {
			return rep, err
		}
		if a.place.unasked = err; errors.As(err, new(*sink.NotFileError)) {
			a.place.foreign, a.place.lost = err, err.Error()
		}
	}
	if err := p.once(ctx, &rep); err != nil {
		return rep, err
	}
	switch changed, err := a.Engine.Unexplained(ctx, p.found.Unseen); {
	case err != nil:
		return rep, err
	case changed:
		p, rep = p.again(), keep.AuditReport{Name: rep.Name, Depth: rep.Depth, Time: rep.Time}
		if err := p.once(ctx, &rep); err != nil {
			return rep, err
		}
	}
	held := p.told.silent == nil && a.SnapshotMeta().HeldDeletions != nil // the source may have back what it holds
	replaced := false                                                     // a dump of the same triples
	if repair && a.PutsWhole() {
		if replaced, err = a.Mirror.Whole.Foreign(); err != nil {
			return rep, err
		}
	}
	if repair && (held || replaced || rep.Findings()+p.found.Fixed > 0) {
		first := rep
		p.sourceDiffers = p.sourceDiffers || held
		a.Options.Plan(append([]string{"resources", "changes"}, a.stages()...)...)
		if err := p.repair(ctx); err != nil {
			return rep, fmt.Errorf("repair: %w", err)
		}
		p, rep = p.again(), keep.AuditReport{Name: first.Name, Depth: first.Depth, Time: first.Time}
		p.fix, p.second = false, true
		if err := p.once(ctx, &rep); err != nil {
			return rep, err
		}
		if rep.Repaired = max(0, first.Findings()-rep.Findings()); rep.Repaired > 0 {
			rep.Mended = first.MendedBy(&rep)
		}
	}
	rep.Bytes = a.Obtains.Fetch.Received()
	rep.Seconds = math.Round(a.Options.Now().Sub(begun).Seconds()*1000) / 1000
	return rep, p.keep(ctx, rep)
}

// again is another pass, with the knowledge of the source's silence.
func (a *pass) again() *pass {
	return &pass{Audit: a.Audit, fix: a.fix, told: told{silent: a.told.silent}}
}

// checkpoint notes another write of the mirror. A repair refuses another mirror.
func (a *Audit) checkpoint(ctx context.Context, repair bool) error {
	cp, err := a.Mirror.Checkpoint(ctx)
	m := a.SnapshotMeta()
	switch {
	case err != nil:
		return fmt.Errorf("read the checkpoint: %w", err)
	case cp != nil:
		a.place.lost = cmp.Or(a.MissingWhole(), m.OtherWrite(cp))
		if err = a.NoteCompare(ctx, a.place.lost); err == nil && a.Depth == "inventory" && !repair {
			err = a.Replaced("audit --repair writes over it")
		}
	case a.Mirror.Remarks:
		a.place.lost = keep.LostCheckpoint
		err = a.IsTheMirror(ctx)
	}
	if err == nil && a.Beside != nil && m.Files == a.Config.Files {
		there := false
		if there, err = a.IsBeside(ctx); err == nil && !there {
			a.place.lost = cmp.Or(a.place.lost, keep.LostCheckpoint)
		}
	}
	if !repair && errors.As(err, new(*keep.ForeignPlaceError)) {
		a.place.foreign, a.place.lost, err = err, cmp.Or(a.place.lost, err.Error()), nil
	}
	return err
}

// repair has the engine repair the findings.
func (a *pass) repair(ctx context.Context) error {
	if a.told.silent == nil && (a.sourceDiffers || a.found.Refetch > 0) {
		if err := a.Engine.Repair(ctx); err != nil {
			return err
		}
	}
	if a.told.silent == nil || a.found.Refetch == 0 { // else a snapshot sink is not proven
		return a.Engine.PutWhole(ctx)
	}
	return nil
}

// keep keeps the report and its consequences.
func (a *pass) keep(ctx context.Context, rep keep.AuditReport) error {
	kept := rep
	kept.Named, kept.Mended = firstNamed(kept.Named), firstNamed(kept.Mended)
	return a.SaveMeta(context.WithoutCancel(ctx), func(m *keep.Meta) {
		m.LastAudit = &kept
		if rep.Equal && rep.Depth != "inventory" {
			m.CompareMirror = ""
		}
		if rep.Equal {
			m.Recheck.Why = ""
		}
		if rep.Equal && rep.Depth == "origin" {
			m.AskedAll = rep.Time
		}
		if a.told.ahead { // as the next poll would find
			m.Unpublished, m.InSync = m.UnpublishedAt(a.told.root.Sequence, a.told.root.Time), false
		}
		if a.unexplained {
			m.Recheck.Why = "an audit found differences from the source"
		}
		if rep.Depth != "inventory" {
			m.Damage = ""
		}
		if a.storeDiffers || rep.Depth == "inventory" && a.place.lost != "" {
			m.Damage = keep.Damage(a.place.foreign)
		}
	})
}

// firstNamed are the kept differences of a report.
func firstNamed(all []keep.Difference) []keep.Difference { return all[:min(len(all), 20)] }

// stages are those of a pass.
func (a *Audit) stages() []string {
	switch {
	case a.Depth == "inventory":
		return []string{"inventory"}
	case a.Mirror.Files != nil:
		return []string{"inventory", "files"}
	}
	return []string{"inventory", "mirror", "subjects"}
}

func (a *pass) once(ctx context.Context, rep *keep.AuditReport) error {
	a.Options.Plan(a.stages()...)
	var err error
	if a.events, err = extsort.New(a.Config.TempDir, a.Config.MemoryBytes/8); err != nil {
		return err
	}
	defer a.events.Close()
	if err := a.compareSource(ctx); err != nil {
		return err
	}
	if a.Depth != "inventory" {
		c := &Comparison{Standing: a.Standing, Doubts: a.Doubts, Most: a.Bounds.Most, Fix: a.fix, Second: a.second, Alone: a.told.silent != nil, event: a.event}
		if len(a.rewritten.recast) > 0 {
			c.saw = a.rewritten.shows
		}
		if err := c.Run(ctx); err != nil {
			return err
		}
		a.found, rep.OtherGraphs = c.Found, c.Found.Others
	}
	return a.conclude(ctx, rep)
}
