package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/publish"
)

// TestLostCommitsBetweenRuns: while no process runs the database goes back to before a publication, as in a failover to
// a copy that lags. The next process tells it, and publishes nothing until somebody wants the older state.
func TestLostCommitsBetweenRuns(t *testing.T) {
	teststores.Sequential(t)
	database := teststores.Postgres(t)
	cfg := small(t.TempDir())
	cfg.StateFolder, cfg.State = cfg.State, database
	delete(cfg.Destinations, "copy")
	scan := func(value string) publish.Generation {
		t.Helper()
		b := mustOpen(t, cfg)
		fill(t, b, "source", "<http://example.org/a> <http://example.org/p> \""+value+"\" .\n")
		do[ScanReport](t, b, "scan", "data")
		g, _ := b.pub.Generation("data")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		return g
	}
	scan("first")
	teststores.ExecPostgres(t, database, `CREATE TABLE copy_head AS SELECT * FROM rsbridge_head`, `CREATE TABLE copy_kv AS SELECT * FROM rsbridge_kv`)
	newest := scan("second")
	teststores.ExecPostgres(t, database, `TRUNCATE rsbridge_head, rsbridge_kv, rsbridge_kept, rsbridge_snapshot`, `INSERT INTO rsbridge_head SELECT * FROM copy_head`, `INSERT INTO rsbridge_kv SELECT * FROM copy_kv`)
	for range 2 {
		b, err := Open(t.Context(), cfg, Options{})
		var lost *records.LostError
		if !errors.Is(err, kv.ErrLost) || !errors.As(err, &lost) || !strings.Contains(lost.Hint(), lost.File) {
			t.Fatalf("Open = %v, %v", b, err)
		}
	}
	if err := os.Remove(filepath.Join(cfg.StateFolder, records.NewestFile)); err != nil {
		t.Fatal(err)
	}
	if g := scan("third"); g.Number > newest.Number {
		t.Errorf("generation %d after %d: nothing was lost", g.Number, newest.Number)
	}
}
