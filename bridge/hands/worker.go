package hands

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/ownfile"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/sparqlsrc"
)

// Reader reads the parts of a set. The first of its servers is the store, the others are its replicas.
type Reader struct {
	Source  *sparqlsrc.Source
	Servers []*sparql.Client
}

// Worker takes parts until it is stopped.
type Worker struct {
	river.WorkerDefaults[part]
	o      Options
	pool   *pgxpool.Pool
	files  blob.Store
	client *river.Client[pgx.Tx]

	mu   sync.Mutex                // guards left
	left map[*sparql.Client]string // failed replicas, with the run
}

// Start begins to take parts, one at a time. Only Stop ends the work, and not ctx.
func Start(ctx context.Context, o Options) (*Worker, error) {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	id := rand.Text()[:16]
	w, err := start(ctx, o, id, id)
	if err != nil {
		return nil, fmt.Errorf("take parts of scans: %w", err)
	}
	return w, nil
}

// start begins to take parts under an id. sessions names the sessions of a process beside the leader.
func start(ctx context.Context, o Options, sessions, id string) (_ *Worker, err error) {
	if err := ownfile.MkdirAll(o.TempDir); err != nil {
		return nil, err
	}
	w := &Worker{o: o, left: map[*sparql.Client]string{}}
	if w.pool, err = open(ctx, o.Database, sessions); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.pool.Close()
		}
	}()
	if w.files, err = o.Files(ctx); err != nil {
		return nil, err
	}
	if err := migrate(ctx, w.pool); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	w.client, err = river.NewClient(riverpgxv5.New(w.pool), &river.Config{
		ID: id, Logger: quiet(o.Logger), Workers: workers, Queues: map[string]river.QueueConfig{queue: {MaxWorkers: 1}},
	})
	if err != nil {
		return nil, err
	}
	if err := w.client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return w, nil
}

// startWait bounds the requests of a start, and stopWait those of a stop: the process may have to lead next.
const (
	startWait = 10 * time.Second
	stopWait  = 5 * time.Second
)

// Stop ends the part under way; another process begins it anew.
func (w *Worker) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if err := w.client.StopAndCancel(ctx); err != nil {
		w.o.Logger.Warn("a worker was not stopped in order", "error", err)
	}
	w.pool.Close()
}

// Timeout lets a part take as long as it needs.
func (w *Worker) Timeout(*river.Job[part]) time.Duration { return -1 }

// NextRetry is a second after a failure.
func (w *Worker) NextRetry(*river.Job[part]) time.Time { return time.Now().Add(time.Second) }

// Work reads a part.
func (w *Worker) Work(ctx context.Context, j *river.Job[part]) error {
	of, ok := w.o.Readers[j.Args.Set]
	if !ok {
		w.o.Logger.Warn("another process has a part for a set that is not read here: their configurations differ", "set", j.Args.Set)
		return river.JobSnooze(time.Second)
	}
	file := filepath.Join(w.o.TempDir, "part-"+rand.Text())
	defer os.Remove(file) //nolint:errcheck // it is not there after an error, and the folder is emptied
	o := outcome{}
	err := w.read(ctx, j.Args, of, file, &o.PartOutcome)
	if err == nil && !o.NotHere {
		err = w.send(ctx, file, j.Args, &o)
	}
	if err != nil {
		return err
	}
	return river.RecordOutput(ctx, o)
}

// read reads a part from a free server, and from the store in place of a failed replica.
func (w *Worker) read(ctx context.Context, p part, of Reader, file string, o *sparqlsrc.PartOutcome) error {
	from, free, err := w.server(ctx, of, p)
	if err != nil {
		return err
	}
	defer free()
	if *o, err = sparqlsrc.ReadPart(ctx, of.Source, from, p.Part, file); err == nil || from == of.Servers[0] || ctx.Err() != nil {
		return err
	}
	w.o.Logger.Warn("a replica is left out for the rest of the scan, and the store is read in its place", "replica", from.Endpoint().Name, "err", err)
	w.mu.Lock()
	w.left[from] = p.Run
	w.mu.Unlock()
	*o, err = sparqlsrc.ReadPart(ctx, of.Source, of.Servers[0], p.Part, file)
	return err
}

// slotPause is between two looks for a free server.
const slotPause = 200 * time.Millisecond

// server takes a place at one of the servers: all processes together ask it for no more than its concurrency. The store
// keeps one for the leader. A place is an advisory lock: it is free again after the end of its process. After a long
// wait, beside processes at a standstill, the store is asked without a place.
func (w *Worker) server(ctx context.Context, of Reader, p part) (from *sparql.Client, free func(), err error) {
	conn, err := w.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	tick := time.NewTicker(slotPause)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < patience; {
		for _, i := range mathrand.Perm(len(p.Part.Servers)) {
			n := p.Part.Servers[i]
			if n < 0 || n >= len(of.Servers) { // the configurations differ
				continue
			}
			from := of.Servers[n]
			w.mu.Lock()
			isLeft := w.left[from] == p.Run
			w.mu.Unlock()
			if isLeft {
				continue
			}
			places := from.Endpoint().Concurrency
			if from == of.Servers[0] {
				places--
			}
			for place := range max(1, places) {
				var got bool
				address := fnv.New32a()
				fmt.Fprint(address, from.Endpoint().Query)
				key := int32(address.Sum32())
				if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, key, int32(place)).Scan(&got); err != nil {
					conn.Release()
					return nil, nil, err
				}
				if got {
					return from, func() {
						if _, err := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1, $2)`, key, int32(place)); err != nil {
							_ = conn.Conn().Close(context.WithoutCancel(ctx)) // with it goes the lock
						}
						conn.Release()
					}, nil
				}
			}
		}
		select {
		case <-ctx.Done():
			conn.Release()
			return nil, nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
	conn.Release()
	return of.Servers[0], func() {}, nil
}

// send puts a run into the bucket.
func (w *Worker) send(ctx context.Context, file string, p part, o *outcome) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if o.Size, err = io.Copy(sum, f); err != nil {
		return err
	}
	o.SHA256, o.Object = hex.EncodeToString(sum.Sum(nil)), fmt.Sprintf("%s/%d-%s", p.Run, p.Number, strings.ToLower(rand.Text()))
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.files.Create(ctx, o.Object, f, o.Size, blob.Meta{})
}
