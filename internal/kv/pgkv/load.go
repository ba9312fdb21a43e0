package pgkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// load is a temporary table of one connection: it ends with it, whatever happens.
type load struct {
	s    *Store
	mu   sync.Mutex    // guards the fields below
	conn *pgxpool.Conn // from the first COPY to Close
	runs []*run
	err  error // of a run
}

// Load collects pairs in the database.
func (s *Store) Load() kv.Load { return &load{s: s} }

func (l *load) Run() kv.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &run{l: l}
	l.runs = append(l.runs, r)
	return r
}

func (l *load) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	return err
}

// copy adds rows to the table.
func (l *load) copy(rows [][]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.err = func() (err error) {
		ctx := l.s.ended
		if err := l.s.writable(); err != nil {
			return err
		}
		if l.conn == nil {
			if l.conn, err = l.s.pool.Acquire(ctx); err != nil {
				return err
			}
			if _, err = l.conn.Exec(ctx, `CREATE TEMPORARY TABLE rsbridge_load (k bytea, v bytea)`); err != nil {
				return err
			}
		}
		_, err = l.conn.CopyFrom(ctx, pgx.Identifier{"rsbridge_load"}, []string{"k", "v"}, pgx.CopyFromRows(rows))
		return err
	}()
	if l.err != nil {
		l.err = fmt.Errorf("load the PostgreSQL state: %w", plain(l.err))
	}
	return l.err
}

func (l *load) Commit(ctx context.Context) error {
	if err := errors.Join(l.s.writable(), kv.NotBegun(ctx)); err != nil {
		return err
	}
	for _, r := range l.runs {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if l.err != nil || l.conn == nil {
		return l.err
	}
	if err := l.s.commit(context.WithoutCancel(ctx), l.conn, true, func(b *pgx.Batch) {
		b.Queue(sqlKeep + `k IN (SELECT k FROM rsbridge_load)`)
		b.Queue(`INSERT INTO rsbridge_kv (k, rev, v) SELECT k, (SELECT rev FROM rsbridge_head), v FROM rsbridge_load` + sqlPut)
	}); err != nil {
		return fmt.Errorf("load the PostgreSQL state: %w", plain(err))
	}
	return nil
}

// Close drops the table.
func (l *load) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn = nil
	defer conn.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.s.ended), beat)
	defer cancel()
	if _, err := conn.Exec(ctx, `DROP TABLE IF EXISTS rsbridge_load`); err != nil {
		conn.Conn().Close(ctx) // the table goes with the connection
	}
	return nil
}

// run buffers pairs until they are worth a COPY.
type run struct {
	l    *load
	rows [][]any
	last []byte
	size int
}

const copyBytes = 1 << 20

func (r *run) Set(key, value []byte) error {
	if r.last != nil && bytes.Compare(key, r.last) <= 0 {
		return r.l.fail(fmt.Errorf("load the PostgreSQL state: key %q after %q", key, r.last))
	}
	if len(key) > longest {
		return r.l.fail(fmt.Errorf("load the PostgreSQL state: a key has %d bytes, and PostgreSQL takes %d", len(key), longest))
	}
	r.last = bytes.Clone(key)
	r.rows = append(r.rows, []any{r.last, notNil(bytes.Clone(value))})
	if r.size += len(key) + len(value); r.size < copyBytes {
		return nil
	}
	return r.flush()
}

func (r *run) flush() error {
	if len(r.rows) == 0 {
		return nil
	}
	rows := r.rows
	r.rows, r.size = nil, 0
	return r.l.copy(rows)
}
