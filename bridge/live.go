package bridge

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"path/filepath"
	"time"

	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/destination/live"
	"github.com/rsbridge/rsbridge/destination/report"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/position"
)

// byNotification is the cause of a run begun by a notification.
const byNotification = "notification"

// byPoll is the cause of a run behind a quiet channel.
const byPoll = "poll"

// unasked tells whether nobody asked for a run.
func unasked(run *jobs.Run) bool {
	return run.Cause == jobs.BySchedule || run.Cause == byNotification || run.Cause == byPoll
}

// hears makes the subscriber of a mirror, nil for none. It begins a sync at each hint.
func (m *mirror) hears(transport http.RoundTripper) *live.Subscriber {
	b, c := m.bridge, m.cfg
	s, err := live.Open(live.Options{Config: c.Live, Name: m.name, Source: c.Source, Set: c.Set, Allow: c.Allow, Timeout: time.Duration(c.Timeout), UserAgent: b.cfg.UserAgent, Settings: b.cfg.Names(),
		TempDir: b.cfg.TempDir(), Transport: transport, Now: b.now, Logger: b.log.With("component", "live", "destination", m.name),
		Sync: func(ctx context.Context, poll bool) bool {
			cause := byNotification
			if poll {
				cause = byPoll
			}
			run, _, err := b.runner.Start("sync:"+m.name, cause, nil)
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

// leaves tells whether a scheduled sync is left out: the source has nothing yet, or it is heard of, and everything
// heard of is in the mirror.
func (m *mirror) leaves() bool {
	if m.waits() {
		return true
	}
	if !m.live.Rests() {
		return false
	}
	d, err := m.opened()
	if err != nil {
		return false
	}
	st, err := d.Status(context.Background())
	return err == nil && st.InSync && st.LastError == ""
}

// nextSync is when the mirror is synced next, zero for never, now if it is due.
func (m *mirror) nextSync() time.Time {
	next := m.bridge.runner.Next("sync:" + m.name)
	at := m.live.Next()
	if at.IsZero() || !next.IsZero() && next.Before(at) && !m.leaves() {
		return next
	}
	if now := m.bridge.now(); at.Before(now) {
		return now
	}
	return at
}

// mirrorKeys is the file of the secret behind the keys of reports.
func mirrorKeys(c *Config) string { return filepath.Join(c.Folder(), "mirror.key") }

// reports makes the reporter of a mirror, nil for none.
func (m *mirror) reports(transport http.RoundTripper) *report.Reporter {
	b, c := m.bridge, m.cfg
	if !c.Report || b.o.dry {
		return nil
	}
	secret, err := ownfile.Secret(mirrorKeys(b.cfg), 32, "remove it, and the mirrors of this state report with other keys")
	var key ed25519.PrivateKey
	if err == nil {
		key, err = position.KeyOf(secret, m.name)
	}
	var r *report.Reporter
	if err == nil {
		r, err = report.Open(report.Options{Name: m.name, Source: c.Source, Set: c.Set, Allow: c.Allow, Timeout: time.Duration(c.Timeout), UserAgent: b.cfg.UserAgent, Settings: b.cfg.Names(),
			TempDir: b.cfg.TempDir(), Transport: transport, Key: key, Position: m.position, Now: b.now, Logger: b.log.With("component", "report", "destination", m.name)})
	}
	if err != nil {
		b.log.Error("a destination reports no positions", "destination", m.name, "error", err)
	}
	return r
}

// position is for a report.
func (m *mirror) position(ctx context.Context, r *position.Report) (known bool, err error) {
	d, err := m.opened()
	if err != nil {
		return false, nil // its runs tell why
	}
	st, err := d.Status(ctx)
	if err != nil || st.Sequence == nil {
		return false, err
	}
	r.Sequence, r.Pending, r.InSync = *st.Sequence, uint64(st.Pending), st.InSync
	return true, nil
}

// start hears and reports until hangUp.
func (m *mirror) start() {
	m.live.Start()
	m.report.Start()
}

func (m *mirror) hangUp() {
	m.live.End()
	m.report.End()
}
