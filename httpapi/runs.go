package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
)

// begin starts work: 202 with the run. If a run of the same job is under way, it answers 409 with
// that run; with ?queue=true it queues a run for after it. touch begins a scan of what it names.
func (a *api) begin(action, job string) func(c *gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		name, args, err := a.order(c, action)
		if err != nil {
			return nil, err
		}
		named, _ := args.(bridge.ScanArgs)
		kind, begun := job, action
		if action == "touch" {
			begun = "scan"
		}
		if named.Hints {
			kind = "hint"
		}
		a.starting.Lock()
		defer a.starting.Unlock()
		// A request for named entities is for these entities, not for the run under way.
		if run, busy := a.b.Runner().Busy(kind + ":" + name); busy && c.Query("queue") != "true" && len(named.Entities) == 0 {
			p := fail(http.StatusConflict, "run "+strconv.FormatUint(run.ID, 10)+" of "+run.Job+" is under way", "wait for it, or ask with ?queue=true for one that starts after it")
			p.Run = &run
			c.Header("Location", runAddress(run))
			return nil, p
		}
		run, _, err := a.b.Begin(c.Request.Context(), begun, name, "api", args)
		if err != nil {
			return nil, err
		}
		c.Header("Location", runAddress(run))
		return run, nil
	}
}

// order reads the order of a POST: its set or destination, and its arguments.
func (a *api) order(c *gin.Context, action string) (name string, args any, err error) {
	if action == "verify" {
		args, err = arguments(c, new(bridge.VerifyArgs))
		return "state", args, err
	}
	find := a.anyDestinationName
	if slices.Contains(setActions, action) {
		find = a.setName
	}
	if action == "forget-set" || action == "move-set" { // a former set is not there: Begin tells of it
		name = c.Param("name")
	} else if name, err = find(c); err != nil {
		return "", nil, err
	}
	switch action {
	case "scan":
		want := new(bridge.ScanArgs)
		if args, err = arguments(c, want); err == nil && args != nil {
			args = *want
			err = want.Check()
		}
	case "touch":
		want := new(TouchArgs)
		if _, err = arguments(c, want); err == nil {
			named := bridge.ScanArgs{Entities: append([]string{}, want.Entities...)} // without any, it is no full scan
			args, err = named, named.Check()
		}
	case "accept", "let-go":
		want := new(bridge.AcceptArgs)
		_, err = arguments(c, want)
		args = *want
	case "sync":
		args, err = arguments(c, new(bridge.SyncArgs))
	case "audit":
		want := new(bridge.AuditArgs)
		if args, err = arguments(c, want); err == nil && !slices.Contains(depths, want.Depth) {
			err = fail(http.StatusBadRequest, "depth "+strconv.Quote(want.Depth)+" is none of inventory, store, origin", "")
		}
	case "forget-set", "forget-destination":
		want := new(bridge.ForgetArgs)
		_, err = arguments(c, want)
		args = *want
	case "move-set", "move-destination":
		want := new(bridge.MoveArgs)
		if _, err = arguments(c, want); err == nil && want.To == "" {
			err = fail(http.StatusBadRequest, "the body does not say where to", `{"to":"NAME"}`)
		} else if err == nil {
			err = checkName(want.To)
		}
		args = *want
	default:
		_, err = arguments(c, new(no))
	}
	return name, args, err
}

// TouchArgs name entities that may have changed.
type TouchArgs struct {
	Entities []string `json:"entities"`
}

// setActions are those on a set; the others are on a destination.
var setActions = []string{"scan", "touch", "accept", "rebase", "forget-set", "move-set"}

var depths = []string{"", "inventory", "store", "origin"}

const runsPath = "/api/v1/runs"

func runAddress(r jobs.Run) string { return runsPath + "/" + strconv.FormatUint(r.ID, 10) }

// Job is a job and its schedule.
type Job struct {
	Name     string    `json:"name"`
	Subject  string    `json:"subject"`
	Schedule string    `json:"schedule"`
	Next     time.Time `json:"next,omitzero"`
	Running  *jobs.Run `json:"running,omitempty"`
}

func (a *api) jobs(*gin.Context) (any, error) {
	r, out := a.b.Runner(), []Job{}
	for _, j := range r.Jobs() {
		line := Job{Name: j.Name, Subject: j.Subject, Schedule: j.Schedule, Next: r.Next(j.Name).UTC()}
		if run, busy := r.Busy(j.Name); busy {
			line.Running = &run
		}
		out = append(out, line)
	}
	return out, nil
}

// Runs is a page of runs. Next is the value of before for the next page, 0 at the end.
type Runs struct {
	Runs []jobs.Run `json:"runs"`
	Next uint64     `json:"next"`
}

func (a *api) runs(c *gin.Context) (any, error) {
	before, most, err := page(c)
	if err != nil {
		return nil, err
	}
	state, out := c.Query("state"), Runs{Runs: []jobs.Run{}}
	for run, err := range a.b.Runner().Runs(c.Request.Context(), c.Query("job")) {
		if err != nil {
			return nil, err
		}
		if state != "" && run.State != state || before > 0 && run.ID >= before {
			continue
		}
		if len(out.Runs) == most {
			out.Next = out.Runs[most-1].ID
			break
		}
		out.Runs = append(out.Runs, run)
	}
	return out, nil
}

func runID(c *gin.Context) (uint64, error) {
	id, err := strconv.ParseUint(c.Param("id"), 10, 64)
	if err != nil {
		return 0, fail(http.StatusBadRequest, c.Param("id")+" is no number of a run", "GET /api/v1/runs lists them")
	}
	return id, nil
}

// until is the context of a long request: it ends with the request and when the server stops.
func (a *api) until(c *gin.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.Request.Context())
	stop := context.AfterFunc(a.stopping, cancel)
	return ctx, func() { stop(); cancel() }
}

// run answers a run; with ?wait=true once it has ended.
func (a *api) run(c *gin.Context) (any, error) {
	id, err := runID(c)
	if err != nil {
		return nil, err
	}
	if c.Query("wait") != "true" {
		return a.b.Runner().Get(c.Request.Context(), id)
	}
	return a.b.Runner().Wait(c.Request.Context(), id) // the runs end before the server
}

// runLog answers the lines of the log about a run.
func (a *api) runLog(c *gin.Context) (any, error) {
	id, err := runID(c)
	if err != nil {
		return nil, err
	}
	return a.b.Runner().Lines(c.Request.Context(), id)
}

func (a *api) cancel(c *gin.Context) (any, error) {
	id, err := runID(c)
	if err != nil {
		return nil, err
	}
	if _, err := arguments(c, new(no)); err != nil {
		return nil, err
	}
	run, err := a.b.Runner().Get(c.Request.Context(), id)
	if err != nil {
		return nil, err
	}
	if err := a.b.Runner().Cancel(id); errors.Is(err, jobs.ErrUnknown) {
		p := fail(http.StatusConflict, "run "+c.Param("id")+" has ended", "")
		p.Run = &run
		return nil, p
	} else if err != nil {
		return nil, err
	}
	c.Header("Location", runAddress(run))
	return a.b.Runner().Get(c.Request.Context(), id)
}

// heartbeat is the time between comments in a quiet stream. Proxies keep the stream open, and the
// server notices a lost reader.
const heartbeat = 20 * time.Second

func (a *api) events(c *gin.Context) (any, error) {
	ctx, cancel := a.until(c)
	defer cancel()
	runs := a.b.Runner().Watch(ctx)
	c.Header("Content-Type", "text/event-stream")
	c.Header("Cache-Control", "no-store")
	c.Header("X-Accel-Buffering", "no")
	c.Writer.WriteHeaderNow()
	if c.Request.Method == http.MethodHead {
		return nil, nil
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	send := func(text string) bool {
		_, err := c.Writer.WriteString(text)
		c.Writer.Flush()
		return err == nil
	}
	if !send(": every change of a run follows\n\n") {
		return nil, nil
	}
	for {
		select {
		case run, open := <-runs:
			if !open {
				return nil, nil
			}
			raw, err := json.Marshal(run)
			if err != nil {
				return nil, err
			}
			if !send("event: run\nid: " + strconv.FormatUint(run.ID, 10) + "\ndata: " + string(raw) + "\n\n") {
				return nil, nil // the reader is gone
			}
		case <-beat.C:
			if !send(": \n\n") {
				return nil, nil
			}
		}
	}
}
