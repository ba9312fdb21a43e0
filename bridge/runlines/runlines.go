// Package runlines finds the lines of the log about a run: those of its set or mirror in its time.
package runlines

import (
	"log/slog"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/recentlog"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// Of finds lines in a logger of recentlog, for jobs.Options. Any other logger keeps none.
func Of(log *slog.Logger) func(jobs.Run) []jobs.Line {
	kept := recentlog.Of(log)
	if kept == nil {
		return nil
	}
	return func(run jobs.Run) (out []jobs.Line) {
		if run.Started.IsZero() {
			return nil
		}
		id := strconv.FormatUint(run.ID, 10)
		kind, name, _ := strings.Cut(run.Subject, ":")
		for _, l := range kept.Lines(run.Started, func(l recentlog.Line) bool {
			if of := l.Get("run"); of != "" {
				return of == id
			}
			return l.Get("job") == run.Job || name != "" && l.Get(kind) == name
		}) {
			out = append(out, jobs.Line{Time: l.Time.UTC(), Level: strings.ToLower(l.Level.String()),
				Message: webguard.MaskedText(l.Message), Text: webguard.MaskedText(l.Text(kind, "run", "job", "component"))})
		}
		return out
	}
}
