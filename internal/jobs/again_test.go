package jobs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestAgain: a failed run is begun again with its arguments after growing pauses. Another run begins at
// once, moves nothing if it fails, and ends the attempts if it is good. Other jobs go on meanwhile.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		var args []string
		fails := true
		failing := job("hint:a", "a", func(_ context.Context, run *jobs.Run) (any, error) {
			at, args = append(at, time.Since(began)), append(args, string(run.Args))
			if fails {
				return nil, errors.New("the store is away")
			}
			return nil, nil
		})
		failing.Again = true
		r := open(t, memkv.New(), failing, job("hint:b", "b", func(context.Context, *jobs.Run) (any, error) { return nil, nil }), job("plain", "a", failing.Run))
		defer r.Close(0)
		r.Schedule()
		wait(t, r, first(start(t, r, "plain", 1)).ID)
		synctest.Wait()
		time.Sleep(time.Hour) // of the bubble
		check := func(what string, want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(at, want) {
				t.Fatalf("%s: run at %v, want %v", what, at, want)
			}
			began, at = time.Now(), nil
		}
		check("a job without Again", 0)
		s := time.Second
		start(t, r, "hint:a", 1)
		synctest.Wait()
		if next := r.Next("hint:a"); !next.Equal(time.Now().UTC().Add(s)) {
			t.Errorf("the next run is told for %v", next)
		}
		time.Sleep(4 * s)
		start(t, r, "hint:a", 1) // between the third and the fourth
		if run := wait(t, r, first(start(t, r, "hint:b", nil)).ID); run.State != jobs.Done {
			t.Errorf("another job: %+v", run)
		}
		time.Sleep(20 * time.Minute)
		check("failing", 0, s, 3*s, 4*s, 7*s, 15*s, 31*s, 63*s, 127*s, 255*s, 511*s, 811*s, 1111*s)
		fails = false
		if run := wait(t, r, first(start(t, r, "hint:a", 1)).ID); run.State != jobs.Done {
			t.Errorf("%+v", run)
		}
		time.Sleep(time.Hour)
		check("good again", 0)
		if next := r.Next("hint:a"); !next.IsZero() {
			t.Errorf("after a good run the next is told for %v", next)
		}
		if slices.ContainsFunc(args, func(a string) bool { return a != "1" }) {
			t.Errorf("arguments %v", args)
		}
	})
}

func first(run jobs.Run, _ bool) jobs.Run { return run }
