package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/httpapi"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// standby serves what another process publishes, until this one leads.
type standby struct {
	app    *app
	server *httpapi.Server
	b      *bridge.Bridge

	retiring sync.WaitGroup // bridges of before, with their last requests
	silent   bool           // the state did not answer at the last look
}

// lookEvery is when a standby looks for the leader.
const lookEvery = time.Second

// openShare bounds the work of a standby: it is opened again after so many times what the last opening took.
const openShare = 10

// loop ends with a bridge that leads, or with ctx. An error is of a broken listener, or errReload with the new
// configuration. The caller waits for retiring, and closes s.b.
func (s *standby) loop(ctx context.Context, hup <-chan os.Signal) (next *bridge.Config, err error) {
	s.app.log.Info("this process stands by", "leader", bridge.LeaderOf(s.b))
	s.server.Ready()
	s.app.manager.Serving(s.server.Alive)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var seen int64       // commit
	due := time.Now()    // for another opening
	var failed time.Time // last attempt to lead
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case err := <-s.server.Failed():
			return nil, err
		case <-hup:
			s.app.manager.Reloading()
			cfg, err := bridge.Load(s.app.config)
			if err == nil {
				leftOut(s.app, cfg)
				return cfg, errReload
			}
			s.app.log.Error("the configuration has faults; the old one stays", "error", err)
			s.app.manager.Reloaded()
			continue
		case <-tick.C:
		}
		free, commit, err := bridge.Free(ctx, s.b)
		if s.tell(ctx, err); err != nil {
			continue
		}
		switch now := time.Now(); {
		case free && now.Sub(failed) > 5*lookEvery:
			if err = s.lead(ctx); err == nil {
				return nil, nil
			}
			failed = time.Now()
		case !free && commit != seen && now.After(due):
			err = s.newer(ctx)
			seen, due = commit, time.Now().Add(openShare*time.Since(now))
		}
		switch {
		case errors.Is(err, bridge.ErrDeclared):
			return nil, err
		case err != nil && ctx.Err() == nil && !errors.Is(err, kv.ErrLocked):
			s.app.log.Error("this process goes on to stand by", "error", err)
		}
	}
}

// tell logs once that the state does not answer, and once that it does again.
func (s *standby) tell(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !s.silent:
		s.app.log.Warn("the state does not tell who leads", "error", err)
	case err == nil && s.silent:
		s.app.log.Info("the state answers again")
	}
	s.silent = err != nil
}

// lead replaces the bridge by one that leads.
func (s *standby) lead(ctx context.Context) error {
	s.app.log.Info("nobody leads: this process takes over", "former", bridge.LeaderOf(s.b))
	next, err := bridge.Lead(ctx, s.b)
	if err != nil {
		return err
	}
	return s.replace(next)
}

// newer catches up with the leader.
func (s *standby) newer(ctx context.Context) error {
	next, err := bridge.Newer(ctx, s.b)
	if err != nil || next == s.b {
		return err
	}
	return s.replace(next)
}

// replace answers by another bridge. The requests to the one before end aside.
func (s *standby) replace(next *bridge.Bridge) error {
	before := s.b
	s.b = next
	_, left, err := s.server.Use(next)
	if err != nil {
		return errors.Join(err, before.Retire(next))
	}
	s.retiring.Go(func() {
		left()
		if err := before.Retire(next); err != nil {
			s.app.log.Debug("closing a former moment of the state", "error", err)
		}
	})
	return nil
}
