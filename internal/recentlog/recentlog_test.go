package recentlog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/internal/recentlog"
)

// TestLines: the newest lines are kept with the attributes of their loggers, in their order, and
// are written too. A line below the level is neither.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	h := recentlog.New(slog.NewTextHandler(&out, nil))
	log := slog.New(h)
	began := time.Now()
	books := log.With("set", "books")
	for i := range 2500 {
		books.Info("scanned", "n", i)
		books.Debug("asked")
	}
	log.WithGroup("http").Warn("slow", "path", strings.Repeat("x", 5000))
	all := h.Lines(began, func(recentlog.Line) bool { return true })
	if len(all) != 2000 {
		t.Fatalf("%d lines are kept", len(all))
	}
	last := all[len(all)-1]
	if last.Message != "slow" || last.Level != slog.LevelWarn || !strings.HasPrefix(last.Text(), "http.path=xxx") || len(last.Text()) > 2100 {
		t.Errorf("the last line is %+v", last)
	}
	if got := all[len(all)-2]; got.Text("set") != "n=2499" || got.Get("set") != "books" || got.Get("job") != "" {
		t.Errorf("the line before is %+v", got)
	}
	if got := all[0].Text("set"); got != "n=501" {
		t.Errorf("the first kept line has %s", got)
	}
	if n := len(h.Lines(began, func(l recentlog.Line) bool { return l.Level > slog.LevelInfo })); n != 1 {
		t.Errorf("%d warnings", n)
	}
	if n := strings.Count(out.String(), "\n"); n != 2501 {
		t.Errorf("%d lines are written", n)
	}
	if !strings.Contains(out.String(), fmt.Sprintf("set=books n=%d", 7)) {
		t.Error("a line is not written as before")
	}
}
