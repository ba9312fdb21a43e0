package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/httpapi"
)

// heldItems is the number of held entities in one request and in JSON.
const heldItems = 10000

func (a *app) accept() *cobra.Command {
	var show bool
	var o bridge.AcceptArgs
	c := &cobra.Command{Use: "accept SET or DEST", Short: "Release held deletions, or a held change of configuration", Args: cobra.ExactArgs(1),
		Long: `Releases held deletions, or a held change of configuration. rsbridge status shows
them. --show lists the entities and files to be deleted, and changes nothing.

A set is scanned again. If the log has not moved, the held deletions or changes take
place. A destination removes exactly the held resources, and follows its source;
later deletions count anew. --id refuses if something else is held than was shown.
If a set and a destination share a name, the set comes first, unless nothing of it is
held.

--json: as scan, of a destination as sync; with --show
{"id","reason","deletions","of","time","items":[{"entity","location","label"}],"next"}: up to 10,000
items; next goes on with the addresses /held of the API`,
		Example: "  rsbridge accept books --show\n  rsbridge accept books\n  rsbridge accept books --id 9c1d0f6e2b7a\n  rsbridge accept copy",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && o.ID == "" {
				return usage("--id is empty: give the ID that --show tells, or leave it out")
			}
			mirror, held, err := a.held(cmd.Context(), args[0], show)
			switch {
			case err != nil:
				return err
			case show && a.json:
				return a.print(held)
			case show:
				return nil // printed as it came
			case mirror:
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
	return c
}

// held finds the held run of a set or destination, and prints its items with show.
func (a *app) held(ctx context.Context, name string, show bool) (mirror bool, held *bridge.Held, err error) {
	s, cfg, end, err := a.session(ctx)
	if err != nil {
		return false, nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	_, set := cfg.Sets[name]
	if _, mirror = cfg.Destinations[name]; !set && !mirror {
		return false, nil, usage("%s is no set and no destination of the configuration; there are: %s", name,
			listed(slices.Concat(slices.Sorted(maps.Keys(cfg.Sets)), slices.Sorted(maps.Keys(cfg.Destinations)))))
	}
	page := s.DestinationHeld
	if set {
		held, err = s.SetHeld(ctx, name, "", heldItems)
		if mirror = mirror && nothingHeld(err); !mirror {
			page = s.SetHeld
		}
	}
	if mirror {
		held, err = s.DestinationHeld(ctx, name, "", heldItems)
	}
	if err != nil || !show || a.json {
		return mirror, held, err
	}
	fmt.Fprintf(a.out, "%s: held (%s): %s\n", name, held.ID, held.Reason)
	for p := held; ; {
		sayHeld(a.out, p)
		if p.Next == "" {
			return mirror, held, nil
		}
		if p, err = page(ctx, name, p.Next, heldItems); err != nil {
			return mirror, held, err
		}
	}
}

// nothingHeld tells whether a set or destination has no held run.
func nothingHeld(err error) bool {
	var p *httpapi.Problem
	return errors.Is(err, bridge.ErrNothingHeld) || errors.As(err, &p) && p.Status == http.StatusNotFound
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
