package sparql

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The forms of a query request. A body of application/sparql-query holds queries of any length, but
// Virtuoso 7 never answers one. It takes a form; nearly every store takes a short form too (Jetty:
// 200,000 bytes). So the first query of a client goes as a form, and its answer names the store.
// Stores with forms only, and those without POST, are found by their refusals.
const (
	mannerUnknown = iota
	mannerDirect
	mannerForm
	mannerGet
)

const (
	formType = "application/x-www-form-urlencoded"
	maxForm  = 20_000 // of a first query
)

// queryRequest is a query for sendQuery, in the form the store takes.
func (c *Client) queryRequest(op, query, accept string) request {
	return request{op: op, method: http.MethodPost, url: c.conn.endpoint.Query, accept: accept, query: query}
}

// sendQuery sends a query once, or again in another form to find the right one. It keeps the first
// form with an answer.
func (c *connection) sendQuery(ctx context.Context, r request) (*response, error) {
	manner := c.manner.Load()
	switch {
	case manner == mannerForm:
		return c.send(ctx, asForm(r))
	case manner == mannerGet:
		return c.send(ctx, asGet(r))
	}
	byForm := errNoForm
	if manner == mannerUnknown && len(r.query) <= maxForm {
		res, err := c.send(ctx, asForm(r))
		if err == nil {
			c.manner.CompareAndSwap(mannerUnknown, mannerDirect) // unless its headers said more
			return res, nil
		}
		if c.manner.Load() == mannerForm || !refusesManner(err) {
			return nil, err
		}
		byForm = err
	}
	direct := r
	direct.contentType = queryType
	direct.body, direct.length = textBody(r.query)
	res, err := c.send(ctx, direct)
	switch {
	case err == nil:
		c.direct.Store(true)
		c.manner.CompareAndSwap(mannerUnknown, mannerDirect)
		return res, nil
	case errors.Is(err, errStalled) && !c.direct.Load():
		c.manner.Store(mannerForm) // perhaps a Virtuoso without a Server header; the next try shows it
		return nil, err
	case c.direct.Load() || !refusesManner(err):
		return nil, err
	}
	if byForm == errNoForm {
		if res, other := c.send(ctx, asForm(r)); other == nil {
			c.manner.Store(mannerForm)
			return res, nil
		} else if !refusesManner(other) {
			return nil, err
		}
	}
	if refusesPost(err) || refusesPost(byForm) {
		if res, other := c.send(ctx, asGet(r)); other == nil {
			c.manner.Store(mannerGet)
			return res, nil
		}
	}
	return nil, err
}

// errNoForm stands for the error of a form never sent.
var errNoForm = errors.New("not sent as a form")

func asForm(r request) request {
	r.contentType = formType
	r.body, r.length = textBody("query=" + url.QueryEscape(r.query))
	return r
}

func asGet(r request) request {
	join := "?"
	if strings.Contains(r.url, "?") {
		join = "&"
	}
	r.method, r.url = http.MethodGet, r.url+join+"query="+url.QueryEscape(r.query)
	return r
}

// refusesManner tells whether an error may come from a store refusing queries in this form.
func refusesManner(err error) bool {
	return refusesPost(err) || hasStatus(err, http.StatusBadRequest, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError)
}

// refusesPost tells whether a store may take queries by GET only.
func refusesPost(err error) bool {
	return hasStatus(err, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusLengthRequired, http.StatusUnsupportedMediaType, http.StatusNotImplemented)
}

// hasStatus tells of an error whether it is an answer of one of these statuses.
func hasStatus(err error, statuses ...int) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(statuses, e.Status)
}

func (c *connection) noteManner(h http.Header) {
	if isVirtuoso(h) {
		c.manner.Store(mannerForm)
	}
}

func isVirtuoso(h http.Header) bool { return strings.Contains(h.Get("Server"), "Virtuoso") }
