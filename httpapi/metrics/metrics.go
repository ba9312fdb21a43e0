// Package metrics tells how a bridge stands, for Prometheus: gauges read from its status at each scrape.
// What the daemon does is measured by package telemetry. docs/reference/metrics.md names all of them.
package metrics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination/live"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/push"
)

// Of gives the metrics of a bridge.
func Of(b *bridge.Bridge) prometheus.Collector { return &collector{b} }

// Reference are all metrics of the daemon.
func Reference() []telemetry.Metric { return slices.Concat(described, telemetry.Metrics) }

// described are those of this package, in the order of their lines below.
var described []telemetry.Metric

type collector struct{ b *bridge.Bridge }

var setGauges = []struct {
	desc *prometheus.Desc
	read func(s bridge.SetStatus) float64
}{
	{desc("set_resources", "current resources", "set"), func(s bridge.SetStatus) float64 { return float64(s.Resources) }},
	{desc("set_sequence", "last sequence of the log", "set"), func(s bridge.SetStatus) float64 { return float64(s.Sequence) }},
	{desc("set_triples", "triples in the graphs at the last complete scan", "set"), func(s bridge.SetStatus) float64 { return float64(s.Triples) }},
	{desc("set_covered_triples", "of them in at least one description", "set"), func(s bridge.SetStatus) float64 { return float64(s.Covered) }},
	{desc("set_failed", "entities that could not be described", "set"), func(s bridge.SetStatus) float64 { return float64(s.Failed) }},
	{desc("set_held", "1 while a scan is held", "set"), func(s bridge.SetStatus) float64 { return one(s.Held != nil) }},
	{desc("set_generation", "number of the publication", "set"), func(s bridge.SetStatus) float64 { return float64(s.Generation) }},
	{desc("set_last_scan_timestamp_seconds", "time of the last scan; 0: never", "set"), func(s bridge.SetStatus) float64 { return unix(s.LastScan) }},
	{desc("set_last_change_timestamp_seconds", "time of the last change in the log; 0: none", "set"), func(s bridge.SetStatus) float64 { return unix(s.LastChange) }},
}

var destinationGauges = []struct {
	desc *prometheus.Desc
	read func(d bridge.DestinationStatus) (float64, bool)
}{
	{desc("destination_resources", "resources in the mirror", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return float64(d.Resources), true }},
	{desc("destination_failed", "1 while the destination cannot be opened", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return one(d.Fault != ""), true }},
	{desc("destination_in_sync", "1 when the last poll left nothing to do, and no newer change is known of", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return one(d.InSync), true }},
	{desc("destination_behind_seconds", "age of the oldest change not applied; absent while unknown", "destination"), func(d bridge.DestinationStatus) (float64, bool) {
		if d.BehindSeconds == nil {
			return 0, false
		}
		return *d.BehindSeconds, true
	}},
	{desc("destination_behind_changes", "changes of the source not applied; absent while unknown", "destination"), func(d bridge.DestinationStatus) (float64, bool) {
		if d.BehindChanges == nil {
			return 0, false
		}
		return float64(*d.BehindChanges), true
	}},
	{desc("destination_live", "1 while the destination hears of changes by notifications", "destination"), func(d bridge.DestinationStatus) (float64, bool) {
		return one(d.Live != "" && d.Live != live.Polling), true
	}},
	{desc("destination_pending", "resources pending or failed", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return float64(d.Pending), true }},
	{desc("destination_audit_equal", "1 when the last audit proved the mirror equal", "destination"), func(d bridge.DestinationStatus) (float64, bool) {
		if d.LastAudit == nil {
			return 0, false
		}
		return one(d.LastAudit.Equal), true
	}},
	{desc("destination_paused", "1 while the schedule rests", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return one(d.Paused), true }},
	{desc("destination_held", "1 while deletions wait for a decision", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return one(d.State == bridge.StateHeld), true }},
	{desc("destination_last_audit_timestamp_seconds", "time of the last audit; absent before", "destination"), func(d bridge.DestinationStatus) (float64, bool) {
		if d.LastAudit == nil {
			return 0, false
		}
		return unix(&d.LastAudit.Time), true
	}},
	{desc("destination_last_proof_timestamp_seconds", "time of the last audit, if it proved the mirror equal; absent otherwise", "destination"), func(d bridge.DestinationStatus) (float64, bool) {
		if d.LastAudit == nil || !d.LastAudit.Equal {
			return 0, false
		}
		return unix(&d.LastAudit.Time), true
	}},
	{desc("destination_last_poll_timestamp_seconds", "time of the last look at the source; absent before", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return unix(d.LastPoll), d.LastPoll != nil }},
	{desc("destination_last_sync_timestamp_seconds", "time of the last sync; absent before", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return unix(d.LastSync), d.LastSync != nil }},
}

// The states are enumerations: one series a state, 1 for the present one.
var (
	setState         = desc("set_state", "1 for the present state: "+words(), "set", "state")
	destinationState = desc("destination_state", "1 for the present state: "+words(), "destination", "state")
)

func words() string { return strings.Trim(fmt.Sprint(bridge.States), "[]") }

// tellState sends one series a state.
func tellState(ch chan<- prometheus.Metric, d *prometheus.Desc, name string, now bridge.State) {
	for _, s := range bridge.States {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, one(s == now), name, string(s))
	}
}

// Of the listeners of a set there is one series a way; of each mirror that reports, one a key.
var (
	setListeners = desc("set_listeners", "who hears of changes now: subscriptions at the built-in hub, open sockets, open streams of events", "set", "way")
	mirrorGauges = []struct {
		desc *prometheus.Desc
		read func(m push.Mirror) (float64, bool)
	}{
		{mirrorDesc("behind_changes", "changes that the mirror does not have, by its last report; absent while unknown"), func(m push.Mirror) (float64, bool) {
			if m.BehindChanges == nil {
				return 0, false
			}
			return float64(*m.BehindChanges), true
		}},
		{mirrorDesc("behind_seconds", "age of the oldest of them; absent while unknown"), func(m push.Mirror) (float64, bool) {
			if m.BehindSeconds == nil {
				return 0, false
			}
			return *m.BehindSeconds, true
		}},
		{mirrorDesc("last_report_timestamp_seconds", "time of the last report"), func(m push.Mirror) (float64, bool) { return unix(&m.LastReport), true }},
	}
)

func mirrorDesc(name, help string) *prometheus.Desc {
	return desc("set_mirror_"+name, help, "set", "mirror", "key")
}

var diskGauge = desc("disk_bytes", "room that is taken: records, published, temporary, or an embedded store", "of")

var lastBackup = desc("last_backup_timestamp_seconds", "time of the last backup of the state; 0: none is known of")

// Of each job, with its kind and the name of its set or destination.
var jobGauges = []struct {
	desc *prometheus.Desc
	read func(j lastRuns) time.Time
}{
	{desc("run_next_timestamp_seconds", "time of the next run by schedule; absent without one", "kind", "name"), func(j lastRuns) time.Time { return j.next }},
	{desc("run_last_end_timestamp_seconds", "end of the last run; absent before", "kind", "name"), func(j lastRuns) time.Time { return j.end }},
	{desc("run_last_success_timestamp_seconds", "end of the last run without an error; absent before", "kind", "name"), func(j lastRuns) time.Time { return j.success }},
}

var lastDuration = desc("run_last_duration_seconds", "time of the last run, without waiting for its turn", "kind", "name")

// lastRuns are those of one job.
type lastRuns struct {
	next, end, success time.Time
	duration           time.Duration
}

func (c *collector) lastRuns(ctx context.Context, job string) (l lastRuns, err error) {
	l.next = c.b.Runner().Next(job)
	for run, err := range c.b.Runner().Runs(ctx, job) {
		if err != nil {
			return l, err
		}
		if !run.Over() || run.Started.IsZero() {
			continue
		}
		if l.end.IsZero() {
			l.end, l.duration = run.Ended, run.Ended.Sub(run.Started)
		}
		if run.State == jobs.Done {
			l.success = run.Ended
			break
		}
	}
	return l, nil
}

func (c *collector) collectRuns(ctx context.Context, ch chan<- prometheus.Metric) {
	for _, job := range c.b.Runner().Jobs() {
		l, err := c.lastRuns(ctx, job.Name)
		if err != nil {
			ch <- prometheus.NewInvalidMetric(lastDuration, err)
			return
		}
		kind, name, _ := strings.Cut(job.Name, ":")
		for _, g := range jobGauges {
			if at := g.read(l); !at.IsZero() {
				ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, unix(&at), kind, name)
			}
		}
		if !l.end.IsZero() {
			ch <- prometheus.MustNewConstMetric(lastDuration, prometheus.GaugeValue, l.duration.Seconds(), kind, name)
		}
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	described = append(described, telemetry.Metric{Name: "rsbridge_" + name, Type: "gauge", Labels: labels, Help: help})
	return prometheus.NewDesc("rsbridge_"+name, help, labels, nil)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unix(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range setGauges {
		ch <- g.desc
	}
	for _, g := range destinationGauges {
		ch <- g.desc
	}
	ch <- setListeners
	for _, g := range mirrorGauges {
		ch <- g.desc
	}
	ch <- setState
	ch <- destinationState
	ch <- diskGauge
	ch <- lastBackup
	ch <- lastDuration
	for _, g := range jobGauges {
		ch <- g.desc
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx := context.Background()
	c.collectRuns(ctx, ch)
	st, err := c.b.Status(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(setGauges[0].desc, err)
		return
	}
	for _, s := range st.Sets {
		tellState(ch, setState, s.Name, s.State)
		for _, g := range setGauges {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.read(s), s.Name)
		}
		for way, n := range map[string]int64{live.WebSub: s.Listeners.WebSub, live.WebSocket: s.Listeners.WebSocket, live.Events: s.Listeners.Events} {
			ch <- prometheus.MustNewConstMetric(setListeners, prometheus.GaugeValue, float64(n), s.Name, way)
		}
		for _, m := range s.Mirrors {
			for _, g := range mirrorGauges {
				if v, ok := g.read(m); ok {
					ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v, s.Name, m.Name, m.Key)
				}
			}
		}
	}
	for _, d := range st.Destinations {
		tellState(ch, destinationState, d.Name, d.State)
		for _, g := range destinationGauges {
			if v, ok := g.read(d); ok {
				ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v, d.Name)
			}
		}
	}
	ch <- prometheus.MustNewConstMetric(lastBackup, prometheus.GaugeValue, unix(st.BackupAt()))
	of := map[string]int64{"records": st.Disk.Records, "published": st.Disk.Published, "temporary": st.Disk.Temporary}
	for name, n := range st.Disk.Stores {
		of["store "+name] = n
	}
	for what, n := range of {
		ch <- prometheus.MustNewConstMetric(diskGauge, prometheus.GaugeValue, float64(n), what)
	}
}
