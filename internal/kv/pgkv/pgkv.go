// Package pgkv keeps a kv.Store in a PostgreSQL database.
//
// A store is five tables in the schema of its connections. rsbridge_kv has the present pairs.
// rsbridge_kept has earlier ones, for the snapshots in rsbridge_snapshot. rsbridge_head is one row: the
// number of the newest commit, its name, the newest durable commit, and the process with the right to write.
// rsbridge_lead has all leads of the past, each with the number of its last commit here ([kv.Point]).
//
// Each commit updates the row in rsbridge_head first, so commits follow one another. A commit is refused unless
// the newest commit of the database is the last one of this process:
//   - after a failover to a copy that lags, by [kv.ErrLost];
//   - after a restart of the database without commits that were not synced, by [kv.ErrUnsynced];
//   - after another process took the right to write, by [kv.ErrTakenOver].
//
// A snapshot is the number of a commit, in a row with an expiry. Its process renews the expiry, so no session
// waits in a transaction. A dead process holds snapshots and the right to write for [lease] at most.
//
// After a lost connection reads are sent again. A commit is sent again only if rsbridge_head shows that it did
// not take place.
package pgkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// form is the version of the tables.
const form = 1

// The right to write and snapshots expire after lease. A living process renews them each beat. Variables for
// tests.
var (
	lease = 10 * time.Second
	beat  = 2 * time.Second
)

// ErrReadOnly comes from every commit to a store that was opened for reading.
var ErrReadOnly = errors.New("opened for reading only")

// tables are made once. The keys are compared bytewise, as bytea is.
const tables = `
SELECT pg_advisory_xact_lock(1920164466);
CREATE TABLE IF NOT EXISTS rsbridge_kv (k bytea PRIMARY KEY, rev bigint NOT NULL, v bytea NOT NULL);
CREATE TABLE IF NOT EXISTS rsbridge_kept (k bytea, until bigint, rev bigint NOT NULL, v bytea NOT NULL, PRIMARY KEY (k, until));
CREATE INDEX IF NOT EXISTS rsbridge_kept_until ON rsbridge_kept (until);
CREATE TABLE IF NOT EXISTS rsbridge_snapshot (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, rev bigint NOT NULL, token bigint NOT NULL, until timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS rsbridge_head (one boolean PRIMARY KEY DEFAULT true CHECK (one), form int NOT NULL, rev bigint NOT NULL, last uuid NOT NULL, token bigint NOT NULL, holder text NOT NULL, until timestamptz NOT NULL);
ALTER TABLE rsbridge_head ADD COLUMN IF NOT EXISTS durable bigint NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS durable_lead uuid;
INSERT INTO rsbridge_head VALUES (true, 1, 0, gen_random_uuid(), 0, '', '-infinity') ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS rsbridge_lead (id uuid PRIMARY KEY, upto bigint)`

// sqlLead takes the right to write. The lead of before ends with the newest commit.
const sqlLead = `WITH head AS (UPDATE rsbridge_head SET token = token + 1, holder = $1, until = clock_timestamp() + $2
		WHERE until <= clock_timestamp() OR token = $3 AND $3 > 0 RETURNING token, last, rev),
	former AS (UPDATE rsbridge_lead SET upto = head.rev FROM head WHERE upto IS NULL),
	lead AS (INSERT INTO rsbridge_lead (id) SELECT gen_random_uuid() FROM head RETURNING id)
	SELECT token, last, rev, id::text FROM head, lead`

// Store is an open store.
type Store struct {
	pool  *pgxpool.Pool
	log   *slog.Logger
	read  bool
	dead  int64 // number of a leader that has ended
	token int64 // the right to write; below 0: for reading, one for each reader
	lead  string
	right right
	noted func(kv.Point) error

	writing sync.Mutex   // one commit at a time; guards last and rev
	last    [16]byte     // name of the newest commit seen
	rev     int64        // its number
	durable atomic.Int64 // number of the newest commit with sync

	heard  int64 // number of the newest commit at the last beat; of the beats alone
	failed atomic.Pointer[error]
	end    context.CancelCauseFunc
	ended  context.Context
	beats  sync.WaitGroup
}

var (
	_ kv.Store   = (*Store)(nil)
	_ kv.Loader  = (*Store)(nil)
	_ kv.Sized   = (*Store)(nil)
	_ kv.Led     = (*Store)(nil)
	_ kv.Settler = (*Store)(nil)
	_ kv.Many    = (*Store)(nil)
	_ kv.Many    = (*snapshot)(nil)
)

// Engine opens the database of an address, the part behind "postgres:".
func Engine(ctx context.Context, place string, o kv.OpenOptions) (kv.Store, error) {
	s, err := Open(ctx, "postgres:"+place, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open opens the store in the database of a URL as libpq reads it, with PGPASSWORD and password files. It
// makes the tables that are not there. A store with another process gives an error that wraps kv.ErrLocked
// and names it, after lease at most; tables of a newer version give kv.ErrNewer. No error has the password.
func Open(ctx context.Context, url string, o kv.OpenOptions) (_ *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the PostgreSQL state: %w", err)
		}
	}()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errURL // pgx tells the URL, and the password with it
	}
	cfg.MaxConns = max(cfg.MaxConns, 8)
	// Every query follows an index. A table just filled has no statistics yet, and without them the
	// planner would sort it whole for one page.
	for name, value := range map[string]string{"enable_seqscan": "off", "enable_sort": "off", "enable_bitmapscan": "off", "jit": "off", "application_name": "rsbridge",
		"idle_in_transaction_session_timeout": "60000", "default_transaction_isolation": "read committed"} {
		if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	s := &Store{log: o.Logger, read: o.ReadOnly, dead: o.Former, right: newRight(), noted: o.Noted}
	if s.noted == nil {
		s.noted = func(kv.Point) error { return nil }
	}
	if s.read {
		s.token = -1 - mathrand.Int64N(math.MaxInt64)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, plain(err)
	}
	s.ended, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if err = s.open(ctx); err != nil {
		s.pool.Close()
		return nil, plain(err)
	}
	s.beats.Go(s.live)
	return s, nil
}

var errURL = errors.New("the URL is not one of PostgreSQL: write postgres://USER@HOST:PORT/DATABASE")

func (s *Store) open(ctx context.Context) error {
	var found, seen int
	err := s.within(ctx, starting, func(ctx context.Context) error {
		if !s.read {
			if err := s.create(ctx); err != nil {
				return err
			}
		}
		return s.pool.QueryRow(ctx, `SELECT form FROM rsbridge_head`).Scan(&found)
	})
	var pg *pgconn.PgError
	if s.read && errors.As(err, &pg) && pg.Code == "42P01" { // no such table
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return err
	}
	if found > form {
		return fmt.Errorf("%w: its tables have form %d, and this one knows %d", kv.ErrNewer, found, form)
	}
	var until time.Time
	for !s.read {
		var holder string
		taken := false
		err := s.again(ctx, func(ctx context.Context) error {
			began := time.Now()
			err := s.pool.QueryRow(ctx, sqlLead, Name(os.Getpid()), lease, s.dead).Scan(&s.token, &s.last, &s.rev, &s.lead)
			if taken = err == nil; taken {
				s.right.confirm(began)
			}
			if taken || !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			var now time.Time
			err = s.pool.QueryRow(ctx, `SELECT holder, until FROM rsbridge_head`).Scan(&holder, &now)
			if !now.Equal(until) {
				until = now
				seen++
			}
			return err
		})
		if err != nil || taken {
			return err
		}
		if seen > 1 { // its end was put off: it lives
			return fmt.Errorf("%w: %s", kv.ErrLocked, holder)
		}
		if err := pause(ctx, beat/8); err != nil {
			return err
		}
	}
	return nil
}

// create makes the tables, unless they are there: a role that may write need not be one that may create.
func (s *Store) create(ctx context.Context) error {
	var there bool
	if err := s.pool.QueryRow(ctx, `SELECT to_regclass('rsbridge_head') IS NOT NULL AND to_regclass('rsbridge_kept_until') IS NOT NULL AND to_regclass('rsbridge_lead') IS NOT NULL`).Scan(&there); err != nil || there {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, one := range strings.Split(tables, ";\n") {
			if _, err := tx.Exec(ctx, strings.TrimSpace(one)); err != nil {
				return fmt.Errorf("make the tables: %w", err)
			}
		}
		return nil
	})
}

// Name is how others call a process of this machine.
func Name(pid int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", pid, host)
}

// live renews the right to write and the snapshots, and drops earlier pairs that no snapshot needs.
func (s *Store) live() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-s.ended.Done():
			return
		case <-tick.C:
		}
		if err := s.beat(); err != nil && s.ended.Err() == nil {
			s.log.Warn("the PostgreSQL state did not hear of this process", "error", plain(err))
		}
	}
}

func (s *Store) beat() error {
	ctx, cancel := context.WithTimeout(s.ended, lease)
	defer cancel()
	if !s.read {
		began := time.Now()
		var rev int64
		err := s.pool.QueryRow(ctx, `UPDATE rsbridge_head SET until = clock_timestamp() + $2 WHERE token = $1 RETURNING rev`, s.token, lease).Scan(&rev)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && rev < s.heard {
			s.fail(s.lost(ctx))
			return nil
		}
		if err != nil {
			return err
		}
		s.heard = rev
		s.right.confirm(began)
	}
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM rsbridge_snapshot WHERE until <= clock_timestamp()`)
	b.Queue(`UPDATE rsbridge_snapshot SET until = clock_timestamp() + $2 WHERE token = $1`, s.token, lease)
	if !s.read {
		b.Queue(`DELETE FROM rsbridge_kept WHERE until <= (SELECT coalesce(min(rev), 9223372036854775807) FROM rsbridge_snapshot)`)
	}
	return s.pool.SendBatch(ctx, b).Close()
}

// fail ends all writing with the first cause.
func (s *Store) fail(err error) {
	if s.failed.CompareAndSwap(nil, &err) {
		s.log.Error("the PostgreSQL state takes no more from this process", "error", err)
		s.right.end(err)
	}
}

func (s *Store) writable() error {
	switch err := s.failed.Load(); {
	case s.ended.Err() != nil:
		return kv.ErrClosed
	case s.read:
		return ErrReadOnly
	case err != nil:
		return *err
	}
	return nil
}

// lost tells why the head is not the one this process left.
func (s *Store) lost(ctx context.Context) error {
	var token, rev int64
	var holder string
	var ours bool
	if err := s.pool.QueryRow(ctx, `SELECT token, holder, rev, EXISTS (SELECT FROM rsbridge_lead WHERE id = $1::text::uuid AND upto IS NULL) FROM rsbridge_head`, s.lead).Scan(&token, &holder, &rev, &ours); err != nil {
		return errors.Join(kv.ErrLost, plain(err))
	}
	switch {
	case token > s.token:
		return fmt.Errorf("%w: %s", kv.ErrTakenOver, holder)
	case ours && rev >= s.durable.Load():
		return kv.ErrUnsynced
	}
	return kv.ErrLost
}

// Size is of the tables and their indexes.
func (s *Store) Size(ctx context.Context) (n int64, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT pg_total_relation_size('rsbridge_kv') + pg_total_relation_size('rsbridge_kept')`).Scan(&n)
	})
	if err != nil {
		return 0, fmt.Errorf("size of the PostgreSQL state: %w", plain(err))
	}
	return n, nil
}

// Close gives back the right to write. Open snapshots end.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.ended.Err() != nil {
		return kv.ErrClosed
	}
	s.end(kv.ErrClosed)
	s.beats.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ended), beat)
	defer cancel()
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM rsbridge_snapshot WHERE token = $1`, s.token)
	b.Queue(`UPDATE rsbridge_head SET until = '-infinity' WHERE token = $1 AND $1 > 0`, s.token)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		s.log.Warn("the PostgreSQL state did not hear of the end of this process: the next one waits for it", "error", plain(err), "wait", lease)
	}
	s.pool.Close()
	return nil
}
