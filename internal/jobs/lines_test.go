package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestLines: the newest lines about a run are kept within their bounds and with their run, also those of a run
// whose process was killed.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := map[string][]jobs.Line{"quiet": nil, "one": {{Time: time.Now().UTC().Round(0), Level: "warn", Message: "slow", Text: "n=1"}}}
		for i := range 300 {
			said["many"] = append(said["many"], jobs.Line{Message: fmt.Sprint(i)})
			said["long"] = append(said["long"], jobs.Line{Message: strings.Repeat("x", 2000)})
		}
		var list []jobs.Job
		for name := range said {
			list = append(list, job(name, name, func(context.Context, *jobs.Run) (any, error) { return nil, nil }))
		}
		list = append(list, job("endless", "endless", func(ctx context.Context, run *jobs.Run) (any, error) {
			run.Progress("first", 0, 0)
			said["endless"] = []jobs.Line{{Message: "begins"}}
			time.Sleep(time.Minute) // virtual
			run.Progress("second", 0, 0)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		store := memkv.New()
		open := func() *jobs.Runner {
			r, err := jobs.Open(t.Context(), store, list, jobs.Options{Keep: 2, Lines: func(run jobs.Run) []jobs.Line { return said[run.Job] }})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		is := func(r *jobs.Runner, id uint64, want ...jobs.Line) {
			t.Helper()
			got, err := r.Lines(t.Context(), id)
			if err != nil || got == nil || !slices.Equal(got, want) {
				t.Errorf("run %d has %d lines, want %d: %v", id, len(got), len(want), err)
			}
		}
		r, ids := open(), map[string]uint64{}
		for _, name := range []string{"quiet", "one", "many", "long", "one", "one"} {
			run, _ := start(t, r, name, nil)
			if wait(t, r, run.ID); ids[name] == 0 {
				ids[name] = run.ID
			}
		}
		run, _ := start(t, r, "endless", nil)
		time.Sleep(2 * time.Minute)
		is(r, run.ID, jobs.Line{Message: "begins"})

		killed := r
		r = open()
		is(r, run.ID, jobs.Line{Message: "begins"})
		is(r, ids["quiet"])
		is(r, ids["one"]+3, said["one"]...)
		is(r, ids["many"], said["many"][100:]...)
		is(r, ids["long"], said["long"][300-64<<10/2000:]...)
		for _, id := range []uint64{ids["one"], 999} {
			if _, err := r.Lines(t.Context(), id); !errors.Is(err, jobs.ErrUnknown) {
				t.Errorf("run %d has gone, and its lines give %v", id, err)
			}
		}
		b := store.Batch()
		for name := range said {
			if err := jobs.ForgetRuns(t.Context(), store, b, name); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for p, err := range store.Scan(t.Context(), []byte{'l'}, kv.PrefixEnd([]byte{'l'})) {
			t.Errorf("%q is left: %v", p.Key, err)
		}
		for _, r := range []*jobs.Runner{killed, r} {
			if err := r.Close(0); err != nil {
				t.Error(err)
			}
		}
	})
}
