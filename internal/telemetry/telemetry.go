// Package telemetry measures the work of a daemon: its runs, its requests to stores and sources, the
// requests that it answers. [Telemetry] lives as long as the process, over each reading of the
// configuration. A nil *Telemetry measures nothing.
//
// Names of metrics are promises: dashboards and alert rules of others use them.
package telemetry

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv/guardfs"
	"github.com/rsbridge/rsbridge/internal/version"
)

// Metric is the description of a metric, for the reference.
type Metric struct {
	Name   string
	Type   string // counter, gauge, histogram
	Labels []string
	Help   string
}

// Metrics are those of this package.
var Metrics = []Metric{
	build, runs, failures, underWay, durations, storeTimes, sourceTimes, requests, answerTimes, answering, sizes,
}

var (
	build       = Metric{"rsbridge_build_info", "gauge", []string{"version", "revision", "go"}, "1, with the version, the commit and the version of Go"}
	runs        = Metric{"rsbridge_runs_total", "counter", []string{"kind", "name", "state"}, "ended runs: done, failed, cancelled or interrupted"}
	failures    = Metric{"rsbridge_run_failures_total", "counter", []string{"kind", "name", "reason"}, "failed runs: unreachable (a server did not answer), timeout, disk_full, panic, other"}
	underWay    = Metric{"rsbridge_runs_under_way", "gauge", []string{"kind"}, "runs at work now"}
	durations   = Metric{"rsbridge_run_duration_seconds", "histogram", []string{"kind"}, "time of the ended runs, without waiting for their turn"}
	storeTimes  = Metric{"rsbridge_store_request_duration_seconds", "histogram", []string{"store", "operation", "outcome"}, "time of requests to a store until its answer begins; operation: query, update, graph; outcome: 2xx to 5xx, or error without an answer"}
	sourceTimes = Metric{"rsbridge_source_request_duration_seconds", "histogram", []string{"destination", "outcome"}, "time of a destination's requests to its source until the answer begins"}
	requests    = Metric{"rsbridge_http_requests_total", "counter", []string{"listener", "method", "code"}, "answered requests; listener: public, admin"}
	answerTimes = Metric{"rsbridge_http_request_duration_seconds", "histogram", []string{"listener"}, "time from a request until its answer begins"}
	answering   = Metric{"rsbridge_http_requests_under_way", "gauge", []string{"listener"}, "requests being answered now, streams among them"}
	sizes       = Metric{"rsbridge_http_response_size_bytes", "histogram", []string{"listener"}, "bytes of the answers"}
)

// The bounds of the histograms.
var (
	runBounds     = []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
	requestBounds = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60, 300}
	sizeBounds    = prometheus.ExponentialBuckets(256, 16, 7) // to 4 GiB
)

// Telemetry holds the measures of a process.
type Telemetry struct {
	registry *prometheus.Registry

	runs, failures, requests                      *prometheus.CounterVec
	underWay, answering                           *prometheus.GaugeVec
	durations, stores, sources, answerTime, sizes *prometheus.HistogramVec
	now                                           func() time.Time
	traces                                        traces
}

// New makes the measures, with those of the Go runtime and the process.
func New() *Telemetry {
	counter := func(m Metric) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
	}
	gauge := func(m Metric) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
	}
	histogram := func(m Metric, bounds []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: bounds}, m.Labels)
	}
	t := &Telemetry{
		registry: prometheus.NewRegistry(), now: time.Now,
		runs: counter(runs), failures: counter(failures), requests: counter(requests), underWay: gauge(underWay), answering: gauge(answering),
		durations: histogram(durations, runBounds), stores: histogram(storeTimes, requestBounds), sources: histogram(sourceTimes, requestBounds),
		answerTime: histogram(answerTimes, requestBounds), sizes: histogram(sizes, sizeBounds),
	}
	info := gauge(build)
	info.WithLabelValues(version.String(), version.Revision(), runtime.Version()).Set(1)
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info,
		t.runs, t.failures, t.requests, t.underWay, t.answering, t.durations, t.stores, t.sources, t.answerTime, t.sizes)
	return t
}

// Handler answers with all measures, in the formats of Prometheus, and with those of more. A nil t
// gives more alone, with those of the process.
func (t *Telemetry) Handler(more prometheus.Collector) http.Handler {
	if t == nil {
		t = New()
	}
	also := prometheus.NewRegistry()
	also.MustRegister(more)
	return promhttp.HandlerFor(prometheus.Gatherers{t.registry, also}, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Run measures a run, and traces it: the returned context is the run's. end is told of its end.
func (t *Telemetry) Run(ctx context.Context, run jobs.Run) (_ context.Context, end func(jobs.Run, error)) {
	if t == nil {
		return ctx, func(jobs.Run, error) {}
	}
	kind, name, _ := strings.Cut(run.Job, ":")
	t.underWay.WithLabelValues(kind).Inc()
	began := t.now()
	ctx, over := t.traces.run(ctx, run)
	return ctx, func(run jobs.Run, err error) {
		t.underWay.WithLabelValues(kind).Dec()
		t.durations.WithLabelValues(kind).Observe(t.now().Sub(began).Seconds())
		t.runs.WithLabelValues(kind, name, run.State).Inc()
		if run.State == jobs.Failed {
			t.failures.WithLabelValues(kind, name, reason(run, err)).Inc()
		}
		over(run, err)
	}
}

// reason is why a run failed.
func reason(run jobs.Run, err error) string {
	switch {
	case guardfs.IsFull(err):
		return "disk_full"
	case errors.Is(err, jobs.ErrPanicked):
		return "panic"
	case run.Unreachable:
		return "unreachable"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	return "other"
}

// Store measures the requests to a store.
func (t *Telemetry) Store(name string, next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return &client{t, next, "store " + name, func(r *http.Request, outcome string, seconds float64) {
		t.stores.WithLabelValues(name, operation(r), outcome).Observe(seconds)
	}}
}

// Source measures the requests of a destination to its source.
func (t *Telemetry) Source(destination string, next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return &client{t, next, "source of " + destination, func(_ *http.Request, outcome string, seconds float64) {
		t.sources.WithLabelValues(destination, outcome).Observe(seconds)
	}}
}

// operation is the operation of SPARQL in a request.
func operation(r *http.Request) string {
	kind := r.Header.Get("Content-Type")
	query := r.URL.Query()
	switch {
	case strings.HasPrefix(kind, "application/sparql-update"):
		return "update"
	case strings.HasPrefix(kind, "application/sparql-query"), query.Has("query"):
		return "query"
	case r.Method == http.MethodPost && strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
		if strings.HasPrefix(firstBytes(r), "update=") {
			return "update"
		}
		return "query"
	}
	return "graph"
}

// firstBytes are those of a body that can be read again, "" of another.
func firstBytes(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	first := make([]byte, len("update="))
	n, _ := body.Read(first)
	return string(first[:n])
}

// client measures requests.
type client struct {
	t       *Telemetry
	next    http.RoundTripper
	to      string
	observe func(r *http.Request, outcome string, seconds float64)
}

// RoundTrip sends a request.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	began := c.t.now()
	sent, over := c.t.traces.request(r, c.to)
	res, err := c.next.RoundTrip(sent)
	outcome := "error"
	if err == nil {
		outcome = string('0'+byte(min(res.StatusCode/100, 9))) + "xx"
	}
	over(res, err)
	c.observe(r, outcome, c.t.now().Sub(began).Seconds())
	return res, err
}

// CloseIdleConnections is called by http.Client.
func (c *client) CloseIdleConnections() {
	if n, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		n.CloseIdleConnections()
	}
}

// Server measures the requests at a listener.
func (t *Telemetry) Server(listener string, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	at := prometheus.Labels{"listener": listener}
	h := promhttp.InstrumentHandlerResponseSize(t.sizes.MustCurryWith(at), t.traces.server(listener, next))
	h = promhttp.InstrumentHandlerTimeToWriteHeader(t.answerTime.MustCurryWith(at), h)
	h = promhttp.InstrumentHandlerCounter(t.requests.MustCurryWith(at), h)
	return promhttp.InstrumentHandlerInFlight(t.answering.With(at), h)
}
