package httpapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi/dashboard"
	"github.com/rsbridge/rsbridge/httpapi/metrics"
	"github.com/rsbridge/rsbridge/internal/accept"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/telemetry"
)

// Options of New; the zero value serves loopback without a token, until rsbridge token makes one.
type Options struct {
	Token  string       // "" for none
	Logger *slog.Logger // nil: silent
	// Ready decides the answer of /readyz; nil: always ready.
	Ready func() bool
	// Change puts another configuration in place of the present one, as soon as no run is under way.
	// inEffect tells whether it is, or still waits. nil: the configuration cannot be changed.
	Change func(ctx context.Context, next Next) (inEffect bool, err error)
	// Stopping ends endless answers (events) when it ends; nil: never.
	Stopping context.Context
	// Telemetry has the measures for /metrics beside the status; nil: those of the process alone.
	Telemetry *telemetry.Telemetry
}

type api struct {
	b        *bridge.Bridge
	log      *slog.Logger
	users    *access.Users
	actions  *access.Log
	local    bool // the listener is on loopback
	ready    func() bool
	change   func(context.Context, Next) (bool, error)
	stopping context.Context
	logins   *access.Guesses
	starting sync.Mutex // held from "is it busy?" to the start of a run
}

// storesPath is where somebody may look for stores: they are of the file, since they name files and hosts.
const storesPath = "/api/v1/stores"

// New makes the handler of the admin listener.
func New(b *bridge.Bridge, o Options) http.Handler {
	a := &api{b: b, log: o.Logger, ready: o.Ready, change: o.Change, stopping: o.Stopping}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.logins = access.NewGuesses("failed logins to the administration", a.log)
	listen, folder := b.Config().Admin.Listen, access.Folder(b.Config().Folder())
	a.users, a.actions, a.local = access.Open(folder, o.Token), access.OpenLog(folder), listen == "" || loopback(hostOf(listen))
	if fault := a.users.Fault(); fault != nil {
		a.log.Error("tokens cannot be read; nobody logs in with them", "error", fault)
	}
	if a.ready == nil {
		a.ready = func() bool { return true }
	}
	if a.stopping == nil {
		a.stopping = context.Background()
	}
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.RedirectTrailingSlash, g.HandleMethodNotAllowed = false, true
	g.UseRawPath, g.UnescapePathValues = true, true
	g.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, p any) {
		if p == http.ErrAbortHandler {
			panic(p) // an embedded store ended an answer in the middle on purpose
		}
		a.log.Error("handler panicked", "path", c.Request.URL.Path, "panic", fmt.Sprint(p))
		writeProblem(c, fail(http.StatusInternalServerError, "the handler panicked", "the log of the bridge tells more"))
	}))
	g.NoMethod(func(c *gin.Context) {
		writeProblem(c, fail(http.StatusMethodNotAllowed, c.Request.Method+" is not for "+c.Request.URL.Path, "GET /openapi.json lists the addresses"))
	})
	// GET and HEAD: net/http leaves the body out by itself.
	get := func(r gin.IRoutes, path string, h gin.HandlerFunc) {
		r.GET(path, h)
		r.HEAD(path, h)
	}
	get(g, "/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	get(g, "/readyz", a.readyz)
	get(g, "/favicon.ico", func(c *gin.Context) { c.Data(http.StatusOK, "image/svg+xml", dashboard.Icon()) }) // asked for beside any answer
	get(g, "/login", a.loginForm)
	g.POST("/login", a.login)
	g.POST("/logout", a.standsBy, a.logout) // sessions that were left are the leader's
	for _, r := range a.routes() {
		closed := g.Group("/", func(c *gin.Context) { a.guard(c, r.role) }, a.standsBy, a.record)
		if r.method == http.MethodGet {
			get(closed, r.path, a.handle(r))
		} else {
			closed.Handle(r.method, r.path, a.handle(r))
		}
	}
	closed := g.Group("/", func(c *gin.Context) { a.guard(c, needs(c)) }, a.standsBy, a.record)
	get(closed, "/metrics", gin.WrapH(o.Telemetry.Handler(metrics.Of(b))))
	get(closed, "/openapi.json", func(c *gin.Context) { c.PureJSON(http.StatusOK, a.openAPI()) })
	board := dashboard.New(b, a.log)
	pages := func(c *gin.Context) {
		if a.users.Closed() {
			c.Request = c.Request.WithContext(dashboard.WithUser(c.Request.Context(), userOf(c)))
		}
		board.ServeHTTP(c.Writer, c.Request)
	}
	g.NoRoute(func(c *gin.Context) {
		path := c.Request.URL.Path
		switch {
		case byPerson(c):
			if a.guard(c, access.Read); !c.IsAborted() {
				pages(c) // with links to what is there
			}
		case path == storesPath || strings.HasPrefix(path, storesPath+"/"):
			writeProblem(c, fail(http.StatusNotFound, "stores are declared in the configuration file alone", "change the file, and send the daemon SIGHUP; /api/v1/sets and /api/v1/destinations take declarations"))
		default:
			writeProblem(c, fail(http.StatusNotFound, "there is nothing at "+path, "GET /openapi.json lists the addresses"))
		}
	})
	for _, pattern := range dashboard.Patterns {
		if pattern != "/" && strings.HasSuffix(pattern, "/") {
			pattern += "*rest"
		}
		get(closed, pattern, pages)
		closed.POST(pattern, pages)
	}
	for name := range b.Config().Stores {
		if h := b.StoreHandler(name); h != nil {
			at := "/stores/" + name
			closed.Any(at+"/*rest", gin.WrapH(http.StripPrefix(at, h)))
		}
	}
	return g
}

// readiness is /readyz as JSON.
type readiness struct {
	Status string          `json:"status"`                    // ready, standby, starting, stopping, failing
	Leader string          `json:"leader,omitempty"`          // of a standby, unless nobody leads
	Vacant *time.Time      `json:"no_leader_since,omitempty"` // of a standby
	Unwell []bridge.Unwell `json:"unwell"`
}

// readyz tells whether the bridge does its work. It answers 503 while the bridge starts or stops,
// and without its state or its embedded stores. It names every other trouble on a line; the rest
// works, so the answer is 200.
func (a *api) readyz(c *gin.Context) {
	said, status := readiness{Status: "ready", Unwell: []bridge.Unwell{}}, http.StatusOK
	switch {
	case a.stopping.Err() != nil:
		said.Status, status = "stopping", http.StatusServiceUnavailable
	case !a.ready():
		said.Status, status = "starting", http.StatusServiceUnavailable
	default:
		ready, unwell := a.b.Readiness(c.Request.Context())
		if said.Unwell = append(said.Unwell, unwell...); !ready {
			said.Status, status = "failing", http.StatusServiceUnavailable
		} else if leader := bridge.LeaderOf(a.b); leader != "" {
			said.Status, said.Leader = "standby", leader
			if since, _ := bridge.Vacant(a.b); !since.IsZero() {
				said.Leader, said.Vacant = "", &since
			}
		}
	}
	c.Header("Cache-Control", "no-store")
	c.Header("Vary", "Accept")
	if best, _ := accept.Best(c.Request.Header.Values("Accept"), []string{"text/plain"}, []string{"application/json"}); best == 1 {
		c.PureJSON(status, said)
		return
	}
	text := said.Status
	if said.Leader != "" {
		text += " of " + said.Leader
	}
	if said.Vacant != nil {
		text += " without a leader since " + said.Vacant.UTC().Format(time.RFC3339)
	}
	text += "\n"
	for _, u := range said.Unwell {
		text += u.String() + "\n"
	}
	c.Data(status, "text/plain; charset=utf-8", []byte(text))
}
