package history_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/bridge/history"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

func behind(seconds float64) *float64 { return &seconds }

// TestWeek: ten days of minutes keep their sums and their peaks, in samples that grow coarser with
// age; those of the first three days are gone, and the rest is small.
func TestWeek(t *testing.T) {
	ctx, store := t.Context(), memkv.New()
	s := history.New(store)
	began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const minutes = 10 * 24 * 60
	for i := range minutes {
		at := began.Add(time.Duration(i) * time.Minute)
		sample := history.Sample{Behind: behind(float64(i % 60)), Counts: history.Counts{Created: 1, Updated: 2, Runs: 1, Longest: 1.5}}
		if i%100 == 0 {
			sample.Behind = nil
		}
		if err := s.Add(ctx, at, map[string]history.Sample{"set:a": sample, "set:b": {Counts: history.Counts{Deleted: 1}}}); err != nil {
			t.Fatal(err)
		}
		if i%60 == 59 {
			if err := s.Tidy(ctx, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := began.Add(minutes * time.Minute)
	all, err := s.Samples(ctx, "set:a", began)
	if err != nil {
		t.Fatal(err)
	}
	var sum history.Counts
	peak, bySpan := 0.0, map[time.Duration]int{}
	for i, sample := range all {
		sum.Created, sum.Updated, sum.Runs = sum.Created+sample.Created, sum.Updated+sample.Updated, sum.Runs+sample.Runs
		if sample.Behind != nil {
			peak = max(peak, *sample.Behind)
		}
		bySpan[sample.Span]++
		if i > 0 && !all[i-1].Time.Add(all[i-1].Span).Equal(sample.Time) {
			t.Errorf("after %v comes %v", all[i-1], sample)
		}
		if sample.Longest != 1.5 {
			t.Errorf("the longest run of %v took %v", sample.Time, sample.Longest)
		}
	}
	kept := now.Sub(all[0].Time)
	if kept < history.Kept || kept > history.Kept+2*time.Hour {
		t.Errorf("the oldest sample is of %v ago", kept)
	}
	if n := int64(kept / time.Minute); sum.Created != n || sum.Updated != 2*n || sum.Runs != n || peak != 59 {
		t.Errorf("in %d minutes %+v, at most %v behind", n, sum, peak)
	}
	if bySpan[time.Minute] < 120 || bySpan[time.Minute] > 300 || bySpan[time.Hour] < 119 || bySpan[time.Hour] > 124 {
		t.Errorf("the samples by span: %v", bySpan)
	}
	bytes := 0
	for p, err := range store.Scan(ctx, []byte{0}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(p.Key) + len(p.Value)
	}
	if bytes > 2*10_000 {
		t.Errorf("two sets take %d bytes", bytes)
	}
	day, err := s.Samples(ctx, "set:b", now.Add(-24*time.Hour))
	if err != nil || len(day) == 0 || day[0].Time.Before(now.Add(-25*time.Hour)) || day[0].Behind != nil {
		t.Errorf("the last day begins with %+v, %v", day[0], err)
	}
	for _, move := range []struct {
		from, to string
		left     []string
	}{{"set:b", "set:c", []string{"set:a", "set:c"}}, {"set:c", "", []string{"set:a"}}, {"set:none", "set:a", nil}} {
		b := store.Batch()
		defer b.Close()
		if err := errors.Join(s.Move(ctx, b, move.from, move.to), b.Commit(ctx, false)); err != nil {
			t.Fatal(err)
		}
		for _, subject := range []string{"set:a", "set:b", "set:c"} {
			if left, err := s.Samples(ctx, subject, began); err != nil || len(left) > 0 != slices.Contains(move.left, subject) {
				t.Errorf("from %q to %q: %s has %d samples, %v", move.from, move.to, subject, len(left), err)
			}
		}
	}
}

// TestSetBack: with a clock that goes back, and records that cannot be read, samples go on.
func TestSetBack(t *testing.T) {
	ctx, store := t.Context(), memkv.New()
	s := history.New(store)
	at := time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)
	one := map[string]history.Sample{"set:a": {Counts: history.Counts{Created: 1}}}
	for _, back := range []time.Duration{0, time.Minute, 20 * time.Minute} {
		if err := s.Add(ctx, at.Add(-back), one); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Samples(ctx, "set:a", at.Add(-time.Hour))
	if err != nil || len(got) != 1 || got[0].Created != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for p, err := range store.Scan(ctx, []byte{0}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if err := kvSet(ctx, store, p.Key, []byte{9, 9, 9}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(ctx, at, one); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Samples(ctx, "set:a", at.Add(-time.Hour)); err != nil || len(got) != 1 || got[0].Created != 1 {
		t.Errorf("after damage %+v, %v", got, err)
	}
}

func kvSet(ctx context.Context, s kv.Store, key, value []byte) error {
	b := s.Batch()
	defer b.Close()
	b.Set(key, value)
	return b.Commit(ctx, false)
}

// TestSampler: the changes of each run are in a sample once, a dry run and a rest are in none, and
// the last minute is written at the end.
func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var result any
		var fails error
		work := func(context.Context, *jobs.Run) (any, error) {
			time.Sleep(2 * time.Second) // virtual: the test runs in a synctest bubble
			return result, fails
		}
		runner, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "scan:a", Subject: "set:a", Run: work}, {Name: "audit:a", Subject: "set:a", Run: work}}, jobs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lag := 3.0
		s := &history.Sampler{Store: history.New(memkv.New()), Runner: runner, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
			Sets: func() []string { return []string{"a"} }, Mirrors: func() []string { return []string{"m"} }, Lag: func(context.Context, string) (*float64, error) { return &lag, nil }}
		began := time.Now()
		s.Start(t.Context())
		run := func(job string, r any, e error) {
			t.Helper()
			result, fails = r, e
			begun, _, err := runner.Start(job, "test", nil)
			if err == nil {
				_, err = runner.Wait(t.Context(), begun.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		run("scan:a", map[string]any{"created": 3, "updated": 2, "deleted": 1}, nil)
		run("scan:a", map[string]any{"created": 9, "plan": map[string]any{}}, nil)
		run("scan:a", map[string]any{"paused": true}, nil)
		run("audit:a", map[string]any{"created": 9}, nil)
		last, err := history.LastLook(t.Context(), runner, "scan:a", "hint:a")
		if err != nil || time.Since(last) > 10*time.Second || last.IsZero() {
			t.Errorf("the last look was %v, %v", last, err)
		}
		time.Sleep(5 * time.Minute) // virtual: the test runs in a synctest bubble
		run("scan:a", nil, errors.New("the store is away"))
		s.End()
		if err := runner.Close(0); err != nil {
			t.Fatal(err)
		}
		got, err := s.Store.Samples(t.Context(), "set:a", began.Add(-time.Minute))
		if err != nil || len(got) < 5 {
			t.Fatalf("%+v, %v", got, err)
		}
		var sum history.Counts
		for _, g := range got {
			sum.Created, sum.Updated, sum.Deleted = sum.Created+g.Created, sum.Updated+g.Updated, sum.Deleted+g.Deleted
			sum.Runs, sum.Failed, sum.Longest = sum.Runs+g.Runs, sum.Failed+g.Failed, max(sum.Longest, g.Longest)
		}
		if want := (history.Counts{Created: 3, Updated: 2, Deleted: 1, Runs: 2, Failed: 1, Longest: 2}); sum != want {
			t.Errorf("%+v, want %+v", sum, want)
		}
		if b := got[2].Behind; b == nil || *b < 60 || *b > 300 {
			t.Errorf("the set was looked at %v s before", b)
		}
		mirror, err := s.Store.Samples(t.Context(), "destination:m", began.Add(-time.Minute))
		if err != nil || len(mirror) < 6 || mirror[1].Behind == nil || *mirror[1].Behind != 3 {
			t.Errorf("of the mirror %+v, %v", mirror, err)
		}
	})
}
