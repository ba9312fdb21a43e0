package storelog

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsbridge/rsbridge/bridge/named"
	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestFollowedAfterTheFirstScan: a follower that runs before the first scan of its set tells all changes
// after the mark of that scan, those of before the scan's end and later ones.
func TestFollowedAfterTheFirstScan(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, dir string) (feed func() Feed, change func(n int) error){
		"commits": func(t *testing.T, dir string) (func() Feed, func(int) error) {
			es, err := embedstore.Open(filepath.Join(dir, "store"), embedstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { es.Close() })
			return func() Feed { return &Commits{Store: es} }, func(n int) error {
				return es.Update(t.Context(), fmt.Sprintf("INSERT DATA { <urn:e> <urn:p> %d }", n))
			}
		},
		"patches": func(_ *testing.T, dir string) (func() Feed, func(int) error) {
			log, prev := filepath.Join(dir, "log"), ""
			return func() Feed { return &Patches{File: log, Log: slog.New(slog.DiscardHandler)} }, func(n int) error {
				f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					return err
				}
				defer f.Close()
				_, err = fmt.Fprintf(f, "H id <uuid:%d> .\n%sTX .\nTC .\n", n, prev)
				prev = fmt.Sprintf("H prev <uuid:%d> .\n", n)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed, change := open(t, t.TempDir()) // each follower has its own feed
				records := memkv.New()
				queue, err := named.Open(t.Context(), records, "data")
				if err != nil {
					t.Fatal(err)
				}
				begun := make(chan struct{}, 1)
				follower := func() *Follower {
					return &Follower{Store: "s", Set: "data", Feed: feed(), Records: records, Log: slog.New(slog.DiscardHandler), Begun: begun,
						Tell: named.Set{Queue: queue, By: "cbd", Begin: func() error { return nil }}}
				}
				var g Group
				g.Go(t.Context(), follower())
				defer g.End()
				step := func(n int) {
					t.Helper()
					if err := change(n); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * rest) // in virtual time
					synctest.Wait()
				}
				place := func() string {
					t.Helper()
					at, err := follower().place(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return at
				}
				step(1)
				scan := follower()
				mark, err := scan.Mark(t.Context())
				if err != nil || place() != "" {
					t.Fatal(place(), err)
				}
				step(2)
				if err := scan.Begin(t.Context(), mark); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for n := 3; n < 6; n++ {
					before := place()
					step(n)
					_, end, err := feed().Since(t.Context(), "")
					if at := place(); err != nil || at == before || at != end {
						t.Fatalf("change %d: the follower stands at %s, the log ends at %s, %v", n, at, end, err)
					}
				}
			})
		})
	}
}

// TestKnownAreNotKeptWaiting: after a bulk write in a busy store, single changes are told as they come.
// The bulk write is told when the store is at rest, and after half a minute at the latest.
func TestKnownAreNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		es, err := embedstore.Open(t.TempDir(), embedstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer es.Close()
		records := memkv.New()
		queue, err := named.Open(t.Context(), records, "data")
		if err != nil {
			t.Fatal(err)
		}
		f := &Follower{Store: "s", Set: "data", Feed: &Commits{Store: es}, Records: records, Log: slog.New(slog.DiscardHandler), Begun: make(chan struct{}, 1),
			Tell: named.Set{Queue: queue, By: "cbd", Begin: func() error { return nil }}}
		mark, err := f.Mark(t.Context())
		if err == nil {
			err = f.Begin(t.Context(), mark)
		}
		if err != nil {
			t.Fatal(err)
		}
		var g Group
		g.Go(t.Context(), f)
		defer g.End()
		told := func() *named.Told {
			t.Helper()
			synctest.Wait()
			due, err := queue.Due(t.Context())
			var all *named.Told
			if err == nil {
				all, err = named.Gather(due)
			}
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		synctest.Wait()
		var many strings.Builder
		for n := range 5000 {
			fmt.Fprintf(&many, "<urn:many%d> <urn:p> <urn:o> .\n", n)
		}
		if err := es.Update(t.Context(), "INSERT DATA { "+many.String()+" }"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it is read alone
		began := time.Now()
		for n := 1; time.Since(began) < mostRest-rest; n++ {
			if err := es.Update(t.Context(), fmt.Sprintf("INSERT DATA { <urn:one%d> <urn:p> 1 }", n)); err != nil {
				t.Fatal(err)
			}
			if all := told(); len(all.Entities) != n || all.Unknown {
				t.Fatalf("after %v and %d changes told: %d, unknown: %v", time.Since(began), n, len(all.Entities), all.Unknown)
			}
			time.Sleep(rest / 2) // in virtual time
		}
		time.Sleep(2 * rest) // in virtual time
		if all := told(); !all.Unknown {
			t.Errorf("the bulk write is not told after %v", time.Since(began))
		}
	})
}

// text is a log since it was taken.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.b.Reset()
	return x.b.String()
}

// TestLostLog: while a patch log is missing, the set is told again and again to be scanned, and the log
// of rsbridge says so. A link to it is followed.
func TestLostLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		log := filepath.Join(dir, "log")
		records := memkv.New()
		queue, err := named.Open(t.Context(), records, "data")
		if err != nil {
			t.Fatal(err)
		}
		var lines text
		f := &Follower{Store: "s", Set: "data", Feed: &Patches{File: log, Log: slog.New(slog.NewTextHandler(&lines, nil))}, Records: records,
			Log: slog.New(slog.DiscardHandler), Begun: make(chan struct{}, 1), Tell: named.Set{Queue: queue, By: "cbd", Begin: func() error { return nil }}}
		happens := func(do ...error) {
			t.Helper()
			for _, err := range do {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		happens(os.WriteFile(log, []byte(first), 0o600))
		mark, err := f.Mark(t.Context())
		happens(err, f.Begin(t.Context(), mark))
		var g Group
		g.Go(t.Context(), f)
		defer g.End()
		told := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after) // in virtual time
			synctest.Wait()
			due, err := queue.Due(t.Context())
			if err != nil || len(due) != want {
				t.Fatalf("told %d times, want %d, %v", len(due), want, err)
			}
			happens(queue.Forget(t.Context(), due))
			if said := strings.Count(lines.take(), "level=WARN"); said != want {
				t.Fatalf("%d warnings, want %d", said, want)
			}
		}
		told(2*lostPause, 0)
		happens(os.Rename(log, filepath.Join(dir, "real")), os.Symlink("real", log))
		told(2*lostPause, 0)
		happens(os.Remove(log))
		told(2*rest, 1)
		told(lostPause+2*rest, 1)
		happens(os.Mkdir(log, 0o700))
		told(lostPause+2*rest, 1)
		if err := Try(log); err == nil {
			t.Error("a folder is taken as a log")
		}
		happens(os.Remove(log))
		if err := Try(log); err == nil {
			t.Error("a missing log is not told")
		}
	})
}
