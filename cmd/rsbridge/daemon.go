package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/service"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

func (a *app) run() *cobra.Command {
	return &cobra.Command{Use: "run", Short: "Run the daemon: both listeners, all schedules", Args: cobra.NoArgs,
		Long: `Serves the documents and the administration, and runs all schedules, until SIGTERM
or an interrupt. Runs under way then have 20 seconds to end. The next start makes up
once for missed and interrupted runs.

SIGHUP reads the configuration again. No request is refused, and no run is ended: the
new configuration takes effect after the runs under way, with a line in the log. If
it has faults, or cannot be opened, the log says so and the old one stays.

A state folder held by another process is an error with its name. /readyz of the
administration answers 200 while the daemon works. It names every unwell set and
destination, a line each: STATE: set NAME: WHY. As application/json it answers
{"status","unwell":[{"kind","name","state","why"}]}. The states are those of status.

With the state in PostgreSQL several processes may run. One leads. The others stand by,
serve documents, and take over when the leader is gone. Their /readyz answers
standby of NAME.`,
		Example: "  rsbridge run -c /etc/rsbridge.yaml\n  kill -HUP $(pidof rsbridge)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.daemonLog()
			hup := make(chan os.Signal, 1)
			signal.Notify(hup, syscall.SIGHUP)
			defer signal.Stop(hup)
			cfg, err := bridge.Load(a.config)
			if err != nil {
				return err
			}
			leftOut(a, cfg)
			return a.serveUntil(cmd.Context(), cfg, "rsbridge run -c "+a.config, hup, nil)
		}}
}

// serve opens a bridge and runs it until ctx ends. ready is called while both
// listeners serve, before the schedules start.
func (a *app) serve(ctx context.Context, cfg *bridge.Config, command string, ready func(context.Context, *bridge.Bridge) error) error {
	return a.serveUntil(ctx, cfg, command, nil, ready)
}

// serveUntil is serve, and reads the configuration again on each hup. It waits for room
// on a full disk.
func (a *app) serveUntil(ctx context.Context, cfg *bridge.Config, command string, hup <-chan os.Signal, ready func(context.Context, *bridge.Bridge) error) error {
	a.manager, a.telemetry = service.New(a.log), telemetry.New()
	tracing, stopTraces, err := a.telemetry.Trace(ctx)
	if err != nil {
		return usage("%w", err)
	}
	if tracing {
		a.log.Info("traces are sent, as the environment says")
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { a.manager.Run(ctx) })
	defer func() {
		cancel()
		beside.Wait()
		last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		if err := stopTraces(last); err != nil {
			a.log.Warn("the last traces were not sent", "error", err)
		}
	}()
	told := false
	for {
		last, err := a.serveOnce(ctx, cfg, command, hup, ready)
		cfg = last
		switch {
		case errors.Is(err, errAgain):
			a.log.Info("everything is opened anew: the disk has room again, or the database of the state was restarted")
			told = false
		case errors.Is(err, errLost) && ctx.Err() == nil:
			a.log.Warn("another process has taken over: this one stands by", "error", err)
		case errors.Is(err, bridge.ErrDeclared) && hup != nil && ctx.Err() == nil:
			if cfg, err = bridge.Load(a.config); err != nil {
				return err
			}
			a.log.Info("the declarations of the API are read again: another process has changed them")
		case errors.Is(err, errReload) && ctx.Err() == nil:
			a.log.Info("the configuration was read again")
		case bridge.IsFull(err) && ctx.Err() == nil:
			if !told {
				a.log.Error("no room on the disk; this goes on when there is some", "error", err)
			}
			told = true
			if err := untilRoom(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// longOpening is when requests are answered although the bridge is not open yet.
const longOpening = 2 * time.Second

// errAgain ends a bridge, to open it again.
var errAgain = errors.New("the bridge is opened again")

// errLost ends a bridge after another process has taken over.
var errLost = errors.New("the right to write is lost")

// errReload ends a standby, to open it with another configuration.
var errReload = errors.New("the standby is opened again")

// untilRoom waits a moment for room on the disk.
func untilRoom(ctx context.Context) error {
	pause := time.NewTimer(2 * time.Second)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}

// serveOnce opens a bridge and serves until ctx ends or errAgain. last is the
// configuration at the end.
func (a *app) serveOnce(ctx context.Context, cfg *bridge.Config, command string, hup <-chan os.Signal, ready func(context.Context, *bridge.Bridge) error) (last *bridge.Config, err error) {
	limitMemory(cfg.Embedded())
	a.manager.Opening()
	listeners, err := a.listen(cfg)
	if err != nil {
		return cfg, err
	}
	ownPort := listeners.Public != nil
	defer func() { listeners.Close() }()
	var grace time.Duration
	if hup == nil { // in somebody's terminal: runs are repeatable, and nobody likes to wait
		grace = time.Second
	}
	opening := httpapi.AnswerOpening(ctx, cfg, listeners, longOpening, a.log)
	b, err := bridge.OpenShared(ctx, cfg, bridge.Options{Logger: a.log, Telemetry: a.telemetry, Command: command, Grace: grace, Heard: strings.HasPrefix(command, "rsbridge mirror")})
	listeners = opening.End()
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil { // it was told to stop while it was opening
			return cfg, nil
		}
		return cfg, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if ownPort && bridge.LeaderOf(b) == "" { // another address than the last time, and nobody's wish
		if err := ownAddresses(ctx, b); err != nil {
			return cfg, err
		}
	}
	told := make(chan struct{})
	silent := context.AfterFunc(ctx, func() {
		defer close(told)
		a.manager.Stopping()
		a.log.Info("stopping; another signal ends it at once")
	})
	defer func() {
		if !silent() {
			<-told // nothing is logged after the end
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := httpapi.NewServer(ctx, command, a.log)
	server.Telemetry = a.telemetry
	server.Changes() // taken by the reloader
	defer func() { cancel(); err = errors.Join(err, server.Wait()) }()
	if err := server.Listen(cfg, b, listeners); err != nil {
		return cfg, err
	}
	if _, err := a.use(server, b); err != nil {
		return cfg, err
	}
	if bridge.LeaderOf(b) != "" {
		s := standby{app: a, server: server, b: b}
		defer s.retiring.Wait()
		next, err := s.loop(ctx, hup)
		b = s.b
		if err != nil || ctx.Err() != nil {
			return cmp.Or(next, cfg), err
		}
	}
	if ready != nil {
		if err := ready(ctx, b); err != nil {
			return cfg, err
		}
	}
	b.Start(ctx)
	server.Ready()
	a.manager.Serving(server.Alive)
	r := reloader{app: a, server: server, b: b}
	b, err = r.loop(ctx, hup)
	return b.Config(), err
}

// use serves a bridge and logs its addresses.
func (a *app) use(server *httpapi.Server, b *bridge.Bridge) (left func(), err error) {
	at, left, err := server.Use(b)
	if err != nil {
		return nil, err
	}
	var where []any
	if at.Public != "" {
		where = append(where, "documents", b.Config().Public.BaseURL+"/")
	}
	if at.Admin != "" {
		where = append(where, "admin", b.Config().Admin.TLS.Scheme()+"://"+at.Admin+"/")
	}
	a.log.Info("serving", where...)
	return left, nil
}

// listen opens the listeners. An address with port 0 keeps its port when the
// configuration is read again.
func (a *app) listen(cfg *bridge.Config) (httpapi.Listeners, error) {
	if a.ports == nil {
		a.ports = map[string]string{}
	}
	public, admin := cfg.Public.Listen, cfg.Admin.Listen
	if p, ok := a.ports[public]; ok {
		derived := cfg.Public.BaseURL == cfg.Public.Origin()
		if cfg.Public.Listen = p; derived {
			cfg.Public.BaseURL = cfg.Public.Origin()
		}
	}
	if p, ok := a.ports["admin "+admin]; ok {
		cfg.Admin.Listen = p
	}
	l, err := httpapi.Listen(cfg)
	if err == nil && l.Public != nil {
		a.ports[public] = cfg.Public.Listen
	}
	if err == nil && l.Admin != nil {
		a.ports["admin "+admin] = cfg.Admin.Listen
	}
	return l, err
}

func (a *app) expose() *cobra.Command {
	var graphs, classes []string
	var listen, admin, baseURL, every, state, name, prefix, user, passwordFile string
	c := &cobra.Command{Use: "expose ENDPOINT", Short: "Make a SPARQL endpoint a ResourceSync source, with no configuration file", Args: cobra.ExactArgs(1),
		Long: `Scans the SPARQL endpoint, publishes its content, and looks for changes every
--every, until an interrupt. --state keeps its knowledge for the next start. The
administration is at --admin, or at another port if the default one is taken.`,
		Example: `  rsbridge expose http://localhost:3030/ds/query --graph http://example.org/books
  rsbridge expose https://query.example/sparql --class http://schema.org/Person --listen :8080 --base-url https://data.example`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err == nil {
				return usage("%s is a file, and expose wants a SPARQL query address; rsbridge init --dumps publishes files", args[0])
			}
			a.daemonLog()
			if err := period(every); err != nil {
				return err
			}
			if !cmd.Flags().Changed("admin") {
				admin = freePort(admin)
			}
			cfg := bridge.NewConfig()
			cfg.NameSettings(exposeFlags)
			cfg.State = state
			cfg.Public = bridge.Public{Listen: listen, BaseURL: baseURL}
			cfg.Admin.Listen = admin
			st := bridge.NewStore()
			st.Query, st.Username, st.PasswordFile = args[0], user, passwordFile
			cfg.Stores["endpoint"] = st
			set := bridge.NewSet()
			set.Store, set.Graphs, set.Select.Classes, set.Prefix, set.Schedule = "endpoint", graphs, classes, prefix, "@every "+every
			cfg.Sets[name] = set
			if err := cfg.Complete("."); err != nil {
				return asFlags(err)
			}
			return a.serve(cmd.Context(), cfg, "rsbridge expose "+sparql.Redact(args[0]), func(ctx context.Context, b *bridge.Bridge) error {
				if err := ownAddresses(ctx, b); err != nil {
					return err
				}
				a.note("first scan of %s ...", sparql.Redact(args[0]))
				run, _, err := b.Begin(ctx, "scan", name, "command", nil)
				if err != nil {
					return err
				}
				go func() { // tells once; ends with the run, and Close ends the run
					if end, err := b.Runner().Wait(ctx, run.ID); err == nil && end.Error != "" {
						a.note("the first scan failed and is tried again by schedule: %s", end.Error)
					} else if err == nil {
						a.note("published: %s/.well-known/resourcesync\nmirror it with: rsbridge mirror %s --into embedded:./mirror", cfg.Public.BaseURL, cfg.Public.BaseURL)
					}
				}()
				return nil
			})
		}}
	f := c.Flags()
	f.StringArrayVar(&graphs, "graph", nil, "scan this named `IRI` (again for more; \"*\" for all; default: the default graph)")
	f.StringArrayVar(&classes, "class", nil, "only entities of this class `IRI`")
	f.StringVar(&prefix, "prefix", "", "removed from entity IRIs to make readable addresses")
	f.StringVar(&listen, "listen", publicListen, "serve the documents at this `ADDRESS`")
	f.StringVar(&admin, "admin", adminListen, "serve the administration at this `ADDRESS`; \"\" for none")
	f.StringVar(&baseURL, "base-url", "", "the `URL` that others see (default http:// and --listen, where that names a host)")
	f.StringVar(&every, "every", "5m", "how often to scan, as a `DURATION` like 5m")
	f.StringVar(&state, "state", "./rsbridge-state", "the state `DIR`")
	f.StringVar(&name, "name", "data", "name of the set")
	f.StringVar(&user, "username", "", "for the endpoint")
	f.StringVar(&passwordFile, "password-file", "", "`FILE` with the password for the endpoint")
	return c
}

func (a *app) mirror() *cobra.Command {
	var into, query, update, graphStore, set, graphIRI, graph, every, state, admin, user, passwordFile, until string
	var allow []string
	var once, adopt bool
	c := &cobra.Command{Use: "mirror SOURCE", Short: "Keep a store equal to a ResourceSync source, with no configuration file", Args: cobra.ExactArgs(1),
		Long: `Takes the baseline and all changes since, verifies every response, and follows the
source every --every. With --once it ends after the first run. With --once and
--until it mirrors the source as it was at a time.

SOURCE is a site, a well-known address, a Source Description, a Capability List,
a Resource List or a Change List. --state keeps its knowledge for the next start.

--into embedded:DIR makes an embedded store. --into files:DIR keeps the
representations as files, RDF or not, at the paths of their addresses.
--into dump:FILE keeps one sorted file of N-Triples (.nt) or N-Quads (.nq), also .gz,
replaced as a whole after changes. Audits work against all three.

The administration is at --admin, or at another port if the default one is taken.
--json (with --once) prints the report of sync. Exit code 3 (with --once): resources
are pending, failed or held.`,
		Example: `  rsbridge mirror https://data.example --into embedded:./mirror --once
  rsbridge mirror https://data.example --set books --query http://localhost:3030/ds/query \
    --update http://localhost:3030/ds/update --graph-store http://localhost:3030/ds/data --graph-iri http://example.org/mirror`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := untilTime(until)
			switch {
			case err != nil:
				return err
			case !at.IsZero() && !once:
				return usage("--until is for --once: a mirror that goes on does not stay at a time")
			}
			if err := period(every); err != nil {
				return err
			}
			if !cmd.Flags().Changed("admin") {
				admin = freePort(admin)
			}
			cfg := bridge.NewConfig()
			cfg.NameSettings(mirrorFlags)
			cfg.State, cfg.Public, cfg.Admin.Listen = state, bridge.Public{}, admin
			st := bridge.NewStore()
			switch {
			case into != "" && query+update+graphStore != "":
				return usage("give --into or the addresses of a store, not both")
			case into != "" && user != "":
				return usage("--username is for the store of --query, not for --into")
			case graph != "single" && graph != "per-entity":
				return usage("--graph %s: it is single or per-entity", graph)
			case query != "" && update+graphStore == "":
				return usage("--query is to read by: give --update URL or --graph-store URL too")
			case into == "" && query == "":
				return usage("say where to: --into embedded:DIR, files:DIR or dump:FILE, or --query URL with --update URL or --graph-store URL")
			case into == "":
				st.Query, st.Update, st.GraphStore, st.Username, st.PasswordFile = query, update, graphStore, user, passwordFile
			case !st.Into(into):
				return usage("--into %s: it is embedded:DIR, files:DIR or dump:FILE", into)
			}
			cfg.Stores["mirror"] = st
			d := bridge.NewDestination()
			d.Source, d.Store, d.Set, d.GraphIRI, d.Graph, d.Schedule, d.Allow, d.Adopt = args[0], "mirror", set, graphIRI, graph, "@every "+every, allow, adopt
			if d.Source, err = webguard.WithScheme(d.Source); err != nil {
				return usage("%w", err)
			}
			cfg.Destinations["mirror"] = d
			if once {
				cfg.Admin.Listen = ""
			}
			if err := cfg.Complete("."); err != nil {
				return asFlags(err)
			}
			if once {
				return a.mirrorOnce(cmd.Context(), cfg, bridge.SyncArgs{Until: at})
			}
			a.daemonLog()
			return a.serve(cmd.Context(), cfg, "rsbridge mirror "+sparql.Redact(args[0]), func(_ context.Context, b *bridge.Bridge) error {
				err := mirrorOpened(b)
				if err == nil {
					_, _, err = b.Begin(cmd.Context(), "sync", "mirror", "command", nil)
				}
				return err
			})
		}}
	f := c.Flags()
	f.StringVar(&into, "into", "", "the `PLACE` of a mirror that is made here: embedded:DIR, files:DIR or dump:FILE")
	f.StringVar(&query, "query", "", "SPARQL query `URL` of the mirror")
	f.StringVar(&update, "update", "", "SPARQL update `URL` of the mirror")
	f.StringVar(&graphStore, "graph-store", "", "Graph Store `URL` of the mirror")
	f.StringVar(&user, "username", "", "for the mirror")
	f.StringVar(&passwordFile, "password-file", "", "`FILE` with the password for the mirror")
	f.StringVar(&set, "set", "", "`NAME` of the set, when the source has several")
	f.StringVar(&graph, "graph", "single", "single or per-entity")
	f.StringVar(&graphIRI, "graph-iri", "", "the graph to fill (default: the default graph); per-entity: a template with {entity}")
	f.StringVar(&every, "every", "1m", "how often to look for changes, as a `DURATION` like 1m")
	f.StringVar(&state, "state", "./rsbridge-mirror", "the state `DIR`")
	f.StringVar(&admin, "admin", adminListen, "serve the administration at this `ADDRESS`; \"\" for none")
	f.StringArrayVar(&allow, "allow", nil, "another `HOST` that may be fetched from")
	f.BoolVar(&once, "once", false, "sync once and end")
	f.StringVar(&until, "until", "", "with --once: a mirror of how the source was at this `TIME`")
	f.BoolVar(&adopt, "adopt", false, "take over a graph that already holds something")
	return c
}

// mirrorOpened explains a mirror that is not open: the state folder may belong to another
// mirror. A path error has other causes.
func mirrorOpened(b *bridge.Bridge) error {
	if _, err := b.Destination("mirror"); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return err
		}
		return fmt.Errorf("%w (each mirror has a state of its own: give another --state)", err)
	}
	return nil
}

func (a *app) mirrorOnce(ctx context.Context, cfg *bridge.Config, args bridge.SyncArgs) (err error) {
	limitMemory(cfg.Embedded())
	b, err := bridge.Open(ctx, cfg, bridge.Options{Logger: a.commandLog(), Command: "rsbridge mirror --once"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := mirrorOpened(b); err != nil {
		return err
	}
	run, err := local{b: b}.Do(ctx, "sync", "mirror", args, a.progress)
	a.endProgress()
	if err != nil {
		return err
	}
	o, err := outcomeOf[destination.SyncReport]("mirror", run)
	if err != nil {
		return err
	}
	return a.tellSyncs([]outcome[destination.SyncReport]{o})
}

// freePort is the wished address if nobody listens at it. Else its port is the first free one in steps
// of two, so that the neighbouring wishes of both listeners never meet.
func freePort(wish string) string {
	host, port, err := net.SplitHostPort(wish)
	first, err2 := strconv.Atoi(port)
	if errors.Join(err, err2) != nil {
		return wish
	}
	for p := first; p < first+20; p += 2 {
		addr := net.JoinHostPort(host, strconv.Itoa(p))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	return wish
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
