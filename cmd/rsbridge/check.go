package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/sparql"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/sparqlsrc/dumpfile"
)

// checked is `check --json`.
type checked struct {
	Findings    []bridge.Finding            `json:"findings"`
	Idle        []bridge.Finding            `json:"idle,omitempty"` // keys without an effect
	Unreachable map[string]string           `json:"unreachable"`
	State       map[string]string           `json:"state"`
	Places      map[string]string           `json:"places,omitempty"`      // why the next sync would refuse the place of a mirror
	Dumps       map[string]string           `json:"dumps,omitempty"`       // the newest file, by set
	Empty       map[string][]string         `json:"empty,omitempty"`       // empty graphs, by set
	Unpublished map[string]sparql.Remainder `json:"unpublished,omitempty"` // triples in graphs of no set, by store
	Readable    map[string]string           `json:"readable,omitempty"`    // files with secrets that everybody can read, by key
	Removed     map[string]string           `json:"removed"`               // sets and destinations only in the state, and what to do
}

func (a *app) check() *cobra.Command {
	var records bool
	cmd := &cobra.Command{Use: "check", Short: "Check the configuration, and whether everything in it can be reached", Args: cobra.NoArgs,
		Long: `Reads the configuration and reports all faults at once, with file, line, value and
allowed values (exit code 2). A key without an effect is told, and is no fault. Then it
tries everything in it (exit code 1):

  stores        does each one answer?
  sources       is the mirrored set there?
  other graphs  is there data in graphs of no set?
  folders       can state and embedded stores be made, written and opened?
  secrets       can everybody read the file of a password, token or key?
  destinations  do they agree with the state? would the next sync refuse a mirror's place?

A set or destination that is in the state and no longer in the configuration is told
(exit code 3). So is a declaration of the API that a fault leaves out.

Nothing stays written. A running daemon is asked for its state over the API.
--records reads all records of the sets and their inventories, and computes their hashes again.

--json: {"findings":[{"file","line","key","value","message"}],"unreachable":{"store NAME, set NAME or destination NAME":"why"},"state":{"state, set NAME or destination NAME":"why"},"places":{"destination NAME":"why"},"dumps":{"SET":"newest file"},"empty":{"SET":["graph that holds nothing"]},"unpublished":{"STORE":{"triples","graphs","largest":[{"graph","triples"}]}},"idle":[{"file","line","key","message"}],"readable":{"KEY":"file with a secret"},"removed":{"set NAME or destination NAME":"what to do"}}`,
		Example: "  rsbridge check -c rsbridge.yaml",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			doc := checked{Findings: []bridge.Finding{}, Unreachable: map[string]string{}, State: map[string]string{}, Removed: map[string]string{}}
			cfg, err := bridge.Load(a.config)
			var faults *bridge.ConfigError
			if errors.As(err, &faults) {
				if a.json {
					doc.Findings = faults.Findings
					if err := a.print(doc); err != nil {
						return err
					}
				}
				return err
			}
			if err != nil {
				return err
			}
			left, _ := cfg.LeftOut()
			doc.Findings = append(doc.Findings, left...)
			for name, err := range bridge.Reach(cmd.Context(), cfg, a.log) {
				doc.Unreachable[name] = webguard.MaskedSetting(err.Error())
			}
			for name, f := range newest(cfg, a.log) {
				if doc.Dumps == nil {
					doc.Dumps = map[string]string{}
				}
				doc.Dumps[name] = f.Path
			}
			doc.Readable, doc.Idle = cfg.Readable(), cfg.Idle()
			doc.Empty = bridge.EmptyGraphs(cmd.Context(), cfg, a.log)
			doc.Unpublished = bridge.FindUnpublished(cmd.Context(), cfg, a.log)
			if err := a.checkState(cmd.Context(), cfg, &doc); err != nil {
				return err
			}
			places, err := bridge.CheckPlaces(cmd.Context(), cfg, doc.Unreachable, a.log)
			if err != nil {
				return err
			}
			for name, err := range places {
				if doc.State[name] != "" { // it cannot be opened
					continue
				}
				if doc.Places == nil {
					doc.Places = map[string]string{}
				}
				doc.Places[name] = err.Error()
			}
			if records {
				found, err := bridge.CheckRecords(cmd.Context(), cfg, a.log)
				if err != nil {
					return err
				}
				for name, err := range found {
					doc.State[name] = err.Error()
				}
			}
			if err := context.Cause(cmd.Context()); err != nil { // it was stopped, and nothing is unreachable
				return err
			}
			if a.json {
				err = a.print(doc)
			} else {
				a.sayChecked(doc)
			}
			if err == nil && len(doc.Unreachable)+len(doc.State)+len(doc.Places) > 0 {
				return &codeError{code: exitFailed}
			}
			if err == nil && len(doc.Removed)+len(doc.Findings) > 0 {
				return part
			}
			return err
		}}
	cmd.Flags().BoolVar(&records, "records", false, "read all records of the sets, and compute their hashes again; no daemon may have the state")
	return cmd
}

// newest are the newest dumps, by set.
func newest(cfg *bridge.Config, log *slog.Logger) map[string]dumpfile.File {
	files, _ := bridge.Newest(cfg, log) // faults are among the unreachable
	return files
}

func (a *app) sayChecked(doc checked) {
	for _, f := range doc.Findings {
		fmt.Fprintf(a.out, "a declaration of the API is left out: %s\n", f)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Unreachable)) {
		fmt.Fprintf(a.out, "%s cannot be reached: %s\n", name, doc.Unreachable[name])
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Dumps)) {
		fmt.Fprintf(a.out, "set %s begins with %s, the newest of its dumps\n", name, doc.Dumps[name])
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Empty)) {
		fmt.Fprintf(a.out, "set %s: nothing is in the graph %s: is its name right?\n", name, strings.Join(doc.Empty[name], ", nor in "))
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Unpublished)) {
		fmt.Fprintf(a.out, "store %s: not published: %s%s\n", name, oneLine(doc.Unpublished[name].String()), howToPublish(nil))
	}
	for _, name := range slices.Sorted(maps.Keys(doc.State)) {
		what := "cannot be opened"
		if strings.HasPrefix(name, "set ") {
			what = "is damaged in the state"
		}
		fmt.Fprintf(a.out, "%s %s: %s\n", name, what, doc.State[name])
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Places)) {
		fmt.Fprintf(a.out, "%s would not be synced: %s\n", name, doc.Places[name])
	}
	for _, key := range slices.Sorted(maps.Keys(doc.Readable)) {
		fmt.Fprintf(a.out, "%s: everybody can read %s: chmod 600 %[2]s\n", key, doc.Readable[key])
	}
	for _, f := range doc.Idle {
		fmt.Fprintln(a.out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Removed)) {
		fmt.Fprintf(a.out, "%s is removed: %s\n", name, doc.Removed[name])
	}
	switch told := len(doc.Readable) + len(doc.Idle) + len(doc.Empty) + len(doc.Unpublished) + len(doc.Removed) + len(doc.Findings); {
	case len(doc.Unreachable)+len(doc.State)+len(doc.Places) > 0:
	case told > 0:
		fmt.Fprintf(a.out, "%s has no faults, and everything in it answers; see above for what to look at\n", a.config)
	default:
		fmt.Fprintf(a.out, "%s is right, and everything in it answers\n", a.config)
	}
}

// checkState compares the configuration with the state, or with the status of the
// daemon holding it.
func (a *app) checkState(ctx context.Context, cfg *bridge.Config, doc *checked) error {
	wrong := doc.State
	found, err := bridge.CheckState(ctx, cfg, a.log)
	var held *bridge.HeldError
	switch {
	case errors.As(err, &held) && held.Admin != "":
		var st bridge.Status
		s, err := remoteSession(ctx, a, cfg, held)
		if err == nil {
			st, err = s.Status(ctx)
		}
		if err != nil {
			return err
		}
		for _, s := range st.Sets { // of embedded stores: the daemon has them open
			if store := cfg.Sets[s.Name].Store; cfg.Stores[store].Embedded != "" && s.Unpublished.Told() {
				doc.Unpublished[store] = s.Unpublished.Remainder
			}
			if s.State == bridge.StateRemoved {
				doc.Removed["set "+s.Name] = s.Why
			}
		}
		for _, d := range st.Destinations {
			c, configured := cfg.Destinations[d.Name]
			switch {
			case d.State == bridge.StateRemoved:
				doc.Removed["destination "+d.Name] = d.Why
			case !configured:
			case d.Fault != "":
				wrong["destination "+d.Name] = d.Fault
			case d.Resources > 0 && (d.Store != c.Store || d.Graph != c.Graph || d.GraphIRI != c.GraphIRI):
				wrong["destination "+d.Name] = fmt.Sprintf("the running daemon keeps its mirror in store %s, %s %q; give the new mirror a new name, or set the old one back", d.Store, d.Graph, d.GraphIRI)
			}
		}
		return nil
	case errors.As(err, &held):
		a.log.Warn("the state was not looked at", "error", held)
		return nil
	}
	for name, err := range found {
		if errors.Is(err, bridge.ErrRemoved) {
			doc.Removed[name] = err.Error()
		} else {
			wrong[name] = err.Error()
		}
	}
	return err
}
