package spaces

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/backup"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// TestForward: a state of an earlier version can be backed up, is not read, and is brought forward once. A program
// of before refuses it afterwards.
func TestForward(t *testing.T) {
	log, s, now := slog.New(slog.DiscardHandler), memkv.New(), table
	t.Cleanup(func() { table = now })
	steps := 0
	for _, s := range now {
		steps += len(s.Steps)
	}
	if backup.Form != 1+steps {
		t.Errorf("the form of a backup is %d, with %d steps of the records", backup.Form, steps)
	}
	b := s.Batch()
	b.Set([]byte("bridge/scan/books"), []byte("{}"))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := Forward(t.Context(), s, "state", log); err != nil {
		t.Fatal(err)
	}

	taken := 0
	table = slices.Clone(now)
	for i := range table {
		if s := &table[i]; s.Name == "bridge" {
			s.Steps = append(slices.Clone(s.Steps), func(kv.Pair, kv.Batch) error { taken++; return nil })
		}
	}
	if err := Readable(t.Context(), s, "state", false); err == nil || !strings.Contains(err.Error(), "earlier version (bridge: version 1 of 2)") {
		t.Errorf("reading it says %v", err)
	}
	if err := Readable(t.Context(), s, "state", true); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := Forward(t.Context(), s, "state", log); err != nil || taken != 1 {
			t.Errorf("%d records were brought forward, %v", taken, err)
		}
	}
	if err := Readable(t.Context(), s, "state", false); err != nil {
		t.Error(err)
	}

	table = now
	for _, err := range []error{Forward(t.Context(), s, "state", log), Readable(t.Context(), s, "state", true)} {
		if !errors.Is(err, kv.ErrNewer) {
			t.Errorf("a program of before says %v", err)
		}
	}
}
