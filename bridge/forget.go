package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/bridge/paused"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/publish"
)

// ForgetArgs are the arguments of forget.
type ForgetArgs = destination.ForgetOptions

// MoveArgs are the arguments of move: another name of a set, or the store of a destination.
type MoveArgs struct {
	To string `json:"to"`
}

// ForgottenSet is the report of forgetting a set. No store is touched.
type ForgottenSet struct {
	Name      string `json:"name"`
	DryRun    bool   `json:"dry_run"`
	Resources int64  `json:"resources"`
	Changes   uint64 `json:"changes"`   // in its log
	Published int64  `json:"published"` // bytes of files
	Address   string `json:"address"`   // of its Capability List: 410 Gone from then on
}

// MovedSet is the report of moving a set.
type MovedSet struct {
	Name      string `json:"name"`
	To        string `json:"to"`
	Resources int64  `json:"resources"`
	Sequence  uint64 `json:"sequence"` // of the change in the log
	Address   string `json:"address"`  // of the new Capability List; the old addresses lead to it
}

// MovedDestination is the report of moving a destination.
type MovedDestination struct {
	destination.MoveReport
	// Configure is the missing change of the configuration, or of what the API has declared; "" for none.
	Configure string `json:"configure,omitempty"`
}

// ErrConfigured comes from forgetting a configured set or destination.
var ErrConfigured = errors.New("it is in the configuration")

// isConfigured is ErrConfigured with the way out.
func isConfigured(c *Config, kind, name string) error {
	if c.Declared(kind, name) != nil {
		return fmt.Errorf("%w, declared by the API: DELETE /api/v1/%s/%s first", ErrConfigured, kind, name)
	}
	return fmt.Errorf("%w: take it out there first", ErrConfigured)
}

// ErrRemoved comes from work on a set or destination out of the configuration.
var ErrRemoved = errors.New("it is not in the configuration any more")

// ErrUnchanged comes from a refused move.
var ErrUnchanged = errors.New("nothing was changed")

func (s *set) forget(ctx context.Context, run *jobs.Run) (any, error) {
	var o ForgetArgs
	if err := decodeArgs(run, &o); err != nil {
		return nil, err
	}
	if err := s.canForget(o); err != nil { // it may have come back while this waited
		return nil, err
	}
	v := s.log.View(ctx)
	defer v.Close()
	head, _ := v.Head()
	rep := ForgottenSet{Name: s.name, DryRun: o.DryRun, Resources: v.Resources(), Changes: head, Published: ownfile.Size(filepath.Join(s.bridge.cfg.PublishedFolder(), s.name)), Address: s.capabilityList(ctx)}
	if o.DryRun {
		return rep, nil
	}
	return rep, s.bridge.note(ctx, s.name, pendingSet{})
}

func (s *set) move(ctx context.Context, run *jobs.Run) (any, error) {
	var o MoveArgs
	if err := decodeArgs(run, &o); err != nil {
		return nil, err
	}
	if err := s.bridge.canMoveSet(s.name, o.To); err != nil {
		return nil, err
	}
	from, _ := s.addresses(ctx)
	c, err := s.log.Rebase(ctx, publish.Move{From: from, To: from, FromSet: s.name, ToSet: o.To}.Note())
	if err != nil {
		return nil, err
	}
	v := s.log.View(ctx)
	defer v.Close()
	rep := MovedSet{Name: s.name, To: o.To, Resources: v.Resources(), Sequence: c.Sequence, Address: from.Base + "/" + o.To + "/capabilitylist.xml"}
	return rep, s.bridge.note(ctx, s.name, pendingSet(o))
}

// canMoveSet tells why a set cannot take the place of another one.
func (b *Bridge) canMoveSet(from, to string) error {
	switch s := b.sets[to]; {
	case from == to:
		return fmt.Errorf("move set %s: it has that name; %w", from, ErrUnchanged)
	case s == nil || s.removed:
		return fmt.Errorf("move set %s: set %s: %w in the configuration; there are: %s", from, to, ErrUnknown, cmp.Or(strings.Join(b.ConfiguredSets(), ", "), "none"))
	default:
		if head, _ := s.log.Head(); head > 0 {
			return fmt.Errorf("move set %s: set %s has a log of its own already; %w: rsbridge forget %s, or forget %s", from, to, ErrUnchanged, from, to)
		}
		for _, job := range []string{"scan:", "hint:"} {
			if run, busy := b.runner.Busy(job + to); busy {
				return fmt.Errorf("move set %s: set %s is being scanned (run %d); %w", from, to, run.ID, ErrUnchanged)
			}
		}
	}
	return nil
}

// canChange tells why a set cannot be forgotten or moved.
func (b *Bridge) canChange(action, name string, args any) error {
	s := b.sets[name]
	if s == nil && b.pub != nil {
		switch to, known := b.pub.Former(name); {
		case to != "":
			return fmt.Errorf("set %s was renamed to %s; %w", name, to, ErrUnchanged)
		case known:
			return fmt.Errorf("set %s was forgotten; %w", name, ErrUnchanged)
		}
	}
	if s == nil {
		return fmt.Errorf("set %s: %w; there are: %s", name, ErrUnknown, config.NamesOf(b.sets))
	}
	if action == "move-set" {
		if !s.removed {
			todo := ": rename it there first"
			if b.cfg.Declared(declared.Sets, name) != nil {
				todo = fmt.Sprintf(", declared by the API: DELETE /api/v1/sets/%s, then PUT its definition to /api/v1/sets/%s", name, moveTo(args))
			}
			return fmt.Errorf("set %s is in the configuration%s; %w", name, todo, ErrUnchanged)
		}
		return b.canMoveSet(name, moveTo(args))
	}
	o, _ := args.(ForgetArgs)
	return s.canForget(o)
}

func (s *set) canForget(o ForgetArgs) error {
	if !s.removed && !o.DryRun {
		return fmt.Errorf("forget set %s: %w", s.name, isConfigured(s.bridge.cfg, declared.Sets, s.name))
	}
	return nil
}

func moveTo(args any) string {
	o, _ := args.(MoveArgs)
	return o.To
}

// canChangeDestination tells why a destination cannot be forgotten or moved.
func (m *memory) canChangeDestination(ctx context.Context, action, name string, args any) error {
	kept, err := m.removedDestinations(ctx)
	if err != nil {
		return err
	}
	var removed []string
	for _, k := range kept {
		removed = append(removed, k.Name)
	}
	_, configured := m.cfg.Destinations[name]
	o, _ := args.(ForgetArgs)
	to := moveTo(args)
	_, known := m.cfg.Stores[to]
	switch {
	case !configured && !slices.Contains(removed, name):
		return fmt.Errorf("destination %s: %w; there are: %s", name, ErrUnknown, cmp.Or(strings.Join(append(slices.Sorted(maps.Keys(m.cfg.Destinations)), removed...), ", "), "none"))
	case action == "move-destination" && !configured:
		return fmt.Errorf("destination %s: %w: put it back first", name, ErrRemoved)
	case action == "move-destination" && !known:
		return fmt.Errorf("store %q: %w; there are: %s", to, ErrUnknown, config.NamesOf(m.cfg.Stores))
	case action == "forget-destination" && configured && !o.DryRun:
		return fmt.Errorf("forget destination %s: %w", name, isConfigured(m.cfg, declared.Destinations, name))
	}
	return nil
}

func decodeArgs(run *jobs.Run, into any) error {
	if len(run.Args) == 0 {
		return nil
	}
	if err := json.Unmarshal(run.Args, into); err != nil {
		return fmt.Errorf("%s: arguments: %w", run.Job, err)
	}
	return nil
}

// wouldForget reports the effect of forgetting a configured destination.
func (m *mirror) wouldForget(ctx context.Context, run *jobs.Run) (any, error) {
	var o ForgetArgs
	if err := decodeArgs(run, &o); err != nil {
		return nil, err
	}
	if !o.DryRun { // it has come back while this waited
		return nil, fmt.Errorf("forget destination %s: %w", m.name, isConfigured(m.bridge.cfg, declared.Destinations, m.name))
	}
	d, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	return d.Forget(ctx, o)
}

// forgetDestination forgets one removed from the configuration.
func (m *memory) forgetDestination(ctx context.Context, name string, stores map[string]*store, run *jobs.Run) (_ any, err error) {
	var o ForgetArgs
	if err := decodeArgs(run, &o); err != nil {
		return nil, err
	}
	records := kv.Prefix(m.kv, spaces.Destination)
	k, err := destination.KeptAs(ctx, records, name)
	if err == nil && k == nil {
		err = ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("destination %s: %w", name, err)
	}
	var rep destination.ForgetReport
	if st := storeAt(stores, k.Target); st == nil {
		rep, err = destination.ForgetRecords(ctx, records, name, o)
	} else {
		c := k.Config()
		c.TempDir, c.MemoryBytes, c.UserAgent = m.cfg.TempDir(), 32<<20, m.cfg.UserAgent
		var d *destination.Destination
		d, err = destination.Open(ctx, records, st.sink, c, destination.Options{
			Now: m.now, Progress: run.Progress, Logger: m.log.With("component", "destination"),
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		rep, err = d.Forget(ctx, o)
	}
	if err != nil {
		return rep, err
	}
	if !o.DryRun {
		m.log.Warn("a destination was forgotten", "destination", name, "resources", rep.Resources, "triples", rep.Triples, "lines", rep.Lines, "kept", o.KeepData, "remains", rep.Remains)
		batch := m.kv.Batch()
		defer batch.Close()
		kv.Join(m.records, batch).Delete(paused.Destination(name))
		if err = errors.Join(moveSamples(ctx, m, batch, "destination:", name, ""), forgetRuns(ctx, m, batch, name, append([]string{"move-destination:"}, destinationJobs...))); err == nil {
			err = batch.Commit(ctx, true)
		}
	}
	return rep, err
}

// storeAt is the open store of an address, nil for none.
func storeAt(stores map[string]*store, target string) *store {
	for _, st := range stores {
		if st.fault == nil && st.sink.Address() == target {
			return st
		}
	}
	return nil
}

// move makes another store, or another address of the store, the place of the mirror.
func (m *mirror) move(ctx context.Context, run *jobs.Run) (any, error) {
	var o MoveArgs
	if err := decodeArgs(run, &o); err != nil {
		return nil, err
	}
	b := m.bridge
	st := b.stores[o.To]
	switch {
	case st == nil:
		return nil, fmt.Errorf("store %q: %w; there are: %s", o.To, ErrUnknown, config.NamesOf(b.stores))
	case st.fault != nil:
		return nil, fmt.Errorf("store %s: %w", o.To, st.fault)
	}
	if err := m.shut(errors.New("it is being moved")); err != nil { // its records change below it
		return nil, err
	}
	rep, err := destination.Relocate(ctx, kv.Prefix(b.kv, spaces.Destination), m.name, st.sink, destination.Options{Now: b.now, Logger: b.log.With("component", "destination")})
	out := MovedDestination{MoveReport: rep}
	if _, fault := m.open(ctx); err == nil && fault != nil {
		out.Configure = fmt.Sprintf("destinations.%s.store: %s", m.name, o.To)
		if b.cfg.Declared(declared.Destinations, m.name) != nil {
			out.Configure = fmt.Sprintf("PUT its definition to /api/v1/destinations/%s, with \"store\": %q", m.name, o.To)
		}
		b.log.Warn("a destination waits for its configuration", "destination", m.name, "write", out.Configure)
	}
	if err != nil {
		return nil, err
	}
	b.log.Info("a destination was moved", "destination", m.name, "from", rep.From, "to", rep.To)
	return out, nil
}

// shut closes the destination until it is opened again.
func (m *mirror) shut(why error) error {
	m.mu.Lock()
	d := m.dest
	m.dest, m.fault = nil, why
	m.mu.Unlock()
	if d == nil {
		return nil
	}
	return d.Close()
}
