// Package hands lets the processes of one configuration read a scan together.
//
// The leader cuts a scan into parts. In one transaction it proves its lead, and puts the parts into a queue in the
// database of the state (River). Every process takes parts, the leader too. It reads a part from a server of the store
// and puts its triples, sorted, into the bucket as one object. The row of the job names the object and its SHA-256. The
// leader takes the objects named by the rows of its own jobs, and no others.
//
// A failed part is tried again, and so is one of an ended process, five times in all. Then the scan fails, and names the
// part. When no part ends for a while, the leader reads one itself: it does not wait for a process at a standstill, or
// without the database. Nobody reads the late object of such a process. The next scan sweeps it.
package hands

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

const (
	kind     = "rsbridge_scan_part"
	queue    = "rsbridge_scan"
	attempts = 5

	// workerName begins the names of the sessions of workers beside the leader, one for each process and state.
	// PostgreSQL ends them with their process.
	workerName = `'rsbridge worker of ' || 'rsbridge_head'::regclass::oid || ' '`

	connections = 8
	look        = 100 * time.Millisecond
)

// patience is how long the leader waits for running parts, or for the database; at least three times as long as for the
// longest part. A variable for tests.
var patience = 30 * time.Second

// part is a job.
type part struct {
	Lead   int64          `json:"lead"`
	Set    string         `json:"set"`
	Run    string         `json:"run"`
	Number int            `json:"number"`
	Part   sparqlsrc.Part `json:"part"`
}

// Kind names the jobs.
func (part) Kind() string { return kind }

// outcome is of a part.
type outcome struct {
	sparqlsrc.PartOutcome
	Object string `json:"object,omitempty"`
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Options are of the leader and of workers.
type Options struct {
	Database string // URL of the state
	Files    func(context.Context) (blob.Store, error)
	TempDir  string
	Readers  map[string]Reader // by set
	Logger   *slog.Logger
}

// Leader reads the scans of a set with the other processes. It is a sparqlsrc.Hands.
type Leader struct {
	Options
	Set  string
	Lead int64 // the number of this lead
}

// open opens the database; worker names the sessions of a process beside the leader.
func open(ctx context.Context, url, worker string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the URL is not one of PostgreSQL") // pgx tells the URL, and the password with it
	}
	cfg.MaxConns = connections
	cfg.ConnConfig.RuntimeParams["application_name"] = "rsbridge"
	if worker != "" {
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SELECT set_config('application_name', `+workerName+` || $1, false)`, worker)
			return err
		}
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// migrateLock is the number of an advisory lock: two processes would make the same tables.
const migrateLock = 1920164467

// migrate makes the tables of the queue, unless they are there.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	tx, err := pool.Begin(ctx) // its end frees the lock, also behind a pooler
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // it has nothing to undo
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrateLock); err != nil {
		return err
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet(nil)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return fmt.Errorf("make the tables of the queue: %w", err)
	}
	return nil
}

// Read reads parts with the other processes. Faults before the first part leave the scan to the leader.
func (l *Leader) Read(ctx context.Context, parts []sparqlsrc.Part, took func(int, sparqlsrc.PartOutcome, io.Reader) error, own func(context.Context, int) error) (bool, error) {
	r, workers, err := l.begin(ctx, parts)
	if err != nil && ctx.Err() == nil {
		l.Logger.Warn("the other processes take no part in this scan", "set", l.Set, "error", err)
	}
	if err != nil || workers == 0 {
		return false, context.Cause(ctx)
	}
	l.Logger.Info("several processes read the scan", "set", l.Set, "processes", workers+1, "parts", len(parts))
	r.took, r.own = took, own
	return true, errors.Join(r.all(ctx), r.end(ctx))
}

// run is a scan under way.
type run struct {
	l       *Leader
	pool    *pgxpool.Pool
	files   blob.Store
	name    string // of its objects
	parts   []sparqlsrc.Part
	waiting map[int64]int // part by job
	worker  *Worker
	took    func(int, sparqlsrc.PartOutcome, io.Reader) error
	own     func(context.Context, int) error
	longest time.Duration // of a part
}

// begin puts the parts into the queue, if there are workers.
func (l *Leader) begin(ctx context.Context, parts []sparqlsrc.Part) (_ *run, workers int, err error) {
	r := &run{l: l, parts: parts, waiting: map[int64]int{}}
	if r.pool, err = open(ctx, l.Database, ""); err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil || workers == 0 {
			err = errors.Join(err, r.end(ctx))
		}
	}()
	if err := r.pool.QueryRow(ctx, `SELECT count(DISTINCT application_name) FROM pg_stat_activity WHERE starts_with(application_name, `+workerName+`)`).Scan(&workers); err != nil || workers == 0 {
		return nil, 0, err
	}
	if r.files, err = l.Files(ctx); err != nil {
		return nil, 0, err
	}
	if err := migrate(ctx, r.pool); err != nil {
		return nil, 0, err
	}
	of := sha256.Sum256([]byte(l.Set))
	ofSet := fmt.Sprintf("%d/%x/", l.Lead, of[:8])
	r.name = ofSet + strings.ToLower(rand.Text())
	if err := r.enqueue(ctx); err != nil {
		return nil, 0, err
	}
	if err := sweep(ctx, r.files, func(name string) bool {
		lead, _, _ := strings.Cut(name, "/")
		n, err := strconv.ParseInt(lead, 10, 64)
		return err != nil || n < l.Lead || strings.HasPrefix(name, ofSet) && !strings.HasPrefix(name, r.name)
	}); err != nil {
		return nil, 0, err
	}
	r.worker, err = start(ctx, l.Options, "", leaderID+rand.Text())
	return r, workers, err
}

// enqueue puts the parts into the queue in the place of those of earlier scans.
func (r *run) enqueue(ctx context.Context) error {
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{Logger: quiet(r.l.Logger)})
	if err != nil {
		return err
	}
	jobs := make([]river.InsertManyParams, len(r.parts))
	for i, p := range r.parts {
		jobs[i] = river.InsertManyParams{Args: part{r.l.Lead, r.l.Set, r.name, i, p}, InsertOpts: &river.InsertOpts{Queue: queue, MaxAttempts: attempts}}
	}
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		var leads bool
		if err := tx.QueryRow(ctx, `SELECT token = $1 FROM rsbridge_head FOR SHARE`, r.l.Lead).Scan(&leads); err != nil {
			return err
		}
		if !leads {
			return kv.ErrTakenOver
		}
		if _, err := tx.Exec(ctx, `DELETE FROM river_job WHERE kind = $1 AND (args->>'set' = $2 OR (args->>'lead')::bigint < $3)`, kind, r.l.Set, r.l.Lead); err != nil {
			return err
		}
		added, err := client.InsertManyTx(ctx, tx, jobs)
		for i := range added {
			r.waiting[added[i].Job.ID] = i
		}
		return err
	})
}

// end removes the objects and jobs of a scan.
func (r *run) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer r.pool.Close()
	var errs []error
	if r.worker != nil {
		r.worker.Stop()
	}
	if r.name != "" {
		_, err := r.pool.Exec(ctx, `DELETE FROM river_job WHERE kind = $1 AND args->>'run' = $2`, kind, r.name)
		errs = append(errs, err, sweep(ctx, r.files, func(name string) bool { return strings.HasPrefix(name, r.name) }))
	}
	if err := errors.Join(errs...); err != nil {
		r.l.Logger.Info("what is left of a scan is swept by the next one", "set", r.l.Set, "error", err)
	}
	return nil
}

// sweep removes objects.
func sweep(ctx context.Context, files blob.Store, is func(name string) bool) error {
	var names []string
	for info, err := range files.List(ctx, "", "") {
		if err != nil {
			return err
		}
		if is(info.Name) {
			names = append(names, info.Name)
		}
	}
	return files.Delete(ctx, names...)
}

// all waits for all parts.
func (r *run) all(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	heard, moved := time.Now(), time.Now()
	for len(r.waiting) > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		jobs, err := r.ended(ctx)
		switch {
		case err == nil:
			heard = time.Now()
		case ctx.Err() != nil || time.Since(heard) > patience:
			return fmt.Errorf("ask for the parts of the scan: %w", err)
		default:
			continue
		}
		silent := time.Since(moved) > max(patience, 3*r.longest)
		for _, j := range jobs {
			if j.isOver() {
				if err := r.take(ctx, j); err != nil {
					return err
				}
				moved, silent = time.Now(), false
			}
		}
		if silent {
			if err := r.relieve(ctx, jobs); err != nil {
				return err
			}
			moved = time.Now()
		}
	}
	return nil
}

// relieve reads a part in place of a silent process, rather one in nobody's hands.
func (r *run) relieve(ctx context.Context, jobs []job) error {
	j := slices.MinFunc(jobs, func(a, b job) int { return cmp.Compare(a.weight(), b.weight()) })
	r.l.Logger.Warn("no part of the scan has ended for a while: the leader reads one itself", "set", r.l.Set, "part", r.parts[r.waiting[j.id]].String())
	if _, err := r.pool.Exec(ctx, `DELETE FROM river_job WHERE id = $1 AND state <> 'running'`, j.id); err != nil {
		return err
	}
	return r.readHere(ctx, j.id)
}

// leaderID begins the names of the leader's own workers.
const leaderID = "leader-"

// sqlOrphans gives back the parts of processes without a session. The queue itself would wait for an hour.
const sqlOrphans = `UPDATE river_job SET state = CASE WHEN attempt < max_attempts THEN 'available' ELSE 'discarded' END::river_job_state, finalized_at = CASE WHEN attempt < max_attempts THEN NULL ELSE now() END
	WHERE id = ANY($1) AND state = 'running' AND NOT starts_with(attempted_by[array_upper(attempted_by, 1)], $2)
	AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = ` + workerName + ` || attempted_by[array_upper(attempted_by, 1)])`

// job is the state of a part under way.
type job struct {
	id     int64
	state  string // "": it is gone
	output []byte
	fault  string
	took   time.Duration
}

func (j *job) isOver() bool {
	return j.state == "" || j.state == "completed" || j.state == "discarded" || j.state == "cancelled"
}

func (j *job) weight() int {
	if j.state == "running" {
		return 1
	}
	return 0
}

// ended asks for all jobs under way.
func (r *run) ended(ctx context.Context) ([]job, error) {
	ids, there := make([]int64, 0, len(r.waiting)), make(map[int64]bool, len(r.waiting))
	for id := range r.waiting {
		ids = append(ids, id)
	}
	if _, err := r.pool.Exec(ctx, sqlOrphans, ids, leaderID); err != nil {
		return nil, err
	}
	rows, err := r.pool.Query(ctx, `SELECT id, state::text, coalesce(metadata->'output', 'null')::text, coalesce(errors[array_upper(errors, 1)]->>'error', 'its process has ended'), coalesce(extract(epoch FROM finalized_at - attempted_at), 0)::float8
		FROM river_job WHERE id = ANY($1) ORDER BY id`, ids)
	if err != nil {
		return nil, err
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j job, err error) {
		var output string
		var seconds float64
		err = row.Scan(&j.id, &j.state, &output, &j.fault, &seconds)
		j.output, j.took, there[j.id] = []byte(output), time.Duration(seconds*float64(time.Second)), true
		return j, err
	})
	for _, id := range ids {
		if err == nil && !there[id] {
			out = append(out, job{id: id})
		}
	}
	return out, err
}

// take takes the outcome of a part.
func (r *run) take(ctx context.Context, j job) error {
	i := r.waiting[j.id]
	switch j.state {
	case "": // somebody has removed it
		return r.readHere(ctx, j.id)
	case "discarded":
		return fmt.Errorf("%w: %s failed %d times, the last time: %s", sparqlsrc.ErrPart, r.parts[i].String(), attempts, j.fault)
	}
	var o outcome
	if err := json.Unmarshal(j.output, &o); err != nil {
		return fmt.Errorf("read what came of %s: %w", r.parts[i].String(), err)
	}
	if o.NotHere || o.Object == "" { // also one that somebody has cancelled
		return r.readHere(ctx, j.id)
	}
	r.longest = max(r.longest, j.took)
	object, info, err := r.files.Open(ctx, o.Object, 0, -1)
	if err != nil {
		return fmt.Errorf("read the object of %s: %w", r.parts[i].String(), err)
	}
	defer object.Close()
	sum := sha256.New()
	if err := r.took(i, o.PartOutcome, io.TeeReader(object, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != o.SHA256 || info.Size != o.Size {
		return fmt.Errorf("the object %s has %d bytes with the SHA-256 %s, want %d with %s", o.Object, info.Size, got, o.Size, o.SHA256)
	}
	delete(r.waiting, j.id)
	return nil
}

// readHere reads a part in this process.
func (r *run) readHere(ctx context.Context, id int64) error {
	err := r.own(ctx, r.waiting[id])
	delete(r.waiting, id)
	return err
}

// quiet is a logger for the queue: only its errors are of interest.
func quiet(to *slog.Logger) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(faults{to.With("component", "queue").Handler()})
}

type faults struct{ slog.Handler }

func (f faults) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && f.Handler.Enabled(ctx, level)
}

func (f faults) WithAttrs(attrs []slog.Attr) slog.Handler { return faults{f.Handler.WithAttrs(attrs)} }
func (f faults) WithGroup(name string) slog.Handler       { return faults{f.Handler.WithGroup(name)} }
