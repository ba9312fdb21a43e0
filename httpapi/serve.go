package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/bridge"
)

// Addresses are where a bridge listens; "" for what is not served.
type Addresses struct{ Public, Admin string }

// grace is what requests under way have when serving ends.
const grace = 5 * time.Second

// Serve opens the listeners of b's configuration, serves until ctx ends, and
// tells the state folder's note where the administration is; then requests under
// way have five seconds, and those that would go on for ever end at once. ready
// is called while both listeners are served already; until it returns /readyz
// answers 503. command is told to others that find the state held. A nil log is
// silent, ready may be nil.
func Serve(ctx context.Context, b *bridge.Bridge, command string, log *slog.Logger, ready func(Addresses)) error {
	return Listeners{}.Serve(ctx, b, command, log, ready)
}

// Listeners are open already; Serve opens those that are nil.
type Listeners struct{ Public, Admin net.Listener }

// Listen opens, before there is a bridge, the listeners of cfg whose port is 0:
// what is published tells the port. The ports that were taken are written into
// cfg, also into a base URL that follows from the listener.
func Listen(cfg *bridge.Config) (l Listeners, err error) {
	derived := cfg.Public.BaseURL == "" || cfg.Public.BaseURL == "http://"+cfg.Public.Listen
	if l.Public, err = listenAny(&cfg.Public.Listen, "public documents"); err != nil {
		return l, err
	}
	if l.Public != nil && derived {
		cfg.Public.BaseURL = "http://" + cfg.Public.Listen
	}
	if l.Admin, err = listenAny(&cfg.Admin.Listen, "administration"); err != nil {
		l.Close()
	}
	return l, err
}

// listenAny opens a listener where addr leaves the port open, and fills it in.
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

// Close closes what is open. What serves has closed them already.
func (l Listeners) Close() {
	for _, x := range []net.Listener{l.Public, l.Admin} {
		if x != nil {
			x.Close()
		}
	}
}

// Serve is Serve on listeners that are open.
func (l Listeners) Serve(ctx context.Context, b *bridge.Bridge, command string, log *slog.Logger, ready func(Addresses)) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &server{log: log, fresh: fresh{conns: map[net.Conn]bool{}}}
	cfg := b.Config()
	var at Addresses
	var isReady atomic.Bool
	err := func() (err error) {
		if cfg.Public.Listen != "" {
			if at.Public, err = s.open(l.Public, cfg.Public.Listen, "public documents", connections(2), b.PublicHandler()); err != nil {
				return err
			}
		}
		if cfg.Admin.Listen == "" {
			return nil
		}
		h := New(b, Options{Token: string(cfg.Admin.Token), Logger: log, Ready: isReady.Load, Stopping: ctx})
		if at.Admin, err = s.open(l.Admin, cfg.Admin.Listen, "administration", connections(8), h); err != nil {
			return err
		}
		return b.TellAdmin(at.Admin, command)
	}()
	if err != nil {
		for _, l := range s.listeners {
			l.Close()
		}
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, srv := range s.servers {
		g.Go(func() error {
			if err := srv.Serve(s.listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	g.Go(func() error {
		if ready != nil {
			ready(at)
		}
		isReady.Store(true)
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		s.stop(context.WithoutCancel(ctx))
		if at.Admin == "" {
			return nil
		}
		return b.TellAdmin("", command) // whoever comes now waits for the end instead of asking the API
	})
	return g.Wait()
}

type server struct {
	log       *slog.Logger
	servers   []*http.Server
	listeners []net.Listener
	fresh     fresh
}

// fresh are the connections over which no request has come yet. Clients open some that
// they never use, and http.Server waits for them as if a request was under way.
type fresh struct {
	mu    sync.Mutex
	conns map[net.Conn]bool // nil: they are closed
}

func (f *fresh) state(c net.Conn, to http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case to != http.StateNew:
		delete(f.conns, c)
	case f.conns == nil:
		c.Close()
	default:
		f.conns[c] = true
	}
}

func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

// connections are how many may be open at once: the given part of the files that the
// process may have open. The others are for the state: what it cannot open for
// writing ends all writing, and who only opens connections could bring that about.
func connections(part uint64) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 10
	}
	return int(min(max(uint64(limit.Cur)/part, 4), 1<<20))
}

func (s *server) open(l net.Listener, addr, what string, most int, h http.Handler) (_ string, err error) {
	if l == nil {
		if l, err = net.Listen("tcp", addr); err != nil {
			return "", fmt.Errorf("listen on %s for the %s: %w", addr, what, err)
		}
	}
	s.listeners = append(s.listeners, netutil.LimitListener(l, most)) // more wait until one is closed
	s.servers = append(s.servers, &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), ConnState: s.fresh.state,
	})
	return l.Addr().String(), nil
}

// stop lets requests under way end within the grace, then ends them.
func (s *server) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	s.fresh.close()
	var g errgroup.Group
	for _, srv := range s.servers {
		g.Go(func() error {
			if err := srv.Shutdown(ctx); err != nil {
				s.log.Info("requests under way are ended", "error", errors.Join(err, srv.Close()))
			}
			return nil
		})
	}
	_ = g.Wait() // its functions give no errors
}
