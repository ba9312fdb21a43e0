package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
)

func (a *app) rebase() *cobra.Command {
	return &cobra.Command{Use: "rebase SET", Short: "New addresses after base_url or prefix changed: close the old lists, start new ones", Args: cobra.ExactArgs(1),
		Long: `After a change of base_url or prefix a set stays at its old addresses, and rsbridge
status shows it as held. rebase, or accept, moves it:

  - old Change Lists and dumps are closed and withdrawn
  - a new Change List begins
  - the Resource List is complete at the new addresses
  - names with the old prefix are redirected

Mirrors find the gap, and compare with the new Resource List. Other held things (a
scan, another format) stay held. Exit code 3: there was nothing to move.

--json: {"sets":[{"name","rebased","from","to","sequence","time","resources","address","seconds","held"}]}`,
		Example: "  rsbridge rebase books",
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := each[bridge.RebaseReport](cmd.Context(), a, "rebase", nil, args, nil)
			if err != nil {
				return err
			}
			return tell(a, "sets", out, sayRebase, func(r bridge.RebaseReport) bool { return r.Rebased || r.Held == nil })
		}}
}

func sayRebase(w io.Writer, r bridge.RebaseReport) {
	if r.Held != nil {
		defer fmt.Fprintf(w, "  still held, and no matter of addresses: %s; if that is right: rsbridge accept %s --set\n", r.Held.Reason, r.Name)
	}
	if !r.Rebased {
		fmt.Fprintf(w, "%s: is at the configured addresses already: %s\n", r.Name, r.Address)
		return
	}
	fmt.Fprintf(w, "%s: %d resources at new addresses since change %d, in %.1f s\n", r.Name, r.Resources, r.Sequence, r.Seconds)
	if r.From.Base != r.To.Base {
		fmt.Fprintf(w, "  base_url %s is now %s\n", r.From.Base, r.To.Base)
	}
	if r.From.Prefix != r.To.Prefix {
		fmt.Fprintf(w, "  prefix %q is now %q; old names are redirected\n", r.From.Prefix, r.To.Prefix)
	}
	fmt.Fprintf(w, "  Capability List: %s\n", r.Address)
}

// ownAddresses moves every set to the addresses of the command line. Typing them is
// accepting them.
func ownAddresses(ctx context.Context, b *bridge.Bridge) error {
	for _, name := range b.ConfiguredSets() {
		var rep bridge.RebaseReport
		if err := b.Do(ctx, "rebase", name, nil, &rep); err != nil {
			return err
		}
	}
	return nil
}
