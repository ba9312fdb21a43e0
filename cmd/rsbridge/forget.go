package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/httpapi"
)

func (a *app) forget() *cobra.Command {
	var o bridge.ForgetArgs
	var of kindFlags
	c := &cobra.Command{Use: "forget SET or DEST", Short: "Remove a set or destination that is no longer in the configuration", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeRemoved,
		Long: `Removes a set or a destination from the state. Take it out of the configuration first.
--dry-run counts what would go, and changes nothing. An interrupted command is
finished by the next one.

Of a set: its log, its versions, its documents. Its addresses answer 410 Gone from
then on. No store is touched.

Of a destination: the triples that it alone owns, its files, its lines in the graph
urn:rsbridge:state, its records. Triples of others stay. --keep-data leaves the
triples and files where they are. Exit code 3: something remains in the store.

--json: of a set {"name","dry_run","resources","changes","published","address"}, of a destination
{"name","dry_run","keep_data","store","graph","resources","records","triples","lines","files","gone","remains"}`,
		Example: "  rsbridge forget copy --dry-run\n  rsbridge forget copy\n  rsbridge forget copy --keep-data",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.removing = true
			kind, err := a.known(cmd.Context(), args[0], of)
			if err != nil {
				return err
			}
			if kind == aDestination {
				return change(cmd.Context(), a, "forget-destination", args[0], o, sayForgotten, func(r destination.ForgetReport) bool { return r.Remains == "" || r.DryRun })
			}
			if err := change(cmd.Context(), a, "forget-set", args[0], o, sayForgottenSet, nil); err != nil || o.DryRun {
				return err
			}
			return a.untilGone(cmd.Context(), args[0])
		}}
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "count what would go, and change nothing")
	c.Flags().BoolVar(&o.KeepData, "keep-data", false, "of a destination: leave the data in the store")
	of.flags(c)
	return c
}

func (a *app) move() *cobra.Command {
	var to string
	c := &cobra.Command{Use: "move SET NEWNAME or DEST --to STORE", Short: "Rename a set, or follow the store of a mirror to another address", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.completeRemoved,
		Long: `Renames a set: rename it in the configuration, then run move SET NEWNAME. The log and
the versions go along, new lists begin, and the old addresses are redirected.

Follows a mirror's store to another address, or to a copy of the store: the store STORE
of the configuration must hold the checkpoint of the mirror's last write, in its
graph urn:rsbridge:state. Else nothing is changed. The next sync compares everything
in the store.

--json: of a set {"name","to","resources","sequence","address"}, of a destination
{"name","from","to","moved","resources","generation","configure"}`,
		Example: "  rsbridge move books library\n  rsbridge move copy --to fuseki",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.removing = true
			switch {
			case to != "" && len(args) == 1:
				return change(cmd.Context(), a, "move-destination", args[0], bridge.MoveArgs{To: to}, sayMoved, nil)
			case to != "" || len(args) == 1:
				return usage("say where to: move SET NEWNAME, or move DEST --to STORE")
			}
			if err := change(cmd.Context(), a, "move-set", args[0], bridge.MoveArgs{To: args[1]}, sayMovedSet, nil); err != nil {
				return err
			}
			return a.untilGone(cmd.Context(), args[0])
		}}
	c.Flags().StringVar(&to, "to", "", "of a destination: the `STORE` of the configuration that holds the mirror")
	return c
}

// change does something to one set or destination, and prints its report.
func change[R any](ctx context.Context, a *app, action, name string, args any, say func(io.Writer, R), fine func(R) bool) (err error) {
	s, _, end, err := opener(a, args)(ctx)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, end()) }()
	run, err := s.Do(ctx, action, name, args, a.progress)
	a.endProgress()
	if err != nil {
		return err
	}
	o, err := outcomeOf[R](name, run)
	if err == nil {
		err = o.err
	}
	if err != nil {
		return err
	}
	if a.json {
		err = a.print(o.report)
	} else {
		say(a.out, o.report)
	}
	if err == nil && fine != nil && !fine(o.report) {
		return part
	}
	return err
}

// joined keeps a single error as it is: its code counts.
func joined(err, other error) error {
	if other == nil {
		return err
	}
	return errors.Join(err, other)
}

// known is the kind of a name of the state. The removed one wins, if only one is removed.
func (a *app) known(ctx context.Context, name string, of kindFlags) (kind string, err error) {
	st, err := nowStatus(ctx, a)
	if err != nil {
		return "", err
	}
	var sets, dests []string
	removed := map[string]bool{}
	for _, s := range st.Sets {
		sets = append(sets, s.Name)
		removed[aSet] = removed[aSet] || s.Name == name && s.State == bridge.StateRemoved
	}
	for _, d := range st.Destinations {
		dests = append(dests, d.Name)
		removed[aDestination] = removed[aDestination] || d.Name == name && d.State == bridge.StateRemoved
	}
	if !of.dest && !slices.Contains(sets, name) && (of.set || !slices.Contains(dests, name)) {
		if err := a.became(ctx, name); err != nil {
			return "", err
		}
	}
	return of.choose(name, "state", sets, dests, func(kind string) bool { return removed[kind] })
}

// became is what became of a set that is not there any more, nil if there was none.
func (a *app) became(ctx context.Context, name string) (err error) {
	s, _, end, err := dry(a)(ctx)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, end()) }()
	_, err = s.Do(ctx, "forget-set", name, bridge.ForgetArgs{DryRun: true}, nil)
	var p *httpapi.Problem
	if errors.Is(err, bridge.ErrUnchanged) || errors.As(err, &p) && p.Status == http.StatusConflict {
		return err
	}
	return nil
}

func (a *app) statusNow(ctx context.Context) (st bridge.Status, err error) {
	s, _, end, err := a.session(ctx)
	if err != nil {
		return st, err
	}
	defer func() { err = joined(err, end()) }()
	return s.Status(ctx)
}

// untilGone waits until the bridge is open again without a set. Without a daemon, the
// question itself opens it again.
func (a *app) untilGone(ctx context.Context, set string) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		st, err := a.statusNow(ctx)
		if err != nil {
			return err
		}
		there := func(s bridge.SetStatus) bool { return s.Name == set }
		if !slices.ContainsFunc(st.Sets, there) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("set %s is still there; the log of the daemon says why, and its next start goes on", set)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// completeRemoved completes the names of sets and destinations.
func (a *app) completeRemoved(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := map[string]bool{}
	if st, err := nowStatus(cmd.Context(), a); err == nil {
		for _, s := range st.Sets {
			names[s.Name] = true
		}
		for _, d := range st.Destinations {
			names[d.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), cobra.ShellCompDirectiveNoFileComp
}

func sayForgotten(w io.Writer, r destination.ForgetReport) {
	parts := []string{plural(r.Records, "record") + " of " + plural(r.Resources, "resource")}
	switch {
	case strings.HasPrefix(r.Store, "files:"):
		parts = append(parts, plural(r.Files, "file")+" in "+r.Store)
	case strings.HasPrefix(r.Store, "dump:"):
		parts = append(parts, plural(r.Triples, "triple")+" in "+r.Store)
	default:
		parts = append(parts, fmt.Sprintf("%s in graph %s of %s", plural(r.Triples, "triple"), r.Graph, r.Store), plural(r.Lines, "line")+" in urn:rsbridge:state")
	}
	if r.Files > 0 && !strings.HasPrefix(r.Store, "files:") {
		parts = append(parts, plural(r.Files, "file"))
	}
	fmt.Fprintf(w, "%s: %s %s\n", r.Name, yes(r.DryRun, "would remove", "removed"), strings.Join(parts, ", "))
	if r.Gone != "" {
		fmt.Fprintf(w, "  %s is empty or gone: nothing was there to remove\n", r.Gone)
	}
	if r.KeepData {
		fmt.Fprintf(w, "  the data %s in %s\n", yes(r.DryRun, "would stay", "stays"), r.Store)
	}
	if r.Remains != "" {
		fmt.Fprintf(w, "  cannot be reached, and remains: %s\n", r.Remains)
	}
}

func sayForgottenSet(w io.Writer, r bridge.ForgottenSet) {
	fmt.Fprintf(w, "%s: %s %s, %s of the log, %d bytes of files\n  %s %s 410 Gone\n", r.Name, yes(r.DryRun, "would remove", "removes"),
		plural(r.Resources, "resource"), plural(int64(r.Changes), "change"), r.Published, r.Address, yes(r.DryRun, "would answer", "answers"))
}

func sayMoved(w io.Writer, r bridge.MovedDestination) {
	if r.Moved {
		fmt.Fprintf(w, "%s: moved from %s to %s, at write %d; the next sync compares %s\n", r.Name, r.From, r.To, r.Generation, plural(r.Resources, "resource"))
	} else {
		fmt.Fprintf(w, "%s: is at %s already\n", r.Name, r.To)
	}
	if r.Configure != "" {
		fmt.Fprintf(w, "  it waits until the configuration says so: %s\n", r.Configure)
	}
}

func sayMovedSet(w io.Writer, r bridge.MovedSet) {
	fmt.Fprintf(w, "%s: is %s now, %s; old addresses are redirected\n  Capability List: %s\n", r.Name, r.To, plural(r.Resources, "resource"), r.Address)
}
