package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/push"
)

func watched(sequence uint64, behind *uint64) bridge.Status {
	return bridge.Status{
		Sets:         []bridge.SetStatus{{Name: "books", State: bridge.StateOK, Resources: 1, Sequence: sequence, Mirrors: []push.Mirror{{Name: "far", Key: "0123456789", BehindChanges: behind}}}},
		Destinations: []bridge.DestinationStatus{{Name: "copy", State: bridge.StateOK, Live: "websocket", Status: destination.Status{Resources: 12, InSync: true, BehindChanges: behind}}},
	}
}

// TestWatchLines: without a terminal a line comes when it has changed, and a fault once.
func TestWatchLines(t *testing.T) {
	var out bytes.Buffer
	v := &changedLines{w: &out, now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }}
	n := uint64(3)
	lost := errors.New("no answer\nat all")
	for _, err := range []error{v.show(watched(7, nil)), v.show(watched(7, nil)), v.fault(lost), v.fault(lost), v.show(watched(8, nil)), v.show(watched(8, &n))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = `2026-03-01T00:00:00Z set books: ok, 1 resource, sequence 7
2026-03-01T00:00:00Z set books, mirror far (key 01234567): behind unknown
2026-03-01T00:00:00Z destination copy: ok, 12 resources, in sync, behind unknown, by websocket
2026-03-01T00:00:00Z the status cannot be read: no answer at all
2026-03-01T00:00:00Z set books: ok, 1 resource, sequence 8
2026-03-01T00:00:00Z set books, mirror far (key 01234567): behind 3 changes
2026-03-01T00:00:00Z destination copy: ok, 12 resources, in sync, behind 3 changes, by websocket
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// terminal keeps the lines of the last look.
type terminal struct {
	bytes.Buffer
	width, height int
	shown         []string
}

func (t *terminal) Flush(lines int) error {
	t.shown = strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n")
	if len(t.shown) != lines {
		return fmt.Errorf("%d lines are told, %d are there", lines, len(t.shown))
	}
	t.Reset()
	return nil
}

// TestWatchScreen: a screen has the status as far as it fits, without a wrapped line, and tells its
// age while the status cannot be read.
func TestWatchScreen(t *testing.T) {
	to := &terminal{}
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	s := &screen{to: to, size: func() (int, int, error) { return to.width, to.height, nil }, now: func() time.Time { return now }}
	for _, size := range [][2]int{{200, 50}, {40, 6}, {1, 1}, {20, 2}} {
		to.width, to.height = size[0], size[1]
		if err := s.show(watched(7, nil)); err != nil {
			t.Fatal(err)
		}
		if len(to.shown) > max(to.height-1, 1) {
			t.Errorf("%v: %q", size, to.shown)
		}
		for _, line := range to.shown {
			if len(line) >= to.width {
				t.Errorf("%v: %q is wrapped", size, line)
			}
		}
	}
	to.width, to.height = 200, 50
	now = now.Add(time.Minute)
	if err := s.fault(errors.New("no answer")); err != nil || !strings.HasPrefix(to.shown[0], "as of 10:00:00; the status cannot be read: no answer") || !strings.HasPrefix(to.shown[2], "SET ") {
		t.Errorf("%v: %q", err, to.shown)
	}
}

// stopping ends a watch after so many looks.
type stopping struct {
	bytes.Buffer
	of   string // in each look
	left int
	stop func()
}

func (s *stopping) Write(p []byte) (int, error) {
	if s.left -= strings.Count(string(p), s.of); s.left <= 0 {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// TestWatchEnds: a watch looks again and again, and an interrupt ends it well.
func TestWatchEnds(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "rsbridge.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "state: %q\nstores: {mirror: {embedded: %q}}\ndestinations: {mirror: {store: mirror, source: \"http://127.0.0.1:1\", schedule: \"\"}}\n", filepath.Join(dir, "state"), filepath.Join(dir, "m")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status", "--watch", "-c", conf}, {"status", "--watch", "--json", "-c", conf}} {
		ctx, stop := context.WithCancelCause(t.Context())
		out := &stopping{of: `"sets"`, left: 3, stop: func() { stop(interrupt{}) }}
		if len(args) == 4 {
			out.of, out.left = " destination ", 1 // nothing changes after it
		}
		var problems bytes.Buffer
		code := (&app{watchEvery: time.Millisecond}).execute(ctx, args, strings.NewReader(""), out, &problems)
		stop(nil)
		if code != exitDone || problems.Len() > 0 || out.left > 0 {
			t.Errorf("%v ends with %d:\n%s%s", args, code, out, &problems)
		}
	}
}
