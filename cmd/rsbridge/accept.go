package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// heldItems is the number of held entities in one request and in JSON.
const heldItems = 10000

func (a *app) accept() *cobra.Command {
	var show bool
	var o bridge.AcceptArgs
	var of kindFlags
	var commits bool
	c := &cobra.Command{Use: "accept SET or DEST", Short: "Release held deletions, or a held change of configuration",
		Args: func(cmd *cobra.Command, args []string) error {
			if commits {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		Long: `Releases held deletions, or a held change of configuration. rsbridge status shows
them. --show lists the entities and files to be deleted, and changes nothing.

A set is scanned again. If the log has not moved, the held deletions or changes take
place. So do other deletions, as far as max_delete_ratio allows them: "accepted" in the
report tells how many were shown. A destination removes exactly the held resources, and follows its source;
later deletions count anew. If its source lost changes, and has neither a Resource
List nor a Resource Dump, accept goes on without them. --id refuses if something else is held than was shown.
If a set and a destination share a name, the held one is meant. If both are held, say
--set or --destination.

--lost-commits, without a name, goes on with the older state of a database in PostgreSQL
that has lost commits. Stop the daemon first. What was lost can be published with other
content then: mirrors compare.

--json: as scan, of a destination as sync; with --show
{"id","reason","deletions","of","time","items":[{"entity","location","label"}],"next"}: up to 10,000
items; next goes on with the addresses /held of the API. With --lost-commits
{"state","now":{"lead","commit"},"lost":[{"lead","commit"}]}`,
		Example: "  rsbridge accept books --show\n  rsbridge accept books\n  rsbridge accept books --id 9c1d0f6e2b7a\n  rsbridge accept copy\n  rsbridge accept --lost-commits",
		RunE: func(cmd *cobra.Command, args []string) error {
			if commits {
				return acceptLoss(cmd.Context(), a)
			}
			if cmd.Flags().Changed("id") && o.ID == "" {
				return usage("--id is empty: give the ID that --show tells, or leave it out")
			}
			kind, held, err := a.held(cmd.Context(), args[0], of, o, show)
			switch {
			case err != nil:
				return err
			case show && a.json:
				return a.print(held)
			case show:
				return nil // printed as it came
			case kind == aDestination:
				out, err := each[destination.SyncReport](cmd.Context(), a, "let-go", nil, args, o)
				if err != nil {
					return err
				}
				return a.tellSyncs(out)
			}
			return a.scanAction(cmd.Context(), "accept", args, o)
		}}
	c.Flags().BoolVar(&show, "show", false, "list what would be deleted, and change nothing")
	c.Flags().StringVar(&o.ID, "id", "", "only what has this `ID`, as --show tells it")
	c.Flags().BoolVar(&commits, "lost-commits", false, "go on with the older state of a database that has lost commits")
	c.MarkFlagsMutuallyExclusive("lost-commits", "show")
	c.MarkFlagsMutuallyExclusive("lost-commits", "id")
	of.flags(c)
	return c
}

// lossReport is `accept --lost-commits --json`.
type lossReport struct {
	State string     `json:"state"`
	Now   kv.Point   `json:"now"`
	Lost  []kv.Point `json:"lost"`
}

func acceptLoss(ctx context.Context, a *app) error {
	cfg, err := bridge.Load(a.config)
	if err != nil {
		return err
	}
	rep := lossReport{State: cfg.Records().String()}
	if rep.Now, rep.Lost, err = bridge.AcceptLoss(ctx, cfg, a.commandLog()); err != nil {
		return err
	}
	acted(a, cfg, action("accept --lost-commits", fmt.Sprint(rep.Lost)))
	if a.json {
		return a.print(rep)
	}
	fmt.Fprintf(a.out, "accepted: the state in %s goes on from commit %d\n", rep.State, rep.Now.Commit)
	for _, at := range rep.Lost {
		fmt.Fprintf(a.out, "  lost: commits up to %d of lead %s\n", at.Commit, at.Lead)
	}
	return nil
}

// held finds the held run of a set or destination, and prints its items with show. If both have
// the name, the held one with the id is meant.
func (a *app) held(ctx context.Context, name string, of kindFlags, o bridge.AcceptArgs, show bool) (kind string, held *bridge.Held, err error) {
	s, cfg, end, err := a.reading(ctx)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = joined(err, end()) }()
	page := func(kind, after string, limit int) (*bridge.Held, error) {
		if kind == aSet {
			return s.SetHeld(ctx, name, after, limit)
		}
		return s.DestinationHeld(ctx, name, after, limit)
	}
	isHeld := func(kind string, limit int) (*bridge.Held, error) {
		h, err := page(kind, "", limit)
		if err == nil {
			if err = o.Check(h.ID); err != nil {
				err = fmt.Errorf("%s %s: %w", kind, name, err)
			}
		}
		return h, err
	}
	var not []error
	kind, err = of.choose(name, "configuration", slices.Sorted(maps.Keys(cfg.Sets)), slices.Sorted(maps.Keys(cfg.Destinations)), func(kind string) bool {
		_, err := isHeld(kind, 1)
		if err != nil {
			not = append(not, err)
		}
		return err == nil
	})
	if len(not) == 2 {
		return "", nil, errors.Join(not...)
	}
	if err == nil {
		held, err = isHeld(kind, heldItems)
	}
	if err != nil || !show || a.json {
		return kind, held, err
	}
	fmt.Fprintf(a.out, "%s: held (%s): %s\n", name, held.ID, held.Reason)
	for p := held; ; {
		sayHeld(a.out, p)
		if p.Next == "" {
			return kind, held, nil
		}
		if p, err = page(kind, p.Next, heldItems); err != nil {
			return kind, held, err
		}
	}
}

func sayHeld(w io.Writer, h *bridge.Held) {
	for _, it := range h.Items {
		what := it.Entity
		if it.File {
			what = it.Location + "  (file of " + it.Entity + ")"
		} else if what == "" {
			what = it.Location
		}
		fmt.Fprintf(w, "  %s%s%s\n", what, yes(it.Label != "", "  "+oneLine(it.Label), ""), yes(it.Empty, "  (becomes empty)", ""))
	}
}
