package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rsbridge/rsbridge/bridge"
)

// Addresses are where a bridge listens; "" for what is not served.
type Addresses struct{ Public, Admin string }

// Serve opens the listeners of b's configuration, tells where they are, and
// serves until ctx ends; then requests under way have five seconds. ready may be
// nil.
func Serve(ctx context.Context, b *bridge.Bridge, command string, log *slog.Logger, ready func(Addresses)) error {
	cfg := b.Config()
	var servers []*http.Server
	var listeners []net.Listener
	var at Addresses
	open := func(addr, what string, h http.Handler) (string, error) {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return "", fmt.Errorf("listen on %s for the %s: %w", addr, what, err)
		}
		listeners = append(listeners, l)
		servers = append(servers, &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
			BaseContext: func(net.Listener) context.Context { return ctx },
			ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		})
		return l.Addr().String(), nil
	}
	closeAll := func() {
		for _, l := range listeners {
			l.Close()
		}
	}
	var err error
	if cfg.Public.Listen != "" {
		if at.Public, err = open(cfg.Public.Listen, "public documents", b.PublicHandler()); err != nil {
			closeAll()
			return err
		}
	}
	if cfg.Admin.Listen != "" {
		if at.Admin, err = open(cfg.Admin.Listen, "administration", New(b, Options{Token: string(cfg.Admin.Token), Logger: log})); err != nil {
			closeAll()
			return err
		}
		if err := b.TellAdmin(at.Admin, command); err != nil {
			closeAll()
			return err
		}
	}
	if ready != nil {
		ready(at)
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, s := range servers {
		g.Go(func() error {
			if err := s.Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	g.Go(func() error {
		<-gctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		for _, s := range servers {
			if s.Shutdown(grace) != nil {
				s.Close()
			}
		}
		return nil
	})
	return g.Wait()
}
