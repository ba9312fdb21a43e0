package storelog

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
			return func() Feed { return &Patches{File: log} }, func(n int) error {
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
					time.Sleep(2 * rest) // of the bubble
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
