package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Options of New.
type Options struct {
	Token  string       // "" for none: loopback only
	Logger *slog.Logger // nil: silent
}

type api struct {
	b     *bridge.Bridge
	log   *slog.Logger
	token [sha256.Size]byte
	open  bool
}

// New makes the handler of the admin listener.
func New(b *bridge.Bridge, o Options) http.Handler {
	a := &api{b: b, log: o.Logger, token: sha256.Sum256([]byte(o.Token)), open: o.Token == ""}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.RedirectTrailingSlash, g.HandleMethodNotAllowed = false, true
	g.UseRawPath, g.UnescapePathValues = true, true
	g.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, p any) {
		if p == http.ErrAbortHandler {
			panic(p) // an embedded store ended an answer in the middle on purpose
		}
		a.log.Error("handler panicked", "path", c.Request.URL.Path, "panic", p)
		writeProblem(c, fail(http.StatusInternalServerError, "the handler panicked", "the log of the bridge tells more"))
	}))
	g.NoRoute(func(c *gin.Context) {
		writeProblem(c, fail(http.StatusNotFound, "there is nothing at "+c.Request.URL.Path, "GET /openapi.json lists the addresses"))
	})
	g.NoMethod(func(c *gin.Context) {
		writeProblem(c, fail(http.StatusMethodNotAllowed, c.Request.Method+" is not for "+c.Request.URL.Path, "GET /openapi.json lists the addresses"))
	})
	g.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	g.GET("/readyz", func(c *gin.Context) { c.String(http.StatusOK, "ready\n") })
	closed := g.Group("/", a.guard)
	for _, r := range a.routes() {
		closed.Handle(r.method, r.path, a.handle(r))
	}
	closed.GET("/metrics", gin.WrapH(metrics(b)))
	closed.GET("/openapi.json", func(c *gin.Context) { c.JSON(http.StatusOK, a.openAPI()) })
	closed.GET("/", dashboard)
	for name, s := range b.Config().Stores {
		if s.Embedded != "" {
			at := "/stores/" + name
			closed.Any(at+"/*rest", gin.WrapH(http.StripPrefix(at, b.StoreHandler(name))))
		}
	}
	return g
}

// guard lets nobody in without the token, or, where there is none, from a page
// of another host in a browser.
func (a *api) guard(c *gin.Context) {
	if a.open {
		host := c.Request.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			writeProblem(c, fail(http.StatusForbidden, "the host "+host+" is not loopback", "without a token the API answers on loopback only; set admin.token_file"))
			return
		}
		if o := c.GetHeader("Origin"); o != "" {
			if u, err := url.Parse(o); err != nil || u.Host != c.Request.Host {
				writeProblem(c, fail(http.StatusForbidden, "the page "+o+" is of another origin", "set admin.token_file to use the API from elsewhere"))
			}
		}
		return
	}
	given, ok := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	if !ok { // a browser: the dashboard asks with basic authentication, any user name
		_, given, ok = c.Request.BasicAuth()
	}
	sum := sha256.Sum256([]byte(given))
	if !ok || subtle.ConstantTimeCompare(sum[:], a.token[:]) != 1 {
		if c.Request.URL.Path == "/" {
			c.Header("WWW-Authenticate", `Basic realm="rsbridge"`)
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		writeProblem(c, fail(http.StatusUnauthorized, "a token is needed", "send Authorization: Bearer TOKEN; admin.token_file holds it"))
	}
}

// route is one line of the API's table.
type route struct {
	method, path, summary string
	query                 []string // names of query parameters
	status                int      // of success
	result                any      // a value of the type that the answer has, for the description
	do                    func(c *gin.Context) (any, error)
}

const maxBody = 1 << 20 // bytes of a request to the API

func (a *api) handle(r route) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
		for k := range c.Request.URL.Query() {
			if !contains(r.query, k) {
				writeProblem(c, fail(http.StatusBadRequest, "the parameter "+k+" is not known", "allowed here: "+strings.Join(r.query, ", ")))
				return
			}
		}
		res, err := r.do(c)
		switch {
		case c.Writer.Written(): // a stream
		case err != nil:
			p := problem(err)
			if p.Status >= 500 {
				a.log.Error("request failed", "method", r.method, "path", c.Request.URL.Path, "error", err)
			}
			writeProblem(c, p)
		default:
			c.JSON(r.status, res)
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func (a *api) routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{get, "/api/v1/status", "how all sets and destinations stand", nil, 200, bridge.Status{},
			func(c *gin.Context) (any, error) { return a.b.Status(c) }},
		{get, "/api/v1/sets", "the sets", nil, 200, []bridge.SetStatus{}, a.sets},
		{get, "/api/v1/sets/:name", "one set", nil, 200, bridge.SetStatus{}, a.set},
		{get, "/api/v1/sets/:name/changes", "the log after a sequence or a time, oldest first", []string{"since", "limit"}, 200, bridge.Changes{}, a.changes},
		{get, "/api/v1/sets/:name/resources", "current resources in the order of their keys, or one entity", []string{"entity", "after", "limit"}, 200, Resources{}, a.resources},
		{get, "/api/v1/sets/:name/description", "the representation of one entity, now or at a time", []string{"entity", "at", "as"}, 200, "", a.description},
		{post, "/api/v1/sets/:name/scan", "look for changes now", []string{"queue"}, 202, jobs.Run{}, a.begin("scan")},
		{post, "/api/v1/sets/:name/accept", "accept what is held", []string{"queue"}, 202, jobs.Run{}, a.begin("accept")},
		{get, "/api/v1/destinations", "the destinations", nil, 200, []bridge.DestinationStatus{}, a.destinations},
		{get, "/api/v1/destinations/:name", "one destination", nil, 200, bridge.DestinationStatus{}, a.destination},
		{get, "/api/v1/destinations/:name/differences", "what is pending, failed, or differed at the last audit", []string{"limit"}, 200, Differences{}, a.differences},
		{post, "/api/v1/destinations/:name/sync", "follow the source now; body: {\"full\":false,\"dry_run\":false}", []string{"queue"}, 202, jobs.Run{}, a.begin("sync")},
		{post, "/api/v1/destinations/:name/audit", "compare mirror and source now; body: {\"repair\":false,\"depth\":\"store\"}", []string{"queue"}, 202, jobs.Run{}, a.begin("audit")},
		{post, "/api/v1/destinations/:name/repair", "compare, and make equal", []string{"queue"}, 202, jobs.Run{}, a.begin("repair")},
		{post, "/api/v1/destinations/:name/pause", "stop the schedule", nil, 200, bridge.DestinationStatus{}, a.pause(true)},
		{post, "/api/v1/destinations/:name/resume", "start the schedule again", nil, 200, bridge.DestinationStatus{}, a.pause(false)},
		{get, "/api/v1/jobs", "the jobs and their schedules", nil, 200, []Job{}, a.jobs},
		{get, "/api/v1/runs", "runs, newest first", []string{"job", "limit"}, 200, Runs{}, a.runs},
		{get, "/api/v1/runs/:id", "one run", []string{"wait"}, 200, jobs.Run{}, a.run},
		{post, "/api/v1/runs/:id/cancel", "end a run", nil, 202, jobs.Run{}, a.cancel},
		{get, "/api/v1/events", "server-sent events: every change of a run", nil, 200, jobs.Run{}, a.events},
	}
}

func (a *api) known(list []string, kind, name string) error {
	if contains(list, name) {
		return nil
	}
	return fail(http.StatusNotFound, "there is no "+kind+" "+name, "there are: "+strings.Join(list, ", "))
}

func (a *api) sets(c *gin.Context) (any, error) {
	st, err := a.b.Status(c)
	return st.Sets, err
}

func (a *api) set(c *gin.Context) (any, error) {
	if err := a.known(a.b.Sets(), "set", c.Param("name")); err != nil {
		return nil, err
	}
	return a.b.SetStatus(c.Param("name"))
}

func (a *api) destinations(c *gin.Context) (any, error) {
	st, err := a.b.Status(c)
	return st.Destinations, err
}

func (a *api) destination(c *gin.Context) (any, error) {
	if err := a.known(a.b.Destinations(), "destination", c.Param("name")); err != nil {
		return nil, err
	}
	return a.b.DestinationStatus(c, c.Param("name"))
}

// limit reads ?limit=, between 1 and most.
func limit(c *gin.Context, usual, most int) (int, error) {
	s := c.Query("limit")
	if s == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fail(http.StatusBadRequest, "limit="+s+" is no number between 1 and "+strconv.Itoa(most), "")
	}
	return n, nil
}

func (a *api) changes(c *gin.Context) (any, error) {
	name := c.Param("name")
	if err := a.known(a.b.Sets(), "set", name); err != nil {
		return nil, err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, err
	}
	out, err := a.b.Changes(name, c.Query("since"), most)
	if errors.Is(err, bridge.ErrSince) {
		return nil, fail(http.StatusBadRequest, err.Error(), "")
	}
	return out, err
}

// description answers the representation of one entity, now or as it was.
func (a *api) description(c *gin.Context) (any, error) {
	name := c.Param("name")
	if err := a.known(a.b.Sets(), "set", name); err != nil {
		return nil, err
	}
	var at time.Time
	if s := c.Query("at"); s != "" {
		t, err := resourcesync.ParseTime(s, true)
		if err != nil {
			return nil, fail(http.StatusBadRequest, "at="+s+" is no time like 2026-01-31T12:00:00Z", "")
		}
		at = t
	}
	data, ver, err := a.b.Describe(name, c.Query("entity"), at, rdfres.Format(c.Query("as")))
	if err != nil {
		return nil, err
	}
	f := rdfres.Format(c.Query("as"))
	if f == "" {
		f = ver.Format
	}
	c.Data(http.StatusOK, f.MediaType(), data)
	return nil, nil
}

// Resources is a page of resources. Next is the value of after that goes on, "" at the end.
type Resources struct {
	Resources []bridge.ResourceLine `json:"resources"`
	Next      string                `json:"next"`
}

func (a *api) resources(c *gin.Context) (any, error) {
	name := c.Param("name")
	if err := a.known(a.b.Sets(), "set", name); err != nil {
		return nil, err
	}
	most, err := limit(c, 100, 10000)
	if err != nil {
		return nil, err
	}
	res, next, err := a.b.Resources(name, c.Query("entity"), c.Query("after"), most)
	return Resources{res, next}, err
}

// Differences of a mirror.
type Differences struct {
	Differences []bridge.Difference `json:"differences"`
	More        bool                `json:"more"`
}

func (a *api) differences(c *gin.Context) (any, error) {
	name := c.Param("name")
	if err := a.known(a.b.Destinations(), "destination", name); err != nil {
		return nil, err
	}
	most, err := limit(c, 1000, 10000)
	if err != nil {
		return nil, err
	}
	out := Differences{Differences: []bridge.Difference{}}
	for d, err := range a.b.Destination(name).Differences(c) {
		if err != nil {
			return nil, err
		}
		if len(out.Differences) == most {
			out.More = true
			break
		}
		out.Differences = append(out.Differences, d)
	}
	return out, nil
}

// begin starts work: 202 with the run, or 409 with the one that is under way
// (unless ?queue=true, which queues one that starts after it).
func (a *api) begin(action string) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		body, err := io.ReadAll(c.Request.Body)
		if err != nil {
			return nil, fail(http.StatusRequestEntityTooLarge, "the body cannot be read: "+err.Error(), "")
		}
		if len(body) > 0 && !json.Valid(body) {
			return nil, fail(http.StatusBadRequest, "the body is not JSON", "")
		}
		job := action + ":" + c.Param("name")
		switch action {
		case "accept":
			job = "scan:" + c.Param("name")
		case "repair":
			job = "audit:" + c.Param("name")
		}
		if run, busy := a.b.Runner().Busy(job); busy && c.Query("queue") != "true" {
			p := fail(http.StatusConflict, "run "+strconv.FormatUint(run.ID, 10)+" of "+job+" is under way", "wait for it, or ask with ?queue=true for one that starts after it")
			p.Run = &run
			c.Header("Location", runAddress(run))
			return nil, p
		}
		var args any
		if len(body) > 0 {
			args = json.RawMessage(body)
		}
		run, _, err := a.b.Begin(action, c.Param("name"), "api", args)
		if err != nil {
			return nil, err
		}
		c.Header("Location", runAddress(run))
		return run, nil
	}
}

func runAddress(r jobs.Run) string { return "/api/v1/runs/" + strconv.FormatUint(r.ID, 10) }

func (a *api) pause(paused bool) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		if err := a.b.Pause(c.Param("name"), paused); err != nil {
			return nil, err
		}
		return a.b.DestinationStatus(c, c.Param("name"))
	}
}

// Job is a job and its schedule.
type Job struct {
	Name     string    `json:"name"`
	Subject  string    `json:"subject"`
	Schedule string    `json:"schedule"`
	Next     string    `json:"next,omitempty"`
	Running  *jobs.Run `json:"running,omitempty"`
}

func (a *api) jobs(*gin.Context) (any, error) {
	r, out := a.b.Runner(), []Job{}
	for _, j := range r.Jobs() {
		line := Job{Name: j.Name, Subject: j.Subject, Schedule: j.Schedule}
		if t := r.Next(j.Name); !t.IsZero() {
			line.Next = resourcesync.FormatTime(t)
		}
		if run, busy := r.Busy(j.Name); busy {
			line.Running = &run
		}
		out = append(out, line)
	}
	return out, nil
}

// Runs is a list of runs.
type Runs struct {
	Runs []jobs.Run `json:"runs"`
}

func (a *api) runs(c *gin.Context) (any, error) {
	most, err := limit(c, 100, 1000)
	if err != nil {
		return nil, err
	}
	out := Runs{Runs: []jobs.Run{}}
	for run, err := range a.b.Runner().Runs(c.Query("job")) {
		if err != nil {
			return nil, err
		}
		if out.Runs = append(out.Runs, run); len(out.Runs) == most {
			break
		}
	}
	return out, nil
}

func runID(c *gin.Context) (uint64, error) {
	id, err := strconv.ParseUint(c.Param("id"), 10, 64)
	if err != nil {
		return 0, fail(http.StatusBadRequest, c.Param("id")+" is no number of a run", "GET /api/v1/runs lists them")
	}
	return id, nil
}

// run answers a run; with ?wait=true once it has ended.
func (a *api) run(c *gin.Context) (any, error) {
	id, err := runID(c)
	if err != nil {
		return nil, err
	}
	if c.Query("wait") == "true" {
		return a.b.Runner().Wait(c.Request.Context(), id)
	}
	return a.b.Runner().Get(id)
}

func (a *api) cancel(c *gin.Context) (any, error) {
	id, err := runID(c)
	if err != nil {
		return nil, err
	}
	if err := a.b.Runner().Cancel(id); err != nil {
		return nil, err
	}
	return a.b.Runner().Get(id)
}

func (a *api) events(c *gin.Context) (any, error) {
	ctx, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	runs := a.b.Runner().Watch(ctx)
	c.Header("Content-Type", "text/event-stream")
	c.Header("Cache-Control", "no-store")
	c.Writer.WriteHeaderNow()
	c.Writer.Flush()
	for run := range runs {
		raw, err := json.Marshal(run)
		if err != nil {
			return nil, err
		}
		if _, err := c.Writer.WriteString("event: run\nid: " + strconv.FormatUint(run.ID, 10) + "\ndata: " + string(raw) + "\n\n"); err != nil {
			return nil, nil // the reader is gone
		}
		c.Writer.Flush()
	}
	return nil, nil
}
