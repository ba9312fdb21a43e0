package httpapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/tlsfiles"
)

// Opening answers at the listeners of a bridge that takes long to be opened, as while an interrupted
// commit is finished: 503, and 200 at /healthz, so nobody takes the process for dead and kills it.
type Opening struct {
	ctx     context.Context // until End
	stop    context.CancelFunc
	log     *slog.Logger
	running sync.WaitGroup
	serving Listeners
}

const againAfter = "10" // seconds

// AnswerOpening begins to answer after a while, at the listeners and those missing of cfg. Without a
// free address it answers nothing there: whoever serves the bridge tells.
func AnswerOpening(ctx context.Context, cfg *bridge.Config, l Listeners, after time.Duration, log *slog.Logger) *Opening {
	o := &Opening{log: log, serving: l}
	o.ctx, o.stop = context.WithCancel(ctx)
	public, admin := cfg.Public.Listen, cfg.Admin.Listen
	if !cfg.Publishes() {
		public = ""
	}
	o.running.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-o.ctx.Done():
			return
		case <-timer.C:
		}
		log.Info("opening the state takes long; requests are answered with 503 meanwhile")
		o.answer(&o.serving.Public, public, cfg.Public.TLS, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", againAfter)
			http.Error(w, "The source is being started.", http.StatusServiceUnavailable)
		})
		o.answer(&o.serving.Admin, admin, cfg.Admin.TLS, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/healthz":
				http.Error(w, "ok", http.StatusOK)
			case "/readyz":
				http.Error(w, "starting", http.StatusServiceUnavailable)
			default:
				w.Header().Set("Retry-After", againAfter)
				http.Error(w, "rsbridge is being started: the state is opened.", http.StatusServiceUnavailable)
			}
		})
	})
	return o
}

// answer answers at a listener until the end. It opens one if there is none.
func (o *Opening) answer(l *net.Listener, addr string, files tlsfiles.Config, handler http.HandlerFunc) {
	secure, err := files.Server(o.log)
	if addr == "" || err != nil { // whoever serves the bridge tells
		return
	}
	if *l == nil {
		opened, err := new(net.ListenConfig).Listen(o.ctx, "tcp", addr)
		if err != nil {
			o.log.Debug("nothing is answered while the state is opened", "address", addr, "error", err)
			return
		}
		*l = opened
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug)}
	srv.SetKeepAlivesEnabled(false)
	at := &lent{Listener: *l}
	o.running.Go(func() { _ = srv.Serve(tlsfiles.Listener(at, func() *tls.Config { return secure })) }) // until its Shutdown
	o.running.Go(func() {
		<-o.ctx.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), time.Second)
		defer cancel()
		if srv.Shutdown(within) != nil {
			srv.Close()
		}
	})
}

// End ends the answers. The listeners stay open, for the bridge.
func (o *Opening) End() Listeners {
	o.stop()
	o.running.Wait()
	for _, l := range []net.Listener{o.serving.Public, o.serving.Admin} {
		if d, ok := l.(interface{ SetDeadline(time.Time) error }); ok {
			_ = d.SetDeadline(time.Time{}) // of an open listener
		}
	}
	return o.serving
}

// lent is a listener of somebody else, never closed here.
type lent struct{ net.Listener }

// Close ends Accept.
func (l *lent) Close() error {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return d.SetDeadline(time.Unix(1, 0))
	}
	return l.Listener.Close()
}
