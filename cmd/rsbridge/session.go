package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/tlsfiles"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/rdfres"
)

// session is the bridge of a command: a daemon's, or one opened here.
type session interface {
	// Do begins work after the call and waits for its run.
	Do(ctx context.Context, action, name string, args any, progress func(jobs.Run)) (jobs.Run, error)
	Status(ctx context.Context) (bridge.Status, error)
	Changes(ctx context.Context, set, since string) (bridge.Changes, error)
	Diff(ctx context.Context, set, entity, from, to string) (bridge.Diff, error)
	SetHeld(ctx context.Context, name, after string, limit int) (*bridge.Held, error)
	DestinationHeld(ctx context.Context, name, after string, limit int) (*bridge.Held, error)
	// Public answers like the public listener.
	Public() http.RoundTripper
	Description(ctx context.Context, set, entity string, at time.Time, f rdfres.Format) ([]byte, error)
	MirrorDescription(ctx context.Context, destination, entity string, at time.Time, f rdfres.Format) ([]byte, error)
}

// setSession is session or reading for a command on one configured set.
func (a *app) setSession(ctx context.Context, set string, open opening) (s session, end func() error, err error) {
	cfg, err := bridge.Load(a.config)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := cfg.Sets[set]; !ok {
		return nil, nil, usage("set %s is not in the configuration; there are: %s", set, listed(slices.Sorted(maps.Keys(cfg.Sets))))
	}
	s, _, end, err = open(ctx)
	return s, end, err
}

// reading is session for a command that only reads: without a daemon it reads the state, and writes nothing.
func (a *app) reading(ctx context.Context) (s session, cfg *bridge.Config, end func() error, err error) {
	return looking(ctx, a, bridge.OpenReading)
}

// opening gives a session.
type opening func(context.Context) (s session, cfg *bridge.Config, end func() error, err error)

// dry is reading for dry runs, and for the published documents.
func dry(a *app) opening {
	return func(ctx context.Context) (s session, cfg *bridge.Config, end func() error, err error) {
		return looking(ctx, a, bridge.OpenDry)
	}
}

// opener is session, or less for work that changes less.
func opener(a *app, args any) opening {
	switch o := args.(type) {
	case bridge.SyncArgs:
		if o.DryRun {
			return dry(a)
		}
	case bridge.ForgetArgs:
		if o.DryRun {
			return dry(a)
		}
	case bridge.AuditArgs:
		if !o.Repair {
			return func(ctx context.Context) (s session, cfg *bridge.Config, end func() error, err error) {
				return sessionWith(ctx, a, bridge.Options{Looking: true})
			}
		}
	}
	return a.session
}

func looking(ctx context.Context, a *app, open func(context.Context, *bridge.Config, bridge.Options) (*bridge.Bridge, error)) (s session, cfg *bridge.Config, end func() error, err error) {
	if cfg, err = bridge.Load(a.config); err != nil {
		return nil, nil, nil, err
	}
	b, err := open(ctx, cfg, bridge.Options{Logger: a.commandLog()})
	var held *bridge.HeldError
	if errors.As(err, &held) && held.Admin != "" {
		s, err := remoteSession(ctx, a, cfg, held)
		return s, cfg, func() error { return nil }, err
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return local{b: b}, cfg, b.Close, nil
}

// remoteSession is a session on the daemon that holds the state.
func remoteSession(ctx context.Context, a *app, cfg *bridge.Config, held *bridge.HeldError) (session, error) {
	c := httpapi.NewClient(held.Admin, localToken(cfg))
	if secure := cfg.Admin.TLS.Own(); secure != nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = secure
		c.HTTP.Transport = webclient.Named(t, "")
	}
	probe, stop := context.WithTimeout(ctx, holderPatience)
	_, err := c.Status(probe)
	stop()
	if ctx.Err() == nil && (httpapi.IsUnreachable(err) || probe.Err() == context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w; its API does not answer: %w", held, err)
	}
	if held.Public != "" { // the system may have given it another port
		cfg.Public.Listen = held.Public
	}
	return remote{c, cfg.Public, localReader(cfg), a}, nil
}

// session opens the configuration's state, or reaches the daemon holding it. Call end.
func (a *app) session(ctx context.Context) (s session, cfg *bridge.Config, end func() error, err error) {
	return sessionWith(ctx, a, bridge.Options{})
}

func sessionWith(ctx context.Context, a *app, o bridge.Options) (s session, cfg *bridge.Config, end func() error, err error) {
	s, cfg, end, err = openSession(ctx, a, o)
	if errors.Is(err, bridge.ErrDeclared) { // now they are in the folder
		return openSession(ctx, a, o)
	}
	return s, cfg, end, err
}

func openSession(ctx context.Context, a *app, o bridge.Options) (s session, cfg *bridge.Config, end func() error, err error) {
	if cfg, err = bridge.Load(a.config); err != nil {
		return nil, nil, nil, err
	}
	limitMemory(cfg.Embedded())
	listeners, err := httpapi.Listen(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if _, ok := s.(local); !ok {
			listeners.Close()
		}
	}()
	o.Logger, o.Command = a.commandLog(), "rsbridge command"
	b, err := bridge.Open(ctx, cfg, o)
	var held *bridge.HeldError
	if errors.As(err, &held) && held.Admin != "" {
		s, err := remoteSession(ctx, a, cfg, held)
		return s, cfg, func() error { return nil }, err
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if listeners.Public != nil {
		if err := ownAddresses(ctx, b); err != nil {
			return nil, nil, nil, errors.Join(err, b.Close())
		}
	}
	stop := servePublic(b, a, listeners.Public)
	return local{b, func(did access.Action) { acted(a, cfg, did) }}, cfg, func() error { stop(); listeners.Close(); return b.Close() }, nil
}

// holderPatience is the time for an answer of the process holding the state.
const holderPatience = 15 * time.Second

// servePublic serves the documents while a command runs, for others and for this bridge's
// own destinations. It reports a taken port.
func servePublic(b *bridge.Bridge, a *app, l net.Listener) (stop func()) {
	addr := b.Config().Public.Listen
	if addr == "" || len(b.Sets()) == 0 {
		return func() {}
	}
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", addr); err != nil {
			a.log.Warn("the documents are not served while this command runs", "listen", addr, "error", err)
			return func() {}
		}
	}
	secure, err := b.Config().Public.TLS.Server(a.log)
	if err != nil {
		a.log.Warn("the documents are not served while this command runs", "listen", addr, "error", err)
		return func() {}
	}
	srv := &http.Server{Handler: b.PublicHandler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(tlsfiles.Listener(l, func() *tls.Config { return secure })) // ends with Close
	}()
	return func() { srv.Close(); <-done }
}

// local is a session on a bridge of this process.
type local struct {
	b     *bridge.Bridge
	acted func(access.Action) // logs what it does; nil: nothing is logged
}

func (l local) Do(ctx context.Context, action, name string, args any, progress func(jobs.Run)) (jobs.Run, error) {
	run, _, err := l.b.Begin(ctx, action, name, "command", args)
	if l.acted != nil {
		l.acted(begun(action+" "+name, args, run, err))
	}
	if err != nil {
		return run, err
	}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	updates := l.b.Runner().Watch(watch)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for r := range updates {
			if r.ID == run.ID && !r.Over() && progress != nil {
				progress(r)
			}
		}
	}()
	end, err := l.b.Runner().Wait(ctx, run.ID)
	stop()
	<-shown
	if err == nil {
		return end, nil
	}
	// Interrupted: the run is of this process, and ends with it. Its record tells what it did.
	if cerr := l.b.Runner().Close(0); cerr != nil {
		return run, errors.Join(err, cerr)
	}
	end, gerr := l.b.Runner().Get(context.WithoutCancel(ctx), run.ID)
	if gerr != nil || end.State != jobs.Done {
		return end, errors.Join(err, gerr)
	}
	return end, nil
}

func (l local) Status(ctx context.Context) (bridge.Status, error) { return l.b.Status(ctx) }

func (l local) SetHeld(ctx context.Context, name, after string, limit int) (*bridge.Held, error) {
	return l.b.SetHeld(ctx, name, after, limit)
}

func (l local) DestinationHeld(ctx context.Context, name, after string, limit int) (*bridge.Held, error) {
	return l.b.DestinationHeld(ctx, name, after, limit)
}

func (l local) Changes(ctx context.Context, set, since string) (bridge.Changes, error) {
	return l.b.Changes(ctx, set, since, 10000)
}

func (l local) Public() http.RoundTripper {
	return authorized{localReader(l.b.Config()), inproc.Transport{Handler: l.b.PublicHandler()}}
}

// authorized sends the secret of this command.
type authorized struct {
	secret string
	next   http.RoundTripper
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.secret != "" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.secret)
	}
	return a.next.RoundTrip(r)
}

// remote is a session with the daemon holding the state.
type remote struct {
	*httpapi.Client
	public bridge.Public
	reader string // the secret for protected sets
	app    *app
}

// Do is the client's Do. It remembers a run left to the daemon. If the daemon ends without an
// answer, the state, or the next daemon, tells how the run ended.
func (r remote) Do(ctx context.Context, action, name string, args any, progress func(jobs.Run)) (jobs.Run, error) {
	run, err := r.Client.Do(ctx, action, name, args, progress)
	switch {
	case ctx.Err() != nil && run.ID > 0 && !run.Over():
		r.app.left = &run
	case httpapi.IsUnreachable(err) && run.ID > 0:
		last, lost := r.recorded(ctx, run.ID)
		if lost != nil {
			return run, fmt.Errorf("%s (run %d): the daemon ended before the run, and its end cannot be read: %w", run.Job, run.ID, lost)
		}
		return last, nil
	}
	return run, err
}

// recorded is a run after the process of its state has ended.
func (r remote) recorded(ctx context.Context, id uint64) (run jobs.Run, err error) {
	s, _, end, err := r.app.session(ctx)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if now, ok := s.(remote); ok {
		return now.Wait(ctx, id, nil)
	}
	return s.(local).b.Runner().Get(ctx, id)
}

func (r remote) Public() http.RoundTripper { return authorized{r.reader, atListener(r.public)} }

// atListener sends requests to the daemon's own listener, whatever stands before
// it for others.
type atListener bridge.Public

func (l atListener) RoundTrip(r *http.Request) (*http.Response, error) {
	c := r.Clone(r.Context())
	c.Host, c.URL.Scheme, c.URL.Host = r.URL.Host, l.TLS.Scheme(), l.Listen
	if host, port, err := net.SplitHostPort(l.Listen); err == nil && (host == "" || host == "0.0.0.0" || host == "::") {
		c.URL.Host = net.JoinHostPort("localhost", port)
	}
	if !l.TLS.On() {
		return http.DefaultTransport.RoundTrip(c)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.DisableKeepAlives = l.TLS.Own(), true
	return t.RoundTrip(c)
}

func (l local) Diff(ctx context.Context, set, entity, from, to string) (bridge.Diff, error) {
	return l.b.Diff(ctx, set, entity, from, to)
}

func (l local) Description(ctx context.Context, set, entity string, at time.Time, f rdfres.Format) ([]byte, error) {
	data, _, err := l.b.Describe(ctx, set, entity, at, f)
	return data, err
}

func (l local) MirrorDescription(ctx context.Context, destination, entity string, at time.Time, f rdfres.Format) ([]byte, error) {
	return l.b.DescribeMirror(ctx, destination, entity, at, f)
}

// listed are the names of a message.
func listed(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
