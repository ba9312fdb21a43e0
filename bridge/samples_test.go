package bridge

import (
	"testing"
	"time"

	"github.com/rsbridge/rsbridge/bridge/history"
)

// TestSamplesGoAlong: the samples of a set go with it to its new name, and those of a forgotten
// destination go.
func TestSamplesGoAlong(t *testing.T) {
	cfg := small(t.TempDir())
	b := mustOpen(t, cfg)
	reopen := func() {
		t.Helper()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = mustOpen(t, cfg)
	}
	defer func() { b.Close() }()
	do := func(action, name string, args, into any) {
		t.Helper()
		if err := b.Do(t.Context(), action, name, args, into); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, b, "source", "<http://e.example/1> <http://e.example/p> \"1\" .\n")
	do("scan", "data", nil, &struct{}{})
	do("sync", "copy", nil, &struct{}{})
	minute := map[string]history.Sample{"set:data": {}, "destination:copy": {}}
	if err := Samples(b).Add(t.Context(), time.Now(), minute); err != nil {
		t.Fatal(err)
	}
	cfg.Sets["books"] = cfg.Sets["data"]
	delete(cfg.Sets, "data")
	delete(cfg.Destinations, "copy")
	reopen()
	do("forget-destination", "copy", nil, &struct{}{})
	do("move-set", "data", MoveArgs{To: "books"}, &struct{}{})
	reopen()
	for subject, kept := range map[string]bool{"set:data": false, "set:books": true, "destination:copy": false} {
		if got, err := Samples(b).Samples(t.Context(), subject, time.Time{}); err != nil || len(got) > 0 != kept {
			t.Errorf("%s has %d samples, %v", subject, len(got), err)
		}
	}
}
