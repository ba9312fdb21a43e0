package pgkv

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// longest is the length of a key that fits into a page of PostgreSQL's index.
const longest = 2600

// A commit is one round trip. Its division by zero fails the whole transaction, unless the head is the last
// commit of this process. Pairs that a snapshot needs are kept before they are changed.
const (
	sqlHead = `UPDATE rsbridge_head SET rev = rev + 1, last = $2, until = greatest(until, clock_timestamp() + $4),
		durable = CASE WHEN $5 THEN rev + 1 ELSE durable END, durable_lead = CASE WHEN $5 THEN $6::text::uuid ELSE durable_lead END WHERE token = $1 AND last = $3`
	sqlSync    = `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`
	sqlCheck   = `SELECT 1 / count(*) FROM rsbridge_head WHERE last = $1`
	sqlLazy    = `SELECT set_config('synchronous_commit', 'off', true)`
	sqlExpired = `DELETE FROM rsbridge_snapshot WHERE until <= clock_timestamp()`
	sqlKeep    = `INSERT INTO rsbridge_kept (k, until, rev, v) SELECT k, (SELECT rev FROM rsbridge_head), rev, v FROM rsbridge_kv WHERE EXISTS (SELECT FROM rsbridge_snapshot) AND `
	sqlPut     = ` ON CONFLICT (k) DO UPDATE SET v = excluded.v, rev = excluded.rev`
)

// batch folds its writes as they come, so that at most one is left for each key.
type batch struct {
	s      *Store
	points map[string]point
	ranges []span
	size   int
	long   int // length of a key that is too long
}

type point struct {
	value []byte // nil: deleted
	after int    // ranges before it
}

type span struct{ lo, hi []byte }

func (r span) has(key string) bool {
	return key >= string(r.lo) && (r.hi == nil || key < string(r.hi))
}

// Batch collects writes in memory.
func (s *Store) Batch() kv.Batch { return &batch{s: s, points: map[string]point{}} }

func (b *batch) Set(key, value []byte) {
	b.put(key, append(make([]byte, 0, len(value)), value...))
}

func (b *batch) Delete(key []byte) { b.put(key, nil) }

func (b *batch) put(key, value []byte) {
	if len(key) > longest {
		b.long = len(key)
	}
	b.points[string(key)] = point{value, len(b.ranges)}
	b.size += len(key) + len(value) + 16
}

func (b *batch) DeleteRange(lo, hi []byte) {
	b.ranges = append(b.ranges, span{bytes.Clone(lo), bytes.Clone(hi)})
	b.size += len(lo) + len(hi) + 16
}

func (b *batch) Grow(int) {}

func (b *batch) Size() int { return b.size }

func (b *batch) Close() error {
	b.reset()
	return nil
}

func (b *batch) reset() {
	clear(b.points)
	b.ranges, b.size, b.long = nil, 0, 0
}

func (b *batch) Commit(ctx context.Context, sync bool) error {
	defer b.reset()
	if err := errors.Join(b.s.writable(), kv.NotBegun(ctx)); err != nil {
		return err
	}
	if b.long > 0 {
		return fmt.Errorf("write the PostgreSQL state: a key has %d bytes, and PostgreSQL takes %d", b.long, longest)
	}
	if b.size == 0 && !sync {
		return nil
	}
	err := b.s.commit(context.WithoutCancel(ctx), b.s.pool, sync, b.fill)
	if err != nil {
		return fmt.Errorf("write the PostgreSQL state: %w", plain(err))
	}
	return nil
}

// fill adds the statements: ranges first, then what was written after them.
func (b *batch) fill(to *pgx.Batch) {
	for _, r := range b.ranges {
		where, args := `k >= $1`, []any{notNil(r.lo)}
		if r.hi != nil {
			where, args = where+` AND k < $2`, append(args, r.hi)
		}
		to.Queue(sqlKeep+where, args...)
		to.Queue(`DELETE FROM rsbridge_kv WHERE `+where, args...)
	}
	var keys, values, gone [][]byte
	for _, k := range slices.Sorted(maps.Keys(b.points)) {
		p := b.points[k]
		if slices.ContainsFunc(b.ranges[p.after:], func(r span) bool { return r.has(k) }) {
			continue
		}
		if p.value == nil {
			gone = append(gone, []byte(k))
		} else {
			keys, values = append(keys, []byte(k)), append(values, p.value)
		}
	}
	if all := append(slices.Clone(keys), gone...); len(all) > 0 {
		to.Queue(sqlKeep+`k = ANY ($1)`, all)
	}
	if len(gone) > 0 {
		to.Queue(`DELETE FROM rsbridge_kv WHERE k = ANY ($1)`, gone)
	}
	if len(keys) > 0 {
		to.Queue(`INSERT INTO rsbridge_kv (k, rev, v) SELECT k, (SELECT rev FROM rsbridge_head), v FROM unnest($1::bytea[], $2::bytea[]) AS new (k, v)`+sqlPut, keys, values)
	}
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// sender is the pool, or one connection of it.
type sender interface {
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// commit sends one transaction. After a lost connection it sends it again only if it did not take place.
func (s *Store) commit(ctx context.Context, on sender, sync bool, fill func(*pgx.Batch)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	var next [16]byte
	rand.Read(next[:])
	err := s.again(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(sqlHead, s.token, next, s.last, lease, sync, s.lead)
		b.Queue(sqlCheck, next)
		if sync {
			b.Queue(sqlSync)
		} else {
			b.Queue(sqlLazy)
		}
		b.Queue(sqlExpired)
		fill(b)
		began := time.Now()
		err := on.SendBatch(ctx, b).Close()
		var pg *pgconn.PgError
		switch {
		case err == nil:
			s.last = next
			s.right.confirm(began)
			return nil
		case errors.As(err, &pg) && pg.Code == "22012": // the division
			err = s.lost(ctx)
			s.fail(err)
			return err
		case !away(err):
			return err
		}
		return s.settle(ctx, on, next, err)
	})
	if err != nil {
		return err
	}
	s.rev++
	if !sync {
		return nil
	}
	s.durable.Store(s.rev)
	if err := s.noted(kv.Point{Lead: s.lead, Commit: s.rev}); err != nil {
		s.fail(err)
		return err
	}
	return nil
}

// settle finds out whether the commit of a lost connection took place. The lock waits for the end of its session.
func (s *Store) settle(ctx context.Context, on sender, next [16]byte, lost error) error {
	var last [16]byte
	var token int64
	if err := s.again(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT last, token FROM rsbridge_head FOR UPDATE`).Scan(&last, &token)
		})
	}); err != nil {
		return fmt.Errorf("nobody knows whether it took place: %w", err)
	}
	switch {
	case token == s.token && last == next:
		s.last = next
		return nil
	case token == s.token && last == s.last:
		if on != sender(s.pool) { // the rows of a load went with their connection
			return errors.New("the connection was lost: " + plain(lost).Error())
		}
		return lost
	}
	err := s.lost(ctx)
	s.fail(err)
	return err
}
