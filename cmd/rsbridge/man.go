package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rsbridge/rsbridge/internal/version"
)

func manCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write the manual pages of all commands", Args: cobra.ExactArgs(1),
		Long: `Writes rsbridge.1 and a page for each command into DIR. SOURCE_DATE_EPOCH is the date
in them, by default that of today.

--json: {"dir","pages"}`,
		Example: "  rsbridge man ~/.local/share/man/man1\n  man rsbridge-scan",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			root := a.root()
			asMarkdown(root)
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "RSBRIDGE", Section: "1", Source: "rsbridge " + version.String(), Manual: "rsbridge", Date: manDate()}, dir); err != nil {
				return err
			}
			pages, err := filepath.Glob(filepath.Join(dir, "rsbridge*.1"))
			if err != nil {
				return err
			}
			if a.json {
				return a.print(struct {
					Dir   string `json:"dir"`
					Pages int    `json:"pages"`
				}{dir, len(pages)})
			}
			_, err = fmt.Fprintf(a.out, "%s in %s\n", plural(int64(len(pages)), "page"), dir)
			return err
		}}
}

// manDate is the day of the pages; nil leaves it to SOURCE_DATE_EPOCH.
func manDate() *time.Time {
	if os.Getenv("SOURCE_DATE_EPOCH") != "" {
		return nil
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	return &today
}

var (
	indented4 = regexp.MustCompile(`(?m)^  (\S)`)
	flagLine  = regexp.MustCompile(`(?m)^(--json: )(.*(?:\n.+)*)`)
)

// asMarkdown makes Markdown of the texts of a tree of commands: what is indented or JSON stays as it is.
func asMarkdown(c *cobra.Command) {
	c.DisableAutoGenTag = true
	text := flagLine.ReplaceAllStringFunc(c.Long, func(s string) string {
		return "With **--json**:\n\n    " + strings.ReplaceAll(strings.TrimPrefix(s, "--json: "), "\n", "\n    ")
	})
	text = indented4.ReplaceAllString(text, "    $1")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[i] = strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(line)
		}
	}
	c.Long = strings.ReplaceAll(strings.Join(lines, "\n"), `\*\*--json\*\*`, "**--json**")
	for _, sub := range c.Commands() {
		asMarkdown(sub)
	}
}
