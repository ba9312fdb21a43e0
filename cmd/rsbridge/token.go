package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/config"
	"github.com/rsbridge/rsbridge/bridge/sharedfiles"
	"github.com/rsbridge/rsbridge/internal/access"
)

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Make, list and revoke tokens of the administration"}
	c.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
	return c
}

// users are those of the configured state, however faulty the rest of the configuration is.
func usersOf(a *app) (*access.Users, *access.Log, error) {
	state, err := config.StateOf(a.config)
	if err != nil {
		return nil, nil, err
	}
	dir := access.Folder(state.Folder)
	return access.Open(dir, ""), access.OpenLog(dir), nil
}

// changeUsers changes tokens, where the state is in a database also for other processes.
func changeUsers(ctx context.Context, a *app, change func(*access.Users) error) error {
	state, err := config.StateOf(a.config)
	if err != nil {
		return err
	}
	return sharedfiles.Change(ctx, state, func() error { return change(access.Open(access.Folder(state.Folder), "")) })
}

func tokenCreateCommand(a *app) *cobra.Command {
	var role string
	var sets []string
	c := &cobra.Command{Use: "create NAME --role read, operate or admin", Short: "Make a token, and print its secret once", Args: cobra.ExactArgs(1),
		Long: `Makes a token for a person or a program, and prints its secret. It is shown only now:
the state keeps a keyed hash. It is valid at once, also while the daemon runs. As soon
as there is a token, everybody needs one, on loopback too; commands of the state's
owner go on without.

  read     all of the dashboard and the API that changes nothing
  operate  and the work of every day: scan, sync, audit, accept, pause, cancel, updates of stores
  admin    and everything else: sets, destinations, forget, move, rebase, the log of actions

--set SET makes a token for readers of a protected set instead (sets.NAME.access).

Send the secret as Authorization: Bearer SECRET, as the password of basic
authentication, or log in to the dashboard with it.

--json: {"name","role","sets","created","token"}`,
		Example: "  rsbridge token create ann --role operate\n  rsbridge token create prometheus --role read\n  rsbridge token create library --set books",
		RunE: func(cmd *cobra.Command, args []string) error {
			t := access.Token{Name: args[0], Sets: sets, Created: time.Now().UTC().Truncate(time.Second)}
			var err error
			switch {
			case (role == "") == (len(sets) == 0):
				return usage("say --role %s, or --set SET for a reader of protected sets", strings.ReplaceAll(access.RoleNames(), ", admin", " or admin"))
			case role == "":
				t.Role = access.Reader
			default:
				if t.Role, err = access.ParseRole(role); err != nil {
					return usage("--%w", err)
				}
			}
			_, log, err := usersOf(a)
			if err != nil {
				return err
			}
			var secret string
			err = changeUsers(cmd.Context(), a, func(u *access.Users) (err error) {
				secret, err = u.Create(t)
				return err
			})
			if errors.Is(err, access.ErrName) || errors.Is(err, access.ErrTaken) {
				return usage("%w", err)
			}
			if err == nil {
				err = log.Add(action("token create "+t.Name, cmp.Or(role, "set "+strings.Join(sets, ", "))))
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.print(struct {
					access.Token
					Secret string `json:"token"`
				}{t, secret})
			}
			a.note("the token of %s, shown only now:", t.Name)
			_, err = fmt.Fprintln(a.out, secret)
			return err
		}}
	c.Flags().StringVar(&role, "role", "", "`ROLE` in the administration: read, operate or admin")
	c.Flags().StringArrayVar(&sets, "set", nil, "a reader of this protected `SET` (again for more)")
	return c
}

func tokenListCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the tokens, without their secrets", Args: cobra.NoArgs,
		Long: `Lists the tokens of the state. The token of admin.token_file is not among them.

--json: {"tokens":[{"name","role","sets","created"}]}`,
		Example: "  rsbridge token list",
		RunE: func(*cobra.Command, []string) error {
			u, _, err := usersOf(a)
			if err != nil {
				return err
			}
			list, err := u.List()
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]any{"tokens": list})
			}
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			for _, t := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, t.Role, t.Created.Local().Format(time.DateTime), strings.Join(t.Sets, ", "))
			}
			return w.Flush()
		}}
}

// completeTokens completes the names of tokens.
func completeTokens(a *app) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if u, _, err := usersOf(a); err == nil && len(args) == 0 {
			list, _ := u.List() // without any a shell offers none
			for _, t := range list {
				names = append(names, t.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "revoke NAME", Short: "End a token and its sessions, at once", Args: cobra.ExactArgs(1), ValidArgsFunction: completeTokens(a),
		Long:    "Ends a token. Its next request is refused, also by a running daemon. Without any token\nthe administration is open on loopback again.",
		Example: "  rsbridge token revoke ann",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, log, err := usersOf(a)
			if err != nil {
				return err
			}
			err = changeUsers(cmd.Context(), a, func(u *access.Users) error { return u.Revoke(args[0]) })
			if errors.Is(err, access.ErrUnknown) {
				return usage("%w", err)
			}
			if err == nil {
				err = log.Add(action("token revoke "+args[0], ""))
			}
			return err
		}}
}

func actionsCommand(a *app) *cobra.Command {
	var limit int
	c := &cobra.Command{Use: "actions", Short: "Print the log of actions: who did what, and when", Args: cobra.NoArgs,
		Long: `Prints the newest actions of users: changes by the API and the dashboard, logins,
refusals by role, and commands. Hints and SPARQL requests are not in it. The log is
bounded: the oldest of some ten thousand go.

--json: {"actions":[{"id","time","who","role","from","action","status","run","detail"}]}`,
		Example: "  rsbridge actions --limit 20",
		RunE: func(*cobra.Command, []string) error {
			if limit < 1 {
				return usage("--limit %d: it is 1 or more", limit)
			}
			_, log, err := usersOf(a)
			if err != nil {
				return err
			}
			list, _, err := log.Read(0, limit)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]any{"actions": list})
			}
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			for _, x := range slices.Backward(list) {
				end := x.Detail
				if x.Status != 0 {
					end = strings.TrimSpace(fmt.Sprint(x.Status, " ", end))
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.Time.Local().Format(time.DateTime), x.Who, x.From, x.Action, end)
			}
			return w.Flush()
		}}
	c.Flags().IntVar(&limit, "limit", 100, "at most so many")
	return c
}

// localReader is the secret for protected sets.
func localReader(cfg *bridge.Config) string { return access.Local(access.Folder(cfg.Folder())) }

// localToken is the token of this command at the daemon.
func localToken(cfg *bridge.Config) string {
	return cmp.Or(string(cfg.Admin.Token), access.Local(access.Folder(cfg.Folder())))
}
