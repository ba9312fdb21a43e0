package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/destination/sink"
	"github.com/rsbridge/rsbridge/destination/sink/sparqlsink"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/kv/pebblekv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/publish/inventory"
)

// This file looks at a state without writing into its folder.

// reading opens the records of a state for reading, and waits so long for a command that has it. A
// state never opened so far gives fs.ErrNotExist. With earlier, records of an earlier version are opened too.
func reading(ctx context.Context, cfg *Config, log *slog.Logger, wait time.Duration, earlier bool) (_ kv.Store, end func() error, err error) {
	if err := holder.Unfinished(cfg.Folder()); err != nil {
		return nil, nil, err
	}
	if err := cfg.Records().Missing(); err != nil {
		return nil, nil, err
	}
	unlock, err := holder.Look(ctx, cfg.Folder(), wait)
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed: a process with the state open has a lock in it too
		unlock = func() error { return nil }
	case err != nil:
		return nil, nil, err
	}
	store, err := cfg.Records().Open(ctx, kv.OpenOptions{Logger: log, ReadOnly: true})
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	end = func() error { return errors.Join(store.Close(), unlock()) }
	if err := spaces.Readable(ctx, store, cfg.Folder(), earlier); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return store, end, nil
}

// closedSink is the sink of a store for opening records. Without a transport an embedded one is asked nothing.
func closedSink(c Store, name string, log *slog.Logger, transport http.RoundTripper) (sink.Sink, error) {
	if c.IsSink() {
		return c.OpenSink()
	}
	e := c.Endpoint(name, nil, log)
	e.Transport = transport
	if c.Embedded != "" {
		e.Query, e.Update, e.GraphStore = embeddedAddresses(name)
	}
	client, err := sparql.New(e)
	return sparqlsink.Of(client), err
}

// openForReading opens the records of the destinations in cfg.
func openForReading(ctx context.Context, cfg *Config, store kv.Store, now func() time.Time, log *slog.Logger) (open map[string]*destination.Destination, faults map[string]error) {
	open, faults = map[string]*destination.Destination{}, map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Destinations)) {
		c := cfg.Destinations[name]
		to, err := closedSink(cfg.Stores[c.Store], c.Store, log, nil)
		if err == nil {
			open[name], err = destination.Open(ctx, kv.Forget(kv.Prefix(store, spaces.Destination)), to, cfg.Mirror(name, ""), destination.Options{Now: now})
		}
		if err != nil {
			delete(open, name)
			faults[name] = err
		}
	}
	return open, faults
}

// CheckRecords reads all records of the sets of cfg, and holds them against each other:
// changes, histories, states and representations with their hashes (changetrack.Log.Check), and the inventory.
// It returns the faults by "set NAME". It needs bounded memory, and writes nothing. A state
// never opened so far has no fault; a held one gives a *HeldError.
func CheckRecords(ctx context.Context, cfg *Config, log *slog.Logger) (_ map[string]error, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	out := map[string]error{}
	store, end, err := reading(ctx, cfg, log, 0, false)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	tracker, err := changetrack.Open(ctx, kv.Prefix(store, spaces.Track), changetrack.Options{Dir: filepath.Join(cfg.Folder(), "stage"), Logger: log, Reading: true})
	if err != nil {
		return nil, fmt.Errorf("read the change log: %w", err)
	}
	defer func() { err = errors.Join(err, tracker.Close()) }()
	for _, name := range tracker.Sets() {
		l, err := tracker.Log(ctx, name)
		if err == nil {
			err = l.Check(ctx)
		}
		if err == nil {
			view := l.View(ctx)
			err = publish.CheckInventory(ctx, kv.Prefix(store, spaces.Publish), name, view)
			if errors.Is(err, inventory.ErrDamaged) {
				err = fmt.Errorf("%w; rsbridge verify --read-data makes it anew", err)
			}
			view.Close()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if _, configured := cfg.Sets[name]; configured && err != nil {
			out["set "+name] = err
		}
	}
	return out, nil
}

// CheckState compares the destinations of cfg with the state, and writes nothing: a
// destination with another graph cannot be opened. It returns the faults by "destination
// NAME", and by "state" and "publish_to" the faults of its folder and of its bucket. A state never opened so far has no fault;
// a held one gives a *HeldError.
func CheckState(ctx context.Context, cfg *Config, log *slog.Logger) (_ map[string]error, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	out := map[string]error{}
	store, end, err := reading(ctx, cfg, log, 0, false)
	if fault := cfg.Files.Try(ctx); fault != nil {
		out["publish_to"] = fault
	}
	var held *HeldError
	if !errors.As(err, &held) { // its holder can write it
		if fault := ownfile.Try(cfg.Folder()); fault != nil {
			out["state"] = fault
		}
	}
	if errors.Is(err, fs.ErrNotExist) || err != nil && out["state"] != nil {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	open, faults := openForReading(ctx, cfg, store, time.Now, log)
	for _, d := range open {
		err = errors.Join(err, d.Close())
	}
	for name, fault := range faults {
		out["destination "+name] = fault
	}
	return out, errors.Join(err, findRemoved(ctx, cfg, store, out))
}

// findRemoved finds sets and destinations of the state without a configuration.
func findRemoved(ctx context.Context, cfg *Config, store kv.Store, out map[string]error) (err error) {
	b := newBridge(cfg, Options{})
	b.kv, b.records = store, kv.Prefix(store, spaces.Bridge)
	defer func() {
		if b.tracker != nil {
			err = errors.Join(err, b.tracker.Close())
		}
	}()
	if readSets(ctx, b) != nil {
		return nil // --records finds damage
	}
	removed, err := b.openRemoved(ctx)
	for _, s := range removed {
		out["set "+s.name] = fmt.Errorf("%w: %s", ErrRemoved, s.todo())
	}
	if err != nil {
		return err
	}
	destinations, err := b.memory().removedDestinations(ctx)
	for _, k := range destinations {
		out["destination "+k.Name] = fmt.Errorf("%w: %s", ErrRemoved, forgetTodo(k.Name))
	}
	return err
}

// endedBy is a store that a function closes.
type endedBy struct {
	kv.Store
	kv.Asker
	end func() error
}

func ended(s kv.Store, end func() error) kv.Store { return &endedBy{s, kv.Asker{Reader: s}, end} }

func (s *endedBy) Close() error { return s.end() }

// readSets opens the logs of all configured sets for reading; a new one is forgotten.
func readSets(ctx context.Context, b *Bridge) (err error) {
	b.tracker, err = changetrack.Open(ctx, kv.Forget(kv.Prefix(b.kv, spaces.Track)), changetrack.Options{Dir: filepath.Join(b.cfg.Folder(), "stage"), Now: b.now, Reading: true, Following: b.o.following})
	if err != nil {
		return fmt.Errorf("read the change log: %w", err)
	}
	for name, c := range b.cfg.Sets {
		s := &set{bridge: b, name: name, cfg: c}
		if s.log, err = b.tracker.Log(ctx, name); err != nil {
			return err
		}
		b.sets[name] = s
	}
	return nil
}

// readingOrNew is reading, with an empty state where there is none.
func readingOrNew(ctx context.Context, cfg *Config, b *Bridge) (store kv.Store, end func() error, err error) {
	store, end, err = reading(ctx, cfg, b.log, cmp.Or(b.o.Wait, holderWait), false)
	if errors.Is(err, fs.ErrNotExist) {
		store, err = memkv.New(), nil
		end = store.Close
	}
	return store, end, err
}

// OpenDry opens everything as Open does, for runs that only look: dry runs, Verify, requests to PublicHandler. What
// it writes into the state stays in memory, embedded stores are only read, and no file is made or removed. Other
// runs must not be begun. A held state gives a *HeldError.
func OpenDry(ctx context.Context, cfg *Config, o Options) (_ *Bridge, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "rsbridge-")
	if err != nil {
		return nil, err
	}
	dry := *cfg
	dry.KeepTempIn(temp)
	names, err := pebblekv.Open(ctx, filepath.Join(temp, "names"), pebblekv.Options{}) // as large as the sets: too much for memory
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	o.dry, o.names = true, names
	b := newBridge(&dry, o)
	store, end, err := readingOrNew(ctx, cfg, b)
	if err != nil {
		return nil, errors.Join(err, names.Close(), os.RemoveAll(temp))
	}
	b.kv = ended(memkv.Over(store), func() error { return errors.Join(names.Close(), end(), os.RemoveAll(temp)) })
	if err = b.openAll(ctx, nil); err == nil {
		err = b.openRunner(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// readEmbedded opens an embedded store for reading, until end. A missing one is an empty one elsewhere.
func readEmbedded(ctx context.Context, dir, temp string, budget embedstore.Budget) (s *embedstore.Store, end func() error, err error) {
	opened, over, done := make(chan *embedstore.Store), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- embedstore.Read(dir, func(s *embedstore.Store) error {
			opened <- s
			<-over
			return nil
		})
	}()
	select {
	case s = <-opened:
		s.SetBudget(budget)
		return s, func() error { close(over); return <-done }, nil
	case err := <-done:
		if err != nil {
			return nil, nil, err
		}
	}
	if dir, err = os.MkdirTemp(temp, "store-"); err == nil {
		s, err = embedstore.Open(dir, embedstore.Options{Context: ctx, Budget: budget})
	}
	if err != nil {
		return nil, nil, err
	}
	return s, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }, nil
}

// OpenReading opens the state for reading: Status, SetHeld, DestinationHeld, Changes, Diff, Describe and
// DescribeMirror answer, and nothing is written, so it works on a full disk. There are no next runs
// and no generation. Of a state never opened so far every set and destination is new. A held one
// gives a *HeldError, of a command after Options.Wait.
func OpenReading(ctx context.Context, cfg *Config, o Options) (_ *Bridge, err error) {
	b := newBridge(cfg, o)
	store, end, err := readingOrNew(ctx, cfg, b)
	if err != nil {
		return nil, err
	}
	b.kv, b.records = ended(store, end), kv.Prefix(store, spaces.Bridge)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.o.following, err = records.IsLed(ctx, store); err != nil {
		return nil, err
	}
	if err := readSets(ctx, b); err != nil {
		return nil, err
	}
	if _, err := b.openRemoved(ctx); err != nil {
		return nil, err
	}
	if base := cfg.Public.BaseURL; base != "" && len(b.sets) > 0 {
		var published []publish.SetConfig
		for _, name := range b.ConfiguredSets() {
			published = append(published, b.sets[name].publishConfig(ctx))
		}
		if b.pub, err = publish.Open(ctx, kv.Prefix(store, spaces.Publish), published, publish.Options{BaseURL: base, Reading: true}); err != nil {
			return nil, fmt.Errorf("read the publication: %w", err)
		}
		if b.forms.push, err = openPush(cfg, b, ""); err != nil { // a key for nothing
			return nil, err
		}
	}
	open, faults := openForReading(ctx, cfg, store, b.now, b.log)
	for name, c := range cfg.Destinations {
		m := &mirror{bridge: b, name: name, cfg: c, dest: open[name], fault: faults[name]}
		if _, err := os.Stat(mirrorKeys(cfg)); err == nil { // it is made by a bridge that reports
			m.report = m.reports(nil)
		}
		b.dests[name] = m
	}
	b.runner, err = jobs.Open(ctx, kv.Forget(kv.Prefix(store, spaces.Jobs)), nil, jobs.Options{Now: b.now, Following: b.o.following})
	return b, err
}
