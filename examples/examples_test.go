// Package examples_test runs the examples as a reader would.
package examples_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/teststores"
	"github.com/rsbridge/rsbridge/rdfres"
)

func build(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", bin, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return bin
}

func output(t *testing.T, bin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(bin), args, err, out)
	}
	return string(out)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := teststores.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + port
}

func TestEmbed(t *testing.T) {
	got := output(t, build(t, "embed"))
	for _, want := range []string{"2 created, 0 updated, 0 deleted\n", "1 created, 1 updated, 1 deleted\n", "hello, world"} {
		if !strings.Contains(got, want) {
			t.Errorf("embed says %q, want %q in it", got, want)
		}
	}
}

// TestExposeMirrorAdmin exposes a store over HTTP, asks the admin API, mirrors it.
func TestExposeMirrorAdmin(t *testing.T) {
	store, err := embedstore.Open(t.TempDir(), embedstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const data = "<http://example.org/a> <http://example.org/p> \"1\" .\n<http://example.org/b> <http://example.org/p> _:x .\n_:x <http://example.org/p> \"2\" .\n"
	if _, err := store.Load(t.Context(), "", rdfres.NTriples, strings.NewReader(data), embedstore.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: store.Handler()}
	go server.Serve(l)
	defer server.Close()

	listen, admin := freeAddr(t), freeAddr(t)
	expose := exec.CommandContext(t.Context(), build(t, "expose"), "-endpoint", "http://"+l.Addr().String()+"/query", "-listen", listen, "-admin", admin, "-state", t.TempDir())
	stdout, err := expose.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	expose.Stderr = &stderr
	if err := expose.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		expose.Process.Kill()
		expose.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.Contains(line, listen) {
		t.Fatalf("expose says %q (%v)", line, err)
	}
	go io.Copy(io.Discard, stdout)

	got := output(t, build(t, "admin"), "-api", admin)
	if !strings.Contains(got, "is done") || !strings.Contains(got, "created http://example.org/") {
		t.Errorf("admin says %q", got)
	}
	got = output(t, build(t, "mirror"), "-source", "http://"+listen)
	if !strings.Contains(got, "baseline: 2 created") || !strings.Contains(got, "equal: true, 2 resources") {
		t.Errorf("mirror says %q", got)
	}
}
