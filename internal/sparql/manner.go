package sparql

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// How queries are sent. A body of application/sparql-query is the way that holds
// queries of any length; Virtuoso 7 never answers one, and is asked by a form,
// which every store takes while it is short (Jetty: 200,000 bytes). So the first
// query of a client goes as a form, and its answer tells the store.
const (
	mannerUnknown = iota
	mannerDirect
	mannerForm
)

const (
	formType = "application/x-www-form-urlencoded"
	maxForm  = 20_000 // of a first query
)

// queryRequest is a query that sendQuery sends in the manner that the store takes.
func (c *Client) queryRequest(op, query, accept string) request {
	return request{op: op, method: http.MethodPost, url: c.endpoint.Query, accept: accept, query: query}
}

// sendQuery sends a query once, or twice where the first one had to find out how.
func (c *Client) sendQuery(ctx context.Context, r request) (*response, error) {
	manner := c.manner.Load()
	if manner == mannerForm || manner == mannerUnknown && len(r.query) <= maxForm {
		form := r
		form.contentType = formType
		form.body, form.length = textBody("query=" + url.QueryEscape(r.query))
		res, err := c.send(ctx, form)
		if err == nil {
			c.manner.CompareAndSwap(mannerUnknown, mannerDirect) // unless its headers said more
			return res, nil
		}
		var e *Error
		if c.manner.Load() == mannerForm || !errors.As(err, &e) || !refusesForms(e.Status) {
			return nil, err
		}
		c.manner.CompareAndSwap(mannerUnknown, mannerDirect)
	}
	r.contentType = queryType
	r.body, r.length = textBody(r.query)
	res, err := c.send(ctx, r)
	switch {
	case err == nil:
		c.direct.Store(true)
	case errors.Is(err, errStalled) && !c.direct.Load():
		c.manner.Store(mannerForm) // perhaps a Virtuoso that does not say so; the next try shows it
	}
	return res, err
}

func refusesForms(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return true
	}
	return false
}

func (c *Client) noteManner(h http.Header) {
	if isVirtuoso(h) {
		c.manner.Store(mannerForm)
	}
}

func isVirtuoso(h http.Header) bool { return strings.Contains(h.Get("Server"), "Virtuoso") }
