package bridge

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// TestLaterState: a state of a later version is refused by all who open it.
func TestLaterState(t *testing.T) {
	cfg := small(t.TempDir())
	b := mustOpen(t, cfg)
	batch := b.kv.Batch()
	batch.Set([]byte("format/jobs"), []byte(`{"version":99}`))
	if err := errors.Join(batch.Commit(t.Context(), true), batch.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() error{
		"Open":         func() error { _, err := Open(t.Context(), cfg, Options{}); return err },
		"OpenDry":      func() error { _, err := OpenDry(t.Context(), cfg, Options{}); return err },
		"OpenReading":  func() error { _, err := OpenReading(t.Context(), cfg, Options{}); return err },
		"BackupClosed": func() error { return BackupClosed(t.Context(), cfg, Options{}, new(bytes.Buffer)) },
	} {
		if err := open(); !errors.Is(err, kv.ErrNewer) {
			t.Errorf("%s says %v", name, err)
		}
	}
}
