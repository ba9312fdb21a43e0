package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/resourcesync"
)

func (a *app) validate() *cobra.Command {
	var strict bool
	c := &cobra.Command{Use: "validate FILE...", Short: "Check ResourceSync documents against the rules of the specification", Args: cobra.MinimumNArgs(1),
		Long: `Prints each finding with its line, rule and what would be right: E errors, W
warnings, A advice. Exit code 3: there are errors.

--json: {"documents":[{"location","kind","errors":[{"rule","message","line"}],"warnings":[...],"advice":[...]}]}`,
		Example: "  rsbridge validate capabilitylist.xml changelist.xml",
		RunE: func(cmd *cobra.Command, args []string) error {
			type document struct {
				Location string                 `json:"location"`
				Kind     string                 `json:"kind"`
				Errors   []resourcesync.Finding `json:"errors"`
				Warnings []resourcesync.Finding `json:"warnings"`
				Advice   []resourcesync.Finding `json:"advice"`
			}
			docs, bad := []document{}, false
			for _, file := range args {
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				head, found, err := resourcesync.Validate(f, resourcesync.ValidateOptions{Location: file, Strict: strict, Now: time.Now()})
				f.Close()
				if err != nil {
					return fmt.Errorf("validate %s: %w", file, err)
				}
				d := document{file, string(head.Meta.Capability), []resourcesync.Finding{}, []resourcesync.Finding{}, []resourcesync.Finding{}}
				for _, x := range found {
					switch x.Severity {
					case "E":
						d.Errors, bad = append(d.Errors, x), true
					case "W":
						d.Warnings = append(d.Warnings, x)
					default:
						d.Advice = append(d.Advice, x)
					}
					if !a.json {
						fmt.Fprintf(a.out, "%s:%d: %s%d: %s\n", file, x.Line, x.Severity, x.Rule, x.Message)
					}
				}
				docs = append(docs, d)
			}
			if a.json {
				if err := a.print(map[string]any{"documents": docs}); err != nil {
					return err
				}
			}
			if bad {
				return part
			}
			return nil
		}}
	c.Flags().BoolVar(&strict, "strict", false, "refuse what 1.1 does not allow")
	return c
}
