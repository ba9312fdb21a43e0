package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// The log tells what became of each change, once: those that a later one of the same
// resource has superseded, in the same window or when it could not be had before, and
// those that a comparison passed over.
func TestEveryChangeIsTold(t *testing.T) {
	b := newBench(t)
	s := b.src
	s.ours = true
	fill(s, 20)
	var out bytes.Buffer
	var got []string
	sync := func() SyncReport {
		t.Helper()
		out.Reset()
		d := b.open()
		d.mem.Log = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		rep, err := d.Sync(context.Background(), SyncOptions{Retry: true})
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for line := range bytes.Lines(out.Bytes()) {
			var l struct {
				Msg                          string
				Sequence, By, After, Through int
				ByList                       bool `json:"by_list"`
			}
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			switch told, _ := strings.CutPrefix(l.Msg, "change is "); {
			case told != l.Msg && l.ByList:
				got = append(got, fmt.Sprintf("%d %s by a list", l.Sequence, told))
			case told != l.Msg && l.By > 0:
				got = append(got, fmt.Sprintf("%d %s by %d", l.Sequence, told, l.By))
			case told != l.Msg:
				got = append(got, fmt.Sprintf("%d %s", l.Sequence, told))
			case l.Msg == "changes are superseded by a list":
				got = append(got, fmt.Sprintf("%d-%d superseded", l.After+1, l.Through))
			}
		}
		slices.Sort(got)
		return rep
	}
	told := func(want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("told %q, want %q\n%s", got, want, out.String())
		}
	}
	sync()
	told("1-20 superseded")
	s.put("e1.nt", nt("e1", "x")) // 21
	s.put("e1.nt", nt("e1", "y"))
	s.put("e2.nt", nt("e2", "x"))
	s.remove("e3.nt")
	s.put("e4.nt", nt("e4", "x")) // 25
	s.lie["e2.nt"], s.lie["e4.nt"] = true, true
	sync()
	told("21 superseded by 22", "22 applied", "23 pending", "24 applied", "24 pending", "25 pending")
	sync()
	told() // again in vain
	s.lie["e2.nt"] = false
	s.put("e4.nt", nt("e4", "y")) // 26
	s.lie["e4.nt"] = false
	sync()
	told("23 applied", "25 superseded by 26", "26 applied")

	// A comparison takes the place of what is lost, and of what was pending.
	s.put("e5.nt", nt("e5", "x")) // 27
	s.lie["e5.nt"] = true
	sync()
	told("27 pending")
	s.put("e5.nt", nt("e5", "y"))
	s.put("e6.nt", nt("e6", "x"))
	s.lie["e5.nt"] = false
	s.drop = len(s.log)
	sync()
	told("27 superseded by a list", "28-29 superseded")
	b.equal()
}
