package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Reload opens another configuration in place of b, which goes on answering meanwhile. It
// waits for a moment without runs (jobs.Runner.Replace); waiting is told which it waits
// for. The result is the bridge to use from then on: with an error it is one of the
// configuration that there was, or nil when not even that can be opened. What b had open and
// the result does not use is closed by Retire.
func (b *Bridge) Reload(ctx context.Context, cfg *Config, waiting func([]jobs.Run)) (*Bridge, error) {
	if err := cfg.Validate(); err != nil {
		return b, err
	}
	next := b
	var fault error
	err := b.runner.Replace(ctx, waiting, func() ([]jobs.Job, error) {
		if next, fault = b.openNext(ctx, cfg); fault != nil {
			// The attempt may have finished what b believes to be open, as a publication
			// that a full disk had stopped.
			var err error
			if next, err = b.openNext(context.WithoutCancel(ctx), b.cfg); err != nil {
				next = nil
				return nil, fmt.Errorf("open the configuration that there was: %w", err)
			}
		}
		if next.runner != b.runner {
			return nil, nil // b's state is left
		}
		return next.jobs(), nil
	})
	return next, errors.Join(fault, err)
}

// openNext opens a configuration with what b has open of it: the state, the runs, the
// stores.
func (b *Bridge) openNext(ctx context.Context, cfg *Config) (_ *Bridge, err error) {
	next := newBridge(cfg, b.o)
	defer func() {
		if err != nil {
			err = errors.Join(err, next.closeExcept(b))
		}
	}()
	if cfg.State == b.cfg.State {
		next.holder, next.kv, next.settled, next.runner = b.holder, b.kv, b.settled, b.runner
	} else if err := next.openState(ctx); err != nil {
		return nil, err
	}
	if err := next.openAll(ctx, b); err != nil {
		return nil, err
	}
	if next.runner == nil {
		err = next.openRunner()
	}
	return next, err
}

// Retire closes what b had open and the bridge that Reload gave does not use. Requests
// to b should have ended.
func (b *Bridge) Retire(next *Bridge) error { return b.closeExcept(next) }
