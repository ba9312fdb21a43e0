package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

var severalRow = row{id: "several", what: "first scan by four processes, from a store and three replicas, 3 MiB/s each", baseline: "by one, from the store alone", speed: true, limit: 3.6, needs: teststores.EnvVersitygw,
	measure: func(ctx context.Context, e *env) (thing, base time.Duration, err error) {
		s, err := embedded(ctx, e)
		if err != nil {
			return 0, 0, err
		}
		defer s.stop()
		if _, err := s.load(ctx, e, benchGraph); err != nil {
			return 0, 0, err
		}
		if base, err = e.scannedBySeveral(ctx, s, 1); err == nil {
			thing, err = e.scannedBySeveral(ctx, s, 4)
		}
		return thing, base, err
	}}

// scannedBySeveral times the first scan by so many processes, from as many servers. They have a new database and a
// place in a bucket.
func (e *env) scannedBySeveral(ctx context.Context, s store, processes int) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(e.dir, "several-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	base, database := os.Getenv(teststores.EnvPostgres), "bench"+strings.ToLower(rand.Text())
	at, err := url.Parse(base)
	if err != nil {
		return 0, err
	}
	programs := os.Getenv(teststores.EnvPostgresBin)
	if out, err := exec.CommandContext(ctx, filepath.Join(programs, "createdb"), "--maintenance-db="+base, database).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("createdb: %w: %s", err, out)
	}
	defer func() {
		out, gone := exec.Command(filepath.Join(programs, "dropdb"), "--force", "--maintenance-db="+base, database).CombinedOutput()
		if gone != nil {
			err = errors.Join(err, fmt.Errorf("dropdb: %w: %s", gone, out))
		}
	}()
	at.Path = "/" + database
	query, err := url.Parse(s.query)
	if err != nil {
		return 0, err
	}
	var doors []string
	for range processes {
		door := newSlowDoor(query)
		defer door.Close()
		doors = append(doors, fmt.Sprintf("%q", door.URL+query.Path))
	}
	leader := ""
	for i := range processes {
		admin := freeAddr()
		conf := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		text := fmt.Sprintf("state: %q\npublish_to: \"s3://%s/%s\"\npublic: {listen: %q, base_url: %q}\nadmin: {listen: %q}\nstores:\n  server: {query: %s, replicas: [%s]}\nsets:\n  data: {store: server, schedule: \"\", graphs: [%q], publish: [resourcelist, changelist]}\n",
			at, teststores.S3Bucket, database, freeAddr(), benchBase, admin, doors[0], strings.Join(doors[1:], ", "), benchGraph)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, filepath.Join("bin", "rsbridge"), "-c", conf, "run", "--log-level", "error")
		cmd.Stderr, cmd.Env = os.Stderr, e.s3()
		if err := cmd.Start(); err != nil {
			return 0, fmt.Errorf("start bin/rsbridge (make build): %w", err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		if i == 0 {
			leader = conf
		}
		if err := ready(ctx, admin, i > 0); err != nil {
			return 0, err
		}
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "rsbridge"), "-c", leader, "scan", "--json")
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &said, e.s3()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("scan: %w: %s", err, said.String())
	}
	var all struct{ Sets []bridge.ScanReport }
	if err := json.Unmarshal(out.Bytes(), &all); err != nil || len(all.Sets) != 1 {
		return 0, fmt.Errorf("the scan says %q: %w", out.String(), err)
	}
	rep := all.Sets[0]
	if rep.Resources != e.n || rep.Failed != 0 {
		return 0, fmt.Errorf("the scan found %d entities of %d, and %d failed", rep.Resources, e.n, rep.Failed)
	}
	return time.Duration(rep.Durable * float64(time.Second)), nil
}

// s3 is the environment with the S3 server.
func (e *env) s3() []string {
	return append(os.Environ(), "AWS_ENDPOINT_URL="+os.Getenv(teststores.EnvVersitygw), "AWS_ACCESS_KEY_ID="+teststores.S3Key, "AWS_SECRET_ACCESS_KEY="+teststores.S3Key, "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true")
}

// ready waits for a process that leads, or stands by.
func ready(ctx context.Context, admin string, standby bool) error {
	for range 600 {
		if res, err := http.Get("http://" + admin + "/readyz"); err == nil {
			said, _ := io.ReadAll(io.LimitReader(res.Body, 200))
			res.Body.Close()
			if res.StatusCode == http.StatusOK && strings.HasPrefix(string(said), "standby") == standby {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("rsbridge run at %s is not ready", admin)
}
