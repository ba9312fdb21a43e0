package destination

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// repeats counts the lines of a log. A source can cause any number of them, one for each of its
// entries. The first lines of a message in a run are written, then the 100th, the 1,000th and so
// on, and at the end of the run their number. At level debug all lines are written.
type repeats struct {
	mu    sync.Mutex
	times map[repeated]int
}

type repeated struct {
	level   slog.Level
	message string
}

const (
	firstRepeats = 20
	maxRepeated  = 1000 // different messages
)

// handler passes written lines on to h.
func (r *repeats) handler(h slog.Handler) slog.Handler { return &repeatsHandler{h, r} }

// write tells whether the next line with a message is written, and the how manieth it is.
func (r *repeats) write(l repeated) (bool, int) {
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
	return n <= firstRepeats || n >= 100 && round == 1, n
}

// settle writes the numbers of partly written lines, and begins anew.
func (r *repeats) settle(log *slog.Logger) {
	r.mu.Lock()
	times := r.times
	r.times = nil
	r.mu.Unlock()
	for _, l := range slices.SortedFunc(maps.Keys(times), func(a, b repeated) int { return times[b] - times[a] }) {
		if times[l] > firstRepeats {
			log.Log(context.Background(), l.level, "a line of the log came more often than it is written", "line", l.message, "times", times[l])
		}
	}
	r.mu.Lock()
	r.times = nil
	r.mu.Unlock()
}

type repeatsHandler struct {
	slog.Handler
	r *repeats
}

func (h *repeatsHandler) Handle(ctx context.Context, line slog.Record) error {
	if line.Level > slog.LevelDebug {
		write, n := h.r.write(repeated{line.Level, line.Message})
		if !write {
			return nil
		}
		if n > firstRepeats {
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
