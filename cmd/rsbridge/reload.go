package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// reloader replaces the bridge of a daemon when its configuration is read again.
type reloader struct {
	app    *app
	server *httpapi.Server
	b      *bridge.Bridge
}

// loop serves until ctx ends, a listener breaks or the bridge asks to be opened again. The
// caller closes the returned bridge.
func (r *reloader) loop(ctx context.Context, hup <-chan os.Signal) (*bridge.Bridge, error) {
	var now attempt
	var tried *bridge.Bridge // it was to be opened again
	for {
		var reopen <-chan struct{}
		if now.ended == nil && r.b != tried {
			reopen = r.b.Reopen()
		}
		select {
		case <-ctx.Done():
			err := r.end(now)
			return r.b, err
		case err := <-r.server.Failed():
			err = errors.Join(err, r.end(now))
			return r.b, err
		case <-r.b.Again():
			err := errors.Join(errAgain, r.end(now))
			return r.b, err
		case got := <-now.ended:
			r.b, now = got.b, attempt{}
			r.app.manager.Reloaded()
			if got.err != nil {
				return r.b, got.err
			}
		case <-reopen:
			tried, now = r.b, r.begin(ctx, r.b.Config())
		case <-hup:
			r.app.manager.Reloading()
			cfg, err := bridge.Load(r.app.config)
			if err != nil {
				r.app.log.Error("the configuration has faults; the old one stays", "error", err)
				r.app.manager.Reloaded()
				continue
			}
			if err := r.end(now); err != nil { // this one replaces a waiting one
				return r.b, err
			}
			now = r.begin(ctx, cfg)
		}
	}
}

// attempt is a reload under way; the zero value is none.
type attempt struct {
	stop  context.CancelFunc
	ended chan reloaded
}

// reloaded is the result of an attempt: the bridge in use.
type reloaded struct {
	b   *bridge.Bridge
	err error
}

func (r *reloader) begin(ctx context.Context, cfg *bridge.Config) attempt {
	ctx, stop := context.WithCancel(ctx)
	t, b := attempt{stop, make(chan reloaded, 1)}, r.b
	go func() { // ends with the context, or before
		defer stop()
		next, err := r.reload(ctx, b, cfg)
		t.ended <- reloaded{next, err}
	}()
	return t
}

// end stops a waiting reload, and waits for its end.
func (r *reloader) end(t attempt) error {
	if t.ended == nil {
		return nil
	}
	t.stop()
	got := <-t.ended
	r.b = got.b
	return got.err
}

// reload uses another configuration in place of b's. After an error the daemon cannot go
// on, and closes the returned bridge.
func (r *reloader) reload(ctx context.Context, b *bridge.Bridge, cfg *bridge.Config) (*bridge.Bridge, error) {
	log, what := r.app.log, "the new configuration"
	if cfg == b.Config() {
		what = "the change of a set" // the new bridge logs its work
	}
	listeners, err := r.app.listen(cfg)
	if err == nil {
		err = r.server.Listen(cfg, b, listeners)
	}
	if err != nil {
		log.Error(what+" cannot be opened; the old one stays", "error", err)
		return b, nil
	}
	limitMemory(cfg.Embedded())
	next, err := b.Reload(ctx, cfg, func(runs []jobs.Run) {
		var names []string
		for _, run := range runs {
			names = append(names, fmt.Sprintf("%s (run %d)", run.Job, run.ID))
		}
		log.Info(what+" waits for runs to end", "runs", strings.Join(names, ", "))
	})
	if next == nil {
		return b, err
	}
	if err != nil && ctx.Err() == nil {
		log.Error(what+" cannot be opened; the old one stays", "error", err)
	}
	if next == b {
		return b, nil
	}
	if err != nil { // at the old listeners
		if err := r.server.Listen(next.Config(), b, httpapi.Listeners{}); err != nil {
			return next, errors.Join(err, b.Retire(next))
		}
	} else if cfg != b.Config() {
		log.Info("the configuration was read again")
	}
	left, err := r.app.use(r.server, next)
	if err != nil {
		return next, errors.Join(err, b.Retire(next))
	}
	next.Start(ctx)
	left()
	return next, b.Retire(next)
}
