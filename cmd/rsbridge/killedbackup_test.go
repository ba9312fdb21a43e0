package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilledBackup kills backups and restores at random moments, while a daemon writes the state. A backup is there
// whole or not at all; a state is restored whole, or refused by name until it is. RSBRIDGE_KILLS is how often.
func TestKilledBackup(t *testing.T) {
	processes(t)
	kills := 6
	numbers(t, map[string]*int{"RSBRIDGE_KILLS": &kills})
	bin, dir := commandPath(t), t.TempDir()
	public, admin := freeAddr(t), freeAddr(t)
	config := filepath.Join(dir, "rsbridge.yaml")
	write := func(text string, args ...any) {
		t.Helper()
		if err := os.WriteFile(config, fmt.Appendf(nil, text, args...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = `state: %s
public: {listen: %q}
admin: {listen: %q}
stores: {source: {embedded: %s}, mirror: {embedded: %[4]s-mirror}}
sets: {data: {store: source, schedule: "@every 1s"}}
destinations: {copy: {source: "http://%[2]s", store: mirror, schedule: "@every 1s"}}
`
	state := filepath.Join(dir, "state")
	write(text, state, public, admin, filepath.Join(state, "source"))
	command(t, bin, 0, "simulate", filepath.Join(state, "source"), "--entities", "3000")
	daemon := newProcess(t, "http://"+admin+"/healthz", bin, "run", "-c", config)
	// The first scan and the first sync are in each backup.
	command(t, bin, 0, "scan", "-c", config)
	command(t, bin, 0, "sync", "-c", config)
	changes := exec.Command(bin, "simulate", "http://"+admin+"/stores/source", "--rate", "200", "--for", "1d")
	if err := changes.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = changes.Process.Kill(), changes.Wait() }()

	file := filepath.Join(dir, "b.tar")
	began := time.Now()
	command(t, bin, 0, "backup", file, "-c", config)
	whole := time.Since(began)
	random := rand.New(rand.NewPCG(1, 2))
	killed := func(args ...string) (ended bool) {
		cmd := exec.Command(bin, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(whole)*5/4)), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		return err == nil
	}
	absent := 0
	for range kills {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		ended := killed("backup", file, "-c", config)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			if absent++; ended {
				t.Fatal("a backup ended well, and is not there")
			}
			continue
		}
		command(t, bin, 0, "restore", "--dry-run", file, "-c", config)
	}
	if absent == 0 {
		t.Error("no kill met a backup under way")
	}
	command(t, bin, 0, "backup", file, "-c", config)
	daemon.kill(os.Kill)
	_, _ = changes.Process.Kill(), changes.Wait()
	command(t, bin, 0, "verify", "--read-data", "-c", config)

	// Restored elsewhere, the same configuration is that of the moment of the backup.
	refused := 0
	for i := range kills {
		restored := filepath.Join(dir, fmt.Sprint("restored", i))
		write(text, restored, public, admin, filepath.Join(restored, "source"))
		if !killed("restore", file, "-c", config) {
			said, err := exec.Command(bin, "verify", "-c", config).CombinedOutput()
			_, none := os.Stat(filepath.Join(restored, "kv"))
			switch {
			case err != nil && strings.Contains(string(said), "a restore into it has not ended"):
				refused++
				command(t, bin, 0, "restore", file, "-c", config)
			case err != nil:
				t.Fatalf("a restore was killed, and its state is neither whole nor refused: %v\n%s", err, said)
			case errors.Is(none, fs.ErrNotExist): // killed before it wrote anything
				command(t, bin, 0, "restore", file, "-c", config)
			}
		}
		command(t, bin, 0, "verify", "--read-data", "-c", config)
		if i == 0 { // the source goes on, and its mirror follows it
			command(t, bin, 0, "scan", "-c", config)
			command(t, bin, 0, "sync", "-c", config)
			command(t, bin, 0, "audit", "-c", config)
		}
		if err := os.RemoveAll(restored); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d backups were killed before their end, %d of %d restores", absent, kills, refused, kills)
}
