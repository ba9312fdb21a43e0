package main

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/push"
)

func (a *app) status() *cobra.Command {
	var watch bool
	c := &cobra.Command{Use: "status", Short: "Show sets, destinations, lag, runs, and decisions to make", Args: cobra.NoArgs,
		Long: `Asks the running daemon, or reads the state itself. Exit code 0: all is well; 3:
something is held, failing, out of sync, unreachable, paused or was never run; 1: the
status could not be read.

The state of a set or destination is one word:
  never        no run has ended well yet
  running      a run is under way; all was well before it, or its server answers again
  ok           the last run of every job ended well, and nothing is left to do
  held         a person must decide: rsbridge accept
  failing      a run failed, or left something undone
  paused       the schedule of a destination rests
  unreachable  a run failed because a server did not answer, and none has since
  removed      it is in the state and not in the configuration: rsbridge forget

in_sync: the last poll succeeded, no newer change is known of, and nothing is pending.
behind_seconds: age of the oldest change not yet applied. behind_changes: the number of
changes not yet applied. Both count from the source's log, as of the last poll and the
notifications since; null: unknown, as while the source is down. live: websub, websocket,
events or polling. held of a set: null, or the reason to wait for rsbridge accept.

--json: {"sets":[{"name","state","why","resources","sequence","last_change","last_scan","next_scan","held"}],
"destinations":[{"name","state","why","in_sync","behind_seconds","behind_changes","live","resources","sequence","last_poll","last_sync","next_sync","last_audit","pending","last_error"}],
"left_out":[{"file","key","value","message"}]: declarations of the API with faults, without effect
"disk":{"records","published","temporary","stores"}: bytes, of embedded stores by name
"backup":{"at","program"}}: the last backup of the state; null: none is known of
"why": the reason of any state but ok; "held": a decision to make; "problems": some pending or
failed resources; "until": the time of a mirror made by sync --until; "proven_until" and
"proven_since": as in the report of an audit`,
		Example: "  rsbridge status --watch",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if watch {
				return watchStatus(cmd.Context(), a)
			}
			st, err := nowStatus(cmd.Context(), a)
			if err != nil {
				return err
			}
			return a.tellStatus(st)
		}}
	c.Flags().BoolVar(&watch, "watch", false, "go on: on a terminal a screen, drawn again every two seconds; else a line for each set, destination and reporting mirror when it has changed; with --json a document a line. Ctrl-C ends it")
	return c
}

// tellStatus prints a status; it is part when something in it is not well.
func (a *app) tellStatus(st bridge.Status) (err error) {
	if a.json {
		err = a.print(st)
	} else {
		err = sayStatus(a.out, st)
	}
	if err == nil && len(st.Unwell()) > 0 {
		return part
	}
	return err
}

// described is how much of a set's graphs is described, as the last complete scan counted it.
func described(s bridge.SetStatus) string {
	text := fmt.Sprintf("%d of %d triples", s.Covered, s.Triples)
	if s.Constructed > 0 {
		text = fmt.Sprintf("%d triples, made from %d", s.Constructed, s.Triples)
	}
	if s.Counted < s.Sequence || s.Held.OfScan() { // a held scan counts for nothing
		text += fmt.Sprintf(" at change %d", s.Counted)
	}
	return text
}

func sayStatus(out io.Writer, st bridge.Status) error {
	w := new(strings.Builder)
	if len(st.Sets) > 0 {
		fmt.Fprintln(w, "SET\tSTATE\tRESOURCES\tSEQUENCE\tLAST CHANGE\tLAST SCAN\tNEXT\tDESCRIBED\t")
	}
	for _, s := range st.Sets {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t\n", s.Name, s.State, s.Resources, s.Sequence, ago(s.LastChange), ago(s.LastScan), yes(s.Paused, "paused", dueIn(sooner(s.NextScan, s.NextHint))), described(s))
		held := ""
		if s.Held != nil {
			held = s.Held.Reason
		}
		sayWhy(w, s.Why, held, s.LastError)
		sayWaiting(w, s.State, s.Waiting)
		if s.Dump != nil {
			sayDump(w, *s.Dump)
		}
		sayUnpublished(w, s.Unpublished)
		if f := s.Files; f != nil {
			fmt.Fprintf(w, "  files: %d, of %d that descriptions lead to (%d elsewhere, %d missing, %d failing, %d wait)\n", f.Resources, f.Led, f.Elsewhere, f.Missing, f.Failing, f.Waiting)
		}
		if r := s.Retention; r != nil && r.Begins != nil {
			fmt.Fprintf(w, "  changes are kept for %s: those after %d, of %s; the next look is %s\n", r.Changes, r.After, ago(r.Begins), dueIn(r.NextRun))
		}
		sayListeners(w, s)
		sayHeldSet(w, s.Name, s.Held)
		if s.LastError != "" {
			fmt.Fprintf(w, "  last error: %s\n", oneLine(s.LastError))
		}
	}
	if len(st.Destinations) > 0 {
		fmt.Fprintln(w, "DESTINATION\tSTATE\tRESOURCES\tIN SYNC\tBEHIND\tLAST SYNC\tNEXT\tPENDING\tLAST AUDIT\t")
	}
	for _, d := range st.Destinations {
		behind, audit := behindBy(d.BehindSeconds, d.BehindChanges), "never"
		if d.LastAudit != nil {
			audit = d.LastAudit.Verdict + yes(d.LastAudit.Repaired > 0, fmt.Sprintf(" after %s", plural(d.LastAudit.Repaired, "repair")), "") + ", " + ago(&d.LastAudit.Time)
		}
		if d.Fault != "" {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t%s\t-\t%s\t-\t-\t\n  cannot be opened: %s\n", d.Name, d.State, behind, dueIn(d.NextSync), oneLine(d.Fault))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t\n", d.Name, d.State, d.Resources, yes(d.InSync, "yes", "no"), behind, ago(d.LastSync), yes(d.Paused, "paused", dueIn(d.NextSync)), d.Pending, audit)
		if len(d.Problems) == 0 || !strings.Contains(d.Why, d.Problems[0].Location) {
			sayWhy(w, d.Why, d.Held, d.LastError)
		}
		sayWaiting(w, d.State, d.Waiting)
		if d.Held != "" && !strings.Contains(d.LastError, d.Held) {
			fmt.Fprintf(w, "  %s%s\n", yes(d.State == bridge.StateHeld, "held: ", ""), oneLine(d.Held))
		}
		sayProven(w, d.ProvenUntil, d.ProvenSince)
		if d.Live != "" && d.Live != "polling" {
			fmt.Fprintf(w, "  hears of changes by %s\n", d.Live)
		}
		if d.ReportKey != "" {
			fmt.Fprintf(w, "  reports its position with the key %s\n", d.ReportKey)
		}
		for _, address := range d.Absent {
			fmt.Fprintf(w, "  the source names %s and does not have it\n", address)
		}
		if d.NotRDF > 0 {
			fmt.Fprintf(w, "  %d of them are no RDF\n", d.NotRDF)
		}
		if d.Unmapped > 0 {
			fmt.Fprintf(w, "  map makes nothing of %d of them (GET /api/v1/destinations/%s/differences names them)\n", d.Unmapped, d.Name)
		}
		if d.Unselected > 0 {
			fmt.Fprintf(w, "  %d more of the source are outside of what is selected\n", d.Unselected)
		}
		for _, p := range d.Problems {
			fmt.Fprintf(w, "  %s: %s: %s\n", p.State, p.Location, oneLine(p.Reason))
		}
		if n := d.Pending - int64(len(d.Problems)); n > 0 && len(d.Problems) > 0 {
			fmt.Fprintf(w, "  and %d more (GET /api/v1/destinations/%s/differences names them)\n", n, d.Name)
		}
		if d.LastError != "" {
			fmt.Fprintf(w, "  last error: %s\n", oneLine(d.LastError))
		}
	}
	for _, f := range st.LeftOut {
		fmt.Fprintf(w, "a declaration of the API is left out: %s\n", oneLine(f.String()))
	}
	fmt.Fprintf(w, "disk: records %s, published %s, temporary %s", size(st.Disk.Records), size(st.Disk.Published), size(st.Disk.Temporary))
	for _, name := range slices.Sorted(maps.Keys(st.Disk.Stores)) {
		fmt.Fprintf(w, ", store %s %s", name, size(st.Disk.Stores[name]))
	}
	fmt.Fprintf(w, "\nlast backup: %s\n", yes(st.Backup == nil, "none is known of", ago(st.BackupAt())))
	return aligned(out, w.String())
}

// behindBy is the lag of a mirror.
func behindBy(seconds *float64, changes *uint64) string {
	var parts []string
	if seconds != nil {
		parts = append(parts, fmt.Sprintf("%.0f s", *seconds))
	}
	if changes != nil && *changes > 0 {
		parts = append(parts, plural(int64(*changes), "change"))
	}
	return cmp.Or(strings.Join(parts, ", "), "unknown")
}

// shownMirrors is how many mirrors of a set are shown; the API has all.
const shownMirrors = 10

// sayListeners tells who hears of the changes of a set, and how far its mirrors are behind: those
// first that are most so, or of which nothing is known.
func sayListeners(w io.Writer, s bridge.SetStatus) {
	var parts []string
	for _, x := range []struct {
		n    int64
		what string
	}{{s.Listeners.WebSub, "WebSub subscription"}, {s.Listeners.WebSocket, "socket"}, {s.Listeners.Events, "stream"}} {
		if x.n > 0 {
			parts = append(parts, plural(x.n, x.what))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "  heard by %s\n", strings.Join(parts, ", "))
	}
	known := func(m push.Mirror) int {
		if m.BehindChanges == nil {
			return 0
		}
		return 1
	}
	worst := slices.SortedStableFunc(slices.Values(s.Mirrors), func(a, b push.Mirror) int {
		if c := cmp.Compare(known(a), known(b)); c != 0 || known(a) == 0 {
			return c
		}
		return cmp.Compare(*b.BehindChanges, *a.BehindChanges)
	})
	for _, m := range worst[:min(len(worst), shownMirrors)] {
		fmt.Fprintf(w, "  mirror %s (key %.8s): behind %s; reported %s\n", m.Name, m.Key, behindBy(m.BehindSeconds, m.BehindChanges), ago(&m.LastReport))
	}
	if n := len(worst) - shownMirrors; n > 0 {
		fmt.Fprintf(w, "  and %d more mirrors (GET /api/v1/sets/%s/mirrors names them)\n", n, s.Name)
	}
}

// sayWhy prints the reason of a state, unless a line of the held or the last error has it.
func sayWhy(w io.Writer, why string, others ...string) {
	for _, other := range others {
		if why == oneLine(other) {
			return
		}
	}
	if why != "" {
		fmt.Fprintf(w, "  %s\n", why)
	}
}

// sayWaiting tells of the next attempt of a failed request; the reason of a running one says it.
func sayWaiting(w io.Writer, state bridge.State, next *jobs.Waiting) {
	if next != nil && state != bridge.StateRunning {
		fmt.Fprintf(w, "  a run tries again, attempt %d\n", next.Attempt)
	}
}

// aligned writes lines with tabs in columns; those without stand between them as they are.
func aligned(out io.Writer, text string) error {
	var rows strings.Builder
	w := tabwriter.NewWriter(&rows, 0, 4, 2, ' ', 0)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "\t") {
			io.WriteString(w, line)
		}
	}
	w.Flush()
	next, stop := iter.Pull(strings.Lines(rows.String()))
	defer stop()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "\t") {
			line, _ = next()
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return nil
}
