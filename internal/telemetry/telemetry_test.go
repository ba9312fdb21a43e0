package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// TestOperation: the operation of a request to a store, by its form.
func TestOperation(t *testing.T) {
	for _, c := range []struct{ method, address, kind, body, want string }{
		{"POST", "/q", "application/sparql-query; charset=utf-8", "ASK {}", "query"},
		{"POST", "/q", "application/sparql-update", "CLEAR ALL", "update"},
		{"GET", "/q?query=ASK", "", "", "query"},
		{"POST", "/q", "application/x-www-form-urlencoded", "query=ASK", "query"},
		{"POST", "/q", "application/x-www-form-urlencoded", "update=CLEAR", "update"},
		{"PUT", "/data?graph=x", "application/n-triples", "", "graph"},
		{"GET", "/data?default", "", "", "graph"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://store.example"+c.address, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", c.kind)
		if got := operation(r); got != c.want {
			t.Errorf("%s %s %s %s is a %s, want %s", c.method, c.address, c.kind, c.body, got, c.want)
		}
	}
}

// TestReasons: why runs failed.
func TestReasons(t *testing.T) {
	for want, c := range map[string]struct {
		run jobs.Run
		err error
	}{
		"unreachable": {jobs.Run{Unreachable: true}, errors.New("connection refused")},
		"timeout":     {jobs.Run{}, context.DeadlineExceeded},
		"panic":       {jobs.Run{}, jobs.ErrPanicked},
		"disk_full":   {jobs.Run{Unreachable: true}, errors.New("write: no space left on device")},
		"other":       {jobs.Run{}, errors.New("the source names no set")},
	} {
		if got := reason(c.run, c.err); got != want {
			t.Errorf("%v failed because %s, want %s", c.err, got, want)
		}
	}
}

// TestTracing: the environment turns traces on and off.
func TestTracing(t *testing.T) {
	for _, c := range []struct {
		env string
		on  bool
		err string
	}{
		{"", false, ""},
		{"OTEL_TRACES_EXPORTER=otlp", true, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.example", true, ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector.example", true, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.example OTEL_TRACES_EXPORTER=none", false, ""},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_SDK_DISABLED=true", false, ""},
		{"OTEL_TRACES_EXPORTER=console", false, "otlp or none"},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, "http/protobuf"},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		on, err := tracing(func(name string) string { return env[name] })
		if on != c.on || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, %v", c.env, on, err)
		}
	}
}

// collector takes traces as an OpenTelemetry collector does.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	text  string // of all that came
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var req coltrace.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text += string(raw)
	for _, res := range req.ResourceSpans {
		for _, s := range res.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestTraces: a run with a request to a store, answered by a program that traces too, is one trace in
// the collector. No secret of an address is in it.
func TestTraces(t *testing.T) {
	var c collector
	at := httptest.NewServer(&c)
	defer at.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", at.URL)
	t.Setenv("OTEL_SERVICE_NAME", "ours")
	m := New()
	on, stop, err := m.Trace(t.Context())
	if err != nil || !on {
		t.Fatal(on, err)
	}
	store := httptest.NewServer(m.Server("public", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusBadGateway) })))
	defer store.Close()
	ctx, end := m.Run(t.Context(), jobs.Run{ID: 7, Job: "scan:books", Cause: "schedule"})
	client := &http.Client{Transport: m.Store("fuseki", http.DefaultTransport)}
	for _, ctx := range []context.Context{ctx, t.Context()} { // the second one is of no run
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, store.URL+"/query?query=ASK&token=hush", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	end(jobs.Run{ID: 7, Job: "scan:books", State: jobs.Failed, Error: "the store is broken"}, errors.New("x"))
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		if by[s.Name] == nil {
			by[s.Name] = s
		}
	}
	run, asked, answered := by["scan books"], by["GET store fuseki"], by["GET public"]
	if len(c.spans) != 4 || run == nil || asked == nil || answered == nil {
		t.Fatalf("the spans are %v", c.spans)
	}
	if string(asked.ParentSpanId) != string(run.SpanId) || string(answered.ParentSpanId) != string(asked.SpanId) || string(answered.TraceId) != string(run.TraceId) || len(run.ParentSpanId) != 0 {
		t.Errorf("they are no chain: %v", c.spans)
	}
	if run.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || run.Status.GetMessage() != "the store is broken" || asked.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("the faults are not told: %v %v", run.Status, asked.Status)
	}
	if strings.Contains(c.text, "hush") || !strings.Contains(c.text, "ours") {
		t.Errorf("a secret, or no name of the service: %q", c.text)
	}
}
