package records

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/kv/memkv"
)

// leading answers as a database does.
type leading struct {
	kv.Led
	is kv.Leader
}

func (l leading) Leader(context.Context) (kv.Leader, error) { return l.is, nil }

// TestNewest: a database with older commits than its folder has noted is told, with the way on.
func TestNewest(t *testing.T) {
	p := Place{Folder: t.TempDir(), Database: there.Database}
	moved := memkv.New()
	b := moved.Batch()
	b.Set(markCame, []byte(`{"id":"another"}`))
	if err := b.Commit(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		lead, commit int64
		records      kv.Store
		lost         bool
	}{
		{lead: 3, commit: 10},
		{lead: 3, commit: 10},
		{lead: 3, commit: 12},
		{lead: 4, commit: 12},
		{lead: 5, commit: 11, lost: true},
		{lead: 3, commit: 13, lost: true},
		{lead: 4, commit: 12},
		{lead: 1, commit: 2, records: moved}, // another history
		{lead: 1, commit: 1, records: moved, lost: true},
		{lead: 9, commit: 99, lost: true}, // a database without the records that came by the move
	} {
		if step.records == nil {
			step.records = memkv.New()
		}
		err := p.Note(t.Context(), step.records, leading{is: kv.Leader{Number: step.lead, Commit: step.commit}})
		if errors.Is(err, kv.ErrLost) != step.lost || !step.lost && err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		var lost *LostError
		if errors.As(err, &lost) && (strings.Contains(err.Error(), "secret") || !strings.Contains(lost.Hint(), lost.File)) {
			t.Errorf("step %d: %v; %s", i, err, lost.Hint())
		}
	}
	if err := os.WriteFile(filepath.Join(p.Folder, NewestFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Note(t.Context(), memkv.New(), leading{}); err == nil || !strings.Contains(err.Error(), NewestFile) {
		t.Errorf("beside a damaged note: %v", err)
	}
	if raw, err := os.ReadFile(filepath.Join(p.Folder, NewestFile)); err != nil || string(raw) != "{" {
		t.Errorf("the damaged note: %q %v", raw, err)
	}
}
