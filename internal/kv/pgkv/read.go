package pgkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// A page of a scan begins with firstPage pairs, and grows to pageBytes.
const (
	firstPage = 64
	lastPage  = 4096
	pageBytes = 1 << 20
)

// errExpired comes from a snapshot whose process was not heard for a lease.
var errExpired = errors.New("read a snapshot of the PostgreSQL state: it has ended, for the database did not hear of this process in time")

func (s *Store) Get(ctx context.Context, key []byte) ([]byte, error) {
	return s.get(ctx, nil, key)
}

func (s *Store) get(ctx context.Context, snap *snapshot, key []byte) (value []byte, err error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	err = s.again(ctx, func(ctx context.Context) error {
		if snap == nil {
			return s.pool.QueryRow(ctx, `SELECT v FROM rsbridge_kv WHERE k = $1`, key).Scan(&value)
		}
		rows, err := s.rows(ctx, snap, `SELECT v FROM rsbridge_kv WHERE k = $1 AND rev <= $2 UNION ALL SELECT v FROM rsbridge_kept WHERE k = $1 AND rev <= $2 AND until > $2`, key, snap.rev)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return pgx.ErrNoRows
		}
		value = rows[0][0]
		return nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read the PostgreSQL state: %w", plain(err))
	}
	return value, nil
}

// rows asks for columns of bytes. Then it asks whether the snapshot lasted so long, in the same round trip.
func (s *Store) rows(ctx context.Context, snap *snapshot, sql string, args ...any) (rows [][][]byte, err error) {
	b := &pgx.Batch{}
	b.Queue(sql, args...).Query(func(r pgx.Rows) error {
		for r.Next() {
			row := make([][]byte, len(r.FieldDescriptions()))
			to := make([]any, len(row))
			for i := range row {
				to[i] = &row[i]
			}
			if err := r.Scan(to...); err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return r.Err()
	})
	if snap != nil {
		b.Queue(`SELECT count(*) FROM rsbridge_snapshot WHERE id = $1`, snap.id).QueryRow(func(r pgx.Row) error {
			var n int
			if err := r.Scan(&n); err != nil || n == 1 {
				return err
			}
			return errExpired
		})
	}
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return rows, nil
}

func (s *Store) readable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.ended.Err() != nil {
		return kv.ErrClosed
	}
	return nil
}

func (s *Store) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.scan(ctx, nil, lo, hi, false)
}

func (s *Store) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return s.scan(ctx, nil, lo, hi, true)
}

// scan reads pages. A scan of the present that does not end with its first page takes a snapshot for the rest.
func (s *Store) scan(ctx context.Context, snap *snapshot, lo, hi []byte, back bool) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		p := pager{s: s, snap: snap, lo: lo, hi: hi, back: back, limit: firstPage}
		defer p.close()
		for !p.done {
			rows, err := p.next(ctx)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			for _, r := range rows {
				if ctx.Err() != nil {
					yield(kv.Pair{}, context.Cause(ctx))
					return
				}
				if !yield(kv.Pair{Key: r[0], Value: r[1]}, nil) {
					return
				}
			}
		}
		if ctx.Err() != nil {
			yield(kv.Pair{}, context.Cause(ctx))
		}
	}
}

type pager struct {
	s      *Store
	snap   *snapshot
	own    *snapshot // taken for this scan
	lo, hi []byte
	back   bool
	after  []byte // the last key, nil before the first page
	limit  int
	done   bool
}

func (p *pager) close() {
	if p.own != nil {
		p.own.Close()
	}
}

func (p *pager) next(ctx context.Context) ([][][]byte, error) {
	if err := p.s.readable(ctx); err != nil {
		return nil, err
	}
	var rows [][][]byte
	err := p.s.again(ctx, func(ctx context.Context) (err error) {
		if p.snap != nil {
			rows, err = p.page(ctx)
			return err
		}
		if rows, err = p.page(ctx); err != nil || len(rows) < p.limit {
			return err
		}
		p.own = p.s.take(ctx)
		p.snap = p.own
		if p.own.err != nil {
			return p.own.err
		}
		rows, err = p.page(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the PostgreSQL state: %w", plain(err))
	}
	if p.done = len(rows) < p.limit; p.done {
		return rows, nil
	}
	p.after = rows[len(rows)-1][0]
	size := 0
	for _, r := range rows {
		size += len(r[0]) + len(r[1])
	}
	p.limit = max(1, min(4*p.limit, lastPage, pageBytes*len(rows)/max(1, size)))
	return rows, nil
}

// page asks for the next pairs in order.
func (p *pager) page(ctx context.Context) ([][][]byte, error) {
	var args []any
	where := "true"
	bound := func(op string, key []byte) {
		if key != nil {
			args = append(args, key)
			where += fmt.Sprintf(" AND k %s $%d", op, len(args))
		}
	}
	order := "ORDER BY k"
	if p.back {
		bound(">=", p.lo)
		if p.after != nil {
			bound("<", p.after)
		} else {
			bound("<", p.hi)
		}
		order += " DESC"
	} else {
		bound("<", p.hi)
		if p.after != nil {
			bound(">", p.after)
		} else {
			bound(">=", p.lo)
		}
	}
	args = append(args, p.limit)
	order += fmt.Sprintf(" LIMIT $%d", len(args))
	if p.snap == nil {
		return p.s.rows(ctx, nil, "SELECT k, v FROM rsbridge_kv WHERE "+where+" "+order, args...)
	}
	args = append(args, p.snap.rev)
	rev := fmt.Sprintf("$%d", len(args))
	return p.s.rows(ctx, p.snap, "SELECT k, v FROM ((SELECT k, v FROM rsbridge_kv WHERE "+where+" AND rev <= "+rev+" "+order+
		") UNION ALL (SELECT k, v FROM rsbridge_kept WHERE "+where+" AND rev <= "+rev+" AND until > "+rev+" "+order+")) pair "+order, args...)
}

// snapshot is the state after one commit.
type snapshot struct {
	s    *Store
	id   int64
	rev  int64
	err  error
	once sync.Once
}

// Snapshot is a row in the database until its Close.
func (s *Store) Snapshot(ctx context.Context) kv.Snapshot { return s.take(ctx) }

func (s *Store) take(ctx context.Context) *snapshot {
	snap := &snapshot{s: s}
	if snap.err = s.readable(ctx); snap.err != nil {
		return snap
	}
	snap.err = s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `INSERT INTO rsbridge_snapshot (rev, token, until)
			SELECT rev, $1, clock_timestamp() + $2 FROM rsbridge_head FOR SHARE RETURNING id, rev`, s.token, lease).Scan(&snap.id, &snap.rev)
	})
	return snap
}

func (n *snapshot) Get(ctx context.Context, key []byte) ([]byte, error) {
	if n.err != nil {
		return nil, n.err
	}
	return n.s.get(ctx, n, key)
}

func (n *snapshot) Scan(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return n.scan(ctx, lo, hi, false)
}

func (n *snapshot) ScanReverse(ctx context.Context, lo, hi []byte) iter.Seq2[kv.Pair, error] {
	return n.scan(ctx, lo, hi, true)
}

func (n *snapshot) scan(ctx context.Context, lo, hi []byte, back bool) iter.Seq2[kv.Pair, error] {
	if n.err != nil {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, n.err) }
	}
	return n.s.scan(ctx, n, lo, hi, back)
}

// Close lets the database forget the snapshot. Without an answer it does so after a lease.
func (n *snapshot) Close() error {
	n.once.Do(func() {
		if n.err != nil || n.s.ended.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(n.s.ended, beat)
		defer cancel()
		if _, err := n.s.pool.Exec(ctx, `DELETE FROM rsbridge_snapshot WHERE id = $1`, n.id); err != nil {
			n.s.log.Debug("a snapshot was not given back", "error", plain(err))
		}
	})
	return nil
}
