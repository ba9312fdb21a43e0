package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// TestLinesOfProgress: a run that waits says where it is after seconds, and seldom again while
// nothing moves.
func TestLinesOfProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		a := &app{err: &said, lineEvery: lineEvery}
		a.progress(jobs.Run{Job: "sync:copy", State: jobs.Queued})
		time.Sleep(4 * time.Second) // in virtual time, as all here: a quick run says nothing
		if said.Len() > 0 {
			t.Errorf("after 4 s: %q", said.String())
		}
		a.progress(jobs.Run{Job: "sync:copy", State: jobs.Running, Stage: "waits for http://source.example"})
		time.Sleep(62 * time.Second)
		a.progress(jobs.Run{Job: "sync:copy", State: jobs.Running, Stage: "resources", Done: 7})
		time.Sleep(5 * time.Second)
		a.progress(jobs.Run{Job: "sync:copy", State: jobs.Running, Stage: "resources", Done: 8, Total: 16})
		time.Sleep(5 * time.Second)
		a.progress(jobs.Run{Job: "backup", Stage: ofBytes, Done: 71_899_000})
		time.Sleep(5 * time.Second)
		a.endProgress()
		time.Sleep(time.Hour)
		waits := "sync:copy waits for http://source.example\n"
		if want := waits + waits + waits + "sync:copy resources: 7\nsync:copy resources: 8 of 16 (50 %)\nbackup: 71.9 MB\n"; said.String() != want {
			t.Errorf("got %q, want %q", said.String(), want)
		}
	})
}
