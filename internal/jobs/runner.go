package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/rsbridge/rsbridge/internal/attempts"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/settings"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Options of Open; the zero value is sensible.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger     // nil: silent
	Keep   int              // ended runs kept per job and class; default 200
	Class  func(Run) string // of an ended run: runs of one class push out none of another; nil: there is one
	Grace  time.Duration    // for runs under way at End
	Lines  func(Run) []Line // of the log about a run until now, oldest first; nil: there are none
	// Around is told of each beginning run. The run gets the returned context, and end is told of its
	// end. nil: nobody is told.
	Around func(ctx context.Context, run Run) (_ context.Context, end func(run Run, err error))
	// Following: another process has the runs. Those without an end go on there.
	Following bool
}

// Runner owns the jobs and their goroutines. Close it.
type Runner struct {
	store kv.Store
	now   func() time.Time
	log   *slog.Logger
	o     Options

	ctx     context.Context // ends when Close gives up waiting
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup // one per run
	changed chan struct{}  // there are other jobs: wakes the schedules

	former struct { // the processes before
		last  uint64    // run
		ended time.Time // at the latest
	}

	mu       sync.Mutex // guards all below; held while a record is written
	jobs     map[string]*entry
	order    []string
	active   map[uint64]*active
	subjects map[string]chan struct{} // a token per subject
	lastID   uint64
	watchers map[chan Run]struct{}
	closed   bool

	scheduled bool // the schedules go on
	door      door

	unrecorded map[uint64]Run // ended, and the state could not take it, as on a full disk: told until the process ends
}

// door is the way of runs in and out, guarded by Runner.mu.
type door struct {
	inside int           // runs under way
	shut   chan struct{} // not nil: no run begins until it is closed
	idle   chan struct{} // not nil: closed when no run is under way
}

type entry struct {
	job    Job
	timing *timing           // nil: no schedule
	again  map[string]*retry // by arguments, guarded by Runner.mu
}

// active is a run before its end.
type active struct {
	run    Run
	cancel context.CancelCauseFunc
	done   chan struct{}
	inside bool      // another run on its subject
	lines  time.Time // when its lines were recorded last
	over   func(Run, error)
}

// Open reads the history in store and takes the jobs. Runs that were under way
// when the process died are marked interrupted. Schedules begin with Schedule.
func Open(ctx context.Context, store kv.Store, jobs []Job, o Options) (*Runner, error) {
	r := &Runner{
		store: store, now: o.Now, log: o.Logger, o: o,
		jobs: map[string]*entry{}, active: map[uint64]*active{}, unrecorded: map[uint64]Run{},
		subjects: map[string]chan struct{}{}, watchers: map[chan Run]struct{}{}, changed: make(chan struct{}, 1),
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.o.Keep == 0 {
		r.o.Keep = 200
	}
	if r.o.Class == nil {
		r.o.Class = func(Run) string { return "" }
	}
	if r.o.Lines == nil {
		r.o.Lines = func(Run) []Line { return nil }
	}
	if r.o.Around == nil {
		r.o.Around = func(ctx context.Context, _ Run) (context.Context, func(Run, error)) { return ctx, nil }
	}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx)) // ended by Close
	for _, j := range jobs {
		if err := r.add(j); err != nil {
			return nil, err
		}
	}
	return r, r.recover(ctx)
}

func (r *Runner) add(j Job) error {
	if _, dup := r.jobs[j.Name]; dup {
		return fmt.Errorf("job %s is there twice", j.Name)
	}
	e := &entry{job: j, again: map[string]*retry{}}
	if j.Schedule != "" {
		var err error
		if e.timing, err = newTiming(j.Schedule); err != nil {
			return fmt.Errorf("schedule %q of job %s: %w", j.Schedule, j.Name, err)
		}
	}
	r.jobs[j.Name] = e
	r.order = append(r.order, j.Name)
	if r.subjects[j.Subject] == nil {
		r.subjects[j.Subject] = make(chan struct{}, 1)
	}
	return nil
}

// CheckSchedule tells whether s is a schedule: five fields, @hourly, @every 5m,
// with CRON_TZ=ZONE before it if wanted.
func CheckSchedule(s string) error {
	if zone, rest, _ := strings.Cut(s, " "); strings.TrimSpace(rest) == "" && strings.Contains(zone, "TZ=") {
		return errors.New("a time zone, and no schedule after it") // cron panics
	}
	parsed, err := parseSchedule(s)
	if err == nil && parsed.Next(time.Now()).IsZero() {
		return errors.New("a time that never comes")
	}
	if _, often := parsed.(cron.ConstantDelaySchedule); err == nil && often { // a second at least
		_, every, _ := strings.Cut(s, "@every ")
		if d, wrong := settings.ParseDuration(strings.TrimSpace(every)); wrong == nil && d < time.Second {
			err = fmt.Errorf("%v is less than a second", d)
		}
	}
	return err
}

// recover finds the last id, and writes down how the runs of a dead process ended.
func (r *Runner) recover(ctx context.Context) error {
	for p, err := range r.store.ScanReverse(ctx, []byte{'r'}, []byte{'s'}) {
		if err != nil {
			return fmt.Errorf("read the last run: %w", err)
		}
		r.lastID = binary.BigEndian.Uint64(p.Key[1:])
		break
	}
	if r.o.Following {
		return nil
	}
	r.former.last, r.former.ended = r.lastID, r.now().UTC()
	var open []Run
	for p, err := range r.store.Scan(ctx, []byte{'o'}, []byte{'p'}) { // open runs
		if err != nil {
			return fmt.Errorf("read the open runs: %w", err)
		}
		run, err := r.read(ctx, binary.BigEndian.Uint64(p.Key[1:]))
		if errors.Is(err, ErrUnknown) {
			continue // dropped since
		}
		if err != nil {
			return err
		}
		open = append(open, run)
	}
	for _, run := range open {
		if err := r.write(run); err != nil {
			return err
		}
	}
	return nil
}

// Start queues a run, to begin after this call. If a run of the same job with
// equal args is queued and has not begun, that one is returned and joined is
// true.
func (r *Runner) Start(job, cause string, args any) (run Run, joined bool, err error) {
	var raw json.RawMessage
	if args != nil {
		if raw, err = json.Marshal(args); err != nil {
			return Run{}, false, fmt.Errorf("arguments of job %s: %w", job, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if a.run.Job == job && a.run.State == Queued && bytes.Equal(a.run.Args, raw) && !r.closed {
			return a.run, true, nil
		}
	}
	ctx, a, err := r.queue(r.ctx, job, cause, raw)
	if err != nil {
		return Run{}, false, err
	}
	go r.execute(ctx, a, r.subjects[a.run.Subject])
	return a.run, false, nil
}

// Within runs a job inside a run on the same subject, as a run of its own, to its end. ctx is that of
// the run around it.
func (r *Runner) Within(ctx context.Context, job, cause string) (Run, error) {
	r.mu.Lock()
	ctx, a, err := r.queue(ctx, job, cause, nil)
	if err == nil {
		a.inside = true
	}
	r.mu.Unlock()
	if err != nil {
		return Run{}, err
	}
	r.execute(ctx, a, make(chan struct{}, 1))
	return a.run, nil
}

// queue records a run, for execute. The caller holds r.mu.
func (r *Runner) queue(ctx context.Context, job, cause string, args json.RawMessage) (context.Context, *active, error) {
	e := r.jobs[job]
	if e == nil {
		return nil, nil, fmt.Errorf("job %s: %w", job, ErrUnknown)
	}
	if r.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &active{cancel: cancel, done: make(chan struct{}), run: Run{
		ID: r.lastID + 1, Job: job, Subject: e.job.Subject, Cause: cause, Args: args,
		State: Queued, Queued: r.now().UTC(),
	}}
	if err := r.write(a.run); err != nil {
		cancel(nil)
		return nil, nil, err
	}
	r.lastID++
	if cause == BySchedule {
		r.markBegun(e)
	}
	r.active[a.run.ID] = a
	r.tell(a.run)
	r.wg.Add(1)
	return ctx, a, nil
}

// execute waits for the subject, runs the job and records the end.
func (r *Runner) execute(ctx context.Context, a *active, subject chan struct{}) {
	defer r.wg.Done()
	defer a.cancel(nil)
	var result any
	var err error
	select {
	case subject <- struct{}{}:
		result, err = r.work(ctx, a)
		<-subject
	case <-ctx.Done():
		err = ctx.Err()
	}
	state := Done
	if err != nil {
		state, err = ended(ctx, err)
	}
	r.mu.Lock()
	if a.run.Cause == BySchedule { // before the end, which is synced: a killed process repeats no run that has ended
		r.markEnded(a.run.Job, state == Interrupted)
	}
	r.mu.Unlock()
	r.update(a, func(run *Run) {
		if result != nil {
			if raw, jerr := json.Marshal(result); jerr == nil {
				run.Result = raw
			} else if err == nil {
				state, err = Failed, fmt.Errorf("result of job %s: %w", run.Job, jerr)
			}
		}
		run.Ended, run.State, run.Waiting = r.now().UTC(), state, nil
		run.leave(run.Ended)
		if err != nil {
			run.Error = webguard.MaskedText(err.Error())
			var u interface{ Unreachable() bool }
			run.Unreachable = errors.As(err, &u) && u.Unreachable()
		}
	}, true)
	if a.over != nil {
		a.over(a.run, err)
	}
	switch state {
	case Failed:
		r.log.Error("run failed", "job", a.run.Job, "run", a.run.ID, "error", err)
	case Interrupted:
		r.log.Warn("a run was stopped before its end; what it finished stays, and its next run does the rest", "job", a.run.Job, "run", a.run.ID)
	}
	r.mu.Lock()
	lerr := r.keepLines(a.run)
	delete(r.active, a.run.ID)
	r.retryAfter(a.run)
	terr := r.trim(a.run.Job)
	r.mu.Unlock()
	if lerr != nil {
		r.log.Warn("the lines of a run are not kept", "job", a.run.Job, "run", a.run.ID, "error", lerr)
	}
	if terr != nil {
		r.log.Error("old runs not dropped", "job", a.run.Job, "error", terr)
	}
	close(a.done)
}

// work runs the job of a run in its turn.
func (r *Runner) work(ctx context.Context, a *active) (any, error) {
	job, err := r.enter(ctx, a.run.Job, a.inside)
	if err != nil {
		return nil, err
	}
	defer r.leave()
	r.update(a, func(run *Run) { run.State, run.Started = Running, r.now().UTC() }, true)
	if job.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, job.Timeout, fmt.Errorf("the run took longer than its timeout of %v", job.Timeout))
		defer stop()
	}
	ctx, a.over = r.o.Around(ctx, a.run)
	own := a.run
	own.progress = func(stage string, done, total int64) {
		stage = webguard.MaskedText(stage)
		r.update(a, func(run *Run) {
			run.enter(stage, r.now().UTC())
			run.Done, run.Total = done, total
		}, false)
	}
	own.plan = func(stages []string) { r.update(a, func(run *Run) { run.plans(stages, r.now().UTC()) }, false) }
	ctx = attempts.With(ctx, func(f attempts.Failed) {
		r.update(a, func(run *Run) {
			if run.Waiting = nil; f.Attempt > 0 {
				run.Waiting = &Waiting{f.Attempt, f.At.UTC(), webguard.MaskedText(f.Why)}
			}
		}, false)
	})
	result, err := guarded(ctx, job, &own)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return result, err
}

// ended is the state of a run that came to an error, with its message: the one who ended
// its context, and not only that somebody did. The job may name what it gave up instead.
func ended(ctx context.Context, err error) (string, error) {
	state, cause := Failed, context.Cause(ctx)
	switch {
	case ctx.Err() == nil:
		if errors.Is(err, context.Canceled) {
			state = Cancelled
		}
		return state, err
	case errors.Is(cause, errStopped):
		state = Interrupted
	default:
		state = Cancelled
	}
	if !errors.Is(err, context.Canceled) {
		return state, fmt.Errorf("%w: %w", cause, err)
	}
	return state, cause
}

// guarded turns a panic into an error.
func guarded(ctx context.Context, job Job, run *Run) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("job %s %w: %v\n%s", job.Name, ErrPanicked, p, debug.Stack())
		}
	}()
	return job.Run(ctx, run)
}

const maxUnrecorded = 1000

// update changes a run, tells the watchers, and records it when asked to. Now and then it records its lines.
func (r *Runner) update(a *active, change func(*Run), record bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&a.run)
	if record {
		if err := r.write(a.run); err != nil {
			r.log.Error("run not recorded", "run", a.run.ID, "error", err)
			if a.run.Over() && len(r.unrecorded) < maxUnrecorded {
				r.unrecorded[a.run.ID] = a.run
			}
		}
	} else if now := r.now(); now.Sub(a.lines) >= linesEvery {
		a.lines = now
		_ = r.keepLines(a.run) // the end tries again, and tells
	}
	r.tell(a.run)
}

func (r *Runner) tell(run Run) {
	for w := range r.watchers {
		select {
		case w <- run:
		default:
			if run.Over() { // never lose an end: make room
				select {
				case <-w:
				default:
				}
				select {
				case w <- run:
				default:
				}
			}
		}
	}
}

// Busy returns the run of this job under way or queued.
func (r *Runner) Busy(job string) (Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if a.run.Job == job {
			return a.run, true
		}
	}
	return Run{}, false
}

// Active returns the runs under way and the queued ones, in the order of their requests.
func (r *Runner) Active() (out []Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		out = append(out, a.run)
	}
	slices.SortFunc(out, func(a, b Run) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Waits tells whether a run of this job is queued.
func (r *Runner) Waits(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if a.run.Job == job && a.run.State == Queued {
			return true
		}
	}
	return false
}

// Wait waits for the end of a run; ending ctx detaches, it does not cancel.
func (r *Runner) Wait(ctx context.Context, id uint64) (Run, error) {
	r.mu.Lock()
	a := r.active[id]
	r.mu.Unlock()
	if a != nil {
		select {
		case <-a.done:
		case <-ctx.Done():
			return Run{}, ctx.Err()
		}
	}
	return r.Get(ctx, id)
}

// Cancel ends the context of a run queued or under way.
func (r *Runner) Cancel(id uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.active[id]
	if a == nil {
		return fmt.Errorf("run %d is not under way: %w", id, ErrUnknown)
	}
	a.cancel(errCancelled)
	return nil
}

// Get returns a run.
func (r *Runner) Get(ctx context.Context, id uint64) (Run, error) {
	r.mu.Lock()
	a := r.active[id]
	if a != nil {
		run := a.run
		r.mu.Unlock()
		return run, nil
	}
	run, ok := r.unrecorded[id]
	r.mu.Unlock()
	if ok {
		return run, nil
	}
	return r.read(ctx, id)
}

// Runs yields runs, newest first; job "" is all of them.
func (r *Runner) Runs(ctx context.Context, job string) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		lo, hi := []byte{'r'}, []byte{'s'}
		if job != "" {
			lo = append([]byte{'j'}, job+"\x00"...)
			hi = kv.PrefixEnd(lo)
		}
		for p, err := range r.store.ScanReverse(ctx, lo, hi) {
			if err != nil {
				yield(Run{}, fmt.Errorf("read the runs: %w", err))
				return
			}
			run, err := r.Get(ctx, binary.BigEndian.Uint64(p.Key[len(p.Key)-8:]))
			if errors.Is(err, ErrUnknown) {
				continue // trimmed meanwhile
			}
			if !yield(run, err) || err != nil {
				return
			}
		}
	}
}

// Jobs returns the jobs in their given order.
func (r *Runner) Jobs() []Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Job, 0, len(r.order))
	for _, n := range r.order {
		out = append(out, r.jobs[n].job)
	}
	return out
}

// Watch delivers every change of a run until ctx ends and the channel is closed;
// a slow reader loses progress, never an end.
func (r *Runner) Watch(ctx context.Context) <-chan Run {
	w := make(chan Run, 64)
	r.mu.Lock()
	r.watchers[w] = struct{}{}
	r.mu.Unlock()
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		select {
		case <-ctx.Done():
		case <-r.ctx.Done():
		}
		r.mu.Lock()
		delete(r.watchers, w)
		r.mu.Unlock()
		close(w)
	}()
	return w
}

// End is Close with the grace of the options.
func (r *Runner) End() error { return r.Close(r.o.Grace) }

// Close stops the schedules, lets runs go on for grace, then cancels them,
// and waits for all.
func (r *Runner) Close(grace time.Duration) error {
	r.mu.Lock()
	r.closed = true
	var waiting []*active
	var underWay []string
	for _, a := range r.active {
		if a.run.State == Queued {
			a.cancel(errStopped)
		} else {
			underWay = append(underWay, a.run.Job)
		}
		waiting = append(waiting, a)
	}
	r.mu.Unlock()
	if len(underWay) > 0 && grace > 0 {
		slices.Sort(underWay)
		r.log.Info("runs under way have some time to end", "jobs", strings.Join(underWay, ", "), "time", grace)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for _, a := range waiting {
		select {
		case <-a.done:
		case <-timer.C:
			timer.Reset(0)
		}
	}
	r.cancel(errStopped)
	r.wg.Wait()
	return nil
}

// ---- records: 'r' id -> run as JSON; 'l' id -> its lines as JSON; 'o' id while it is open; 'j' job 0 id -> class,
// to trim by job; 's' job -> mark of its schedule

func key(kind byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, id)
}

func jobKey(job string, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte{'j'}, job+"\x00"...), id)
}

// kept is the context of the records: what a run came to is written even though
// it was cancelled, and while the process stops.
func (r *Runner) kept() context.Context { return context.WithoutCancel(r.ctx) }

func (r *Runner) write(run Run) error {
	raw, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("record run %d: %w", run.ID, err)
	}
	b := r.store.Batch()
	defer b.Close()
	b.Set(key('r', run.ID), raw)
	if run.Over() {
		b.Delete(key('o', run.ID))
		b.Set(jobKey(run.Job, run.ID), []byte(r.o.Class(run)))
	} else {
		b.Set(key('o', run.ID), nil)
		b.Set(jobKey(run.Job, run.ID), nil)
	}
	if err := b.Commit(r.kept(), run.Over()); err != nil {
		return fmt.Errorf("record run %d: %w", run.ID, err)
	}
	return nil
}

func (r *Runner) read(ctx context.Context, id uint64) (Run, error) {
	raw, err := r.store.Get(ctx, key('r', id))
	if errors.Is(err, kv.ErrNotFound) {
		return Run{}, fmt.Errorf("run %d: %w", id, ErrUnknown)
	}
	var run Run
	if err == nil {
		err = json.Unmarshal(raw, &run)
	}
	if err != nil {
		return Run{}, fmt.Errorf("read run %d: %w", id, err)
	}
	if !run.Over() && id <= r.former.last {
		run.State, run.Ended, run.Error = Interrupted, r.former.ended, "the process ended before the run did"
	}
	return run, nil
}

// ForgetRuns drops the records of a job's runs, in a batch of any store around store. None of them
// is under way.
func ForgetRuns(ctx context.Context, store kv.Store, batch kv.Batch, job string) error {
	lo, b := append([]byte{'j'}, job+"\x00"...), kv.Join(store, batch)
	for p, err := range store.Scan(ctx, lo, kv.PrefixEnd(lo)) {
		if err != nil {
			return fmt.Errorf("runs of job %s: %w", job, err)
		}
		id := binary.BigEndian.Uint64(p.Key[len(lo):])
		b.Delete(key('r', id))
		b.Delete(key('l', id))
		b.Delete(key('o', id))
		b.Delete(p.Key)
	}
	return nil
}

// trim drops the oldest ended runs of a job and class beyond the number to keep.
func (r *Runner) trim(job string) error {
	lo := append([]byte{'j'}, job+"\x00"...)
	kept := map[string]int{}
	b := r.store.Batch()
	defer b.Close()
	for p, err := range r.store.ScanReverse(r.kept(), lo, kv.PrefixEnd(lo)) {
		if err != nil {
			return err
		}
		id := binary.BigEndian.Uint64(p.Key[len(lo):])
		if r.active[id] != nil {
			continue
		}
		if kept[string(p.Value)]++; kept[string(p.Value)] > r.o.Keep {
			b.Delete(key('r', id))
			b.Delete(key('l', id))
			b.Delete(key('o', id)) // of one without a recorded end
			b.Delete(p.Key)
		}
	}
	if b.Size() == 0 {
		return nil
	}
	return b.Commit(r.kept(), false)
}
