package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/version"
)

// traces are off in the zero value.
type traces struct{ tracer trace.Tracer }

// headers carry a trace to the next program, and from the one before.
var headers = propagation.TraceContext{}

// Trace begins to send traces as the environment says, by the names of OpenTelemetry. They are on
// with OTEL_TRACES_EXPORTER=otlp, or with an address in OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. stop sends the rest.
func (t *Telemetry) Trace(ctx context.Context) (on bool, stop func(context.Context) error, err error) {
	stop = func(context.Context) error { return nil }
	if on, err = tracing(os.Getenv); err != nil || !on {
		return false, stop, err
	}
	to, err := otlptracehttp.New(ctx)
	if err != nil {
		return false, stop, fmt.Errorf("traces by OpenTelemetry: %w", err)
	}
	whose, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "rsbridge"), attribute.String("service.version", version.String())),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return false, stop, errors.Join(fmt.Errorf("traces by OpenTelemetry: %w", err), to.Shutdown(ctx))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(to), sdktrace.WithResource(whose))
	t.traces.tracer = provider.Tracer("github.com/rsbridge/rsbridge", trace.WithInstrumentationVersion(version.String()))
	return true, provider.Shutdown, nil
}

// tracing tells whether the environment turns traces on.
func tracing(env func(string) string) (bool, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	switch exporter := env("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if env("OTEL_EXPORTER_OTLP_ENDPOINT")+env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: it is otlp or none", exporter)
	}
	if p := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf"); p != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%s: it is http/protobuf", p)
	}
	return true, nil
}

func nothing(*http.Response, error) {}

// run traces a run: a trace of its own, with the requests of the run in it.
func (t traces) run(ctx context.Context, run jobs.Run) (context.Context, func(jobs.Run, error)) {
	if t.tracer == nil {
		return ctx, func(jobs.Run, error) {}
	}
	kind, name, _ := strings.Cut(run.Job, ":")
	ctx, span := t.tracer.Start(ctx, kind+" "+name, trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("rsbridge.run.kind", kind), attribute.String("rsbridge.run.name", name), attribute.Int64("rsbridge.run.id", int64(run.ID)), attribute.String("rsbridge.run.cause", run.Cause)))
	return ctx, func(run jobs.Run, _ error) {
		span.SetAttributes(attribute.String("rsbridge.run.state", run.State))
		if run.State == jobs.Failed {
			span.SetStatus(codes.Error, run.Error) // without secrets
		}
		span.End()
	}
}

// request traces a request of ours. Its address may hold secrets: the host alone is told.
func (t traces) request(r *http.Request, to string) (*http.Request, func(*http.Response, error)) {
	if t.tracer == nil || !trace.SpanContextFromContext(r.Context()).IsValid() { // outside of any run
		return r, nothing
	}
	ctx, span := t.tracer.Start(r.Context(), r.Method+" "+to, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("server.address", r.URL.Hostname()), attribute.String("server.port", r.URL.Port())))
	r = r.Clone(ctx)
	headers.Inject(ctx, propagation.HeaderCarrier(r.Header))
	return r, func(res *http.Response, err error) {
		if err != nil {
			span.SetStatus(codes.Error, "no answer")
		} else {
			answered(span, res.StatusCode)
		}
		span.End()
	}
}

// server traces a request that is answered here.
func (t traces) server(listener string, next http.Handler) http.Handler {
	if t.tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := t.tracer.Start(headers.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), r.Method+" "+listener, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path), attribute.String("user_agent.original", r.UserAgent())))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
		if d, ok := w.(interface{ Status() int }); ok { // of the counters around this
			answered(span, cmp.Or(d.Status(), http.StatusOK))
		}
	})
}

func answered(span trace.Span, code int) {
	span.SetAttributes(attribute.Int("http.response.status_code", code))
	if code >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(code))
	}
}
