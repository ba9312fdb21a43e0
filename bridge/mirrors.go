package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/paused"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/destination"
	source "github.com/rsbridge/rsbridge/destination/feed"
	"github.com/rsbridge/rsbridge/destination/live"
	"github.com/rsbridge/rsbridge/destination/report"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// mirror is one configured destination.
type mirror struct {
	bridge *Bridge
	name   string
	cfg    Destination

	web     http.RoundTripper // to its source, with its login
	live    *live.Subscriber  // nil: it hears nothing
	report  *report.Reporter  // nil: it tells the source nothing
	opening sync.Mutex        // one attempt to open at a time

	mu    sync.Mutex               // guards the fields below
	dest  *destination.Destination // nil: it could not be opened
	fault error                    // why
	run   *jobs.Run                // under way, for progress
}

// openDestinations opens all mirrors. A failure is logged, and each run of this mirror tries
// again; the others and the sets do not wait for it.
func (b *Bridge) openDestinations(ctx context.Context) error {
	transport := b.transport()
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Destinations)) {
		m := &mirror{bridge: b, name: name, cfg: b.cfg.Destinations[name]}
		b.dests[name] = m
		m.web, m.fault = m.cfg.Login.Transport(m.cfg.Source, transport)
		if m.fault == nil {
			m.web = b.o.Telemetry.Source(name, m.web)
			m.fault = errors.New("it is not opened yet")
			m.live, m.report = m.hears(m.web), m.reports(m.web)
		}
		if _, err := m.open(ctx); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			b.log.Error("a destination cannot be opened; the rest goes on without it", "destination", name, "error", err)
		}
	}
	return nil
}

// open opens the destination once.
func (m *mirror) open(ctx context.Context) (*destination.Destination, error) {
	m.opening.Lock()
	defer m.opening.Unlock()
	if d, err := m.opened(); err == nil {
		return d, nil
	}
	if m.web == nil {
		return m.opened()
	}
	b := m.bridge
	st := b.stores[m.cfg.Store]
	d, err := (*destination.Destination)(nil), st.fault
	if err != nil {
		err = fmt.Errorf("destination %s: %w", m.name, err)
	} else {
		d, err = destination.Open(ctx, kv.Prefix(b.kv, spaces.Destination), st.sink, b.cfg.Mirror(m.name, b.cfg.TempDir()), destination.Options{
			Transport: m.web, Now: b.now, Heard: m.live.Announced, Progress: m.progress, Plan: m.plan, Logger: b.log.With("component", "destination"),
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dest, m.fault = d, err
	return d, err
}

// opened is the open destination, or why it is not.
func (m *mirror) opened() (*destination.Destination, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dest == nil {
		return nil, m.fault
	}
	return m.dest, nil
}

func (m *mirror) close() error {
	if d, err := m.opened(); err == nil && d != nil {
		return d.Close()
	}
	return nil
}

// SyncArgs are the arguments of a sync.
type SyncArgs struct {
	Full   bool `json:"full,omitempty"`    // a baseline, whatever the cursor says
	DryRun bool `json:"dry_run,omitempty"` // report the plan and its cost

	Accept string `json:"accept,omitempty"` // id of held deletions: they go

	Until time.Time `json:"until,omitzero"` // the source at this time, instead of now
}

// AuditArgs are the arguments of an audit.
type AuditArgs struct {
	Repair bool   `json:"repair,omitempty"`
	Depth  string `json:"depth,omitempty"` // inventory, store (default), origin
}

func (m *mirror) subject() string { return "destination:" + m.name }

func (m *mirror) progress(stage string, done, total int64) {
	if run := m.underWay(); run != nil {
		run.Progress(stage, done, total)
	}
}

func (m *mirror) plan(stages ...string) {
	if run := m.underWay(); run != nil {
		run.Plans(stages...)
	}
}

// underWay is the present run, nil for none.
func (m *mirror) underWay() *jobs.Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run
}

// begin decodes the arguments of a run and lets progress reach it.
func (m *mirror) begin(run *jobs.Run, args any) (end func(), err error) {
	if err := decodeArgs(run, args); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.run = run
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		m.run = nil
		m.mu.Unlock()
	}, nil
}

// skipped is the result of a run without work.
type skipped struct {
	Paused bool `json:"paused"`
}

// rests tells whether a run is of a paused destination, and nobody asked for it.
func (m *mirror) rests(ctx context.Context, run *jobs.Run) (bool, error) {
	if !unasked(run) {
		return false, nil
	}
	return m.paused(ctx)
}

// isNew tells whether no sync has ended yet.
func (m *mirror) isNew(ctx context.Context) bool {
	d, err := m.opened()
	if err != nil {
		return false
	}
	st, err := d.Status(ctx)
	return err == nil && st.LastSync == nil
}

func (m *mirror) sync(ctx context.Context, run *jobs.Run) (any, error) {
	if rests, err := m.rests(ctx, run); rests || err != nil {
		return skipped{rests}, err
	}
	var o SyncArgs
	end, err := m.begin(run, &o)
	if err != nil {
		return nil, err
	}
	defer end()
	d, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	heard := m.live.Announced()
	rep, err := d.Sync(ctx, destination.SyncOptions{Full: o.Full, DryRun: o.DryRun, Until: o.Until, Accept: o.Accept, Retry: !unasked(run), Look: run.Cause != jobs.BySchedule})
	if err != nil {
		return rep, err
	}
	if !o.DryRun {
		m.ended(ctx, d, heard, rep.InSync && o.Until.IsZero(), rep.Created+rep.Updated+rep.Deleted > 0)
	}
	if rep.Created+rep.Updated+rep.Deleted+rep.Failed+rep.Pending > 0 || rep.Mode == "baseline" {
		level, said := slog.LevelInfo, "synced"
		switch {
		case run.Cause == byNotification && rep.InSync && rep.Mode == "incremental":
			if said = "heard of changes, and applied them"; !m.bridge.o.Heard {
				level = slog.LevelDebug // as often as the source changes
			}
		case o.DryRun:
			said = "dry run of a sync: nothing was written"
		case !rep.InSync && rep.Until == nil:
			level, said = slog.LevelWarn, "a sync ended, and the mirror is not in sync"
		}
		m.bridge.log.Log(ctx, level, said, "destination", m.name, "mode", rep.Mode, "why", rep.Why, "created", rep.Created, "updated", rep.Updated,
			"deleted", rep.Deleted, "failed", rep.Failed, "pending", rep.Pending, "in_sync", rep.InSync, "seconds", rep.Seconds)
	}
	return rep, nil
}

// ended is for the end of a run over the mirror: a sync or a repair. inSync tells that it has read all that the source
// has since heard was, and moved that there were changes.
func (m *mirror) ended(ctx context.Context, d *destination.Destination, heard source.Heard, inSync, moved bool) {
	if inSync {
		m.live.Read(heard, moved)
	}
	m.report.Moved(ctx)
	m.freshen(ctx, d)
}

// refresh is a run between two syncs: the mirror tells its freshness as of now.
func (m *mirror) refresh(ctx context.Context, _ *jobs.Run) (any, error) {
	if d, err := m.opened(); err == nil { // else its syncs tell why
		m.freshen(ctx, d)
	}
	return nil, ctx.Err()
}

func (m *mirror) freshen(ctx context.Context, d *destination.Destination) {
	if err := destination.Freshen(ctx, d); err != nil && ctx.Err() == nil {
		m.bridge.log.Warn("the mirror does not tell its present freshness; that is tried again", "destination", m.name, "error", err)
	}
}

func (m *mirror) audit(ctx context.Context, run *jobs.Run) (any, error) {
	if rests, err := m.rests(ctx, run); rests || err != nil {
		return skipped{rests}, err
	}
	var o AuditArgs
	end, err := m.begin(run, &o)
	if err != nil {
		return nil, err
	}
	defer end()
	if run.Cause == jobs.BySchedule {
		o.Repair = m.cfg.Audit.Repair
	}
	d, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	heard := m.live.Announced()
	rep, err := d.Audit(ctx, destination.AuditOptions(o))
	if err != nil {
		return rep, err
	}
	if o.Repair {
		st, err := d.Status(ctx)
		m.ended(ctx, d, heard, err == nil && st.InSync, false)
	}
	level, said := slog.LevelInfo, "audited"
	if !rep.Equal {
		level, said = slog.LevelWarn, "an audit ended, and the mirror is not proven equal"
	}
	m.bridge.log.Log(ctx, level, said, "destination", m.name, "equal", rep.Equal, "missing", rep.Missing, "extra", rep.Extra,
		"different", rep.Different, "rewritten", rep.Rewritten, "repaired", rep.Repaired, "seconds", rep.Seconds)
	if rep.Repaired > 0 {
		m.bridge.log.Warn("the mirror was repaired", "destination", m.name, "repaired", rep.Repaired, "some", strings.Join(firstMended(rep), ", "))
	}
	return rep, nil
}

// firstMended names some repaired resources, for the log.
func firstMended(rep destination.AuditReport) (names []string) {
	for _, d := range rep.Mended[:min(len(rep.Mended), 5)] {
		names = append(names, d.Kind+" "+cmp.Or(d.Entity, d.Location))
	}
	return names
}

func (m *mirror) paused(ctx context.Context) (bool, error) {
	return paused.Is(ctx, m.bridge.records, paused.Destination(m.name))
}

// Pause stops the schedule of a destination, also over restarts, or resumes it. Requested
// runs still run.
func (b *Bridge) Pause(ctx context.Context, name string, on bool) error {
	if b.dests[name] == nil {
		return fmt.Errorf("destination %s: %w", name, ErrUnknown)
	}
	return paused.Put(ctx, b.records, paused.Destination(name), on)
}

// PauseSet is Pause of a set: neither schedules nor logs of its store begin a scan.
func PauseSet(ctx context.Context, b *Bridge, name string, on bool) error {
	if s := b.sets[name]; s == nil || s.removed {
		return fmt.Errorf("set %s: %w", name, ErrUnknown)
	}
	return paused.Put(ctx, b.records, paused.Set(name), on)
}
