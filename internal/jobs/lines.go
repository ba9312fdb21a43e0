package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Line is a line of the log about a run.
type Line struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"` // debug, info, warn, error
	Message string    `json:"message"`
	Text    string    `json:"text,omitempty"` // attributes as in the log, without those of the run
}

const (
	mostLines     = 200      // kept of a run: the newest
	mostLineBytes = 64 << 10 // of their texts
	// linesEvery is how often the lines of a run under way are recorded: a killed process loses the rest.
	linesEvery = 5 * time.Second
)

// Lines are the newest lines of the log about a run, oldest first: 200 at most, of 64 KiB. They are kept as
// long as the run.
func (r *Runner) Lines(ctx context.Context, id uint64) ([]Line, error) {
	r.mu.Lock()
	a := r.active[id]
	if a != nil {
		defer r.mu.Unlock()
		return append([]Line{}, r.newest(a.run)...), nil
	}
	r.mu.Unlock()
	if _, err := r.Get(ctx, id); err != nil {
		return nil, err
	}
	raw, err := r.store.Get(ctx, key('l', id))
	if errors.Is(err, kv.ErrNotFound) {
		return []Line{}, nil
	}
	var lines []Line
	if err == nil {
		err = json.Unmarshal(raw, &lines)
	}
	if err != nil {
		return nil, fmt.Errorf("read the lines of run %d: %w", id, err)
	}
	return lines, nil
}

// newest are the lines of a run within their bounds.
func (r *Runner) newest(run Run) []Line {
	lines, bytes := r.o.Lines(run), 0
	for n := range lines {
		l := lines[len(lines)-1-n]
		if bytes += len(l.Message) + len(l.Text); n == mostLines || bytes > mostLineBytes {
			return lines[len(lines)-n:]
		}
	}
	return lines
}

// keepLines records the lines of a run. The caller holds r.mu.
func (r *Runner) keepLines(run Run) error {
	lines := r.newest(run)
	if len(lines) == 0 {
		return nil
	}
	raw, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	b := r.store.Batch()
	defer b.Close()
	b.Set(key('l', run.ID), raw)
	return b.Commit(r.kept(), false)
}
