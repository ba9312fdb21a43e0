package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/webclient"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Client speaks to the admin API of a bridge.
type Client struct {
	Base  string // http://127.0.0.1:8081
	Token string
	HTTP  *http.Client // nil: one of its own
}

// NewClient makes a client for host:port.
func NewClient(addr, token string) *Client {
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	return &Client{Base: strings.TrimRight(addr, "/"), Token: token, HTTP: &http.Client{Transport: webclient.Named(http.DefaultTransport, "")}}
}

// call sends a request and decodes its answer into out; problems come back as *Problem.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	res, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		return nil
	}
	if raw, ok := out.(*rawBody); ok {
		*raw, err = io.ReadAll(res.Body)
		return err
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("%s %s: the answer of the running bridge: %w", method, path, err)
	}
	return nil
}

// Status tells how everything stands.
func (c *Client) Status(ctx context.Context) (st bridge.Status, err error) {
	return st, c.call(ctx, http.MethodGet, "/status", nil, &st)
}

// SetHeld is a page of the held changes of a set, DestinationHeld of a mirror. Without any, the
// error is a *Problem of the status 404.
func (c *Client) SetHeld(ctx context.Context, name, after string, limit int) (*bridge.Held, error) {
	return c.held(ctx, "/sets/", name, after, limit)
}

// DestinationHeld is SetHeld of a mirror.
func (c *Client) DestinationHeld(ctx context.Context, name, after string, limit int) (*bridge.Held, error) {
	return c.held(ctx, "/destinations/", name, after, limit)
}

func (c *Client) held(ctx context.Context, of, name, after string, limit int) (*bridge.Held, error) {
	h := new(bridge.Held)
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if after != "" {
		q.Set("after", after)
	}
	return h, c.call(ctx, http.MethodGet, of+url.PathEscape(name)+"/held?"+q.Encode(), nil, h)
}

// Do begins work (scan, accept, rebase, sync, audit, let-go, verify) and waits for the end of its
// run. The run starts after the call. progress may be nil. The end of ctx detaches; the run goes
// on.
func (c *Client) Do(ctx context.Context, action, name string, args any, progress func(jobs.Run)) (jobs.Run, error) {
	kind := "destinations"
	if slices.Contains(setActions, action) {
		kind = "sets"
	}
	for _, word := range []string{"forget", "move"} {
		if strings.HasPrefix(action, word+"-") {
			action = word
		}
	}
	if action == "let-go" { // called for a destination as for a set
		action = "accept"
	}
	path := "/" + kind + "/" + url.PathEscape(name) + "/" + action
	if action == "verify" {
		path = "/verify"
	}
	var run jobs.Run
	if err := c.call(ctx, http.MethodPost, path+"?queue=true", args, &run); err != nil {
		return run, err
	}
	if run.Over() {
		return run, nil
	}
	if progress != nil {
		progress(run)
	}
	last, err := c.Wait(ctx, run.ID, progress)
	if last.ID == 0 {
		last = run
	}
	return last, err
}

// Wait waits for the end of a run. After an error the run is as it was last seen.
func (c *Client) Wait(ctx context.Context, id uint64, progress func(jobs.Run)) (run jobs.Run, err error) {
	path := "/runs/" + strconv.FormatUint(id, 10)
	for run.State == "" || !run.Over() {
		wait, cancel := context.WithTimeout(ctx, time.Second)
		var next jobs.Run
		err := c.call(wait, http.MethodGet, path+"?wait=true", nil, &next)
		timedOut := wait.Err() != nil && ctx.Err() == nil
		cancel()
		if timedOut {
			err = c.call(ctx, http.MethodGet, path, nil, &next)
		}
		if err != nil {
			return run, err
		}
		if run = next; progress != nil && !run.Over() {
			progress(run)
		}
	}
	return run, nil
}

// Changes gives a piece of a set's log; since is a sequence, a time or "".
func (c *Client) Changes(ctx context.Context, set, since string) (out bridge.Changes, err error) {
	return out, c.call(ctx, http.MethodGet, "/sets/"+url.PathEscape(set)+"/changes?limit=10000&since="+url.QueryEscape(since), nil, &out)
}

// Diff compares an entity at two points of the log.
func (c *Client) Diff(ctx context.Context, set, entity, from, to string) (out bridge.Diff, err error) {
	q := url.Values{"entity": {entity}}
	for key, v := range map[string]string{"from": from, "to": to} {
		if v != "" {
			q.Set(key, v)
		}
	}
	return out, c.call(ctx, http.MethodGet, "/sets/"+url.PathEscape(set)+"/diff?"+q.Encode(), nil, &out)
}

// Description gives the representation of an entity now, or at a nonzero time, in format f; "" is
// the stored format.
func (c *Client) Description(ctx context.Context, set, entity string, at time.Time, f rdfres.Format) ([]byte, error) {
	return c.describe(ctx, "/sets/"+url.PathEscape(set), entity, at, f)
}

// MirrorDescription is the same for an entity of a mirror; "" is N-Triples.
func (c *Client) MirrorDescription(ctx context.Context, destination, entity string, at time.Time, f rdfres.Format) ([]byte, error) {
	return c.describe(ctx, "/destinations/"+url.PathEscape(destination), entity, at, f)
}

func (c *Client) describe(ctx context.Context, of, entity string, at time.Time, f rdfres.Format) ([]byte, error) {
	q := url.Values{"entity": {entity}}
	if f != "" {
		q.Set("as", string(f))
	}
	if !at.IsZero() {
		q.Set("at", resourcesync.FormatTime(at))
	}
	var raw rawBody
	err := c.call(ctx, http.MethodGet, of+"/description?"+q.Encode(), nil, &raw)
	return raw, err
}

// rawBody takes an answer as it is.
type rawBody []byte

// IsUnreachable tells whether err means that nobody listens.
func IsUnreachable(err error) bool {
	var u *url.Error
	return errors.As(err, &u) && !errors.Is(err, context.Canceled)
}
