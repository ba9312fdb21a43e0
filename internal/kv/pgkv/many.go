package pgkv

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// GetMany is one round trip.
func (s *Store) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return s.getMany(ctx, nil, keys)
}

// ScanMany is a round trip for each askRanges ranges, and a Scan for the rest of a long one.
func (s *Store) ScanMany(ctx context.Context, ranges []kv.Range) iter.Seq2[kv.Pair, error] {
	return s.scanMany(ctx, nil, ranges)
}

func (n *snapshot) GetMany(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if n.err != nil {
		return nil, n.err
	}
	return n.s.getMany(ctx, n, keys)
}

func (n *snapshot) ScanMany(ctx context.Context, ranges []kv.Range) iter.Seq2[kv.Pair, error] {
	if n.err != nil {
		return func(yield func(kv.Pair, error) bool) { yield(kv.Pair{}, n.err) }
	}
	return n.s.scanMany(ctx, n, ranges)
}

func (s *Store) getMany(ctx context.Context, snap *snapshot, keys [][]byte) ([][]byte, error) {
	if len(keys) == 0 {
		return nil, s.readable(ctx)
	}
	sql, args := `SELECT k, v FROM rsbridge_kv WHERE k = ANY ($1)`, []any{keys}
	if snap != nil {
		sql += ` AND rev <= $2 UNION ALL SELECT k, v FROM rsbridge_kept WHERE k = ANY ($1) AND rev <= $2 AND until > $2`
		args = append(args, snap.rev)
	}
	rows, err := s.ask(ctx, snap, sql, args...)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte, len(rows))
	for _, r := range rows {
		found[string(r[0])] = notNil(r[1])
	}
	values := make([][]byte, len(keys))
	for i, k := range keys {
		values[i] = found[string(k)]
	}
	return values, nil
}

// ask is a question that is repeated until the database answers.
func (s *Store) ask(ctx context.Context, snap *snapshot, sql string, args ...any) (rows [][][]byte, err error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	if err = s.again(ctx, func(ctx context.Context) error {
		rows, err = s.rows(ctx, snap, sql, args...)
		return err
	}); err != nil {
		return nil, fmt.Errorf("read the PostgreSQL state: %w", plain(err))
	}
	return rows, nil
}

// Of askRanges ranges at a time the first firstPairs pairs are asked for.
const (
	askRanges  = 128
	firstPairs = 16
)

func (s *Store) scanMany(ctx context.Context, snap *snapshot, ranges []kv.Range) iter.Seq2[kv.Pair, error] {
	return func(yield func(kv.Pair, error) bool) {
		for some := range slices.Chunk(ranges, askRanges) {
			rows, err := s.firstPairs(ctx, snap, some)
			if err != nil {
				yield(kv.Pair{}, err)
				return
			}
			for _, in := range some {
				n := 0
				for ; n < len(rows) && bytes.Compare(rows[n][0], in.Hi) < 0; n++ {
					if ctx.Err() != nil {
						yield(kv.Pair{}, context.Cause(ctx))
						return
					}
					if !yield(kv.Pair{Key: rows[n][0], Value: rows[n][1]}, nil) {
						return
					}
				}
				if n == firstPairs {
					for p, err := range s.scan(ctx, snap, append(rows[n-1][0], 0), in.Hi, false) {
						if !yield(p, err) || err != nil {
							return
						}
					}
				}
				rows = rows[n:]
			}
		}
		if ctx.Err() != nil {
			yield(kv.Pair{}, context.Cause(ctx))
		}
	}
}

// firstPairs are the first pairs of each range, in key order.
func (s *Store) firstPairs(ctx context.Context, snap *snapshot, ranges []kv.Range) ([][][]byte, error) {
	los, his := make([][]byte, len(ranges)), make([][]byte, len(ranges))
	for i, in := range ranges {
		los[i], his[i] = notNil(in.Lo), in.Hi
	}
	const (
		each   = `SELECT k, v FROM unnest($1::bytea[], $2::bytea[]) AS asked (lo, hi) CROSS JOIN LATERAL (`
		within = ` WHERE k >= lo AND k < hi`
		first  = ` ORDER BY k LIMIT $3`
	)
	sql, args := each+`SELECT k, v FROM rsbridge_kv`+within+first+`) pair`, []any{los, his, firstPairs}
	if snap != nil {
		sql = each + `SELECT k, v FROM ((SELECT k, v FROM rsbridge_kv` + within + ` AND rev <= $4` + first +
			`) UNION ALL (SELECT k, v FROM rsbridge_kept` + within + ` AND rev <= $4 AND until > $4` + first + `)) of` + first + `) pair`
		args = append(args, snap.rev)
	}
	rows, err := s.ask(ctx, snap, sql, args...)
	slices.SortFunc(rows, func(a, b [][]byte) int { return bytes.Compare(a[0], b[0]) })
	return rows, err
}
