package httpapi

import (
	"context"
	"time"
)

// Change is a wish for another configuration. Whoever serves bridges takes it from Server.Changes,
// calls Next, and then Begun and Ended.
type Change struct {
	Next  Next
	begun chan error
	ended chan error
}

// Begun tells that the change is kept and waits for runs under way, or why it is refused.
func (c *Change) Begun(err error) { c.begun <- err }

// Ended tells that the configuration is in effect, or why it cannot be opened.
func (c *Change) Ended(err error) { c.ended <- err }

// Changes are the wishes of users for other configurations. Call it before Use: without it the
// configuration cannot be changed.
func (s *Server) Changes() <-chan *Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = make(chan *Change)
	}
	return s.changes
}

// changeWait is how long a request waits for runs under way.
const changeWait = 10 * time.Second

// changer hands changes over, nil if nobody takes them. The caller holds s.mu.
func (s *Server) changer() func(context.Context, Next) (bool, error) {
	if s.changes == nil {
		return nil
	}
	to := s.changes
	return func(ctx context.Context, next Next) (inEffect bool, err error) {
		c := &Change{Next: next, begun: make(chan error, 1), ended: make(chan error, 1)}
		select {
		case to <- c:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-s.ctx.Done():
			return false, context.Canceled
		}
		if err := <-c.begun; err != nil {
			return false, err
		}
		timer := time.NewTimer(changeWait)
		defer timer.Stop()
		select {
		case err := <-c.ended:
			return err == nil, err
		case <-timer.C:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		return false, nil
	}
}
