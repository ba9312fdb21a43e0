package pgkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// patience is how long an open database may be away: a restart and most failovers take less. starting is the
// same for a database that is being opened.
const (
	patience = 30 * time.Second
	starting = 5 * time.Second
)

// again calls f until the database answers, for patience at most.
func (s *Store) again(ctx context.Context, f func(context.Context) error) error {
	return s.within(ctx, patience, f)
}

func (s *Store) within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	began, wait := time.Now(), 20*time.Millisecond
	var last error
	for {
		err := f(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), last)
		case !away(err) || time.Since(began) > limit:
			return err
		}
		last = plain(err)
		s.log.Debug("the PostgreSQL state does not answer", "error", last)
		if err := pause(ctx, wait); err != nil {
			return errors.Join(err, last)
		}
		wait = min(2*wait, time.Second)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// away tells whether an error is of the connection or of a server that starts or stops, and so says nothing of the
// statement. Classes of errors: PostgreSQL, appendix A.
func away(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "53300", "25006": // stopped, crashed, starting, full, a standby
			return true
		}
		return strings.HasPrefix(pg.Code, "08")
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.Timeout(err) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// plain is an error of pgx without its connection string.
func plain(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return err
	}
	c := connect.Config
	return fmt.Errorf("connect to %s:%d as %s, database %s: %w", c.Host, c.Port, c.User, c.Database, connect.Unwrap())
}
