package bridge

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge/backup"
	"github.com/rsbridge/rsbridge/bridge/lastruns"
	"github.com/rsbridge/rsbridge/bridge/paused"
	"github.com/rsbridge/rsbridge/bridge/retained"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/push"
)

// Status is `status --json`.
type Status struct {
	Sets         []SetStatus         `json:"sets"`
	Destinations []DestinationStatus `json:"destinations"`
	// LeftOut are faults of declarations of the API, which have no effect.
	LeftOut []Finding    `json:"left_out,omitempty"`
	Disk    Disk         `json:"disk"`
	Backup  *backup.Last `json:"backup"` // the last one; null: none is known of
	Time    time.Time    `json:"time"`
}

// BackupAt is the time of the last backup, nil for none.
func (st Status) BackupAt() *time.Time {
	if st.Backup == nil {
		return nil
	}
	return &st.Backup.At
}

// Disk is the used room, in bytes.
type Disk struct {
	Records   int64            `json:"records"`   // the log, descriptions and versions, records of mirrors
	Published int64            `json:"published"` // dumps
	Temporary int64            `json:"temporary"` // of runs under way
	Stores    map[string]int64 `json:"stores"`    // embedded ones, by name
}

// SetStatus is how a set stands.
type SetStatus struct {
	Name        string            `json:"name"`
	State       State             `json:"state"`
	Why         string            `json:"why,omitempty"` // the fault, if any
	Resources   int64             `json:"resources"`
	Sequence    uint64            `json:"sequence"`
	LastChange  *time.Time        `json:"last_change"`
	LastScan    *time.Time        `json:"last_scan"`
	NextScan    *time.Time        `json:"next_scan"`
	Paused      bool              `json:"paused"`
	NextHint    *time.Time        `json:"next_hint,omitempty"` // of the hints, if there are any
	Held        *changetrack.Held `json:"held"`
	Triples     int64             `json:"triples"` // in the graphs, at the last complete scan
	Covered     int64             `json:"covered"` // of them in at least one description
	LeftOut     int64             `json:"left_out"`
	Counted     uint64            `json:"counted"`               // sequence at the last complete scan: these counts are of then
	Unpublished *Unpublished      `json:"unpublished,omitempty"` // of the same data, in graphs of no set, at the last complete scan; null: not known
	Constructed int64             `json:"constructed,omitempty"` // triples made by a CONSTRUCT; covered and left_out are unknown then
	Failed      int64             `json:"failed"`
	Generation  uint64            `json:"generation"`
	Files       *FilesReport      `json:"files,omitempty"` // behind descriptions, at the last scan
	LastError   string            `json:"last_error"`
	Waiting     *jobs.Waiting     `json:"waiting,omitempty"` // for the next attempt of a failed request
	Address     string            `json:"address"`           // of the Capability List
	Dump        *DumpStatus       `json:"dump,omitempty"`    // the file behind the state, of a set made from dumps
	Listeners   push.Listeners    `json:"listeners"`         // of changes, at present
	Mirrors     []push.Mirror     `json:"mirrors,omitempty"` // those that report their positions

	// Retention is what is kept of the past; null for a removed set.
	Retention *retained.Retained `json:"retention,omitempty"`

	missing string // a published file
}

// DestinationStatus is how a mirror stands.
type DestinationStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Why   string `json:"why,omitempty"` // the fault, if any
	destination.Status
	// Fault is why the destination could not be opened; "": it was. Then nothing
	// else is known, and the others go on without it.
	Fault    string     `json:"fault,omitempty"`
	Source   string     `json:"source"`
	Store    string     `json:"store"`
	Graph    string     `json:"graph"` // single or per-entity
	GraphIRI string     `json:"graph_iri"`
	Paused   bool       `json:"paused"`
	NextSync *time.Time `json:"next_sync"`
	// Waiting is for the next attempt of a failed request, null while requests are answered.
	Waiting *jobs.Waiting `json:"waiting,omitempty"`
	// Live is how changes are heard of: websub, websocket, events or polling.
	Live string `json:"live"`
	// ReportKey is the public key of the mirror's reports to the source, "" if it sends none.
	ReportKey string `json:"report_key,omitempty"`
}

// Status tells how all sets and destinations stand.
func (b *Bridge) Status(ctx context.Context) (Status, error) {
	st := Status{Time: b.now().UTC()}
	var err error
	if st.Sets, err = b.SetStatuses(ctx); err != nil {
		return st, err
	}
	if st.Destinations, err = b.DestinationStatuses(ctx); err != nil {
		return st, err
	}
	st.LeftOut, _ = b.cfg.LeftOut()
	st.Disk = diskOf(b.cfg)
	if st.Backup, err = backup.LastOf(b.cfg.Folder()); err != nil {
		b.log.Warn("the status tells of no backup", "error", err)
	}
	if sized, ok := b.kv.(kv.Sized); ok {
		if st.Disk.Records, err = sized.Size(ctx); err != nil {
			return st, err
		}
	}
	return st, nil
}

// SetStatuses tells how all sets stand.
func (b *Bridge) SetStatuses(ctx context.Context) ([]SetStatus, error) {
	out := []SetStatus{}
	for _, name := range b.Sets() {
		s, err := b.SetStatus(ctx, name)
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

// DestinationStatuses tells how all mirrors stand.
func (b *Bridge) DestinationStatuses(ctx context.Context) ([]DestinationStatus, error) {
	out := []DestinationStatus{}
	for _, name := range b.Destinations() {
		d, err := b.DestinationStatus(ctx, name)
		if err != nil {
			return out, err
		}
		out = append(out, d)
	}
	removed, err := b.memory().removedDestinations(ctx)
	for _, k := range removed {
		out = append(out, statusOfRemoved(k))
	}
	return out, err
}

// statusOfRemoved is of a destination by its records alone.
func statusOfRemoved(k destination.Kept) DestinationStatus {
	return DestinationStatus{
		Name: k.Name, State: StateRemoved, Why: "it is not in the configuration any more, and its mirror is not updated: " + forgetTodo(k.Name),
		Source: k.Source, Store: k.At(), Graph: k.Graph, GraphIRI: k.GraphIRI, Status: destination.Status{Resources: k.Resources, LastSync: moment(k.LastSync)},
	}
}

func diskOf(c *Config) Disk {
	in := func(name string) int64 { return ownfile.Size(filepath.Join(c.Folder(), name)) }
	d := Disk{Records: in("kv"), Published: in("published"), Temporary: in("tmp") + in("stage"), Stores: map[string]int64{}}
	for name, s := range c.Stores {
		if s.Embedded != "" {
			d.Stores[name] = ownfile.Size(s.Embedded)
		}
	}
	return d
}

// SetStatus tells how one set stands.
func (b *Bridge) SetStatus(ctx context.Context, name string) (SetStatus, error) {
	s := b.sets[name]
	v := s.log.View(ctx)
	defer v.Close()
	seq, changed := v.Head()
	if err := v.Err(); err != nil {
		return SetStatus{}, fmt.Errorf("log of set %s: %w", name, err)
	}
	scanned, _ := v.LastScan(ctx)
	out := SetStatus{
		Name: name, Resources: v.Resources(), Sequence: seq, LastChange: moment(changed), LastScan: moment(scanned),
		NextScan: moment(b.runner.Next("scan:" + name)), NextHint: moment(b.runner.Next("hint:" + name)), Held: s.held(ctx, v.Held(ctx)), Address: s.capabilityList(ctx),
	}
	if b.pub != nil {
		out.missing = b.pub.Missing(name)
		if g, ok := b.pub.Generation(name); ok {
			out.Generation = g.Number
		}
	}
	rep, err := s.memory().report(ctx)
	if err != nil {
		return out, err
	}
	if b.forms.push != nil {
		out.Listeners = b.forms.push.Listeners(name)
		if out.Mirrors, err = b.forms.push.Mirrors(ctx, name, v); err != nil {
			return out, err
		}
	}
	if rep != nil {
		out.Triples, out.Covered, out.LeftOut, out.Constructed, out.Failed = rep.Triples, rep.Covered, rep.LeftOut, rep.Constructed, rep.Failed
		out.Counted = rep.Sequence
		out.Unpublished = s.unpublished(rep)
	}
	if rec, err := s.memory().dump(ctx); err != nil {
		return out, err
	} else if rec != nil && len(s.cfg.Dumps) > 0 {
		out.Dump = &rec.DumpStatus
		if out.LastScan == nil || rec.Looked.After(*out.LastScan) {
			out.LastScan = moment(rec.Looked)
		}
	}
	if out.Files, err = s.listed().status(ctx); err != nil {
		return out, err
	}
	if out.Paused, err = paused.Is(ctx, b.records, paused.Set(name)); err != nil {
		return out, err
	}
	last, err := lastruns.Of(ctx, b.runner, s.jobKinds(), name)
	if out.Waiting = last.Waiting; last.Failed != nil {
		out.LastError = last.Failed.Error
	}
	out.judge(out.LastScan == nil, last)
	if fault := storelog.Try(b.cfg.Stores[s.cfg.Store].PatchLog); fault != nil && (out.State == StateOK || out.State == StateRunning) {
		out.State, out.Why = StateFailing, "changes are not found at once: "+fault.Error()
	}
	b.noneBegins(ctx, &out.State, &out.Why)
	if !s.removed && err == nil {
		out.Retention, err = retained.Of(ctx, s.cfg.Retention, v, b.runner, "retain:"+name)
	}
	if s.removed {
		out.State, out.Why = StateRemoved, "it is not in the configuration any more, and stays public as it was: "+s.todo()
	}
	return out, err
}

// DestinationStatus tells how one mirror stands.
func (b *Bridge) DestinationStatus(ctx context.Context, name string) (DestinationStatus, error) {
	m := b.dests[name]
	if m == nil {
		k, err := destination.KeptAs(ctx, kv.Prefix(b.kv, spaces.Destination), name)
		if err == nil && k == nil {
			err = fmt.Errorf("destination %s: %w", name, ErrUnknown)
		}
		if err != nil {
			return DestinationStatus{}, err
		}
		return statusOfRemoved(*k), nil
	}
	source, _, _ := webguard.Hide(m.cfg.Source)
	out := DestinationStatus{
		Name: name, Source: source, Store: m.cfg.Store, Graph: m.cfg.Graph, GraphIRI: m.cfg.GraphIRI,
		NextSync: moment(m.nextSync()), Live: m.live.Way(), ReportKey: string(m.report.Key()),
	}
	d, err := m.opened()
	if err != nil {
		out.Fault = webguard.MaskedText(err.Error())
		out.LastError = out.Fault
		out.judge(lastruns.Last{})
		return out, nil
	}
	if out.Status, err = d.Status(ctx); err != nil {
		return out, err
	}
	if cut, err := lastruns.CutOff(ctx, b.runner, "sync:"+name, out.LastPoll); err != nil {
		return out, err
	} else if cut {
		out.InSync, out.Interrupted, out.BehindSeconds, out.BehindChanges = false, true, nil, nil
	}
	if out.Paused, err = m.paused(ctx); err != nil {
		return out, err
	}
	last, err := lastruns.Of(ctx, b.runner, destinationJobs, name)
	if out.Waiting = last.Waiting; last.Failed != nil {
		out.LastError = last.Failed.Error
	}
	out.judge(last)
	b.noneBegins(ctx, &out.State, &out.Why)
	return out, err
}

// Faults are the errors of unopened destinations, by name.
func (b *Bridge) Faults() map[string]error {
	out := map[string]error{}
	for name, m := range b.dests {
		if _, err := m.opened(); err != nil {
			out[name] = err
		}
	}
	return out
}

// StateFault tells why the state cannot be written, nil if it can: then no run begins.
func (b *Bridge) StateFault(ctx context.Context) error {
	if err := b.state.fault(ctx); err != nil {
		return err
	}
	nothing := b.records.Batch()
	defer nothing.Close()
	return nothing.Commit(context.WithoutCancel(ctx), false)
}

// noneBegins makes a state failing while no run can begin: the last runs, its basis, are not
// recorded then.
func (b *Bridge) noneBegins(ctx context.Context, state *State, why *string) {
	if b.holder == nil { // the state is only read
		return
	}
	if err := b.StateFault(ctx); err != nil {
		*state, *why = StateFailing, "no run can begin: "+strings.Join(strings.Fields(err.Error()), " ")
	}
}

// StoreFaults are the errors of embedded stores not usable at present, by name.
func (b *Bridge) StoreFaults() map[string]error {
	out := map[string]error{}
	for name, s := range b.stores {
		if s.embedded != nil {
			if err := s.embedded.Check(); err != nil {
				out[name] = err
			}
		}
	}
	return out
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
