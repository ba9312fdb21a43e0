package feed

import (
	"errors"
	"net/http"

	"github.com/rsbridge/rsbridge/destination/fetch"
)

// Traffic counts the requests to a source. An implementer guarantees:
//   - Begin begins a run: Received and Sent count from there, in bytes and in requests. Both may be
//     asked for beside the requests.
//   - Run is another number for each run.
//   - CloseIdle leaves requests under way alone.
type Traffic interface {
	Begin()
	Run() int64
	Received() int64
	Sent() int64
	CloseIdle()
}

// Access is how requests go to a source.
type Access struct {
	Allow       []string          // further hosts
	Concurrency int               // requests at once
	Agent       string            // User-Agent
	Transport   http.RoundTripper // nil: its own
}

// Connect makes the client of a source. From here on the source's address is without its secrets.
func (o *Options) Connect(a Access) (err error) {
	if o.Limits == nil {
		limits := DefaultLimits()
		o.Limits = &limits
	}
	o.Client, err = fetch.NewClient(o.Source, fetch.Options{Allow: a.Allow, Names: o.Settings, Concurrency: a.Concurrency, Agent: a.Agent, Transport: a.Transport, Limits: &o.Limits.Limits, Now: o.Now, Log: o.Log})
	if err == nil {
		o.Source = o.Client.Source()
	}
	return err
}

// ErrSourceGone ends a run: the source does not answer any more.
var ErrSourceGone = fetch.ErrSourceGone

// IsOfRequest tells failures of a request to the source.
func IsOfRequest(err error) bool {
	var fe *fetch.Error
	return errors.As(err, &fe)
}
