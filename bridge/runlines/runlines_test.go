package runlines_test

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge/runlines"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/recentlog"
)

// TestOf: a run has the lines of its set since it began, those with its number or its job, and none of
// another run; their secrets are masked.
func TestOf(t *testing.T) {
	log := recentlog.Logger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	of := runlines.Of(log)
	if runlines.Of(slog.New(slog.DiscardHandler)) != nil {
		t.Error("a logger without lines has some")
	}
	books := log.With("set", "books")
	books.Info("before")
	began := time.Now()
	books.With("component", "sparql").Warn("slow", "at", "http://me:hidden@e.example/")
	books.Info("another run", "run", 7)
	log.Info("of the job", "job", "scan:books")
	log.Error("run failed", "job", "scan:books", "run", 8)
	log.Info("of another set", "set", "music")
	log.Info("of nothing")
	for _, c := range []struct {
		run  jobs.Run
		want string
	}{
		{jobs.Run{ID: 8, Job: "scan:books", Subject: "set:books", Started: began}, "warn slow, info of the job, error run failed"},
		{jobs.Run{ID: 8, Job: "scan:books", Subject: "set:books"}, ""},
		{jobs.Run{ID: 9, Job: "verify:state", Subject: "state", Started: began}, ""},
	} {
		var got []string
		for _, l := range of(c.run) {
			got = append(got, l.Level+" "+l.Message)
			if strings.Contains(l.Text, "hidden") || strings.Contains(l.Text, "books") {
				t.Errorf("%s: %s", l.Message, l.Text)
			}
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s of %s has %q, want %q", c.run.Job, c.run.Subject, got, c.want)
		}
	}
}
