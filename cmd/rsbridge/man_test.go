package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// TestMan: each command has a page, with the day of SOURCE_DATE_EPOCH, that man takes without a complaint, and the
// texts in it are whole.
func TestMan(t *testing.T) {
	teststores.Sequential(t)
	dir := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if code := run(t.Context(), []string{"man", dir}, strings.NewReader(""), os.Stdout, os.Stderr); code != 0 {
		t.Fatal(code)
	}
	var names func(c *cobra.Command)
	names = func(c *cobra.Command) {
		if c.Name() == "help" {
			return
		}
		file := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		text := regexp.MustCompile(`\\f[A-Z]|\\`).ReplaceAllString(string(raw), "")
		if !strings.Contains(text, "Nov 2023") {
			t.Errorf("%s has another date", file)
		}
		words := func(s string) string {
			return strings.Join(regexp.MustCompile(`[A-Za-z0-9_]+`).FindAllString(s, -1), " ")
		}
		for line := range strings.Lines(c.Long) {
			if line = words(strings.TrimPrefix(line, "--json: ")); !strings.Contains(words(text), line) {
				t.Errorf("%s has not: %s", file, line)
			}
		}
		if man, err := exec.LookPath("man"); err == nil {
			if said, err := exec.Command(man, "--warnings", "-Tutf8", "-P", "cat", "-l", file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", file, err, said)
			}
		}
		for _, sub := range c.Commands() {
			names(sub)
		}
	}
	names((&app{}).root())
}

// TestCompletion: a shell is offered the names of the configuration, and those not given yet.
func TestCompletion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rsbridge.yaml")
	err := os.WriteFile(file, []byte(`
stores: {origin: {embedded: ./origin}, copy: {embedded: ./copy}}
sets: {books: {store: origin}, people: {store: origin}}
destinations: {mirror: {source: "https://data.example", store: copy}}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var quiet strings.Builder
	for _, name := range []string{"ann", "bob"} {
		if code := run(t.Context(), []string{"token", "create", name, "--role", "read", "-c", file}, strings.NewReader(""), &quiet, &quiet); code != 0 {
			t.Fatal(quiet.String())
		}
	}
	for args, want := range map[string]string{
		"token revoke ":     "ann bob",
		"token revoke ann ": "",
		"scan ":             "books people",
		"scan books ":       "people",
		"sync ":             "mirror",
		"audit ":            "mirror",
		"changes ":          "books people",
		"changes books ":    "",
		"accept ":           "books mirror people",
		"forget ":           "books mirror people",
		"doctor ":           "copy origin",
		"move mirror --to ": "copy origin",
		"scan --log-level ": "debug error info warn",
	} {
		var out strings.Builder
		fields := strings.Split(args, " ")
		run(t.Context(), append([]string{"__complete", "-c", file}, fields...), strings.NewReader(""), &out, &strings.Builder{})
		got, _, _ := strings.Cut(out.String(), ":")
		words := strings.Fields(got)
		if strings.HasPrefix(args, "scan --log") {
			words = strings.Fields("debug error info warn")
			for _, w := range words {
				if !strings.Contains(got, w) {
					t.Errorf("%q: %q", args, got)
				}
			}
		}
		if strings.Join(words, " ") != want {
			t.Errorf("%q completes %q, want %q", args, got, want)
		}
	}
}
