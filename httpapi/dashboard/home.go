package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/history"
	"github.com/rsbridge/rsbridge/destination"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// tone is how a state looks: it chooses the colour and the sign of the page.
type tone string

const (
	toneGood tone = "good"
	toneBusy tone = "busy"
	toneIdle tone = "idle"
	toneWait tone = "wait"
	toneBad  tone = "bad"
)

// weight orders tones, the worst last.
var weight = []tone{toneIdle, toneGood, toneBusy, toneWait, toneBad}

func worse(a, b tone) tone {
	if slices.Index(weight, b) > slices.Index(weight, a) {
		return b
	}
	return a
}

// Head is the top of each page.
type Head struct {
	Worst    tone
	Needs    int // sets and mirrors in need of a person
	All      int
	Sentence string
	Now      time.Time
}

// Row is a set or mirror in one line.
type Row struct {
	Key, Kind, Name, Link string
	Below                 bool   // a mirror below its set
	From                  string // store of a set, or place of a mirror
	State                 string
	Tone                  tone
	Why                   string
	Spark                 Spark
	Changed               *Changes
	Last, Next            *time.Time
	NextSays              string
	Resources             int64
	Proof                 string
	ProofTone             tone
	ProofAt               *time.Time
	Age                   string // of what a reader of it sees
	Behind                string // how far, or the next attempt of a failed request
}

// Trouble needs a person.
type Trouble struct {
	Key, Kind, Name, Link string
	State                 string
	Tone                  tone
	Since                 time.Time // zero: not known
	Times                 int
	Cause, Detail         string
	Actions               []Action

	failed string // the kind of its failed jobs, the first of several
}

// Action is a link, or a form.
type Action struct {
	Label, Path string
	Form        bool
	Main        bool // it is the first thing to do
	Asks        string
}

// Home is the start page.
type Home struct {
	Troubles []Trouble
	Running  []Running
	Rows     []Row
	First    *First
	Runs     []Ended
	Now      time.Time
}

// Ended is a run in a list.
type Ended struct {
	jobs.Run
	What    string
	Outcome string
	Tone    tone
	Took    string
	Changes *Changes
}

// view is the whole bridge, read once for a page.
type view struct {
	sets   []bridge.SetStatus
	dests  []bridge.DestinationStatus
	active []jobs.Run
	now    time.Time
	lacks  map[string]uint64 // changes of sets here that a mirror does not have, before it asks; by its name
}

func (d *Dashboard) view(ctx context.Context) (v view, err error) {
	v.now = bridge.Now(d.b)
	if v.sets, err = d.b.SetStatuses(ctx); err != nil {
		return v, err
	}
	v.dests, err = d.b.DestinationStatuses(ctx)
	v.active, v.lacks = d.b.Runner().Active(), map[string]uint64{}
	for _, s := range v.dests {
		v.lacks[s.Name] = v.missing(d.ownSet(s), s)
	}
	return v, err
}

func (d *Dashboard) head(ctx context.Context) (h Head, err error) {
	v, err := d.view(ctx)
	if err != nil {
		return h, err
	}
	troubles, err := d.troubles(ctx, v)
	if err != nil {
		return h, err
	}
	return v.head(troubles), nil
}

func (v view) head(troubles []Trouble) Head {
	h := Head{Worst: toneIdle, Needs: len(troubles), All: len(v.sets) + len(v.dests), Now: v.now}
	waits := false
	for _, s := range v.sets {
		_, t := setState(s)
		h.Worst, waits = worse(h.Worst, t), waits || s.Waiting != nil
	}
	for _, s := range v.dests {
		_, t := destinationState(s)
		if v.lacks[s.Name] > 0 && t == toneGood {
			t = toneWait
		}
		h.Worst, waits = worse(h.Worst, t), waits || s.Waiting != nil
	}
	for _, t := range troubles {
		h.Worst = worse(h.Worst, t.Tone)
		if t.Kind == aDeclaration {
			h.All++
		}
	}
	switch {
	case h.All == 0:
		h.Sentence = "Nothing is configured yet"
	case h.Needs == 1 && h.All == 1:
		h.Sentence = "It needs you"
	case h.Needs > 0:
		verb := " need you"
		if h.Needs == 1 {
			verb = " needs you"
		}
		h.Sentence = fmt.Sprintf("%d of %d%s", h.Needs, h.All, verb)
	case h.Worst == toneBusy:
		h.Sentence = "All is well, and " + plural(int64(v.atWork()), "run is", "runs are") + " under way"
	case waits:
		h.Sentence = "Nothing needs you yet; a request is tried again"
	case h.Worst == toneWait:
		h.Sentence = "Nothing needs you; not all is in sync"
	case h.Worst == toneIdle:
		h.Sentence = "Nothing has run yet"
	case h.All == 1:
		h.Sentence = "All is well"
	default:
		h.Sentence = fmt.Sprintf("All %d are well", h.All)
	}
	return h
}

func (v view) atWork() (n int) {
	for _, run := range v.active {
		if run.State == jobs.Running {
			n++
		}
	}
	return max(n, 1)
}

// setState is the state of a set in words.
func setState(s bridge.SetStatus) (string, tone) {
	if s.State == bridge.StateOK {
		return "in sync", toneGood
	}
	return otherState(s.State, s.Waiting)
}

// destinationState is that of a mirror.
func destinationState(s bridge.DestinationStatus) (string, tone) {
	if s.State == bridge.StateOK {
		if !s.InSync || s.BehindChanges != nil && *s.BehindChanges > 0 || s.BehindSeconds != nil && *s.BehindSeconds > 0 {
			return "behind", toneWait
		}
		return "in sync", toneGood
	}
	if s.State == bridge.StateFailing && s.LastError == "" && differs(s) {
		return "differs", toneBad
	}
	return otherState(s.State, s.Waiting)
}

// differs tells whether the last audit found differences.
func differs(s bridge.DestinationStatus) bool {
	return s.LastAudit != nil && s.LastAudit.Verdict == "different"
}

func otherState(s bridge.State, waiting *jobs.Waiting) (string, tone) {
	switch s {
	case bridge.StateNever:
		return "never run", toneIdle
	case bridge.StateRunning:
		if waiting != nil {
			return "running", toneWait
		}
		return "running", toneBusy
	case bridge.StateHeld, bridge.StateRemoved:
		return string(s), toneWait
	case bridge.StatePaused:
		return "paused", toneIdle
	}
	return string(s), toneBad
}

// needs tells whether a person must do something.
func needs(s bridge.State) bool {
	switch s {
	case bridge.StateFailing, bridge.StateUnreachable, bridge.StateHeld, bridge.StateRemoved:
		return true
	}
	return false
}

var (
	setJobs         = []string{"scan:", "hint:", "dump:", "changedump:", "list:", "archive:", "retain:"}
	destinationJobs = []string{"sync:", "audit:"}
)

// aDeclaration is the kind of a declaration of the API that is left out.
const aDeclaration = "declaration"

// troubles are those of all sets, mirrors and declarations, the worst first.
func (d *Dashboard) troubles(ctx context.Context, v view) (out []Trouble, err error) {
	for _, s := range v.sets {
		if !needs(s.State) {
			continue
		}
		t := Trouble{Key: "set-" + s.Name, Kind: "set", Name: s.Name, Link: "sets/" + s.Name, Cause: s.Why}
		t.State, t.Tone = setState(s)
		if err := d.explain(ctx, &t, setJobs); err != nil {
			return nil, err
		}
		scan := Action{Label: "Scan now", Path: t.Link + "/scan", Form: true}
		switch {
		case s.State == bridge.StateRemoved:
		case s.Held != nil && s.Held.ID == "renamed":
		case s.Held != nil:
			t.Since, t.Times = s.Held.Time, 0
			t.Actions = append(t.Actions, Action{Label: held(s.Held.Deletions), Path: t.Link + "/held", Main: true}, scan)
		default:
			t.Actions = append(t.Actions, scan)
		}
		out = append(out, t)
	}
	for _, s := range v.dests {
		t := Trouble{Key: "destination-" + s.Name, Kind: "mirror", Name: s.Name, Link: "destinations/" + s.Name, Cause: s.Why}
		t.State, t.Tone = destinationState(s)
		sync := Action{Label: "Sync now", Path: t.Link + "/sync", Form: true}
		differs := differs(s) && s.State != bridge.StateRunning
		if !needs(s.State) && !differs {
			continue
		}
		if err := d.explain(ctx, &t, destinationJobs); err != nil {
			return nil, err
		}
		switch {
		case s.State == bridge.StateRemoved:
		case s.Decision:
			t.Times = 0
			if h, err := d.b.DestinationHeld(ctx, s.Name, "", 0); err == nil {
				t.Since = h.Time
				t.Actions = append(t.Actions, Action{Label: held(h.Deletions), Path: t.Link + "/held", Main: true})
			}
			t.Actions = append(t.Actions, sync)
		case differs && t.Times == 0:
			a := s.LastAudit
			t.State, t.Tone, t.Since = "differs", toneBad, a.Time
			if told, err := d.past.of(ctx, "audit:"+s.Name); err != nil {
				return nil, err
			} else if told.differs > 0 {
				t.Since, t.Times = told.differsSince, told.differs
			}
			t.Cause = "The last audit found " + found(a) + "."
			t.Actions = []Action{{Label: "See the differences", Path: t.Link + "#differences", Main: true}, {Label: "Repair", Path: t.Link + "/repair", Form: true, Asks: "Make the mirror equal to its source?"}}
		default:
			if t.failed != "audit:" {
				t.Actions = append(t.Actions, sync)
			} else {
				t.Actions = append(t.Actions, Action{Label: "Audit", Path: t.Link + "/audit", Form: true})
			}
			if s.Pending > 0 {
				t.Actions = append(t.Actions, Action{Label: "See what is pending", Path: t.Link + "#differences"})
			}
		}
		out = append(out, t)
	}
	left, _ := d.b.Config().LeftOut()
	for _, f := range left {
		out = append(out, Trouble{Key: f.Key, Kind: aDeclaration, Name: f.Key, State: string(bridge.StateFailing), Tone: toneBad, Cause: "It is left out: " + sentence(f.Message)})
	}
	slices.SortStableFunc(out, func(a, b Trouble) int {
		return cmp.Compare(slices.Index(weight, b.Tone), slices.Index(weight, a.Tone))
	})
	return out, nil
}

// found are the findings of an audit.
func found(a *destination.AuditReport) string {
	var parts []string
	for _, f := range []struct {
		n    int64
		what string
	}{{a.Missing, "missing"}, {a.Extra, "extra"}, {a.Different, "different"}} {
		if f.n > 0 {
			parts = append(parts, number(f.n)+" "+f.what)
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "differences") + " of " + plural(a.Resources, "resource", "resources")
}

func held(n int64) string {
	if n == 0 {
		return "See what is held"
	}
	return "See " + plural(n, "deletion", "deletions")
}

// explain fills in since when, how often, and the detail that the cause leaves out.
func (d *Dashboard) explain(ctx context.Context, t *Trouble, kinds []string) error {
	for _, kind := range kinds {
		told, err := d.past.of(ctx, kind+t.Name)
		if err != nil {
			return err
		}
		if told.failed == nil {
			continue
		}
		t.failed = cmp.Or(t.failed, kind)
		if t.Times == 0 || told.since.Before(t.Since) {
			t.Since, t.Times, t.Detail = told.since, told.times, told.failed.Error
		}
	}
	whole := t.Cause
	if t.Cause = plain(whole); t.State == string(bridge.StateUnreachable) {
		t.Cause = unanswered(whole)
	}
	if t.Detail == "" || strings.Join(strings.Fields(t.Detail), " ") == whole {
		t.Detail = whole
	}
	if sentence(t.Detail) == t.Cause {
		t.Detail = ""
	}
	return nil
}

// plain is the beginning of a cause, as a sentence.
func plain(cause string) string {
	if m := refused.FindStringSubmatch(cause); m != nil {
		return "The store " + m[1] + " refuses: " + sentence(hintAtEnd.ReplaceAllString(m[2], "")) + hinted(cause)
	}
	if first, _, cut := strings.Cut(cause, "; "); cut && len(first) > 40 {
		cause = first
	}
	return sentence(clipped(220, cause))
}

// refused is the end of an error by an answer of a store, such as 403.
var refused = regexp.MustCompile(`\bstore (\S+) at \S+: (4\d\d .+)$`)

var hintAtEnd = regexp.MustCompile(`\s*\(([^()]*)\)[.\s]*$`)

// hinted is the hint at the end of an error as a sentence, with a blank before it.
func hinted(cause string) string {
	if m := hintAtEnd.FindStringSubmatch(cause); m != nil {
		return " " + sentence(m[1])
	}
	return ""
}

// reasons are the usual ends of requests without an answer, in words.
var reasons = []struct{ text, says string }{
	{"connection refused", "the connection was refused"}, {"no such host", "its name is not known"}, {"connection reset", "the connection broke"}, {"EOF", "the connection broke"},
	{"no route to host", "no way leads there"}, {"timeout", "the time was over"}, {"deadline exceeded", "the time was over"}, {"within", "the time was over"}, {"certificate", "its certificate is not trusted"},
}

// unanswered says in plain words that a server does not answer, with the hint at the end of the error.
func unanswered(cause string) string {
	who := "The store or source"
	if m := regexp.MustCompile(`\bstore ([^\s:;]+)`).FindStringSubmatch(cause); m != nil {
		who = "The store " + m[1]
	} else if m := regexp.MustCompile(`https?://[^\s:/]+(:\d+)?`).FindString(cause); m != "" {
		who = "The server " + m
	}
	out := who + " does not answer"
	for _, r := range reasons {
		if strings.Contains(cause, r.text) {
			out += ": " + r.says
			break
		}
	}
	return out + "." + hinted(cause)
}

// ownSet is the set of this bridge that a mirror follows, "" for that of another server.
func (d *Dashboard) ownSet(s bridge.DestinationStatus) string {
	cfg := d.b.Config()
	c, known := cfg.Destinations[s.Name]
	base := cfg.Public.BaseURL
	if !known || base == "" || c.Source != base && !strings.HasPrefix(c.Source, strings.TrimRight(base, "/")+"/") {
		return ""
	}
	sets := d.b.Sets()
	if c.Set == "" && len(sets) == 1 {
		return sets[0]
	}
	for _, name := range sets {
		if name == c.Set || c.Set == "" && strings.Contains(c.Source, "/"+name+"/") {
			return name
		}
	}
	return ""
}

// looked is when a set last looked at its store with success. What a held scan saw, nobody sees.
func (d *Dashboard) looked(ctx context.Context, s bridge.SetStatus) (time.Time, error) {
	var last time.Time
	if s.LastScan != nil && s.Held == nil {
		last = *s.LastScan
	}
	for _, kind := range []string{"scan:", "hint:"} {
		t, err := d.past.of(ctx, kind+s.Name)
		if err != nil {
			return last, err
		}
		if t.seen != nil && t.seen.Started.After(last) {
			last = t.seen.Started
		}
	}
	return last, nil
}

// rows are the sets with the mirrors of each, then the mirrors of other sources.
func (d *Dashboard) rows(ctx context.Context, v view) (out []Row, err error) {
	below := map[string][]Row{}
	var others []Row
	ages := map[string]float64{}
	for _, s := range v.sets {
		looked, err := d.looked(ctx, s)
		if err != nil {
			return nil, err
		}
		if !looked.IsZero() {
			ages[s.Name] = v.now.Sub(looked).Seconds()
		}
	}
	for _, s := range v.dests {
		row, err := d.destinationRow(ctx, s, v.now)
		if err != nil {
			return nil, err
		}
		set := d.ownSet(s)
		if n := v.lacks[s.Name]; n > 0 && row.Tone == toneGood {
			row.State, row.Tone, row.Behind = "behind", toneWait, plural(int64(n), "change", "changes")+" behind"
		}
		if s.BehindSeconds != nil {
			age := *s.BehindSeconds
			if own, known := ages[set]; known {
				age = max(age, own)
			}
			if s.LastPoll != nil && (s.Live == "" || s.Live == "polling") {
				age = max(age, v.now.Sub(*s.LastPoll).Seconds())
			}
			row.Age = seconds(age)
		}
		if set == "" {
			others = append(others, row)
			continue
		}
		row.Below = true
		below[set] = append(below[set], row)
	}
	for _, s := range v.sets {
		row, err := d.setRow(ctx, s, v.now)
		if err != nil {
			return nil, err
		}
		if age, known := ages[s.Name]; known {
			row.Age = seconds(age)
		}
		out = append(append(out, row), below[s.Name]...)
		for _, m := range s.Mirrors {
			row := Row{Key: "remote-" + s.Name + "-" + m.Key, Kind: "remote mirror", Name: m.Name, Below: true, From: "reports its position", State: "in sync", Tone: toneGood, Last: &m.LastReport}
			if !m.InSync || m.BehindChanges != nil && *m.BehindChanges > 0 {
				row.State, row.Tone = "behind", toneWait
			}
			if m.BehindSeconds != nil {
				row.Age = seconds(max(*m.BehindSeconds, ages[s.Name]))
				if *m.BehindSeconds > 0 {
					row.Behind = seconds(*m.BehindSeconds) + " behind"
				}
			}
			out = append(out, row)
		}
	}
	return append(out, others...), nil
}

// missing are the changes of a set that a mirror of it does not have yet, known here before the mirror asks.
func (v view) missing(set string, s bridge.DestinationStatus) uint64 {
	for _, own := range v.sets {
		if own.Name == set && s.Sequence != nil && *s.Sequence < own.Sequence && own.Generation > 0 {
			return own.Sequence - *s.Sequence
		}
	}
	return 0
}

func (d *Dashboard) setRow(ctx context.Context, s bridge.SetStatus, now time.Time) (Row, error) {
	row := Row{Key: "set-" + s.Name, Kind: "set", Name: s.Name, Link: "sets/" + s.Name, Why: s.Why, Resources: s.Resources, Last: s.LastScan, Next: s.NextScan}
	if c, known := d.b.Config().Sets[s.Name]; known {
		if row.From = c.Store; len(c.Dumps) > 0 {
			row.From = "dump files"
		}
	}
	if s.NextHint != nil && (row.Next == nil || s.NextHint.Before(*row.Next)) {
		row.Next = s.NextHint
	}
	if s.Paused {
		row.Next, row.NextSays = nil, "when resumed"
	}
	row.State, row.Tone = setState(s)
	row.Behind = again(s.Waiting)
	if row.Next == nil && !s.Paused && s.State != bridge.StateRemoved {
		row.NextSays = "no schedule"
	}
	if s.Triples > 0 && s.Constructed == 0 {
		row.Proof, row.ProofTone, row.ProofAt = fmt.Sprintf("%d %% described", 100*s.Covered/s.Triples), toneGood, s.LastScan
		if s.Covered < s.Triples {
			row.ProofTone = toneIdle
		}
		if s.Held.OfScan() { // these numbers are of the scan before
			at, err := d.looked(ctx, s)
			if err != nil {
				return row, err
			}
			row.Proof, row.ProofTone, row.ProofAt = row.Proof+", before what is held", toneIdle, nil
			if !at.IsZero() {
				row.ProofAt = &at
			}
		}
	}
	return row, d.ofRuns(ctx, &row, []string{"scan:", "hint:"}, "set:", now)
}

// again tells of the next attempt of a failed request.
func again(w *jobs.Waiting) string {
	if w == nil {
		return ""
	}
	return "tries again, attempt " + number(w.Attempt)
}

func (d *Dashboard) destinationRow(ctx context.Context, s bridge.DestinationStatus, now time.Time) (Row, error) {
	row := Row{Key: "destination-" + s.Name, Kind: "mirror", Name: s.Name, Link: "destinations/" + s.Name, From: s.Store, Why: s.Why, Resources: s.Resources, Last: s.LastSync, Next: s.NextSync}
	row.State, row.Tone = destinationState(s)
	if row.Next == nil && s.State != bridge.StateRemoved {
		row.NextSays = "no schedule"
	}
	if s.Paused {
		row.Next, row.NextSays = nil, "when resumed"
	}
	if row.Behind = again(s.Waiting); row.Behind == "" && s.BehindSeconds != nil && *s.BehindSeconds > 0 {
		row.Behind = seconds(*s.BehindSeconds) + " behind"
	}
	switch a := s.LastAudit; {
	case a == nil:
		row.Proof, row.ProofTone = "no audit yet", toneIdle
	default:
		row.Proof, row.ProofAt, row.ProofTone = a.Verdict, &a.Time, toneWait
		switch a.Verdict {
		case "equal":
			row.ProofTone = toneGood
		case "different":
			row.ProofTone = toneBad
		}
	}
	return row, d.ofRuns(ctx, &row, []string{"sync:"}, "destination:", now)
}

// ofRuns fills in the last change, the last run and the day of a row.
func (d *Dashboard) ofRuns(ctx context.Context, row *Row, kinds []string, subject string, now time.Time) error {
	var last *time.Time
	busy := false
	for _, kind := range kinds {
		t, err := d.past.of(ctx, kind+row.Name)
		if err != nil {
			return err
		}
		if t.changed != nil && (row.Changed == nil || row.Changed.At.Before(t.changed.At)) {
			row.Changed = t.changed
		}
		if t.last != nil && (last == nil || last.Before(t.last.Ended)) {
			last = &t.last.Ended
		}
		_, is := d.b.Runner().Busy(kind + row.Name)
		busy = busy || is
	}
	if last != nil || busy { // what a run under way did is no last run yet
		row.Last = last
	}
	samples, err := d.samples(ctx, subject+row.Name, now.Add(-24*time.Hour))
	row.Spark = spark(samples, now)
	return err
}

func (d *Dashboard) samples(ctx context.Context, subject string, after time.Time) ([]history.Sample, error) {
	return bridge.Samples(d.b).Samples(ctx, subject, after)
}

func (d *Dashboard) runningNow(ctx context.Context, active []jobs.Run, now time.Time) (out []Running, err error) {
	for _, run := range active {
		if kindOf(run.Job) == "freshness" {
			continue
		}
		t, err := d.past.of(ctx, run.Job)
		if err != nil {
			return nil, err
		}
		out = append(out, running(run, t.good, now))
	}
	return out, nil
}

func (d *Dashboard) home(r *http.Request) (*page, error) {
	ctx := r.Context()
	v, err := d.view(ctx)
	if err != nil {
		return nil, err
	}
	h := Home{Now: v.now}
	if h.Troubles, err = d.troubles(ctx, v); err != nil {
		return nil, err
	}
	if h.Running, err = d.runningNow(ctx, v.active, v.now); err != nil {
		return nil, err
	}
	if h.Rows, err = d.rows(ctx, v); err != nil {
		return nil, err
	}
	h.First = d.first(v)
	if h.Runs, err = d.ended(ctx, "", "", 0, 8, 400); err != nil {
		return nil, err
	}
	return &page{name: "home", Title: "Overview", Body: h, Head: v.head(h.Troubles)}, nil
}

// ended are the newest ended runs of a job or of all, in a state or any, before a run; at most so
// many, out of so many that are looked at.
func (d *Dashboard) ended(ctx context.Context, job, state string, before uint64, most, looked int) (out []Ended, err error) {
	for run, err := range d.b.Runner().Runs(ctx, job) {
		if err != nil {
			return nil, err
		}
		if looked--; looked < 0 || len(out) == most {
			break
		}
		if !run.Over() && state == "" || before > 0 && run.ID >= before || state != "" && run.State != state {
			continue
		}
		if job == "" && (kindOf(run.Job) == "freshness" || resultOf(run).Paused) {
			continue
		}
		out = append(out, endedRun(run))
	}
	return out, nil
}

func endedRun(run jobs.Run) Ended {
	e := Ended{Run: run, What: jobName(run.Job)}
	e.Outcome, e.Tone = outcome(run)
	if !run.Started.IsZero() && !run.Ended.IsZero() {
		e.Took = seconds(run.Ended.Sub(run.Started).Seconds())
	}
	if did := resultOf(run); did.changes && did.Plan == nil && run.State == jobs.Done {
		e.Changes = &Changes{did.Created, did.Updated, did.Deleted, run.Ended, run.ID}
	}
	return e
}
