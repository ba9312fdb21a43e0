package main

import (
	"fmt"
	"io"
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
	pool     *mpb.Progress
	bar      *mpb.Bar
	stage    string
	last     time.Time
}

// progress shows the state of a run on standard error.
func (a *app) progress(run jobs.Run) {
	if a.bars == nil {
		a.bars = &bars{w: a.err, terminal: isTerminal(a.err), last: time.Now()}
	}
	a.bars.show(run)
}

func (a *app) endProgress() {
	if a.bars != nil {
		a.bars.end()
		a.bars = nil
	}
}

func (b *bars) show(run jobs.Run) {
	stage := run.Job
	if run.Stage != "" {
		stage += " " + run.Stage
	} else if run.State == jobs.Queued {
		stage += " waits"
	}
	if !b.terminal {
		if time.Since(b.last) < 5*time.Second {
			return
		}
		b.last = time.Now()
		if run.Total > 0 {
			fmt.Fprintf(b.w, "%s: %d of %d (%d %%)\n", stage, run.Done, run.Total, 100*run.Done/run.Total)
		} else {
			fmt.Fprintf(b.w, "%s: %d\n", stage, run.Done)
		}
		return
	}
	if stage != b.stage {
		b.endBar()
		if b.pool == nil {
			b.pool = mpb.New(mpb.WithOutput(b.w), mpb.WithWidth(40))
		}
		b.stage = stage
		b.bar = b.pool.AddBar(run.Total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(stage, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d", decor.WCSyncSpace), decor.Elapsed(decor.ET_STYLE_GO, decor.WCSyncSpace)))
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
	b.endBar()
	if b.pool != nil {
		b.pool.Wait()
	}
}
