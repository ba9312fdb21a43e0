package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsbridge/rsbridge/internal/jobs"
)

// past reads the ended runs of jobs, and remembers them until another run has ended.
type past struct {
	runner *jobs.Runner

	mu   sync.Mutex // guards the field below
	jobs map[string]*told
}

// told is what the ended runs of a job tell.
type told struct {
	newest  uint64    // ended run
	last    *jobs.Run // the newest one with an end of its own
	changed *Changes  // the newest one with changes
	failed  *jobs.Run // the newest one, if it failed
	times   int       // failures in a row
	since   time.Time // when the first of them failed
	good    *jobs.Run // the newest one that ended well
	seen    *jobs.Run // the newest one that ended well and was not held: readers see what it saw

	differs      int       // audits in a row that found differences
	differsSince time.Time // when the first of them had ended
	settled      bool      // an older audit did not
}

// Changes of a run.
type Changes struct {
	Created, Updated, Deleted int64
	At                        time.Time
	Run                       uint64
}

// of reads the runs of a job, newest first.
func (p *past) of(ctx context.Context, job string) (*told, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := &told{}
	for run, err := range p.runner.Runs(ctx, job) {
		if err != nil {
			return nil, err
		}
		if !run.Over() {
			continue
		}
		if out.newest == 0 {
			if known := p.jobs[job]; known != nil && known.newest == run.ID {
				return known, nil
			}
			out.newest = run.ID
		}
		if !out.add(run) {
			break
		}
	}
	if p.jobs == nil {
		p.jobs = map[string]*told{}
	}
	p.jobs[job] = out
	return out, nil
}

// add takes the next older run; false: the older ones tell nothing new.
func (t *told) add(run jobs.Run) bool {
	if run.State != jobs.Done && run.State != jobs.Failed {
		return true // it was stopped
	}
	did := resultOf(run)
	if did.Paused || did.Plan != nil {
		return true
	}
	if t.last == nil {
		t.last = &run
	}
	if run.State == jobs.Failed && t.good == nil {
		if t.failed == nil {
			t.failed = &run
		}
		t.times++
		t.since = run.Ended
	}
	if run.State == jobs.Done && t.good == nil {
		t.good = &run
	}
	if run.State == jobs.Done && t.seen == nil && !did.held() {
		t.seen = &run
	}
	if did.Verdict != "" && !t.settled {
		if t.settled = did.Verdict != "different"; !t.settled {
			t.differs, t.differsSince = t.differs+1, run.Ended
		}
	}
	if did.Created+did.Updated+did.Deleted > 0 && t.changed == nil && did.changes {
		t.changed = &Changes{did.Created, did.Updated, did.Deleted, run.Ended, run.ID}
	}
	return t.good == nil || t.changed == nil || t.seen == nil
}

// result has the common parts of the results of runs.
type result struct {
	Created int64           `json:"created"`
	Updated int64           `json:"updated"`
	Deleted int64           `json:"deleted"`
	Paused  bool            `json:"paused"`
	Plan    json.RawMessage `json:"plan"`
	Verdict string          `json:"verdict"`
	InSync  *bool           `json:"in_sync"`
	Failed  int64           `json:"failed"`
	Pending int64           `json:"pending"`
	Held    json.RawMessage `json:"held"`
	Mode    string          `json:"mode"`

	changes bool // it is of a job that changes something
}

func resultOf(run jobs.Run) (out result) {
	if len(run.Result) > 0 {
		_ = json.Unmarshal(run.Result, &out) // of another kind: it has none of these parts
	}
	switch kindOf(run.Job) {
	case "scan", "hint", "sync":
		out.changes = true
	}
	return out
}

func (r result) held() bool {
	return len(r.Held) > 0 && string(r.Held) != "null" && string(r.Held) != `""`
}

func kindOf(job string) string { kind, _, _ := strings.Cut(job, ":"); return kind }

func subjectOf(job string) string { _, name, _ := strings.Cut(job, ":"); return name }

// jobWords are the kinds of jobs in words, with the place of the name.
var jobWords = map[string]string{
	"scan": "Scan of %", "hint": "Look at named entities of %", "dump": "Resource Dump of %", "changedump": "Change Dump of %", "list": "Resource List of %",
	"archive": "Archives of %", "rebase": "New addresses of %", "retain": "Retention of %", "sync": "Sync of %", "audit": "Audit of %", "freshness": "Freshness of %",
	"forget-set": "Forget set %", "move-set": "Rename set %", "forget-destination": "Forget destination %", "move-destination": "Move destination %", "verify": "Verification of the %",
}

func jobName(job string) string {
	return strings.Replace(cmp.Or(jobWords[kindOf(job)], kindOf(job)+" of %"), "%", subjectOf(job), 1)
}

// stageWords are the stages of runs in words.
var stageWords = map[string]string{
	"read": "read the store", "group": "group blank nodes", "describe": "describe entities", "compare": "compare", "publish": "publish", "dump": "write the dump", "changedump": "write the Change Dump",
	"files": "look at files", "list": "read the list", "parts": "read the parts of the list", "manifests": "read what the packages hold", "packages": "read dump packages", "resources": "write resources", "changes": "read changes", "retry": "try pending resources again",
	"confirm": "confirm", "inventory": "compare inventories", "subjects": "compare subjects", "mirror": "read the mirror", "ownership": "look who owns the graph", "remove": "remove resources",
	"archive": "write archives", "records": "read records",
}

func stageName(stage string) string { return cmp.Or(stageWords[stage], stage, "begins") }

// unit is of the counts of a stage with another one than its name says, "" for none.
func unit(job, stage string) string {
	if kindOf(job) == "scan" && stage == "describe" {
		return " triples"
	}
	return ""
}

// Running is a run under way, or a queued one.
type Running struct {
	jobs.Run
	What, Link, Stage string
	Unit              string  // of Total
	At, Of            int     // stage At of Of; Of 0: not known
	Part              float64 // of the whole, 0 to 1; below 0: not known
	Percent           int
	Rate, Left        string // "" while not known
	Elapsed           float64
	Retry             string // the next attempt of a failed request
	Why               string
}

// running tells how far a run is, by the last one that ended well.
func running(run jobs.Run, before *jobs.Run, now time.Time) Running {
	out := Running{Run: run, What: jobName(run.Job), Link: linkOf(run.Subject), Part: -1}
	if run.State == jobs.Queued {
		return out
	}
	out.Unit = unit(run.Job, run.Stage)
	out.Stage, out.Elapsed = stageName(run.Stage), now.Sub(run.Started).Seconds()
	if w := run.Waiting; w != nil {
		out.Retry, out.Why = "Attempt "+number(w.Attempt)+" "+ago(w.At, now)+".", unanswered(w.Why)
		if w.At.Before(now) {
			out.Retry = "Attempt " + number(w.Attempt) + " is under way."
		}
	}
	out.At, out.Of = place(run, before)
	spent := 0.0
	if !run.Began.IsZero() {
		spent = now.Sub(run.Began).Seconds()
	}
	part, left := -1.0, -1.0
	if run.Done > 0 && spent > 0.5 {
		rate := float64(run.Done) / spent
		out.Rate = number(int64(rate+0.5)) + "/s"
		if rate < 10 {
			out.Rate = strings.TrimSuffix(seconds1(rate), " s") + "/s"
		}
		if run.Total > run.Done {
			left = float64(run.Total-run.Done) / rate
		}
	}
	if run.Total > 0 {
		part = min(float64(run.Done)/float64(run.Total), 1)
	}
	if before == nil || len(before.Stages) == 0 {
		out.Part = part
		if left >= 0 {
			out.Left = seconds(left) + " for this stage"
		}
		out.Percent = int(100 * max(out.Part, 0))
		return out
	}
	// What is done and what is to come, by the stages of the last run: no stage counts twice.
	at := -1 // the furthest stage
	has := func(name string) bool {
		return slices.ContainsFunc(run.Stages, func(s jobs.Stage) bool { return s.Name == name })
	}
	for i, s := range before.Stages {
		if has(s.Name) || s.Name == run.Stage {
			at = i
		}
	}
	all, done, later, found := 0.0, 0.0, 0.0, false
	for i, s := range before.Stages {
		weight := max(s.Seconds, 0.02)
		all += weight
		switch {
		case i > at:
			later += s.Seconds
		case i < at || has(s.Name):
			done += weight
		default:
			found = true
			if part < 0 {
				part = min(spent/weight, 0.95)
			}
			if left < 0 {
				left = max(weight-spent, 0)
			}
			done += weight * part
		}
	}
	out.Part = min(done/all, 1)
	out.Percent = int(100 * out.Part)
	switch {
	case left < 0:
	case found:
		out.Left = seconds(left+later) + " left"
	default: // a stage that the last run did not have, or not here
		out.Left = seconds(left) + " for this stage"
	}
	return out
}

// place is the number of the present stage of a run and the number of stages, 0 where it is not known: by its plan, else
// by the last run.
func place(run jobs.Run, before *jobs.Run) (at, of int) {
	switch {
	case run.At > 0:
		return run.At, len(run.Plan)
	case len(run.Plan) > 0 || before == nil || run.Stage == "":
		return 0, 0
	}
	var ahead []string
	for _, s := range before.Stages {
		ahead = append(ahead, s.Name)
	}
	enter := func(stage string) {
		if i := slices.Index(ahead, stage); i >= 0 {
			at, ahead = at+i+1, ahead[i+1:]
		} else { // the last run did not have it, or not here
			at++
		}
	}
	for _, s := range run.Stages {
		if s.Name != run.Stage {
			enter(s.Name)
		}
	}
	enter(run.Stage)
	return at, at + len(ahead)
}

func seconds1(v float64) string {
	return strings.TrimRight(strings.TrimRight(formatTenth(v), "0"), ".") + " s"
}

// linkOf is the page of the subject of a run, "" for the state's.
func linkOf(subject string) string {
	kind, name, _ := strings.Cut(subject, ":")
	if kind == "set" || kind == "destination" {
		return kind + "s/" + name
	}
	return ""
}

// outcome says in a few words how a run ended.
func outcome(run jobs.Run) (text string, t tone) {
	did := resultOf(run)
	switch run.State {
	case jobs.Failed:
		return sentence(run.Error), toneBad
	case jobs.Cancelled, jobs.Interrupted:
		return run.State, toneWait
	case jobs.Queued, jobs.Running:
		return run.State, toneBusy
	}
	switch {
	case did.Paused:
		return "paused", toneIdle
	case did.held():
		return "held", toneWait
	case did.Plan != nil:
		return "dry run", toneIdle
	case did.Verdict != "":
		if did.Verdict == "equal" {
			return "equal", toneGood
		}
		return did.Verdict, toneWait
	case did.Pending+did.Failed > 0:
		return plural(did.Pending+did.Failed, "resource pending or failed", "resources pending or failed"), toneWait
	case did.InSync != nil && !*did.InSync:
		return "out of sync", toneWait
	}
	return "done", toneGood
}
