package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge/holder"
	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/bridge/sharedfiles"
	"github.com/rsbridge/rsbridge/bridge/spaces"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/internal/fence"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/publish"
)

// A state in a database may be of several processes with one configuration. One of them leads: it has the right to
// write, and does all work. The others stand by: they answer from the last publication, and lead when the leader is
// gone.

// ErrDeclared comes from opening a state whose declarations of the API came from another process: load the
// configuration again.
var ErrDeclared = errors.New("the declarations of the API have changed: the configuration must be read again")

// errUnpublished comes from opening a standby between a change and its publication.
var errUnpublished = errors.New("the leader has changes that it has not published yet")

// StandbyError is about a process that cannot stand by, while another one leads.
type StandbyError struct {
	Err error
	Why []string // parts of the configuration that are of one machine
}

func (e *StandbyError) Error() string { return e.Err.Error() }
func (e *StandbyError) Unwrap() error { return e.Err }

// Hint tells what keeps the process from standing by.
func (e *StandbyError) Hint() string {
	return "several processes share no folder; this configuration needs one for " + strings.Join(e.Why, ", ")
}

// state is what a bridge knows of its open records.
type state struct {
	settled <-chan struct{}     // see watchRoom
	led     kv.Led              // nil: they are of this process alone, or only read
	files   *sharedfiles.Keeper // of a leader
	keeping func()              // ends the regular recording of files
	watch   *records.Watch      // of a standby
	leader  string              // of a standby: who leads
	ahead   bool                // of a standby: changes without a publication are published in memory
	vacant  *vacancy            // of a standby
}

func (s *state) open(ctx context.Context, b *Bridge) error {
	if settler, ok := b.kv.(kv.Settler); ok {
		s.settled = settler.Settled()
	}
	own := kv.Prefix(b.kv, spaces.Bridge)
	if s.led, _ = b.kv.(kv.Led); s.led == nil {
		return sharedfiles.Drop(ctx, own)
	}
	if err := noteLead(ctx, b.cfg, s.led); err != nil {
		return err
	}
	s.files = sharedfiles.NewKeeper(own, b.cfg.Folder())
	return fetchFiles(ctx, own, b.cfg)
}

// leadFile has the number of the last lead by a process with this folder. Whoever has the lock of the folder knows that
// it has ended, and does not wait for its lease.
const leadFile = "lead"

// lastLead is 0 if none is known.
func lastLead(c *Config) int64 {
	raw, err := os.ReadFile(filepath.Join(c.Folder(), leadFile))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64) // 0: it is damaged
	return n
}

func noteLead(ctx context.Context, c *Config, led kv.Led) error {
	l, err := led.Leader(ctx)
	if err == nil {
		err = ownfile.Replace(filepath.Join(c.Folder(), leadFile), func(w io.Writer) error {
			_, err := fmt.Fprintln(w, l.Number)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("note the lead in the state folder: %w", err)
	}
	return nil
}

// bucketWait is how long a publication waits for the note in the bucket.
const bucketWait = 10 * time.Second

// noteShared notes a publication in the bucket, for machines that do not know of it. Without the bucket it goes on:
// the folder has the commit too.
func (s *state) noteShared(ctx context.Context, b *Bridge) {
	if s.led == nil || b.o.dry {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bucketWait)
	defer cancel()
	if err := compareBucket(ctx, b.cfg, s.led, true); err != nil {
		b.log.Error("the bucket of published files does not know of the newest publication", "error", err)
	}
}

// heldByBucket refuses a database without a publication that is noted in the bucket.
func heldByBucket(ctx context.Context, b *Bridge) error {
	led, ok := b.kv.(kv.Led)
	if !ok {
		return nil
	}
	return compareBucket(ctx, b.cfg, led, false)
}

// compareBucket gives a *records.LostError if the database lacks the commit in the bucket. Else note replaces it by the
// newest one.
func compareBucket(ctx context.Context, c *Config, led kv.Led, note bool) error {
	return c.Files.Newest(ctx, func(was kv.Point) (kv.Point, error) {
		newest, err := c.Records().Has(ctx, led, was, c.Files.NewestAt())
		if !note {
			newest = was
		}
		return newest, err
	})
}

// AcceptLoss goes on with the older state of a database that has lost commits (records.Place.AcceptLoss), also those
// noted in the bucket.
func AcceptLoss(ctx context.Context, cfg *Config, log *slog.Logger) (now kv.Point, lost []kv.Point, err error) {
	shared, err := Shared(ctx, cfg)
	if err != nil {
		return now, nil, err
	}
	return cfg.Records().AcceptLoss(ctx, kv.OpenOptions{Logger: log, Former: lastLead(cfg)}, shared)
}

// Shared is the commit noted in the bucket of published files; zero: none is.
func Shared(ctx context.Context, cfg *Config) (at kv.Point, err error) {
	err = cfg.Files.Newest(ctx, func(was kv.Point) (kv.Point, error) { at = was; return was, nil })
	return at, err
}

func fetchFiles(ctx context.Context, own kv.Reader, cfg *Config) error {
	changed, err := sharedfiles.Fetch(ctx, own, cfg.Folder())
	if err == nil && slices.Contains(changed, sharedfiles.Declared) {
		return ErrDeclared
	}
	return err
}

// hold is nil without other processes.
func (s *state) hold() fence.Hold {
	if s.led == nil {
		return nil
	}
	return s.led.Hold
}

// leadWait is how long a question about the state waits for the certainty of the lead.
const leadWait = time.Second

// errUncertain comes while the database does not tell whether this process still leads.
var errUncertain = errors.New("the database of the state does not answer: nothing is written until it does")

func (s *state) fault(ctx context.Context) error {
	if s.led == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, leadWait, errUncertain)
	defer cancel()
	return s.led.Hold(ctx)
}

// ofNext is for a bridge of the same records.
func (s *state) ofNext() state {
	next := *s
	next.keeping = nil
	return next
}

// keepEvery is when changed files of the folder are recorded: those of rsbridge token, say.
const keepEvery = 2 * time.Second

func (s *state) start(ctx context.Context, b *Bridge) {
	if s.files == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	s.keeping = func() { cancel(); <-done }
	go func() { // until end
		defer close(done)
		tick := time.NewTicker(keepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.led.Lost():
				return
			case <-tick.C:
			}
			if err := s.files.Keep(ctx); err != nil && ctx.Err() == nil {
				b.log.Error("other processes do not have all files of this one", "error", err)
			}
		}
	}()
}

// end records the files a last time, unless another bridge goes on with the records.
func (s *state) end(b *Bridge, other *Bridge) error {
	if s.keeping != nil {
		s.keeping()
	}
	if s.files == nil || b.kv == other.kv || isClosed(s.led.Lost()) || b.runner == nil {
		return nil
	}
	return s.files.Keep(context.Background())
}

func (s *state) unwatch(other state) error {
	if s.watch == nil || s.watch == other.watch {
		return nil
	}
	return s.watch.Close()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// KeepFiles records changed files of the state folder for other processes at once.
func KeepFiles(ctx context.Context, b *Bridge) error { return b.state.files.Keep(ctx) }

// Lost is closed when another process has taken over: then b can do nothing more, and is to be closed. nil: there
// are no other processes.
func Lost(b *Bridge) <-chan struct{} {
	if b.state.led == nil {
		return nil
	}
	return b.state.led.Lost()
}

// LeaderOf names the process that leads while b stands by, or led last; "" if b leads itself.
func LeaderOf(b *Bridge) string { return b.state.leader }

// vacancy is what a standby has seen at its last looks.
type vacancy struct {
	mu    sync.Mutex // guards the fields below
	since time.Time  // when nobody led first; zero: somebody leads
	fault error      // why the state cannot be followed, or led
}

func (v *vacancy) look(free bool, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !free {
		v.since = time.Time{}
	} else if v.since.IsZero() {
		v.since = now
	}
}

// tried notes how an attempt to follow or to lead ended. Another process may have been faster.
func (v *vacancy) tried(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fault = err; errors.Is(err, kv.ErrLocked) {
		v.fault = nil
	}
}

// Vacant tells since when nobody leads while b stands by, as far as it has seen: zero if somebody does. fault is why b
// cannot follow the state, or lead.
func Vacant(b *Bridge) (since time.Time, fault error) {
	v := b.state.vacant
	if v == nil {
		return since, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.since, v.fault
}

// LeaderNow tells who leads while b stands by, as a part of a sentence.
func LeaderNow(b *Bridge) string {
	if since, _ := Vacant(b); !since.IsZero() {
		return "nobody leads since " + since.UTC().Format(time.RFC3339)
	}
	return "the leader is " + b.state.leader
}

// OpenShared is Open. If another process leads, it gives a bridge that stands by (LeaderOf): what only reads is
// answered from one moment of the state, and no run can be begun. Catch it up with Newer, and replace it with Lead.
// A configuration that needs a folder of one machine gives a *StandbyError instead.
func OpenShared(ctx context.Context, cfg *Config, o Options) (_ *Bridge, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if !records.IsDatabase(cfg.State) {
		return Open(ctx, cfg, o)
	}
	if why := cfg.OfThisMachine(); len(why) > 0 {
		b, err := Open(ctx, cfg, o)
		if errors.Is(err, kv.ErrLocked) {
			err = &StandbyError{err, why}
		}
		return b, err
	}
	base := newBridge(cfg, o) // has the folder alone
	if base.holder, err = holder.Take(ctx, cfg.Folder(), o.Command, cmp.Or(o.Wait, holderWait)); err != nil {
		return nil, err
	}
	if err := cfg.Vacant(); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	if err := errors.Join(ownfile.MkdirAll(filepath.Join(cfg.Folder(), "stage")), ownfile.MkdirAll(cfg.TempDir())); err != nil {
		return nil, errors.Join(fmt.Errorf("make the folders of the state: %w", err), base.Close())
	}
	next, err := openShared(ctx, base)
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return next, base.closeExcept(next)
}

func openShared(ctx context.Context, base *Bridge) (*Bridge, error) {
	w, err := base.cfg.Records().Watch(ctx, kv.OpenOptions{Logger: base.log})
	if errors.Is(err, fs.ErrNotExist) {
		return Lead(ctx, base)
	}
	if err != nil {
		return nil, err
	}
	base.state.watch, base.state.vacant = w, &vacancy{}
	for {
		next, err := newer(ctx, base)
		if !errors.Is(err, errLeaderless) {
			return next, err
		}
		if next, err = Lead(ctx, base); !errors.Is(err, kv.ErrLocked) {
			return next, err
		}
	}
}

// errLeaderless comes instead of a standby when nobody leads.
var errLeaderless = errors.New("nobody leads")

// Free tells whether b, which stands by, may lead, and the number of the state's newest commit.
func Free(ctx context.Context, b *Bridge) (free bool, commit int64, err error) {
	l, err := b.state.watch.Leader(ctx)
	if err != nil {
		return false, 0, err
	}
	free = isFree(b.cfg, l)
	b.state.vacant.look(free, b.now())
	return free, l.Commit, nil
}

// isFree tells whether another process may lead. The caller has the lock of the folder.
func isFree(c *Config, l kv.Leader) bool { return !l.Leads || l.Number == lastLead(c) }

// Lead replaces a bridge that stands by with one that leads; Retire the former one. kv.ErrLocked: another process was
// faster.
func Lead(ctx context.Context, b *Bridge) (_ *Bridge, err error) {
	next := newBridge(b.cfg, b.o)
	next.o.dry, next.o.following, next.holder = false, false, b.holder
	defer func() {
		if v := b.state.vacant; v != nil {
			v.tried(err)
		}
		if err != nil {
			err = errors.Join(err, next.closeExcept(b))
		}
	}()
	if err := next.openState(ctx); err != nil {
		return nil, err
	}
	if err := next.openAll(ctx, nil); err != nil {
		return nil, err
	}
	return next, next.openRunner(ctx)
}

// Newer opens the newest moment of the state in place of b, which stands by; Retire b. It waits a while for the leader
// to publish what it has found.
func Newer(ctx context.Context, b *Bridge) (*Bridge, error) {
	next, err := newer(ctx, b)
	if errors.Is(err, errLeaderless) {
		return b, nil // it goes on with the moment it has
	}
	if ctx.Err() == nil {
		b.state.vacant.tried(err)
	}
	return next, err
}

// A moment between a change and its publication is passed over, for publishWait at most: with many sets there may be
// no other. Then the changes are published in memory.
const (
	publishWait = 10 * time.Second
	publishLook = 100 * time.Millisecond
)

func newer(ctx context.Context, b *Bridge) (*Bridge, error) {
	for began := time.Now(); ; {
		l, err := b.state.watch.Leader(ctx)
		if err != nil {
			return nil, err
		}
		if isFree(b.cfg, l) {
			return nil, errLeaderless
		}
		next, err := follow(ctx, b, l.Name, time.Since(began) > publishWait)
		if !errors.Is(err, errUnpublished) && !errors.Is(err, changetrack.ErrUnderWay) {
			return next, err
		}
		wait := time.NewTimer(publishLook)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, context.Cause(ctx)
		case <-wait.C:
		}
	}
}

// follow opens the present moment.
func follow(ctx context.Context, b *Bridge, leader string, ahead bool) (_ *Bridge, err error) {
	next := newBridge(b.cfg, b.o)
	next.o.dry, next.o.following, next.holder = true, true, b.holder
	next.state = state{watch: b.state.watch, vacant: b.state.vacant, leader: leader, ahead: ahead}
	defer func() {
		if err != nil {
			err = errors.Join(err, next.closeExcept(b))
		}
	}()
	now, err := b.state.watch.Now(ctx)
	if err != nil {
		return nil, err
	}
	next.kv = ended(memkv.Over(now), now.Close)
	if err := b.state.watch.Note(ctx); err != nil {
		return nil, err
	}
	if err := spaces.Readable(ctx, now, b.cfg.Folder(), false); err != nil {
		return nil, err
	}
	if err := fetchFiles(ctx, kv.Prefix(now, spaces.Bridge), b.cfg); err != nil {
		return nil, err
	}
	if err := next.openAll(ctx, nil); err != nil {
		return nil, err
	}
	return next, next.openRunner(ctx)
}

// allPublished refuses a moment with changes that the leader has not published.
func allPublished(ctx context.Context, b *Bridge) error {
	if !b.o.following || b.state.ahead {
		return nil
	}
	for name, s := range b.sets {
		g, _, err := publish.Recorded(ctx, kv.Prefix(b.kv, spaces.Publish), name)
		if err != nil {
			return err
		}
		if head, _ := s.log.Head(); head != g.Sequence {
			return fmt.Errorf("set %s: %w", name, errUnpublished)
		}
	}
	return nil
}

// onlyReading answers requests that the leader alone can answer with its name: those that write, and channels of
// notifications.
func onlyReading(next http.Handler, b *Bridge) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		_, stream := accept.Weight(r.Header["Accept"], "text/event-stream")
		if reads && !stream && r.Header.Get("Upgrade") == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "5")
		http.Error(w, "This process stands by, and only serves documents: "+LeaderNow(b)+".", http.StatusServiceUnavailable)
	})
}
