package bridge

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/destination/live"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// byNotification is the cause of a run begun by a notification.
const byNotification = "notification"

// unasked tells whether nobody asked for a run.
func unasked(run *jobs.Run) bool { return run.Cause == "schedule" || run.Cause == byNotification }

// hears makes the subscriber of a mirror, nil for none. It begins a sync at each hint.
func (m *mirror) hears(transport http.RoundTripper) *live.Subscriber {
	b, c := m.bridge, m.cfg
	s, err := live.Open(live.Options{Config: c.Live, Name: m.name, Source: c.Source, Set: c.Set, Allow: c.Allow, Timeout: time.Duration(c.Timeout), UserAgent: b.cfg.UserAgent, Settings: b.cfg.names,
		TempDir: b.cfg.tempDir(), Transport: transport, Now: b.now, Logger: b.log.With("component", "live", "destination", m.name),
		Sync: func(ctx context.Context) bool {
			run, _, err := b.runner.Start("sync:"+m.name, byNotification, nil)
			if err == nil {
				run, err = b.runner.Wait(ctx, run.ID)
			}
			var rep destination.SyncReport
			return err == nil && run.State != jobs.Failed && (json.Unmarshal(run.Result, &rep) != nil || rep.Pending == 0)
		}})
	if err != nil {
		b.log.Error("a destination hears of no changes", "destination", m.name, "error", err)
	}
	return s
}
