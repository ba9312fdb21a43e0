package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

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
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &server{log: log}
	cfg := b.Config()
	var at Addresses
	var isReady atomic.Bool
	err := func() (err error) {
		if cfg.Public.Listen != "" {
			if at.Public, err = s.open(cfg.Public.Listen, "public documents", b.PublicHandler()); err != nil {
				return err
			}
		}
		if cfg.Admin.Listen == "" {
			return nil
		}
		h := New(b, Options{Token: string(cfg.Admin.Token), Logger: log, Ready: isReady.Load, Stopping: ctx})
		if at.Admin, err = s.open(cfg.Admin.Listen, "administration", h); err != nil {
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
}

func (s *server) open(addr, what string, h http.Handler) (string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen on %s for the %s: %w", addr, what, err)
	}
	s.listeners = append(s.listeners, l)
	s.servers = append(s.servers, &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	})
	return l.Addr().String(), nil
}

// stop lets requests under way end within the grace, then ends them.
func (s *server) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
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
