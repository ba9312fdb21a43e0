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
	changes := r.server.Changes()
	for {
		var reopen <-chan struct{}
		if now.ended == nil && r.b != tried {
			reopen = r.b.Reopen()
		}
		select {
		case <-ctx.Done():
			err := r.end(&now)
			return r.b, err
		case err := <-r.server.Failed():
			err = errors.Join(err, r.end(&now))
			return r.b, err
		case <-bridge.Lost(r.b):
			_ = r.b.Runner().Close(0) // the runs cannot be recorded any more
			err := errors.Join(errLost, r.end(&now))
			return r.b, err
		case <-r.b.Again():
			err := errors.Join(errAgain, r.end(&now))
			return r.b, err
		case got := <-now.ended:
			r.b = got.b
			now.settle(r.app, got)
			r.app.manager.Reloaded()
			if now = (attempt{}); got.err != nil {
				return r.b, got.err
			}
		case change := <-changes:
			cfg, undo, err := r.declare(ctx, change.Next, now)
			if change.Begun(err); err != nil {
				continue
			}
			if err := r.end(&now); err != nil {
				return r.b, err
			}
			now = now.next(r.begin(ctx, cfg, change.Ended), undo)
		case <-reopen:
			tried, now = r.b, r.begin(ctx, r.b.Config(), nil)
		case <-hup:
			r.app.manager.Reloading()
			cfg, err := bridge.Load(r.app.config)
			if err != nil {
				r.app.log.Error("the configuration has faults; the old one stays", "error", err)
				r.app.manager.Reloaded()
				continue
			}
			leftOut(r.app, cfg)
			if err := r.end(&now); err != nil { // this one replaces a waiting one
				return r.b, err
			}
			now = now.next(r.begin(ctx, cfg, nil), nil)
		}
	}
}

// attempt is a reload under way; the zero value is none.
type attempt struct {
	cfg   *bridge.Config
	stop  context.CancelFunc
	ended chan reloaded
	undo  func() error // takes the declarations of users back, nil for none
}

// reloaded is the result of an attempt: the bridge in use, and why it is not another one.
type reloaded struct {
	b       *bridge.Bridge
	refused error
	err     error
}

// begin tries another configuration. tell hears whether it is in effect, as soon as it is; it may
// be nil.
func (r *reloader) begin(ctx context.Context, cfg *bridge.Config, tell func(error)) attempt {
	ctx, stop := context.WithCancel(ctx)
	t, b := attempt{cfg: cfg, stop: stop, ended: make(chan reloaded, 1)}, r.b
	inUse := func(err error) {
		if tell != nil {
			tell(err)
			tell = nil
		}
	}
	go func() { // ends with the context, or before
		defer stop()
		got := r.reload(ctx, b, cfg, inUse)
		if got.refused != nil && ctx.Err() == nil {
			inUse(got.refused)
		}
		t.ended <- got
	}()
	return t
}

// declare makes the configuration of a change, and keeps it. Its base is the one that waits.
func (r *reloader) declare(ctx context.Context, next httpapi.Next, now attempt) (cfg *bridge.Config, undo func() error, err error) {
	latest := r.b.Config()
	if now.cfg != nil {
		latest = now.cfg
	}
	cfg, save, undo, err := next(latest)
	if err == nil {
		err = save()
	}
	if err == nil {
		if err = bridge.KeepFiles(ctx, r.b); err != nil { // the next leader would not know of it
			err = errors.Join(err, undo())
		}
	}
	return cfg, undo, err
}

// next is the attempt that replaces this one. If it fails, the declarations of both are taken back.
func (t attempt) next(a attempt, undo func() error) attempt {
	if a.undo = undo; t.undo != nil {
		a.undo = t.undo
	}
	return a
}

// settle takes declarations back that could not be opened.
func (t attempt) settle(a *app, got reloaded) {
	if got.refused == nil || t.undo == nil {
		return
	}
	if err := t.undo(); err != nil {
		a.log.Error("a declaration that cannot be opened is still in the state", "error", err)
	}
}

// leftOut logs the declarations of users, and the keys of the configuration, without effect.
func leftOut(a *app, cfg *bridge.Config) {
	for _, f := range cfg.Idle() {
		a.log.Warn("a key of the configuration has no effect", "key", f.String())
	}
	faults, overruled := cfg.LeftOut()
	for _, f := range faults {
		a.log.Error("a declaration of the API is left out: declare it again, or take it back", "error", f.String())
	}
	for _, path := range overruled {
		a.log.Warn("a declaration of the API has no effect: the configuration file declares the name too", "path", path)
	}
}

// end stops a waiting reload, and waits for its end.
func (r *reloader) end(t *attempt) error {
	if t.ended == nil {
		return nil
	}
	t.stop()
	got := <-t.ended
	r.b = got.b
	if got.refused == nil { // it was in effect already
		t.undo = nil
	}
	return got.err
}

// reload uses another configuration in place of b's. After an error the daemon cannot go
// on, and closes the returned bridge.
func (r *reloader) reload(ctx context.Context, b *bridge.Bridge, cfg *bridge.Config, inUse func(error)) reloaded {
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
		return reloaded{b: b, refused: err}
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
		return reloaded{b, err, err}
	}
	if err != nil && ctx.Err() == nil {
		log.Error(what+" cannot be opened; the old one stays", "error", err)
	}
	if next == b {
		return reloaded{b: b, refused: err}
	}
	refused := err
	if err != nil { // at the old listeners
		if err := r.server.Listen(next.Config(), b, httpapi.Listeners{}); err != nil {
			return reloaded{next, refused, errors.Join(err, b.Retire(next))}
		}
	} else if cfg != b.Config() {
		log.Info("the configuration was read again")
	}
	left, err := r.app.use(r.server, next)
	if err != nil {
		return reloaded{next, err, errors.Join(err, b.Retire(next))}
	}
	if refused == nil {
		inUse(nil)
	}
	next.Start(ctx)
	left()
	return reloaded{next, refused, b.Retire(next)}
}
