// Package repeats counts the lines of a log, and writes some of them.
package repeats

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// Lines is the log of a run. A source can make any number of lines, one for each entry. Of
// one message the first 20 are written, then the 100th, the 1,000th and so on, and their number
// at the end. Lines of level debug are all written: the operator asked for them.
type Lines struct {
	mu    sync.Mutex
	times map[repeated]int
}

type repeated struct {
	level   slog.Level
	message string
}

const (
	written     = 20
	maxRepeated = 1000 // different messages
)

// Handler passes on to h what is to be written.
func (r *Lines) Handler(h slog.Handler) slog.Handler { return &repeatsHandler{h, r} }

// write tells whether the next line with a message is written, and the how manieth it is.
func (r *Lines) write(l repeated) (bool, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = map[repeated]int{}
	}
	if _, known := r.times[l]; !known && len(r.times) >= maxRepeated {
		l.message = "" // all others are one
	}
	r.times[l]++
	n := r.times[l]
	round := n
	for round%10 == 0 {
		round /= 10
	}
	return n <= written || n >= 100 && round == 1, n
}

// Settle writes how often lines came that were not all written, and begins anew.
func (r *Lines) Settle(log *slog.Logger) {
	r.mu.Lock()
	times := r.times
	r.times = nil
	r.mu.Unlock()
	for _, l := range slices.SortedFunc(maps.Keys(times), func(a, b repeated) int { return times[b] - times[a] }) {
		if times[l] > written {
			log.Log(context.Background(), l.level, "a line of the log came more often than it is written", "line", l.message, "times", times[l])
		}
	}
	r.mu.Lock()
	r.times = nil
	r.mu.Unlock()
}

type repeatsHandler struct {
	slog.Handler
	r *Lines
}

func (h *repeatsHandler) Handle(ctx context.Context, line slog.Record) error {
	if line.Level > slog.LevelDebug {
		first, n := h.r.write(repeated{line.Level, line.Message})
		if !first {
			return nil
		}
		if n > written {
			line = line.Clone()
			line.AddAttrs(slog.Int("times", n))
		}
	}
	return h.Handler.Handle(ctx, line)
}

func (h *repeatsHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeatsHandler{h.Handler.WithAttrs(attrs), h.r}
}

func (h *repeatsHandler) WithGroup(name string) slog.Handler {
	return &repeatsHandler{h.Handler.WithGroup(name), h.r}
}
