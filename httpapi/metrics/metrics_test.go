package metrics_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/httpapi/metrics"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/rdfres"
)

// daemon serves a set of an embedded store, its mirror, and a set whose store does not answer.
func daemon(t *testing.T) (b *bridge.Bridge, at httpapi.Addresses) {
	t.Helper()
	dir := t.TempDir()
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "state")
	cfg.Public, cfg.Admin.Listen = bridge.Public{Listen: "127.0.0.1:0"}, "127.0.0.1:0"
	for _, name := range []string{"local", "mirror"} {
		s := bridge.NewStore()
		s.Embedded = filepath.Join(dir, name)
		cfg.Stores[name] = s
	}
	far := bridge.NewStore()
	far.Query = "http://127.0.0.1:1/query"
	cfg.Stores["far"] = far
	for name, store := range map[string]string{"books": "local", "lost": "far"} {
		s := bridge.NewSet()
		s.Store, s.Schedule = store, "@daily"
		cfg.Sets[name] = s
	}
	if err := cfg.Complete(dir); err != nil {
		t.Fatal(err)
	}
	listeners, err := httpapi.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := bridge.NewDestination()
	d.Source, d.Set, d.Store = cfg.Public.BaseURL, "books", "mirror"
	cfg.Destinations["copy"] = d
	measures := telemetry.New()
	b, err = bridge.Open(t.Context(), cfg, bridge.Options{Command: "test", Telemetry: measures})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	server := httpapi.NewServer(ctx, "test", nil)
	server.Telemetry = measures
	if err := server.Listen(cfg, b, listeners); err != nil {
		t.Fatal(err)
	}
	if at, _, err = server.Use(b); err != nil {
		t.Fatal(err)
	}
	server.Ready()
	t.Cleanup(func() {
		stop()
		if err := server.Wait(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, at
}

func do(t *testing.T, b *bridge.Bridge, action, name string) {
	t.Helper()
	run, _, err := b.Begin(t.Context(), action, name, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Runner().Wait(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
}

// text is the answer of /metrics.
func text(t *testing.T, at httpapi.Addresses) string {
	t.Helper()
	res, err := http.Get("http://" + at.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	return string(raw)
}

func scrape(t *testing.T, at httpapi.Addresses) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text(t, at)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value is that of the series with these labels, as "name=value"; -1 if there is none.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range families[name].GetMetric() {
		var have []string
		for _, l := range m.Label {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		fits := true
		for _, l := range labels {
			fits = fits && slices.Contains(have, l)
		}
		switch {
		case !fits:
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		case m.Counter != nil:
			return m.Counter.GetValue()
		default:
			return m.Gauge.GetValue()
		}
	}
	return -1
}

// TestMetrics: a daemon serves each metric of the reference, with its type and labels, and no other
// one of ours; and they have counted its work.
func TestMetrics(t *testing.T) {
	b, at := daemon(t)
	if _, err := b.LoadStore(t.Context(), "local", "", rdfres.NTriples, strings.NewReader("<http://example.org/a> <http://example.org/p> \"1\" .\n"), true); err != nil {
		t.Fatal(err)
	}
	do(t, b, "scan", "books")
	do(t, b, "scan", "books")
	do(t, b, "sync", "copy")
	do(t, b, "audit", "copy")
	do(t, b, "scan", "lost")
	res, err := http.Get("http://" + at.Public + "/books/nothing-is-here")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := io.Copy(io.Discard, res.Body)
	res.Body.Close()
	got := scrape(t, at)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "rsbridge_runs_total", []string{"kind=scan", "name=books", "state=done"}},
		{1, "rsbridge_runs_total", []string{"kind=audit", "name=copy", "state=done"}},
		{1, "rsbridge_runs_total", []string{"kind=scan", "name=lost", "state=failed"}},
		{1, "rsbridge_run_failures_total", []string{"kind=scan", "name=lost", "reason=unreachable"}},
		{3, "rsbridge_run_duration_seconds", []string{"kind=scan"}},
		{0, "rsbridge_runs_under_way", []string{"kind=scan"}},
		{1, "rsbridge_set_resources", []string{"set=books"}},
		{1, "rsbridge_destination_audit_equal", []string{"destination=copy"}},
		{0, "rsbridge_destination_behind_changes", []string{"destination=copy"}},
		{1, "rsbridge_http_requests_total", []string{"listener=public", "method=get", "code=404"}},
		{1, "rsbridge_build_info", nil},
	} {
		if v := value(got, c.name, c.labels...); v != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.labels, v, c.want)
		}
	}
	for name, labels := range map[string][]string{
		"rsbridge_store_request_duration_seconds":           {"store=local", "operation=query", "outcome=2xx"},
		"rsbridge_source_request_duration_seconds":          {"destination=copy", "outcome=2xx"},
		"rsbridge_destination_last_proof_timestamp_seconds": {"destination=copy"},
		"rsbridge_destination_last_poll_timestamp_seconds":  {"destination=copy"},
		"rsbridge_run_last_success_timestamp_seconds":       {"kind=sync", "name=copy"},
		"rsbridge_run_last_duration_seconds":                {"kind=sync", "name=copy"},
		"rsbridge_http_request_duration_seconds":            {"listener=public"},
	} {
		if v := value(got, name, labels...); v <= 0 {
			t.Errorf("%s %v is %v", name, labels, v)
		}
	}
	if v := value(got, "rsbridge_store_request_duration_seconds", "store=far", "operation=query", "outcome=error"); v < 1 {
		t.Errorf("%v requests to a store without an answer", v)
	}
	if v := value(got, "rsbridge_run_last_success_timestamp_seconds", "name=lost", "kind=scan"); v != -1 {
		t.Errorf("the scan that failed ended well at %v", v)
	}
	if sent := got["rsbridge_http_response_size_bytes"].GetMetric()[0].Histogram.GetSampleSum(); sent < float64(n) || n == 0 {
		t.Errorf("%d bytes were sent, and %v counted", n, sent)
	}
	compare(t, got)
}

// Present only when somebody reports, or schedules.
var sometimes = []string{"rsbridge_set_mirror_behind_changes", "rsbridge_set_mirror_behind_seconds", "rsbridge_set_mirror_last_report_timestamp_seconds", "rsbridge_run_next_timestamp_seconds"}

// compare holds a scrape to the reference.
func compare(t *testing.T, got map[string]*dto.MetricFamily) {
	t.Helper()
	known := map[string]bool{}
	for _, m := range metrics.Reference() {
		known[m.Name] = true
		f := got[m.Name]
		if f == nil {
			if !slices.Contains(sometimes, m.Name) {
				t.Errorf("%s is in the reference, and not served", m.Name)
			}
			continue
		}
		if kind := strings.ToLower(f.GetType().String()); kind != m.Type {
			t.Errorf("%s is a %s, and in the reference a %s", m.Name, kind, m.Type)
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		want := slices.Clone(m.Labels)
		slices.Sort(labels)
		slices.Sort(want)
		if fmt.Sprint(labels) != fmt.Sprint(want) {
			t.Errorf("%s has the labels %v, and in the reference %v", m.Name, labels, want)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "rsbridge_") && !known[name] {
			t.Errorf("%s is served, and not in the reference", name)
		}
	}
}
