package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cliReference is docs/reference/cli.md: every command of the tree with its flags,
// examples and what its --json has. A test holds the page to it.
func cliReference(root *cobra.Command) string {
	var b strings.Builder
	about, _, _ := strings.Cut(root.Long, "\n\nExit codes")
	b.WriteString(`# Commands

` + "`rsbridge COMMAND`" + `. This page is made from the code (` + "`make generate`" + `).

` + about + `

Commands that need the state (` + "`scan`, `sync`, `audit`, `accept`, `status`, `changes`, `show`" + `) talk to the daemon that holds it, with the
token of the configuration; when there is none they open the state themselves, serving the configuration's own addresses meanwhile.
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
	b.WriteString("\n## Overview\n\n| command | does |\n|---|---|\n")
	var all []*cobra.Command
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			continue
		}
		if subs := c.Commands(); len(subs) > 0 && c.Name() != "completion" {
			all = append(all, c)
			all = append(all, subs...)
			for _, s := range subs {
				overview(&b, s)
			}
			continue
		}
		all = append(all, c)
		overview(&b, c)
	}
	for _, c := range all {
		section(&b, c)
	}
	return b.String()
}

func overview(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", words(c), strings.ReplaceAll(words(c), " ", "-"), cell(c.Short))
}

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
			b.WriteString("\n" + long + "\n")
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
