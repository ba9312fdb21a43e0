package bridge

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/bridge/records"
	"github.com/rsbridge/rsbridge/bridge/spaces"
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
	cfg.PublishTo = teststores.Moto(t)
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
	teststores.ExecPostgres(t, database, `CREATE TABLE copy_head AS SELECT * FROM rsbridge_head`, `CREATE TABLE copy_kv AS SELECT * FROM rsbridge_kv`, `CREATE TABLE copy_lead AS SELECT * FROM rsbridge_lead`)
	newest := scan("second")
	teststores.ExecPostgres(t, database, `TRUNCATE rsbridge_head, rsbridge_kv, rsbridge_kept, rsbridge_snapshot, rsbridge_lead`, `INSERT INTO rsbridge_head SELECT * FROM copy_head`, `INSERT INTO rsbridge_kv SELECT * FROM copy_kv`, `INSERT INTO rsbridge_lead SELECT * FROM copy_lead`)
	here := cfg.StateFolder
	for _, folder := range []string{here, t.TempDir(), here} { // another machine knows by the bucket
		cfg.StateFolder = folder
		b, err := Open(t.Context(), cfg, Options{})
		var lost *records.LostError
		if !errors.Is(err, kv.ErrLost) || !errors.As(err, &lost) || strings.HasPrefix(lost.Note, here) != (folder == here) {
			t.Fatalf("Open = %v, %v", b, err)
		}
	}
	if now, lost, err := AcceptLoss(t.Context(), cfg, nil); err != nil || len(lost) == 0 || now.Lead == "" {
		t.Fatalf("AcceptLoss = %v, %v, %v", now, lost, err)
	}
	if _, _, err := AcceptLoss(t.Context(), cfg, nil); !errors.Is(err, records.ErrNoneLost) {
		t.Errorf("once more: %v", err)
	}
	if g := scan("third"); g.Number > newest.Number {
		t.Errorf("generation %d after %d: nothing was lost", g.Number, newest.Number)
	}
}

// TestVacant: a standby of a database that lost commits tells that nobody leads, and why it cannot. It serves on.
func TestVacant(t *testing.T) {
	teststores.Sequential(t)
	database := teststores.Postgres(t)
	open := func() *Bridge {
		t.Helper()
		cfg := small(t.TempDir())
		cfg.StateFolder, cfg.State = cfg.State, database
		clear(cfg.Stores)
		clear(cfg.Sets)
		clear(cfg.Destinations)
		b, err := OpenShared(t.Context(), cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := open()
	teststores.ExecPostgres(t, database, `CREATE TABLE copy_head AS SELECT * FROM rsbridge_head`, `UPDATE copy_head SET until = '-infinity'`, `CREATE TABLE copy_kv AS SELECT * FROM rsbridge_kv`)
	b := kv.Prefix(first.kv, spaces.Samples).Batch()
	b.Set([]byte("x"), nil)
	if err := errors.Join(b.Commit(t.Context(), true), b.Close()); err != nil {
		t.Fatal(err)
	}
	former := open()
	second, err := Newer(t.Context(), former)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := former.Retire(second); err != nil {
		t.Fatal(err)
	}
	told := func() string {
		ready, unwell := second.Readiness(t.Context())
		return fmt.Sprint(ready, unwell)
	}
	if free, _, err := Free(t.Context(), second); free || err != nil || LeaderOf(second) == "" || told() != "true []" || LeaderNow(second) != "the leader is "+LeaderOf(second) {
		t.Fatalf("beside the leader %s: free %t, %v, %s", LeaderOf(second), free, err, told())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	teststores.ExecPostgres(t, database, `TRUNCATE rsbridge_head, rsbridge_kv`, `INSERT INTO rsbridge_head SELECT * FROM copy_head`, `INSERT INTO rsbridge_kv SELECT * FROM copy_kv`)
	if free, _, err := Free(t.Context(), second); !free || err != nil || !strings.Contains(told(), "nobody leads since ") {
		t.Errorf("without a leader: free %t, %v, %s", free, err, told())
	}
	if next, err := Lead(t.Context(), second); !errors.Is(err, kv.ErrLost) {
		t.Errorf("Lead = %v, %v", next, err)
	}
	if said := told(); !strings.HasPrefix(said, "true") || !strings.Contains(said, "nobody leads since ") || !strings.Contains(said, kv.ErrLost.Error()) {
		t.Errorf("after that: %s", said)
	}
}
