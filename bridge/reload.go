package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Reload opens another configuration in place of b, and b goes on answering meanwhile. It
// waits for a moment without runs (jobs.Runner.Replace); waiting gets the runs under way. Use
// the returned bridge from then on: with an error it has the old configuration, or is nil if
// not even that one can be opened. Retire closes the parts of b not in use by the result.
func (b *Bridge) Reload(ctx context.Context, cfg *Config, waiting func([]jobs.Run)) (*Bridge, error) {
	if err := cfg.Validate(); err != nil {
		return b, err
	}
	next := b
	var fault error
	err := b.runner.Replace(ctx, waiting, func() ([]jobs.Job, error) {
		if next, fault = b.openNext(ctx, cfg); fault != nil {
			// The attempt may have finished work still open in b, like a publication
			// stopped by a full disk.
			var err error
			if next, err = b.openNext(context.WithoutCancel(ctx), b.cfg); err != nil {
				next = nil
				return nil, fmt.Errorf("open the configuration that there was: %w", err)
			}
		}
		if next.runner != b.runner {
			return nil, nil // b's state is left
		}
		return next.jobs(ctx), nil
	})
	return next, errors.Join(fault, err)
}

// openNext opens a configuration with the open state, runs and stores of b.
func (b *Bridge) openNext(ctx context.Context, cfg *Config) (_ *Bridge, err error) {
	next := newBridge(cfg, b.o)
	defer func() {
		if err != nil {
			err = errors.Join(err, next.closeExcept(b))
		}
	}()
	if cfg.State == b.cfg.State && cfg.StateFolder == b.cfg.StateFolder {
		next.holder, next.kv, next.state, next.runner = b.holder, b.kv, b.state.ofNext(), b.runner
	} else if err := next.openState(ctx); err != nil {
		return nil, err
	}
	if err := next.openAll(ctx, b); err != nil {
		return nil, err
	}
	if next.runner == nil {
		err = next.openRunner(ctx)
	}
	return next, err
}

// Retire closes the parts of b not in use by the result of Reload. Requests to b should have
// ended.
func (b *Bridge) Retire(next *Bridge) error { return b.closeExcept(next) }
