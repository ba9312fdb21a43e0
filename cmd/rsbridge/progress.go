package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// bars shows how far a run is: a bar a stage on a terminal, a line every few
// seconds elsewhere.
type bars struct {
	w        io.Writer
	terminal bool
	every    time.Duration // between two lines; 0: a line for each change
	pool     *mpb.Progress
	bar      *mpb.Bar
	stage    string

	mu   sync.Mutex // guards run
	run  jobs.Run   // as it was seen last
	stop func()     // ends the lines
}

// lineEvery is the time between two lines of a run, unchanged the time between two equal ones.
const (
	lineEvery = 5 * time.Second
	unchanged = 30 * time.Second
)

// progress shows the state of a run on standard error.
func (a *app) progress(run jobs.Run) {
	if a.bars == nil {
		a.bars = &bars{w: a.err, terminal: isTerminal(a.err), every: a.lineEvery}
		if !a.bars.terminal && a.lineEvery > 0 {
			a.bars.lines()
		}
	}
	a.bars.show(run)
}

func (a *app) endProgress() {
	if a.bars != nil {
		a.bars.end()
		a.bars = nil
	}
}

// lines writes where the run is every few seconds, also of one that waits.
func (b *bars) lines() {
	over, done := make(chan struct{}), make(chan struct{})
	b.stop = func() { close(over); <-done }
	go func() {
		defer close(done)
		tick := time.NewTicker(b.every)
		defer tick.Stop()
		said, at := "", time.Time{}
		for {
			select {
			case <-over:
				return
			case now := <-tick.C:
				b.mu.Lock()
				line := lineOf(b.run)
				b.mu.Unlock()
				if line != said || now.Sub(at) > unchanged-b.every/2 {
					said, at = line, now
					fmt.Fprintln(b.w, line)
				}
			}
		}
	}()
}

// ofBytes is the stage of a command that counts bytes.
const ofBytes = "bytes"

func stageOf(run jobs.Run) string {
	switch {
	case run.Stage == ofBytes:
		return run.Job
	case run.Stage != "":
		return run.Job + " " + run.Stage
	case run.State == jobs.Queued:
		return run.Job + " waits"
	}
	return run.Job
}

func lineOf(run jobs.Run) string {
	switch {
	case run.Total > 0:
		return fmt.Sprintf("%s: %d of %d (%d %%)", stageOf(run), run.Done, run.Total, 100*run.Done/run.Total)
	case run.Stage == ofBytes:
		return stageOf(run) + ": " + size(run.Done)
	case run.Done > 0:
		return fmt.Sprintf("%s: %d", stageOf(run), run.Done)
	}
	return stageOf(run)
}

func (b *bars) show(run jobs.Run) {
	if !b.terminal {
		b.mu.Lock()
		b.run = run
		b.mu.Unlock()
		if b.every == 0 {
			fmt.Fprintln(b.w, lineOf(run))
		}
		return
	}
	stage := stageOf(run)
	if stage != b.stage {
		b.endBar()
		if b.pool == nil {
			b.pool = mpb.New(mpb.WithOutput(b.w), mpb.WithWidth(40))
		}
		b.stage = stage
		count := decor.CountersNoUnit("%d / %d", decor.WCSyncSpace)
		if run.Stage == ofBytes {
			count = decor.Any(func(s decor.Statistics) string { return size(s.Current) }, decor.WCSyncSpace)
		}
		b.bar = b.pool.AddBar(run.Total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(stage, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(count, decor.Elapsed(decor.ET_STYLE_GO, decor.WCSyncSpace)))
	}
	b.bar.SetTotal(max(run.Total, run.Done+1), false)
	b.bar.SetCurrent(run.Done)
}

func (b *bars) endBar() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.bar.Wait()
		b.bar = nil
	}
}

func (b *bars) end() {
	if b.stop != nil {
		b.stop()
	}
	b.endBar()
	if b.pool != nil {
		b.pool.Wait()
	}
}
