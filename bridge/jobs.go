package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// jobs are all jobs by name: scan:SET, hint:SET, dump:SET, changedump:SET, list:SET, archive:SET,
// rebase:SET, retain:SET, forget-set:SET, move-set:SET, sync:DESTINATION, audit:DESTINATION, freshness:DESTINATION, forget-destination:DESTINATION,
// move-destination:DESTINATION, verify:state. Those of one set, and those of one destination, exclude each other.
func (b *Bridge) jobs(ctx context.Context) (out []jobs.Job) {
	out = append(out, jobs.Job{Name: verifyJob, Subject: "state", Run: b.verify})
	for _, name := range b.Sets() {
		s := b.sets[name]
		out = append(out, jobs.Job{Name: "forget-set:" + name, Subject: s.subject(), Run: s.forget})
		if s.removed {
			out = append(out, jobs.Job{Name: "move-set:" + name, Subject: s.subject(), Run: s.move})
			continue
		}
		_, published := b.pub.Generation(name)
		scans := jobs.Job{Name: "scan:" + name, Subject: s.subject(), Schedule: s.cfg.Schedule, First: !published && s.renamed() == nil, Run: s.thenAgain(s.scan)}
		if s.source != nil {
			hints := jobs.Job{Name: "hint:" + name, Subject: s.subject(), Again: true, Run: s.thenAgain(s.hint)}
			if s.cfg.Hints.Set() {
				hints.Schedule, scans.Schedule = s.cfg.Schedule, s.cfg.Hints.Full
			}
			out = append(out, hints)
		}
		out = append(out, scans)
		if s.dumps() {
			out = append(out, jobs.Job{Name: "dump:" + name, Subject: s.subject(), Schedule: s.cfg.ResourceDump.Schedule,
				Run: func(ctx context.Context, run *jobs.Run) (any, error) {
					if _, ok := b.pub.Generation(name); !ok {
						return nil, nil // nothing is published yet: the first scan makes the first dump
					}
					return nil, s.dump(ctx, run)
				}})
		}
		if s.dumpsChanges() {
			out = append(out, jobs.Job{Name: "changedump:" + name, Subject: s.subject(), Schedule: s.cfg.ChangeDump.Schedule,
				Run: func(ctx context.Context, run *jobs.Run) (any, error) {
					if _, ok := b.pub.Generation(name); !ok {
						return nil, nil // no Change List is closed yet
					}
					defer s.writing.by(run, "changedump")()
					return nil, b.pub.DumpChanges(ctx, name)
				}})
		}
		out = append(out, jobs.Job{Name: "rebase:" + name, Subject: s.subject(), Run: s.rebase})
		if s.cfg.ResourceList.Schedule != "" {
			out = append(out, jobs.Job{Name: "list:" + name, Subject: s.subject(), Schedule: s.cfg.ResourceList.Schedule,
				Run: func(ctx context.Context, run *jobs.Run) (any, error) {
					run.Progress("list", 0, 0)
					return nil, b.pub.ListResources(ctx, name)
				}})
		}
		if s.cfg.Archives.Schedule != "" {
			out = append(out, jobs.Job{Name: "archive:" + name, Subject: s.subject(), Schedule: s.cfg.Archives.Schedule,
				Run: func(ctx context.Context, run *jobs.Run) (any, error) {
					run.Progress("archive", 0, 0)
					if err := b.pub.Archive(ctx, name); err != nil {
						return nil, err
					}
					return s.retain(ctx, run)
				}})
		}
		out = append(out, jobs.Job{Name: "retain:" + name, Subject: s.subject(), Schedule: "@hourly", Run: s.retain})
	}
	for _, name := range slices.Sorted(maps.Keys(b.dests)) {
		m := b.dests[name]
		out = append(out,
			jobs.Job{Name: "sync:" + name, Subject: m.subject(), Schedule: m.cfg.Schedule, First: m.isNew(ctx), Leaves: m.leaves, Run: m.sync},
			jobs.Job{Name: "audit:" + name, Subject: m.subject(), Schedule: m.cfg.Audit.Schedule, Run: m.audit},
			jobs.Job{Name: "forget-destination:" + name, Subject: m.subject(), Run: m.wouldForget},
			jobs.Job{Name: "move-destination:" + name, Subject: m.subject(), Run: m.move})
		if every := time.Duration(m.cfg.Freshness); every > 0 {
			out = append(out, jobs.Job{Name: "freshness:" + name, Subject: m.subject(), Schedule: "@every " + every.String(), Run: m.refresh})
		}
	}
	removed, err := b.RemovedDestinations(ctx)
	if err != nil { // it was read when the bridge was opened
		b.log.Error("removed destinations cannot be read", "error", err)
	}
	for _, name := range removed {
		out = append(out, jobs.Job{Name: "forget-destination:" + name, Subject: "destination:" + name, Run: func(ctx context.Context, run *jobs.Run) (any, error) {
			return b.memory().forgetDestination(ctx, name, b.stores, run)
		}})
	}
	return out
}

// Begin queues a run of a job, to start after the call: scan, accept, rebase on a set; sync,
// audit, repair, let-go on a destination; forget-set, move-set, forget-destination,
// move-destination; verify on everything. let-go is a sync with the held deletions accepted.
// For it, and for accept of a set, Begin finds the id of the held run.
func (b *Bridge) Begin(ctx context.Context, action, name, cause string, args any) (run jobs.Run, joined bool, err error) {
	job := action + ":" + name
	switch action {
	case "scan", "accept", "rebase":
		s := b.sets[name]
		if s == nil {
			return run, false, fmt.Errorf("set %s: %w; there are: %s", name, ErrUnknown, config.NamesOf(b.sets))
		}
		if s.removed {
			return run, false, fmt.Errorf("set %s: %w: %s", name, ErrRemoved, s.todo())
		}
		if h := s.renamed(); h != nil && action != "scan" {
			return run, false, fmt.Errorf("set %s: %s; %w", name, h.Reason, ErrUnchanged)
		}
		if action == "accept" {
			accept, err := toAccept(ctx, s, args)
			if err != nil {
				return run, false, fmt.Errorf("set %s: %w", name, err)
			}
			job, args = "scan:"+name, accept
		}
		if want, ok := args.(ScanArgs); ok && action == "scan" {
			args = nil
			if len(want.Entities) > 0 || want.Hints {
				if s.source == nil {
					return run, false, fmt.Errorf("set %s is made from dumps, which are read whole: %w", name, ErrWhole)
				}
				if want.Hints && !s.cfg.Hints.Set() {
					return run, false, fmt.Errorf("set %s has no hints: set some (hints: modified, query or counts), name entities, or %w", name, ErrWhole)
				}
				if err := want.Check(); err != nil {
					return run, false, err
				}
				job = "hint:" + name
				if !want.Hints {
					if err := s.due.Keep(ctx, named.Told{Entities: want.Entities}); err != nil {
						return run, false, err
					}
					args = hintArgs{Named: true}
				}
			}
		}
	case "sync", "audit", "repair", "let-go":
		if b.dests[name] == nil {
			if k, err := destination.KeptAs(ctx, kv.Prefix(b.kv, spaces.Destination), name); err == nil && k != nil {
				return run, false, fmt.Errorf("destination %s: %w: %s", name, ErrRemoved, forgetTodo(name))
			}
			return run, false, fmt.Errorf("destination %s: %w; there are: %s", name, ErrUnknown, config.NamesOf(b.dests))
		}
		switch action {
		case "repair":
			job, args = "audit:"+name, AuditArgs{Repair: true}
		case "let-go":
			h, err := b.DestinationHeld(ctx, name, "", 0)
			if err != nil {
				return run, false, err
			}
			if err := wanted(args, h.ID); err != nil {
				return run, false, fmt.Errorf("destination %s: %w", name, err)
			}
			job, args = "sync:"+name, SyncArgs{Accept: h.ID}
		}
	case "forget-set", "move-set":
		if err := b.canChange(action, name, args); err != nil {
			return run, false, err
		}
	case "forget-destination", "move-destination":
		if err := b.memory().canChangeDestination(ctx, action, name, args); err != nil {
			return run, false, err
		}
	case "verify":
		job = verifyJob
	default:
		return run, false, fmt.Errorf("action %s: %w", action, ErrUnknown)
	}
	return b.runner.Start(job, cause, args)
}

// AcceptArgs are the arguments of accept. ID is of what was shown; "" accepts whatever is held.
type AcceptArgs struct {
	ID string `json:"id,omitempty"`
}

// toAccept is what accept of a set lets go: all that waits now.
func toAccept(ctx context.Context, s *set, args any) (accept scanArgs, err error) {
	v := s.log.View(ctx)
	defer v.Close()
	scan := v.Held(ctx)
	all := s.held(ctx, scan)
	if all == nil {
		return accept, ErrNothingHeld
	}
	if err := wanted(args, all.ID); err != nil {
		return accept, err
	}
	if scan != nil {
		accept.Accept = scan.ID
	}
	if files := s.listed().held(ctx); files != nil {
		accept.Files = files.ID
	}
	accept.Rebase = s.pending(ctx) != nil
	return accept, nil
}

// Check tells why what is held is not what is accepted.
func (o AcceptArgs) Check(held string) error {
	if o.ID != "" && o.ID != held {
		return fmt.Errorf("%.100q is not held: %w, with the id %s", o.ID, ErrOtherHeld, held)
	}
	return nil
}

// wanted is Check of the arguments of a run.
func wanted(args any, held string) error {
	o, _ := args.(AcceptArgs)
	return o.Check(held)
}

// ErrNothingHeld comes from accept when nothing of the set or destination is held.
var ErrNothingHeld = errors.New("nothing is held")

// ErrOtherHeld comes from accept with the id of something else than what is held.
var ErrOtherHeld = errors.New("something else is held now")

// Sets are the names of all sets, sorted: the configured ones, and the removed ones, still
// public.
func (b *Bridge) Sets() []string { return slices.Sorted(maps.Keys(b.sets)) }

// ConfiguredSets are the names of the configured sets, sorted.
func (b *Bridge) ConfiguredSets() []string {
	return slices.DeleteFunc(b.Sets(), func(name string) bool { return b.sets[name].removed })
}

// Destinations: see ConfiguredSets.
func (b *Bridge) Destinations() []string { return slices.Sorted(maps.Keys(b.dests)) }

// Do is Begin, waiting for the end, and reading the report: a *ScanReport for
// scan and accept, a *RebaseReport for rebase, a *SyncReport for sync and let-go, an
// *AuditReport for audit and repair. A failed or held run is an error. Ending ctx detaches;
// the run goes on.
func (b *Bridge) Do(ctx context.Context, action, name string, args, report any) error {
	run, _, err := b.Begin(ctx, action, name, "program", args)
	if err != nil {
		return err
	}
	if run, err = b.runner.Wait(ctx, run.ID); err != nil {
		return err
	}
	if run.State != jobs.Done {
		return fmt.Errorf("%s %s: %s: %s", action, name, run.State, run.Error)
	}
	return json.Unmarshal(run.Result, report)
}

// Run is one execution of a job.
type Run = jobs.Run

// The reports of a destination.
type (
	SyncReport  = destination.SyncReport
	AuditReport = destination.AuditReport
)
