package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceManager: the daemon tells systemd that it serves, reads its configuration again (a
// faulty one too), is alive, and stops.
func TestServiceManager(t *testing.T) {
	processes(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "rsbridge.yaml")
	text := fmt.Sprintf("state: ./state\npublic: {listen: %q}\nadmin: {listen: %q}\nstores: {o: {embedded: ./store}}\nsets: {data: {store: o, schedule: \"\"}}\n", freeAddr(t), freeAddr(t))
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	socket := filepath.Join(dir, "n")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, commandPath(t), "run", "-c", conf)
	cmd.Env, cmd.Stderr = append(os.Environ(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=3000000"), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// heard reads until a message begins with a state, and gives those before it.
	heard := func(state string) (before string, message string) {
		t.Helper()
		for {
			_ = l.SetReadDeadline(time.Now().Add(time.Minute))
			buf := make([]byte, 4096)
			n, err := l.Read(buf)
			if err != nil {
				t.Fatalf("the daemon does not say %s: %v; it said %q\n%s", state, err, before, said.String())
			}
			if message = string(buf[:n]); strings.HasPrefix(message, state) {
				return before, message
			}
			before += message + "\n"
		}
	}
	if before, _ := heard("READY=1"); !strings.Contains(before, "STATUS=opening the state\n") || strings.Contains(before, "RELOADING") {
		t.Errorf("before READY it said %q", before)
	}
	if _, m := heard("WATCHDOG=1"); m != "WATCHDOG=1\nSTATUS=1 of 1 sets and destinations need attention, as never: set data: it was never scanned" {
		t.Errorf("it said %q", m)
	}
	for _, now := range []string{text + "# again\n", "sets: {data: {store: none}}\n"} {
		write(now)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if _, m := heard("RELOADING=1"); !strings.HasPrefix(m, "RELOADING=1\nMONOTONIC_USEC=") {
			t.Errorf("it said %q", m)
		}
		heard("READY=1")
	}
	heard("WATCHDOG=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	heard("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, said.String())
	}
}
