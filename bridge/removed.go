package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/bridge/paused"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/bridge/storelog"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish"
)

// A set removed from the configuration stays public as last published, until it comes back,
// is forgotten, or another set takes its place (move). So the state keeps the configuration
// of each set. A removed destination has no runs any more.
//
// Forget and move of a set change records open in the log and the publisher. So their runs
// only note the change, and the next opening makes it: Reopen asks for one.

// knownKey is the key of a set's configuration, the JSON of Set.
func knownKey(set string) []byte { return []byte(knownSets + set) }

const knownSets = "known/"

// pendingKey is the key of a set's pending removal or renaming, the JSON of pendingSet.
func pendingKey(set string) []byte { return []byte(pendingSets + set) }

const pendingSets = "pending/"

// pendingSet is the change of a set at the next opening.
type pendingSet struct {
	To string `json:"to,omitempty"` // its new name; "": it is forgotten
}

// Reopen is closed after a set was forgotten or renamed: open the bridge again with its own
// configuration, as by Reload.
func (b *Bridge) Reopen() <-chan struct{} { return b.reopen.asked }

// reopening asks once for another opening.
type reopening struct {
	once  sync.Once
	asked chan struct{}
}

func (r *reopening) ask() { r.once.Do(func() { close(r.asked) }) }

// memory is the state's knowledge of sets and destinations, the removed ones included.
type memory struct {
	cfg         *Config
	log         *slog.Logger
	now         func() time.Time
	kv, records kv.Store
}

func (b *Bridge) memory() *memory { return &memory{b.cfg, b.log, b.now, b.kv, b.records} }

// note keeps a change for the next opening, and asks for one.
func (b *Bridge) note(ctx context.Context, set string, p pendingSet) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := b.memory().put(ctx, pendingKey(set), raw); err != nil {
		return fmt.Errorf("note what becomes of set %s: %w", set, err)
	}
	b.reopen.ask()
	return nil
}

// finishPending forgets and renames sets, each in one step; nothing has them open.
func (m *memory) finishPending(ctx context.Context) error {
	pending := map[string]pendingSet{}
	prefix := []byte(pendingSets)
	for pair, err := range m.records.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		var p pendingSet
		if err == nil {
			err = json.Unmarshal(pair.Value, &p)
		}
		if err != nil {
			return fmt.Errorf("what becomes of removed sets: %w", err)
		}
		pending[string(pair.Key[len(prefix):])] = p
	}
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		to := pending[name].To
		switch err := m.moveRecords(ctx, name, to); {
		case errors.Is(err, changetrack.ErrHasLog):
			m.log.Error("a set is not renamed: the other one has been scanned meanwhile", "set", name, "to", to)
			if err := m.put(ctx, pendingKey(name), nil); err != nil {
				return err
			}
		case err != nil && to == "":
			return fmt.Errorf("forget set %s: %w", name, err)
		case err != nil:
			return fmt.Errorf("move set %s to %s: %w", name, to, err)
		case to == "":
			m.log.Info("a set was forgotten", "set", name)
		default:
			m.log.Info("a set was renamed", "set", name, "to", to)
		}
	}
	return nil
}

// put writes a record, or removes it: raw is nil.
func (m *memory) put(ctx context.Context, key, raw []byte) error {
	batch := m.records.Batch()
	defer batch.Close()
	if raw == nil {
		batch.Delete(key)
	} else {
		batch.Set(key, raw)
	}
	return batch.Commit(ctx, true)
}

// keyRange is of the keys from lo, without hi.
type keyRange struct{ lo, hi []byte }

// setMemory reads and writes the records about one set in the key space of the bridge.
type setMemory struct {
	records kv.Store
	set     string
}

func (s *set) memory() setMemory { return setMemory{s.bridge.records, s.name} }

// setRecords are the records of a set in the key space of the bridge.
func setRecords(set string) (all []keyRange) {
	for _, k := range [][]byte{reportKey(set), settingsKey(set), []byte(countsInRecord + set), answerKey(set), dumpKey(set), hintKey(set), findingsKey(set), storelog.Key(set), knownKey(set), paused.Set(set)} {
		all = append(all, keyRange{k, slices.Concat(k, []byte{0})})
	}
	for _, p := range [][]byte{named.Prefix(set), contentPrefix(set)} {
		all = append(all, keyRange{p, kv.PrefixEnd(p)})
	}
	return all
}

// moveRecords renames all files and records of a set, or removes them: to is "". Files come
// first, then records in one step.
func (m *memory) moveRecords(ctx context.Context, from, to string) error {
	batch := m.kv.Batch()
	defer batch.Close()
	track, pub, own, now := kv.Prefix(m.kv, spaces.Track), kv.Prefix(m.kv, spaces.Publish), kv.Join(m.records, batch), m.now().UTC()
	var err error
	if to == "" {
		err = errors.Join(changetrack.Forget(ctx, track, batch, from), publish.Forget(ctx, pub, batch, from, now), forgetRuns(ctx, m, batch, from, append([]string{"rebase:"}, setJobs...)))
	} else {
		err = errors.Join(changetrack.Rename(ctx, track, batch, from, to), publish.Rename(ctx, pub, batch, from, to, now))
	}
	if err := errors.Join(err, moveSamples(ctx, m, batch, "set:", from, to)); err != nil {
		return err
	}
	others := setRecords(to)
	for i, r := range setRecords(from) {
		if other := others[i]; to != "" {
			own.DeleteRange(other.lo, other.hi)
			for pair, err := range m.records.Scan(ctx, r.lo, r.hi) {
				if err != nil {
					return err
				}
				own.Set(slices.Concat(other.lo, pair.Key[len(r.lo):]), pair.Value)
			}
		}
		own.DeleteRange(r.lo, r.hi)
	}
	own.Delete(pendingKey(from))
	if err := m.cfg.Files.Move(ctx, m.cfg.PublishedFolder(), from, to); err != nil {
		return fmt.Errorf("the published files of %s: %w", from, err)
	}
	return batch.Commit(ctx, true)
}

// forgetRuns drops the runs of a set or destination that is forgotten. The run of forgetting stays.
func forgetRuns(ctx context.Context, m *memory, batch kv.Batch, name string, kinds []string) (err error) {
	for _, kind := range kinds {
		err = errors.Join(err, jobs.ForgetRuns(ctx, kv.Prefix(m.kv, spaces.Jobs), batch, kind+name))
	}
	return err
}

// removedSets are the sets only in the state, with their last configuration. Sets without
// changes are left out.
func (m *memory) removedSets(ctx context.Context, tracker *changetrack.Tracker) (map[string]Set, error) {
	out := map[string]Set{}
	logs := tracker.Sets()
	prefix := []byte(knownSets)
	for pair, err := range m.records.Scan(ctx, prefix, kv.PrefixEnd(prefix)) {
		if err != nil {
			return nil, fmt.Errorf("sets of the state: %w", err)
		}
		name := string(pair.Key[len(prefix):])
		if _, configured := m.cfg.Sets[name]; configured || !slices.Contains(logs, name) {
			continue
		}
		var c Set
		if err := json.Unmarshal(pair.Value, &c); err != nil {
			return nil, fmt.Errorf("configuration of the removed set %s: %w", name, err)
		}
		l, err := tracker.Log(ctx, name)
		if err != nil {
			return nil, err
		}
		if _, published, err := publish.ReadAddresses(ctx, kv.Prefix(m.kv, spaces.Publish), name, l); err != nil {
			return nil, err
		} else if head, _ := l.Head(); published || head > 0 {
			out[name] = c
		}
	}
	return out, nil
}

// openRemoved opens the removed sets for reading, and finds the renamed ones.
func (b *Bridge) openRemoved(ctx context.Context) (removed []*set, err error) {
	all, err := b.memory().removedSets(ctx, b.tracker)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		c.Alternates = slices.DeleteFunc(c.Alternates, func(other string) bool { return b.sets[other] == nil })
		s := &set{bridge: b, name: name, cfg: c, removed: true}
		if s.log, err = b.tracker.Log(ctx, name); err != nil {
			return nil, err
		}
		removed = append(removed, s)
	}
	for _, s := range removed {
		for _, name := range b.ConfiguredSets() {
			now := b.sets[name]
			if head, _ := now.log.Head(); head == 0 && now.former == "" && s.successor == "" && now.cfg.Reads(&s.cfg) {
				now.former, s.successor = s.name, name
			}
		}
		b.log.Warn("a set is not in the configuration any more: it stays public as it was", "set", s.name, "todo", s.todo())
	}
	for _, s := range removed {
		b.sets[s.name] = s
	}
	return removed, nil
}

// todo is the advice for a removed set.
func (s *set) todo() string {
	if s.successor != "" {
		return fmt.Sprintf("rsbridge move %s %s takes its log along, rsbridge forget %s removes it", s.name, s.successor, s.name)
	}
	return fmt.Sprintf("put it back, or rsbridge forget %s", s.name)
}

// renamed is the hold of a set that seems to be a removed one with another name, nil for none.
func (s *set) renamed() *changetrack.Held {
	if s.former == "" {
		return nil
	}
	return &changetrack.Held{ID: "renamed", Configuration: true, Addresses: true, Time: s.bridge.now().UTC(),
		Reason: fmt.Sprintf("it reads the same data as the removed set %[1]s: rsbridge move %[1]s %[2]s renames that set, rsbridge forget %[1]s starts this one anew", s.former, s.name)}
}

// keepKnown keeps the configuration of the sets.
func (m *memory) keepKnown(ctx context.Context) error {
	batch := m.records.Batch()
	defer batch.Close()
	for name, c := range m.cfg.Sets {
		raw, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("keep the configuration of set %s: %w", name, err)
		}
		if old, err := m.records.Get(ctx, knownKey(name)); err == nil && bytes.Equal(old, raw) {
			continue
		}
		batch.Set(knownKey(name), raw)
	}
	if batch.Size() == 0 {
		return nil
	}
	return batch.Commit(ctx, true)
}

// removedDestinations are the destinations only in the state, and with a mirror.
func (m *memory) removedDestinations(ctx context.Context) (out []destination.Kept, err error) {
	all, err := destination.KeptIn(ctx, kv.Prefix(m.kv, spaces.Destination))
	for _, k := range all {
		if _, configured := m.cfg.Destinations[k.Name]; !configured && k.Mirrored {
			out = append(out, k)
		}
	}
	return out, err
}

// RemovedDestinations name the destinations only in the state, sorted.
func (b *Bridge) RemovedDestinations(ctx context.Context) ([]string, error) {
	all, err := b.memory().removedDestinations(ctx)
	var names []string
	for _, k := range all {
		names = append(names, k.Name)
	}
	return names, err
}

// tellRemoved logs the removed destinations.
func (m *memory) tellRemoved(ctx context.Context) error {
	all, err := m.removedDestinations(ctx)
	for _, k := range all {
		m.log.Warn("a destination is not in the configuration any more: its mirror is not updated", "destination", k.Name, "store", k.At(), "graph", k.GraphName(), "todo", forgetTodo(k.Name))
	}
	return err
}

func forgetTodo(destination string) string {
	return "put it back, or rsbridge forget " + destination
}
