package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/fairconn"
	"github.com/rsbridge/rsbridge/internal/inproc"
	"github.com/rsbridge/rsbridge/internal/telemetry"
	"github.com/rsbridge/rsbridge/internal/tlsfiles"
)

// Addresses are the listening addresses of a bridge; "" for an absent one.
type Addresses struct{ Public, Admin string }

// grace is the time left to requests under way when serving ends.
const grace = 5 * time.Second

// Serve opens the listeners of b's configuration, and serves until ctx ends. It writes the address
// of the administration into the state folder's note. At the end of ctx it ends the runs of b, and
// answers until they have ended. Then requests under way have five seconds; endless ones end at
// once. Serve calls ready while both listeners are served
// already. Until ready returns, /readyz answers 503. command is shown to other processes finding
// the state held. A nil log is silent, ready may be nil.
func Serve(ctx context.Context, b *bridge.Bridge, command string, log *slog.Logger, ready func(Addresses)) error {
	return Listeners{}.Serve(ctx, b, command, log, ready)
}

// Listeners are open listeners; Serve opens the nil ones.
type Listeners struct{ Public, Admin net.Listener }

// Listen opens the listeners of cfg with port 0. It does so before there is a bridge, since the
// published documents contain the port. It writes the chosen ports into cfg, also into a base URL
// derived from the listener.
func Listen(cfg *bridge.Config) (l Listeners, err error) {
	derived := cfg.Public.BaseURL == cfg.Public.Origin()
	if l.Public, err = listenAny(&cfg.Public.Listen, "public documents"); err != nil {
		return l, err
	}
	if l.Public != nil && derived {
		cfg.Public.BaseURL = cfg.Public.Origin()
	}
	if l.Admin, err = listenAny(&cfg.Admin.Listen, "administration"); err != nil {
		l.Close()
	}
	return l, err
}

// listenAny opens a listener if addr leaves the port open, and fills it in.
func listenAny(addr *string, what string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(*addr)
	if err != nil || port != "0" && port != "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for the %s: %w", *addr, what, err)
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	*addr = net.JoinHostPort(host, port)
	return l, err
}

// Close closes the listeners. Serving has closed them already.
func (l Listeners) Close() {
	for _, x := range []net.Listener{l.Public, l.Admin} {
		if x != nil {
			x.Close()
		}
	}
}

// Serve is Serve on open listeners.
func (l Listeners) Serve(ctx context.Context, b *bridge.Bridge, command string, log *slog.Logger, ready func(Addresses)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := NewServer(ctx, command, log)
	if err := s.Listen(b.Config(), b, l); err != nil {
		l.Close()
		return err
	}
	at, _, err := s.Use(b)
	if err != nil {
		cancel()
		return errors.Join(err, s.Wait())
	}
	if ready != nil {
		ready(at)
	}
	s.Ready()
	return s.Wait()
}

// Server serves one bridge after another at the same listeners.
type Server struct {
	Telemetry *telemetry.Telemetry // measures the requests; nil: nothing does

	ctx     context.Context // serving ends with it
	command string
	log     *slog.Logger
	failed  chan error
	changes chan *Change // nil: nobody takes them
	ready   atomic.Bool
	wg      sync.WaitGroup // served doors, and doors being closed

	mu    sync.Mutex // guards the fields below
	doors [2]*door
	next  [2]*door       // are used by the next bridge
	tls   [2]*tls.Config // of next
	left  map[*door]bool // are closed after the grace; false: is in use again
	gen   *generation
}

// The doors.
const (
	public = iota
	admin
)

// door is one listener.
type door struct {
	kind int
	addr string // as it is configured
	l    *fairconn.Listener
	srv  *http.Server
	used bool // is served

	tls     atomic.Pointer[tls.Config] // nil: HTTP
	leaving atomic.Bool
}

// generation is how the requests of one bridge are answered.
type generation struct {
	b        *bridge.Bridge
	handlers [2]http.Handler
	requests sync.WaitGroup
}

// NewServer makes a server; it ends with ctx.
func NewServer(ctx context.Context, command string, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{ctx: ctx, command: command, log: log, failed: make(chan error, 2), left: map[*door]bool{}}
}

// Listen opens the missing listeners of a configuration; Use serves them. An error leaves the
// listeners as they were. Without a publishing set in the configuration or in b, the present
// bridge, there is no public listener.
func (s *Server) Listen(cfg *bridge.Config, b *bridge.Bridge, open Listeners) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisten()
	limits := [2]fairconn.Limits{ // a download takes a file beside its connection
		public: {Connections: fairconn.Files(4), Client: cfg.Public.ClientConnections, Loopback: true},
		admin:  {Connections: fairconn.Files(8)},
	}
	if l := &limits[public]; l.Client == 0 {
		l.Client, l.Loopback = max(l.Connections/4, 1), false
	}
	for _, d := range []struct {
		kind int
		what string
		addr string
		tls  tlsfiles.Config
		open net.Listener
	}{
		{public, "public documents", cfg.Public.Listen, cfg.Public.TLS, open.Public},
		{admin, "administration", cfg.Admin.Listen, cfg.Admin.TLS, open.Admin},
	} {
		if s.tls[d.kind], err = d.tls.Server(s.log); err != nil {
			s.unlisten()
			return fmt.Errorf("listen on %s for the %s: %w", d.addr, d.what, err)
		}
		if d.kind == public && !cfg.Publishes() && !b.Publishes() {
			d.addr = ""
		}
		if d.addr == "" {
			if d.open != nil {
				d.open.Close()
			}
			continue
		}
		if old := s.doors[d.kind]; old != nil && old.addr == d.addr {
			s.next[d.kind] = old
			continue
		}
		if again := s.takeBack(d.kind, d.addr); again != nil {
			s.next[d.kind] = again
			continue
		}
		if d.open == nil {
			var beside net.Listener
			if old := s.doors[d.kind]; old != nil {
				beside = old.l.Listener
			}
			if d.open, err = listenBeside(beside, d.addr); err != nil {
				s.unlisten()
				return fmt.Errorf("listen on %s for the %s: %w", d.addr, d.what, err)
			}
		}
		s.next[d.kind] = s.newDoor(d.kind, d.addr, fairconn.New(d.open, limits[d.kind], s.log.With("listener", d.what)))
	}
	return nil
}

// unlisten releases listeners opened by Listen and not used.
func (s *Server) unlisten() {
	for kind, d := range s.next {
		s.next[kind] = nil
		switch {
		case d == nil || d == s.doors[kind]:
		case d.used:
			s.leave(d)
		default:
			d.l.Close()
		}
	}
}

// leave closes a door after the grace: clients just arriving are still answered.
func (s *Server) leave(d *door) {
	s.left[d] = true
	d.leaving.Store(true)
	s.wg.Go(func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		leaves := s.left[d]
		delete(s.left, d)
		s.mu.Unlock()
		if leaves {
			s.stop(d)
		}
	})
}

// takeBack gives a leaving door of the same address, nil if there is none.
func (s *Server) takeBack(kind int, addr string) *door {
	for d, leaves := range s.left {
		if leaves && d.kind == kind && d.addr == addr {
			s.left[d] = false
			d.leaving.Store(false)
			return d
		}
	}
	return nil
}

func (s *Server) newDoor(kind int, addr string, l *fairconn.Listener) *door {
	d := &door{kind: kind, addr: addr, l: l}
	d.srv = &http.Server{
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState: l.ConnState, ConnContext: l.ConnContext,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g := s.enter()
			defer g.requests.Done()
			defer l.Body(w, r)()
			if d.leaving.Load() {
				w.Header().Set("Connection", "close") // the client finds another in time
			}
			if g.handlers[kind] == nil { // the door is being closed
				http.Error(w, "nothing is served here any more", http.StatusServiceUnavailable)
				return
			}
			g.handlers[kind].ServeHTTP(w, r)
		}),
	}
	return d
}

// enter counts a request to the present bridge.
func (s *Server) enter() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen.requests.Add(1)
	return s.gen
}

// Use answers all requests from now on by b, at the listeners opened by Listen for its
// configuration. Other listeners are closed after the grace. left waits for the requests to the
// former bridge, for the grace at most: a stream of events, or a download, may go on.
func (s *Server) Use(b *bridge.Bridge) (at Addresses, left func(), err error) {
	cfg := b.Config()
	g := &generation{b: b}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next[public] != nil {
		g.handlers[public] = b.PublicHandler()
		at.Public = s.next[public].l.Addr().String()
	}
	if s.next[admin] != nil {
		g.handlers[admin] = New(b, Options{Token: string(cfg.Admin.Token), Logger: s.log, Ready: s.ready.Load, Change: s.changer(), Stopping: s.ctx, Telemetry: s.Telemetry})
		at.Admin = s.next[admin].l.Addr().String()
		if err := b.TellAdmin(told(cfg.Admin, at.Admin), s.command); err != nil {
			return at, nil, err
		}
	}
	old := s.gen
	s.gen = g
	if old != nil {
		old.b.HangUp() // one bridge at a time tells of changes
	}
	for kind, h := range g.handlers {
		if h != nil {
			g.handlers[kind] = s.Telemetry.Server([2]string{public: "public", admin: "admin"}[kind], h)
		}
	}
	for kind, d := range s.next {
		before := s.doors[kind]
		if d != nil {
			d.tls.Store(s.tls[kind])
		}
		if before == d {
			continue
		}
		s.doors[kind] = d
		if before != nil {
			g.keep(old, kind)
			s.leave(before)
		}
		if d != nil && !d.used {
			d.used = true
			s.wg.Go(func() { s.serve(d) })
		}
	}
	return at, func() { old.wait(s.ctx) }, nil
}

// told is the address of an administration for commands.
func told(c bridge.Admin, addr string) string {
	if c.TLS.On() {
		return c.TLS.Scheme() + "://" + addr
	}
	return addr
}

// keep answers late requests at a leaving door without a successor.
func (g *generation) keep(old *generation, kind int) {
	if g.handlers[kind] == nil {
		g.handlers[kind] = old.handlers[kind]
	}
}

// wait waits for the requests of a bridge, for the grace at most.
func (g *generation) wait(ctx context.Context) {
	if g == nil {
		return
	}
	done := make(chan struct{})
	go func() { g.requests.Wait(); close(done) }()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Ready makes /readyz answer 200.
func (s *Server) Ready() { s.ready.Store(true) }

// Alive tells in a line how the served bridge stands. An error tells why the daemon does no work: its
// state cannot be read or written, or its administration gives no answer. On a full disk it waits
// for room, and that is work.
func (s *Server) Alive(ctx context.Context) (string, error) {
	g := s.enter()
	defer g.requests.Done()
	var st bridge.Status
	err := g.b.StateFault(ctx)
	if bridge.IsFull(err) {
		return "no room on the disk", nil
	}
	if err == nil {
		st.Sets, err = g.b.SetStatuses(ctx)
	}
	if err == nil {
		st.Destinations, err = g.b.DestinationStatuses(ctx)
	}
	if err == nil && g.handlers[admin] != nil {
		err = healthy(ctx, g.handlers[admin])
	}
	all, unwell := len(st.Sets)+len(st.Destinations), st.Unwell()
	if len(unwell) == 0 {
		return fmt.Sprintf("%d sets and destinations, all well", all), err
	}
	return fmt.Sprintf("%d of %d sets and destinations need attention, as %s", len(unwell), all, unwell[0]), err
}

// healthy asks a handler for /healthz, past the listener: many clients may hold all connections.
func healthy(ctx context.Context, h http.Handler) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/healthz", nil)
	if err != nil {
		return err
	}
	res, err := inproc.Transport{Handler: h}.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("the administration does not answer: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the administration answers %s at /healthz", res.Status)
	}
	return nil
}

func (s *Server) serve(d *door) {
	if err := d.srv.Serve(tlsfiles.Listener(d.l, d.tls.Load)); !errors.Is(err, http.ErrServerClosed) {
		select {
		case s.failed <- err:
		default: // one is enough
		}
	}
}

// Failed delivers the error of a broken listener.
func (s *Server) Failed() <-chan error { return s.failed }

// Wait waits for the end of the context, or of a listener. It ends the runs first, so that those
// waiting for one hear of its end, and then serving.
func (s *Server) Wait() (err error) {
	select {
	case <-s.ctx.Done():
	case err = <-s.failed:
	}
	s.mu.Lock()
	last := s.gen
	s.mu.Unlock()
	if last != nil {
		err = errors.Join(err, last.b.Runner().End())
		last.b.HangUp()
	}
	s.mu.Lock()
	s.unlisten()
	for _, d := range s.doors {
		if d != nil {
			s.wg.Go(func() { s.stop(d) })
		}
	}
	g := s.gen
	s.mu.Unlock()
	s.wg.Wait()
	if g == nil || g.b.Config().Admin.Listen == "" {
		return err
	}
	return errors.Join(err, g.b.TellAdmin("", s.command)) // whoever comes now waits for the end instead of asking the API
}

// stop lets requests under way end within the grace, then ends them.
func (s *Server) stop(d *door) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), grace)
	defer cancel()
	d.l.CloseUnused()
	if err := d.srv.Shutdown(ctx); err != nil {
		s.log.Info("requests under way are ended", "error", errors.Join(err, d.srv.Close()))
	}
}
