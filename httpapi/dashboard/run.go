package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// Run is the page of a run.
type Run struct {
	Ended
	Running *Running
	Over    bool
	Link    string
	Of      string // set or mirror
	OfName  string
	Stages  []Stage
	Counts  []Fact
	Lines   []jobs.Line
	Actions []Action
	Now     time.Time
}

// Stage is a stage of a run.
type Stage struct {
	Name, Done, Rate, Took string
	Percent                int
	Present                bool
}

func (d *Dashboard) run(r *http.Request) (*page, error) {
	ctx := r.Context()
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, notFound(r.PathValue("id") + " is no number of a run.")
	}
	run, err := d.b.Runner().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	p := Run{Ended: endedRun(run), Link: linkOf(run.Subject), Now: bridge.Now(d.b), Over: run.Over()}
	if kind, name, _ := strings.Cut(run.Subject, ":"); kind == "destination" {
		p.Of, p.OfName = "mirror", name
	} else {
		p.Of, p.OfName = kind, name
	}
	if !p.Over {
		t, err := d.past.of(ctx, run.Job)
		if err != nil {
			return nil, err
		}
		now := running(run, t.good, p.Now)
		p.Running = &now
	}
	p.Stages, p.Counts = stages(run, p.Now), counts(run.Result)
	if p.Lines, err = d.b.Runner().Lines(ctx, id); err != nil {
		return nil, err
	}
	return &page{name: "run", Title: "Run " + r.PathValue("id") + ": " + p.What, Body: p}, nil
}

// stages are those of a run, the present one last.
func stages(run jobs.Run, now time.Time) (out []Stage) {
	line := func(s jobs.Stage) Stage {
		l := Stage{Name: stageName(s.Name), Took: seconds(s.Seconds)}
		if s.Done > 0 {
			l.Done = number(s.Done)
			if s.Seconds >= 0.1 {
				l.Rate = number(int64(float64(s.Done)/s.Seconds)) + "/s"
			}
		}
		if s.Total > 0 {
			l.Done += " of " + number(s.Total) + unit(run.Job, s.Name)
			l.Percent = int(100 * min(s.Done, s.Total) / s.Total)
		}
		return l
	}
	for _, s := range run.Stages {
		if s.Name != run.Stage || run.Over() {
			out = append(out, line(s))
		}
	}
	if !run.Over() && !run.Began.IsZero() {
		l := line(jobs.Stage{Name: run.Stage, Done: run.Done, Total: run.Total, Seconds: now.Sub(run.Began).Seconds()})
		l.Present = true
		out = append(out, l)
	}
	return out
}

// counts are the plain values of a result, in the order of the report.
func counts(raw json.RawMessage) (out []Fact) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		var value any
		if err != nil || dec.Decode(&value) != nil {
			return out
		}
		f := Fact{Name: cmp.Or(resultWords[key.(string)], strings.ReplaceAll(key.(string), "_", " "))}
		switch v := value.(type) {
		case string:
			f.Value = v
		case bool:
			f.Value = map[bool]string{true: "yes", false: "no"}[v]
		case json.Number:
			f.Value = number(v.String())
			switch n, _ := v.Float64(); { // 0 is no better than a wrong number
			case key == "bytes":
				f.Value = bytesOf(int64(n))
			case strings.HasSuffix(key.(string), "seconds"):
				f.Value = seconds(n)
			}
		default:
			continue
		}
		if f.Value == "0" && !slices.Contains(always, key.(string)) {
			continue
		}
		if f.Value != "" && key != "name" && key != "seconds" { // both stand above
			out = append(out, f)
		}
	}
	return out
}

// resultWords are values of a result in words; others have the name of the report.
var resultWords = map[string]string{"finder": "found by", "covered": "triples described", "way": "read by", "sequence": "change number", "durable_seconds": "made durable in"}

// always are the counts that are told when they are 0 too.
var always = []string{"resources", "created", "updated", "deleted", "failed", "pending", "missing", "extra", "different"}

// Runs is the page of all runs.
type Runs struct {
	Running    []Running
	Runs       []Ended
	Job, State string
	Jobs       []string
	States     []string
	Older      string
	Now        time.Time
}

const runsPage = 50

func (d *Dashboard) runs(r *http.Request) (*page, error) {
	ctx, q := r.Context(), r.URL.Query()
	p := Runs{Job: q.Get("job"), State: q.Get("state"), Now: bridge.Now(d.b), States: []string{jobs.Done, jobs.Failed, jobs.Cancelled, jobs.Interrupted}}
	if !slices.Contains(p.States, p.State) {
		p.State = ""
	}
	for _, j := range d.b.Runner().Jobs() {
		p.Jobs = append(p.Jobs, j.Name)
	}
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64) // without a number it is the newest page
	var err error
	if before == 0 {
		if p.Running, err = d.runningNow(ctx, d.b.Runner().Active(), p.Now); err != nil {
			return nil, err
		}
	}
	if p.Runs, err = d.ended(ctx, p.Job, p.State, before, runsPage, 20_000); err != nil {
		return nil, err
	}
	if n := len(p.Runs); n == runsPage {
		older := url.Values{"before": {strconv.FormatUint(p.Runs[n-1].ID, 10)}}
		if p.Job != "" {
			older.Set("job", p.Job)
		}
		if p.State != "" {
			older.Set("state", p.State)
		}
		p.Older = "?" + older.Encode()
	}
	return &page{name: "runs", Title: "Runs", Body: p}, nil
}
