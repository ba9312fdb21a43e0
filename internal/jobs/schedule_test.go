package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestClocksAreChanged: on the days when the clocks are changed each run comes, what would
// be in an hour that is left out when that begins; nothing else is missed there.
func TestClocksAreChanged(t *testing.T) {
	for _, tc := range []struct {
		schedule string
		from     string // the moment that is before
		want     []string
	}{
		{"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"CRON_TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"CRON_TZ=Europe/Berlin */20 * * * *", "2026-03-29T00:30:00Z", []string{"2026-03-29T00:40:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z"}},
		{"CRON_TZ=Europe/Berlin */30 * * * *", "2026-10-25T00:15:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"}},
		{"CRON_TZ=America/New_York 0 20 * * 0-4", "2026-03-06T12:00:00Z", []string{"2026-03-09T00:00:00Z", "2026-03-10T00:00:00Z"}},
		{"CRON_TZ=Africa/Cairo 0 0 * * *", "2026-04-23T12:00:00Z", []string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		{"CRON_TZ=Africa/Cairo 0 5 * * 5", "2026-04-23T12:00:00Z", []string{"2026-04-24T02:00:00Z", "2026-05-01T02:00:00Z"}},
		{"CRON_TZ=Asia/Beirut 0 20 * * 0", "2026-03-28T12:00:00Z", []string{"2026-03-29T17:00:00Z"}},
		{"CRON_TZ=Australia/Lord_Howe 0 0 * * *", "2026-04-04T14:00:00Z", []string{"2026-04-05T13:30:00Z", "2026-04-06T13:30:00Z"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			from, err := time.Parse(time.RFC3339, tc.from)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(from)) // virtual, as all time here
			ran := make(chan string, 10)
			r, err := jobs.Open(t.Context(), memkv.New(), []jobs.Job{{Name: "scan", Subject: "a", Schedule: tc.schedule, Run: func(context.Context, *jobs.Run) (any, error) {
				ran <- time.Now().UTC().Format(time.RFC3339)
				return nil, nil
			}}}, jobs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r.Schedule()
			for _, want := range tc.want {
				at, err := time.Parse(time.RFC3339, want)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(at) + time.Second)
				synctest.Wait()
				got := "none"
				if len(ran) > 0 {
					got = <-ran
				}
				if got != want || len(ran) > 0 {
					t.Errorf("%s from %s: ran at %s and %d times more, want %s", tc.schedule, tc.from, got, len(ran), want)
					break
				}
			}
			if err := r.Close(time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}
