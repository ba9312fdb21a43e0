package history

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Sampler samples a bridge each minute.
type Sampler struct {
	Store  Store
	Runner *jobs.Runner
	// Lag is how many seconds a mirror is behind, nil if it is not known.
	Lag           func(ctx context.Context, mirror string) (*float64, error)
	Sets, Mirrors func() []string
	Now           func() time.Time
	Logger        *slog.Logger

	stop  context.CancelFunc
	going sync.WaitGroup
}

// Start begins to sample, until End.
func (s *Sampler) Start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	runs := s.Runner.Watch(ctx)
	s.going.Go(func() { s.follow(ctx, runs) })
}

// End writes the last sample. It may be called without Start.
func (s *Sampler) End() {
	if s != nil && s.stop != nil {
		s.stop()
		s.going.Wait()
	}
}

func (s *Sampler) follow(ctx context.Context, runs <-chan jobs.Run) {
	counts, tidied := map[string]Counts{}, time.Time{}
	write := func() {
		if now := s.Now(); now.Sub(tidied).Abs() >= time.Hour {
			s.tell(s.Store.Tidy(ctx, now))
			tidied = now
		}
		behind, err := s.behind(ctx)
		s.tell(err)
		s.tell(s.Store.Add(context.WithoutCancel(ctx), s.Now(), join(behind, counts)))
		clear(counts)
	}
	write()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		select {
		case run, open := <-runs:
			if !open {
				s.tell(s.Store.Add(context.WithoutCancel(ctx), s.Now(), join(nil, counts)))
				return
			}
			count(counts, run)
		case <-minute.C:
			write()
		}
	}
}

// behind is how old sets and mirrors may be, in seconds, by the subjects of their runs: a set since
// its last good look, a mirror by its lag.
func (s *Sampler) behind(ctx context.Context) (map[string]*float64, error) {
	out := map[string]*float64{}
	for _, name := range s.Sets() {
		looked, err := LastLook(ctx, s.Runner, "scan:"+name, "hint:"+name)
		if err != nil {
			return out, err
		}
		if !looked.IsZero() {
			age := s.Now().Sub(looked).Seconds()
			out["set:"+name] = &age
		}
	}
	for _, name := range s.Mirrors() {
		lag, err := s.Lag(ctx, name)
		if err != nil {
			return out, err
		}
		out["destination:"+name] = lag
	}
	return out, nil
}

// tell logs an error: there is a gap in the graphs, and nothing else.
func (s *Sampler) tell(err error) {
	if err != nil {
		s.Logger.Debug("no sample is kept of this minute", "error", err)
	}
}

// join makes the samples of a minute.
func join(behind map[string]*float64, counts map[string]Counts) map[string]Sample {
	out := map[string]Sample{}
	for subject, seconds := range behind {
		out[subject] = Sample{Behind: seconds, Counts: counts[subject]}
	}
	for subject, c := range counts {
		if _, there := out[subject]; !there {
			out[subject] = Sample{Counts: c}
		}
	}
	return out
}

// count counts the end of a run that looks for changes, or applies them.
func count(counts map[string]Counts, run jobs.Run) {
	kind, _, _ := strings.Cut(run.Job, ":")
	if !run.Over() || run.Started.IsZero() || kind != "scan" && kind != "hint" && kind != "sync" {
		return
	}
	var c Counts
	var did struct {
		Created, Updated, Deleted int64
		Paused                    bool
		Plan                      json.RawMessage
	}
	if len(run.Result) > 0 && json.Unmarshal(run.Result, &did) == nil {
		if did.Paused || did.Plan != nil { // a rest, or a dry run
			return
		}
		c.Created, c.Updated, c.Deleted = did.Created, did.Updated, did.Deleted
	}
	c.Runs, c.Longest = 1, run.Ended.Sub(run.Started).Seconds()
	if run.State == jobs.Failed {
		c.Failed = 1
	}
	all := counts[run.Subject]
	all.add(c)
	counts[run.Subject] = all
}

// LastLook is when the last good run of some jobs began; zero for none. A held run counts for none:
// nobody sees what it saw.
func LastLook(ctx context.Context, runner *jobs.Runner, names ...string) (last time.Time, err error) {
	for _, name := range names {
		for run, err := range runner.Runs(ctx, name) {
			if err != nil {
				return last, err
			}
			var did struct{ Held json.RawMessage }
			_ = json.Unmarshal(run.Result, &did) // of another kind: it holds nothing
			if run.State == jobs.Done && (len(did.Held) == 0 || string(did.Held) == "null") {
				if run.Started.After(last) {
					last = run.Started
				}
				break
			}
		}
	}
	return last, nil
}
