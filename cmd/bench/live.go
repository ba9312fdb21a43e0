package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/simulate"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

const (
	livePace     = 14 // changes a second
	liveChanges  = 15 * livePace
	pollChanges  = 30 * livePace
	burstChanges = 5000
	burstPace    = 500
	subscribers  = 1000
	hubPace      = 50
	hubChanges   = 10 * hubPace
	gatewayTurns = 200
	quietTurns   = 50
	fewListed    = 200
	manyListed   = 20_000
)

const (
	dataUpdate   = `INSERT DATA { GRAPH <%s> { <http://bench.example/live%d> <http://bench.example/v> "1" } }`
	deleteUpdate = `DELETE DATA { GRAPH <%s> { <http://bench.example/live%d> <http://bench.example/v> "1" } }`
)

var liveRows = []row{
	{id: "live-median", what: "update answered until visible in the mirror, 14 a second, median", baseline: "polling every 10 s", speed: true, limit: 20, unitName: "ms", value: lag(0.5), shape: lags},
	{id: "live-p99", what: "update answered until visible in the mirror, 14 a second, 99th percentile", baseline: "polling every 10 s", speed: true, limit: 10, unitName: "ms", value: lag(0.99)},
	{id: "live-burst", what: "500 updates of ten entities each, until the mirror has all", baseline: "500 changes/s", speed: true, limit: 1, measure: burst(10, 4)},
	{id: "live-singles", what: "5,000 updates of one entity each, until the mirror has all", baseline: "500 changes/s", speed: true, limit: 1, measure: burst(1, 16)},
	{id: "hub-p99", what: "1,000 subscribers of one hub, 50 changes/s: update answered until delivered, 99th percentile", baseline: "allowed", limit: 1, unitName: "ms",
		value: func(ctx context.Context, e *env) (float64, float64, error) {
			l, _, err := hubbed(ctx, e)
			return l, 2000, err
		}},
	{id: "hub-memory", what: "1,000 subscribers of one hub: most resident memory of the source", baseline: "allowed", limit: 1, most: 500,
		megabytes: func(ctx context.Context, e *env) (int64, error) { _, mb, err := hubbed(ctx, e); return int64(mb), err }},
	gatewayTime("data", "INSERT DATA", updates(dataUpdate)),
	gatewayTime("delete", "DELETE DATA", updates(deleteUpdate)),
	gatewayTime("post", "Graph Store POST", posted),
	gatewayRow("data", "INSERT DATA", 3, updates(dataUpdate)),
	gatewayRow("delete", "DELETE DATA", 3, updates(deleteUpdate)),
	gatewayRow("post", "Graph Store POST", 3, posted),
	gatewayDisk,
	gatewayRow("where", "DELETE and INSERT with WHERE", 4, updates(`DELETE { GRAPH <%[1]s> { ?s <http://bench.example/w> ?o } } INSERT { GRAPH <%[1]s> { ?s <http://bench.example/w> %[2]d } } WHERE { VALUES ?s { <http://bench.example/one> } OPTIONAL { GRAPH <%[1]s> { ?s <http://bench.example/w> ?o } } }`)),
	gatewayRow("unknown", "an update of unknown effect", 4, updates(`INSERT { GRAPH <%s> { ?u <http://bench.example/u> %d } } WHERE { BIND(UUID() AS ?u) }`)),
	quietRow("time", "Change List with its ETag: time of the source", "µs", 200, func(poll, _ quietPoll) float64 { return poll.micros }),
	quietRow("bytes", "Change List with its ETag: bytes from the source", "bytes", 500, func(poll, _ quietPoll) float64 { return poll.sent }),
	quietRow("mirror-time", "sync of our mirror: time of the source", "µs", 200, func(_, sync quietPoll) float64 { return sync.micros }),
	quietRow("mirror-bytes", "sync of our mirror: bytes from the source", "bytes", 500, func(_, sync quietPoll) float64 { return sync.sent }),
	{id: "open-list", what: fmt.Sprintf("bytes written to publish a change, %d in the open Change List", manyListed), baseline: fmt.Sprintf("%d in it", fewListed), limit: 1.25, unitName: "bytes", value: openList},
}

// pushRuns is shared by the rows of push.
type pushRuns struct {
	lags   [][2][]float64 // of each turn: by push and by polling
	hubs   [][2]float64   // of each turn: p99, megabytes
	beside func() error   // counts to the baseline of the gateway's rows
}

// daemon is rsbridge run, in a process of its own.
type daemon struct {
	config, public, admin string
	cmd                   *exec.Cmd
}

// daemon starts one. PUBLIC, ADMIN and DIR in its configuration are replaced.
func (e *env) daemon(ctx context.Context, config string) (*daemon, error) {
	dir, err := os.MkdirTemp(e.dir, "daemon-")
	if err != nil {
		return nil, err
	}
	d := &daemon{config: filepath.Join(dir, "rsbridge.yaml"), public: freeAddr(), admin: freeAddr()}
	text := "state: DIR/state\npublic: {listen: PUBLIC, base_url: \"http://PUBLIC\", hub: {callbacks: [127.0.0.1]}}\nadmin: {listen: ADMIN}\n" + config
	if err := os.WriteFile(d.config, []byte(strings.NewReplacer("PUBLIC", d.public, "ADMIN", d.admin, "DIR", dir).Replace(text)), 0o600); err != nil {
		return nil, err
	}
	d.cmd = exec.CommandContext(ctx, filepath.Join("bin", "rsbridge"), "-c", d.config, "run", "--log-level", "error")
	d.cmd.Stderr = os.Stderr
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start bin/rsbridge (make build): %w", err)
	}
	for range 200 {
		if res, err := http.Get("http://" + d.admin + "/healthz"); err == nil {
			res.Body.Close()
			return d, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.stop()
	return nil, errors.New("rsbridge run did not start")
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *daemon) do(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join("bin", "rsbridge"), append([]string{"-c", d.config}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("rsbridge %s: %w: %.300s", args[0], err, out)
	}
	return nil
}

func (d *daemon) update(ctx context.Context, text string) error {
	_, err := timed(ctx, http.MethodPost, "http://"+d.admin+"/stores/local/update", "application/sparql-update", "", strings.NewReader(text))
	return err
}

// ask gives the answer of the store of a daemon.
func (d *daemon) ask(ctx context.Context, query string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.admin+"/stores/local/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "text/csv")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

const pushedSource = "stores: {local: {embedded: DIR/store, gateway: true}}\nsets: {data: {store: local, schedule: \"\", publish: [resourcelist, changelist], changelist: {entries: 50000}}}\n"

// pushed starts a source with some entities, and a mirror of it. live are further settings of the
// mirror.
func (e *env) pushed(ctx context.Context, live string) (source, mirror *daemon, err error) {
	if source, err = e.daemon(ctx, pushedSource); err != nil {
		return nil, nil, err
	}
	if err = errors.Join(source.update(ctx, pushedTriples(-500, 500)), source.do(ctx, "scan")); err == nil {
		mirror, err = e.daemon(ctx, fmt.Sprintf("stores: {local: {embedded: DIR/store}}\ndestinations: {copy: {source: \"http://%s\", store: local, %s, audit: {schedule: \"\"}}}\n", source.public, live))
	}
	if err == nil {
		if err = mirror.do(ctx, "sync"); err != nil {
			mirror.stop()
		}
	}
	if err != nil {
		source.stop()
	}
	return source, mirror, err
}

func pushedTriples(from, n int) string {
	var b strings.Builder
	b.WriteString("INSERT DATA {")
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&b, " <http://bench.example/e%d> <http://bench.example/v> \"some words of %[1]d\" .\n", i)
	}
	return b.String() + "}"
}

// visible makes changes at a pace, and gives the milliseconds from the answer to each until the
// mirror has it. It looks for the oldest one that is missing.
func visible(ctx context.Context, source, mirror *daemon, n int) ([]float64, error) {
	answered := make(chan time.Time, n)
	failed := make(chan error, 1)
	go func() { // ends with the changes
		defer close(answered)
		tick := time.NewTicker(time.Second / livePace)
		defer tick.Stop()
		for i := range n {
			if err := source.update(ctx, pushedTriples(i, 1)); err != nil {
				failed <- err
				return
			}
			answered <- time.Now()
			<-tick.C
		}
	}()
	var out []float64
	for at := range answered {
		for {
			has, err := mirror.ask(ctx, fmt.Sprintf("SELECT ?v { <http://bench.example/e%d> <http://bench.example/v> ?v }", len(out)))
			if err != nil {
				return nil, err
			}
			if strings.Contains(has, "words") {
				break
			}
			if time.Since(at) > time.Minute {
				return nil, fmt.Errorf("change %d of %d is not mirrored after a minute", len(out), n)
			}
			time.Sleep(2 * time.Millisecond)
		}
		out = append(out, float64(time.Since(at).Microseconds())/1000)
	}
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	slices.Sort(out)
	return out, nil
}

// lags are the sorted milliseconds of one turn, by push and by polling.
func lags(ctx context.Context, e *env) (out [2][]float64, err error) {
	if len(e.push.lags) > e.turn {
		return e.push.lags[e.turn], nil
	}
	for i, live := range []string{`live: auto, schedule: ""`, `live: "off", schedule: "@every 10s"`} {
		source, mirror, err := e.pushed(ctx, live)
		if err != nil {
			return out, err
		}
		out[i], err = visible(ctx, source, mirror, []int{liveChanges, pollChanges}[i])
		mirror.stop()
		source.stop()
		if err != nil {
			return out, err
		}
	}
	e.push.lags = append(e.push.lags, out)
	return out, nil
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// steps are the hundredths of a distribution.
func steps(sorted []float64) (out []float64) {
	for i := range 101 {
		out = append(out, quantile(sorted, float64(i)/100))
	}
	return out
}

// plotShape shows which part of the changes was visible after a time, on a logarithmic scale: ours
// and the baseline.
func plotShape(r result) string {
	const (
		left, top, width, height = 50, 20, 560, 220
		least, most              = 1.0, 100_000.0 // ms
	)
	x := func(ms float64) float64 {
		return left + math.Log10(min(max(ms, least), most)/least)/math.Log10(most/least)*width
	}
	y := func(part int) float64 { return top + height*(1-float64(part)/100) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11"><rect width="100%%" height="100%%" fill="#fff"/>`+"\n", left+width+30, top+height+40)
	for ms := least; ms <= most; ms *= 10 {
		fmt.Fprintf(&b, `<line x1="%[1]g" x2="%[1]g" y1="%[2]d" y2="%[3]d" stroke="#ddd"/><text x="%[1]g" y="%[4]d" text-anchor="middle">%[5]v</text>`+"\n", x(ms), top, top+height, top+height+14, time.Duration(ms)*time.Millisecond)
	}
	for part := 0; part <= 100; part += 25 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%[3]g" y2="%[3]g" stroke="#ddd"/><text x="%d" y="%g" text-anchor="end">%d %%</text>`+"\n", left, left+width, y(part), left-4, y(part)+4, part)
	}
	for i, of := range r.Shape {
		colour, name := []string{"#2b7a4b", "#b3362b"}[i], []string{"by notifications", r.Baseline}[i]
		if r.Lines != nil {
			name = r.Lines[i]
		}
		var line strings.Builder
		for part, ms := range of {
			fmt.Fprintf(&line, "%.1f,%.1f ", x(ms), y(part))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", line.String(), colour, left+8, top+14+14*i, colour, html.EscapeString(name))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">from the answer to an update until the mirror has it</text></svg>`+"\n", left+width/2, top+height+32)
	return b.String()
}

func lag(q float64) func(context.Context, *env) (float64, float64, error) {
	return func(ctx context.Context, e *env) (float64, float64, error) {
		both, err := lags(ctx, e)
		if err != nil {
			return 0, 0, err
		}
		return quantile(both[0], q), quantile(both[1], q), nil
	}
}

// burst makes updates of so many entities each, as fast as some clients can.
func burst(each, clients int) func(ctx context.Context, e *env) (took, base time.Duration, err error) {
	return func(ctx context.Context, e *env) (took, base time.Duration, err error) {
		source, mirror, err := e.pushed(ctx, `live: auto, schedule: ""`)
		if err != nil {
			return 0, 0, err
		}
		defer source.stop()
		defer mirror.stop()
		began := time.Now()
		var next atomic.Int64
		var wg sync.WaitGroup
		failed := make([]error, clients)
		for c := range failed {
			wg.Go(func() {
				for i := int(next.Add(1)) - 1; i < burstChanges/each && failed[c] == nil; i = int(next.Add(1)) - 1 {
					failed[c] = source.update(ctx, pushedTriples(i*each, each))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(failed...); err != nil {
			return 0, 0, err
		}
		fmt.Fprintf(os.Stderr, "%d updates: answered after %v\n", burstChanges/each, time.Since(began))
		for {
			has, err := mirror.ask(ctx, "SELECT (COUNT(*) AS ?n) { ?s <http://bench.example/v> ?v }")
			if err != nil {
				return 0, 0, err
			}
			if strings.Contains(has, strconv.Itoa(burstChanges+500)) {
				return time.Since(began), burstChanges * time.Second / burstPace, nil
			}
			if time.Since(began) > 5*time.Minute {
				return 0, 0, fmt.Errorf("after five minutes the mirror has %q", has)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// hubbed subscribes many callbacks at one hub. It gives the milliseconds from the answer to a change
// until a subscriber has it, their 99th percentile, and the memory of the source.
func hubbed(ctx context.Context, e *env) (p99, megabytes float64, err error) {
	if len(e.push.hubs) > e.turn {
		return e.push.hubs[e.turn][0], e.push.hubs[e.turn][1], nil
	}
	source, err := e.daemon(ctx, pushedSource)
	if err != nil {
		return 0, 0, err
	}
	defer source.stop()
	if err := errors.Join(source.update(ctx, pushedTriples(-500, 500)), source.do(ctx, "scan")); err != nil {
		return 0, 0, err
	}
	var mu sync.Mutex
	answered := make([]time.Time, hubChanges)
	heard := make([]map[int]time.Time, subscribers)
	total := 0
	done := make(chan struct{})
	var verified atomic.Int64
	callbacks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			verified.Add(1)
			io.WriteString(w, r.URL.Query().Get("hub.challenge"))
			return
		}
		body, err := io.ReadAll(r.Body)
		n, err2 := strconv.Atoi(r.URL.Path[1:])
		if err != nil || err2 != nil {
			return
		}
		at := time.Now()
		mu.Lock()
		defer mu.Unlock()
		for _, part := range bytes.Split(body, []byte(`rel="describes" href="http://bench.example/e`))[1:] {
			i, err := strconv.Atoi(string(part[:max(bytes.IndexByte(part, '"'), 0)]))
			if _, known := heard[n][i]; err == nil && i >= 0 && !known {
				heard[n][i] = at
				if total++; total == subscribers*hubChanges {
					close(done)
				}
			}
		}
	}))
	defer callbacks.Close()
	for i := range subscribers {
		heard[i] = map[int]time.Time{}
		for { // the hub takes so many at once
			res, err := http.PostForm("http://"+source.public+"/hub", url.Values{"hub.mode": {"subscribe"}, "hub.topic": {"http://" + source.public + "/data/notify/change"}, "hub.callback": {fmt.Sprintf("%s/%d", callbacks.URL, i)}})
			if err != nil {
				return 0, 0, err
			}
			res.Body.Close()
			if res.StatusCode == http.StatusAccepted {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for verified.Load() < subscribers {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Second) // the last answers are on disk
	tick := time.NewTicker(time.Second / hubPace)
	defer tick.Stop()
	for i := range hubChanges {
		if err := source.update(ctx, pushedTriples(i, 1)); err != nil {
			return 0, 0, err
		}
		mu.Lock()
		answered[i] = time.Now()
		mu.Unlock()
		<-tick.C
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		return 0, 0, fmt.Errorf("%d of %d deliveries are there after a minute", total, subscribers*hubChanges)
	}
	mu.Lock()
	defer mu.Unlock()
	var all []float64
	for _, of := range heard {
		for i, at := range of {
			all = append(all, max(0, float64(at.Sub(answered[i]).Microseconds())/1000))
		}
	}
	slices.Sort(all)
	if megabytes, err = residentPeak(source.cmd.Process.Pid); err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(os.Stderr, "hub: median %.0f ms, p99 %.0f ms, %.0f MB\n", quantile(all, 0.5), quantile(all, 0.99), megabytes)
	e.push.hubs = append(e.push.hubs, [2]float64{quantile(all, 0.99), megabytes})
	return quantile(all, 0.99), megabytes, nil
}

// gatewayRequest makes the n-th request of a class, below the address of a store: /update or /data.
type gatewayRequest func(n int) (at, contentType, body string)

func updates(text string) gatewayRequest {
	return func(n int) (at, contentType, body string) {
		return "/update", "application/sparql-update", fmt.Sprintf(text, gatewayGraph, n)
	}
}

func posted(n int) (at, contentType, body string) {
	return "/data?graph=" + url.QueryEscape(gatewayGraph), "application/n-triples", fmt.Sprintf("<http://bench.example/live%d> <http://bench.example/v> \"1\" .\n", n)
}

const gatewayGraph = benchGraph + "/gateway"

// gatewayRow compares requests through the gateway with those of the bare store, by turns.
func gatewayRow(class, what string, limit float64, request gatewayRequest) row {
	return row{id: "gateway-" + class, what: "through the gateway, " + what + ", median", baseline: "the store, bare", limit: limit, needs: teststores.EnvOxigraph,
		measure: func(ctx context.Context, e *env) (took, base time.Duration, err error) {
			return gatewayMedians(ctx, e, request)
		}}
}

// gatewayTime compares the median of such requests with its limit.
func gatewayTime(class, what string, request gatewayRequest) row {
	return row{id: "gateway-" + class + "-ms", what: "through the gateway, " + what + ", median", baseline: "allowed", limit: 1, unitName: "ms", needs: teststores.EnvOxigraph,
		value: func(ctx context.Context, e *env) (float64, float64, error) {
			took, _, err := gatewayMedians(ctx, e, request)
			return float64(took.Microseconds()) / 1000, 2, err
		}}
}

func gatewayMedians(ctx context.Context, e *env, request gatewayRequest) (took, base time.Duration, err error) {
	bare := oxigraph()
	if err := bare.drop(ctx, gatewayGraph); err != nil {
		return 0, 0, err
	}
	d, err := e.daemon(ctx, fmt.Sprintf("stores: {local: {query: %q, update: %q, graph_store: %q, gateway: true}}\nsets: {data: {store: local, graphs: [%q], schedule: \"\"}}\n", bare.query, bare.update, bare.data, gatewayGraph))
	if err != nil {
		return 0, 0, err
	}
	defer d.stop()
	if err := errors.Join(bare.run(ctx, fmt.Sprintf(`INSERT DATA { GRAPH <%s> { <http://bench.example/one> <http://bench.example/w> 0 } }`, gatewayGraph)), d.do(ctx, "scan")); err != nil {
		return 0, 0, err
	}
	var spent [2][]time.Duration
	for i := range gatewayTurns {
		for side := range spent {
			at, contentType, body := request(2*i + side)
			if side == 0 {
				at = "http://" + d.admin + "/stores/local" + at
			} else if at == "/update" {
				at = bare.update
			} else {
				at = bare.graph(gatewayGraph)
			}
			one, err := timed(ctx, http.MethodPost, at, contentType, "", strings.NewReader(body))
			if err != nil {
				return 0, 0, err
			}
			if side == 1 && e.push.beside != nil {
				began := time.Now()
				if err := e.push.beside(); err != nil {
					return 0, 0, err
				}
				one += time.Since(began)
			}
			spent[side] = append(spent[side], one)
		}
	}
	for side := range spent {
		slices.Sort(spent[side])
	}
	return spent[0][gatewayTurns/2], spent[1][gatewayTurns/2], bare.drop(ctx, gatewayGraph)
}

// gatewayDisk is the row of INSERT DATA beside the store and one write to disk: the gateway keeps
// what it tells, before the store is asked.
var gatewayDisk = func() row {
	r := gatewayRow("disk", "INSERT DATA", 2, updates(dataUpdate))
	r.baseline = "the store, bare, and a synced write"
	measure := r.measure
	r.measure = func(ctx context.Context, e *env) (took, base time.Duration, err error) {
		f, err := os.CreateTemp(e.dir, "synced-")
		if err != nil {
			return 0, 0, err
		}
		defer f.Close()
		e.push.beside = func() error {
			_, err := f.WriteString("an entity and its update, some hundred bytes")
			return errors.Join(err, f.Sync())
		}
		defer func() { e.push.beside = nil }()
		return measure(ctx, e)
	}
	return r
}()

// countedConn counts what a server sends.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

type countedListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.sent}, err
}

func quietRow(id, what, unit string, allowed float64, of func(poll, sync quietPoll) float64) row {
	return row{id: "quiet-" + id, what: "nothing new, " + what, baseline: "allowed", limit: 1, unitName: unit, value: func(ctx context.Context, e *env) (float64, float64, error) {
		poll, sync, err := quiet(ctx, e)
		return of(poll, sync), allowed, err
	}}
}

// quietPoll is a poll without news: medians of the microseconds in the handlers of the source, and
// of the bytes that it sends. A poll asks for the Change List with its ETag; a sync of our mirror by
// its schedule also looks at the way to it, seldom.
type quietPoll struct{ micros, sent float64 }

func quiet(ctx context.Context, e *env) (poll, sync quietPoll, err error) {
	dir, err := os.MkdirTemp(e.dir, "quiet-")
	if err != nil {
		return poll, sync, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return poll, sync, err
	}
	base := "http://" + l.Addr().String()
	cfg := bridge.NewConfig()
	cfg.State = filepath.Join(dir, "source")
	cfg.Public, cfg.Admin.Listen = bridge.Public{BaseURL: base}, ""
	st, set := bridge.NewStore(), bridge.NewSet()
	st.Embedded = filepath.Join(dir, "store")
	set.Store, set.Schedule = "local", ""
	cfg.Stores["local"], cfg.Sets["data"] = st, set
	source, err := bridge.Open(ctx, cfg, bridge.Options{Command: "bench"})
	if err != nil {
		return poll, sync, errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	var bytesSent, spent atomic.Int64
	h := source.PublicHandler()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h.ServeHTTP(w, r)
		spent.Add(time.Since(began).Nanoseconds())
	})}
	go server.Serve(countedListener{l, &bytesSent}) // until it is closed
	defer server.Close()
	own := bridge.NewConfig()
	own.State = filepath.Join(dir, "mirror")
	own.Public, own.Admin.Listen = bridge.Public{BaseURL: benchBase}, ""
	mine, dest := bridge.NewStore(), bridge.NewDestination()
	mine.Embedded = filepath.Join(dir, "copy")
	dest.Source, dest.Store, dest.Schedule, dest.Audit.Schedule, dest.Live.Mode = base, "local", "", "", "off"
	own.Stores["local"], own.Destinations["copy"] = mine, dest
	mirror, err := bridge.Open(ctx, own, bridge.Options{Command: "bench"})
	if err != nil {
		return poll, sync, err
	}
	defer func() { err = errors.Join(err, mirror.Close()) }()
	var data bytes.Buffer
	for lines := range (simulate.World{Seed: 1}).Lines(0, 1000, 1000) {
		data.Write(lines)
	}
	if _, err := source.LoadStore(ctx, "local", "", rdfres.NTriples, &data, false); err != nil {
		return poll, sync, err
	}
	if err := source.Do(ctx, "scan", "data", nil, new(bridge.ScanReport)); err != nil {
		return poll, sync, err
	}
	if err := mirror.Do(ctx, "sync", "copy", nil, new(bridge.SyncReport)); err != nil {
		return poll, sync, err
	}
	var tag string
	ask := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/data/changelist.xml", nil)
		if err != nil {
			return err
		}
		req.Header.Set("If-None-Match", tag)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if tag != "" && res.StatusCode != http.StatusNotModified {
			return errors.New("there is nothing new, and the Change List was sent: " + res.Status)
		}
		tag = res.Header.Get("Etag")
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	scheduled := func() error {
		run, _, err := mirror.Runner().Start("sync:copy", jobs.BySchedule, nil)
		if err == nil {
			_, err = mirror.Runner().Wait(ctx, run.ID)
		}
		return err
	}
	time.Sleep(2 * time.Second) // a list so young has no validators that a mirror relies on
	if err := ask(); err != nil {
		return poll, sync, err
	}
	for _, way := range []struct {
		to *quietPoll
		do func() error
	}{{&poll, ask}, {&sync, scheduled}} {
		var times, sizes []float64
		for range quietTurns {
			bytesSent.Store(0)
			spent.Store(0)
			if err := way.do(); err != nil {
				return poll, sync, err
			}
			times, sizes = append(times, float64(spent.Load())/1000), append(sizes, float64(bytesSent.Load()))
		}
		slices.Sort(times)
		slices.Sort(sizes)
		*way.to = quietPoll{quantile(times, 0.5), quantile(sizes, 0.5)}
	}
	return poll, sync, nil
}

// countedStore counts the bytes written to a store.
type countedStore struct {
	kv.Store
	written *int64
}

func (s countedStore) Batch() kv.Batch { return countedBatch{s.Store.Batch(), s.written} }

type countedBatch struct {
	kv.Batch
	written *int64
}

func (b countedBatch) Set(key, value []byte) {
	*b.written += int64(len(key) + len(value))
	b.Batch.Set(key, value)
}

// openList gives the bytes that a publication of one change writes, with many and with few changes
// in the open Change List: the median.
func openList(ctx context.Context, e *env) (many, few float64, err error) {
	var written int64
	p, err := e.publisherOf(ctx, 1000, fmt.Sprintf("open-list-%d", e.turn), func(s kv.Store) kv.Store { return countedStore{s, &written} })
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	made := 0
	each := func(upTo int) (float64, error) {
		for ; made < upTo; made += changed {
			if _, err := p.change(ctx, changed); err != nil {
				return 0, err
			}
		}
		var all []float64
		for range 101 {
			made++
			files, err := p.folder()
			if err != nil {
				return 0, err
			}
			written = 0
			if _, err := p.change(ctx, 1); err != nil {
				return 0, err
			}
			after, err := p.folder()
			if err != nil {
				return 0, err
			}
			all = append(all, float64(written+after-files))
		}
		slices.Sort(all)
		return quantile(all, 0.5), nil
	}
	if few, err = each(fewListed); err == nil {
		many, err = each(manyListed)
	}
	return many, few, err
}
