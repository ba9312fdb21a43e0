package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination/live"
	"github.com/rsbridge/rsbridge/push"
)

// metrics is the Prometheus handler: gauges read from the status at each scrape,
// and those of the process.
func metrics(b *bridge.Bridge) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &statusCollector{b})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

type statusCollector struct{ b *bridge.Bridge }

type gauge struct {
	set  *prometheus.Desc
	read func(s bridge.SetStatus) float64
}

var setGauges = []gauge{
	{desc("set_resources", "current resources", "set"), func(s bridge.SetStatus) float64 { return float64(s.Resources) }},
	{desc("set_sequence", "last sequence of the log", "set"), func(s bridge.SetStatus) float64 { return float64(s.Sequence) }},
	{desc("set_triples", "triples in the graphs at the last complete scan", "set"), func(s bridge.SetStatus) float64 { return float64(s.Triples) }},
	{desc("set_covered_triples", "of them in at least one description", "set"), func(s bridge.SetStatus) float64 { return float64(s.Covered) }},
	{desc("set_failed", "entities that could not be described", "set"), func(s bridge.SetStatus) float64 { return float64(s.Failed) }},
	{desc("set_held", "1 while a scan is held", "set"), func(s bridge.SetStatus) float64 { return one(s.Held != nil) }},
	{desc("set_generation", "number of the publication", "set"), func(s bridge.SetStatus) float64 { return float64(s.Generation) }},
	{desc("set_last_scan_timestamp_seconds", "time of the last scan", "set"), func(s bridge.SetStatus) float64 { return unix(s.LastScan) }},
}

var destinationGauges = []struct {
	desc *prometheus.Desc
	read func(d bridge.DestinationStatus) (float64, bool)
}{
	{desc("destination_resources", "resources in the mirror", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return float64(d.Resources), true }},
	{desc("destination_failed", "1 while the destination cannot be opened", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return one(d.Fault != ""), true }},
	{desc("destination_in_sync", "1 when the last poll found nothing left to do", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return one(d.InSync), true }},
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
	{desc("destination_last_sync_timestamp_seconds", "time of the last sync", "destination"), func(d bridge.DestinationStatus) (float64, bool) { return unix(d.LastSync), d.LastSync != nil }},
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

func desc(name, help string, labels ...string) *prometheus.Desc {
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

func (c *statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range setGauges {
		ch <- g.set
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
}

func (c *statusCollector) Collect(ch chan<- prometheus.Metric) {
	st, err := c.b.Status(context.Background())
	if err != nil {
		ch <- prometheus.NewInvalidMetric(setGauges[0].set, err)
		return
	}
	for _, s := range st.Sets {
		tellState(ch, setState, s.Name, s.State)
		for _, g := range setGauges {
			ch <- prometheus.MustNewConstMetric(g.set, prometheus.GaugeValue, g.read(s), s.Name)
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
	of := map[string]int64{"records": st.Disk.Records, "published": st.Disk.Published, "temporary": st.Disk.Temporary}
	for name, n := range st.Disk.Stores {
		of["store "+name] = n
	}
	for what, n := range of {
		ch <- prometheus.MustNewConstMetric(diskGauge, prometheus.GaugeValue, float64(n), what)
	}
}
