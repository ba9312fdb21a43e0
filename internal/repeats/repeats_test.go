package repeats

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestLines: the log of a run does not grow with what a source sends.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	r := &Lines{}
	log := slog.New(r.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).With("destination", "copy")
	for run := range 2 {
		out.Reset()
		for i := range 20_000 {
			log.Warn("resource is pending", "loc", i)
		}
		for i := range written {
			log.With("x", i).Warn("another line")
		}
		log.Info("resource is pending") // of another level
		for range 50 {
			log.Debug("a change")
		}
		r.Settle(log)
		text := out.String()
		for part, want := range map[string]int{
			"resource is pending\" destination=copy loc=": written + 3, "loc=0\n": 1, "loc=19999": 0, "times=100\n": 1, "times=1000\n": 1, "times=10000\n": 1,
			"line=\"resource is pending\" times=20000\n": 1, "level=INFO msg=\"resource is pending\"": 1, "another line": written, "level=DEBUG": 50,
		} {
			if n := strings.Count(text, part); n != want {
				t.Errorf("run %d: %q is written %d times, want %d", run, part, n, want)
			}
		}
	}
	out.Reset()
	for i := range 10_000 { // messages that a source could make, if one did
		log.Warn(strings.Repeat("x", i))
	}
	if n := strings.Count(out.String(), "\n"); n > maxRepeated+100 {
		t.Errorf("%d lines of messages that differ", n)
	}
}
