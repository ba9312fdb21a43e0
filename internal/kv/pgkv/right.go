package pgkv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// right is the right to write, as known here: the database was last asked at from, and agreed.
type right struct {
	mu    sync.Mutex // guards the fields below
	from  time.Time
	heard chan struct{} // closed when there is news

	taken   chan struct{} // closed when another process has taken over
	settled chan struct{} // closed when the store has to be opened again
}

func newRight() right {
	return right{heard: make(chan struct{}), taken: make(chan struct{}), settled: make(chan struct{})}
}

// sure is how long a process counts on an answer. It is shorter than the lease, for clocks of unequal speed.
func sure() time.Duration { return lease - lease/10 }

// confirm notes an answer by the time of its request: the lease began then at the earliest.
func (r *right) confirm(asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked.After(r.from) {
		r.from = asked
	}
	r.tell()
}

func (r *right) tell() {
	close(r.heard)
	r.heard = make(chan struct{})
}

// end tells the waiting of the end of the right. It is called once.
func (r *right) end(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell()
	switch {
	case errors.Is(why, kv.ErrTakenOver):
		close(r.taken)
	case errors.Is(why, kv.ErrUnsynced):
		close(r.settled)
	}
}

// holds tells whether the right is certain now. If not, news is closed with the next answer. The clock of a sleeping
// machine may stand still: the longer of two times decides.
func (r *right) holds() (certain bool, news <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	past := max(now.Sub(r.from), now.Round(0).Sub(r.from.Round(0)))
	return past < sure(), r.heard
}

// Hold waits while the lease may have ended. After a standstill, or without its database, a process does nothing
// outside of it until the database has agreed again.
func (s *Store) Hold(ctx context.Context) error {
	for {
		certain, news := s.right.holds()
		if err := s.writable(); err != nil || certain {
			return err
		}
		select {
		case <-news:
		case <-s.ended.Done():
		case <-ctx.Done():
			return fmt.Errorf("wait for the PostgreSQL state: %w", context.Cause(ctx))
		}
	}
}

// Lost is closed when another process has taken over.
func (s *Store) Lost() <-chan struct{} { return s.right.taken }

// Settled is closed after kv.ErrUnsynced.
func (s *Store) Settled() <-chan struct{} { return s.right.settled }

// Leader asks the database.
func (s *Store) Leader(ctx context.Context) (l kv.Leader, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT holder, until > clock_timestamp(), token, rev FROM rsbridge_head`).Scan(&l.Name, &l.Leads, &l.Number, &l.Commit)
	})
	if err != nil {
		return l, fmt.Errorf("ask for the leader of the PostgreSQL state: %w", plain(err))
	}
	return l, nil
}

// Newest asks the database. Both answers are of one moment.
func (s *Store) Newest(ctx context.Context, was kv.Point) (newest kv.Point, has bool, err error) {
	if err := s.readable(ctx); err != nil {
		return newest, false, err
	}
	err = s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT coalesce(durable_lead::text, ''), durable, $1 = '' OR EXISTS
			(SELECT FROM rsbridge_lead WHERE id::text = $1 AND coalesce(upto, rev) >= $2) FROM rsbridge_head`, was.Lead, was.Commit).Scan(&newest.Lead, &newest.Commit, &has)
	})
	if err != nil {
		return newest, false, fmt.Errorf("ask for the newest commit of the PostgreSQL state: %w", plain(err))
	}
	return newest, has, nil
}

// Adopt lets former leads end with any commit.
func (s *Store) Adopt(ctx context.Context, leads ...string) error {
	if err := errors.Join(s.writable(), kv.NotBegun(ctx)); err != nil {
		return err
	}
	if err := s.commit(context.WithoutCancel(ctx), s.pool, true, func(b *pgx.Batch) {
		b.Queue(`INSERT INTO rsbridge_lead (id, upto) SELECT id::uuid, 9223372036854775807 FROM unnest($1::text[]) id ON CONFLICT (id) DO UPDATE SET upto = excluded.upto WHERE rsbridge_lead.upto IS NOT NULL`, leads)
	}); err != nil {
		return fmt.Errorf("adopt the loss of commits in the PostgreSQL state: %w", plain(err))
	}
	return nil
}
