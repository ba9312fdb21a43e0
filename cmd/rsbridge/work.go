package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/webguard"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// outcome is how one set or destination fared.
type outcome[R any] struct {
	name   string
	report R
	err    error
}

// each does action on the names, or on all when there are none, one after the
// other, and gathers reports. A failure does not stop the others.
func each[R any](ctx context.Context, a *app, action string, all, given []string, args any) (out []outcome[R], err error) {
	s, cfg, end, err := opener(a, args)(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if all == nil {
		all = slices.Sorted(maps.Keys(cfg.Destinations))
		if action == "scan" || action == "accept" || action == "rebase" {
			all = slices.Sorted(maps.Keys(cfg.Sets))
		}
	}
	what := "destination"
	if action == "scan" || action == "accept" || action == "rebase" {
		what = "set"
	}
	if len(given) == 0 {
		if given = all; len(all) == 0 {
			a.note("rsbridge: there is no %s in %s: nothing to do", what, a.config)
		}
	}
	for _, name := range given {
		if !slices.Contains(all, name) {
			return nil, usage("there is no %s %s in the configuration; there are: %s", what, name, listed(all))
		}
	}
	for _, name := range given {
		run, err := s.Do(ctx, action, name, args, a.progress)
		a.endProgress()
		if err != nil && ctx.Err() != nil { // the ended ones are reported
			a.found = action == "scan" && run.State == jobs.Interrupted && len(run.Result) > 0
			return append(out, outcome[R]{name: name, err: errStopped}), nil
		}
		o := outcome[R]{name: name, err: err}
		if err == nil {
			if o, err = outcomeOf[R](name, run); err != nil {
				return out, err
			}
		}
		out = append(out, o)
	}
	return out, nil
}

// outcomeOf reads the report of an ended run.
func outcomeOf[R any](name string, run jobs.Run) (outcome[R], error) {
	o := outcome[R]{name: name}
	switch run.State {
	case jobs.Done:
	case jobs.Interrupted:
		o.err = fmt.Errorf("%s (run %d): %s; what it finished stays: run it again", run.Job, run.ID, run.Error)
		return o, nil
	default:
		o.err = errors.New(run.Error)
		return o, nil
	}
	if err := json.Unmarshal(run.Result, &o.report); err != nil {
		return o, fmt.Errorf("report of run %d: %w", run.ID, err)
	}
	return o, nil
}

// failedReport is the JSON of a failed set or destination.
type failedReport struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// tell prints the outcomes of a command, as a list under key in JSON, and gives the error
// of the command: failures first.
func tell[R any](a *app, key string, out []outcome[R], say func(io.Writer, R), fine func(R) bool) error {
	list, ok := []any{}, true
	var failed []error
	for _, o := range out {
		if o.err != nil {
			failed = append(failed, o.err)
			list = append(list, failedReport{o.name, webguard.MaskedText(o.err.Error())})
			continue
		}
		ok = ok && fine(o.report)
		list = append(list, o.report)
		if !a.json {
			say(a.out, o.report)
		}
	}
	if a.json {
		if err := a.print(map[string]any{key: list}); err != nil {
			return err
		}
	}
	switch {
	case len(failed) > 0:
		return errors.Join(failed...)
	case !ok:
		return part
	}
	return nil
}

func (a *app) scan() *cobra.Command {
	var named bridge.ScanArgs
	c := &cobra.Command{Use: "scan [SET...]", Short: "Look for changes now, and publish them",
		Long: `Scans the sets (default: all) and publishes the changes, through the running daemon,
or alone. It waits for a run begun after the command. Exit code 3: a scan is held,
entities failed, or the newest dump is incomplete.

With --entity or --hints only named entities are described again. An entity without
triples is deleted from the set. New dumps and retention come with the daemon's
schedules: scans alone only add to the state.

--json: {"sets":[{"name","resources","created","updated","deleted","unchanged","failed","held","truncated","triples","covered","unpublished","seconds"}]};
with "unpublished": {"triples","graphs","largest":[{"graph","triples"}]}, what the same data has in
graphs of no set, and "unknown" where it could not be counted; a failed set is {"name","error"}`,
		Example: "  rsbridge scan\n  rsbridge scan books --json\n  rsbridge scan books --entity http://example.org/book/1 --entity http://example.org/book/2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(named.Entities) > 0 && len(args) != 1 {
				return usage("--entity goes with one set: rsbridge scan SET --entity IRI")
			}
			if named.Hints && len(named.Entities) > 0 {
				return usage("--hints and --entity are two scans: give one of them")
			}
			if err := named.Check(); err != nil {
				return usage("%v", err)
			}
			if named.Hints && len(args) == 0 {
				cfg, err := bridge.Load(a.config)
				if err != nil {
					return err
				}
				if args = cfg.Hinted(); len(args) == 0 {
					return usage("no set has hints: set some of one (hints: modified, query or counts), or scan without --hints")
				}
			}
			return a.scanAction(cmd.Context(), "scan", args, named)
		}}
	c.Flags().StringArrayVar(&named.Entities, "entity", nil, "look only at this `IRI`, which may have changed (again for more)")
	c.Flags().BoolVar(&named.Hints, "hints", false, "look only at what the hints of the sets name; without SET, of all that have some")
	return c
}

func (a *app) scanAction(ctx context.Context, action string, args []string, what any) error {
	out, err := each[bridge.ScanReport](ctx, a, action, nil, args, what)
	if err != nil {
		return err
	}
	return tell(a, "sets", out, sayScan, func(r bridge.ScanReport) bool {
		return r.Held == nil && r.Failed == 0 && (r.Dump == nil || len(r.Dump.Incomplete) == 0)
	})
}

func sayDump(w io.Writer, d bridge.DumpStatus) {
	fmt.Fprintf(w, "  the state is %s%s\n", d.Path, yes(d.Unchanged, ": there is no newer one that is complete", ""))
	if d.Proof != "" {
		fmt.Fprintf(w, "  it is whole by %s\n", d.Proof)
	}
	for _, f := range d.Incomplete {
		fmt.Fprintf(w, "  passed over: %s: %s\n", f.Path, f.Why)
	}
}

// sayAccepted tells of deletions beside the accepted ones.
func sayAccepted(w io.Writer, accepted, deleted int64) {
	if accepted > 0 {
		fmt.Fprintf(w, "  %s accepted%s\n", plural(accepted, "deletion"), yes(deleted > accepted, fmt.Sprintf(", %d more within max_delete_ratio", deleted-accepted), ""))
	}
}

func sayScan(w io.Writer, r bridge.ScanReport) {
	if r.Held != nil && !r.Held.Addresses && !r.Held.Files {
		c := bridge.Candidate{}
		if r.Candidate != nil {
			c = *r.Candidate
		}
		would := fmt.Sprintf("it would create %d, update %d and delete %d of %d resources; ", c.Created, c.Updated, c.Deleted, r.Resources)
		if r.Held.Configuration || c.Created+c.Updated == 0 {
			would = "" // the reason has it
		}
		fmt.Fprintf(w, "%s: held (%s), nothing was changed: %s\n  %sif that is right: rsbridge accept %s --set\n", r.Name, r.Held.ID, r.Held.Reason, would, r.Name)
		return
	}
	if r.Finder == "hint" {
		fmt.Fprintf(w, "%s: %d resources (%d created, %d updated, %d deleted, %d unchanged of those that hints name: %s) in %.1f s\n",
			r.Name, r.Resources, r.Created, r.Updated, r.Deleted, r.Unchanged, cmp.Or(r.HintsBy(), "none"), r.Seconds)
		sayHeldSet(w, r.Name, r.Held)
		for _, f := range r.Failures {
			fmt.Fprintf(w, "  failed: %s: %s\n", f.Entity, f.Err)
		}
		return
	}
	fmt.Fprintf(w, "%s: %d resources (%d created, %d updated, %d deleted, %d unchanged) from %d triples, %d described, in %.1f s\n",
		r.Name, r.Resources, r.Created, r.Updated, r.Deleted, r.Unchanged, r.Triples, r.Covered+r.Constructed, r.Seconds)
	sayAccepted(w, r.Accepted, r.Deleted)
	if r.Missed > 0 {
		fmt.Fprintf(w, "  %s of these had been named by no hint yet\n", plural(r.Missed, "change"))
	}
	if r.Dump != nil {
		sayDump(w, *r.Dump)
	}
	if f := r.Files; f != nil {
		sayFiles(w, f)
	}
	if r.Constructed > 0 {
		fmt.Fprintln(w, "  the descriptions are made by a CONSTRUCT: what they cover of the graphs is not known")
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "  the selection leaves out %d triples\n", r.LeftOut)
	}
	sayUnpublished(w, r.Unpublished)
	if r.Own > 0 {
		fmt.Fprintf(w, "  %d triples of rsbridge's own bookkeeping are in the store and no data\n", r.Own)
	}
	sayHeldSet(w, r.Name, r.Held)
	for _, f := range r.Failures {
		fmt.Fprintf(w, "  failed: %s: %s\n", f.Entity, f.Err)
	}
}

// sayHeldSet tells the held run of a set, and the next step.
func sayHeldSet(w io.Writer, set string, h *changetrack.Held) {
	switch {
	case h == nil:
	case h.Addresses: // the reason has it
		fmt.Fprintf(w, "  held: %s\n", h.Reason)
	default:
		fmt.Fprintf(w, "  held: %s; if that is right: rsbridge accept %s --set\n", h.Reason, set)
	}
}

// sayUnpublished tells the number of triples in graphs of no set.
func sayUnpublished(w io.Writer, u *bridge.Unpublished) {
	if u.Told() {
		fmt.Fprintf(w, "  not published: %s%s\n", oneLine(u.String()), howToPublish(nil))
	}
}

// sayFiles tells the state of the files behind descriptions.
func sayFiles(w io.Writer, f *bridge.FilesReport) {
	fmt.Fprintf(w, "  %d files (%d created, %d updated, %d deleted; %d looked at, %d wait) of %d that descriptions lead to: %d are elsewhere, %d are missing, %d are failing\n",
		f.Resources, f.Created, f.Updated, f.Deleted, f.Looked, f.Waiting, f.Led, f.Elsewhere, f.Missing, f.Failing)
	for i, t := range f.Troubles {
		if i == 5 {
			fmt.Fprintf(w, "    and others\n")
			break
		}
		fmt.Fprintf(w, "    %s: %s\n", t.URL, oneLine(t.Error))
	}
}

func (a *app) sync() *cobra.Command {
	var args bridge.SyncArgs
	var until string
	c := &cobra.Command{Use: "sync [DEST...]", Short: "Make mirrors follow their sources now",
		Long: `Takes the baseline or the changes, and says why, for the named destinations or for
all. It waits for a run begun after the command. Exit code 3: resources are pending,
failed or held.

--dry-run reports the plan and writes nothing: baseline or changes, number of
resources, documents, target graph, and bytes to fetch. Patches and Change Dumps may
need fewer bytes. Exit code 0: there is a plan.

--until makes the mirror equal to the source at an earlier time, from its versions,
Change Lists and archives, or says how far they reach. The mirror stays there until
the next sync without it, and audits compare with that time. So give such a
destination no schedule, or pause it.

--json: {"destinations":[{"name","mode","why","created","updated","deleted","unchanged","failed","pending","bytes","in_sync","behind_seconds","seconds"}]};
"unselected" counts resources outside the selection, "unmapped" descriptions without a
result of map; a dry run has the expected counts (none for a selection by classes) and "plan": {"store","graph","resources","bytes","unknown","by_class","documents":[{"address","kind","at","entries","bytes"}]};
a failed destination is {"name","error"}`,
		Example: "  rsbridge sync\n  rsbridge sync --dry-run\n  rsbridge sync copy --full\n  rsbridge sync copy --until 2026-01-31T12:00:00Z",
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			if args.Until, err = untilTime(until); err != nil {
				return err
			}
			out, err := each[destination.SyncReport](cmd.Context(), a, "sync", nil, names, args)
			if err != nil {
				return err
			}
			return a.tellSyncs(out)
		}}
	c.Flags().BoolVar(&args.Full, "full", false, "take the baseline, whatever the cursor says")
	c.Flags().BoolVar(&args.DryRun, "dry-run", false, "say what would be done, and do nothing")
	c.Flags().StringVar(&until, "until", "", "make a mirror of how the source was at this `TIME`")
	return c
}

// untilTime reads --until; zero for none.
func untilTime(s string) (t time.Time, err error) {
	if s == "" {
		return t, nil
	}
	if t, err = resourcesync.ParseTime(s, true); err != nil {
		return t, usage("--until %s: it is no time like 2026-01-31T12:00:00Z", s)
	}
	return t, nil
}

// tellSyncs prints the outcomes of syncs.
func (a *app) tellSyncs(out []outcome[destination.SyncReport]) error {
	return tell(a, "destinations", out, saySync, func(r destination.SyncReport) bool {
		return r.Plan != nil || r.InSync && r.Failed+r.Pending == 0 && r.Held == ""
	})
}

// sayPlan tells the plan of a dry run.
func sayPlan(w io.Writer, r destination.SyncReport) {
	p := r.Plan
	what := map[string]string{"baseline": "would take the baseline", "incremental": "would apply changes"}[r.Mode]
	switch {
	case what == "" && p.Triples > 0:
		what = "would put the mirror right"
	case what == "":
		what = "would do nothing"
	}
	fmt.Fprintf(w, "%s: dry run, nothing was done: it %s (%s)\n", r.Name, what, r.Why)
	fetch := size(p.Bytes) + " to fetch"
	if p.Unknown > 0 {
		fetch += fmt.Sprintf(", and %d of a length that the source does not tell", p.Unknown)
	}
	have := "as many resources as the packages hold"
	if p.Resources != nil {
		have = fmt.Sprintf("%d to create, %d to update, %d to delete, %d unchanged, which makes %s", r.Created, r.Updated, r.Deleted, r.Unchanged, plural(*p.Resources, "resource"))
		if r.Moved > 0 {
			have = fmt.Sprintf("%d to get another address, ", r.Moved) + have
		}
	}
	if p.ByClass {
		have += "\n  what is of the selected classes is not known before the descriptions are fetched: fewer may come"
	}
	graph := p.Graph
	if graph == "default" {
		graph = "the default graph"
	}
	fmt.Fprintf(w, "  %s; %s\n  into %s of %s\n", have, fetch, graph, p.Store)
	for _, d := range p.Documents {
		of, more := "change", ""
		switch d.Kind {
		case "resourcedump":
			of, more = "package", ", "+size(d.Bytes)
		case "resourcelist":
			of = "resource"
		}
		if d.At != nil {
			more += ", as of " + resourcesync.FormatTime(*d.At)
		}
		fmt.Fprintf(w, "  from %s (%s%s)\n", d.Address, plural(d.Entries, of), more)
	}
	if p.Triples > 0 {
		fmt.Fprintf(w, "  %s of the mirror would be put right\n", plural(p.Triples, "triple"))
	}
	if p.Retry > 0 {
		fmt.Fprintf(w, "  %s pending or failed would be tried again\n", plural(p.Retry, "resource"))
	}
	if r.Held != "" {
		fmt.Fprintf(w, "  held: %s\n", r.Held)
	}
}

func saySync(w io.Writer, r destination.SyncReport) {
	if r.Plan != nil {
		sayPlan(w, r)
		return
	}
	fmt.Fprintf(w, "%s: %s (%s): %d created, %d updated, %d deleted, %d unchanged, %d pending, %d failed, %s fetched, in %.1f s\n",
		r.Name, r.Mode, r.Why, r.Created, r.Updated, r.Deleted, r.Unchanged, r.Pending, r.Failed, size(r.Bytes), r.Seconds)
	sayAccepted(w, r.Accepted, r.Deleted)
	if r.NotRDF > 0 {
		kept := cmp.Or(r.Store, "the mirror") + " has nothing of " + yes(r.NotRDF == 1, "it", "them")
		if r.Files != "" {
			kept = yes(r.NotRDF == 1, "its file is", "their files are") + " in " + r.Files
		}
		fmt.Fprintf(w, "  %s no RDF: %s (GET /api/v1/destinations/%s/not-rdf)\n", areNot(r.NotRDF), kept, r.Name)
	}
	if r.Unselected > 0 {
		fmt.Fprintf(w, "  %d more are outside of what is selected\n", r.Unselected)
	}
	if r.Unmapped > 0 {
		fmt.Fprintf(w, "  map makes nothing of %s, which the mirror lacks therefore (GET /api/v1/destinations/%s/differences names them)\n", plural(r.Unmapped, "description"), r.Name)
	}
	if r.MapErrors > 0 {
		fmt.Fprintf(w, "  map has an expression without a value for %s, as %s\n", plural(r.MapErrors, "description"), r.MapError)
	}
	if r.Held != "" {
		fmt.Fprintf(w, "  held: %s\n", r.Held)
	}
	if !r.InSync && r.Until == nil {
		fmt.Fprintln(w, "  the mirror is not in sync with its source")
	}
	shown := firstOf(r.Problems)
	for _, p := range shown {
		fmt.Fprintf(w, "  %s: %s: %s\n", p.State, p.Location, p.Reason)
	}
	if n := r.Pending + r.Failed - int64(len(shown)); n > 0 && len(shown) > 0 {
		fmt.Fprintf(w, "  and %d more (GET /api/v1/destinations/%s/differences names them)\n", n, r.Name)
	}
	if r.Pending > 0 {
		fmt.Fprintln(w, "  what is pending is tried again by itself, and at once by the next sync; what the mirror holds of it is the last good version")
	}
}

// shownAtMost bounds the lines of one kind in a report for people; --json has more.
const shownAtMost = 20

func firstOf[T any](all []T) []T { return all[:min(len(all), shownAtMost)] }

func areNot(n int64) string {
	if n == 1 {
		return "1 resource is"
	}
	return fmt.Sprintf("%d resources are", n)
}

func (a *app) audit() *cobra.Command {
	var args bridge.AuditArgs
	c := &cobra.Command{Use: "audit [DEST...]", Short: "Prove mirrors equal to their sources",
		Long: `Compares the mirror's real content with the source's present state, for the named
destinations or for all.

--depth inventory compares the source's inventory, or its lists, with the record.
--depth store (default) also reads every description from the mirror. --depth origin
also fetches every representation again, from the source and from its own source
(via) if that host is allowed. An inventory equal to the record spares the lists.

  EQUAL       the mirror is equal to the source now
  DIFFERENT   resources are missing, extra or different
  NOT PROVEN  no difference, but the source does not tell its present state, or the
              mirror is gone at depth inventory; the report has the reason, and the
              time of the last proof

Without --repair the mirror stays as it is: only the result is recorded in the state.
A batch cut off by a crash is finished before.

Exit code 3 for DIFFERENT and NOT PROVEN. If the source does not answer, depth store
compares the mirror with the record, and --repair restores the record; the other
depths fail.

--json: {"destinations":[{"name","verdict","equal","resources","missing","extra","different","rewritten","repaired","depth","bytes","seconds"}]};
"verdict": "equal", "different" or "not proven"
"differences": [{"entity","location","graph","kind","detail"}]; "graph": of foreign triples
"source_error": no answer, unpublished changes, or an open gap
"mirror_error": the mirror is gone, changed, or at another write; depth store reads it
"source_older": the list is older than the mirror; later changes were not compared
"proven_until": the source's time of the proof
"proven_since": changes of before were lost, which was accepted
"mended": differences repaired by --repair; "held": a repair waits for accept
a failed destination: {"name","error"}`,
		Example: "  rsbridge audit\n  rsbridge audit copy --repair",
		RunE: func(cmd *cobra.Command, names []string) error {
			if !slices.Contains([]string{"", "inventory", "store", "origin"}, args.Depth) {
				return usage("--depth %s: it is inventory, store or origin", args.Depth)
			}
			out, err := each[destination.AuditReport](cmd.Context(), a, "audit", nil, names, args)
			if err != nil {
				return err
			}
			return tell(a, "destinations", out, sayAudit, func(r destination.AuditReport) bool { return r.Equal })
		}}
	c.Flags().BoolVar(&args.Repair, "repair", false, "make the mirror equal")
	c.Flags().StringVar(&args.Depth, "depth", "", "inventory, store (default) or origin")
	return c
}

func sayAudit(w io.Writer, r destination.AuditReport) {
	fmt.Fprintf(w, "%s: %s: %d resources, %d missing, %d extra, %d different, %d rewritten by the store, %d repaired (depth %s, %.1f s)\n",
		r.Name, strings.ToUpper(r.Verdict), r.Resources, r.Missing, r.Extra, r.Different, r.Rewritten, r.Repaired, r.Depth, r.Seconds)
	if r.Inventory != "" {
		fmt.Fprintf(w, "  the source's inventory and the records have the digest %s\n", r.Inventory)
	}
	if r.Held != "" && r.Held != r.SourceError {
		fmt.Fprintf(w, "  held: %s\n", oneLine(r.Held))
	}
	if r.SourceOlder {
		fmt.Fprintln(w, "  the source's list is older than the mirror: what was mirrored of later changes was not compared with it")
	}
	if r.SourceError != "" {
		fmt.Fprintf(w, "  the source does not tell all that it has now: %s\n", oneLine(r.SourceError))
	}
	if r.MirrorError != "" {
		fmt.Fprintf(w, "  the mirror is not read at depth inventory: %s\n", oneLine(r.MirrorError))
	}
	sayProven(w, r.ProvenUntil, r.ProvenSince)
	if r.OtherGraphs > 0 {
		fmt.Fprintf(w, "  not compared, since this mirror does not own them: %s of the store\n", plural(r.OtherGraphs, "other graph"))
	}
	if r.Origins > 0 {
		fmt.Fprintf(w, "  compared with the first source (via) too: %s\n", plural(r.Origins, "resource"))
	}
	if r.Unasked > 0 {
		fmt.Fprintf(w, "  not compared with the first source (via), whose host is not allowed: %s\n", plural(r.Unasked, "resource"))
	}
	sayMended(w, r)
	rewritten := int64(0)
	shown := firstOf(r.Named)
	for _, d := range shown {
		if d.Kind == "rewritten" {
			rewritten++
		}
		fmt.Fprintf(w, "  %s: %s: %s\n", d.Kind, cmp.Or(d.Entity, d.Location), oneLine(d.Detail))
	}
	if n := r.Missing + r.Extra + r.Different - (int64(len(shown)) - rewritten); n > 0 {
		fmt.Fprintf(w, "  and %d more that are missing, extra or different (GET /api/v1/destinations/%s/differences names them)\n", n, r.Name)
	}
	if n := r.Rewritten - rewritten; n > 0 {
		fmt.Fprintf(w, "  and %d more that the store rewrites\n", n)
	}
}

// sayProven tells the times of a proof, in audits and in the status.
func sayProven(w io.Writer, until, since *time.Time) {
	if until != nil {
		fmt.Fprintf(w, "  equal to what the source was at %s\n", resourcesync.FormatTime(*until))
	}
	if since != nil {
		fmt.Fprintf(w, "  proven of what has changed since %s: changes of before were lost, which was accepted, and the source has no inventory\n", resourcesync.FormatTime(*since))
	}
}

// sayMended tells the repairs of an audit.
func sayMended(w io.Writer, r destination.AuditReport) {
	shown := firstOf(r.Mended)
	for _, d := range shown {
		fmt.Fprintf(w, "  repaired: %s: %s: %s\n", d.Kind, cmp.Or(d.Entity, d.Location), oneLine(d.Detail))
	}
	if n := r.Repaired - int64(len(shown)); n > 0 {
		fmt.Fprintf(w, "  and %d more that were repaired\n", n)
	}
}

func (a *app) changes() *cobra.Command {
	var since string
	var follow bool
	c := &cobra.Command{Use: "changes SET", Short: "Print the log, one change a line", Args: cobra.ExactArgs(1),
		Long: `Prints the changes of a set, oldest first: sequence, time, change, entity, and "hint"
for changes found by hints. --since takes a sequence (digits alone) or a time like
2026-01-31T12:00:00Z, itself excluded. A point beyond the kept log is an error.

--json: one object a line: {"sequence","time","change","entity","location","before","after","finder"}; finder is
scan, hint or files; for a file "kind" is "file", "location" its address, "entity" empty`,
		Example: "  rsbridge changes books --since 1200\n  rsbridge changes books --follow --json",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if since != "" {
				if _, err := strconv.ParseUint(since, 10, 64); err != nil {
					if _, err := resourcesync.ParseTime(since, true); err != nil {
						return usage("--since %s: it is neither a sequence nor a time like 2026-01-31T12:00:00Z", since)
					}
				}
			}
			s, end, err := a.setSession(cmd.Context(), args[0], a.reading)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, end()) }()
			line := json.NewEncoder(a.out)
			line.SetEscapeHTML(false)
			for {
				page, err := s.Changes(cmd.Context(), args[0], since)
				if err != nil {
					return err
				}
				for _, c := range page.Changes {
					if a.json {
						err = line.Encode(c)
					} else {
						what := c.Entity
						if c.Kind == "file" {
							what = c.Location
						}
						_, err = fmt.Fprintf(a.out, "%d\t%s\t%s\t%s%s\n", c.Sequence, resourcesync.FormatTime(c.Time), c.Change, what, yes(c.Finder == "hint", "\thint", ""))
					}
					if err != nil {
						return err
					}
				}
				since = fmt.Sprint(page.Next)
				if page.More {
					continue
				}
				if !follow {
					return nil
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(time.Second):
				}
			}
		}}
	c.Flags().StringVar(&since, "since", "", "only what comes after this `SEQUENCE or TIME`")
	c.Flags().BoolVar(&follow, "follow", false, "go on as changes come")
	return c
}

func (a *app) show() *cobra.Command {
	var at, as string
	var of kindFlags
	c := &cobra.Command{Use: "show NAME ENTITY", Short: "Print the description of an entity", Args: cobra.ExactArgs(2),
		Long: `Prints the description of an entity, now or --at a time. From a set it comes in the
format of the set, from a destination in N-Triples, or --as another format. Earlier
states of a destination need keep: versions. For the address of a file it prints the
file's record, as JSON.`,
		Example: "  rsbridge show books http://example.org/book/1 --as turtle\n  rsbridge show copy http://example.org/book/1 --at 2026-01-31T12:00:00Z",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var f rdfres.Format
			if as != "" {
				var ok bool
				if f, ok = rdfres.FormatByMediaType(as); !ok {
					f = rdfres.Format(as)
				}
				if !slices.Contains([]rdfres.Format{rdfres.JSONLD, rdfres.NTriples, rdfres.Turtle, rdfres.RDFXML}, f) {
					return usage("--as %s: it is jsonld, ntriples, turtle, rdfxml, or the media type of one", as)
				}
			}
			var t time.Time
			if at != "" {
				if t, err = resourcesync.ParseTime(at, true); err != nil {
					return usage("--at %s: it is no time like 2026-01-31T12:00:00Z", at)
				}
			}
			cfg, err := bridge.Load(a.config)
			if err != nil {
				return err
			}
			kind, err := of.choose(args[0], "configuration", slices.Sorted(maps.Keys(cfg.Sets)), slices.Sorted(maps.Keys(cfg.Destinations)), nil)
			if err != nil {
				return err
			}
			s, _, end, err := a.reading(cmd.Context())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, end()) }()
			describe := s.Description
			if kind == aDestination {
				describe = s.MirrorDescription
			}
			data, err := describe(cmd.Context(), args[0], args[1], t, f)
			if err != nil {
				return err
			}
			_, err = a.out.Write(data)
			return err
		}}
	c.Flags().StringVar(&at, "at", "", "as it was at this `TIME`")
	c.Flags().StringVar(&as, "as", "", "jsonld, ntriples, turtle or rdfxml")
	of.flags(c)
	return c
}

// sooner is the first of two times, nil for neither.
func sooner(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// dueIn is a time to come; one that has come is now.
func dueIn(t *time.Time) string {
	if t != nil && time.Until(*t) < time.Second/2 {
		return "now"
	}
	return ago(t)
}

func ago(t *time.Time) string {
	if t == nil {
		return "-"
	}
	d := time.Since(*t).Round(time.Second)
	if d < 0 {
		return "in " + (-d).String()
	}
	return d.String() + " ago"
}

func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
