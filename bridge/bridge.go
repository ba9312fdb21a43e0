package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/bridge/lastruns"
	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/bridge/runlines"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/fence"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/recentlog"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/publish"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Options of Open; the zero value is sensible.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger // nil: silent
	// Command is told to other processes on the held state, with Admin.
	Command string
	// Wait is how long Open waits for a held state folder; default 10s.
	Wait time.Duration
	// Grace is how long Close lets runs under way go on; default 20s.
	Grace time.Duration
	// Heard writes a line of level info for each run by a notification, else of level debug.
	Heard bool
	// Looking is for runs without writes into stores: a missing embedded store is an empty one, and is
	// not made.
	Looking bool

	// Telemetry measures runs and requests; nil: nothing does.
	Telemetry *telemetry.Telemetry

	dry       bool     // see OpenDry
	following bool     // dry, and another process leads
	names     kv.Store // of a dry one: indexes of names, in a folder of their own
}

// HeldError names the holder of a state folder.
type HeldError = holder.HeldError

// Bridge is an opened configuration. Close it.
type Bridge struct {
	cfg     *Config
	o       Options
	log     *slog.Logger
	now     func() time.Time
	holder  *holder.Lock
	kv      kv.Store
	records kv.Store // the bridge's own
	stores  map[string]*store
	tracker *changetrack.Tracker
	sets    map[string]*set
	pub     *publish.Publisher
	forms   forms
	dests   map[string]*mirror
	runner  *jobs.Runner
	closed  bool

	answering inproc.Running // requests to documents
	again     chan struct{}
	reopen    reopening
	state     state
	behind    behind
}

// Open takes the state folder and opens everything in cfg: stores, logs,
// publications, mirrors. It finishes interrupted work after a crash. Nothing is scheduled
// and nothing is served yet. A folder held by another process gives a *HeldError. A
// destination with a fault does not stop the rest: Faults, the status and its runs tell
// the cause; each run tries again.
func Open(ctx context.Context, cfg *Config, o Options) (_ *Bridge, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := newBridge(cfg, o)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.openState(ctx); err != nil {
		return nil, err
	}
	if err := b.openAll(ctx, nil); err != nil {
		return nil, err
	}
	return b, b.openRunner(ctx)
}

func newBridge(cfg *Config, o Options) *Bridge {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = recentlog.Logger(o.Logger) // one for all bridges of a process: runs go on over a reload
	b := &Bridge{cfg: cfg, o: o, log: o.Logger, now: o.Now, stores: map[string]*store{}, sets: map[string]*set{}, dests: map[string]*mirror{}, again: make(chan struct{}), reopen: reopening{asked: make(chan struct{})}}
	if b.now == nil {
		b.now = time.Now
	}
	return b
}

// holderWait is the time for a command with the state to end.
const holderWait = 10 * time.Second

// openState takes the state folder and opens the records in it.
func (b *Bridge) openState(ctx context.Context) (err error) {
	if b.holder == nil { // a standby has it already
		if b.holder, err = holder.Take(ctx, b.cfg.Folder(), b.o.Command, cmp.Or(b.o.Wait, holderWait)); err != nil {
			return err
		}
	}
	if err := b.cfg.Vacant(); err != nil {
		return err
	}
	if b.kv, err = b.cfg.Records().Open(ctx, kv.OpenOptions{Logger: b.log, Former: lastLead(b.cfg)}); err != nil {
		return err
	}
	if err := heldByBucket(ctx, b); err != nil {
		return err
	}
	if err := spaces.Forward(ctx, b.kv, b.cfg.Folder(), b.log); err != nil {
		return err
	}
	if err := b.state.open(ctx, b); err != nil {
		return err
	}
	if err := os.RemoveAll(b.cfg.TempDir()); err != nil { // left by a crash
		return fmt.Errorf("clean the temporary folder of the state: %w", err)
	}
	if err := ownfile.MkdirAll(b.cfg.TempDir()); err != nil {
		return fmt.Errorf("make the temporary folder of the state: %w", err)
	}
	return nil
}

// openAll opens the stores, sets and destinations. It takes the open stores of before.
func (b *Bridge) openAll(ctx context.Context, before *Bridge) error {
	b.records = kv.Prefix(b.kv, spaces.Bridge)
	stores := storeOpener{cfg: b.cfg, before: &Config{}, log: b.log, dry: b.o.dry, looking: b.o.Looking, telemetry: b.o.Telemetry, hold: b.state.hold()}
	if before != nil {
		stores.before, stores.open = before.cfg, before.stores
	}
	if err := stores.all(ctx, b.stores); err != nil {
		return err
	}
	if err := b.openSets(ctx, before); err != nil {
		return err
	}
	if err := b.openDestinations(ctx); err != nil {
		return err
	}
	if err := b.memory().tellRemoved(ctx); err != nil {
		return err
	}
	if b.o.dry {
		return nil
	}
	ctx, b.behind.unwatch = context.WithCancel(context.WithoutCancel(ctx)) // ended by Close
	watchRoom(ctx, b.state.settled, fullFolders(b.cfg, b.stores), b.again)
	return b.state.files.Keep(ctx)
}

func (b *Bridge) openRunner(ctx context.Context) (err error) {
	b.runner, err = jobs.Open(ctx, kv.Prefix(b.kv, spaces.Jobs), b.jobs(ctx), jobs.Options{Now: b.o.Now, Class: lastruns.Class, Lines: runlines.Of(b.log), Around: b.o.Telemetry.Run, Following: b.o.following, Grace: cmp.Or(b.o.Grace, 20*time.Second), Logger: b.log.With("component", "jobs")})
	return err
}

// openSets opens the sets. A queue goes on over a reload: requests to the bridge before still use it.
func (b *Bridge) openSets(ctx context.Context, before *Bridge) (err error) {
	if !b.o.dry { // it removes files too
		if err := b.memory().finishPending(ctx); err != nil {
			return err
		}
	}
	b.tracker, err = changetrack.Open(ctx, kv.Prefix(b.kv, spaces.Track), changetrack.Options{
		Dir: filepath.Join(b.cfg.Folder(), "stage"), Now: b.now, Logger: b.log.With("component", "changetrack"), Names: b.cfg.Names(), Reading: b.o.dry, Following: b.o.following,
	})
	if err != nil {
		return fmt.Errorf("open the change log: %w", err)
	}
	var published []publish.SetConfig
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Sets)) {
		var queue *named.Queue
		if before != nil && before.kv == b.kv && before.sets[name] != nil {
			queue = before.sets[name].due
		}
		s, err := b.openSet(ctx, name, b.cfg.Sets[name], queue)
		if err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
		if err := s.openFiles(ctx); err != nil {
			return fmt.Errorf("files of set %s: %w", name, err)
		}
		b.sets[name] = s
		published = append(published, s.publishConfig(ctx))
	}
	removed, err := b.openRemoved(ctx)
	if err != nil {
		return err
	}
	base := b.cfg.Public.BaseURL
	for _, s := range removed {
		published = append(published, s.publishConfig(ctx))
		base = cmp.Or(base, s.capabilityBase(ctx))
	}
	if err := b.memory().keepKnown(ctx); err != nil {
		return err
	}
	if len(published) == 0 {
		if former, err := publish.HasFormer(ctx, kv.Prefix(b.kv, spaces.Publish)); err != nil || !former || base == "" {
			return err
		}
	}
	if err := allPublished(ctx, b); err != nil {
		return err
	}
	files, err := b.cfg.Files.Open(ctx, b.cfg.PublishedFolder(), b.o.dry, b.log)
	if err != nil {
		return err
	}
	files = fence.Blobs(files, b.state.hold())
	b.pub, err = publish.Open(ctx, kv.Prefix(b.kv, spaces.Publish), published, publish.Options{
		BaseURL: base, Title: b.cfg.Public.Title, Description: b.cfg.Public.Description, Publisher: b.cfg.Public.Publisher, Robots: b.cfg.Public.Robots, Dir: b.cfg.PublishedFolder(), Files: files, FilesURL: b.cfg.Files.URL(), Now: b.now, Logger: b.log.With("component", "publish"), Dry: b.o.dry, Names: b.o.names,
		Missing: func(set string) {
			if !b.o.dry {
				b.makeAgain(set, "missing files", fileJobs...)
			}
		},
		Before: func(ctx context.Context) { b.state.noteShared(ctx, b) },
		Changed: func(set string) {
			if b.forms.push != nil { // it is opened next
				b.forms.push.Changed(set)
			}
		},
		Progress: func(set, stage string, done, total int64) {
			if s := b.sets[set]; s != nil {
				s.writing.wrote(stage, done, total)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("open the publication: %w", err)
	}
	return b.forms.open(ctx, b)
}

// transport fetches over the network, but from this bridge's own base URL
// through its handler.
func (b *Bridge) transport() http.RoundTripper {
	t := plainTransport()
	if b.pub == nil || b.cfg.Public.BaseURL == "" { // the documents of removed sets are not served without an address
		return t
	}
	return inproc.OwnOrWeb{Bases: b.pub.Bases, Own: inproc.Transport{Handler: b.PublicHandler()}, Web: t}
}

func plainTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 32
	t.DisableCompression = true // lengths and hashes are of the uncoded body
	return t
}

// Start starts the schedules, follows the logs of stores, and begins the kept requests for named entities and the jobs
// for missing or damaged files. It logs the sets not published yet. After ctx has ended it starts nothing.
func (b *Bridge) Start(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	b.state.start(context.WithoutCancel(ctx), b)
	b.runner.Schedule()
	if b.forms.push != nil {
		if err := b.forms.push.Start(ctx); err != nil {
			b.log.Error("no notifications are sent", "error", err)
		}
	}
	b.behind.start(b.dests)
	b.behind.follow(context.WithoutCancel(ctx), b.sets, sampler(b)) // until Close: ctx may be of a reload, and ends with it
	for _, name := range b.ConfiguredSets() {
		if err := b.sets[name].beginDue(ctx); err != nil {
			b.log.Error("what was named is not begun again; the next full scan has it", "set", name, "error", err)
		}
		if b.pub.Lost(name) {
			b.makeAgain(name, "damaged files", "dump:", "changedump:", "list:")
		} else if b.sets[name].lacksDump() {
			b.makeAgain(name, "no Resource Dump", "dump:")
		}
		_, done := b.pub.Generation(name)
		if _, begun := b.runner.Busy("scan:" + name); !done && !begun && b.sets[name].renamed() == nil {
			next := "the first scan begins"
			if b.runner.Next("scan:"+name).IsZero() && b.runner.Next("hint:"+name).IsZero() {
				next = "the set has no schedule; rsbridge scan begins a scan"
			}
			b.log.Info("nothing is published yet: "+next, "set", name, "schedule", b.sets[name].cfg.Schedule)
		}
	}
}

// makeAgain begins the jobs of these kinds of a set.
func (b *Bridge) makeAgain(name, why string, kinds ...string) {
	for _, job := range b.runner.Jobs() {
		for _, kind := range kinds {
			if job.Name != kind+name {
				continue
			}
			if _, _, err := b.runner.Start(job.Name, why, nil); err != nil {
				b.log.Error("what is missing is not made now; the next dump does it", "set", name, "why", why, "job", job.Name, "error", err)
			}
		}
	}
}

// Close lets running jobs finish their step (at most 20 seconds), then ends them
// and closes everything. It may be called more than once.
func (b *Bridge) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	return b.closeExcept(&Bridge{})
}

// closeExcept closes everything not in use by the other bridge.
func (b *Bridge) closeExcept(other *Bridge) error {
	var errs []error
	b.behind.end()
	errs = append(errs, b.state.end(b, other))
	if b.runner != nil && b.runner != other.runner {
		errs = append(errs, b.runner.End())
	}
	for _, m := range b.dests {
		m.hangUp()
		errs = append(errs, m.close())
	}
	for _, s := range b.sets {
		if s.follower != nil {
			s.follower.Close()
		}
	}
	b.HangUp()
	if b.pub != nil {
		if b.forms.faces != nil {
			b.forms.faces.Close()
		}
		errs = append(errs, b.pub.Close())
	}
	b.answering.Wait(20 * time.Second) // they read from the stores closed next
	if b.tracker != nil {
		errs = append(errs, b.tracker.Close())
	}
	for _, s := range b.stores {
		errs = append(errs, s.closeExcept(other.stores))
	}
	if b.kv != nil && b.kv != other.kv {
		errs = append(errs, b.kv.Close())
	}
	errs = append(errs, b.state.unwatch(other.state))
	if b.holder != nil && b.holder != other.holder {
		errs = append(errs, b.holder.Release())
	}
	return errors.Join(errs...)
}

// TellAdmin notes the address of the admin API, for commands on the held state. Call it once
// the listener is open.
func (b *Bridge) TellAdmin(addr, command string) error {
	h := HeldError{PID: os.Getpid(), Command: command, Admin: addr, Since: time.Now().UTC()}
	if addr != "" {
		h.Public = b.cfg.Public.Listen
	}
	return b.holder.Tell(h)
}

// Config is the configuration given to Open.
func (b *Bridge) Config() *Config { return b.cfg }

// Runner owns the jobs: their runs, their history, their schedules.
func (b *Bridge) Runner() *jobs.Runner { return b.runner }

// Log is the change log of a set, nil when there is no such set.
func (b *Bridge) Log(name string) *changetrack.Log {
	if s := b.sets[name]; s != nil {
		return s.log
	}
	return nil
}

// Location is the public address of an entity's representation.
func (b *Bridge) Location(ctx context.Context, set, entity string) (string, error) {
	return b.pub.Location(ctx, set, entity)
}

// Destination is a mirror by its name. The error is ErrUnknown, or the cause of a failed
// opening.
func (b *Bridge) Destination(name string) (*destination.Destination, error) {
	if m := b.dests[name]; m != nil {
		return m.opened()
	}
	return nil, fmt.Errorf("destination %s: %w", name, ErrUnknown)
}

// Describe returns the description of an entity as it is in the log now, or as
// it was at a time; encoded as f.
func (b *Bridge) Describe(ctx context.Context, set, entity string, at time.Time, f rdfres.Format) ([]byte, changetrack.Version, error) {
	s := b.sets[set]
	if s == nil {
		return nil, changetrack.Version{}, fmt.Errorf("set %s: %w", set, ErrUnknown)
	}
	return s.describe(ctx, entity, at, f)
}

// DescribeMirror is Describe for an entity of a mirror. A description at an earlier time
// needs versions (keep: versions). The format "" is N-Triples.
func (b *Bridge) DescribeMirror(ctx context.Context, name, entity string, at time.Time, f rdfres.Format) ([]byte, error) {
	d, err := b.Destination(name)
	if err != nil {
		return nil, err
	}
	v, ok, err := d.Describe(ctx, entity, at)
	if err == nil && !ok {
		err = ErrUnknown
		if !at.IsZero() && b.cfg.Destinations[name].Keep != "versions" {
			err = fmt.Errorf("%w: versions of before are not kept here (keep: versions)", err)
		}
	}
	var data []byte
	if err == nil {
		data, err = codec.Encode(cmp.Or(f, rdfres.NTriples), entity, v.Triples)
	}
	if err != nil {
		return nil, fmt.Errorf("%s in destination %s: %w", entity, name, err)
	}
	return data, nil
}
