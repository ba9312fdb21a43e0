package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestSite: the documents make a site, without a broken link, an unknown anchor or a page outside of
// its navigation; and it asks nobody else for fonts or scripts.
func TestSite(t *testing.T) {
	mkdocs := teststores.Mkdocs(t)
	t.Chdir(teststores.Root(t))
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), mkdocs, "build", "--strict", "--clean", "--site-dir", out)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mkdocs: %v\n%s", err, said)
	}
	page, err := os.ReadFile(filepath.Join(out, "howto", "monitoring.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"blob/main/examples/monitoring", `href="../reference/metrics.html"`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, foreign := range []string{"fonts.googleapis", "<script src=\"http", "cdn."} {
		if strings.Contains(string(page), foreign) {
			t.Errorf("the page asks %s", foreign)
		}
	}
}
