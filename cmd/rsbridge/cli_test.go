package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

var update = flag.Bool("update", false, "write the generated documents")

// TestCommandReference holds docs/cli.md to the tree of commands.
func TestCommandReference(t *testing.T) {
	root := (&app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	want := cliReference(root)
	file := filepath.Join(teststores.Root(t), "docs", "cli.md")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/cli.md is not what the code says (make generate writes it):\n%s", d)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Short == "" || !c.HasSubCommands() && c.Parent() != nil && c.Parent().Name() != "completion" && c.Name() != "help" && c.Long+c.Example == "" {
			t.Errorf("%s says too little of itself", c.CommandPath())
		}
		for _, s := range c.Commands() {
			check(s)
		}
	}
	check(root)
}
