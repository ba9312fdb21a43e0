package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/examples/schemaorg"
	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestReferenceClientStatic lets the reference client copy a set that was
// exported, from a plain file server, follow a second export, and audit.
func TestReferenceClientStatic(t *testing.T) {
	processes(t)
	sync := filepath.Join(filepath.Dir(teststores.Python(t)), "resync-sync")
	dir := t.TempDir()
	site, work := filepath.Join(dir, "site"), filepath.Join(dir, "copy")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.FileServer(http.Dir(site))}
	go srv.Serve(l) // ends with Close
	defer srv.Close()
	base := "http://" + l.Addr().String() + "/data"
	conf := filepath.Join(dir, "rsbridge.yaml")
	text := fmt.Sprintf("state: ./state\npublic: {listen: \"\", base_url: \"http://%s\"}\nadmin: {listen: \"\"}\nstores: {o: {embedded: ./store}}\nsets:\n  data: {store: o, prefix: \"https://schema.org/\"}\n", l.Addr())
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) {
		t.Helper()
		if code, out, errs := inProcess(t, args...); code != exitDone {
			t.Fatalf("rsbridge %v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	export := func(r schemaorg.Release) {
		t.Helper()
		file := filepath.Join(dir, "release.nt.gz")
		if err := os.WriteFile(file, r.NTriplesGz, 0o600); err != nil {
			t.Fatal(err)
		}
		must("store", "load", filepath.Join(dir, "store"), file, "--replace")
		must("scan", "-c", conf)
		must("export", "data", site, "-c", conf)
	}
	client := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), sync, append(append(args, "--sitemap", base+"/resourcelist.xml", "--delete", "-v"), base+"/="+work)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("resync-sync %v: %v\n%s", args, err, out)
		}
		return out
	}
	inSync := func() {
		t.Helper()
		if out := string(client("--audit")); !strings.Contains(out, "IN SYNC") || strings.Contains(out, "NOT IN SYNC") {
			t.Fatalf("resync-sync --audit: %s", out)
		}
		compareFiles(t, base, work)
	}
	export(schemaorg.Releases[0])
	client("--baseline")
	inSync()
	export(schemaorg.Releases[1])
	if out := client("--incremental", "--changelist-uri", base+"/changelist.xml"); bytes.Contains(out, []byte("No changes")) {
		t.Errorf("resync-sync --incremental: %s", out)
	}
	inSync()
	must("validate", "--follow", "--sample", "0", base+"/capabilitylist.xml")
}
