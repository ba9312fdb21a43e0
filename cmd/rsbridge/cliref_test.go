package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cliPages are the pages of docs/reference with commands: a name, a title, and the
// commands. Those of no page stand on the last one.
var cliPages = []struct {
	name, title string
	commands    []string
}{
	{"cli-publish.md", "Commands to publish", []string{"expose", "scan", "changes", "show", "diff", "export", "rebase", "accept", "doctor"}},
	{"cli-mirror.md", "Commands to mirror", []string{"mirror", "sync", "audit", "explore", "validate"}},
	{"cli-store.md", "Commands of the embedded store", []string{"store", "simulate"}},
	{"cli-state.md", "Commands on the state", []string{"verify", "backup", "restore", "migrate", "forget", "move"}},
	{"cli-operate.md", "Commands to operate", nil},
}

// cliReference is the pages of the commands in docs/reference by name: every
// command of the tree with its flags, examples and the form of its --json. A test
// holds the pages to it.
func cliReference(root *cobra.Command) map[string]string {
	var b strings.Builder
	about, _, _ := strings.Cut(root.Long, "\n\nExit codes")
	b.WriteString(`# Commands

` + "`rsbridge COMMAND`" + `. The pages of commands are made from the code (` + "`make generate`" + `).

` + about + `

Commands on the state talk to the running daemon, with the token of the configuration. Without a daemon ` + "`scan`, `sync`, `audit` and `accept`" + ` open the state themselves, and serve the configured addresses meanwhile. ` + "`status`, `check`, `changes`, `show`, `diff`, `accept --show`, `export`, `verify` and each `--dry-run`" + ` only read it: nothing on the disk changes. ` + "`verify`" + ` writes once something has to be made again. ` + "`audit`" + ` records its result.

Progress and the log go to standard error: a bar on a terminal, a line every few seconds elsewhere.

## Exit codes

| code | meaning |
|---|---|
| 0 | done, and equal |
| 1 | failed |
| 2 | wrong usage or configuration |
| 3 | done in part, held, or out of sync |

## Flags of every command

`)
	flagTable(&b, root.PersistentFlags())
	b.WriteString("\n## Overview\n\n| command | purpose |\n|---|---|\n")
	sections := make([]strings.Builder, len(cliPages))
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			continue
		}
		page := slices.IndexFunc(cliPages, func(p struct {
			name, title string
			commands    []string
		}) bool {
			return p.commands == nil || slices.Contains(p.commands, c.Name())
		})
		subs := c.Commands()
		if c.Name() == "completion" {
			subs = nil
		}
		section(&sections[page], c)
		for _, s := range subs {
			overview(&b, s, cliPages[page].name)
			section(&sections[page], s)
		}
		if len(subs) == 0 {
			overview(&b, c, cliPages[page].name)
		}
	}
	out := map[string]string{"cli.md": b.String()}
	for i, p := range cliPages {
		out[p.name] = "# " + p.title + "\n\nExit codes and common flags: [commands](cli.md).\n" + sections[i].String()
	}
	return out
}

func overview(b *strings.Builder, c *cobra.Command, page string) {
	fmt.Fprintf(b, "| [`%s`](%s#%s) | %s |\n", words(c), page, strings.ReplaceAll(words(c), " ", "-"), cell(c.Short))
}

// tables are the indented lines of a help text, without its lists.
var tables = regexp.MustCompile(`(?m)\n((?:^  +[^- \n].*\n?)+)`)

// words is the command without the name of the program.
func words(c *cobra.Command) string {
	_, rest, _ := strings.Cut(c.CommandPath(), " ")
	return rest
}

func section(b *strings.Builder, c *cobra.Command) {
	_, use, _ := strings.Cut(c.UseLine(), " ")
	fmt.Fprintf(b, "\n## %s\n\n    rsbridge %s\n\n%s.\n", words(c), use, strings.TrimSuffix(c.Short, "."))
	if c.Name() == "completion" { // cobra's own text is one page for each shell
		b.WriteString("\n`rsbridge completion bash` (or zsh, fish, powershell) prints the script; `source <(rsbridge completion bash)` loads it.\n")
		return
	}
	if c.Long != "" {
		long, doc, found := strings.Cut(c.Long, "--json: ")
		if long = strings.TrimSpace(long); long != "" {
			b.WriteString("\n" + tables.ReplaceAllString(long, "\n```text\n$1```\n") + "\n")
		}
		if found {
			b.WriteString("\n`--json`:\n\n    " + strings.ReplaceAll(strings.TrimSpace(doc), "\n", "\n    ") + "\n")
		}
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		flagTable(b, c.LocalNonPersistentFlags())
	}
	if c.Example != "" {
		b.WriteString("\n```sh\n" + strings.TrimSpace(strings.ReplaceAll("\n"+c.Example, "\n  ", "\n")) + "\n```\n")
	}
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning | default |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		def := f.DefValue
		if def == "false" || def == "[]" || def == "0s" {
			def = ""
		}
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.TrimSpace(name+" "+kind), cell(text), def)
	})
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
